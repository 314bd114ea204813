//! A world's GPU: its context, the kernels, and the engine that copies for its process.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use oxshmem_cuda::Context;

use oxshmem_device::Kernels;

use super::copy_engine::Engine;

/// A world's means to use its GPU. Made once, at initialization: loading kernels and page-locking memory may
/// wait for kernels that run, and later some of this process may be waiting for peers.
#[derive(Clone, Debug)]
pub(crate) struct Gpu {
    pub context: Context,
    pub kernels: Arc<Kernels>,
    engine: Arc<Mutex<Engine>>,
}

impl Gpu {
    pub(crate) fn new(context: Context) -> Result<Gpu, String> {
        let make = || -> oxshmem_cuda::Result<Gpu> {
            let kernels = Arc::new(Kernels::load(&context)?);
            let engine = Engine::new(&context, &kernels)?;
            Ok(Gpu {
                engine: Arc::new(Mutex::new(engine)),
                kernels,
                context: context.clone(),
            })
        };
        make().map_err(|error| error.to_string())
    }

    /// This process's copies to and from it, one call at a time.
    pub(crate) fn engine(&self) -> MutexGuard<'_, Engine> {
        self.engine.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
