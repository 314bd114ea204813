//! The form of a driver call: its arguments, its results, and the rules at the border to C.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::code::Code;

/// The result of a call's body: the value, or the code that the caller gets.
pub(crate) type Outcome<T = ()> = Result<T, Code>;

/// A pointer through which a call returns a value.
///
/// It comes only as an argument of an exported function. The function's caller guarantees that it
/// is null or valid for one `T`.
#[repr(transparent)]
pub(crate) struct Out<T>(*mut T);

// By hand, since a derive would require the same of `T`.
impl<T> Clone for Out<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Out<T> {}

impl<T> Out<T> {
    /// Refuses null, for calls that must not act before they have a place for the result.
    pub(crate) fn check(self) -> Outcome {
        if self.0.is_null() {
            Err(Code::INVALID_VALUE)
        } else {
            Ok(())
        }
    }

    /// Stores the result; null is refused.
    pub(crate) fn set(self, value: T) -> Outcome {
        self.check()?;
        // SAFETY: not null, so the caller of the driver vouches for it (see the type).
        unsafe { self.0.write_unaligned(value) };
        Ok(())
    }

    /// Stores the result, unless the pointer is null.
    pub(crate) fn set_if_wanted(self, value: T) {
        let _ = self.set(value);
    }

    /// A null pointer: the result is not wanted.
    pub(crate) fn none() -> Out<T> {
        Out(std::ptr::null_mut())
    }

    /// Reads the caller's value, for calls that exchange one.
    pub(crate) fn get(self) -> Outcome<T>
    where
        T: Copy,
    {
        In(self.0.cast_const()).get()
    }

    /// The pointer with another type, for calls in which an argument selects the result's type.
    pub(crate) fn cast<U>(self) -> Out<U> {
        Out(self.0.cast())
    }

    /// The raw address.
    pub(crate) fn raw(self) -> *mut T {
        self.0
    }
}

/// A pointer through which a call reads. As for [`Out`], the caller guarantees its validity.
#[repr(transparent)]
pub(crate) struct In<T>(*const T);

impl<T> Clone for In<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for In<T> {}

impl<T: Copy> In<T> {
    /// The value; null is refused.
    pub(crate) fn get(self) -> Outcome<T> {
        self.at(0)
    }

    /// Element `index` of an array; null is refused.
    pub(crate) fn at(self, index: usize) -> Outcome<T> {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: not null, so the caller of the driver vouches for the elements that the call's
        // other arguments name.
        Ok(unsafe { self.0.add(index).read_unaligned() })
    }

    /// `count` elements; null is refused where there is one to read.
    pub(crate) fn list(self, count: usize) -> Outcome<Vec<T>> {
        (0..count).map(|index| self.at(index)).collect()
    }

    /// A null pointer.
    pub(crate) fn none() -> In<T> {
        In(std::ptr::null())
    }

    pub(crate) fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// The raw address.
    pub(crate) fn raw(self) -> *const T {
        self.0
    }
}

impl In<u8> {
    /// A C string; null or invalid text is refused.
    pub(crate) fn text(self) -> Outcome<String> {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: not null, so the caller vouches for a string that ends.
        let text = unsafe { std::ffi::CStr::from_ptr(self.0.cast()) };
        text.to_str()
            .map(str::to_owned)
            .map_err(|_| Code::INVALID_VALUE)
    }
}

/// Runs a call's body. No panic leaves it. Refusals are printed if `SOFTCUDA_TRACE` is set.
pub(crate) fn guarded(name: &str, body: impl FnOnce() -> Outcome) -> Code {
    let code = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => Code::SUCCESS,
        Ok(Err(code)) => code,
        Err(_) => Code::UNKNOWN,
    };
    if code != Code::SUCCESS && code != Code::NOT_READY && crate::config::traced() {
        // Written in one piece, so that lines of several threads and processes stay whole.
        let line = format!("softcuda: {name} answers {} ({})\n", code.0, code.name());
        let _ = std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes());
    }
    code
}

/// Declares exported functions whose bodies return an [`Outcome`].
macro_rules! driver_calls {
    ($($(#[$meta:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $body:block)*) => {$(
        $(#[$meta])*
        ///
        /// # Safety
        ///
        /// As the CUDA driver API says: each pointer is null or good for what the call does with it.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name($($arg: $ty),*) -> $crate::code::Code {
            $crate::call::guarded(stringify!($name), move || -> $crate::call::Outcome { $body })
        }
    )*};
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_does_not_leave_a_call() {
        assert_eq!(guarded("cuTest", || panic!("a test")), Code::UNKNOWN);
        assert_eq!(
            guarded("cuTest", || Err(Code::INVALID_VALUE)),
            Code::INVALID_VALUE
        );
        assert_eq!(guarded("cuTest", || Ok(())), Code::SUCCESS);
    }

    #[test]
    fn null_is_refused_as_place_for_an_answer_and_as_source() {
        assert_eq!(Out::<u64>::none().set(1), Err(Code::INVALID_VALUE));
        assert_eq!(In::<u64>::none().get(), Err(Code::INVALID_VALUE));
        assert_eq!(In::<u64>::none().list(0), Ok(Vec::new()));
        assert_eq!(In::<u8>::none().text(), Err(Code::INVALID_VALUE));
    }
}
