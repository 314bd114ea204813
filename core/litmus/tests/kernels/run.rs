//! Runs of programs of kernels: the compiled calls, on the simulated memory.

use std::cell::RefCell;
use std::ffi::c_int;
use std::rc::Rc;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};
use oxshmem_litmus::kernels::Kernels;
use oxshmem_litmus::kernels::program::{Block, Call, Collective, Data, Group, Several, Statement};
use oxshmem_litmus::{Cmp, Fetching, Outcome, SignalOp, Update};
use oxshmem_weak::{Access, Agent, Choices, Place, Scope, Seeded};

use crate::arena::{Arena, Path};
use crate::changes::HOST_CHANGES;
use crate::compiled::{Calls, calls};
use crate::host::Hosts;
use crate::memory::{Memory, poke};
use crate::simulation::{self, HOOKS, Simulation, Thread, ThreadState, give_way, pause, with};

/// Accesses after which a run has not come to its end.
const STEPS: usize = 8_000;

/// The end of a run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum End {
    Outcome(Outcome),
    /// An unordered store behind a load of a guarded word.
    Hazard,
    /// Some thread never ended.
    Endless,
    /// An access to no word.
    Fault(String),
}

/// The change that is made, by its place in its list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changed {
    Nothing,
    Header(usize),
    Host(usize),
}

/// One way to run a program.
#[derive(Clone, Copy, Debug)]
pub struct How {
    pub path: Path,
    pub changed: Changed,
    pub seed: u64,
}

/// A statement of a thread, with the addresses of its private memory.
#[derive(Clone, Copy)]
struct Task<'k> {
    statement: &'k Statement,
    /// The data of a put, or the place of a get's.
    private: usize,
}

/// Memory that runs use one after the other.
pub struct Bench {
    arena: Arena,
    stacks: Rc<RefCell<Vec<DefaultStack>>>,
}

type Fiber = Coroutine<(), (), (), DefaultStack>;

impl Bench {
    pub fn new() -> Bench {
        Bench {
            arena: Arena::new(),
            stacks: Rc::default(),
        }
    }

    /// Runs a program once. The lines that tell of it are empty where they are not wanted.
    pub fn run(&mut self, kernels: &Kernels, how: How, is_told: bool) -> (End, Vec<String>) {
        let calls = calls();
        self.arena.prepare(kernels, how.path);
        let guarded = self.arena.guarded(kernels);
        let range = self.arena.range();
        let (change, of_host) = match how.changed {
            Changed::Nothing => (-1, None),
            Changed::Header(number) => (number as c_int, None),
            Changed::Host(number) => (-1, HOST_CHANGES.get(number)),
        };
        // SAFETY: the hooks live for ever, the arena until the run ends.
        unsafe { (calls.begin)(&HOOKS, range.start, range.len(), change) };
        simulation::begin(Memory::new(range, guarded, Seeded::new(how.seed)), is_told);
        let tasks = self.tasks(kernels);
        let mut hosts = how
            .path
            .has_ring()
            .then(|| Hosts::new(&self.arena, kernels.pes(), how.path.is_late(), of_host));
        let mut fibers = Vec::new();
        for (block, tasks) in kernels.blocks().iter().zip(&tasks) {
            for lane in 0..block.lanes {
                let arena = &self.arena;
                let fiber = self.fiber(move || thread(calls, arena, block, lane, tasks));
                self.spawn(block.pe, block.number, lane, block.lanes);
                fibers.push(fiber);
            }
        }
        let programs = fibers.len();
        for pe in 0..kernels.pes() {
            if how.path.has_ring() {
                let inbox = self.arena.inbox(pe);
                fibers.push(self.fiber(move || {
                    // SAFETY: the inbox lives until the run ends.
                    unsafe { (calls.serve)(inbox) };
                }));
                self.spawn(pe, usize::MAX, 0, 1);
                with(|run| run.threads[programs + pe].state = ThreadState::Done);
            }
        }
        let is_over = self.drive(&mut fibers, programs, hosts.as_mut());
        for mut fiber in fibers {
            if !fiber.done() {
                // SAFETY: what is on the stack are plain values of compiled code, and references.
                unsafe { fiber.force_reset() };
            }
            self.stacks.borrow_mut().push(fiber.into_stack());
        }
        let mut run = simulation::end();
        let end = self.end(kernels, &mut run, is_over);
        (end, run.told.unwrap_or_default())
    }

    fn fiber<'f>(&self, body: impl FnOnce() + 'f) -> Fiber {
        let stack = self.stacks.borrow_mut().pop();
        let stack = stack.unwrap_or_else(|| DefaultStack::new(256 * 1024).unwrap());
        let body: Box<dyn FnOnce() + 'f> = Box::new(body);
        // SAFETY: coroutines are dropped in `run`, before anything that a body refers to.
        let body: Box<dyn FnOnce() + 'static> = unsafe { std::mem::transmute(body) };
        Coroutine::with_stack(stack, move |yielder: &Yielder<(), ()>, ()| {
            simulation::yields_by(yielder);
            body();
        })
    }

    fn spawn(&self, pe: usize, block: usize, lane: usize, lanes: usize) {
        with(|run| {
            let agent = run.memory.machine.agent(Place::Thread { gpu: pe, block });
            run.threads
                .push(Thread::new(agent, (pe, block), lane, lanes));
        });
    }

    /// The private memory of each statement, with its data.
    fn tasks<'k>(&mut self, kernels: &'k Kernels) -> Vec<Vec<Task<'k>>> {
        let arena = &mut self.arena;
        let mut task = |block: &Block, statement: &'k Statement| {
            let (values, words): (&[u64], usize) = match &statement.call {
                Call::Put {
                    data: Data::Values(values),
                    ..
                }
                | Call::PutSignal {
                    data: Data::Values(values),
                    ..
                } => (values, values.len()),
                Call::Get { into, .. } | Call::Iget { into, .. } => (&[], into.len()),
                _ => (&[], 0),
            };
            let private = arena.private(block.pe, words);
            for (word, value) in values.iter().enumerate() {
                poke(private + 8 * word, 8, *value);
            }
            Task { statement, private }
        };
        let blocks = kernels.blocks().iter();
        blocks
            .map(|block| {
                block
                    .statements
                    .iter()
                    .map(|statement| task(block, statement))
                    .collect()
            })
            .collect()
    }

    /// Lets threads, hosts and NICs go on until all is done. False if it takes too long.
    fn drive(&self, fibers: &mut [Fiber], programs: usize, mut hosts: Option<&mut Hosts>) -> bool {
        let calls = calls();
        let arena = &self.arena;
        let mut spent = 0;
        loop {
            spent += 1;
            // What may go on: threads, NICs' operations, hosts.
            let mut eager = Vec::new();
            let mut idle = Vec::new();
            let (mut is_done, stores, steps) = with(|run| {
                for (number, thread) in run.threads.iter().enumerate() {
                    match thread.state {
                        _ if number == run.slow && thread.state.may_go_on() => {
                            idle.push(Next::Thread(number))
                        }
                        ThreadState::Ready => eager.push(Next::Thread(number)),
                        ThreadState::Napping(at) if at == run.memory.stores => {
                            idle.push(Next::Thread(number))
                        }
                        ThreadState::Napping(_) => eager.push(Next::Thread(number)),
                        ThreadState::Meeting | ThreadState::Done => {}
                    }
                }
                let is_done = run.threads[..programs]
                    .iter()
                    .all(|thread| thread.state == ThreadState::Done);
                (is_done, run.memory.stores, run.steps)
            });
            if steps > STEPS || spent > STEPS || with(|run| run.memory.fault.is_some()) {
                return false;
            }
            if let Some(hosts) = hosts.as_deref() {
                for pe in 0..hosts.all.len() {
                    for place in hosts.ready(pe) {
                        let of = if hosts.is_slow(pe, place) {
                            &mut idle
                        } else {
                            &mut eager
                        };
                        of.push(Next::Nic(pe, place));
                    }
                    let host = Next::Host(pe);
                    if hosts.all[pe].idle_at == Some(stores) {
                        idle.push(host)
                    } else {
                        eager.push(host)
                    }
                    let is_free = fibers[programs + pe].done() || !fibers[programs + pe].started();
                    if hosts.has_errand(pe)
                        && is_free
                        && with(|run| run.threads[programs + pe].state) == ThreadState::Done
                    {
                        idle.push(Next::Serve(pe));
                    }
                    let requests = with(|run| run.memory.last(arena.head(pe)));
                    is_done &= hosts.is_idle(pe, requests);
                }
                is_done &= eager.is_empty();
            }
            if is_done {
                return true;
            }
            let next = with(|run| {
                let random = &run.memory.random;
                let of = if eager.is_empty() || (!idle.is_empty() && random.choose(16) == 0) {
                    &idle
                } else {
                    &eager
                };
                if of.is_empty() {
                    None
                } else {
                    Some(of[random.choose(of.len())])
                }
            });
            match (next, hosts.as_deref_mut()) {
                (Some(Next::Thread(number)), _) => {
                    let (lane, lanes, block, pe) = with(|run| {
                        run.current = number;
                        let thread = &run.threads[number];
                        (thread.lane, thread.lanes, thread.block, thread.pe)
                    });
                    // SAFETY: the state lives until the run ends.
                    unsafe {
                        (calls.thread)(lane as u32, lanes as u32, block as u32, arena.state(pe))
                    };
                    if let CoroutineResult::Return(()) = fibers[number].resume(()) {
                        with(|run| {
                            run.settle();
                            run.threads[number].state = ThreadState::Done;
                        });
                    }
                }
                (Some(Next::Nic(pe, place)), Some(hosts)) => hosts.advance(pe, place),
                (Some(Next::Host(pe)), Some(hosts)) => {
                    hosts.all[pe].idle_at = (!hosts.step(arena, pe)).then_some(stores);
                }
                (Some(Next::Serve(pe)), Some(hosts)) => {
                    // The host launches its kernel.
                    let number = programs + pe;
                    if fibers[number].done() {
                        let inbox = arena.inbox(pe);
                        // SAFETY: as in `run`.
                        let body = move || unsafe { (calls.serve)(inbox) };
                        let ended = std::mem::replace(&mut fibers[number], self.fiber(body));
                        self.stacks.borrow_mut().push(ended.into_stack());
                    }
                    let host = hosts.all[pe].agent;
                    with(|run| {
                        let agent = run.threads[number].agent;
                        run.memory.machine.inform(host, agent);
                        run.threads[number].state = ThreadState::Ready;
                    });
                }
                _ => return false,
            }
        }
    }

    fn end(&mut self, kernels: &Kernels, run: &mut Simulation, is_over: bool) -> End {
        if let Some(fault) = run.memory.fault.take() {
            return End::Fault(fault);
        }
        if !run.memory.machine.hazards().is_empty() {
            return End::Hazard;
        }
        if !is_over {
            return End::Endless;
        }
        let observed = kernels.head().observed().iter();
        let memory: Vec<u64> = observed
            .map(|place| run.memory.last(self.arena.words(place.words, place.pe)))
            .collect();
        End::Outcome(kernels.outcome(&run.registers, &memory))
    }
}

/// Something that may go on.
#[derive(Clone, Copy)]
enum Next {
    Thread(usize),
    Nic(usize, usize),
    Host(usize),
    Serve(usize),
}

fn group(group: Group) -> c_int {
    match group {
        Group::Thread => 0,
        Group::Warp => 1,
        Group::Block => 2,
    }
}

/// The number of a comparison in compare.cuh.
fn compare(cmp: Cmp) -> c_int {
    match cmp {
        Cmp::Eq => 0,
        Cmp::Ne => 1,
        Cmp::Gt => 2,
        Cmp::Ge => 3,
        Cmp::Lt => 4,
        Cmp::Le => 5,
    }
}

fn update(update: Update) -> c_int {
    Update::ALL.iter().position(|one| *one == update).unwrap() as c_int
}

/// An access of this thread by its own code.
fn access<T>(work: impl FnOnce(&mut Memory, Agent) -> T) -> T {
    pause();
    with(|run| {
        let agent = run.threads[run.current].agent;
        work(&mut run.memory, agent)
    })
}

/// The calls of one thread.
fn thread(calls: &Calls, arena: &Arena, block: &Block, lane: usize, tasks: &[Task<'_>]) {
    let mut awaited: Vec<(oxshmem_litmus::Register, usize)> = Vec::new();
    for task in tasks.iter().filter(|task| task.statement.is_of(lane)) {
        let Task { statement, private } = *task;
        let fill = |register: Option<&oxshmem_litmus::Register>, value: u64| {
            with(|run| {
                if let Some(register) = register.filter(|_| statement.fills(lane)) {
                    run.tell(|_| format!("  {register} = {value}"));
                    run.registers.insert(*register, value);
                }
            });
        };
        let read = |at: usize| access(|memory, agent| memory.load(agent, at, 8, Access::WEAK));
        with(|run| {
            run.tell(|_| {
                format!(
                    "  PE {} block {} lane {lane}: {:?}",
                    block.pe, block.number, statement.call
                )
            })
        });
        let scope = group(statement.group);
        let own = |words| arena.words(words, block.pe);
        // SAFETY: all addresses lie in the arena, or are the simulation's.
        unsafe {
            match &statement.call {
                Call::Put { to, data, nbi } => {
                    let from = if let Data::Own(words) = data {
                        own(*words)
                    } else {
                        private
                    };
                    (calls.put)(
                        scope,
                        own(to.words),
                        from,
                        to.words.count,
                        to.pe as c_int,
                        (*nbi).into(),
                    );
                }
                Call::Get { into, from, nbi } => {
                    (calls.get)(
                        scope,
                        private,
                        own(from.words),
                        from.words.count,
                        from.pe as c_int,
                        (*nbi).into(),
                    );
                    let places = into
                        .iter()
                        .enumerate()
                        .map(|(word, register)| (*register, private + 8 * word));
                    if *nbi {
                        awaited.extend(places);
                    } else if statement.fills(lane) {
                        places.for_each(|(register, at)| fill(Some(&register), read(at)));
                    }
                }
                Call::Iput { to, from } => {
                    (calls.iput)(scope, own(to.words), own(*from), from.count, to.pe as c_int);
                }
                Call::Iget { into, from } => {
                    (calls.iget)(
                        scope,
                        private,
                        own(from.words),
                        from.words.count,
                        from.pe as c_int,
                    );
                    if statement.fills(lane) {
                        let places = into.iter().enumerate();
                        places.for_each(|(word, register)| {
                            fill(Some(register), read(private + 8 * word))
                        });
                    }
                }
                Call::P { to, value } => (calls.p)(own(to.words), *value, to.pe as c_int),
                Call::G { into, from } => {
                    fill(Some(into), (calls.g)(own(from.words), from.pe as c_int))
                }
                Call::Update {
                    update: what,
                    at,
                    value,
                } => {
                    (calls.update)(update(*what), own(at.words), *value, at.pe as c_int);
                }
                Call::Fetch { into, fetching, at } => {
                    let (word, pe) = (own(at.words), at.pe as c_int);
                    let old = match *fetching {
                        Fetching::Fetch => (calls.fetch)(word, pe),
                        Fetching::Update(what, value) => {
                            (calls.fetch_update)(update(what), word, value, pe)
                        }
                        Fetching::CompareSwap { expected, value } => {
                            (calls.compare_swap)(word, expected, value, pe)
                        }
                    };
                    fill(Some(into), old);
                }
                Call::PutSignal {
                    to,
                    data,
                    signal,
                    op,
                    value,
                    nbi,
                } => {
                    let from = if let Data::Own(words) = data {
                        own(*words)
                    } else {
                        private
                    };
                    let (add, nbi) = ((*op == SignalOp::Add).into(), (*nbi).into());
                    let (n, pe) = (to.words.count, to.pe as c_int);
                    (calls.put_signal)(
                        scope,
                        own(to.words),
                        from,
                        n,
                        own(*signal),
                        *value,
                        add,
                        pe,
                        nbi,
                    );
                }
                Call::Signal { op, at, value } => {
                    (calls.signal)(
                        own(at.words),
                        *value,
                        (*op == SignalOp::Add).into(),
                        at.pe as c_int,
                    );
                }
                Call::Write { to, value } => {
                    let at = own(*to);
                    access(|memory, agent| memory.store(agent, at, 8, *value, Access::WEAK));
                }
                Call::Read { into, from } => fill(Some(into), read(own(*from))),
                Call::Wait {
                    into: None,
                    word,
                    cmp,
                    value,
                } => (calls.wait_until)(own(*word), compare(*cmp), *value),
                Call::Wait {
                    into,
                    word,
                    cmp,
                    value,
                } => {
                    fill(
                        into.as_ref(),
                        (calls.wait)(own(*word), compare(*cmp), *value),
                    );
                }
                Call::Test {
                    into,
                    word,
                    cmp,
                    value,
                } => {
                    fill(Some(into), (calls.test)(own(*word), compare(*cmp), *value));
                }
                Call::SignalFetch { into, word } => {
                    fill(Some(into), (calls.signal_fetch)(own(*word)))
                }
                Call::WaitSeveral {
                    which,
                    into,
                    words,
                    cmp,
                    value,
                } => {
                    let which = several(*which);
                    let found = (calls.wait_several)(
                        which,
                        own(*words),
                        words.count,
                        compare(*cmp),
                        *value,
                    );
                    fill(into.as_ref(), found);
                }
                Call::TestSeveral {
                    which,
                    into,
                    words,
                    cmp,
                    value,
                } => {
                    let which = several(*which);
                    let found = (calls.test_several)(
                        which,
                        own(*words),
                        words.count,
                        compare(*cmp),
                        *value,
                    );
                    fill(Some(into), found);
                }
                Call::Fence => (calls.fence)(),
                Call::Quiet => {
                    (calls.quiet)();
                    for (register, at) in std::mem::take(&mut awaited) {
                        fill(Some(&register), read(at));
                    }
                }
                Call::Flush => (calls.flush)(),
                Call::Barrier => (calls.barrier)(scope),
                Call::Sync => (calls.sync)(scope),
                Call::Collective { what, to, from } => {
                    let (number, root, n) = match what {
                        Collective::Broadcast(root) => (0, *root, to.count),
                        Collective::Fcollect => (1, 0, from.count),
                        Collective::Alltoall => (2, 0, to.count / arena.pes()),
                        Collective::Sum => (3, 0, to.count),
                    };
                    (calls.collective)(scope, number, own(*to), own(*from), n, root as c_int);
                }
                Call::SyncGroup => (calls.sync_group)(scope),
                Call::ThreadFence(scope) => {
                    access(|memory, agent| memory.machine.fence(agent, *scope))
                }
                Call::AtomicAdd {
                    into,
                    scope,
                    word,
                    value,
                } => {
                    let (at, value) = (own(*word), *value);
                    let add = |old: u64| Some(old.wrapping_add(value));
                    let old = access(|memory, agent| {
                        memory.update(agent, at, 8, Access::relaxed(*scope), add)
                    });
                    fill(Some(into), old);
                }
                Call::Spin {
                    scope,
                    word,
                    cmp,
                    value,
                } => spin(own(*word), *scope, *cmp, *value),
            }
        }
        with(Simulation::settle);
    }
}

fn several(which: Several) -> c_int {
    match which {
        Several::All => 0,
        Several::Any => 1,
        Several::Some => 2,
    }
}

/// A loop of relaxed loads.
fn spin(at: usize, scope: Scope, cmp: Cmp, value: u64) {
    loop {
        let seen = access(|memory, agent| memory.load(agent, at, 8, Access::relaxed(scope)));
        if cmp.holds(seen, value) {
            return;
        }
        with(|run| {
            let stores = run.memory.stores;
            run.threads[run.current].state = ThreadState::Napping(stores);
        });
        give_way();
    }
}
