//! One lane's part of a trace: what is under way on it, its long operations, and how many there were.

use std::cell::Cell;
use std::fmt::{self, Display};
use std::sync::Arc;

use oxshmem_transport::Op;

use super::{SHORT, Trace, Track, now};

/// Operations after which the counts are written down, if nothing else had them so.
const OFTEN: u64 = 4096;

/// What a context's lane has done.
pub(crate) struct Tally {
    trace: Arc<Trace>,
    track: Track,
    context: u64,
    transport: &'static str,
    all: Cell<Counts>,
    /// Since when something has been outstanding, and what was counted by then.
    under_way: Cell<Option<(u64, Counts)>>,
    /// Operations by when the counts were last written down.
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

/// As an event's arguments: kinds of which there are none are left out.
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

/// An operation that is waited for.
#[must_use]
pub(crate) struct Operation<'t> {
    tally: &'t Tally,
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
        let Tally { trace, track, .. } = self.tally;
        let Operation {
            name, bytes, pe, ..
        } = *self;
        let args = format_args!("\"PE\":{pe},\"bytes\":{bytes}");
        trace.span(*track, ("operation", &name), (self.since, until), args);
        self.tally.write_counts(until);
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

impl Tally {
    /// Of a context's lane of the transport with this index.
    pub(crate) fn new(
        trace: &Arc<Trace>,
        context: u64,
        (index, transport): (usize, &'static str),
    ) -> Self {
        let track = Track::of_lane(context, index);
        let whose = match context {
            0 => "default context".into(),
            number => format!("context {number}"),
        };
        trace.name(track, &format!("{transport} lane of {whose}"));
        Tally {
            trace: Arc::clone(trace),
            track,
            context,
            transport,
            all: Cell::default(),
            under_way: Cell::new(None),
            written: Cell::new(0),
        }
    }

    /// An operation is about to be given to the lane. One that is `awaited` lasts until what this gives is
    /// dropped; one that `leaves` something is under way until all is [clean](Self::clean).
    pub(crate) fn operation(
        &self,
        op: &Op,
        pe: usize,
        (awaited, leaves): (bool, bool),
    ) -> Option<Operation<'_>> {
        let before = self.all.get();
        let mut after = before;
        after.count(op);
        self.all.set(after);
        let begins = leaves && self.under_way.get().is_none();
        let since = match awaited || begins {
            true => now(),
            false => 0,
        };
        if begins {
            self.under_way.set(Some((since, before)));
        }
        if after.operations() - self.written.get() >= OFTEN {
            self.write_counts(now());
        }
        awaited.then(|| Operation {
            tally: self,
            name: name(op),
            bytes: after.bytes - before.bytes,
            pe,
            since,
        })
    }

    /// Nothing is outstanding any more.
    pub(crate) fn clean(&self) {
        if let Some((since, before)) = self.under_way.take() {
            let until = now();
            let done = self.all.get().since(before);
            let operations = done.operations();
            self.trace.span(
                self.track,
                ("under way", &format_args!("{operations} under way")),
                (since, until),
                format_args!("{done}"),
            );
            self.write_counts(until);
        }
    }

    /// Writes the counts down.
    pub(crate) fn tell(&self) {
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

impl Drop for Tally {
    fn drop(&mut self) {
        self.clean();
        self.tell();
    }
}
