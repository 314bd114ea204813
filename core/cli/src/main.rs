//! The `oxshmem` command: starts jobs, shows what oxshmem sees, measures it.

#![deny(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "they panic where nobody reads"
)]

mod completions;
mod gather;
mod info;
mod litmus;
mod output;
mod perf;
mod run;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

/// Symmetric shared memory (SHMEM) for CPU and GPU clusters.
///
/// The PEs (processing elements) of a job each have a symmetric heap that every other PE may read,
/// write and atomically update, one-sided. This command starts jobs, shows what a job would see on
/// this machine, and measures it.
#[derive(Parser)]
#[command(name = "oxshmem", version, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  oxshmem run -n 4 ./program          start program as a job of 4 PEs on this host
  oxshmem info                        this machine, its transports, what is set
  oxshmem run -n 4 oxshmem info       the same, and how 4 PEs reach each other
  oxshmem perf                        how long put, get, atomics and barriers take here
  oxshmem litmus                      what the memory model allows, and that nothing else happens

`oxshmem COMMAND --help` says more of each, with examples.";

#[derive(Subcommand)]
enum Command {
    Run(run::Args),
    Info(info::Args),
    Perf(perf::Args),
    Litmus(litmus::Args),
    Completions(completions::Args),
}

fn main() -> ExitCode {
    let words = run::options(std::env::args_os().collect(), &Cli::command());
    let (name, done) = match Cli::parse_from(words.taken).command {
        Command::Run(args) => ("run", run::main(args, &words.left_out)),
        Command::Info(args) => ("info", info::main(&args)),
        Command::Perf(args) => ("perf", perf::main(&args)),
        Command::Litmus(args) => ("litmus", litmus::main(&args)),
        Command::Completions(args) => ("completions", completions::main(&args)),
    };
    match done {
        Ok(status) => status,
        // Whoever read the output has seen enough of it.
        Err(error) if error.is::<output::Closed>() => ExitCode::SUCCESS,
        Err(error) => {
            output::complain(name, &output::told(&error));
            ExitCode::FAILURE
        }
    }
}
