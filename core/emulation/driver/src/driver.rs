//! The driver as a whole: `cuInit`, its version, and the tables behind all other calls.

use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, RwLock};

use crate::call::{Out, Outcome};
use crate::code::Code;
use crate::config::{Config, config};
use crate::context::Contexts;
use crate::device::Device;
use crate::event::Event;
use crate::graph::{Executable, Graph};
use crate::kernel::library::HostLibrary;
use crate::kernel::module::Modules;
use crate::memory::Memory;
use crate::stream::Stream;

/// Everything that `cuInit` creates.
pub(crate) struct Driver {
    pub(crate) config: &'static Config,
    pub(crate) devices: Vec<Device>,
    pub(crate) contexts: Mutex<Contexts>,
    /// Locked for reading by code that accesses bytes, for writing by code that changes mappings:
    /// nothing is unmapped under a running copy.
    pub(crate) memory: RwLock<Memory>,
    pub(crate) streams: Mutex<HashMap<u64, Arc<Stream>>>,
    pub(crate) events: Mutex<HashMap<u64, Arc<Event>>>,
    pub(crate) graphs: Mutex<HashMap<u64, Arc<Graph>>>,
    pub(crate) executables: Mutex<HashMap<u64, Arc<Executable>>>,
    pub(crate) modules: Mutex<Modules>,
    pub(crate) kernels: Option<HostLibrary>,
}

static DRIVER: OnceLock<Driver> = OnceLock::new();
/// Set in a process forked after `cuInit`: there, as with the real driver, nothing works.
static FORKED: AtomicBool = AtomicBool::new(false);

/// Set before `cuInit` by a program whose kernels are in images: they are host code, and must reach
/// device memory.
static OPEN_MEMORY: AtomicBool = AtomicBool::new(false);

/// Lets the host's code reach device memory. Of no effect after `cuInit`.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn softcuda_open_memory() {
    OPEN_MEMORY.store(true, Ordering::Relaxed);
}

/// The host build of kernels that a program carries itself.
static KERNELS: OnceLock<Vec<u8>> = OnceLock::new();

/// Gives a copy of a shared library as the host build of the kernels of PTX, where `SOFTCUDA_KERNELS` names none. Of no effect after
/// `cuInit`, or once one is given.
///
/// # Safety
///
/// So many bytes can be read there, and nobody writes them meanwhile.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn softcuda_use_kernels(library: *const u8, bytes: usize) {
    // SAFETY: so many bytes can be read there, and nobody writes them meanwhile (`# Safety`).
    let library = unsafe { std::slice::from_raw_parts(library, bytes) };
    KERNELS.get_or_init(|| library.to_vec());
}

thread_local! {
    /// Set while a host function runs on this thread: such a function must not call the driver.
    pub(crate) static IN_HOST_FUNCTION: Cell<bool> = const { Cell::new(false) };
}

/// Whether this process was forked after `cuInit`.
pub(crate) fn is_forked() -> bool {
    FORKED.load(Ordering::Relaxed)
}

/// The initialised driver, or the reason why a call must fail.
pub(crate) fn driver() -> Outcome<&'static Driver> {
    if is_forked() {
        return Err(Code::NOT_INITIALIZED);
    }
    if IN_HOST_FUNCTION.get() {
        return Err(Code::NOT_PERMITTED);
    }
    DRIVER.get().ok_or(Code::NOT_INITIALIZED)
}

/// The driver for a worker thread, which exists only after `cuInit`.
pub(crate) fn running() -> Outcome<&'static Driver> {
    DRIVER.get().ok_or(Code::NOT_INITIALIZED)
}

/// A number that no other object of this process has, for use as a handle. Never one of the three
/// values that name default streams.
pub(crate) fn fresh() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0x5C00_0000);
    // Relaxed: only the number's uniqueness matters.
    NEXT.fetch_add(0x10, Ordering::Relaxed)
}

extern "C" fn in_forked_child() {
    FORKED.store(true, Ordering::Relaxed);
}

fn start() -> Outcome {
    let config = config().map_err(|words| {
        eprintln!("softcuda: {words}");
        Code::INVALID_VALUE
    })?;
    let devices = Device::visible(config);
    if devices.is_empty() {
        return Err(Code::NO_DEVICE);
    }
    static STARTING: Mutex<()> = Mutex::new(());
    let _one_at_a_time = crate::sync::lock(&STARTING);
    if DRIVER.get().is_some() {
        return Ok(());
    }
    let kernels = match (&config.kernels, KERNELS.get()) {
        (Some(path), _) => Some(HostLibrary::open(path)),
        (None, Some(library)) => Some(HostLibrary::from_bytes(library)),
        (None, None) => installed_kernels().map(|path| HostLibrary::open(&path)),
    };
    let kernels = kernels.transpose().map_err(|words| {
        eprintln!("softcuda: the host build of kernels: {words}");
        Code::FILE_NOT_FOUND
    })?;
    let memory = Memory::new(kernels.is_some() || OPEN_MEMORY.load(Ordering::Relaxed))?;
    let contexts = Contexts::new(devices.len());
    // SAFETY: the handler only stores to an atomic, which is fine in a forked child.
    unsafe { libc::pthread_atfork(None, None, Some(in_forked_child_handler())) };
    crate::race::know_words_of_host(|at| {
        let driver = DRIVER.get();
        driver.is_some_and(|driver| crate::sync::read(&driver.memory).is_page_locked(at as u64))
    });
    let _ = DRIVER.set(Driver {
        config,
        devices,
        contexts: Mutex::new(contexts),
        memory: RwLock::new(memory),
        streams: Mutex::default(),
        events: Mutex::default(),
        graphs: Mutex::default(),
        executables: Mutex::default(),
        modules: Mutex::default(),
        kernels,
    });
    Ok(())
}

/// The host build of oxshmem's kernels that an installation has beside this library, for programs that carry none: those that no
/// `oxshmem cuda cc` has linked.
fn installed_kernels() -> Option<PathBuf> {
    let own = crate::own_file::own_file()?;
    let own = std::fs::canonicalize(OsStr::from_bytes(own.to_bytes())).ok()?;
    let kernels = own.with_file_name("libsoftcuda_kernels.so");
    kernels.is_file().then_some(kernels)
}

fn in_forked_child_handler() -> unsafe extern "C" fn() {
    in_forked_child
}

driver_calls! {
    /// Starts the driver; later calls do nothing.
    fn cuInit(flags: u32) {
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        if is_forked() {
            return Err(Code::NOT_INITIALIZED);
        }
        start()
    }

    /// The newest CUDA version that the driver supports; works before `cuInit`.
    fn cuDriverGetVersion(version: Out<i32>) {
        version.set(config().map_err(|_| Code::INVALID_VALUE)?.version)
    }
}
