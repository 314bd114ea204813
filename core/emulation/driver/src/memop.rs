//! Stream memory operations: words that a stream writes, and words that it waits for.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use std::time::Duration;

use crate::call::{In, Outcome};
use crate::code::Code;
use crate::config::Feature;
use crate::context::{Context, current};
use crate::driver::{driver, running};
use crate::memory::{Memory, Place, Want};
use crate::nic;
use crate::race;
use crate::stream::stream;
use crate::sync::read;

/// `CU_STREAM_WAIT_VALUE_FLUSH`.
const FLUSH: u32 = 1 << 30;
/// `CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER`.
const NO_BARRIER: u32 = 1;
/// `CU_STREAM_MEM_OP_...`.
const WAIT_32: u32 = 1;
const WRITE_32: u32 = 2;
const FLUSH_REMOTE_WRITES: u32 = 3;
const WAIT_64: u32 = 4;
const WRITE_64: u32 = 5;
const BARRIER: u32 = 6;
/// The real driver's limit for one batch.
const MOST: u32 = 256;

/// Polls of a waiting stream before it sleeps between polls: the machine may have fewer processors
/// than waiting streams.
const EAGER_LOOKS: u32 = 64;
const NAP: Duration = Duration::from_micros(30);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compare {
    /// The difference is not negative, so that counters may wrap.
    GreaterOrEqual,
    Equal,
    And,
    Nor,
}

impl Compare {
    fn new(flags: u32) -> Outcome<Compare> {
        match flags & !FLUSH {
            0 => Ok(Compare::GreaterOrEqual),
            1 => Ok(Compare::Equal),
            2 => Ok(Compare::And),
            3 => Ok(Compare::Nor),
            _ => Err(Code::INVALID_VALUE),
        }
    }

    fn holds(self, word: u64, value: u64, wide: bool) -> bool {
        match self {
            Compare::GreaterOrEqual if wide => word.wrapping_sub(value) as i64 >= 0,
            Compare::GreaterOrEqual => (word as u32).wrapping_sub(value as u32) as i32 >= 0,
            Compare::Equal => word == value,
            Compare::And => word & value != 0,
            Compare::Nor if wide => !(word | value) != 0,
            Compare::Nor => !(word as u32 | value as u32) != 0,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Word {
    at: u64,
    wide: bool,
}

impl Word {
    fn find(self, memory: &Memory, context: &Context, write: bool) -> Outcome<*mut u8> {
        let size = if self.wide { 8 } else { 4 };
        let found = memory.find(
            self.at,
            size,
            Want {
                context,
                write,
                direct: true,
            },
        )?;
        if found.place == Place::Pageable || !self.at.is_multiple_of(size) {
            return Err(Code::INVALID_VALUE);
        }
        Ok(found.bytes)
    }

    fn load(self, context: &Context) -> Outcome<u64> {
        let memory = read(&running()?.memory);
        let at = self
            .find(&memory, context, false)
            .map_err(|_| Code::ILLEGAL_ADDRESS)?;
        // SAFETY: found and aligned just now, and the memory is held; other processes and threads
        // use it at the same time, by atomics or as a device would. Acquire: writes before the word
        // are visible after the wait.
        Ok(unsafe {
            if self.wide {
                AtomicU64::from_ptr(at.cast()).load(Ordering::Acquire)
            } else {
                AtomicU32::from_ptr(at.cast())
                    .load(Ordering::Acquire)
                    .into()
            }
        })
    }

    fn store(self, context: &Context, value: u64) -> Outcome {
        race::piece_releases(self.at as usize, if self.wide { 8 } else { 4 });
        let memory = read(&running()?.memory);
        let at = self
            .find(&memory, context, true)
            .map_err(|_| Code::ILLEGAL_ADDRESS)?;
        // SAFETY: as in `load`. Release: a reader that sees the word sees the earlier writes.
        unsafe {
            if self.wide {
                AtomicU64::from_ptr(at.cast()).store(value, Ordering::Release);
            } else {
                AtomicU32::from_ptr(at.cast()).store(value as u32, Ordering::Release);
            }
        }
        Ok(())
    }
}

#[derive(Clone, Copy, Debug)]
enum Operation {
    Write(Word, u64),
    /// Whether a flush follows is the last part.
    Wait(Word, u64, Compare, bool),
    /// A fence without effect: nothing here is ever cached elsewhere.
    Fence,
    /// The writes of NICs become visible.
    Flush,
}

impl Operation {
    fn write(word: Word, value: u64, flags: u32) -> Outcome<Operation> {
        if flags & !NO_BARRIER != 0 {
            Err(Code::INVALID_VALUE)
        } else {
            Ok(Self::Write(word, value))
        }
    }

    fn wait(word: Word, value: u64, flags: u32) -> Outcome<Operation> {
        let flushes = flags & FLUSH != 0;
        Ok(Operation::Wait(word, value, Compare::new(flags)?, flushes))
    }

    fn check(self, context: &Context) -> Outcome {
        let memory = read(&driver()?.memory);
        match self {
            Operation::Write(word, _) => word.find(&memory, context, true).map(|_| ()),
            Operation::Wait(word, ..) => word.find(&memory, context, false).map(|_| ()),
            Operation::Fence | Operation::Flush => Ok(()),
        }
    }

    fn run(self, context: &Context) -> Outcome {
        match self {
            Operation::Write(word, value) => word.store(context, value),
            Operation::Fence => {
                fence(Ordering::SeqCst);
                Ok(())
            }
            Operation::Flush => {
                nic::flush();
                Ok(())
            }
            Operation::Wait(word, value, compare, flushes) => {
                let mut looks = 0u32;
                while !compare.holds(word.load(context)?, value, word.wide) {
                    // A context that is destroyed or has failed ends the wait.
                    context.check()?;
                    looks = looks.saturating_add(1);
                    if looks < EAGER_LOOKS {
                        std::thread::yield_now();
                    } else {
                        std::thread::sleep(NAP);
                    }
                }
                race::piece_acquires(word.at as usize);
                if flushes {
                    nic::flush();
                }
                Ok(())
            }
        }
    }
}

fn give(handle: u64, operations: Vec<Operation>) -> Outcome {
    current()?;
    if !driver()?.config.has(Feature::Memops) {
        return Err(Code::NOT_SUPPORTED);
    }
    let stream = stream(handle)?;
    for operation in &operations {
        operation.check(&stream.context)?;
    }
    stream.give(Arc::new(move |context| {
        operations
            .iter()
            .try_for_each(|operation| operation.run(context))
    }))?;
    Ok(())
}

/// `CUstreamBatchMemOpParams`: a union whose members have a common start.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct BatchEntry {
    operation: u32,
    /// Flags of the operations without an address.
    bare_flags: u32,
    address: u64,
    value: u64,
    flags: u32,
    rest: [u32; 5],
}

const _: () = assert!(size_of::<BatchEntry>() == 48);

impl BatchEntry {
    fn parse(&self) -> Outcome<Operation> {
        let wide = matches!(self.operation, WAIT_64 | WRITE_64);
        let word = Word {
            at: self.address,
            wide,
        };
        let value = if wide {
            self.value
        } else {
            u64::from(self.value as u32)
        };
        match self.operation {
            WAIT_32 | WAIT_64 => Operation::wait(word, value, self.flags),
            WRITE_32 | WRITE_64 => Operation::write(word, value, self.flags),
            FLUSH_REMOTE_WRITES if self.bare_flags == 0 => Ok(Operation::Flush),
            BARRIER if self.bare_flags <= 1 => Ok(Operation::Fence),
            _ => Err(Code::INVALID_VALUE),
        }
    }
}

driver_calls! {
    /// A stream writes 32 bits.
    fn cuStreamWriteValue32_v2(handle: u64, at: u64, value: u32, flags: u32) {
        let word = Word { at, wide: false };
        give(handle, vec![Operation::write(word, value.into(), flags)?])
    }

    /// A stream writes 64 bits.
    fn cuStreamWriteValue64_v2(handle: u64, at: u64, value: u64, flags: u32) {
        give(handle, vec![Operation::write(Word { at, wide: true }, value, flags)?])
    }

    /// A stream waits for 32 bits.
    fn cuStreamWaitValue32_v2(handle: u64, at: u64, value: u32, flags: u32) {
        let word = Word { at, wide: false };
        give(handle, vec![Operation::wait(word, value.into(), flags)?])
    }

    /// A stream waits for 64 bits.
    fn cuStreamWaitValue64_v2(handle: u64, at: u64, value: u64, flags: u32) {
        give(handle, vec![Operation::wait(Word { at, wide: true }, value, flags)?])
    }

    /// Several of these operations, in order.
    fn cuStreamBatchMemOp_v2(handle: u64, count: u32, entries: In<BatchEntry>, flags: u32) {
        if count > MOST || flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let entries = entries.list(count as usize)?;
        let operations: Vec<_> = entries.iter().map(BatchEntry::parse).collect::<Outcome<_>>()?;
        give(handle, operations)
    }

    /// Makes NICs' writes visible.
    fn cuFlushGPUDirectRDMAWrites(target: u32, scope: u32) {
        current()?;
        if target != 0 || ![100, 200].contains(&scope) {
            return Err(Code::INVALID_VALUE);
        }
        nic::flush();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparisons_are_those_of_the_driver() {
        use Compare::{And, Equal, GreaterOrEqual, Nor};
        for (compare, word, value, wide, holds) in [
            (GreaterOrEqual, 7, 7, true, true),
            (GreaterOrEqual, 6, 7, true, false),
            // Counters wrap: 1 comes after the greatest number.
            (GreaterOrEqual, 1, u64::MAX, true, true),
            (GreaterOrEqual, 1, 0xffff_ffff, false, true),
            (GreaterOrEqual, 1, 0xffff_ffff, true, false),
            (Equal, 5, 5, true, true),
            (Equal, 4, 5, true, false),
            (And, 0b101, 0b100, true, true),
            (And, 0b001, 0b100, true, false),
            (Nor, u64::MAX, 0, true, false),
            (Nor, 0xffff_ffff, 0, false, false),
            (Nor, 0xffff_ffff, 0, true, true),
        ] {
            assert_eq!(
                compare.holds(word, value, wide),
                holds,
                "{compare:?} {word:x} {value:x}"
            );
        }
    }
}
