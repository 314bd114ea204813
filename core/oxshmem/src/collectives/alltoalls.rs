//! All to all, of elements that lie apart.

use bytemuck::Pod;

use super::select::{CollectiveAlgorithm, CollectiveKind, select};
use super::transfer::Prefetched;
use super::{digest_of, place};
use crate::mapped::HostMemory;
use crate::place::placed;
use crate::sync_area::CallSignature;
use crate::team::Team;
use crate::{Error, Result, Sym};

impl Team<'_> {
    /// As [`alltoall`](Self::alltoall) of blocks of `count` elements that lie apart: element `i` of the
    /// block for or of member `m` is element `(m * count + i) * stride` of the object, with `dst_stride` in
    /// `dst` and `src_stride` in `src`. Strides are in elements and at least 1. What lies between them in
    /// `dst` stays as it is.
    ///
    /// ```
    /// use oxshmem::{Result, testing::spmd};
    ///
    /// fn main() -> Result<()> {
    ///     spmd(2, |world| {
    ///         let me = world.my_pe() as u64;
    ///         let (from, to) = (world.alloc::<u64>(4)?, world.alloc::<u64>(2)?);
    ///         world.write(from, &[10 * me, 0, 10 * me + 1, 0])?; // every second one
    ///         world.team().alltoalls(to, from, 1, 2, 1)?;
    ///         let mut seen = [0; 2];
    ///         world.read(&mut seen, to)?;
    ///         assert_eq!(seen, [me, 10 + me]);
    ///         Ok(())
    ///     })?;
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`broadcast`](Self::broadcast); objects that are shorter than that.
    #[doc(alias("shmem_alltoallsmem", "shmem_alltoalls"))]
    #[track_caller]
    pub fn alltoalls<T: Pod>(
        &self,
        dst: Sym<T>,
        src: Sym<T>,
        dst_stride: usize,
        src_stride: usize,
        count: usize,
    ) -> Result<()> {
        placed(|| self.alltoalls_inner(dst, src, dst_stride, src_stride, count))
    }

    fn alltoalls_inner<T: Pod>(
        &self,
        dst: Sym<T>,
        src: Sym<T>,
        dst_stride: usize,
        src_stride: usize,
        count: usize,
    ) -> Result<()> {
        const CALL: &str = "alltoalls";
        let (world, core) = (self.world, self.core());
        let words = || {
            let (dst, src) = (place(dst), place(src));
            format!(
                "alltoalls({dst}, {src}, strides {dst_stride} and {src_stride}, {count} elements)"
            )
        };
        let digest = digest_of(const { CallSignature::of(CALL) }, [dst, src]);
        let digest = digest.and(dst_stride as u64).and(src_stride as u64);
        let digest = digest.and(size_of::<T>() as u64);
        let (members, me) = (self.n_pes(), self.my_pe());
        let valid = self
            .check_apart(CALL, dst, src)
            .and_then(|()| spans(CALL, dst, dst_stride, count, members))
            .and_then(|()| spans(CALL, src, src_stride, count, members));
        let mut turn = self.turn(CALL, digest.and(count as u64), &words);
        // Of elements without bytes nothing is copied, however many there are.
        let count = if size_of::<T>() == 0 { 0 } else { count };
        let bytes = count.saturating_mul(members).saturating_mul(size_of::<T>());
        let way = select(
            world.shared.config.collectives,
            CollectiveKind::Alltoalls,
            core,
            (bytes, src.is_on_gpu()),
        );
        if way == CollectiveAlgorithm::Eager {
            let given = turn.scratch()?.range(..bytes)?;
            let mut blocks = vec![T::zeroed(); count.saturating_mul(members)];
            let packed = valid.and_then(|()| {
                self.pick(CALL, &mut blocks, src, (0, src_stride), world.my_pe())?;
                world.own(given).copy_from(bytemuck::cast_slice(&blocks));
                Ok(())
            });
            turn.arrive(packed)?;
            let mine = given.range(bytes / members * me..bytes / members * (me + 1))?;
            let mut fetched = Prefetched::new();
            for (from, block) in blocks.chunks_mut(count.max(1)).enumerate() {
                let rest = (from..members).map(|from| turn.pe(from));
                let (block, first) = (bytemuck::cast_slice_mut(block), (turn.pe(from), rest));
                world.pull_first(CALL, block, mine, first, &mut fetched)?;
            }
            self.lay(CALL, &blocks, dst, (0, dst_stride))?;
            return world.make_visible(CALL, dst);
        }
        let most = world.at_a_time([dst, src]);
        let mut buffer = vec![T::zeroed(); most.min(count)];
        let mut read = |from: usize| {
            (0..count).step_by(most).try_for_each(|at| {
                let some = most.min(count - at);
                let Some(piece) = buffer.get_mut(..some) else {
                    return Ok(());
                };
                let first = me * count + at;
                self.pick(CALL, piece, src, (first, src_stride), core.members.pe(from))?;
                self.lay(CALL, piece, dst, (from * count + at, dst_stride))
            })
        };
        if self.reads_as_they_come(dst, src) {
            return turn.arrive_reading(valid, &mut read);
        }
        turn.arrive(valid)?;
        let copied = self.around().try_for_each(read);
        let copied = copied.and_then(|()| world.make_visible(CALL, dst));
        turn.arrive(copied)
    }

    /// Reads elements of a PE's object, from the `first` of those that lie `stride` apart.
    fn pick<T: Pod>(
        &self,
        call: &'static str,
        into: &mut [T],
        from: Sym<T>,
        (first, stride): (usize, usize),
        pe: usize,
    ) -> Result<()> {
        // As many as a chunk spans are read with what lies between them.
        let span = (self.world.at_a_time([from]) / stride).max(1);
        let mut between = vec![T::zeroed(); (span.min(into.len()).max(1) - 1) * stride + 1];
        for (i, piece) in into.chunks_mut(span).enumerate() {
            let start = (first + i * span) * stride;
            let spanned = (piece.len() - 1) * stride + 1;
            let Some(between) = between.get_mut(..spanned) else {
                break;
            };
            self.world
                .get_bytes(call, between, from.range(start..start + spanned)?, pe)?;
            for (value, read) in piece.iter_mut().zip(between.iter().step_by(stride)) {
                *value = *read;
            }
        }
        Ok(())
    }

    /// Writes elements of this PE's object, from the `first` of those that lie `stride` apart.
    fn lay<T: Pod>(
        &self,
        call: &'static str,
        from: &[T],
        dst: Sym<T>,
        (first, stride): (usize, usize),
    ) -> Result<()> {
        let (world, me) = (self.world, self.world.my_pe());
        if stride == 1 {
            let into = dst.range(first..first + from.len())?;
            return world.put_bytes(call, into, from, me);
        }
        let mut each = from.chunks(1).enumerate();
        each.try_for_each(|(i, value)| {
            world.put_bytes(call, dst.at((first + i) * stride)?, value, me)
        })
    }
}

/// That an object has `count` elements for each member, so far apart.
fn spans<T: Pod>(
    call: &'static str,
    object: Sym<T>,
    stride: usize,
    count: usize,
    members: usize,
) -> Result<()> {
    if stride == 0 {
        return Err(Error::Argument {
            call,
            what: "strides are 1 element at least".into(),
        });
    }
    let elements = count.checked_mul(members);
    let spanned = elements.and_then(|elements| match elements {
        0 => Some(0),
        _ => (elements - 1).checked_mul(stride)?.checked_add(1),
    });
    match spanned.filter(|spanned| *spanned <= object.len()) {
        Some(_) => Ok(()),
        None => Err(Error::OutOfRange {
            call,
            start: 0,
            end: spanned.unwrap_or(usize::MAX),
            len: object.len(),
        }),
    }
}
