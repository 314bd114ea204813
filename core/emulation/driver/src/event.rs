//! Events: marks in streams, which others wait for.

use std::sync::{Arc, Condvar, Mutex};
use std::time::Instant;

use crate::call::{Out, Outcome};
use crate::code::Code;
use crate::context::{Context, current};
use crate::driver::{driver, fresh};
use crate::graph::{Forked, Membership, refuse_unsafe};
use crate::race::{self, Clock};
use crate::stream::{Work, stream};
use crate::sync::{doze, lock};

/// Flags of `cuEventCreate`: sleep while waiting, take no time, be shared with other processes.
const BLOCKING_SYNC: u32 = 1;
const DISABLE_TIMING: u32 = 2;
const INTERPROCESS: u32 = 4;
/// `CU_EVENT_RECORD_EXTERNAL` and `CU_EVENT_WAIT_EXTERNAL`.
const EXTERNAL: u32 = 1;

/// One recording, reached when a stream gets there.
#[derive(Default)]
pub(crate) struct Mark {
    reached: Mutex<Option<Instant>>,
    changed: Condvar,
    /// All that came before it, for the race detector.
    before: Mutex<Arc<Clock>>,
}

impl Mark {
    /// Notes all that came before it. Called by its stream's work.
    fn note_before(&self) {
        *lock(&self.before) = race::piece_clock();
    }

    /// Announces it.
    pub(crate) fn reach(&self) {
        *lock(&self.reached) = Some(Instant::now());
        self.changed.notify_all();
    }

    fn when(&self) -> Option<Instant> {
        *lock(&self.reached)
    }

    fn before(&self) -> Arc<Clock> {
        Arc::clone(&lock(&self.before))
    }

    /// Waits until a stream reaches the mark, or never will.
    fn wait(&self, recorded_in: &Context, waiting_in: &Context) {
        let mut reached = lock(&self.reached);
        while reached.is_none() && recorded_in.alive() && waiting_in.alive() {
            reached = doze(&self.changed, reached);
        }
    }
}

#[derive(Clone)]
enum Last {
    Never,
    Recorded(Arc<Mark>),
    /// In a stream whose work was being captured.
    Captured(Forked),
}

/// An event.
pub(crate) struct Event {
    pub(crate) context: Arc<Context>,
    timing: bool,
    last: Mutex<Last>,
}

fn event(handle: u64) -> Outcome<Arc<Event>> {
    let event = lock(&driver()?.events)
        .get(&handle)
        .cloned()
        .ok_or(Code::INVALID_HANDLE)?;
    event.context.check()?;
    Ok(event)
}

impl Event {
    /// The mark to query or to wait for; `None` if the event was never recorded. An event in a
    /// capture has no mark to query. A thread whose mode forbids it may not query other events
    /// during a capture.
    fn mark(&self) -> Outcome<Option<Arc<Mark>>> {
        let last = lock(&self.last).clone();
        if let Last::Captured(forked) = last {
            forked.capture.invalidate();
            return Err(Code::CAPTURED_EVENT);
        }
        refuse_unsafe()?;
        match last {
            Last::Recorded(mark) => Ok(Some(mark)),
            _ => Ok(None),
        }
    }

    fn time(&self) -> Outcome<Instant> {
        match self.mark()? {
            Some(mark) if self.timing => mark.when().ok_or(Code::NOT_READY),
            _ => Err(Code::INVALID_HANDLE),
        }
    }
}

fn record(handle: u64, stream_handle: u64, flags: u32) -> Outcome {
    let event = event(handle)?;
    let stream = stream(stream_handle)?;
    if flags & !EXTERNAL != 0 {
        return Err(Code::INVALID_VALUE);
    }
    if event.context.handle != stream.context.handle {
        return Err(Code::INVALID_HANDLE);
    }
    let forked = lock(&stream.capture)
        .as_ref()
        .map(Membership::mark)
        .transpose()?;
    if let Some(forked) = forked {
        if flags == EXTERNAL {
            return Err(Code::NOT_SUPPORTED);
        }
        *lock(&event.last) = Last::Captured(forked);
        return Ok(());
    }
    let mark = Arc::new(Mark::default());
    let reached = mark.clone();
    // The event shows the new mark before the stream can reach it.
    let mut last = lock(&event.last);
    let work = move |_: &Context| {
        reached.note_before();
        Ok(())
    };
    stream.give_marked(Arc::new(work), Some(mark.clone()))?;
    *last = Last::Recorded(mark);
    Ok(())
}

/// The recording of an event as work of a graph.
pub(crate) fn record_work(handle: u64) -> Outcome<Work> {
    let event = event(handle)?;
    Ok(Arc::new(move |_| {
        let mark = Arc::new(Mark::default());
        mark.note_before();
        mark.reach();
        *lock(&event.last) = Last::Recorded(mark);
        Ok(())
    }))
}

/// A wait for the mark that an event has when a graph gets there.
pub(crate) fn wait_work(handle: u64) -> Outcome<Work> {
    let event = event(handle)?;
    Ok(Arc::new(move |waiting_in| {
        let last = lock(&event.last).clone();
        if let Last::Recorded(mark) = last {
            mark.wait(&event.context, waiting_in);
            race::piece_waited(&mark.before());
        }
        Ok(())
    }))
}

fn elapsed(out: Out<f32>, start: u64, end: u64) -> Outcome {
    let (start, end) = (event(start)?, event(end)?);
    out.check()?;
    if start.context.handle != end.context.handle {
        return Err(Code::INVALID_HANDLE);
    }
    let (from, to) = (start.time()?, end.time()?);
    let seconds = match to.checked_duration_since(from) {
        Some(forward) => forward.as_secs_f64(),
        None => -from.duration_since(to).as_secs_f64(),
    };
    out.set((seconds * 1e3) as f32)
}

driver_calls! {
    /// Makes an event.
    fn cuEventCreate(out: Out<u64>, flags: u32) {
        let context = current()?;
        out.check()?;
        if flags & !(BLOCKING_SYNC | DISABLE_TIMING | INTERPROCESS) != 0 {
            return Err(Code::INVALID_VALUE);
        }
        if flags & INTERPROCESS != 0 {
            let right = flags & DISABLE_TIMING != 0;
            return Err(if right { Code::NOT_SUPPORTED } else { Code::INVALID_VALUE });
        }
        let event =
            Event { context, timing: flags & DISABLE_TIMING == 0, last: Mutex::new(Last::Never) };
        let handle = fresh();
        lock(&driver()?.events).insert(handle, Arc::new(event));
        out.set(handle)
    }

    /// Destroys an event; waits for its mark go on.
    fn cuEventDestroy_v2(handle: u64) {
        lock(&driver()?.events).remove(&handle).map(|_| ()).ok_or(Code::INVALID_HANDLE)
    }

    /// Marks the stream's present position.
    fn cuEventRecord(handle: u64, stream: u64) {
        record(handle, stream, 0)
    }

    /// Marks the stream's present position.
    fn cuEventRecordWithFlags(handle: u64, stream: u64, flags: u32) {
        record(handle, stream, flags)
    }

    /// Whether the mark has been reached.
    fn cuEventQuery(handle: u64) {
        match event(handle)?.mark()? {
            Some(mark) if mark.when().is_none() => Err(Code::NOT_READY),
            Some(mark) => {
                race::host_waited(&mark.before());
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Waits for the mark.
    fn cuEventSynchronize(handle: u64) {
        let event = event(handle)?;
        if let Some(mark) = event.mark()? {
            mark.wait(&event.context, &event.context);
            race::host_waited(&mark.before());
        }
        event.context.check()
    }

    /// Makes a stream wait for the mark that the event has now.
    fn cuStreamWaitEvent(stream_handle: u64, handle: u64, flags: u32) {
        let stream = stream(stream_handle)?;
        let event = event(handle)?;
        if flags & !EXTERNAL != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let last = lock(&event.last).clone();
        let mark = match last {
            // Never recorded: nothing to wait for.
            Last::Never => return Ok(()),
            Last::Captured(forked) => return forked.join(&stream),
            Last::Recorded(mark) => mark,
        };
        if let Some(membership) = lock(&stream.capture).as_ref() {
            membership.invalidate();
            return Err(Code::STREAM_CAPTURE_ISOLATION);
        }
        let recorded_in = event.context.clone();
        stream.give(Arc::new(move |waiting_in| {
            mark.wait(&recorded_in, waiting_in);
            race::piece_waited(&mark.before());
            Ok(())
        }))?;
        Ok(())
    }

    /// Milliseconds between two marks.
    fn cuEventElapsedTime(out: Out<f32>, start: u64, end: u64) {
        elapsed(out, start, end)
    }

    /// Milliseconds between two marks.
    fn cuEventElapsedTime_v2(out: Out<f32>, start: u64, end: u64) {
        elapsed(out, start, end)
    }
}
