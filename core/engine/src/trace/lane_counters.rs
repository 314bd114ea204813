//! One lane's part of a trace: its times with operations in flight, its long operations, and its counts.

use std::cell::Cell;
use std::fmt::{self, Display};
use std::sync::Arc;

use oxshmem_transport::Op;

use crate::trace::clock::now;
use crate::trace::timeline::{Interval, SHORT, Trace, Track};

/// The most operations between two writes of the counts.
const OFTEN: u64 = 4096;

/// The operations of a context's lane so far.
pub(crate) struct LaneCounters {
    trace: Arc<Trace>,
    track: Track,
    context: u64,
    transport: &'static str,
    all: Cell<Counts>,
    /// The time since when operations have been in flight, and the counts by then.
    in_flight: Cell<Option<(u64, Counts)>>,
    /// Operations at the last write of the counts.
    written: Cell<u64>,
}

/// Operations, by their kinds, and their bytes.
#[derive(Clone, Copy, Default)]
struct Counts {
    puts: u64,
    gets: u64,
    signals: u64,
    atomics: u64,
    messages: u64,
    bytes: u64,
}

impl Counts {
    fn count(&mut self, op: &Op) {
        let (which, bytes) = match op {
            Op::Put { from, .. } => (&mut self.puts, from.len),
            Op::Get { into, .. } => (&mut self.gets, into.len),
            Op::PutSignal { from, .. } => (&mut self.signals, from.len),
            Op::Atomic { width, .. } => (&mut self.atomics, width.bytes()),
            Op::Message { from } => (&mut self.messages, from.len),
            // A flush is the library's, and moves nothing.
            _ => return,
        };
        *which += 1;
        self.bytes += bytes as u64;
    }

    fn operations(&self) -> u64 {
        self.puts + self.gets + self.signals + self.atomics + self.messages
    }

    fn since(&self, before: Counts) -> Counts {
        Counts {
            puts: self.puts - before.puts,
            gets: self.gets - before.gets,
            signals: self.signals - before.signals,
            atomics: self.atomics - before.atomics,
            messages: self.messages - before.messages,
            bytes: self.bytes - before.bytes,
        }
    }
}

/// An event's arguments, without the kinds of which there are none.
impl Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds = [
            ("puts", self.puts),
            ("gets", self.gets),
            ("puts with signal", self.signals),
            ("atomics", self.atomics),
            ("messages", self.messages),
        ];
        for (kind, count) in kinds.into_iter().filter(|(_, count)| *count > 0) {
            write!(f, "\"{kind}\":{count},")?;
        }
        write!(f, "\"bytes\":{}", self.bytes)
    }
}

/// An operation with a wait for its completion.
#[must_use]
pub(crate) struct Operation<'t> {
    counters: &'t LaneCounters,
    name: &'static str,
    bytes: u64,
    pe: usize,
    since: u64,
}

impl Drop for Operation<'_> {
    fn drop(&mut self) {
        let until = now();
        if until.saturating_sub(self.since) < SHORT {
            return;
        }
        let LaneCounters { trace, track, .. } = self.counters;
        let Operation {
            name, bytes, pe, ..
        } = *self;
        let times = Interval {
            since: self.since,
            until,
        };
        let (kind, track) = ("operation", *track);
        trace.span(
            track,
            kind,
            &name,
            times,
            format_args!("\"PE\":{pe},\"bytes\":{bytes}"),
        );
        self.counters.write_counts(until);
    }
}

fn name(op: &Op) -> &'static str {
    match op {
        Op::Put { .. } => "put",
        Op::Get { .. } => "get",
        Op::PutSignal { .. } => "put with signal",
        Op::Atomic { .. } => "atomic",
        Op::Message { .. } => "message",
        _ => "flush",
    }
}

impl LaneCounters {
    /// Those of a context's lane of the transport with this index.
    pub(crate) fn new(
        trace: &Arc<Trace>,
        context: u64,
        index: usize,
        transport: &'static str,
    ) -> Self {
        let track = Track::of_lane(context, index);
        let owner = match context {
            0 => "default context".into(),
            number => format!("context {number}"),
        };
        trace.name(track, &format!("{transport} lane of {owner}"));
        LaneCounters {
            trace: Arc::clone(trace),
            track,
            context,
            transport,
            all: Cell::default(),
            in_flight: Cell::new(None),
            written: Cell::new(0),
        }
    }

    /// Counts an operation that is about to be given to the lane. An `awaited` one lasts until the result is
    /// dropped; one that `stays` in flight does so until all have [completed](Self::completed).
    pub(crate) fn operation(
        &self,
        op: &Op,
        pe: usize,
        awaited: bool,
        stays: bool,
    ) -> Option<Operation<'_>> {
        let before = self.all.get();
        let mut after = before;
        after.count(op);
        self.all.set(after);
        let begins = stays && self.in_flight.get().is_none();
        let since = if awaited || begins { now() } else { 0 };
        if begins {
            self.in_flight.set(Some((since, before)));
        }
        if after.operations() - self.written.get() >= OFTEN {
            self.write_counts(now());
        }
        awaited.then(|| Operation {
            counters: self,
            name: name(op),
            bytes: after.bytes - before.bytes,
            pe,
            since,
        })
    }

    /// Nothing is in flight any more.
    pub(crate) fn completed(&self) {
        if let Some((since, before)) = self.in_flight.take() {
            let until = now();
            let done = self.all.get().since(before);
            let operations = done.operations();
            self.trace.span(
                self.track,
                "under way",
                &format_args!("{operations} under way"),
                Interval { since, until },
                format_args!("{done}"),
            );
            self.write_counts(until);
        }
    }

    /// Writes the counts.
    pub(crate) fn write(&self) {
        self.write_counts(now());
    }

    fn write_counts(&self, at: u64) {
        let all = self.all.get();
        let operations = all.operations();
        if self.written.replace(operations) == operations {
            return;
        }
        let (transport, context, bytes) = (self.transport, self.context, all.bytes);
        self.trace.counts(
            self.track,
            &format_args!("{transport}, context {context}"),
            at,
            format_args!("\"operations\":{operations},\"bytes\":{bytes}"),
        );
    }
}

impl Drop for LaneCounters {
    fn drop(&mut self) {
        self.completed();
        self.write();
    }
}
