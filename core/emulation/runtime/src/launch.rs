//! Launches, and facts about kernels.

use std::cell::RefCell;
use std::ffi::{c_char, c_void};
use std::mem::ManuallyDrop;

use crate::driver;
use crate::error::{Error, Outcome, get, own_stream, set};
use crate::register::{self, function};

/// `dim3`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Dim3 {
    x: u32,
    y: u32,
    z: u32,
}

#[derive(Clone, Copy)]
struct Configuration {
    grid: Dim3,
    block: Dim3,
    shared: usize,
    stream: u64,
}

thread_local! {
    /// Without a destructor: destructors of the program's own variables may launch kernels.
    static PUSHED: ManuallyDrop<RefCell<Vec<Configuration>>> =
        const { ManuallyDrop::new(RefCell::new(Vec::new())) };
}

/// Keeps the configuration of `<<<...>>>` for the stub.
#[unsafe(no_mangle)]
unsafe extern "C" fn __cudaPushCallConfiguration(
    grid: Dim3,
    block: Dim3,
    shared: usize,
    stream: u64,
) -> u32 {
    PUSHED.with(|pushed| {
        pushed.borrow_mut().push(Configuration {
            grid,
            block,
            shared,
            stream,
        });
    });
    0
}

/// Takes it back.
#[unsafe(no_mangle)]
unsafe extern "C" fn __cudaPopCallConfiguration(
    grid: *mut Dim3,
    block: *mut Dim3,
    shared: *mut usize,
    stream: *mut u64,
) -> u32 {
    let Some(pushed) = PUSHED.with(|pushed| pushed.borrow_mut().pop()) else {
        return Error::INVALID_CONFIGURATION.0;
    };
    let all = [
        set(grid, pushed.grid),
        set(block, pushed.block),
        set(shared, pushed.shared),
        set(stream, pushed.stream),
    ];
    all.into_iter()
        .find_map(Result::err)
        .map_or(0, |error| error.0)
}

struct Launch {
    stub: *const c_void,
    grid: Dim3,
    block: Dim3,
    arguments: *const *const c_void,
    shared: usize,
    stream: u64,
    cooperative: bool,
}

/// A list of no arguments, for kernels without parameters.
struct NoArguments([*const c_void; 1]);

// SAFETY: the one pointer is null.
unsafe impl Sync for NoArguments {}

static NO_ARGUMENTS: NoArguments = NoArguments([std::ptr::null()]);

impl Launch {
    fn run(&self) -> Outcome {
        let function = function(self.stub)?;
        let shared = u32::try_from(self.shared).map_err(|_| Error::INVALID_VALUE)?;
        let (g, b) = (self.grid, self.block);
        let arguments = if self.arguments.is_null() {
            NO_ARGUMENTS.0.as_ptr()
        } else {
            self.arguments
        };
        let done = if self.cooperative {
            driver::cuLaunchCooperativeKernel(
                function,
                g.x,
                g.y,
                g.z,
                b.x,
                b.y,
                b.z,
                shared,
                self.stream,
                arguments,
            )
        } else {
            driver::cuLaunchKernel(
                function,
                g.x,
                g.y,
                g.z,
                b.x,
                b.y,
                b.z,
                shared,
                self.stream,
                arguments,
                std::ptr::null(),
            )
        };
        // The runtime has a code of its own for shapes that no device has.
        done.map_err(|error| {
            if error == Error::INVALID_VALUE {
                self.refused()
            } else {
                error
            }
        })
    }

    fn refused(&self) -> Error {
        let (g, b) = (self.grid, self.block);
        let threads = u64::from(b.x) * u64::from(b.y) * u64::from(b.z);
        let shape = g.x == 0
            || g.y == 0
            || g.z == 0
            || g.y > 65535
            || g.z > 65535
            || threads == 0
            || threads > 1024
            || b.z > 64;
        if shape {
            Error::INVALID_CONFIGURATION
        } else {
            Error::INVALID_VALUE
        }
    }
}

stream_calls! {
    /// Launches a kernel.
    fn cudaLaunchKernel, cudaLaunchKernel_ptsz(
        stub: *const c_void, grid: Dim3, block: Dim3, arguments: *const *const c_void, shared: usize; stream
    ) {
        Launch { stub, grid, block, arguments, shared, stream, cooperative: false }.run()
    }

    /// Launches a kernel whose blocks are all there at once.
    fn cudaLaunchCooperativeKernel, cudaLaunchCooperativeKernel_ptsz(
        stub: *const c_void, grid: Dim3, block: Dim3, arguments: *const *const c_void, shared: usize; stream
    ) {
        Launch { stub, grid, block, arguments, shared, stream, cooperative: true }.run()
    }
}

/// `cudaLaunchConfig_t`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct LaunchConfig {
    grid: Dim3,
    block: Dim3,
    shared: usize,
    stream: u64,
    attributes: *const LaunchAttribute,
    count: u32,
}

/// `cudaLaunchAttribute`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct LaunchAttribute {
    id: u32,
    unused: u32,
    value: [u32; 16],
}

fn launch_with(
    config: *const LaunchConfig,
    stub: *const c_void,
    arguments: *const *const c_void,
    own: bool,
) -> Outcome {
    if config.is_null() {
        return Err(Error::INVALID_VALUE);
    }
    // SAFETY: not null, so the runtime's caller vouches for it.
    let config = unsafe { *config };
    if config.attributes.is_null() && config.count > 0 {
        return Err(Error::INVALID_VALUE);
    }
    let mut cooperative = false;
    for index in 0..config.count as usize {
        // SAFETY: the caller vouches for `count` attributes.
        let attribute = unsafe { *config.attributes.add(index) };
        match attribute.id {
            // Hints without effect here.
            0 | 1 | 3 | 6 | 8 | 9 | 10 | 14 => {}
            2 => cooperative = attribute.value[0] != 0,
            // A cluster of one block is no cluster.
            4 if attribute.value[..3] == [1, 1, 1] => {}
            id => {
                eprintln!(
                    "softcudart: cudaLaunchKernelExC: launch attribute {id} is not supported"
                );
                return Err(Error::NOT_SUPPORTED);
            }
        }
    }
    let stream = if own {
        own_stream(config.stream)
    } else {
        config.stream
    };
    let (grid, block, shared) = (config.grid, config.block, config.shared);
    Launch {
        stub,
        grid,
        block,
        arguments,
        shared,
        stream,
        cooperative,
    }
    .run()
}

/// `cudaFuncAttributes`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct FunctionAttributes {
    shared: usize,
    constant: usize,
    local: usize,
    most_threads: i32,
    registers: i32,
    ptx: i32,
    binary: i32,
    cache: i32,
    most_dynamic_shared: i32,
    carveout: i32,
    cluster: [i32; 6],
    reserved: [i32; 16],
}

fn potential(blocks: *mut i32, stub: *const c_void, threads: i32, shared: usize) -> Outcome {
    let function = function(stub)?;
    if blocks.is_null() {
        return Err(Error::INVALID_VALUE);
    }
    driver::cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, threads, shared)
}

runtime_calls! {
    /// Launches a kernel with attributes.
    fn cudaLaunchKernelExC(config: *const LaunchConfig, stub: *const c_void, arguments: *const *const c_void) {
        launch_with(config, stub, arguments, false)
    }

    /// Launches a kernel with attributes.
    fn cudaLaunchKernelExC_ptsz(config: *const LaunchConfig, stub: *const c_void, arguments: *const *const c_void) {
        launch_with(config, stub, arguments, true)
    }

    /// Facts about a kernel.
    fn cudaFuncGetAttributes(out: *mut FunctionAttributes, stub: *const c_void) {
        let function = function(stub)?;
        let fact = |number| get(|out| driver::cuFuncGetAttribute(out, number, function));
        set(out, FunctionAttributes {
            shared: fact(1)? as usize,
            constant: fact(2)? as usize,
            local: fact(3)? as usize,
            most_threads: fact(0)?,
            registers: fact(4)?,
            ptx: fact(5)?,
            binary: fact(6)?,
            cache: fact(7)?,
            most_dynamic_shared: fact(8)?,
            carveout: fact(9)?,
            ..FunctionAttributes::default()
        })
    }

    /// Asks for more dynamic shared memory, or another share of it.
    fn cudaFuncSetAttribute(stub: *const c_void, attribute: u32, value: i32) {
        driver::cuFuncSetAttribute(function(stub)?, attribute, value)
    }

    /// A hint about caches, which has no effect here.
    fn cudaFuncSetCacheConfig(stub: *const c_void, _config: u32) {
        function(stub).map(|_| ())
    }

    /// A hint about shared memory, which has no effect here.
    fn cudaFuncSetSharedMemConfig(stub: *const c_void, _config: u32) {
        function(stub).map(|_| ())
    }

    /// The name of a kernel.
    fn cudaFuncGetName(out: *mut *const c_char, stub: *const c_void) {
        set(out, register::name(stub)?)
    }

    /// The driver's function of a kernel.
    fn cudaGetFuncBySymbol(out: *mut u64, stub: *const c_void) {
        set(out, function(stub)?)
    }

    /// Blocks that a multiprocessor holds at once.
    fn cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks: *mut i32, stub: *const c_void, threads: i32, shared: usize) {
        potential(blocks, stub, threads, shared)
    }

    /// Blocks that a multiprocessor holds at once.
    fn cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        blocks: *mut i32, stub: *const c_void, threads: i32, shared: usize, _flags: u32
    ) {
        potential(blocks, stub, threads, shared)
    }

    /// Address of a variable.
    fn cudaGetSymbolAddress(out: *mut u64, symbol: *const c_void) {
        set(out, register::variable(symbol)?.0)
    }

    /// Bytes of a variable.
    fn cudaGetSymbolSize(out: *mut usize, symbol: *const c_void) {
        set(out, register::variable(symbol)?.1)
    }
}
