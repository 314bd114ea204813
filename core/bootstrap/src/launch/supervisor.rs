//! Seeing a job through: one loop that waits for everything at once.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;

use super::crew::{Crew, Event, Stream, Watched};
use super::lines::Lines;
use super::signals::Caught;
use super::sink::Sink;
use super::{Ending, How, Launch, Outcome};
use crate::Result;
use crate::error::{io, ranks_in_words};
use crate::hub::Hub;

/// Between the polite request to end and the kill, when a PE has failed.
const GRACE: Duration = Duration::from_millis(500);
/// How long the end of a process is waited for whose connection ended before another PE failed: a busy
/// kernel takes its time to take a large heap apart, and the word of another host to come.
const SUSPENSE: Duration = Duration::from_secs(1);
/// The status of an abort by a PE whose call failed, as the C binding ends the job.
const FAILED_CALL: i32 = 1;
/// Between the polite request to end and the kill, when the launcher itself was asked to end.
const GRACE_AFTER_TERM: Duration = Duration::from_secs(3);
/// How long after the user's interrupt the PEs get it, though they have not told who waits for whom.
const INTERRUPT_WITHIN: Duration = Duration::from_millis(1500);
/// How long word of killed processes is waited for.
const GRACE_AFTER_KILL: Duration = Duration::from_secs(5);

pub(super) struct Supervisor {
    // Dropped in this order: processes first, then the rendezvous.
    crew: Box<dyn Crew>,
    members: Vec<Member>,
    hub: Hub,
    signals: Caught,
    stdout: Sink,
    stderr: Sink,
    timeout: Option<(Instant, Duration)>,
    /// When those that still run are killed.
    kill_at: Option<Instant>,
    /// When those that were killed are waited for no more.
    abandon_at: Option<Instant>,
    /// A PE has failed, but another's connection ended before: when that one is waited for no more.
    judge_at: Option<Instant>,
    /// The last signal that told the launcher to end, and how many such came.
    told_to_end: Option<Signal>,
    requests: u32,
    ending: Option<Ending>,
    /// The user wants to know who waits for whom, whatever that is.
    shows_waits: bool,
    /// The PEs have told nobody's waits yet: when they are interrupted without that.
    interrupt_at: Option<Instant>,
}

/// What is known of a PE.
struct Member {
    rank: u32,
    pid: Option<u32>,
    /// Its host's name, where that is not this host.
    host: Option<String>,
    ended: Option<How>,
    stdout: Lines,
    stderr: Lines,
}

/// What `poll` watched.
#[derive(Clone, Copy)]
enum Source {
    Hub,
    Signals,
    Crew(usize, Option<Stream>),
    Sink,
}

impl Supervisor {
    pub(super) fn new(
        launch: &Launch,
        crew: Box<dyn Crew>,
        hub: Hub,
        signals: Caught,
    ) -> Supervisor {
        let now = Instant::now();
        let timeout = launch
            .timeout
            .and_then(|limit| Some((now.checked_add(limit)?, limit)));
        let member = |rank| Member {
            rank,
            pid: None,
            host: launch.host_of(rank).map(str::to_owned),
            ended: None,
            stdout: Lines::new(rank),
            stderr: Lines::new(rank),
        };
        Supervisor {
            crew,
            members: (0..launch.pes).map(member).collect(),
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
            ending: None,
            shows_waits: false,
            interrupt_at: None,
        }
    }

    /// Sees the job through, of which `heard` is known already.
    pub(super) fn run(mut self, heard: Vec<Event>) -> Result<Outcome> {
        self.hear(heard);
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
        let ending = self.ending.take().unwrap_or(Ending::Success);
        Ok(Outcome {
            status: ending.status(),
            ending,
        })
    }

    /// Whether a PE has not ended.
    fn runs(&self) -> bool {
        self.members.iter().any(|member| member.ended.is_none())
    }

    /// Waits for something to happen, at most until `due`, and acts on it.
    fn step(&mut self, due: Option<Instant>) -> Result<()> {
        if !self.stdout.is_full() && !self.stderr.is_full() {
            self.crew.go_on();
        }
        let due = due.into_iter().chain(self.crew.due()).min();
        let ready = self.wait(due)?;
        let mut heard = Vec::new();
        let mut some_ended = false;
        for source in ready {
            match source {
                Source::Hub => {
                    self.check_abort();
                    self.check_waits();
                }
                Source::Signals => self.heed_signals()?,
                Source::Crew(token, brings) => {
                    if brings.is_none_or(|stream| !self.is_full(stream)) {
                        self.crew.act(token, &mut heard)?;
                        some_ended |= self.hear(std::mem::take(&mut heard));
                    }
                }
                Source::Sink => {}
            }
        }
        let now = Instant::now();
        if self.crew.due().is_some_and(|due| due <= now) {
            self.crew.expire(now, &mut heard);
            some_ended |= self.hear(heard);
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
            PollFd::new(self.hub.attention(), PollFlags::IN),
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
        self.crew.watch(&mut watched);
        for Watched {
            token,
            brings,
            wait,
        } in watched
        {
            if brings.is_none_or(|stream| !self.is_full(stream)) {
                sources.push(Source::Crew(token, brings));
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

    /// Takes the crew's news; true if a PE has ended.
    fn hear(&mut self, heard: Vec<Event>) -> bool {
        let mut some_ended = false;
        for event in heard {
            match event {
                Event::Started { rank, pid } => {
                    if let Some(member) = self.members.get_mut(rank as usize) {
                        member.pid = Some(pid);
                    }
                }
                Event::Output {
                    rank,
                    stream,
                    bytes,
                } => {
                    if let Some((lines, sink)) = self.output(rank, stream) {
                        lines.take(&bytes, sink);
                    }
                }
                Event::OutputEnd { rank, stream } => {
                    if let Some((lines, sink)) = self.output(rank, stream) {
                        lines.finish(sink);
                    }
                }
                Event::Ended { rank, how } => {
                    let member = self.members.get_mut(rank as usize);
                    if let Some(member) = member.filter(|member| member.ended.is_none()) {
                        member.ended = Some(how);
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

    /// Where a PE's output goes.
    fn output(&mut self, rank: u32, stream: Stream) -> Option<(&mut Lines, &mut Sink)> {
        let member = self.members.get_mut(rank as usize)?;
        Some(match stream {
            Stream::Out => (&mut member.stdout, &mut self.stdout),
            Stream::Err => (&mut member.stderr, &mut self.stderr),
        })
    }

    /// A host is out of reach: ends the job, unless it is ending.
    fn lose_host(&mut self, host: String, status: i32, why: &str) {
        self.check_abort();
        let ending = match self.told_to_end {
            Some(told) => Ending::Signalled(told.as_raw()),
            None => Ending::HostFailed { host, status },
        };
        self.end(ending, Some(why));
    }

    /// Begins the job's end: says why, and asks those that still run to end.
    fn end(&mut self, ending: Ending, why: Option<&str>) {
        if self.ending.is_some() {
            return;
        }
        if let Some(why) = why {
            let others = self.runs();
            self.stderr.say(&format!(
                "{why}{}",
                if others { "; ending the other PEs" } else { "" }
            ));
        }
        self.ending = Some(ending);
        self.crew.signal(Signal::TERM);
        // A stopped process acts on it only when it goes on.
        self.crew.signal(Signal::CONT);
        let kill_at = Instant::now() + GRACE;
        self.kill_at = Some(self.kill_at.map_or(kill_at, |at| at.min(kill_at)));
    }

    fn check_abort(&mut self) {
        let abort = self.hub.abort();
        self.pass_warnings();
        let Some(notice) = abort else {
            return;
        };
        // A call that fails because of a loss is no reason of its own: the lost PE's end is.
        if notice.status == FAILED_CALL {
            match self.first_lost() {
                Some(Some(_)) => return,
                Some(None) if self.awaits_suspect() => return,
                _ => {}
            }
        }
        let why = notice.words("PE");
        self.end(Ending::Aborted(notice), Some(&why));
    }

    fn pass_warnings(&mut self) {
        for warning in self.hub.take_warnings() {
            self.stderr.say(&format!("warning: {warning}"));
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
        if self.first_lost() == Some(None) && self.awaits_suspect() {
            return;
        }
        let why = format!("{} {}", self.name(rank), how.in_words());
        self.end(Ending::Failed { rank, how }, Some(&why));
    }

    /// A PE and where to find it.
    fn name(&self, rank: u32) -> String {
        let member = self.members.get(rank as usize);
        let pid = member.and_then(|member| member.pid).unwrap_or(0);
        match member.and_then(|member| member.host.as_ref()) {
            Some(host) => format!("PE {rank} (pid {pid} on {host})"),
            None => format!("PE {rank} (pid {pid})"),
        }
    }

    /// The PE that failed first, as far as that can be told now.
    fn first_failed(&self) -> Option<(u32, How)> {
        let lost = self.hub.lost();
        let failed = |pe: &Member| Some((pe.rank, pe.ended.filter(|how| !how.succeeded())?));
        let order = |(rank, how): &(u32, How)| {
            // The others may have failed because of the first whose connection ended.
            let place = lost.iter().position(|lost| lost == rank);
            // Of those that had none, one that was killed is more likely to have come first.
            let exited = !matches!(how, How::Signal(_));
            (place.unwrap_or(usize::MAX), exited, *rank)
        };
        self.members.iter().filter_map(failed).min_by_key(order)
    }

    /// The end of the first PE whose connection ended, but for those that have ended well; nothing
    /// inside while it still runs.
    fn first_lost(&self) -> Option<Option<How>> {
        let pe = |rank: u32| self.members.iter().find(|pe| pe.rank == rank);
        let lost = self.hub.lost();
        let mut ends = lost.into_iter().filter_map(pe).map(|pe| pe.ended);
        ends.find(|end| !end.is_some_and(How::succeeded))
    }

    /// Whether the end of the first lost PE is still waited for.
    fn awaits_suspect(&mut self) -> bool {
        let now = Instant::now();
        *self.judge_at.get_or_insert(now + SUSPENSE) > now
    }

    fn heed_signals(&mut self) -> Result<()> {
        while let Some(signal) = self.signals.next()? {
            let is_first = self.requests == 0 && self.ending.is_none();
            if signal == Signal::INT && is_first {
                self.hub.ask_waits();
                self.interrupt_at = Some(Instant::now() + INTERRUPT_WITHIN);
            } else {
                self.crew.signal(signal);
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

    /// Shows who waits for whom, if the PEs have told, and interrupts those that wait for that.
    fn check_waits(&mut self) {
        let Some(picture) = self.hub.take_waits() else {
            return;
        };
        if std::mem::take(&mut self.shows_waits) || picture.shows_waits() {
            picture
                .lines()
                .iter()
                .for_each(|line| self.stderr.say(line));
        }
        self.interrupt();
    }

    fn interrupt(&mut self) {
        if self.interrupt_at.take().is_some() {
            self.crew.signal(Signal::INT);
        }
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
            let running = self.members.iter().filter(|pe| pe.ended.is_none());
            let running: Vec<u32> = running.map(|pe| pe.rank).collect();
            if self.ending.is_none() && !running.is_empty() {
                let who = ranks_in_words(&running).replace("rank", "PE");
                let line =
                    format!("timed out after {limit:?} with {who} still running; ending the job");
                self.stderr.say(&line);
                self.end(Ending::TimedOut { running }, None);
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
            self.crew.kill();
            self.abandon_at.get_or_insert(now + GRACE_AFTER_KILL);
        }
        if self.abandon_at.is_some_and(|at| at <= now) {
            self.abandon_at = None;
            let mut heard = Vec::new();
            self.crew.abandon(&mut heard);
            self.hear(heard);
        }
    }

    /// All PEs have ended: ends what they left running, and passes on what they said last.
    fn drain(&mut self) -> Result<()> {
        let mut heard = Vec::new();
        self.crew.wind_up(&mut heard);
        self.hear(heard);
        self.pass_warnings();
        let requests = self.requests;
        // One that was to end does not wait long for a reader that has stopped.
        let is_late = matches!(self.ending, Some(Ending::TimedOut { .. }));
        let hurry = is_late || self.told_to_end.is_some();
        let give_up = hurry.then(|| Instant::now() + GRACE);
        while !(self.crew.is_wound_up() && self.stdout.is_empty() && self.stderr.is_empty()) {
            if self.requests > requests || give_up.is_some_and(|at| at <= Instant::now()) {
                return Ok(());
            }
            self.step(give_up)?;
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
pub(super) fn standard(descriptor: i32) -> BorrowedFd<'static> {
    // SAFETY: Rust opens the standard streams at start where they are closed, and nothing here
    // closes them.
    unsafe { BorrowedFd::borrow_raw(descriptor) }
}
