//! Kernels: modules of PTX, and launches of the host build.
//!
//! ci/softcuda-kernels makes that build, of oxshmem's kernels and tests/kernels/user.cu. Without a
//! C++ compiler these tests say so and pass.

// Tests pass pointers to their variables, and fail on any error.
#![allow(clippy::borrow_as_ptr, clippy::expect_used)]

mod driver;

use std::ffi::{CStr, CString, c_void};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::ptr::null_mut;
use std::sync::OnceLock;

use driver::*;

const USER: &str = include_str!("kernels/user.ptx");

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

fn host_build() -> Option<&'static Path> {
    static BUILT: OnceLock<Option<PathBuf>> = OnceLock::new();
    let built = BUILT.get_or_init(|| {
        let compiler = std::env::var("CXX").unwrap_or_else(|_| "g++".to_owned());
        if Command::new(&compiler).arg("--version").output().is_err() {
            println!("no C++ compiler {compiler}: kernels not run");
            return None;
        }
        let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("libsoftcuda_test_kernels.so");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kernels/user.cu");
        let status = Command::new(root().join("ci/softcuda-kernels"))
            .arg(&out)
            .arg(source)
            .status()
            .expect("ci/softcuda-kernels starts");
        assert!(status.success(), "ci/softcuda-kernels failed");
        Some(out)
    });
    built.as_deref()
}

/// Returns false if there is no compiler.
fn start() -> bool {
    let Some(kernels) = host_build() else {
        return false;
    };
    let kernels = kernels.to_str().expect("a path in UTF-8");
    load(&[("SOFTCUDA_KERNELS", kernels), ("SOFTCUDA_DEVICES", "2")]);
    enter(0);
    true
}

fn module(text: &str) -> CUmodule {
    let text = CString::new(text).expect("no NUL in PTX");
    let mut module = null_mut();
    ok!(cuModuleLoadData(&mut module, text.as_ptr().cast()));
    module
}

fn function(module: CUmodule, name: &CStr) -> CUfunction {
    let mut function = null_mut();
    ok!(cuModuleGetFunction(&mut function, module, name.as_ptr()));
    function
}

type Extent = (u32, u32, u32);

fn launch(
    f: CUfunction,
    grid: Extent,
    block: Extent,
    on: CUstream,
    with: &mut [*mut c_void],
) -> CUresult {
    // SAFETY: each test passes the arguments of its kernel.
    unsafe {
        cuLaunchKernel(
            f,
            grid.0,
            grid.1,
            grid.2,
            block.0,
            block.1,
            block.2,
            0,
            on,
            with.as_mut_ptr(),
            null_mut(),
        )
    }
}

fn pointer<T>(value: &mut T) -> *mut c_void {
    (value as *mut T).cast()
}

fn device_words(words: &[u64]) -> CUdeviceptr {
    let mut at = 0;
    ok!(cuMemAlloc_v2(&mut at, size_of_val(words)));
    ok!(put(at, words));
    ok!(cuStreamSynchronize(null_mut()));
    at
}

#[test]
fn every_thread_of_a_grid_runs_at_its_place() {
    if !start() {
        return;
    }
    let stream = stream();
    let mut at = device_words(&[0; 72]);
    let f = function(module(USER), c"user_where");
    ok!(launch(
        f,
        (2, 3, 1),
        (3, 2, 2),
        stream,
        &mut [pointer(&mut at)]
    ));
    ok!(cuStreamSynchronize(stream));
    let wanted: Vec<u64> = (0..6)
        .flat_map(|block| (0..12).map(move |t| 1000 * block + t))
        .collect();
    assert_eq!(words(at, 72), wanted);
}

#[test]
fn threads_that_wait_for_each_other_run_at_once() {
    if !start() {
        return;
    }
    let stream = stream();
    let first: Vec<u64> = (0..33).collect();
    let mut at = device_words(&first);
    let f = function(module(USER), c"user_rotate");
    ok!(launch(
        f,
        (2, 1, 1),
        (33, 1, 1),
        stream,
        &mut [pointer(&mut at)]
    ));
    ok!(cuStreamSynchronize(stream));
    let wanted: Vec<u64> = (0..33).map(|index| (index + 31) % 33).collect();
    assert_eq!(words(at, 33), wanted);
}

#[test]
fn arguments_of_all_kinds_arrive_and_variables_are_device_memory() {
    if !start() {
        return;
    }
    let stream = stream();
    let user = module(USER);
    let f = function(user, c"user_add");
    let (mut at, mut size) = (0, 0);
    ok!(cuModuleGetGlobal_v2(
        &mut at,
        &mut size,
        user,
        c"user_total".as_ptr()
    ));
    assert_eq!(size, 8);
    ok!(put(at, &[5]));
    ok!(cuStreamSynchronize(null_mut()));
    let (mut one, mut two, mut three, mut four) = (1.5f64, 2.5f32, 200u8, 1u64 << 40);
    let mut with = [
        pointer(&mut one),
        pointer(&mut two),
        pointer(&mut three),
        pointer(&mut four),
    ];
    ok!(launch(f, (1, 1, 1), (1, 1, 1), stream, &mut with));
    // Arguments are copied when the launch is called.
    four = 0;
    ok!(cuStreamSynchronize(stream));
    assert_eq!(words(at, 1), [5 + 4 + 200 + (1 << 40) + four]);
    // The same in one buffer: 8, 4, 1 bytes, and 8 aligned.
    let mut buffer = [0u8; 24];
    buffer[..8].copy_from_slice(&1.0f64.to_ne_bytes());
    buffer[8..12].copy_from_slice(&2.0f32.to_ne_bytes());
    buffer[12] = 3;
    buffer[16..].copy_from_slice(&10u64.to_ne_bytes());
    let mut length = buffer.len();
    // The list's marks are small numbers that travel as pointers: buffer, and its size.
    let mark = |number: usize| number as *mut c_void;
    let mut extra = [
        mark(1),
        buffer.as_mut_ptr().cast(),
        mark(2),
        pointer(&mut length),
        null_mut(),
    ];
    let before = words(at, 1)[0];
    ok!(cuLaunchKernel(
        f,
        1,
        1,
        1,
        2,
        1,
        1,
        0,
        stream,
        null_mut(),
        extra.as_mut_ptr()
    ));
    ok!(cuStreamSynchronize(stream));
    assert_eq!(words(at, 1), [before + 2 * 16]);
    refused!(
        CUDA_ERROR_NOT_FOUND,
        cuModuleGetGlobal_v2(&mut at, &mut size, user, c"x".as_ptr())
    );
}

#[test]
fn a_kernel_that_waits_leaves_other_streams_free() {
    if !start() {
        return;
    }
    let text = std::fs::read_to_string(root().join("transport/nvlink/device/kernels.ptx"))
        .expect("oxshmem's kernels are checked in");
    let f = function(module(&text), c"oxshmem_wait_64");
    let (waiting, other) = (stream(), stream());
    let mut at = device_words(&[0]);
    // Comparison 3 is "at least"; unsigned, no word that ends the wait.
    let (mut compare, mut value, mut signed) = (3u32, 7u64, 0u32);
    let (mut stop, mut status) = (0u64, 0u64);
    let mut with = [
        pointer(&mut at),
        pointer(&mut compare),
        pointer(&mut value),
        pointer(&mut signed),
        pointer(&mut stop),
        pointer(&mut status),
    ];
    ok!(launch(f, (1, 1, 1), (1, 1, 1), waiting, &mut with));
    ok!(cuStreamWriteValue64_v2(other, at, 6, 0));
    ok!(cuStreamSynchronize(other));
    refused!(CUDA_ERROR_NOT_READY, cuStreamQuery(waiting));
    ok!(cuStreamWriteValue64_v2(other, at, 8, 0));
    ok!(cuStreamSynchronize(waiting));
}

#[test]
fn modules_that_the_real_driver_refuses_are_refused_in_words() {
    if !start() {
        return;
    }
    let mut module = null_mut();
    let mut log = [0u8; 200];
    let mut options = [
        CUjit_option::CU_JIT_ERROR_LOG_BUFFER,
        CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
    ];
    let mut values = [log.as_mut_ptr().cast::<c_void>(), 200 as *mut c_void];
    let text = c".version 9.0\n.target sm_90\n";
    refused!(
        CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
        cuModuleLoadDataEx(
            &mut module,
            text.as_ptr().cast(),
            2,
            options.as_mut_ptr(),
            values.as_mut_ptr()
        )
    );
    let words = CStr::from_bytes_until_nul(&log)
        .expect("the log ends")
        .to_string_lossy();
    assert!(words.contains("9.0"), "{words}");
    let text = c"hello";
    refused!(
        CUDA_ERROR_INVALID_PTX,
        cuModuleLoadData(&mut module, text.as_ptr().cast())
    );
    let elf = b"\x7fELF\0";
    refused!(
        CUDA_ERROR_NO_BINARY_FOR_GPU,
        cuModuleLoadData(&mut module, elf.as_ptr().cast())
    );
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        cuModuleLoadData(&mut module, std::ptr::null())
    );
}

#[test]
fn launches_that_the_real_driver_refuses_are_refused() {
    if !start() {
        return;
    }
    let user = module(USER);
    let f = function(user, c"user_where");
    let mut at = device_words(&[0; 4]);
    let mut with = [pointer(&mut at)];
    let one = (1, 1, 1);
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        launch(f, (0, 1, 1), one, null_mut(), &mut with)
    );
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        launch(f, one, (1025, 1, 1), null_mut(), &mut with)
    );
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        launch(f, one, (1, 1, 65), null_mut(), &mut with)
    );
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        launch(f, (1, 65536, 1), one, null_mut(), &mut with)
    );
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, null_mut(), null_mut(), null_mut())
    );
    refused!(
        CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
        cuLaunchCooperativeKernel(f, 9000, 1, 1, 1024, 1, 1, 0, null_mut(), with.as_mut_ptr())
    );
    // A kernel runs in streams of its own context only.
    enter(1);
    let foreign = stream();
    enter(0);
    refused!(
        CUDA_ERROR_INVALID_HANDLE,
        launch(f, one, one, foreign, &mut with)
    );
    let mut absent = null_mut();
    refused!(
        CUDA_ERROR_NOT_FOUND,
        cuModuleGetFunction(&mut absent, user, c"nobody".as_ptr())
    );
    refused!(
        CUDA_ERROR_NOT_FOUND,
        cuModuleGetFunction(&mut absent, user, c"user_absent".as_ptr())
    );
    ok!(cuModuleUnload(user));
    refused!(
        CUDA_ERROR_INVALID_HANDLE,
        launch(f, one, one, null_mut(), &mut with)
    );
    refused!(CUDA_ERROR_INVALID_HANDLE, cuModuleUnload(user));
}

#[test]
fn a_library_has_a_module_in_each_context() {
    if !start() {
        return;
    }
    let text = CString::new(USER).expect("no NUL in PTX");
    let mut library = null_mut();
    ok!(cuLibraryLoadData(
        &mut library,
        text.as_ptr().cast(),
        null_mut(),
        null_mut(),
        0,
        null_mut(),
        null_mut(),
        0,
    ));
    let mut kernel = null_mut();
    ok!(cuLibraryGetKernel(
        &mut kernel,
        library,
        c"user_where".as_ptr()
    ));
    refused!(
        CUDA_ERROR_NOT_FOUND,
        cuLibraryGetKernel(&mut kernel, library, c"nobody".as_ptr())
    );
    let mut modules = [null_mut(); 2];
    for (device, module) in (0..).zip(&mut modules) {
        enter(device);
        ok!(cuLibraryGetModule(module, library));
        let mut again = null_mut();
        ok!(cuLibraryGetModule(&mut again, library));
        assert_eq!(again, *module);
        let (mut at, mut size) = (0, 0);
        let name = c"user_total".as_ptr();
        ok!(cuLibraryGetGlobal(&mut at, &mut size, library, name));
        let (mut of_module, mut same) = (0, 0);
        ok!(cuModuleGetGlobal_v2(
            &mut of_module,
            &mut same,
            *module,
            name
        ));
        assert_eq!((at, size), (of_module, 8));
        // A launch takes the kernel, or its function in this context.
        let mut of_kernel = null_mut();
        ok!(cuKernelGetFunction(&mut of_kernel, kernel));
        for f in [kernel.cast(), of_kernel] {
            let mut words_at = device_words(&[7; 2]);
            let with = &mut [pointer(&mut words_at)];
            ok!(launch(f, (1, 1, 1), (2, 1, 1), null_mut(), with));
            ok!(cuStreamSynchronize(null_mut()));
            assert_eq!(words(words_at, 2), [0, 1]);
        }
    }
    assert_ne!(modules[0], modules[1]);
    ok!(cuLibraryUnload(library));
    let mut gone = null_mut();
    refused!(
        CUDA_ERROR_INVALID_HANDLE,
        cuKernelGetFunction(&mut gone, kernel)
    );
    refused!(CUDA_ERROR_INVALID_HANDLE, cuModuleUnload(modules[1]));
    refused!(CUDA_ERROR_INVALID_HANDLE, cuLibraryUnload(library));
    enter(0);
}

#[test]
fn a_cooperative_grid_runs_at_once() {
    if !start() {
        return;
    }
    let f = function(module(USER), c"user_meet");
    let stream = stream();
    let mut at = device_words(&[0]);
    let mut with = [pointer(&mut at)];
    ok!(cuLaunchCooperativeKernel(
        f,
        3,
        1,
        1,
        4,
        1,
        1,
        0,
        stream,
        with.as_mut_ptr()
    ));
    ok!(cuStreamSynchronize(stream));
    assert_eq!(words(at, 1), [12]);
}
