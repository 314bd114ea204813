//! `oxshmem completions`: shell completion scripts.

use std::process::ExitCode;

use clap::{Command, ValueEnum};
use clap_complete::Shell as Generator;

use crate::output;

/// Print a shell's completion script.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

const EXAMPLES: &str = "\
Examples:
  source <(oxshmem completions bash)                                  this bash, now
  oxshmem completions bash > ~/.local/share/bash-completion/completions/oxshmem
  oxshmem completions zsh > ~/.zfunc/_oxshmem       where fpath has ~/.zfunc
  oxshmem completions fish > ~/.config/fish/completions/oxshmem.fish";

#[derive(Clone, Copy, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// `command` is the definition of the whole command.
pub fn main(args: &Args, mut command: Command) -> anyhow::Result<ExitCode> {
    let generator = match args.shell {
        Shell::Bash => Generator::Bash,
        Shell::Zsh => Generator::Zsh,
        Shell::Fish => Generator::Fish,
    };
    let mut script = Vec::new();
    clap_complete::generate(generator, &mut command, "oxshmem", &mut script);
    output::print(&String::from_utf8(script)?)?;
    Ok(ExitCode::SUCCESS)
}
