//! Memory pools: each device has only its default pool, which holds no freed memory.

use super::allocation::allocate;
use crate::call::{In, Out, Outcome};
use crate::code::Code;
use crate::driver::driver;
use crate::stream::stream;

/// Handles of the default pools: a number for each ordinal.
const FIRST: u64 = 0x5C90_0000;

fn pool_of(ordinal: i32) -> Outcome<u64> {
    driver()?.device(ordinal)?;
    Ok(FIRST + 16 * ordinal as u64)
}

fn check(pool: u64) -> Outcome<usize> {
    let count = driver()?.devices.len() as u64;
    let ordinal = pool.wrapping_sub(FIRST) / 16;
    if ordinal < count && pool_of(ordinal as i32)? == pool {
        Ok(ordinal as usize)
    } else {
        Err(Code::INVALID_VALUE)
    }
}

driver_calls! {
    /// The device's default pool.
    fn cuDeviceGetDefaultMemPool(out: Out<u64>, device: i32) {
        out.set(pool_of(device)?)
    }

    /// The device's current pool: the default one.
    fn cuDeviceGetMemPool(out: Out<u64>, device: i32) {
        out.set(pool_of(device)?)
    }

    /// Sets an attribute of a pool. It has no effect, since the pool holds nothing.
    fn cuMemPoolSetAttribute(pool: u64, attribute: u32, value: In<u64>) {
        check(pool)?;
        if !(1..=4).contains(&attribute) || value.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        Ok(())
    }

    /// An attribute of a pool: reuse is on, and nothing is held.
    fn cuMemPoolGetAttribute(pool: u64, attribute: u32, value: Out<u8>) {
        check(pool)?;
        match attribute {
            1..=3 => value.cast::<i32>().set(1),
            4..=8 => value.cast::<u64>().set(0),
            _ => Err(Code::INVALID_VALUE),
        }
    }

    /// Frees the memory that the pool holds: none.
    fn cuMemPoolTrimTo(pool: u64, keep: usize) {
        check(pool)?;
        let _ = keep;
        Ok(())
    }

    /// Stream-ordered memory of a pool.
    fn cuMemAllocFromPoolAsync(out: Out<u64>, bytes: usize, pool: u64, handle: u64) {
        let stream = stream(handle)?;
        out.check()?;
        stream.refuse_while_capturing()?;
        if check(pool)? != stream.context.ordinal {
            return Err(Code::INVALID_VALUE);
        }
        out.set(allocate(&stream.context, bytes as u64, true)?)
    }
}
