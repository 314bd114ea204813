//! The watch over messages that a PE does not serve.
//!
//! A send ends when the kernel has its data. A connection that is reset on its way (by a firewall or NAT that has forgotten
//! it, or by a cut that outlasts TCP's repetitions) loses what the kernels had, and a provider that then connects anew says
//! nothing of it. So a PE that has served nothing for a while, though messages to it are out, is asked what it has
//! received. One that does not answer may be stopped, and is waited for.

use std::time::{Duration, Instant};

/// The time after which a PE is asked.
const STILL: Duration = Duration::from_secs(4);
/// The time between two questions.
const BETWEEN: Duration = Duration::from_secs(2);
/// Answers in a row that tell of lost messages: one alone may have overtaken messages in providers that keep no order.
const ANSWERS: u32 = 3;

/// The watch over one PE.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// The number of the last message that the PE has served, and the time since when it is that one.
    served: u64,
    since: Option<Instant>,
    /// The number of the last question, of all that this PE was ever asked.
    question: u64,
    asked_at: Option<Instant>,
    /// The number of the last message before that question, if the provider was done with all of them.
    before: Option<u64>,
    /// Answers in a row that told of lost messages.
    gaps: u32,
}

impl Watch {
    /// Looks at the numbers of the last message sent and of the last served. Gives whether the PE is to be asked now.
    pub(crate) fn look(&mut self, now: Instant, sent: u64, served: u64) -> bool {
        if served == sent || served != self.served {
            *self = Watch {
                served,
                since: (served != sent).then_some(now),
                question: self.question,
                ..Watch::default()
            };
            return false;
        }
        let since = *self.since.get_or_insert(now);
        let (last, pause) = match self.asked_at {
            None => (since, STILL),
            Some(asked) => (asked, BETWEEN),
        };
        let is_time = now.saturating_duration_since(last) >= pause;
        if is_time {
            self.asked_at = Some(now);
        }
        is_time
    }

    /// The number of the next question.
    pub(crate) fn next(&self) -> u64 {
        self.question + 1
    }

    /// That question was sent behind message number `sent`. `done` if the provider was done with all messages before.
    pub(crate) fn asked(&mut self, sent: u64, done: bool) {
        self.question += 1;
        self.before = done.then_some(sent);
    }

    /// The PE has answered a question, having served `served`. Gives the number of messages that are lost for certain.
    pub(crate) fn answered(&mut self, question: u64, served: u64) -> Option<u64> {
        if question != self.question {
            return None;
        }
        let lost = self.before.take()?.saturating_sub(served);
        if lost == 0 || served != self.served {
            self.gaps = 0;
            return None;
        }
        self.gaps += 1;
        (self.gaps >= ANSWERS).then_some(lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The seconds at which a PE that has served `served` of 5 messages is asked.
    fn asked(watch: &mut Watch, seconds: std::ops::Range<u64>, served: u64) -> Vec<u64> {
        let start = Instant::now();
        let mut is_asked = |second: &u64| {
            let now = start + Duration::from_secs(*second);
            watch.look(now, 5, served)
        };
        seconds.filter(&mut is_asked).collect()
    }

    #[test]
    fn a_pe_that_has_served_nothing_for_a_while_is_asked_again_and_again() {
        let mut watch = Watch::default();
        assert_eq!(asked(&mut watch, 0..10, 3), [4, 6, 8]);
        let mut watch = Watch::default();
        assert_eq!(asked(&mut watch, 0..20, 5), [], "everything was served");
    }

    #[test]
    fn a_pe_that_serves_is_not_asked_however_slow_it_is() {
        let mut watch = Watch::default();
        let start = Instant::now();
        for served in 0..20 {
            let at = |after| start + Duration::from_secs(3 * served + after);
            assert!(!watch.look(at(0), 100, served) && !watch.look(at(2), 100, served));
        }
    }

    #[test]
    fn messages_are_lost_once_several_answers_say_so_and_nothing_was_served_meanwhile() {
        let answers = |answers: &[u64], done: bool| {
            let mut watch = Watch::default();
            assert!(!asked(&mut watch, 0..5, 3).is_empty());
            let mut lost = None;
            for served in answers {
                let question = watch.next();
                watch.asked(5, done);
                lost = watch.answered(question, *served);
            }
            lost
        };
        assert_eq!(answers(&[3, 3], true), None);
        assert_eq!(answers(&[3, 3, 3], true), Some(2));
        assert_eq!(answers(&[3, 3, 4, 3, 3], true), None);
        assert_eq!(answers(&[5, 5, 5], true), None);
        // The provider may still have them.
        assert_eq!(answers(&[3, 3, 3, 3], false), None);
    }

    #[test]
    fn an_answer_to_an_older_question_says_nothing_and_counts_once() {
        let mut watch = Watch::default();
        assert!(!asked(&mut watch, 0..5, 3).is_empty());
        for _ in 0..3 {
            watch.asked(5, true);
        }
        assert_eq!(watch.answered(1, 3), None);
        for _ in 0..5 {
            assert_eq!(watch.answered(3, 3), None, "one answer alone");
        }
    }
}
