//! Waits, tests and locks. Their condition already holds, or they are never asked to wait.

use std::panic::{AssertUnwindSafe, catch_unwind};

use oxshmem::{Cmp, Context, Sym, bindings};

use crate::{Player, call, value};

/// Calls with the same arguments.
macro_rules! each_call {
    ($type:ident, $of:expr, $args:tt: $($name:ident)*) => {
        $(call!($type::$name, $of.$name $args);)*
    };
}

/// The calls of every type that waits, for words of this type.
macro_rules! all_waits {
    ($type:ident, $of:expr, $player:expr, $words:expr) => {{
        let (of, words): (_, Sym<u64>) = ($of, $words);
        let skip = vec![true; $player.own.odd(words.len()).min(2 * words.len() + 1)];
        let values = vec![0; words.len()];
        for skip in [None, Some(&skip[..])] {
            // Every word is at least 0, so no call has to wait.
            let (ge, value) = (Cmp::Ge, 0);
            each_call!($type, of, (words, skip, ge, value):
                wait_until_all wait_until_any wait_until_some);
            each_call!($type, of, (words, skip, ge, &values):
                wait_until_all_vector wait_until_any_vector wait_until_some_vector);
            let (cmp, value) = ($player.own.one_of(&ALL), $player.own.next());
            let values = vec![value; $player.own.odd(words.len()).min(1000)];
            each_call!($type, of, (words, skip, cmp, value): test_all test_any test_some);
            each_call!($type, of, (words, skip, cmp, &values):
                test_all_vector test_any_vector test_some_vector);
        }
        call!($type::wait_until, of.wait_until(words, Cmp::Ge, 0));
        call!(
            $type::signal_wait_until,
            of.signal_wait_until(words, Cmp::Ge, 0)
        );
        call!($type::test, of.test(words, Cmp::Lt, 1));
        call!($type::signal_fetch, of.signal_fetch(words));
        call!($type::wait_counted, of.wait_counted(words, 0));
        call!(
            $type::test_counted,
            of.test_counted(words, $player.own.next())
        );
        let mut polls = 0;
        let poll = || {
            polls += 1;
            (polls > 3).then_some(polls)
        };
        call!(
            bindings::wait_for,
            oxshmem::bindings::wait_for(of, "a test", &|| "three looks".into(), poll)
        );
        call!(bindings::poll_once, oxshmem::bindings::poll_once(of, || 1));
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            oxshmem::bindings::wait_for(of, "a test", &|| String::new(), || -> Option<()> {
                std::panic::resume_unwind(Box::new("out of a look"))
            })
        }));
        assert!(panicked.is_err());
    }};
}
pub(crate) use {all_waits, each_call};

pub const ALL: [Cmp; 6] = [Cmp::Eq, Cmp::Ne, Cmp::Gt, Cmp::Ge, Cmp::Lt, Cmp::Le];

pub fn calls(player: &mut Player<'_>) {
    let world = player.world;
    for cmp in ALL {
        let _ = value!(Cmp::holds, cmp.holds(f64::NAN, f64::NAN));
    }
    let words = player.some_words();
    all_waits!(Context, context_of(world), player, words);
    // Calls out of a callback of a call.
    let (bytes, me) = (player.objects.bytes, world.my_pe());
    let mut polls = 0;
    let poll = || {
        polls += 1;
        call!(Context::put, world.put(bytes, &[1; 9], me));
        call!(Context::quiet, world.quiet());
        call!(
            bindings::poll_once,
            bindings::poll_once(&**world, || world.fence())
        );
        (polls > 3).then_some(())
    };
    call!(
        bindings::wait_for,
        bindings::wait_for(&**world, "a test", &|| "looks".into(), poll)
    );
    locks(player);
}

fn context_of<'a, 'w>(context: &'a Context<'w>) -> &'a Context<'w> {
    context
}

fn locks(player: &mut Player<'_>) {
    let (world, lock) = (player.world, player.objects.lock);
    let none = lock.range(..0).unwrap();
    for wrong in [none, player.foreign.words] {
        call!(Context::set_lock, world.set_lock(wrong));
        call!(Context::test_lock, world.test_lock(wrong));
        call!(Context::clear_lock, world.clear_lock(wrong));
    }
    // A lock that this context does not hold.
    call!(
        Context::clear_lock,
        world.clear_lock(player.objects.counter)
    );
    call!(Context::set_lock, world.set_lock(lock));
    call!(Context::clear_lock, world.clear_lock(lock));
    if call!(Context::test_lock, world.test_lock(lock)) == Some(true) {
        call!(Context::clear_lock, world.clear_lock(lock));
    }
}
