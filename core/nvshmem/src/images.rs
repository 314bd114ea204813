//! The announcements of images whose kernels make calls: they come before `main`, or when a library is loaded.

use oxshmem::bindings;

use crate::failure::status;
use crate::state::with_pe;

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

/// Opens the GPU's part, and gives images that came since the last call their states: `nvshmemx_collective_launch` begins with it, which is
/// inline in the program. Collective where it opens that part. A status.
#[unsafe(no_mangle)]
pub extern "C" fn oxshmem_prepare_launch() -> i32 {
    const CALL: &str = "nvshmemx_collective_launch";
    status(CALL, with_pe(CALL, |_| Ok(())))
}
