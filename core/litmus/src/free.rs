//! Repeated runs of programs on PEs whose threads or processes run freely.

use std::hint::spin_loop;

use oxshmem::{Error, MemoryKind, Result, World};

use crate::outcome::Outcome;
use crate::outcomes::Outcomes;
use crate::program::Program;
use crate::report::Report;
use crate::run::{Prepared, order};

/// The number and the conditions of runs.
#[derive(Clone, Copy, Debug)]
pub struct Runs {
    /// The number of runs.
    pub count: u64,
    /// The seed of the delays between the PEs' starts.
    pub seed: u64,
    /// The memory of the program's words.
    pub memory: MemoryKind,
}

/// Runs a program again and again on the PEs of a job, threads or processes; collective. PE 0 gets
/// the report.
///
/// # Errors
///
/// Those of [`Prepared::new`], and any error of the program's calls.
pub fn run(
    world: &World,
    program: &Program,
    outcomes: &Outcomes,
    runs: Runs,
) -> Result<Option<Report>> {
    let prepared = Prepared::new(world, program, runs.memory)?;
    let mut report = Report::new(program, outcomes);
    let mut random =
        Random(runs.seed ^ (world.my_pe() as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    for _ in 0..runs.count {
        prepared.clear()?;
        world.barrier_all()?;
        let choose = |n| random.below(n);
        let order = order(program, outcomes.model(), world.my_pe(), choose);
        for _ in 0..random.delay() {
            spin_loop();
        }
        let registers = prepared.run(&order, |_| {})?;
        if let Some((registers, memory)) = prepared.gather(&registers)? {
            let outcome: Outcome = program.outcome(&registers, &memory);
            report.count(&outcome);
        }
    }
    prepared.free()?;
    Ok((world.my_pe() == 0).then_some(report))
}

/// The error of a program with an outcome in which PEs wait for ever: it cannot run freely.
///
/// # Errors
///
/// Always, for such a program.
pub fn check(program: &Program, outcomes: &Outcomes) -> Result<()> {
    if outcomes.allows(&Outcome::Deadlock) {
        return Err(Error::Argument {
            call: "litmus",
            what: format!(
                "program {} may wait for ever; run it over weak or the simulator",
                program.name()
            ),
        });
    }
    Ok(())
}

/// A xorshift generator.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() >> 33) as usize % n.max(1)
    }

    /// No delay, a little, or as long as a cache line takes between cores: PEs that start together
    /// meet.
    fn delay(&mut self) -> usize {
        let most = [1, 8, 64, 256][self.below(4)];
        self.below(most)
    }
}
