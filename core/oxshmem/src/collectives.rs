//! Barrier, sync, broadcast and sum over all PEs. No call needs the user to synchronise between it
//! and the next.

use std::sync::atomic::{Ordering, fence};

use bytemuck::Pod;

use crate::mapped::Bytes;
use crate::order::Class;
use crate::rma::on_gpu;
use crate::sync::Digest;
use crate::team::{Call, Team};
use crate::wire::Path;
use crate::{Error, Result, Sym, World};

/// A type that [`World::sum_reduce`] adds up. Integers wrap, as in the other implementations.
pub trait Summable: Pod {
    /// The sum of two values.
    #[must_use]
    fn sum(self, other: Self) -> Self;
}

macro_rules! summable {
    ($($int:ty)*; $($float:ty)*) => {
        $(impl Summable for $int {
            #[inline]
            fn sum(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
        })*
        $(impl Summable for $float {
            #[inline]
            fn sum(self, other: Self) -> Self {
                self + other
            }
        })*
    };
}
summable!(i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize; f32 f64);

impl Team<'_> {
    /// Waits until all members are here; their earlier stores are visible, their operations on lanes
    /// need not be complete.
    #[doc(alias = "shmem_team_sync")]
    pub fn sync(&self) -> Result<()> {
        let call = Call {
            name: "team sync",
            digest: const { Digest::of("team sync") },
            words: &|| "team sync()".into(),
        };
        self.core().turn(self.world, call).arrive(Ok(()))
    }

    /// Completes this PE's operations ([`quiet`](World::quiet)), then waits until all members are here.
    #[doc(alias = "nvshmem_barrier")]
    pub fn barrier(&self) -> Result<()> {
        let call = Call {
            name: "team barrier",
            digest: const { Digest::of("team barrier") },
            words: &|| "team barrier()".into(),
        };
        let quieted = self.world.quiet();
        self.core().turn(self.world, call).arrive(quieted)?;
        self.world.see_gpu_data()
    }
}

/// Elements that one PE adds up at a time.
const CHUNK: usize = 4096;

impl World {
    /// Completes this PE's operations ([`quiet`](crate::Context::quiet)), then waits until all PEs are here
    /// (OpenSHMEM `shmem_barrier_all`).
    ///
    /// Fails on every PE if the PEs call different collectives (M36), and if a PE is lost.
    #[doc(alias = "shmem_barrier_all")]
    #[inline]
    pub fn barrier_all(&self) -> Result<()> {
        const DIGEST: Digest = Digest::of("barrier_all");
        self.barrier("barrier_all", DIGEST, Ok(()), &|| "barrier_all()".into())?;
        self.see_gpu_data()
    }

    /// Waits until all PEs are here; their earlier stores are visible, their operations on lanes
    /// need not be complete (OpenSHMEM `shmem_sync_all`).
    #[doc(alias = "shmem_sync_all")]
    #[inline]
    pub fn sync_all(&self) -> Result<()> {
        const DIGEST: Digest = Digest::of("sync_all");
        self.together("sync_all", DIGEST, Ok(()), &|| "sync_all()".into())
    }

    /// Quiet and arrival, for calls that contain a barrier. `mine` is how this PE's part went.
    #[inline]
    pub(crate) fn barrier(
        &self,
        call: &'static str,
        digest: Digest,
        mine: Result<()>,
        words: &dyn Fn() -> String,
    ) -> Result<()> {
        if self.n_pes() == 1 {
            // There is no arrival, which would fence.
            fence(Ordering::SeqCst);
            self.peers.take_notes();
        }
        let mine = if self.is_idle() {
            mine
        } else {
            // First quiet, whatever `mine` is: arriving means that all is complete.
            let quieted = self.quiet_slow(call, None);
            mine.and(quieted)
        };
        self.together(call, digest, mine, words)
    }

    /// Copies `src` of PE `root` to `dst` of every PE, the root included. Both have the same
    /// length; they are the same object or do not overlap.
    ///
    /// On return `dst` is updated here and `src` may be reused; other PEs may still be under way.
    #[doc(alias = "shmem_broadcastmem")]
    pub fn broadcast<T: Pod>(&self, dst: Sym<T>, src: Sym<T>, root: usize) -> Result<()> {
        const CALL: &str = "broadcast";
        let words = || format!("broadcast({}, {}, root {root})", place(dst), place(src));
        let digest = Digest::of(CALL).and(root as u64);
        let digest = digest_of(digest_of(digest, dst), src);
        let valid = self
            .check_collective(CALL, dst, src)
            .and_then(|()| match root {
                root if root >= self.n_pes() => Err(Error::NoSuchPe {
                    call: CALL,
                    pe: root,
                    size: self.n_pes(),
                }),
                _ => Ok(()),
            });
        // Everyone's destination is ready and the root's source written.
        self.together(CALL, digest, valid, &words)?;
        let copied = self.copy_between(CALL, dst, src, root);
        // Everyone has read: the root's source may be reused.
        self.together(CALL, digest, copied, &words)
    }

    /// Adds up `src` of all PEs, element by element, into `dst` of every PE. Both have the same
    /// length; they are the same object or do not overlap.
    ///
    /// The sum is taken in the order of the PEs, so every PE gets the same bits, floats included.
    #[doc(alias = "shmem_sum_reduce")]
    pub fn sum_reduce<T: Summable>(&self, dst: Sym<T>, src: Sym<T>) -> Result<()> {
        const CALL: &str = "sum_reduce";
        let words = || format!("sum_reduce({}, {})", place(dst), place(src));
        let digest = digest_of(digest_of(Digest::of(CALL), dst), src);
        self.together(CALL, digest, self.check_collective(CALL, dst, src), &words)?;
        // Each PE adds up its share of the elements, in private memory: `dst` may be `src`.
        let share = |pe: usize| dst.len() * pe / self.n_pes()..dst.len() * (pe + 1) / self.n_pes();
        let (sums, added) = match self.sum_share(src, share(self.my_pe())) {
            Ok(sums) => (sums, Ok(())),
            Err(error) => (Vec::new(), Err(error)),
        };
        // Everyone has read every source.
        self.together(CALL, digest, added, &words)?;
        let mine = dst.range(share(self.my_pe())).map(|part| self.own(part));
        let written = mine.map(|own| own.copy_from(bytemuck::cast_slice(&sums)));
        self.together(CALL, digest, written, &words)?;
        let gathered = (0..self.n_pes())
            .filter(|&pe| pe != self.my_pe())
            .try_for_each(|pe| {
                let part = dst.range(share(pe))?;
                self.copy_between(CALL, part, part, pe)
            });
        // Everyone has read this PE's share.
        self.together(CALL, digest, gathered, &words)
    }

    fn sum_share<T: Summable>(&self, src: Sym<T>, share: std::ops::Range<usize>) -> Result<Vec<T>> {
        const CALL: &str = "sum_reduce";
        let src = src.range(share)?;
        let mut sums = vec![T::zeroed(); src.len()];
        let mut theirs = vec![T::zeroed(); src.len().min(CHUNK)];
        for (i, part) in sums.chunks_mut(CHUNK).enumerate() {
            let from = src.range(i * CHUNK..i * CHUNK + part.len())?;
            self.get_as(CALL, part, from, 0)?;
            for pe in 1..self.n_pes() {
                let Some(theirs) = theirs.get_mut(..part.len()) else {
                    break;
                };
                self.get_as(CALL, theirs, from, pe)?;
                for (sum, value) in part.iter_mut().zip(theirs) {
                    *sum = sum.sum(*value);
                }
            }
        }
        Ok(sums)
    }

    /// Copies an object from a PE's memory to this PE's own.
    fn copy_between<T: Pod>(
        &self,
        call: &'static str,
        dst: Sym<T>,
        src: Sym<T>,
        from: usize,
    ) -> Result<()> {
        let own = self.own(dst);
        if from == self.my_pe() && dst.offset() == src.offset() {
            return Ok(());
        }
        match self.path(call, Class::Put, src, from)? {
            Path::Near(place) => {
                own.copy_from_place(place, src.bytes());
                Ok(())
            }
            Path::Lane(via, far) => {
                let into = self.near_address(dst);
                // SAFETY: it names symmetric memory of this PE, which the CPU can write.
                unsafe { self.wire_get(call, via, far, into, src.bytes()) }
            }
            Path::Staged(_) => Err(on_gpu(call, src)),
        }
    }

    fn check_collective<T: Pod>(&self, call: &'static str, dst: Sym<T>, src: Sym<T>) -> Result<()> {
        for sym in [dst, src] {
            self.check_live(call, sym)?;
            self.own_in_host_memory(call, sym)?;
        }
        self.check_pair(call, dst, src)
    }
}

fn digest_of<T: Pod>(digest: Digest, sym: Sym<T>) -> Digest {
    digest
        .and(sym.offset())
        .and(sym.bytes() as u64)
        .and(sym.generation().into())
}

fn place<T: Pod>(sym: Sym<T>) -> String {
    format!(
        "{} bytes at {} (allocation {})",
        sym.bytes(),
        sym.offset(),
        sym.generation()
    )
}
