//! The compiler driver without the rest of the command `oxshmem`.

use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args_os().skip(1).collect();
    match oxshmem_cuda_cc::cc(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("cc: {failure}");
            ExitCode::FAILURE
        }
    }
}
