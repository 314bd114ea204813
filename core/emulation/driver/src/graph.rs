//! Graphs, of nodes or by stream capture, and those that are ready to launch.
//!
//! A captured graph is the list of the work given to the captured streams, in the order of the calls. That
//! order keeps every dependency, so a launch executes the list in order; it only loses concurrency.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;

use crate::call::{Out, Outcome};
use crate::code::Code;
use crate::context::Context;
use crate::driver::{driver, fresh};
use crate::race;
use crate::stream::{Stream, Work, stream};
use crate::sync::lock;

/// For each stream, the part of its captured work that a stream depends on.
type Clock = HashMap<u64, usize>;

/// `CUstreamCaptureMode`.
const GLOBAL: u32 = 0;
const THREAD_LOCAL: u32 = 1;
const RELAXED: u32 = 2;

/// `CUstreamCaptureStatus`.
const NONE: u32 = 0;
const ACTIVE: u32 = 1;
const INVALIDATED: u32 = 2;

#[derive(Default)]
struct Recording {
    work: Vec<Work>,
    invalid: bool,
    /// Each stream's clock, its own work included.
    clocks: HashMap<u64, Clock>,
    streams: Vec<Arc<Stream>>,
}

/// A capture in progress.
pub(crate) struct Capture {
    id: u64,
    mode: u32,
    thread: ThreadId,
    origin: u64,
    recording: Mutex<Recording>,
}

/// A stream's part in a capture.
pub(crate) struct Membership {
    pub(crate) capture: Arc<Capture>,
    stream: u64,
}

/// An event's mark in a captured stream, from which another stream may go on.
#[derive(Clone)]
pub(crate) struct Forked {
    pub(crate) capture: Arc<Capture>,
    clock: Clock,
}

/// Captures in progress. The count is read first, since there is rarely one.
static CAPTURES: Mutex<Vec<Arc<Capture>>> = Mutex::new(Vec::new());
static UNDER_WAY: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The effect of captures on this thread's calls: `cuThreadExchangeStreamCaptureMode`.
    static MODE: Cell<u32> = const { Cell::new(GLOBAL) };
}

impl Capture {
    /// Invalidates the capture: after that it can only be ended.
    pub(crate) fn invalidate(&self) {
        lock(&self.recording).invalid = true;
    }

    fn status(&self) -> u32 {
        if lock(&self.recording).invalid {
            INVALIDATED
        } else {
            ACTIVE
        }
    }
}

impl Membership {
    /// Records work of the stream.
    pub(crate) fn record(&self, work: Work) -> Outcome {
        let mut recording = lock(&self.capture.recording);
        if recording.invalid {
            return Err(Code::STREAM_CAPTURE_INVALIDATED);
        }
        recording.work.push(work);
        let clock = recording.clocks.entry(self.stream).or_default();
        *clock.entry(self.stream).or_default() += 1;
        Ok(())
    }

    /// The stream's present position.
    pub(crate) fn mark(&self) -> Outcome<Forked> {
        let recording = lock(&self.capture.recording);
        if recording.invalid {
            return Err(Code::STREAM_CAPTURE_INVALIDATED);
        }
        let clock = recording
            .clocks
            .get(&self.stream)
            .cloned()
            .unwrap_or_default();
        Ok(Forked {
            capture: self.capture.clone(),
            clock,
        })
    }

    pub(crate) fn invalidate(&self) {
        self.capture.invalidate();
    }
}

impl Forked {
    /// Makes a stream depend on this mark. The stream joins the capture if it is not in it.
    pub(crate) fn join(&self, stream: &Arc<Stream>) -> Outcome {
        let mut membership = lock(&stream.capture);
        match membership.as_ref() {
            Some(other) if other.capture.id != self.capture.id => {
                other.invalidate();
                self.capture.invalidate();
                return Err(Code::STREAM_CAPTURE_MERGE);
            }
            None if stream.is_legacy() => return Err(Code::STREAM_CAPTURE_IMPLICIT),
            _ => {}
        }
        if !lock(&CAPTURES)
            .iter()
            .any(|capture| capture.id == self.capture.id)
        {
            // The capture has ended, so the event is of no use any more.
            return Err(Code::CAPTURED_EVENT);
        }
        let mut recording = lock(&self.capture.recording);
        if recording.invalid {
            return Err(Code::STREAM_CAPTURE_INVALIDATED);
        }
        let clock = recording.clocks.entry(stream.handle).or_default();
        for (of, count) in &self.clock {
            let known = clock.entry(*of).or_default();
            *known = (*known).max(*count);
        }
        if membership.is_none() {
            // Joining counts as work: the stream must be joined again before the end.
            *clock.entry(stream.handle).or_default() += 1;
            recording.streams.push(stream.clone());
            *membership = Some(Membership {
                capture: self.capture.clone(),
                stream: stream.handle,
            });
        }
        Ok(())
    }
}

/// Refuses a call that must not be made during a capture, by the thread's mode, and invalidates the
/// captures that it meets.
pub(crate) fn refuse_unsafe() -> Outcome {
    // Acquire: pairs with the increment at the start of a capture.
    if UNDER_WAY.load(Ordering::Acquire) == 0 || MODE.get() == RELAXED {
        return Ok(());
    }
    let here = std::thread::current().id();
    let mut met = false;
    for capture in lock(&CAPTURES).iter() {
        let forbids = match capture.mode {
            GLOBAL => MODE.get() == GLOBAL || capture.thread == here,
            THREAD_LOCAL => capture.thread == here,
            _ => false,
        };
        if forbids {
            capture.invalidate();
            met = true;
        }
    }
    if met {
        Err(Code::STREAM_CAPTURE_UNSUPPORTED)
    } else {
        Ok(())
    }
}

/// Refuses waits for all of a context while one of its streams is captured.
pub(crate) fn refuse_while_capturing(context: &Context) -> Outcome {
    if UNDER_WAY.load(Ordering::Acquire) == 0 {
        return Ok(());
    }
    let mut met = false;
    for stream in lock(&context.streams).iter() {
        if let Some(capture) = stream.capturing() {
            capture.invalidate();
            met = true;
        }
    }
    if met {
        Err(Code::STREAM_CAPTURE_UNSUPPORTED)
    } else {
        Ok(())
    }
}

/// The kind of a node's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Kernel,
    Copy,
    Fill,
    Host,
    Child,
    Empty,
    Wait,
    Record,
    /// Work of a capture, of which only the order is known.
    Captured,
}

/// A node of a graph.
#[derive(Clone)]
pub(crate) struct Node {
    pub(crate) handle: u64,
    pub(crate) kind: Kind,
    pub(crate) work: Work,
    /// Nodes that come before it.
    pub(crate) after: Vec<u64>,
    /// The node of which it is the copy in a clone.
    pub(crate) original: u64,
}

/// A graph: its nodes in the order in which they were made.
#[derive(Default)]
pub(crate) struct Graph {
    pub(crate) nodes: Mutex<Vec<Node>>,
}

impl Graph {
    /// The graph of work that was captured.
    fn in_a_row(work: Vec<Work>) -> Graph {
        let mut nodes: Vec<Node> = Vec::with_capacity(work.len());
        for work in work {
            let after = nodes.last().map(|node| node.handle).into_iter().collect();
            nodes.push(Node {
                handle: fresh(),
                kind: Kind::Captured,
                work,
                after,
                original: 0,
            });
        }
        Graph {
            nodes: Mutex::new(nodes),
        }
    }

    /// The nodes, each behind those that it depends on. A circle is refused.
    pub(crate) fn in_order(&self) -> Outcome<Vec<Node>> {
        let mut left = lock(&self.nodes).clone();
        let mut ordered = Vec::with_capacity(left.len());
        let mut done = HashSet::new();
        while !left.is_empty() {
            let before = ordered.len();
            left.retain(|node| {
                let ready = node.after.iter().all(|other| done.contains(other));
                if ready {
                    done.insert(node.handle);
                    ordered.push(node.clone());
                }
                !ready
            });
            if ordered.len() == before {
                return Err(Code::INVALID_VALUE);
            }
        }
        Ok(ordered)
    }

    /// The same graph with nodes of its own.
    pub(crate) fn duplicate(&self) -> Graph {
        let mut nodes = lock(&self.nodes).clone();
        let new: Vec<(u64, u64)> = nodes.iter().map(|node| (node.handle, fresh())).collect();
        let renamed = |old: u64| new.iter().find(|(of, _)| *of == old).map(|(_, new)| *new);
        for node in &mut nodes {
            node.original = node.handle;
            node.handle = renamed(node.handle).unwrap_or_default();
            node.after = node.after.iter().filter_map(|old| renamed(*old)).collect();
        }
        Graph {
            nodes: Mutex::new(nodes),
        }
    }
}

/// Does the work of nodes that are in order.
pub(crate) fn run(nodes: &[Node], context: &Context) -> Outcome {
    for node in nodes {
        context.check()?;
        (node.work)(context)?;
        race::next_piece();
    }
    Ok(())
}

/// A graph that is ready to launch.
pub(crate) struct Executable {
    /// The work, in an order that keeps every dependency.
    pub(crate) nodes: Mutex<Vec<Node>>,
    /// The work of the last launch, for the race detector. Serialises launches, on whatever streams.
    running: Mutex<Arc<race::Clock>>,
}

fn begin(handle: u64, mode: u32) -> Outcome {
    let stream = stream(handle)?;
    if mode > RELAXED {
        return Err(Code::INVALID_VALUE);
    }
    // The default stream cannot be captured, nor can a stream that is being captured.
    if stream.is_legacy() {
        return Err(Code::STREAM_CAPTURE_UNSUPPORTED);
    }
    let mut membership = lock(&stream.capture);
    if membership.is_some() {
        return Err(Code::INVALID_VALUE);
    }
    let recording = Recording {
        streams: vec![stream.clone()],
        ..Recording::default()
    };
    let capture = Arc::new(Capture {
        id: fresh(),
        mode,
        thread: std::thread::current().id(),
        origin: stream.handle,
        recording: Mutex::new(recording),
    });
    lock(&CAPTURES).push(capture.clone());
    // Release: a thread that sees the count sees the capture.
    UNDER_WAY.fetch_add(1, Ordering::Release);
    *membership = Some(Membership {
        capture,
        stream: stream.handle,
    });
    Ok(())
}

fn end(handle: u64) -> Outcome<Graph> {
    let stream = stream(handle)?;
    let capture = stream.capturing().ok_or(Code::INVALID_VALUE)?;
    if capture.origin != stream.handle {
        capture.invalidate();
        return Err(Code::STREAM_CAPTURE_UNMATCHED);
    }
    if capture.mode != RELAXED && capture.thread != std::thread::current().id() {
        return Err(Code::STREAM_CAPTURE_WRONG_THREAD);
    }
    let recording = {
        let mut recording = lock(&capture.recording);
        let spoilt = Recording {
            invalid: true,
            ..Recording::default()
        };
        std::mem::replace(&mut *recording, spoilt)
    };
    for stream in &recording.streams {
        *lock(&stream.capture) = None;
    }
    lock(&CAPTURES).retain(|other| other.id != capture.id);
    UNDER_WAY.fetch_sub(1, Ordering::Release);
    if recording.invalid {
        return Err(Code::STREAM_CAPTURE_INVALIDATED);
    }
    let known = recording.clocks.get(&capture.origin);
    let unjoined = recording
        .clocks
        .iter()
        .any(|(of, clock)| clock.get(of) > known.and_then(|known| known.get(of)));
    if unjoined {
        Err(Code::STREAM_CAPTURE_UNJOINED)
    } else {
        Ok(Graph::in_a_row(recording.work))
    }
}

fn instantiate(out: Out<u64>, graph: u64) -> Outcome {
    let driver = driver()?;
    out.check()?;
    let graph = lock(&driver.graphs)
        .get(&graph)
        .cloned()
        .ok_or(Code::INVALID_VALUE)?;
    let executable = Executable {
        nodes: Mutex::new(graph.in_order()?),
        running: Mutex::default(),
    };
    let handle = fresh();
    lock(&driver.executables).insert(handle, Arc::new(executable));
    out.set(handle)
}

fn capture_info(handle: u64, status: Out<u32>, id: Out<u64>, graph: Out<u64>) -> Outcome {
    let capture = stream(handle)?.capturing();
    status.set(capture.as_ref().map_or(NONE, |capture| capture.status()))?;
    if let Some(capture) = capture {
        id.set_if_wanted(capture.id);
        // The graph under construction cannot be changed by hand.
        graph.set_if_wanted(0);
    }
    Ok(())
}

driver_calls! {
    /// Starts to record a stream's work instead of executing it.
    fn cuStreamBeginCapture_v2(handle: u64, mode: u32) {
        begin(handle, mode)
    }

    /// Ends the recording, and returns the graph.
    fn cuStreamEndCapture(handle: u64, out: Out<u64>) {
        let driver = driver()?;
        out.check()?;
        out.set(0)?;
        let graph = end(handle)?;
        let handle = fresh();
        lock(&driver.graphs).insert(handle, Arc::new(graph));
        out.set(handle)
    }

    /// Whether a stream is being recorded.
    fn cuStreamIsCapturing(handle: u64, status: Out<u32>) {
        capture_info(handle, status, Out::none(), Out::none())
    }

    /// Whether a stream is being recorded, and by which capture.
    fn cuStreamGetCaptureInfo_v2(
        handle: u64,
        status: Out<u32>,
        id: Out<u64>,
        graph: Out<u64>,
        dependencies: Out<u64>,
        count: Out<usize>,
    ) {
        capture_info(handle, status, id, graph)?;
        dependencies.set_if_wanted(0);
        count.set_if_wanted(0);
        Ok(())
    }

    /// Sets the effect of captures on this thread's calls, and returns the former setting.
    fn cuThreadExchangeStreamCaptureMode(mode: Out<u32>) {
        driver()?;
        let wanted = mode.get()?;
        if wanted > RELAXED {
            return Err(Code::INVALID_VALUE);
        }
        mode.set(MODE.replace(wanted))
    }

    /// Instantiates a graph.
    fn cuGraphInstantiateWithFlags(out: Out<u64>, graph: u64, flags: u64) {
        // Automatic freeing and node priorities have no meaning here; device launch is not
        // supported.
        if flags & !0b1011 != 0 {
            return Err(Code::NOT_SUPPORTED);
        }
        instantiate(out, graph)
    }

    /// Prepares a graph's launch: nothing to do.
    fn cuGraphUpload(executable: u64, handle: u64) {
        stream(handle)?;
        let known = lock(&driver()?.executables).contains_key(&executable);
        if known { Ok(()) } else { Err(Code::INVALID_VALUE) }
    }

    /// Gives all of a graph's work to a stream.
    fn cuGraphLaunch(executable: u64, handle: u64) {
        let stream = stream(handle)?;
        let executable =
            lock(&driver()?.executables).get(&executable).cloned().ok_or(Code::INVALID_VALUE)?;
        // A launch does what the graph was when it was called.
        let nodes = lock(&executable.nodes).clone();
        stream.give(Arc::new(move |context| {
            let mut last = lock(&executable.running);
            race::piece_waited(&last);
            run(&nodes, context)?;
            *last = race::piece_clock();
            Ok(())
        }))?;
        Ok(())
    }

    /// Destroys an instantiated graph; launches in progress are not affected.
    fn cuGraphExecDestroy(executable: u64) {
        lock(&driver()?.executables).remove(&executable).map(|_| ()).ok_or(Code::INVALID_VALUE)
    }

    /// Destroys a graph.
    fn cuGraphDestroy(graph: u64) {
        lock(&driver()?.graphs).remove(&graph).map(|_| ()).ok_or(Code::INVALID_VALUE)
    }
}
