//! The connections of a lane that are being made again, each by a request to its PE. The requests are on their way together:
//! PEs whose hosts have died at one time are given up at one time. Data only.

use std::time::{Duration, Instant};

use crate::control::pending::{PendingCall, Reply};

/// The longest wait for the reply of a PE. Its bootstrap's service replies at once, if it lives; a host that has died says
/// nothing.
const LIMIT: Duration = Duration::from_secs(10);

/// The connections that are being made again.
#[derive(Default)]
pub(crate) struct Reconnections(Vec<Reconnection>);

struct Reconnection {
    request: PendingCall,
    deadline: Instant,
}

/// The end of a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The PE has replied.
    Replied(Reply),
    /// It has not replied in time.
    Late,
    /// It was lost meanwhile.
    Lost,
}

impl Reconnections {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A request was sent. An earlier one to the same PE counts no more.
    pub(crate) fn begin(&mut self, request: PendingCall, now: Instant) {
        self.0.retain(|known| known.request.pe != request.pe);
        self.0.push(Reconnection {
            request,
            deadline: now + LIMIT,
        });
    }

    /// Takes a request that has ended, with its PE.
    pub(crate) fn take_ended(
        &mut self,
        now: Instant,
        is_lost: impl Fn(usize) -> bool,
    ) -> Option<(usize, Outcome)> {
        for (at, Reconnection { request, deadline }) in self.0.iter().enumerate() {
            let outcome = if is_lost(request.pe) {
                Outcome::Lost
            } else if let Some(reply) = request.take_reply() {
                Outcome::Replied(reply)
            } else if now >= *deadline {
                Outcome::Late
            } else {
                continue;
            };
            let ended = self.0.swap_remove(at);
            return Some((ended.request.pe, outcome));
        }
        None
    }

    /// Cancels all requests; gives their PEs.
    pub(crate) fn cancel(&mut self) -> impl Iterator<Item = usize> {
        self.0.drain(..).map(|known| known.request.pe)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::pending::ControlRequests;

    const NONE_LOST: fn(usize) -> bool = |_| false;

    /// Requests to PEs 3, 4 and 5, sent at one time.
    fn begun(requests: &ControlRequests, now: Instant) -> Reconnections {
        let mut all = Reconnections::default();
        for pe in [3, 4, 5] {
            all.begin(requests.begin(pe), now);
        }
        all
    }

    #[test]
    fn pes_that_do_not_reply_are_given_up_together() {
        let (requests, now) = (ControlRequests::default(), Instant::now());
        let mut all = begun(&requests, now);
        let before = now + LIMIT - Duration::from_millis(1);
        assert_eq!(all.take_ended(before, NONE_LOST), None);
        let ended = std::iter::from_fn(|| all.take_ended(now + LIMIT, NONE_LOST));
        let mut ended: Vec<_> = ended.collect();
        ended.sort_by_key(|(pe, _)| *pe);
        let late = [3, 4, 5].map(|pe| (pe, Outcome::Late));
        assert_eq!(ended, late);
        assert!(all.is_empty());
    }

    #[test]
    fn each_reply_ends_its_own_request_even_if_nobody_has_looked_in_time() {
        let (requests, now) = (ControlRequests::default(), Instant::now());
        let mut all = begun(&requests, now);
        // A second request to a PE takes the place of the first.
        let again = requests.begin(4);
        let number = again.number;
        all.begin(again, now);
        requests.answered(4, number, Ok(vec![7]));
        let replied = Some((4, Outcome::Replied(Ok(vec![7]))));
        assert_eq!(
            all.take_ended(now + LIMIT, |pe| pe != 4),
            Some((3, Outcome::Lost))
        );
        assert_eq!(all.take_ended(now, NONE_LOST), replied);
        assert_eq!(all.take_ended(now, NONE_LOST), None);
        assert_eq!(all.cancel().collect::<Vec<_>>(), [5]);
        assert!(all.is_empty());
    }
}
