//! Objects that programs hold by pointers: libibverbs' public structure, and behind it what this library knows.

use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

/// A public structure with the private part behind it.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Handle<R, T> {
    pub(crate) raw: R,
    pub(crate) inner: T,
}

impl<R, T> Handle<R, T> {
    /// A new object, by the pointer that programs hold.
    pub(crate) fn create(raw: R, inner: T) -> *mut R {
        Box::into_raw(Box::new(Handle { raw, inner })).cast()
    }

    /// The object of a pointer.
    ///
    /// # Safety
    ///
    /// `raw` came from [`create`](Self::create) of the same types, and was not given to [`end`](Self::end).
    pub(crate) unsafe fn of<'a>(raw: *mut R) -> &'a Handle<R, T> {
        // SAFETY: the caller's promise.
        unsafe { &*raw.cast() }
    }

    /// Frees an object.
    ///
    /// # Safety
    ///
    /// As for [`of`](Self::of), and nobody uses the object any more.
    pub(crate) unsafe fn end(raw: *mut R) {
        // SAFETY: the caller's promise.
        drop(unsafe { Box::from_raw(raw.cast::<Handle<R, T>>()) });
    }
}

/// Whether this process was forked from one whose engine ran. Nothing works there.
pub(crate) static FORKED: AtomicBool = AtomicBool::new(false);

/// The result of a call's body: the value, or the error's number.
pub(crate) type Outcome<T = ()> = Result<T, c_int>;

fn run<T>(name: &str, body: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
    // Relaxed: set before any thread of the forked process runs.
    if FORKED.load(Ordering::Relaxed) {
        return Err(libc::ENODEV);
    }
    let outcome = catch_unwind(AssertUnwindSafe(body)).unwrap_or(Err(libc::EIO));
    if let Err(code) = &outcome
        && crate::settings::settings().is_ok_and(|settings| settings.trace)
    {
        let error = std::io::Error::from_raw_os_error(*code);
        eprintln!("softnic: {name}: {error}");
    }
    outcome
}

/// For calls that return 0 or the error's number.
pub(crate) fn returned(name: &str, body: impl FnOnce() -> Outcome) -> c_int {
    match run(name, body) {
        Ok(()) => 0,
        Err(code) => code,
    }
}

/// For calls that give an object, or null and set `errno`.
pub(crate) fn created<T>(name: &str, body: impl FnOnce() -> Outcome<*mut T>) -> *mut T {
    run(name, body).unwrap_or_else(|code| {
        set_errno(code);
        std::ptr::null_mut()
    })
}

pub(crate) fn set_errno(code: c_int) {
    // SAFETY: the calling thread's own errno.
    unsafe { *libc::__errno_location() = code };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_does_not_leave_a_call() {
        assert_eq!(returned("ibv_test", || panic!("a test")), libc::EIO);
        assert_eq!(returned("ibv_test", || Err(libc::EINVAL)), libc::EINVAL);
        assert_eq!(returned("ibv_test", || Ok(())), 0);
        assert!(created::<u8>("ibv_test", || Err(libc::ENOMEM)).is_null());
        let error = std::io::Error::last_os_error();
        assert_eq!(error.raw_os_error(), Some(libc::ENOMEM));
    }
}
