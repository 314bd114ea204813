//! The kernels that operations launch, from `device/kernels.ptx`.

use std::ffi::CStr;

use oxshmem_cuda::{Args, Context, DevicePtr, Function, Launch, Module, Stream};
use oxshmem_transport::{AtomicOp, SignalOp, Width};

const PTX: &str = include_str!("../device/kernels.ptx");

#[derive(Debug)]
pub(crate) struct Kernels {
    atomic_32: Function,
    atomic_64: Function,
    signal: Function,
}

const ONE: Launch = Launch::linear(1, 1);

impl Kernels {
    pub(crate) fn load(context: &Context) -> oxshmem_cuda::Result<Kernels> {
        let module = Module::from_ptx(context, PTX)?;
        let function = |name: &CStr| module.function(name);
        Ok(Kernels {
            atomic_32: function(c"oxshmem_atomic_32")?,
            atomic_64: function(c"oxshmem_atomic_64")?,
            signal: function(c"oxshmem_signal")?,
        })
    }

    /// Queues an atomic on a word; its old value goes to `result`, unless that is 0.
    ///
    /// # Safety
    ///
    /// Both words are mapped for the GPU, aligned to the width, until the kernel is done.
    pub(crate) unsafe fn atomic(
        &self,
        stream: &Stream,
        (op, width): (AtomicOp, Width),
        word: DevicePtr,
        (operand, compare): (u64, u64),
        result: DevicePtr,
    ) -> oxshmem_cuda::Result<()> {
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
        // SAFETY: the arguments are the kernel's (device/atomic.cuh); the words are the caller's
        // promise, and all other access to them is atomic too.
        unsafe { function.launch(stream, &ONE, &args.with(result)) }
    }

    /// Queues a signal's update: who sees it sees what the stream did before.
    ///
    /// # Safety
    ///
    /// The word is mapped for the GPU, aligned to 8 bytes, until the kernel is done.
    pub(crate) unsafe fn signal(
        &self,
        stream: &Stream,
        word: DevicePtr,
        value: u64,
        op: SignalOp,
    ) -> oxshmem_cuda::Result<()> {
        let op = match op {
            SignalOp::Set => 0_u32,
            SignalOp::Add => 1,
        };
        let args = Args::new().with(word).with(value).with(op);
        // SAFETY: as for atomics.
        unsafe { self.signal.launch(stream, &ONE, &args) }
    }
}
