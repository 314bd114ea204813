//! The order that operations on streams promise, shown by small programs of which each PE queues its part: they
//! are run again and again, no run may end as the memory model forbids, and each shows what it forbids once the
//! one thing that orders it is left out. `SOFTCUDA_JITTER` varies when the software driver's streams come to what
//! is queued. Without a driver nothing is run; with `OXSHMEM_TEST_CUDA=1` that is a failure.
#![cfg(feature = "cuda")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests"
)]

mod on_gpu;

use std::cell::Cell;

use oxshmem::cuda::{Event, Stream};
use oxshmem::testing::spmd_with;
use oxshmem::{Cmp, Result, SignalOp, Sym, World};

use on_gpu::{CUDA, MIB, context, on, stream};

/// Runs of a program as it is.
const RUNS: u64 = 200;
/// Runs at most until the forbidden outcome is seen of one whose order was left out.
const MOST: u64 = 3000;
/// Copies that hold a stream up.
const HELD_UP: usize = 16;
/// Each datum is so many words: a copy of some length, so that streams differ in when they come to its end.
const WORDS: usize = 2048;

/// A PE in a run of a program. Its words are 0 at the start of a run.
struct Pe<'w> {
    world: &'w World,
    /// Whether the program is whole: else what orders it is left out.
    whole: bool,
    /// Data, of [`WORDS`] words each.
    x: Sym<u64>,
    y: Sym<u64>,
    flag: Sym<u64>,
    /// Ones, which are put.
    ones: Sym<u64>,
    scratch: Sym<u64>,
    /// The run's number: in one of three the first streams' puts come late, in one their gets.
    run: Cell<u64>,
    /// The data that this PE has seen, [`WORDS`] words each.
    seen: [Sym<u64>; 2],
    streams: [Stream; 2],
    event: Event,
}

impl<'w> Pe<'w> {
    fn new(world: &'w World, whole: bool) -> Result<Self> {
        let context = world.gpu_context().unwrap();
        let datum = || world.alloc_on::<u64>(CUDA, WORDS);
        let ones = datum()?;
        world.put(ones, &[1; WORDS], world.my_pe())?;
        Ok(Pe {
            world,
            whole,
            x: datum()?,
            y: datum()?,
            flag: world.alloc_on(CUDA, 1)?,
            ones,
            scratch: datum()?,
            run: Cell::new(0),
            seen: [datum()?, datum()?],
            streams: [stream(world), stream(world)],
            event: Event::new(context).unwrap(),
        })
    }

    /// One run: each PE's part, as `program` queues it. All PEs' outcomes on PE 0: what each has in `seen`.
    fn run(&self, program: Program, told: Sym<u64>) -> Result<Option<Vec<[u64; 2]>>> {
        let (world, me) = (self.world, self.world.my_pe());
        for object in [self.x, self.y, self.seen[0], self.seen[1]] {
            world.put(object, &[0; WORDS], me)?;
        }
        world.put(self.flag, &[0], me)?;
        world.barrier_all()?;
        program(self)?;
        self.run.set(self.run.get() + 1);
        for stream in &self.streams {
            world.synchronize(stream)?;
        }
        for (i, seen) in self.seen.iter().enumerate() {
            let mut words = [0; WORDS];
            world.get(&mut words, *seen, me)?;
            // One that is there in part is as bad as one that is not there.
            let whole = words.iter().all(|word| *word == 1);
            world.p(told.at(2 * me + i)?, whole.into(), 0)?;
        }
        world.barrier_all()?;
        if me != 0 {
            return Ok(None);
        }
        let mut all = vec![0; told.len()];
        world.read(&mut all, told)?;
        Ok(Some(all.chunks(2).map(|seen| [seen[0], seen[1]]).collect()))
    }

    fn me(&self) -> usize {
        self.world.my_pe()
    }

    /// Puts a datum to a PE on one of the streams.
    fn put(&self, datum: Sym<u64>, pe: usize, stream: usize) -> Result<()> {
        self.hold_up(stream, 1)?;
        let stream = &self.streams[stream];
        self.world.put_on_stream(datum, self.ones, pe, stream)
    }

    /// Copies a PE's datum to where this PE keeps what it sees first, or second.
    fn see(&self, which: usize, datum: Sym<u64>, pe: usize, stream: usize) -> Result<()> {
        self.hold_up(stream, 2)?;
        let (into, stream) = (self.seen[which], &self.streams[stream]);
        self.world.get_on_stream(into, datum, pe, stream)
    }

    /// Keeps the first stream busy for a while, in the runs that this is for.
    fn hold_up(&self, stream: usize, run: u64) -> Result<()> {
        let copies = match (stream, self.run.get() % 3) {
            (0, now) if now == run => HELD_UP,
            _ => 0,
        };
        let (world, me) = (self.world, self.me());
        (0..copies).try_for_each(|_| {
            world.put_on_stream(self.scratch, self.ones, me, &self.streams[stream])
        })
    }

    fn signal(&self, pe: usize, stream: usize) -> Result<()> {
        let stream = &self.streams[stream];
        let world = self.world;
        world.signal_on_stream(self.flag, 1, SignalOp::Set, pe, stream)
    }

    fn wait(&self, stream: usize) -> Result<()> {
        let stream = &self.streams[stream];
        self.world
            .wait_until_on_stream(self.flag, Cmp::Eq, 1, stream)
    }

    /// Has the second stream come after what the first has so far.
    fn order_streams(&self) -> Result<()> {
        self.streams[0].record(&self.event).unwrap();
        self.streams[1].wait(&self.event).unwrap();
        Ok(())
    }

    fn free(self) -> Result<()> {
        let [first, second] = self.seen;
        for object in [
            second,
            first,
            self.scratch,
            self.ones,
            self.flag,
            self.y,
            self.x,
        ] {
            self.world.free(object)?;
        }
        Ok(())
    }
}

/// Queues the part of a PE.
type Program = fn(&Pe<'_>) -> Result<()>;
/// Whether an outcome is forbidden: of each PE, what it saw first and second, 1 for the new datum, whole.
type Forbidden = fn(&[[u64; 2]]) -> bool;

/// Runs the program, whole: never forbidden. Runs it without what orders it: forbidden at some time.
fn shows(pes: usize, program: Program, forbidden: Forbidden) {
    let Some(context) = context() else { return };
    let builder = on(context).heap_limit(MIB);
    let found = spmd_with(builder, pes, |world| {
        let told = world.alloc_zeroed::<u64>(2 * pes)?;
        let ended = world.alloc_zeroed::<u64>(1)?;
        let mut found = [None; 2];
        for (whole, most) in [(true, RUNS), (false, MOST)] {
            let pe = Pe::new(world, whole)?;
            for run in 0..most {
                let outcome = pe.run(program, told)?;
                if outcome.is_some_and(|all| forbidden(&all)) {
                    found[usize::from(!whole)].get_or_insert(run);
                    for pe in 0..pes {
                        world.p(ended, 1, pe)?;
                    }
                }
                world.barrier_all()?;
                // The same on all PEs.
                if world.g(ended, world.my_pe())? == 1 {
                    break;
                }
            }
            pe.free()?;
            world.write(ended, &[0])?;
            world.barrier_all()?;
        }
        world.free(ended)?;
        world.free(told)?;
        Ok(found)
    });
    let [whole, torn] = found.unwrap()[0];
    assert_eq!(whole, None, "the forbidden outcome was seen in this run");
    let Some(run) = torn else {
        panic!("what was left out made no difference: the test proves nothing");
    };
    println!("without what orders it: forbidden in run {run}");
}

/// PE 0: put x; signal. PE 1: wait; see x. Left out: the wait.
#[test]
fn m22_m23_data_put_before_a_signal_is_seen_after_the_wait() {
    shows(
        2,
        |pe| match pe.me() {
            0 => {
                pe.put(pe.x, 1, 0)?;
                pe.signal(1, 0)
            }
            _ => {
                if pe.whole {
                    pe.wait(0)?;
                }
                pe.see(0, pe.x, 1, 0)
            }
        },
        |seen| seen[1][0] == 0,
    );
}

/// PE 0: put x with a signal. PE 1: wait; see x. Left out: the signal is an own one, of another stream.
#[test]
fn m22_a_put_with_its_signal_is_seen_after_the_wait() {
    shows(
        2,
        |pe| match pe.me() {
            0 if pe.whole => {
                let (world, stream) = (pe.world, &pe.streams[0]);
                let set = SignalOp::Set;
                world.put_signal_on_stream(pe.x, pe.ones, pe.flag, 1, set, 1, stream)
            }
            0 => {
                pe.put(pe.x, 1, 0)?;
                pe.signal(1, 1)
            }
            _ => {
                pe.wait(0)?;
                pe.see(0, pe.x, 1, 0)
            }
        },
        |seen| seen[1][0] == 0,
    );
}

/// PE 0: put x on one stream; an event; signal on the other. PE 1: wait on one; an event; see x on the other.
/// Left out: PE 0's event.
#[test]
fn m17_an_event_orders_the_streams_of_the_writer() {
    shows(
        2,
        |pe| match pe.me() {
            0 => {
                pe.put(pe.x, 1, 0)?;
                if pe.whole {
                    pe.order_streams()?;
                }
                pe.signal(1, 1)
            }
            _ => {
                pe.wait(0)?;
                pe.order_streams()?;
                pe.see(0, pe.x, 1, 1)
            }
        },
        |seen| seen[1][0] == 0,
    );
}

/// The same, and left out: PE 1's event.
#[test]
fn m23_an_event_orders_the_streams_of_the_reader() {
    shows(
        2,
        |pe| match pe.me() {
            0 => {
                pe.put(pe.x, 1, 0)?;
                pe.signal(1, 0)
            }
            _ => {
                pe.wait(0)?;
                if pe.whole {
                    pe.order_streams()?;
                }
                pe.see(0, pe.x, 1, 1)
            }
        },
        |seen| seen[1][0] == 0,
    );
}

/// Store buffering. PE 0: put x to 1; barrier; see its own y. PE 1: put y to 0; barrier; see its own x.
/// Left out: the barrier.
#[test]
fn m24_a_barrier_on_streams_completes_what_came_before_on_all() {
    shows(
        2,
        |pe| {
            let (mine, others) = match pe.me() {
                0 => (pe.y, pe.x),
                _ => (pe.x, pe.y),
            };
            pe.put(others, 1 - pe.me(), 0)?;
            if pe.whole {
                pe.world.barrier_all_on_stream(&pe.streams[0])?;
            }
            pe.see(0, mine, pe.me(), 0)
        },
        |seen| seen[0][0] == 0 || seen[1][0] == 0,
    );
}

/// PE 0: put x to 2; signal 1. PE 1: wait; signal 2. PE 2: wait; see x. Left out: PE 1's wait.
#[test]
fn m24_what_a_third_pe_tells_of_is_there() {
    shows(
        3,
        |pe| match pe.me() {
            0 => {
                pe.put(pe.x, 2, 0)?;
                pe.signal(1, 0)
            }
            1 => {
                if pe.whole {
                    pe.wait(0)?;
                }
                pe.signal(2, 0)
            }
            _ => {
                pe.wait(0)?;
                pe.see(0, pe.x, 2, 0)
            }
        },
        |seen| seen[2][0] == 0,
    );
}

/// Two readers, one writer. PE 0: put x to 1; put y to 2; signal both. PE 1: wait; see x and PE 2's y. PE 2: wait;
/// see y and PE 1's x. Left out: the readers' waits.
#[test]
fn m24_all_see_what_was_put_to_several_before_the_signals() {
    shows(
        3,
        |pe| {
            let me = pe.me();
            if me == 0 {
                pe.put(pe.x, 1, 0)?;
                pe.put(pe.y, 2, 0)?;
                pe.signal(1, 0)?;
                return pe.signal(2, 0);
            }
            if pe.whole {
                pe.wait(0)?;
            }
            pe.see(0, pe.x, 1, 0)?;
            pe.see(1, pe.y, 2, 0)
        },
        |seen| seen[1..] != [[1, 1], [1, 1]],
    );
}

/// Load buffering. Each sees its own datum, then puts the other's: that both see the new one is forbidden.
/// Left out: that the put comes after, on the same stream.
#[test]
fn m16_m17_a_get_is_done_before_the_put_behind_it() {
    shows(
        2,
        |pe| {
            let (mine, others) = match pe.me() {
                0 => (pe.y, pe.x),
                _ => (pe.x, pe.y),
            };
            if pe.whole {
                pe.see(0, mine, pe.me(), 0)?;
                return pe.put(others, 1 - pe.me(), 0);
            }
            pe.put(others, 1 - pe.me(), 1)?;
            pe.see(0, mine, pe.me(), 0)
        },
        |seen| seen[0][0] == 1 && seen[1][0] == 1,
    );
}
