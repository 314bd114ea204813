use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex};

use oxshmem_transport::{
    AtomicLevel, AtomicOp, Counters, Error, Job, Lane, Local, Memory, Op, Pe, Posted, Remote,
    Result,
};

use crate::{Board, CAPABILITIES, DEPTH, LIMITS, NAME, Shared, bad_data, lock, packed, unpacked};

/// A lane's way to one PE.
#[derive(Debug, Default)]
struct Way {
    /// This side's endpoint, once made.
    endpoint: Option<u64>,
    connected: bool,
    counters: Counters,
}

#[derive(Debug)]
pub(crate) struct TinyLane {
    board: Arc<Mutex<Board>>,
    job: Job,
    shared: Arc<Mutex<Shared>>,
    ways: Vec<Way>,
    /// What was accepted, and the far address that was checked then.
    queue: VecDeque<(Pe, Op, Far)>,
}

impl TinyLane {
    pub(crate) fn new(board: Arc<Mutex<Board>>, job: Job, shared: Arc<Mutex<Shared>>) -> TinyLane {
        let ways = (0..job.size).map(|_| Way::default()).collect();
        TinyLane {
            board,
            job,
            shared,
            ways,
            queue: VecDeque::new(),
        }
    }
}

/// A checked far address, and the memory that keeps it.
#[derive(Debug)]
struct Far(Option<(Memory, usize)>);

// SAFETY: the raw pointers in the queue's `Op`s are the poster's, who promised their validity until
// the lane is done with them, wherever the lane is moved to.
unsafe impl Send for TinyLane {}

impl Far {
    /// The address; dangling for a flush, which has none.
    fn ptr(&self) -> *mut u8 {
        match &self.0 {
            // SAFETY: `checked` found the offset inside the memory, which its owner keeps.
            Some((memory, offset)) => unsafe { memory.base().as_ptr().add(*offset) },
            None => std::ptr::dangling_mut(),
        }
    }
}

/// All that can be wrong with an operation.
fn checked(shared: &Shared, pe: Pe, op: &Op) -> Result<Far> {
    let unsupported = |what: String| Error::Unsupported {
        transport: NAME,
        what,
    };
    let transfer = |local: &Local| match local.len as u64 {
        len if len > LIMITS.max => Err(unsupported(format!("a transfer of {len} bytes"))),
        len if len > LIMITS.unregistered && local.key.is_none() => Err(unsupported(format!(
            "a transfer of {len} unregistered bytes"
        ))),
        len => Ok(len),
    };
    let (remote, len) = match op {
        Op::Put {
            from: local,
            to: remote,
        }
        | Op::Get {
            into: local,
            from: remote,
        } => (remote, transfer(local)?),
        Op::Atomic {
            op,
            width,
            on,
            fetch,
            ..
        } => {
            if CAPABILITIES.atomics.level(*op, *width) == AtomicLevel::None {
                return Err(unsupported(format!("atomic {op} of {width} bits")));
            }
            let align = width.bytes() as u64;
            let near = fetch.map_or(0, |into| into.addr.addr() as u64);
            if let Some(offset) = [on.offset, near].into_iter().find(|at| at % align != 0) {
                let what = "an atomic";
                return Err(Error::Misaligned {
                    transport: NAME,
                    what,
                    offset,
                    align,
                });
            }
            (on, align)
        }
        Op::Flush => return Ok(Far(None)),
        other => return Err(unsupported(format!("{other:?}"))),
    };
    let Remote { region, offset } = *remote;
    let unknown = Error::UnknownRegion {
        transport: NAME,
        region: region.0,
        pe,
    };
    let memory = shared.imported.get(&(pe, region)).ok_or(unknown)?;
    match offset.checked_add(len) {
        Some(end) if end <= memory.len() as u64 => Ok(Far(Some((memory.clone(), offset as usize)))),
        _ => {
            let region = memory.len() as u64;
            Err(Error::OutOfRange {
                transport: NAME,
                offset,
                len,
                region,
            })
        }
    }
}

/// # Safety
///
/// The operation's near side is valid; `far` is what [`checked`] made of it.
unsafe fn perform(op: &Op, far: *mut u8) {
    // Before and after: no operation of a lane is seen out of its turn.
    fence(Ordering::SeqCst);
    match *op {
        // SAFETY: both sides are valid for `len` bytes, by the caller's promise.
        Op::Put { from, .. } => unsafe { oxshmem_heap::copy::copy(far, from.addr, from.len) },
        // SAFETY: as for put.
        Op::Get { into, .. } => unsafe { oxshmem_heap::copy::copy(into.addr, far, into.len) },
        Op::Atomic {
            op,
            operand,
            compare,
            fetch,
            ..
        } => {
            // SAFETY: a checked, aligned word; all PEs access it atomically.
            let word = unsafe { AtomicU64::from_ptr(far.cast()) };
            let order = Ordering::SeqCst;
            let old = match op {
                AtomicOp::Set => word.swap(operand, order),
                AtomicOp::Add => word.fetch_add(operand, order),
                AtomicOp::CompareSwap => word
                    .compare_exchange(compare, operand, order, order)
                    .unwrap_or_else(|found| found),
                // Fetch; `checked` refused all others.
                _ => word.load(order),
            };
            if let Some(into) = fetch {
                // SAFETY: a valid word by the caller's promise, aligned as `checked` found.
                unsafe { AtomicU64::from_ptr(into.addr.cast()) }.store(old, Ordering::Relaxed);
            }
        }
        _ => {}
    }
    fence(Ordering::SeqCst);
}

impl Lane for TinyLane {
    fn endpoint(&mut self, pe: Pe) -> Result<Vec<u8>> {
        lock(&self.shared).check(&self.job, pe)?;
        let me = self.job.me;
        let mut board = lock(&self.board);
        let number = *self.ways[pe.index()]
            .endpoint
            .get_or_insert_with(|| board.number());
        board.endpoints.insert(number, (me, pe));
        Ok(packed(b"end ", &[number]))
    }

    fn connect(&mut self, pe: Pe, endpoint: &[u8]) -> Result<()> {
        lock(&self.shared).check(&self.job, pe)?;
        let bad = |why| bad_data("an endpoint", pe, why);
        let [number] = unpacked(b"end ", endpoint).ok_or_else(|| bad("it is not an endpoint"))?;
        if lock(&self.board).endpoints.get(&number) != Some(&(pe, self.job.me)) {
            return Err(bad("it was not made by that PE for this one"));
        }
        self.ways[pe.index()].connected = true;
        Ok(())
    }

    unsafe fn post(&mut self, pe: Pe, ops: &[Op]) -> Posted {
        let shared = lock(&self.shared);
        if let Err(error) = shared.check(&self.job, pe) {
            return Posted::refused(0, error);
        }
        let way = &mut self.ways[pe.index()];
        if !way.connected {
            let why = "this lane is not connected with it".into();
            return Posted::refused(
                0,
                Error::Unreachable {
                    transport: NAME,
                    pe,
                    why,
                },
            );
        }
        for (accepted, op) in ops.iter().enumerate() {
            if way.counters.posted - way.counters.completed >= DEPTH as u64 {
                return Posted::full(accepted);
            }
            match checked(&shared, pe, op) {
                Ok(far) => self.queue.push_back((pe, *op, far)),
                Err(error) => return Posted::refused(accepted, error),
            }
            way.counters.posted += 1;
        }
        Posted::all(ops.len())
    }

    /// At most 4 operations a call.
    fn progress(&mut self) -> Result<()> {
        lock(&self.shared).check_open()?;
        for _ in 0..4 {
            let Some((pe, op, far)) = self.queue.pop_front() else {
                break;
            };
            if lock(&self.shared).lost.contains(&pe) {
                continue;
            }
            // SAFETY: the poster promised the near side's validity until completion, which is not
            // counted before the next line; `far` was checked when the operation was taken.
            unsafe { perform(&op, far.ptr()) };
            self.ways[pe.index()].counters.completed += 1;
        }
        Ok(())
    }

    fn counters(&self, pe: Pe) -> Counters {
        self.ways
            .get(pe.index())
            .map(|way| way.counters)
            .unwrap_or_default()
    }
}

impl Drop for TinyLane {
    fn drop(&mut self) {
        let mut board = lock(&self.board);
        for number in self.ways.iter().filter_map(|way| way.endpoint) {
            board.endpoints.remove(&number);
        }
    }
}
