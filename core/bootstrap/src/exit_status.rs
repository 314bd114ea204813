//! The end of one process: its own exit, or a signal.

use std::os::unix::process::ExitStatusExt;

/// The end of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitStatus {
    /// By itself, with this status.
    Exit(i32),
    /// By this signal.
    Signal(i32),
}

impl ExitStatus {
    pub(crate) fn of(status: std::process::ExitStatus) -> ExitStatus {
        match (status.code(), status.signal()) {
            (Some(code), _) => ExitStatus::Exit(code),
            (None, Some(signal)) => ExitStatus::Signal(signal),
            // Neither happens to a process that has been waited for.
            (None, None) => ExitStatus::Exit(1),
        }
    }

    pub(crate) fn succeeded(self) -> bool {
        self == ExitStatus::Exit(0)
    }

    /// The status that a shell gives: 128 + the signal for a killed process.
    pub(crate) fn code(self) -> i32 {
        match self {
            ExitStatus::Exit(code) => code,
            ExitStatus::Signal(signal) => 128 + signal,
        }
    }

    pub(crate) fn in_words(self) -> String {
        match self {
            ExitStatus::Exit(code) => format!("exited with status {code}"),
            ExitStatus::Signal(signal) => {
                format!("was killed by signal {signal}{}", name_in_brackets(signal))
            }
        }
    }
}

/// " (SIGKILL)", or nothing for a signal without a common name.
fn name_in_brackets(signal: i32) -> String {
    let name = match signal {
        libc::SIGHUP => "HUP",
        libc::SIGINT => "INT",
        libc::SIGQUIT => "QUIT",
        libc::SIGILL => "ILL",
        libc::SIGTRAP => "TRAP",
        libc::SIGABRT => "ABRT",
        libc::SIGBUS => "BUS",
        libc::SIGFPE => "FPE",
        libc::SIGKILL => "KILL",
        libc::SIGUSR1 => "USR1",
        libc::SIGSEGV => "SEGV",
        libc::SIGUSR2 => "USR2",
        libc::SIGPIPE => "PIPE",
        libc::SIGALRM => "ALRM",
        libc::SIGTERM => "TERM",
        libc::SIGXCPU => "XCPU",
        libc::SIGXFSZ => "XFSZ",
        libc::SIGSYS => "SYS",
        _ => return String::new(),
    };
    format!(" (SIG{name})")
}
