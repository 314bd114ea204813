//! Connections that fail between PEs that live.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use oxshmem_bootstrap::InProcess;
use oxshmem_engine::memory::mapped::HostMemory;
use oxshmem_example_tiny_transport::Tiny;
use oxshmem_loopback::Loopback;
use oxshmem_transport::{Completion, Guarantees, Op, Pe, SignalSupport};
use oxshmem_weak::{Settings, Weak};

use crate::builder::Builder;
use crate::context::options::ContextOptions;
use crate::error::{Error, Result};
use crate::sym::Sym;
use crate::team::Team;
use crate::testing::spmd_with;
use crate::tests::lanes::{Asked, Fate, LIMIT, is_loss_of, unanswered, watched};
use crate::world::World;

pub(super) const fn completed(completion: Completion) -> Guarantees {
    Guarantees {
        completion,
        ..Guarantees::NONE
    }
}

/// PEs whose lanes copy sources inline, so that no call waits for a word to be on its way. They have no native
/// put-with-signal.
pub(super) fn by_lanes(guarantees: Guarantees) -> Builder {
    let settings = Settings {
        guarantees,
        depth: None,
        put_signal: SignalSupport::None,
        ..Settings::worst(7)
    };
    let weak = Weak::over(Arc::new(Loopback::new()), settings);
    let builder = World::builder().transports(vec![Arc::new(weak)]);
    builder.active_sets().timeout(LIMIT).heap_limit(8 << 20)
}

/// Waits for others without the library, but for the progress of posted operations.
fn until(world: &World, ready: impl Fn() -> bool) {
    let since = Instant::now();
    while !ready() {
        assert!(since.elapsed() < LIMIT, "stuck");
        world.progress();
        std::thread::yield_now();
    }
}

/// A few PEs that meet, and do `then`; none ends before all have done so.
fn together(pes: usize, then: impl Fn(&World) -> Result<()> + Sync) {
    together_by(completed(Completion::Placed), pes, then);
}

fn together_by(guarantees: Guarantees, pes: usize, then: impl Fn(&World) -> Result<()> + Sync) {
    together_on(by_lanes(guarantees), pes, then);
}

pub(super) fn together_on(
    builder: Builder,
    pes: usize,
    then: impl Fn(&World) -> Result<()> + Sync,
) {
    let through = AtomicUsize::new(0);
    let ended = spmd_with(builder, pes, |world| {
        // The lanes are connected, and nothing is in flight when the first connection fails.
        world.barrier_all()?;
        world.quiet()?;
        world.worker.engine.bootstrap.barrier()?;
        then(world)?;
        through.fetch_add(1, Ordering::SeqCst);
        until(world, || through.load(Ordering::SeqCst) == pes);
        Ok(())
    });
    assert_eq!(through.load(Ordering::SeqCst), pes, "{ended:?}");
}

/// The failure of a lane.
#[derive(Clone, Copy, Debug)]
enum Failure {
    /// The connection to a PE, which never answered.
    Connection(Pe),
    /// All of it.
    Device,
}

impl Failure {
    fn error(self) -> oxshmem_transport::Error {
        match self {
            Failure::Connection(pe) => unanswered(pe),
            Failure::Device => oxshmem_transport::Error::Os {
                transport: "watched",
                call: "poll".into(),
                source: std::io::Error::other("the device failed"),
            },
        }
    }
}

/// From here on the operations of a PE's lane go nowhere.
fn swallow(world: &World) -> Arc<Asked> {
    let asked = watched(world);
    asked.decide(|_, _| Fate::Keep);
    asked
}

pub(super) fn is_lane_failure<T: std::fmt::Debug>(result: Result<T>) {
    assert!(
        matches!(result, Err(Error::LaneFailed { .. })),
        "{result:?}"
    );
}

fn failures(pe: u32) -> [Failure; 2] {
    [Failure::Connection(Pe(pe)), Failure::Device]
}

#[test]
fn a_barrier_ends_where_the_ways_of_both_pes_fail_after_their_words_were_taken() {
    for device in 0..2 {
        together(2, |world| {
            let other = 1 - world.my_pe() as u32;
            let asked = swallow(world);
            let failing = Arc::clone(&asked);
            asked.after(1, move || failing.fail(failures(other)[device].error()));
            match world.barrier_all() {
                Err(Error::LaneFailed { .. }) => {}
                // The other one was first, and has notified this one.
                lost => is_loss_of(other as usize, lost),
            }
            Ok(())
        });
    }
}

#[test]
fn a_barrier_ends_where_one_word_is_lost_with_its_way() {
    for failure in failures(1) {
        together(2, |world| {
            if world.my_pe() == 0 {
                let asked = swallow(world);
                let failing = Arc::clone(&asked);
                asked.after(1, move || failing.fail(failure.error()));
                // It may see the other's word before it polls its lane.
                match world.barrier_all() {
                    Ok(()) => is_lane_failure(world.quiet()),
                    Err(Error::LaneFailed { .. }) => {}
                    // The other one was notified, has aborted, and has notified this one.
                    lost => is_loss_of(1, lost),
                }
            } else {
                is_loss_of(0, world.barrier_all());
            }
            Ok(())
        });
    }
}

/// A PE that waits finds it by itself, whatever the other one does.
#[test]
fn a_barrier_ends_where_the_way_fails_to_one_that_has_yet_to_come() {
    for failure in failures(1) {
        let failed = AtomicBool::new(false);
        together(2, |world| {
            if world.my_pe() == 1 {
                until(world, || failed.load(Ordering::SeqCst));
                is_loss_of(0, world.barrier_all());
                return Ok(());
            }
            let asked = swallow(world);
            let failing = Arc::clone(&asked);
            asked.after(1, move || failing.fail(failure.error()));
            is_lane_failure(world.barrier_all());
            failed.store(true, Ordering::SeqCst);
            Ok(())
        });
    }
}

/// A PE that has seen all words computes, and polls its lanes in any later call.
#[test]
fn a_barrier_ends_where_the_way_of_one_that_has_returned_from_it_fails() {
    let calls: [fn(&World); 3] = [
        |world| world.progress(),
        |world| is_lane_failure(world.quiet()),
        // It leaves the words of the one before in flight. PE 1 may have ended its own first.
        |world| {
            let failed = world.barrier_all();
            let lost = matches!(failed, Err(Error::PeerLost { pe: 1, .. }));
            assert!(
                lost || matches!(failed, Err(Error::LaneFailed { .. })),
                "{failed:?}"
            );
        },
    ];
    let in_order = Guarantees {
        put_put: true,
        ..completed(Completion::Placed)
    };
    for failure in failures(1) {
        for call in calls {
            together_by(in_order, 2, |world| {
                if world.my_pe() == 1 {
                    is_loss_of(0, world.barrier_all());
                    return Ok(());
                }
                let asked = swallow(world);
                world.barrier_all()?;
                asked.fail(failure.error());
                call(world);
                Ok(())
            });
        }
    }
}

/// Where all operations to a PE have completed, a failure of the connection is reported to no PE.
#[test]
fn a_way_that_fails_with_nothing_outstanding_costs_no_pe() {
    together(2, |world| {
        if world.my_pe() == 0 {
            let asked = watched(world);
            world.barrier_all()?;
            world.quiet()?;
            asked.fail(Failure::Connection(Pe(1)).error());
            for endpoint in &world.worker.state.lanes.endpoints {
                world.worker.progress_endpoint(endpoint);
                assert!(endpoint.failure_towards(1).is_some());
            }
        } else {
            world.barrier_all()?;
        }
        world.worker.engine.bootstrap.barrier()?;
        assert!(!world.worker.engine.liveness.is_lost(1 - world.my_pe()));
        Ok(())
    });
}

/// A call for which the library drops a lane itself: operations in flight there may touch memory that the
/// program uses again.
type Drops = fn(&World, Sym<u64>) -> Result<()>;

const DROPS: [Drops; 3] = [
    |world, _| world.scope(|_| Ok(())),
    |world, x| world.iget(&mut [0; 4], x, 1, 2, 4, 1),
    |world, x| {
        let context = world.create_context(ContextOptions::NONE)?;
        watched(&context).decide(|_, op| match op {
            Op::Flush => Fate::Refuse,
            _ => Fate::Keep,
        });
        context.p(x, 1, 1)?;
        context.destroy()
    },
];

#[test]
fn a_lane_that_is_dropped_is_told_to_who_waits_for_what_was_outstanding_on_it() {
    for drops in DROPS {
        let guarantees = Guarantees {
            // A get waits for no flush.
            put_get: true,
            ..completed(Completion::Accepted)
        };
        together_by(guarantees, 2, |world| {
            let x = world.alloc_zeroed::<u64>(8)?;
            world.quiet()?;
            if world.my_pe() == 1 {
                is_loss_of(0, world.barrier_all());
                return Ok(());
            }
            let mut gets = 0;
            watched(world).decide(move |_, op| {
                gets += usize::from(matches!(op, Op::Get { .. }));
                match op {
                    Op::Flush => Fate::Refuse,
                    Op::Get { .. } if gets == 2 => Fate::Refuse,
                    _ => Fate::Keep,
                }
            });
            world.barrier_all()?;
            let dropped = drops(world, x);
            assert!(matches!(dropped, Err(Error::Transport(_))), "{dropped:?}");
            Ok(())
        });
    }
}

/// A lane that batches operations gets them late.
#[test]
fn a_way_that_fails_when_it_is_given_what_was_put_off_is_told_to_who_waits_for_what_went_before() {
    let nics = World::builder().transports(vec![Arc::new(Tiny::nic())]);
    together_on(nics.timeout(LIMIT), 2, |world| {
        let x = world.alloc_zeroed::<u64>(1)?;
        world.quiet()?;
        world.barrier_all()?;
        if world.my_pe() == 1 {
            is_loss_of(0, world.barrier_all());
            return Ok(());
        }
        // The word of the barrier is accepted, and may never arrive.
        watched(world).decide(|_, _| Fate::Cut);
        let put = world.scope(|scope| scope.put_nbi(x, &[1], 1));
        assert!(matches!(put, Err(Error::Transport(_))), "{put:?}");
        Ok(())
    });
}

/// A PE that does not know whether its last word went out does not leave in order.
#[test]
fn who_cannot_complete_its_last_words_is_lost_and_not_gone_in_order() {
    let run = |world: World| {
        world.barrier_all().unwrap();
        world.quiet().unwrap();
        if world.my_pe() == 0 {
            watched(&world).decide(|_, op| match op {
                // The flush that would complete its word, which goes nowhere.
                Op::Flush => Fate::Refuse,
                _ => Fate::Keep,
            });
            let ended = world.finalize();
            assert!(matches!(ended, Err(Error::Transport(_))), "{ended:?}");
        } else {
            is_loss_of(0, world.finalize());
        }
    };
    std::thread::scope(|threads| {
        let builder = by_lanes(completed(Completion::Accepted));
        for bootstrap in InProcess::group(2) {
            let builder = builder.clone().bootstrap(bootstrap as Arc<_>);
            threads.spawn(move || run(builder.join().unwrap()));
        }
    });
}

#[test]
fn a_split_in_which_one_pe_cannot_read_makes_a_team_for_none() {
    let read = Arc::new(AtomicUsize::new(0));
    together(3, |world| {
        let (first, read) = (world.my_pe() == 0, Arc::clone(&read));
        watched(world).decide(move |_, op| match op {
            Op::Get { .. } if first => {
                // Once the others have read all: lengths and contents, of two.
                let since = Instant::now();
                while read.load(Ordering::SeqCst) < 8 && since.elapsed() < LIMIT {
                    std::thread::yield_now();
                }
                Fate::Refuse
            }
            Op::Get { .. } => {
                read.fetch_add(1, Ordering::SeqCst);
                Fate::Perform
            }
            _ => Fate::Perform,
        });
        let made = world.team().split_strided(0, 1, 3);
        assert!(made.is_err(), "{made:?}");
        Ok(())
    });
}

/// The slot that is lent here next.
fn free_slot(world: &World) -> Result<Option<usize>> {
    Ok(slot_of(
        world.shared_team().split_strided(0, 1, 1)?.unwrap(),
    ))
}

/// The slot of a team of this PE alone, which ends.
fn slot_of(alone: Team<'_>) -> Option<usize> {
    let slot = alone.state().slot();
    // Where a connection has failed it cannot be completed.
    let _ = alone.destroy();
    slot
}

/// It does not know whether the others have the team, and write into it.
#[test]
fn the_slot_of_a_split_stays_reserved_where_its_last_arrival_fails() {
    let fails = Fails::default();
    let (made, room) = (AtomicUsize::new(0), AtomicUsize::new(usize::MAX));
    together(3, |world| {
        let asked = watched(world);
        if world.my_pe() == 0 {
            *fails.lane.lock().unwrap() = Some(asked);
            is_lane_failure(world.team().split_strided(0, 1, 3));
            assert_ne!(free_slot(world)?, Some(room.load(Ordering::SeqCst)));
            return Ok(());
        }
        if world.my_pe() == 1 {
            let mut sent = 0;
            asked.decide(move |pe, op| {
                let word = pe == Pe(0) && matches!(op, Op::Put { .. });
                sent += usize::from(word);
                // Its last word to PE 0, which waits.
                if word && sent == 3 {
                    Fate::Keep
                } else {
                    Fate::Perform
                }
            });
        }
        let team = world.team().split_strided(0, 1, 3)?.unwrap();
        room.store(team.state().slot().unwrap(), Ordering::SeqCst);
        made.fetch_add(1, Ordering::SeqCst);
        until(world, || made.load(Ordering::SeqCst) == 2);
        if world.my_pe() == 1 {
            fails.now();
        }
        Ok(())
    });
}

/// Whether an operation is the signal to a member that data were written for it.
fn is_flag(op: &Op) -> bool {
    match op {
        Op::Put { from, .. } => from.len == size_of::<u64>(),
        op => matches!(op, Op::Atomic { .. }),
    }
}

/// A PE that fails before the last meeting has not reserved the slot, and no PE has the team; one that fails in that
/// leaves it reserved.
#[test]
fn a_team_that_members_make_among_themselves_has_room_on_all_or_is_none() {
    for answers in 1..=3 {
        together(3, |world| {
            world.quiet()?;
            let alone = || world.active_set_team((world.my_pe(), 1, 1)).map(slot_of);
            let room = alone()?;
            let make = || world.active_set_team((0, 1, 3));
            match world.my_pe() {
                0 => {
                    // Before each reply, it signals that it has the request.
                    let mut sent = 0;
                    watched(world).decide(move |pe, op| {
                        let flag = pe == Pe(2) && is_flag(op);
                        sent += usize::from(flag);
                        if flag && sent == 2 * answers {
                            Fate::Refuse
                        } else {
                            Fate::Perform
                        }
                    });
                    let failed = make();
                    assert!(matches!(failed, Err(Error::Transport(_))), "{failed:?}");
                    assert_eq!(alone()? != room, answers == 3);
                }
                1 => match make() {
                    Ok(_) => assert_eq!(answers, 3),
                    lost => is_loss_of(0, lost),
                },
                _ => is_loss_of(0, make()),
            }
            Ok(())
        });
    }
}

/// The first one has made the team.
#[test]
fn the_last_word_of_members_that_make_a_team_is_told_of_where_it_is_lost_with_its_way() {
    together(2, |world| {
        world.quiet()?;
        let make = || world.active_set_team((0, 1, 2));
        if world.my_pe() == 1 {
            is_loss_of(0, make());
            return Ok(());
        }
        let asked = watched(world);
        let mut flags = 0;
        asked.decide(move |_, op| {
            flags += usize::from(is_flag(op));
            match flags {
                6.. => Fate::Keep,
                _ => Fate::Perform,
            }
        });
        make()?;
        asked.fail(Failure::Connection(Pe(1)).error());
        world.progress();
        Ok(())
    });
}

#[test]
fn the_loss_of_another_pe_does_not_disturb_members_that_make_a_team() {
    let is_through = AtomicBool::new(false);
    together(3, |world| {
        if world.my_pe() == 2 {
            is_through.store(true, Ordering::SeqCst);
            return Ok(());
        }
        // It waits for no PE any more that aborts.
        until(world, || is_through.load(Ordering::SeqCst));
        (world.worker.engine.report_lost)(2);
        if world.my_pe() == 1 {
            // PE 0 waits for it, and has checked for losses.
            std::thread::sleep(Duration::from_millis(100));
        }
        let team = world.active_set_team((0, 1, 2))?;
        team.sync()
    });
}

/// The failure of PE 0.
#[derive(Default)]
struct Fails {
    lane: Mutex<Option<Arc<Asked>>>,
    /// PE 0 has written all that it writes after its failure.
    over: AtomicBool,
}

impl Fails {
    /// One connection fails: by the other PE 0 may write.
    fn now(&self) {
        let lane = self.lane.lock().unwrap().take();
        lane.iter()
            .for_each(|lane| lane.fail(Failure::Connection(Pe(2)).error()));
    }
}

/// Three members of a team; PE 0 fails in its destruction when PE 1 says so.
fn destroyed(second: impl Fn(&World, &Asked, Team<'_>, &Arc<Fails>) + Sync) {
    let fails = Arc::new(Fails::default());
    let met = AtomicUsize::new(0);
    together(3, |world| {
        let team = world.team().split_strided(0, 1, 3)?.unwrap();
        world.barrier_all()?;
        world.quiet()?;
        let asked = watched(world);
        match world.my_pe() {
            0 => {
                *fails.lane.lock().unwrap() = Some(asked);
                met.fetch_add(1, Ordering::SeqCst);
                is_lane_failure(team.destroy());
                let _ = world.quiet();
                fails.over.store(true, Ordering::SeqCst);
            }
            1 => {
                until(world, || met.load(Ordering::SeqCst) == 1);
                second(world, &asked, team, &fails);
            }
            _ => {
                let _ = team.destroy();
            }
        }
        Ok(())
    });
}

/// Its word would arrive when the slot is another team's.
#[test]
fn the_slot_of_a_team_is_not_lent_while_a_member_may_still_give_its_destruction_up() {
    destroyed(|_, asked, team, fails| {
        let mut kept = false;
        asked.decide(move |pe, _| match pe {
            // Its first word to PE 0, which waits.
            Pe(0) if !std::mem::replace(&mut kept, true) => Fate::Keep,
            _ => Fate::Perform,
        });
        // It has seen all words, and signals so.
        let fail = Arc::clone(fails);
        asked.after(3, move || fail.now());
        let ended = team.destroy();
        fails.now();
        assert!(ended.is_err(), "the room is free");
    });
}

#[test]
fn who_gives_the_end_of_a_destruction_up_writes_nothing_into_room_that_is_free() {
    destroyed(|world, asked, team, fails| {
        let words = team.state().words();
        let mut sent = 0;
        asked.decide(move |pe, _| {
            sent += usize::from(pe == Pe(0));
            // Its last word to PE 0, which waits.
            match (pe, sent) {
                (Pe(0), 2) => Fate::Keep,
                _ => Fate::Perform,
            }
        });
        team.destroy().unwrap();
        fails.now();
        until(world, || fails.over.load(Ordering::SeqCst));
        let mut all = vec![1; words.bytes()];
        world.worker.own(words).copy_to(&mut all);
        assert!(all.iter().all(|byte| *byte == 0), "{all:?}");
    });
}

/// The default context's lanes end before the memory that they may use.
#[test]
fn the_lanes_of_a_world_end_before_the_rest_of_what_its_contexts_share() {
    let before = Arc::new(AtomicUsize::new(0));
    let ended = spmd_with(by_lanes(completed(Completion::Placed)), 2, |world| {
        world.barrier_all()?;
        let asked = watched(world);
        // It is dropped behind the transports.
        let later = Arc::downgrade(&world.worker.engine.untracked_stores);
        let before = Arc::clone(&before);
        *asked.dropped.lock().unwrap() = Some(Box::new(move || {
            before.fetch_add(later.strong_count(), Ordering::SeqCst);
        }));
        Ok(())
    });
    ended.unwrap();
    assert_eq!(before.load(Ordering::SeqCst), 2);
}
