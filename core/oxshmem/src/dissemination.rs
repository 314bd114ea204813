//! The arrival itself: who tells whom what in which round, and what is known at its end.
//!
//! How a word is written and waited for is a [`Post`]'s business: [`crate::sync`] does it in symmetric
//! memory; the model check in `tests/loom_park.rs` compiles this same file over loom's atomics.

use crate::primitive::{Ordering, fence};

/// Two PEs are in different collective calls.
pub(crate) const MISMATCH: u64 = 1 << 31;
/// The call failed on some PE.
pub(crate) const FAILED: u64 = 1 << 30;
/// The sender gave the call up midway and takes part in none any more.
pub(crate) const ABORTED: u64 = 1 << 29;
/// The sender has read what the hearer gives in an [`arrive_reading`].
const READ: u64 = 1 << 28;
/// The bits that tell one call from another.
pub(crate) const SIGNATURE: u64 = READ - 1;

/// A word's place among those of who hears it, and the member at its other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SyncSlot {
    pub slot: u32,
    pub member: u32,
}

/// What one member does in a round: it tells all, then hears all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Round {
    pub sends: Box<[SyncSlot]>,
    pub receives: Box<[SyncSlot]>,
}

/// How words get from one PE to another.
pub(crate) trait SyncWords {
    type Error;
    /// Writes a word of another member's, after (Release) all stores made before.
    fn tell(&self, mail: SyncSlot, word: u64) -> Result<(), Self::Error>;
    /// All words that are told together are written, and a full fence made.
    fn fenced(&self);
    /// Wakes a member if it sleeps. The fence came before.
    fn wake(&self, member: u32);
    /// Waits for a member's word, until [`accepts`] does; reads it with Acquire.
    fn await_signal(&self, mail: SyncSlot) -> Result<u64, Self::Error>;
    /// A member's word as it is, read with Acquire.
    fn load_acquire(&self, mail: SyncSlot) -> u64;
    /// Waits until `ready` gives something, for which this word, perhaps beside others, has to change: what the member
    /// tells by it is said first.
    fn wait<R>(
        &self,
        what: &'static str,
        mail: SyncSlot,
        ready: impl FnMut() -> Option<R>,
    ) -> Result<R, Self::Error>;
}

/// What a member tells, for those who ask what is waited for.
pub(crate) const ARRIVES: &str = "its arrival";
const HAS_READ: &str = "its having read what this PE gives";

/// A word as it travels.
pub(crate) fn word(epoch: u32, known: u64) -> u64 {
    u64::from(epoch) << 32 | known
}

/// Whether a word is what a PE in `epoch` waits for: one of that epoch, or a later one that says that
/// its sender gave up. Epochs wrap; two PEs are never more than one apart, two with the latter.
#[inline(always)]
pub(crate) fn accepts(word: u64, epoch: u32) -> bool {
    let ahead = ((word >> 32) as u32).wrapping_sub(epoch) as i32;
    ahead == 0 || (ahead > 0 && word & ABORTED != 0)
}

/// Tells some members a word, after all stores made before, and wakes them.
#[inline]
pub(crate) fn signal<P: SyncWords>(
    post: &P,
    to: impl Iterator<Item = SyncSlot> + Clone,
    word: u64,
) -> Result<(), P::Error> {
    for mail in to.clone() {
        post.tell(mail, word)?;
    }
    // Makes this PE's earlier stores visible, and orders the words before the look at the sleepers
    // (park::ring).
    fence(Ordering::SeqCst);
    post.fenced();
    for mail in to {
        post.wake(mail.member);
    }
    Ok(())
}

/// All rounds of one epoch. `known` is this PE's digest and flags; gives the flags of all, and this
/// PE's digest.
#[inline]
pub(crate) fn barrier<P: SyncWords>(
    post: &P,
    rounds: &[Round],
    epoch: u32,
    mut known: u64,
) -> Result<u64, P::Error> {
    for round in rounds {
        signal(post, round.sends.iter().copied(), word(epoch, known))?;
        for mail in &round.receives {
            known = with(known, post.await_signal(*mail)?);
        }
    }
    Ok(known)
}

/// What is known after one more word.
#[inline]
fn with(known: u64, theirs: u64) -> u64 {
    let flags = theirs & (MISMATCH | FAILED | ABORTED);
    match (theirs ^ known) & SIGNATURE {
        0 => known | flags,
        _ => known | flags | MISMATCH,
    }
}

/// An epoch of one round, in which all hear of all: each member reads what others give as soon as they
/// are here and tells those alone, before it waits for more, and leaves when all have read what it gives itself. Where members take turns
/// on few CPUs that is one turn of each: who comes later has read before the next turn of who came earlier.
///
/// `read` is given a member, this one first; none any more when this one has failed, or one has been heard that failed
/// or made another call, of which all hear.
pub(crate) fn barrier_with_gather<P: SyncWords>(
    post: &P,
    round: &Round,
    (epoch, me): (u32, u32),
    known: u64,
    read: impl FnMut(u32) -> Result<(), P::Error>,
) -> Result<u64, P::Error> {
    let arrived = read_as_they_come(post, round, (epoch, me), known, read);
    if arrived.is_err() {
        // Who may still be reading what this PE gives, and its caller now has back, is not to find that all went well.
        for mail in &round.sends {
            // Who cannot be told has not been told that it was read either, or is lost.
            let _ = post.tell(*mail, word(epoch, known));
        }
        fence(Ordering::SeqCst);
        post.fenced();
    }
    arrived
}

fn read_as_they_come<P: SyncWords>(
    post: &P,
    round: &Round,
    (epoch, me): (u32, u32),
    mut known: u64,
    mut read: impl FnMut(u32) -> Result<(), P::Error>,
) -> Result<u64, P::Error> {
    let good = |known: u64| known & (MISMATCH | FAILED | ABORTED) == 0;
    let done = word(epoch, known & SIGNATURE | READ);
    signal(post, round.sends.iter().copied(), word(epoch, known))?;
    if good(known) {
        read(me)?;
    }
    // The first to be heard, of all behind, is the last to be told, of all ahead.
    let pairs = round.receives.iter().zip(round.sends.iter().rev());
    let mut unheard: Vec<(SyncSlot, SyncSlot)> = pairs.map(|(hear, tell)| (*hear, *tell)).collect();
    debug_assert!(
        unheard
            .iter()
            .all(|(hear, tell)| hear.member == tell.member)
    );
    // A fence waits for all that has been copied: who has been read is told with the others whose turn it was.
    let mut untold = Vec::new();
    while let Some((first, _)) = unheard.first() {
        let here = || {
            let words = unheard.iter().map(|(hear, _)| post.load_acquire(*hear));
            words.enumerate().find(|(_, word)| accepts(*word, epoch))
        };
        let (at, theirs) = match here() {
            Some(come) => come,
            None => {
                tell_read(post, &mut untold, done)?;
                post.wait(ARRIVES, *first, here)?
            }
        };
        let (_, reader) = unheard.remove(at);
        known = with(known, theirs);
        if good(known) {
            read(reader.member)?;
            untold.push(reader);
        }
    }
    tell_read(post, &mut untold, done)?;
    if !good(known) {
        return Ok(known);
    }
    for mail in &round.receives {
        let theirs = post.wait(HAS_READ, *mail, || {
            let theirs = post.load_acquire(*mail);
            (accepts(theirs, epoch) && theirs & (READ | ABORTED) != 0).then_some(theirs)
        })?;
        known |= theirs & ABORTED;
    }
    Ok(known)
}

/// Tells those who have been read, if any.
fn tell_read<P: SyncWords>(
    post: &P,
    untold: &mut Vec<SyncSlot>,
    done: u64,
) -> Result<(), P::Error> {
    if !untold.is_empty() {
        signal(post, untold.iter().copied(), done)?;
        untold.clear();
    }
    Ok(())
}

/// Dissemination: in round r each of a group tells those at distances k·radixʳ (0 < k < radix) and hears
/// from as many, so that after ⌈log_radix n⌉ rounds each has heard, directly or not, of all.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dissemination {
    pub radix: usize,
    /// The slot of the first round's first word.
    pub first: usize,
}

impl Dissemination {
    /// Rounds of a group of so many.
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

    /// The rounds of who is at place `me` of a group of `count`, or has a part in what is done there:
    /// `part` says for each digit k whether it is its business. `member` is who does it at a place.
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
            let mail = |k: &usize, place: usize| SyncSlot {
                slot: (self.first + round * self.slots() + k - 1) as u32,
                member: member(place % count, *k),
            };
            let tells = digits.iter().map(|k| mail(k, me + k * distance));
            let hears = digits.iter().map(|k| mail(k, me + count - k * distance));
            rounds.push(Round {
                sends: tells.collect(),
                receives: hears.collect(),
            });
            distance *= self.radix;
        }
        rounds
    }
}

/// Radixes of the dissemination among the members of one host, and among hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HierarchicalRadix {
    pub near: usize,
    pub across: usize,
}

impl HierarchicalRadix {
    fn disseminations(
        self,
        most_near: usize,
        hosts: usize,
    ) -> (Dissemination, Dissemination, usize) {
        let near = |first| Dissemination {
            radix: self.near,
            first,
        };
        let across = |first| Dissemination {
            radix: self.across,
            first,
        };
        let stage = near(0).rounds(most_near) * near(0).slots();
        let rounds = across(0).rounds(hosts);
        (near(0), across(stage * (rounds + 1)), stage)
    }

    /// Slots that hosts need of which none has more than `most_near` members.
    pub(crate) fn slots(self, most_near: usize, hosts: usize) -> usize {
        let (_, across, _) = self.disseminations(most_near, hosts);
        across.first + across.rounds(hosts) * across.slots()
    }

    /// Arrival on each host, then across hosts, then on each host again; for each round across. What one
    /// host tells another in a round goes once, and is shared out among its members. `groups` are the
    /// members by host, this one at (host, place).
    pub(crate) fn by_host(self, groups: &[Vec<u32>], (host, place): (usize, usize)) -> Vec<Round> {
        let most_near = groups.iter().map(Vec::len).max().unwrap_or(0);
        let (near, across, stage) = self.disseminations(most_near, groups.len());
        let group = groups.get(host).map_or(&[][..], Vec::as_slice);
        let whose = |host: usize, k: usize| {
            let group = groups.get(host).map_or(&[][..], Vec::as_slice);
            group
                .get(k % group.len().max(1))
                .copied()
                .unwrap_or(u32::MAX)
        };
        let meet = |number: usize| {
            let near = Dissemination {
                first: number * stage,
                ..near
            };
            near.of(
                (group.len(), place),
                |_| true,
                |at, _| group.get(at).copied().unwrap_or(u32::MAX),
            )
        };
        let part = |k: usize| k % group.len().max(1) == place;
        let mut rounds = meet(0);
        let links = across.of((groups.len(), host), part, whose);
        for (number, link) in (1..).zip(links) {
            rounds.push(link);
            rounds.extend(meet(number));
        }
        rounds
    }
}
