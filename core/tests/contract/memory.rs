//! A setting's memory: where the objects of the cases lie. The calls here stand before the world's of
//! the same name, so that one text of a case serves memory of each kind.

use std::cell::Cell;

use oxshmem::{AtomicValue, Cmp, Hints, MemoryKind, MemoryModel, Pod, Result, Sym, Waitable};

use crate::order::poll;
use crate::setting::{Path, Pe};

impl Pe<'_> {
    /// Whether the cases' objects lie in GPU memory, which the CPU cannot load or store: there is no
    /// zeroed or aligned allocation of it, no `realloc`, and a PE waits for a word there by fetching it.
    pub fn is_on_gpu(&self) -> bool {
        self.setting.path == Path::Gpu
    }

    /// The kind of memory that the cases' objects lie in.
    pub fn kind(&self) -> MemoryKind {
        match self.is_on_gpu() {
            true => MemoryKind::Cuda,
            false => MemoryKind::Host,
        }
    }

    /// Of which kinds of memory a collective call's destination and source are.
    pub fn kinds(&self) -> &'static [[MemoryKind; 2]] {
        const HOST: MemoryKind = MemoryKind::Host;
        const CUDA: MemoryKind = MemoryKind::Cuda;
        match self.is_on_gpu() {
            true => &[[CUDA, CUDA], [HOST, CUDA], [CUDA, HOST]],
            false => &[[HOST, HOST]],
        }
    }

    /// Objects of these kinds.
    pub fn alloc_each<T: Pod>(&self, kinds: [MemoryKind; 2], len: usize) -> Result<[Sym<T>; 2]> {
        let [dst, src] = kinds;
        Ok([self.alloc_on(dst, len)?, self.alloc_on(src, len)?])
    }

    /// Blocks are aligned to so much by themselves, or can be.
    pub fn most_alignment(&self) -> usize {
        if self.is_on_gpu() { 64 } else { 1 << 22 }
    }

    pub fn alloc<T: Pod>(&self, len: usize) -> Result<Sym<T>> {
        match self.is_on_gpu() {
            true => self.world.alloc_on(MemoryKind::Cuda, len),
            false => self.world.alloc(len),
        }
    }

    pub fn alloc_zeroed<T: Pod>(&self, len: usize) -> Result<Sym<T>> {
        if !self.is_on_gpu() {
            return self.world.alloc_zeroed(len);
        }
        let object = self.alloc(len)?;
        self.write(object, &vec![T::zeroed(); len])?;
        if !object.is_empty() {
            self.barrier_all()?;
        }
        Ok(object)
    }

    pub fn alloc_aligned<T: Pod>(&self, len: usize, align: usize) -> Result<Sym<T>> {
        match self.is_on_gpu() {
            true => self.alloc(len),
            false => self.world.alloc_aligned(len, align),
        }
    }

    pub fn alloc_with_hints<T: Pod>(&self, len: usize, hints: Hints) -> Result<Sym<T>> {
        match self.is_on_gpu() {
            true => self.alloc(len),
            false => self.world.alloc_with_hints(len, hints),
        }
    }

    pub fn heap_limit(&self) -> usize {
        match self.is_on_gpu() {
            true => self.world.gpu_heap_limit(),
            false => self.world.heap_limit(),
        }
    }

    pub fn wait_until<T: Waitable + AtomicValue>(
        &self,
        word: Sym<T>,
        cmp: Cmp,
        value: T,
    ) -> Result<()> {
        if !self.is_on_gpu() {
            return self.world.wait_until(word, cmp, value);
        }
        self.fetch_until(word, cmp, value).map(drop)
    }

    pub fn signal_fetch(&self, signal: Sym<u64>) -> Result<u64> {
        match self.is_on_gpu() {
            true => self.fetch(signal, self.me()),
            false => self.world.signal_fetch(signal),
        }
    }

    pub fn signal_wait_until(&self, signal: Sym<u64>, cmp: Cmp, value: u64) -> Result<u64> {
        if !self.is_on_gpu() {
            return self.world.signal_wait_until(signal, cmp, value);
        }
        self.fetch_until(signal, cmp, value)
    }

    /// Fetches an own word until it compares as wanted, and acquires what it announces.
    fn fetch_until<T: AtomicValue + PartialOrd>(
        &self,
        word: Sym<T>,
        cmp: Cmp,
        value: T,
    ) -> Result<T> {
        let seen = Cell::new(T::zeroed());
        poll(|| {
            seen.set(self.fetch(word, self.me())?);
            Ok(cmp.holds(seen.get(), value))
        })?;
        // A wait acquires (M23), a fetch does not in the relaxed model (M21).
        if self.model() == MemoryModel::Relaxed {
            self.fence()?;
        }
        Ok(seen.get())
    }
}
