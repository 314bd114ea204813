//! GPU memory and kernels by the addresses that programs give.

use oxshmem_cuda::{Context, DevicePtr, Stream};
use oxshmem_transport::{MemoryKind, SignalOp};

use crate::alloc::Hints;
use crate::builder::Builder;
use crate::device::DeviceLibrary;
use crate::error::Result;
use crate::stream::gpu_streams::InCall;
use crate::sym::Sym;
use crate::world::World;

pub use crate::stream::addressed::{StridedElements, WordsToAwait};

/// A GPU heap of at most `bytes` bytes where neither the environment nor the program says anything of one. It is no error where a PE
/// has no GPU, or no such default: then the job has no GPU heap, and [`why_no_gpu_heap`] says why.
pub fn default_gpu_limit(builder: Builder, bytes: usize) -> Builder {
    builder.default_gpu_limit(bytes)
}

/// The reason why the job has no GPU heap, where this or another PE would have had one by [default](default_gpu_limit).
#[must_use]
pub fn why_no_gpu_heap(world: &World) -> Option<&str> {
    world.pe.no_gpu_heap.as_deref()
}

/// The number of this PE's GPU, if it has a GPU heap.
#[must_use]
pub fn gpu_number(world: &World) -> Option<usize> {
    Some(world.gpu_context()?.device().ordinal())
}

/// The address at which this PE's GPU loads and stores a PE's copy of an object in GPU memory. Of this PE's own copy it is the one by
/// which calls name the object.
#[must_use]
pub fn gpu_address_of(world: &World, sym: Sym<u8>, pe: usize) -> Option<u64> {
    world.gpu_ptr(sym, pe).map(DevicePtr::as_raw)
}

/// [`World::alloc_on`] of GPU memory, at a multiple of `align` bytes. Collective.
///
/// # Errors
///
/// As of that.
pub fn alloc_on_gpu(
    world: &World,
    call: &'static str,
    bytes: usize,
    align: usize,
) -> Result<Sym<u8>> {
    world.allocate(MemoryKind::Cuda, call, bytes, align, Hints::NONE, false)
}

/// The device library of a world, which is opened by the first call. That one is collective.
///
/// # Errors
///
/// As [`World::device_library`].
pub fn device_library(world: &World) -> Result<DeviceLibrary<'_>> {
    world.open_or_get_device_library()
}

/// The device library of a world, if it is open. This opens none.
#[must_use]
pub fn open_device_library(world: &World) -> Option<DeviceLibrary<'_>> {
    world.opened_device_library()
}

/// Gives the kernels of a module that a program has loaded itself their PE, their peers and their teams. `call` is for messages.
///
/// # Errors
///
/// As [`DeviceLibrary::prepare`].
///
/// # Safety
///
/// The address is that of the module's variable `oxshmem_state`, of as many bytes, on this PE's GPU, and none of the module's kernels runs.
pub unsafe fn prepare_module(
    library: &DeviceLibrary<'_>,
    call: &'static str,
    state: DevicePtr,
    bytes: usize,
) -> Result<()> {
    // SAFETY: the caller makes the same promise.
    unsafe { library.prepare_variable(call, state, bytes) }
}

/// The context that is current in this thread; none where the program has not chosen a GPU yet.
///
/// # Errors
///
/// [`Error::Gpu`](crate::Error::Gpu) where the driver cannot be used.
///
/// # Safety
///
/// A context of the program's own, which is not the primary one, is destroyed after the world has ended.
pub unsafe fn current_context(call: &'static str) -> Result<Option<Context>> {
    // SAFETY: the caller makes the same promise.
    unsafe { Context::current() }.in_call(call)
}

/// A GPU heap on a context's GPU, with the limit of the environment, or else of [`default_gpu_limit`].
pub fn gpu_context(builder: Builder, context: Context) -> Builder {
    builder.gpu_context(context)
}

/// Has the shared team be the PEs whose GPU memory this PE's GPU maps, too, and not only those whose host memory it maps. All PEs say so.
pub fn shared_by_gpu(builder: Builder) -> Builder {
    builder.shared_by_gpu()
}

/// A put on a stream from an address, which may be nonblocking.
///
/// # Errors
///
/// As [`World::put_on_stream`].
///
/// # Safety
///
/// The source is as many bytes that the GPU loads, which the program leaves until the put is done.
pub unsafe fn put_on_stream(
    world: &World,
    call: &'static str,
    dst: Sym<u8>,
    src: DevicePtr,
    way: (usize, bool),
    stream: &Stream,
) -> Result<()> {
    // SAFETY: the caller makes the same promise.
    unsafe { world.put_from_address(call, dst, src, way, stream) }
}

/// A get on a stream to an address, which may be nonblocking.
///
/// # Errors
///
/// As [`World::get_on_stream`].
///
/// # Safety
///
/// The destination is as many bytes that the GPU stores, which the program leaves until the get is done.
pub unsafe fn get_on_stream(
    world: &World,
    call: &'static str,
    dst: DevicePtr,
    src: Sym<u8>,
    way: (usize, bool),
    stream: &Stream,
) -> Result<()> {
    // SAFETY: the caller makes the same promise.
    unsafe { world.get_to_address(call, dst, src, way, stream) }
}

/// A put on a stream from an address, and the update of a signal behind it (M22).
///
/// # Errors
///
/// As [`World::put_signal_on_stream`].
///
/// # Safety
///
/// As [`put_on_stream`].
pub unsafe fn put_signal_on_stream(
    world: &World,
    call: &'static str,
    copy: (Sym<u8>, DevicePtr),
    signal: (Sym<u64>, u64, SignalOp),
    way: (usize, bool),
    stream: &Stream,
) -> Result<()> {
    // SAFETY: the caller makes the same promise.
    unsafe { world.put_signal_from_address(call, copy, signal, way, stream) }
}

/// A strided put or get on a stream.
///
/// # Errors
///
/// As [`World::iput_on_stream`].
///
/// # Safety
///
/// The elements at the local address are memory of the GPU's, which the program leaves until the operation is done.
pub unsafe fn strided_on_stream(
    world: &World,
    call: &'static str,
    is_get: bool,
    elements: StridedElements,
    pe: usize,
    stream: &Stream,
) -> Result<()> {
    // SAFETY: the caller makes the same promise.
    unsafe { world.strided_by_address(call, is_get, elements, pe, stream) }
}

/// A wait of a stream for words of this PE (M23).
///
/// # Errors
///
/// As [`World::wait_until_all_on_stream`].
///
/// # Safety
///
/// The status and the values are none, or have an element for each word, which the program leaves until the wait is over.
pub unsafe fn wait_on_stream(
    world: &World,
    call: &'static str,
    awaited: WordsToAwait,
    stream: &Stream,
) -> Result<()> {
    // SAFETY: the caller makes the same promise.
    unsafe { world.await_words(call, awaited, stream) }
}
