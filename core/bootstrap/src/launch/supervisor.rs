//! The supervisor: one loop that polls everything at once, from the job's start to its end.

use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;

use super::job::Launch;
use super::job_end::{JobEnd, Outcome};
use super::lines::Lines;
use super::process_group::{Event, ProcessGroup, Stream, Watched};
use super::signals::CaughtSignals;
use super::sink::{Sink, standard};
use crate::error::{Result, io, ranks_in_words};
use crate::exit_status::ExitStatus;
use crate::hub::Hub;

/// Time between SIGTERM and SIGKILL, when a PE has failed.
const GRACE: Duration = Duration::from_millis(500);
/// Time limit for the end of a process whose connection ended before another PE failed: a busy
/// kernel takes its time to take a large heap apart, and word from another host takes time to come.
const SUSPENSE: Duration = Duration::from_secs(1);
/// The status of an abort by a PE whose call failed, as the C binding ends the job.
const FAILED_CALL: i32 = 1;
/// Time between SIGTERM and SIGKILL, when the launcher itself was asked to end.
const GRACE_AFTER_TERM: Duration = Duration::from_secs(3);
/// Time after the user's interrupt at which the PEs get it even if they have not told their waits.
const INTERRUPT_WITHIN: Duration = Duration::from_millis(1500);
/// Time limit for word of killed processes.
const GRACE_AFTER_KILL: Duration = Duration::from_secs(5);

pub(super) struct Supervisor {
    // Dropped in this order: processes first, then the rendezvous.
    processes: Box<dyn ProcessGroup>,
    pes: Vec<SupervisedPe>,
    hub: Hub,
    signals: CaughtSignals,
    stdout: Sink,
    stderr: Sink,
    timeout: Option<(Instant, Duration)>,
    /// The time at which PEs that still run are killed.
    kill_at: Option<Instant>,
    /// The time at which killed PEs are waited for no more.
    abandon_at: Option<Instant>,
    /// A PE has failed, but another's connection ended before: the time at which that one is waited for no more.
    judge_at: Option<Instant>,
    /// The last signal that told the launcher to end, and the number of those.
    told_to_end: Option<Signal>,
    requests: u32,
    end: Option<JobEnd>,
    /// The user has asked for the PEs' waits, so they are shown even if no PE waits.
    shows_waits: bool,
    /// The PEs have not told their waits yet: the time at which they are interrupted without that.
    interrupt_at: Option<Instant>,
}

/// The supervisor's state of a PE.
struct SupervisedPe {
    rank: u32,
    pid: Option<u32>,
    /// Its host's name, where that is not this host.
    host: Option<String>,
    ended: Option<ExitStatus>,
    stdout: Lines,
    stderr: Lines,
}

/// The meaning of a descriptor that was polled.
#[derive(Clone, Copy)]
enum Source {
    Hub,
    Signals,
    Processes(usize, Option<Stream>),
    Sink,
}

impl Supervisor {
    pub(super) fn new(
        launch: &Launch,
        processes: Box<dyn ProcessGroup>,
        hub: Hub,
        signals: CaughtSignals,
    ) -> Supervisor {
        let now = Instant::now();
        let timeout = launch
            .timeout
            .and_then(|limit| Some((now.checked_add(limit)?, limit)));
        let pe = |rank| SupervisedPe {
            rank,
            pid: None,
            host: launch.host_of(rank).map(str::to_owned),
            ended: None,
            stdout: Lines::new(rank),
            stderr: Lines::new(rank),
        };
        Supervisor {
            processes,
            pes: (0..launch.pes).map(pe).collect(),
            hub,
            signals,
            stdout: Sink::new(standard(libc::STDOUT_FILENO), launch.tag_output),
            stderr: Sink::new(standard(libc::STDERR_FILENO), launch.tag_output),
            timeout,
            kill_at: None,
            abandon_at: None,
            judge_at: None,
            told_to_end: None,
            requests: 0,
            end: None,
            shows_waits: false,
            interrupt_at: None,
        }
    }

    /// Runs the job to its end. `events` are those from its start.
    pub(super) fn run(mut self, events: Vec<Event>) -> Result<Outcome> {
        self.apply_events(events);
        while self.runs() {
            let due = [
                self.timeout.map(|(at, _)| at),
                self.kill_at,
                self.abandon_at,
                self.judge_at,
                self.interrupt_at,
            ];
            self.step(due.into_iter().flatten().min())?;
            self.check_times();
        }
        self.drain()?;
        let end = self.end.take().unwrap_or(JobEnd::Success);
        Ok(Outcome {
            status: end.status(),
            end,
        })
    }

    /// Whether a PE has not ended.
    fn runs(&self) -> bool {
        self.pes.iter().any(|pe| pe.ended.is_none())
    }

    /// Waits for an event, at most until `due`, and acts on it.
    fn step(&mut self, due: Option<Instant>) -> Result<()> {
        if !self.stdout.is_full() && !self.stderr.is_full() {
            self.processes.output_taken();
        }
        let due = due.into_iter().chain(self.processes.due()).min();
        let ready = self.wait(due)?;
        let mut events = Vec::new();
        let mut some_ended = false;
        for source in ready {
            match source {
                Source::Hub => {
                    self.check_abort();
                    self.check_waits();
                }
                Source::Signals => self.handle_signals()?,
                Source::Processes(token, output) => {
                    if output.is_none_or(|stream| !self.is_full(stream)) {
                        self.processes.handle_ready(token, &mut events)?;
                        some_ended |= self.apply_events(std::mem::take(&mut events));
                    }
                }
                Source::Sink => {}
            }
        }
        let now = Instant::now();
        if self.processes.due().is_some_and(|due| due <= now) {
            self.processes.expire(now, &mut events);
            some_ended |= self.apply_events(events);
        }
        if some_ended {
            self.check_ends();
        }
        self.stdout.flush();
        self.stderr.flush();
        self.check_output();
        Ok(())
    }

    fn is_full(&self, stream: Stream) -> bool {
        match stream {
            Stream::Out => self.stdout.is_full(),
            Stream::Err => self.stderr.is_full(),
        }
    }

    fn wait(&self, due: Option<Instant>) -> Result<Vec<Source>> {
        let mut sources = vec![Source::Hub, Source::Signals];
        let mut waits = vec![
            PollFd::new(self.hub.wake_descriptor(), PollFlags::IN),
            PollFd::new(&self.signals, PollFlags::IN),
        ];
        for sink in [&self.stdout, &self.stderr]
            .into_iter()
            .filter(|sink| !sink.is_empty())
        {
            sources.push(Source::Sink);
            waits.push(PollFd::from_borrowed_fd(sink.stream(), PollFlags::OUT));
        }
        let mut watched = Vec::new();
        self.processes.watch(&mut watched);
        for Watched {
            token,
            output,
            wait,
        } in watched
        {
            if output.is_none_or(|stream| !self.is_full(stream)) {
                sources.push(Source::Processes(token, output));
                waits.push(wait);
            }
        }
        let left = due.map(|due| due.saturating_duration_since(Instant::now()));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        match poll(&mut waits, left.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(io("waiting for the PEs")(error)),
        }
        let ready = sources
            .into_iter()
            .zip(&waits)
            .filter(|(_, wait)| !wait.revents().is_empty());
        Ok(ready.map(|(source, _)| source).collect())
    }

    /// Applies the processes' events; true if a PE has ended.
    fn apply_events(&mut self, events: Vec<Event>) -> bool {
        let mut some_ended = false;
        for event in events {
            match event {
                Event::Started { rank, pid } => {
                    if let Some(pe) = self.pes.get_mut(rank as usize) {
                        pe.pid = Some(pid);
                    }
                }
                Event::Output {
                    rank,
                    stream,
                    bytes,
                } => {
                    if let Some((lines, sink)) = self.output(rank, stream) {
                        lines.push(&bytes, sink);
                    }
                }
                Event::OutputEnd { rank, stream } => {
                    if let Some((lines, sink)) = self.output(rank, stream) {
                        lines.finish(sink);
                    }
                }
                Event::Ended { rank, exit } => {
                    let pe = self.pes.get_mut(rank as usize);
                    if let Some(pe) = pe.filter(|pe| pe.ended.is_none()) {
                        pe.ended = Some(exit);
                        self.hub.process_ended(rank);
                        some_ended = true;
                    }
                }
                Event::Note(line) => self.stderr.say(&line),
                Event::HostFailed { host, status, why } => self.lose_host(host, status, &why),
            }
        }
        some_ended
    }

    /// The lines and the sink of a PE's output.
    fn output(&mut self, rank: u32, stream: Stream) -> Option<(&mut Lines, &mut Sink)> {
        let pe = self.pes.get_mut(rank as usize)?;
        Some(match stream {
            Stream::Out => (&mut pe.stdout, &mut self.stdout),
            Stream::Err => (&mut pe.stderr, &mut self.stderr),
        })
    }

    /// A host is out of reach: ends the job, unless it is ending.
    fn lose_host(&mut self, host: String, status: i32, why: &str) {
        self.check_abort();
        let end = match self.told_to_end {
            Some(told) => JobEnd::Signalled(told.as_raw()),
            None => JobEnd::HostFailed { host, status },
        };
        self.begin_end(end, Some(why));
    }

    /// Begins the job's end: reports the cause, and asks PEs that still run to end.
    fn begin_end(&mut self, end: JobEnd, why: Option<&str>) {
        if self.end.is_some() {
            return;
        }
        if let Some(why) = why {
            let others = self.runs();
            self.stderr.say(&format!(
                "{why}{}",
                if others { "; ending the other PEs" } else { "" }
            ));
        }
        self.end = Some(end);
        self.processes.signal(Signal::TERM);
        // A stopped process acts on it only when it goes on.
        self.processes.signal(Signal::CONT);
        let kill_at = Instant::now() + GRACE;
        self.kill_at = Some(self.kill_at.map_or(kill_at, |at| at.min(kill_at)));
    }

    fn check_abort(&mut self) {
        let abort = self.hub.abort();
        self.pass_warnings();
        let Some(notice) = abort else {
            return;
        };
        // A call that fails because of a lost PE is no cause of its own: the lost PE's end is.
        if notice.status == FAILED_CALL {
            match self.first_lost() {
                Some(Some(_)) => return,
                Some(None) if self.awaits_suspect() => return,
                _ => {}
            }
        }
        let why = notice.words("PE");
        self.begin_end(JobEnd::Aborted(notice), Some(&why));
    }

    fn pass_warnings(&mut self) {
        for warning in self.hub.take_warnings() {
            self.stderr.say(&format!("warning: {warning}"));
        }
    }

    /// Some PEs have ended: ends the job if one failed, and names the first that failed.
    fn check_ends(&mut self) {
        // An abort makes PEs exit, and it is told before they do.
        self.check_abort();
        if self.end.is_some() {
            return;
        }
        let Some((rank, exit)) = self.first_failed() else {
            return;
        };
        if let Some(told) = self.told_to_end.filter(|told| explains(*told, exit)) {
            self.begin_end(JobEnd::Signalled(told.as_raw()), None);
            return;
        }
        if self.first_lost() == Some(None) && self.awaits_suspect() {
            return;
        }
        let why = format!("{} {}", self.name(rank), exit.in_words());
        self.begin_end(JobEnd::Failed { rank, exit }, Some(&why));
    }

    /// A PE's rank, process and host, in words.
    fn name(&self, rank: u32) -> String {
        let pe = self.pes.get(rank as usize);
        let pid = pe.and_then(|pe| pe.pid).unwrap_or(0);
        match pe.and_then(|pe| pe.host.as_ref()) {
            Some(host) => format!("PE {rank} (pid {pid} on {host})"),
            None => format!("PE {rank} (pid {pid})"),
        }
    }

    /// The PE that failed first, as far as that can be told now.
    fn first_failed(&self) -> Option<(u32, ExitStatus)> {
        let lost = self.hub.lost();
        let failed =
            |pe: &SupervisedPe| Some((pe.rank, pe.ended.filter(|exit| !exit.succeeded())?));
        let order = |(rank, exit): &(u32, ExitStatus)| {
            // The others may have failed because of the rank whose connection ended first.
            let place = lost.iter().position(|lost| lost == rank);
            // Of ranks that had no connection, one that was killed is more likely to have failed first.
            let exited = !matches!(exit, ExitStatus::Signal(_));
            (place.unwrap_or(usize::MAX), exited, *rank)
        };
        self.pes.iter().filter_map(failed).min_by_key(order)
    }

    /// The end of the first PE whose connection ended, except for PEs that have ended well: `Some(None)` while
    /// that PE still runs.
    fn first_lost(&self) -> Option<Option<ExitStatus>> {
        let pe = |rank: u32| self.pes.iter().find(|pe| pe.rank == rank);
        let lost = self.hub.lost();
        let mut ends = lost.into_iter().filter_map(pe).map(|pe| pe.ended);
        ends.find(|end| !end.is_some_and(ExitStatus::succeeded))
    }

    /// Whether the end of the first lost PE is still waited for.
    fn awaits_suspect(&mut self) -> bool {
        let now = Instant::now();
        *self.judge_at.get_or_insert(now + SUSPENSE) > now
    }

    fn handle_signals(&mut self) -> Result<()> {
        while let Some(signal) = self.signals.next()? {
            let is_first = self.requests == 0 && self.end.is_none();
            if signal == Signal::INT && is_first {
                self.hub.ask_waits();
                self.interrupt_at = Some(Instant::now() + INTERRUPT_WITHIN);
            } else {
                self.processes.signal(signal);
            }
            match signal {
                Signal::USR1 => {
                    self.shows_waits = true;
                    self.hub.ask_waits();
                }
                Signal::INT | Signal::QUIT => {
                    self.told_to_end = Some(signal);
                    self.requests += 1;
                    if self.requests > 1 {
                        self.interrupt_at = None;
                        self.kill_at = Some(Instant::now());
                    }
                }
                Signal::TERM | Signal::HUP => {
                    self.told_to_end = Some(signal);
                    self.requests += 1;
                    self.kill_at
                        .get_or_insert(Instant::now() + GRACE_AFTER_TERM);
                }
                Signal::TSTP => {
                    // The PEs stop; so does the launcher, until it is told to go on.
                    let _ = rustix::process::kill_process(rustix::process::getpid(), Signal::STOP);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Shows the PEs' waits, if they have told them, and then passes on the user's interrupt.
    fn check_waits(&mut self) {
        let Some(snapshot) = self.hub.take_waits() else {
            return;
        };
        if std::mem::take(&mut self.shows_waits) || snapshot.shows_waits() {
            snapshot
                .lines()
                .iter()
                .for_each(|line| self.stderr.say(line));
        }
        self.interrupt();
    }

    fn interrupt(&mut self) {
        if self.interrupt_at.take().is_some() {
            self.processes.signal(Signal::INT);
        }
    }

    /// Ends the job if its output goes nowhere.
    fn check_output(&mut self) {
        let Some(fault) = self.stdout.fault().filter(|_| self.end.is_none()) else {
            return;
        };
        if fault == rustix::io::Errno::PIPE {
            self.begin_end(JobEnd::OutputClosed, None);
        } else {
            let why = std::io::Error::from(fault);
            self.stderr.say(&format!("cannot write the output: {why}"));
            self.begin_end(JobEnd::OutputFailed(fault.raw_os_error()), None);
        }
    }

    fn check_times(&mut self) {
        let now = Instant::now();
        if let Some((_, limit)) = self.timeout.filter(|(at, _)| *at <= now) {
            self.timeout = None;
            let running = self.pes.iter().filter(|pe| pe.ended.is_none());
            let running: Vec<u32> = running.map(|pe| pe.rank).collect();
            if self.end.is_none() && !running.is_empty() {
                let who = ranks_in_words(&running).replace("rank", "PE");
                let line =
                    format!("timed out after {limit:?} with {who} still running; ending the job");
                self.stderr.say(&line);
                self.begin_end(JobEnd::TimedOut { running }, None);
            }
        }
        if self.interrupt_at.is_some_and(|at| at <= now) {
            self.interrupt();
        }
        if self.judge_at.is_some_and(|at| at <= now) {
            self.check_ends();
            self.judge_at = None;
        }
        if self.kill_at.is_some_and(|at| at <= now) {
            self.kill_at = None;
            self.processes.kill();
            self.abandon_at.get_or_insert(now + GRACE_AFTER_KILL);
        }
        if self.abandon_at.is_some_and(|at| at <= now) {
            self.abandon_at = None;
            let mut events = Vec::new();
            self.processes.abandon(&mut events);
            self.apply_events(events);
        }
    }

    /// All PEs have ended: ends the processes that they left running, and passes on the last output.
    fn drain(&mut self) -> Result<()> {
        let mut events = Vec::new();
        self.processes.finish(&mut events);
        self.apply_events(events);
        self.pass_warnings();
        let requests = self.requests;
        // A launcher that was told to end does not wait long for a reader that has stopped.
        let is_late = matches!(self.end, Some(JobEnd::TimedOut { .. }));
        let hurry = is_late || self.told_to_end.is_some();
        let give_up = hurry.then(|| Instant::now() + GRACE);
        while !(self.processes.is_finished() && self.stdout.is_empty() && self.stderr.is_empty()) {
            if self.requests > requests || give_up.is_some_and(|at| at <= Instant::now()) {
                return Ok(());
            }
            self.step(give_up)?;
        }
        Ok(())
    }
}

/// Whether this end of a PE is the effect of the signal by which the launcher, and so the PE, was told to end.
fn explains(told: Signal, exit: ExitStatus) -> bool {
    match told {
        // A program may go on after these; if it does, its later failures are its own.
        Signal::INT | Signal::QUIT => {
            let by = [told.as_raw(), libc::SIGKILL];
            by.iter()
                .any(|by| exit == ExitStatus::Signal(*by) || exit == ExitStatus::Exit(128 + by))
        }
        // All are to end, and some may fail because others have.
        _ => true,
    }
}
