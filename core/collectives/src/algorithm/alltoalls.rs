//! All to all of strided elements.

use bytemuck::Pod;
use oxshmem_engine::memory::mapped::HostMemory;

use crate::call::CollectiveCall;
use crate::elements::Elements;
use crate::error::{Error, Result};
use crate::select::{CollectiveAlgorithm, CollectiveKind, Payload};
use crate::transfer::{Prefetched, Transfer};

/// An object of blocks of strided elements, one for each member.
#[derive(Clone, Copy, Debug)]
pub struct Strided<T> {
    /// The object.
    pub object: Elements<T>,
    /// Elements from one to the next, at least 1.
    pub stride: usize,
}

impl<T: Pod> Strided<T> {
    /// Checks that the object has `count` elements for each member.
    pub fn check(self, call: &'static str, count: usize, members: usize) -> Result<()> {
        let Strided { object, stride } = self;
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

    /// Reads elements of a PE's object from the `first` on.
    fn read(self, transfer: Transfer<'_>, into: &mut [T], first: usize, pe: usize) -> Result<()> {
        let Strided { object, stride } = self;
        // The elements within the span of a chunk are read together with all that lies between them.
        let span = (transfer.chunk([object]) / stride).max(1);
        let mut between = vec![T::zeroed(); (span.min(into.len()).max(1) - 1) * stride + 1];
        for (i, piece) in into.chunks_mut(span).enumerate() {
            let start = (first + i * span) * stride;
            let spanned = (piece.len() - 1) * stride + 1;
            let Some(between) = between.get_mut(..spanned) else {
                break;
            };
            transfer.get_bytes(between, object.range(start..start + spanned)?, pe)?;
            for (value, read) in piece.iter_mut().zip(between.iter().step_by(stride)) {
                *value = *read;
            }
        }
        Ok(())
    }

    /// Writes elements of this PE's object from the `first` on.
    fn write(self, transfer: Transfer<'_>, from: &[T], first: usize) -> Result<()> {
        let (Strided { object, stride }, me) = (self, transfer.worker.engine.me);
        if stride == 1 {
            let into = object.range(first..first + from.len())?;
            return transfer.put_bytes(into, from, me);
        }
        let mut each = from.chunks(1).enumerate();
        each.try_for_each(|(i, value)| {
            transfer.put_bytes(object.at((first + i) * stride)?, value, me)
        })
    }
}

impl CollectiveCall<'_> {
    /// Copies block `me` of member `i`'s source, `count` elements, to block `i` of this PE's destination.
    pub fn alltoalls<T: Pod>(
        &mut self,
        dst: Strided<T>,
        src: Strided<T>,
        count: usize,
        valid: Result<()>,
    ) -> Result<()> {
        // No bytes are copied of elements without a size, however many there are.
        let count = if size_of::<T>() == 0 { 0 } else { count };
        let members = self.team.members.len();
        let bytes = count.saturating_mul(members).saturating_mul(size_of::<T>());
        let on_gpu = src.object.is_on_gpu();
        let payload = Payload { bytes, on_gpu };
        match self.algorithm_of(CollectiveKind::Alltoalls, payload) {
            CollectiveAlgorithm::Eager => self.alltoalls_packed(dst, src, count, valid),
            CollectiveAlgorithm::Direct => self.alltoalls_direct(dst, src, count, valid),
        }
    }

    /// Packs the source in scratch memory.
    fn alltoalls_packed<T: Pod>(
        &mut self,
        dst: Strided<T>,
        src: Strided<T>,
        count: usize,
        valid: Result<()>,
    ) -> Result<()> {
        let (transfer, worker) = (self.transfer(), self.worker);
        let (members, me) = (self.team.members.len(), self.team.members.me());
        let bytes = count.saturating_mul(members).saturating_mul(size_of::<T>());
        let packed = self.scratch()?.range(..bytes)?;
        let mut blocks = vec![T::zeroed(); count.saturating_mul(members)];
        let written = valid.and_then(|()| {
            src.read(transfer, &mut blocks, 0, worker.engine.me)?;
            worker.own(packed).copy_from(bytemuck::cast_slice(&blocks));
            Ok(())
        });
        self.arrive(written)?;
        let mine = packed.range(bytes / members * me..bytes / members * (me + 1))?;
        let mut prefetched = Prefetched::default();
        for (rank, block) in blocks.chunks_mut(count.max(1)).enumerate() {
            let rest = (rank..members).map(|rank| self.pe(rank));
            let (block, first) = (bytemuck::cast_slice_mut(block), (self.pe(rank), rest));
            transfer.get_next(block, mine, first, &mut prefetched)?;
        }
        dst.write(transfer, &blocks, 0)?;
        transfer.make_visible(dst.object)
    }

    fn alltoalls_direct<T: Pod>(
        &mut self,
        dst: Strided<T>,
        src: Strided<T>,
        count: usize,
        valid: Result<()>,
    ) -> Result<()> {
        let (team, transfer) = (self.team, self.transfer());
        let me = team.members.me();
        let chunk = transfer.chunk([dst.object, src.object]);
        let mut buffer = vec![T::zeroed(); chunk.min(count)];
        let mut read = |rank: usize| {
            (0..count).step_by(chunk).try_for_each(|at| {
                let len = chunk.min(count - at);
                let Some(piece) = buffer.get_mut(..len) else {
                    return Ok(());
                };
                src.read(transfer, piece, me * count + at, team.members.pe(rank))?;
                dst.write(transfer, piece, rank * count + at)
            })
        };
        if self.reads_on_arrival(dst.object, src.object) {
            return self.arrive_reading(valid, &mut read);
        }
        self.arrive(valid)?;
        let copied = self.ring_order().try_for_each(read);
        let copied = copied.and_then(|()| transfer.make_visible(dst.object));
        self.arrive(copied)
    }
}
