//! Contexts: sequences of operations, each ordered and completed independently of the others.

pub(crate) mod in_session;
pub(crate) mod options;
pub(crate) mod session;
#[cfg(test)]
mod tests;
pub(crate) mod threads;

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use oxshmem_engine::lane::lanes::Lanes;
use oxshmem_engine::peer::mapped_table::PeerTable;
use oxshmem_engine::worker::Worker;

use crate::context::options::ContextOptions;
use crate::context::session::Session;
use crate::error::{Error, Result};
use crate::pe_state::PeState;
use crate::place::placed;
use oxshmem_engine::report;

/// A sequence of operations with a fence and quiet of its own (M17, M19): neither orders or completes
/// operations of other contexts. Made by [`create_context`](Self::create_context); a
/// [`World`](crate::World) is the default
/// context of its PE, too, and so has all of these calls.
///
/// A context is used by one thread at a time and owns its lanes without a lock: it is `Send`, not `Sync`. Threads
/// that each have one do not disturb each other; [`share`](Self::share) makes one for many.
///
/// ```
/// use oxshmem::{ContextOptions, Result, testing::spmd};
///
/// fn main() -> Result<()> {
///     spmd(2, |world| {
///         let sums = world.alloc_zeroed::<u64>(4)?;
///         let contexts = (0..4).map(|_| world.create_context(ContextOptions::NONE));
///         let contexts: Vec<_> = contexts.collect::<Result<_>>()?;
///         std::thread::scope(|threads| {
///             for (i, context) in contexts.into_iter().enumerate() {
///                 threads.spawn(move || -> Result<()> {
///                     let peer = 1 - context.my_pe();
///                     (0..100).try_for_each(|_| context.inc(sums.at(i)?, peer))?;
///                     context.destroy() // completes what it has issued
///                 });
///             }
///         });
///         world.barrier_all()?;
///         assert_eq!(world.g(sums.at(3)?, world.my_pe())?, 100);
///         Ok(())
///     })?;
///     Ok(())
/// }
/// ```
///
/// Lanes are connected with a PE at the first operation towards it; a context that ends leaves its lanes, with
/// their connections, to the next. A wait makes progress on the lanes of its own context. A thread that waits on one context
/// for an effect of operations on another completes those by a quiet first, or makes [progress](Self::progress) on them
/// meanwhile.
///
/// A context of a team numbers the PEs as the team does. Errors name a PE that was lost or is not reached by its
/// number in the world.
///
/// Two threads cannot use one at the same time:
///
/// ```compile_fail
/// # oxshmem::testing::spmd(1, |world| {
/// let context = world.create_context(oxshmem::ContextOptions::NONE)?;
/// std::thread::scope(|threads| {
///     threads.spawn(|| context.quiet()); // `&Context` is not `Send`: does not compile
/// });
/// # Ok(()) });
/// ```
///
/// nor is one used once it is destroyed:
///
/// ```compile_fail,E0382
/// # fn f(context: oxshmem::Context<'_>) -> oxshmem::Result<()> {
/// context.destroy()?;
/// context.quiet()
/// # }
/// ```
///
/// nor does a team end before its contexts:
///
/// ```compile_fail,E0505
/// # fn f(team: oxshmem::Team<'_>) -> oxshmem::Result<()> {
/// let context = team.create_context(oxshmem::ContextOptions::NONE)?;
/// team.destroy()?;
/// context.quiet()
/// # }
/// ```
///
/// nor a world:
///
/// ```compile_fail
/// # fn main() -> oxshmem::Result<()> {
/// let world = oxshmem::World::init()?;
/// let context = world.create_context(oxshmem::ContextOptions::NONE)?;
/// world.finalize()?; // `world` is borrowed: does not compile
/// context.destroy()
/// # }
/// ```
pub struct Context<'w> {
    // No interior mutability outside boxes: so the compiler may keep these fields in registers in a loop.
    /// The operations. Dropped before `pe`: the default context has left its lanes there.
    pub(crate) worker: Worker,
    me: usize,
    state: Box<State>,
    pub(crate) pe: Arc<PeState>,
    /// The PEs by their numbers in the world, where the context numbers them otherwise.
    members: Option<Arc<[u32]>>,
    world: PhantomData<&'w ()>,
}

/// The state of a context that its operations do not read. On cache lines that no other thread writes.
#[repr(align(128))]
struct State {
    /// State of the context's random sequence; never 0.
    random: Cell<u64>,
    /// The session that the program has begun, if any.
    session: Cell<Option<Session>>,
    /// Whether it has reported how it ended.
    ended: bool,
}

impl fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("number", &self.worker.state.number)
            .field("pe", &self.me)
            .field("pes", &self.worker.peers.n_pes())
            .finish_non_exhaustive()
    }
}

impl<'w> Context<'w> {
    /// Makes a context for operations towards the same PEs as this one's, on a [`World`](crate::World) towards all. Not
    /// collective, and its end neither: contexts may differ in number from PE to PE. Other threads may be in
    /// collective calls meanwhile.
    ///
    /// ```
    /// use oxshmem::{ContextOptions, Result, testing::spmd};
    ///
    /// fn main() -> Result<()> {
    ///     spmd(2, |world| {
    ///         let x = world.alloc_zeroed::<u64>(2)?;
    ///         let context = world.create_context(ContextOptions::NONE)?;
    ///         let peer = 1 - world.my_pe();
    ///         context.p(x, 1, peer)?;
    ///         world.p(x.at(1)?, 2, peer)?;
    ///         context.quiet()?; // the first is there, the second perhaps not yet
    ///         assert_eq!(world.g(x, peer)?, 1);
    ///         context.destroy()?;
    ///         world.barrier_all()
    ///     })?;
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// The error of a transport that has no lane left.
    #[doc(alias("shmem_ctx_create", "nvshmem_ctx_create"))]
    #[track_caller]
    pub fn create_context(&self, options: ContextOptions) -> Result<Context<'_>> {
        placed(|| self.context_of(self.members.as_ref(), options))
    }

    /// A context for operations towards all PEs, or towards `members`, given by their numbers in the world
    /// and numbered from 0 in the context's calls. This PE is one of them. The caller chooses its lifetime:
    /// no longer than the world's.
    pub(crate) fn context_of<'c>(
        &self,
        members: Option<&Arc<[u32]>>,
        options: ContextOptions,
    ) -> Result<Context<'c>> {
        let engine = &self.pe.engine;
        let me = match members {
            None => engine.me,
            Some(members) => {
                let me_in_team = members.iter().position(|&pe| pe as usize == engine.me);
                me_in_team.ok_or_else(|| Error::Argument {
                    call: "create_context",
                    what: "this PE is no member of the team; only members make its contexts".into(),
                })?
            }
        };
        let lanes = Lanes::open(&engine.rails, engine.n_pes(), engine.fences_always_slow)?;
        let peers = self.worker.peers.of_context(members);
        let tracks_stores = !options.has(ContextOptions::NOSTORE);
        let worker = Worker::new(Arc::clone(engine), peers, lanes, tracks_stores);
        let members = members.cloned();
        Ok(Context::with(Arc::clone(&self.pe), worker, me, members))
    }

    /// The context, in a user's call of this name: its errors and reports name it.
    #[inline(always)]
    pub(crate) fn in_call(&self, call: &'static str) -> &Self {
        self.worker.in_call(call);
        self
    }

    /// The name of the user's call that the context is in.
    pub(crate) fn call(&self) -> &'static str {
        self.worker.call()
    }

    /// The state of the context's random sequence.
    pub(crate) fn random_state(&self) -> &Cell<u64> {
        &self.state.random
    }

    /// Whether its numbers for the PEs are the world's.
    pub(crate) fn counts_as_world(&self) -> bool {
        self.members.is_none()
    }

    /// The default one.
    pub(crate) fn default(pe: Arc<PeState>, peers: PeerTable, lanes: Lanes) -> Self {
        let me = pe.engine.me;
        let worker = Worker::new(Arc::clone(&pe.engine), peers, lanes, true);
        Self::with(pe, worker, me, None)
    }

    fn with(pe: Arc<PeState>, worker: Worker, me: usize, members: Option<Arc<[u32]>>) -> Self {
        let seed = pe.config.seed ^ worker.state.number.wrapping_mul(0x5851_f42d_4c95_7f2d);
        Context {
            state: Box::new(State {
                random: Cell::new(random_start(seed, pe.engine.me as u32)),
                session: Cell::new(None),
                ended: false,
            }),
            worker,
            me,
            pe,
            members,
            world: PhantomData,
        }
    }

    /// This PE's number, from 0: in the job, or in the team that the context was made for.
    #[doc(alias("shmem_my_pe", "_my_pe", "nvshmem_my_pe", "MPI_Comm_rank"))]
    #[inline]
    #[must_use]
    pub fn my_pe(&self) -> usize {
        self.me
    }

    /// Number of PEs in the job, or in the team that the context was made for.
    #[doc(alias("shmem_n_pes", "_num_pes", "nvshmem_n_pes", "MPI_Comm_size"))]
    #[inline]
    #[must_use]
    pub fn n_pes(&self) -> usize {
        self.worker.peers.n_pes()
    }

    /// The number in the world of a PE of this context's.
    pub(crate) fn in_world(&self, pe: usize) -> Option<usize> {
        match &self.members {
            None => (pe < self.n_pes()).then_some(pe),
            Some(members) => members.get(pe).map(|&pe| pe as usize),
        }
    }

    /// Limit of each PE's symmetric heap, in bytes, as the PEs agreed (M14): all of them are for the program's blocks. The
    /// library's own part comes on top.
    #[must_use]
    pub fn heap_limit(&self) -> usize {
        self.pe.limit
    }

    /// Drives the operations in flight on this context's lanes, as waits on it do: for a thread that waits on
    /// one context for an effect of another's operations.
    pub fn progress(&self) {
        self.worker.progress();
    }

    /// Completes what the context has issued, as [`quiet`](Self::quiet), and ends it. One that is
    /// merely dropped is completed, too; its errors are reported and lost.
    /// Operations that cannot complete are cancelled.
    #[doc(alias = "shmem_ctx_destroy")]
    #[track_caller]
    pub fn destroy(mut self) -> Result<()> {
        placed(|| {
            let completed = self.quiet();
            self.end(&completed);
            completed
        })
    }

    /// The context ends; `completed` says whether all that it has issued has.
    fn end(&mut self, completed: &Result<()>) {
        if let Err(error) = completed {
            self.worker.end_lanes(error);
        }
        self.state.ended = true;
        self.worker.close(completed.is_ok());
    }
}

impl Drop for Context<'_> {
    fn drop(&mut self) {
        if self.worker.state.number == 0 {
            // A world that was not finalized waits for nobody.
            self.worker.state.lanes.retire();
            return;
        }
        if self.state.ended {
            return;
        }
        let completed = self.quiet();
        self.end(&completed);
        if let Err(error) = completed {
            report::warn(&format!("a context was not completed: {error}"));
        }
    }
}

/// The start of a random sequence: the same in each run. Never 0.
fn random_start(seed: u64, rank: u32) -> u64 {
    (seed ^ u64::from(rank + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)) | 1
}
