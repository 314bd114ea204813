//! The wait for the bootstrap's reports of exits, behind failures that a transport has seen.
//!
//! A transport sees at once that a PE does not answer; the bootstrap's report of that PE's exit may come a moment
//! later. The failures of one moment share one deadline: a switch that dies costs one delay, not one for each PE
//! behind it. A report that comes shows that the bootstrap works, and the next failure has a whole delay again.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The longest delay of the bootstrap's report of a PE's exit behind a transport's failure.
const REPORT_DELAY: Duration = Duration::from_secs(1);

/// The time between two looks for a report.
const LOOK: Duration = Duration::from_millis(1);

/// The clock of a wait. Tests have one of their own.
pub(crate) trait Clock {
    /// The time now.
    fn now(&self) -> Instant;
    /// Waits.
    fn sleep(&self, time: Duration);
}

/// The machine's clock.
#[derive(Debug)]
pub(crate) struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Instant {
        Instant::now()
    }

    fn sleep(&self, time: Duration) {
        std::thread::sleep(time);
    }
}

/// Failures that follow each other, none of which the bootstrap has explained.
#[derive(Clone, Copy, Debug)]
struct Burst {
    /// The end of the wait for reports: [`REPORT_DELAY`] after the first failure.
    deadline: Instant,
    /// The last failure, or the deadline, if that is later.
    last: Instant,
}

/// The deadline that all failures of a moment share.
#[derive(Debug, Default)]
pub(crate) struct ExitReports(Mutex<Option<Burst>>);

impl ExitReports {
    /// Waits until a PE's exit `is_known`, or the failures of this moment have waited long enough. Gives whether it is.
    pub(crate) fn wait(&self, clock: &impl Clock, is_known: impl Fn() -> bool) -> bool {
        if is_known() {
            return true;
        }
        let deadline = self.deadline(clock.now());
        while clock.now() < deadline {
            clock.sleep(LOOK);
            if is_known() {
                self.update(|burst| *burst = None);
                return true;
            }
        }
        false
    }

    fn update<R>(&self, change: impl FnOnce(&mut Option<Burst>) -> R) -> R {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The end of the wait for the report behind a failure that is seen now. One that follows the last, or the end of
    /// its wait, within the delay belongs to the same burst: it was there to be seen while that was waited for.
    fn deadline(&self, now: Instant) -> Instant {
        self.update(|burst| {
            let known = burst.filter(|burst| now <= burst.last + REPORT_DELAY);
            let deadline = known.map_or(now + REPORT_DELAY, |burst| burst.deadline);
            let last = now.max(deadline);
            *burst = Some(Burst { deadline, last });
            deadline
        })
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// A clock that only its waits move.
    struct Simulated(Cell<Instant>);

    impl Simulated {
        fn new() -> Simulated {
            Simulated(Cell::new(Instant::now()))
        }

        fn pass(&self, time: Duration) {
            self.0.set(self.0.get() + time);
        }

        /// The time that something takes.
        fn of(&self, run: impl FnOnce()) -> Duration {
            let since = self.0.get();
            run();
            self.0.get() - since
        }
    }

    impl Clock for Simulated {
        fn now(&self) -> Instant {
            self.0.get()
        }

        fn sleep(&self, time: Duration) {
            self.pass(time);
        }
    }

    #[test]
    fn a_thousand_failures_of_a_moment_wait_once() {
        let (reports, clock) = (ExitReports::default(), Simulated::new());
        let waited = clock.of(|| {
            for _ in 0..1000 {
                assert!(!reports.wait(&clock, || false));
            }
        });
        assert_eq!(waited, REPORT_DELAY);
    }

    #[test]
    fn failures_that_come_one_by_one_share_the_deadline_of_the_first() {
        let (reports, clock) = (ExitReports::default(), Simulated::new());
        let waited = clock.of(|| {
            for _ in 0..8 {
                reports.wait(&clock, || false);
                clock.pass(REPORT_DELAY / 2);
            }
        });
        assert_eq!(waited, REPORT_DELAY + 8 * (REPORT_DELAY / 2));
    }

    #[test]
    fn a_failure_long_after_has_a_deadline_of_its_own() {
        let (reports, clock) = (ExitReports::default(), Simulated::new());
        reports.wait(&clock, || false);
        clock.pass(2 * REPORT_DELAY);
        let waited = clock.of(|| assert!(!reports.wait(&clock, || false)));
        assert_eq!(waited, REPORT_DELAY);
    }

    #[test]
    fn a_report_ends_the_wait_and_the_next_failure_has_the_whole_delay() {
        let (reports, clock) = (ExitReports::default(), Simulated::new());
        let late = clock.now() + REPORT_DELAY * 9 / 10;
        let known = || clock.now() >= late;
        assert!(!known() && reports.wait(&clock, known));
        assert_eq!(clock.now(), late);
        let other = late + REPORT_DELAY * 9 / 10;
        assert!(reports.wait(&clock, || clock.now() >= other));
    }

    #[test]
    fn a_known_exit_takes_no_time() {
        let (reports, clock) = (ExitReports::default(), Simulated::new());
        let waited = clock.of(|| assert!(reports.wait(&clock, || true)));
        assert_eq!(waited, Duration::ZERO);
    }
}
