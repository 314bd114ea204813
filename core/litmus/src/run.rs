//! Programs on real worlds: the same calls that a user's program makes.

mod call;
mod scopes;

use oxshmem::{
    Context, ContextOptions, Error, MemoryKind, MemoryModel as Model, Result, Sym, World,
};

use crate::program::{MemoryModel, Place, Program, Statement, Words};
use scopes::in_scopes;

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
    fn on(&self, context: crate::program::Context) -> &Context<'_> {
        let made = context.0.checked_sub(1).and_then(|i| self.contexts.get(i));
        made.unwrap_or(self.world)
    }
}
