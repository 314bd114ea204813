//! The fixture of tests of GPU memory: the first GPU, of the software driver that `ci/test-gpu` gives or a
//! real one, and worlds on it. Without either nothing is run, which is said in one line; with
//! `OXSHMEM_TEST_CUDA=1` that is a failure.
#![allow(dead_code, reason = "each test takes what it needs")]
#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

use oxshmem::cuda::testing::present;
use oxshmem::cuda::{Context, Device, Stream, StreamOptions, devices};
use oxshmem::testing::spmd_with;
use oxshmem::{Builder, MemoryKind, Pod, Result, Sym, World};
use oxshmem_bootstrap::InProcess;

pub const CUDA: MemoryKind = MemoryKind::Cuda;
pub const MIB: usize = 1 << 20;

/// The first GPU's context, if there is one.
pub fn context() -> Option<Context> {
    Some(Context::new(&present(Device::new(0))?).unwrap())
}

/// A world of which a PE has this GPU.
pub fn on(context: Context) -> Builder {
    World::builder()
        .gpu(context, 64 * MIB)
        .heap_limit(16 * MIB)
        .timeout(Duration::from_secs(60))
}

/// Held by all tests that use a GPU, and by one that captures a stream alone: a world of this process that ends
/// meanwhile waits for the GPU, which ends captures.
static GPU: RwLock<()> = RwLock::new(());

/// For a test that makes worlds of its own.
pub fn shared() -> RwLockReadGuard<'static, ()> {
    GPU.read().unwrap_or_else(PoisonError::into_inner)
}

/// Thread PEs that share the first GPU.
pub fn run(pes: usize, case: impl Fn(&World) -> Result<()> + Sync) {
    let _shared = shared();
    if let Some(context) = context() {
        spmd_with(on(context), pes, case).unwrap();
    }
}

/// [`run`] while no other test of this process does.
pub fn run_alone(pes: usize, case: impl Fn(&World) -> Result<()> + Sync) {
    let _alone = GPU.write().unwrap_or_else(PoisonError::into_inner);
    if let Some(context) = context() {
        spmd_with(on(context), pes, case).unwrap();
    }
}

/// Thread PEs that each have the next of the GPUs there are.
pub fn run_on_all_gpus(pes: usize, case: impl Fn(&World) -> Result<()> + Sync) {
    let _shared = shared();
    if context().is_none() {
        return;
    }
    let gpus = devices().unwrap();
    let contexts: Vec<_> = gpus.iter().map(|gpu| Context::new(gpu).unwrap()).collect();
    std::thread::scope(|threads| {
        let group = InProcess::group(pes as u32);
        for (bootstrap, context) in group.into_iter().zip(contexts.iter().cycle()) {
            let builder = on(context.clone()).bootstrap(bootstrap as Arc<_>);
            let case = &case;
            threads.spawn(move || {
                let world = builder.join().unwrap();
                case(&world).unwrap();
                world.finalize().unwrap();
            });
        }
    });
}

/// A stream of the PE's GPU.
pub fn stream(world: &World) -> Stream {
    Stream::new(world.gpu_context().unwrap(), &StreamOptions::default()).unwrap()
}

/// Words that tell who wrote them.
pub fn pattern(seed: usize, len: usize) -> Vec<u64> {
    (0..len).map(|at| (seed * 1_000_003 + at) as u64).collect()
}

/// This PE's values.
pub fn read<T: Pod>(world: &World, sym: Sym<T>) -> Result<Vec<T>> {
    let mut values = vec![T::zeroed(); sym.len()];
    world.get(&mut values, sym, world.my_pe())?;
    Ok(values)
}

/// An object in GPU memory, zeroed on all PEs.
pub fn zeroed<T: Pod>(world: &World, len: usize) -> Result<Sym<T>> {
    let sym = world.alloc_on::<T>(CUDA, len)?;
    world.put(sym, &vec![T::zeroed(); len], world.my_pe())?;
    world.barrier_all()?;
    Ok(sym)
}
