//! The agent: the launcher's part on another host. It starts that host's PEs and obeys the launcher's commands.
//!
//! Commands come by the standard input and reports go to the standard output (see `agent_protocol`), through
//! the command that started this. The job's key comes so too: nobody sees it among a command's words. A
//! connection to the rendezvous, which the kernel probes, tells when the launcher's host is gone
//! without a word. At the end of either this ends its PEs.

use std::io::Write;
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::process::ChildStdin;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::Signal;

use super::agent_protocol::{Command, Inbox, Outbox, Report, Start, WINDOW, greeting};
use super::hub_keepalive;
use super::input::own_input;
use super::local::Local;
use super::process_group::{Event, ProcessGroup, Watched};
use super::sink::standard;
use super::spawn::{Input, SpawnPlan};
use crate::error::{Error, Result, io};
use crate::process::raise_descriptor_limit;
use crate::variables::HOST_ADDRESS;

/// Time between SIGTERM and SIGKILL, when the launcher is gone.
const GRACE: Duration = Duration::from_millis(500);
/// Time limit for the launcher's start command: it waits until all hosts have answered.
const PATIENCE: Duration = Duration::from_secs(600);
/// Time limit for the launcher to take the last reports.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// Time limit for one address to prove to be the rendezvous'.
const PROBE: Duration = Duration::from_secs(3);
/// The status if the launching itself failed.
pub(super) const FAILED: i32 = 125;

/// A function that gives the CPUs of each of so many PEs of this host by [`Hosts::bind`](super::hosts::Hosts::bind); none
/// if they are free. An error says in words what is wrong, and how to mend it.
pub type CpuSets<'a> = &'a dyn Fn(&str, u32) -> Result<Vec<Vec<usize>>, String>;

/// Serves a launcher that runs on another host, by the standard streams, until its job's PEs on
/// this host have ended; none outlives this call or this process. The program that
/// [`Hosts::agent`](super::hosts::Hosts::agent) names calls this, from its main thread, before others are
/// started. Gives the status to exit with.
pub fn serve(cpu_sets: CpuSets<'_>) -> i32 {
    match Agent::default().serve(cpu_sets) {
        Ok(status) => status,
        Err(error) => {
            say(&error.to_string());
            FAILED
        }
    }
}

/// The status for PEs that could not be started, and the reason.
type Refusal = (i32, String);

#[derive(Default)]
struct Agent {
    inbox: Inbox,
    outbox: Outbox,
    /// Bytes of output that the launcher has not acknowledged yet.
    untaken: usize,
    /// PE 0's input, and the bytes that wait for it.
    input: Option<ChildStdin>,
    waiting: Vec<u8>,
    input_ends: bool,
    /// The launcher is gone: the time at which PEs that still run are killed.
    orphan_deadline: Option<Instant>,
}

/// The meaning of a descriptor that was polled.
#[derive(Clone, Copy)]
enum Source {
    Commands,
    Reports,
    Rendezvous,
    Input,
    Pe(usize, bool),
}

impl Agent {
    fn serve(mut self, cpu_sets: CpuSets<'_>) -> Result<i32> {
        for stream in [commands(), reports()] {
            rustix::io::ioctl_fionbio(stream, true).map_err(io("preparing an agent's streams"))?;
        }
        self.outbox.push_bytes(&greeting());
        let Some(start) = self.await_start()? else {
            return Ok(FAILED);
        };
        let (rendezvous, mut local) = match start_pes(&start, cpu_sets) {
            Ok(started) => started,
            Err((status, why)) => {
                self.outbox.report(&Report::Refused { status, why });
                self.flush_within(LAST_WORDS)?;
                return Ok(status);
            }
        };
        let pids = local.pids().map(|(_, pid)| pid).collect();
        self.outbox.report(&Report::Started(pids));
        self.input = local.take_input();
        if let Some(input) = &self.input {
            rustix::io::ioctl_fionbio(input, true).map_err(io("preparing a PE's input"))?;
        }
        // Commands that came right behind the start.
        self.run_commands(&mut local)?;
        let mut finishing = false;
        loop {
            if !local.runs() && !finishing {
                finishing = true;
                let mut events = Vec::new();
                local.finish(&mut events);
                self.report_events(&start, events);
            }
            if finishing && (local.is_finished() || self.orphan_deadline.is_some()) {
                break;
            }
            self.step(&start, &mut local, &rendezvous)?;
        }
        if self.orphan_deadline.is_some() {
            return Ok(FAILED);
        }
        self.outbox.report(&Report::Done);
        self.flush_within(LAST_WORDS)?;
        Ok(0)
    }

    /// Waits for the start command; none if the launcher hangs up instead.
    fn await_start(&mut self) -> Result<Option<Start>> {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(command) = self.inbox.next_command()? {
                return match command {
                    Command::Start(start) => Ok(Some(*start)),
                    other => Err(Error::Protocol {
                        what: format!("{other:?} before the start"),
                    }),
                };
            }
            let Some(left) = end.checked_duration_since(Instant::now()) else {
                let what = format!("the launcher did not say what to start within {PATIENCE:?}");
                return Err(Error::Launch { what });
            };
            let mut waits = vec![PollFd::from_borrowed_fd(commands(), PollFlags::IN)];
            if !self.outbox.is_empty() {
                waits.push(PollFd::from_borrowed_fd(reports(), PollFlags::OUT));
            }
            wait(&mut waits, Some(left))?;
            let flushed = self.outbox.flush(reports());
            if flushed.is_err() || !matches!(self.inbox.fill(commands()), Ok(true)) {
                return Ok(None);
            }
        }
    }

    /// Waits for an event, and acts on it.
    fn step(&mut self, start: &Start, local: &mut Local, rendezvous: &TcpStream) -> Result<()> {
        let ready = self.wait(local, rendezvous)?;
        for source in ready {
            match source {
                Source::Commands => {
                    let open = matches!(self.inbox.fill(commands()), Ok(true));
                    self.run_commands(local)?;
                    if !open {
                        self.end_orphans(local);
                    }
                }
                Source::Rendezvous => {
                    let mut byte = [0];
                    match rustix::io::read(rendezvous, &mut byte) {
                        Ok(1..) | Err(Errno::AGAIN | Errno::INTR) => {}
                        Ok(0) | Err(_) => {
                            say("the launcher's host is out of reach; ending the PEs here");
                            self.end_orphans(local);
                        }
                    }
                }
                Source::Reports => {}
                Source::Input => self.feed_input(),
                Source::Pe(token, output) => {
                    if !output || self.untaken < WINDOW {
                        let mut events = Vec::new();
                        local.handle_ready(token, &mut events)?;
                        self.report_events(start, events);
                    }
                }
            }
        }
        if self.orphan_deadline.is_some_and(|at| at <= Instant::now()) {
            local.kill();
        }
        if self.orphan_deadline.is_none() && self.outbox.flush(reports()).is_err() {
            self.end_orphans(local);
        }
        Ok(())
    }

    fn wait(&self, local: &Local, rendezvous: &TcpStream) -> Result<Vec<Source>> {
        let (mut sources, mut waits) = (Vec::new(), Vec::new());
        let mut add = |source, wait| {
            sources.push(source);
            waits.push(wait);
        };
        let has_launcher = self.orphan_deadline.is_none();
        if has_launcher {
            add(
                Source::Commands,
                PollFd::from_borrowed_fd(commands(), PollFlags::IN),
            );
            add(Source::Rendezvous, PollFd::new(rendezvous, PollFlags::IN));
            if !self.outbox.is_empty() {
                let reports = PollFd::from_borrowed_fd(reports(), PollFlags::OUT);
                add(Source::Reports, reports);
            }
        }
        if let Some(input) = self.input.as_ref().filter(|_| !self.waiting.is_empty()) {
            add(Source::Input, PollFd::new(input, PollFlags::OUT));
        }
        let mut watched = Vec::new();
        local.watch(&mut watched);
        for Watched {
            token,
            output,
            wait,
        } in watched
        {
            if output.is_none() || (has_launcher && self.untaken < WINDOW) {
                add(Source::Pe(token, output.is_some()), wait);
            }
        }
        let left = self
            .orphan_deadline
            .map(|at| at.saturating_duration_since(Instant::now()))
            // Killed by now: only their ends are waited for.
            .map(|left| left.max(Duration::from_millis(10)));
        wait(&mut waits, left)?;
        let ready = sources
            .into_iter()
            .zip(&waits)
            .filter(|(_, wait)| !wait.revents().is_empty());
        Ok(ready.map(|(source, _)| source).collect())
    }

    /// Runs the launcher's whole commands.
    fn run_commands(&mut self, local: &mut Local) -> Result<()> {
        while let Some(command) = self.inbox.next_command()? {
            match command {
                Command::Start(_) => {
                    return Err(Error::Protocol {
                        what: "a second start".to_owned(),
                    });
                }
                Command::Signal(number) => {
                    // The launcher's signals have the same numbers here.
                    match Signal::from_named_raw(number) {
                        Some(signal) => local.signal(signal),
                        None => tracing::warn!("the launcher passed on an unknown signal {number}"),
                    }
                }
                Command::Kill => local.kill(),
                Command::Input(bytes) => {
                    self.input_ends |= bytes.is_empty();
                    self.waiting.extend_from_slice(&bytes);
                    self.feed_input();
                }
                Command::Taken(count) => {
                    self.untaken = self.untaken.saturating_sub(count as usize);
                }
            }
        }
        Ok(())
    }

    /// Passes input on as far as PE 0 takes it.
    fn feed_input(&mut self) {
        let Some(input) = &self.input else {
            self.waiting.clear();
            return;
        };
        let had = !self.waiting.is_empty();
        while !self.waiting.is_empty() {
            match rustix::io::write(input, &self.waiting) {
                Ok(count) => drop(self.waiting.drain(..count)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(_) => {
                    // It takes no more, and the launcher is asked for no more.
                    self.waiting.clear();
                    self.input = None;
                    return;
                }
            }
        }
        if had {
            self.outbox.report(&Report::InputTaken);
        }
        if self.input_ends {
            self.input = None;
        }
    }

    /// Sends events to the launcher as reports.
    fn report_events(&mut self, start: &Start, events: Vec<Event>) {
        for event in events {
            let index = |rank: u32| rank.saturating_sub(start.first);
            let report = match event {
                Event::Output {
                    rank,
                    stream,
                    bytes,
                } => {
                    self.untaken += bytes.len();
                    Report::Output {
                        index: index(rank),
                        stream,
                        bytes,
                    }
                }
                Event::OutputEnd { rank, stream } => Report::OutputEnd {
                    index: index(rank),
                    stream,
                },
                Event::Ended { rank, exit } => Report::Ended {
                    index: index(rank),
                    exit,
                },
                // Local processes give no others.
                Event::Started { .. } | Event::Note(_) | Event::HostFailed { .. } => continue,
            };
            self.outbox.report(&report);
        }
    }

    /// The launcher is gone: asks the PEs to end, and soon kills them.
    fn end_orphans(&mut self, local: &mut Local) {
        if self.orphan_deadline.is_none() {
            local.signal(Signal::TERM);
            local.signal(Signal::CONT);
            self.orphan_deadline = Some(Instant::now() + GRACE);
        }
    }

    fn flush_within(&mut self, limit: Duration) -> Result<()> {
        let end = Instant::now() + limit;
        while !self.outbox.is_empty() && self.outbox.flush(reports()).is_ok() {
            let Some(left) = end.checked_duration_since(Instant::now()) else {
                break;
            };
            if !self.outbox.is_empty() {
                let mut waits = [PollFd::from_borrowed_fd(reports(), PollFlags::OUT)];
                wait(&mut waits, Some(left))?;
            }
        }
        Ok(())
    }
}

/// Starts this host's PEs, next to a connection to the rendezvous.
fn start_pes(start: &Start, cpu_sets: CpuSets<'_>) -> Result<(TcpStream, Local), Refusal> {
    let refuse = |why: String| (FAILED, why);
    if let Err(error) = std::env::set_current_dir(&start.folder) {
        return Err(refuse(format!(
            "the job's folder {} cannot be entered there: {error}; start the job in one that all \
             hosts have",
            Path::new(&start.folder).display()
        )));
    }
    let all = start.first_local + start.count;
    let sets = cpu_sets(&start.bind, all).map_err(refuse)?;
    let own = (start.first_local..all).filter_map(|pe| {
        let set = (pe as usize).checked_rem(sets.len())?;
        sets.get(set).cloned()
    });
    let own: Vec<Vec<usize>> = own.collect();
    if own.iter().any(Vec::is_empty) {
        return Err(refuse("a PE would have no CPU".to_owned()));
    }
    let found = find_rendezvous(start).map_err(refuse)?;
    let mut env = start.env.clone();
    if let Some(address) = found.own_address
        && start.count < start.size
    {
        env.push((HOST_ADDRESS.into(), address.to_string().into()));
    }
    raise_descriptor_limit();
    let local = Local::start(&SpawnPlan {
        program: &start.program,
        args: &start.args,
        env: &env,
        first: (start.first, start.first_local),
        count: start.count,
        size: start.size,
        cpu_sets: &own,
        rendezvous: &found.address,
        key: &start.key,
        input: Input::Piped,
    });
    match local {
        Ok(local) => Ok((found.stream, local)),
        Err(error) => Err((status_of(&error), error.to_string())),
    }
}

/// The status for PEs that could not be started, as shells have it.
fn status_of(error: &Error) -> i32 {
    let Error::Program {
        program, source, ..
    } = error
    else {
        return FAILED;
    };
    let by_path = program.as_encoded_bytes().contains(&b'/');
    match Errno::from_io_error(source) {
        // It is there, but its interpreter or a library is not.
        Some(Errno::NOENT) if by_path && Path::new(program).exists() => 126,
        Some(Errno::NOENT | Errno::NOTDIR) => 127,
        Some(Errno::ACCESS | Errno::NOEXEC | Errno::TXTBSY | Errno::ISDIR) => 126,
        _ => FAILED,
    }
}

/// The rendezvous, as this host reaches it.
struct Rendezvous {
    address: String,
    /// A connection that lasts as long as the launcher.
    stream: TcpStream,
    /// This host's address in the network that joins the hosts, if it is known.
    own_address: Option<IpAddr>,
}

/// Tries the addresses at which the rendezvous may be.
fn find_rendezvous(start: &Start) -> Result<Rendezvous, String> {
    let mut candidates = start.candidates.clone();
    // The launcher's address as seen from here, by sshd's word.
    if let Some(port) = start.port
        && let Ok(connection) = std::env::var("SSH_CONNECTION")
        && let Some(Ok(ip)) = connection.split(' ').next().map(str::parse)
    {
        candidates.insert(0, SocketAddr::new(ip, port).to_string());
    }
    let mut failures = Vec::new();
    for candidate in &candidates {
        let targets = match candidate.to_socket_addrs() {
            Ok(targets) => targets,
            Err(error) => {
                failures.push(format!("{candidate}: {error}"));
                continue;
            }
        };
        for target in targets {
            match hub_keepalive::connect(target, start.size, start.key, PROBE) {
                Ok(stream) => {
                    return Ok(Rendezvous {
                        // Not the name, which a PE might resolve to another address.
                        address: target.to_string(),
                        own_address: own_address(&stream, target, &start.candidates),
                        stream,
                    });
                }
                Err(error) => failures.push(format!("{target}: {error}")),
            }
        }
    }
    Err(format!(
        "the launcher is not reached from there ({}); give its address as that host sees it with \
         --hub-address or OXSHMEM_HUB_ADDRESS, with a port if a firewall leaves only some open",
        failures.join("; ")
    ))
}

/// The address of this host's end of the connection. On the launcher's own host both ends are the same, and loopback at times:
/// there it is the first address at which other hosts are to look for the launcher.
fn own_address(stream: &TcpStream, target: SocketAddr, candidates: &[String]) -> Option<IpAddr> {
    let own = stream.local_addr().ok()?.ip().to_canonical();
    if own != target.ip().to_canonical() {
        return Some(own);
    }
    let addresses = candidates
        .iter()
        .filter_map(|one| one.to_socket_addrs().ok());
    let mut addresses = addresses
        .flatten()
        .map(|address| address.ip().to_canonical());
    addresses.find(|ip| !ip.is_loopback())
}

fn wait(waits: &mut [PollFd<'_>], limit: Option<Duration>) -> Result<()> {
    let limit = limit.and_then(|left| Timespec::try_from(left).ok());
    match poll(waits, limit.as_ref()) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(io("waiting for the launcher and the PEs")(error)),
    }
}

/// Tells the launcher's user, if there still is one.
fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

fn commands() -> BorrowedFd<'static> {
    own_input()
}

fn reports() -> BorrowedFd<'static> {
    standard(libc::STDOUT_FILENO)
}
