//! The `oxshmem` command: starts jobs, shows what oxshmem sees, measures it.

#![deny(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "they panic where nobody reads"
)]

mod check;
mod completions;
mod cuda;
mod gather;
mod info;
mod job;
mod litmus;
mod manual;
mod output;
#[cfg(test)]
mod pages;
mod perf;
mod run;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;

/// Symmetric shared memory (SHMEM) for CPU and GPU clusters.
///
/// The PEs (processing elements) of a job each have a symmetric heap that every other PE may read,
/// write and atomically update, one-sided. This command starts jobs, shows what a job would see on
/// this machine, measures it, and checks clusters.
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
  oxshmem check --host-only           what is wrong with this machine, and how to mend it
  oxshmem run --hosts a,b oxshmem check    what is wrong with these hosts and their links
  oxshmem litmus                      what the memory model allows, and that nothing else happens

`oxshmem COMMAND --help` says more of each, with examples.";

#[derive(Subcommand)]
enum Command {
    Run(run::Args),
    Info(info::Args),
    Perf(perf::Args),
    Check(check::Args),
    Litmus(litmus::Args),
    Cuda(cuda::Args),
    Completions(completions::Args),
    Manual(manual::Args),
}

/// Starts the log that `RUST_LOG` asks for, on standard error.
fn begin_log() {
    let levels = std::env::var_os("RUST_LOG").unwrap_or_default();
    let levels = levels.to_string_lossy();
    if levels.is_empty() {
        return;
    }
    match levels.parse::<Targets>() {
        Ok(levels) => {
            let lines = tracing_subscriber::fmt::layer()
                .with_ansi(false)
                .log_internal_errors(false)
                .with_writer(std::io::stderr);
            let log = tracing_subscriber::registry().with(levels).with(lines);
            // This process has set no other subscriber.
            let _ = tracing::subscriber::set_global_default(log);
        }
        // The argument may be meant for the program that is started.
        Err(error) => {
            let why = "give levels, for all or by target, such as info,oxshmem_bootstrap=debug";
            output::complain("log", &format!("RUST_LOG={levels}: {error}; {why}"));
        }
    }
}

fn main() -> ExitCode {
    begin_log();
    let words = run::options(std::env::args_os().collect(), &Cli::command());
    let (name, done) = match Cli::parse_from(words.taken).command {
        Command::Run(args) => ("run", run::main(args, &words.left_out)),
        Command::Info(args) => ("info", info::main(&args)),
        Command::Perf(args) => ("perf", perf::main(&args)),
        Command::Check(args) => ("check", check::main(&args)),
        Command::Litmus(args) => ("litmus", litmus::main(&args)),
        Command::Cuda(args) => ("cuda", cuda::main(&args)),
        Command::Completions(args) => ("completions", completions::main(&args, Cli::command())),
        Command::Manual(args) => ("manual", manual::main(&args, Cli::command())),
    };
    match done {
        Ok(status) => status,
        // The reader closed the output because it has seen enough.
        Err(error) if error.is::<output::Closed>() => ExitCode::SUCCESS,
        Err(error) => {
            output::complain(name, &output::with_causes(&error));
            ExitCode::FAILURE
        }
    }
}
