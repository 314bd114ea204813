//! Contexts: streams of operations that are ordered and completed apart from each other.

use crate::{Result, World, report};

/// A stream of operations with a fence and quiet of its own (M17, M19): neither orders or completes
/// what other contexts have issued. Made by [`World::create_context`]; the world itself is the
/// default context.
///
/// ```
/// # oxshmem::testing::spmd(2, |world| {
/// # let (x, y) = (world.alloc::<u64>(1)?, world.alloc::<u64>(1)?);
/// let context = world.create_context()?;
/// context.call(|world| world.p(x, 1, 1))?;
/// context.call(|world| world.fence())?; // orders what this context issued, nothing else
/// context.call(|world| world.p(y, 1, 1))?;
/// context.destroy()?;
/// # Ok(()) })?;
/// # Ok::<(), oxshmem::Error>(())
/// ```
///
/// Towards mapped peers all contexts share one stream, which orders and completes more than it must.
/// On lanes each has its own, connected with a PE at the first operation towards it; one that ends leaves
/// its lane, with its connections, to the next.
#[derive(Debug)]
pub struct Context<'w> {
    world: &'w World,
    index: usize,
}

impl World {
    /// Makes a context (OpenSHMEM `shmem_ctx_create`, without options). Not collective.
    #[doc(alias = "shmem_ctx_create")]
    pub fn create_context(&self) -> Result<Context<'_>> {
        let free = self.inner.free_contexts.borrow().last().copied();
        let index = free.unwrap_or(self.inner.contexts.get() + 1);
        for transport in &self.inner.wire.transports {
            transport.open_context(index)?;
        }
        self.inner.free_contexts.borrow_mut().pop();
        self.inner
            .contexts
            .set(self.inner.contexts.get().max(index));
        Ok(Context { world: self, index })
    }
}

impl Context<'_> {
    /// Runs `f`, whose operations, fences and quiets belong to this context. Barriers and other
    /// collective calls within still concern the default context.
    pub fn call<R>(&self, f: impl FnOnce(&World) -> Result<R>) -> Result<R> {
        self.world.inner.wire.within(self.index, || f(self.world))
    }

    /// Completes what the context has issued, as [`quiet`](World::quiet), and ends it. One that is
    /// merely dropped is completed, too; its errors are reported and lost.
    #[doc(alias = "shmem_ctx_destroy")]
    pub fn destroy(self) -> Result<()> {
        self.call(World::quiet)
    }
}

impl Drop for Context<'_> {
    fn drop(&mut self) {
        // After `destroy` there is nothing left to complete.
        let quieted = self.call(World::quiet);
        let inner = &self.world.inner;
        let transports = &inner.wire.transports;
        let completed = quieted.is_ok();
        transports
            .iter()
            .for_each(|t| t.close_context(self.index, completed));
        match quieted {
            Ok(()) => inner.free_contexts.borrow_mut().push(self.index),
            // Its number stays taken: what it has outstanding is noted under it.
            Err(error) => report::warn(&format!("a context was not completed: {error}")),
        }
    }
}
