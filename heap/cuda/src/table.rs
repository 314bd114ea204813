//! The driver's calls by name, looked up once, with result codes that may have any value.
//!
//! Handles are plain integers and pointers here. Structures are cudarc's, which are checked against
//! the driver's header; its functions and its `CUresult` (an enum: a code of a newer driver would be
//! undefined behaviour) are not used.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

use cudarc::driver::sys;

use crate::driver::{Feature, Version};
use crate::error::{Error, Result};

/// The result code of a driver call.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Code(pub(crate) u32);

impl Code {
    pub(crate) const SUCCESS: Code = Code(0);
    pub(crate) const INVALID_VALUE: Code = Code(1);
    pub(crate) const OUT_OF_MEMORY: Code = Code(2);
    pub(crate) const NO_DEVICE: Code = Code(100);
    pub(crate) const NOT_READY: Code = Code(600);
    pub(crate) const PEER_ACCESS_ALREADY_ENABLED: Code = Code(704);
    pub(crate) const NOT_PERMITTED: Code = Code(800);
    pub(crate) const NOT_SUPPORTED: Code = Code(801);
}

/// A device, as the driver numbers it in this process.
pub(crate) type RawDevice = c_int;
/// A context, stream, event, module, function or graph.
pub(crate) type Raw = *mut c_void;
/// An address in the one space of host and device memory.
pub(crate) type RawPtr = u64;
/// An allocation that can be mapped.
pub(crate) type RawAllocation = u64;

/// A callback of the driver's.
pub(crate) type HostFunction = unsafe extern "C" fn(*mut c_void);

/// A handle of legacy IPC, passed by value.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct RawIpc(pub(crate) [u8; 64]);

const _: () = {
    assert!(size_of::<RawIpc>() == size_of::<sys::CUipcMemHandle>());
    assert!(size_of::<sys::CUmemAllocationProp>() == 32);
    assert!(size_of::<sys::CUmemAccessDesc>() == 12);
    assert!(size_of::<sys::CUDA_MEMCPY2D>() == 128);
};

/// A library that was opened, and how it was named.
pub(crate) struct Library {
    pub(crate) handle: libloading::os::unix::Library,
    pub(crate) name: String,
}

impl Library {
    /// The address of a function; none if the library hasn't it.
    ///
    /// # Safety
    ///
    /// `F` is the type of a function pointer, and the one that the library has under that name.
    unsafe fn find<F: Copy>(&self, name: &CStr) -> Option<F> {
        // SAFETY: the type is the caller's promise; libloading checks that it is pointer-sized.
        let symbol = unsafe { self.handle.get::<F>(name.to_bytes_with_nul()) };
        symbol.ok().map(|found| *found)
    }

    /// The driver's version, before any other call.
    pub(crate) fn version(&self) -> Result<Version> {
        type Get = unsafe extern "C" fn(*mut c_int) -> Code;
        // SAFETY: cuda.h declares cuDriverGetVersion so.
        let get = unsafe { self.find::<Get>(c"cuDriverGetVersion") };
        let get = get.ok_or_else(|| Error::NotADriver {
            library: self.name.clone(),
        })?;
        let mut version = 0;
        // SAFETY: the pointer is to a live integer; this call needs no cuInit.
        let code = unsafe { get(&raw mut version) };
        if code != Code::SUCCESS {
            return Err(Error::call("cuDriverGetVersion", code, None, None));
        }
        Ok(Version::from_driver(version))
    }
}

macro_rules! table {
    (
        required { $( $name:ident ( $($type:ty),* $(,)? ); )* }
        optional { $( $feature:ident: $option:ident ( $($kind:ty),* $(,)? ); )* }
    ) => {
        /// The driver's calls.
        #[allow(non_snake_case)]
        pub(crate) struct Table {
            $( pub(crate) $name: unsafe extern "C" fn($($type),*) -> Code, )*
            $( pub(crate) $option: Option<unsafe extern "C" fn($($kind),*) -> Code>, )*
        }

        impl Table {
            /// Looks every call up. A required one that is missing is an error.
            pub(crate) fn load(library: &Library, version: Version) -> Result<Self> {
                let missing = |symbol| Error::MissingCall {
                    symbol,
                    library: library.name.clone(),
                    version,
                };
                Ok(Table {
                    $( $name: {
                        const NAME: &CStr = name(concat!(stringify!($name), "\0"));
                        // SAFETY: cuda.h declares this call with these types.
                        unsafe { library.find(NAME) }.ok_or_else(|| missing(stringify!($name)))?
                    }, )*
                    $( $option: {
                        const NAME: &CStr = name(concat!(stringify!($option), "\0"));
                        // SAFETY: cuda.h declares this call with these types.
                        unsafe { library.find(NAME) }
                    }, )*
                })
            }

            /// Whether all optional calls of a feature are there.
            pub(crate) fn has(&self, feature: Feature) -> bool {
                let mut all = true;
                $( if feature == Feature::$feature { all &= self.$option.is_some(); } )*
                all
            }
        }
    };
}

/// A name for the loader.
const fn name(text: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(name) => name,
        Err(_) => c"",
    }
}

table! {
    required {
        cuInit(c_uint);
        cuGetErrorName(Code, *mut *const c_char);
        cuGetErrorString(Code, *mut *const c_char);
        cuDeviceGetCount(*mut c_int);
        cuDeviceGet(*mut RawDevice, c_int);
        cuDeviceGetName(*mut c_char, c_int, RawDevice);
        cuDeviceGetUuid_v2(*mut [u8; 16], RawDevice);
        cuDeviceTotalMem_v2(*mut usize, RawDevice);
        cuDeviceGetAttribute(*mut c_int, c_int, RawDevice);
        cuDeviceCanAccessPeer(*mut c_int, RawDevice, RawDevice);
        cuDeviceGetP2PAttribute(*mut c_int, c_int, RawDevice, RawDevice);
        cuDevicePrimaryCtxRetain(*mut Raw, RawDevice);
        cuDevicePrimaryCtxRelease_v2(RawDevice);
        cuCtxGetCurrent(*mut Raw);
        cuCtxGetDevice(*mut RawDevice);
        cuCtxSetCurrent(Raw);
        cuCtxSynchronize();
        cuCtxEnablePeerAccess(Raw, c_uint);
        cuMemGetInfo_v2(*mut usize, *mut usize);
        cuMemAlloc_v2(*mut RawPtr, usize);
        cuMemFree_v2(RawPtr);
        cuMemHostAlloc(*mut *mut c_void, usize, c_uint);
        cuMemFreeHost(*mut c_void);
        cuMemHostRegister_v2(*mut c_void, usize, c_uint);
        cuMemHostUnregister(*mut c_void);
        cuMemHostGetDevicePointer_v2(*mut RawPtr, *mut c_void, c_uint);
        cuPointerGetAttribute(*mut c_void, c_int, RawPtr);
        cuMemcpyAsync(RawPtr, RawPtr, usize, Raw);
        cuMemcpy2DAsync_v2(*const sys::CUDA_MEMCPY2D, Raw);
        cuMemsetD8Async(RawPtr, u8, usize, Raw);
        cuStreamCreateWithPriority(*mut Raw, c_uint, c_int);
        cuStreamDestroy_v2(Raw);
        cuStreamQuery(Raw);
        cuStreamSynchronize(Raw);
        cuStreamWaitEvent(Raw, Raw, c_uint);
        cuStreamIsCapturing(Raw, *mut c_int);
        cuLaunchHostFunc(Raw, HostFunction, *mut c_void);
        cuEventCreate(*mut Raw, c_uint);
        cuEventRecord(Raw, Raw);
        cuEventQuery(Raw);
        cuEventDestroy_v2(Raw);
        cuEventElapsedTime(*mut f32, Raw, Raw);
        cuModuleLoadDataEx(*mut Raw, *const c_void, c_uint, *mut c_int, *mut *mut c_void);
        cuModuleUnload(Raw);
        cuModuleGetFunction(*mut Raw, Raw, *const c_char);
        cuModuleGetGlobal_v2(*mut RawPtr, *mut usize, Raw, *const c_char);
        cuFuncGetAttribute(*mut c_int, c_int, Raw);
        cuLaunchKernel(
            Raw, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Raw, *mut *mut c_void,
            *mut *mut c_void,
        );
    }
    optional {
        Vmm: cuMemGetAllocationGranularity(*mut usize, *const sys::CUmemAllocationProp, c_int);
        Vmm: cuMemAddressReserve(*mut RawPtr, usize, usize, RawPtr, u64);
        Vmm: cuMemAddressFree(RawPtr, usize);
        Vmm: cuMemCreate(*mut RawAllocation, usize, *const sys::CUmemAllocationProp, u64);
        Vmm: cuMemRelease(RawAllocation);
        Vmm: cuMemMap(RawPtr, usize, usize, RawAllocation, u64);
        Vmm: cuMemUnmap(RawPtr, usize);
        Vmm: cuMemSetAccess(RawPtr, usize, *const sys::CUmemAccessDesc, usize);
        Vmm: cuMemExportToShareableHandle(*mut c_void, RawAllocation, c_int, u64);
        Vmm: cuMemImportFromShareableHandle(*mut RawAllocation, *mut c_void, c_int);
        Ipc: cuIpcGetMemHandle(*mut RawIpc, RawPtr);
        Ipc: cuIpcOpenMemHandle_v2(*mut RawPtr, RawIpc, c_uint);
        Ipc: cuIpcCloseMemHandle(RawPtr);
        StreamMemops: cuStreamWriteValue32_v2(Raw, RawPtr, u32, c_uint);
        StreamMemops: cuStreamWriteValue64_v2(Raw, RawPtr, u64, c_uint);
        StreamMemops: cuStreamWaitValue32_v2(Raw, RawPtr, u32, c_uint);
        StreamMemops: cuStreamWaitValue64_v2(Raw, RawPtr, u64, c_uint);
        StreamContext: cuStreamGetCtx(Raw, *mut Raw);
        Libraries: cuLibraryGetGlobal(*mut RawPtr, *mut usize, Raw, *const c_char);
        StreamPriority: cuCtxGetStreamPriorityRange(*mut c_int, *mut c_int);
        CaptureMode: cuThreadExchangeStreamCaptureMode(*mut c_int);
        Graphs: cuStreamBeginCapture_v2(Raw, c_int);
        Graphs: cuStreamEndCapture(Raw, *mut Raw);
        Graphs: cuGraphInstantiateWithFlags(*mut Raw, Raw, u64);
        Graphs: cuGraphLaunch(Raw, Raw);
        Graphs: cuGraphExecDestroy(Raw);
        Graphs: cuGraphDestroy(Raw);
        Preload: cuFuncLoad(Raw);
        ParameterInfo: cuFuncGetParamInfo(Raw, usize, *mut usize, *mut usize);
        CooperativeLaunch: cuLaunchCooperativeKernel(
            Raw, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Raw, *mut *mut c_void,
        );
        DmaBuf: cuMemGetHandleForAddressRange(*mut c_void, RawPtr, usize, c_int, u64);
        FlushRdmaWrites: cuFlushGPUDirectRDMAWrites(c_int, c_int);
        SyncMemops: cuPointerSetAttribute(*const c_void, c_int, RawPtr);
    }
}

/// Calls the driver in the name of a context (or of whatever else has `driver()` and `ordinal()`),
/// and makes an [`Error`] of any code but success. The caller wraps it in `unsafe` and says why.
macro_rules! call {
    ($on:expr, $name:ident ( $($argument:expr),* $(,)? )) => {{
        let on = &$on;
        $crate::table::told!(on, $name, (on.driver().table().$name)($($argument),*))
    }};
}

/// An [`Error`] of any code but success.
macro_rules! told {
    ($on:ident, $name:ident, $code:expr) => {
        match $code {
            $crate::table::Code::SUCCESS => Ok(()),
            code => Err($crate::error::Error::call(
                stringify!($name),
                code,
                Some($on.driver().table()),
                Some($on.ordinal()),
            )),
        }
    };
}

/// As `call!`, for a call that a driver may lack.
macro_rules! call_optional {
    ($on:expr, $name:ident ( $($argument:expr),* $(,)? )) => {{
        let on = &$on;
        match on.driver().table().$name {
            Some(function) => $crate::table::told!(on, $name, function($($argument),*)),
            None => Err($crate::error::Error::MissingCall {
                symbol: stringify!($name),
                library: on.driver().library().to_owned(),
                version: on.driver().version(),
            }),
        }
    }};
}

pub(crate) use {call, call_optional, told};
