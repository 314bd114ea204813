//! Programs whose operations on streams are kernels of the device library: what goes beyond the streams of mapped PEs.

use std::fmt::Debug;

use half::bf16;
use oxshmem::cuda::{Args, Graph};
use oxshmem::{Cmp, Error, Fold, GpuNumber, Pod, Result, SignalOp, Sym, Team, World};

use crate::job::{say, stay};
use crate::kernels::{Kernels, filled};
use crate::on_gpu::{pattern, read, stream, zeroed};

/// The neighbours of this PE.
fn right_and_left(world: &World) -> (usize, usize) {
    let (me, n) = (world.my_pe(), world.n_pes());
    ((me + 1) % n, (me + n - 1) % n)
}

/// One value of a type, put to the right and got from there.
fn one_value<T: Pod + PartialEq + Debug>(world: &World, of: impl Fn(usize) -> T) -> Result<()> {
    let (me, stream) = (world.my_pe(), stream(world));
    let (right, left) = right_and_left(world);
    let words = zeroed::<T>(world, 3)?;
    world.p_on_stream(words.at(1)?, of(me), right, &stream)?;
    assert_eq!(world.g_on_stream(words.at(1)?, right, &stream)?, of(me));
    world.barrier_all_on_stream(&stream)?;
    world.synchronize(&stream)?;
    assert_eq!(read(world, words)?, [T::zeroed(), of(left), T::zeroed()]);
    Ok(())
}

/// Values, nonblocking transfers, signals, strides and several words.
pub fn transfers(kernels: &Kernels<'_>) -> Result<()> {
    const LEN: usize = 5000;
    let world = kernels.world;
    let (me, stream) = (world.my_pe(), stream(world));
    let (right, left) = right_and_left(world);
    one_value(world, |pe| pe as u8 + 3)?;
    one_value(world, |pe| pe as i16 - 300)?;
    one_value(world, |pe| pe as f32 + 0.5)?;
    one_value(world, |pe| pe as u64 + (1 << 40))?;

    let own = filled(world, &pattern(me, LEN))?;
    let (dest, got) = (zeroed::<u64>(world, LEN)?, zeroed::<u64>(world, LEN)?);
    let (signal, copied) = (zeroed::<u64>(world, 1)?, zeroed::<u64>(world, LEN)?);
    for round in 1..=3 {
        world.put_nbi_on_stream(dest.range(..LEN - 1)?, own.range(1..)?, right, &stream)?;
        world.get_nbi_on_stream(got, own, right, &stream)?;
        world.quiet_on_stream(&stream)?;
        // The GPU reads what was got (M19, M27).
        world.put_on_stream(copied, got, me, &stream)?;
        // The quiet lies before it: the sender may change what it has put.
        world.put_signal_nbi_on_stream(
            dest.range(LEN - 1..)?,
            own.range(..1)?,
            signal,
            1,
            SignalOp::Add,
            right,
            &stream,
        )?;
        world.wait_until_on_stream(signal, Cmp::Ge, round, &stream)?;
        world.synchronize(&stream)?;
        let seen = read(world, dest)?;
        assert_eq!(seen[..LEN - 1], pattern(left, LEN)[1..]);
        assert_eq!(seen[LEN - 1], pattern(left, 1)[0]);
        assert_eq!(read(world, copied)?, pattern(right, LEN));
        world.barrier_all()?;
        world.put(dest, &[0; LEN], me)?;
        world.put(got, &[0; LEN], me)?;
        world.barrier_all()?;
    }
    // Blocking ones, in the stream's order.
    world.put_on_stream(dest, own, right, &stream)?;
    world.put_on_stream(dest.range(..2)?, own.range(2..4)?, right, &stream)?;
    world.signal_on_stream(signal, 100, SignalOp::Set, right, &stream)?;
    world.wait_until_on_stream(signal, Cmp::Eq, 100, &stream)?;
    world.get_on_stream(got.range(..2)?, dest.range(..2)?, me, &stream)?;
    world.synchronize(&stream)?;
    assert_eq!(read(world, got)?[..2], pattern(left, LEN)[2..4]);
    assert_eq!(read(world, dest)?[2..], pattern(left, LEN)[2..]);
    world.barrier_all()?;
    strided(world)?;
    several_words(world)?;
    refusals(kernels)
}

/// Elements of 12 bytes and of 2, at strides.
fn strided(world: &World) -> Result<()> {
    let (me, stream) = (world.my_pe(), stream(world));
    let (right, left) = right_and_left(world);
    let of = |pe: usize| -> Vec<[u32; 3]> { (0..40).map(|at| [pe as u32, at, at * at]).collect() };
    let own = filled(world, &of(me))?;
    let (dest, got) = (
        zeroed::<[u32; 3]>(world, 40)?,
        zeroed::<[u32; 3]>(world, 40)?,
    );
    world.iput_on_stream(dest, own, 3, 2, 13, right, &stream)?;
    world.iget_on_stream(got, own, 1, 5, 8, right, &stream)?;
    world.barrier_all_on_stream(&stream)?;
    world.synchronize(&stream)?;
    let mut wanted = [[0; 3]; 40];
    for at in 0..13 {
        wanted[3 * at] = of(left)[2 * at];
    }
    assert_eq!(read(world, dest)?, wanted);
    let of_right = of(right);
    let wanted: Vec<_> = of_right.into_iter().step_by(5).collect();
    assert_eq!(read(world, got)?[..8], wanted);
    for (stride, count) in [(0, 2), (3, 15)] {
        let refused = world.iput_on_stream(dest, own, stride, 1, count, right, &stream);
        assert!(refused.is_err(), "{stride} {count}");
        let refused = world.iget_on_stream(dest, own, stride, 1, count, right, &stream);
        assert!(refused.is_err(), "{stride} {count}");
    }
    world.iput_on_stream(dest, own, 3, 2, 0, right, &stream)
}

/// Waits for all of several words, of which some are left out.
fn several_words(world: &World) -> Result<()> {
    let stream = stream(world);
    let (right, _) = right_and_left(world);
    let words = zeroed::<i32>(world, 4)?;
    let status = filled(world, &[0, 1, 0, 0])?;
    let values = filled(world, &[-5, 9, 7, 8])?;
    world.wait_until_all_on_stream(words, Some(status), Cmp::Ne, 0, &stream)?;
    world.wait_until_all_vector_on_stream(words, Some(status), Cmp::Eq, values, &stream)?;
    for (at, value) in [(3, 8), (0, -5)] {
        world.set(words.at(at)?, value, right)?;
    }
    world.barrier_all()?;
    assert!(!stream.is_idle().unwrap(), "a word is still 0");
    world.barrier_all()?;
    world.set(words.at(2)?, 7, right)?;
    world.synchronize(&stream)?;
    let all = [0, 2, 3].map(|at| words.at(at).and_then(|word| world.g(word, world.my_pe())));
    assert_eq!(all.map(Result::unwrap), [-5, 7, 8]);
    let refused =
        world.wait_until_all_on_stream(words.range(..3)?, Some(status), Cmp::Ne, 0, &stream);
    let told = refused.unwrap_err().to_string();
    assert!(told.contains("3 words, and 4 elements"), "{told}");
    world.barrier_all()
}

fn refusals(kernels: &Kernels<'_>) -> Result<()> {
    let (world, stream) = (kernels.world, stream(kernels.world));
    let triple = zeroed::<[u8; 3]>(world, 1)?;
    let told = world
        .p_on_stream(triple, [1, 2, 3], 0, &stream)
        .unwrap_err();
    assert!(
        told.to_string().contains("1, 2, 4 or 8 bytes, not 3"),
        "{told}"
    );
    let halves = zeroed::<u32>(world, 4)?;
    let odd = halves.range(1..3)?.cast::<[u32; 2]>()?;
    let told = world.p_on_stream(odd, [1, 2], 0, &stream).unwrap_err();
    assert!(matches!(told, Error::Misaligned { align: 8, .. }), "{told}");
    ended_waits(kernels)?;
    let pairs = zeroed::<u64>(world, 2)?;
    assert!(world.p_on_stream(pairs, 1, 0, &stream).is_err());
    assert!(
        world
            .put_nbi_on_stream(pairs, pairs.range(..1)?, 0, &stream)
            .is_err()
    );
    assert!(
        world
            .p_on_stream(pairs.at(0)?, 1, world.n_pes(), &stream)
            .is_err()
    );
    let team = world.team().split_strided(0, 1, world.n_pes())?.unwrap();
    let told = team.barrier_on_stream(&stream).unwrap_err().to_string();
    assert!(told.contains("DeviceLibrary::add_team"), "{told}");
    team.destroy()
}

/// A kernel's bad call ends all waits: calls on streams are refused until they wait again.
fn ended_waits(kernels: &Kernels<'_>) -> Result<()> {
    const BAD_STRIDE: u32 = 6;
    let (world, stream) = (kernels.world, stream(kernels.world));
    let word = zeroed::<u64>(world, 2)?;
    let at = kernels.at(word);
    let args = Args::new().with(BAD_STRIDE).with(at).with(at).with(at);
    kernels.launch(c"bad", 2, 3, args);
    kernels.synchronize();
    let told = world
        .barrier_all_on_stream(&stream)
        .unwrap_err()
        .to_string();
    assert!(told.contains("DeviceLibrary::resume"), "{told}");
    assert!(world.synchronize(&stream).is_err() && kernels.library.check().is_err());
    kernels.library.resume();
    world.synchronize(&stream)
}

/// All collective calls of a team, of `len` elements for each member.
fn all_calls(world: &World, team: &Team<'_>, len: usize) -> Result<()> {
    let (me, n, stream) = (team.my_pe(), team.n_pes(), stream(world));
    let of = |member: usize, len: usize| pattern(member + 1, len);
    let (short, long) = (zeroed::<u64>(world, len)?, zeroed::<u64>(world, n * len)?);
    let (from, all) = (
        filled(world, &of(me, len))?,
        filled(world, &of(me, n * len))?,
    );
    for root in [0, n - 1] {
        team.broadcast_on_stream(short, from, root, &stream)?;
        world.synchronize(&stream)?;
        assert_eq!(read(world, short)?, of(root, len));
        team.sync_on_stream(&stream)?;
    }
    team.fcollect_on_stream(long, from, &stream)?;
    world.synchronize(&stream)?;
    let wanted: Vec<_> = (0..n).flat_map(|member| of(member, len)).collect();
    assert_eq!(read(world, long)?, wanted);
    // In place: each PE gives its own part.
    let mut own = vec![0; n * len];
    own[me * len..(me + 1) * len].copy_from_slice(&of(me, len));
    let parts = filled(world, &own)?;
    team.fcollect_on_stream(parts, parts.range(me * len..(me + 1) * len)?, &stream)?;
    world.synchronize(&stream)?;
    assert_eq!(read(world, parts)?, wanted);
    team.alltoall_on_stream(long, all, &stream)?;
    world.synchronize(&stream)?;
    let part = |member| of(member, n * len)[me * len..(me + 1) * len].to_vec();
    let wanted: Vec<_> = (0..n).flat_map(part).collect();
    assert_eq!(read(world, long)?, wanted);
    team.barrier_on_stream(&stream)?;
    let mut sums = vec![0; n * len];
    for member in 0..n {
        for (sum, value) in sums.iter_mut().zip(of(member, n * len)) {
            *sum += value;
        }
    }
    team.reduce_scatter_on_stream(short, all, Fold::Sum, &stream)?;
    // In place.
    team.reduce_on_stream(all, all, Fold::Sum, &stream)?;
    team.reduce_on_stream(from, from, Fold::Max, &stream)?;
    world.synchronize(&stream)?;
    assert_eq!(read(world, short)?, sums[me * len..(me + 1) * len]);
    assert_eq!(read(world, all)?, sums);
    assert_eq!(read(world, from)?, of(n - 1, len));
    Ok(())
}

/// The world's calls, and those of teams: of some PEs, and of all in another order.
pub fn collectives(kernels: &Kernels<'_>) -> Result<()> {
    let (world, library) = (kernels.world, &kernels.library);
    let n = world.n_pes();
    for len in [1, 17, 3000] {
        all_calls(world, &world.team(), len)?;
        world.barrier_all()?;
    }
    let turned: Vec<_> = (0..n).rev().collect();
    let turned = world.team().split_list(&turned)?;
    if let Some(turned) = &turned {
        library.add_team(turned)?;
        at_once(world, turned)?;
    }
    for team in [turned, world.team().split_strided(1, 1, n - 1)?] {
        if let Some(team) = &team {
            library.add_team(team)?;
        }
        for len in [1, 700] {
            // Objects of all PEs.
            match &team {
                Some(team) => all_calls(world, team, len)?,
                None => beside_all_calls(world, n - 1, len)?,
            }
            world.barrier_all()?;
        }
        if let Some(team) = team {
            team.destroy()?;
        }
    }
    Ok(())
}

/// Two teams' reductions at once, of more than there is memory for at a time.
fn at_once(world: &World, turned: &Team<'_>) -> Result<()> {
    let (me, n) = (world.my_pe(), world.n_pes());
    let len = n * 150_000;
    let (first, second) = (
        filled(world, &pattern(me, len))?,
        filled(world, &pattern(me + 1, len))?,
    );
    let streams = [stream(world), stream(world)];
    world.reduce_on_stream(first, first, Fold::Max, &streams[0])?;
    turned.reduce_on_stream(second, second, Fold::Min, &streams[1])?;
    for stream in &streams {
        world.synchronize(stream)?;
    }
    assert!(read(world, first)? == pattern(n - 1, len) && read(world, second)? == pattern(1, len));
    world.barrier_all()?;
    world.free(first)?;
    world.free(second)
}

/// The allocations of [`all_calls`] of a team of `n` that this PE is not in.
fn beside_all_calls(world: &World, n: usize, len: usize) -> Result<()> {
    let _objects = (zeroed::<u64>(world, len)?, zeroed::<u64>(world, n * len)?);
    let _sources = (
        filled(world, &vec![0_u64; len])?,
        filled(world, &vec![0_u64; n * len])?,
        filled(world, &vec![0_u64; n * len])?,
    );
    Ok(())
}

/// A fold of a type's values, against the same on the host.
fn fold<T: GpuNumber + PartialEq + Debug>(
    world: &World,
    fold: Fold,
    of: impl Fn(usize, usize) -> T,
    combine: impl Fn(T, T) -> T,
) -> Result<()> {
    const LEN: usize = 37;
    let (me, n, stream) = (world.my_pe(), world.n_pes(), stream(world));
    let own: Vec<T> = (0..LEN).map(|at| of(me, at)).collect();
    let (from, to) = (filled(world, &own)?, zeroed::<T>(world, LEN)?);
    world.reduce_on_stream(to, from, fold, &stream)?;
    world.synchronize(&stream)?;
    let at = |at| (1..n).fold(of(0, at), |folded, pe| combine(folded, of(pe, at)));
    assert_eq!(
        read(world, to)?,
        (0..LEN).map(at).collect::<Vec<_>>(),
        "{fold:?}"
    );
    world.barrier_all()
}

/// Every operation, and every type.
pub fn folds(kernels: &Kernels<'_>) -> Result<()> {
    let world = kernels.world;
    macro_rules! integers {
        ($($type:ty)*) => {$({
            let of = |pe: usize, at: usize| ((pe * 77 + at * 13 + 5) as $type).wrapping_mul(91).wrapping_sub(60);
            fold::<$type>(world, Fold::Sum, of, <$type>::wrapping_add)?;
            fold::<$type>(world, Fold::Prod, of, <$type>::wrapping_mul)?;
            fold::<$type>(world, Fold::Min, of, <$type>::min)?;
            fold::<$type>(world, Fold::Max, of, <$type>::max)?;
            fold::<$type>(world, Fold::And, of, |a, b| a & b)?;
            fold::<$type>(world, Fold::Or, of, |a, b| a | b)?;
            fold::<$type>(world, Fold::Xor, of, |a, b| a ^ b)?;
        })*};
    }
    integers!(i8 i16 i32 i64 u8 u16 u32 u64);
    macro_rules! floats {
        ($($type:ty)*) => {$({
            let of = |pe: usize, at: usize| (pe as $type + 0.3) * (at as $type - 7.7);
            fold::<$type>(world, Fold::Sum, of, |a, b| a + b)?;
            fold::<$type>(world, Fold::Prod, of, |a, b| a * b)?;
            fold::<$type>(world, Fold::Min, of, <$type>::min)?;
            fold::<$type>(world, Fold::Max, of, <$type>::max)?;
        })*};
    }
    floats!(f32 f64);
    // Values of few bits, whose sums are exact.
    let small = |pe: usize, at: usize| (pe as f32 - 1.5) * (at % 8) as f32;
    let half = |pe, at| half::f16::from_f32(small(pe, at));
    fold(world, Fold::Sum, half, |a, b| a + b)?;
    fold(world, Fold::Min, half, half::f16::min)?;
    let brain = |pe, at| bf16::from_f32(small(pe, at));
    fold(world, Fold::Prod, brain, |a, b| a * b)?;
    fold(world, Fold::Max, brain, bf16::max)?;
    let refused = zeroed::<f32>(world, 1)?;
    let stream = stream(world);
    assert!(
        world
            .reduce_on_stream(refused, refused, Fold::Xor, &stream)
            .is_err()
    );
    Ok(())
}

/// A graph with every kind of call, launched several times.
pub fn graph(kernels: &Kernels<'_>) -> Result<()> {
    let world = kernels.world;
    let (me, stream) = (world.my_pe(), stream(world));
    let (right, _) = right_and_left(world);
    let (counts, sums): (Sym<u64>, Sym<u64>) = (zeroed(world, 4)?, zeroed(world, 4)?);
    let arrived = zeroed::<u64>(world, 1)?;
    let mut graph = Graph::capture(&stream, |stream| -> Result<()> {
        world.reduce_on_stream(sums, counts, Fold::Sum, stream)?;
        world.put_nbi_on_stream(counts.range(1..2)?, sums.range(..1)?, right, stream)?;
        world.quiet_on_stream(stream)?;
        world.signal_on_stream(arrived, 1, SignalOp::Add, right, stream)?;
        world.wait_until_all_on_stream(arrived, None, Cmp::Gt, 0, stream)?;
        world.barrier_all_on_stream(stream)?;
        let refused = world.g_on_stream(arrived, me, stream).unwrap_err();
        assert!(refused.to_string().contains("graph"), "{refused}");
        Ok(())
    })?;
    let n = world.n_pes() as u64;
    for round in 1..=3 {
        world.put(counts.range(..1)?, &[round * (me as u64 + 1)], me)?;
        world.barrier_all()?;
        // SAFETY: the world and its memory live until the stream is synchronized.
        unsafe { graph.launch(&stream) }.unwrap();
        world.synchronize(&stream)?;
        let sum = round * n * (n + 1) / 2;
        assert_eq!(read(world, counts)?[1], sum);
        assert_eq!(world.g(arrived, me)?, round);
        world.barrier_all()?;
    }
    Ok(())
}

/// Streams wait for the lost PE, by a team's barrier, and behind operations towards it.
pub fn lost(kernels: &Kernels<'_>) -> Result<()> {
    let world = kernels.world;
    let (me, n, stream) = (world.my_pe(), world.n_pes(), stream(world));
    let all: Vec<_> = (0..n).collect();
    let team = world.team().split_list(&all)?.unwrap();
    kernels.library.add_team(&team)?;
    let words = zeroed::<u64>(world, 6002)?;
    world.barrier_all()?;
    if me == n - 1 {
        say(format_args!("ready"));
        stay();
        return Ok(());
    }
    let (first, second) = (words.range(..1)?, words.range(1..2)?);
    world.put_nbi_on_stream(first, second, n - 1, &stream)?;
    team.barrier_on_stream(&stream)?;
    // More requests than the ring has slots, when their target is lost.
    let (many, own) = (words.range(2..3002)?, words.range(3002..)?);
    world.iput_on_stream(many, own, 1, 1, 3000, n - 1, &stream)?;
    say(format_args!("ready"));
    match world.synchronize(&stream) {
        Err(Error::PeerLost { pe, .. }) if pe == n - 1 => {}
        other => panic!("{other:?} though the last PE is lost"),
    }
    let refused = team.barrier_on_stream(&stream);
    assert!(
        matches!(refused, Err(Error::PeerLost { .. })),
        "{refused:?}"
    );
    assert_eq!(world.acknowledge_lost(), [n - 1]);
    // The streams work again towards the others, over more than a lap of the ring.
    let there = 1 - me;
    world.put(second, &[7 + me as u64], me)?;
    while world.g(second, there)? == 0 {
        std::thread::yield_now();
    }
    world.put_nbi_on_stream(many, own, there, &stream)?;
    world.quiet_on_stream(&stream)?;
    for _ in 0..1100 {
        world.get_on_stream(first, second, there, &stream)?;
    }
    world.synchronize(&stream)?;
    let got = [first, second].map(|word| world.g_on_stream(word, me, &stream));
    assert_eq!(got.map(Result::unwrap), [7 + there as u64, 7 + me as u64]);
    say("told");
    stay();
    Ok(())
}
