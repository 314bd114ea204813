//! The kernels of this folder (`kernels.ptx`, `reduce.ptx`), and their launches on streams.
//!
//! Addresses are GPU addresses: of its own memory, of a peer's that is mapped for it, or of pinned host
//! memory. README.md describes each kernel.
//!
//! Without the feature `cuda` there is nothing here.
#![cfg(feature = "cuda")]

mod grid;
mod reduce;

use std::ffi::CStr;

use oxshmem_cuda::{Args, Context, DevicePtr, Function, Launch, Module, Result, Stream};
use oxshmem_transport::{AtomicOp, AtomicRequest, SignalOp, Width};

use self::grid::BLOCK;
pub use self::reduce::Reductions;

const PTX: &str = include_str!("../kernels.ptx");

/// The kernels of `kernels.ptx`, loaded.
#[derive(Debug)]
pub struct Kernels {
    atomic_32: Function,
    atomic_64: Function,
    signal: Function,
    wait_32: Function,
    wait_64: Function,
    copy_signal: Function,
    barrier: Function,
}

/// How a host ends kernels that wait.
#[derive(Clone, Copy, Debug)]
pub struct Stop {
    /// A word of 32 bits: any value but 0 ends every wait that polls it.
    pub stop: DevicePtr,
    /// A word of 32 bits, zeroed before, in which such a wait then stores `stop`'s value; none if 0.
    pub status: DevicePtr,
}

const ONE: Launch = Launch::linear(1, 1);

/// The number of a signal's update, as kernels take it.
#[must_use]
pub fn signal_number(op: SignalOp) -> u32 {
    match op {
        SignalOp::Set => 0,
        SignalOp::Add => 1,
    }
}

impl Kernels {
    /// Loads them. Before any kernel of the process can be waiting: loading may wait for running ones.
    pub fn load(context: &Context) -> Result<Kernels> {
        let module = Module::from_ptx(context, PTX)?;
        let function = |name: &CStr| module.function(name);
        Ok(Kernels {
            atomic_32: function(c"oxshmem_atomic_32")?,
            atomic_64: function(c"oxshmem_atomic_64")?,
            signal: function(c"oxshmem_signal")?,
            wait_32: function(c"oxshmem_wait_32")?,
            wait_64: function(c"oxshmem_wait_64")?,
            copy_signal: function(c"oxshmem_copy_signal")?,
            barrier: function(c"oxshmem_barrier")?,
        })
    }

    /// Queues an atomic on a word; its old value goes to `result`, unless that is 0.
    ///
    /// # Safety
    ///
    /// Both words are mapped for the GPU, aligned to the width, until the kernel is done.
    pub unsafe fn atomic(
        &self,
        stream: &Stream,
        request: AtomicRequest,
        word: DevicePtr,
        result: DevicePtr,
    ) -> Result<()> {
        let AtomicRequest {
            op,
            width,
            operand,
            compare,
        } = request;
        let number = AtomicOp::ALL.iter().position(|known| *known == op);
        let args = Args::new()
            .with(number.unwrap_or(AtomicOp::ALL.len()) as u32)
            .with(word);
        let (function, args) = match width {
            Width::W32 => {
                let args = args.with(operand as u32).with(compare as u32);
                (&self.atomic_32, args)
            }
            Width::W64 => (&self.atomic_64, args.with(operand).with(compare)),
        };
        // SAFETY: the arguments are the kernel's (atomic.cuh); the words are valid, as this function's caller promises, and
        // all other access to them is atomic too.
        unsafe { function.launch(stream, &ONE, &args.with(result)) }
    }

    /// Queues a signal's update: a reader that sees it sees all earlier work of the stream.
    ///
    /// # Safety
    ///
    /// The word is mapped for the GPU, aligned to 8 bytes, until the kernel is done.
    pub unsafe fn signal(
        &self,
        stream: &Stream,
        word: DevicePtr,
        value: u64,
        op: SignalOp,
    ) -> Result<()> {
        let args = Args::new().with(word).with(value).with(signal_number(op));
        // SAFETY: the arguments are the kernel's; the word is valid, as this function's caller promises.
        unsafe { self.signal.launch(stream, &ONE, &args) }
    }

    /// Queues a wait until a word compares as wanted: `compare` counts in the order of `Cmp`. Later work on the
    /// stream sees all that the writer of the word has released.
    ///
    /// # Safety
    ///
    /// The word, aligned to the width, and the words of `stop` are mapped for the GPU until the kernel is
    /// done.
    pub unsafe fn wait(
        &self,
        stream: &Stream,
        word: DevicePtr,
        width: Width,
        (compare, value, signed): (u32, u64, bool),
        stop: Stop,
    ) -> Result<()> {
        let args = Args::new().with(word).with(compare);
        let (function, args) = match width {
            Width::W32 => (&self.wait_32, args.with(value as u32)),
            Width::W64 => (&self.wait_64, args.with(value)),
        };
        let args = args.with(u32::from(signed));
        let args = args.with(stop.stop).with(stop.status);
        // SAFETY: the arguments are the kernel's (wait.cuh); the words are valid, as this function's caller promises.
        unsafe { function.launch(stream, &ONE, &args) }
    }

    /// Queues a copy of `len` bytes and a signal's update after it, in one launch: for short copies.
    ///
    /// # Safety
    ///
    /// Both ranges, which do not overlap, and the word, aligned to 8 bytes, are mapped for the GPU until
    /// the kernel is done.
    pub unsafe fn copy_signal(
        &self,
        stream: &Stream,
        (to, from, len): (DevicePtr, DevicePtr, usize),
        word: DevicePtr,
        (value, op): (u64, SignalOp),
    ) -> Result<()> {
        let args = Args::new().with(to).with(from).with(len as u64);
        let args = args.with(word).with(value).with(signal_number(op));
        let threads = len.div_ceil(16).clamp(1, BLOCK as usize) as u32;
        // SAFETY: the arguments are the kernel's (copy.cuh); the memory is valid, as this function's caller promises.
        unsafe {
            self.copy_signal
                .launch(stream, &Launch::linear(1, threads), &args)
        }
    }

    /// Queues a barrier of `members`, this one being number `me`. `words` is a table of every member's
    /// array of words, `epoch` this member's count.
    ///
    /// # Safety
    ///
    /// The table, the arrays in it (one word of 64 bits for each member, in no other use), `epoch` and the
    /// words of `stop` are mapped for the GPU until the kernel is done.
    pub unsafe fn barrier(
        &self,
        stream: &Stream,
        words: DevicePtr,
        (members, me): (u32, u32),
        epoch: DevicePtr,
        stop: Stop,
    ) -> Result<()> {
        let args = Args::new().with(words).with(members).with(me);
        let args = args.with(epoch).with(stop.stop).with(stop.status);
        let shape = Launch::linear(1, members.clamp(1, BLOCK));
        // SAFETY: the arguments are the kernel's (barrier.cuh); the memory is valid, as this function's caller promises.
        unsafe { self.barrier.launch(stream, &shape, &args) }
    }
}
