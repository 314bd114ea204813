//! The kernels of `stream.ptx`, by which streams make calls of the device library, and their launches.

use std::ffi::CStr;
use std::sync::Mutex;

use oxshmem_cuda::{
    Args, Context, DevicePtr, Function, Launch, Module, Pinned, PinnedOptions, Result, Stream,
};
use oxshmem_device::signal_number;
use oxshmem_device_library::{STREAM_PTX, STREAM_STATE};
use oxshmem_transport::{Fold, SignalOp};

use crate::device::ring_state::RingQuiet;

/// Threads of a kernel that copies or folds.
const THREADS: u32 = 256;
const ONE: Launch = Launch::linear(1, 1);
/// The types of elements that are folded, by their numbers in `stream.cu`.
const TYPES: [&str; 12] = [
    "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "bf16", "f32", "f64",
];

/// A copy to or from a PE that is not mapped, in the order of `Copy` in `stream.cu`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Copy {
    Put,
    PutNbi,
    Get,
    GetNbi,
}

/// Elements of one size at strides in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Strided {
    pub dest: DevicePtr,
    pub source: DevicePtr,
    pub dest_stride: u64,
    pub source_stride: u64,
    pub count: u64,
    pub width: u32,
}

/// Words of this PE for which a stream waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AwaitedWords {
    pub words: DevicePtr,
    pub count: u64,
    /// A word of 32 bits for each; those that are not 0 leave theirs out. None at 0.
    pub status: DevicePtr,
    /// By its place in the order of `Cmp`.
    pub compare: u32,
    pub value: u64,
    /// The value for each word. None at 0: `value` is for all.
    pub values: DevicePtr,
    pub width: u32,
    pub is_signed: bool,
}

/// Memory for elements of members that are not mapped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Staging {
    /// A word of 32 bits, 0 while nobody uses the rows.
    pub lock: DevicePtr,
    pub rows: DevicePtr,
    pub bytes: u64,
}

/// The device library, as calls on streams use it.
#[derive(Debug)]
pub(crate) struct LibraryKernels {
    /// The address of this PE's own GPU heap.
    pub heap: u64,
    /// Where requests to the host may be in flight.
    pub ring: Option<RingQuiet>,
    pub staging: Option<Staging>,
    /// A word for the value that a call gets for the host; none while a kernel of an ended call may still write it.
    pub result: Mutex<Option<Pinned>>,
    copy: Function,
    put_signal: Function,
    signal: Function,
    p: Function,
    g: Function,
    strided: Function,
    wait_all: Function,
    quiet: Function,
    barrier: Function,
    fold: Function,
}

impl LibraryKernels {
    /// Loads them. Before any kernel of the process can be waiting: loading may wait for running ones. Gives the address of their
    /// module's state, too, which the caller fills before the first launch.
    pub(crate) fn load(context: &Context, heap: u64) -> Result<(LibraryKernels, DevicePtr)> {
        let module = Module::from_ptx(context, STREAM_PTX)?;
        let function = |name: &CStr| module.function(name);
        let (state, _) = module.global(STREAM_STATE)?;
        let kernels = LibraryKernels {
            heap,
            ring: None,
            staging: None,
            result: Mutex::new(Some(Pinned::new(
                context,
                size_of::<u64>(),
                &PinnedOptions::default(),
            )?)),
            copy: function(c"oxshmem_stream_copy")?,
            put_signal: function(c"oxshmem_stream_put_signal")?,
            signal: function(c"oxshmem_stream_signal")?,
            p: function(c"oxshmem_stream_p")?,
            g: function(c"oxshmem_stream_g")?,
            strided: function(c"oxshmem_stream_strided")?,
            wait_all: function(c"oxshmem_stream_wait_all")?,
            quiet: function(c"oxshmem_stream_quiet")?,
            barrier: function(c"oxshmem_stream_barrier")?,
            fold: function(c"oxshmem_stream_fold")?,
        };
        Ok((kernels, state))
    }

    /// The GPU address of a byte of this PE's own heap.
    pub(crate) fn own(&self, offset: u64) -> DevicePtr {
        DevicePtr::from_raw(self.heap + offset)
    }

    /// Queues a copy.
    ///
    /// # Safety
    ///
    /// The symmetric side is an address in this PE's own heap, and PE `pe` has as many bytes there. The local side is mapped for the GPU
    /// until the copy is complete.
    pub(crate) unsafe fn copy(
        &self,
        stream: &Stream,
        copy: Copy,
        (dest, source, bytes): (DevicePtr, DevicePtr, usize),
        pe: usize,
    ) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        let args = Args::new().with(copy as u32).with(dest).with(source);
        let args = args.with(bytes as u64).with(pe as i32);
        // SAFETY: the arguments are the kernel's; the memory is valid, as this function's caller promises.
        unsafe { self.copy.launch(stream, &ONE, &args) }
    }

    /// Queues a copy and a signal's update behind it.
    ///
    /// # Safety
    ///
    /// As [`copy`](Self::copy); the signal is an aligned word of the heap, by its address in this PE's own.
    pub(crate) unsafe fn put_signal(
        &self,
        stream: &Stream,
        (dest, source, bytes): (DevicePtr, DevicePtr, usize),
        (signal, value, op): (DevicePtr, u64, SignalOp),
        pe: usize,
        is_nonblocking: bool,
    ) -> Result<()> {
        let args = Args::new().with(dest).with(source).with(bytes as u64);
        let args = args.with(signal).with(value).with(signal_number(op));
        let args = args.with(pe as i32).with(u32::from(is_nonblocking));
        // SAFETY: the arguments are the kernel's; the memory is valid, as this function's caller promises.
        unsafe { self.put_signal.launch(stream, &ONE, &args) }
    }

    /// Queues a signal's update behind this GPU's earlier operations to that PE.
    ///
    /// # Safety
    ///
    /// The signal is an aligned word of the heap, by its address in this PE's own.
    pub(crate) unsafe fn signal(
        &self,
        stream: &Stream,
        (signal, value, op): (DevicePtr, u64, SignalOp),
        pe: usize,
    ) -> Result<()> {
        let args = Args::new().with(signal).with(value);
        let args = args.with(signal_number(op)).with(pe as i32);
        // SAFETY: the arguments are the kernel's; the word is valid, as this function's caller promises.
        unsafe { self.signal.launch(stream, &ONE, &args) }
    }

    /// Queues the put of a value of `width` bytes: 1, 2, 4 or 8.
    ///
    /// # Safety
    ///
    /// The word is aligned, and PE `pe` has it at this address of this PE's own heap.
    pub(crate) unsafe fn p(
        &self,
        stream: &Stream,
        dest: DevicePtr,
        (value, width): (u64, usize),
        pe: usize,
    ) -> Result<()> {
        let args = Args::new().with(dest).with(value).with(width as u32);
        // SAFETY: the arguments are the kernel's; the word is valid, as this function's caller promises.
        unsafe { self.p.launch(stream, &ONE, &args.with(pe as i32)) }
    }

    /// Queues the get of a value of `width` bytes, 1, 2, 4 or 8, into the word at `result`.
    ///
    /// # Safety
    ///
    /// As [`p`](Self::p), and `result` is valid until the kernel is done.
    pub(crate) unsafe fn g(
        &self,
        stream: &Stream,
        result: DevicePtr,
        (source, width): (DevicePtr, usize),
        pe: usize,
    ) -> Result<()> {
        let args = Args::new().with(result).with(source).with(width as u32);
        // SAFETY: the arguments are the kernel's; the words are valid, as this function's caller promises.
        unsafe { self.g.launch(stream, &ONE, &args.with(pe as i32)) }
    }

    /// Queues a strided put or get.
    ///
    /// # Safety
    ///
    /// All elements are mapped for the GPU, or the symmetric ones exist at PE `pe`, until the operation is complete.
    pub(crate) unsafe fn strided(
        &self,
        stream: &Stream,
        is_get: bool,
        elements: Strided,
        pe: usize,
    ) -> Result<()> {
        let Strided {
            dest,
            source,
            dest_stride,
            source_stride,
            count,
            width,
        } = elements;
        let args = Args::new().with(u32::from(is_get)).with(dest).with(source);
        let args = args.with(dest_stride).with(source_stride).with(count);
        let args = args.with(width).with(pe as i32);
        let threads = count.clamp(1, THREADS.into()) as u32;
        // SAFETY: the arguments are the kernel's; the memory is valid, as this function's caller promises.
        unsafe {
            self.strided
                .launch(stream, &Launch::linear(1, threads), &args)
        }
    }

    /// Queues a wait for several words of this PE.
    ///
    /// # Safety
    ///
    /// All words, their status and values lie in GPU memory of this PE, aligned, until the wait is done.
    pub(crate) unsafe fn wait_all(&self, stream: &Stream, awaited: AwaitedWords) -> Result<()> {
        let AwaitedWords {
            words,
            count,
            status,
            compare,
            value,
            values,
            width,
            is_signed,
        } = awaited;
        let args = Args::new().with(words).with(count).with(status);
        let args = args.with(compare).with(value).with(values);
        let args = args.with(width).with(u32::from(is_signed));
        // SAFETY: the arguments are the kernel's; the memory is valid, as this function's caller promises.
        unsafe { self.wait_all.launch(stream, &ONE, &args) }
    }

    /// Queues a quiet of this GPU's requests to the host. Without requests nothing is queued.
    pub(crate) fn quiet(&self, stream: &Stream) -> Result<()> {
        if self.ring.is_none() {
            return Ok(());
        }
        // SAFETY: the kernel takes nothing; its module's state is filled.
        unsafe { self.quiet.launch(stream, &ONE, &Args::new()) }
    }

    /// Queues a meeting of a team of `members`: each completes what its GPU has asked of the host, and goes on when all have come.
    pub(crate) fn barrier(&self, stream: &Stream, team: i32, members: usize) -> Result<()> {
        let threads = members.clamp(1, THREADS as usize) as u32;
        let args = Args::new().with(team);
        // SAFETY: the kernel takes a team that the device library knows; its module's state is filled.
        unsafe {
            self.barrier
                .launch(stream, &Launch::linear(1, threads), &args)
        }
    }

    /// Queues the fold of a team's elements from `source` on, by its address in this PE's own heap, into `out`.
    ///
    /// # Safety
    ///
    /// All members have the elements, `out` as well, aligned for the type, until the kernel is done; `out` is their place here or apart.
    pub(crate) unsafe fn fold(
        &self,
        stream: &Stream,
        (fold, of): (Fold, &'static str),
        team: i32,
        (out, source, elements): (DevicePtr, DevicePtr, u64),
        staging: Staging,
    ) -> Result<()> {
        let number = |at: Option<usize>| at.unwrap_or(usize::MAX) as u32;
        let of = number(TYPES.iter().position(|name| *name == of));
        let fold = number(Fold::ALL.iter().position(|known| *known == fold));
        let args = Args::new().with(of).with(fold).with(team);
        let args = args.with(out).with(source).with(elements);
        let args = args.with(staging.lock).with(staging.rows);
        let args = args.with(staging.bytes);
        let threads = elements.clamp(1, THREADS.into()) as u32;
        // SAFETY: the arguments are the kernel's; the memory is valid, as this function's caller promises.
        unsafe { self.fold.launch(stream, &Launch::linear(1, threads), &args) }
    }
}
