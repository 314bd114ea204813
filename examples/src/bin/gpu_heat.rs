//! Heat on a plate whose rows are divided among GPUs, with a kernel of the program's own.
//!
//! A step computes a PE's rows from those of the step before. It puts the first and the last row
//! into the neighbours' copies, each with a signal, and waits for the neighbours' rows. All of this
//! is queued on a stream. Two steps, to the second grid and back, are recorded as a CUDA graph,
//! which is launched again and again: two steps of any number of operations cost the host one call.

use std::ffi::CStr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Context;
use clap::Parser;
use oxshmem::cuda::{self, Args as KernelArgs, DevicePtr, Function, Graph, Launch, Module};
use oxshmem::cuda::{Stream, StreamOptions};
use oxshmem::{Cmp, Fold, MemoryKind, SignalOp, Sym, World};
use oxshmem_examples::heat::Plate;
use oxshmem_examples::output;

/// Lets heat spread over a plate on all PEs' GPUs, and writes a picture of it.
///
/// Run it under a launcher (`oxshmem run -n 2 gpu_heat`), or let it launch itself (`gpu_heat --pes 2`).
/// The PEs may share a GPU.
#[derive(Parser)]
#[command(version)]
struct Args {
    /// Launch this many PEs on this host (unless already one of a job).
    #[arg(long, value_name = "N")]
    pes: Option<usize>,
    /// Points in a row.
    #[arg(long, default_value_t = 512, value_parser = clap::value_parser!(u32).range(3..=1 << 15))]
    width: u32,
    /// Rows.
    #[arg(long, default_value_t = 512, value_parser = clap::value_parser!(u32).range(3..=1 << 15))]
    height: u32,
    /// Steps at the most, rounded up to an even number.
    #[arg(long, default_value_t = 2000)]
    steps: usize,
    /// Steps after which to check how much a step still changes, rounded up to an even number.
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..))]
    every: u32,
    /// End when no point changes by more in a step.
    #[arg(long, default_value_t = 1e-6)]
    tolerance: f32,
    /// The file for the picture.
    #[arg(long, value_name = "FILE", default_value = "heat.png")]
    picture: PathBuf,
    /// Compute the same on the CPU of PE 0, and fail unless every number is the same.
    #[arg(long)]
    check: bool,
}

/// Compiled from heat.cu by ci/ptx.
const KERNELS: &str = include_str!("../../gpu_heat/heat.ptx");
const STEP: &CStr = c"heat_step";
const CHANGE: &CStr = c"heat_change";

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("gpu_heat: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> anyhow::Result<()> {
    if let Some(pes) = args.pes {
        oxshmem::launch::self_with(pes)?;
    }
    let world = World::init()?;
    let plate = Plate::for_pes(args.width, args.height, world.n_pes())?;
    output::check(&world, Some(&args.picture))?;
    let heat = Heat::new(&world, plate)?;
    world.barrier_all()?;

    let start = Instant::now();
    let (steps, change) = heat.run(args)?;
    let took = start.elapsed();

    if world.my_pe() == 0 {
        println!(
            "gpu_heat: {steps} steps of {} x {} on {} PEs in {:.1} ms; the last one changed at most {change:e}",
            plate.width,
            plate.height,
            world.n_pes(),
            took.as_secs_f64() * 1e3
        );
        let all = heat.gather()?;
        plate.save(&all, &args.picture)?;
        println!("gpu_heat: {} shows it", args.picture.display());
        if args.check {
            plate.check(&all, steps)?;
            println!("gpu_heat: checked: every number is the CPU's");
        }
    }
    // A PE frees its rows only after PE 0 has read them.
    world.barrier_all()?;
    heat.free()?;
    world.finalize()?;
    Ok(())
}

/// A PE's rows of the plate, on its GPU.
struct Heat<'a> {
    world: &'a World,
    plate: Plate,
    stream: Stream,
    step: Function,
    change: Function,
    /// The number of this PE's rows.
    rows: usize,
    /// Two grids. A step reads one and writes the other. Their row 0 and row `rows + 1` hold the
    /// neighbours' rows, or the edge.
    grids: [Sym<f32>; 2],
    /// For each grid, the signal of the row from above, and that of the row from below.
    came: [[Sym<u64>; 2]; 2],
    signals: Sym<u64>,
    /// Each column's change: this PE's, and the largest of all PEs.
    changes: [Sym<f32>; 2],
}

impl<'a> Heat<'a> {
    fn new(world: &'a World, plate: Plate) -> anyhow::Result<Self> {
        let gpu = world.gpu_context().context(
            "there is no GPU heap: set OXSHMEM_CUDA_SYMMETRIC_SIZE to the bytes of each PE, 64M for example",
        )?;
        // Loaded before any kernel runs: loading may wait for all running kernels.
        let module = Module::from_ptx(gpu, KERNELS)?;
        let (me, pes) = (world.my_pe(), world.n_pes());
        let mine = plate.rows_of(me, pes);
        let most = (0..pes).map(|pe| plate.rows_of(pe, pes).len()).max();
        let points = (most.unwrap_or(0) + 2) * plate.width;
        let grid = || world.alloc_on::<f32>(MemoryKind::Cuda, points);
        let grids = [grid()?, grid()?];
        let signals = world.alloc_on::<u64>(MemoryKind::Cuda, 4)?;
        let columns = || world.alloc_on::<f32>(MemoryKind::Cuda, plate.width);
        let changes = [columns()?, columns()?];

        let start = plate.start_of(mine.start - 1..mine.end + 1);
        for grid in grids {
            world.put(grid.range(..start.len())?, &start, me)?;
        }
        world.put(signals, &[0; 4], me)?;
        Ok(Heat {
            stream: Stream::new(gpu, &StreamOptions::default())?,
            step: module.function(STEP)?,
            change: module.function(CHANGE)?,
            rows: mine.len(),
            grids,
            came: [
                [signals.at(0)?, signals.at(1)?],
                [signals.at(2)?, signals.at(3)?],
            ],
            signals,
            changes,
            world,
            plate,
        })
    }

    /// Steps until the end. Returns the number of steps, and the change of the last one.
    fn run(&self, args: &Args) -> anyhow::Result<(usize, f32)> {
        let mut two_steps = self.record()?;
        let pairs = args.steps.div_ceil(2);
        let every = (args.every as usize).div_ceil(2);
        let (mut done, mut change) = (0, f32::INFINITY);
        while done < pairs && change > args.tolerance {
            for _ in 0..every.min(pairs - done) {
                // SAFETY: the grids live until `free`, which comes after the stream's work. The
                // calls below recorded the graph, and their rules hold at each launch.
                unsafe { two_steps.launch(&self.stream) }?;
                done += 1;
            }
            // All PEs get the same number, and so go on or end together.
            change = self.changed()?;
        }
        Ok((2 * done, change))
    }

    /// Records two steps, from the first grid to the second and back.
    fn record(&self) -> anyhow::Result<Graph> {
        Graph::capture(&self.stream, |_| {
            self.queue_step(0)?;
            self.queue_step(1)
        })
    }

    fn queue_step(&self, from: usize) -> anyhow::Result<()> {
        let (world, to) = (self.world, 1 - from);
        let width = self.plate.width;
        let (me, last) = (world.my_pe(), world.n_pes() - 1);
        let next = self.grids[to];
        let row = |of: usize| next.range(of * width..(of + 1) * width);

        let grid = [width.div_ceil(32) as u32, self.rows.div_ceil(8) as u32, 1];
        let arguments = KernelArgs::new()
            .with(self.at(next)?)
            .with(self.at(self.grids[from])?)
            .with(width as u32)
            .with(self.rows as u32);
        // SAFETY: these are the kernel's parameters, and both grids have `rows + 2` rows. The
        // neighbours write only rows 0 and `rows + 1` of `next`, which the kernel does not touch.
        // They have already written those of the other grid: the waits of the step before ensure
        // that.
        unsafe { self.launch(&self.step, [32, 8, 1], grid, &arguments) }?;

        // A neighbour that waits for this row no longer needs the former row in the same place: it
        // read that one in the step between, and has reset the signal.
        let [from_above, from_below] = self.came[to];
        let set = SignalOp::Set;
        if me > 0 {
            let below_its_rows = self.plate.rows_of(me - 1, last + 1).len() + 1;
            let (above, first) = (row(below_its_rows)?, row(1)?);
            world.put_signal_on_stream(above, first, from_below, 1, set, me - 1, &self.stream)?;
        }
        if me < last {
            let (below, lowest) = (row(0)?, row(self.rows)?);
            world.put_signal_on_stream(below, lowest, from_above, 1, set, me + 1, &self.stream)?;
        }
        let waits = [(me > 0, from_above), (me < last, from_below)];
        for (_, came) in waits
            .into_iter()
            .filter(|(has_neighbour, _)| *has_neighbour)
        {
            world.wait_until_on_stream(came, Cmp::Eq, 1, &self.stream)?;
            world.signal_on_stream(came, 0, set, me, &self.stream)?;
        }
        Ok(())
    }

    /// The largest change of a point in the last step, on any PE.
    fn changed(&self) -> anyhow::Result<f32> {
        let width = self.plate.width;
        let [mine, of_all] = self.changes;
        let grid = [width.div_ceil(128) as u32, 1, 1];
        let arguments = KernelArgs::new()
            .with(self.at(mine)?)
            .with(self.at(self.grids[0])?)
            .with(self.at(self.grids[1])?)
            .with(width as u32)
            .with(self.rows as u32);
        // SAFETY: these are the kernel's parameters; no other work writes to either grid's own
        // rows.
        unsafe { self.launch(&self.change, [128, 1, 1], grid, &arguments) }?;
        self.world
            .reduce_on_stream(of_all, mine, Fold::Max, &self.stream)?;
        self.world.synchronize(&self.stream)?;
        let mut columns = vec![0.0; width];
        self.world.get(&mut columns, of_all, self.world.my_pe())?;
        Ok(columns.into_iter().fold(0.0, f32::max))
    }

    /// The whole plate. All PEs' steps are done.
    fn gather(&self) -> anyhow::Result<Vec<f32>> {
        let (width, pes) = (self.plate.width, self.world.n_pes());
        let mut all = self.plate.start_of(0..self.plate.height);
        for pe in 0..pes {
            let rows = self.plate.rows_of(pe, pes);
            let theirs = self.grids[0].range(width..(rows.len() + 1) * width)?;
            let place = &mut all[rows.start * width..rows.end * width];
            self.world.get(place, theirs, pe)?;
        }
        Ok(all)
    }

    /// The address of an object of this PE, for its kernels.
    fn at<T: oxshmem::Pod>(&self, object: Sym<T>) -> anyhow::Result<DevicePtr> {
        let address = self.world.gpu_ptr(object, self.world.my_pe());
        address.context("this PE's own memory has no address on its GPU")
    }

    /// # Safety
    ///
    /// As for [`Function::launch`].
    unsafe fn launch(
        &self,
        kernel: &Function,
        block: [u32; 3],
        grid: [u32; 3],
        arguments: &KernelArgs,
    ) -> cuda::Result<()> {
        let shape = Launch {
            grid,
            block,
            shared_bytes: 0,
            cooperative: false,
        };
        // SAFETY: the caller's promise.
        unsafe { kernel.launch(&self.stream, &shape, arguments) }
    }

    fn free(self) -> oxshmem::Result<()> {
        let Heat { world, .. } = self;
        world.free(self.changes[1])?;
        world.free(self.changes[0])?;
        world.free(self.signals)?;
        world.free(self.grids[1])?;
        world.free(self.grids[0])
    }
}
