//! Message passing with large blocks, between PEs of different hosts.
//!
//! A writer sends numbered blocks, each followed by a flag. The reader checks every word of a block once its flag has
//! come. A network that routes adaptively reorders the packets of large writes under load. The litmus programs, of one
//! word each, hardly meet that.
//!
//! The blocks come from registered memory, so that a NIC reads them there: a block is one write, and the signal behind
//! it another. From other memory the library sends blocks in copies of a few KiB, and signals after a flush. The puts do not
//! wait, so that a NIC has several blocks and their flags on their way at once.

use std::fmt::Write;
use std::process::ExitCode;

use oxshmem::{Cmp, Scope, SignalOp, Sym, World};

use super::args::Args;
use super::refused::Refused;
use crate::{job, output};

/// Rounds in each direction, unless `--runs` gives a number.
const ROUNDS: u64 = 1000;
/// Blocks on their way at once.
const SLOTS: usize = 8;

/// An order to test: the block, and its flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    Put,
    Add,
    FetchAdd,
    SignalSet,
    SignalAdd,
    Get,
}

impl Method {
    const ALL: [Method; 6] = [
        Method::Put,
        Method::Add,
        Method::FetchAdd,
        Method::SignalSet,
        Method::SignalAdd,
        Method::Get,
    ];

    /// The calls of a round, and the rules of the memory model that they rest on.
    fn describe(self) -> (&'static str, &'static str) {
        match self {
            Method::Put => ("put, fence, put", "M17"),
            Method::Add => ("put, fence, add", "M17"),
            Method::FetchAdd => ("put, fence, fetch_add", "M16 M17 M28"),
            Method::SignalSet => ("put_signal, set", "M22"),
            Method::SignalAdd => ("put_signal, add", "M22"),
            Method::Get => ("put, quiet, get", "M19"),
        }
    }
}

/// The faults that one PE has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Faults {
    /// Rounds with a fault.
    rounds: u64,
    /// The first of them, from 1.
    first: u64,
    /// Its first wrong word in the block, or `FETCHED`.
    word: u64,
    /// The round whose word was found there, or the value fetched.
    found: u64,
}

impl Faults {
    const WORDS: usize = 4;
    /// In place of a word: the value fetched was wrong.
    const FETCHED: u64 = u64::MAX;

    fn add(&mut self, round: u64, word: u64, found: u64) {
        if self.rounds == 0 {
            (self.first, self.word, self.found) = (round, word, found);
        }
        self.rounds += 1;
    }

    fn words(self) -> [u64; Self::WORDS] {
        [self.rounds, self.first, self.word, self.found]
    }

    fn of(words: &[u64]) -> Self {
        match *words {
            [rounds, first, word, found] => Faults {
                rounds,
                first,
                word,
                found,
            },
            _ => Faults::default(),
        }
    }

    fn describe(self, pe: usize, rounds: u64) -> String {
        let Faults {
            rounds: wrong,
            first,
            word,
            found,
        } = self;
        let place = if word == Self::FETCHED {
            format!("the value fetched was {found}")
        } else {
            format!("word {word} was of round {found}")
        };
        format!("PE {pe}: {wrong} of {rounds} rounds; first in round {first}: {place}")
    }
}

/// The symmetric memory.
struct Memory {
    /// `SLOTS` blocks.
    blocks: Sym<u64>,
    /// One flag for each block: the number of its round, or of the signals that it got.
    flags: Sym<u64>,
    /// The number of rounds whose flag has come.
    count: Sym<u64>,
    /// At a writer: the number of rounds that the reader has checked.
    checked: Sym<u64>,
    /// At PE 0: the faults of each PE.
    faults: Sym<u64>,
    /// Words of a block.
    words: usize,
}

impl Memory {
    fn new(world: &World, words: usize) -> oxshmem::Result<Self> {
        Ok(Memory {
            blocks: world.alloc_zeroed(SLOTS * words)?,
            flags: world.alloc_zeroed(SLOTS)?,
            count: world.alloc_zeroed(1)?,
            checked: world.alloc_zeroed(1)?,
            faults: world.alloc_zeroed(Faults::WORDS * world.n_pes())?,
            words,
        })
    }

    /// Zeroes this PE's words, between two barriers.
    fn clear(&self, world: &World) -> oxshmem::Result<()> {
        world.barrier_all()?;
        world.write(self.flags, &[0; SLOTS])?;
        world.write(self.count, &[0])?;
        world.write(self.checked, &[0])?;
        world.barrier_all()
    }

    /// The index of the slot of a round, its block and its flag.
    fn slot(&self, round: u64) -> oxshmem::Result<(Sym<u64>, Sym<u64>)> {
        let slot = (round as usize - 1) % SLOTS;
        let words = slot * self.words..(slot + 1) * self.words;
        Ok((self.blocks.range(words)?, self.flags.at(slot)?))
    }
}

pub fn main(args: &Args, bytes: usize) -> anyhow::Result<ExitCode> {
    if !job::is_described() {
        let text =
            "--block needs a job of 2 PEs or more: oxshmem run -n 2 oxshmem litmus --block 64K";
        return Err(Refused(text.into()).into());
    }
    if bytes == 0 || !bytes.is_multiple_of(size_of::<u64>()) {
        let text = format!("--block {bytes}: give a multiple of 8 bytes, such as 64K");
        return Err(Refused(text).into());
    }
    let world = World::init()?;
    let pairs = pairs(world.hosts());
    if pairs.is_empty() {
        world.finalize()?;
        return Err(Refused("--block needs 2 PEs or more; this job has one".into()).into());
    }
    let rounds = args.runs.unwrap_or(ROUNDS);
    let memory = Memory::new(&world, bytes / size_of::<u64>())?;
    let mut source = world.register(vec![0; SLOTS * memory.words])?;
    let shows = world.my_pe() == 0;
    if shows {
        output::print(&heading(world.hosts(), &pairs, bytes, rounds))?;
    }
    let mut good = true;
    for method in Method::ALL {
        let mut faults = Faults::default();
        for reversed in [false, true] {
            memory.clear(&world)?;
            match role(&pairs, reversed, world.my_pe()) {
                Some(Role::Writer(to)) => {
                    write(
                        &world,
                        &memory,
                        method,
                        rounds,
                        to,
                        &mut source,
                        &mut faults,
                    )?;
                }
                Some(Role::Reader(from)) => {
                    read(&world, &memory, method, rounds, from, &mut faults)?;
                }
                None => {}
            }
        }
        let own = Faults::WORDS * world.my_pe();
        let own = memory.faults.range(own..own + Faults::WORDS)?;
        world.put(own, &faults.words(), 0)?;
        world.barrier_all()?;
        if shows {
            let mut all = vec![0; Faults::WORDS * world.n_pes()];
            world.read(&mut all, memory.faults)?;
            let faults: Vec<Faults> = all.chunks(Faults::WORDS).map(Faults::of).collect();
            output::print(&line(method, &faults, rounds))?;
            good &= faults.iter().all(|faults| faults.rounds == 0);
        }
    }
    drop(source);
    world.finalize()?;
    Ok(if good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// A PE's part in one direction, with its partner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Writer(usize),
    Reader(usize),
}

/// The part of PE `me`; none where it is in no pair.
fn role(pairs: &[(usize, usize)], reversed: bool, me: usize) -> Option<Role> {
    pairs.iter().find_map(|&(first, second)| {
        let (from, to) = if reversed {
            (second, first)
        } else {
            (first, second)
        };
        if me == from {
            Some(Role::Writer(to))
        } else if me == to {
            Some(Role::Reader(from))
        } else {
            None
        }
    })
}

/// Pairs of PEs, on two hosts each as far as the hosts have equally many PEs.
fn pairs(hosts: &[String]) -> Vec<(usize, usize)> {
    let place = |pe: usize| {
        let host = hosts.get(pe);
        let before = hosts.iter().take(pe).filter(|one| Some(*one) == host);
        let first = hosts.iter().position(|one| Some(one) == host);
        (before.count(), first)
    };
    let mut pes: Vec<usize> = (0..hosts.len()).collect();
    pes.sort_by_key(|pe| place(*pe));
    pes.chunks_exact(2)
        .filter_map(|pair| Some((*pair.first()?, *pair.get(1)?)))
        .collect()
}

/// Sends all rounds from `source`, which has room for `SLOTS` blocks.
fn write(
    world: &World,
    memory: &Memory,
    method: Method,
    rounds: u64,
    to: usize,
    source: &mut [u64],
    faults: &mut Faults,
) -> oxshmem::Result<()> {
    for first in (1..=rounds).step_by(SLOTS) {
        let rounds_of_lap = first..=rounds.min(first + SLOTS as u64 - 1);
        let blocks = source.chunks_exact_mut(memory.words);
        for (round, block) in rounds_of_lap.clone().zip(blocks) {
            for (index, word) in block.iter_mut().enumerate() {
                *word = value(round, index);
            }
            if method == Method::Get {
                put_and_get(world, memory, (round, block), to, faults)?;
            }
        }
        if method == Method::Get {
            continue;
        }
        // At the scope's end the blocks may be written again.
        world.scope(|scope| {
            let mut blocks = rounds_of_lap.zip(source.chunks_exact(memory.words));
            blocks.try_for_each(|block| send(world, scope, memory, method, block, to, faults))
        })?;
    }
    Ok(())
}

/// Puts one round's block, gets it back, and checks it.
fn put_and_get(
    world: &World,
    memory: &Memory,
    (round, block): (u64, &mut [u64]),
    to: usize,
    faults: &mut Faults,
) -> oxshmem::Result<()> {
    let (place, _) = memory.slot(round)?;
    // A quiet ends the scope.
    world.scope(|scope| scope.put_nbi(place, block, to))?;
    block.fill(0);
    world.get(block, place, to)?;
    check(block, round, faults);
    Ok(())
}

/// Sends one round's block and its flag.
fn send<'scope, 'env>(
    world: &World,
    scope: &'scope Scope<'scope, 'env>,
    memory: &Memory,
    method: Method,
    (round, block): (u64, &'env [u64]),
    to: usize,
    faults: &mut Faults,
) -> oxshmem::Result<()> {
    let (place, flag) = memory.slot(round)?;
    // The reader has checked the block that was there.
    let before = round.saturating_sub(SLOTS as u64);
    world.wait_until(memory.checked, Cmp::Ge, before)?;
    let put_and_fence = || {
        scope.put_nbi(place, block, to)?;
        world.fence()
    };
    match method {
        Method::Put => {
            put_and_fence()?;
            world.p(flag, round, to)
        }
        Method::Add => {
            put_and_fence()?;
            world.add(memory.count, 1, to)
        }
        Method::FetchAdd => {
            put_and_fence()?;
            let before = world.fetch_add(memory.count, 1, to)?;
            if before != round - 1 {
                faults.add(round, Faults::FETCHED, before);
            }
            Ok(())
        }
        Method::SignalSet => scope.put_signal_nbi(place, block, flag, round, SignalOp::Set, to),
        // Two of these calls have no order, so each slot counts for itself.
        Method::SignalAdd => scope.put_signal_nbi(place, block, flag, 1, SignalOp::Add, to),
        // Has no flag: see `put_and_get`.
        Method::Get => Ok(()),
    }
}

fn read(
    world: &World,
    memory: &Memory,
    method: Method,
    rounds: u64,
    from: usize,
    faults: &mut Faults,
) -> oxshmem::Result<()> {
    if method == Method::Get {
        return Ok(());
    }
    let mut block = vec![0; memory.words];
    for round in 1..=rounds {
        let (place, flag) = memory.slot(round)?;
        match method {
            Method::Put | Method::SignalSet => world.wait_until(flag, Cmp::Ge, round)?,
            Method::SignalAdd => {
                let lap = (round - 1) / SLOTS as u64 + 1;
                world.wait_until(flag, Cmp::Ge, lap)?;
            }
            _ => world.wait_until(memory.count, Cmp::Ge, round)?,
        }
        world.read(&mut block, place)?;
        check(&block, round, faults);
        if round.is_multiple_of(SLOTS as u64 / 2) || round == rounds {
            // Puts of one word have no order without a fence: an earlier count could come last, and stay.
            world.fence()?;
            world.p(memory.checked, round, from)?;
        }
    }
    Ok(())
}

/// The word at `index` of a round's block.
fn value(round: u64, index: usize) -> u64 {
    round << 32 | index as u64
}

fn check(block: &[u64], round: u64, faults: &mut Faults) {
    // Without an early end, so that the comparison is done by vectors.
    let wrong = block.iter().enumerate().fold(0, |wrong, (index, word)| {
        wrong | (word ^ value(round, index))
    });
    if wrong != 0 {
        let first = (0_u64..)
            .zip(block)
            .find(|(index, word)| **word != value(round, *index as usize));
        let (index, word) = first.map_or((0, 0), |(index, word)| (index, *word));
        faults.add(round, index, word >> 32);
    }
}

fn heading(hosts: &[String], pairs: &[(usize, usize)], bytes: usize, rounds: u64) -> String {
    let far = |(first, second): &&(usize, usize)| hosts.get(*first) != hosts.get(*second);
    let far = pairs.iter().filter(far).count();
    format!(
        "message passing in blocks of {bytes} bytes: {rounds} rounds in each direction, pairs of PEs: {}, {far} of them on two hosts\n",
        pairs.len()
    )
}

/// One order's line; PE 0 and up have these faults.
fn line(method: Method, faults: &[Faults], rounds: u64) -> String {
    let (calls, rules) = method.describe();
    let bad = faults.iter().any(|faults| faults.rounds > 0);
    let verdict = if bad { "forbidden" } else { "ok" };
    let mut text = format!("{verdict:<10}  {calls:22}  {rules}\n");
    for (pe, faults) in faults
        .iter()
        .enumerate()
        .filter(|(_, faults)| faults.rounds > 0)
    {
        // Writing to a `String` cannot fail, so its result is ignored.
        let _ = writeln!(text, "            {}", faults.describe(pe, rounds));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_of_two_hosts_where_these_have_equally_many_pes() {
        let pairs = |hosts: &str| pairs(&hosts.chars().map(String::from).collect::<Vec<_>>());
        assert_eq!(pairs("aabb"), [(0, 2), (1, 3)]);
        assert_eq!(pairs("abab"), [(0, 1), (2, 3)]);
        assert_eq!(pairs("aaaa"), [(0, 1), (2, 3)]);
        assert_eq!(pairs("abc"), [(0, 1)]);
        assert_eq!(pairs("aaab"), [(0, 3), (1, 2)]);
        assert_eq!(pairs("a"), []);
    }

    #[test]
    fn each_pe_of_a_pair_writes_in_one_direction() {
        let pairs = [(0, 2)];
        assert_eq!(role(&pairs, false, 0), Some(Role::Writer(2)));
        assert_eq!(role(&pairs, true, 0), Some(Role::Reader(2)));
        assert_eq!(role(&pairs, true, 2), Some(Role::Writer(0)));
        assert_eq!(role(&pairs, true, 1), None);
    }

    #[test]
    fn a_word_of_an_earlier_round_is_a_fault_that_names_it() {
        let block = |round| (0..4).map(|index| value(round, index)).collect::<Vec<_>>();
        let mut faults = Faults::default();
        let mut words = block(9);
        check(&words, 9, &mut faults);
        assert_eq!(faults, Faults::default());
        words[2] = value(1, 2);
        check(&words, 9, &mut faults);
        check(&block(10), 11, &mut faults);
        assert_eq!(Faults::of(&faults.words()), faults);
        let text = line(Method::Put, &[Faults::default(), faults], 20);
        assert!(text.starts_with("forbidden"), "{text}");
        assert!(
            text.contains("PE 1: 2 of 20 rounds; first in round 9: word 2 was of round 1"),
            "{text}"
        );
        assert!(line(Method::Put, &[Faults::default()], 20).starts_with("ok"));
    }
}
