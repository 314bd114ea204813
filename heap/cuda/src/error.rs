//! Errors of the CUDA driver.

use std::ffi::{CStr, c_char};
use std::ptr;
use std::time::Duration;

use crate::driver::Version;
use crate::table::{Code, Table};

/// A call's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why the driver, or this door to it, refused. Each says what, on which GPU, and what would mend
/// it where that is known.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The driver's library could not be loaded.
    #[error(
        "no CUDA driver: {library} could not be loaded ({why}); {}",
        mend_load(*.named)
    )]
    NoDriver {
        /// The library.
        library: String,
        /// The error of the loader.
        why: String,
        /// Whether `OXSHMEM_CUDA_LIBRARY` named it.
        named: bool,
    },
    /// A library that is no CUDA driver.
    #[error(
        "{library} is no CUDA driver: it has no cuDriverGetVersion; name another by \
         OXSHMEM_CUDA_LIBRARY, or unset that to use the machine's"
    )]
    NotADriver {
        /// The library.
        library: String,
    },
    /// The driver lacks a call that is needed.
    #[error(
        "{library} (CUDA {version}) has no {symbol}: install a newer NVIDIA driver (525 or later)"
    )]
    MissingCall {
        /// The call.
        symbol: &'static str,
        /// The library.
        library: String,
        /// The driver's version.
        version: Version,
    },
    /// The driver is older than oxshmem can use.
    #[error(
        "the CUDA driver {library} supports CUDA {found}, oxshmem needs {needed}: install NVIDIA \
         driver 525 or later (nvidia-smi shows the one in use)"
    )]
    TooOld {
        /// The library.
        library: String,
        /// The driver's version.
        found: Version,
        /// The oldest that will do.
        needed: Version,
    },
    /// The driver sees no GPU.
    #[error("the CUDA driver sees no GPU: {why}")]
    NoDevice {
        /// The likely reason, and what would mend it.
        why: String,
    },
    /// A GPU's number that is too high.
    #[error("there is no GPU {ordinal}: this process sees {count} ({})", visible())]
    BadOrdinal {
        /// The number asked for.
        ordinal: usize,
        /// How many there are.
        count: usize,
    },
    /// Not enough memory on a GPU, or page-locked memory of the host. Nothing was kept.
    #[error(
        "{call}: no memory for {wanted} bytes on GPU {device}, which has {free} free of {total}; use \
         a smaller heap (OXSHMEM_CUDA_SYMMETRIC_SIZE), or end what else uses the GPU"
    )]
    OutOfMemory {
        /// The driver's call.
        call: &'static str,
        /// The GPU.
        device: usize,
        /// Bytes wanted.
        wanted: usize,
        /// Bytes free on the GPU just after.
        free: usize,
        /// Bytes that it has.
        total: usize,
    },
    /// The GPU or the driver can't do that.
    #[error("GPU {device} cannot do this: {what}; {mend}")]
    Unsupported {
        /// The GPU.
        device: usize,
        /// The missing feature.
        what: &'static str,
        /// The remedy.
        mend: &'static str,
    },
    /// Memory that no handle can name to other processes: see [`Handles::refused`](crate::Handles).
    #[error(
        "GPU {device}'s memory cannot be passed to other processes: {why}; start containers with \
         --ipc=host and the same GPUs, or install NVIDIA driver 525 or later"
    )]
    NotShared {
        /// The GPU.
        device: usize,
        /// The attempts, with the errors of the driver.
        why: String,
    },
    /// An argument that can't be meant.
    #[error("{what}: {why}")]
    Invalid {
        /// The call.
        what: &'static str,
        /// The reason.
        why: String,
    },
    /// More was asked for than the segment may ever hold.
    #[error(
        "the GPU heap would need {wanted} bytes, its limit is {limit}: raise \
         OXSHMEM_CUDA_SYMMETRIC_SIZE (or the size that the program asks for)"
    )]
    BeyondLimit {
        /// Bytes from the segment's start.
        wanted: usize,
        /// The segment's limit.
        limit: usize,
    },
    /// A compiler's complaint.
    #[error("the driver could not load a kernel module: {name} ({code}); {mend}\n{log}")]
    Compile {
        /// The code.
        code: u32,
        /// Its name.
        name: String,
        /// The remedy.
        mend: &'static str,
        /// The compiler's log.
        log: String,
    },
    /// Time ran out. The work goes on.
    #[error("{what} on GPU {device} did not end within {waited:?}")]
    Deadline {
        /// The awaited event.
        what: &'static str,
        /// The GPU.
        device: usize,
        /// How long.
        waited: Duration,
    },
    /// The driver refused.
    #[error("{call}{}: {name} ({code}, \"{words}\"); {mend}", on(*.device))]
    Call {
        /// The driver's call.
        call: &'static str,
        /// The result code.
        code: u32,
        /// The code's name, by the driver.
        name: String,
        /// The driver's words for it.
        words: String,
        /// The GPU, where one was meant.
        device: Option<usize>,
        /// The remedy.
        mend: &'static str,
    },
}

impl Error {
    /// An [`Error::Call`].
    #[cold]
    pub(crate) fn call(
        call: &'static str,
        code: Code,
        table: Option<&Table>,
        device: Option<usize>,
    ) -> Self {
        let (name, words) = match table {
            Some(table) => (
                text(table.cuGetErrorName, code),
                text(table.cuGetErrorString, code),
            ),
            None => (None, None),
        };
        Error::Call {
            call,
            code: code.0,
            name: name.unwrap_or_else(|| "a code this driver has no name for".to_owned()),
            words: words.unwrap_or_else(|| "unknown".to_owned()),
            device,
            mend: mend(call, code),
        }
    }

    /// The driver's result code, where the driver refused.
    #[must_use]
    pub fn code(&self) -> Option<u32> {
        match self {
            Error::Call { code, .. } | Error::Compile { code, .. } => Some(*code),
            Error::OutOfMemory { .. } => Some(Code::OUT_OF_MEMORY.0),
            _ => None,
        }
    }

    /// Whether this is the driver's answer `code`.
    pub(crate) fn is(&self, code: Code) -> bool {
        self.code() == Some(code.0)
    }

    /// Whether the GPU, the driver or the container can't do it, so that another way may.
    #[must_use]
    pub fn is_unsupported(&self) -> bool {
        matches!(self, Error::Unsupported { .. } | Error::MissingCall { .. })
            || self.is(Code::NOT_SUPPORTED)
            || self.is(Code::NOT_PERMITTED)
    }

    /// Whether the GPU's context is dead: a kernel or a copy touched memory that it may not, or the
    /// GPU failed. No call on that GPU will succeed again in this process.
    #[must_use]
    pub fn is_fatal(&self) -> bool {
        matches!(
            self.code(),
            Some(4 | 214 | 220 | 226 | 700 | 702 | 709 | 710 | 714..=719 | 721 | 810)
        )
    }
}

/// A name or description of a code by the driver.
fn text(
    function: unsafe extern "C" fn(Code, *mut *const c_char) -> Code,
    code: Code,
) -> Option<String> {
    let mut text: *const c_char = ptr::null();
    // SAFETY: the pointer is to a live pointer; any code may be asked about.
    let answer = unsafe { function(code, &raw mut text) };
    if answer != Code::SUCCESS || text.is_null() {
        return None;
    }
    // SAFETY: on success the driver gives a string that lives as long as the driver.
    Some(
        unsafe { CStr::from_ptr(text) }
            .to_string_lossy()
            .into_owned(),
    )
}

fn on(device: Option<usize>) -> String {
    device.map_or_else(String::new, |ordinal| format!(" on GPU {ordinal}"))
}

/// The variable by which the environment selects GPUs, in words.
fn visible() -> String {
    match std::env::var("CUDA_VISIBLE_DEVICES") {
        Ok(list) => format!(
            "CUDA_VISIBLE_DEVICES={list}: it ends at the first entry that is no GPU of this machine"
        ),
        Err(_) => "CUDA_VISIBLE_DEVICES is not set; GPUs are counted from 0".to_owned(),
    }
}

/// The remedy for a library that does not load.
fn mend_load(named: bool) -> &'static str {
    if named {
        "OXSHMEM_CUDA_LIBRARY names it: correct that, or unset it to use the machine's driver"
    } else {
        "install the NVIDIA driver, or start the container with its GPUs (as --gpus all); to run \
         without a GPU, name a software driver by OXSHMEM_CUDA_LIBRARY"
    }
}

/// The remedy for a result code.
pub(crate) fn mend(call: &str, code: Code) -> &'static str {
    match code.0 {
        2 => "too little memory: use a smaller heap (OXSHMEM_CUDA_SYMMETRIC_SIZE)",
        3 => {
            "the driver was not initialised, or this process forked after it was: start PEs by exec"
        }
        4 => "the driver is shutting down with the process: make no CUDA call from exit handlers",
        34 => {
            "a toolkit's stub library was loaded in place of the driver: take its stubs folder off \
             LD_LIBRARY_PATH"
        }
        36 => "install a newer NVIDIA driver",
        46 => {
            "another process has the GPU to itself (compute mode): nvidia-smi -c 0, or another GPU"
        }
        100 => "there is no GPU, or CUDA_VISIBLE_DEVICES hides it",
        101 => "there is no such GPU in this process: see CUDA_VISIBLE_DEVICES",
        209 | 218 | 222 => {
            "the driver can't compile this PTX: it is malformed, or made by a toolkit newer than the \
             driver or for a newer GPU; update the driver, or compile with an older toolkit"
        }
        221 | 223 => {
            "the driver's PTX compiler is missing or switched off: libnvidia-ptxjitcompiler must be \
             there, and CUDA_DISABLE_PTX_JIT not set"
        }
        201 if call.contains("Ipc") => {
            "a handle of legacy IPC is opened by another process than the one that made it: within \
             one process use the address itself"
        }
        201 => "the context is not that of this GPU, or was destroyed by the program",
        205 => "address space is short, or the memory is in use: use a smaller heap limit",
        217 => "these GPUs can't reach each other's memory: transfers must be staged",
        304 => {
            "the operating system refused: look at ulimit -l (locked memory), ulimit -n (open \
             descriptors), ulimit -v, and at what the container permits"
        }
        400 => "a stream, event or function that is not the driver's, or is gone",
        500 => "there is nothing of that name in the module",
        214 | 220 => {
            "the GPU or its NVLink failed: dmesg names the fault (Xid); this process can't use the GPU \
             any more"
        }
        226 | 700 | 710 | 714..=719 | 721 => {
            "the GPU's work touched memory that it may not, or failed; this process can't use the GPU \
             any more: start it again (compute-sanitizer finds the access)"
        }
        701 => {
            "the kernel needs more registers or threads than a block may have: use smaller blocks"
        }
        702 => "the kernel ran beyond the display's time limit: use another GPU",
        709 => "the program destroyed or reset the GPU's context while oxshmem used it",
        712 => "this memory is page-locked already: register it once",
        713 => "this memory was not registered",
        720 => "more blocks than fit the GPU at once: use a smaller grid",
        800 => {
            "this container or user may not do that: start it with --ipc=host and --pid=host (or \
             CAP_SYS_PTRACE) and the same GPUs, or ask the administrator"
        }
        801 if call.contains("Ipc") => {
            "legacy CUDA IPC is not to be had here (WSL, Tegra, or memory of another kind)"
        }
        801 => "this GPU or driver can't do that; oxshmem takes another way where there is one",
        802 => "the GPUs are not ready: the fabric manager (nvidia-fabricmanager) must run",
        803 => "the driver's library and kernel module differ: reboot, or reload the module",
        804 => "the compatibility library doesn't know this GPU: take it off LD_LIBRARY_PATH",
        805..=810 => "the MPS server refused: see nvidia-cuda-mps-control's log",
        900..=908 => "that can't be done while a stream is being captured into a graph",
        _ => "see the CUDA driver documentation for this code",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_code_is_an_error_with_its_number() {
        let error = Error::call("cuMemMap", Code(12_345), None, Some(3));
        let text = error.to_string();
        assert!(text.starts_with("cuMemMap on GPU 3: "), "{text}");
        assert!(text.contains("12345"), "{text}");
        assert!(!error.is_fatal() && !error.is_unsupported());
    }

    #[test]
    fn a_code_without_a_gpu_names_none() {
        let text = Error::call("cuInit", Code(802), None, None).to_string();
        assert!(text.starts_with("cuInit: "), "{text}");
        assert!(text.contains("fabric manager"), "{text}");
    }

    #[test]
    fn an_illegal_address_is_fatal_and_a_refusal_is_not() {
        for code in [700, 719, 220] {
            assert!(Error::call("cuStreamQuery", Code(code), None, Some(0)).is_fatal());
        }
        let refused = Error::call("cuIpcGetMemHandle", Code::NOT_SUPPORTED, None, Some(0));
        assert!(refused.is_unsupported() && !refused.is_fatal());
        assert!(refused.to_string().contains("legacy CUDA IPC"));
    }

    #[test]
    fn an_old_driver_s_error_names_both_versions_and_the_mend() {
        let error = Error::TooOld {
            library: "libcuda.so.1".into(),
            found: Version {
                major: 11,
                minor: 4,
            },
            needed: Version {
                major: 12,
                minor: 0,
            },
        };
        let text = error.to_string();
        for words in ["11.4", "12.0", "525"] {
            assert!(text.contains(words), "{text}");
        }
    }

    #[test]
    fn errors_stay_small() {
        assert!(size_of::<Error>() <= 128);
    }
}
