//! A world's GPU: its context, the kernels, and the engine that copies for its process.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use oxshmem_cuda::Context;

use oxshmem_device::Kernels;

use super::copy_engine::Engine;
use super::inbox::GpuInbox;

/// A world's means to use its GPU. Made once, at initialization: loading kernels and page-locking memory may
/// wait for kernels that run, and later some of this process may be waiting for peers.
#[derive(Clone, Debug)]
pub(crate) struct Gpu {
    pub context: Context,
    pub kernels: Arc<Kernels>,
    engine: Arc<Mutex<Engine>>,
    /// Where atomics go once kernels may wait for them.
    inbox: Arc<OnceLock<Mutex<GpuInbox>>>,
}

impl Gpu {
    pub(crate) fn new(context: Context) -> Result<Gpu, String> {
        let make = || -> oxshmem_cuda::Result<Gpu> {
            let kernels = Arc::new(Kernels::load(&context)?);
            let engine = Engine::new(&context, &kernels)?;
            Ok(Gpu {
                engine: Arc::new(Mutex::new(engine)),
                kernels,
                inbox: Arc::default(),
                context: context.clone(),
            })
        };
        make().map_err(|error| error.to_string())
    }

    /// This process's copies to and from it, one call at a time.
    pub(crate) fn engine(&self) -> MutexGuard<'_, Engine> {
        self.engine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The inbox for atomics, if it is open.
    pub(crate) fn inbox(&self) -> Option<MutexGuard<'_, GpuInbox>> {
        let inbox = self.inbox.get()?.lock();
        Some(inbox.unwrap_or_else(PoisonError::into_inner))
    }

    /// Lets atomics go to the inbox from here on. Once.
    pub(crate) fn open_inbox(&self, inbox: GpuInbox) {
        // The cell is empty: a device library is opened once.
        let _ = self.inbox.set(Mutex::new(inbox));
    }
}
