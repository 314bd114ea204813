//! A run's threads on the simulated memory, and the calls by which compiled code reaches them.
//!
//! Threads are coroutines of one thread of the host. One goes on until it comes to a [`pause`], before each of its accesses.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

use corosensei::Yielder;
use oxshmem_litmus::Register;
use oxshmem_weak::{Access, Agent, Choices};

use crate::compiled::Hooks;
use crate::memory::{Memory, relaxed};
use crate::ptx::Instructions;

/// One thread of a GPU.
#[derive(Clone, Debug)]
pub struct Thread {
    pub agent: Agent,
    pub pe: usize,
    pub block: usize,
    pub lane: usize,
    pub lanes: usize,
    pub state: ThreadState,
    /// A plain store that compiled code is about to make.
    stored: Option<(usize, usize, Access)>,
    /// The address and value of its last access, if that was a load.
    last: Option<(usize, u64)>,
    /// The lanes that came to a place with it, if they have gone on.
    lanes_here: Option<u32>,
    /// The lanes for which the next atomic of the first of them is made, this one among them.
    joined: Option<u32>,
    /// The last atomic that was made for it at each address: whose it was, and the number of its access.
    atomics: HashMap<usize, (Agent, u32)>,
    /// The values of an exchange, by lane, if all have come to it.
    values: HashMap<usize, u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadState {
    Ready,
    /// It found nothing new when there had been so many stores.
    Napping(u64),
    /// It waits for the others of its group.
    Meeting,
    Done,
}

/// The block of the thread by which a host has the inbox of its GPU served.
pub const SERVER: usize = usize::MAX;

/// A run.
pub struct Simulation {
    pub memory: Memory,
    pub threads: Vec<Thread>,
    pub current: usize,
    /// Threads that have come to a meeting, by block and lanes.
    meetings: HashMap<(usize, usize, u32), Vec<usize>>,
    /// Threads that have come to an exchange, in the same way, with their values.
    exchanges: HashMap<(usize, usize, u32), Vec<(usize, u64)>>,
    /// Threads that may go on together from a place, by block.
    together: HashMap<(usize, usize), Vec<usize>>,
    instructions: Instructions,
    pub registers: BTreeMap<Register, u64>,
    /// Accesses so far.
    pub steps: usize,
    /// One access in so many is a pause.
    pace: usize,
    /// The thread before which others go mostly, if there is one of this number.
    pub slow: usize,
    /// Lines that tell of each access, if they are wanted.
    pub told: Option<Vec<String>>,
}

thread_local! {
    static SIMULATION: RefCell<Option<Simulation>> = const { RefCell::new(None) };
    /// The yielder of the thread that goes on.
    static YIELDER: Cell<*const Yielder<(), ()>> = const { Cell::new(std::ptr::null()) };
}

/// The functions that compiled code calls.
pub static HOOKS: Hooks = Hooks {
    ptx,
    plain_load,
    plain_store,
    meet,
    lanes,
    exchange,
    sleep,
};

/// Begins a run on this thread of the host.
pub fn begin(memory: Memory, is_told: bool) {
    let pace = [2, 4, 12, 40][memory.random.choose(4)];
    let slow = memory.random.choose(8);
    SIMULATION.set(Some(Simulation {
        memory,
        threads: Vec::new(),
        current: 0,
        meetings: HashMap::new(),
        exchanges: HashMap::new(),
        together: HashMap::new(),
        instructions: Instructions::default(),
        registers: BTreeMap::new(),
        steps: 0,
        pace,
        slow,
        told: is_told.then(Vec::new),
    }));
}

/// Ends it.
pub fn end() -> Simulation {
    SIMULATION.take().expect("a run has begun")
}

/// Works on the run of this thread of the host.
pub fn with<T>(work: impl FnOnce(&mut Simulation) -> T) -> T {
    SIMULATION.with_borrow_mut(|simulation| work(simulation.as_mut().expect("a run has begun")))
}

/// The yielder of the thread that goes on from here.
pub fn yields_by(yielder: *const Yielder<(), ()>) {
    YIELDER.set(yielder);
}

/// Lets others go on.
pub fn give_way() {
    let yielder = YIELDER.get();
    // SAFETY: it is that of the coroutine that runs here, whose stack lives until it ends.
    unsafe { (*yielder).suspend(()) };
    YIELDER.set(yielder);
}

/// Before an access of the thread that goes on: others may go on first.
pub fn pause() {
    let gives_way = with(|run| {
        run.settle();
        run.steps += 1;
        let stores = run.memory.stores;
        let naps = run.threads[run.current].state == ThreadState::Napping(stores);
        naps || run.memory.chance(run.pace)
    });
    if gives_way {
        give_way();
    }
}

impl Simulation {
    /// The thread that goes on.
    fn me(&mut self) -> &mut Thread {
        &mut self.threads[self.current]
    }

    pub fn tell(&mut self, words: impl FnOnce(&Simulation) -> String) {
        if self.told.is_some() {
            let words = words(self);
            self.told.get_or_insert_default().push(words);
        }
    }

    fn name(&self) -> String {
        let thread = &self.threads[self.current];
        format!(
            "PE {} block {} lane {}",
            thread.pe, thread.block, thread.lane
        )
    }

    /// The plain store that compiled code has made since its last call.
    pub fn settle(&mut self) {
        if let Some((at, bytes, access)) = self.me().stored.take() {
            let agent = self.me().agent;
            self.memory.plain_store(agent, at, bytes, access);
            self.acted(None);
        }
    }

    /// The thread has made an access; of a load, its address and value.
    fn acted(&mut self, load: Option<(usize, u64)>) {
        let stores = self.memory.stores;
        let me = self.me();
        let is_same = load.is_some() && me.last == load;
        me.state = if is_same {
            ThreadState::Napping(stores)
        } else {
            ThreadState::Ready
        };
        me.last = load;
    }

    /// A thread comes to a meeting of so many, which the key tells from others. True if all are there.
    fn arrive(&mut self, key: (usize, usize, u32), wanted: usize) -> bool {
        let current = self.current;
        let here = self.meetings.entry(key).or_default();
        here.push(current);
        if here.len() < wanted {
            self.me().state = ThreadState::Meeting;
            return false;
        }
        let here = self.meetings.remove(&key).unwrap_or_default();
        let agents: Vec<Agent> = here
            .iter()
            .map(|&thread| self.threads[thread].agent)
            .collect();
        self.memory.machine.meet(&agents);
        for thread in here {
            self.threads[thread].state = ThreadState::Ready;
        }
        true
    }

    /// The meeting of the thread's block, or of the lanes of its warp.
    fn arrive_in_block(&mut self, lanes: u32) -> bool {
        let me = &self.threads[self.current];
        let wanted = if lanes == 0 {
            me.lanes
        } else {
            lanes.count_ones() as usize
        };
        self.arrive((me.pe, me.block, lanes), wanted)
    }

    /// A thread comes to an exchange of values with the lanes of its warp. It orders nothing. True if all are there.
    fn arrive_with(&mut self, value: u64, lanes: u32) -> bool {
        let (current, me) = (self.current, self.me());
        me.state = ThreadState::Meeting;
        let key = (me.pe, me.block, lanes);
        let here = self.exchanges.entry(key).or_default();
        here.push((current, value));
        if here.len() < lanes.count_ones() as usize {
            return false;
        }
        let here = self.exchanges.remove(&key).unwrap_or_default();
        let values: HashMap<usize, u64> = here
            .iter()
            .map(|&(thread, value)| (self.threads[thread].lane, value))
            .collect();
        for (thread, _) in here {
            self.threads[thread].state = ThreadState::Ready;
            self.threads[thread].values = values.clone();
        }
        true
    }

    /// The thread, and all that stand at the same place, go on together.
    fn go_on_together(&mut self) {
        let me = self.me();
        let key = (me.pe, me.block);
        let here = self.together.remove(&key).unwrap_or_default();
        let lanes = here.iter().map(|&thread| 1 << self.threads[thread].lane);
        let lanes = lanes.fold(0, |all, lane: u32| all | lane);
        for thread in here {
            self.threads[thread].state = ThreadState::Ready;
            self.threads[thread].lanes_here = Some(lanes);
            self.threads[thread].joined = Some(lanes);
        }
    }

    /// The thread makes an atomic, for the lanes that came to its place with it, too. It has to be ordered behind the last one that was made
    /// for each of them: lanes have no common program order, so it might come first. The simulated memory has no way to show that, as
    /// the value of the earlier one is known.
    fn makes_atomic(&mut self, at: usize) {
        let me = self.me();
        let (agent, place) = (me.agent, (me.pe, me.block));
        let lanes = me.joined.unwrap_or(1 << me.lane);
        let machine = &self.memory.machine;
        let made = (agent, machine.accesses(agent) + 1);
        let mut is_behind = true;
        for thread in &mut self.threads {
            if (thread.pe, thread.block) == place && lanes & 1 << thread.lane != 0 {
                thread.joined = None;
                let last = thread.atomics.insert(at, made);
                is_behind &= last.is_none_or(|(other, access)| machine.knows(agent, other, access));
            }
        }
        if !is_behind {
            let fault = format!(
                "{}: an atomic at {at:#x} before one of its lanes'",
                self.name()
            );
            self.memory.fault = Some(fault);
        }
    }

    /// The end of the kernel of the thread's PE.
    fn arrive_in_grid(&mut self) -> bool {
        let pe = self.threads[self.current].pe;
        let takes_part = |thread: &&Thread| thread.pe == pe && thread.block != SERVER;
        let wanted = self.threads.iter().filter(takes_part).count();
        self.arrive((pe, SERVER, 0), wanted)
    }
}

/// All threads of the PE come to the end of their kernel; the stream's next one begins.
pub fn next_kernel() {
    pause();
    if !with(Simulation::arrive_in_grid) {
        give_way();
    }
}

impl Thread {
    pub fn new(agent: Agent, (pe, block): (usize, usize), lane: usize, lanes: usize) -> Thread {
        Thread {
            agent,
            pe,
            block,
            lane,
            lanes,
            state: ThreadState::Ready,
            stored: None,
            last: None,
            lanes_here: None,
            joined: None,
            atomics: HashMap::new(),
            values: HashMap::new(),
        }
    }
}

extern "C" fn ptx(text: *const c_char, at: *const c_void, a: u64, b: u64) -> u64 {
    pause();
    with(|run| {
        let words = || {
            // SAFETY: compiled code gives literals.
            let text = unsafe { CStr::from_ptr(text) };
            text.to_string_lossy().into_owned()
        };
        let instruction = run.instructions.at(text.addr(), words);
        let agent = run.me().agent;
        let value = if instruction.is_lanes_before() {
            (1 << run.me().lane) - 1
        } else {
            if instruction.is_atomic() {
                run.makes_atomic(at.addr());
            }
            instruction.perform(&mut run.memory, agent, at.addr(), a, b)
        };
        run.acted(instruction.is_load().then_some((at.addr(), value)));
        run.tell(|run| {
            format!(
                "{}: {} {:#x} {a} {b} gives {value}",
                run.name(),
                words(),
                at.addr()
            )
        });
        value
    })
}

extern "C" fn plain_load(at: *const c_void, bytes: u64) {
    pause();
    with(|run| {
        let agent = run.me().agent;
        run.memory.plain_load(agent, at.addr(), bytes as usize);
        run.acted(None);
    });
}

extern "C" fn plain_store(at: *const c_void, bytes: u64, is_volatile: c_int) {
    pause();
    let access = if is_volatile == 0 {
        Access::WEAK
    } else {
        relaxed()
    };
    with(|run| run.me().stored = Some((at.addr(), bytes as usize, access)));
}

extern "C" fn meet(lanes: c_uint) {
    pause();
    if !with(|run| run.arrive_in_block(lanes)) {
        give_way();
    }
}

/// The lanes that go on from here together: those that are here when one of them has waited for long enough.
extern "C" fn lanes() -> c_uint {
    pause();
    with(|run| {
        let (current, stores) = (run.current, run.memory.stores);
        let me = run.me();
        me.lanes_here = None;
        me.state = ThreadState::Napping(stores);
        let key = (me.pe, me.block);
        run.together.entry(key).or_default().push(current);
    });
    if with(|run| run.memory.chance(2)) {
        give_way();
    }
    with(|run| {
        if run.me().lanes_here.is_none() {
            run.go_on_together();
        }
        run.me().lanes_here.expect("the lanes are known")
    })
}

extern "C" fn exchange(lanes: c_uint, value: u64, from: c_int) -> u64 {
    pause();
    if !with(|run| run.arrive_with(value, lanes)) {
        give_way();
    }
    with(|run| {
        let values = std::mem::take(&mut run.me().values);
        match usize::try_from(from) {
            Ok(lane) => values[&lane],
            Err(_) => values.values().all(|value| *value != 0).into(),
        }
    })
}

extern "C" fn sleep() {
    with(|run| {
        run.settle();
        let stores = run.memory.stores;
        run.me().state = ThreadState::Napping(stores);
    });
    give_way();
}
