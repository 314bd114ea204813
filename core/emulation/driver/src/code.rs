//! Result codes of the driver's calls, with their names and descriptions.

use std::ffi::{CStr, c_char};

use crate::call::Out;

/// A `CUresult`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Code(pub(crate) u32);

macro_rules! codes {
    ($($name:ident = $value:literal, $words:literal;)*) => {
        impl Code {
            $(#[doc = $words] pub(crate) const $name: Code = Code($value);)*
        }

        /// The driver's name of a code without its prefix, and its description.
        fn describe(code: Code) -> Option<(&'static str, &'static str)> {
            match code {
                $(Code::$name => Some((
                    concat!(stringify!($name), "\0"),
                    concat!($words, "\0"),
                )),)*
                _ => None,
            }
        }
    };
}

codes! {
    SUCCESS = 0, "no error";
    INVALID_VALUE = 1, "invalid argument";
    OUT_OF_MEMORY = 2, "out of memory";
    NOT_INITIALIZED = 3, "initialization error";
    DEINITIALIZED = 4, "driver shutting down";
    NO_DEVICE = 100, "no CUDA-capable device is detected";
    INVALID_DEVICE = 101, "invalid device ordinal";
    INVALID_IMAGE = 200, "device kernel image is invalid";
    INVALID_CONTEXT = 201, "invalid device context";
    MAP_FAILED = 205, "mapping of buffer object failed";
    NO_BINARY_FOR_GPU = 209, "no kernel image is available for execution on the device";
    UNSUPPORTED_LIMIT = 215, "limit is not supported on this architecture";
    PEER_ACCESS_UNSUPPORTED = 217, "peer access is not supported between these two devices";
    INVALID_PTX = 218, "a PTX JIT compilation failed";
    UNSUPPORTED_PTX_VERSION = 222, "the provided PTX was compiled with an unsupported toolchain.";
    FILE_NOT_FOUND = 301, "file not found";
    OPERATING_SYSTEM = 304, "OS call failed or operation not supported on this OS";
    INVALID_HANDLE = 400, "invalid resource handle";
    NOT_FOUND = 500, "named symbol not found";
    NOT_READY = 600, "device not ready";
    ILLEGAL_ADDRESS = 700, "an illegal memory access was encountered";
    LAUNCH_OUT_OF_RESOURCES = 701, "too many resources requested for launch";
    LAUNCH_TIMEOUT = 702, "the launch timed out and was terminated";
    PEER_ACCESS_ALREADY_ENABLED = 704, "peer access is already enabled";
    PEER_ACCESS_NOT_ENABLED = 705, "peer access has not been enabled";
    PRIMARY_CONTEXT_ACTIVE = 708, "cannot set while device is active in this process";
    CONTEXT_IS_DESTROYED = 709, "context is destroyed";
    ASSERT = 710, "device-side assert triggered";
    HOST_MEMORY_ALREADY_REGISTERED = 712, "part or all of the requested memory range is already mapped";
    HOST_MEMORY_NOT_REGISTERED = 713, "pointer does not correspond to a registered memory region";
    LAUNCH_FAILED = 719, "unspecified launch failure";
    COOPERATIVE_LAUNCH_TOO_LARGE = 720, "too many blocks in cooperative launch";
    NOT_PERMITTED = 800, "operation not permitted";
    NOT_SUPPORTED = 801, "operation not supported";
    STREAM_CAPTURE_UNSUPPORTED = 900, "operation not permitted when stream is capturing";
    STREAM_CAPTURE_INVALIDATED = 901, "operation failed due to a previous error during capture";
    STREAM_CAPTURE_MERGE = 902, "operation would result in a merge of separate capture sequences";
    STREAM_CAPTURE_UNMATCHED = 903, "capture was not ended in the same stream as it began";
    STREAM_CAPTURE_UNJOINED = 904, "capturing stream has unjoined work";
    STREAM_CAPTURE_ISOLATION = 905, "dependency created on uncaptured work in another stream";
    STREAM_CAPTURE_IMPLICIT = 906, "operation would make the legacy stream depend on a capturing blocking stream";
    CAPTURED_EVENT = 907, "operation not permitted on an event last recorded in a capturing stream";
    STREAM_CAPTURE_WRONG_THREAD = 908, "attempt to terminate a thread-local capture sequence from another thread";
    UNKNOWN = 999, "unknown error";
}

impl Code {
    /// The name without `CUDA_ERROR_`, for a person.
    pub(crate) fn name(self) -> &'static str {
        describe(self).map_or("?", |(name, _)| name.trim_end_matches('\0'))
    }
}

/// The full name. It is allocated once and lives as long as the process, as the driver's names do.
fn full_name(code: Code) -> Option<&'static CStr> {
    use std::collections::HashMap;
    use std::ffi::CString;
    use std::sync::{Mutex, OnceLock};
    static NAMES: OnceLock<Mutex<HashMap<u32, &'static CStr>>> = OnceLock::new();

    let (name, _) = describe(code)?;
    let name = name.trim_end_matches('\0');
    let whole = match code {
        Code::SUCCESS => "CUDA_SUCCESS".to_owned(),
        _ => format!("CUDA_ERROR_{name}"),
    };
    let mut names = crate::sync::lock(NAMES.get_or_init(Mutex::default));
    if let Some(known) = names.get(&code.0) {
        return Some(known);
    }
    let made: &'static CStr = Box::leak(CString::new(whole).ok()?.into_boxed_c_str());
    names.insert(code.0, made);
    Some(made)
}

fn answer(out: Out<*const c_char>, words: Option<&'static CStr>) -> crate::call::Outcome {
    match words {
        Some(words) => out.set(words.as_ptr()),
        None => {
            out.set(std::ptr::null())?;
            Err(Code::INVALID_VALUE)
        }
    }
}

driver_calls! {
    /// The name of a result code.
    fn cuGetErrorName(code: Code, out: Out<*const c_char>) {
        answer(out, full_name(code))
    }

    /// The description of a result code.
    fn cuGetErrorString(code: Code, out: Out<*const c_char>) {
        answer(
            out,
            describe(code).and_then(|(_, words)| CStr::from_bytes_with_nul(words.as_bytes()).ok()),
        )
    }
}
