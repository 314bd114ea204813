//! The `oxshmem` command as users run it.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test's way to fail, in its helpers too"
)]

// Both need a transport, if only to the PE itself.
mod check;
mod info;
mod litmus;
mod perf;
mod perf_files;
mod process;
mod run;

use std::process::Command;

use process::{command, finish, outcome, run, stdout_of};

#[test]
fn help_teaches_by_example() {
    for command in ["run", "info", "perf", "check", "litmus", "completions"] {
        let help = stdout_of(&[command, "--help"]);
        assert!(help.contains("Examples:"), "{help}");
        assert!(help.contains(&format!("oxshmem {command} ")), "{help}");
        // The line above is for users, this one for the process that starts PEs.
        assert!(
            !help.contains("--launcher") && !help.contains("--omit"),
            "{help}"
        );
    }
    let help = stdout_of(&["--help"]);
    for command in ["run", "info", "perf", "check", "litmus", "completions"] {
        assert!(help.contains(command), "{help}");
    }
    assert_eq!(
        stdout_of(&["--version"]).trim(),
        concat!("oxshmem ", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn the_command_logs_as_rust_log_says() {
    let errors = |levels: &str| {
        let (status, _, errors) = outcome(command(&["info"]).env("RUST_LOG", levels));
        assert_eq!(status, Some(0), "{errors}");
        errors
    };
    let told = errors("info");
    assert!(told.contains(" INFO oxshmem: oxshmem "), "{told}");
    assert!(!told.contains('\u{1b}'), "{told}");
    for levels in ["", "warn", "info,oxshmem=off"] {
        assert!(!errors(levels).contains("INFO"), "{levels}");
    }
    let told = errors("oxshmem=loud");
    assert!(
        told.contains("RUST_LOG=oxshmem=loud") && told.contains("such as info,"),
        "{told}"
    );
}

#[test]
fn completions_are_written_for_each_shell() {
    for shell in ["bash", "zsh", "fish"] {
        let script = stdout_of(&["completions", shell]);
        assert!(
            script.contains("oxshmem") && script.contains("tag-output"),
            "{script}"
        );
    }
    let (status, _, stderr) = run(&["completions", "tcsh"]);
    assert_eq!(status, Some(2));
    assert!(stderr.contains("bash, zsh, fish"), "{stderr}");
}

#[test]
fn the_bash_completion_script_is_valid() {
    let script = stdout_of(&["completions", "bash"]);
    let output = finish(Command::new("bash").args(["-n", "-c", &script]));
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
