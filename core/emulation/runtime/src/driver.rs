//! The driver: loaded once, its calls looked up by name.

use std::ffi::{CString, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::OnceLock;

use crate::error::{Error, Outcome};

struct Library(*mut c_void);

// SAFETY: the handle is only given to dlsym, which any thread may call.
unsafe impl Send for Library {}
// SAFETY: as above.
unsafe impl Sync for Library {}

/// The driver that is named in the environment, else the one beside this library.
fn path() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("OXSHMEM_CUDA_LIBRARY").filter(|path| !path.is_empty()) {
        return Some(named.into());
    }
    // SAFETY: plain data, for which zeros are a value.
    let mut info = unsafe { std::mem::zeroed::<libc::Dl_info>() };
    let own: fn() -> Option<PathBuf> = path;
    // SAFETY: the address is of this library's code, and the place is good for the answer.
    let found = unsafe { libc::dladdr(own as *const c_void, &raw mut info) };
    if found == 0 || info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: dladdr gave a string that lives as long as this library.
    let name = unsafe { std::ffi::CStr::from_ptr(info.dli_fname) };
    let file = PathBuf::from(std::ffi::OsStr::from_bytes(name.to_bytes()));
    Some(file.with_file_name("libsoftcuda.so"))
}

fn library() -> Option<&'static Library> {
    static LIBRARY: OnceLock<Option<Library>> = OnceLock::new();
    LIBRARY
        .get_or_init(|| {
            let path = path()?;
            let name = CString::new(path.as_os_str().as_bytes()).ok()?;
            // SAFETY: the software driver, whose initialisers have no conditions. Global, so that
            // libraries that look for the driver's name find this one.
            let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
            if handle.is_null() {
                eprintln!(
                    "softcudart: the software driver {} can not be loaded",
                    path.display()
                );
                return None;
            }
            Some(Library(handle))
        })
        .as_ref()
}

/// The address of a driver's function.
pub(crate) fn symbol(name: &std::ffi::CStr) -> Option<usize> {
    let library = library()?;
    // SAFETY: an open library and a string that ends.
    let address = unsafe { libc::dlsym(library.0, name.as_ptr().cast::<c_char>()) };
    (!address.is_null()).then_some(address as usize)
}

/// Loads the driver, with device memory that the host's code can reach, for kernels are that. A program's images do so before
/// `main`: a library that looks for the driver then finds this one.
pub(crate) fn open() -> Outcome {
    static OPENED: OnceLock<bool> = OnceLock::new();
    let is_open = *OPENED.get_or_init(|| {
        let Some(open) = symbol(c"softcuda_open_memory") else {
            return false;
        };
        // SAFETY: the driver's function of that name has this type.
        unsafe { std::mem::transmute::<usize, extern "C" fn()>(open)() };
        true
    });
    if is_open {
        Ok(())
    } else {
        Err(Error::INSUFFICIENT_DRIVER)
    }
}

/// Starts the driver.
pub(crate) fn start() -> Outcome {
    static STARTED: OnceLock<u32> = OnceLock::new();
    let code = *STARTED.get_or_init(|| {
        let started = open().and_then(|()| cuInit(0));
        started.map_or_else(|error| error.0, |()| 0)
    });
    if code == 0 { Ok(()) } else { Err(Error(code)) }
}

macro_rules! driver_functions {
    ($(fn $name:ident($($arg:ident: $ty:ty),* $(,)?);)*) => {$(
        /// The driver's call of that name.
        #[allow(clippy::too_many_arguments)] // the driver's own
        pub(crate) fn $name($($arg: $ty),*) -> Outcome {
            static SYMBOL: OnceLock<Option<usize>> = OnceLock::new();
            let name = const {
                match std::ffi::CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                    Ok(name) => name,
                    Err(_) => c"",
                }
            };
            let address = SYMBOL.get_or_init(|| symbol(name)).ok_or(Error::NOT_SUPPORTED)?;
            // SAFETY: the driver's function of that name has this type; pointers come from the
            // runtime's caller, who vouches for them as the API says, or are to places of ours.
            let code = unsafe {
                std::mem::transmute::<usize, unsafe extern "C" fn($($ty),*) -> u32>(address)($($arg),*)
            };
            if code == 0 { Ok(()) } else { Err(Error(code)) }
        }
    )*};
}

driver_functions! {
    fn cuInit(flags: u32);
    fn cuDriverGetVersion(version: *mut i32);
    fn cuGetErrorString(code: u32, out: *mut *const c_char);
    fn cuDeviceGetCount(count: *mut i32);
    fn cuDeviceGetName(name: *mut c_char, room: i32, device: i32);
    fn cuDeviceGetUuid(uuid: *mut c_void, device: i32);
    fn cuDeviceTotalMem_v2(bytes: *mut usize, device: i32);
    fn cuDeviceGetAttribute(value: *mut i32, attribute: u32, device: i32);
    fn cuDeviceGetP2PAttribute(value: *mut i32, attribute: u32, from: i32, to: i32);
    fn cuDeviceCanAccessPeer(can: *mut i32, device: i32, peer: i32);
    fn cuDeviceGetByPCIBusId(device: *mut i32, id: *const c_char);
    fn cuDeviceGetPCIBusId(id: *mut c_char, room: i32, device: i32);
    fn cuDeviceGetDefaultMemPool(pool: *mut u64, device: i32);
    fn cuDevicePrimaryCtxRetain(context: *mut u64, device: i32);
    fn cuDevicePrimaryCtxRelease_v2(device: i32);
    fn cuCtxGetCurrent(context: *mut u64);
    fn cuCtxSetCurrent(context: u64);
    fn cuCtxGetDevice(device: *mut i32);
    fn cuCtxSynchronize();
    fn cuCtxEnablePeerAccess(context: u64, flags: u32);
    fn cuCtxDisablePeerAccess(context: u64);
    fn cuCtxGetStreamPriorityRange(least: *mut i32, greatest: *mut i32);
    fn cuModuleLoadData(module: *mut u64, image: *const c_void);
    fn cuModuleUnload(module: u64);
    fn cuModuleGetFunction(function: *mut u64, module: u64, name: *const c_char);
    fn cuModuleGetGlobal_v2(address: *mut u64, bytes: *mut usize, module: u64, name: *const c_char);
    fn cuFuncGetAttribute(value: *mut i32, attribute: u32, function: u64);
    fn cuFuncSetAttribute(function: u64, attribute: u32, value: i32);
    fn cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks: *mut i32, function: u64, threads: i32, shared: usize);
    fn cuLaunchKernel(
        function: u64, gx: u32, gy: u32, gz: u32, bx: u32, by: u32, bz: u32, shared: u32, stream: u64,
        arguments: *const *const c_void, extra: *const c_void,
    );
    fn cuLaunchCooperativeKernel(
        function: u64, gx: u32, gy: u32, gz: u32, bx: u32, by: u32, bz: u32, shared: u32, stream: u64,
        arguments: *const *const c_void,
    );
    fn cuMemAlloc_v2(address: *mut u64, bytes: usize);
    fn cuMemAllocPitch_v2(address: *mut u64, pitch: *mut usize, width: usize, height: usize, element: u32);
    fn cuMemFree_v2(address: u64);
    fn cuMemHostAlloc(address: *mut *mut c_void, bytes: usize, flags: u32);
    fn cuMemFreeHost(address: *mut c_void);
    fn cuMemHostRegister_v2(address: *mut c_void, bytes: usize, flags: u32);
    fn cuMemHostUnregister(address: *mut c_void);
    fn cuMemHostGetDevicePointer_v2(address: *mut u64, host: *mut c_void, flags: u32);
    fn cuMemHostGetFlags(flags: *mut u32, host: *mut c_void);
    fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize);
    fn cuMemAllocAsync(address: *mut u64, bytes: usize, stream: u64);
    fn cuMemAllocFromPoolAsync(address: *mut u64, bytes: usize, pool: u64, stream: u64);
    fn cuMemFreeAsync(address: u64, stream: u64);
    fn cuMemPoolSetAttribute(pool: u64, attribute: u32, value: *mut c_void);
    fn cuMemPoolGetAttribute(pool: u64, attribute: u32, value: *mut c_void);
    fn cuMemPoolTrimTo(pool: u64, keep: usize);
    fn cuPointerGetAttribute(value: *mut c_void, attribute: u32, address: u64);
    fn cuIpcGetMemHandle(handle: *mut c_void, address: u64);
    fn cuIpcCloseMemHandle(address: u64);
    fn cuMemcpy(to: u64, from: u64, bytes: usize);
    fn cuMemcpyAsync(to: u64, from: u64, bytes: usize, stream: u64);
    fn cuMemcpyHtoD_v2(to: u64, from: u64, bytes: usize);
    fn cuMemcpyDtoH_v2(to: u64, from: u64, bytes: usize);
    fn cuMemcpyDtoD_v2(to: u64, from: u64, bytes: usize);
    fn cuMemcpyHtoDAsync_v2(to: u64, from: u64, bytes: usize, stream: u64);
    fn cuMemcpyDtoHAsync_v2(to: u64, from: u64, bytes: usize, stream: u64);
    fn cuMemcpyDtoDAsync_v2(to: u64, from: u64, bytes: usize, stream: u64);
    fn cuMemcpyPeer(to: u64, to_context: u64, from: u64, from_context: u64, bytes: usize);
    fn cuMemcpyPeerAsync(to: u64, to_context: u64, from: u64, from_context: u64, bytes: usize, stream: u64);
    fn cuMemcpy2D_v2(copy: *const c_void);
    fn cuMemcpy2DAsync_v2(copy: *const c_void, stream: u64);
    fn cuMemsetD8_v2(at: u64, value: u8, count: usize);
    fn cuMemsetD8Async(at: u64, value: u8, count: usize, stream: u64);
    fn cuMemsetD2D8_v2(at: u64, pitch: usize, value: u8, width: usize, height: usize);
    fn cuMemsetD2D8Async(at: u64, pitch: usize, value: u8, width: usize, height: usize, stream: u64);
    fn cuStreamCreateWithPriority(stream: *mut u64, flags: u32, priority: i32);
    fn cuStreamDestroy_v2(stream: u64);
    fn cuStreamSynchronize(stream: u64);
    fn cuStreamQuery(stream: u64);
    fn cuStreamWaitEvent(stream: u64, event: u64, flags: u32);
    fn cuStreamGetPriority(stream: u64, priority: *mut i32);
    fn cuStreamGetFlags(stream: u64, flags: *mut u32);
    fn cuStreamGetId(stream: u64, id: *mut u64);
    fn cuStreamGetDevice(stream: u64, device: *mut i32);
    fn cuStreamAddCallback(stream: u64, function: *const c_void, data: *mut c_void, flags: u32);
    fn cuLaunchHostFunc(stream: u64, function: *const c_void, data: *mut c_void);
    fn cuStreamBeginCapture_v2(stream: u64, mode: u32);
    fn cuStreamEndCapture(stream: u64, graph: *mut u64);
    fn cuStreamIsCapturing(stream: u64, status: *mut u32);
    fn cuThreadExchangeStreamCaptureMode(mode: *mut u32);
    fn cuEventCreate(event: *mut u64, flags: u32);
    fn cuEventDestroy_v2(event: u64);
    fn cuEventRecordWithFlags(event: u64, stream: u64, flags: u32);
    fn cuEventQuery(event: u64);
    fn cuEventSynchronize(event: u64);
    fn cuEventElapsedTime(milliseconds: *mut f32, start: u64, end: u64);
    fn cuMemcpy3D_v2(copy: *const c_void);
    fn cuMemcpy3DAsync_v2(copy: *const c_void, stream: u64);
    fn cuGraphCreate(graph: *mut u64, flags: u32);
    fn cuGraphClone(graph: *mut u64, original: u64);
    fn cuGraphNodeFindInClone(node: *mut u64, original: u64, clone: u64);
    fn cuGraphAddDependencies(graph: u64, from: *const u64, to: *const u64, count: usize);
    fn cuGraphDestroyNode(node: u64);
    fn cuGraphAddKernelNode(node: *mut u64, graph: u64, after: *const u64, count: usize, launch: *const c_void);
    fn cuGraphAddMemcpyNode(node: *mut u64, graph: u64, after: *const u64, count: usize, copy: *const c_void, context: u64);
    fn cuGraphAddMemsetNode(node: *mut u64, graph: u64, after: *const u64, count: usize, fill: *const c_void, context: u64);
    fn cuGraphAddHostNode(node: *mut u64, graph: u64, after: *const u64, count: usize, call: *const c_void);
    fn cuGraphAddEmptyNode(node: *mut u64, graph: u64, after: *const u64, count: usize);
    fn cuGraphAddEventRecordNode(node: *mut u64, graph: u64, after: *const u64, count: usize, event: u64);
    fn cuGraphAddEventWaitNode(node: *mut u64, graph: u64, after: *const u64, count: usize, event: u64);
    fn cuGraphAddChildGraphNode(node: *mut u64, graph: u64, after: *const u64, count: usize, child: u64);
    fn cuGraphKernelNodeSetParams(node: u64, launch: *const c_void);
    fn cuGraphExecKernelNodeSetParams(executable: u64, node: u64, launch: *const c_void);
    fn cuGraphExecMemcpyNodeSetParams(executable: u64, node: u64, copy: *const c_void, context: u64);
    fn cuGraphExecMemsetNodeSetParams(executable: u64, node: u64, fill: *const c_void, context: u64);
    fn cuGraphExecHostNodeSetParams(executable: u64, node: u64, call: *const c_void);
    fn cuGraphDestroy(graph: u64);
    fn cuGraphGetNodes(graph: u64, nodes: *mut u64, count: *mut usize);
    fn cuGraphInstantiateWithFlags(executable: *mut u64, graph: u64, flags: u64);
    fn cuGraphExecDestroy(executable: u64);
    fn cuGraphLaunch(executable: u64, stream: u64);
    fn cuGraphUpload(executable: u64, stream: u64);
}
