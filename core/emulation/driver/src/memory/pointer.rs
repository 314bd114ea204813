//! The driver's attributes of addresses.

use super::{GRANULARITY, Memory, Origin, Want, below};
use crate::call::{In, Out, Outcome};
use crate::code::Code;
use crate::context::current;
use crate::driver::{driver, running};
use crate::sync::{read, write};

/// `CU_MEMORYTYPE_HOST` and `..._DEVICE`.
const HOST: u32 = 1;
const DEVICE: u32 = 2;

const DEVICE_POINTER: u32 = 3;
const SYNC_MEMOPS: u32 = 6;

/// The facts about an address that the driver knows.
#[derive(Clone, Copy, Debug)]
struct Facts {
    context: u64,
    kind: u32,
    host_address: u64,
    ordinal: usize,
    start: u64,
    length: u64,
    mapped_length: u64,
    id: u64,
    sync_memops: bool,
    ipc: bool,
    handle_types: u32,
    access: u8,
}

impl Memory {
    fn facts(&self, address: u64) -> Option<Facts> {
        if let Some((start, mapping)) = below(&self.mappings, address, |mapping| mapping.usable) {
            let (context, ipc, access) = match mapping.origin {
                Origin::Mapped => {
                    let owner = mapping.access.get(mapping.physical.ordinal);
                    (0, false, owner.copied().unwrap_or(0))
                }
                Origin::Allocated { context, pool } => (context, !pool, 3),
                Origin::Opened { context, .. } => (context, false, 3),
            };
            return Some(Facts {
                context,
                kind: DEVICE,
                host_address: 0,
                ordinal: mapping.physical.ordinal,
                start,
                length: mapping.usable,
                mapped_length: mapping.length.next_multiple_of(GRANULARITY),
                id: mapping.id,
                sync_memops: mapping.sync_memops,
                ipc,
                handle_types: mapping.physical.handle_types,
                access,
            });
        }
        if let Some((start, global)) = below(&self.globals, address, |global| global.length) {
            return Some(Facts {
                context: global.context,
                kind: DEVICE,
                host_address: 0,
                ordinal: global.ordinal,
                start,
                length: global.length,
                mapped_length: global.length,
                id: global.id,
                sync_memops: false,
                ipc: false,
                handle_types: 0,
                access: 3,
            });
        }
        let (start, range) = below(&self.host, address, |range| range.length)?;
        Some(Facts {
            context: range.context,
            kind: HOST,
            host_address: address,
            ordinal: range.ordinal,
            start,
            length: range.length,
            mapped_length: range.length,
            id: range.id,
            sync_memops: range.sync_memops,
            ipc: false,
            handle_types: 0,
            access: 3,
        })
    }

    /// Whether kernels of the current context may read an address.
    fn reached(&self, address: u64) -> Outcome {
        let context = current()?;
        let want = Want {
            context: &context,
            write: false,
            direct: true,
        };
        self.find(address, 1, want).map(drop)
    }

    /// Start and length of the device allocation at an address.
    pub(super) fn range_of(&self, address: u64) -> Option<(u64, u64)> {
        let facts = self.facts(address).filter(|facts| facts.kind == DEVICE)?;
        Some((facts.start, facts.length))
    }
}

fn answer(out: Out<u8>, attribute: u32, address: u64, facts: Facts) -> Outcome {
    match attribute {
        // Memory mapped by cuMemMap belongs to no context, says the real driver too.
        1 => out.cast::<u64>().set(facts.context),
        2 => out.cast::<u32>().set(facts.kind),
        DEVICE_POINTER => out.cast::<u64>().set(address),
        4 if facts.kind == HOST => out.cast::<u64>().set(facts.host_address),
        4 => Err(Code::INVALID_VALUE),
        SYNC_MEMOPS => out.cast::<u32>().set(u32::from(facts.sync_memops)),
        7 => out.cast::<u64>().set(facts.id),
        8 => out.cast::<u32>().set(0),
        9 => out.cast::<i32>().set(facts.ordinal as i32),
        10 => out.cast::<u8>().set(u8::from(facts.ipc)),
        11 => out.cast::<u64>().set(facts.start),
        12 => out.cast::<usize>().set(facts.length as usize),
        13 => out.cast::<u8>().set(1),
        14 => out.cast::<u64>().set(u64::from(facts.handle_types)),
        15 => out.cast::<u8>().set(0),
        16 => out.cast::<u32>().set(u32::from(facts.access)),
        17 => out.cast::<u64>().set(0),
        18 => out.cast::<usize>().set(facts.mapped_length as usize),
        19 => out.cast::<u64>().set(facts.start),
        _ => Err(Code::INVALID_VALUE),
    }
}

/// The answers of `cuPointerGetAttributes` for unknown addresses.
fn answer_unknown(out: Out<u8>, attribute: u32) -> Outcome {
    match attribute {
        1 | DEVICE_POINTER | 4 | 7 | 11 | 14 | 17 | 19 => out.cast::<u64>().set(0),
        12 | 18 => out.cast::<usize>().set(0),
        2 | SYNC_MEMOPS | 8 | 16 => out.cast::<u32>().set(0),
        9 => out.cast::<i32>().set(-2),
        10 | 13 | 15 => out.set(0),
        _ => Err(Code::INVALID_VALUE),
    }
}

driver_calls! {
    /// One attribute of an address; one that the driver does not know is refused.
    fn cuPointerGetAttribute(out: Out<u8>, attribute: u32, address: u64) {
        let driver = driver()?;
        out.check()?;
        let memory = read(&driver.memory);
        let facts = memory.facts(address).ok_or(Code::INVALID_VALUE)?;
        if attribute == DEVICE_POINTER {
            memory.reached(address)?;
        }
        answer(out, attribute, address, facts)
    }

    /// Several attributes of an address; zeroes where the driver does not know it.
    fn cuPointerGetAttributes(count: u32, attributes: In<u32>, outs: In<Out<u8>>, address: u64) {
        let driver = driver()?;
        let memory = read(&driver.memory);
        let facts = memory.facts(address);
        for index in 0..count as usize {
            let (attribute, out) = (attributes.at(index)?, outs.at(index)?);
            match facts {
                Some(facts) if attribute == 4 && facts.kind == DEVICE => {
                    out.cast::<u64>().set(0)?;
                }
                Some(_) if attribute == DEVICE_POINTER && memory.reached(address).is_err() => {
                    out.cast::<u64>().set(0)?;
                }
                Some(facts) => answer(out, attribute, address, facts)?,
                None => answer_unknown(out, attribute)?,
            }
        }
        Ok(())
    }

    /// Sets the one attribute that can be set: synchronous calls are synchronous always.
    fn cuPointerSetAttribute(value: In<u32>, attribute: u32, address: u64) {
        let driver = driver()?;
        if attribute != SYNC_MEMOPS {
            return Err(Code::INVALID_VALUE);
        }
        let on = value.get()? != 0;
        let mut memory = write(&driver.memory);
        let start = memory.facts(address).ok_or(Code::INVALID_VALUE)?.start;
        if let Some(mapping) = memory.mappings.get_mut(&start) {
            mapping.sync_memops = on;
        } else if let Some(range) = memory.host.get_mut(&start) {
            range.sync_memops = on;
        }
        Ok(())
    }

    /// A descriptor of a range for other devices: always refused, since no NIC could use a memory
    /// file.
    fn cuMemGetHandleForAddressRange(out: Out<u8>, address: u64, size: usize, kind: u32, flags: u64) {
        driver()?;
        out.check()?;
        if size == 0 || kind != 1 || flags > 1 {
            return Err(Code::INVALID_VALUE);
        }
        read(&running()?.memory).range_of(address).ok_or(Code::INVALID_VALUE)?;
        Err(Code::NOT_SUPPORTED)
    }
}
