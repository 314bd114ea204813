//! A survey of all PEs' waits at one moment, for the launcher's user or because a PE's wait lasts.

use std::time::{Duration, Instant};

use super::member::{Member, Standing};
use crate::protocol::frame::Frame;
use crate::waits::{PeState, WaitSnapshot, Waiting};

/// Time limit for the PEs' answers.
const PATIENCE: Duration = Duration::from_secs(1);
/// Delay from a PE's word that its wait lasts to the question to all: others' waits are as old, most often.
const DELAY: Duration = Duration::from_secs(1);
/// Least time between two surveys that PEs cause.
const PAUSE: Duration = Duration::from_secs(10);

/// The survey in flight, if there is one, and the time of the next.
#[derive(Debug, Default)]
pub(super) struct Survey {
    /// The number of the last survey.
    number: u32,
    open: Option<OpenSurvey>,
    /// The time at which one begins because of a PE's word.
    due: Option<Instant>,
    /// The time before which no other of that kind begins.
    not_before: Option<Instant>,
    /// The deadlock that was reported last.
    reported: Option<String>,
}

#[derive(Debug)]
struct OpenSurvey {
    since: Instant,
    states: Vec<PeState>,
    /// The owner has asked for it.
    is_owners: bool,
}

/// The outcome of a survey.
pub(super) struct SurveyResult {
    /// For the owner, if it has asked.
    pub(super) snapshot: Option<WaitSnapshot>,
    /// A deadlock that has not been reported.
    pub(super) deadlock: Option<String>,
}

impl Survey {
    /// Asks all members, unless they are being asked.
    pub(super) fn begin(&mut self, members: &mut [Member], is_owners: bool) {
        self.due = None;
        if let Some(open) = &mut self.open {
            open.is_owners |= is_owners;
            return;
        }
        self.number = self.number.wrapping_add(1);
        let question = Frame::Ask {
            question: self.number,
        };
        let question: std::sync::Arc<[u8]> = question.encode().into();
        let ask = |member: &mut Member| match member.standing {
            Standing::Absent => PeState::Absent,
            Standing::Left | Standing::Died => PeState::Gone,
            Standing::Present => {
                member.queue(question.clone());
                PeState::Silent
            }
        };
        self.open = Some(OpenSurvey {
            states: members.iter_mut().map(ask).collect(),
            since: Instant::now(),
            is_owners,
        });
    }

    /// Notes a PE's word that one of its waits lasts.
    pub(super) fn hangs(&mut self) {
        let soon = Instant::now() + DELAY;
        let at = self
            .not_before
            .map_or(soon, |not_before| soon.max(not_before));
        self.due.get_or_insert(at);
    }

    /// Notes a PE's answer.
    pub(super) fn answer(&mut self, rank: u32, question: u32, waits: Vec<Waiting>) {
        let Some(open) = self.open.as_mut().filter(|_| question == self.number) else {
            return;
        };
        let asked = open.since.elapsed();
        if let Some(state) = open.states.get_mut(rank as usize)
            && *state == PeState::Silent
        {
            // A wait that began after the question may be for an event since then.
            let had_begun = |wait: &Waiting| wait.lasted >= asked;
            *state = PeState::Told(waits.into_iter().filter(had_begun).collect());
        }
    }

    /// The time at which [`poll`](Self::poll) has something to do, if nothing comes before.
    pub(super) fn due(&self) -> Option<Instant> {
        let open = self.open.as_ref().map(|open| open.since + PATIENCE);
        open.into_iter().chain(self.due).min()
    }

    /// Begins the survey that is due, and ends the one that has all its answers.
    pub(super) fn poll(&mut self, members: &mut [Member]) -> Option<SurveyResult> {
        let now = Instant::now();
        if self.due.is_some_and(|due| due <= now) {
            self.begin(members, false);
        }
        let awaits = |(member, state): (&Member, &PeState)| {
            *state == PeState::Silent && member.standing == Standing::Present
        };
        let is_over = |open: &mut OpenSurvey| {
            open.since + PATIENCE <= now || !members.iter().zip(&open.states).any(awaits)
        };
        let open = self.open.take_if(is_over)?;
        self.not_before = Some(now + PAUSE);
        let snapshot = WaitSnapshot(open.states);
        let deadlock = snapshot.deadlock();
        let is_new = self.reported != deadlock;
        self.reported.clone_from(&deadlock);
        Some(SurveyResult {
            // The owner shows the deadlock with the rest.
            deadlock: deadlock.filter(|_| is_new && !open.is_owners),
            snapshot: open.is_owners.then_some(snapshot),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::waits::Awaited;

    /// A survey in which each PE tells that it waits for the one given, for 30 s.
    fn survey(
        survey: &mut Survey,
        members: &mut [Member],
        whom: &[u32],
        is_owners: bool,
    ) -> SurveyResult {
        survey.begin(members, is_owners);
        for (rank, whom) in (0..).zip(whom) {
            assert!(
                survey.poll(members).is_none(),
                "PE {rank} has yet to answer"
            );
            let wait = Waiting {
                call: "barrier_all".into(),
                whom: Awaited::Rank(*whom),
                what: "its word".into(),
                lasted: Duration::from_secs(30),
            };
            survey.answer(rank, survey.number, vec![wait]);
        }
        survey.poll(members).unwrap()
    }

    fn present(count: usize) -> Vec<Member> {
        let member = |_| {
            let mut member = Member::absent(1);
            member.standing = Standing::Present;
            member
        };
        (0..count).map(member).collect()
    }

    #[test]
    fn a_deadlock_is_told_once_while_it_is_the_same() {
        let (mut of, mut members) = (Survey::default(), present(3));
        let circle = [1, 2, 0];
        let mut deadlock =
            |whom, is_owners| survey(&mut of, &mut members, whom, is_owners).deadlock;
        assert!(deadlock(&circle, false).is_some());
        assert_eq!(deadlock(&circle, false), None);
        assert!(
            deadlock(&[1, 0, 0], false)
                .unwrap()
                .contains("PE 1 for PE 0")
        );
        assert_eq!(deadlock(&circle, true), None, "the owner shows it");
        assert_eq!(deadlock(&circle, false), None);
    }

    #[test]
    fn a_wait_that_began_after_the_question_is_no_part_of_the_moment() {
        let (mut survey, mut members) = (Survey::default(), present(1));
        survey.begin(&mut members, true);
        let wait = Waiting {
            call: "wait_until".into(),
            whom: Awaited::Any,
            what: String::new(),
            lasted: Duration::ZERO,
        };
        survey.answer(0, survey.number, vec![wait]);
        let snapshot = survey.poll(&mut members).unwrap().snapshot.unwrap();
        assert!(!snapshot.shows_waits());
    }

    #[test]
    fn answers_to_another_question_and_second_ones_count_nothing() {
        let (mut survey, mut members) = (Survey::default(), present(1));
        survey.answer(0, 0, Vec::new());
        survey.begin(&mut members, true);
        survey.answer(0, survey.number.wrapping_add(1), Vec::new());
        survey.answer(7, survey.number, Vec::new());
        assert!(survey.poll(&mut members).is_none());
    }

    #[test]
    fn a_pe_that_hangs_brings_a_survey_soon_and_the_next_only_later() {
        let (mut of, mut members) = (Survey::default(), present(1));
        assert_eq!(of.due(), None);
        let before = Instant::now();
        of.hangs();
        let due = of.due().unwrap();
        assert!(due >= before + DELAY);
        of.hangs();
        assert_eq!(of.due(), Some(due));
        survey(&mut of, &mut members, &[0], false);
        of.hangs();
        assert!(of.due().unwrap() >= before + PAUSE);
    }
}
