//! Operations: their checks, and how they are performed.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use oxshmem_transport::{
    AtomicLevel, AtomicOp, Capabilities, Error, Local, Memory, Op, Pe, Remote, Result,
    SignalSupport, Width,
};

use crate::{NAME, Shared, lock};

/// A checked remote address, with the memory that it is in.
#[derive(Clone, Debug)]
pub(crate) struct RemoteAddress(Option<(Memory, usize)>);

impl RemoteAddress {
    /// For operations without a remote address.
    pub(crate) const NOWHERE: RemoteAddress = RemoteAddress(None);

    /// The address; dangling if there is none.
    pub(crate) fn ptr(&self) -> *mut u8 {
        match &self.0 {
            // SAFETY: `find` found the offset inside the memory, which its owner keeps.
            Some((memory, offset)) => unsafe { memory.base().as_ptr().add(*offset) },
            None => std::ptr::dangling_mut(),
        }
    }
}

/// The address in a PE's imported memory, whose offset is checked for a size and an alignment.
pub(crate) fn find(
    shared: &Shared,
    pe: Pe,
    at: Remote,
    what: &'static str,
    size: (u64, u64),
) -> Result<RemoteAddress> {
    let memory = shared.imported.get(&(pe, at.region));
    let memory = memory.ok_or(Error::UnknownRegion {
        transport: NAME,
        region: at.region.0,
        pe,
    })?;
    at.check(NAME, what, size, memory.len() as u64)?;
    Ok(RemoteAddress(Some((memory.clone(), at.offset as usize))))
}

/// Checks everything that can be wrong with an operation. Gives its remote address, and its signal's.
pub(crate) fn checked(
    capabilities: &Capabilities,
    shared: &Shared,
    pe: Pe,
    op: &Op,
) -> Result<(RemoteAddress, RemoteAddress)> {
    let unsupported = |what: String| Error::Unsupported {
        transport: NAME,
        what,
    };
    let transfer = |local: &Local| match local.len as u64 {
        len if len > capabilities.put.max => Err(unsupported(format!("a transfer of {len} bytes"))),
        len if len > capabilities.put.unregistered && local.key.is_none() => Err(unsupported(
            format!("a transfer of {len} unregistered bytes"),
        )),
        len => Ok(len),
    };
    let remote = |at: &Remote, what, size| find(shared, pe, *at, what, size);
    match op {
        Op::Put { from: local, to }
        | Op::Get {
            into: local,
            from: to,
        } => Ok((
            remote(to, "a transfer", (transfer(local)?, 1))?,
            RemoteAddress::NOWHERE,
        )),
        Op::PutSignal {
            from, to, signal, ..
        } if capabilities.put_signal != SignalSupport::None => Ok((
            remote(to, "a put", (transfer(from)?, 1))?,
            remote(signal, "a signal", (8, 8))?,
        )),
        Op::Atomic {
            op,
            width,
            on,
            fetch,
            ..
        } => {
            if capabilities.atomics.level(*op, *width) == AtomicLevel::None {
                return Err(unsupported(format!("atomic {op} of {width} bits")));
            }
            if let Some(into) = fetch {
                into.check_fetch(NAME, *width)?;
            }
            let bytes = width.bytes() as u64;
            Ok((
                remote(on, "an atomic", (bytes, bytes))?,
                RemoteAddress::NOWHERE,
            ))
        }
        Op::Message { from } if from.len <= capabilities.message as usize => {
            Ok((RemoteAddress::NOWHERE, RemoteAddress::NOWHERE))
        }
        Op::Flush => Ok((RemoteAddress::NOWHERE, RemoteAddress::NOWHERE)),
        other => Err(unsupported(format!("{other:?}"))),
    }
}

/// The performer of operations.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Performer<'a> {
    pub capabilities: &'a Capabilities,
    /// The lock that makes NICs' atomics exclusive against each other.
    pub nic: &'a Mutex<()>,
}

impl Performer<'_> {
    /// Performs an operation that moves data or changes a word.
    ///
    /// # Safety
    ///
    /// The operation's local buffer is valid; `remote` is the result of [`checked`].
    pub(crate) unsafe fn perform(self, op: &Op, (remote, signal): &(RemoteAddress, RemoteAddress)) {
        // Before and after: no operation of a lane is seen out of its turn.
        fence(Ordering::SeqCst);
        match *op {
            // SAFETY: both sides are valid for `len` bytes, by the caller's promise.
            Op::Put { from, .. } => unsafe {
                oxshmem_heap::copy::copy(remote.ptr(), from.addr, from.len);
            },
            // SAFETY: as for put.
            Op::Get { into, .. } => unsafe {
                oxshmem_heap::copy::copy(into.addr, remote.ptr(), into.len);
            },
            // One that is added to is performed as put and atomic.
            Op::PutSignal { from, value, .. } => {
                // SAFETY: as for put.
                unsafe { oxshmem_heap::copy::copy(remote.ptr(), from.addr, from.len) };
                fence(Ordering::SeqCst);
                self.update(signal, AtomicOp::Set, value, 0);
            }
            Op::Atomic {
                op,
                operand,
                compare,
                fetch,
                ..
            } => {
                let old = self.update(remote, op, operand, compare);
                if let Some(into) = fetch {
                    // SAFETY: a valid word by the caller's promise, aligned as `checked` found.
                    let local = unsafe { AtomicU64::from_ptr(into.addr.cast()) };
                    local.store(old, Ordering::Relaxed);
                }
            }
            _ => {}
        }
        fence(Ordering::SeqCst);
    }

    /// Updates a word of 64 bits at the level declared; gives the old value.
    fn update(self, remote: &RemoteAddress, op: AtomicOp, operand: u64, compare: u64) -> u64 {
        // SAFETY: a checked, aligned word; all PEs access it atomically.
        let word = unsafe { AtomicU64::from_ptr(remote.ptr().cast()) };
        let order = Ordering::SeqCst;
        if self.capabilities.atomics.level(op, Width::W64) == AtomicLevel::Nic {
            let _turn = lock(self.nic);
            let old = word.load(order);
            // Long enough for a CPU to change the word, which is lost then.
            std::thread::yield_now();
            match op {
                AtomicOp::Add => word.store(old.wrapping_add(operand), order),
                AtomicOp::CompareSwap if old == compare => word.store(operand, order),
                _ => {}
            }
            return old;
        }
        match op {
            AtomicOp::Set => word.swap(operand, order),
            AtomicOp::Add => word.fetch_add(operand, order),
            AtomicOp::CompareSwap => word
                .compare_exchange(compare, operand, order, order)
                .unwrap_or_else(|found| found),
            // Fetch; `checked` refused all others.
            _ => word.load(order),
        }
    }
}
