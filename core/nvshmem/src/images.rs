//! The announcements of images whose kernels make calls: they come before `main`, or when a library is loaded.

use oxshmem::bindings;

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
