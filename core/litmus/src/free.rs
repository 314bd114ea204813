//! Programs run over and over as they come, on PEs that run freely.

use std::hint::spin_loop;

use oxshmem::{Error, MemoryKind, Result, World};

use crate::outcome::{Outcome, Outcomes};
use crate::program::Program;
use crate::report::Report;
use crate::run::{Prepared, order};

/// How to run a program.
#[derive(Clone, Copy, Debug)]
pub struct Runs {
    /// How often.
    pub count: u64,
    /// Varies by how much the PEs start apart.
    pub seed: u64,
    /// Where the program's words lie.
    pub memory: MemoryKind,
}

/// Runs a program again and again on the PEs of a job, threads or processes; collective. PE 0 gets the
/// report.
///
/// # Errors
///
/// As [`Prepared::new`], and whatever a call of the program fails with.
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

/// The error of a program that has an outcome in which PEs wait for ever: it cannot run freely.
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

/// xorshift.
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

    /// None, a little, or as long as a cache line takes between cores: PEs that start together meet.
    fn delay(&mut self) -> usize {
        let most = [1, 8, 64, 256][self.below(4)];
        self.below(most)
    }
}
