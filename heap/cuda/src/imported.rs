//! A peer's heap, mapped for this process's GPU.

use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;

use crate::context::Context;
use crate::error::{Error, Result};
use crate::pointer::DevicePtr;
use crate::table::{RawIpc, RawPtr, call_optional};
use crate::vmm::{Allocation, HANDLE_BYTES, HandleTypes, Mapped, Reservation, granularity};

/// The flag with which a legacy handle is opened: peer access to its GPU is enabled at first use.
const LAZY_ENABLE_PEER_ACCESS: u32 =
    cudarc::driver::sys::CUipcMem_flags_enum::CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS as u32;

/// A handle of a peer's extent: one of its [`Handles`](crate::Handles).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Import<'a> {
    /// A descriptor. It may be closed after the call.
    Fd(BorrowedFd<'a>),
    /// A fabric handle.
    Fabric(&'a [u8; HANDLE_BYTES]),
    /// A handle of legacy IPC, from another process.
    Ipc(&'a [u8; HANDLE_BYTES]),
}

/// A peer's [`Segment`](crate::Segment), mapped for this context's GPU, extent by extent. Unmapped
/// when dropped; the rule about work that still uses it is the segment's.
///
/// The memory stays as long as this does, also when the peer has died (VMM; under legacy IPC it goes
/// with the peer, who must not give it back before this is dropped).
#[derive(Debug)]
pub struct Imported {
    memory: Memory,
    context: Context,
    limit: usize,
}

#[derive(Debug)]
enum Memory {
    /// Nothing has come yet.
    None,
    /// Pieces by their offset; they go before the addresses do.
    Vmm {
        pieces: BTreeMap<usize, Mapped>,
        reservation: Reservation,
        granule: usize,
    },
    Ipc {
        opened: Opened,
        offset: usize,
        len: usize,
    },
}

impl Imported {
    /// A place for a peer's segment of at most `limit` bytes, as the peer says its
    /// [`limit`](crate::Segment::limit) is.
    pub fn new(context: &Context, limit: usize) -> Result<Self> {
        if limit == 0 {
            return Err(bad("its limit is 0 bytes".into()));
        }
        Ok(Imported {
            memory: Memory::None,
            context: context.clone(),
            limit,
        })
    }

    /// Maps an extent that the peer committed, and gives its address. Extents come in any order, but
    /// don't overlap. On an error nothing has changed.
    #[doc(alias = "cuMemImportFromShareableHandle")]
    #[doc(alias = "cuIpcOpenMemHandle")]
    pub fn add(&mut self, offset: usize, len: usize, handle: Import<'_>) -> Result<DevicePtr> {
        let end = offset.checked_add(len);
        if len == 0 || end.is_none_or(|end| end > self.limit) {
            return Err(bad(format!(
                "an extent of {len} bytes at {offset} is not within its limit of {} bytes",
                self.limit
            )));
        }
        match handle {
            Import::Fd(descriptor) => self.add_vmm(offset, len, |context| {
                Allocation::import_fd(context, descriptor)
            }),
            Import::Fabric(bytes) => self.add_vmm(offset, len, |context| {
                Allocation::import_fabric(context, bytes)
            }),
            Import::Ipc(bytes) => self.add_ipc(offset, len, bytes),
        }
    }

    fn add_vmm(
        &mut self,
        offset: usize,
        len: usize,
        import: impl FnOnce(&Context) -> Result<Allocation>,
    ) -> Result<DevicePtr> {
        if !self.context.device().has_vmm() {
            return Err(Error::Unsupported {
                device: self.context.ordinal(),
                what: "mapping a peer's memory (virtual memory management)",
                mend: "transfers to that peer are staged through the host",
            });
        }
        if let Memory::None = self.memory {
            let granule = granularity(&self.context, HandleTypes::NONE)?;
            let limit = self.limit.checked_next_multiple_of(granule);
            let limit = limit.ok_or_else(|| bad(format!("{} bytes are too many", self.limit)))?;
            self.memory = Memory::Vmm {
                pieces: BTreeMap::new(),
                reservation: Reservation::new(&self.context, limit, granule)?,
                granule,
            };
        }
        let Memory::Vmm {
            pieces,
            reservation,
            granule,
        } = &mut self.memory
        else {
            return Err(bad("one extent came by legacy IPC, another did not".into()));
        };
        if !offset.is_multiple_of(*granule) || !len.is_multiple_of(*granule) {
            return Err(bad(format!(
                "an extent of {len} bytes at {offset} is no multiple of this GPU's {granule} bytes"
            )));
        }
        let before = pieces.range(..offset + len).next_back();
        if before.is_some_and(|(start, piece)| start + piece.len() > offset) {
            return Err(bad(format!(
                "an extent of {len} bytes at {offset} came twice"
            )));
        }
        let allocation = import(&self.context)?;
        let piece = Mapped::new(reservation, offset, len, allocation)?;
        pieces.insert(offset, piece);
        Ok(reservation.base().add(offset))
    }

    fn add_ipc(
        &mut self,
        offset: usize,
        len: usize,
        handle: &[u8; HANDLE_BYTES],
    ) -> Result<DevicePtr> {
        let is_empty = match &self.memory {
            Memory::None => true,
            Memory::Vmm { pieces, .. } => pieces.is_empty(),
            Memory::Ipc { .. } => false,
        };
        if !is_empty {
            return Err(bad(
                "a legacy segment has one extent, and one has come".into()
            ));
        }
        let opened = Opened::open(&self.context, RawIpc(*handle))?;
        let address = DevicePtr::from_raw(opened.base);
        self.memory = Memory::Ipc {
            opened,
            offset,
            len,
        };
        Ok(address)
    }

    /// Unmaps every extent that begins at `offset` or later, after a growth was taken back.
    pub fn truncate(&mut self, offset: usize) {
        match &mut self.memory {
            Memory::None => {}
            Memory::Vmm { pieces, .. } => drop(pieces.split_off(&offset)),
            Memory::Ipc { offset: start, .. } => {
                if *start >= offset {
                    self.memory = Memory::None;
                }
            }
        }
    }

    /// Where the segment begins for this process; none before its first extent has come.
    #[must_use]
    pub fn base(&self) -> Option<DevicePtr> {
        match &self.memory {
            Memory::None => None,
            Memory::Vmm { reservation, .. } => Some(reservation.base()),
            Memory::Ipc { opened, offset, .. } => Some(DevicePtr::from_raw(
                opened.base.wrapping_sub(*offset as u64),
            )),
        }
    }

    /// The address of `len` bytes at `offset`, if all of them are mapped.
    #[must_use]
    pub fn address(&self, offset: usize, len: usize) -> Option<DevicePtr> {
        let end = offset.checked_add(len)?;
        let mapped_to = match &self.memory {
            Memory::None => return None,
            Memory::Vmm { pieces, .. } => {
                let (start, piece) = pieces.range(..=offset).next_back()?;
                let mut mapped_to = start + piece.len();
                for (start, piece) in pieces.range(offset + 1..) {
                    if *start != mapped_to || mapped_to >= end {
                        break;
                    }
                    mapped_to += piece.len();
                }
                mapped_to
            }
            Memory::Ipc {
                offset: start, len, ..
            } => {
                if offset < *start {
                    return None;
                }
                start + len
            }
        };
        let base = self.base()?;
        (end <= mapped_to).then(|| base.add(offset))
    }

    /// The most bytes that it can have.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// The context that it is mapped for.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.context
    }
}

/// An open handle of legacy IPC.
#[derive(Debug)]
struct Opened {
    context: Context,
    base: RawPtr,
}

impl Opened {
    fn open(context: &Context, handle: RawIpc) -> Result<Self> {
        let _current = context.enter()?;
        let mut base: RawPtr = 0;
        // SAFETY: the pointer is to a live integer; the driver checks the handle's bytes.
        unsafe {
            call_optional!(
                context,
                cuIpcOpenMemHandle_v2(&raw mut base, handle, LAZY_ENABLE_PEER_ACCESS)
            )
        }?;
        Ok(Opened {
            context: context.clone(),
            base,
        })
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        // SAFETY: it was opened once and is closed once.
        let answer = self.context.enter().and_then(|_current| unsafe {
            call_optional!(self.context, cuIpcCloseMemHandle(self.base))
        });
        if let Err(error) = answer {
            tracing::debug!(%error, "a peer's GPU memory was not closed");
        }
    }
}

fn bad(why: String) -> Error {
    Error::Invalid {
        what: "mapping a peer's GPU heap",
        why,
    }
}
