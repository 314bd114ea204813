//! `oxshmem litmus`: runs litmus programs and checks their outcomes.

mod args;
mod blocks;
pub mod memory;
mod platform;
mod programs;
mod refused;
mod replay;
mod runs;
mod table;

use std::process::ExitCode;
use std::time::Instant;

use oxshmem_litmus::{MemoryModel, Program};

use crate::job::shown_by_another;
use crate::output;
pub use args::Args;
use refused::{REFUSED, Refused};
use table::Table;

pub fn main(args: &Args) -> anyhow::Result<ExitCode> {
    match run(args) {
        Err(error) if error.is::<Refused>() => {
            output::complain("litmus", &error.to_string());
            Ok(REFUSED.into())
        }
        done => done,
    }
}

fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if let Some(bytes) = args.block {
        return blocks::main(args, bytes);
    }
    if args.list {
        return if shown_by_another() {
            Ok(ExitCode::SUCCESS)
        } else {
            list(&programs::chosen(&args.programs)?)
        };
    }
    let programs = programs::chosen(&args.programs)?;
    let platform = runs::choose(args)?;
    let model = args.model.map(MemoryModel::from);
    if let Some(replay) = &args.replay {
        return replay::main(replay, platform, model, args.omit, &programs);
    }
    let begun = Instant::now();
    let mut table = Table::new(args, platform, &programs);
    let wanted: Vec<(&Program, MemoryModel)> = programs
        .iter()
        .flat_map(|program| program.models().iter().map(move |&model| (program, model)))
        .filter(|(_, one)| model.is_none_or(|model| *one == model))
        .collect();
    let shows = runs::run(args, platform, &wanted, |outcomes, program, ran| {
        table.add(outcomes, program, ran)
    })?;
    if shows {
        table.end(begun.elapsed())
    } else {
        Ok(ExitCode::SUCCESS)
    }
}

fn list(programs: &[Program]) -> anyhow::Result<ExitCode> {
    let width = |of: &dyn Fn(&Program) -> usize| programs.iter().map(of).max().unwrap_or(0);
    let names = width(&|program| program.name().chars().count());
    let rules = width(&|program| program.rules().join(" ").chars().count());
    let mut text = String::new();
    for program in programs {
        let about = program.about().first().map_or("", String::as_str);
        let rule = program.rules().join(" ");
        let line = format!("{:names$}  {rule:rules$}  {about}", program.name());
        text.push_str(line.trim_end());
        text.push('\n');
    }
    output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}
