//! Programs on real worlds: the same calls that a user's program makes.

use std::time::{Duration, Instant};

use oxshmem::{
    Context, ContextOptions, Error, MemoryKind, MemoryModel as Model, Result, Scope, Sym, World,
};

use crate::program::{
    Cmp, Fetching, Meeting, MemoryModel, Place, Program, SignalOp, Statement, Update, Words,
};

impl From<MemoryModel> for Model {
    fn from(model: MemoryModel) -> Self {
        match model {
            MemoryModel::Ordered => Model::Ordered,
            MemoryModel::Relaxed => Model::Relaxed,
        }
    }
}

/// The reason why a program cannot run with its variables in memory of this kind, if there is one:
/// collectives without a stream are done by CPUs, which do not load GPU memory.
#[must_use]
pub fn unfit(program: &Program, memory: MemoryKind) -> Option<String> {
    let mut all = (0..program.pes()).flat_map(|pe| program.statements(pe));
    let broadcasts = all.any(|statement| matches!(statement, Statement::Broadcast { .. }));
    (broadcasts && memory != MemoryKind::Host).then(|| {
        format!(
            "program {} calls broadcast, which takes objects in host memory alone",
            program.name()
        )
    })
}

/// A program's variables in one world, prepared for repeated runs. Every call is collective over
/// the world's PEs, of which there are at least as many as the program's.
#[derive(Debug)]
pub struct Prepared<'w, 'p> {
    world: &'w World,
    program: &'p Program,
    variables: Vec<Sym<u64>>,
    /// The memory of the variables.
    memory: MemoryKind,
    /// The words of calls that name none: the lock, and the data of collectives.
    lock: Sym<u64>,
    exchanged: [Sym<u64>; 2],
    /// Each run's registers and observed words, on PE 0.
    results: Sym<u64>,
    contexts: Vec<Context<'w>>,
}

/// The order of one PE's statements: as written, except that blocking reads of a run may be
/// exchanged in the relaxed model, as a GPU's loads may (M21). A PE beyond the program's takes part
/// in the collectives of PE 0.
pub type Order = Vec<usize>;

/// Chooses an order for a PE's statements: `choose(n)` picks one of n at each place.
pub fn order(
    program: &Program,
    model: MemoryModel,
    pe: usize,
    mut choose: impl FnMut(usize) -> usize,
) -> Order {
    if pe >= program.pes() {
        let all = program.statements(0).iter().enumerate();
        let collective = all.filter(|(_, statement)| statement.is_collective());
        return collective.map(|(index, _)| index).collect();
    }
    let mut order: Order = (0..program.statements(pe).len()).collect();
    if model == MemoryModel::Relaxed {
        for run in program.read_runs(pe) {
            for i in run.clone() {
                let with = i + choose(run.end - i);
                order.swap(i, with);
            }
        }
    }
    order
}

impl<'w, 'p> Prepared<'w, 'p> {
    /// Allocates the program's variables, in memory of this kind.
    ///
    /// A PE waits for words in GPU memory and tests them by fetches, since its CPU cannot load them
    /// (M4). In the relaxed model, too, a fence after such a wait makes it acquire (M21, M23).
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] if the world has too few PEs for the program, or its calls do not
    /// support that memory.
    pub fn new(world: &'w World, program: &'p Program, memory: MemoryKind) -> Result<Self> {
        if world.n_pes() < program.pes() {
            return Err(Error::Argument {
                call: "litmus",
                what: format!(
                    "program {} needs {} PEs, this job has {}; start more",
                    program.name(),
                    program.pes(),
                    world.n_pes()
                ),
            });
        }
        if let Some(what) = unfit(program, memory) {
            let call = "litmus";
            return Err(Error::Argument { call, what });
        }
        let variables = program
            .variables()
            .iter()
            // They are cleared before each run.
            .map(|variable| world.alloc_on(memory, variable.words))
            .collect::<Result<_>>()?;
        let contexts = (1..program.contexts())
            .map(|_| world.create_context(ContextOptions::NONE))
            .collect::<Result<_>>()?;
        let results = program.registers().len() + program.observed().len();
        Ok(Prepared {
            world,
            program,
            variables,
            memory,
            lock: world.alloc_zeroed(1)?,
            exchanged: [
                world.alloc_zeroed(world.n_pes())?,
                world.alloc_zeroed(world.n_pes())?,
            ],
            results: world.alloc_zeroed(results)?,
            contexts,
        })
    }

    /// Sets this PE's variables to 0. Not collective: a barrier comes between it and the next run.
    pub fn clear(&self) -> Result<()> {
        for variable in &self.variables {
            self.world.write(*variable, &vec![0; variable.len()])?;
        }
        self.world.quiet()
    }

    /// Does this PE's statements, then completes all operations. Returns the registers that they
    /// set: (index in the outcome, value). `note` is called after each statement.
    pub fn run(&self, order: &[usize], mut note: impl FnMut(String)) -> Result<Vec<(usize, u64)>> {
        let me = self.world.my_pe();
        let within = me < self.program.pes();
        let statements = self.program.statements(if within { me } else { 0 });
        // Buffers of nonblocking reads and puts, which the scope borrows.
        let mut into: Vec<Vec<u64>> = statements
            .iter()
            .map(|s| vec![0; s.registers().len()])
            .collect();
        let mut slots: Vec<Option<&mut Vec<u64>>> = into.iter_mut().map(Some).collect();
        in_scopes(&self.all_contexts(), &[], &mut |scopes| {
            for &index in order {
                if let (Some(statement), Some(into)) = (
                    statements.get(index),
                    slots.get_mut(index).and_then(Option::take),
                ) {
                    self.call(scopes, statement, into)?;
                    note(self.program.statement_text(statement));
                }
            }
            Ok(())
        })?;
        let labels = self.program.registers();
        let place = |register| labels.iter().position(|other| other == register);
        let set = statements.iter().zip(&into).filter(|_| within);
        Ok(set
            .flat_map(|(statement, into)| statement.registers().iter().zip(into))
            .filter_map(|(register, value)| Some((place(register)?, *value)))
            .collect())
    }

    /// Collects this run's registers and observed words at PE 0, as [`Program::outcome`] takes
    /// them: registers, then memory.
    pub fn gather(&self, registers: &[(usize, u64)]) -> Result<Option<(Vec<u64>, Vec<u64>)>> {
        let world = self.world;
        world.barrier_all()?;
        let labels = self.program.registers().len();
        for (place, value) in registers {
            world.p(self.results.at(*place)?, *value, 0)?;
        }
        for (i, value) in self.observed()? {
            world.p(self.results.at(labels + i)?, value, 0)?;
        }
        world.barrier_all()?;
        if world.my_pe() != 0 {
            return Ok(None);
        }
        let mut all = vec![0; self.results.len()];
        world.read(&mut all, self.results)?;
        let memory = all.split_off(labels);
        Ok(Some((all, memory)))
    }

    /// The values of this PE's observed words: (index among the observed, value).
    pub fn observed(&self) -> Result<Vec<(usize, u64)>> {
        let me = self.world.my_pe();
        let places = self.program.observed().iter().enumerate();
        places
            .filter(|(_, place)| place.pe == me)
            .map(|(i, place)| Ok((i, self.world.g(self.words(place.words)?, me)?)))
            .collect()
    }

    /// Frees the variables.
    pub fn free(self) -> Result<()> {
        self.contexts
            .into_iter()
            .try_for_each(|context| context.destroy())?;
        let [given, gotten] = self.exchanged;
        let own = [self.results, gotten, given, self.lock];
        own.into_iter()
            .chain(self.variables)
            .try_for_each(|variable| self.world.free(variable))
    }

    fn words(&self, words: Words) -> Result<Sym<u64>> {
        let outside = || Error::Argument {
            call: "litmus",
            what: "a place that the program does not declare".into(),
        };
        let variable = self.variables.get(words.variable).ok_or_else(outside)?;
        variable.range(words.first..words.first + words.count)
    }

    fn place(&self, place: Place) -> Result<(Sym<u64>, usize)> {
        Ok((self.words(place.words)?, place.pe))
    }

    /// Every context, the default one first.
    fn all_contexts(&self) -> Vec<&Context<'_>> {
        let world: &Context<'_> = self.world;
        std::iter::once(world).chain(&self.contexts).collect()
    }

    /// A context of the program's.
    fn on(&self, context: crate::Context) -> &Context<'_> {
        let made = context.0.checked_sub(1).and_then(|i| self.contexts.get(i));
        made.unwrap_or(self.world)
    }

    fn call<'e>(
        &self,
        scopes: &[&dyn Issue<'e>],
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
            Statement::WaitUntil { word, cmp, value } => {
                let word = self.words(*word)?;
                match self.memory {
                    MemoryKind::Host => world.wait_until(word, compare(*cmp), *value),
                    _ => self.fetch_until(word, compare(*cmp), *value).map(drop),
                }
            }
            Statement::SignalWaitUntil {
                word, cmp, value, ..
            } => {
                let word = self.words(*word)?;
                let seen = match self.memory {
                    MemoryKind::Host => world.signal_wait_until(word, compare(*cmp), *value)?,
                    _ => self.fetch_until(word, compare(*cmp), *value)?,
                };
                set(into, seen);
                Ok(())
            }
            Statement::Test {
                word, cmp, value, ..
            } => {
                let (word, cmp) = (self.words(*word)?, compare(*cmp));
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
            Statement::Fence { context } => self.on(*context).fence(),
            Statement::Quiet { context } => self.on(*context).quiet(),
            Statement::PeQuiet { pes, context } => self.on(*context).pe_quiet(pes),
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
            Statement::WaitCounted { counter, n } => {
                let counter = self.words(*counter)?;
                match self.memory {
                    MemoryKind::Host => world.wait_counted(counter, *n),
                    _ => {
                        self.fetch_until(counter, oxshmem::Cmp::Ge, *n)?;
                        let me = world.my_pe();
                        world.fetch_add(counter, n.wrapping_neg(), me).map(drop)
                    }
                }
            }
            Statement::SetLock => world.set_lock(self.lock),
            Statement::ClearLock => world.clear_lock(self.lock),
            Statement::Meet(meeting) => {
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
            Statement::Broadcast { to, from, root } => {
                world.broadcast(self.words(*to)?, self.words(*from)?, *root)
            }
        }
    }

    /// Waits for an own word that the CPU cannot load, then acquires.
    fn fetch_until(&self, word: Sym<u64>, cmp: oxshmem::Cmp, value: u64) -> Result<u64> {
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

fn compare(cmp: Cmp) -> oxshmem::Cmp {
    match cmp {
        Cmp::Eq => oxshmem::Cmp::Eq,
        Cmp::Ne => oxshmem::Cmp::Ne,
        Cmp::Gt => oxshmem::Cmp::Gt,
        Cmp::Ge => oxshmem::Cmp::Ge,
        Cmp::Lt => oxshmem::Cmp::Lt,
        Cmp::Le => oxshmem::Cmp::Le,
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

/// The nonblocking operations on one context, within a scope.
trait Issue<'e> {
    fn put_nbi(&self, to: Sym<u64>, values: &'e [u64], pe: usize) -> Result<()>;
    fn get_nbi(&self, into: &'e mut [u64], from: Sym<u64>, pe: usize) -> Result<()>;
    fn put_signal_nbi(
        &self,
        to: Sym<u64>,
        values: &'e [u64],
        signal: Sym<u64>,
        update: (u64, oxshmem::SignalOp),
        pe: usize,
    ) -> Result<()>;
    fn fetch_nbi(
        &self,
        fetching: Fetching,
        into: &'e mut u64,
        at: Sym<u64>,
        pe: usize,
    ) -> Result<()>;
}

impl<'s, 'e> Issue<'e> for &'s Scope<'s, 'e> {
    fn put_nbi(&self, to: Sym<u64>, values: &'e [u64], pe: usize) -> Result<()> {
        (*self).put_nbi(to, values, pe)
    }

    fn get_nbi(&self, into: &'e mut [u64], from: Sym<u64>, pe: usize) -> Result<()> {
        (*self).get_nbi(into, from, pe)
    }

    fn put_signal_nbi(
        &self,
        to: Sym<u64>,
        values: &'e [u64],
        signal: Sym<u64>,
        (value, op): (u64, oxshmem::SignalOp),
        pe: usize,
    ) -> Result<()> {
        (*self).put_signal_nbi(to, values, signal, value, op, pe)
    }

    fn fetch_nbi(
        &self,
        fetching: Fetching,
        into: &'e mut u64,
        at: Sym<u64>,
        pe: usize,
    ) -> Result<()> {
        let scope: &'s Scope<'s, 'e> = self;
        match fetching {
            Fetching::Fetch => scope.fetch_nbi(into, at, pe),
            Fetching::Update(Update::Set, value) => scope.swap_nbi(into, at, value, pe),
            Fetching::Update(Update::Add, value) => scope.fetch_add_nbi(into, at, value, pe),
            Fetching::Update(Update::And, value) => scope.fetch_and_nbi(into, at, value, pe),
            Fetching::Update(Update::Or, value) => scope.fetch_or_nbi(into, at, value, pe),
            Fetching::Update(Update::Xor, value) => scope.fetch_xor_nbi(into, at, value, pe),
            Fetching::CompareSwap { expected, value } => {
                scope.compare_swap_nbi(into, at, expected, value, pe)
            }
        }
    }
}

/// Runs `f` with a scope of each context, in their order, after those already open.
fn in_scopes<'e>(
    contexts: &[&Context<'_>],
    open: &[&dyn Issue<'e>],
    f: &mut dyn FnMut(&[&dyn Issue<'e>]) -> Result<()>,
) -> Result<()> {
    let Some((first, rest)) = contexts.split_first() else {
        return f(open);
    };
    first.scope(|scope| {
        let mut all = open.to_vec();
        all.push(&scope);
        in_scopes(rest, &all, f)
    })
}

/// The scope of a context.
fn scope_of<'a, 'e>(
    scopes: &[&'a dyn Issue<'e>],
    context: crate::Context,
) -> Result<&'a dyn Issue<'e>> {
    scopes
        .get(context.0)
        .copied()
        .ok_or_else(|| Error::Argument {
            call: "litmus",
            what: "a context that the program does not declare".into(),
        })
}
