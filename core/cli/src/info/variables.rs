//! Every environment variable, with the value that this process has.

use std::fmt;

use serde::Serialize;

#[derive(Serialize)]
pub struct Variable {
    name: &'static str,
    /// `None` if it is not set.
    value: Option<String>,
    default: &'static str,
    meaning: &'static str,
}

/// The variable whose value is never shown.
const SECRET: &str = "OXSHMEM_JOB_KEY";

pub fn see() -> Vec<Variable> {
    oxshmem::variables()
        .into_iter()
        .map(|variable| Variable {
            name: variable.name,
            value: std::env::var_os(variable.name).map(|value| match variable.name {
                SECRET => "(set, not shown)".into(),
                _ => value.to_string_lossy().into_owned(),
            }),
            default: variable.default,
            meaning: variable.meaning,
        })
        .collect()
}

impl Variable {
    /// Whether a user has set it. Launchers set some variables themselves.
    pub fn is_set(&self) -> bool {
        self.value.is_some() && !self.default.starts_with("set by ")
    }

    /// Writes its name and value.
    pub fn line(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<28}", self.name)?;
        match &self.value {
            Some(value) => writeln!(f, "{value}"),
            None => writeln!(f, "[{}]", self.default),
        }
    }
}

impl fmt::Display for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.line(f)?;
        let mut column = 0;
        for word in self.meaning.split_whitespace() {
            if column == 0 || column + word.len() >= 90 {
                write!(f, "{}    {word}", if column == 0 { "" } else { "\n" })?;
                column = 4 + word.len();
            } else {
                write!(f, " {word}")?;
                column += 1 + word.len();
            }
        }
        writeln!(f)
    }
}
