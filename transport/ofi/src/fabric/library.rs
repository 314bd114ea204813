//! libfabric, opened at run time by its name, through the loader's search path.

use std::ffi::{CStr, c_int};
use std::sync::OnceLock;

use libloading::os::unix::{Library as Handle, RTLD_LOCAL, RTLD_NOW};
use oxshmem_transport::{Error, Result};

use super::fault::Code;
use super::sys::Functions;
use crate::limits::{API, NAME};

const FILE: &str = "libfabric.so.1";

/// The functions that libfabric exports. It calls everything else through tables in its objects.
pub(crate) struct Library {
    functions: Functions,
    version: (u32, u32),
}

impl std::fmt::Debug for Library {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(FILE)
    }
}

impl std::ops::Deref for Library {
    type Target = Functions;

    fn deref(&self) -> &Functions {
        &self.functions
    }
}

/// A version as libfabric numbers it.
pub(crate) const fn number((major, minor): (u32, u32)) -> u32 {
    (major << 16) | minor
}

impl Library {
    /// The library, opened at the first call; it stays open as long as the process lives.
    pub(crate) fn get() -> Result<&'static Library> {
        static LIBRARY: OnceLock<std::result::Result<Library, String>> = OnceLock::new();
        let library = LIBRARY.get_or_init(|| Library::open(FILE));
        library.as_ref().map_err(|why| Error::Unavailable {
            transport: NAME,
            why: why.clone(),
        })
    }

    fn open(file: &str) -> std::result::Result<Library, String> {
        // SAFETY: the initializers of libfabric have no precondition.
        let handle = unsafe { Handle::open(Some(file), RTLD_NOW | RTLD_LOCAL) };
        let handle = handle.map_err(|error| {
            format!(
                "{file} cannot be opened ({error}); install libfabric {}.{} or newer (Debian: \
                 libfabric1)",
                API.0, API.1
            )
        })?;
        // SAFETY: the types are generated from libfabric's headers.
        let functions = unsafe { Functions::from_library(handle) }.map_err(|error| {
            format!(
                "{error}; install libfabric {}.{} or newer (Debian: libfabric1)",
                API.0, API.1
            )
        })?;
        // SAFETY: no precondition.
        let version = unsafe { functions.fi_version() };
        let version = (version >> 16, version & 0xffff);
        too_old(version).map_or(Ok(()), Err)?;
        Ok(Library { functions, version })
    }

    /// Its version.
    pub(crate) fn version(&self) -> (u32, u32) {
        self.version
    }

    /// An error of libfabric in words. `code` is positive.
    pub(crate) fn explain(&self, code: c_int) -> String {
        // SAFETY: no precondition; gives a static string.
        let text = unsafe { self.functions.fi_strerror(code) };
        if text.is_null() {
            return format!("error {code}");
        }
        // SAFETY: a C string that lives as long as the library, which is never closed.
        let text = unsafe { CStr::from_ptr(text) };
        format!("{} (error {code})", text.to_string_lossy())
    }

    /// The error of a call that gave `code`, which is negative.
    pub(crate) fn failed(&self, call: impl Into<String>, code: isize) -> Error {
        let code = i32::try_from(-code).unwrap_or(i32::MAX);
        Error::Os {
            transport: NAME,
            call: call.into(),
            source: std::io::Error::other(Code {
                code,
                words: self.explain(code),
            }),
        }
    }
}

/// The reason against a version; none if it will do.
fn too_old(version: (u32, u32)) -> Option<String> {
    (version < API).then(|| {
        format!(
            "libfabric {}.{} is too old: {}.{} is the oldest that this transport knows; install that or a newer one",
            version.0, version.1, API.0, API.1
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_that_is_not_there_is_named_with_its_package() {
        let error = Library::open("libfabric-of-nobody.so.1").unwrap_err();
        for word in ["libfabric-of-nobody.so.1", "libfabric1", "1.17"] {
            assert!(error.contains(word), "{error}");
        }
    }

    #[test]
    fn a_library_without_the_functions_is_refused_by_the_first_of_them() {
        let error = Library::open("libc.so.6").unwrap_err();
        for word in ["libc.so.6", "fi_", "install libfabric"] {
            assert!(error.contains(word), "{error}");
        }
    }

    #[test]
    fn a_version_before_the_oldest_known_is_refused_with_both() {
        assert_eq!(too_old((1, 17)), None);
        assert_eq!(too_old((2, 1)), None);
        let why = too_old((1, 6)).unwrap();
        assert!(why.contains("1.6") && why.contains("1.17"), "{why}");
    }
}
