//! The oxshmem side of the comparison with NVSHMEM: operations on a stream, timed by PE 0 of two.
//! Prints one line "ROW NANOSECONDS" for each row; `nvshmem/peer.cu` has the same rows and loops.
//! The driver's own copies and ours are measured alternately, in the same process, on the same
//! stream.
//!
//! While PE 0 measures, PE 1 waits on the host, and has no work on the GPU.

use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, ensure};
use clap::Parser;
use cudarc::driver::sys;
use oxshmem::cuda::{self, DevicePtr, Stream, StreamOptions};
use oxshmem::{MemoryKind, SignalOp, Sym, World};
use oxshmem_benches::gpu::{BARRIERS, BATCHES, CALLS, NO_GPU, sizes};
use oxshmem_benches::statistics::Summary;

/// Times puts, puts with signals and barriers on a stream, between two PEs; `gpu_peers` runs this.
#[derive(Parser)]
struct Args {
    /// The largest size, in bytes.
    largest: usize,
    /// A batch takes at least so many microseconds.
    batch: f64,
}

const PATTERN: u8 = 0x5a;

fn main() -> ExitCode {
    let args = Args::parse();
    match cuda::devices() {
        Ok(devices) if !devices.is_empty() => {}
        Ok(_) => return no_gpu("the driver is there, a GPU is not"),
        Err(error) => return no_gpu(error),
    }
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("gpu_peer: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn no_gpu(why: impl std::fmt::Display) -> ExitCode {
    eprintln!("gpu_peer: {why}");
    ExitCode::from(NO_GPU)
}

fn run(args: &Args) -> anyhow::Result<()> {
    ensure!(args.largest >= 8, "at least 8 bytes");
    oxshmem::launch::self_with(2)?;
    let world = World::init()?;
    let gpu = world
        .gpu_context()
        .context("there is no GPU heap: set OXSHMEM_CUDA_SYMMETRIC_SIZE")?;
    let stream = Stream::new(gpu, &StreamOptions::default())?;
    let from = world.alloc_on::<u8>(MemoryKind::Cuda, args.largest)?;
    let to = world.alloc_on::<u8>(MemoryKind::Cuda, args.largest)?;
    let signal = world.alloc_on::<u64>(MemoryKind::Cuda, 1)?;
    let me = world.my_pe();
    world.put(from, &vec![PATTERN; args.largest], me)?;
    world.put(signal, &[0], me)?;
    world.barrier_all()?;
    let side = Side {
        batch: args.batch * 1e3,
        world: &world,
        stream: &stream,
        from,
        to,
        signal,
    };
    if me == 0 {
        println!("# oxshmem on {}", gpu.device().name());
        // The sizes may end before the largest; this put covers all of it.
        side.puts(args.largest, 1)?;
        // The current context, for the driver's own calls.
        let _current = gpu.enter()?;
        side.measure(args.largest)?;
    }
    world.barrier_all()?;
    if me == 1 {
        let mut seen = vec![0; args.largest];
        world.get(&mut seen, to, me)?;
        ensure!(
            seen.iter().all(|byte| *byte == PATTERN),
            "what was put is not all there"
        );
        ensure!(world.fetch(signal, me)? > 0, "no signal came");
    }
    world.barrier_all()?;
    side.barriers()?;
    world.barrier_all()?;
    world.free(signal)?;
    world.free(to)?;
    world.free(from)?;
    world.finalize()?;
    Ok(())
}

/// The objects of the loops.
struct Side<'a> {
    /// The least duration of a batch in nanoseconds.
    batch: f64,
    world: &'a World,
    stream: &'a Stream,
    from: Sym<u8>,
    to: Sym<u8>,
    signal: Sym<u64>,
}

/// A row that is measured beside others.
struct Row<'r> {
    name: String,
    /// Does so many operations, and waits until they are done.
    run: Box<dyn Fn(u64) -> anyhow::Result<()> + 'r>,
}

fn row<'r>(name: String, run: impl Fn(u64) -> anyhow::Result<()> + 'r) -> Row<'r> {
    Row {
        name,
        run: Box::new(run),
    }
}

impl Side<'_> {
    fn measure(&self, largest: usize) -> anyhow::Result<()> {
        for size in sizes(largest) {
            let driver = self.driver_copy(size)?;
            let copies = |n| self.copies(&driver, n);
            self.by_turns(vec![
                row(format!("copy_{size}"), copies),
                row(format!("put_{size}"), |n| self.puts(size, n)),
                row(format!("put_signal_{size}"), |n| self.put_signals(size, n)),
            ])?;
            let each =
                |n: u64, once: &dyn Fn() -> anyhow::Result<()>| (0..n).try_for_each(|_| once());
            self.by_turns(vec![
                row(format!("copy_latency_{size}"), |n| each(n, &|| copies(1))),
                row(format!("put_latency_{size}"), |n| {
                    each(n, &|| self.puts(size, 1))
                }),
                row(format!("put_signal_latency_{size}"), |n| {
                    each(n, &|| self.put_signals(size, 1))
                }),
            ])?;
        }
        self.calls()
    }

    /// Measures rows, their batches alternately, after warm-ups that also find how many repetitions
    /// make a batch.
    fn by_turns(&self, rows: Vec<Row<'_>>) -> anyhow::Result<()> {
        let time = |row: &Row<'_>, n: u64| -> anyhow::Result<f64> {
            let start = Instant::now();
            (row.run)(n)?;
            Ok(start.elapsed().as_nanos() as f64)
        };
        let mut counts = Vec::new();
        for row in &rows {
            let mut n = 1;
            time(row, n)?;
            while time(row, n)? < self.batch {
                n *= 2;
            }
            counts.push(n);
        }
        let mut times = vec![Vec::new(); rows.len()];
        for _ in 0..BATCHES {
            for ((row, n), times) in rows.iter().zip(&counts).zip(&mut times) {
                times.push(time(row, *n)? / *n as f64);
            }
        }
        for (row, times) in rows.iter().zip(&times) {
            report(&row.name, times);
        }
        Ok(())
    }

    fn puts(&self, size: usize, n: u64) -> anyhow::Result<()> {
        let (from, to) = (self.from.range(..size)?, self.to.range(..size)?);
        for _ in 0..n {
            self.world.put_on_stream(to, from, 1, self.stream)?;
        }
        self.world.quiet_on_stream(self.stream)?;
        // No queued work waits for a peer.
        Ok(self.stream.synchronize()?)
    }

    fn put_signals(&self, size: usize, n: u64) -> anyhow::Result<()> {
        let (from, to) = (self.from.range(..size)?, self.to.range(..size)?);
        for _ in 0..n {
            self.put_signal(to, from)?;
        }
        Ok(self.stream.synchronize()?)
    }

    fn put_signal(&self, to: Sym<u8>, from: Sym<u8>) -> oxshmem::Result<()> {
        self.world
            .put_signal_on_stream(to, from, self.signal, 1, SignalOp::Add, 1, self.stream)
    }

    fn copies(&self, copy: &DriverCopy, n: u64) -> anyhow::Result<()> {
        for _ in 0..n {
            copy.queue()?;
        }
        Ok(self.stream.synchronize()?)
    }

    /// The host's time for our calls and for the driver's, alternately.
    fn calls(&self) -> anyhow::Result<()> {
        let (from, to) = (self.from.range(..8)?, self.to.range(..8)?);
        let copy = self.driver_copy(8)?;
        let mut times = [Vec::new(), Vec::new(), Vec::new()];
        for _ in 0..4 * BATCHES {
            times[0].push(self.queueing(|| copy.queue())?);
            times[1]
                .push(self.queueing(|| Ok(self.world.put_on_stream(to, from, 1, self.stream)?))?);
            times[2].push(self.queueing(|| Ok(self.put_signal(to, from)?))?);
        }
        let [copy, put, put_signal] = &times;
        report("copy_call", copy);
        report("put_call", put);
        report("put_signal_call", put_signal);
        Ok(())
    }

    fn queueing(&self, call: impl Fn() -> anyhow::Result<()>) -> anyhow::Result<f64> {
        let start = Instant::now();
        for _ in 0..CALLS {
            call()?;
        }
        let took = start.elapsed().as_nanos() as f64 / CALLS as f64;
        self.stream.synchronize()?;
        Ok(took)
    }

    /// Barriers, on both PEs.
    fn barriers(&self) -> anyhow::Result<()> {
        let barriers = |n| -> anyhow::Result<()> {
            for _ in 0..n {
                self.world.barrier_all_on_stream(self.stream)?;
            }
            Ok(self.world.synchronize(self.stream)?)
        };
        barriers(2)?;
        let mut times = Vec::new();
        for _ in 0..BATCHES {
            self.world.barrier_all()?;
            let start = Instant::now();
            barriers(BARRIERS)?;
            times.push(start.elapsed().as_nanos() as f64 / BARRIERS as f64);
        }
        if self.world.my_pe() == 0 {
            report("barrier", &times);
        }
        Ok(())
    }

    /// The driver's copy of as many bytes to the same place.
    fn driver_copy(&self, size: usize) -> anyhow::Result<DriverCopy> {
        let at = |object, pe| -> anyhow::Result<DevicePtr> {
            let address = self.world.gpu_ptr(object, pe);
            address.with_context(|| format!("the memory of PE {pe} is not mapped here"))
        };
        Ok(DriverCopy {
            to: at(self.to, 1)?.as_raw(),
            from: at(self.from, 0)?.as_raw(),
            size,
            stream: cuda::interop::raw_stream(self.stream),
        })
    }
}

/// A copy by the driver's own call.
struct DriverCopy {
    to: sys::CUdeviceptr,
    from: sys::CUdeviceptr,
    size: usize,
    stream: sys::CUstream,
}

impl DriverCopy {
    fn queue(&self) -> anyhow::Result<()> {
        // SAFETY: both ranges stay mapped until the objects are freed, which comes after the stream's
        // work; nothing else uses them meanwhile. The stream is alive.
        let code = unsafe { sys::cuMemcpyDtoDAsync_v2(self.to, self.from, self.size, self.stream) };
        ensure!(
            code == sys::CUresult::CUDA_SUCCESS,
            "cuMemcpyDtoDAsync of {} bytes: {code:?}",
            self.size
        );
        Ok(())
    }
}

fn report(name: &str, times: &[f64]) {
    if let Some(summary) = Summary::of(times) {
        println!("{name} {:.2}", summary.median);
    }
}
