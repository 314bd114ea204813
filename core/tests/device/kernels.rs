//! The kernels of `kernels.cu`, loaded and prepared.

use std::path::PathBuf;
use std::time::Duration;

use oxshmem::cuda::{Args, Launch, Module, Stream};
use oxshmem::{DeviceLibrary, Pod, Result, Sym, World};
use oxshmem_cuda::DevicePtr;

use crate::on_gpu::{CUDA, read, stream};

/// The scopes in `kernels.cu`, each with the threads of a block.
pub const SCOPES: [(u32, u32); 3] = [(0, 3), (1, 32), (2, 5)];

/// The PTX of `kernels.cu`.
pub fn path() -> Option<PathBuf> {
    std::env::var_os("OXSHMEM_TEST_DEVICE_PTX").map(PathBuf::from)
}

/// The kernels, and the stream on which they run.
pub struct Kernels<'w> {
    pub world: &'w World,
    pub library: DeviceLibrary<'w>,
    module: Module,
    stream: Stream,
}

impl<'w> Kernels<'w> {
    pub fn new(world: &'w World) -> Result<Kernels<'w>> {
        let library = world.device_library()?;
        let context = world.gpu_context().unwrap();
        let ptx = std::fs::read_to_string(path().unwrap()).unwrap();
        let module = Module::from_ptx(context, &ptx).unwrap();
        library.prepare(&module)?;
        Ok(Kernels {
            world,
            library,
            module,
            stream: stream(world),
        })
    }

    /// Prepares the module again, after a change of the library's settings.
    pub fn prepare(&self) -> Result<()> {
        self.library.prepare(&self.module)
    }

    /// The bytes of the module's state.
    pub fn state_bytes(&self) -> usize {
        self.module.global(c"oxshmem_state").unwrap().1
    }

    /// Fills a module's state, in which the software driver has what the kernels' own module has.
    pub fn fill_state(&self, module: &Module, byte: u8) {
        let (state, bytes) = module.global(c"oxshmem_state").unwrap();
        // SAFETY: the variable has so many bytes, and no kernel of the module runs.
        unsafe { self.stream.fill(state, byte, bytes) }.unwrap();
        self.synchronize();
    }

    /// Queues a kernel of so many blocks of so many threads.
    pub fn launch(&self, name: &std::ffi::CStr, blocks: u32, threads: u32, args: Args) {
        let kernel = self.module.function(name).unwrap();
        let shape = Launch::linear(blocks, threads);
        // SAFETY: the arguments are what the kernels of this test take; their objects live until the world ends.
        unsafe { kernel.launch(&self.stream, &shape, &args) }.unwrap();
    }

    pub fn synchronize(&self) {
        self.stream
            .synchronize_within(Duration::from_secs(60))
            .unwrap();
    }

    /// Runs a kernel, and checks that it made no bad call.
    pub fn run(&self, name: &std::ffi::CStr, blocks: u32, threads: u32, args: Args) -> Result<()> {
        self.launch(name, blocks, threads, args);
        self.synchronize();
        self.library.check()
    }

    /// This PE's address of an object, for a kernel.
    pub fn at<T: Pod>(&self, sym: Sym<T>) -> DevicePtr {
        self.world.gpu_ptr(sym, self.world.my_pe()).unwrap()
    }
}

/// An object in GPU memory with a value on all PEs.
pub fn filled<T: Pod>(world: &World, values: &[T]) -> Result<Sym<T>> {
    let sym = world.alloc_on::<T>(CUDA, values.len())?;
    world.put(sym, values, world.my_pe())?;
    world.barrier_all()?;
    Ok(sym)
}

/// The check of the word in which kernels count wrong values: it is still zero.
pub fn none_wrong(world: &World, wrong: Sym<u64>) -> Result<()> {
    assert_eq!(read(world, wrong)?, [0]);
    Ok(())
}
