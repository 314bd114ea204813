//! A simulated machine: weak CPUs, one for each PE, NICs and GPUs over one memory.
//!
//! It does what Armv8 or RISC-V may do (x86 does less). Memory is cells of 8 aligned bytes and
//! multi-copy atomic: a write is performed at one moment, for all. What is weak:
//!
//! - A CPU's stores wait in a buffer, which it sees itself, and drain in any order that cells,
//!   release stores and release fences leave open.
//! - Its loads are performed at once, but may see an older value than the newest: any that the cell
//!   had since the CPU's *floor* and since its own last access there. An acquire load raises the floor
//!   to the moment that it saw, an acquire fence to that of every load before.
//! - An atomic read-modify-write acts on the newest value, at once.
//! - A NIC acts on memory directly and knows no store buffer. What it was told after a release fence
//!   waits for the stores before that ([`doorbell`](Machine::doorbell), [`ready`](Machine::ready)).
//! - What NICs write to GPU memory may stay unseen by that GPU (accesses by the owning PE) until
//!   [`make_visible`](Machine::make_visible).
//!
//! Outside of runs ([`Mode::Tame`]) host memory that has addresses is simply that memory; a run works
//! on a copy, which goes back when all are tame again.
//!
//! Not simulated: stores performed before earlier loads (load buffering), and coherence finer than a
//! cell. The newest value and the earliest drain are what a [`Choices`] gets as 0.
//!
//! Threads: any; a machine's lock is held for one access to one cell, and in no [`Choices`] call.

mod access;
mod buffer;
mod cell;
mod plain;
mod storage;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use oxshmem_transport::{MemoryKind, Pe};

use self::buffer::{Buffer, Store};
use self::cell::{Cell, CellId, View, Views, merged};
use self::plain::Plain;
pub use self::storage::Storage;
use crate::choice::{Choices, Environment, Mode};

/// The simulated machine that all PEs of a job run on.
pub struct Machine {
    me: Weak<Machine>,
    pes: u32,
    choices: Arc<dyn Choices>,
    state: Mutex<State>,
    /// Its memory, by owner and address. Locked before `state`, if both are.
    registry: Mutex<BTreeMap<(Pe, usize), Weak<Storage>>>,
}

impl fmt::Debug for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Machine")
            .field("pes", &self.pes)
            .field("choices", &self.choices)
            .finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct Cpu {
    buffer: Buffer,
    /// Loads see nothing that was overwritten before this moment.
    floor: u64,
    /// The latest moment that a load has seen.
    latest: u64,
    /// This PE's GPU sees what NICs wrote up to this moment.
    nic_floor: u64,
    /// Where a load saw an older value than the newest.
    behind: BTreeSet<CellId>,
}

#[derive(Debug)]
struct Region {
    pe: Pe,
    kind: MemoryKind,
    /// The values that all PEs agree on.
    plain: Plain,
    /// The words accessed in a run. None outside of runs.
    cells: HashMap<u64, Cell>,
}

#[derive(Debug)]
struct State {
    now: u64,
    regions: BTreeMap<u64, Region>,
    next_region: u64,
    cpus: Vec<Cpu>,
    /// Whether a run is in progress, or has left operations in flight.
    wild: bool,
    /// In [`Mode::Free`]: at each access a store drains with a chance of one in so many.
    laziness: usize,
}

impl Machine {
    /// For this many PEs; `choices` decides what is left open.
    #[must_use]
    pub fn new(pes: u32, choices: Arc<dyn Choices>) -> Arc<Machine> {
        let cpu = || Cpu {
            buffer: Buffer::default(),
            floor: 0,
            latest: 0,
            nic_floor: 0,
            behind: BTreeSet::new(),
        };
        Arc::new_cyclic(|me| Machine {
            me: me.clone(),
            pes,
            choices,
            state: Mutex::new(State {
                now: 0,
                regions: BTreeMap::new(),
                next_region: 0,
                cpus: (0..pes).map(|_| cpu()).collect(),
                wild: false,
                laziness: 2,
            }),
            registry: Mutex::default(),
        })
    }

    /// Number of PEs.
    #[must_use]
    pub fn pes(&self) -> u32 {
        self.pes
    }

    /// Completes all that is in flight, so that all PEs see the newest values.
    pub fn quiesce(&self) {
        self.lock().quiesce();
    }

    /// The stores that the NIC of `pe` must wait for if a doorbell rings now: its CPU's before the last
    /// release fence. For [`ready`](Self::ready).
    #[must_use]
    pub fn doorbell(&self, pe: Pe) -> u64 {
        let state = self.lock();
        state
            .cpus
            .get(pe.index())
            .map_or(0, |cpu| cpu.buffer.fenced())
    }

    /// Whether what was told at this doorbell may be done.
    #[must_use]
    pub fn ready(&self, pe: Pe, doorbell: u64) -> bool {
        if self.choices.mode(pe) == Mode::Free {
            self.drain_some();
        }
        let state = self.lock();
        let cpu = state.cpus.get(pe.index());
        cpu.is_none_or(|cpu| cpu.buffer.drained(doorbell))
    }

    /// Makes NICs' writes to this PE's GPU memory visible to its GPU (M27).
    pub fn make_visible(&self, pe: Pe) {
        let mut state = self.lock();
        let now = state.now;
        if let Some(cpu) = state.cpus.get_mut(pe.index()) {
            cpu.nic_floor = now;
        }
    }

    /// This PE's CPU has seen that an operation of its NIC is complete: what happened before is not
    /// hidden from its later loads.
    pub fn completion_seen(&self, pe: Pe) {
        let mut state = self.lock();
        let now = state.now;
        if let Some(cpu) = state.cpus.get_mut(pe.index()) {
            cpu.floor = now;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The guarded state is whole whenever it is unlocked, so poison means nothing.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Before each access of a PE's CPU: what happens by itself then.
    fn enter(&self, pe: Pe) -> Mode {
        let mode = self.notice(pe);
        if mode == Mode::Tame {
            self.lock().drain_all(pe);
        }
        mode
    }

    /// Before each access of a PE's CPU or NIC: a run may have begun or ended.
    fn notice(&self, pe: Pe) -> Mode {
        let mode = self.choices.mode(pe);
        match mode {
            Mode::Tame => {
                let tame = |pe| self.choices.mode(Pe(pe)) == Mode::Tame;
                let all = (0..self.pes).all(tame);
                let mut state = self.lock();
                if all && state.wild {
                    state.quiesce();
                }
            }
            Mode::Directed => self.lock().wild = true,
            Mode::Free => self.drain_some(),
        }
        mode
    }

    /// Now and then the machine grows more lazy, or less; a store may drain.
    fn drain_some(&self) {
        const LAZINESS: [usize; 4] = [2, 6, 20, 60];
        if self.choices.choose(64) == 0 {
            let laziness = LAZINESS.get(self.choices.choose(LAZINESS.len()));
            self.lock().laziness = laziness.copied().unwrap_or(2);
        }
        let laziness = {
            let mut state = self.lock();
            state.wild = true;
            state.laziness
        };
        if self.choices.choose(laziness) == 0 {
            let drains = self.lock().drains().len();
            if drains > 0 {
                let number = self.choices.choose(drains.max(2));
                self.lock().drain(number.min(drains - 1));
            }
        }
    }
}

/// Steps of the machine: a store drains; if none can, a CPU comes to see the newer value of a word, so that no PE
/// waits for ever.
impl Environment for Machine {
    fn steps(&self) -> usize {
        let mut state = self.lock();
        match state.drains().len() {
            0 => state.behind().len(),
            drains => drains,
        }
    }

    fn step(&self, number: usize) -> String {
        let mut state = self.lock();
        if let Some(said) = state.drain(number) {
            return said;
        }
        match state.behind().get(number) {
            Some(&pe) => {
                state.catch_up(pe);
                format!("CPU {pe} comes to see what it saw an older value of")
            }
            None => "nothing moves".into(),
        }
    }

    fn quiesce(&self) {
        Machine::quiesce(self);
    }
}

impl Region {
    /// All agree on the newest values.
    fn quiesce(&mut self) {
        for (word, cell) in self.cells.drain() {
            self.plain.update(word, |_| Some(cell.newest()));
        }
    }
}

impl State {
    /// The cell, in a run.
    fn cell(&mut self, id: CellId) -> Option<&mut Cell> {
        if !self.wild {
            return None;
        }
        let Region { plain, cells, .. } = self.regions.get_mut(&id.storage)?;
        let cell = cells.entry(id.word);
        Some(cell.or_insert_with(|| Cell::new(plain.read(id.word))))
    }

    fn newest(&self, id: CellId) -> u64 {
        let Some(region) = self.regions.get(&id.storage) else {
            return 0;
        };
        match region.cells.get(&id.word) {
            Some(cell) => cell.newest(),
            None => region.plain.read(id.word),
        }
    }

    /// How this CPU sees cells of a region of `pe`.
    fn view(&self, cpu: Pe, pe: Pe, kind: MemoryKind) -> View {
        let gpu = kind == MemoryKind::Cuda && cpu == pe;
        let of = self.cpus.get(cpu.index());
        View {
            floor: of.map_or(0, |cpu| cpu.floor),
            nic_floor: of.filter(|_| gpu).map(|cpu| cpu.nic_floor),
        }
    }

    fn views(&self, pe: Pe, kind: MemoryKind) -> Views {
        let cpus = (0..self.cpus.len() as u32).map(Pe);
        Views(cpus.map(|cpu| self.view(cpu, pe, kind)).collect())
    }

    /// Bytes of a cell are written, now, for all. `by` is the CPU that did it, none for a NIC.
    fn perform(&mut self, id: CellId, mask: u8, value: u64, by: Option<Pe>) {
        self.change(id, by, |old| Some(merged(old, value, mask)));
    }

    /// The newest value of a cell is changed, now, for all; gives the old one.
    fn change(&mut self, id: CellId, by: Option<Pe>, to: impl Fn(u64) -> Option<u64>) -> u64 {
        let Some(region) = self.regions.get_mut(&id.storage) else {
            return 0;
        };
        if !self.wild {
            return region.plain.update(id.word, to);
        }
        let (pe, kind) = (region.pe, region.kind);
        let old = self.newest(id);
        if let Some(new) = to(old) {
            let views = self.views(pe, kind);
            self.now += 1;
            let time = self.now;
            if let Some(cell) = self.cell(id) {
                cell.write(new, time, by, &views);
            }
        }
        old
    }

    fn perform_store(&mut self, cpu: Pe, store: Store) {
        self.perform(store.cell, store.mask, store.value, Some(cpu));
    }

    /// Every store that may drain: whose, and its place in the buffer.
    fn drains(&self) -> Vec<(Pe, usize)> {
        let buffers = (0..).map(Pe).zip(&self.cpus);
        buffers
            .flat_map(|(pe, cpu)| cpu.buffer.drainable().map(move |place| (pe, place)))
            .collect()
    }

    fn drain(&mut self, number: usize) -> Option<String> {
        let (pe, place) = self.drains().get(number).copied()?;
        let store = self.cpus.get_mut(pe.index())?.buffer.take(place)?;
        self.perform_store(pe, store);
        let owner = self.regions.get(&store.cell.storage)?;
        let (byte, to, kind) = (8 * store.cell.word, owner.pe, owner.kind);
        Some(format!(
            "CPU {pe} drains its store to {kind} memory of PE {to}, byte {byte}"
        ))
    }

    /// The CPUs that have seen an older value than the newest somewhere, and nothing newer since.
    fn behind(&mut self) -> Vec<Pe> {
        let mut all = Vec::new();
        for pe in (0..self.cpus.len() as u32).map(Pe) {
            let cells = self.cpus.get(pe.index()).map(|cpu| cpu.behind.clone());
            let mut cells = cells.into_iter().flatten();
            if cells.any(|id| self.cell(id).is_some_and(|cell| cell.is_behind(pe))) {
                all.push(pe);
            }
        }
        all
    }

    /// The CPU sees the newest value where it saw an older one. Nothing else becomes known to it.
    fn catch_up(&mut self, pe: Pe) {
        let cells = self.cpus.get_mut(pe.index()).map(|cpu| &mut cpu.behind);
        for id in cells.map(std::mem::take).unwrap_or_default() {
            if let Some(cell) = self.cell(id) {
                cell.read(pe, 0);
            }
        }
    }

    /// This CPU's stores are performed, oldest first.
    fn drain_all(&mut self, pe: Pe) {
        let Some(cpu) = self.cpus.get_mut(pe.index()) else {
            return;
        };
        for store in cpu.buffer.take_all() {
            self.perform_store(pe, store);
        }
    }

    fn quiesce(&mut self) {
        for pe in 0..self.cpus.len() as u32 {
            self.drain_all(Pe(pe));
        }
        for region in self.regions.values_mut() {
            region.quiesce();
        }
        for cpu in &mut self.cpus {
            (cpu.floor, cpu.latest, cpu.nic_floor) = (self.now, self.now, self.now);
            cpu.behind.clear();
        }
        self.wild = false;
    }
}
