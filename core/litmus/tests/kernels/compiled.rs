//! The compiled calls: `calls.cpp` over the header of `source.rs`, as a library of this process.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use libloading::Library;
use oxshmem_device_library::layout::State;

use crate::source;

/// The functions by which compiled code calls the simulation (`WeakHooks` in shim.h).
#[repr(C)]
pub struct Hooks {
    pub ptx: extern "C" fn(*const c_char, *const c_void, u64, u64) -> u64,
    pub plain_load: extern "C" fn(*const c_void, u64),
    pub plain_store: extern "C" fn(*const c_void, u64, c_int),
    pub meet: extern "C" fn(c_uint),
    pub lanes: extern "C" fn() -> c_uint,
    pub exchange: extern "C" fn(c_uint, u64, c_int) -> u64,
    pub sleep: extern "C" fn(),
}

macro_rules! calls {
    ($($name:ident: fn($($type:ty),*) $(-> $result:ty)?;)*) => {
        /// The functions of `calls.cpp`.
        pub struct Calls {
            $(pub $name: unsafe extern "C" fn($($type),*) $(-> $result)?,)*
            _library: Library,
        }

        impl Calls {
            fn of(library: Library) -> Calls {
                // SAFETY: calls.cpp defines a function of this name and type.
                $(let $name = unsafe {
                    *library.get::<unsafe extern "C" fn($($type),*) $(-> $result)?>(
                        concat!("weak_", stringify!($name)).as_bytes(),
                    ).unwrap()
                };)*
                Calls { $($name,)* _library: library }
            }
        }
    };
}

calls! {
    begin: fn(*const Hooks, usize, usize, c_int);
    thread: fn(c_uint, c_uint, c_uint, *const State);
    put: fn(c_int, usize, usize, usize, c_int, c_int);
    get: fn(c_int, usize, usize, usize, c_int, c_int);
    iput: fn(c_int, usize, usize, usize, c_int);
    iget: fn(c_int, usize, usize, usize, c_int);
    p: fn(usize, u64, c_int);
    g: fn(usize, c_int) -> u64;
    put_signal: fn(c_int, usize, usize, usize, usize, u64, c_int, c_int, c_int);
    signal: fn(usize, u64, c_int, c_int);
    update: fn(c_int, usize, u64, c_int);
    fetch_update: fn(c_int, usize, u64, c_int) -> u64;
    fetch: fn(usize, c_int) -> u64;
    compare_swap: fn(usize, u64, u64, c_int) -> u64;
    wait: fn(usize, c_int, u64) -> u64;
    wait_until: fn(usize, c_int, u64);
    test: fn(usize, c_int, u64) -> u64;
    signal_fetch: fn(usize) -> u64;
    wait_several: fn(c_int, usize, usize, c_int, u64) -> u64;
    test_several: fn(c_int, usize, usize, c_int, u64) -> u64;
    fence: fn();
    quiet: fn();
    flush: fn();
    barrier: fn(c_int);
    sync: fn(c_int);
    collective: fn(c_int, c_int, usize, usize, usize, c_int);
    sync_group: fn(c_int);
    serve: fn(u64);
}

/// The library, which is compiled once.
pub fn calls() -> &'static Calls {
    static CALLS: OnceLock<Calls> = OnceLock::new();
    CALLS.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kernels");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("oxshmem.cuh"), source::header()).unwrap();
        // Compiled for each process, so that two at once do not meet.
        let library = folder.join(format!("calls-{}.so", std::process::id()));
        let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kernels/calls.cpp");
        let built = Command::new("g++")
            .args([
                "-std=c++17",
                "-O1",
                "-fPIC",
                "-fsanitize=thread",
                "--param=tsan-distinguish-volatile=1",
                "-c",
                "-I",
            ])
            .arg(&folder)
            .arg(here)
            .arg("-o")
            .arg(library.with_extension("o"))
            .output()
            .expect("g++ is needed; ci/setup installs it");
        assert!(
            built.status.success(),
            "{}",
            String::from_utf8_lossy(&built.stderr)
        );
        // Linked without ThreadSanitizer: its calls are those of shim.h.
        let linked = Command::new("g++")
            .args(["-shared", "-Wl,-Bsymbolic"])
            .arg(library.with_extension("o"))
            .arg("-o")
            .arg(&library)
            .output()
            .unwrap();
        assert!(
            linked.status.success(),
            "{}",
            String::from_utf8_lossy(&linked.stderr)
        );
        // SAFETY: the library has no initialisers but of plain variables.
        let loaded = unsafe { Library::new(&library) }.unwrap();
        std::fs::remove_file(&library).unwrap();
        std::fs::remove_file(library.with_extension("o")).unwrap();
        Calls::of(loaded)
    })
}
