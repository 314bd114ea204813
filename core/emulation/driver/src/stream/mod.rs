//! Streams: each is a thread that does its work in order.

mod calls;
mod worker;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex};

use crate::call::Outcome;
use crate::code::Code;
use crate::context::{Context, current};
use crate::driver::{driver, fresh};
use crate::event::Mark;
use crate::graph::{Capture, Membership};
use crate::race::{self, Clock, Strand};
use crate::sync::{doze, lock};

/// A piece of work, done in the order of its stream; a graph may launch it several times.
pub(crate) type Work = Arc<dyn Fn(&Context) -> Outcome + Send + Sync>;

/// A stream's relation to its context's default stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It is the default stream: it waits for all blocking streams, and they for it.
    Legacy,
    Blocking,
    /// It is independent of the default stream.
    NonBlocking,
}

struct Task {
    work: Work,
    /// Work of other streams that comes first.
    after: Vec<(Arc<Stream>, u64)>,
    /// The host's clock when it gave the task.
    given_at: Arc<Clock>,
    /// The mark of an event behind it. It is announced together with the task's end.
    mark: Option<Arc<Mark>>,
}

#[derive(Default)]
struct Queue {
    tasks: VecDeque<Task>,
    /// Tasks ever given, and tasks ever done.
    given: u64,
    done: u64,
    /// Whether no more tasks will be given.
    closed: bool,
}

/// A stream.
pub(crate) struct Stream {
    pub(crate) handle: u64,
    pub(crate) context: Arc<Context>,
    kind: Kind,
    priority: i32,
    queue: Mutex<Queue>,
    changed: Condvar,
    /// Its work, for the race detector.
    pub(crate) strand: Strand,
    /// The capture that records this stream's work, if there is one.
    pub(crate) capture: Mutex<Option<Membership>>,
}

impl Stream {
    /// A new stream with its thread.
    pub(crate) fn start(context: &Arc<Context>, kind: Kind, priority: i32) -> Outcome<Arc<Stream>> {
        let stream = Arc::new(Stream {
            handle: fresh(),
            context: context.clone(),
            kind,
            priority: priority.clamp(-5, 0),
            queue: Mutex::default(),
            changed: Condvar::new(),
            strand: Strand::default(),
            capture: Mutex::new(None),
        });
        let mine = stream.clone();
        std::thread::Builder::new()
            .name("softcuda-stream".to_owned())
            .spawn(move || mine.run())
            .map_err(|_| Code::OUT_OF_MEMORY)?;
        Ok(stream)
    }

    /// Gives work to the stream, or to the capture that records it. Returns the ticket that
    /// [`Stream::finish`] waits for.
    pub(crate) fn give(self: &Arc<Self>, work: Work) -> Outcome<u64> {
        self.give_marked(work, None)
    }

    /// The same, with an event's mark behind the work.
    pub(crate) fn give_marked(
        self: &Arc<Self>,
        work: Work,
        mark: Option<Arc<Mark>>,
    ) -> Outcome<u64> {
        self.context.check()?;
        if let Some(membership) = lock(&self.capture).as_ref() {
            membership.record(work)?;
            return Ok(0);
        }
        // Locked over both checks and the giving, so that the default stream's order has no gap.
        let streams = lock(&self.context.streams);
        let blocking = |stream: &&Arc<Stream>| stream.kind == Kind::Blocking;
        let legacy = |stream: &&Arc<Stream>| stream.kind == Kind::Legacy;
        let up_to_now = |stream: &Arc<Stream>| (stream.clone(), stream.given());
        let after: Vec<_> = match self.kind {
            Kind::Legacy => {
                for stream in streams.iter().filter(blocking) {
                    if let Some(membership) = lock(&stream.capture).as_ref() {
                        membership.invalidate();
                        return Err(Code::STREAM_CAPTURE_IMPLICIT);
                    }
                }
                streams.iter().filter(blocking).map(up_to_now).collect()
            }
            Kind::Blocking => streams.iter().filter(legacy).map(up_to_now).collect(),
            Kind::NonBlocking => Vec::new(),
        };
        let mut queue = lock(&self.queue);
        if queue.closed {
            return Err(Code::CONTEXT_IS_DESTROYED);
        }
        queue.given += 1;
        let given_at = race::host();
        queue.tasks.push_back(Task {
            work,
            after,
            given_at,
            mark,
        });
        self.changed.notify_all();
        Ok(queue.given)
    }

    /// Gives work and waits for it.
    pub(crate) fn give_and_finish(self: &Arc<Self>, work: Work) -> Outcome {
        let ticket = self.give(work)?;
        self.finish(ticket)
    }

    /// Waits for work, and returns the context's error, if any.
    pub(crate) fn finish(&self, ticket: u64) -> Outcome {
        self.host_waits(ticket);
        self.context.check()
    }

    /// Waits for work on a thread of the program.
    pub(crate) fn host_waits(&self, ticket: u64) {
        self.wait_done(ticket);
        race::host_waited(&self.strand.clock());
    }

    /// How much has been given so far.
    pub(crate) fn given(&self) -> u64 {
        lock(&self.queue).given
    }

    /// Waits for work, or until the context is destroyed.
    fn wait_done(&self, ticket: u64) {
        let mut queue = lock(&self.queue);
        while queue.done < ticket && self.context.alive() {
            queue = doze(&self.changed, queue);
        }
    }

    fn is_idle(&self) -> bool {
        let queue = lock(&self.queue);
        let idle = queue.done == queue.given;
        drop(queue);
        if idle {
            race::host_waited(&self.strand.clock());
        }
        idle
    }

    /// Whether it is destroyed and has done all its work.
    pub(crate) fn is_spent(&self) -> bool {
        let queue = lock(&self.queue);
        queue.closed && queue.done == queue.given
    }

    /// Accepts no more work: the thread ends when it has done its tasks.
    pub(crate) fn close(&self) {
        lock(&self.queue).closed = true;
        self.changed.notify_all();
    }

    /// Refuses an operation that a capturing stream does not allow, and invalidates the capture.
    pub(crate) fn refuse_while_capturing(&self) -> Outcome {
        match lock(&self.capture).as_ref() {
            None => Ok(()),
            Some(membership) => {
                membership.invalidate();
                Err(Code::STREAM_CAPTURE_UNSUPPORTED)
            }
        }
    }

    /// The capture in progress.
    pub(crate) fn capturing(&self) -> Option<Arc<Capture>> {
        lock(&self.capture)
            .as_ref()
            .map(|membership| membership.capture.clone())
    }

    pub(crate) fn is_legacy(&self) -> bool {
        self.kind == Kind::Legacy
    }
}

/// A thread's own default streams, one for each context in which it asked for one. They end with
/// the thread.
#[derive(Default)]
struct OwnStreams(Vec<Arc<Stream>>);

impl Drop for OwnStreams {
    fn drop(&mut self) {
        for stream in &self.0 {
            stream.close();
        }
    }
}

thread_local! {
    static OWN: RefCell<OwnStreams> = RefCell::default();
}

/// The stream that a handle names: null and 1 are the context's default stream, 2 the thread's.
pub(crate) fn stream(handle: u64) -> Outcome<Arc<Stream>> {
    match handle {
        0 | 1 => current()?.legacy_stream(),
        2 => own_stream(&current()?),
        _ => {
            let found = lock(&driver()?.streams).get(&handle).cloned();
            let stream = found.ok_or(Code::INVALID_HANDLE)?;
            stream.context.check()?;
            Ok(stream)
        }
    }
}

fn own_stream(context: &Arc<Context>) -> Outcome<Arc<Stream>> {
    let found = OWN.try_with(|own| {
        let OwnStreams(own) = &mut *own.borrow_mut();
        own.retain(|stream| stream.context.alive());
        if let Some(stream) = own.iter().find(|s| s.context.handle == context.handle) {
            return Ok(stream.clone());
        }
        let stream = Stream::start(context, Kind::Blocking, 0)?;
        lock(&context.streams).push(stream.clone());
        own.push(stream.clone());
        Ok(stream)
    });
    // A thread that is ending has no stream of its own any more.
    found.unwrap_or_else(|_| context.legacy_stream())
}
