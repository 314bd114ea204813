//! One run of one program, with given decisions.

use std::process::ExitCode;
use std::str::FromStr;

use oxshmem::FenceSite;
use oxshmem_litmus::directed::once;
use oxshmem_litmus::{MemoryModel, Program, Schedule};
use oxshmem_weak::Plan;

use super::platform::Platform;
use super::programs::outcomes;
use super::refused::Refused;
use crate::output;

/// Decisions, and the machine that they are for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replay {
    /// The machine's index among those of the transport.
    machine: usize,
    decisions: Vec<u32>,
}

impl Replay {
    /// The argument of `--replay` for a schedule on the machine with this index.
    pub fn text(machine: usize, schedule: &Schedule) -> String {
        let decisions: Vec<String> = schedule.decisions.iter().map(u32::to_string).collect();
        format!("{machine}:{}", decisions.join(","))
    }
}

impl FromStr for Replay {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let hint = "give decisions as a forbidden outcome was shown with, such as 0:1,0,2";
        let (machine, decisions) = text.split_once(':').unwrap_or(("0", text));
        let machine = machine
            .trim()
            .parse()
            .map_err(|_| format!("{machine:?} is no number of a machine; {hint}"))?;
        let decisions = match decisions.trim() {
            "" => Ok(Vec::new()),
            decisions => decisions
                .split(',')
                .map(|one| {
                    let one = one.trim();
                    let no = |_| format!("{one:?} is no decision; {hint}");
                    one.parse().map_err(no)
                })
                .collect(),
        };
        Ok(Replay {
            machine,
            decisions: decisions?,
        })
    }
}

pub fn main(
    replay: &Replay,
    platform: Platform,
    model: Option<MemoryModel>,
    omit: Option<FenceSite>,
    programs: &[Program],
) -> anyhow::Result<ExitCode> {
    let refuse = |why: &str| Err(Refused(format!("--replay: {why}")).into());
    let [program] = programs else {
        return refuse("name the one program that it is for");
    };
    if !platform.is_simulated() {
        return refuse("what happens is decided over weak and simulator only");
    }
    let model = match (model, program.models()) {
        (Some(model), _) | (None, &[model]) => model,
        (None, _) => return refuse("say which --model it is for"),
    };
    let machines = platform.machines(program.pes(), model, omit);
    let Some(machine) = machines.get(replay.machine) else {
        let most = machines.len().saturating_sub(1);
        return refuse(&format!("this transport's machines are 0 to {most}"));
    };
    let outcomes = outcomes(program, model)?;
    let plan = Plan::Replay(replay.decisions.clone());
    let (outcome, trace) = once(machine, program, &outcomes, plan)?;
    let mut text = format!("{} ({model}) on {}\n", program.name(), machine.name);
    for step in &trace.steps {
        text.push_str(&format!("  {step}\n"));
    }
    let allowed = outcomes.allows(&outcome);
    let verdict = if allowed { "allowed" } else { "FORBIDDEN" };
    text.push_str(&format!("{outcome}: {verdict}\n"));
    if let Some(why) = &trace.broken {
        text.push_str(&format!(
            "the run was given up, and may go otherwise next time: {why}\n"
        ));
    }
    output::print(&text)?;
    Ok(ExitCode::from(u8::from(!allowed)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_read_again() {
        for (machine, decisions) in [(0, vec![]), (2, vec![0, 3, 1])] {
            let schedule = Schedule {
                machine: "m",
                seed: 1,
                decisions: decisions.clone(),
            };
            let read = Replay::text(machine, &schedule).parse();
            assert_eq!(read, Ok(Replay { machine, decisions }));
        }
        let read: Replay = "1, 2".parse().unwrap();
        assert_eq!((read.machine, read.decisions), (0, vec![1, 2]));
    }

    #[test]
    fn what_is_no_decision_is_named() {
        for text in ["x:1", "1,,2", "-1", "4294967296", "1:2:3"] {
            let why = text.parse::<Replay>().unwrap_err();
            assert!(why.contains("such as 0:1,0,2"), "{text}: {why}");
        }
    }
}
