//! Symmetric objects that are named by their address, for bindings to other languages (M4, M6).

use std::sync::atomic::Ordering;

use bytemuck::Pod;

use crate::alloc::{OWN, STATIC};
use crate::lately::Live;
use crate::peers::Peer;
use crate::sym::NIC;
use crate::world::NicAtomics;
use crate::{Context, Error, Result, Sym, World};

/// Where this PE's symmetric host memory lies, for as long as its world lives.
///
/// Made by [`World::addresses`]. It answers for most addresses by arithmetic alone; for the others, and to have
/// an object's age and end known, there is [`Context::object_at`].
#[derive(Clone, Copy, Debug)]
pub struct Addresses {
    tag: u32,
    base: usize,
    /// Bytes; 0 where only a look at the blocks tells what an object is.
    len: usize,
    /// Where the program has the heap's beginning, too, if it does; its bytes as above.
    program: usize,
    program_len: usize,
}

impl Addresses {
    /// `len` elements at an address, if they lie in symmetric memory and the place is aligned for them. Whether they
    /// lie in a live block is not looked at (as that of a [`Sym`] is not that is kept too long).
    #[inline(always)]
    #[must_use]
    pub fn object<T: Pod>(&self, address: *const T, len: usize) -> Option<Sym<T>> {
        let bytes = len.checked_mul(size_of::<T>())?;
        let within = |base: usize, whole: usize| {
            let offset = address.addr().wrapping_sub(base);
            (offset <= whole && bytes <= whole - offset).then_some(offset)
        };
        let offset = within(self.base, self.len);
        let offset = offset.or_else(|| within(self.program, self.program_len))?;
        let aligned = offset.is_multiple_of(align_of::<T>());
        aligned.then(|| Sym::new(self.tag, OWN, offset as u64, len))
    }

    /// Where the heap begins, and so many bytes of it, whole pages, [`object`](Self::object) answers for.
    #[must_use]
    pub fn heap(&self) -> (usize, usize) {
        (self.base, self.len)
    }

    /// The same of where the program has the heap's beginning, too.
    #[must_use]
    pub fn program(&self) -> (usize, usize) {
        (self.program, self.program_len)
    }
}

impl World {
    /// Where this PE's symmetric host memory lies. From here on every quiet is a full fence, as after
    /// [`ptr`](Context::ptr): a program that knows addresses stores to them.
    #[must_use]
    pub fn addresses(&self) -> Addresses {
        self.shared.sticky.store(true, Ordering::Relaxed);
        let by_block = self.shared.config.check || self.inner.nic_atomics != NicAtomics::Never;
        let known = |len| if by_block { 0 } else { len };
        let program = self.shared.program.as_ref();
        Addresses {
            tag: self.tag,
            base: self.own_base().as_ptr().addr(),
            len: known(self.own_len()),
            program: program.map_or(0, |program| program.base),
            program_len: program.map_or(0, |program| known(program.len)),
        }
    }

    /// Each PE's symmetric host memory as this process loads and stores it, for code that a binding compiles into programs.
    /// The table stays where it is while the world lives. Such code does with whole words, relaxed, what
    /// [`p`](Context::p) and [`g`](Context::g) do where they make no call: after [`addresses`](Self::addresses) nothing
    /// notes a store.
    #[must_use]
    pub fn peer_table(&self) -> &[Peer] {
        self.peers.table()
    }

    /// The block that begins at an address, as [`alloc`](World::alloc) gave it.
    ///
    /// # Errors
    ///
    /// Where no live block begins there (M35).
    pub fn block_at(&self, call: &'static str, address: *const u8) -> Result<Sym<u8>> {
        let (block, before) = self.rest_of_block(call, address)?;
        match before {
            0 if block.generation() != STATIC => Ok(block),
            _ => Err(Error::NotABlock { call }),
        }
    }
}

impl Context<'_> {
    /// The address of this PE's own copy of an object in host memory; none for any other.
    #[must_use]
    pub fn address_of<T: Pod>(&self, sym: Sym<T>) -> Option<*mut T> {
        self.is_on_host(sym).then(|| {
            self.own_base()
                .as_ptr()
                .wrapping_add(sym.offset() as usize)
                .cast()
        })
    }

    /// `len` elements at an address. None at all may be anywhere.
    ///
    /// # Errors
    ///
    /// Where the elements do not lie in one live block (M35), or the place is misaligned for them (M38).
    pub fn object_at<T: Pod>(
        &self,
        call: &'static str,
        address: *const T,
        len: usize,
    ) -> Result<Sym<T>> {
        let rest = self.rest_at(call, address)?;
        match len {
            0 => rest.range(..0),
            _ if len <= rest.len() => rest.range(..len),
            _ => Err(Error::OutOfRange {
                call,
                start: 0,
                end: len,
                len: rest.len(),
            }),
        }
    }

    /// [`object_at`](Self::object_at) of a block that calls have lately found: for none of the others.
    #[inline(always)]
    #[must_use]
    pub fn known_at<T: Pod>(&self, address: *const T, len: usize) -> Option<Sym<T>> {
        let base = self.own_base().as_ptr().addr();
        let offset = address.addr().wrapping_sub(base) as u64;
        let bytes = len.checked_mul(size_of::<T>())? as u64;
        let changes = self.shared.heap_changes.load(Ordering::Relaxed);
        let is = |live: &Live| live.has(offset, bytes) && live.generation & NIC == 0;
        let live = self.shared.lately.find(changes, is)?;
        let aligned = offset.is_multiple_of(align_of::<T>() as u64);
        aligned.then(|| Sym::new(self.tag, live.generation, offset, len))
    }

    /// The elements from an address to the end of its block: the same on every PE. Null is an object without
    /// elements.
    ///
    /// # Errors
    ///
    /// As [`object_at`](Self::object_at).
    pub fn rest_at<T: Pod>(&self, call: &'static str, address: *const T) -> Result<Sym<T>> {
        if address.is_null() {
            return Ok(Sym::new(self.tag, OWN, 0, 0));
        }
        let (rest, _) = self.rest_of_block(call, address.cast())?;
        let whole = rest.len() / size_of::<T>().max(1) * size_of::<T>();
        rest.range(..whole)?.cast()
    }

    /// The bytes from an address to the end of its block, and how many come before.
    fn rest_of_block(&self, call: &'static str, address: *const u8) -> Result<(Sym<u8>, u64)> {
        if let Some(program) = &self.shared.program {
            let before = address.addr().wrapping_sub(program.base);
            if before < program.len {
                let rest = Sym::new(self.tag, STATIC, before as u64, program.len - before);
                return Ok((rest, before as u64));
            }
        }
        let offset = address.addr().wrapping_sub(self.own_base().as_ptr().addr()) as u64;
        let Some(live) = self.block(offset, |live| live.has(offset, 0)) else {
            return Err(Error::Argument {
                call,
                what: format!(
                    "{address:p} is no address of symmetric memory on this PE; give one from \
                     a symmetric allocation that was not freed"
                ),
            });
        };
        let before = offset - live.start;
        let rest = Sym::new(
            self.tag,
            live.generation & !NIC,
            offset,
            (live.bytes - before) as usize,
        );
        Ok(match live.generation & NIC {
            0 => (rest, before),
            _ => (rest.on_nic(), before),
        })
    }
}
