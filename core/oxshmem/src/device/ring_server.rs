//! The thread that carries out kernels' requests towards PEs whose memory is not mapped for this GPU.
//!
//! It has a context of its own. Requests are begun in the order of their tickets. A put whose caller waits for its source, a get whose
//! caller waits for its data and an atomic are done before the next request is looked at; other puts and gets are in flight until a
//! quiet, which the thread makes when a kernel asks for one, or when there is nothing else to do.

use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use oxshmem_cuda::{DevicePtr, Pinned, PinnedOptions};
use oxshmem_device_library::ring::{HostRing, Operation, Request, Ring, SLOTS};
use oxshmem_engine::memory::target::Target;
use oxshmem_engine::ops::access_path::AccessPath;
use oxshmem_engine::ops::copy::{RemoteRange, via_host};
use oxshmem_engine::order::op_set::OpKind;
use oxshmem_transport::{AtomicOp, SignalOp};

use crate::atomics::Word;
use crate::context::Context;
use crate::device::ring_state::{RingQuiet, RingState, lock};
use crate::device::ring_values::Values;
use crate::error::{Error, Result};
use crate::gpu::cuda::device::Gpu;
use crate::stream::gpu_streams::{InCall, StopWord};
use crate::sym::Sym;

const CALL: &str = "a call of a kernel";

/// Looks at the ring without a pause, before the thread sleeps between them.
const BUSY_LOOKS: u32 = 200;
/// The first sleep, and the longest.
const SLEEPS: [Duration; 2] = [Duration::from_micros(20), Duration::from_micros(500)];

/// The running thread, and the ring's memory. It ends when this is dropped.
pub(crate) struct RingServer {
    state: Arc<RingState>,
    memory: Arc<Pinned>,
    thread: Option<JoinHandle<()>>,
}

impl fmt::Debug for RingServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RingServer").finish_non_exhaustive()
    }
}

/// Everything that the thread uses.
pub(super) struct Served {
    /// A context that no other thread uses.
    pub context: Context<'static>,
    /// The stop word, by which a failure ends the waits of kernels.
    pub stop_word: Arc<StopWord>,
    /// This PE's GPU.
    pub gpu: Gpu,
    /// This PE's GPU heap: its address and length.
    pub heap: (u64, u64),
    /// The tag of handles that name GPU memory, and the generation of the library's own.
    pub handles: (u32, u32),
    /// The counter of tickets, in this GPU's memory.
    pub head: DevicePtr,
}

impl RingServer {
    pub(super) fn start(served: Served) -> Result<RingServer> {
        let gpu = &served.gpu.context;
        let new = || Pinned::new(gpu, HostRing::BYTES, &PinnedOptions::default());
        let memory = Arc::new(new().in_call(CALL)?);
        let state = Arc::new(RingState::default());
        let start = NonNull::new(memory.as_ptr()).ok_or_else(|| Error::Gpu {
            call: CALL,
            why: "page-locked memory at no address".into(),
        })?;
        // SAFETY: the memory is zeroed, aligned to a page, long enough, and kept by the thread.
        let ring = unsafe { HostRing::new(start) };
        let server = Server {
            served,
            state: Arc::clone(&state),
            _memory: Arc::clone(&memory),
            ring,
            in_flight: false,
            reads_sources: false,
        };
        let thread = std::thread::Builder::new()
            .name("oxshmem-kernels".into())
            .spawn(move || server.run());
        let thread = thread.map_err(|error| Error::Gpu {
            call: CALL,
            why: format!("no thread for the requests of kernels: {error}"),
        })?;
        Ok(RingServer {
            state,
            memory,
            thread: Some(thread),
        })
    }

    /// The ring as kernels see it, whose counters of tickets and of credit lie in the GPU's memory.
    pub(super) fn ring(&self, head: DevicePtr, credit: DevicePtr) -> Ring {
        let at = |offset| self.memory.device_ptr().add(offset).as_raw();
        Ring {
            slots: at(HostRing::SLOTS),
            answers: at(HostRing::answers(SLOTS)),
            head: head.as_raw(),
            taken: at(HostRing::TAKEN),
            sources_read: at(HostRing::SOURCES_READ),
            done: at(HostRing::DONE),
            credit: credit.as_raw(),
            mask: SLOTS - 1,
        }
    }

    /// Keeps the ring's memory until the process ends.
    pub(super) fn keep_memory(&self) {
        std::mem::forget(Arc::clone(&self.memory));
    }

    /// The handle for the host's quiets.
    pub(super) fn quiet_handle(&self) -> Option<RingQuiet> {
        let thread = self.thread.as_ref()?.thread().clone();
        Some(RingQuiet {
            state: Arc::clone(&self.state),
            thread,
        })
    }
}

impl Drop for RingServer {
    fn drop(&mut self) {
        self.state.ended.store(true, Ordering::Release);
        self.state.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

struct Server {
    served: Served,
    state: Arc<RingState>,
    _memory: Arc<Pinned>,
    ring: HostRing,
    /// Whether operations are in flight that a quiet completes.
    in_flight: bool,
    /// Whether nonblocking puts may still read their sources.
    reads_sources: bool,
}

impl Server {
    fn run(mut self) {
        let (mut looks, [mut sleep, longest]) = (0_u32, SLEEPS);
        // The quiets that were asked for, and the ticket behind all requests of before.
        let mut asked = (0, 0);
        loop {
            self.restart_if_asked();
            let quiets = self.state.quiets.load(Ordering::Acquire);
            let told = *lock(&self.state.quieted);
            if told >= asked.0 && quiets != asked.0 {
                asked = (quiets, self.ring.taken() + SLOTS);
            }
            // Neither kernels that go on making requests nor later quiets hold up a quiet.
            let is_due = told < asked.0 && self.ring.taken() >= asked.1;
            let quiets = if is_due { asked.0 } else { quiets };
            if !is_due && let Some((ticket, request)) = self.ring.take() {
                (looks, sleep) = (0, SLEEPS[0]);
                match self.execute(ticket, request) {
                    Err(error) => self.fail(&error),
                    Ok(()) if !self.reads_sources => self.ring.free_sources(self.ring.taken()),
                    Ok(()) => {}
                }
                continue;
            }
            // The loop's end comes after the last request that was stored before it.
            if self.state.ended.load(Ordering::Acquire) && !self.in_flight {
                return;
            }
            if self.in_flight {
                if let Err(error) = self.complete_all() {
                    self.fail(&error);
                }
                continue;
            }
            // All requests from before the quiets were asked for are complete.
            self.tell_quieted(quiets);
            looks = looks.saturating_add(1);
            if looks < BUSY_LOOKS {
                std::thread::yield_now();
            } else {
                std::thread::park_timeout(sleep);
                sleep = (sleep * 2).min(longest);
            }
        }
    }

    fn restart_if_asked(&mut self) {
        let [asked, done] = &self.state.restarts;
        let wanted = asked.load(Ordering::Acquire);
        if done.load(Ordering::Relaxed) == wanted {
            return;
        }
        // Operations that a failure has left in flight end here, whatever comes of them.
        let _ = self.quiet();
        (self.in_flight, self.reads_sources) = (false, false);
        *lock(&self.state.failure) = None;
        match self.tickets() {
            Ok(next) => self.ring.restart(next),
            Err(error) => self.fail(&error),
        }
        let [_, done] = &self.state.restarts;
        done.store(wanted, Ordering::Release);
    }

    /// The number of tickets that kernels have taken.
    fn tickets(&self) -> Result<u64> {
        let mut head = 0_u64;
        let mut engine = self.served.gpu.engine();
        // SAFETY: the counter is a word of the library's own in this PE's heap, which is mapped while the world lives.
        let read =
            unsafe { engine.read((&raw mut head).cast(), self.served.head, size_of_val(&head)) };
        read.map_err(|why| Error::Gpu { call: CALL, why })?;
        Ok(head)
    }

    fn tell_quieted(&self, quiets: u64) {
        let mut quieted = lock(&self.state.quieted);
        if *quieted != quiets {
            *quieted = quiets;
            self.state.changed.notify_all();
        }
    }

    /// Ends the waits of kernels, for which there is no result any more. Requests that come later are carried out if
    /// they can be.
    fn fail(&mut self, error: &Error) {
        lock(&self.state.failure).get_or_insert_with(|| error.to_string());
        (self.in_flight, self.reads_sources) = (false, false);
        self.served.stop_word.end();
        self.publish();
    }

    /// Tells that all requests so far are complete.
    fn publish(&self) {
        let count = self.ring.taken();
        self.ring.free_sources(count);
        self.ring.complete(count);
    }

    /// A quiet of this thread's operations. The context's own would wait for this thread.
    fn quiet(&self) -> Result<()> {
        let worker = &self.served.context.worker;
        let stored = worker.complete_stores();
        Ok(worker.quiet_slow(None, stored)?)
    }

    fn complete_all(&mut self) -> Result<()> {
        self.quiet()?;
        (self.in_flight, self.reads_sources) = (false, false);
        self.publish();
        Ok(())
    }

    /// A range of PE `pe`'s GPU heap, as a kernel gave it.
    fn symmetric<T: bytemuck::Pod>(&self, offset: u64, count: u64, pe: u32) -> Result<Sym<T>> {
        let (_, limit) = self.served.heap;
        let bytes = count.saturating_mul(size_of::<T>() as u64);
        let fits = offset <= limit
            && bytes <= limit - offset
            && offset.is_multiple_of(align_of::<T>() as u64);
        if !fits || pe as usize >= self.served.context.n_pes() {
            return Err(Error::Argument {
                call: CALL,
                what: format!(
                    "{bytes} bytes at offset {offset:#x} of PE {pe}'s GPU heap do not exist; compile the kernels with \
                     OXSHMEM_CHECK to see which call gives them"
                ),
            });
        }
        let (tag, generation) = self.served.handles;
        Ok(Sym::new(tag, generation, offset, count as usize))
    }

    /// The offset of an address in this PE's own GPU heap, if all `bytes` lie in it.
    fn own_offset(&self, address: u64, bytes: u64) -> Option<u64> {
        let (start, limit) = self.served.heap;
        let offset = address.checked_sub(start)?;
        (offset <= limit && bytes <= limit - offset).then_some(offset)
    }

    fn execute(&mut self, ticket: u64, request: Request) -> Result<()> {
        let Some(operation) = request.operation else {
            return Err(Error::Argument {
                call: CALL,
                what: "a request of another version's oxshmem.cuh".into(),
            });
        };
        match operation {
            Operation::Put => self.put(&request),
            Operation::Get => self.get(ticket, &request),
            Operation::PutValue => self.put_values(&request),
            Operation::GetValue => self.get_values(ticket, &request),
            Operation::PutSignal => {
                self.put(&Request {
                    width: 1,
                    ..request
                })?;
                self.served.context.fence()?;
                self.signal(&request)
            }
            Operation::Signal => self.signal(&request),
            Operation::Fence => self.served.context.fence(),
            Operation::Quiet => self.complete_all(),
            Operation::Flush => {
                self.served.context.worker.make_own_gpu_visible()?;
                self.complete_all()
            }
            _ if request.width == 4 => self.atomic::<u32>(ticket, operation, &request),
            _ => self.atomic::<u64>(ticket, operation, &request),
        }
    }

    /// Waits until the kernel that had the answer's place before has read its answer, or has been ended.
    fn answer(&self, ticket: u64, value: u64) {
        while !self.ring.answer(ticket, value) {
            if self.state.ended.load(Ordering::Acquire) || self.served.stop_word.value() != 0 {
                return;
            }
            std::thread::yield_now();
        }
    }

    fn put(&mut self, request: &Request) -> Result<()> {
        let dst = self.symmetric::<u8>(request.remote, request.bytes, request.pe)?;
        let pe = request.pe as usize;
        self.in_flight = true;
        let Some(offset) = self.own_offset(request.local, request.bytes) else {
            return self.put_bounced(dst, request.local, pe);
        };
        let src = self.symmetric::<u8>(offset, request.bytes, request.pe)?;
        let to = RemoteRange {
            target: dst.into(),
            pe,
        };
        let worker = &self.served.context.in_call(CALL).worker;
        let is_nonblocking = request.width == 0;
        worker.copy_to(to, src.into(), is_nonblocking)?;
        if is_nonblocking {
            self.reads_sources = true;
        } else if self.reads_sources {
            // The counter of sources passes those of earlier puts as well.
            self.complete_all()?;
        }
        Ok(())
    }

    fn get(&mut self, ticket: u64, request: &Request) -> Result<()> {
        let src = self.symmetric::<u8>(request.remote, request.bytes, request.pe)?;
        let pe = request.pe as usize;
        if let Some(offset) = self.own_offset(request.local, request.bytes) {
            let dst: Target = self
                .symmetric::<u8>(offset, request.bytes, request.pe)?
                .into();
            let from = RemoteRange {
                target: src.into(),
                pe,
            };
            let worker = &self.served.context.in_call(CALL).worker;
            let path: AccessPath<'_> = worker.access_path(OpKind::Put, from.target, pe)?;
            self.in_flight |= request.width == 0;
            worker.copy_by_path(path, dst, from, request.width == 0)?;
        } else {
            self.get_bounced(src, request.local, pe)?;
        }
        if request.width != 0 {
            self.served.context.worker.make_own_gpu_visible()?;
            self.answer(ticket, 0);
        }
        Ok(())
    }

    /// A put whose source is GPU memory outside the heap.
    fn put_bounced(&self, dst: Sym<u8>, from: u64, pe: usize) -> Result<()> {
        let from = DevicePtr::from_raw(from);
        via_host(
            dst.len(),
            |at, part| {
                let mut engine = self.served.gpu.engine();
                // SAFETY: the kernel gave as many bytes that its GPU reads, and leaves them until the put is done.
                let read = unsafe { engine.read(part.as_mut_ptr(), from.add(at), part.len()) };
                read.map_err(|why| Error::Gpu { call: CALL, why })
            },
            |at, part| {
                let dst = dst.range(at..at + part.len())?;
                Ok(self.served.context.worker.put_bytes(dst, part, pe)?)
            },
        )
    }

    /// A get whose destination is GPU memory outside the heap.
    fn get_bounced(&self, src: Sym<u8>, into: u64, pe: usize) -> Result<()> {
        let into = DevicePtr::from_raw(into);
        via_host(
            src.len(),
            |at, part| {
                let src = src.range(at..at + part.len())?;
                Ok(self.served.context.worker.get_bytes(part, src, pe)?)
            },
            |at, part| {
                let mut engine = self.served.gpu.engine();
                // SAFETY: the kernel gave as many bytes that its GPU writes, and leaves them until the get is done.
                let written = unsafe { engine.write(into.add(at), part.as_ptr(), part.len()) };
                written.map_err(|why| Error::Gpu { call: CALL, why })
            },
        )
    }

    /// The values of one lane, or of several with neighbouring words, as one put.
    fn put_values(&mut self, request: &Request) -> Result<()> {
        let mut values = Values::new();
        let bytes = values.fill(request, self.ring.values());
        let dst = self.symmetric::<u8>(request.remote, bytes.len() as u64, request.pe)?;
        self.in_flight = true;
        self.served.context.put(dst, bytes, request.pe as usize)
    }

    /// The same of gets. Each lane has an answer of its own.
    fn get_values(&self, ticket: u64, request: &Request) -> Result<()> {
        let mut values = Values::new();
        let bytes = values.of(request);
        let src = self.symmetric::<u8>(request.remote, bytes.len() as u64, request.pe)?;
        self.served.context.get(bytes, src, request.pe as usize)?;
        for (ticket, value) in (ticket..).zip(values.words(request)) {
            self.answer(ticket, value);
        }
        Ok(())
    }

    fn signal(&mut self, request: &Request) -> Result<()> {
        let word = self.symmetric::<u64>(request.compare, 1, request.pe)?;
        let op = if request.width == 0 {
            SignalOp::Set
        } else {
            SignalOp::Add
        };
        self.in_flight = true;
        let pe = request.pe as usize;
        match op {
            SignalOp::Set => self.served.context.signal_set(word, request.value, pe),
            SignalOp::Add => self.served.context.signal_add(word, request.value, pe),
        }
    }

    fn atomic<T: Word>(
        &mut self,
        ticket: u64,
        operation: Operation,
        request: &Request,
    ) -> Result<()> {
        let word = self.symmetric::<T>(request.remote, 1, request.pe)?;
        let (op, fetches) = match operation {
            Operation::Fetch => (AtomicOp::Fetch, true),
            Operation::Set => (AtomicOp::Set, false),
            Operation::Swap => (AtomicOp::Swap, true),
            Operation::CompareSwap => (AtomicOp::CompareSwap, true),
            Operation::Add => (AtomicOp::Add, false),
            Operation::FetchAdd => (AtomicOp::Add, true),
            Operation::And => (AtomicOp::And, false),
            Operation::FetchAnd => (AtomicOp::And, true),
            Operation::Or => (AtomicOp::Or, false),
            Operation::FetchOr => (AtomicOp::Or, true),
            Operation::Xor => (AtomicOp::Xor, false),
            _ => (AtomicOp::Xor, true),
        };
        let (value, compare, pe) = (request.value, request.compare, request.pe as usize);
        let context = &self.served.context;
        if fetches {
            let old = context.rmw(CALL, op, word, value, compare, pe)?;
            self.answer(ticket, old);
        } else {
            self.in_flight = true;
            context.post_rmw(CALL, op, word, value, compare, pe)?;
        }
        Ok(())
    }
}
