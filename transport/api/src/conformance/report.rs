//! The verdicts of a run, and the outcome of one check.

use std::fmt;

/// The verdict of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The transport kept what it declares.
    Passed,
    /// The transport declares nothing that this check could try; which declaration, in words.
    NotApplicable(String),
    /// It broke a declaration; how, in words.
    Failed(String),
}

/// The verdicts of a run.
#[derive(Clone, Debug)]
#[must_use]
pub struct Report {
    /// The transport's name.
    pub transport: &'static str,
    /// Each check's name and verdict, in the order run.
    pub checks: Vec<(&'static str, Verdict)>,
}

impl Report {
    /// Whether at least one check ran and none failed.
    #[must_use]
    pub fn passed(&self) -> bool {
        !self.checks.is_empty()
            && !self
                .checks
                .iter()
                .any(|(_, verdict)| matches!(verdict, Verdict::Failed(_)))
    }

    /// The verdict of a check; none if no check of that name ran.
    #[must_use]
    pub fn verdict(&self, check: &str) -> Option<&Verdict> {
        self.checks
            .iter()
            .find(|(name, _)| *name == check)
            .map(|(_, verdict)| verdict)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "conformance of {}:", self.transport)?;
        for (name, verdict) in &self.checks {
            match verdict {
                Verdict::Passed => writeln!(f, "  passed  {name}")?,
                Verdict::NotApplicable(why) => writeln!(f, "  n/a     {name}: {why}")?,
                Verdict::Failed(how) => writeln!(f, "  FAILED  {name}: {how}")?,
            }
        }
        Ok(())
    }
}

/// The end of a check that found nothing wrong.
pub(super) enum Done {
    Tried,
    /// Nothing was declared that could have been tried.
    Free(&'static str),
}

/// The outcome of a check; the error says which declaration was broken, and how.
pub(super) type Found<T = Done> = Result<T, String>;
