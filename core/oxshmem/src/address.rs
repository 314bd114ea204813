//! Symmetric objects that are named by their address, for bindings to other languages (M4, M6).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytemuck::Pod;

use crate::alloc::{OWN, STATIC};
use crate::live_block_cache::Live;
use crate::peer::{Peer, PeerWords};
use crate::sym::NIC;
use crate::world::NicAtomics;
use crate::{Context, Error, Result, Sym, World};

/// Where this PE's symmetric host memory lies, for as long as its world lives.
///
/// Made by [`World::addresses`]. It answers for most addresses by arithmetic alone; for the others, and to have
/// an object's age and end known, there is [`Context::object_at`].
#[derive(Clone, Debug)]
pub struct Addresses {
    tag: u32,
    base: usize,
    /// Bytes; 0 where only a look at the blocks tells what an object is.
    len: usize,
    /// Where the program has the heap's beginning, too, if it does; its bytes as above.
    program: usize,
    program_len: usize,
    nics: Nics,
}

/// The smallest page of any system, in bytes.
const PAGE: usize = 4096;

/// Whose atomics of 64 bits NICs perform.
#[derive(Clone, Debug)]
enum Nics {
    None,
    /// Those of blocks that were allocated so, and whether any was.
    Hinted(Arc<AtomicBool>),
    /// Those of all but the program's own memory.
    Heap,
}

impl Addresses {
    /// `len` elements at an address, for anything but atomics, if they lie in symmetric memory and the place is aligned
    /// for them. Whether they lie in a live block is not looked at (as that of a [`Sym`] is not that is kept too long).
    #[inline(always)]
    #[must_use]
    pub fn object<T: Pod>(&self, address: *const T, len: usize) -> Option<Sym<T>> {
        let bytes = len.checked_mul(size_of::<T>())?;
        // One word that is aligned ends where whole pages do at the latest, if it is no longer than a page.
        let is_word = len == 1 && size_of::<T>() == align_of::<T>() && size_of::<T>() <= PAGE;
        let fits = |offset: usize, whole: usize| match is_word {
            true => offset < whole,
            false => offset <= whole && bytes <= whole - offset,
        };
        let mut offset = address.addr().wrapping_sub(self.base);
        if !fits(offset, self.len) {
            offset = address.addr().wrapping_sub(self.program);
            if !fits(offset, self.program_len) {
                return None;
            }
        }
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

    /// The word at an address, for atomics, signals and locks, which must know whether a NIC performs them (M29). Else as
    /// [`object`](Self::object).
    #[inline(always)]
    #[must_use]
    pub fn word<T: Pod>(&self, address: *const T) -> Option<Sym<T>> {
        let word = self.object(address, 1)?;
        match &self.nics {
            Nics::Hinted(any) if any.load(Ordering::Relaxed) => None,
            Nics::Heap if word.offset() >= self.program_len as u64 => Some(word.on_nic()),
            _ => Some(word),
        }
    }
}

impl World {
    /// Where this PE's symmetric host memory lies. From here on every quiet is a full fence, as after
    /// [`ptr`](Context::ptr): a program that knows addresses stores to them.
    #[must_use]
    pub fn addresses(&self) -> Addresses {
        self.shared.untracked_stores.store(true, Ordering::Relaxed);
        let known = |len| match self.shared.config.check {
            true => 0,
            false => len,
        };
        let program = self.shared.program.as_ref();
        Addresses {
            tag: self.tag,
            base: self.own_base().as_ptr().addr(),
            len: known(self.own_len()),
            program: program.map_or(0, |program| program.base),
            program_len: program.map_or(0, |program| known(program.len)),
            nics: match self.inner.nic_atomics {
                NicAtomics::Never => Nics::None,
                NicAtomics::IfHinted => Nics::Hinted(Arc::clone(&self.inner.hinted)),
                NicAtomics::Always => Nics::Heap,
            },
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

    /// The same for atomics: where each PE's memory is mapped, null once the PE is lost. None where not all atomics are
    /// this CPU's instructions, or a quiet may be more than its full fence.
    ///
    /// Safe code can do nothing with an entry but give its address on:
    ///
    /// ```compile_fail
    /// # use std::sync::atomic::Ordering::Relaxed;
    /// oxshmem::testing::spmd(1, |world| {
    ///     let words = world.word_table().unwrap();
    ///     words[0].store(std::ptr::null_mut(), Relaxed); // not the program's to write: does not compile
    ///     Ok(())
    /// });
    /// ```
    #[must_use]
    pub fn word_table(&self) -> Option<&[PeerWords]> {
        let all = !self.uses_lanes() && self.peers.all_words_are_mapped();
        all.then(|| self.peers.words())
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

    /// [`object_at`](Self::object_at) of a block that calls have lately found: for none of the others, nor for no elements,
    /// which are the same object wherever they are.
    #[inline(always)]
    #[must_use]
    pub fn known_at<T: Pod>(&self, address: *const T, len: usize) -> Option<Sym<T>> {
        let base = self.own_base().as_ptr().addr();
        let offset = address.addr().wrapping_sub(base) as u64;
        let bytes = len.checked_mul(size_of::<T>()).filter(|bytes| *bytes > 0)? as u64;
        let changes = self.shared.heap_changes.load(Ordering::Relaxed);
        let is = |live: &Live| live.has(offset, bytes) && live.generation & NIC == 0;
        let live = self.shared.live_blocks.find(changes, is)?;
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

#[cfg(test)]
mod tests {
    use std::thread;

    use oxshmem_bootstrap::InProcess;
    use oxshmem_example_tiny_transport::Tiny;

    use super::*;
    use crate::Hints;
    use crate::config::Atomics;
    use crate::testing::spmd;

    /// Words of a block that was allocated so, and of one that was not.
    fn looks(world: &World, atomics: Atomics, by_nics: [bool; 2]) -> Result<()> {
        let addresses = world.addresses();
        let address = |block| world.address_of(block).unwrap_or(std::ptr::null_mut());
        let is_nic = |block| addresses.word(address(block)).map(|word| word.is_nic());
        let plain = world.alloc::<u64>(4)?;
        let [plain_is, hinted_is] = by_nics;
        assert_eq!(is_nic(plain), Some(plain_is), "{atomics:?}");
        let hinted = world.alloc_with_hints::<u64>(4, Hints::ATOMICS_REMOTE)?;
        assert_eq!(hinted.is_nic(), hinted_is, "{atomics:?}");
        for (block, is) in [(plain, plain_is), (hinted, hinted_is)] {
            assert!(addresses.object(address(block), 4).is_some());
            // Where blocks differ, a look at them tells.
            let known = (plain_is == hinted_is).then_some(is);
            assert_eq!(is_nic(block), known, "{atomics:?}");
            assert_eq!(world.object_at("test", address(block), 1)?.is_nic(), is);
        }
        // A block that grows, in place or elsewhere, has its hints still.
        let hinted = world.realloc(hinted, 4096)?;
        let object = world.object_at("test", address(hinted), 1)?;
        assert_eq!((hinted.is_nic(), object.is_nic()), (hinted_is, hinted_is));
        // Of PEs on two hosts.
        assert!(world.word_table().is_none());
        world.free(hinted)?;
        world.free(plain)
    }

    #[test]
    fn m29_all_atomics_are_instructions_where_all_memory_is_mapped_and_no_lane_is_used() {
        spmd(2, |world| {
            let words = world.word_table().map(<[_]>::len);
            assert_eq!(words, Some(2));
            Ok(())
        })
        .unwrap();
    }

    #[test]
    fn m29_a_word_that_is_found_by_arithmetic_has_the_atomics_of_its_block() {
        for (atomics, by_nics) in [
            (Atomics::Cpu, [false, false]),
            (Atomics::Auto, [false, true]),
            (Atomics::Nic, [true, true]),
        ] {
            let tiny = Arc::new(Tiny::nic());
            let run = |bootstrap, host: &str| {
                let builder = World::builder().transports(vec![Arc::clone(&tiny) as Arc<_>]);
                let builder = builder.atomics(atomics).heap_limit(1 << 20).host_id(host);
                let world = builder.bootstrap(bootstrap).join()?;
                looks(&world, atomics, by_nics)?;
                world.finalize()
            };
            thread::scope(|threads| {
                let pes = InProcess::group(3)
                    .into_iter()
                    .zip(["one", "one", "another"]);
                let run = &run;
                let pes = pes.map(|(pe, host)| threads.spawn(move || run(pe, host)));
                let pes: Vec<_> = pes.collect();
                pes.into_iter().for_each(|pe| pe.join().unwrap().unwrap());
            });
        }
    }
}
