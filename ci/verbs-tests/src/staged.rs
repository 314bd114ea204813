//! GPU memory that no transport carries between hosts: by way of host memory and verbs, and by whatever
//! joins the GPUs of one host. The job's settings give each PE a GPU heap (`OXSHMEM_CUDA_SYMMETRIC_SIZE`).

use oxshmem::{Fold, MemoryKind, SignalOp, Sym, World};

use crate::outcome::{Outcome, ensure};

const CUDA: MemoryKind = MemoryKind::Cuda;
/// Words of each PE's part: over several slots.
const PART: usize = 120_000;

pub fn main(rounds: u64) -> Outcome {
    let world = World::init()?;
    let (me, n) = (world.my_pe(), world.n_pes());
    ensure(world.gpu_heap_limit() > 0, || {
        "there is no GPU heap: set OXSHMEM_CUDA_SYMMETRIC_SIZE".into()
    })?;
    for pe in 0..n {
        let route = world.explain(pe)?.gpu;
        let apart = world.hosts().get(pe) != world.hosts().get(me);
        let staged = route.as_ref().is_some_and(|route| route.staged);
        ensure(staged || !apart, || {
            format!("PE {pe}'s GPU is at another host: {route:?}")
        })?;
    }
    let x = world.alloc_on::<u64>(CUDA, n * PART)?;
    let host = world.alloc::<u64>(PART)?;
    let words = world.alloc_on::<u64>(CUDA, 2 + n)?;
    world.put(words, &vec![0; 2 + n], me)?;
    world.barrier_all()?;
    for round in 0..rounds {
        transfers(&world, x, host, round)?;
        signals(&world, x, words, round)?;
        collectives(&world, x, host, round)?;
    }
    atomics(&world, words.range(..2)?, rounds)?;
    world.free(words)?;
    world.free(host)?;
    world.free(x)?;
    world.finalize()?;
    println!("PE {me}: every byte was there");
    Ok(())
}

fn pattern(seed: u64, len: usize) -> Vec<u64> {
    let first = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (0..len as u64).map(|at| first.wrapping_add(at)).collect()
}

/// Every PE puts into its own part of every PE's memory, gets that back, and the same between objects.
fn transfers(world: &World, x: Sym<u64>, host: Sym<u64>, round: u64) -> Outcome {
    let (me, n) = (world.my_pe(), world.n_pes());
    let lens = [1, 7, 500, PART - 3, PART / 2, PART];
    let own = x.range(me * PART..(me + 1) * PART)?;
    for (step, len) in (0..).zip(lens) {
        let to = (me + step + round as usize) % n;
        let data = pattern(round * 100 + (me * lens.len() + step) as u64, len);
        let remote = own.range(PART - len..)?;
        let mut seen = vec![0; len];
        let wrong = |what: &str| format!("{what} of {len} words at PE {to} was not what was put");
        world.put(remote, &data, to)?;
        world.get(&mut seen, remote, to)?;
        ensure(seen == data, || wrong("a get"))?;
        let local = host.range(..len)?;
        world.get_into(local, remote, to)?;
        world.read(&mut seen, local)?;
        ensure(seen == data, || wrong("a get into host memory"))?;
        let other = pattern(round + 7, len);
        world.write(local, &other)?;
        world.put_from(remote, local, to)?;
        world.get(&mut seen, remote, to)?;
        ensure(seen == other, || wrong("a put from host memory"))?;
        world.put_from(remote, remote, (to + 1) % n)?;
    }
    world.barrier_all()?;
    Ok(())
}

/// Data and a signal on the GPU of the PE to the right.
fn signals(world: &World, x: Sym<u64>, words: Sym<u64>, round: u64) -> Outcome {
    let (me, n) = (world.my_pe(), world.n_pes());
    let (left, right) = ((me + n - 1) % n, (me + 1) % n);
    let part = |pe: usize| x.range(pe * PART..(pe + 1) * PART);
    let data = pattern(round + me as u64, PART);
    let signal = words.at(2 + me)?;
    world.put_signal(part(me)?, &data, signal, 1, SignalOp::Add, right)?;
    let told = words.at(2 + left)?;
    while world.fetch(told, me)? <= round {
        std::thread::yield_now();
    }
    let mut seen = vec![0; PART];
    world.get(&mut seen, part(left)?, me)?;
    ensure(seen == pattern(round + left as u64, PART), || {
        format!("PE {left}'s signal came before its data, in round {round}")
    })?;
    world.barrier_all()?;
    Ok(())
}

/// The contributions of all in host memory are gathered on each PE's GPU, and folded from there.
fn collectives(world: &World, x: Sym<u64>, host: Sym<u64>, round: u64) -> Outcome {
    let (team, me, n) = (world.team(), world.my_pe(), world.n_pes());
    for len in [7, PART] {
        let (host, all) = (host.range(..len)?, x.range(..n * len)?);
        let given = |pe: usize| pattern(round * 100 + pe as u64, len);
        world.write(host, &given(me))?;
        team.fcollect(all, host)?;
        let mut seen = vec![0; n * len];
        world.read(&mut seen, all)?;
        let gathered: Vec<u64> = (0..n).flat_map(given).collect();
        ensure(seen == gathered, || {
            format!("fcollect of {len} words gave others")
        })?;
        let own = all.range(me * len..(me + 1) * len)?;
        let first = all.range(..len)?;
        world.put_from(first, own, me)?;
        world.quiet()?;
        team.reduce(host, first, Fold::Sum)?;
        let mut folded = vec![0; len];
        world.read(&mut folded, host)?;
        let sum = |at| {
            gathered
                .iter()
                .skip(at)
                .step_by(len)
                .fold(0, |a: u64, b| a.wrapping_add(*b))
        };
        let sums: Vec<u64> = (0..len).map(sum).collect();
        ensure(folded == sums, || {
            format!("reduce of {len} words gave others")
        })?;
    }
    Ok(())
}

/// All PEs on one word of each, by every way.
fn atomics(world: &World, words: Sym<u64>, rounds: u64) -> Outcome {
    let n = world.n_pes();
    for at in 0..n {
        let mut last = None;
        for _ in 0..10 * rounds {
            let old = world.fetch_inc(words.at(0)?, at)?;
            ensure(last.is_none_or(|last| last < old), || {
                format!("PE {at}'s word went from {last:?} to {old}")
            })?;
            last = Some(old);
            world.add(words.at(1)?, 3, at)?;
        }
    }
    world.barrier_all()?;
    for at in 0..n {
        let all = 10 * rounds * n as u64;
        let seen = [
            world.fetch(words.at(0)?, at)?,
            world.fetch(words.at(1)?, at)?,
        ];
        ensure(seen == [all, 3 * all], || {
            format!("PE {at}'s words are {seen:?}, not {all} and {}", 3 * all)
        })?;
    }
    world.barrier_all()?;
    Ok(())
}
