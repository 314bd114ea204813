//! Launches: grids of threads, run by the stream.

use std::ffi::c_void;
use std::sync::Arc;

use super::barrier::{BlockBarrier, enter};
use super::library::{HostLibrary, Position};
use super::module::{Function, function, resident_blocks};
use crate::call::{In, Outcome};
use crate::code::Code;
use crate::context::{Context, current};
use crate::device::MOST_THREADS;
use crate::driver::running;
use crate::stream::stream;

/// Marks in the `extra` list of `cuLaunchKernel`.
const BUFFER: usize = 1;
const BUFFER_SIZE: usize = 2;
/// `CU_LAUNCH_ATTRIBUTE_COOPERATIVE`.
const COOPERATIVE: u32 = 2;
/// The stack of a real thread: kernels are small.
const STACK: usize = 256 << 10;
/// Real threads of one launch, at most: those of the largest block.
const MOST_REAL_THREADS: u64 = 1024;

/// Extents of grid and block.
#[derive(Clone, Copy, Debug)]
struct Shape {
    grid: [u32; 3],
    threads: [u32; 3],
}

impl Shape {
    fn check(self, shared: u32) -> Outcome {
        let [gx, gy, gz] = self.grid;
        let [tx, ty, tz] = self.threads;
        let grid = gx > 0
            && gx <= i32::MAX as u32
            && (1..=65535).contains(&gy)
            && (1..=65535).contains(&gz);
        let block = (1..=1024).contains(&tx)
            && (1..=1024).contains(&ty)
            && (1..=64).contains(&tz)
            && self.block_threads() <= MOST_THREADS;
        if !grid || !block {
            return Err(Code::INVALID_VALUE);
        }
        // The host build has no dynamic shared memory.
        if shared > 0 {
            Err(Code::NOT_SUPPORTED)
        } else {
            Ok(())
        }
    }

    fn block_threads(self) -> u32 {
        self.threads.iter().product()
    }

    fn blocks(self) -> u64 {
        self.grid.iter().map(|extent| u64::from(*extent)).product()
    }

    fn position(self, block: u64, thread: u32) -> Position {
        let split = |index: u64, extent: [u32; 3]| {
            let [x, y] = [u64::from(extent[0]), u64::from(extent[1])];
            [
                (index % x) as u32,
                (index / x % y) as u32,
                (index / x / y) as u32,
            ]
        };
        Position {
            block: split(block, self.grid),
            thread: split(thread.into(), self.threads),
            grid: self.grid,
            threads: self.threads,
        }
    }
}

/// Parameters, copied when the launch is called, each in words of its own.
struct Arguments(Vec<Vec<u64>>);

impl Arguments {
    /// From an array of pointers, one for each parameter.
    fn from_pointers(parameters: &[usize], pointers: In<In<u8>>) -> Outcome<Arguments> {
        let mut words = Vec::with_capacity(parameters.len());
        for (index, size) in parameters.iter().enumerate() {
            words.push(pack(&pointers.at(index)?.list(*size)?));
        }
        Ok(Arguments(words))
    }

    /// From one buffer in which each parameter is aligned to its size, at most to eight bytes.
    fn from_extra(parameters: &[usize], extra: In<usize>) -> Outcome<Arguments> {
        let mut buffer = None;
        let mut room = None;
        let mut at = 0;
        loop {
            match extra.at(at)? {
                0 => break,
                BUFFER => buffer = Some(extra.at(at + 1)?),
                BUFFER_SIZE => room = Some(extra.at(at + 1)?),
                _ => return Err(Code::INVALID_VALUE),
            }
            at += 2;
        }
        let (buffer, room) = (
            buffer.ok_or(Code::INVALID_VALUE)?,
            room.ok_or(Code::INVALID_VALUE)?,
        );
        if buffer == 0 || room == 0 {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: the caller of the driver vouches for the size's place.
        let room = unsafe { (room as *const usize).read_unaligned() };
        let mut offset = 0usize;
        let mut words = Vec::with_capacity(parameters.len());
        for size in parameters {
            offset = offset.next_multiple_of((*size).clamp(1, 8).next_power_of_two());
            if offset + size > room {
                return Err(Code::INVALID_VALUE);
            }
            let mut bytes = vec![0u8; *size];
            // SAFETY: the caller of the driver vouches for `room` bytes.
            unsafe {
                ((buffer + offset) as *const u8).copy_to_nonoverlapping(bytes.as_mut_ptr(), *size);
            }
            words.push(pack(&bytes));
            offset += size;
        }
        Ok(Arguments(words))
    }

    /// Runs the kernel's code on the calling thread, once for each position.
    fn run(
        &self,
        function: &Function,
        library: &HostLibrary,
        positions: impl Iterator<Item = Position>,
    ) {
        let mut pointers: Vec<*mut c_void> = self
            .0
            .iter()
            .map(|words| words.as_ptr().cast_mut().cast())
            .collect();
        for position in positions {
            library.place(position);
            // SAFETY: the host build's agreement: it reads one pointer for each parameter that the
            // same source declares in PTX, and through each as many bytes as it has.
            unsafe { (function.code)(pointers.as_mut_ptr()) };
        }
    }
}

fn pack(bytes: &[u8]) -> Vec<u64> {
    bytes
        .chunks(8)
        .map(|chunk| {
            let mut word = [0u8; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            u64::from_ne_bytes(word)
        })
        .collect()
}

struct Launch {
    function: Arc<Function>,
    shape: Shape,
    arguments: Arguments,
    /// All blocks are there at once, so they may wait for each other.
    cooperative: bool,
}

impl Launch {
    fn run(&self, context: &Context) -> Outcome {
        let library = running()?.kernels.as_ref().ok_or(Code::LAUNCH_FAILED)?;
        if self.cooperative {
            return self.run_threads(library, 0..self.shape.blocks());
        }
        for block in 0..self.shape.blocks() {
            context.check()?;
            if self.function.barriers {
                self.run_threads(library, block..block + 1)?;
            } else {
                let threads = 0..self.shape.block_threads();
                let positions = threads.map(|thread| self.shape.position(block, thread));
                self.arguments.run(&self.function, library, positions);
            }
        }
        Ok(())
    }

    /// Runs blocks concurrently, with a real thread for each of their threads.
    fn run_threads(&self, library: &HostLibrary, blocks: std::ops::Range<u64>) -> Outcome {
        let threads = self.shape.block_threads();
        std::thread::scope(|scope| {
            for block in blocks {
                let barrier = Arc::new(BlockBarrier::new(threads as usize));
                for thread in 0..threads {
                    let mine = barrier.clone();
                    let spawned = std::thread::Builder::new().stack_size(STACK).spawn_scoped(
                        scope,
                        move || {
                            enter(Some(mine.clone()));
                            let here = std::iter::once(self.shape.position(block, thread));
                            self.arguments.run(&self.function, library, here);
                            mine.leave();
                        },
                    );
                    if spawned.is_err() {
                        // The threads that run must not wait for those that never will.
                        (thread..threads).for_each(|_| barrier.leave());
                        return Err(Code::LAUNCH_OUT_OF_RESOURCES);
                    }
                }
            }
            Ok(())
        })
    }
}

struct Arrays {
    pointers: In<In<u8>>,
    extra: In<usize>,
}

fn launch(
    handle: u64,
    shape: Shape,
    shared: u32,
    on: u64,
    arrays: Arrays,
    cooperative: bool,
) -> Outcome {
    let context = current()?;
    let function = function(handle)?;
    let stream = stream(on)?;
    shape.check(shared)?;
    if function.context != context.handle || stream.context.handle != context.handle {
        return Err(Code::INVALID_HANDLE);
    }
    if cooperative {
        let threads = shape.blocks().saturating_mul(shape.block_threads().into());
        // More than the device could hold at once, or than this machine should try.
        if shape.blocks() > resident_blocks(shape.block_threads()) || threads > MOST_REAL_THREADS {
            return Err(Code::COOPERATIVE_LAUNCH_TOO_LARGE);
        }
    }
    let arguments = match (arrays.pointers.is_null(), arrays.extra.is_null()) {
        (true, true) if !function.parameters.is_empty() => return Err(Code::INVALID_VALUE),
        (false, false) => return Err(Code::INVALID_VALUE),
        (true, false) => Arguments::from_extra(&function.parameters, arrays.extra)?,
        _ => Arguments::from_pointers(&function.parameters, arrays.pointers)?,
    };
    let launch = Launch {
        function,
        shape,
        arguments,
        cooperative,
    };
    stream.give(Arc::new(move |context| launch.run(context)))?;
    Ok(())
}

/// `CUlaunchConfig`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct LaunchConfig {
    grid: [u32; 3],
    threads: [u32; 3],
    shared: u32,
    stream: u64,
    attributes: In<LaunchAttribute>,
    count: u32,
}

/// `CUlaunchAttribute`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct LaunchAttribute {
    id: u32,
    unused: u32,
    value: [u32; 16],
}

const _: () = assert!(size_of::<LaunchConfig>() == 56 && size_of::<LaunchAttribute>() == 72);

driver_calls! {
    /// Launches a kernel.
    fn cuLaunchKernel(
        function: u64,
        grid_x: u32,
        grid_y: u32,
        grid_z: u32,
        threads_x: u32,
        threads_y: u32,
        threads_z: u32,
        shared: u32,
        stream: u64,
        pointers: In<In<u8>>,
        extra: In<usize>,
    ) {
        let shape =
            Shape { grid: [grid_x, grid_y, grid_z], threads: [threads_x, threads_y, threads_z] };
        launch(function, shape, shared, stream, Arrays { pointers, extra }, false)
    }

    /// Launches a kernel with all blocks resident at once.
    fn cuLaunchCooperativeKernel(
        function: u64,
        grid_x: u32,
        grid_y: u32,
        grid_z: u32,
        threads_x: u32,
        threads_y: u32,
        threads_z: u32,
        shared: u32,
        stream: u64,
        pointers: In<In<u8>>,
    ) {
        let shape =
            Shape { grid: [grid_x, grid_y, grid_z], threads: [threads_x, threads_y, threads_z] };
        let extra = In::none();
        launch(function, shape, shared, stream, Arrays { pointers, extra }, true)
    }

    /// Launches a kernel with attributes; only the cooperative one has an effect.
    fn cuLaunchKernelEx(
        config: In<LaunchConfig>,
        function: u64,
        pointers: In<In<u8>>,
        extra: In<usize>,
    ) {
        let config = config.get()?;
        let mut cooperative = false;
        for index in 0..config.count as usize {
            let attribute = config.attributes.at(index)?;
            match attribute.id {
                // Ignored, access window, priority, memory domains: hints without effect.
                0 | 1 | 8 | 9 | 10 => {}
                COOPERATIVE => cooperative = attribute.value[0] != 0,
                _ => return Err(Code::NOT_SUPPORTED),
            }
        }
        let shape = Shape { grid: config.grid, threads: config.threads };
        launch(function, shape, config.shared, config.stream, Arrays { pointers, extra }, cooperative)
    }
}
