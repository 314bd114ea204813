//! The checks that need the whole text.

use super::Parser;
use crate::error::Error;
use crate::program::{MemoryModel, Program, Statement};

impl Parser {
    /// The finished program. `last` is the text's last line.
    pub(super) fn finish(mut self, last: usize) -> Result<Program, Error> {
        let at_end = |problem: &str, remedy: &str| Error::Syntax {
            line: last.max(1),
            column: 1,
            problem: problem.into(),
            remedy: remedy.into(),
        };
        if self.program.name.is_empty() {
            return Err(at_end("the program has no name", "add a line `name …`"));
        }
        if self.sections.is_empty() {
            let remedy = "add `PE 0:` and statements below it";
            return Err(at_end("the program has no PE", remedy));
        }
        self.program.statements.resize_with(self.pes, Vec::new);
        self.lines.resize_with(self.pes, Vec::new);
        if self.program.models.is_empty() {
            self.program.models = MemoryModel::ALL.into();
        }
        self.check_expectations()?;
        self.check_collectives()?;
        Ok(self.program)
    }

    /// Checks that expectations name parts of the outcome, and models of the program.
    pub(super) fn check_expectations(&self) -> Result<(), Error> {
        let models = &self.program.models;
        let stray = self.named_models.iter().find(|m| !models.contains(&m.2));
        if let Some(&(line, column, model)) = stray {
            return Err(Error::Syntax {
                line,
                column,
                problem: format!("the program is not meant for the {model} model"),
                remedy: "name it in `models` too, or leave this out".into(),
            });
        }
        let registers = self.registers.iter().map(ToString::to_string);
        let observed = self.program.observed.iter();
        let observed = observed.map(|&place| format!("[{}]", self.program.place_name(place)));
        let labels: Vec<_> = registers.chain(observed).collect();
        match self.conditions.iter().find(|c| !labels.contains(&c.label)) {
            None => Ok(()),
            Some(condition) => Err(Error::Syntax {
                line: condition.line,
                column: condition.column,
                problem: format!("{} is not part of the outcome", condition.label),
                remedy: "name a register that some statement writes, or a word of `observe`".into(),
            }),
        }
    }

    /// Checks that all PEs call the same collectives in the same order (M36).
    fn check_collectives(&self) -> Result<(), Error> {
        let of = |pe: usize| {
            let lines = self.lines.get(pe).into_iter().flatten();
            let all = self.program.statements(pe).iter().zip(lines);
            all.filter(|(statement, _)| statement.is_collective())
        };
        let text = |statement: Option<&Statement>| match statement {
            Some(statement) => format!("`{}`", self.program.statement_text(statement)),
            None => "none".into(),
        };
        for pe in 1..self.pes {
            let (mut first, mut other) = (of(0), of(pe));
            for count in 1.. {
                let (a, b) = (first.next(), other.next());
                if a.is_none() && b.is_none() {
                    break;
                }
                if a.map(|a| a.0) != b.map(|b| b.0) {
                    return Err(Error::Syntax {
                        line: b.or(a).map_or(1, |(_, &line)| line),
                        column: 1,
                        problem: format!(
                            "collective {count} of PE {pe} is {}, and that of PE 0 is {}",
                            text(b.map(|b| b.0)),
                            text(a.map(|a| a.0))
                        ),
                        remedy: "all PEs call the same collectives in the same order".into(),
                    });
                }
            }
        }
        Ok(())
    }
}
