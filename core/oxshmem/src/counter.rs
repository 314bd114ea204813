//! Counted puts: the target waits for a number of them, from any sender and in any order.
//!
//! The counter counts arrivals, whatever their size, as the completion counters of RDMA engines do;
//! NVSHMEM's counted writes count bytes.

use bytemuck::Pod;

use crate::context::Context;
use crate::context::threads::SharedContext;
use crate::error::Result;
use crate::sym::Sym;
use crate::wait_until::{Cmp, wait_word};
use oxshmem_transport::SignalOp;

impl Context<'_> {
    /// Puts `source` at the start of `dst` on PE `pe` and counts it there: once the count has it, the
    /// data is there (M22). An empty `source` counts, too.
    ///
    /// `counter` is one word, zero before its first use, that only counted puts and the waits for them
    /// touch. Any number of PEs may count in it.
    ///
    /// ```
    /// use oxshmem::{Result, testing::spmd};
    ///
    /// fn main() -> Result<()> {
    ///     spmd(4, |world| {
    ///         let (me, n) = (world.my_pe(), world.n_pes());
    ///         let parts = world.alloc::<u64>(n)?;
    ///         let arrived = world.alloc_zeroed::<u64>(1)?;
    ///         for step in 1..=3 {
    ///             for pe in 0..n {
    ///                 world.put_counted(parts.at(me)?, &[step], arrived, pe)?;
    ///             }
    ///             world.wait_counted(arrived, n as u64)?;
    ///             let mut all = vec![0; n];
    ///             world.read(&mut all, parts)?;
    ///             assert_eq!(all, vec![step; n]);
    ///             world.sync_all()?; // everyone has read: the parts may be overwritten
    ///         }
    ///         Ok(())
    ///     })?;
    ///     Ok(())
    /// }
    /// ```
    #[track_caller]
    pub fn put_counted<T: Pod>(
        &self,
        dst: Sym<T>,
        source: &[T],
        counter: Sym<u64>,
        pe: usize,
    ) -> Result<()> {
        self.put_signal(dst, source, counter, 1, SignalOp::Add, pe)
    }

    /// Waits until `n` puts have been counted here, and takes them off the count: further arrivals
    /// count for the next wait. Their data is there (M22, M23). One thread of a PE waits at a time.
    #[track_caller]
    pub fn wait_counted(&self, counter: Sym<u64>, n: u64) -> Result<()> {
        wait_word(self, "wait_counted", counter, Cmp::Ge, n)?;
        self.take_counted(counter, n)
    }

    /// As [`wait_counted`](Self::wait_counted) if as many have arrived; else gives false at once, and the
    /// count stays as it is.
    #[track_caller]
    pub fn test_counted(&self, counter: Sym<u64>, n: u64) -> Result<bool> {
        let enough = self.test(counter, Cmp::Ge, n)?;
        if enough {
            self.take_counted(counter, n)?;
        }
        Ok(enough)
    }

    fn take_counted(&self, counter: Sym<u64>, n: u64) -> Result<()> {
        // A fetching atomic has been performed when it returns, by a NIC, too: the next load counts nothing twice.
        let me = self.my_pe();
        self.fetch_add(counter, n.wrapping_neg(), me).map(drop)
    }
}

impl SharedContext<'_> {
    /// [`Context::wait_counted`]. Takes the context's lock for a moment when as many have arrived, not before.
    #[track_caller]
    pub fn wait_counted(&self, counter: Sym<u64>, n: u64) -> Result<()> {
        wait_word(self, "wait_counted", counter, Cmp::Ge, n)?;
        self.lock().take_counted(counter, n)
    }

    /// [`Context::test_counted`]. Takes the context's lock for a moment if as many have arrived, else not.
    #[track_caller]
    pub fn test_counted(&self, counter: Sym<u64>, n: u64) -> Result<bool> {
        let enough = self.test(counter, Cmp::Ge, n)?;
        if enough {
            self.lock().take_counted(counter, n)?;
        }
        Ok(enough)
    }
}
