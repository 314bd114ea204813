//! The symmetric heap on a GPU: extents that are committed as the heap grows and never move.

use std::ops::Range;
use std::os::fd::OwnedFd;

use crate::context::Context;
use crate::driver::Feature;
use crate::error::{Error, Result};
use crate::pointer::DevicePtr;
use crate::table::{RawIpc, RawPtr, call, call_optional};
use crate::vmm::{
    Allocation, HANDLE_BYTES, HandleTypes, LEAST_GRANULE, Mapped, Reservation, granularity,
};

/// The kind of a segment's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentKind {
    /// Addresses are reserved for the whole limit, memory comes with growth, and each extent is
    /// passed on as a descriptor (and as a fabric handle, where the GPU has them).
    Vmm,
    /// All memory is allocated at once and passed on by legacy CUDA IPC.
    Legacy,
}

/// How to make a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentOptions {
    /// Growth comes in multiples of this many bytes. Rounded up to the driver's granularity, 2 MiB
    /// at the least.
    pub extent: usize,
    /// A kind to insist on. None takes VMM where it can be passed on, else legacy memory.
    pub kind: Option<SegmentKind>,
    /// Whether to export fabric handles too, where GPU and machine can.
    pub fabric: bool,
}

impl Default for SegmentOptions {
    fn default() -> Self {
        SegmentOptions {
            extent: LEAST_GRANULE,
            kind: None,
            fabric: true,
        }
    }
}

/// The handles by which a peer maps an extent: by the first of these that both have.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Handles {
    /// For a process of this host, passed over a Unix socket.
    pub fd: Option<OwnedFd>,
    /// For a process of any host of the NVLink domain.
    pub fabric: Option<[u8; HANDLE_BYTES]>,
    /// For another process of this host (not for this one), legacy IPC.
    pub ipc: Option<[u8; HANDLE_BYTES]>,
    /// Why there is none of them, and what would mend it: an [`Error::NotShared`] in words.
    pub refused: Option<String>,
}

/// A piece of a segment that was committed at once.
#[derive(Debug)]
#[non_exhaustive]
pub struct Extent {
    /// Bytes from the segment's start.
    pub offset: usize,
    /// Its length in bytes.
    pub len: usize,
    /// How a peer can map it.
    pub handles: Handles,
}

/// A GPU's symmetric memory: a range of addresses as long as the heap's limit, of which the first
/// [`committed`](Self::committed) bytes are memory. Its bytes are not zeroed.
///
/// The addresses stay as they are until it is dropped. Dropping or [truncating](Self::truncate) it
/// takes memory away under whatever still uses it: who does so has first seen to it that neither
/// this process's streams nor a peer do. (A GPU's access to what is gone ends its context with an
/// error; host memory is never at risk.) Either may wait for the GPU: not while its work waits for
/// this process.
#[derive(Debug)]
pub struct Segment {
    extents: Vec<Extent>,
    memory: Memory,
    context: Context,
    limit: usize,
    granule: usize,
}

#[derive(Debug)]
enum Memory {
    /// Pieces, one to an extent; they go before the addresses do.
    Vmm {
        pieces: Vec<Mapped>,
        reservation: Reservation,
        types: HandleTypes,
    },
    Legacy(Legacy),
}

impl Segment {
    /// A segment of at most `limit` bytes (rounded up) on a context's GPU, with nothing committed,
    /// as [`SegmentOptions::default`] says.
    pub fn new(context: &Context, limit: usize) -> Result<Self> {
        Self::with_options(context, limit, &SegmentOptions::default())
    }

    /// As [`new`](Self::new), by choice.
    #[doc(alias = "cuMemAddressReserve")]
    pub fn with_options(context: &Context, limit: usize, options: &SegmentOptions) -> Result<Self> {
        if limit == 0 {
            return Err(bad_limit("it would be empty; set a higher limit".into()));
        }
        let device = context.device();
        let fabric = options.fabric && device.has_fabric();
        let can_share = device.has_posix_fd() || fabric;
        let can_ipc = context.driver().has(Feature::Ipc);
        let kind = options
            .kind
            .unwrap_or(if device.has_vmm() && (can_share || !can_ipc) {
                SegmentKind::Vmm
            } else {
                SegmentKind::Legacy
            });
        match kind {
            SegmentKind::Vmm if !device.has_vmm() => Err(Error::Unsupported {
                device: device.ordinal(),
                what: "virtual memory management",
                mend: "use a legacy segment, or a driver and GPU that have it",
            }),
            SegmentKind::Vmm => Self::new_vmm(context, limit, options, fabric),
            SegmentKind::Legacy => Self::new_legacy(context, limit),
        }
    }

    fn new_vmm(
        context: &Context,
        limit: usize,
        options: &SegmentOptions,
        fabric: bool,
    ) -> Result<Self> {
        let types = handle_types(context, fabric)?;
        let granularity = granularity(context, types)?;
        let limit = round_up(limit, granularity)?;
        let granule = round_up(options.extent.max(1), granularity)?;
        let reservation = Reservation::new(context, limit, granularity)?;
        Ok(Segment {
            extents: Vec::new(),
            memory: Memory::Vmm {
                pieces: Vec::new(),
                reservation,
                types,
            },
            context: context.clone(),
            limit,
            granule,
        })
    }

    fn new_legacy(context: &Context, limit: usize) -> Result<Self> {
        // Whole blocks of the driver's, so that nothing else of this process is in what peers map.
        let limit = round_up(limit, LEAST_GRANULE)?;
        let memory = Legacy::allocate(context, limit)?;
        Ok(Segment {
            extents: Vec::new(),
            memory: Memory::Legacy(memory),
            context: context.clone(),
            limit,
            granule: limit,
        })
    }

    /// How its memory is had.
    #[must_use]
    pub fn kind(&self) -> SegmentKind {
        match self.memory {
            Memory::Vmm { .. } => SegmentKind::Vmm,
            Memory::Legacy(_) => SegmentKind::Legacy,
        }
    }

    /// Its first address.
    #[must_use]
    pub fn base(&self) -> DevicePtr {
        match &self.memory {
            Memory::Vmm { reservation, .. } => reservation.base(),
            Memory::Legacy(memory) => DevicePtr::from_raw(memory.base),
        }
    }

    /// The most bytes that it can have.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// How many bytes from its start are memory.
    #[must_use]
    pub fn committed(&self) -> usize {
        self.extents.last().map_or(0, |last| last.offset + last.len)
    }

    /// Extents are multiples of this many bytes, but for the last before the limit.
    #[must_use]
    pub fn granule(&self) -> usize {
        self.granule
    }

    /// Its context.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// The committed extents, in order of offset, without gaps.
    #[must_use]
    pub fn extents(&self) -> &[Extent] {
        &self.extents
    }

    /// Makes at least the first `bytes` bytes memory, and gives which [`extents`](Self::extents) are
    /// new: one, or none if there was enough. On an error nothing has changed.
    #[doc(alias = "cuMemCreate")]
    #[doc(alias = "cuMemMap")]
    pub fn grow_to(&mut self, bytes: usize) -> Result<Range<usize>> {
        let (committed, count) = (self.committed(), self.extents.len());
        if bytes <= committed {
            return Ok(count..count);
        }
        if bytes > self.limit {
            return Err(Error::BeyondLimit {
                wanted: bytes,
                limit: self.limit,
            });
        }
        let len = round_up(bytes - committed, self.granule)?.min(self.limit - committed);
        let handles = match &mut self.memory {
            Memory::Vmm {
                pieces,
                reservation,
                types,
            } => {
                let allocation = Allocation::create(&self.context, len, *types)?;
                let piece = Mapped::new(reservation, committed, len, allocation)?;
                let handles = export(&self.context, piece.allocation(), *types)?;
                pieces.push(piece);
                handles
            }
            Memory::Legacy(memory) => memory.handles()?,
        };
        self.extents.push(Extent {
            offset: committed,
            len,
            handles,
        });
        Ok(count..count + 1)
    }

    /// Keeps the first `extents` extents and gives the others' memory back: the way back from a
    /// growth that not every PE could follow. More than there are is all of them.
    #[doc(alias = "cuMemUnmap")]
    pub fn truncate(&mut self, extents: usize) {
        self.extents.truncate(extents);
        if let Memory::Vmm { pieces, .. } = &mut self.memory {
            pieces.truncate(extents);
        }
    }
}

/// The ways in which memory of this GPU can be exported. Fabric handles are tried out: a GPU has
/// them while the machine forbids them.
fn handle_types(context: &Context, fabric: bool) -> Result<HandleTypes> {
    let fd = if context.device().has_posix_fd() {
        HandleTypes::FD
    } else {
        HandleTypes::NONE
    };
    if !fabric {
        return Ok(fd);
    }
    let both = fd.and(HandleTypes::FABRIC);
    let tried = granularity(context, both)
        .and_then(|bytes| Allocation::create(context, bytes, both)?.export_fabric());
    match tried {
        Ok(_) => Ok(both),
        Err(error @ Error::OutOfMemory { .. }) => Err(error),
        Err(error) => {
            tracing::debug!(%error, "no fabric handles (is IMEX set up?)");
            Ok(fd)
        }
    }
}

/// Every handle that an allocation was made for. That one is refused is no error, another may do.
fn export(context: &Context, allocation: &Allocation, types: HandleTypes) -> Result<Handles> {
    let mut handles = Handles::default();
    let mut refused = Vec::new();
    if types.has(HandleTypes::FD) {
        match allocation.export_fd() {
            Ok(descriptor) => handles.fd = Some(descriptor),
            Err(error) if error.is_unsupported() => refused.push(error.to_string()),
            Err(error) => return Err(error),
        }
    }
    if types.has(HandleTypes::FABRIC) {
        match allocation.export_fabric() {
            Ok(bytes) => handles.fabric = Some(bytes),
            Err(error) => refused.push(error.to_string()),
        }
    }
    if handles.fd.is_none() && handles.fabric.is_none() {
        if refused.is_empty() {
            refused.push("it has neither descriptors nor fabric handles".to_owned());
        }
        handles.refused = Some(not_shared(context, refused.join("; ")));
    }
    Ok(handles)
}

fn not_shared(context: &Context, why: String) -> String {
    let device = context.ordinal();
    Error::NotShared { device, why }.to_string()
}

/// Memory by cuMemAlloc.
#[derive(Debug)]
struct Legacy {
    context: Context,
    base: RawPtr,
}

impl Legacy {
    fn allocate(context: &Context, len: usize) -> Result<Self> {
        let _current = context.enter()?;
        let mut base: RawPtr = 0;
        // SAFETY: the pointer is to a live integer.
        unsafe { call!(context, cuMemAlloc_v2(&raw mut base, len)) }
            .map_err(|error| context.explain("cuMemAlloc", len, error))?;
        Ok(Legacy {
            context: context.clone(),
            base,
        })
    }

    fn handles(&self) -> Result<Handles> {
        let _current = self.context.enter()?;
        let mut handle = RawIpc([0; HANDLE_BYTES]);
        // SAFETY: the pointer is to a whole handle, the address is that of an allocation.
        let answer =
            unsafe { call_optional!(self.context, cuIpcGetMemHandle(&raw mut handle, self.base)) };
        match answer {
            Ok(()) => Ok(Handles {
                ipc: Some(handle.0),
                ..Handles::default()
            }),
            Err(error) if error.is_unsupported() => Ok(Handles {
                refused: Some(not_shared(&self.context, error.to_string())),
                ..Handles::default()
            }),
            Err(error) => Err(error),
        }
    }
}

impl Drop for Legacy {
    fn drop(&mut self) {
        // SAFETY: it was allocated once and is freed once; that nothing uses it is the rule of who
        // drops the segment.
        let answer = self
            .context
            .enter()
            .and_then(|_current| unsafe { call!(self.context, cuMemFree_v2(self.base)) });
        if let Err(error) = answer {
            tracing::debug!(%error, "GPU memory was not freed");
        }
    }
}

fn round_up(bytes: usize, multiple: usize) -> Result<usize> {
    bytes
        .checked_next_multiple_of(multiple)
        .ok_or_else(|| bad_limit(format!("{bytes} bytes don't fit the address space")))
}

fn bad_limit(why: String) -> Error {
    Error::Invalid {
        what: "making a GPU heap",
        why,
    }
}
