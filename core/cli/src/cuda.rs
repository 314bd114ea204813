//! `oxshmem cuda`: programs in CUDA C++, built for this machine's CPU.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Subcommand;

use crate::output;

/// Build CUDA programs for this machine's CPU, to test them without a GPU.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Cc(CcArgs),
    /// Get what `oxshmem cuda cc` needs: clang 19 by apt, and CUDA's headers from PyPI (41 MB, once).
    Setup,
}

const EXAMPLES: &str = "\
Examples:
  oxshmem cuda setup                                   once: compiler and headers
  oxshmem cuda cc -O2 vector_add.cu -o vector_add      a program of one file
  oxshmem cuda cc -rdc=true a.cu b.cu -o program       device code of several files
  oxshmem cuda cc --check program.cu -o program        reports its races when it runs
  SOFTCUDA_DEVICES=4 oxshmem run -n 4 ./program        four PEs, four pretended GPUs

The options are nvcc's: -o -c -dc -dlink -lib -shared -I -D -U -L -l -O -g -std= -x cu -rdc=true -Xcompiler
-Xlinker -MD -E -v. Those that choose a GPU or the quality of its code (-arch, -gencode, -lineinfo ...) are
accepted and have no effect. docs/cuda-emulation.md says what can run and what cannot.";

/// Compile and link, with nvcc's options.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
struct CcArgs {
    /// Options and files, as for nvcc.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    words: Vec<OsString>,
}

/// Runs the command.
pub fn main(args: &Args) -> anyhow::Result<ExitCode> {
    let (name, done) = match &args.command {
        Command::Cc(cc) => ("cuda cc", oxshmem_cuda_cc::cc(&cc.words)),
        Command::Setup => ("cuda setup", oxshmem_cuda_cc::setup()),
    };
    if let Err(failure) = done {
        output::complain(name, &failure.to_string());
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}
