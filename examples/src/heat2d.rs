//! Heat on a plate whose rows are divided among PEs, in host memory.
//!
//! Each PE has its rows and the two beside them in private memory. A step computes its first and
//! last row, and puts each into the inbox of the neighbour next to it, with a signal. It computes
//! the rows between while those travel, and then reads the rows that the neighbours have put.
//!
//! An inbox has two alternating rows for each side, with a signal each. A PE puts the row of step
//! `s` where that of `s - 2` lies only when it has the neighbour's row of `s - 1`, which the
//! neighbour sent after it had read that of `s - 2`. With one signal for both rows, the signals of
//! two steps would be in flight at once, in any order (M17); with one signal for each row they
//! never are.

use oxshmem::{Cmp, Result, SignalOp, Sym, World};

use crate::heat::Plate;

/// The neighbour that a row comes from, and the row's place in the inbox.
#[derive(Clone, Copy)]
enum From {
    Above = 0,
    Below = 1,
}

/// A PE's rows of a plate.
#[derive(Debug)]
pub struct Part<'w> {
    world: &'w World,
    plate: Plate,
    /// The number of this PE's rows.
    rows: usize,
    /// The present heat of these rows, with the rows beside them as row 0 and row `rows + 1`.
    now: Vec<f32>,
    next: Vec<f32>,
    /// Rows of two steps from above, then of two from below.
    inbox: Sym<f32>,
    /// For each row of the inbox, the step that it belongs to.
    came: Sym<u64>,
    steps: u64,
}

impl<'w> Part<'w> {
    /// This PE's part of a plate, in its initial state. Collective.
    ///
    /// The plate has at least one row for each PE besides its edges.
    pub fn new(world: &'w World, plate: Plate) -> Result<Self> {
        let mine = plate.rows_of(world.my_pe(), world.n_pes());
        let now = plate.start_of(mine.start - 1..mine.end + 1);
        Ok(Part {
            world,
            plate,
            rows: mine.len(),
            next: now.clone(),
            now,
            inbox: world.alloc(4 * plate.width)?,
            came: world.alloc_zeroed(4)?,
            steps: 0,
        })
    }

    /// Does so many steps. Collective.
    pub fn run(&mut self, steps: usize) -> Result<()> {
        for _ in 0..steps {
            self.step()?;
        }
        Ok(())
    }

    fn step(&mut self) -> Result<()> {
        self.steps += 1;
        let (me, last) = (self.world.my_pe(), self.rows);
        let (plate, next, now) = (self.plate, &mut self.next, &self.now);
        plate.step(1..2, next, now);
        plate.step(last.max(2)..last + 1, next, now);
        if let Some(above) = me.checked_sub(1) {
            self.send(1, From::Below, above)?;
        }
        if me + 1 < self.world.n_pes() {
            self.send(last, From::Above, me + 1)?;
        }
        self.plate.step(2..last.max(2), &mut self.next, &self.now);
        if me > 0 {
            self.take(From::Above, 0)?;
        }
        if me + 1 < self.world.n_pes() {
            self.take(From::Below, last + 1)?;
        }
        std::mem::swap(&mut self.now, &mut self.next);
        Ok(())
    }

    /// The place of this step's row from that neighbour, and its signal.
    fn place(&self, from: From) -> Result<(Sym<f32>, Sym<u64>)> {
        let row = 2 * from as usize + (self.steps % 2) as usize;
        let width = self.plate.width;
        let place = self.inbox.range(row * width..(row + 1) * width)?;
        Ok((place, self.came.at(row)?))
    }

    fn send(&self, row: usize, from: From, pe: usize) -> Result<()> {
        let width = self.plate.width;
        let row = &self.next[row * width..(row + 1) * width];
        let (place, came) = self.place(from)?;
        self.world
            .put_signal(place, row, came, self.steps, SignalOp::Set, pe)
    }

    fn take(&mut self, from: From, row: usize) -> Result<()> {
        let width = self.plate.width;
        let (place, came) = self.place(from)?;
        self.world.signal_wait_until(came, Cmp::Eq, self.steps)?;
        self.world
            .read(&mut self.next[row * width..(row + 1) * width], place)
    }

    /// The whole plate on PE 0. Collective.
    pub fn gather(&self) -> Result<Option<Vec<f32>>> {
        let (world, pes, width) = (self.world, self.world.n_pes(), self.plate.width);
        let most = (0..pes).map(|pe| self.plate.rows_of(pe, pes).len()).max();
        let shared = world.alloc::<f32>(most.unwrap_or(0) * width)?;
        let mine = &self.now[width..(self.rows + 1) * width];
        world.write(shared, mine)?;
        world.barrier_all()?;
        let mut whole = None;
        if world.my_pe() == 0 {
            let mut all = self.plate.start_of(0..self.plate.height);
            for pe in 0..pes {
                let rows = self.plate.rows_of(pe, pes);
                world.get(&mut all[rows.start * width..rows.end * width], shared, pe)?;
            }
            whole = Some(all);
        }
        world.free(shared)?; // Its barrier keeps every PE's rows until PE 0 has them.
        Ok(whole)
    }

    /// Frees the memory. Collective.
    pub fn free(self) -> Result<()> {
        self.world.free(self.came)?;
        self.world.free(self.inbox)
    }
}
