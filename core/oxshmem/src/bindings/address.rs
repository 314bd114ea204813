//! Symmetric objects named by their address (M4, M6).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytemuck::Pod;
use oxshmem_engine::engine::Engine;
use oxshmem_engine::peer::entry::{Peer, PeerWords};
use oxshmem_transport::MemoryKind;

use crate::blocks::{OWN, STATIC};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::live_block_cache::Live;
use crate::options::NicAtomics;
use crate::sym::Sym;
use crate::world::World;
use oxshmem_engine::memory::target::NIC;

/// The addresses of this PE's symmetric host memory, for as long as its world lives. Made by [`addresses`].
///
/// It finds the objects of most addresses by arithmetic alone. [`object_at`] finds those of all, and checks that the
/// object lives and where it ends.
#[derive(Clone, Debug)]
pub struct Addresses {
    tag: u32,
    base: usize,
    /// Bytes; 0 where every object has to be looked up among the blocks.
    len: usize,
    /// The program's own mapping of the heap's beginning, if it has one; its bytes as above.
    program: usize,
    program_len: usize,
    nic_words: NicWords,
}

/// The smallest page of any system, in bytes.
const PAGE: usize = 4096;

/// The words whose atomics of 64 bits NICs perform.
#[derive(Clone, Debug)]
enum NicWords {
    None,
    /// Those of blocks allocated for remote atomics, and whether there was one.
    Hinted(Arc<AtomicBool>),
    /// Those of all but the program's own memory.
    Heap,
}

impl Addresses {
    /// `len` elements at an address, for anything but atomics, if they lie in symmetric memory and the address is aligned
    /// for them. Whether they lie in a live block is not checked, as it is not for a [`Sym`] that is kept too long.
    #[inline(always)]
    #[must_use]
    pub fn object<T: Pod>(&self, address: *const T, len: usize) -> Option<Sym<T>> {
        let bytes = len.checked_mul(size_of::<T>())?;
        // One word that is aligned ends where whole pages do at the latest, if it is no longer than a page.
        let is_word = len == 1 && size_of::<T>() == align_of::<T>() && size_of::<T>() <= PAGE;
        let fits = |offset: usize, whole: usize| {
            if is_word {
                offset < whole
            } else {
                offset <= whole && bytes <= whole - offset
            }
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

    /// The heap's address, and its bytes, whole pages, that [`object`](Self::object) answers for.
    #[must_use]
    pub fn heap(&self) -> (usize, usize) {
        (self.base, self.len)
    }

    /// The same of the program's own mapping of the heap's beginning.
    #[must_use]
    pub fn program(&self) -> (usize, usize) {
        (self.program, self.program_len)
    }

    /// The word at an address, for atomics, signals and locks, which must know whether a NIC performs them (M29). Otherwise
    /// as [`object`](Self::object).
    #[inline(always)]
    #[must_use]
    pub fn word<T: Pod>(&self, address: *const T) -> Option<Sym<T>> {
        let word = self.object(address, 1)?;
        match &self.nic_words {
            NicWords::Hinted(any) if any.load(Ordering::Relaxed) => None,
            NicWords::Heap if word.offset() >= self.program_len as u64 => Some(word.on_nic()),
            _ => Some(word),
        }
    }
}

/// The addresses of this PE's symmetric host memory. From here on every quiet is a full fence, as after
/// [`ptr`](Context::ptr): a program that knows addresses stores to them.
#[must_use]
pub fn addresses(world: &World) -> Addresses {
    world
        .worker
        .engine
        .untracked_stores
        .store(true, Ordering::Relaxed);
    // In checked mode calls look up every object's block.
    let known = |len| if world.pe.config.check { 0 } else { len };
    let program = world.pe.program.as_ref();
    Addresses {
        tag: world.worker.tag,
        base: world.pe.engine.own_base().as_ptr().addr(),
        len: known(world.pe.engine.own_len()),
        program: program.map_or(0, |program| program.base),
        program_len: program.map_or(0, |program| known(program.len)),
        nic_words: match world.inner.nic_atomics {
            NicAtomics::Never => NicWords::None,
            NicAtomics::IfHinted => NicWords::Hinted(Arc::clone(&world.inner.hinted)),
            NicAtomics::Always => NicWords::Heap,
        },
    }
}

/// Whether an address is one of this PE's GPU heap, which the CPU cannot load.
#[must_use]
pub fn is_in_gpu_heap(world: &World, address: usize) -> bool {
    offset_in_gpu_heap(&world.worker.engine, address).is_some()
}

/// An address's offset in this PE's GPU heap, in bytes, if it lies there.
fn offset_in_gpu_heap(engine: &Engine, address: usize) -> Option<usize> {
    let (base, limit) = engine.gpu.as_ref()?;
    let offset = address.wrapping_sub(base.load(Ordering::Relaxed).addr());
    (offset < *limit).then_some(offset)
}

/// Each PE's symmetric host memory as this process loads and stores it, for code that a binding compiles into programs.
///
/// The table stays at its address while the world lives. Such code does with whole words, relaxed, what
/// [`p`](Context::p) and [`g`](Context::g) do where they make no call: after [`addresses`] nothing notes a store.
#[must_use]
pub fn peer_table(world: &World) -> &[Peer] {
    world.worker.peers.table()
}

/// The same for atomics: where each PE's memory is mapped, null once the PE is lost. None where not all atomics are
/// this CPU's instructions, or a quiet may be more than its full fence.
///
/// Safe code can do nothing with an entry but pass its address on:
///
/// ```compile_fail
/// # use std::sync::atomic::Ordering::Relaxed;
/// oxshmem::testing::spmd(1, |world| {
///     let words = oxshmem::bindings::word_table(world).unwrap();
///     words[0].store(std::ptr::null_mut(), Relaxed); // not the program's to write: does not compile
///     Ok(())
/// });
/// ```
#[must_use]
pub fn word_table(world: &World) -> Option<&[PeerWords]> {
    let all = !world.uses_lanes() && world.worker.peers.all_words_are_mapped();
    all.then(|| world.worker.peers.words())
}

/// The block that begins at an address, as [`alloc`](World::alloc) gave it.
///
/// # Errors
///
/// Where no live block begins there (M35).
pub fn block_at(world: &World, call: &'static str, address: *const u8) -> Result<Sym<u8>> {
    let (block, before) = rest_of_block(world, call, address)?;
    match before {
        0 if block.generation() != STATIC => Ok(block),
        _ => Err(Error::NotABlock { call }),
    }
}

/// The address of this PE's own copy of an object in host memory; none for any other.
#[must_use]
pub fn address_of<T: Pod>(context: &Context<'_>, sym: Sym<T>) -> Option<*mut T> {
    context.is_on_host(sym).then(|| {
        let base = context.pe.engine.own_base().as_ptr();
        base.wrapping_add(sym.offset() as usize).cast()
    })
}

/// `len` elements at an address. Zero elements may be anywhere.
///
/// # Errors
///
/// Where the elements do not lie in one live block (M35), or the address is misaligned for them (M38).
pub fn object_at<T: Pod>(
    context: &Context<'_>,
    call: &'static str,
    address: *const T,
    len: usize,
) -> Result<Sym<T>> {
    let rest = rest_at(context, call, address)?;
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

/// [`object_at`] of a block in the cache of recently used blocks; nothing for any other, nor for zero elements, which
/// are the same object wherever they are.
#[inline(always)]
#[must_use]
pub fn cached_object<T: Pod>(
    context: &Context<'_>,
    address: *const T,
    len: usize,
) -> Option<Sym<T>> {
    let base = context.pe.engine.own_base().as_ptr().addr();
    let offset = address.addr().wrapping_sub(base) as u64;
    let bytes = len.checked_mul(size_of::<T>()).filter(|bytes| *bytes > 0)? as u64;
    let changes = context.pe.heap_changes.load(Ordering::Relaxed);
    let is = |live: &Live| live.has(offset, bytes) && live.generation & NIC == 0;
    let live = context.pe.live_blocks.find(changes, is)?;
    let aligned = offset.is_multiple_of(align_of::<T>() as u64);
    aligned.then(|| Sym::new(context.worker.tag, live.generation, offset, len))
}

/// The elements from an address to the end of its block: the same on every PE. Null is an object without
/// elements.
///
/// # Errors
///
/// As [`object_at`].
pub fn rest_at<T: Pod>(
    context: &Context<'_>,
    call: &'static str,
    address: *const T,
) -> Result<Sym<T>> {
    if address.is_null() {
        return Ok(Sym::new(context.worker.tag, OWN, 0, 0));
    }
    let (rest, _) = rest_of_block(context, call, address.cast())?;
    let whole = rest.len() / size_of::<T>().max(1) * size_of::<T>();
    rest.range(..whole)?.cast()
}

/// The bytes from an address to the end of its block, and how many come before.
fn rest_of_block(
    context: &Context<'_>,
    call: &'static str,
    address: *const u8,
) -> Result<(Sym<u8>, u64)> {
    if let Some(program) = &context.pe.program {
        let before = address.addr().wrapping_sub(program.base);
        if before < program.len {
            let rest = Sym::new(
                context.worker.tag,
                STATIC,
                before as u64,
                program.len - before,
            );
            return Ok((rest, before as u64));
        }
    }
    let offset = address
        .addr()
        .wrapping_sub(context.pe.engine.own_base().as_ptr().addr()) as u64;
    let Some(live) = context.block(offset, |live| live.has(offset, 0)) else {
        return rest_of_gpu_block(context, address).ok_or_else(|| Error::Argument {
            call,
            what: format!(
                "{address:p} is no address of symmetric memory on this PE; give one from \
                 a symmetric allocation that was not freed"
            ),
        });
    };
    let before = offset - live.start;
    let rest = Sym::new(
        context.worker.tag,
        live.generation & !NIC,
        offset,
        (live.bytes - before) as usize,
    );
    Ok(match live.generation & NIC {
        0 => (rest, before),
        _ => (rest.on_nic(), before),
    })
}

/// The same in this PE's GPU heap, whose addresses are the GPU's.
fn rest_of_gpu_block(context: &Context<'_>, address: *const u8) -> Option<(Sym<u8>, u64)> {
    let offset = offset_in_gpu_heap(&context.worker.engine, address.addr())? as u64;
    let live = context.heap(MemoryKind::Cuda).blocks.around(offset)?;
    let (tag, before) = (context.gpu_tag(), offset - live.start);
    let rest = Sym::new(tag, live.generation, offset, (live.bytes - before) as usize);
    Some((rest, before))
}

#[cfg(test)]
mod tests {
    use std::thread;

    use oxshmem_bootstrap::InProcess;
    use oxshmem_example_tiny_transport::Tiny;

    use super::*;
    use crate::alloc::Hints;
    use crate::config::Atomics;
    use crate::testing::spmd;

    /// Checks words of a block that was allocated for remote atomics, and of one that was not.
    fn looks(world: &World, atomics: Atomics, by_nics: [bool; 2]) -> Result<()> {
        let known = addresses(world);
        let address = |block| address_of(world, block).unwrap_or(std::ptr::null_mut());
        let is_nic = |block| known.word(address(block)).map(|word| word.is_nic());
        let plain = world.alloc::<u64>(4)?;
        let [plain_is, hinted_is] = by_nics;
        assert_eq!(is_nic(plain), Some(plain_is), "{atomics:?}");
        let hinted = world.alloc_with_hints::<u64>(4, Hints::ATOMICS_REMOTE)?;
        assert_eq!(hinted.is_nic(), hinted_is, "{atomics:?}");
        for (block, is) in [(plain, plain_is), (hinted, hinted_is)] {
            assert!(known.object(address(block), 4).is_some());
            // Where blocks differ, an address alone does not say.
            let expected = (plain_is == hinted_is).then_some(is);
            assert_eq!(is_nic(block), expected, "{atomics:?}");
            assert_eq!(object_at(world, "test", address(block), 1)?.is_nic(), is);
        }
        // A block that grows, in place or elsewhere, has its hints still.
        let hinted = world.realloc(hinted, 4096)?;
        let object = object_at(world, "test", address(hinted), 1)?;
        assert_eq!((hinted.is_nic(), object.is_nic()), (hinted_is, hinted_is));
        // The PEs are on two hosts.
        assert!(word_table(world).is_none());
        world.free(hinted)?;
        world.free(plain)
    }

    #[test]
    fn m29_all_atomics_are_instructions_where_all_memory_is_mapped_and_no_lane_is_used() {
        spmd(2, |world| {
            let words = word_table(world).map(<[_]>::len);
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
