//! The library's call for each statement.

use std::time::{Duration, Instant};

use oxshmem::{Cmp, Context, Error, MemoryKind, MemoryModel as Model, Result, Sym};

use super::Prepared;
use super::scopes::{NonblockingOps, scope_of};
use crate::program::{Fetching, Meeting, SignalOp, Statement, Update};

impl Prepared<'_, '_> {
    /// Makes a statement's call. Registers go to `into`; nonblocking operations use `scopes`.
    pub(super) fn call<'e>(
        &self,
        scopes: &[&dyn NonblockingOps<'e>],
        statement: &'e Statement,
        into: &'e mut [u64],
    ) -> Result<()> {
        let world = self.world;
        match statement {
            Statement::Put { .. }
            | Statement::Get { .. }
            | Statement::PutSignal { .. }
            | Statement::PutCounted { .. }
            | Statement::Write { .. }
            | Statement::Read { .. } => self.transfer(scopes, statement, into),
            Statement::Update { .. } | Statement::Fetch { .. } => {
                self.atomic(scopes, statement, into)
            }
            Statement::WaitUntil { .. }
            | Statement::SignalWaitUntil { .. }
            | Statement::SignalFetch { .. }
            | Statement::Test { .. }
            | Statement::WaitCounted { .. } => self.wait(statement, into),
            Statement::Fence { context } => self.on(*context).fence(),
            Statement::Quiet { context } => self.on(*context).quiet(),
            Statement::PeQuiet { pes, context } => self.on(*context).pe_quiet(pes),
            Statement::SetLock => world.set_lock(self.lock),
            Statement::ClearLock => world.clear_lock(self.lock),
            Statement::Meet(meeting) => self.meet(*meeting),
            Statement::Broadcast { to, from, root } => {
                world.broadcast(self.words(*to)?, self.words(*from)?, *root)
            }
        }
    }

    /// A put, a get, or an access of the PE to its own memory.
    fn transfer<'e>(
        &self,
        scopes: &[&dyn NonblockingOps<'e>],
        statement: &'e Statement,
        into: &'e mut [u64],
    ) -> Result<()> {
        let world = self.world;
        match statement {
            Statement::Put {
                to,
                values,
                nbi,
                context,
            } => {
                let (to, pe) = self.place(*to)?;
                match (nbi, values.as_slice()) {
                    (true, values) => scope_of(scopes, *context)?.put_nbi(to, values, pe),
                    (false, [value]) => self.on(*context).p(to, *value, pe),
                    (false, values) => self.on(*context).put(to, values, pe),
                }
            }
            Statement::Get {
                from, nbi, context, ..
            } => {
                let (from, pe) = self.place(*from)?;
                if *nbi {
                    scope_of(scopes, *context)?.get_nbi(into, from, pe)
                } else {
                    self.on(*context).get(into, from, pe)
                }
            }
            Statement::PutSignal {
                to,
                values,
                signal,
                op,
                value,
                nbi,
                context,
            } => {
                let (to, pe) = self.place(*to)?;
                let signal = self.words(*signal)?;
                let op = match op {
                    SignalOp::Set => oxshmem::SignalOp::Set,
                    SignalOp::Add => oxshmem::SignalOp::Add,
                };
                if *nbi {
                    let scope = scope_of(scopes, *context)?;
                    scope.put_signal_nbi(to, values, signal, (*value, op), pe)
                } else {
                    let on = self.on(*context);
                    on.put_signal(to, values, signal, *value, op, pe)
                }
            }
            Statement::Write { to, values } => world.write(self.words(*to)?, values),
            Statement::Read { from, .. } => world.read(into, self.words(*from)?),
            Statement::PutCounted {
                to,
                values,
                counter,
                context,
            } => {
                let (to, pe) = self.place(*to)?;
                let counter = self.words(*counter)?;
                self.on(*context).put_counted(to, values, counter, pe)
            }
            _ => Ok(()),
        }
    }

    fn atomic<'e>(
        &self,
        scopes: &[&dyn NonblockingOps<'e>],
        statement: &'e Statement,
        into: &'e mut [u64],
    ) -> Result<()> {
        match statement {
            Statement::Update {
                update,
                at,
                value,
                context,
            } => {
                let (at, pe) = self.place(*at)?;
                let on = self.on(*context);
                match update {
                    Update::Set => on.set(at, *value, pe),
                    Update::Add => on.add(at, *value, pe),
                    Update::And => on.and(at, *value, pe),
                    Update::Or => on.or(at, *value, pe),
                    Update::Xor => on.xor(at, *value, pe),
                }
            }
            Statement::Fetch {
                fetching,
                at,
                nbi,
                context,
                ..
            } => {
                let (at, pe) = self.place(*at)?;
                let Some(into) = into.first_mut() else {
                    return Ok(());
                };
                if *nbi {
                    scope_of(scopes, *context)?.fetch_nbi(*fetching, into, at, pe)
                } else {
                    *into = fetch(self.on(*context), *fetching, at, pe)?;
                    Ok(())
                }
            }
            _ => Ok(()),
        }
    }

    /// A wait or a test, of words in host memory by the library's call, else by fetches.
    fn wait(&self, statement: &Statement, into: &mut [u64]) -> Result<()> {
        let world = self.world;
        match statement {
            Statement::WaitUntil { word, cmp, value } => {
                let word = self.words(*word)?;
                match self.memory {
                    MemoryKind::Host => world.wait_until(word, *cmp, *value),
                    _ => self.fetch_until(word, *cmp, *value).map(drop),
                }
            }
            Statement::SignalWaitUntil {
                word, cmp, value, ..
            } => {
                let word = self.words(*word)?;
                let seen = match self.memory {
                    MemoryKind::Host => world.signal_wait_until(word, *cmp, *value)?,
                    _ => self.fetch_until(word, *cmp, *value)?,
                };
                set(into, seen);
                Ok(())
            }
            Statement::Test {
                word, cmp, value, ..
            } => {
                let (word, cmp) = (self.words(*word)?, *cmp);
                let holds = match self.memory {
                    MemoryKind::Host => world.test(word, cmp, *value)?,
                    _ => cmp.holds(world.fetch(word, world.my_pe())?, *value),
                };
                set(into, holds.into());
                Ok(())
            }
            Statement::SignalFetch { word, .. } => {
                let word = self.words(*word)?;
                let seen = match self.memory {
                    MemoryKind::Host => world.signal_fetch(word)?,
                    _ => world.fetch(word, world.my_pe())?,
                };
                set(into, seen);
                Ok(())
            }
            Statement::WaitCounted { counter, n } => {
                let counter = self.words(*counter)?;
                match self.memory {
                    MemoryKind::Host => world.wait_counted(counter, *n),
                    _ => {
                        self.fetch_until(counter, Cmp::Ge, *n)?;
                        let me = world.my_pe();
                        world.fetch_add(counter, n.wrapping_neg(), me).map(drop)
                    }
                }
            }
            _ => Ok(()),
        }
    }

    fn meet(&self, meeting: Meeting) -> Result<()> {
        let world = self.world;
        let (team, pes) = (world.team(), world.n_pes());
        let [given, gotten] = self.exchanged;
        let (one, sum) = (given.at(0)?, oxshmem::Fold::Sum);
        match meeting {
            Meeting::BarrierAll => world.barrier_all(),
            Meeting::SyncAll => world.sync_all(),
            Meeting::TeamSync => team.sync(),
            Meeting::Reduce => world.sum_reduce(gotten, given),
            Meeting::Fcollect => team.fcollect(gotten.range(..pes)?, one),
            Meeting::Alltoall => team.alltoall(gotten, given),
            // Lengths differ: PE 0 contributes nothing.
            Meeting::Collect => {
                let given = one.range(..world.my_pe().min(1))?;
                team.collect(gotten, given).map(drop)
            }
            Meeting::Alltoalls => team.alltoalls(gotten, given, 1, 1, 1),
            Meeting::ReduceScatter => team.reduce_scatter(gotten.at(0)?, given, sum),
            Meeting::Inscan => team.inscan(gotten, given, sum),
            Meeting::Exscan => team.exscan(gotten, given, sum),
        }
    }

    /// Waits for an own word that the CPU cannot load, then acquires.
    fn fetch_until(&self, word: Sym<u64>, cmp: Cmp, value: u64) -> Result<u64> {
        let world = self.world;
        let since = Instant::now();
        loop {
            let seen = world.fetch(word, world.my_pe())?;
            if cmp.holds(seen, value) {
                if world.model() == Model::Relaxed {
                    world.fence()?;
                }
                return Ok(seen);
            }
            if since.elapsed() > PATIENCE {
                return Err(Error::Timeout {
                    call: "litmus",
                    me: world.my_pe(),
                    whom: "a PE of the program".into(),
                    what: format!("a word in GPU memory, which is {seen}"),
                    waited: since.elapsed(),
                    limit: PATIENCE,
                });
            }
            std::thread::yield_now();
        }
    }
}

/// The longest polling wait: a program ends sooner, unless PEs have failed.
const PATIENCE: Duration = Duration::from_secs(60);

fn set(into: &mut [u64], value: u64) {
    if let Some(into) = into.first_mut() {
        *into = value;
    }
}

fn fetch(world: &Context<'_>, fetching: Fetching, at: Sym<u64>, pe: usize) -> Result<u64> {
    match fetching {
        Fetching::Fetch => world.fetch(at, pe),
        Fetching::Update(Update::Set, value) => world.swap(at, value, pe),
        Fetching::Update(Update::Add, value) => world.fetch_add(at, value, pe),
        Fetching::Update(Update::And, value) => world.fetch_and(at, value, pe),
        Fetching::Update(Update::Or, value) => world.fetch_or(at, value, pe),
        Fetching::Update(Update::Xor, value) => world.fetch_xor(at, value, pe),
        Fetching::CompareSwap { expected, value } => world.compare_swap(at, expected, value, pe),
    }
}
