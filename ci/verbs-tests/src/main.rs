//! The programs that a PE of `ci/test-verbs` runs, by its first argument:
//!
//! - `exclusive [ROUNDS]`: every PE hits one word at once, by every operation of both widths.
//! - `depend CALL [broken]`: some PEs are lost, or what they made is broken, while the others are in a
//!   call that needs them.
//! - `staged [ROUNDS]`: GPU memory, by way of host memory between hosts.
//! - `laps FILE`: a token goes round until the file is there.
//! - `witness ADDRESS:PORT`: no PE of a job; see [`witness`].
//!
//! Exit status 0 if all held; 1 with the reason on stderr.

mod depend;
mod exclusive;
mod laps;
mod outcome;
mod staged;
mod witness;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["exclusive"] => exclusive::main(200),
        ["exclusive", rounds] => match rounds.parse() {
            Ok(rounds) => exclusive::main(rounds),
            Err(error) => Err(format!("{rounds} rounds: {error}").into()),
        },
        ["staged"] => staged::main(3),
        ["staged", rounds] => match rounds.parse() {
            Ok(rounds) => staged::main(rounds),
            Err(error) => Err(format!("{rounds} rounds: {error}").into()),
        },
        ["depend", call] => depend::main(call, false),
        ["depend", call, "broken"] => depend::main(call, true),
        ["laps", until] => laps::main(until),
        ["witness", at] => witness::main(at),
        _ => {
            eprintln!(
                "usage: verbs-tests exclusive [ROUNDS] | staged [ROUNDS] | depend CALL [broken] \
                 | laps FILE | witness ADDRESS:PORT"
            );
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("verbs-tests {}: {error}", arguments.join(" "));
            ExitCode::FAILURE
        }
    }
}
