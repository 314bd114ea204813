//! Launches: grids of threads, run by the stream.

use std::ffi::c_void;
use std::sync::Arc;

use super::fiber::{self, Grid, Progress, Room};
use super::module::{Function, function, resident_blocks};
use super::shape::{Position, Shape};
use crate::call::{In, Outcome};
use crate::code::Code;
use crate::context::{Context, current};
use crate::driver::running;
use crate::race::{self, GridCheck};
use crate::stream::{Work, stream};

/// Marks in the `extra` list of `cuLaunchKernel`.
const BUFFER: usize = 1;
const BUFFER_SIZE: usize = 2;
/// `CU_LAUNCH_ATTRIBUTE_COOPERATIVE`.
const COOPERATIVE: u32 = 2;

/// Parameters, copied when the launch is called, each in words of its own.
struct Arguments(Vec<Vec<u64>>);

impl Drop for Arguments {
    /// Kernels read structures from here. The next owner of that memory has nothing to do with them.
    fn drop(&mut self) {
        for words in &self.0 {
            race::forget(words.as_ptr() as usize, size_of_val(words.as_slice()));
        }
    }
}

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

    /// The address of each parameter.
    fn pointers(&self) -> Vec<*mut c_void> {
        let words = self.0.iter();
        words
            .map(|words| words.as_ptr().cast_mut().cast())
            .collect()
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
    shared: u32,
    arguments: Arguments,
    is_cooperative: bool,
}

impl Launch {
    fn run(&self, context: &Context) -> Outcome {
        let driver = running()?;
        let library = match &self.function.image {
            Some(_) => None,
            None => Some(driver.kernels.as_ref().ok_or(Code::LAUNCH_FAILED)?),
        };
        let tell = library.map(|library| move |position| library.place(position));
        let over = || context.check().is_err();
        let mut pointers = self.arguments.pointers();
        let threads = self.shape.block_threads();
        let checked = self
            .function
            .image
            .as_ref()
            .is_some_and(|image| image.checked);
        let check = match checked {
            true => GridCheck::begin(&self.function.name, self.shape),
            false => None,
        };
        if !checked {
            race::is_unseen();
        }
        let grid = Grid {
            name: &self.function.name,
            code: self.function.code,
            shape: self.shape,
            arguments: pointers.as_mut_ptr(),
            place: tell.as_ref().map(|tell| tell as &(dyn Fn(Position) + Sync)),
            shared: self.shared,
            over: &over,
            room: Room::on(context.ordinal, resident_blocks(threads)),
            is_cooperative: self.is_cooperative,
            patience: driver.config.patience,
            seed: driver.config.seed,
            check,
            progress: Progress::default(),
        };
        let result = fiber::run(&grid);
        match grid.check {
            Some(check) => check.end(),
            None => race::is_unseen(),
        }
        result
    }
}

struct Arrays {
    pointers: In<In<u8>>,
    extra: In<usize>,
}

/// A launch in the current context, with its parameters copied.
fn prepare(
    handle: u64,
    shape: Shape,
    shared: u32,
    arrays: &Arrays,
    cooperative: bool,
) -> Outcome<Launch> {
    let context = current()?;
    let function = function(handle)?;
    shape.check()?;
    // The host build of kernels has no shared memory.
    if shared > 0 && function.image.is_none() {
        return Err(Code::NOT_SUPPORTED);
    }
    if i64::from(shared) > i64::from(function.max_dynamic_shared()) {
        return Err(Code::INVALID_VALUE);
    }
    if function.context != context.handle {
        return Err(Code::INVALID_HANDLE);
    }
    if cooperative && shape.blocks() > resident_blocks(shape.block_threads()) {
        return Err(Code::COOPERATIVE_LAUNCH_TOO_LARGE);
    }
    let arguments = match (arrays.pointers.is_null(), arrays.extra.is_null()) {
        (true, true) if !function.parameters.is_empty() => return Err(Code::INVALID_VALUE),
        (false, false) => return Err(Code::INVALID_VALUE),
        (true, false) => Arguments::from_extra(&function.parameters, arrays.extra)?,
        _ => Arguments::from_pointers(&function.parameters, arrays.pointers)?,
    };
    Ok(Launch {
        function,
        shape,
        shared,
        arguments,
        is_cooperative: cooperative,
    })
}

fn launch(
    handle: u64,
    shape: Shape,
    shared: u32,
    on: u64,
    arrays: Arrays,
    cooperative: bool,
) -> Outcome {
    let launch = prepare(handle, shape, shared, &arrays, cooperative)?;
    let stream = stream(on)?;
    if stream.context.handle != launch.function.context {
        return Err(Code::INVALID_HANDLE);
    }
    stream.give(Arc::new(move |context| launch.run(context)))?;
    Ok(())
}

/// `CUDA_KERNEL_NODE_PARAMS`: a launch in a graph. The form of CUDA 12 has a kernel of a library and a context behind it.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct KernelNode {
    function: u64,
    grid: [u32; 3],
    threads: [u32; 3],
    shared: u32,
    pointers: In<In<u8>>,
    extra: In<usize>,
}

const _: () = assert!(size_of::<KernelNode>() == 56);

impl KernelNode {
    /// The launch as work of a graph.
    pub(crate) fn work(&self) -> Outcome<Work> {
        let (grid, threads) = (self.grid, self.threads);
        let arrays = Arrays {
            pointers: self.pointers,
            extra: self.extra,
        };
        let launch = prepare(
            self.function,
            Shape { grid, threads },
            self.shared,
            &arrays,
            false,
        )?;
        Ok(Arc::new(move |context| launch.run(context)))
    }
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
