//! The command that reaches a host, and the agent at its other end.

use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Stdio};
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::How;
use super::crew::Event;
use super::wire::{Command, Inbox, Opening, Outbox, Report, opening};
use crate::error::io;
use crate::{Error, Result};

/// How long a command may take to end after its output has.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);
/// Bytes that a shell may say before the agent does.
const CHATTER: usize = 64 << 10;
/// Bytes of a line that are shown at once.
const LINE: usize = 4096;

/// How far an agent has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Nothing has been heard of it.
    Silent,
    /// It has answered.
    Greeted,
    /// Its PEs run, or have run.
    Running,
    /// It has said that all is over.
    Done,
    /// It has been given up.
    Gone,
}

impl State {
    pub(super) fn is_over(self) -> bool {
        matches!(self, State::Done | State::Gone)
    }
}

/// A running command.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) host: String,
    /// In words.
    pub(super) command: String,
    pub(super) state: State,
    child: Child,
    pidfd: OwnedFd,
    ended: Option<How>,
    commands: Option<ChildStdin>,
    outbox: Outbox,
    reports: Option<ChildStdout>,
    inbox: Inbox,
    errors: Option<ChildStderr>,
    begun: Vec<u8>,
}

impl Link {
    /// Starts `command` in process group `group`.
    pub(super) fn start(host: &str, command: &[OsString], group: Pid) -> Result<Link> {
        let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
        let in_words = words.join(" ");
        let (program, args) = command.split_first().ok_or_else(|| Error::Launch {
            what: "the remote-shell command is empty".to_owned(),
        })?;
        let mut process = std::process::Command::new(program);
        process
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let launcher = rustix::process::getpid();
        let prepare = move || super::pe::prepare(group, launcher, None);
        // SAFETY: `prepare` makes system calls only; it does not allocate, lock or panic, as a child
        // between fork and exec may not.
        unsafe { process.pre_exec(prepare) };
        let mut child = process.spawn().map_err(|source| Error::Launch {
            what: format!(
                "{:?}, which is to reach host {host}, cannot be started: {source}; install it, or \
                 give another command (--rsh, OXSHMEM_RSH)",
                program.to_string_lossy()
            ),
        })?;
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let pidfd = pid.map_or(Err(rustix::io::Errno::SRCH), |pid| {
            pidfd_open(pid, PidfdFlags::empty())
        });
        let pidfd = match pidfd {
            Ok(pidfd) => pidfd,
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(io("watching a process (this needs Linux 5.3)")(error));
            }
        };
        let link = Link {
            host: host.to_owned(),
            command: in_words,
            state: State::Silent,
            commands: child.stdin.take(),
            outbox: Outbox::default(),
            reports: child.stdout.take(),
            inbox: Inbox::default(),
            errors: child.stderr.take(),
            begun: Vec::new(),
            child,
            pidfd,
            ended: None,
        };
        for pipe in [
            link.commands.as_ref().map(AsFd::as_fd),
            link.reports(),
            link.errors(),
        ] {
            let Some(pipe) = pipe else { continue };
            rustix::io::ioctl_fionbio(pipe, true).map_err(io("preparing an agent's pipe"))?;
        }
        Ok(link)
    }

    pub(super) fn reports(&self) -> Option<BorrowedFd<'_>> {
        self.reports.as_ref().map(AsFd::as_fd)
    }

    pub(super) fn errors(&self) -> Option<BorrowedFd<'_>> {
        self.errors.as_ref().map(AsFd::as_fd)
    }

    /// Where to write, if something waits for that.
    pub(super) fn commands_to_flush(&self) -> Option<BorrowedFd<'_>> {
        let commands = self.commands.as_ref().filter(|_| !self.outbox.is_empty());
        commands.map(AsFd::as_fd)
    }

    /// What becomes readable at the command's end, until then.
    pub(super) fn process(&self) -> Option<BorrowedFd<'_>> {
        self.ended.is_none().then(|| self.pidfd.as_fd())
    }

    /// Whether the agent may still say something.
    pub(super) fn is_connected(&self) -> bool {
        self.reports.is_some()
    }

    pub(super) fn send(&mut self, command: &Command) {
        if self.commands.is_some() {
            self.outbox.command(command);
            self.flush();
        }
    }

    pub(super) fn flush(&mut self) {
        if let Some(commands) = &self.commands
            && self.outbox.flush(commands).is_err()
        {
            // Its other streams tell why.
            self.commands = None;
        }
    }

    /// Reads what the agent says; false at the end of that.
    pub(super) fn read_reports(&mut self) -> bool {
        let Some(reports) = &self.reports else {
            return false;
        };
        if !matches!(self.inbox.fill(reports), Ok(true)) {
            self.reports = None;
        }
        self.reports.is_some()
    }

    /// Reads what an agent that has ended has said; false if that was nothing more.
    pub(super) fn read_reports_that_came(&mut self) -> bool {
        let before = self.inbox.bytes().len();
        self.read_reports();
        self.inbox.bytes().len() > before
    }

    /// The next thing the agent has said.
    pub(super) fn next_report(&mut self) -> Result<Option<Report>> {
        match self.state {
            State::Gone => return Ok(None),
            State::Silent => match opening(self.inbox.bytes()) {
                Opening::Pending if self.inbox.bytes().len() > CHATTER => {
                    return Err(Error::Launch {
                        what: format!(
                            "`{}` prints something else than oxshmem's agent does; check that it \
                             runs that, and that the shell's start-up files there print nothing",
                            self.command
                        ),
                    });
                }
                Opening::Pending => return Ok(None),
                Opening::Version(theirs) => {
                    return Err(Error::Launch {
                        what: format!(
                            "its oxshmem speaks version {theirs} of the launcher's protocol, and \
                             this one another; install the same version of oxshmem on all hosts"
                        ),
                    });
                }
                Opening::Greeted(end) => {
                    self.inbox.skip(end);
                    self.state = State::Greeted;
                }
            },
            State::Greeted | State::Running | State::Done => {}
        }
        self.inbox.next_report()
    }

    /// Reads what the command itself says, and shows whole lines of it.
    pub(super) fn read_errors(&mut self, heard: &mut Vec<Event>) {
        let Some(errors) = &self.errors else { return };
        let mut inbox = Inbox::default();
        let open = matches!(inbox.fill(errors), Ok(true));
        self.begun.extend_from_slice(inbox.bytes());
        while let Some(end) = self.begun.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.begun.drain(..=end).collect();
            self.show(&line, heard);
        }
        if self.begun.len() > LINE || !open {
            self.show_begun(heard);
        }
        if !open {
            self.errors = None;
        }
    }

    /// Shows what is left of what the command said. Nothing more is read.
    pub(super) fn end_errors(&mut self, heard: &mut Vec<Event>) {
        self.errors = None;
        self.show_begun(heard);
    }

    fn show_begun(&mut self, heard: &mut Vec<Event>) {
        let line = std::mem::take(&mut self.begun);
        self.show(&line, heard);
    }

    fn show(&self, line: &[u8], heard: &mut Vec<Event>) {
        let line = String::from_utf8_lossy(line);
        let line = line.trim_end();
        if !line.is_empty() {
            heard.push(Event::Note(format!("host {}: {line}", self.host)));
        }
    }

    /// Notes the command's end, if it has ended.
    pub(super) fn reap(&mut self) -> Result<bool> {
        let status = self.child.try_wait();
        self.ended = status
            .map_err(io("waiting for a remote command"))?
            .map(How::of);
        Ok(self.ended.is_some())
    }

    /// Why nothing more is heard, and what to do.
    pub(super) fn epitaph(&self) -> String {
        let how = self
            .ended
            .map_or_else(|| "closed its output".to_owned(), How::in_words);
        let command = &self.command;
        match (self.state, self.ended) {
            (State::Silent, Some(How::Exit(126 | 127))) => format!(
                "`{command}` {how}: a command of it was not found or cannot be executed; install \
                 oxshmem at the same path on all hosts"
            ),
            (State::Silent, _) => format!(
                "`{command}` {how} before oxshmem answered there; check that the host is reached \
                 so without a question, or give another command (--rsh, OXSHMEM_RSH)"
            ),
            (State::Greeted, _) => format!(
                "`{command}` {how} before it started its PEs; that command must pass its input on"
            ),
            _ => format!(
                "`{command}` {how} while its PEs ran; it was killed there, or the host or the \
                 network went down"
            ),
        }
    }

    /// Hangs up, which ends what the agent runs.
    pub(super) fn give_up(&mut self) {
        self.state = State::Gone;
        self.commands = None;
        self.reports = None;
        if self.ended.is_none() {
            // An error means that it has ended meanwhile.
            let _ = self.child.kill();
            self.ended = self.child.wait().ok().map(How::of);
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.give_up();
    }
}
