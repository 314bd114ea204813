//! Symmetric memory: blocks, and peers' copies of them that this process maps.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use oxshmem::{Error, Hints, Sym, bindings};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::{Done, Failure};
use crate::job::{DEFAULT, Job, State};
use crate::own_stream::{no_gpu, zero};

/// A block of symmetric memory.
#[pyclass(frozen, module = "oxshmem._oxshmem")]
pub(crate) struct Block {
    /// Keeps the memory mapped.
    _state: Arc<State>,
    sym: Sym<u8>,
    is_freed: AtomicBool,
    /// The address of this PE's copy: the host's, or the GPU's.
    #[pyo3(get)]
    address: usize,
    #[pyo3(get)]
    on_gpu: bool,
}

/// The dictionary by which numpy makes an array of bytes at an address.
fn array_interface(py: Python<'_>, address: usize, bytes: usize) -> PyResult<Bound<'_, PyDict>> {
    let interface = PyDict::new(py);
    interface.set_item("shape", (bytes,))?;
    interface.set_item("typestr", "|u1")?;
    interface.set_item("data", (address, false))?;
    interface.set_item("version", 3)?;
    Ok(interface)
}

#[pymethods]
impl Block {
    /// Its bytes.
    #[getter]
    fn nbytes(&self) -> usize {
        self.sym.len()
    }

    /// Its offset in the heap.
    #[getter]
    fn offset(&self) -> u64 {
        self.sym.offset()
    }

    #[getter]
    fn is_freed(&self) -> bool {
        self.is_freed.load(Ordering::Relaxed)
    }

    /// This PE's copy, for numpy.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        if self.on_gpu {
            let gpu = Error::GpuMemory {
                call: "__array_interface__",
                offset: self.sym.offset(),
            };
            return Err(Failure::from(gpu).raise(py));
        }
        array_interface(py, self.address, self.sym.len())
    }
}

impl Block {
    /// A part of it.
    pub(crate) fn part(&self, call: &'static str, offset: usize, bytes: usize) -> Done<Sym<u8>> {
        if self.is_freed.load(Ordering::Relaxed) {
            let offset = self.sym.offset();
            return Err(Error::Stale { call, offset }.into());
        }
        let end = offset.saturating_add(bytes);
        let len = self.sym.len();
        if end > len {
            return Err(Error::OutOfRange {
                call,
                start: offset,
                end,
                len,
            }
            .into());
        }
        Ok(self.sym.range(offset..end)?)
    }

    /// A place's offset in the heap.
    pub(crate) fn offset_of(&self, offset: usize) -> u64 {
        self.sym.offset() + offset as u64
    }

    /// An address in this PE's copy of host memory.
    pub(crate) fn own_address(
        &self,
        call: &'static str,
        offset: usize,
        bytes: usize,
    ) -> Done<usize> {
        let part = self.part(call, offset, bytes)?;
        match self.on_gpu {
            true => Err(Error::GpuMemory {
                call,
                offset: part.offset(),
            }
            .into()),
            false => Ok(self.address + offset),
        }
    }
}

/// A peer's copy of a block that this process maps.
#[pyclass(frozen, module = "oxshmem._oxshmem")]
pub(crate) struct Mapped {
    /// Keeps the memory mapped.
    _state: Arc<State>,
    #[pyo3(get)]
    address: usize,
    #[pyo3(get)]
    nbytes: usize,
    #[pyo3(get)]
    on_gpu: bool,
}

#[pymethods]
impl Mapped {
    /// The copy, for numpy.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        array_interface(py, self.address, if self.on_gpu { 0 } else { self.nbytes })
    }
}

/// Allocates a block. Collective.
#[pyfunction]
pub(crate) fn alloc(
    py: Python<'_>,
    job: &Job,
    bytes: usize,
    on_gpu: bool,
    is_zeroed: bool,
    hints: (bool, bool),
) -> PyResult<Block> {
    let (atomics, signals) = hints;
    const CALL: &str = "alloc";
    // numpy's and CUDA's own allocators align as much.
    const ALIGN: usize = 64;
    const GPU_ALIGN: usize = 256;
    let (sym, address) = job.run(py, |live| {
        live.default_context().quiet()?;
        live.with_world(|world| {
            if on_gpu {
                // The PEs agree on whether there is a GPU heap.
                if world.gpu_context().is_none() {
                    return Err(no_gpu(CALL, world));
                }
                let block = bindings::alloc_on_gpu(world, CALL, bytes, GPU_ALIGN)?;
                let address = bindings::gpu_address_of(world, block, world.my_pe());
                let address = address.unwrap_or_default();
                if is_zeroed {
                    zero(CALL, live, world, address, bytes)?;
                    world.barrier_all()?;
                }
                return Ok((block, address as usize));
            }
            let mut hints = Hints::NONE;
            if atomics {
                hints = hints | Hints::ATOMICS_REMOTE;
            }
            if signals {
                hints = hints | Hints::SIGNAL_REMOTE;
            }
            let block = match hints == Hints::NONE {
                true => world.alloc_aligned::<u8>(bytes, ALIGN)?,
                false => world.alloc_with_hints::<u8>(bytes, hints)?,
            };
            let address = bindings::address_of(world, block);
            let address = address.map_or(0, |address| address.expose_provenance());
            if !is_zeroed {
                return Ok((block, address));
            }
            if bytes > 0 && address != 0 {
                let at = std::ptr::with_exposed_provenance_mut::<u8>(address);
                // SAFETY: the block is new and this PE's own, and no PE uses it before the barrier.
                unsafe { at.write_bytes(0, bytes) };
            }
            world.barrier_all()?;
            Ok((block, address))
        })
    })?;
    Ok(Block {
        _state: Arc::clone(&job.state),
        sym,
        is_freed: AtomicBool::new(false),
        address,
        on_gpu,
    })
}

/// Frees a block. Collective.
#[pyfunction]
pub(crate) fn free(py: Python<'_>, job: &Job, block: &Block) -> PyResult<()> {
    job.run(py, |live| {
        // A freed block is an error here as on every other PE, which frees it twice, too.
        let sym = block.part("free", 0, block.sym.len())?;
        live.default_context().quiet()?;
        live.with_world(|world| Ok(world.free(sym)?))?;
        block.is_freed.store(true, Ordering::Relaxed);
        Ok(())
    })
}

/// A PE's copy of a part of a block, if this process or its GPU maps it.
#[pyfunction]
pub(crate) fn ptr(
    py: Python<'_>,
    job: &Job,
    block: &Block,
    offset: usize,
    bytes: usize,
    pe: usize,
) -> PyResult<Option<Mapped>> {
    let address = job.run(py, |live| {
        let sym = block.part("ptr", offset, bytes)?;
        let context = live.context(DEFAULT)?;
        if pe >= context.lock().n_pes() {
            let size = context.lock().n_pes();
            return Err(Error::NoSuchPe {
                call: "ptr",
                pe,
                size,
            }
            .into());
        }
        if block.on_gpu {
            let address = bindings::gpu_address_of(live.world(), sym, pe);
            return Ok(address.map(|address| address as usize));
        }
        let context = context.lock();
        let found = context.ptr(sym, pe);
        Ok(found.map(|found| found.as_ptr().expose_provenance()))
    })?;
    Ok(address.map(|address| Mapped {
        _state: Arc::clone(&job.state),
        address,
        nbytes: bytes,
        on_gpu: block.on_gpu,
    }))
}
