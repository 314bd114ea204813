//! Accesses of CPUs and NICs to the simulated memory.

use std::sync::atomic::Ordering;

use oxshmem_transport::{AtomicOp, AtomicRequest, Pe, Width};

use super::cell::{CellId, Mask, merged};
use super::{Machine, Mode, State, Storage};

/// A part of an access that lies in one cell.
struct Part {
    cell: CellId,
    mask: Mask,
    /// Where the cell's first byte in `mask` is, in the cell and in the caller's bytes.
    in_cell: usize,
    in_bytes: std::ops::Range<usize>,
}

/// An access of `len` bytes at `offset`, cell by cell.
fn parts(storage: &Storage, offset: u64, len: usize) -> impl Iterator<Item = Part> {
    let number = storage.number();
    let mut done = 0;
    std::iter::from_fn(move || {
        if done >= len {
            return None;
        }
        let at = offset + done as u64;
        let in_cell = (at % 8) as usize;
        let count = (8 - in_cell).min(len - done);
        let mask = (((1u16 << count) - 1) << in_cell) as u8;
        let in_bytes = done..done + count;
        done += count;
        let cell = CellId {
            storage: number,
            word: at / 8,
        };
        Some(Part {
            cell,
            mask,
            in_cell,
            in_bytes,
        })
    })
}

impl Part {
    /// The caller's bytes, where they are in the cell.
    fn value(&self, from: &[u8]) -> u64 {
        let mut cell = [0; 8];
        let to = self.in_cell..self.in_cell + self.in_bytes.len();
        if let (Some(to), Some(from)) = (cell.get_mut(to), from.get(self.in_bytes.clone())) {
            to.copy_from_slice(from);
        }
        u64::from_le_bytes(cell)
    }

    /// The other way.
    fn give(&self, value: u64, into: &mut [u8]) {
        let cell = value.to_le_bytes();
        let from = self.in_cell..self.in_cell + self.in_bytes.len();
        if let (Some(from), Some(into)) = (cell.get(from), into.get_mut(self.in_bytes.clone())) {
            into.copy_from_slice(from);
        }
    }
}

fn acquires(order: Ordering) -> bool {
    matches!(
        order,
        Ordering::Acquire | Ordering::AcqRel | Ordering::SeqCst
    )
}

fn releases(order: Ordering) -> bool {
    matches!(
        order,
        Ordering::Release | Ordering::AcqRel | Ordering::SeqCst
    )
}

/// The new value of a word after an atomic operation; none if it is unchanged.
fn updated(request: AtomicRequest, old: u64) -> Option<u64> {
    let AtomicRequest {
        op,
        width,
        operand,
        compare,
    } = request;
    let low = |value: u64| match width {
        Width::W32 => value & u64::from(u32::MAX),
        Width::W64 => value,
    };
    let new = match op {
        AtomicOp::Fetch => return None,
        AtomicOp::Set | AtomicOp::Swap => operand,
        AtomicOp::Add => old.wrapping_add(operand),
        AtomicOp::And => old & operand,
        AtomicOp::Or => old | operand,
        AtomicOp::Xor => old ^ operand,
        AtomicOp::CompareSwap if old == low(compare) => operand,
        AtomicOp::CompareSwap => return None,
    };
    Some(low(new))
}

/// Accesses by the CPU of a PE. Offsets are in bytes; what lies outside of a storage is nobody's.
/// Words are aligned.
impl Machine {
    /// Relaxed loads, each cell's bytes at once.
    pub fn load(&self, cpu: Pe, from: &Storage, offset: u64, into: &mut [u8]) {
        self.load_bytes(cpu, from, offset, into, Ordering::Relaxed);
    }

    /// Relaxed stores, each cell's bytes at once.
    pub fn store(&self, cpu: Pe, to: &Storage, offset: u64, from: &[u8]) {
        self.store_bytes(cpu, to, offset, from, Ordering::Relaxed);
    }

    /// Loads a word: relaxed or acquire; sequentially consistent is a fence and an acquire.
    #[must_use]
    pub fn load_word(&self, cpu: Pe, from: &Storage, at: u64, width: Width, o: Ordering) -> u64 {
        if o == Ordering::SeqCst {
            self.fence(cpu, o);
        }
        let mut bytes = [0; 8];
        let (word, _) = bytes.split_at_mut(width.bytes());
        self.load_bytes(cpu, from, at, word, o);
        u64::from_le_bytes(bytes)
    }

    /// Stores a word: relaxed or release; sequentially consistent is a release and a fence.
    pub fn store_word(&self, cpu: Pe, to: &Storage, at: u64, width: Width, v: u64, o: Ordering) {
        let bytes = v.to_le_bytes();
        let (word, _) = bytes.split_at(width.bytes());
        self.store_bytes(cpu, to, at, word, o);
        if o == Ordering::SeqCst {
            self.fence(cpu, o);
        }
    }

    /// An atomic read-modify-write of a word; gives the old value.
    pub fn update(
        &self,
        cpu: Pe,
        on: &Storage,
        offset: u64,
        request: AtomicRequest,
        order: Ordering,
    ) -> u64 {
        if order == Ordering::SeqCst {
            self.fence(cpu, order);
        }
        self.enter(cpu);
        let mut state = self.lock();
        let Some(part) = parts(on, offset, request.width.bytes()).next() else {
            return 0;
        };
        if releases(order) {
            state.drain_all(cpu);
        } else if let Some(own) = state.cpus.get_mut(cpu.index()) {
            for store in own.buffer.take_before_update(part.cell) {
                state.perform_store(cpu, store);
            }
        }
        let old = state.update(&part, request, Some(cpu));
        let now = state.now;
        if let Some(own) = state.cpus.get_mut(cpu.index()) {
            own.latest = now;
            if acquires(order) {
                own.floor = now;
            }
        }
        old
    }

    /// A fence of this PE's CPU: acquire, release, both, or sequentially consistent, which also
    /// drains its stores and leaves nothing old to be seen.
    pub fn fence(&self, cpu: Pe, order: Ordering) {
        self.enter(cpu);
        let mut state = self.lock();
        if order == Ordering::SeqCst {
            state.drain_all(cpu);
        }
        let now = state.now;
        let Some(own) = state.cpus.get_mut(cpu.index()) else {
            return;
        };
        if order == Ordering::SeqCst {
            own.latest = now;
        }
        if acquires(order) {
            own.floor = own.floor.max(own.latest);
        }
        if releases(order) {
            own.buffer.fence();
        }
    }

    fn load_bytes(&self, cpu: Pe, from: &Storage, offset: u64, into: &mut [u8], order: Ordering) {
        let mode = self.enter(cpu);
        for part in parts(from, offset, into.len()) {
            let values = self.lock().values(cpu, from, &part);
            let back = match mode {
                Mode::Directed | Mode::Free if values > 1 => self.choices.choose(values),
                _ => 0,
            };
            let value = self.lock().load(cpu, from, &part, back, acquires(order));
            part.give(value, into);
        }
    }

    fn store_bytes(&self, cpu: Pe, to: &Storage, offset: u64, from: &[u8], order: Ordering) {
        let mode = self.enter(cpu);
        let mut state = self.lock();
        for part in parts(to, offset, from.len()) {
            let value = part.value(from);
            if mode == Mode::Tame {
                state.perform(part.cell, part.mask, value, Some(cpu));
                continue;
            }
            let Some(own) = state.cpus.get_mut(cpu.index()) else {
                continue;
            };
            own.buffer
                .push(part.cell, part.mask, value, releases(order));
            if let Some(store) = own.buffer.take_overflow() {
                state.perform_store(cpu, store);
            }
        }
    }
}

/// Accesses by the NIC of a PE: to memory itself, at once.
impl Machine {
    /// Reads, each cell's bytes at once.
    pub fn nic_read(&self, nic: Pe, from: &Storage, offset: u64, into: &mut [u8]) {
        self.notice(nic);
        let state = self.lock();
        for part in parts(from, offset, into.len()) {
            part.give(state.newest(part.cell), into);
        }
    }

    /// Writes, each cell's bytes at once.
    pub fn nic_write(&self, nic: Pe, to: &Storage, offset: u64, from: &[u8]) {
        self.notice(nic);
        let mut state = self.lock();
        for part in parts(to, offset, from.len()) {
            let value = part.value(from);
            state.perform(part.cell, part.mask, value, None);
        }
    }

    /// An atomic on a word; gives the old value.
    pub fn nic_update(&self, nic: Pe, on: &Storage, offset: u64, request: AtomicRequest) -> u64 {
        self.notice(nic);
        let part = parts(on, offset, request.width.bytes()).next();
        part.map_or(0, |part| self.lock().update(&part, request, None))
    }
}

impl State {
    /// How many values a load of this part may choose from.
    fn values(&mut self, cpu: Pe, from: &Storage, part: &Part) -> usize {
        if self.forwards_all(cpu, part) {
            return 1;
        }
        let view = self.view(cpu, from.pe(), from.kind());
        let cell = self.cell(part.cell);
        cell.map_or(1, |cell| cell.values(cpu, view))
    }

    fn forwards_all(&self, cpu: Pe, part: &Part) -> bool {
        let own = self.cpus.get(cpu.index());
        own.is_some_and(|own| part.mask & !own.buffer.forwarded(part.cell).0 == 0)
    }

    fn load(&mut self, cpu: Pe, from: &Storage, part: &Part, back: usize, acquires: bool) -> u64 {
        let view = self.view(cpu, from.pe(), from.kind());
        let Some(own) = self.cpus.get(cpu.index()) else {
            return 0;
        };
        let (mask, stored) = own.buffer.forwarded(part.cell);
        if part.mask & !mask == 0 {
            return stored;
        }
        let Some(cell) = self.cell(part.cell) else {
            return self.newest(part.cell);
        };
        // Free threads may have changed the cell since the choice was made.
        let back = back.min(cell.values(cpu, view) - 1);
        let (value, seen) = cell.read(cpu, back);
        if let Some(own) = self.cpus.get_mut(cpu.index()) {
            own.latest = own.latest.max(seen);
            if acquires {
                own.floor = own.floor.max(seen);
            }
            if back > 0 {
                own.behind.insert(part.cell);
            } else {
                own.behind.remove(&part.cell);
            }
        }
        merged(value, stored, mask)
    }

    /// A read-modify-write of the newest value. `by` is the CPU that does it, none for a NIC.
    fn update(&mut self, part: &Part, request: AtomicRequest, by: Option<Pe>) -> u64 {
        if let (Some(cpu), Some(cell)) = (by, self.cell(part.cell)) {
            cell.read(cpu, 0);
        }
        let word = |cell: u64| {
            let mut bytes = [0; 8];
            part.give(cell, &mut bytes);
            u64::from_le_bytes(bytes)
        };
        let old = self.change(part.cell, by, |cell| {
            let new = updated(request, word(cell))?;
            Some(merged(cell, part.value(&new.to_le_bytes()), part.mask))
        });
        word(old)
    }
}
