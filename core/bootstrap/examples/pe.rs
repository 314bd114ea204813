//! A PE of whatever started it: `ci/test-launchers` runs it under process managers.
//!
//! `pe` meets the others and leaves; `pe abort RANK STATUS` has that rank abort the job, and `pe
//! die RANK` kills it, while the others wait; `pe wait` waits until something ends it.

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;

use oxshmem_bootstrap::{Bootstrap, DEFAULT_DEADLINE, join};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("pe: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let job = join(&|name| std::env::var(name).ok(), DEFAULT_DEADLINE)?;
    meet(&job)?;
    let is_me = |rank: &str| rank.parse() == Ok(job.rank());
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        [] => println!("met {} of {}: {}", job.rank(), job.size(), job.describe()),
        ["wait"] => {
            println!("pid {} waits", std::process::id());
            loop {
                std::thread::park();
            }
        }
        ["abort", rank, status] if is_me(rank) => job.abort(status.parse()?, "as it was told"),
        ["die", rank] if is_me(rank) => {
            // SAFETY: a signal to oneself has no precondition.
            unsafe { libc::raise(libc::SIGKILL) };
        }
        // The abort's status goes before this call's failure.
        ["abort", ..] | ["die", ..] => job.barrier()?,
        _ => return Err("usage: pe [abort RANK STATUS | die RANK | wait]".into()),
    }
    job.leave();
    Ok(())
}

/// Learns that all are there, each once.
fn meet(job: &Arc<dyn Bootstrap>) -> Result<(), Box<dyn Error>> {
    let ranks = job.allgather(&job.rank().to_le_bytes())?;
    let expected = (0..job.size()).map(|rank| rank.to_le_bytes().to_vec());
    if !expected.eq(ranks) {
        return Err("the ranks gathered are not those of the job".into());
    }
    Ok(job.barrier()?)
}
