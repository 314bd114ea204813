//! Collective calls. No call needs the user to synchronise between it and the next.
//!
//! A call has one of two forms ([`choose`]). *By scratch memory*: each member copies what it gives to its
//! own scratch memory, arrives, and reads what it needs from the others'; they use that memory again two
//! arrivals later, when all have read. So there is one arrival, and objects are touched by their own PE
//! alone: for what is small, where an arrival costs more than to move bytes twice. *Direct*: members arrive, read each other's objects (or write them, where all are mapped and
//! each part is one member's), and arrive again, so that nobody's object is used while another is at it. Where each
//! loads a part of every other's, and all meet at once, one arrival [does for both](Turn::arrive_reading).
//!
//! In a team over several hosts, of which some have several members, a broadcast and fcollect take what is
//! another host's once to each host, and [reductions](by_host) fold on each host first. Other calls do not
//! ask where members are. What is given to an alltoall is for one member each, and crosses once as it is: to bring it
//! together on a host first would cost two more copies and arrivals. A member of a collect does not know where what it
//! has fetched belongs before it has heard all lengths, and others could take it from there only after one more
//! arrival; where lengths are alike, fcollect does that.

mod alltoalls;
mod broadcast;
mod collect;
mod fold;
#[cfg(target_arch = "x86_64")]
mod long_double;
mod reduce;
mod reduce_hierarchical;
mod select;
mod transfer;
mod world;

use std::ops::Range;
use std::sync::atomic::{Ordering, fence};

use bytemuck::Pod;

use crate::place::placed;
use crate::sync_area::CallSignature;
use crate::team::{CallInfo, CollectiveCall, Team};
use crate::{Error, Result, Sym, World};

pub use self::fold::Reducible;
#[cfg(target_arch = "x86_64")]
pub use self::long_double::LongDouble;
pub(crate) use self::select::Choices;
pub use self::select::{CollectiveAlgorithm, CollectiveChoice};
use self::select::{CollectiveKind, select};
use self::transfer::TransferPiece;

impl World {
    /// Completes this PE's operations ([`quiet`](crate::Context::quiet)), then waits until all PEs are here
    /// (OpenSHMEM `shmem_barrier_all`).
    ///
    /// Fails on every PE if the PEs call different collectives (M36), and if a PE is lost.
    ///
    /// ```
    /// use oxshmem::{Result, testing::spmd};
    ///
    /// fn main() -> Result<()> {
    ///     spmd(4, |world| {
    ///         let sum = world.alloc_zeroed::<u64>(1)?;
    ///         world.add(sum, world.my_pe() as u64, 0)?;
    ///         world.barrier_all()?; // all PEs have added
    ///         assert_eq!(world.g(sum, 0)?, 6);
    ///         Ok(())
    ///     })?;
    ///     Ok(())
    /// }
    /// ```
    #[doc(alias(
        "shmem_barrier_all",
        "nvshmem_barrier_all",
        "MPI_Barrier",
        "MPI_Win_fence"
    ))]
    #[inline]
    #[track_caller]
    pub fn barrier_all(&self) -> Result<()> {
        placed(|| {
            const DIGEST: CallSignature = CallSignature::of("barrier_all");
            let _traced = self.traced("barrier_all");
            self.barrier("barrier_all", DIGEST, Ok(()), &|| "barrier_all()".into())?;
            self.see_gpu_data()
        })
    }

    /// Waits until all PEs are here; their earlier stores are visible, their operations on lanes
    /// need not be complete (OpenSHMEM `shmem_sync_all`).
    ///
    /// ```
    /// use oxshmem::{Result, testing::spmd};
    ///
    /// fn main() -> Result<()> {
    ///     spmd(4, |world| {
    ///         let own = world.alloc::<u64>(1)?;
    ///         world.write(own, &[1])?;
    ///         world.sync_all()?; // all PEs have written
    ///         let right = (world.my_pe() + 1) % world.n_pes();
    ///         assert_eq!(world.g(own, right)?, 1);
    ///         world.sync_all()?; // all have read: it may be written again
    ///         world.write(own, &[2])
    ///     })?;
    ///     Ok(())
    /// }
    /// ```
    #[doc(alias("shmem_sync_all", "nvshmem_sync_all"))]
    #[inline]
    #[track_caller]
    pub fn sync_all(&self) -> Result<()> {
        placed(|| {
            const DIGEST: CallSignature = CallSignature::of("sync_all");
            let _traced = self.traced("sync_all");
            self.together("sync_all", DIGEST, Ok(()), &|| "sync_all()".into())
        })
    }

    /// Quiet and arrival, for calls that contain a barrier. `mine` is how this PE's part went.
    #[inline]
    pub(crate) fn barrier(
        &self,
        call: &'static str,
        digest: CallSignature,
        mine: Result<()>,
        words: &dyn Fn() -> String,
    ) -> Result<()> {
        if self.n_pes() == 1 {
            // There is no arrival, which would fence.
            fence(Ordering::SeqCst);
            self.peers.clear_dirty();
        }
        let mine = if self.is_idle() {
            mine
        } else {
            // First quiet, whatever `mine` is: arriving means that all is complete.
            let quieted = self.quiet_slow(call, None, true);
            mine.and(quieted)
        };
        self.together(call, digest, mine, words)
    }
}

impl Team<'_> {
    /// Waits until all members are here; their earlier stores are visible, their operations on lanes
    /// need not be complete.
    ///
    /// ```
    /// use oxshmem::{Result, testing::spmd};
    ///
    /// fn main() -> Result<()> {
    ///     spmd(4, |world| {
    ///         let (row, column) = world.team().split_2d(2)?; // PEs 0 1, and below them 2 3
    ///         row.sync()?; // with one other
    ///         column.sync()?; // with another
    ///         row.destroy()?;
    ///         column.destroy()
    ///     })?;
    ///     Ok(())
    /// }
    /// ```
    #[doc(alias("shmem_team_sync", "shmem_sync", "nvshmem_team_sync"))]
    #[track_caller]
    pub fn sync(&self) -> Result<()> {
        placed(|| {
            const CALL: &str = "team sync";
            self.turn(CALL, const { CallSignature::of(CALL) }, &|| {
                "team sync()".into()
            })
            .arrive(Ok(()))
        })
    }

    /// Completes this PE's operations ([`quiet`](crate::Context::quiet)), then waits until all members are here.
    ///
    /// ```
    /// use oxshmem::{Result, testing::spmd};
    ///
    /// fn main() -> Result<()> {
    ///     spmd(4, |world| {
    ///         let count = world.alloc_zeroed::<u64>(1)?;
    ///         if let Some(first) = world.team().split_strided(0, 1, 2)? {
    ///             world.inc(count, 3)?;
    ///             first.barrier()?; // PEs 0 and 1 have counted on PE 3
    ///             assert_eq!(world.g(count, 3)?, 2);
    ///             first.destroy()?;
    ///         }
    ///         world.barrier_all()
    ///     })?;
    ///     Ok(())
    /// }
    /// ```
    #[doc(alias("nvshmem_barrier", "shmem_barrier", "MPI_Barrier"))]
    #[track_caller]
    pub fn barrier(&self) -> Result<()> {
        placed(|| {
            const CALL: &str = "team barrier";
            let quieted = self.world.quiet();
            self.turn(CALL, const { CallSignature::of(CALL) }, &|| {
                "team barrier()".into()
            })
            .arrive(quieted)?;
            self.world.see_gpu_data()
        })
    }

    /// Takes the place of a collective call in which this PE cannot do its part for a reason that its caller alone
    /// knows, such as an address in another language. The call fails on every member as one in which they do not agree
    /// (M36), and `why` is what the others are told; of a [`broadcast`](Self::broadcast) some hear by their next call.
    ///
    /// # Errors
    ///
    /// Always.
    #[track_caller]
    pub fn refuse(&self, call: &'static str, why: String) -> Result<()> {
        placed(|| {
            let refused = Err(Error::Argument { call, what: why });
            self.turn(call, const { CallSignature::of("refuse") }, &|| call.into())
                .arrive(refused)
        })
    }

    #[inline]
    fn turn<'t>(
        &'t self,
        name: &'static str,
        digest: CallSignature,
        words: &'t dyn Fn() -> String,
    ) -> CollectiveCall<'t> {
        let call = CallInfo {
            name,
            digest,
            words,
        };
        let traced = self.world.traced(name);
        self.core().turn(self.world, call, traced)
    }

    /// The way of a call by what each member gives.
    fn way<T: Pod>(&self, kind: CollectiveKind, src: Sym<T>) -> CollectiveAlgorithm {
        let choices = self.world.shared.config.collectives;
        select(choices, kind, self.core(), (src.bytes(), src.is_on_gpu()))
    }

    /// Copies a part of what each member gives, which is `src` or what is there of it in scratch memory, into a part of
    /// `dst`: a whole call. `part` gives the two by the member's place.
    fn take_of_each<T: Pod>(
        &self,
        turn: &mut CollectiveCall<'_>,
        way: CollectiveAlgorithm,
        (dst, src): (Sym<T>, Sym<T>),
        valid: Result<()>,
        part: impl Fn(usize, Sym<u8>) -> Result<(Range<usize>, Sym<u8>)>,
    ) -> Result<()> {
        let (world, core, call) = (self.world, self.core(), turn.name());
        let into = (dst.cast::<u8>()?, core.near());
        let piece = |member: usize, given: Sym<u8>| {
            let (into, from) = part(member, given)?;
            let pe = core.members.pe(member);
            Ok(TransferPiece { into, from, pe })
        };
        if way == CollectiveAlgorithm::Direct && self.reads_as_they_come(dst, src) {
            let given = src.cast()?;
            return turn.arrive_reading(valid, &mut |member| {
                world.copy_pieces(call, into, std::iter::once(piece(member, given)))
            });
        }
        let given = self.give(turn, way, src, valid)?;
        let pieces = self.around().map(|member| piece(member, given));
        let copied = world.copy_pieces(call, into, pieces);
        Self::end(turn, way, copied)
    }

    /// Whether members can read what each gives as soon as that one is here.
    fn reads_as_they_come<T: Pod>(&self, dst: Sym<T>, src: Sym<T>) -> bool {
        self.core().meets_at_once() && self.on_host(dst, src)
    }

    fn on_host<T: Pod>(&self, dst: Sym<T>, src: Sym<T>) -> bool {
        self.world.is_on_host(dst) && self.world.is_on_host(src)
    }

    /// Arrives; then every member's `src`, whose length is the same on all, is where this says: in their
    /// scratch memory, or where it was. After that a call [ends](Self::end).
    fn give<T: Pod>(
        &self,
        turn: &mut CollectiveCall<'_>,
        way: CollectiveAlgorithm,
        src: Sym<T>,
        valid: Result<()>,
    ) -> Result<Sym<u8>> {
        let world = self.world;
        let given = match way {
            CollectiveAlgorithm::Eager => turn.scratch()?.range(..src.bytes())?,
            CollectiveAlgorithm::Direct => src.cast()?,
        };
        let copied = match way {
            CollectiveAlgorithm::Eager => valid.and_then(|()| {
                let (name, me) = (turn.name(), world.my_pe());
                world.copy_between(name, given, src.cast()?, me)
            }),
            CollectiveAlgorithm::Direct => valid,
        };
        turn.arrive(copied)?;
        Ok(given)
    }

    /// Ends a call: where members read each other's objects, when all have.
    fn end(
        turn: &mut CollectiveCall<'_>,
        way: CollectiveAlgorithm,
        read: Result<()>,
    ) -> Result<()> {
        match way {
            CollectiveAlgorithm::Eager => read,
            CollectiveAlgorithm::Direct => turn.arrive(read),
        }
    }

    /// All members, from this one on, so that not all read one at the same time.
    fn around(&self) -> impl Iterator<Item = usize> {
        let (members, me) = (self.n_pes(), self.my_pe());
        (0..members).map(move |step| (me + step) % members)
    }

    /// Two objects are live and of one length, and the same or apart.
    #[inline]
    fn check_pair<T: Pod>(&self, call: &'static str, dst: Sym<T>, src: Sym<T>) -> Result<()> {
        self.world.check_live(call, dst)?;
        self.world.check_live(call, src)?;
        self.world.check_pair(call, dst, src)
    }

    /// Two objects are live, and do not overlap.
    fn check_apart<T: Pod>(&self, call: &'static str, dst: Sym<T>, src: Sym<T>) -> Result<()> {
        self.world.check_live(call, dst)?;
        self.world.check_live(call, src)?;
        check_apart(call, dst, src)
    }

    /// That one object has `each` elements for every member.
    pub(crate) fn check_blocks<T: Pod>(
        &self,
        call: &'static str,
        of: Sym<T>,
        each: usize,
    ) -> Result<()> {
        if each.checked_mul(self.n_pes()) == Some(of.len()) {
            return Ok(());
        }
        Err(Error::Argument {
            call,
            what: format!(
                "an object of {} elements cannot be {each} for each of {} PEs",
                of.len(),
                self.n_pes()
            ),
        })
    }
}

/// That two objects do not overlap.
pub(crate) fn check_apart<T: Pod>(call: &'static str, dst: Sym<T>, src: Sym<T>) -> Result<()> {
    let (d, s) = (dst.offset(), src.offset());
    let apart = d + dst.bytes() as u64 <= s || s + src.bytes() as u64 <= d;
    match apart || dst.is_empty() || src.is_empty() || dst.tag() != src.tag() {
        true => Ok(()),
        false => Err(Error::Argument {
            call,
            what: "destination and source overlap; use two objects".into(),
        }),
    }
}

/// A call with its objects, of which both the place and the kind of memory are the same on all members.
fn digest_of<T: Pod, const N: usize>(digest: CallSignature, objects: [Sym<T>; N]) -> CallSignature {
    objects.into_iter().fold(digest, |digest, sym| {
        let allocation = u64::from(sym.is_on_gpu()) << 32 | u64::from(sym.generation());
        digest
            .and(sym.offset())
            .and(sym.bytes() as u64)
            .and(allocation)
    })
}

fn place<T: Pod>(sym: Sym<T>) -> String {
    format!(
        "{} bytes at {}{} (allocation {})",
        sym.bytes(),
        sym.offset(),
        on_what(sym),
        sym.generation()
    )
}

fn on_what<T: Pod>(sym: Sym<T>) -> &'static str {
    match sym.is_on_gpu() {
        true => " in GPU memory",
        false => "",
    }
}

/// The elements of `len` that are member `of`'s share of the work, in whole cache lines where that goes.
fn share<T>(len: usize, place: usize, members: usize) -> Range<usize> {
    share_of(size_of::<T>(), len, place, members)
}

/// [`share`] of elements of so many bytes.
fn share_of(size: usize, len: usize, place: usize, members: usize) -> Range<usize> {
    let line = (64 / size.max(1)).max(1);
    let lines = len.div_ceil(line) as u128;
    let cut = |place: usize| {
        let at = (lines * place as u128 / members.max(1) as u128) as usize;
        (at * line).min(len)
    };
    cut(place)..cut(place + 1)
}

#[cfg(test)]
mod tests {
    use super::share;

    #[test]
    fn shares_are_all_elements_once_and_in_whole_lines() {
        for len in [0, 1, 7, 8, 9, 100, 1 << 20] {
            for members in [1, 2, 3, 7, 64] {
                let mut end = 0;
                for place in 0..members {
                    let share = share::<u64>(len, place, members);
                    assert_eq!(share.start, end);
                    assert!(share.start.is_multiple_of(8) || share.start == len);
                    end = share.end;
                }
                assert_eq!(end, len);
            }
        }
    }
}
