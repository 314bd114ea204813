//! GPU memory and kernels by the addresses that programs give.

use oxshmem_cuda::DevicePtr;

use crate::builder::Builder;
use crate::device::{DeviceLibrary, check_version};
use crate::error::Result;
use crate::sym::Sym;
use crate::world::World;

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

/// Refuses an image that was compiled with the header of another version, by the first word of its state.
///
/// # Errors
///
/// [`Error::Gpu`](crate::Error::Gpu) for such an image.
pub fn check_image(call: &'static str, abi: u32) -> Result<()> {
    check_version(call, abi)
}

/// Gives the kernels of a loaded image their PE, their peers and their teams. `call` is for messages.
///
/// # Errors
///
/// [`Error::Gpu`](crate::Error::Gpu) where the image was compiled with the header of another version.
///
/// # Safety
///
/// The address is that of the image's variable `oxshmem_state` on this PE's GPU, which the image's header defines, and none of the
/// image's kernels runs.
pub unsafe fn prepare_image(
    library: &DeviceLibrary<'_>,
    call: &'static str,
    state: DevicePtr,
) -> Result<()> {
    // SAFETY: the caller makes the same promise.
    unsafe { library.prepare_state(call, state) }
}
