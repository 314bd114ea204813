//! The dissemination barrier: the signals of each round, and the knowledge at its end.
//!
//! [`SyncWords`] writes the words and waits for them: in symmetric memory by
//! [`call`](crate::call). The model check in `tests/loom_park.rs` compiles this same file over loom's
//! atomics.

use crate::atomics::Ordering;
use crate::atomics::fence;

/// Two PEs are in different collective calls.
pub(crate) const MISMATCH: u64 = 1 << 31;
/// The call failed on some PE.
pub(crate) const FAILED: u64 = 1 << 30;
/// The sender aborted the call midway and takes part in none any more.
pub(crate) const ABORTED: u64 = 1 << 29;
/// The sender has read the receiver's data in a [`barrier_with_gather`].
const READ: u64 = 1 << 28;
/// The bits that tell one call from another.
pub(crate) const SIGNATURE: u64 = READ - 1;

/// A word's slot among those of its receiver, and the member at its other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncSlot {
    /// Its index among a member's slots.
    pub index: u32,
    /// The rank of the member that has it.
    pub member: u32,
}

/// A round of one member: it sends all signals, then awaits all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Round {
    /// The slots of others that this member signals.
    pub sends: Box<[SyncSlot]>,
    /// The slots of its own that it waits for.
    pub receives: Box<[SyncSlot]>,
}

/// The transport of sync words from one PE to another.
pub(crate) trait SyncWords {
    type Error;
    /// Writes a word of another member's, after (Release) all stores made before.
    fn signal(&self, slot: SyncSlot, word: u64) -> Result<(), Self::Error>;
    /// Called when all words that are sent together are written, after a full fence.
    fn fenced(&self);
    /// Wakes a member if it is parked. The fence came before.
    fn wake(&self, member: u32);
    /// Waits for a member's word, until [`accepts`] does; reads it with Acquire.
    fn await_signal(&self, slot: SyncSlot) -> Result<u64, Self::Error>;
    /// A member's word as it is, read with Acquire.
    fn load_acquire(&self, slot: SyncSlot) -> u64;
    /// Waits until `ready` gives something, for which this word, perhaps beside others, has to change. `what` describes
    /// the signal, for reports.
    fn wait<R>(
        &self,
        what: &'static str,
        slot: SyncSlot,
        ready: impl FnMut() -> Option<R>,
    ) -> Result<R, Self::Error>;
}

/// The signals in words, for the report of a long wait.
pub(crate) const ARRIVES: &str = "its arrival";
const HAS_READ: &str = "its having read what this PE gives";

/// A word as it travels.
#[inline]
pub(crate) fn word(epoch: u32, known: u64) -> u64 {
    u64::from(epoch) << 32 | known
}

/// Whether a PE in `epoch` waits for this word: one of that epoch, or a later one by which
/// its sender aborts. Epochs wrap; two PEs are never more than one apart, two with the latter.
#[inline(always)]
pub(crate) fn accepts(word: u64, epoch: u32) -> bool {
    let ahead = ((word >> 32) as u32).wrapping_sub(epoch) as i32;
    ahead == 0 || (ahead > 0 && word & ABORTED != 0)
}

/// Signals a word to some members, after all stores made before, and wakes them.
#[inline]
pub(crate) fn signal_all<P: SyncWords>(
    words: &P,
    to: impl Iterator<Item = SyncSlot> + Clone,
    word: u64,
) -> Result<(), P::Error> {
    for slot in to.clone() {
        words.signal(slot, word)?;
    }
    // Makes this PE's earlier stores visible, and orders the words before the load of the waiters
    // (park::unpark_all).
    fence(Ordering::SeqCst);
    words.fenced();
    for slot in to {
        words.wake(slot.member);
    }
    Ok(())
}

/// All rounds of one epoch. `known` is this PE's signature and flags; gives the flags of all, and this
/// PE's signature.
#[inline]
pub(crate) fn barrier<P: SyncWords>(
    words: &P,
    rounds: &[Round],
    epoch: u32,
    mut known: u64,
) -> Result<u64, P::Error> {
    for round in rounds {
        signal_all(words, round.sends.iter().copied(), word(epoch, known))?;
        for slot in &round.receives {
            known = with(known, words.await_signal(*slot)?);
        }
    }
    Ok(known)
}

/// The knowledge after one more word.
#[inline]
fn with(known: u64, theirs: u64) -> u64 {
    let flags = theirs & (MISMATCH | FAILED | ABORTED);
    match (theirs ^ known) & SIGNATURE {
        0 => known | flags,
        _ => known | flags | MISMATCH,
    }
}

/// An epoch of one round, in which each member signals all others, fused with a read of each member's data.
///
/// Each member reads the others' data as they arrive, and signals the members that it has read before it waits for
/// more. It leaves when all have read its own data. Where members are oversubscribed, that takes one time slice of
/// each: a member that arrives later has read before the next time slice of one that arrived earlier.
///
/// `read` is called with each member, this one first. It is no longer called once this one has failed, or a word has
/// arrived from a member that failed or made another call, which all members learn.
pub(crate) fn barrier_with_gather<P: SyncWords>(
    words: &P,
    round: &Round,
    (epoch, me): (u32, u32),
    known: u64,
    read: impl FnMut(u32) -> Result<(), P::Error>,
) -> Result<u64, P::Error> {
    let arrived = read_on_arrival(words, round, (epoch, me), known, read);
    if arrived.is_err() {
        // A member may still be reading this PE's data, which the caller may now change: its call must fail, too.
        for slot in &round.sends {
            // A member that cannot be signaled has not been signaled that it was read, either, or is lost.
            let _ = words.signal(*slot, word(epoch, known));
        }
        fence(Ordering::SeqCst);
        words.fenced();
    }
    arrived
}

fn read_on_arrival<P: SyncWords>(
    words: &P,
    round: &Round,
    (epoch, me): (u32, u32),
    mut known: u64,
    mut read: impl FnMut(u32) -> Result<(), P::Error>,
) -> Result<u64, P::Error> {
    let good = |known: u64| known & (MISMATCH | FAILED | ABORTED) == 0;
    let done = word(epoch, known & SIGNATURE | READ);
    signal_all(words, round.sends.iter().copied(), word(epoch, known))?;
    if good(known) {
        read(me)?;
    }
    // Receives are in the order of distances behind, sends in that of distances ahead: one reversed is the other.
    let pairs = round.receives.iter().zip(round.sends.iter().rev());
    let mut pending: Vec<(SyncSlot, SyncSlot)> =
        pairs.map(|(receive, send)| (*receive, *send)).collect();
    debug_assert!(
        pending
            .iter()
            .all(|(receive, send)| receive.member == send.member)
    );
    // A fence waits for all copies: so members that were read are signaled together, after one fence.
    let mut unsignaled = Vec::new();
    while let Some((first, _)) = pending.first() {
        let arrived = || {
            let loads = pending
                .iter()
                .map(|(receive, _)| words.load_acquire(*receive));
            loads.enumerate().find(|(_, word)| accepts(*word, epoch))
        };
        let (at, theirs) = match arrived() {
            Some(arrival) => arrival,
            None => {
                signal_read(words, &mut unsignaled, done)?;
                words.wait(ARRIVES, *first, arrived)?
            }
        };
        let (_, reader) = pending.remove(at);
        known = with(known, theirs);
        if good(known) {
            read(reader.member)?;
            unsignaled.push(reader);
        }
    }
    signal_read(words, &mut unsignaled, done)?;
    if !good(known) {
        return Ok(known);
    }
    for slot in &round.receives {
        let theirs = words.wait(HAS_READ, *slot, || {
            let theirs = words.load_acquire(*slot);
            (accepts(theirs, epoch) && theirs & (READ | ABORTED) != 0).then_some(theirs)
        })?;
        known |= theirs & ABORTED;
    }
    Ok(known)
}

/// Signals the members whose data were read, if any.
fn signal_read<P: SyncWords>(
    words: &P,
    unsignaled: &mut Vec<SyncSlot>,
    done: u64,
) -> Result<(), P::Error> {
    if !unsignaled.is_empty() {
        signal_all(words, unsignaled.iter().copied(), done)?;
        unsignaled.clear();
    }
    Ok(())
}

/// Dissemination: in round r each member of a group signals those at distances k·radixʳ (0 < k < radix) and awaits
/// as many signals. After ⌈log_radix n⌉ rounds each has received a signal from all, directly or through others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dissemination {
    pub radix: usize,
    /// The slot of the first round's first word.
    pub first: usize,
}

impl Dissemination {
    /// Rounds of a group of `count` members.
    pub(crate) fn rounds(self, count: usize) -> usize {
        let (mut rounds, mut reach) = (0, 1);
        while reach < count {
            reach *= self.radix;
            rounds += 1;
        }
        rounds
    }

    /// Slots of one round, in whole cache lines of words.
    pub(crate) fn slots(self) -> usize {
        (self.radix - 1).next_multiple_of(8)
    }

    /// The rounds of a PE at place `me` of a group of `count`, alone there or with others that share the place's work.
    /// `part` says for each digit k whether it is this PE's part. `member` gives the member at a place that does the
    /// part of a digit.
    pub(crate) fn of(
        self,
        (count, me): (usize, usize),
        part: impl Fn(usize) -> bool,
        member: impl Fn(usize, usize) -> u32,
    ) -> Vec<Round> {
        let mut distance = 1;
        let mut rounds = Vec::new();
        for round in 0..self.rounds(count) {
            let digits = (1..self.radix).take_while(|k| k * distance < count);
            let digits: Vec<usize> = digits.filter(|k| part(*k)).collect();
            let slot = |k: &usize, place: usize| SyncSlot {
                index: (self.first + round * self.slots() + k - 1) as u32,
                member: member(place % count, *k),
            };
            let sends = digits.iter().map(|k| slot(k, me + k * distance));
            let receives = digits.iter().map(|k| slot(k, me + count - k * distance));
            rounds.push(Round {
                sends: sends.collect(),
                receives: receives.collect(),
            });
            distance *= self.radix;
        }
        rounds
    }
}

/// Radixes of the dissemination among the members of one host, and among hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HierarchicalRadix {
    pub on_host: usize,
    pub across: usize,
}

/// The two levels of a hierarchical dissemination.
struct Levels {
    on_host: Dissemination,
    across: Dissemination,
    /// Slots of one dissemination on a host.
    on_host_slots: usize,
}

impl HierarchicalRadix {
    fn levels(self, max_pes_per_host: usize, hosts: usize) -> Levels {
        let on_host = Dissemination {
            radix: self.on_host,
            first: 0,
        };
        let across = |first| Dissemination {
            radix: self.across,
            first,
        };
        let on_host_slots = on_host.rounds(max_pes_per_host) * on_host.slots();
        let rounds = across(0).rounds(hosts);
        Levels {
            on_host,
            across: across(on_host_slots * (rounds + 1)),
            on_host_slots,
        }
    }

    /// Slots that hosts need of which none has more than `max_pes_per_host` members.
    pub(crate) fn slots(self, max_pes_per_host: usize, hosts: usize) -> usize {
        let across = self.levels(max_pes_per_host, hosts).across;
        across.first + across.rounds(hosts) * across.slots()
    }

    /// The rounds of an arrival on each host, then across hosts, then on each host again; for each round across. A host
    /// signals another once in a round, and its members share those signals out. `groups` are the
    /// members by host, this one at (host, place).
    pub(crate) fn rounds_by_host(
        self,
        groups: &[Vec<u32>],
        (host, place): (usize, usize),
    ) -> Vec<Round> {
        let max_pes_per_host = groups.iter().map(Vec::len).max().unwrap_or(0);
        let levels = self.levels(max_pes_per_host, groups.len());
        let group = groups.get(host).map_or(&[][..], Vec::as_slice);
        let sharer = |host: usize, k: usize| {
            let group = groups.get(host).map_or(&[][..], Vec::as_slice);
            group
                .get(k % group.len().max(1))
                .copied()
                .unwrap_or(u32::MAX)
        };
        let meet = |number: usize| {
            let on_host = Dissemination {
                first: number * levels.on_host_slots,
                ..levels.on_host
            };
            on_host.of(
                (group.len(), place),
                |_| true,
                |at, _| group.get(at).copied().unwrap_or(u32::MAX),
            )
        };
        let part = |k: usize| k % group.len().max(1) == place;
        let mut rounds = meet(0);
        let across = levels.across.of((groups.len(), host), part, sharer);
        for (number, round) in (1..).zip(across) {
            rounds.push(round);
            rounds.extend(meet(number));
        }
        rounds
    }
}
