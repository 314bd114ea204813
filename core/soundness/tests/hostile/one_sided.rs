//! Puts, gets, atomics, and the calls that complete them.

use std::panic::{AssertUnwindSafe, catch_unwind};

use oxshmem::{
    AtomicBits, AtomicInt, AtomicOp, AtomicValue, Context, ContextOptions, Pod, Session, SignalOp,
    Sym,
    bindings::{self, Blocks},
};

use crate::random::Random;
use crate::{Player, call, value};

pub fn calls(player: &mut Player<'_>) {
    let world = player.world;
    on_handles(player, world);
    let options = [
        ContextOptions::NONE,
        ContextOptions::PRIVATE | ContextOptions::SERIALIZED,
        ContextOptions::NOSTORE,
    ];
    let options = player.own.one_of(&options);
    let made = [(); 2].map(|()| call!(Context::create_context, world.create_context(options)));
    let [Some(mut context), Some(mut other)] = made else {
        return;
    };
    // The types promise nothing about which value is which.
    std::mem::swap(&mut context, &mut other);
    let session = Session::default();
    let session = value!(Session::batch, session.batch());
    let session = value!(Session::total_ops, session.total_ops(player.own.odd(9)));
    value!(Context::session_start, context.session_start(session));
    on_handles(player, &context);
    value!(Context::session_stop, context.session_stop());
    // A scope that is neither completed nor dropped.
    if player.own.below(4) == 0 {
        let forgotten = world.create_context(options).unwrap();
        let words = player.some_words();
        let _ = forgotten.put(words, &[1; 3], 0);
        std::mem::forget(forgotten);
    }
    call!(Context::destroy, other.destroy());
    drop(context.create_context(options));
    drop(context);
}

fn on_handles(player: &mut Player<'_>, context: &Context<'_>) {
    let objects = player.objects;
    of_type(&mut player.own, context, objects.bytes, 7);
    of_type(&mut player.own, context, objects.triples, [1; 3]);
    of_type(&mut player.own, context, objects.nothing, ());
    of_type(&mut player.own, context, objects.endless, ());
    let (long, foreign) = (objects.long, player.foreign.bytes);
    of_type(&mut player.own, context, long, bytemuck::Zeroable::zeroed());
    of_type(&mut player.own, context, foreign, 9);
    let words = player.some_words();
    of_type(&mut player.own, context, words, 3);
    let words = player.some_words();
    atomics(&mut player.own, context, words);
    if let Ok(words) = words.cast::<u32>() {
        atomics(&mut player.own, context, words);
    }
    if let Ok(words) = words.cast::<f64>() {
        exchanges(&mut player.own, context, words, f64::NAN);
    }
    let words = player.some_words();
    signals(player, context, words);
    ending(&mut player.own, context);
}

fn of_type<T: Pod>(r: &mut Random, context: &Context<'_>, whole: Sym<T>, fill: T) {
    let n = context.n_pes();
    let _ = value!(Context::n_pes, n);
    let pe = r.pe(n);
    let (from, to) = (r.odd(whole.len()), r.odd(whole.len()));
    let sym = match r.below(4) {
        0 => call!(Sym::at, whole.at(from)),
        1 => call!(Sym::range, whole.range(from..to)),
        2 => call!(Sym::range, whole.range(from..=to)),
        _ => Some(whole),
    }
    .unwrap_or(whole);
    assert!(value!(Sym::len, sym.len()) <= whole.len());
    assert_eq!(value!(Sym::is_empty, sym.is_empty()), [sym.len()] == [0]);
    assert!(value!(Sym::offset, sym.offset()) >= whole.offset());
    let as_bytes = value!(Sym::to_bytes, sym.to_bytes());
    assert_eq!(as_bytes.len(), sym.len() * size_of::<T>());
    call!(Sym::cast, sym.cast::<u64>());
    call!(Sym::cast, sym.cast::<[u8; 3]>());
    call!(Sym::cast, sym.cast::<()>());
    call!(Sym::cast, sym.cast::<crate::Long>());

    let most = (100_000 / size_of::<T>().max(1)).min(40);
    let mut buffer = vec![fill; r.below(most + 1)];
    call!(Context::put, context.put(sym, &buffer, pe));
    call!(Context::get, context.get(&mut buffer, sym, pe));
    call!(Context::p, context.p(sym, fill, pe));
    call!(Context::g, context.g(sym, pe));
    let _ = value!(bindings::try_p, bindings::try_p(context, sym, fill, pe));
    let _ = value!(bindings::try_g, bindings::try_g(context, sym, pe));
    call!(Context::write, context.write(sym, &buffer));
    call!(Context::read, context.read(&mut buffer, sym));
    strided(r, context, sym, &mut buffer, pe);
    call!(Context::put_from, context.put_from(sym, whole, pe));
    call!(Context::get_into, context.get_into(sym, whole, pe));
    let half = whole.range(..whole.len() / 2).unwrap();
    call!(Context::put_from, context.put_from(half, half, pe));
    nonblocking(context, (sym, whole), &mut buffer, pe);
    registered(context, sym, &buffer, pe);
}

fn strided<T: Pod>(r: &mut Random, context: &Context<'_>, sym: Sym<T>, local: &mut [T], pe: usize) {
    // There may be as many elements without bytes as an index can count.
    let mut odd = || r.odd(sym.len().min(1 << 20));
    let (remote, mine, block, count) = (odd(), odd(), odd(), odd());
    call!(
        Context::iput,
        context.iput(sym, local, remote, mine, count, pe)
    );
    call!(
        Context::iget,
        context.iget(local, sym, mine, remote, count, pe)
    );
    call!(
        Context::ibput,
        context.ibput(sym, local, remote, mine, block, count, pe)
    );
    call!(
        Context::ibget,
        context.ibget(local, sym, mine, remote, block, count, pe)
    );
    let put = value!(Blocks::of_put, Blocks::of_put(remote, mine, block, count));
    let get = value!(Blocks::of_get, Blocks::of_get(mine, remote, block, count));
    assert_eq!(put, get);
    let _ = value!(Blocks::remote_span, put.remote_span());
    let (few, some) = (r.below(3) + 1, r.below(local.len() + 1));
    call!(Context::iput, context.iput(sym, local, few, 1, some, pe));
    call!(Context::iget, context.iget(local, sym, 1, few, some, pe));
}

fn nonblocking<T: Pod>(
    context: &Context<'_>,
    (sym, whole): (Sym<T>, Sym<T>),
    buffer: &mut [T],
    pe: usize,
) {
    let source = buffer.to_vec();
    call!(
        Context::scope,
        context.scope(|scope| {
            call!(Scope::put_nbi, scope.put_nbi(sym, &source, pe));
            call!(Scope::get_nbi, scope.get_nbi(buffer, sym, pe));
            call!(Scope::put_from_nbi, scope.put_from_nbi(sym, whole, pe));
            call!(Scope::get_into_nbi, scope.get_into_nbi(sym, whole, pe));
            // Inside a scope, every call that is safe outside.
            context.scope(|inner| inner.put_nbi(sym, &source, pe)).ok();
            context.fence()
        })
    );
    // A scope that panics returns its buffers.
    let into = vec![T::zeroed(); buffer.len()];
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let mut into = into;
        let ended: oxshmem::Result<()> = context.scope(|scope| {
            let _ = scope.get_nbi(&mut into, sym, pe);
            std::panic::resume_unwind(Box::new("out of a scope"))
        });
        ended
    }));
    assert!(panicked.is_err());
}

fn registered<T: Pod>(context: &Context<'_>, sym: Sym<T>, buffer: &[T], pe: usize) {
    let Some(mut known) = call!(Context::register, context.register(buffer.to_vec())) else {
        return;
    };
    call!(Context::put, context.put(sym, &known, pe));
    call!(Context::get, context.get(&mut known, sym, pe));
    let part = known.len() / 2;
    call!(Context::get, context.get(&mut known[part..], sym, pe));
    let vec = value!(Registered::into_vec, known.into_vec());
    assert_eq!(vec.len(), buffer.len());
    if let Some(forgotten) = call!(Context::register, context.register(vec)) {
        std::mem::forget(forgotten);
    }
}

fn exchanges<T: AtomicValue>(r: &mut Random, context: &Context<'_>, word: Sym<T>, value: T) {
    let pe = r.pe(context.n_pes());
    call!(Context::fetch, context.fetch(word, pe));
    call!(Context::set, context.set(word, value, pe));
    call!(Context::swap, context.swap(word, value, pe));
    let ops = [
        AtomicOp::Fetch,
        AtomicOp::Set,
        AtomicOp::Add,
        AtomicOp::Swap,
    ];
    let op = r.one_of(&ops);
    let _ = value!(
        bindings::try_atomic,
        bindings::try_atomic(context, op, word, value, value, pe)
    );
    let [mut a, mut b] = [value; 2];
    call!(
        Context::scope,
        context.scope(|scope| {
            call!(Scope::fetch_nbi, scope.fetch_nbi(&mut a, word, pe));
            call!(Scope::swap_nbi, scope.swap_nbi(&mut b, word, value, pe));
            Ok(())
        })
    );
}

fn atomics<T: AtomicInt + AtomicBits + From<u8>>(
    r: &mut Random,
    context: &Context<'_>,
    word: Sym<T>,
) {
    let pe = r.pe(context.n_pes());
    let x = T::from(r.below(256) as u8);
    exchanges(r, context, word, x);
    call!(Context::compare_swap, context.compare_swap(word, x, x, pe));
    call!(Context::add, context.add(word, x, pe));
    call!(Context::fetch_add, context.fetch_add(word, x, pe));
    call!(Context::inc, context.inc(word, pe));
    call!(Context::fetch_inc, context.fetch_inc(word, pe));
    call!(Context::and, context.and(word, x, pe));
    call!(Context::fetch_and, context.fetch_and(word, x, pe));
    call!(Context::or, context.or(word, x, pe));
    call!(Context::fetch_or, context.fetch_or(word, x, pe));
    call!(Context::xor, context.xor(word, x, pe));
    call!(Context::fetch_xor, context.fetch_xor(word, x, pe));
    let [mut a, mut b, mut c, mut d, mut e, mut f] = [x; 6];
    call!(
        Context::scope,
        context.scope(|scope| {
            let s = scope;
            call!(
                Scope::compare_swap_nbi,
                s.compare_swap_nbi(&mut a, word, x, x, pe)
            );
            call!(Scope::fetch_add_nbi, s.fetch_add_nbi(&mut b, word, x, pe));
            call!(Scope::fetch_inc_nbi, s.fetch_inc_nbi(&mut c, word, pe));
            call!(Scope::fetch_and_nbi, s.fetch_and_nbi(&mut d, word, x, pe));
            call!(Scope::fetch_or_nbi, s.fetch_or_nbi(&mut e, word, x, pe));
            call!(Scope::fetch_xor_nbi, s.fetch_xor_nbi(&mut f, word, x, pe));
            Ok(())
        })
    );
}

fn signals(player: &mut Player<'_>, context: &Context<'_>, signal: Sym<u64>) {
    let (r, dst) = (&mut player.own, player.objects.bytes);
    let (pe, value, len) = (r.pe(context.n_pes()), r.next(), r.odd(dst.len()));
    let dst = dst.range(..len).unwrap_or(dst);
    let data = [1; 3];
    for op in [SignalOp::Set, SignalOp::Add] {
        call!(
            Context::put_signal,
            context.put_signal(dst, &data, signal, value, op, pe)
        );
        call!(
            Context::scope,
            context.scope(|scope| {
                call!(
                    Scope::put_signal_nbi,
                    scope.put_signal_nbi(dst, &data, signal, value, op, pe)
                );
                Ok(())
            })
        );
    }
    call!(Context::signal_set, context.signal_set(signal, value, pe));
    call!(Context::signal_add, context.signal_add(signal, value, pe));
    call!(
        Context::put_counted,
        context.put_counted(dst, &data, signal, pe)
    );
}

fn ending(r: &mut Random, context: &Context<'_>) {
    let n = context.n_pes();
    let list = [r.pe(n), r.pe(n), 0, 0];
    call!(Context::pe_quiet, context.pe_quiet(&list[..r.below(5)]));
    call!(Context::fence, context.fence());
    value!(Context::progress, context.progress());
    let _ = value!(bindings::try_quiet, bindings::try_quiet(context));
    call!(Context::quiet, context.quiet());
    assert!(value!(Context::my_pe, context.my_pe()) < n);
    assert!(value!(Context::heap_limit, context.heap_limit()) > 0);
    assert_eq!(value!(Context::gpu_heap_limit, context.gpu_heap_limit()), 0);
    let _ = value!(Context::visibility, context.visibility());
}
