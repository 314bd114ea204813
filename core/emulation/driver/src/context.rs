//! Contexts: the primary one of each device, others, and each thread's current one.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use crate::call::{Out, Outcome};
use crate::code::Code;
use crate::driver::{driver, fresh, running};
use crate::race::{self, Clock};
use crate::stream::{Kind, Stream};
use crate::sync::{lock, write};

/// A context of a device.
pub(crate) struct Context {
    pub(crate) handle: u64,
    pub(crate) ordinal: usize,
    flags: u32,
    alive: AtomicBool,
    /// The first error of executed work: every later call returns it.
    sticky: AtomicU32,
    /// Contexts whose memory this one's kernels and memory operations may use.
    peers: Mutex<HashSet<u64>>,
    /// All streams. Locked while work is given to one, so that the default stream's order has no
    /// gaps.
    pub(crate) streams: Mutex<Vec<Arc<Stream>>>,
    legacy: OnceLock<Arc<Stream>>,
    /// The work of streams that are gone, for the race detector.
    retired: Mutex<Arc<Clock>>,
}

impl Context {
    fn new(ordinal: usize, flags: u32) -> Arc<Context> {
        Arc::new(Context {
            handle: fresh(),
            ordinal,
            flags,
            alive: AtomicBool::new(true),
            sticky: AtomicU32::new(0),
            peers: Mutex::default(),
            streams: Mutex::default(),
            legacy: OnceLock::new(),
            retired: Mutex::default(),
        })
    }

    /// Forgets the streams that are destroyed and have done all their work.
    pub(crate) fn drop_spent_streams(&self, streams: &mut Vec<Arc<Stream>>) {
        streams.retain(|stream| {
            let spent = stream.is_spent();
            if spent {
                race::join(&mut lock(&self.retired), &stream.strand.clock());
            }
            !spent
        });
    }

    /// The work of streams that are gone.
    pub(crate) fn retired(&self) -> Arc<Clock> {
        Arc::clone(&lock(&self.retired))
    }

    /// False once the context is destroyed: waits for its work then end.
    pub(crate) fn alive(&self) -> bool {
        self.alive.load(Ordering::Acquire)
    }

    /// Keeps the first error of executed work.
    pub(crate) fn fail(&self, code: Code) {
        let _ = self
            .sticky
            .compare_exchange(0, code.0, Ordering::AcqRel, Ordering::Acquire);
    }

    /// Refuses if the context is destroyed, or if work has failed in it.
    pub(crate) fn check(&self) -> Outcome {
        if !self.alive() {
            return Err(Code::CONTEXT_IS_DESTROYED);
        }
        match self.sticky.load(Ordering::Acquire) {
            0 => Ok(()),
            code => Err(Code(code)),
        }
    }

    /// Whether kernels and memory operations of this context may use another's plain allocations.
    pub(crate) fn reaches(&self, other: u64) -> bool {
        self.handle == other || lock(&self.peers).contains(&other)
    }

    /// The default stream.
    pub(crate) fn legacy_stream(self: &Arc<Self>) -> Outcome<Arc<Stream>> {
        if let Some(stream) = self.legacy.get() {
            return Ok(stream.clone());
        }
        let mut streams = lock(&self.streams);
        if let Some(stream) = self.legacy.get() {
            return Ok(stream.clone());
        }
        let stream = Stream::start(self, Kind::Legacy, 0)?;
        streams.push(stream.clone());
        let _ = self.legacy.set(stream.clone());
        Ok(stream)
    }

    /// Waits for all work given to the context so far.
    pub(crate) fn synchronize(&self) -> Outcome {
        let given: Vec<_> = lock(&self.streams)
            .iter()
            .map(|s| (s.clone(), s.given()))
            .collect();
        for (stream, ticket) in given {
            stream.host_waits(ticket);
        }
        race::host_waited(&self.retired());
        self.check()
    }

    fn destroy(&self) -> Outcome {
        self.alive.store(false, Ordering::Release);
        for stream in lock(&self.streams).drain(..) {
            stream.close();
        }
        let driver = running()?;
        lock(&driver.streams).retain(|_, stream| stream.context.handle != self.handle);
        lock(&driver.events).retain(|_, event| event.context.handle != self.handle);
        lock(&driver.modules).forget(self.handle);
        write(&driver.memory).forget(self.handle);
        Ok(())
    }
}

/// All contexts of the process.
pub(crate) struct Contexts {
    by_handle: HashMap<u64, Arc<Context>>,
    primary: Vec<Option<(Arc<Context>, usize)>>,
    primary_flags: Vec<u32>,
}

impl Contexts {
    pub(crate) fn new(devices: usize) -> Contexts {
        Contexts {
            by_handle: HashMap::new(),
            primary: (0..devices).map(|_| None).collect(),
            primary_flags: vec![0; devices],
        }
    }

    fn get(&self, handle: u64) -> Outcome<Arc<Context>> {
        self.by_handle
            .get(&handle)
            .cloned()
            .ok_or(Code::INVALID_CONTEXT)
    }
}

thread_local! {
    /// Never dropped: functions that run at the end of the process may call the driver.
    static STACK: ManuallyDrop<RefCell<Vec<Arc<Context>>>> = const { ManuallyDrop::new(RefCell::new(Vec::new())) };
}

/// Uses the calling thread's stack of contexts.
fn with_stack<R>(act: impl FnOnce(&mut Vec<Arc<Context>>) -> R) -> R {
    STACK.with(|stack| act(&mut stack.borrow_mut()))
}

/// The calling thread's context, if it has one, even if it is destroyed.
fn top() -> Option<Arc<Context>> {
    with_stack(|stack| stack.last().cloned())
}

/// The calling thread's context, if it can do work.
pub(crate) fn current() -> Outcome<Arc<Context>> {
    driver()?;
    let context = top().ok_or(Code::INVALID_CONTEXT)?;
    context.check()?;
    Ok(context)
}

/// A context by its handle.
pub(crate) fn by_handle(handle: u64) -> Outcome<Arc<Context>> {
    lock(&driver()?.contexts).get(handle)
}

/// The context with this handle, or the current one for null.
pub(crate) fn by_handle_or_current(handle: u64) -> Outcome<Arc<Context>> {
    if handle == 0 {
        current()
    } else {
        by_handle(handle)
    }
}

fn create(out: Out<u64>, flags: u32, device: i32) -> Outcome {
    let driver = driver()?;
    driver.device(device)?;
    out.check()?;
    let context = Context::new(device as usize, flags);
    lock(&driver.contexts)
        .by_handle
        .insert(context.handle, context.clone());
    out.set(context.handle)?;
    with_stack(|stack| stack.push(context));
    Ok(())
}

driver_calls! {
    /// Retains the device's primary context, and creates it if needed.
    fn cuDevicePrimaryCtxRetain(out: Out<u64>, device: i32) {
        let driver = driver()?;
        driver.device(device)?;
        out.check()?;
        let mut contexts = lock(&driver.contexts);
        let ordinal = device as usize;
        let flags = contexts.primary_flags[ordinal];
        let (context, uses) =
            contexts.primary[ordinal].get_or_insert_with(|| (Context::new(ordinal, flags), 0));
        *uses += 1;
        let context = context.clone();
        contexts.by_handle.insert(context.handle, context.clone());
        out.set(context.handle)
    }

    /// Releases the primary context; the last release destroys it.
    fn cuDevicePrimaryCtxRelease_v2(device: i32) {
        let driver = driver()?;
        driver.device(device)?;
        let last = {
            let mut contexts = lock(&driver.contexts);
            let slot = &mut contexts.primary[device as usize];
            let Some((context, uses)) = slot else { return Err(Code::INVALID_CONTEXT) };
            *uses -= 1;
            if *uses > 0 {
                return Ok(());
            }
            let context = context.clone();
            *slot = None;
            contexts.by_handle.remove(&context.handle);
            context
        };
        last.destroy()
    }

    /// Sets the flags of the primary context, before it is created.
    fn cuDevicePrimaryCtxSetFlags_v2(device: i32, flags: u32) {
        let driver = driver()?;
        driver.device(device)?;
        lock(&driver.contexts).primary_flags[device as usize] = flags;
        Ok(())
    }

    /// The primary context's flags, and whether it exists.
    fn cuDevicePrimaryCtxGetState(device: i32, flags: Out<u32>, active: Out<i32>) {
        let driver = driver()?;
        driver.device(device)?;
        let contexts = lock(&driver.contexts);
        flags.set(contexts.primary_flags[device as usize])?;
        active.set(i32::from(contexts.primary[device as usize].is_some()))
    }

    /// Makes a context and makes it current.
    fn cuCtxCreate_v2(out: Out<u64>, flags: u32, device: i32) {
        create(out, flags, device)
    }

    /// Makes a context and makes it current; parameters for special contexts are refused.
    fn cuCtxCreate_v4(out: Out<u64>, parameters: *const u8, flags: u32, device: i32) {
        if !parameters.is_null() {
            return Err(Code::NOT_SUPPORTED);
        }
        create(out, flags, device)
    }

    /// Destroys a context that is not a primary one.
    fn cuCtxDestroy_v2(handle: u64) {
        let driver = driver()?;
        let context = {
            let mut contexts = lock(&driver.contexts);
            let context = contexts.get(handle)?;
            if contexts.primary.iter().flatten().any(|(primary, _)| primary.handle == handle) {
                return Err(Code::INVALID_CONTEXT);
            }
            contexts.by_handle.remove(&handle);
            context
        };
        with_stack(|stack| {
            if stack.last().is_some_and(|top| top.handle == handle) {
                stack.pop();
            }
        });
        context.destroy()
    }

    /// Makes a context the calling thread's current one; null leaves it without one.
    fn cuCtxSetCurrent(handle: u64) {
        driver()?;
        let context = if handle == 0 { None } else { Some(by_handle(handle)?) };
        with_stack(|stack| {
            stack.pop();
            stack.extend(context);
        });
        Ok(())
    }

    /// The calling thread's context, or null.
    fn cuCtxGetCurrent(out: Out<u64>) {
        driver()?;
        out.set(top().map_or(0, |context| context.handle))
    }

    /// Pushes a context onto the calling thread's stack.
    fn cuCtxPushCurrent_v2(handle: u64) {
        driver()?;
        let context = by_handle(handle)?;
        with_stack(|stack| stack.push(context));
        Ok(())
    }

    /// Pops the current context from the calling thread's stack.
    fn cuCtxPopCurrent_v2(out: Out<u64>) {
        driver()?;
        let context = with_stack(Vec::pop).ok_or(Code::INVALID_CONTEXT)?;
        out.set_if_wanted(context.handle);
        Ok(())
    }

    /// The device of the current context.
    fn cuCtxGetDevice(out: Out<i32>) {
        driver()?;
        out.set(top().ok_or(Code::INVALID_CONTEXT)?.ordinal as i32)
    }

    /// The device of a context.
    fn cuCtxGetDevice_v2(out: Out<i32>, handle: u64) {
        out.set(by_handle_or_current(handle)?.ordinal as i32)
    }

    /// The flags of the current context.
    fn cuCtxGetFlags(out: Out<u32>) {
        out.set(current()?.flags)
    }

    /// A number that no other context has.
    fn cuCtxGetId(handle: u64, out: Out<u64>) {
        out.set(by_handle_or_current(handle)?.handle)
    }

    /// The API version that the context was created for.
    fn cuCtxGetApiVersion(handle: u64, out: Out<u32>) {
        by_handle_or_current(handle)?;
        out.set(3020)
    }

    /// Lowest and highest stream priority.
    fn cuCtxGetStreamPriorityRange(least: Out<i32>, greatest: Out<i32>) {
        current()?;
        least.set_if_wanted(0);
        greatest.set_if_wanted(-5);
        Ok(())
    }

    /// Waits for all work of the current context.
    fn cuCtxSynchronize() {
        let context = current()?;
        crate::graph::refuse_while_capturing(&context)?;
        context.synchronize()
    }

    /// Lets the current context use another's allocations.
    fn cuCtxEnablePeerAccess(peer: u64, flags: u32) {
        let context = current()?;
        let peer = by_handle(peer)?;
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        if !driver()?.peers(context.ordinal, peer.ordinal) {
            return Err(Code::PEER_ACCESS_UNSUPPORTED);
        }
        if lock(&context.peers).insert(peer.handle) {
            Ok(())
        } else {
            Err(Code::PEER_ACCESS_ALREADY_ENABLED)
        }
    }

    /// Revokes that.
    fn cuCtxDisablePeerAccess(peer: u64) {
        let context = current()?;
        let peer = by_handle(peer)?;
        if lock(&context.peers).remove(&peer.handle) {
            Ok(())
        } else {
            Err(Code::PEER_ACCESS_NOT_ENABLED)
        }
    }
}
