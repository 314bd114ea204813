//! GPU memory, and the images whose kernels call oxshmem by the header `oxshmem.cuh`.
//!
//! An image announces itself before `main`, or when the library that has it is loaded. Its variable is found by the program's own
//! CUDA runtime, which alone knows the variables of its images.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

use oxshmem::{Builder, DeviceLibrary, MemoryKind, World, bindings};

use crate::call::pe_index;
use crate::failure::{CResult, Failure, report, status};
use crate::handles::Team;
use crate::library;
use crate::memory;
use crate::objects;

/// The limit of the GPU heap of a program with such images, if the environment does not say it.
const HEAP: usize = 1 << 30;

/// Gives a program whose kernels call oxshmem a GPU heap, if the environment says nothing of one.
pub(crate) fn default_heap(builder: Builder) -> Builder {
    match bindings::has_images() {
        true => bindings::default_gpu_limit(builder, HEAP),
        false => builder,
    }
}

fn no_heap(world: &World) -> Failure {
    let why = bindings::why_no_gpu_heap(world).map(|why| format!(" ({why})"));
    let why = why.unwrap_or_default();
    Failure::Gpu(format!(
        "this job has no GPU heap{why}; set OXSHMEM_CUDA_SYMMETRIC_SIZE"
    ))
}

/// The device library, which `init` alone opens.
fn open_library(world: &World) -> CResult<DeviceLibrary<'_>> {
    if bindings::gpu_number(world).is_none() {
        return Err(no_heap(world));
    }
    bindings::open_device_library(world)
        .ok_or_else(|| Failure::Gpu("call shmemx_cuda_init first, on all PEs".into()))
}

/// Announces an image.
///
/// # Safety
///
/// It is null, or the structure stays as it is, and its functions callable, until [`oxshmem_unregister_image`] returns for it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn oxshmem_register_image(image: *const bindings::Image) {
    // SAFETY: the caller makes the same promise.
    unsafe { bindings::register_image(image) };
}

/// Withdraws an image, whose library is unloaded. Waits for calls that use it.
#[unsafe(no_mangle)]
pub extern "C" fn oxshmem_unregister_image(image: *const bindings::Image) {
    bindings::unregister_image(image);
}

/// Opens the device library, which is collective, and gives the state of every image its contents.
pub(crate) fn init(call: &'static str) -> c_int {
    let init = || {
        let library = library::get()?;
        library.with_world(|world| {
            let gpu = bindings::gpu_number(world).ok_or_else(|| no_heap(world))?;
            let device = bindings::device_library(world)?;
            if !bindings::has_images() {
                return Err(Failure::Gpu(
                    "no image of this process has announced itself: no source with kernels includes oxshmem.cuh, or the compiler is \
                     neither nvcc nor oxshmem cuda cc"
                        .into(),
                ));
            }
            // SAFETY: the program runs no kernels of its images meanwhile (the call's page).
            Ok(unsafe { bindings::prepare_images(&device, call, gpu, false) }?)
        })
    };
    status(call, init())
}

/// The number of this PE's GPU; -1 where it has none.
pub(crate) fn device(_: &'static str) -> c_int {
    let number = library::get()
        .ok()
        .and_then(|library| bindings::gpu_number(&library.world));
    number
        .and_then(|number| c_int::try_from(number).ok())
        .unwrap_or(-1)
}

/// A block of GPU memory on every PE.
pub(crate) fn malloc(call: &'static str, size: usize) -> *mut c_void {
    memory::address(call, |world| {
        if bindings::gpu_number(world).is_none() {
            return Err(no_heap(world));
        }
        Ok(world.alloc_on(MemoryKind::Cuda, size))
    })
}

/// The address for this PE's kernels of a PE's copy of an object in GPU memory; null where there is none.
pub(crate) fn ptr(_: &'static str, dest: *const c_void, pe: c_int) -> *mut c_void {
    let found = || {
        let library = library::get().ok()?;
        let byte = bindings::object_at(&library.world, "dest", dest.cast::<u8>(), 1).ok()?;
        objects::gpu_address(&library.world, byte, pe_index(pe))
    };
    found().unwrap_or(null_mut())
}

/// Does something with the device library, and gives the status of that.
fn with_library(call: &'static str, act: impl FnOnce(DeviceLibrary<'_>) -> CResult) -> c_int {
    let done =
        library::get().and_then(|library| library.with_world(|world| act(open_library(world)?)));
    status(call, done)
}

/// Memory for teams in kernels.
pub(crate) fn reserve_teams(call: &'static str, teams: c_int) -> c_int {
    with_library(call, |device| {
        let teams =
            usize::try_from(teams).map_err(|_| Failure::argument("teams", "this is negative"))?;
        Ok(device.reserve_teams(teams)?)
    })
}

/// A team's number for kernels; -1 where it has none.
pub(crate) fn team(call: &'static str, team: Team) -> c_int {
    let number = || -> CResult<c_int> {
        let library = library::get()?;
        let team = library.team(team)?;
        library.with_world(|world| {
            let device = open_library(world)?;
            let team = team.team.attach(world)?;
            Ok(device.add_team(&team)?)
        })
    };
    number().unwrap_or_else(|failure| {
        report(call, &failure);
        -1
    })
}

/// The error of a kernel, told.
pub(crate) fn check(call: &'static str) -> c_int {
    with_library(call, |device| Ok(device.check()?))
}

/// Forgets the error of a kernel, after which kernels' waits wait again.
pub(crate) fn resume(call: &'static str) -> c_int {
    with_library(call, |device| {
        device.resume();
        Ok(())
    })
}
