//! An endpoint without connections, with its address vector and its completion queue.

use std::collections::BTreeSet;
use std::ffi::{CStr, c_void};
use std::mem::{ManuallyDrop, MaybeUninit};
use std::os::fd::RawFd;
use std::sync::Arc;

use oxshmem_transport::Result;

use super::fault::Fault;
use super::info::Info;
use super::memory::{MemoryRegion, Registration};
use super::open::{OpenDomain, close};
use super::queue::{MISSING, check, of_sockets, open_queue};
use super::slots::{Kinds, LONG_BUFFER, SlotId, Slots};
use super::sys;
use crate::facts::bits;

/// Slots that send, or carry the data of a short write or read.
pub(crate) const SENDS: u32 = 112;
/// Slots that receive.
pub(crate) const RECEIVES: u32 = 16;
/// Slots without a buffer, of operations on memory in place.
pub(crate) const BARE: u32 = 192;

/// Ends of operations that one call takes at most.
pub(crate) const BATCH: usize = 16;

/// A peer's address in the vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PeerAddress(u64);

impl PeerAddress {
    pub(super) fn number(self) -> u64 {
        self.0
    }
}

/// A place in a peer's memory, as the provider names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RemotePlace {
    pub addr: u64,
    pub key: u64,
}

/// Memory of this side, in place: with the descriptor of its registration, where the provider wants one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LocalPlace {
    pub addr: *mut u8,
    pub len: usize,
    pub descriptor: *mut c_void,
}

/// The end of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub slot: SlotId,
    /// Bytes received.
    pub len: usize,
    /// The provider's error, if it failed.
    pub fault: Option<Fault>,
}

/// Whether the provider has taken an operation; if not, it has no room for it now.
pub(crate) type Taken = bool;

#[derive(Debug)]
pub(crate) struct Endpoint {
    ep: *mut sys::fid_ep,
    av: *mut sys::fid_av,
    cq: *mut sys::fid_cq,
    wait: Option<RawFd>,
    binds_memory: bool,
    /// Whether a message can be sent from two places.
    joins: bool,
    /// Whether the provider may have ended an operation since the queue was last empty: posts end some at once.
    may_have_ends: bool,
    /// Slots whose operations access memory in place.
    in_place: BTreeSet<u32>,
    /// The registration of the slots, where the provider wants local keys.
    slot_memory: Option<MemoryRegion>,
    slots: ManuallyDrop<Slots>,
    domain: Arc<OpenDomain>,
}

// SAFETY: as for `OpenDomain`.
unsafe impl Send for Endpoint {}

impl Endpoint {
    /// Opens an endpoint for a job of this many PEs, enabled.
    pub(crate) fn open(info: &Info, pes: u32) -> Result<Endpoint> {
        let domain = OpenDomain::open(info)?;
        let library = domain.library();
        let (cq, wait) = open_queue(&domain, 2 * (SENDS + RECEIVES + BARE))?;
        let wait = match info.facts().provider.as_str() {
            "net" | "tcp" => wait.map(of_sockets),
            _ => wait,
        };
        let mut endpoint = Endpoint {
            ep: std::ptr::null_mut(),
            av: std::ptr::null_mut(),
            cq,
            wait,
            binds_memory: info.facts().mr_mode & bits::MR_ENDPOINT != 0,
            slot_memory: None,
            joins: joins(info),
            may_have_ends: true,
            in_place: BTreeSet::new(),
            slots: ManuallyDrop::new(Slots::new(Kinds {
                sends: SENDS,
                receives: RECEIVES,
                bare: BARE,
            })),
            domain,
        };
        let open = endpoint.domain.domain();
        // SAFETY: zero is a value of every field.
        let mut attributes: sys::fi_av_attr = unsafe { std::mem::zeroed() };
        attributes.type_ = sys::fi_av_type::FI_AV_TABLE;
        attributes.count = pes as usize;
        // SAFETY: the domain is open; the attributes live during the call.
        let code = unsafe {
            let ops = (*open).ops;
            let attributes = &raw mut attributes;
            let av = &raw mut endpoint.av;
            (*ops)
                .av_open
                .map_or(MISSING, |f| f(open, attributes, av, std::ptr::null_mut()))
        };
        check(library, "fi_av_open", code)?;
        // SAFETY: the domain is open; the description lives during the call.
        let code = unsafe {
            let ops = (*open).ops;
            let ep = &raw mut endpoint.ep;
            (*ops)
                .endpoint
                .map_or(MISSING, |f| f(open, info.raw(), ep, std::ptr::null_mut()))
        };
        check(library, "fi_endpoint", code)?;
        endpoint.bind_and_enable()?;
        if info.facts().mr_mode & bits::MR_LOCAL != 0 {
            let (at, len) = endpoint.slots.memory();
            let access = bits::SEND | bits::RECV | bits::READ | bits::WRITE;
            // SAFETY: the slots own the memory, and are dropped after their registration.
            endpoint.slot_memory = Some(unsafe { endpoint.register(at, len, access, 0, None)? });
        }
        Ok(endpoint)
    }

    fn bind_and_enable(&mut self) -> Result<()> {
        let library = self.domain.library();
        let both = bits::TRANSMIT | bits::RECV;
        // SAFETY: all three are open.
        let (av, cq) = unsafe { (&raw mut (*self.av).fid, &raw mut (*self.cq).fid) };
        for (what, fid, flags) in [("vector", av, 0), ("queue", cq, both)] {
            // SAFETY: both objects are open.
            let code = unsafe {
                let own = &raw mut (*self.ep).fid;
                (*(*own).ops)
                    .bind
                    .map_or(MISSING, |bind| bind(own, fid, flags))
            };
            check(library, &format!("fi_ep_bind of the {what}"), code)?;
        }
        // SAFETY: the endpoint is open.
        let code = unsafe {
            let own = &raw mut (*self.ep).fid;
            let enable = sys::_bindgen_ty_7::FI_ENABLE as i32;
            let control = (*(*own).ops).control;
            control.map_or(MISSING, |control| {
                control(own, enable, std::ptr::null_mut())
            })
        };
        check(library, "fi_enable", code)
    }

    /// Its address, for peers.
    pub(crate) fn name(&self) -> Result<Vec<u8>> {
        let mut bytes = vec![0_u8; 256];
        let mut len = bytes.len();
        // SAFETY: the endpoint is open; `len` says how much room there is.
        let code = unsafe {
            let fid = &raw mut (*self.ep).fid;
            let name = (*(*self.ep).cm).getname;
            name.map_or(MISSING, |f| f(fid, bytes.as_mut_ptr().cast(), &raw mut len))
        };
        check(self.domain.library(), "fi_getname", code)?;
        bytes.truncate(len);
        Ok(bytes)
    }

    /// Adds a peer's address of this side's format, which `names::refusal` has let pass.
    pub(crate) fn insert(&mut self, name: &[u8]) -> Result<PeerAddress> {
        let mut address = u64::MAX;
        // SAFETY: the vector is open. `name` has all bytes of an address of this format: this side's length, or a zero
        // byte at the end of a string.
        let count = unsafe {
            let at = name.as_ptr().cast();
            let insert = (*(*self.av).ops).insert;
            let to = &raw mut address;
            insert.map_or(MISSING, |f| f(self.av, at, 1, to, 0, std::ptr::null_mut()))
        };
        if count == 1 {
            return Ok(PeerAddress(address));
        }
        let library = self.domain.library();
        let code = if count < 0 {
            count
        } else {
            -(sys::FI_EINVAL as i32)
        };
        Err(library.failed("fi_av_insert", code as isize))
    }

    /// Takes a peer's address out of the vector. The provider ends the operations to it, with errors.
    pub(crate) fn remove(&mut self, address: PeerAddress) -> Result<()> {
        let mut address = address.0;
        // SAFETY: the vector is open, and the address is one that it gave.
        let code = unsafe {
            let remove = (*(*self.av).ops).remove;
            let at = &raw mut address;
            remove.map_or(MISSING, |f| f(self.av, at, 1, 0))
        };
        check(self.domain.library(), "fi_av_remove", code)
    }

    /// Registers memory: the CPU's, or that of the GPU with a number.
    ///
    /// # Safety
    ///
    /// The bytes stay mapped while the registration lives, and it is dropped before the endpoint.
    pub(crate) unsafe fn register(
        &self,
        addr: *const u8,
        len: usize,
        access: u64,
        key: u64,
        gpu: Option<i32>,
    ) -> Result<MemoryRegion> {
        let how = Registration {
            key,
            access,
            gpu,
            endpoint: self.binds_memory.then_some(self.ep),
        };
        // SAFETY: the caller's promise.
        unsafe { MemoryRegion::new(&self.domain, addr, len, how) }
    }

    /// The open endpoint.
    pub(super) fn raw(&self) -> *mut sys::fid_ep {
        self.ep
    }

    /// The bytes of an idle slot's buffer.
    pub(crate) fn bytes(&mut self, slot: SlotId) -> &mut [u8] {
        self.slots.bytes(slot)
    }

    fn own_descriptor(&self) -> *mut c_void {
        let memory = self.slot_memory.as_ref();
        memory.map_or(std::ptr::null_mut(), MemoryRegion::descriptor)
    }

    /// Marks a slot as busy, and posts: `post` gets its context. A slot whose operation is not taken is idle again.
    pub(super) fn post(
        &mut self,
        call: &str,
        slot: SlotId,
        post: impl FnOnce(*mut sys::fid_ep, *mut c_void) -> isize,
    ) -> Result<Taken> {
        let library = self.domain.library();
        let Some(context) = self
            .slots
            .context(slot)
            .filter(|_| !self.slots.is_busy(slot))
        else {
            return Err(library.failed(call, -(sys::FI_EINVAL as isize)));
        };
        self.slots.set_busy(slot, true);
        let code = post(self.ep, context);
        if code == 0 {
            self.may_have_ends = true;
            return Ok(true);
        }
        self.slots.set_busy(slot, false);
        if code == -(sys::FI_EAGAIN as isize) {
            return Ok(false);
        }
        Err(library.failed(call, code))
    }

    /// A slot's buffer, as the local side of an operation.
    pub(super) fn in_slot(&self, slot: SlotId, len: usize) -> LocalPlace {
        let (addr, room) = self.slots.at(slot).unwrap_or((std::ptr::null_mut(), 0));
        LocalPlace {
            addr,
            len: len.min(room),
            descriptor: self.own_descriptor(),
        }
    }

    /// Sends the first `len` bytes of a slot's buffer.
    pub(crate) fn send(&mut self, slot: SlotId, len: usize, to: PeerAddress) -> Result<Taken> {
        let local = self.in_slot(slot, len);
        self.post("fi_send", slot, |ep, context| {
            // SAFETY: the endpoint is open; the buffer and the context are the slot's, busy until its event.
            unsafe {
                let send = (*(*ep).msg).send;
                let (at, desc) = (local.addr.cast(), local.descriptor);
                send.map_or(MISSING as isize, |f| {
                    f(ep, at, local.len, desc, to.0, context)
                })
            }
        })
    }

    /// Whether a message can be sent from two places.
    pub(crate) fn joins(&self) -> bool {
        self.joins
    }

    /// Sends the first `len` bytes of a slot's buffer, and data in place behind them.
    ///
    /// # Safety
    ///
    /// The memory is readable until the slot's event, or until the endpoint is dropped.
    pub(crate) unsafe fn send_from(
        &mut self,
        slot: SlotId,
        len: usize,
        data: LocalPlace,
        to: PeerAddress,
    ) -> Result<Taken> {
        let head = self.in_slot(slot, len);
        let taken = self.post("fi_sendv", slot, |ep, context| {
            let places = [head, data].map(|place| libc::iovec {
                iov_base: place.addr.cast(),
                iov_len: place.len,
            });
            let mut descriptors = [head.descriptor, data.descriptor];
            // SAFETY: the endpoint is open; the lists live during the call; the buffer and the context are the slot's, busy
            // until its event, and the data is as the caller promises.
            unsafe {
                let send = (*(*ep).msg).sendv;
                let (at, descs) = (places.as_ptr(), descriptors.as_mut_ptr());
                send.map_or(MISSING as isize, |f| f(ep, at, descs, 2, to.0, context))
            }
        });
        if matches!(taken, Ok(true)) {
            self.in_place.insert(slot.0);
        }
        taken
    }

    /// Lends a slot's buffer to a message.
    pub(crate) fn receive(&mut self, slot: SlotId) -> Result<Taken> {
        let local = self.in_slot(slot, LONG_BUFFER);
        self.post("fi_recv", slot, |ep, context| {
            // SAFETY: as for `send`.
            unsafe {
                let receive = (*(*ep).msg).recv;
                let (at, desc) = (local.addr.cast(), local.descriptor);
                let any = u64::MAX;
                receive.map_or(MISSING as isize, |f| {
                    f(ep, at, local.len, desc, any, context)
                })
            }
        })
    }

    /// Reads into a slot's buffer.
    pub(crate) fn read(
        &mut self,
        slot: SlotId,
        len: usize,
        from: PeerAddress,
        place: RemotePlace,
    ) -> Result<Taken> {
        let local = self.in_slot(slot, len);
        // SAFETY: the buffer is the slot's, busy until its event.
        unsafe { self.read_into(slot, local, from, place) }
    }

    /// Reads in place.
    ///
    /// # Safety
    ///
    /// The memory is writable until the slot's event, or until the endpoint is dropped.
    pub(crate) unsafe fn read_into(
        &mut self,
        slot: SlotId,
        local: LocalPlace,
        from: PeerAddress,
        place: RemotePlace,
    ) -> Result<Taken> {
        self.post("fi_read", slot, |ep, context| {
            let (at, desc) = (local.addr.cast(), local.descriptor);
            let RemotePlace { addr, key } = place;
            // SAFETY: the endpoint is open; the memory is writable, by the caller's promise.
            unsafe {
                let read = (*(*ep).rma).read;
                read.map_or(MISSING as isize, |f| {
                    f(ep, at, local.len, desc, from.0, addr, key, context)
                })
            }
        })
    }

    /// Writes from a slot's buffer. Its event says that the data has been delivered.
    pub(crate) fn write(
        &mut self,
        slot: SlotId,
        len: usize,
        to: PeerAddress,
        place: RemotePlace,
    ) -> Result<Taken> {
        let local = self.in_slot(slot, len);
        // SAFETY: the buffer is the slot's, busy until its event.
        unsafe { self.write_from(slot, local, to, place) }
    }

    /// Writes in place. Its event says that the data has been delivered.
    ///
    /// # Safety
    ///
    /// The memory is readable until the slot's event, or until the endpoint is dropped.
    pub(crate) unsafe fn write_from(
        &mut self,
        slot: SlotId,
        local: LocalPlace,
        to: PeerAddress,
        place: RemotePlace,
    ) -> Result<Taken> {
        self.post("fi_writemsg", slot, |ep, context| {
            let iov = libc::iovec {
                iov_base: local.addr.cast(),
                iov_len: local.len,
            };
            let remote = sys::fi_rma_iov {
                addr: place.addr,
                len: local.len,
                key: place.key,
            };
            let mut descriptor = local.descriptor;
            let message = sys::fi_msg_rma {
                msg_iov: &raw const iov,
                desc: &raw mut descriptor,
                iov_count: 1,
                addr: to.0,
                rma_iov: &raw const remote,
                rma_iov_count: 1,
                context,
                data: 0,
            };
            let flags = bits::COMPLETION | bits::DELIVERY_COMPLETE;
            // SAFETY: the endpoint is open; the message and its lists live during the call, the memory as the caller
            // promises.
            unsafe {
                let write = (*(*ep).rma).writemsg;
                write.map_or(MISSING as isize, |f| f(ep, &raw const message, flags))
            }
        })
    }

    /// Takes the ends of operations, at most as many as fit in one call, and drives the provider.
    pub(crate) fn poll(&mut self, events: &mut Vec<Event>) -> Result<()> {
        let mut entries = [const { MaybeUninit::<sys::fi_cq_msg_entry>::uninit() }; BATCH];
        // SAFETY: the queue is open, and has entries of this format.
        let count = unsafe {
            let read = (*(*self.cq).ops).read;
            let at = entries.as_mut_ptr().cast();
            read.map_or(MISSING as isize, |f| f(self.cq, at, BATCH))
        };
        if count == -(sys::FI_EAGAIN as isize) {
            self.may_have_ends = false;
            return Ok(());
        }
        if count == -(sys::_bindgen_ty_1::FI_EAVAIL as isize) {
            return self.poll_error(events);
        }
        let Ok(count) = usize::try_from(count) else {
            return Err(self.domain.library().failed("fi_cq_read", count));
        };
        for entry in entries.iter().take(count) {
            // SAFETY: the provider has written so many entries.
            let entry = unsafe { entry.assume_init_ref() };
            self.end(entry.op_context, entry.len, None, events);
        }
        Ok(())
    }

    fn poll_error(&mut self, events: &mut Vec<Event>) -> Result<()> {
        // Later versions have more fields.
        #[repr(C)]
        struct Room(sys::fi_cq_err_entry, [u64; 16]);
        // SAFETY: zero is a value of every field.
        let mut entry: Room = unsafe { std::mem::zeroed() };
        // SAFETY: the queue is open, and the entry has room.
        let count = unsafe {
            let read = (*(*self.cq).ops).readerr;
            read.map_or(MISSING as isize, |f| f(self.cq, &raw mut entry.0, 0))
        };
        match count {
            1 => {
                let error = entry.0;
                let known = self.slots.of_context(error.op_context).is_some();
                if !known && error.err != sys::FI_ECANCELED as i32 {
                    // A failure of the whole endpoint, and of no operation.
                    let code = -(error.err as isize);
                    return Err(self.domain.library().failed("the endpoint", code));
                }
                let fault = Fault {
                    code: error.err,
                    of_provider: error.prov_errno,
                };
                self.end(error.op_context, error.len, Some(fault), events);
                Ok(())
            }
            again if again == -(sys::FI_EAGAIN as isize) => Ok(()),
            code => Err(self.domain.library().failed("fi_cq_readerr", code)),
        }
    }

    fn end(
        &mut self,
        context: *mut c_void,
        len: usize,
        fault: Option<Fault>,
        events: &mut Vec<Event>,
    ) {
        if let Some(slot) = self.slots.of_context(context) {
            self.slots.set_busy(slot, false);
            self.in_place.remove(&slot.0);
            events.push(Event { slot, len, fault });
        }
    }

    /// The descriptor that becomes readable when there is something to do; none if the provider has none.
    pub(crate) fn wait_descriptor(&self) -> Option<RawFd> {
        self.wait
    }

    /// Whether a sleep on the descriptor is safe now: nothing waits to be done. None if the provider cannot say.
    pub(crate) fn may_sleep(&self) -> Option<bool> {
        // Providers may follow the wait object of a queue that has none: shm of 1.17 does.
        self.wait?;
        if self.may_have_ends {
            return Some(false);
        }
        let fabric = self.domain.fabric();
        // SAFETY: the fabric and the queue are open.
        let code = unsafe {
            let mut fids = [&raw mut (*self.cq).fid];
            let trywait = (*(*fabric).ops).trywait;
            trywait.map_or(MISSING, |f| f(fabric, fids.as_mut_ptr(), 1))
        };
        match code {
            0 => Some(true),
            code if code == -(sys::FI_EAGAIN as i32) => Some(false),
            _ => None,
        }
    }

    /// An error in words, with the provider's own where it has some.
    pub(crate) fn explain(&self, fault: Fault) -> String {
        let general = self.domain.library().explain(fault.code);
        let mut room = [0_u8; 128];
        // SAFETY: the queue is open; the provider may write its words to the room.
        let text = unsafe {
            let strerror = (*(*self.cq).ops).strerror;
            let (at, len) = (room.as_mut_ptr().cast(), room.len());
            strerror.map(|f| f(self.cq, fault.of_provider, std::ptr::null(), at, len))
        };
        let Some(text) = text.filter(|text| fault.of_provider != 0 && !text.is_null()) else {
            return general;
        };
        // SAFETY: a C string, static or in the room.
        let own = unsafe { CStr::from_ptr(text) }.to_string_lossy();
        match general.starts_with(&*own) {
            true => general,
            false => format!("{general}; the provider says: {own}"),
        }
    }
}

/// Whether a provider sends a message from two places.
fn joins(info: &Info) -> bool {
    // SAFETY: a description by fi_getinfo, which lives.
    let attributes = unsafe { (*info.raw()).tx_attr.as_ref() };
    attributes.is_some_and(|attributes| attributes.iov_limit >= 2)
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        let library = self.domain.library();
        // Bound to the endpoint, it ends before it; else after it.
        if self.binds_memory {
            self.slot_memory = None;
        }
        // SAFETY: open or null; nothing else uses it. The endpoint ends first, which ends its operations.
        let ended = self.ep.is_null()
            || unsafe { close(library, "fi_close of an endpoint", &raw mut (*self.ep).fid) };
        if !ended {
            let mut bare = SENDS + RECEIVES..SENDS + RECEIVES + BARE;
            let transfers = bare.any(|slot| self.slots.is_busy(SlotId(slot)));
            if transfers || !self.in_place.is_empty() {
                tracing::error!(
                    "ofi: transfers of memory that the program may reuse cannot be ended"
                );
                std::process::abort();
            }
            // Its operations may go on: what they use stays as long as the process.
            std::mem::forget(self.slot_memory.take());
            std::mem::forget(Arc::clone(&self.domain));
            return;
        }
        self.slot_memory = None;
        // SAFETY: open or null; no endpoint uses them any more.
        unsafe {
            close(library, "fi_close of a queue", &raw mut (*self.cq).fid);
            if !self.av.is_null() {
                close(library, "fi_close of a vector", &raw mut (*self.av).fid);
            }
        }
        // SAFETY: dropped once, here. No operation uses a slot, and nobody registers them, any more.
        unsafe { ManuallyDrop::drop(&mut self.slots) };
    }
}
