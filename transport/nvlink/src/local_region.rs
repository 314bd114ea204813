//! Memory outside the heap as the local buffer of operations, where this PE's GPU accesses it in place.

use oxshmem_cuda::pointer::{Attributes, Memory, attributes};
use oxshmem_cuda::{Context, DevicePtr};
use oxshmem_transport::{Error, LocalKey, LocalRegion, MemoryKind, Result};

use crate::driver_error::driver_error;
use crate::limits::NAME;

/// The key of memory that a GPU accesses in place. Memory is named by its address; a key says only how it is
/// used.
pub(crate) const ON_GPU: LocalKey = LocalKey(0);
/// The key of page-locked host memory, of which a short source is copied when it is posted.
pub(crate) const PINNED: LocalKey = LocalKey(1);

/// Memory that the GPU was found to access. Nothing was registered, so a drop ends nothing.
#[derive(Debug)]
pub(crate) struct NvlinkLocalRegion(LocalKey);

impl NvlinkLocalRegion {
    /// Accepts GPU, managed or page-locked memory, all of it of one kind, that the context's kernels have at the
    /// given address.
    pub(crate) fn new(context: &Context, addr: *mut u8, len: usize) -> Result<NvlinkLocalRegion> {
        let first = DevicePtr::from_host(addr);
        let Some(end) = first.as_raw().checked_add(len as u64) else {
            return Err(refused(MemoryKind::Cuda, "its range wraps around".into()));
        };
        let mut at = first;
        let mut key = None;
        loop {
            let found = attributes(context, at);
            let found = found.map_err(|error| driver_error("looking at an address", &error))?;
            let this = of(context, at, &found)?;
            if key.is_some_and(|key| key != this) {
                let why = "part of it is host memory, part is not".into();
                return Err(refused(MemoryKind::Cuda, why));
            }
            key = Some(this);
            // Several mappings may be adjacent. If the driver gives no end, there is only one.
            let next = match found.range {
                Some((start, bytes)) => start.as_raw().saturating_add(bytes as u64),
                None => end,
            };
            if next >= end || next <= at.as_raw() {
                return Ok(NvlinkLocalRegion(this));
            }
            at = DevicePtr::from_raw(next);
        }
    }
}

/// The key for memory at one address.
fn of(context: &Context, at: DevicePtr, found: &Attributes) -> Result<LocalKey> {
    let (kind, key) = match found.memory {
        // Locking it here could wait for the GPU's work, which may wait for this PE.
        Memory::Unregistered => {
            return Err(Error::Unsupported {
                transport: NAME,
                what:
                    "host memory that is not page-locked (by cuMemHostAlloc or cuMemHostRegister) \
                       as a registered near side"
                        .into(),
            });
        }
        Memory::Host => (MemoryKind::Host, PINNED),
        _ => (MemoryKind::Cuda, ON_GPU),
    };
    if found.reached == Some(at) {
        return Ok(key);
    }
    let mine = context.device().ordinal();
    let whose = match found.device {
        Some(gpu) if gpu != mine => format!("it is GPU {gpu}'s, which"),
        _ => "it belongs to another context, or is mapped elsewhere for GPUs, and".to_owned(),
    };
    let why =
        format!("{whose} the kernels of this PE's GPU {mine} do not reach; allocate it there");
    Err(refused(kind, why))
}

fn refused(kind: MemoryKind, why: String) -> Error {
    Error::Memory {
        transport: NAME,
        kind,
        why,
    }
}

impl LocalRegion for NvlinkLocalRegion {
    fn key(&self) -> LocalKey {
        self.0
    }
}
