//! Copies between symmetric objects, on the host or on a GPU, of this PE and another.

use bytemuck::Pod;
use oxshmem_transport::MemoryKind;

use crate::check::Access;
use crate::order::Class;
use crate::wire::Path;
use crate::{Context, Result, Sym};

/// Bytes of a copy's pieces where a private buffer is between its two sides.
const BY_HOST: usize = 1 << 20;

impl Context<'_> {
    /// Copies the symmetric object `src` of this PE to `dst` of PE `pe`: a put whose source is in
    /// the symmetric heap, for which a NIC needs no bounce buffer. Both have the same
    /// length; they are the same object or do not overlap. Each may lie in host or in GPU memory: what no
    /// transport joins goes through a private buffer.
    pub fn put_from<T: Pod>(&self, dst: Sym<T>, src: Sym<T>, pe: usize) -> Result<()> {
        const CALL: &str = "put_from";
        self.check_pair(CALL, dst, src)?;
        self.check(CALL, src, src.len(), self.my_pe())?;
        let pe = self.check(CALL, dst, dst.len(), pe)?;
        self.guard(CALL, Access::Put, dst, dst.len(), pe, true)?;
        let on_host = self.is_on_host(src);
        let from = self.near_address(src);
        match self.path(CALL, Class::Put, dst, pe)? {
            Path::Near(place) if on_host => {
                place.copy_from_place(self.own(src), src.bytes());
                self.peers.note_slow();
                Ok(())
            }
            // SAFETY: it names symmetric memory of this PE, which the transport knows or the CPU can
            // read.
            Path::Lane(via, far) if on_host || via.carries_gpu() => unsafe {
                self.wire_put(CALL, via, far, from, src.bytes())
            },
            // SAFETY: it names host memory of this PE's heap.
            Path::Staged(far) if on_host => unsafe {
                self.staged_put(CALL, far, from, src.bytes())
            },
            _ => self.copy_by_host(CALL, (dst, pe), (src, self.shared.me)),
        }
    }

    /// Copies the symmetric object `src` of PE `pe` to `dst` of this PE. Both have the same length, and each
    /// may lie in host or in GPU memory.
    pub fn get_into<T: Pod>(&self, dst: Sym<T>, src: Sym<T>, pe: usize) -> Result<()> {
        const CALL: &str = "get_into";
        self.check_pair(CALL, dst, src)?;
        self.check(CALL, dst, dst.len(), self.my_pe())?;
        let pe = self.check(CALL, src, src.len(), pe)?;
        self.guard(CALL, Access::Get, src, src.len(), pe, false)?;
        let on_host = self.is_on_host(dst);
        let into = self.near_address(dst);
        match self.path(CALL, Class::Put, src, pe)? {
            Path::Near(place) if on_host => {
                self.own(dst).copy_from_place(place, src.bytes());
                self.peers.note_slow();
                self.order_read_slow(place);
                Ok(())
            }
            // SAFETY: it names symmetric memory of this PE, which the transport knows or the CPU can
            // write.
            Path::Lane(via, far) if on_host || via.carries_gpu() => unsafe {
                self.wire_get(CALL, via, far, into, src.bytes())
            },
            // SAFETY: it names host memory of this PE's heap.
            Path::Staged(far) if on_host => unsafe {
                self.staged_get(CALL, far, into, src.bytes())
            },
            _ => self.copy_by_host(CALL, (dst, self.shared.me), (src, pe)),
        }
    }

    /// Copies between two objects of one length, one of them this PE's own, that no one operation joins:
    /// piece by piece through a private buffer.
    #[cold]
    fn copy_by_host<T: Pod>(
        &self,
        call: &'static str,
        (dst, to): (Sym<T>, usize),
        (src, from): (Sym<T>, usize),
    ) -> Result<()> {
        let (dst, src) = (dst.cast::<u8>()?, src.cast::<u8>()?);
        let mut buffer = vec![0; src.len().min(BY_HOST)];
        let mut done = 0;
        while done < src.len() {
            let end = src.len().min(done + BY_HOST);
            let Some(part) = buffer.get_mut(..end - done) else {
                break;
            };
            self.get_by_path(call, part, src.range(done..end)?, from)?;
            self.put_by_path(call, dst.range(done..end)?, part, to)?;
            done = end;
        }
        // What was got is there (M16), though a lane brought it to this PE's own GPU.
        if to == self.shared.me && self.kind_of(dst) == Some(MemoryKind::Cuda) {
            self.quiet_slow(call, Some(&[to]))?;
        }
        Ok(())
    }
}
