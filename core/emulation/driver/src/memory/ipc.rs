//! Legacy IPC: plain allocations shared by 64 opaque bytes.
//!
//! The bytes name the process that has the memory file open, and its descriptor. The other side
//! opens the file through `/proc`, which the kernel allows between processes of one user that see
//! each other, and then checks that it is the same file.

use std::os::fd::AsFd;
use std::sync::Arc;

use super::identity::identity;
use super::{Origin, Physical};
use crate::call::{Out, Outcome};
use crate::code::Code;
use crate::config::Feature;
use crate::context::current;
use crate::driver::{Driver, driver};
use crate::sync::{read, write};

const MAGIC: u64 = u64::from_le_bytes(*b"softcuda");
/// `CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS`, the only flag there is, and a required one.
const LAZY_PEER_ACCESS: u32 = 1;

/// `CUipcMemHandle`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct IpcHandle {
    magic: u64,
    process: u64,
    descriptor: u64,
    device: u64,
    inode: u64,
    usable: u64,
    unused: [u64; 2],
}

const _: () = assert!(size_of::<IpcHandle>() == 64);

fn ipc() -> Outcome<&'static Driver> {
    let driver = driver()?;
    if driver.config.has(Feature::Ipc) {
        Ok(driver)
    } else {
        Err(Code::NOT_SUPPORTED)
    }
}

driver_calls! {
    /// The bytes that let another process open a plain allocation.
    fn cuIpcGetMemHandle(out: Out<IpcHandle>, address: u64) {
        current()?;
        let driver = ipc()?;
        out.check()?;
        let memory = read(&driver.memory);
        let (_, mapping) = super::below(&memory.mappings, address, |mapping| mapping.usable)
            .filter(|(_, m)| matches!(m.origin, Origin::Allocated { pool: false, .. }))
            .ok_or(Code::INVALID_VALUE)?;
        let (device, inode) = mapping.physical.identity()?;
        out.set(IpcHandle {
            magic: MAGIC,
            process: u64::from(std::process::id()),
            descriptor: mapping.physical.descriptor(),
            device,
            inode,
            usable: mapping.usable,
            unused: [0; 2],
        })
    }

    /// Opens another process's allocation; a second time it has the same address.
    fn cuIpcOpenMemHandle_v2(out: Out<u64>, handle: IpcHandle, flags: u32) {
        let context = current()?;
        let driver = ipc()?;
        out.check()?;
        if flags != LAZY_PEER_ACCESS || handle.magic != MAGIC {
            return Err(Code::INVALID_VALUE);
        }
        if handle.process == u64::from(std::process::id()) {
            return Err(Code::INVALID_CONTEXT);
        }
        let path = format!("/proc/{}/fd/{}", handle.process, handle.descriptor);
        let file = std::fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open(path)
            .map_err(|_| Code::MAP_FAILED)?;
        let wanted = (handle.device, handle.inode);
        if identity(file.as_fd())? != wanted {
            return Err(Code::MAP_FAILED);
        }
        let mut memory = write(&driver.memory);
        for (address, mapping) in &mut memory.mappings {
            if let Origin::Opened { context: opener, times } = &mut mapping.origin
                && *opener == context.handle
                && mapping.physical.identity()? == wanted
            {
                *times += 1;
                return out.set(*address);
            }
        }
        let physical = Physical::import(std::os::fd::AsRawFd::as_raw_fd(&file))?;
        if handle.usable > physical.size {
            return Err(Code::INVALID_VALUE);
        }
        if physical.ordinal != context.ordinal && !driver.peers(context.ordinal, physical.ordinal) {
            return Err(Code::PEER_ACCESS_UNSUPPORTED);
        }
        let origin = Origin::Opened { context: context.handle, times: 1 };
        out.set(memory.map_anywhere(Arc::new(physical), handle.usable, origin)?)
    }

    /// Closes it; the last close unmaps it.
    fn cuIpcCloseMemHandle(address: u64) {
        let context = current()?;
        let driver = ipc()?;
        context.synchronize()?;
        let mut memory = write(&driver.memory);
        let mapping = memory.mappings.get_mut(&address).ok_or(Code::INVALID_VALUE)?;
        let Origin::Opened { times, .. } = &mut mapping.origin else {
            return Err(Code::INVALID_VALUE);
        };
        *times -= 1;
        if *times == 0 { memory.unmap_whole(address) } else { Ok(()) }
    }
}
