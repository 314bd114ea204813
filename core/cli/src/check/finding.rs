//! Findings: the lines that the check prints.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The weight of a finding. A greater one is worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    Ok,
    /// Nothing could be seen, for want of rights or because the kernel does not tell.
    Unseen,
    /// Jobs run, but slower than they could, or some of them fail.
    Warning,
    /// Jobs fail, or have wrong data.
    Fault,
}

impl Level {
    pub fn name(self) -> &'static str {
        match self {
            Level::Ok => "ok",
            Level::Unseen => "unseen",
            Level::Warning => "warning",
            Level::Fault => "FAULT",
        }
    }
}

/// One line of the check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    pub level: Level,
    /// The thing that was looked at.
    pub topic: String,
    pub text: String,
    /// How to mend it, for a warning or a fault.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub mend: Option<String>,
}

impl Finding {
    pub fn ok(topic: impl Into<String>, text: impl Into<String>) -> Self {
        Self::plain(Level::Ok, topic, text)
    }

    pub fn unseen(topic: impl Into<String>, text: impl Into<String>) -> Self {
        Self::plain(Level::Unseen, topic, text)
    }

    pub fn warning(
        topic: impl Into<String>,
        text: impl Into<String>,
        mend: impl Into<String>,
    ) -> Self {
        Self {
            mend: Some(mend.into()),
            ..Self::plain(Level::Warning, topic, text)
        }
    }

    pub fn fault(
        topic: impl Into<String>,
        text: impl Into<String>,
        mend: impl Into<String>,
    ) -> Self {
        Self {
            mend: Some(mend.into()),
            ..Self::plain(Level::Fault, topic, text)
        }
    }

    fn plain(level: Level, topic: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            level,
            topic: topic.into(),
            text: text.into(),
            mend: None,
        }
    }

    /// Whether it counts: a warning or a fault.
    pub fn is_bad(&self) -> bool {
        self.level >= Level::Warning
    }
}

/// The widths of the columns before the text.
const LEVEL: usize = 8;
const TOPIC: usize = 22;

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { topic, text, .. } = self;
        write!(f, "{:<LEVEL$} {topic:<TOPIC$} {text}", self.level.name())?;
        match &self.mend {
            Some(mend) => write!(f, "\n{:width$}mend: {mend}", "", width = LEVEL + 1),
            None => Ok(()),
        }
    }
}

/// How many faults and warnings there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    pub faults: usize,
    pub warnings: usize,
}

impl Counts {
    pub fn of<'f>(findings: impl IntoIterator<Item = &'f Finding>) -> Self {
        let mut counts = Counts::default();
        for finding in findings {
            match finding.level {
                Level::Fault => counts.faults += 1,
                Level::Warning => counts.warnings += 1,
                Level::Ok | Level::Unseen => {}
            }
        }
        counts
    }

    /// The exit status: 1 for faults, 2 for warnings that are to count, else 0.
    pub fn status(self, strict: bool) -> u8 {
        match self {
            Counts { faults: 1.., .. } => 1,
            Counts { warnings: 1.., .. } if strict => 2,
            _ => 0,
        }
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let many = |count, what| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        write!(
            f,
            "{}, {}",
            many(self.faults, "fault"),
            many(self.warnings, "warning")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_come_before_warnings_in_the_exit_status() {
        let (fault, warning) = (
            Finding::fault("a", "b", "c"),
            Finding::warning("d", "e", "f"),
        );
        let status =
            |findings: &[&Finding], strict| Counts::of(findings.iter().copied()).status(strict);
        assert_eq!(status(&[], true), 0);
        assert_eq!(status(&[&warning], false), 0);
        assert_eq!(status(&[&warning], true), 2);
        assert_eq!(status(&[&fault], false), 1);
        assert_eq!(status(&[&warning, &fault], true), 1);
        assert_eq!(
            Counts::of([&fault, &warning, &fault]).to_string(),
            "2 faults, 1 warning"
        );
        assert!(fault.to_string().ends_with("\n         mend: c"), "{fault}");
    }
}
