//! PEs on other hosts, through one agent on each.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::process::Signal;

use super::crew::{Crew, Event, Stream, Watched};
use super::guardian::Guardian;
use super::hosts::{self, Hosts};
use super::link::{Link, State};
use super::wire::{Command, Report, Start};
use super::{How, Launch, input};
use crate::Result;
use crate::job_key::JobKey;

/// How long agents may take to end after their PEs have.
const LAST_WORDS: Duration = Duration::from_secs(10);
/// Bytes of input that are sent at once.
const INPUT_BYTES: usize = 32 << 10;

/// The agents of all hosts. The PEs are started when every host has answered, so that none runs in
/// vain.
pub(super) struct Remote {
    // Dropped in this order: links first, then what is left of their commands.
    agents: Vec<Agent>,
    _guardian: Guardian,
    input: InputState,
    started: bool,
    /// Told to end before the PEs were started: by which signal, and when.
    called_off: Option<(Signal, Instant)>,
    deadline: Duration,
    wind_up_until: Option<Instant>,
}

/// A host and its PEs.
struct Agent {
    link: Link,
    first: u32,
    count: u32,
    start: Option<Box<Start>>,
    /// Until when the next answer is to come.
    due: Option<Instant>,
    /// Output that has been heard, and not been acknowledged.
    heard: u32,
}

/// How far this process's input, which is PE 0's, has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum InputState {
    /// More may be read and sent.
    Open,
    /// PE 0 has not taken what was sent.
    Sent,
    Over,
}

/// What a token means: for the agent at `token / 4`, one of these; or this process's input.
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
            .map_err(crate::error::io("finding the working directory"))?
            .into_os_string();
        let mut env = hosts::forwarded();
        env.extend(launch.env.iter().cloned());
        let guardian = Guardian::start()?;
        let now = Instant::now();
        let mut agents: Vec<Agent> = Vec::new();
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
            agents.push(Agent {
                link: Link::start(&host.name, &hosts.command(&host.name)?, guardian.group())?,
                first,
                count: host.pes,
                start: Some(Box::new(start)),
                due: now.checked_add(hosts.deadline),
                heard: 0,
            });
            first += host.pes;
        }
        Ok(Remote {
            agents,
            _guardian: guardian,
            input: InputState::Open,
            started: false,
            called_off: None,
            deadline: hosts.deadline,
            wind_up_until: None,
        })
    }

    /// Sends the starts once every host has answered.
    fn start_if_all_answered(&mut self) {
        let answered = |agent: &Agent| agent.link.state == State::Greeted;
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
                agent.link.send(&Command::Start(start));
            }
        }
    }

    fn take_reports(&mut self, index: usize, heard: &mut Vec<Event>) {
        loop {
            let Some(agent) = self.agents.get_mut(index) else {
                return;
            };
            let report = match agent.link.next_report() {
                Ok(Some(report)) => report,
                Ok(None) => break,
                Err(error) => {
                    self.fail(index, 125, &error.to_string(), heard);
                    return;
                }
            };
            if let Report::Refused { status, why } = report {
                self.fail(index, status, &why, heard);
                return;
            }
            if let Some(event) = agent.take(report, heard, &mut self.input) {
                heard.push(event);
            }
        }
        self.start_if_all_answered();
    }

    /// Gives a host up.
    fn fail(&mut self, index: usize, status: i32, why: &str, heard: &mut Vec<Event>) {
        let Some(agent) = self.agents.get_mut(index) else {
            return;
        };
        if agent.link.state.is_over() {
            return;
        }
        let host = agent.link.host.clone();
        agent.give_up(How::Signal(libc::SIGKILL), heard);
        if !self.started {
            // Nothing runs yet, and nothing shall.
            for agent in &mut self.agents {
                agent.give_up(How::Signal(libc::SIGKILL), heard);
            }
        }
        let why = format!("host {host}: {why}");
        heard.push(Event::HostFailed { host, status, why });
    }

    /// A host's command has ended: hears what it has said.
    fn hear_last(&mut self, index: usize, heard: &mut Vec<Event>) {
        while let Some(agent) = self.agents.get_mut(index)
            && agent.link.read_reports_that_came()
        {
            self.take_reports(index, heard);
        }
        if let Some(agent) = self.agents.get_mut(index) {
            agent.link.read_errors(heard);
            agent.link.end_errors(heard);
        }
        self.lose(index, heard);
    }

    /// The connection to a host has ended.
    fn lose(&mut self, index: usize, heard: &mut Vec<Event>) {
        if let Some(agent) = self.agents.get(index) {
            let why = agent.link.epitaph();
            self.fail(index, 125, &why, heard);
        }
    }

    /// Sends some of this process's input on.
    fn pass_input(&mut self) {
        let mut bytes = vec![0; INPUT_BYTES];
        let count = match rustix::io::read(input::own_input(), &mut bytes) {
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => return,
            // What cannot be read has ended.
            Err(_) => 0,
            Ok(count) => count,
        };
        bytes.truncate(count);
        self.input = match count {
            0 => InputState::Over,
            _ => InputState::Sent,
        };
        if let Some(agent) = self.agents.first_mut() {
            agent.link.send(&Command::Input(bytes));
        }
    }

    fn wants_input(&self) -> bool {
        let runs = |agent: &Agent| agent.link.state == State::Running;
        self.input == InputState::Open
            && self.agents.first().is_some_and(runs)
            && (!std::io::stdin().is_terminal() || input::in_foreground())
    }
}

impl Agent {
    fn ranks(&self) -> std::ops::Range<u32> {
        self.first..self.first + self.count
    }

    /// Takes a report, and gives the news in it.
    fn take(
        &mut self,
        report: Report,
        heard: &mut Vec<Event>,
        input: &mut InputState,
    ) -> Option<Event> {
        let rank = |index: u32| self.ranks().nth(index as usize);
        match report {
            Report::Started(pids) => {
                let started = self.ranks().zip(pids);
                heard.extend(started.map(|(rank, pid)| Event::Started { rank, pid }));
                self.due = None;
                self.link.state = State::Running;
                None
            }
            Report::Output {
                index,
                stream,
                bytes,
            } => {
                let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
                let rank = rank(index)?;
                self.heard = self.heard.saturating_add(length);
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
            Report::Ended { index, how } => {
                let rank = rank(index)?;
                if rank == 0 {
                    *input = InputState::Over;
                }
                Some(Event::Ended { rank, how })
            }
            Report::InputTaken => {
                if *input == InputState::Sent {
                    *input = InputState::Open;
                }
                None
            }
            Report::Done => {
                self.link.state = State::Done;
                None
            }
            // The caller's.
            Report::Refused { .. } => None,
        }
    }

    /// Hangs up. Its PEs count as ended `so`, unless their ends are known.
    fn give_up(&mut self, so: How, heard: &mut Vec<Event>) {
        if self.link.state.is_over() {
            return;
        }
        self.link.give_up();
        self.due = None;
        heard.extend(self.ranks().map(|rank| Event::Ended { rank, how: so }));
    }
}

impl Crew for Remote {
    fn watch<'a>(&'a self, watched: &mut Vec<Watched<'a>>) {
        if self.wants_input() {
            let input = input::own_input();
            watched.push(Watched::new(INPUT, input, PollFlags::IN));
        }
        for (index, agent) in self.agents.iter().enumerate() {
            let token = KINDS * index;
            if let Some(reports) = agent.link.reports() {
                watched.push(Watched::new(token + REPORTS, reports, PollFlags::IN));
            }
            if let Some(errors) = agent.link.errors() {
                let errors = Watched::new(token + ERRORS, errors, PollFlags::IN);
                watched.push(errors.bringing(Stream::Err));
            }
            if let Some(commands) = agent.link.commands_to_flush() {
                watched.push(Watched::new(token + COMMANDS, commands, PollFlags::OUT));
            }
            if let Some(process) = agent.link.process() {
                watched.push(Watched::new(token + PROCESS, process, PollFlags::IN));
            }
        }
    }

    fn act(&mut self, token: usize, heard: &mut Vec<Event>) -> Result<()> {
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
                let open = agent.link.read_reports();
                self.take_reports(index, heard);
                if !open && let Some(agent) = self.agents.get_mut(index) {
                    // Its process's end, which says more, is near.
                    agent.due = Some(Instant::now() + super::link::PATIENCE);
                }
            }
            ERRORS => agent.link.read_errors(heard),
            COMMANDS => agent.link.flush(),
            _ => {
                if agent.link.reap()? {
                    self.hear_last(index, heard);
                }
            }
        }
        Ok(())
    }

    fn go_on(&mut self) {
        for agent in &mut self.agents {
            if agent.heard > 0 && !agent.link.state.is_over() {
                let count = std::mem::take(&mut agent.heard);
                agent.link.send(&Command::Taken(count));
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
            agent.link.send(&Command::Signal(signal.as_raw()));
        }
    }

    fn kill(&mut self) {
        if !self.started {
            self.called_off
                .get_or_insert((Signal::KILL, Instant::now()));
        }
        for agent in self.agents.iter_mut().filter(|_| self.started) {
            agent.link.send(&Command::Kill);
        }
    }

    fn abandon(&mut self, heard: &mut Vec<Event>) {
        for index in 0..self.agents.len() {
            let why = "it does not answer; nothing is known of its PEs, which end by themselves \
                       when they cannot reach this host";
            self.fail(index, 125, why, heard);
        }
    }

    fn due(&self) -> Option<Instant> {
        let called_off = self.called_off.map(|(_, at)| at);
        let dues = self.agents.iter().filter_map(|agent| agent.due);
        dues.chain(called_off).chain(self.wind_up_until).min()
    }

    fn expire(&mut self, now: Instant, heard: &mut Vec<Event>) {
        if let Some((signal, _)) = self.called_off.take() {
            for agent in &mut self.agents {
                agent.give_up(How::Signal(signal.as_raw()), heard);
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
            if !agent.link.is_connected() {
                self.lose(index, heard);
                continue;
            }
            let (command, within) = (agent.link.command.clone(), self.deadline);
            let why = match agent.link.state {
                State::Silent => format!(
                    "no answer within {within:?} from `{command}`; check that this command works \
                     without a question, and that the host is up"
                ),
                _ => format!(
                    "its PEs were not started within {within:?}; see whether the host's file \
                     systems or name service hang"
                ),
            };
            self.fail(index, 125, &why, heard);
        }
        if self.wind_up_until.is_some_and(|at| at <= now) {
            // A reader of the output that has stopped may be why.
            let waits = self.agents.iter().any(|agent| agent.heard > 0);
            self.wind_up_until = Some(now + LAST_WORDS);
            for agent in self.agents.iter_mut().filter(|_| !waits) {
                agent.link.give_up();
            }
        }
    }

    fn wind_up(&mut self, _heard: &mut Vec<Event>) {
        self.input = InputState::Over;
        self.wind_up_until = Some(Instant::now() + LAST_WORDS);
    }

    fn is_wound_up(&self) -> bool {
        let over = |agent: &Agent| match agent.link.state {
            State::Gone => true,
            State::Done => agent.link.process().is_none(),
            _ => false,
        };
        self.agents.iter().all(over)
    }
}
