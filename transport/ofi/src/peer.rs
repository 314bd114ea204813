//! The other side of a domain's traffic: one PE, as this domain knows it.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use oxshmem_transport::{Error, Pe, Reply};

use crate::atomics::AtomicSet;
use crate::fabric::endpoint::PeerAddress;
use crate::fabric::fault::{code_of, is_loss};
use crate::limits::{NAME, WINDOW};
use crate::watch::Watch;
use crate::wire::Key;

/// The time for a connection with a PE that was connected before, in times for a first one.
const AGAIN: u32 = 3;

/// The failure of the connection with a PE.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    /// Whether the connection broke, as it does when a PE dies. A PE that was never heard is not lost by that.
    pub is_loss: bool,
    /// The provider's reason, in words.
    pub why: String,
}

impl Failure {
    /// The failure of an operation that the provider did not take.
    pub(crate) fn of(error: &Error) -> Failure {
        Failure {
            is_loss: code_of(error).is_some_and(is_loss),
            why: error.to_string(),
        }
    }

    /// A failure that is no sign of the PE's death.
    pub(crate) fn other(why: impl Into<String>) -> Failure {
        Failure {
            is_loss: false,
            why: why.into(),
        }
    }
}

/// A message that came before those that it has to follow.
pub(crate) type Early = Vec<u8>;

/// One PE.
#[derive(Debug, Default)]
pub(crate) struct PeerState {
    /// Its endpoint's address, and the number that its messages must have; none before its domain was judged.
    pub known: Option<(Vec<u8>, u64)>,
    /// The provider's atomics on its words.
    pub atomics: AtomicSet,
    /// Its place in the address vector, once used.
    pub address: Option<PeerAddress>,
    pub lost: bool,
    pub failure: Option<Failure>,
    pub was_heard: bool,
    /// The number of the last numbered message to it, and of the last that it has served.
    pub sent: u64,
    pub served: u64,
    /// The number of the last message of it that was served here.
    pub received: u64,
    pub early: BTreeMap<u64, Early>,
    /// The last of those of which it was told that they were.
    pub acknowledged: u64,
    /// Whether it is owed the news that the connection with it has failed here.
    pub owes_end: bool,
    /// The region of this side that a put of it named wrongly: nothing more of it is served.
    pub refused: Option<u32>,
    /// Whether it is owed that news.
    pub owes_refusal: bool,
    /// Whether the provider has ever taken an operation to it.
    pub was_reached: bool,
    /// The first time that the provider took no operation to it, since it last took one.
    pub refused_since: Option<Instant>,
    /// The round in which the provider took no more to it.
    pub full_in: u64,
    /// Operations to it on memory in place.
    pub in_place: u32,
    /// The watch over messages to it that it does not serve.
    pub watch: Watch,
    /// Whether it is to be asked what it has served.
    pub owes_question: bool,
    /// Its question that has no answer yet.
    pub asks: Option<u64>,
    /// Replies to it, each with the lane that it is for.
    pub replies: VecDeque<(u64, Reply)>,
    /// Whether it is listed among those to which something is owed.
    pub is_due: bool,
    /// Slots with operations to it.
    pub in_flight: u32,
    /// Its regions, imported.
    pub regions: BTreeMap<u32, Key>,
}

impl PeerState {
    /// Whether it may be sent one more numbered message before it has served others.
    pub(crate) fn has_window(&self) -> bool {
        self.sent - self.served < WINDOW
    }

    /// The provider has taken an operation to it.
    pub(crate) fn reached(&mut self) {
        self.was_reached = true;
        self.refused_since = None;
    }

    /// Whether the provider has operations to it.
    pub(crate) fn is_under_way(&self) -> bool {
        self.in_flight > 0 || self.in_place > 0
    }

    /// The provider takes no operation to it in this round. Gives the reason if it has not for longer than `timeout`, or,
    /// where it once has, for [`AGAIN`] times as long.
    pub(crate) fn refused(
        &mut self,
        round: u64,
        now: Instant,
        timeout: Duration,
    ) -> Option<String> {
        self.full_in = round;
        if self.is_under_way() {
            // There is a connection, and no room in it.
            self.refused_since = None;
            return None;
        }
        let since = *self.refused_since.get_or_insert(now);
        let (again, timeout) = match self.was_reached || self.was_heard {
            false => ("", timeout),
            true => (" again", AGAIN * timeout),
        };
        let waited = now.saturating_duration_since(since);
        (waited > timeout).then(|| {
            format!(
                "there was no connection{again} within {} seconds: see whether its interface and this PE's reach each other, \
                 whether a firewall is between them, and whether the limit of open files is too low (ulimit -n); \
                 OXSHMEM_OFI_CONNECT_TIMEOUT is the time",
                timeout.as_secs()
            )
        })
    }

    /// The error of operations to it, if it takes none.
    pub(crate) fn refusal(&self, pe: Pe) -> Option<Error> {
        if self.lost {
            return Some(Error::PeerLost {
                transport: NAME,
                pe,
            });
        }
        let failure = self.failure.as_ref()?;
        Some(match failure.is_loss {
            true => Error::PeerLost {
                transport: NAME,
                pe,
            },
            false => Error::Connection {
                transport: NAME,
                pe,
                why: failure.why.clone(),
            },
        })
    }

    /// Whether operations to it have ended, for whatever reason.
    pub(crate) fn is_gone(&self) -> bool {
        self.lost || self.failure.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: Duration = Duration::from_secs(7);

    #[test]
    fn a_pe_that_is_not_reached_fails_after_a_while_and_one_that_was_is_waited_for_longer() {
        let start = Instant::now();
        let later = start + TIME + Duration::from_secs(1);
        let mut peer = PeerState::default();
        assert!(peer.refused(1, start, TIME).is_none());
        assert!(peer.refused(2, start + TIME, TIME).is_none());
        let why = peer.refused(3, later, TIME).unwrap();
        assert!(
            why.contains("no connection within 7 s") && why.contains("firewall"),
            "{why}"
        );

        for was_heard in [false, true] {
            let mut peer = PeerState {
                was_heard,
                ..PeerState::default()
            };
            if !was_heard {
                peer.reached();
            }
            assert!(peer.refused(1, start, TIME).is_none());
            assert!(peer.refused(2, later, TIME).is_none());
            let why = peer.refused(3, start + AGAIN * TIME + TIME, TIME).unwrap();
            assert!(why.contains("no connection again within 21 s"), "{why}");
            // The time begins with the last operation that was taken.
            peer.reached();
            assert!(peer.refused(4, start + 5 * TIME, TIME).is_none());
        }
    }

    #[test]
    fn a_pe_with_operations_under_way_is_connected_and_waited_for_without_end() {
        let start = Instant::now();
        let mut peer = PeerState {
            in_flight: 1,
            was_reached: true,
            ..PeerState::default()
        };
        for hours in 0..5 {
            let now = start + Duration::from_secs(3600 * hours);
            assert!(peer.refused(1, now, TIME).is_none());
        }
        peer.in_flight = 0;
        let now = start + Duration::from_secs(3600 * 5);
        assert!(peer.refused(1, now, TIME).is_none(), "it ended just now");
    }
}
