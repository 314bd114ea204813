//! The printed table: a line for each program, and a sum.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::process::ExitCode;
use std::time::Duration;

use oxshmem_litmus::{ForbiddenOutcome, MemoryModel, Outcome, Outcomes, Program, Report, Verdict};

use super::args::Args;
use super::platform::Platform;
use super::refused::REFUSED;
use super::replay::Replay;
use super::runs::Ran;
use crate::output;

const INCOMPLETE: u8 = 3;

/// The lines printed so far, and their totals.
pub struct Table<'a> {
    args: &'a Args,
    platform: Platform,
    programs: &'a [Program],
    /// Width of the column of names.
    width: usize,
    /// Names of the programs that ran.
    names: BTreeSet<String>,
    /// Runs of programs; one that ran in two models counts twice.
    ran: usize,
    skipped: usize,
    runs: u64,
    allowed: usize,
    seen: usize,
    /// Programs with a forbidden outcome.
    forbidden: usize,
    incomplete: usize,
    unmet: usize,
}

impl<'a> Table<'a> {
    pub fn new(args: &'a Args, platform: Platform, programs: &'a [Program]) -> Self {
        let names = programs
            .iter()
            .map(|program| program.name().chars().count());
        Table {
            args,
            platform,
            programs,
            width: names.max().unwrap_or(0),
            names: BTreeSet::new(),
            ran: 0,
            skipped: 0,
            runs: 0,
            allowed: 0,
            seen: 0,
            forbidden: 0,
            incomplete: 0,
            unmet: 0,
        }
    }

    /// Prints one program's lines.
    pub fn add(
        &mut self,
        outcomes: &Outcomes<'_>,
        program: &Program,
        ran: Ran,
    ) -> anyhow::Result<()> {
        let mut text = String::new();
        // Writing to a `String` cannot fail, so its result is ignored.
        let line = |text: &mut String, verdict: &str, rest: String| {
            let (name, model, width) = (program.name(), outcomes.model(), self.width);
            let _ = writeln!(text, "{verdict:<10}  {name:width$}  {model}  {rest}");
        };
        match ran {
            Ran::No(why) => {
                line(&mut text, "skipped", why);
                self.skipped += 1;
            }
            Ran::Yes(report) => {
                let incomplete = self.platform == Platform::Weak && !report.is_complete();
                let unmet = unmet(outcomes);
                let verdict = match () {
                    () if !report.is_clean() => "FORBIDDEN",
                    () if !unmet.is_empty() => "unmet",
                    () if incomplete => "incomplete",
                    () => "ok",
                };
                let (seen, allowed) = (report.seen(), report.allowed.len());
                let rest = format!("{seen} of {allowed} outcomes in {} runs", report.runs);
                line(&mut text, verdict, rest);
                text.push_str(&unmet);
                self.outcomes(&mut text, outcomes, &report, incomplete);
                for (outcome, found) in &report.forbidden {
                    self.forbidden(&mut text, program, outcomes.model(), (outcome, found));
                }
                self.names.insert(program.name().to_owned());
                self.ran += 1;
                self.runs += report.runs;
                self.allowed += allowed;
                self.seen += seen;
                self.forbidden += usize::from(!report.is_clean());
                self.incomplete += usize::from(incomplete && report.is_clean());
                self.unmet += usize::from(!unmet.is_empty());
            }
        }
        output::print(&text)
    }

    /// Lists every allowed outcome, or only those that were expected but not seen.
    fn outcomes(
        &self,
        text: &mut String,
        outcomes: &Outcomes<'_>,
        report: &Report,
        incomplete: bool,
    ) {
        for (outcome, &times) in &report.allowed {
            let missed = times == 0 && incomplete && report.is_clean();
            if self.args.verbose || missed {
                let _ = writeln!(text, "{times:>20}  {outcome}");
            }
            if self.args.verbose && times == 0 {
                witness(text, "which could come about so", outcomes, outcome);
            }
        }
    }

    fn forbidden(
        &self,
        text: &mut String,
        program: &Program,
        model: MemoryModel,
        (outcome, found): (&Outcome, &ForbiddenOutcome),
    ) {
        let _ = writeln!(text, "{:>20}  {outcome}  <- forbidden", found.times);
        let Some(schedule) = &found.schedule else {
            return;
        };
        let _ = writeln!(text, "{:22}  {schedule}", "");
        for step in &found.steps {
            let _ = writeln!(text, "{:24}{step}", "");
        }
        let machines = self.platform.machines(program.pes(), model, None);
        let place = machines.iter().position(|one| one.name == schedule.machine);
        let Some(place) = place else { return };
        let omit = match self.args.omit {
            Some(inserted) => format!(" --omit {inserted:?}"),
            None => String::new(),
        };
        let platform = match self.platform {
            Platform::Simulator => "simulator",
            _ => "weak",
        };
        // The argument as the user gave it, which may be a file.
        let at = self.programs.iter().position(|one| one == program);
        let given = at.and_then(|at| self.args.programs.get(at));
        let _ = writeln!(
            text,
            "{:22}again: oxshmem litmus --transport {platform} --model {model}{omit} --replay {} {}",
            "",
            Replay::text(place, schedule),
            given.map_or(program.name(), String::as_str)
        );
    }

    /// Prints the totals and returns the command's status.
    pub fn end(self, time: Duration) -> anyhow::Result<ExitCode> {
        let mut text = String::new();
        let _ = write!(
            text,
            "{} program{}, {} with their models; {} of {} allowed outcomes seen",
            self.names.len(),
            if self.names.len() == 1 { "" } else { "s" },
            self.ran,
            self.seen,
            self.allowed,
        );
        for (count, what) in [
            (self.forbidden, "with a forbidden one"),
            (self.incomplete, "incomplete"),
            (self.unmet, "with an expectation that does not hold"),
            (self.skipped, "skipped"),
        ] {
            if count > 0 {
                let _ = write!(text, ", {count} {what}");
            }
        }
        if self.forbidden == 0 {
            text.push_str(", none forbidden");
        }
        let (runs, time) = (self.runs, time.as_secs_f64());
        let _ = write!(text, "; {runs} runs in {time:.1} s");
        text.push('\n');
        output::print(&text)?;
        if self.ran == 0 {
            output::complain(
                "litmus",
                "nothing was run; see what was skipped and why, or --model",
            );
            return Ok(REFUSED.into());
        }
        Ok(match self {
            _ if self.forbidden > 0 => ExitCode::FAILURE,
            _ if self.unmet > 0 => REFUSED.into(),
            _ if self.incomplete > 0 => INCOMPLETE.into(),
            _ => ExitCode::SUCCESS,
        })
    }
}

/// The expectations in the program's text that the model does not meet.
fn unmet(outcomes: &Outcomes<'_>) -> String {
    let mut text = String::new();
    for expectation in outcomes.unmet() {
        let _ = writeln!(text, "{:22}`{expectation}` does not hold in the model", "");
        let outcome = outcomes.find(&expectation.pattern);
        if let (Verdict::Forbidden, Some(outcome)) = (expectation.verdict, outcome) {
            witness(
                &mut text,
                &format!("{outcome} comes about so"),
                outcomes,
                outcome,
            );
        }
    }
    text
}

/// Prints the model's steps that lead to this outcome.
fn witness(text: &mut String, how: &str, outcomes: &Outcomes<'_>, outcome: &Outcome) {
    let _ = writeln!(text, "{:22}  {how}:", "");
    for step in outcomes.witness(outcome).unwrap_or_default() {
        let _ = writeln!(text, "{:22}    {step}", "");
    }
}
