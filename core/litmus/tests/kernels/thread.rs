//! The calls of one thread of a program.

use std::ffi::c_int;

use oxshmem_litmus::kernels::program::{Block, Call, Collective, Data, Group, Several, Statement};
use oxshmem_litmus::{Cmp, Fetching, Register, SignalOp, Update};
use oxshmem_weak::{Access, Agent, Scope};

use crate::arena::Arena;
use crate::compiled::Calls;
use crate::memory::Memory;
use crate::simulation::{self, Simulation, ThreadState, give_way, pause, with};

/// A statement of a thread, with the addresses of its private memory.
#[derive(Clone, Copy)]
pub struct Task<'k> {
    pub statement: &'k Statement,
    /// The data of a put, or the place of a get's.
    pub private: usize,
}

fn group(group: Group) -> c_int {
    match group {
        Group::Thread => 0,
        Group::Warp => 1,
        Group::Block | Group::Grid => 2,
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
pub fn thread(calls: &Calls, arena: &Arena, block: &Block, lane: usize, tasks: &[Task<'_>]) {
    let mut awaited: Vec<(Register, usize)> = Vec::new();
    for task in tasks.iter().filter(|task| task.statement.is_of(lane)) {
        let Task { statement, private } = *task;
        let fill = |register: Option<&Register>, value: u64| {
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
                Call::NextKernel => simulation::next_kernel(),
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
