//! A model check of sleeping, waking and arriving: loom runs every interleaving, and every value
//! that a load may read, of the library's own `park.rs` and `dissemination.rs`, compiled here over
//! loom's atomics.
//!
//! The kernel's futex is modelled without its time limit, so that a lost wake-up is a deadlock,
//! which loom finds. Each property is tried again with the fences left out, to show that the check
//! would notice.

#![allow(clippy::unwrap_used)]
// Loom's threads take turns on one of the system's, so its types need not be Sync. Loom's own Arc
// cannot be dropped after the deadlock that some tests here expect.
#![allow(clippy::arc_with_non_send_sync)]

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use loom::cell::UnsafeCell;
use loom::sync::atomic::AtomicU64;
use loom::sync::{Condvar, Mutex};
use loom::thread;

use atomics::{AtomicU32, Ordering};
use dissemination::{Dissemination, Round, SyncSlot};
use park::{Futex, Parker};

#[path = "../src/dissemination.rs"]
mod dissemination;
#[path = "../../engine/src/progress/park.rs"]
mod park;

/// The atomics that `park` uses: loom's atomics, and a fence that can be left out.
mod atomics {
    pub(crate) use loom::sync::atomic::{AtomicU32, Ordering};

    pub(crate) fn fence(order: Ordering) {
        if !super::WITHOUT_FENCES.get() {
            loom::sync::atomic::fence(order);
        }
    }
}

thread_local! {
    /// Of the operating system's thread, which is that of one test: loom's threads share it.
    static WITHOUT_FENCES: Cell<bool> = const { Cell::new(false) };
}

/// A futex: who finds the word changed does not sleep; who sleeps is woken by nothing but a wake.
struct Kernel {
    queue: Mutex<()>,
    woken: Condvar,
}

impl Futex for Kernel {
    fn wait(&self, word: &AtomicU32, expected: u32, _: Duration) {
        let queue = self.queue.lock().unwrap();
        if word.load(Ordering::Relaxed) == expected {
            drop(self.woken.wait(queue).unwrap());
        }
    }

    fn wake(&self, _: &AtomicU32) {
        let _queue = self.queue.lock().unwrap();
        self.woken.notify_all();
    }
}

/// A PE: where it sleeps, the word that others publish to it, and bytes that the word announces.
struct Pe {
    kernel: Kernel,
    epoch: AtomicU32,
    waiters: AtomicU32,
    word: AtomicU64,
    data: UnsafeCell<u64>,
}

impl Pe {
    fn new() -> Pe {
        Pe {
            kernel: Kernel {
                queue: Mutex::new(()),
                woken: Condvar::new(),
            },
            epoch: AtomicU32::new(0),
            waiters: AtomicU32::new(0),
            word: AtomicU64::new(0),
            data: UnsafeCell::new(0),
        }
    }

    fn bell(&self) -> Parker<'_> {
        Parker {
            epoch: &self.epoch,
            waiters: &self.waiters,
        }
    }

    /// Publishes as an arrival does: the word, a fence, the bell.
    fn publish(&self, value: u64) {
        self.word.store(value, Ordering::Release);
        atomics::fence(Ordering::SeqCst);
        park::unpark_all(self.bell(), &self.kernel);
    }

    /// Waits as `wait_longer` does once it sleeps.
    fn wait(&self, value: u64) {
        let ready = || self.word.load(Ordering::Acquire) >= value;
        while !ready() {
            let mut found = false;
            park::sleep(self.bell(), &self.kernel, Duration::MAX, &mut || {
                found = ready();
                found
            });
            if found {
                return;
            }
        }
    }
}

fn check(without_fences: bool, model: fn()) {
    WITHOUT_FENCES.set(without_fences);
    loom::model(model);
}

fn publish_and_ring() {
    let pe = Arc::new(Pe::new());
    let publisher = {
        let pe = Arc::clone(&pe);
        thread::spawn(move || {
            // SAFETY: loom checks that no access races with another; the word orders them.
            pe.data.with_mut(|data| unsafe { *data = 7 });
            pe.publish(1);
        })
    };
    pe.wait(1);
    // SAFETY: as above.
    assert_eq!(pe.data.with(|data| unsafe { *data }), 7);
    publisher.join().unwrap();
}

#[test]
fn a_ring_never_misses_a_sleeper() {
    check(false, publish_and_ring);
}

#[test]
#[should_panic(expected = "deadlock")]
fn without_its_fences_a_ring_misses_a_sleeper() {
    check(true, publish_and_ring);
}

/// A PE of a barrier: arrival words by [parity of the epoch][slot], and its rounds.
struct Member {
    pe: Pe,
    slots: [Vec<AtomicU64>; 2],
    rounds: Vec<Round>,
}

/// The barrier's words as `sync` keeps them, in memory that all share.
struct Words<'a> {
    members: &'a [Member],
    me: usize,
    epoch: u32,
    /// Waits for nobody: as if one were lost.
    impatient: bool,
}

impl<'a> Words<'a> {
    fn new(members: &'a [Member], me: usize, epoch: u32) -> Self {
        Words {
            members,
            me,
            epoch,
            impatient: false,
        }
    }

    fn slot(&self, of: usize, slot: SyncSlot) -> &AtomicU64 {
        &self.members[of].slots[(self.epoch & 1) as usize][slot.index as usize]
    }
}

impl dissemination::SyncWords for Words<'_> {
    type Error = ();

    fn signal(&self, slot: SyncSlot, word: u64) -> Result<(), ()> {
        let slot = self.slot(slot.member as usize, slot);
        slot.store(word, Ordering::Release);
        Ok(())
    }

    fn fenced(&self) {}

    fn wake(&self, member: u32) {
        let pe = &self.members[member as usize].pe;
        park::unpark_all(pe.bell(), &pe.kernel);
    }

    fn await_signal(&self, slot: SyncSlot) -> Result<u64, ()> {
        self.wait(dissemination::ARRIVES, slot, || {
            let word = self.load_acquire(slot);
            dissemination::accepts(word, self.epoch).then_some(word)
        })
    }

    fn load_acquire(&self, slot: SyncSlot) -> u64 {
        self.slot(self.me, slot).load(Ordering::Acquire)
    }

    fn wait<R>(
        &self,
        _: &'static str,
        _: SyncSlot,
        mut ready: impl FnMut() -> Option<R>,
    ) -> Result<R, ()> {
        let pe = &self.members[self.me].pe;
        loop {
            let mut found = ready();
            if found.is_none() && self.impatient {
                return Err(());
            }
            if found.is_none() {
                park::sleep(pe.bell(), &pe.kernel, Duration::MAX, &mut || {
                    found = ready();
                    found.is_some()
                });
            }
            if let Some(value) = found {
                return Ok(value);
            }
        }
    }
}

/// How many PEs of one host disseminate in rounds of this radix.
fn disseminating(pes: usize, radix: usize) -> Vec<Vec<Round>> {
    let spread = Dissemination { radix, first: 0 };
    let rounds = |me| spread.of((pes, me), |_| true, |at, _| at as u32);
    (0..pes).map(rounds).collect()
}

/// All PEs run the epochs' barriers, each by its rounds; the calls are `digests[epoch - 1]`, the last PE
/// failing in the first. What each stored before a barrier is seen after it, and all come to one verdict.
fn barriers(rounds: Vec<Vec<Round>>, digests: &'static [u64]) {
    let pes = rounds.len();
    among(rounds, move |members: &[Member], me: usize| {
        for (epoch, &digest) in (1_u32..).zip(digests) {
            if epoch == 1 {
                // SAFETY: loom checks that no access races with another; the barrier orders them.
                members[me].pe.data.with_mut(|data| unsafe { *data = 7 });
            }
            let failed = epoch == 1 && me == pes - 1;
            let known = digest | if failed { dissemination::FAILED } else { 0 };
            let words = Words::new(members, me, epoch);
            let known = dissemination::barrier(&words, &members[me].rounds, epoch, known).unwrap();
            assert_eq!(
                known & dissemination::SIGNATURE,
                digest & dissemination::SIGNATURE
            );
            assert_eq!(known & dissemination::FAILED != 0, epoch == 1);
            assert_eq!(
                known & (dissemination::MISMATCH | dissemination::ABORTED),
                0
            );
            for other in members {
                // SAFETY: as above; nobody writes it after the first barrier.
                assert_eq!(other.pe.data.with(|data| unsafe { *data }), 7);
            }
        }
    });
}

/// All PEs of these rounds at once.
fn among(rounds: Vec<Vec<Round>>, run: impl Fn(&[Member], usize) + Copy + 'static) {
    let pes = rounds.len();
    let mails = rounds.iter().flatten().flat_map(|round| &round.receives);
    let slots = mails.map(|slot| slot.index as usize + 1).max().unwrap();
    let members: Arc<Vec<Member>> = Arc::new(
        rounds
            .into_iter()
            .map(|rounds| Member {
                pe: Pe::new(),
                slots: [0, 1].map(|_| (0..slots).map(|_| AtomicU64::new(0)).collect()),
                rounds,
            })
            .collect(),
    );
    let others: Vec<_> = (1..pes)
        .map(|me| {
            let members = Arc::clone(&members);
            thread::spawn(move || run(&members, me))
        })
        .collect();
    run(&members, 0);
    for other in others {
        other.join().unwrap();
    }
}

/// In each epoch every PE gives something new, at the same place, and reads what the others give. In the `bad` one the
/// last fails, and all know.
fn exchanges(pes: usize, epochs: u32, bad: u32) {
    among(
        disseminating(pes, pes),
        move |members: &[Member], me: usize| {
            for epoch in 1..=epochs {
                let given = u64::from(epoch);
                // SAFETY: loom checks that no access races with another; the exchange orders them.
                members[me]
                    .pe
                    .data
                    .with_mut(|data| unsafe { *data = given });
                let failed = epoch == bad && me == pes - 1;
                let known = 5 | if failed { dissemination::FAILED } else { 0 };
                let words = Words::new(members, me, epoch);
                let mut from = 0;
                let read = |at: u32| {
                    let data = &members[at as usize].pe.data;
                    // SAFETY: as above.
                    assert_eq!(data.with(|data| unsafe { *data }), given);
                    from |= 1 << at;
                    Ok(())
                };
                let round = &members[me].rounds[0];
                let known = dissemination::barrier_with_gather(
                    &words,
                    round,
                    (epoch, me as u32),
                    known,
                    read,
                )
                .unwrap();
                assert_eq!(known & dissemination::FAILED != 0, epoch == bad);
                assert_eq!(
                    known & (dissemination::MISMATCH | dissemination::ABORTED),
                    0
                );
                assert_eq!(known & dissemination::SIGNATURE, 5);
                if epoch == bad {
                    // Some have read, some not: as after any call that fails, they meet.
                    return;
                }
                assert_eq!(from, (1 << pes) - 1, "not all were read");
            }
        },
    );
}

#[test]
fn two_pes_arrive_and_see_each_others_stores() {
    check(false, || barriers(disseminating(2, 2), &[5]));
}

#[test]
#[should_panic(expected = "deadlock")]
fn without_the_fence_a_pe_sleeps_through_an_arrival() {
    check(true, || barriers(disseminating(2, 2), &[5]));
}

/// Three epochs: the words of the first are used again by the third.
#[test]
fn words_are_used_again_without_mixing_epochs_up() {
    bounded(2, || barriers(disseminating(2, 2), &[5, 6, 7]));
}

/// Three PEs in two rounds, so that one hears of another through the third.
#[test]
fn what_one_pe_knows_reaches_all_through_others() {
    bounded(2, || barriers(disseminating(3, 2), &[5]));
}

/// Nobody gives the next before all have read the last; the words of the first epoch are used again by the third.
#[test]
fn in_an_exchange_all_read_what_each_gives() {
    bounded(2, || exchanges(2, 3, 0));
}

#[test]
fn three_exchange_while_some_have_not_come() {
    bounded(1, || exchanges(3, 2, 0));
}

#[test]
fn of_who_fails_in_an_exchange_all_hear() {
    bounded(2, || exchanges(3, 1, 1));
}

/// The last PE cannot read what the first gives.
#[test]
fn m36_of_who_gives_an_exchange_up_all_hear() {
    bounded(2, || {
        among(disseminating(2, 2), |members, me| {
            let words = Words::new(members, me, 1);
            let round = &members[me].rounds[0];
            let read = |at: u32| if (me, at) == (1, 0) { Err(()) } else { Ok(()) };
            let ended = dissemination::barrier_with_gather(&words, round, (1, me as u32), 5, read);
            match ended {
                Ok(known) => assert!(me == 0 && known & dissemination::ABORTED != 0),
                Err(()) => {
                    assert_eq!(me, 1);
                    let word = dissemination::word(1, dissemination::ABORTED);
                    dissemination::signal_all(&words, round.sends.iter().copied(), word).unwrap();
                }
            }
        });
    });
}

/// The last PE has read what the first gives, and does not wait for that one to have read: it writes what it gave
/// itself.
#[test]
fn m37_of_whom_one_has_left_none_reads_in_an_exchange_that_goes_well() {
    bounded(3, || {
        among(disseminating(2, 2), |members, me| {
            let words = Words {
                impatient: me == 1,
                ..Words::new(members, me, 1)
            };
            let round = &members[me].rounds[0];
            let given = &members[1].pe.word;
            let mut seen = 0;
            let read = |at: u32| {
                if (me, at) == (0, 1) {
                    seen = given.load(Ordering::Relaxed);
                }
                Ok(())
            };
            match dissemination::barrier_with_gather(&words, round, (1, me as u32), 5, read) {
                Ok(known) => assert!(seen == 0 || known & dissemination::ABORTED != 0),
                Err(()) => {
                    assert_eq!(me, 1);
                    given.store(7, Ordering::Relaxed);
                    let word = dissemination::word(1, dissemination::ABORTED);
                    dissemination::signal_all(&words, round.sends.iter().copied(), word).unwrap();
                }
            }
        });
    });
}

#[test]
#[should_panic(expected = "deadlock")]
fn without_the_fence_a_pe_sleeps_through_an_exchange() {
    check(true, || exchanges(2, 1, 0));
}

/// Two PEs of one host and one of another: it hears of the second through the first, which hears of it
/// again from that.
#[test]
fn what_one_host_knows_reaches_the_other_by_one_word() {
    bounded(2, || {
        let radixes = dissemination::HierarchicalRadix {
            on_host: 2,
            across: 2,
        };
        let groups = [vec![0, 1], vec![2]];
        let places = [(0, 0), (0, 1), (1, 0)];
        let rounds = places.map(|mine| radixes.rounds_by_host(&groups, mine));
        let mut mails = rounds.iter().flatten().flat_map(|round| &round.receives);
        assert!(mails.all(|slot| (slot.index as usize) < radixes.slots(2, 2)));
        let far = |round: &&Round| round.sends.iter().any(|slot| slot.member == 2);
        assert_eq!(rounds[..2].iter().flatten().filter(far).count(), 1);
        barriers(rounds.into(), &[5]);
    });
}

fn bounded(preemptions: usize, model: fn()) {
    WITHOUT_FENCES.set(false);
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

/// Two threads of one PE sleep on its bell; one publication wakes both.
#[test]
fn one_ring_wakes_every_sleeper() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let pe = Arc::new(Pe::new());
        let sleeper = {
            let pe = Arc::clone(&pe);
            thread::spawn(move || pe.wait(1))
        };
        let publisher = {
            let pe = Arc::clone(&pe);
            thread::spawn(move || pe.publish(1))
        };
        pe.wait(1);
        sleeper.join().unwrap();
        publisher.join().unwrap();
    });
}

/// A signal wait: no bell; who sees the signal sees its data (M22, M23).
fn signal(announce: Ordering) {
    let pe = Arc::new(Pe::new());
    let writer = {
        let pe = Arc::clone(&pe);
        thread::spawn(move || {
            // SAFETY: loom checks that no access races with another; the signal orders them.
            pe.data.with_mut(|data| unsafe { *data = 7 });
            pe.word.store(1, announce);
        })
    };
    while pe.word.load(Ordering::Acquire) == 0 {
        thread::yield_now();
    }
    // SAFETY: as above.
    assert_eq!(pe.data.with(|data| unsafe { *data }), 7);
    writer.join().unwrap();
}

#[test]
fn m22_who_sees_the_signal_sees_its_data() {
    loom::model(|| signal(Ordering::Release));
}

#[test]
#[should_panic(expected = "Causality violation")]
fn without_release_the_signal_overtakes_its_data() {
    loom::model(|| signal(Ordering::Relaxed));
}
