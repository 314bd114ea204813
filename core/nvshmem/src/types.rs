//! C's types of NVSHMEM's interface, as the generated headers declare them.

use std::ffi::{c_char, c_void};

use bytemuck::{Pod, Zeroable};

pub use oxshmem::Fold;

/// An element of a typed call.
pub trait Element: Pod {}

impl<T: Pod> Element for T {}

/// A `cudaStream_t`.
pub type StreamHandle = *mut c_void;

/// A function of NVIDIA's device library, which nothing calls here.
pub type DeviceLibraryCallback =
    Option<unsafe extern "C" fn(*mut *mut c_void, *mut *mut c_void) -> i32>;

/// A `dim3`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Dim3 {
    pub x: u32,
    pub y: u32,
    pub z: u32,
}

/// The version of a device library.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Version {
    pub major: i32,
    pub minor: i32,
    pub patch: i32,
}

/// The version of a structure: a number, and its bytes.
const fn version<T>(number: i32) -> i32 {
    (number << 16) + size_of::<T>() as i32
}

/// The bytes of an id after its version.
pub const ID_BYTES: usize = 124;

/// An id to start by.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct UniqueId {
    pub version: i32,
    pub internal: [u8; ID_BYTES],
}

impl UniqueId {
    pub const VERSION: i32 = version::<UniqueId>(1);
}

/// The part of the attributes for a start by a unique id.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct UniqueIdArgs {
    pub version: i32,
    pub id: *mut UniqueId,
    pub myrank: i32,
    pub nranks: i32,
}

/// The arguments of a start.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct InitArgs {
    pub version: i32,
    pub uid_args: UniqueIdArgs,
    pub cuda_device_id: i32,
    pub content: [u8; 92],
}

/// The attributes of a start.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct InitAttr {
    pub version: i32,
    pub mpi_comm: *mut c_void,
    pub args: InitArgs,
}

impl InitAttr {
    pub const VERSION: i32 = version::<InitAttr>(2);
    /// Attributes that say nothing.
    pub const EMPTY: InitAttr = InitAttr {
        version: InitAttr::VERSION,
        mpi_comm: std::ptr::null_mut(),
        args: InitArgs {
            version: version::<InitArgs>(2),
            uid_args: UniqueIdArgs {
                version: version::<UniqueIdArgs>(1),
                id: std::ptr::null_mut(),
                myrank: 0,
                nranks: 0,
            },
            cuda_device_id: NO_DEVICE,
            content: [0; 92],
        },
    };
}

/// The number of a GPU where attributes name none.
pub const NO_DEVICE: i32 = -1;

/// The configuration of a team.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TeamConfig {
    pub version: i32,
    pub num_contexts: i32,
    pub uniqueid: u64,
    pub padding: [c_char; 48],
}

impl TeamConfig {
    pub const VERSION: i32 = version::<TeamConfig>(2);
}

/// The attributes of a region.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RegionAttrs {
    pub hints: u32,
    pub reserved: [c_char; 60],
}

/// A `cudaLaunchConfig_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LaunchAttr {
    pub grid: Dim3,
    pub block: Dim3,
    pub shared_bytes: usize,
    pub stream: StreamHandle,
    pub attributes: *mut c_void,
    pub count: u32,
}

const _: () = {
    assert!(size_of::<UniqueId>() == 128);
    assert!(size_of::<UniqueIdArgs>() == 24);
    assert!(size_of::<InitArgs>() == 128);
    assert!(size_of::<InitAttr>() == 144);
    assert!(size_of::<TeamConfig>() == 64);
    assert!(size_of::<RegionAttrs>() == 64);
};
