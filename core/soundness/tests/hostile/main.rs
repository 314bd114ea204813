//! Every public function of oxshmem, called by safe code with the worst possible arguments: extreme
//! indices, strides and lengths, elements without bytes and over-aligned ones, freed handles and
//! those of other worlds, calls out of callbacks, callbacks that panic, PEs that do not exist. No
//! call may crash, panic or hang.
//!
//! `HOSTILE_SEEDS` is the number of seeds of each setting, from `HOSTILE_SEED` on.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod collective;
mod ends;
mod mended;
mod names;
mod one_sided;
mod page;
mod places;
mod public;
mod random;
mod threads;
mod waits;

use std::sync::Arc;
use std::time::Duration;

use oxshmem::testing::{spmd, spmd_with};
use oxshmem::{Builder, Error, Result, Sym, World};
use oxshmem_loopback::Loopback;
use oxshmem_weak::{Settings, Weak};

use crate::random::Random;

/// The longest wait of a test.
const LIMIT: Duration = Duration::from_secs(300);
/// The number of times that each call is made in a world.
const ROUNDS: usize = 2;

/// Calls a public function, which may refuse.
macro_rules! call {
    ($type:ident::$name:ident, $result:expr) => {
        $crate::heed(concat!(stringify!($type), "::", stringify!($name)), $result)
    };
}

/// Calls a public function that returns no [`Result`].
macro_rules! value {
    ($type:ident::$name:ident, $value:expr) => {
        $value
    };
}

use {call, value};

/// Checks a call's result. It may refuse its arguments, but neither wait in vain nor end anything
/// for other PEs.
fn heed<T>(name: &str, result: Result<T>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(
            error @ (Error::Timeout { .. }
            | Error::Deadlock { .. }
            | Error::CollectivesEnded { .. }
            | Error::PeerLost { .. }
            | Error::LaneFailed { .. }),
        ) => panic!("{name}: {error}"),
        Err(error) => {
            // The error can be displayed.
            assert!(!error.to_string().is_empty(), "{name}");
            None
        }
    }
}

/// A PE, and the handles that it calls functions with.
struct Player<'w> {
    world: &'w World,
    /// Random numbers that are the same on every PE.
    common: Random,
    /// Random numbers of this PE alone.
    own: Random,
    objects: Objects,
    /// Handles of blocks, some of them freed.
    stale: Vec<Sym<u64>>,
    /// Handles of a world that has ended.
    foreign: Foreign,
}

/// An element longer than a page, and aligned to as much.
#[derive(Clone, Copy, bytemuck::Zeroable, bytemuck::Pod)]
#[repr(C, align(16384))]
struct Long([u8; 16384]);

/// Objects that live as long as the world.
#[derive(Clone, Copy)]
struct Objects {
    bytes: Sym<u8>,
    words: Sym<u64>,
    more: Sym<u64>,
    triples: Sym<[u8; 3]>,
    long: Sym<Long>,
    /// Elements without bytes: some, and as many as possible.
    nothing: Sym<()>,
    endless: Sym<()>,
    lock: Sym<u64>,
    counter: Sym<u64>,
}

#[derive(Clone, Copy)]
struct Foreign {
    bytes: Sym<u8>,
    words: Sym<u64>,
}

impl Foreign {
    fn new() -> Foreign {
        let made = spmd(1, |world| {
            Ok(Foreign {
                bytes: world.alloc(1000)?,
                words: world.alloc(500)?,
            })
        });
        made.unwrap()[0]
    }
}

impl<'w> Player<'w> {
    fn new(world: &'w World, seed: u64, foreign: Foreign) -> Result<Self> {
        Ok(Player {
            world,
            common: Random::new(seed),
            own: Random::new(seed ^ (world.my_pe() as u64 + 1) << 32),
            objects: Objects {
                bytes: world.alloc_zeroed(1000)?,
                words: world.alloc_zeroed(500)?,
                more: world.alloc_zeroed(500)?,
                triples: world.alloc_zeroed(333)?,
                long: world.alloc_zeroed(2)?,
                nothing: world.alloc(5)?,
                endless: world.alloc(usize::MAX)?,
                lock: world.alloc_zeroed(1)?,
                counter: world.alloc_zeroed(1)?,
            },
            stale: Vec::new(),
            foreign,
        })
    }

    /// A handle of words: a valid one, a part, a freed one, or one of another world.
    fn some_words(&mut self) -> Sym<u64> {
        let of = [self.objects.words, self.objects.more, self.foreign.words];
        let whole = match self.own.below(4) {
            3 if !self.stale.is_empty() => self.own.one_of(&self.stale),
            i => of[i.min(2)],
        };
        let (from, to) = (self.own.odd(whole.len()), self.own.odd(whole.len()));
        match self.own.below(3) {
            0 => whole.range(from..to).unwrap_or(whole),
            1 => whole.at(from).unwrap_or(whole),
            _ => whole,
        }
    }
}

/// Reports the origin of a panic.
struct Told<'a>(&'a str, usize, u64);

impl Drop for Told<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Told(setting, pes, seed) = self;
            eprintln!("{setting}, {pes} PEs: HOSTILE_SEED={seed}");
        }
    }
}

fn number(variable: &str, default: u64) -> u64 {
    let set = std::env::var(variable).ok();
    set.map_or(default, |set| set.parse().expect("a number"))
}

/// Runs every seed with 1 to 3 PEs.
fn play(setting: &str, builder: impl Fn(u64) -> Builder) {
    let first = number("HOSTILE_SEED", 1);
    let foreign = Foreign::new();
    for seed in first..first + number("HOSTILE_SEEDS", 1) {
        for pes in 1..=3 {
            let _told = Told(setting, pes, seed);
            let builder = builder(seed)
                .heap_limit(4 << 20)
                .timeout(LIMIT)
                .active_sets();
            let played = spmd_with(builder, pes, |world| {
                let mut player = Player::new(world, seed, foreign)?;
                for _ in 0..ROUNDS {
                    player.calls();
                    // Other PEs do not change the data that a PE has written.
                    world.barrier_all()?;
                    collective::calls(&mut player);
                }
                Ok(())
            });
            played.unwrap();
        }
    }
}

impl Player<'_> {
    fn calls(&mut self) {
        one_sided::calls(self);
        waits::calls(self);
        threads::calls(self);
        places::calls(self);
    }
}

fn loopback() -> Arc<Loopback> {
    Arc::new(Loopback::new())
}

#[test]
fn over_loopback() {
    play("loopback", |_| {
        World::builder().transports(vec![loopback()])
    });
}

#[test]
fn in_checked_mode() {
    play("checked", |_| {
        World::builder().transports(vec![loopback()]).check(true)
    });
}

/// Lanes that are as weak as is permitted.
fn weak(seed: u64) -> Builder {
    let weak = Weak::over(loopback(), Settings::worst(seed));
    World::builder().transports(vec![Arc::new(weak)])
}

#[test]
fn over_weak_lanes() {
    play("weak(loopback)", weak);
}
