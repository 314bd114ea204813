//! The timing of operations of all PEs together.

use oxshmem::{Sym, World};
use oxshmem_benches::batches::{Row, report};
use oxshmem_benches::sizes::{BATCHES, FEWEST_BATCHES, MIN_BATCH_NS, ROW_NS};

/// The memory by which the PEs agree.
pub struct Together<'w> {
    world: &'w World,
    /// Repetitions and batches, decided by PE 0.
    agreed: Sym<u64>,
}

impl<'w> Together<'w> {
    /// Collective.
    pub fn new(world: &'w World) -> oxshmem::Result<Self> {
        let agreed = world.alloc_zeroed(2)?;
        Ok(Together { world, agreed })
    }

    /// PE 0 decides the repetitions and reports. The rows' batches alternate. Collective.
    pub fn measure(&self, mut rows: Vec<Row<'_, oxshmem::Error>>) -> oxshmem::Result<()> {
        let mut plans = Vec::new();
        for row in &mut rows {
            plans.push(self.plan(row)?);
        }
        let most = plans.iter().map(|plan| plan.batches).max().unwrap_or(0);
        let mut batches = vec![Vec::new(); rows.len()];
        for batch in 0..most {
            for ((row, plan), times) in rows.iter_mut().zip(&plans).zip(&mut batches) {
                if batch < plan.batches {
                    self.world.barrier_all()?;
                    times.push(row.batch(plan.repetitions)?);
                }
            }
        }
        if self.world.my_pe() == 0 {
            rows.iter()
                .zip(&batches)
                .for_each(|(row, times)| report(row.name(), times));
        }
        Ok(())
    }

    fn plan(&self, row: &mut Row<'_, oxshmem::Error>) -> oxshmem::Result<Plan> {
        let (world, pes) = (self.world, self.world.n_pes());
        let mut repetitions = 1;
        loop {
            // Of two runs, since the first may set something up.
            let mut took = f64::INFINITY;
            for _ in 0..2 {
                world.barrier_all()?;
                took = row.time(repetitions)?.min(took);
            }
            if world.my_pe() == 0 {
                let fit = (ROW_NS / took) as usize;
                let batches = fit.clamp(FEWEST_BATCHES, BATCHES) as u64;
                let is_enough = took >= MIN_BATCH_NS * pes as f64 / 2.0;
                let plan = [if is_enough { repetitions } else { 0 }, batches];
                (0..pes).try_for_each(|pe| world.put(self.agreed, &plan, pe))?;
            }
            world.barrier_all()?;
            let mut agreed = [0; 2];
            world.read(&mut agreed, self.agreed)?;
            let [decided, batches] = agreed;
            if decided != 0 {
                return Ok(Plan {
                    repetitions: decided,
                    batches: batches as usize,
                });
            }
            repetitions *= 2;
        }
    }

    /// Frees the memory. Collective.
    pub fn free(self) -> oxshmem::Result<()> {
        self.world.free(self.agreed)
    }
}

/// The number of timed calls of a row.
struct Plan {
    /// Repetitions in a batch.
    repetitions: u64,
    batches: usize,
}
