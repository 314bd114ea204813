//! Programs run over and over as they come, on PEs that run freely.

use std::hint::spin_loop;

use oxshmem::{Error, Result, World};

use crate::outcome::{Outcome, Outcomes};
use crate::program::Program;
use crate::report::Report;
use crate::run::{Prepared, order};

/// Runs a program `runs` times on the PEs of a job, threads or processes; collective. PE 0 gets the
/// report. `seed` varies by how much the PEs start apart.
///
/// # Errors
///
/// [`Error::Argument`] if the job has too few PEs for the program, and whatever a call of the program
/// fails with.
pub fn run(
    world: &World,
    program: &Program,
    outcomes: &Outcomes,
    runs: u64,
    seed: u64,
) -> Result<Option<Report>> {
    let prepared = Prepared::new(world, program)?;
    let mut report = Report::new(program, outcomes);
    let mut random = Random(seed ^ (world.my_pe() as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    for _ in 0..runs {
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
