//! NICs in software, whose writes to device memory are visible late: a flush of this driver flushes theirs.

use std::sync::atomic::{AtomicPtr, Ordering, fence};

/// The flush of a NIC.
type Flush = extern "C" fn();

/// The NIC's flush; null without one.
static FLUSH: AtomicPtr<()> = AtomicPtr::new(std::ptr::null_mut());

/// Has flushes of NICs' writes call `flush`, too. `ci/softnic` calls this where it finds the driver.
#[unsafe(no_mangle)]
pub extern "C" fn softcuda_on_flush(flush: Flush) {
    // Release: with the load below.
    FLUSH.store(flush as *mut (), Ordering::Release);
}

/// Makes the writes of NICs visible. Without one in software they always are.
pub(crate) fn flush() {
    let flush = FLUSH.load(Ordering::Acquire);
    if !flush.is_null() {
        // SAFETY: stored above, of this type.
        let flush: Flush = unsafe { std::mem::transmute(flush) };
        flush();
    }
    fence(Ordering::SeqCst);
}
