//! The round trips of fences and quiets with many PEs, on a lane with a clock of its own.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use oxshmem_loopback::Loopback;
use oxshmem_transport::{
    Completion, Counters, Guarantees, Lane, Op, Pe, Posted, SignalSupport, Status, forward,
};
use oxshmem_weak::{Settings, Weak};

use crate::builder::Builder;
use crate::error::{Error, Result};
use crate::tests::lanes::cuts::{by_lanes, completed, is_lane_failure, together_on};
use crate::tests::lanes::{Fate, LIMIT, unanswered, watched};
use crate::world::World;

/// Polls of the lane until the completion of an operation is there: its clock counts polls.
const ROUND_TRIP: u64 = 50;
/// Operations to one PE that it takes at once.
const DEPTH: u64 = 4;
const DIRTY: usize = 64;

/// A lane that sees each operation complete one round trip after its post.
#[derive(Debug)]
struct Clocked {
    inner: Box<dyn Lane>,
    /// By PE: the operations before it was wrapped, and the time of each since.
    posts: Vec<(u64, Vec<u64>)>,
    now: Arc<AtomicU64>,
    /// Whether it tells that sources were read before the operations complete.
    tells_reuse: bool,
}

impl Clocked {
    fn now(&self) -> u64 {
        self.now.load(Ordering::SeqCst)
    }

    fn completed(&self, pe: Pe) -> u64 {
        let (before, posts) = &self.posts[pe.index()];
        let over = |at: &&u64| **at + ROUND_TRIP <= self.now();
        before + posts.iter().take_while(over).count() as u64
    }
}

impl Lane for Clocked {
    forward!(connect, endpoint, fence => inner);

    unsafe fn post(&mut self, pe: Pe, ops: &[Op]) -> Posted {
        let under_way = self.inner.counters(pe).posted - self.completed(pe);
        let credits = DEPTH.saturating_sub(under_way) as usize;
        let some = &ops[..ops.len().min(credits)];
        // SAFETY: the caller's promise.
        let mut posted = unsafe { self.inner.post(pe, some) };
        let now = self.now();
        let (_, posts) = &mut self.posts[pe.index()];
        posts.extend(std::iter::repeat_n(now, posted.accepted));
        if some.len() < ops.len() && matches!(posted.status, Status::All) {
            posted.status = Status::Full;
        }
        posted
    }

    fn progress(&mut self) -> oxshmem_transport::Result<()> {
        self.now.fetch_add(1, Ordering::SeqCst);
        self.inner.progress()
    }

    fn counters(&self, pe: Pe) -> Counters {
        let Counters { posted, completed } = self.inner.counters(pe);
        Counters {
            posted,
            completed: completed.min(self.completed(pe)),
        }
    }

    fn reusable(&self, pe: Pe) -> u64 {
        match self.tells_reuse {
            true => self.inner.counters(pe).completed,
            false => self.counters(pe).completed,
        }
    }
}

/// Gives the lanes of a PE a clock.
fn clocked(world: &World, tells_reuse: bool) -> Arc<AtomicU64> {
    let now = Arc::new(AtomicU64::new(0));
    for endpoint in &world.worker.state.lanes.endpoints {
        endpoint.wrap(|inner| {
            let before = |pe| (inner.counters(Pe(pe)).posted, Vec::new());
            let posts = (0..world.n_pes() as u32).map(before).collect();
            let now = Arc::clone(&now);
            Box::new(Clocked {
                inner,
                posts,
                now,
                tells_reuse,
            })
        });
    }
    now
}

/// The round trips that one call of PE 0 takes after so many puts to each of the other PEs.
fn round_trips(promised: Guarantees, puts: usize, call: fn(&World) -> Result<()>) -> f64 {
    let ticks = AtomicU64::new(0);
    let builder = by_lanes(promised).heap_limit(1 << 20);
    together_on(builder, DIRTY + 1, |world| {
        let x = world.alloc_zeroed::<u64>(puts)?;
        world.quiet()?;
        world.worker.engine.bootstrap.barrier()?;
        if world.my_pe() == 0 {
            let now = clocked(world, false);
            for at in 0..puts {
                (1..=DIRTY).try_for_each(|pe| world.p(x.at(at)?, 7, pe))?;
            }
            let begun = now.load(Ordering::SeqCst);
            call(world)?;
            ticks.store(now.load(Ordering::SeqCst) - begun, Ordering::SeqCst);
            world.quiet()?;
        }
        world.worker.engine.bootstrap.barrier()?;
        let mut came = vec![0; puts];
        world.read(&mut came, x)?;
        let expected = if world.my_pe() == 0 { 0 } else { 7 };
        assert_eq!(came, vec![expected; puts]);
        Ok(())
    });
    ticks.load(Ordering::SeqCst) as f64 / ROUND_TRIP as f64
}

/// A call that completes operations.
type Completing = fn(&World) -> Result<()>;

const CALLS: [(&str, Completing); 2] = [
    ("quiet", |world| world.quiet()),
    ("fence", |world| world.fence()),
];

/// By a flush where a completion does not mean placement, and by the completions where it does.
#[test]
fn m19_with_64_dirty_pes_a_quiet_or_fence_takes_the_time_of_one() {
    for completion in [Completion::Accepted, Completion::Placed] {
        for (name, call) in CALLS {
            let taken = round_trips(completed(completion), 1, call);
            assert!(
                (0.9..=1.5).contains(&taken),
                "{name}, {completion:?}: {taken}"
            );
        }
    }
}

/// No flush can be posted until the puts before it have completed.
#[test]
fn m19_with_64_full_lanes_a_quiet_or_fence_waits_once_for_room_and_once_for_the_flushes() {
    for (name, call) in CALLS {
        let taken = round_trips(completed(Completion::Accepted), DEPTH as usize, call);
        assert!((1.9..=3.0).contains(&taken), "{name}: {taken}");
    }
}

/// Nothing is posted by such a fence, and nothing waited for.
#[test]
fn m17_a_fence_that_the_lanes_carry_out_themselves_takes_no_time() {
    let after_fences = Guarantees {
        put_fence_put: true,
        put_atomic: true,
        ..completed(Completion::Accepted)
    };
    let fence: Completing = |world| {
        let asked = watched(world);
        world.fence()?;
        assert_eq!(asked.calls(), 0, "a fence posted requests, or waited");
        Ok(())
    };
    assert_eq!(round_trips(after_fences, 1, fence), 0.0);
    let quiet = round_trips(after_fences, 1, |world| world.quiet());
    assert!((0.9..=1.5).contains(&quiet), "{quiet}");
}

/// PEs whose lanes read sources after the post.
fn without_inline() -> Builder {
    let settings = Settings {
        guarantees: completed(Completion::Placed),
        depth: None,
        inline: 0,
        put_signal: SignalSupport::None,
        ..Settings::worst(7)
    };
    let weak = Weak::over(Arc::new(Loopback::new()), settings);
    let builder = World::builder().transports(vec![Arc::new(weak)]);
    builder.active_sets().timeout(LIMIT).heap_limit(1 << 20)
}

#[test]
fn m15_a_blocking_put_waits_until_its_source_was_read_and_a_quiet_for_the_rest() {
    const LEN: usize = 1000;
    for tells_reuse in [false, true] {
        together_on(without_inline(), 2, |world| {
            let x = world.alloc_zeroed::<u64>(LEN)?;
            world.quiet()?;
            world.worker.engine.bootstrap.barrier()?;
            if world.my_pe() == 0 {
                let now = clocked(world, tells_reuse);
                let at = || now.load(Ordering::SeqCst);
                let mut source = vec![7; LEN];
                let begun = at();
                world.put(x, &source, 1)?;
                let put = at() - begun;
                source.fill(8);
                world.quiet()?;
                let both = at() - begun;
                match tells_reuse {
                    true => assert!(put < ROUND_TRIP, "{put}"),
                    false => assert!(put >= ROUND_TRIP, "{put}"),
                }
                assert!((ROUND_TRIP..2 * ROUND_TRIP).contains(&both), "{both}");
            }
            world.worker.engine.bootstrap.barrier()?;
            let mut came = vec![0; LEN];
            world.read(&mut came, x)?;
            let expected = if world.my_pe() == 0 { 0 } else { 7 };
            assert_eq!(came, vec![expected; LEN]);
            Ok(())
        });
    }
}

#[test]
fn m19_the_next_quiet_tells_that_a_put_has_failed_after_its_source_was_read() {
    together_on(without_inline(), 2, |world| {
        let x = world.alloc_zeroed::<u64>(1)?;
        world.quiet()?;
        world.worker.engine.bootstrap.barrier()?;
        if world.my_pe() == 0 {
            let _now = clocked(world, true);
            let asked = watched(world);
            world.put(x, &[7], 1)?;
            asked.fail(unanswered(Pe(1)));
            is_lane_failure(world.quiet());
        }
        world.worker.engine.bootstrap.barrier()?;
        Ok(())
    });
}

/// The words of the calls before a barrier stay in flight in it, as their receivers' words tell of their arrival. A quiet
/// awaits them.
#[test]
fn m19_a_barrier_awaits_its_puts_and_no_words_of_calls_before_it() {
    type Step = fn(&World) -> Result<()>;
    let arrive: Step = |world| Ok(world.worker.quiet_before_arrival()?);
    let quiet: Step = |world| world.quiet();
    for acknowledges in [true, false] {
        for (step, awaits) in [(arrive, !acknowledges), (quiet, true)] {
            let guarantees = Guarantees {
                put_put: true,
                ..completed(Completion::Placed)
            };
            let settings = Settings {
                guarantees,
                depth: None,
                acknowledges,
                ..Settings::worst(7)
            };
            let weak = Weak::over(Arc::new(Loopback::new()), settings);
            let builder = World::builder().transports(vec![Arc::new(weak)]);
            let builder = builder.active_sets().timeout(LIMIT).heap_limit(1 << 20);
            together_on(builder, 2, |world| {
                let x = world.alloc_zeroed::<u64>(1)?;
                world.quiet()?;
                world.worker.engine.bootstrap.barrier()?;
                let now = clocked(world, false);
                let at = || now.load(Ordering::SeqCst);
                let other = 1 - world.my_pe();
                let posted = at();
                world.sync_all()?;
                let begun = at();
                step(world)?;
                match awaits {
                    true => assert!(at() - posted >= ROUND_TRIP, "{acknowledges}"),
                    false => assert_eq!(at(), begun, "{acknowledges}"),
                }
                // A put is awaited by both, and the words with it.
                world.p(x, 7, other)?;
                let begun = at();
                step(world)?;
                assert!(at() - begun >= ROUND_TRIP, "{acknowledges}");
                world.barrier_all()?;
                let mut came = [0];
                world.read(&mut came, x)?;
                assert_eq!(came, [7]);
                Ok(())
            });
        }
    }
}

/// One connection fails when its flush is posted, another while all flushes are under way. Each failure is reported, and
/// nothing of the other PEs is lost.
#[test]
fn m19_a_quiet_makes_all_flushes_whatever_pes_fail_before_and_after() {
    let builder = by_lanes(completed(Completion::Accepted));
    together_on(builder, 6, |world| {
        let x = world.alloc_zeroed::<u64>(1)?;
        world.quiet()?;
        world.worker.engine.bootstrap.barrier()?;
        if world.my_pe() > 0 {
            world.worker.engine.bootstrap.barrier()?;
            let mut came = [0];
            world.read(&mut came, x)?;
            let connected = ![2, 4].contains(&world.my_pe());
            assert!(!connected || came == [7], "{came:?}");
            return Ok(());
        }
        (1..6).try_for_each(|pe| world.p(x, 7, pe))?;
        let asked = watched(world);
        let flushes: Arc<Mutex<Vec<Pe>>> = Arc::default();
        let noted = Arc::clone(&flushes);
        asked.decide(move |pe, op| {
            assert!(matches!(op, Op::Flush), "{op:?}");
            noted.lock().unwrap().push(pe);
            match pe {
                Pe(2) => Fate::Cut,
                Pe(4) => Fate::Keep,
                _ => Fate::Perform,
            }
        });
        let failing = Arc::clone(&asked);
        // All but that of PE 2.
        asked.after(4, move || failing.fail(unanswered(Pe(4))));
        let ended = world.quiet();
        assert!(matches!(ended, Err(Error::Transport(_))), "{ended:?}");
        assert_eq!(*flushes.lock().unwrap(), [1, 2, 3, 4, 5].map(Pe));
        world.worker.engine.bootstrap.barrier()?;
        // The others are complete: there is nothing to post or to wait for.
        let before = asked.calls();
        world.pe_quiet(&[5, 1, 3])?;
        assert_eq!(asked.calls(), before);
        // The second failure, too, then no more.
        is_lane_failure(world.quiet());
        world.quiet()?;
        asked.decide(|_, _| Fate::Perform);
        Ok(())
    });
}
