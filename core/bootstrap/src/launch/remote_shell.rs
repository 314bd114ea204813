//! A remote-shell command that reaches a host, and the agent at its other end.

use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Stdio};
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::agent_protocol::{Command, Inbox, Opening, Outbox, Report, opening};
use super::process_group::Event;
use super::spawn::prepare;
use crate::error::{Error, Result, io};
use crate::exit_status::ExitStatus;

/// Time limit for a command to end after its output has.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);
/// Bytes that a shell may print before the agent's greeting.
const CHATTER: usize = 64 << 10;
/// Bytes of a line that are shown at once.
const LINE: usize = 4096;

/// The progress of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AgentState {
    /// It has sent nothing.
    Silent,
    /// It has answered.
    Greeted,
    /// Its PEs run, or have run.
    Running,
    /// It has reported the end of all.
    Done,
    /// It has failed, or was hung up on.
    Gone,
}

impl AgentState {
    pub(super) fn is_over(self) -> bool {
        matches!(self, AgentState::Done | AgentState::Gone)
    }
}

/// A running command.
#[derive(Debug)]
pub(super) struct RemoteShell {
    pub(super) host: String,
    /// In words.
    pub(super) command: String,
    pub(super) state: AgentState,
    child: Child,
    pidfd: OwnedFd,
    ended: Option<ExitStatus>,
    commands: Option<ChildStdin>,
    outbox: Outbox,
    reports: Option<ChildStdout>,
    inbox: Inbox,
    errors: Option<ChildStderr>,
    begun: Vec<u8>,
}

impl RemoteShell {
    /// Starts `command` in process group `group`.
    pub(super) fn start(host: &str, command: &[OsString], group: Pid) -> Result<RemoteShell> {
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
        let prepare = move || prepare(group, launcher, None);
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
        let shell = RemoteShell {
            host: host.to_owned(),
            command: in_words,
            state: AgentState::Silent,
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
            shell.commands.as_ref().map(AsFd::as_fd),
            shell.reports(),
            shell.errors(),
        ] {
            let Some(pipe) = pipe else { continue };
            rustix::io::ioctl_fionbio(pipe, true).map_err(io("preparing an agent's pipe"))?;
        }
        Ok(shell)
    }

    pub(super) fn reports(&self) -> Option<BorrowedFd<'_>> {
        self.reports.as_ref().map(AsFd::as_fd)
    }

    pub(super) fn errors(&self) -> Option<BorrowedFd<'_>> {
        self.errors.as_ref().map(AsFd::as_fd)
    }

    /// The descriptor to write to, if commands wait for that.
    pub(super) fn commands_to_flush(&self) -> Option<BorrowedFd<'_>> {
        let commands = self.commands.as_ref().filter(|_| !self.outbox.is_empty());
        commands.map(AsFd::as_fd)
    }

    /// A descriptor that becomes readable at the command's end, until then.
    pub(super) fn process(&self) -> Option<BorrowedFd<'_>> {
        self.ended.is_none().then(|| self.pidfd.as_fd())
    }

    /// Whether the agent may still send reports.
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

    /// Reads the agent's reports; false at their end.
    pub(super) fn read_reports(&mut self) -> bool {
        let Some(reports) = &self.reports else {
            return false;
        };
        if !matches!(self.inbox.fill(reports), Ok(true)) {
            self.reports = None;
        }
        self.reports.is_some()
    }

    /// Reads the last reports of an agent that has ended; false if there were none.
    pub(super) fn read_reports_that_came(&mut self) -> bool {
        let before = self.inbox.bytes().len();
        self.read_reports();
        self.inbox.bytes().len() > before
    }

    /// The agent's next report.
    pub(super) fn next_report(&mut self) -> Result<Option<Report>> {
        match self.state {
            AgentState::Gone => return Ok(None),
            AgentState::Silent => match opening(self.inbox.bytes()) {
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
                    self.state = AgentState::Greeted;
                }
            },
            AgentState::Greeted | AgentState::Running | AgentState::Done => {}
        }
        self.inbox.next_report()
    }

    /// Reads the command's own errors, and shows whole lines of them.
    pub(super) fn read_errors(&mut self, events: &mut Vec<Event>) {
        let Some(errors) = &self.errors else { return };
        let mut inbox = Inbox::default();
        let open = matches!(inbox.fill(errors), Ok(true));
        self.begun.extend_from_slice(inbox.bytes());
        while let Some(end) = self.begun.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.begun.drain(..=end).collect();
            self.show(&line, events);
        }
        if self.begun.len() > LINE || !open {
            self.show_begun(events);
        }
        if !open {
            self.errors = None;
        }
    }

    /// Shows the last, unfinished line of the command's errors. Nothing more is read.
    pub(super) fn end_errors(&mut self, events: &mut Vec<Event>) {
        self.errors = None;
        self.show_begun(events);
    }

    fn show_begun(&mut self, events: &mut Vec<Event>) {
        let line = std::mem::take(&mut self.begun);
        self.show(&line, events);
    }

    fn show(&self, line: &[u8], events: &mut Vec<Event>) {
        let line = String::from_utf8_lossy(line);
        let line = line.trim_end();
        if !line.is_empty() {
            events.push(Event::Note(format!("host {}: {line}", self.host)));
        }
    }

    /// Notes the command's end, if it has ended.
    pub(super) fn reap(&mut self) -> Result<bool> {
        let status = self.child.try_wait();
        self.ended = status
            .map_err(io("waiting for a remote command"))?
            .map(ExitStatus::of);
        Ok(self.ended.is_some())
    }

    /// The reason for which no more reports come, and the remedy.
    pub(super) fn failure_reason(&self) -> String {
        let how = self
            .ended
            .map_or_else(|| "closed its output".to_owned(), ExitStatus::in_words);
        let command = &self.command;
        match (self.state, self.ended) {
            (AgentState::Silent, Some(ExitStatus::Exit(126 | 127))) => format!(
                "`{command}` {how}: a command of it was not found or cannot be executed; install \
                 oxshmem at the same path on all hosts"
            ),
            (AgentState::Silent, _) => format!(
                "`{command}` {how} before oxshmem answered there; check that the host is reached \
                 so without a question, or give another command (--rsh, OXSHMEM_RSH)"
            ),
            (AgentState::Greeted, _) => format!(
                "`{command}` {how} before it started its PEs; that command must pass its input on"
            ),
            _ => format!(
                "`{command}` {how} while its PEs ran; it was killed there, or the host or the \
                 network went down"
            ),
        }
    }

    /// Hangs up, which ends the agent's PEs.
    pub(super) fn hang_up(&mut self) {
        self.state = AgentState::Gone;
        self.commands = None;
        self.reports = None;
        if self.ended.is_none() {
            // An error means that it has ended meanwhile.
            let _ = self.child.kill();
            self.ended = self.child.wait().ok().map(ExitStatus::of);
        }
    }
}

impl Drop for RemoteShell {
    fn drop(&mut self) {
        self.hang_up();
    }
}
