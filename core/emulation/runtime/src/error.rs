//! Errors: the runtime's codes, which are the driver's, and each thread's last one.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A `cudaError_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Error(pub(crate) u32);

/// The result of a call's body.
pub(crate) type Outcome<T = ()> = Result<T, Error>;

impl Error {
    pub(crate) const INVALID_VALUE: Error = Error(1);
    pub(crate) const INVALID_CONFIGURATION: Error = Error(9);
    pub(crate) const INVALID_SYMBOL: Error = Error(13);
    pub(crate) const INVALID_COPY_DIRECTION: Error = Error(21);
    pub(crate) const INSUFFICIENT_DRIVER: Error = Error(35);
    pub(crate) const INVALID_DEVICE_FUNCTION: Error = Error(98);
    pub(crate) const INVALID_DEVICE: Error = Error(101);
    pub(crate) const NOT_READY: Error = Error(600);
    pub(crate) const NOT_SUPPORTED: Error = Error(801);
    pub(crate) const UNKNOWN: Error = Error(999);
}

/// The stream that stands for the thread's own.
pub(crate) const PER_THREAD: u64 = 2;

/// Whether an error is one of executed work, after which the context is lost: it stays, from every call. Those between, such as
/// 704 (access to the peer is enabled already), are forgotten as others are.
const fn is_sticky(code: u32) -> bool {
    matches!(code, 700 | 702 | 710 | 714..=719)
}

thread_local! {
    static LAST: Cell<u32> = const { Cell::new(0) };
}

/// Runs a call's body, and keeps its error as the thread's last one.
pub(crate) fn guarded(body: impl FnOnce() -> Outcome) -> u32 {
    let code = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => 0,
        Ok(Err(error)) => error.0,
        Err(_) => Error::UNKNOWN.0,
    };
    if code != 0 && code != Error::NOT_READY.0 {
        LAST.set(code);
    }
    code
}

/// Declares exported functions whose bodies return an [`Outcome`].
macro_rules! runtime_calls {
    ($($(#[$meta:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $body:block)*) => {$(
        $(#[$meta])*
        ///
        /// # Safety
        ///
        /// As the CUDA runtime API says: each pointer is null or good for what the call does with it.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name($($arg: $ty),*) -> u32 {
            $crate::error::guarded(move || -> $crate::error::Outcome { $body })
        }
    )*};
}

/// As [`runtime_calls`], for calls whose last argument is a stream: each has a form for programs in
/// which stream 0 is the thread's own.
macro_rules! stream_calls {
    ($($(#[$meta:meta])* fn $name:ident, $own:ident($($arg:ident: $ty:ty),* ; $stream:ident) $body:block)*) => {$(
        $(#[$meta])*
        ///
        /// # Safety
        ///
        /// As the CUDA runtime API says: each pointer is null or good for what the call does with it.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name($($arg: $ty,)* $stream: u64) -> u32 {
            $crate::error::guarded(move || -> $crate::error::Outcome { $body })
        }

        $(#[$meta])*
        ///
        /// # Safety
        ///
        /// As above.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $own($($arg: $ty,)* $stream: u64) -> u32 {
            let $stream = $crate::error::own_stream($stream);
            $crate::error::guarded(move || -> $crate::error::Outcome { $body })
        }
    )*};
}

/// The stream in the calls of programs in which stream 0 is the thread's own.
pub(crate) const fn own_stream(stream: u64) -> u64 {
    if stream == 0 { PER_THREAD } else { stream }
}

/// Stores a result through a pointer; null is refused.
pub(crate) fn set<T>(out: *mut T, value: T) -> Outcome {
    if out.is_null() {
        return Err(Error::INVALID_VALUE);
    }
    // SAFETY: not null, so the runtime's caller vouches for it.
    unsafe { out.write(value) };
    Ok(())
}

/// The result of a driver's call that stores it through a pointer.
pub(crate) fn get<T: Default>(call: impl FnOnce(*mut T) -> Outcome) -> Outcome<T> {
    let mut value = T::default();
    call(&raw mut value)?;
    Ok(value)
}

/// The last error of the thread, which is forgotten.
///
/// # Safety
///
/// It has no conditions.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cudaGetLastError() -> u32 {
    let last = LAST.get();
    if !is_sticky(last) {
        LAST.set(0);
    }
    last
}

/// The last error of the thread.
///
/// # Safety
///
/// It has no conditions.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cudaPeekAtLastError() -> u32 {
    LAST.get()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_executed_work_stays_and_others_are_forgotten() {
        for (code, stays) in [
            (1, false),
            (704, false),
            (712, false),
            (700, true),
            (719, true),
        ] {
            LAST.set(0);
            guarded(|| Err(Error(code)));
            // SAFETY: these have no conditions.
            let told = unsafe {
                (
                    cudaPeekAtLastError(),
                    cudaGetLastError(),
                    cudaGetLastError(),
                )
            };
            assert_eq!(told, (code, code, if stays { code } else { 0 }));
        }
    }
}
