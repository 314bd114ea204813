//! One wait that lasts: its deadline, its entry in the list of long waits, and its reports.

use std::time::{Duration, Instant};

use crate::call_site::called_at;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::progress::long_waits::WaitedFor;
use crate::report;

/// The time of the first report of a wait.
const FIRST: Duration = Duration::from_secs(30);
/// The time between two reports doubles up to this.
const LONGEST: Duration = Duration::from_secs(30 * 60);
/// The time from which on a wait is in the list.
const LISTED_AFTER: Duration = Duration::from_millis(100);

/// The time after which its description is renewed: the value of the awaited word may be in it.
const RENEWED_AFTER: Duration = Duration::from_secs(1);

/// The times of a wait's reports: after 30 s, 1 min, 2 min, and so on, at last every half an hour.
#[derive(Debug)]
struct Reports {
    next: Duration,
}

impl Reports {
    /// Whether a report is due in a wait that has lasted so long.
    fn due(&mut self, waited: Duration) -> bool {
        let due = waited >= self.next;
        while waited >= self.next {
            self.next += self.next.min(LONGEST);
        }
        due
    }
}

/// One wait that was not over at once.
pub(crate) struct LongWait<'s> {
    engine: &'s Engine,
    call: &'static str,
    since: Instant,
    reports: Reports,
    /// The time of the last entry in the list, once it is there.
    listed: Option<Instant>,
}

impl<'s> LongWait<'s> {
    pub(crate) fn new(engine: &'s Engine, call: &'static str) -> Self {
        LongWait {
            engine,
            call,
            since: Instant::now(),
            reports: Reports { next: FIRST },
            listed: None,
        }
    }

    pub(crate) fn lasted(&self) -> Duration {
        self.since.elapsed()
    }

    /// Lists and reports a wait that has lasted long enough for that; fails at its deadline.
    pub(crate) fn goes_on(&mut self, describe: &dyn Fn() -> (WaitedFor, String)) -> Result<()> {
        let (engine, call, waited) = (self.engine, self.call, self.since.elapsed());
        if let Some(limit) = engine.timeout.filter(|limit| waited >= *limit) {
            let (whom, what) = describe();
            return Err(Error::Timeout {
                call,
                me: engine.me,
                whom: whom.to_string(),
                what,
                waited,
                limit,
            });
        }
        let is_old = match self.listed {
            None => waited >= LISTED_AFTER,
            Some(listed) => listed.elapsed() >= RENEWED_AFTER,
        };
        if is_old {
            self.unlist();
            let (whom, what) = describe();
            let what = what + &called_at(engine.sources);
            engine.long_waits.add(call, whom, what, self.since);
            self.listed = Some(Instant::now());
        }
        if self.reports.due(waited) {
            let (whom, what) = describe();
            let what = what + &called_at(engine.sources);
            report::warn(&report_of(engine.me, call, whom, &what, waited));
            engine.bootstrap.hangs();
        }
        Ok(())
    }

    fn unlist(&mut self) {
        if self.listed.take().is_some() {
            self.engine.long_waits.remove();
        }
    }
}

impl Drop for LongWait<'_> {
    fn drop(&mut self) {
        self.unlist();
        if let Some(observer) = &self.engine.wait_observer {
            observer(self.call, self.since.elapsed());
        }
    }
}

/// The report of a wait.
fn report_of(me: usize, call: &str, whom: WaitedFor, what: &str, waited: Duration) -> String {
    let may = match whom {
        WaitedFor::Any => "; any PE may end this wait",
        _ => "",
    };
    let seconds = waited.as_secs();
    format!("PE {me} has waited {seconds} s in {call} for {whom}: {what}{may}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_come_ever_less_often() {
        let mut reports = Reports { next: FIRST };
        let times = (0..8 * 60 * 60).filter(|second| reports.due(Duration::from_secs(*second)));
        let times: Vec<u64> = times.collect();
        assert_eq!(times[..8], [30, 60, 120, 240, 480, 960, 1920, 3720]);
        assert!(times[8..].windows(2).all(|pair| pair[1] - pair[0] == 1800));
    }

    #[test]
    fn a_report_is_not_repeated_for_time_that_was_slept_through() {
        let mut reports = Reports { next: FIRST };
        assert!(reports.due(Duration::from_secs(100)));
        assert!(!reports.due(Duration::from_secs(100)));
        assert!(reports.due(Duration::from_secs(120)));
    }

    #[test]
    fn a_wait_that_any_pe_may_end_says_so() {
        let waited = Duration::from_secs(30);
        let report = report_of(1, "wait_until", WaitedFor::Any, "5 words", waited);
        assert_eq!(
            report,
            "PE 1 has waited 30 s in wait_until for any PE: 5 words; any PE may end this wait"
        );
        let report = report_of(0, "barrier_all", WaitedFor::Pe(2), "its word", waited);
        assert_eq!(
            report,
            "PE 0 has waited 30 s in barrier_all for PE 2: its word"
        );
    }
}
