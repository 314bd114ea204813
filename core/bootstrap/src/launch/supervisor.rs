//! Seeing a job through: one loop that waits for everything at once.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;

use super::guardian::Guardian;
use super::input::Pump;
use super::pe::Pe;
use super::signals::Caught;
use super::sink::Sink;
use super::{Ending, How, Launch, Outcome};
use crate::Result;
use crate::error::{io, ranks_in_words};
use crate::hub::Hub;

/// Between the polite request to end and the kill, when a PE has failed.
const GRACE: Duration = Duration::from_millis(500);
/// How long the end of a process is waited for whose connection ended before another PE failed.
const SUSPENSE: Duration = Duration::from_millis(100);
/// Between the polite request to end and the kill, when the launcher itself was asked to end.
const GRACE_AFTER_TERM: Duration = Duration::from_secs(3);

pub(super) struct Supervisor {
    // Dropped in this order: PEs first, then what is left of their group, then the rendezvous.
    pes: Vec<Pe>,
    guardian: Guardian,
    hub: Hub,
    signals: Caught,
    stdout: Sink,
    stderr: Sink,
    input: Option<Pump>,
    scratch: Vec<u8>,
    timeout: Option<(Instant, Duration)>,
    /// When those that still run are killed.
    kill_at: Option<Instant>,
    /// A PE has failed, but another's connection ended before: when that one is waited for no more.
    judge_at: Option<Instant>,
    /// The last signal that told the launcher to end, and how many such came.
    told_to_end: Option<Signal>,
    requests: u32,
    ending: Option<Ending>,
}

/// What `poll` watched.
#[derive(Clone, Copy)]
enum Source {
    Hub,
    Signals,
    Input,
    End(usize),
    Stdout(usize),
    Stderr(usize),
    Sink,
}

impl Supervisor {
    pub(super) fn new(
        launch: &Launch,
        mut pes: Vec<Pe>,
        guardian: Guardian,
        hub: Hub,
        signals: Caught,
    ) -> Result<Supervisor> {
        let now = Instant::now();
        let timeout = launch
            .timeout
            .and_then(|limit| Some((now.checked_add(limit)?, limit)));
        let input = pes
            .first_mut()
            .and_then(|pe| pe.stdin.take())
            .map(Pump::new);
        Ok(Supervisor {
            pes,
            guardian,
            hub,
            signals,
            stdout: Sink::new(standard(libc::STDOUT_FILENO), launch.tag_output),
            stderr: Sink::new(standard(libc::STDERR_FILENO), launch.tag_output),
            input,
            scratch: vec![0; 64 << 10],
            timeout,
            kill_at: None,
            judge_at: None,
            told_to_end: None,
            requests: 0,
            ending: None,
        })
    }

    pub(super) fn run(mut self) -> Result<Outcome> {
        while self.pes.iter().any(|pe| pe.ended.is_none()) {
            let due = [self.timeout.map(|(at, _)| at), self.kill_at, self.judge_at];
            let due = due.into_iter().flatten().min();
            self.step(due, true)?;
            self.check_times();
        }
        self.drain()?;
        let ending = self.ending.take().unwrap_or(Ending::Success);
        Ok(Outcome {
            status: ending.status(),
            ending,
        })
    }

    /// Waits for something to happen, at most until `due`, and acts on it.
    fn step(&mut self, due: Option<Instant>, running: bool) -> Result<()> {
        let ready = self.wait(due, running)?;
        let mut some_ended = false;
        for source in ready {
            match source {
                Source::Hub => self.check_abort(),
                Source::Signals => self.heed_signals()?,
                Source::Input => {
                    if !self.input.as_mut().is_some_and(Pump::step) {
                        self.input = None;
                    }
                }
                Source::End(index) => {
                    if let Some(pe) = self.pes.get_mut(index)
                        && pe.reap()?
                    {
                        self.hub.process_ended(pe.rank);
                        some_ended = true;
                    }
                }
                Source::Stdout(index) => {
                    if let Some(pe) = self.pes.get_mut(index)
                        && !self.stdout.is_full()
                    {
                        pe.stdout.read(&mut self.scratch, &mut self.stdout);
                    }
                }
                Source::Stderr(index) => {
                    if let Some(pe) = self.pes.get_mut(index)
                        && !self.stderr.is_full()
                    {
                        pe.stderr.read(&mut self.scratch, &mut self.stderr);
                    }
                }
                Source::Sink => {}
            }
        }
        if some_ended {
            self.check_ends();
        }
        self.stdout.flush();
        self.stderr.flush();
        self.check_output();
        Ok(())
    }

    fn wait(&self, due: Option<Instant>, running: bool) -> Result<Vec<Source>> {
        let mut sources = vec![Source::Hub, Source::Signals];
        let mut waits = vec![
            PollFd::new(self.hub.attention(), PollFlags::IN),
            PollFd::new(&self.signals, PollFlags::IN),
        ];
        if let Some((descriptor, write)) = self.input.as_ref().and_then(Pump::wants) {
            sources.push(Source::Input);
            let events = if write { PollFlags::OUT } else { PollFlags::IN };
            waits.push(PollFd::from_borrowed_fd(descriptor, events));
        }
        for sink in [&self.stdout, &self.stderr]
            .into_iter()
            .filter(|sink| !sink.is_empty())
        {
            sources.push(Source::Sink);
            waits.push(PollFd::from_borrowed_fd(sink.stream(), PollFlags::OUT));
        }
        for (index, pe) in self.pes.iter().enumerate() {
            if running && pe.ended.is_none() {
                sources.push(Source::End(index));
                waits.push(PollFd::new(&pe.pidfd, PollFlags::IN));
            }
            if let Some(pipe) = pe.stdout.descriptor().filter(|_| !self.stdout.is_full()) {
                sources.push(Source::Stdout(index));
                waits.push(PollFd::from_borrowed_fd(pipe, PollFlags::IN));
            }
            if let Some(pipe) = pe.stderr.descriptor().filter(|_| !self.stderr.is_full()) {
                sources.push(Source::Stderr(index));
                waits.push(PollFd::from_borrowed_fd(pipe, PollFlags::IN));
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

    /// Begins the job's end: says why, and asks those that still run to end.
    fn end(&mut self, ending: Ending, why: Option<&str>) {
        if self.ending.is_some() {
            return;
        }
        if let Some(why) = why {
            let others = self.pes.iter().any(|pe| pe.ended.is_none());
            self.stderr.say(&format!(
                "{why}{}",
                if others { "; ending the other PEs" } else { "" }
            ));
        }
        self.ending = Some(ending);
        self.guardian.signal(Signal::TERM);
        // A stopped process acts on it only when it goes on.
        self.guardian.signal(Signal::CONT);
        let kill_at = Instant::now() + GRACE;
        self.kill_at = Some(self.kill_at.map_or(kill_at, |at| at.min(kill_at)));
    }

    fn check_abort(&mut self) {
        if let Some(notice) = self.hub.abort() {
            let why = format!(
                "PE {} aborted the job with status {}: {}",
                notice.rank, notice.status, notice.why
            );
            self.end(Ending::Aborted(notice), Some(&why));
        }
    }

    /// Some PEs have ended: ends the job if one failed, and names the first that did.
    fn check_ends(&mut self) {
        // An abort makes PEs exit, and it is told before they do.
        self.check_abort();
        if self.ending.is_some() {
            return;
        }
        let Some((rank, how)) = self.first_failed() else {
            return;
        };
        if let Some(told) = self.told_to_end.filter(|told| explains(*told, how)) {
            self.end(Ending::Signalled(told.as_raw()), None);
            return;
        }
        let now = Instant::now();
        if self.has_suspect() && *self.judge_at.get_or_insert(now + SUSPENSE) > now {
            return;
        }
        let pid = self
            .pes
            .iter()
            .find(|pe| pe.rank == rank)
            .map_or(0, Pe::pid);
        let why = format!("PE {rank} (pid {pid}) {}", how.in_words());
        self.end(Ending::Failed { rank, how }, Some(&why));
    }

    /// The PE that failed first, as far as that can be told now.
    fn first_failed(&self) -> Option<(u32, How)> {
        let lost = self.hub.lost();
        let failed = |pe: &Pe| Some((pe.rank, pe.ended.filter(|how| !how.succeeded())?));
        let order = |(rank, how): &(u32, How)| {
            // The others may have failed because of the first whose connection ended.
            let place = lost.iter().position(|lost| lost == rank);
            // Of those that had none, one that was killed is more likely to have come first.
            let exited = !matches!(how, How::Signal(_));
            (place.unwrap_or(usize::MAX), exited, *rank)
        };
        self.pes.iter().filter_map(failed).min_by_key(order)
    }

    /// Whether the first PE whose connection ended, but for those that have ended well, still runs.
    fn has_suspect(&self) -> bool {
        let pe = |rank: u32| self.pes.iter().find(|pe| pe.rank == rank);
        let lost = self.hub.lost();
        let mut ends = lost.into_iter().filter_map(pe).map(|pe| pe.ended);
        ends.find(|end| !end.is_some_and(How::succeeded)) == Some(None)
    }

    fn heed_signals(&mut self) -> Result<()> {
        while let Some(signal) = self.signals.next()? {
            self.guardian.signal(signal);
            match signal {
                Signal::INT | Signal::QUIT => {
                    self.told_to_end = Some(signal);
                    self.requests += 1;
                    if self.requests > 1 {
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

    /// Ends the job if its output goes nowhere.
    fn check_output(&mut self) {
        let Some(fault) = self.stdout.fault().filter(|_| self.ending.is_none()) else {
            return;
        };
        if fault == rustix::io::Errno::PIPE {
            self.end(Ending::OutputClosed, None);
        } else {
            let why = std::io::Error::from(fault);
            self.stderr.say(&format!("cannot write the output: {why}"));
            self.end(Ending::OutputFailed(fault.raw_os_error()), None);
        }
    }

    fn check_times(&mut self) {
        let now = Instant::now();
        if let Some((_, limit)) = self.timeout.filter(|(at, _)| *at <= now) {
            self.timeout = None;
            let running = self.pes.iter().filter(|pe| pe.ended.is_none());
            let running: Vec<u32> = running.map(|pe| pe.rank).collect();
            if self.ending.is_none() && !running.is_empty() {
                let who = ranks_in_words(&running).replace("rank", "PE");
                let line =
                    format!("timed out after {limit:?} with {who} still running; ending the job");
                self.stderr.say(&line);
                self.end(Ending::TimedOut { running }, None);
            }
        }
        if self.judge_at.is_some_and(|at| at <= now) {
            self.check_ends();
            self.judge_at = None;
        }
        if self.kill_at.is_some_and(|at| at <= now) {
            self.kill_at = None;
            self.guardian.signal(Signal::KILL);
            self.pes.iter_mut().for_each(Pe::kill);
        }
    }

    /// All PEs have ended: ends what they left running, and passes on what they said last.
    fn drain(&mut self) -> Result<()> {
        self.guardian.signal(Signal::KILL);
        self.input = None;
        let requests = self.requests;
        // One that was to end does not wait long for a reader that has stopped.
        let is_late = matches!(self.ending, Some(Ending::TimedOut { .. }));
        let hurry = is_late || self.told_to_end.is_some();
        let give_up = hurry.then(|| Instant::now() + GRACE);
        // What left the group, and still writes, is not heard.
        for pe in &mut self.pes {
            pe.stdout.end_with_what_came(&mut self.stdout);
            pe.stderr.end_with_what_came(&mut self.stderr);
        }
        let mut finished = false;
        while !(finished && self.stdout.is_empty() && self.stderr.is_empty()) {
            if self.requests > requests || give_up.is_some_and(|at| at <= Instant::now()) {
                return Ok(());
            }
            if self.stdout.is_full() || self.stderr.is_full() || finished {
                self.step(give_up, false)?;
                continue;
            }
            let mut more = false;
            for pe in &mut self.pes {
                more |= pe.stdout.read(&mut self.scratch, &mut self.stdout);
                more |= pe.stderr.read(&mut self.scratch, &mut self.stderr);
                if self.stdout.is_full() || self.stderr.is_full() {
                    more = true;
                    break;
                }
            }
            finished = !more;
            self.stdout.flush();
            self.stderr.flush();
            self.check_output();
        }
        Ok(())
    }
}

/// Whether a PE that ended so did because the launcher was told to end, and told the PEs.
fn explains(told: Signal, how: How) -> bool {
    match told {
        // A program may go on after these; where it does, its later failures are its own.
        Signal::INT | Signal::QUIT => {
            let by = [told.as_raw(), libc::SIGKILL];
            by.iter()
                .any(|by| how == How::Signal(*by) || how == How::Exit(128 + by))
        }
        // All are to end, and some may fail because others have.
        _ => true,
    }
}

/// One of the process's standard streams.
fn standard(descriptor: i32) -> BorrowedFd<'static> {
    // SAFETY: Rust opens the standard streams at start where they are closed, and nothing here
    // closes them.
    unsafe { BorrowedFd::borrow_raw(descriptor) }
}
