//! The trace of a PE's calls on a time line: `OXSHMEM_TRACE` (docs/trace.md).
//!
//! Every PE appends events to its host's file: spans of calls that are collective, that wait or that use
//! lanes, and counts of each lane's operations. Calls open a [`Span`], whose end writes it down. Direct stores to
//! mapped peers are nowhere noted: any note would cost more than the store. Without a
//! trace the slow branches check one `Option`, and the fast ones nothing.

use std::fmt::{self, Display};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;

use crate::progress::reason::WaitReason;
use crate::trace::clock::now;
use crate::trace::json;
use crate::trace::json::Quoted;
use crate::trace::log::Log;

/// Waits, fences, quiets and single operations of lanes that end within this are not worth a line, which
/// takes a twentieth of it; in nanoseconds.
pub(crate) const SHORT: u64 = 10_000;

/// Atomics that a progress thread performs no further apart than this are one span; in nanoseconds.
const GAP: u64 = 1_000_000;

/// A trace that is being written, of one PE.
pub struct Trace {
    pe: usize,
    /// The clock when the PEs of the host began, in nanoseconds.
    zero: u64,
    log: Mutex<Log>,
    /// Threads that have waited on shared contexts, each with a track.
    threads: Mutex<Vec<ThreadId>>,
    /// The atomics that progress threads have performed lately.
    services: Mutex<Vec<Service>>,
    /// This PE begins and ends its host's file.
    leads: bool,
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trace")
            .field("pe", &self.pe)
            .finish_non_exhaustive()
    }
}

/// A line of the time line: within one, spans are apart or one inside the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Track(u64);

/// The numbers in the file begin here, but the default context's, which is its PE's: so viewers put it first,
/// and never take another for it.
const FIRST: u64 = 1_000_000;
/// Tracks that a context may have: its own, its lanes', and in the default one's range those of progress threads.
const TRACKS: u64 = 16;
/// The first track of threads; viewers keep numbers of 32 bits.
const THREADS: u64 = 1 << 30;

impl Track {
    /// A context's calls.
    pub(crate) fn of_context(number: u64) -> Self {
        Track(number * TRACKS)
    }

    /// Its number in the file, on this PE.
    fn number(self, pe: usize) -> u64 {
        match self.0 {
            0 => pe as u64,
            other => FIRST + other,
        }
    }

    /// A context's lane of the transport with this index.
    pub(crate) fn of_lane(context: u64, transport: usize) -> Self {
        Track(1 + context * TRACKS + (transport as u64).min(TRACKS / 2))
    }

    /// The progress thread of the transport with this index.
    pub fn of_service(transport: usize) -> Self {
        Track(TRACKS - 1 - (transport as u64).min(TRACKS / 4))
    }
}

/// A call, from when this is made until it is dropped.
#[must_use]
pub struct Span<'t> {
    trace: &'t Trace,
    track: Track,
    kind: &'static str,
    name: &'static str,
    since: u64,
    /// If it is shorter, it is left out.
    least: u64,
}

impl fmt::Debug for Span<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Span")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Drop for Span<'_> {
    fn drop(&mut self) {
        let until = now();
        if until.saturating_sub(self.since) >= self.least {
            let times = Interval {
                since: self.since,
                until,
            };
            let none = format_args!("");
            self.trace
                .span(self.track, self.kind, &self.name, times, none);
        }
    }
}

/// The times of a span, by the clock of [`now`].
#[derive(Clone, Copy)]
pub(crate) struct Interval {
    pub since: u64,
    pub until: u64,
}

/// Atomics that a progress thread performed one soon after the other.
#[derive(Clone, Copy)]
struct Service {
    track: Track,
    since: u64,
    until: u64,
    atomics: usize,
}

/// A wait, until this is dropped.
#[must_use]
pub(crate) struct Waiting<'t> {
    trace: &'t Trace,
    track: Option<Track>,
    reason: &'t WaitReason<'t>,
    since: u64,
}

impl Waiting<'_> {
    /// Writes earlier events meanwhile, since the wait may last.
    pub(crate) fn goes_on(&self) {
        self.trace.log().write_in_time();
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let until = now();
        if until.saturating_sub(self.since) < SHORT {
            return;
        }
        let track = self.track.unwrap_or_else(|| self.trace.of_this_thread());
        let (whom, what) = (self.reason.describe)();
        let (call, what) = (Quoted(self.reason.call), Quoted(what));
        self.trace.span(
            track,
            "wait",
            &format_args!("wait for {whom}"),
            Interval {
                since: self.since,
                until,
            },
            format_args!("\"in\":{call},\"what\":{what}"),
        );
    }
}

impl Trace {
    /// The trace of a PE into its host's file. Its times count from `zero`; the PE that `leads` closes the file.
    #[must_use]
    pub fn new(pe: usize, zero: u64, log: Log, leads: bool) -> Self {
        Trace {
            pe,
            zero,
            log: Mutex::new(log),
            threads: Mutex::default(),
            services: Mutex::default(),
            leads,
        }
    }

    pub(crate) fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn begin(
        &self,
        track: Track,
        kind: &'static str,
        name: &'static str,
        least: u64,
    ) -> Span<'_> {
        Span {
            trace: self,
            track,
            kind,
            name,
            since: now(),
            least,
        }
    }

    /// A wait for another PE; that of a shared context has a track of its thread.
    pub(crate) fn wait<'t>(
        &'t self,
        track: Option<Track>,
        reason: &'t WaitReason<'t>,
    ) -> Waiting<'t> {
        Waiting {
            trace: self,
            track,
            reason,
            since: now(),
        }
    }

    /// Serves requests of others, and notes how long that took; `serve` gives their number.
    pub(crate) fn serving<E>(
        &self,
        track: Track,
        serve: impl FnOnce() -> Result<usize, E>,
    ) -> Result<usize, E> {
        let since = now();
        let served = serve()?;
        let until = now();
        let mut services = self.services();
        if let Some(service) = services.iter_mut().find(|service| service.track == track) {
            if since.saturating_sub(service.until) <= GAP {
                if served > 0 {
                    service.atomics += served;
                    service.until = until;
                }
                return Ok(served);
            }
            let ended = *service;
            services.retain(|service| service.track != track);
            self.service(ended);
        }
        if served > 0 {
            let atomics = served;
            services.push(Service {
                track,
                since,
                until,
                atomics,
            });
        }
        Ok(served)
    }

    /// Writes all events that are not written yet. No event is written after that.
    pub fn end(&self) {
        for service in self.services().drain(..) {
            self.service(service);
        }
        self.log().end();
    }

    /// Closes the host's file, if this PE leads there. Every PE has ended its trace.
    pub fn close(&self) {
        if self.leads {
            self.log().close();
        }
    }

    fn services(&self) -> MutexGuard<'_, Vec<Service>> {
        self.services.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes down the atomics that a progress thread performed.
    fn service(&self, service: Service) {
        let times = Interval {
            since: service.since,
            until: service.until,
        };
        self.span(
            service.track,
            "service",
            &"serves atomics",
            times,
            format_args!("\"atomics\":{}", service.atomics),
        );
    }

    /// Writes a span down.
    pub(crate) fn span(
        &self,
        track: Track,
        kind: &str,
        name: &dyn Display,
        times: Interval,
        args: fmt::Arguments<'_>,
    ) {
        let (at, took) = (
            self.at(times.since),
            times.until.saturating_sub(times.since),
        );
        self.event(
            "X",
            track,
            name,
            at,
            format_args!("\"dur\":{},\"cat\":{}", json::Micros(took), Quoted(kind)),
            args,
        );
    }

    /// Writes down counts.
    pub(crate) fn counts(
        &self,
        track: Track,
        name: &dyn Display,
        at: u64,
        args: fmt::Arguments<'_>,
    ) {
        self.event(
            "C",
            track,
            name,
            self.at(at),
            format_args!("\"cat\":\"lane\""),
            args,
        );
    }

    /// Names a track.
    pub(crate) fn name(&self, track: Track, name: &str) {
        let (pe, number) = (self.pe, track.number(self.pe));
        let name = json::about(
            pe,
            number,
            "thread_name",
            format_args!("\"name\":{}", Quoted(name)),
        );
        let place = json::about(
            pe,
            number,
            "thread_sort_index",
            format_args!("\"sort_index\":{}", track.0),
        );
        let mut log = self.log();
        log.line(format_args!("{name}"));
        log.line(format_args!("{place}"));
    }

    /// Names the track of a context.
    pub(crate) fn name_context(&self, number: u64) {
        match number {
            0 => self.name(Track::of_context(0), "default context"),
            _ => self.name(Track::of_context(number), &format!("context {number}")),
        }
    }

    /// The track of this thread's waits.
    fn of_this_thread(&self) -> Track {
        let me = std::thread::current().id();
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        let known = threads.iter().position(|thread| *thread == me);
        let place = known.unwrap_or(threads.len());
        let track = Track(THREADS + place as u64);
        if known.is_none() {
            threads.push(me);
            self.name(track, &format!("shared contexts, thread {place}"));
        }
        track
    }

    /// The time since the PEs of the host began.
    pub(crate) fn at(&self, clock: u64) -> u64 {
        clock.saturating_sub(self.zero)
    }

    fn event(
        &self,
        phase: &str,
        track: Track,
        name: &dyn Display,
        at: u64,
        more: fmt::Arguments<'_>,
        args: fmt::Arguments<'_>,
    ) {
        let (pe, track) = (self.pe, track.number(self.pe));
        let (at, name) = (json::Micros(at), Quoted(name));
        self.log().line(format_args!(
            "{{\"ph\":\"{phase}\",\"pid\":{pe},\"tid\":{track},\"ts\":{at},{more},\
             \"name\":{name},\"args\":{{{args}}}}}"
        ));
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        self.end();
    }
}
