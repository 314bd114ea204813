//! The software driver, loaded as programs load it, and called through cudarc's declarations.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

pub use cudarc::driver::sys::*;

pub type Code = CUresult;

/// The deadline of a test program: a call that hangs must not hang the tests.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(120);

/// Panics unless a call succeeded.
macro_rules! ok {
    ($call:expr) => {{
        #[allow(unused_unsafe)]
        // SAFETY: tests give valid pointers; where they do not, the driver refuses them.
        let code = unsafe { $call };
        assert_eq!(
            code,
            $crate::driver::Code::CUDA_SUCCESS,
            "{}",
            stringify!($call)
        );
    }};
}

/// Panics unless a call was refused with a code.
macro_rules! refused {
    ($code:ident, $call:expr) => {{
        #[allow(unused_unsafe)]
        // SAFETY: tests give valid pointers; where they do not, the driver refuses them.
        let code = unsafe { $call };
        assert_eq!(code, $crate::driver::Code::$code, "{}", stringify!($call));
    }};
}

#[allow(unused_imports)] // not every test program uses both
pub(crate) use {ok, refused};

/// The driver to test: the one that `SOFTCUDA_TEST_DRIVER` names, else the software driver, which
/// cargo puts beside the tests.
pub fn library() -> PathBuf {
    if let Some(path) = std::env::var_os("SOFTCUDA_TEST_DRIVER") {
        return PathBuf::from(path);
    }
    let test = std::env::current_exe().expect("a test knows its own path");
    let found = test
        .ancestors()
        .skip(1)
        .take(2)
        .map(|folder| folder.join("libsoftcuda.so"))
        .find(|path| path.exists());
    found.expect("cargo builds libsoftcuda.so with the tests")
}

/// Loads and starts the driver, once; `settings` are for its environment.
pub fn load(settings: &[(&str, &str)]) {
    open(settings);
    ok!(cuInit(0));
}

/// Loads the driver, once.
pub fn open(settings: &[(&str, &str)]) {
    static LOADED: OnceLock<libloading::os::unix::Library> = OnceLock::new();
    LOADED.get_or_init(|| {
        std::thread::spawn(|| {
            std::thread::sleep(PATIENCE);
            eprintln!("a test did not end within {PATIENCE:?}: the program is ended");
            std::process::abort();
        });
        for (name, value) in settings {
            // SAFETY: no other thread of these tests reads the environment before this is done.
            unsafe { std::env::set_var(name, value) };
        }
        let flags = libloading::os::unix::RTLD_NOW | libloading::os::unix::RTLD_GLOBAL;
        // SAFETY: the library has no initialisers of its own.
        let library = unsafe { libloading::os::unix::Library::open(Some(library()), flags) };
        library.expect("the software driver loads")
    });
}

/// Makes device `ordinal`'s primary context current on this thread.
pub fn enter(ordinal: i32) -> CUcontext {
    let mut context = std::ptr::null_mut();
    ok!(cuDevicePrimaryCtxRetain(&mut context, ordinal));
    ok!(cuCtxSetCurrent(context));
    context
}

/// Runs one test of this program again, in a process of its own with other settings. Returns its
/// exit status; `None` if a signal ended it.
#[allow(dead_code)] // not every test program does
pub fn again(test: &str, settings: &[(&str, &str)]) -> Option<i32> {
    let status = Command::new(std::env::current_exe().expect("a test knows its own path"))
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env("SOFTCUDA_TEST_AGAIN", test)
        .envs(settings.iter().copied())
        .status()
        .expect("the test program starts");
    status.code()
}

/// Whether this process is such a run of a test.
#[allow(dead_code)]
pub fn is_again(test: &str) -> bool {
    std::env::var("SOFTCUDA_TEST_AGAIN").is_ok_and(|name| name == test)
}

/// Properties of memory on a device, exportable as a descriptor.
#[allow(dead_code)]
pub fn properties(ordinal: i32) -> CUmemAllocationProp {
    // SAFETY: all zeroes is valid for this plain struct, but for the enums set right here.
    let mut properties: CUmemAllocationProp = unsafe { std::mem::zeroed() };
    properties.type_ = CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type_ = CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
    properties.location.id = ordinal;
    properties.requestedHandleTypes = CUmemAllocationHandleType(1);
    properties
}

/// Read and write for a device.
#[allow(dead_code)]
pub fn access(ordinal: i32) -> CUmemAccessDesc {
    CUmemAccessDesc {
        location: CUmemLocation {
            type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
            id: ordinal,
        },
        flags: CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
    }
}

/// The unit of device memory.
#[allow(dead_code)]
pub const UNIT: usize = 2 << 20;

/// Memory mapped at an address of its own, usable by its device: address and handle.
#[allow(dead_code)]
pub fn mapped(ordinal: i32, size: usize) -> (CUdeviceptr, CUmemGenericAllocationHandle) {
    let (mut handle, mut address) = (0, 0);
    ok!(cuMemCreate(&mut handle, size, &properties(ordinal), 0));
    ok!(cuMemAddressReserve(&mut address, size, 0, 0, 0));
    ok!(cuMemMap(address, size, 0, handle, 0));
    ok!(cuMemSetAccess(address, size, &access(ordinal), 1));
    (address, handle)
}

/// A stream that is independent of the default one.
#[allow(dead_code)]
pub fn stream() -> CUstream {
    let mut stream = std::ptr::null_mut();
    ok!(cuStreamCreate(&mut stream, 1));
    stream
}

/// Page-locked words, all zero.
#[allow(dead_code)]
pub fn pinned_words(count: usize) -> *mut u64 {
    let mut at = std::ptr::null_mut();
    ok!(cuMemHostAlloc(&mut at, count * 8, 0));
    at.cast()
}

/// Writes words to device memory.
#[allow(dead_code)]
pub fn put(at: CUdeviceptr, words: &[u64]) -> CUresult {
    // SAFETY: the source is as long as said.
    unsafe { cuMemcpyHtoD_v2(at, words.as_ptr().cast(), size_of_val(words)) }
}

/// Reads words of device memory.
#[allow(dead_code)]
pub fn words(at: CUdeviceptr, count: usize) -> Vec<u64> {
    let mut words = vec![0u64; count];
    ok!(cuMemcpyDtoH_v2(words.as_mut_ptr().cast(), at, count * 8));
    words
}
