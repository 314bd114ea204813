//! Runs of programs of kernels: the compiled calls, on the simulated memory.

use std::cell::RefCell;
use std::ffi::c_int;
use std::rc::Rc;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};
use oxshmem_litmus::Outcome;
use oxshmem_litmus::kernels::Kernels;
use oxshmem_litmus::kernels::program::{Block, Call, Data, Statement};
use oxshmem_weak::{Choices, Place, Seeded};

use crate::arena::{Arena, Path};
use crate::changes::HOST_CHANGES;
use crate::compiled::calls;
use crate::host::Hosts;
use crate::memory::{Memory, poke};
use crate::simulation::{self, HOOKS, SERVER, Simulation, Thread, ThreadState, with};
use crate::thread::{Task, thread};

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
    /// An access to no word, or an atomic for several lanes that is not behind an earlier one of theirs.
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
        unsafe { (calls.begin)(&raw const HOOKS, range.start, range.len(), change) };
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
                self.spawn(pe, SERVER, 0, 1);
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
            let mut open = Open::default();
            let (mut is_done, stores, steps) = with(|run| {
                for (number, thread) in run.threads.iter().enumerate() {
                    let of = match thread.state {
                        ThreadState::Meeting | ThreadState::Done => continue,
                        _ if number == run.slow => &mut open.slow,
                        ThreadState::Napping(at) if at == run.memory.stores => &mut open.idle,
                        _ => &mut open.eager,
                    };
                    of.push(Next::Thread(number));
                }
                let mut programs = run.threads[..programs].iter();
                let is_done = programs.all(|thread| thread.state == ThreadState::Done);
                (is_done, run.memory.stores, run.steps)
            });
            if steps > STEPS || spent > STEPS || with(|run| run.memory.fault.is_some()) {
                return false;
            }
            if let Some(hosts) = hosts.as_deref() {
                for pe in 0..hosts.all.len() {
                    for place in hosts.ready(pe) {
                        let is_slow = hosts.is_slow(pe, place);
                        let of = if is_slow {
                            &mut open.slow
                        } else {
                            &mut open.eager
                        };
                        of.push(Next::Nic(pe, place));
                    }
                    let is_idle = hosts.all[pe].idle_at == Some(stores);
                    let of = if is_idle {
                        &mut open.idle
                    } else {
                        &mut open.eager
                    };
                    of.push(Next::Host(pe));
                    let server = programs + pe;
                    let is_free = with(|run| run.threads[server].state) == ThreadState::Done;
                    if hosts.has_errand(pe) && is_free {
                        open.idle.push(Next::Serve(pe));
                    }
                    let requests = with(|run| run.memory.last(arena.head(pe)));
                    is_done &= hosts.is_idle(pe, requests);
                }
                is_done &= open.eager.is_empty();
            }
            if is_done {
                return true;
            }
            let next = with(|run| open.next(&run.memory));
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

/// Everything that may go on.
#[derive(Default)]
struct Open {
    eager: Vec<Next>,
    /// Those that have found nothing to do, and would look again.
    idle: Vec<Next>,
    /// Those that the run keeps back for long.
    slow: Vec<Next>,
}

impl Open {
    fn next(&self, memory: &Memory) -> Option<Next> {
        let is_quiet = self.eager.is_empty();
        let of = if memory.chance(if is_quiet { 6 } else { 100 }) && !self.slow.is_empty() {
            &self.slow
        } else if !self.idle.is_empty() && (is_quiet || memory.chance(16)) {
            &self.idle
        } else if is_quiet {
            &self.slow
        } else {
            &self.eager
        };
        (!of.is_empty()).then(|| of[memory.random.choose(of.len())])
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
