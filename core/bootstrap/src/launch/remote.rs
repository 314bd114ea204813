//! The PE processes of other hosts, through one agent on each.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::process::Signal;

use super::agent_protocol::{Command, Report, Start};
use super::hosts::{Hosts, forwarded};
use super::input::{in_foreground, own_input};
use super::job::Launch;
use super::process_group::{Event, ProcessGroup, Stream, Watched};
use super::reaper::Reaper;
use super::remote_shell::{AgentState, PATIENCE, RemoteShell};
use crate::error::{Result, io};
use crate::exit_status::ExitStatus;
use crate::job_key::JobKey;

/// Time limit for agents to end after their PEs have.
const LAST_WORDS: Duration = Duration::from_secs(10);
/// Bytes of input that are sent at once.
const INPUT_BYTES: usize = 32 << 10;

/// The agents of all hosts. The PEs are started when every host has answered, so that none runs in
/// vain.
pub(super) struct Remote {
    // Dropped in this order: remote shells first, then the rest of their process group.
    agents: Vec<RemoteAgent>,
    _reaper: Reaper,
    input: InputState,
    started: bool,
    /// The signal that called the start off before the PEs were started, and its time.
    called_off: Option<(Signal, Instant)>,
    deadline: Duration,
    finish_by: Option<Instant>,
}

/// A host and its PEs.
struct RemoteAgent {
    shell: RemoteShell,
    first: u32,
    count: u32,
    start: Option<Box<Start>>,
    /// The time by which the next answer is to come.
    due: Option<Instant>,
    /// Bytes of output received and not acknowledged to the agent.
    unacknowledged: u32,
}

/// The progress of this process's input, which is PE 0's.
#[derive(Clone, Copy, PartialEq, Eq)]
enum InputState {
    /// More may be read and sent.
    Open,
    /// PE 0 has not taken what was sent.
    Sent,
    Over,
}

/// The meaning of a token: for the agent at `token / 4`, one of these; or this process's input.
const REPORTS: usize = 0;
const ERRORS: usize = 1;
const COMMANDS: usize = 2;
const PROCESS: usize = 3;
const KINDS: usize = 4;
const INPUT: usize = usize::MAX;

impl Remote {
    /// Starts the command that reaches each host; `port` is the rendezvous'.
    pub(super) fn start(launch: &Launch, hosts: &Hosts, port: u16, key: &JobKey) -> Result<Remote> {
        let folder = std::env::current_dir()
            .map_err(io("finding the working directory"))?
            .into_os_string();
        let mut env = forwarded();
        env.extend(launch.env.iter().cloned());
        let reaper = Reaper::start()?;
        let now = Instant::now();
        let mut agents: Vec<RemoteAgent> = Vec::new();
        let mut first = 0;
        for (index, host) in hosts.list.iter().enumerate() {
            let before = hosts.list.iter().take(index);
            let same = before.filter(|other| other.name == host.name);
            let start = Start {
                first,
                first_local: same.map(|other| other.pes).sum(),
                count: host.pes,
                size: launch.pes,
                key: *key,
                candidates: hosts.candidates(&host.name, port),
                port: hosts.hub_address.is_none().then_some(port),
                bind: hosts.bind.clone(),
                folder: folder.clone(),
                program: launch.program.clone(),
                args: launch.args.clone(),
                env: env.clone(),
            };
            agents.push(RemoteAgent {
                shell: RemoteShell::start(&host.name, &hosts.command(&host.name)?, reaper.group())?,
                first,
                count: host.pes,
                start: Some(Box::new(start)),
                due: now.checked_add(hosts.deadline),
                unacknowledged: 0,
            });
            first += host.pes;
        }
        Ok(Remote {
            agents,
            _reaper: reaper,
            input: InputState::Open,
            started: false,
            called_off: None,
            deadline: hosts.deadline,
            finish_by: None,
        })
    }

    /// Sends the starts once every host has answered.
    fn start_if_all_answered(&mut self) {
        let answered = |agent: &RemoteAgent| agent.shell.state == AgentState::Greeted;
        if self.started || self.called_off.is_some() {
            return;
        }
        for agent in self.agents.iter_mut().filter(|agent| answered(agent)) {
            agent.due = None;
        }
        if !self.agents.iter().all(answered) {
            return;
        }
        self.started = true;
        let due = Instant::now().checked_add(self.deadline);
        for agent in &mut self.agents {
            agent.due = due;
            if let Some(start) = agent.start.take() {
                agent.shell.send(&Command::Start(start));
            }
        }
    }

    fn process_reports(&mut self, index: usize, events: &mut Vec<Event>) {
        loop {
            let Some(agent) = self.agents.get_mut(index) else {
                return;
            };
            let report = match agent.shell.next_report() {
                Ok(Some(report)) => report,
                Ok(None) => break,
                Err(error) => {
                    self.fail(index, 125, &error.to_string(), events);
                    return;
                }
            };
            if let Report::Refused { status, why } = report {
                self.fail(index, status, &why, events);
                return;
            }
            if let Some(event) = agent.apply_report(report, events, &mut self.input) {
                events.push(event);
            }
        }
        self.start_if_all_answered();
    }

    /// Fails a host: its PEs count as killed.
    fn fail(&mut self, index: usize, status: i32, why: &str, events: &mut Vec<Event>) {
        let Some(agent) = self.agents.get_mut(index) else {
            return;
        };
        if agent.shell.state.is_over() {
            return;
        }
        let host = agent.shell.host.clone();
        agent.hang_up(ExitStatus::Signal(libc::SIGKILL), events);
        if !self.started {
            // Nothing runs yet, and nothing shall.
            for agent in &mut self.agents {
                agent.hang_up(ExitStatus::Signal(libc::SIGKILL), events);
            }
        }
        let why = format!("host {host}: {why}");
        events.push(Event::HostFailed { host, status, why });
    }

    /// A host's command has ended: processes its last reports and errors.
    fn drain_reports(&mut self, index: usize, events: &mut Vec<Event>) {
        while let Some(agent) = self.agents.get_mut(index)
            && agent.shell.read_reports_that_came()
        {
            self.process_reports(index, events);
        }
        if let Some(agent) = self.agents.get_mut(index) {
            agent.shell.read_errors(events);
            agent.shell.end_errors(events);
        }
        self.fail_disconnected(index, events);
    }

    /// The connection to a host has ended.
    fn fail_disconnected(&mut self, index: usize, events: &mut Vec<Event>) {
        if let Some(agent) = self.agents.get(index) {
            let why = agent.shell.failure_reason();
            self.fail(index, 125, &why, events);
        }
    }

    /// Sends some of this process's input on.
    fn pass_input(&mut self) {
        let mut bytes = vec![0; INPUT_BYTES];
        let count = match rustix::io::read(own_input(), &mut bytes) {
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => return,
            // An input that cannot be read has ended.
            Err(_) => 0,
            Ok(count) => count,
        };
        bytes.truncate(count);
        self.input = match count {
            0 => InputState::Over,
            _ => InputState::Sent,
        };
        if let Some(agent) = self.agents.first_mut() {
            agent.shell.send(&Command::Input(bytes));
        }
    }

    fn wants_input(&self) -> bool {
        let runs = |agent: &RemoteAgent| agent.shell.state == AgentState::Running;
        self.input == InputState::Open
            && self.agents.first().is_some_and(runs)
            && (!std::io::stdin().is_terminal() || in_foreground())
    }
}

impl RemoteAgent {
    fn ranks(&self) -> std::ops::Range<u32> {
        self.first..self.first + self.count
    }

    /// Applies a report, and gives the event in it.
    fn apply_report(
        &mut self,
        report: Report,
        events: &mut Vec<Event>,
        input: &mut InputState,
    ) -> Option<Event> {
        let rank = |index: u32| self.ranks().nth(index as usize);
        match report {
            Report::Started(pids) => {
                let started = self.ranks().zip(pids);
                events.extend(started.map(|(rank, pid)| Event::Started { rank, pid }));
                self.due = None;
                self.shell.state = AgentState::Running;
                None
            }
            Report::Output {
                index,
                stream,
                bytes,
            } => {
                let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
                let rank = rank(index)?;
                self.unacknowledged = self.unacknowledged.saturating_add(length);
                Some(Event::Output {
                    rank,
                    stream,
                    bytes,
                })
            }
            Report::OutputEnd { index, stream } => Some(Event::OutputEnd {
                rank: rank(index)?,
                stream,
            }),
            Report::Ended { index, exit } => {
                let rank = rank(index)?;
                if rank == 0 {
                    *input = InputState::Over;
                }
                Some(Event::Ended { rank, exit })
            }
            Report::InputTaken => {
                if *input == InputState::Sent {
                    *input = InputState::Open;
                }
                None
            }
            Report::Done => {
                self.shell.state = AgentState::Done;
                None
            }
            // The caller has handled it.
            Report::Refused { .. } => None,
        }
    }

    /// Hangs up. Its PEs count as ended by `exit`, unless their ends are known.
    fn hang_up(&mut self, exit: ExitStatus, events: &mut Vec<Event>) {
        if self.shell.state.is_over() {
            return;
        }
        self.shell.hang_up();
        self.due = None;
        events.extend(self.ranks().map(|rank| Event::Ended { rank, exit }));
    }
}

impl ProcessGroup for Remote {
    fn watch<'a>(&'a self, watched: &mut Vec<Watched<'a>>) {
        if self.wants_input() {
            let input = own_input();
            watched.push(Watched::new(INPUT, input, PollFlags::IN));
        }
        for (index, agent) in self.agents.iter().enumerate() {
            let token = KINDS * index;
            if let Some(reports) = agent.shell.reports() {
                watched.push(Watched::new(token + REPORTS, reports, PollFlags::IN));
            }
            if let Some(errors) = agent.shell.errors() {
                let errors = Watched::new(token + ERRORS, errors, PollFlags::IN);
                watched.push(errors.with_output(Stream::Err));
            }
            if let Some(commands) = agent.shell.commands_to_flush() {
                watched.push(Watched::new(token + COMMANDS, commands, PollFlags::OUT));
            }
            if let Some(process) = agent.shell.process() {
                watched.push(Watched::new(token + PROCESS, process, PollFlags::IN));
            }
        }
    }

    fn handle_ready(&mut self, token: usize, events: &mut Vec<Event>) -> Result<()> {
        if token == INPUT {
            self.pass_input();
            return Ok(());
        }
        let index = token / KINDS;
        let Some(agent) = self.agents.get_mut(index) else {
            return Ok(());
        };
        match token % KINDS {
            REPORTS => {
                let open = agent.shell.read_reports();
                self.process_reports(index, events);
                if !open && let Some(agent) = self.agents.get_mut(index) {
                    // Its process's end, which says more, is near.
                    agent.due = Some(Instant::now() + PATIENCE);
                }
            }
            ERRORS => agent.shell.read_errors(events),
            COMMANDS => agent.shell.flush(),
            _ => {
                if agent.shell.reap()? {
                    self.drain_reports(index, events);
                }
            }
        }
        Ok(())
    }

    fn output_taken(&mut self) {
        for agent in &mut self.agents {
            if agent.unacknowledged > 0 && !agent.shell.state.is_over() {
                let count = std::mem::take(&mut agent.unacknowledged);
                agent.shell.send(&Command::Taken(count));
            }
        }
    }

    fn signal(&mut self, signal: Signal) {
        if !self.started {
            let ends = [Signal::INT, Signal::QUIT, Signal::TERM, Signal::HUP];
            if ends.contains(&signal) {
                self.called_off.get_or_insert((signal, Instant::now()));
            }
            return;
        }
        for agent in &mut self.agents {
            agent.shell.send(&Command::Signal(signal.as_raw()));
        }
    }

    fn kill(&mut self) {
        if !self.started {
            self.called_off
                .get_or_insert((Signal::KILL, Instant::now()));
        }
        for agent in self.agents.iter_mut().filter(|_| self.started) {
            agent.shell.send(&Command::Kill);
        }
    }

    fn abandon(&mut self, events: &mut Vec<Event>) {
        for index in 0..self.agents.len() {
            let why = "it does not answer; nothing is known of its PEs, which end by themselves \
                       when they cannot reach this host";
            self.fail(index, 125, why, events);
        }
    }

    fn due(&self) -> Option<Instant> {
        let called_off = self.called_off.map(|(_, at)| at);
        let dues = self.agents.iter().filter_map(|agent| agent.due);
        dues.chain(called_off).chain(self.finish_by).min()
    }

    fn expire(&mut self, now: Instant, events: &mut Vec<Event>) {
        if let Some((signal, _)) = self.called_off.take() {
            for agent in &mut self.agents {
                agent.hang_up(ExitStatus::Signal(signal.as_raw()), events);
            }
        }
        for index in 0..self.agents.len() {
            let Some(agent) = self.agents.get_mut(index) else {
                continue;
            };
            if agent.due.is_none_or(|due| due > now) {
                continue;
            }
            agent.due = None;
            if !agent.shell.is_connected() {
                self.fail_disconnected(index, events);
                continue;
            }
            let (command, within) = (agent.shell.command.clone(), self.deadline);
            let why = match agent.shell.state {
                AgentState::Silent => format!(
                    "no answer within {within:?} from `{command}`; check that this command works \
                     without a question, and that the host is up"
                ),
                _ => format!(
                    "its PEs were not started within {within:?}; see whether the host's file \
                     systems or name service hang"
                ),
            };
            self.fail(index, 125, &why, events);
        }
        if self.finish_by.is_some_and(|at| at <= now) {
            // The cause may be a reader of the output that has stopped.
            let waits = self.agents.iter().any(|agent| agent.unacknowledged > 0);
            self.finish_by = Some(now + LAST_WORDS);
            for agent in self.agents.iter_mut().filter(|_| !waits) {
                agent.shell.hang_up();
            }
        }
    }

    fn finish(&mut self, _events: &mut Vec<Event>) {
        self.input = InputState::Over;
        self.finish_by = Some(Instant::now() + LAST_WORDS);
    }

    fn is_finished(&self) -> bool {
        let over = |agent: &RemoteAgent| match agent.shell.state {
            AgentState::Gone => true,
            AgentState::Done => agent.shell.process().is_none(),
            _ => false,
        };
        self.agents.iter().all(over)
    }
}
