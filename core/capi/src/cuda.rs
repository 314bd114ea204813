//! GPU memory, and the images whose kernels call oxshmem by the header `oxshmem.cuh`.
//!
//! An image announces itself before `main`, or when the library that has it is loaded. Its variable is found by the program's own
//! CUDA runtime, which alone knows the variables of its images.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::{Mutex, MutexGuard, PoisonError};

use oxshmem::cuda::DevicePtr;
use oxshmem::{Builder, DeviceLibrary, MemoryKind, bindings};

use crate::failure::{CResult, Failure, report};
use crate::handles::Team;
use crate::library;
use crate::memory;

/// The limit of the GPU heap of a program with such images, if the environment does not say it.
const HEAP: usize = 1 << 30;
/// The name of an image's variable.
const STATE: &str = "oxshmem_state";

/// `struct oxshmem_image` of `core/device/header/image.cuh`.
#[repr(C)]
#[derive(Debug)]
pub struct Image {
    /// The version of its header, and the bytes of its state.
    abi: u32,
    /// Makes a device the thread's own, and gives the address of the image's state there.
    locate: unsafe extern "C" fn(c_int, *mut *mut c_void) -> c_int,
    /// The words for an error of that.
    error: unsafe extern "C" fn(c_int) -> *const c_char,
}

/// The images of this process.
static IMAGES: Mutex<Vec<&'static Image>> = Mutex::new(Vec::new());

fn images() -> MutexGuard<'static, Vec<&'static Image>> {
    IMAGES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Announces an image.
///
/// # Safety
///
/// The structure stays as it is until the image is withdrawn.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn oxshmem_register_image(image: *const Image) {
    // SAFETY: the caller's promise.
    images().extend(unsafe { image.as_ref() });
}

/// Withdraws an image, whose library is unloaded.
#[unsafe(no_mangle)]
pub extern "C" fn oxshmem_unregister_image(image: *const Image) {
    images().retain(|known| !std::ptr::eq(*known, image));
}

/// Gives a program whose kernels call oxshmem a GPU heap, if the environment says nothing of one.
pub(crate) fn default_heap(builder: Builder) -> Builder {
    match images().is_empty() {
        true => builder,
        false => bindings::default_gpu_limit(builder, HEAP),
    }
}

fn no_heap() -> Failure {
    Failure::Gpu("this job has no GPU heap; set OXSHMEM_CUDA_SYMMETRIC_SIZE".into())
}

/// Gives the state of every image its contents.
pub(crate) fn init(call: &'static str) -> c_int {
    status(call, || {
        let library = library::get()?;
        library.with_world(|world| {
            let gpu = bindings::gpu_number(world).ok_or_else(no_heap)?;
            let device = bindings::device_library(world)?;
            // The list is not locked meanwhile: the runtime may load an image, which announces itself.
            let known = images().clone();
            known
                .into_iter()
                .try_for_each(|image| prepare(call, &device, image, gpu))
        })
    })
}

fn prepare(call: &'static str, device: &DeviceLibrary<'_>, image: &Image, gpu: usize) -> CResult {
    bindings::check_image(call, image.abi)?;
    let mut state = null_mut();
    let number = c_int::try_from(gpu).unwrap_or(-1);
    // SAFETY: the header's own function, for a place of ours.
    let code = unsafe { (image.locate)(number, &raw mut state) };
    if code != 0 {
        // SAFETY: the header's own function.
        let words = unsafe { (image.error)(code) };
        let words = match words.is_null() {
            true => "an unknown error".into(),
            // SAFETY: the runtime gives a string that stays.
            false => unsafe { CStr::from_ptr(words) }.to_string_lossy(),
        };
        return Err(Failure::Gpu(format!(
            "the variable {STATE} of an image is not found on GPU {gpu}: {words}"
        )));
    }
    let state = DevicePtr::from_raw(state.addr() as u64);
    // SAFETY: the image's own header has found its variable, and the program runs none of its kernels now.
    unsafe { bindings::prepare_image(device, call, state) }?;
    Ok(())
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
            return Err(no_heap());
        }
        Ok(world.alloc_on(MemoryKind::Cuda, size))
    })
}

/// Room for teams in kernels.
pub(crate) fn reserve_teams(call: &'static str, teams: c_int) -> c_int {
    status(call, || {
        let teams =
            usize::try_from(teams).map_err(|_| Failure::argument("teams", "this is negative"))?;
        let library = library::get()?;
        library.with_world(|world| Ok(bindings::device_library(world)?.reserve_teams(teams)?))
    })
}

/// A team's number for kernels; -1 where it has none.
pub(crate) fn team(call: &'static str, team: Team) -> c_int {
    let number = || -> CResult<c_int> {
        let library = library::get()?;
        let team = library.team(team)?;
        library.with_world(|world| {
            if bindings::gpu_number(world).is_none() {
                return Err(no_heap());
            }
            let team = team.team.attach(world)?;
            Ok(bindings::device_library(world)?.add_team(&team)?)
        })
    };
    number().unwrap_or_else(|failure| {
        report(call, &failure);
        -1
    })
}

/// The error of a kernel, told.
pub(crate) fn check(call: &'static str) -> c_int {
    status(call, || {
        let library = library::get()?;
        library.with_world(|world| Ok(bindings::device_library(world)?.check()?))
    })
}

fn status(call: &'static str, act: impl FnOnce() -> CResult) -> c_int {
    match act() {
        Ok(()) => 0,
        Err(failure) => {
            report(call, &failure);
            -1
        }
    }
}
