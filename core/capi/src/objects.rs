//! Symmetric objects by the addresses that C programs give.

use std::ffi::c_void;

use bytemuck::Pod;
use oxshmem::{Sym, World, bindings};

use crate::failure::{CResult, Failure, or_abort_job};
use crate::library::Library;

impl Library {
    /// An object that may be one word, if it is easily found.
    #[inline(always)]
    pub(crate) fn word_of<T: Pod>(&self, address: *const T, len: usize) -> Option<Sym<T>> {
        let most = size_of::<u64>() / size_of::<T>().max(1);
        if len <= most {
            self.addresses.object(address, len)
        } else {
            None
        }
    }

    /// A word for atomics, or the job's end.
    #[inline(always)]
    pub(crate) fn word_or_abort<T: Pod>(
        &self,
        call: &'static str,
        name: &'static str,
        address: *const T,
    ) -> Sym<T> {
        match self.addresses.word(address) {
            Some(word) => word,
            None => self.block_or_abort(call, name, address, 1),
        }
    }

    #[cold]
    #[inline(never)]
    fn block_or_abort<T: Pod>(
        &self,
        call: &'static str,
        name: &'static str,
        address: *const T,
        len: usize,
    ) -> Sym<T> {
        or_abort_job(call, self.object_in_block(name, address, len))
    }

    /// Refuses an address without `len` elements of symmetric memory that the program's CPU loads itself.
    #[inline(always)]
    pub(crate) fn object_on_host<T: Pod>(
        &self,
        name: &'static str,
        address: *const T,
        len: usize,
    ) -> CResult {
        match self.addresses.object(address, len) {
            Some(_) => Ok(()),
            None => self.found_on_host(name, address, len),
        }
    }

    #[cold]
    #[inline(never)]
    fn found_on_host<T: Pod>(&self, name: &'static str, address: *const T, len: usize) -> CResult {
        let object = self.object_in_block(name, address, len)?;
        if object.is_empty() || bindings::address_of(&self.world, object).is_some() {
            return Ok(());
        }
        Err(Failure::argument(
            name,
            "this lies in GPU memory, which the CPU cannot load; wait for it in a kernel, or get it",
        ))
    }

    /// Refuses null for `len` elements of the program's own memory, and, where checks are on, an address in this PE's GPU heap. Puts
    /// and gets call it on their slow path alone: else it would cost an instruction.
    pub(crate) fn local_operand<T>(
        &self,
        name: &'static str,
        address: *const T,
        len: usize,
    ) -> CResult {
        not_null(name, address, len)?;
        let is_checked = len > 0 && bindings::is_checked(&self.world);
        if is_checked && bindings::is_in_gpu_heap(&self.world, address.addr()) {
            return Err(Failure::argument(
                name,
                "this lies in GPU memory, which the CPU cannot load; give memory of the host, or make the call in a kernel",
            ));
        }
        Ok(())
    }

    /// A word for atomics.
    #[inline(always)]
    pub(crate) fn word<T: Pod>(&self, name: &'static str, address: *const T) -> CResult<Sym<T>> {
        match self.addresses.word(address) {
            Some(word) => Ok(word),
            None => self.object_in_block(name, address, 1),
        }
    }

    /// The bytes of an object that is not easily found, for puts and gets: its address need be aligned only where checks are
    /// on (M38).
    pub(crate) fn bytes<T: Pod>(
        &self,
        name: &'static str,
        address: *const T,
        len: usize,
    ) -> CResult<Sym<u8>> {
        if self.takes_bytes_at(address) {
            let bytes = len.saturating_mul(size_of::<T>());
            self.object_in_block(name, address.cast::<u8>(), bytes)
        } else {
            self.object_in_block(name, address, len).map(Sym::to_bytes)
        }
    }

    /// Whether puts and gets treat an address as one of bytes, since no elements can lie there.
    pub(crate) fn takes_bytes_at<T>(&self, address: *const T) -> bool {
        !address.is_aligned() && !bindings::is_checked(&self.world)
    }

    /// An object, found by the live block in which it lies.
    #[cold]
    #[inline(never)]
    pub(crate) fn object_in_block<T: Pod>(
        &self,
        name: &'static str,
        address: *const T,
        len: usize,
    ) -> CResult<Sym<T>> {
        if len > 0 && address.is_null() {
            return Err(Failure::null(name));
        }
        let address = if len == 0 { std::ptr::null() } else { address };
        let object = bindings::object_at(&self.world, name, address, len);
        object.map_err(|error| Failure::of(name, error))
    }
}

/// The address for kernels of a PE's copy of an object in GPU memory.
#[cfg(feature = "cuda")]
pub(crate) fn gpu_address(world: &World, object: Sym<u8>, pe: usize) -> Option<*mut c_void> {
    let address = bindings::gpu_address_of(world, object, pe)?;
    Some(std::ptr::with_exposed_provenance_mut(address as usize))
}

/// None: there is no GPU memory.
#[cfg(not(feature = "cuda"))]
pub(crate) fn gpu_address(_: &World, _: Sym<u8>, _: usize) -> Option<*mut c_void> {
    None
}

/// Refuses null for `len` elements of the program's own memory.
pub(crate) fn not_null<T>(name: &'static str, address: *const T, len: usize) -> CResult {
    if address.is_null() && len > 0 {
        return Err(Failure::argument(
            name,
            "this is null; give the address of as many elements as the call says",
        ));
    }
    Ok(())
}
