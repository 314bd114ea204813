//! Slices of cudarc's as one side of a copy, and of copies that the host makes.
//!
//! Where a transport carries GPU memory to the other side, and takes the slice's, it moves the data itself;
//! else they go through a private buffer, and this PE's own GPU copies.

use std::sync::Arc;

use bytemuck::Pod;
use oxshmem_cuda::cudarc::driver::sys::CUdeviceptr;
use oxshmem_cuda::cudarc::driver::{
    self, CudaSlice, CudaStream, CudaView, CudaViewMut, DevicePtrMut, DeviceSlice,
};
use oxshmem_cuda::{DevicePtr, Stream, interop};

use super::local_operand::LocalOperand;
use super::{CopySource, CopyTarget};
use crate::check::Access;
use crate::gpu::cuda::Engine;
use crate::lane::{AccessPath, Endpoint, LocalBuffer, MrKey, RemoteTarget};
use crate::order::OpKind;
use crate::stats::Kind;
use crate::stream::RUN_OUT;
use crate::stream::gpu_streams::{GpuStreams, Told};
use crate::wait::WaitsOn;
use crate::{Context, Error, Result, Sym, report};

/// A slice or view of cudarc's that one operation has.
pub(crate) enum Slice<'a, T> {
    Read(&'a CudaSlice<T>),
    ReadView(&'a CudaView<'a, T>),
    Written(&'a mut CudaSlice<T>),
    WrittenView(&'a mut CudaViewMut<'a, T>),
}

impl<'a, T> From<&'a CudaSlice<T>> for CopySource<'a, T> {
    fn from(slice: &'a CudaSlice<T>) -> Self {
        CopySource(LocalOperand::Slice(Slice::Read(slice)))
    }
}

impl<'a, T> From<&'a CudaView<'_, T>> for CopySource<'a, T> {
    fn from(view: &'a CudaView<'_, T>) -> Self {
        CopySource(LocalOperand::Slice(Slice::ReadView(view)))
    }
}

impl<'a, T> From<&'a mut CudaSlice<T>> for CopyTarget<'a, T> {
    fn from(slice: &'a mut CudaSlice<T>) -> Self {
        CopyTarget(LocalOperand::Slice(Slice::Written(slice)))
    }
}

impl<'a, T> From<&'a mut CudaViewMut<'a, T>> for CopyTarget<'a, T> {
    fn from(view: &'a mut CudaViewMut<'a, T>) -> Self {
        CopyTarget(LocalOperand::Slice(Slice::WrittenView(view)))
    }
}

/// The address of what is read. Its own stream waits for who wrote it, and who writes it next, once `told`,
/// for what that stream has been given.
fn read<T, S: driver::DevicePtr<T>>(slice: &S, told: bool) -> CUdeviceptr {
    let (at, used) = slice.device_ptr(slice.stream());
    if !told {
        std::mem::forget(used);
    }
    at
}

/// As [`read`], of what is written.
fn written<T, S: DevicePtrMut<T>>(slice: &mut S, told: bool) -> CUdeviceptr {
    let home = Arc::clone(slice.stream());
    let (at, used) = slice.device_ptr_mut(&home);
    if !told {
        std::mem::forget(used);
    }
    at
}

impl<T> Slice<'_, T> {
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Slice::Read(slice) => slice.num_bytes(),
            Slice::ReadView(view) => view.num_bytes(),
            Slice::Written(slice) => slice.num_bytes(),
            Slice::WrittenView(view) => view.num_bytes(),
        }
    }

    /// Its own stream.
    pub(crate) fn home(&self) -> &Arc<CudaStream> {
        match self {
            Slice::Read(slice) => slice.stream(),
            Slice::ReadView(view) => view.stream(),
            Slice::Written(slice) => slice.stream(),
            Slice::WrittenView(view) => view.stream(),
        }
    }

    fn at(&mut self, told: bool) -> CUdeviceptr {
        match self {
            Slice::Read(slice) => read(*slice, told),
            Slice::ReadView(view) => read(*view, told),
            Slice::Written(slice) => written(*slice, told),
            Slice::WrittenView(view) => written(*view, told),
        }
    }

    /// Has its own stream wait for what others of cudarc's did with it; gives its address.
    ///
    /// # Errors
    ///
    /// [`Error::Gpu`] where it cannot wait: what follows on the stream might come before that.
    pub(crate) fn begin(&mut self, call: &'static str) -> Result<DevicePtr> {
        let at = DevicePtr::from_raw(self.at(false));
        // cudarc keeps what it cannot return, until it is asked.
        self.home().context().check_err().map_err(|error| {
            let why =
                format!("cudarc's stream cannot wait for what was done to a slice: {error:?}");
            Error::Gpu { call, why }
        })?;
        Ok(at)
    }

    /// Has cudarc's others wait for what its own stream has been given by now.
    pub(crate) fn end(&mut self) {
        self.at(true);
    }
}

/// Waits until nothing on the GPU uses slices any more that a call has failed with, before the program may
/// free them.
pub(crate) fn let_go(side: &GpuStreams, call: &'static str) {
    let why = match side.runs_out(call, RUN_OUT) {
        Ok(true) => return,
        Ok(false) => format!("the GPU is busy after {RUN_OUT:?}"),
        Err(error) => error.to_string(),
    };
    report::warn(&format!(
        "{call} has failed, and its slice may be in use yet: {why}; keep it until the GPU is idle"
    ));
}

/// A slice that the host copies from or to: nothing on the GPU uses it meanwhile.
struct Settled<'w> {
    call: &'static str,
    side: &'w GpuStreams,
    /// The PE of the other side, as the world numbers it.
    pe: usize,
    at: DevicePtr,
    bytes: usize,
    home: Stream,
}

impl Settled<'_> {
    /// As transports are given it: nothing to the CPU.
    fn pointer(&self) -> *mut u8 {
        std::ptr::with_exposed_provenance_mut(self.at.as_raw() as usize)
    }

    /// What a lane made of it. One that failed may have left work behind that the slice's own stream, by
    /// which cudarc frees it, does not wait for.
    fn carried(&self, result: Result<()>) -> Result<bool> {
        if result.is_err() {
            let_go(self.side, self.call);
        }
        result.map(|()| true)
    }

    /// Has this PE's GPU copy part of it, from `at` on.
    fn copy(
        &self,
        at: usize,
        copy: impl FnOnce(&mut Engine, DevicePtr) -> Result<(), String>,
    ) -> Result<()> {
        let mut engine = self.side.gpu.engine();
        copy(&mut engine, self.at.add(at)).map_err(|why| {
            // What cudarc does with the slice next comes after what was given up.
            if let Err(error) = engine.before(&self.home) {
                report::warn(&format!(
                    "a copy of a slice was given up, and cudarc's stream cannot wait for it: {error}"
                ));
            }
            Error::Gpu {
                call: self.call,
                why,
            }
        })
    }
}

impl Context<'_> {
    /// That a slice is as long as the other side, and on this PE's GPU.
    pub(crate) fn check_slice<T: Pod>(
        &self,
        call: &'static str,
        side: &GpuStreams,
        far: Sym<T>,
        slice: &Slice<'_, T>,
    ) -> Result<()> {
        if slice.bytes() != far.bytes() {
            return Err(Error::Argument {
                call,
                what: format!(
                    "the slice has {} bytes, the object {}; make them equal",
                    slice.bytes(),
                    far.bytes()
                ),
            });
        }
        self.check_home(call, side, slice.home())
    }

    /// That a slice with this stream is on this PE's GPU.
    pub(crate) fn check_home(
        &self,
        call: &'static str,
        side: &GpuStreams,
        home: &CudaStream,
    ) -> Result<()> {
        let context = home.context();
        if context.cu_ctx() != interop::raw_context(&side.gpu.context) {
            return Err(Error::Argument {
                call,
                what: format!(
                    "the slice lies on cudarc's GPU {}, this PE's heap on GPU {} (or their contexts \
                     differ); take World::gpu_context's GPU",
                    context.ordinal(),
                    side.gpu.context.device().ordinal()
                ),
            });
        }
        Ok(())
    }

    /// Checks both sides, and waits until what was queued on the slice is done.
    fn settle_slice<T: Pod>(
        &self,
        call: &'static str,
        (far, pe): (Sym<T>, usize),
        mut slice: Slice<'_, T>,
        (access, lasting): (Access, bool),
    ) -> Result<Settled<'_>> {
        let side = self.gpu_side(call)?;
        self.check_slice(call, side, far, &slice)?;
        let pe = self.check(call, far, far.len(), pe)?;
        self.guard(call, access, far, far.len(), pe, lasting)?;
        let kind = match access {
            Access::Get => Kind::Get,
            _ => Kind::Put,
        };
        self.count(kind, far, far.bytes(), pe);
        let home = interop::stream(slice.home()).told(call)?;
        if home.is_capturing().told(call)? {
            return Err(Error::Argument {
                call,
                what: "the slice's stream is being captured into a graph; use the calls on streams, or \
                       end the capture first"
                    .into(),
            });
        }
        let at = slice.begin(call)?;
        // Streams wait for PEs only where this world's calls have queued that.
        let needs = match side.is_used() {
            true => WaitsOn::AnyPeer,
            false => WaitsOn::Pe(pe),
        };
        self.run_out(call, side, &home, needs)?;
        Ok(Settled {
            call,
            side,
            pe,
            at,
            bytes: slice.bytes(),
            home,
        })
    }

    /// Puts a slice.
    pub(super) fn put_slice<T: Pod>(
        &self,
        call: &'static str,
        dst: Sym<T>,
        slice: Slice<'_, T>,
        pe: usize,
        nonblocking: bool,
    ) -> Result<()> {
        let near = self.settle_slice(call, (dst, pe), slice, (Access::Put, true))?;
        let carried = self.carry_slice(dst, &near, false, |via, far, from, kept| {
            // SAFETY: as many bytes of the program's, lent to this call; or to a scope, and registered as long.
            unsafe {
                match nonblocking && kept {
                    true => self.lane_put_nbi(call, via, far, from),
                    false => self.lane_put(call, via, far, from),
                }
            }
        })?;
        if carried {
            return Ok(());
        }
        let dst = dst.cast::<u8>()?;
        self.by_host(
            near.bytes,
            |at, part| {
                // SAFETY: the part lies within the program's bytes, which are lent to this call.
                near.copy(at, |engine, from| unsafe {
                    engine.read(part.as_mut_ptr(), from, part.len())
                })
            },
            |at, part| self.put_by_path(call, dst.range(at..at + part.len())?, part, near.pe),
        )
    }

    /// Gets into a slice.
    pub(super) fn get_slice<T: Pod>(
        &self,
        call: &'static str,
        slice: Slice<'_, T>,
        src: Sym<T>,
        pe: usize,
        nonblocking: bool,
    ) -> Result<()> {
        let near = self.settle_slice(call, (src, pe), slice, (Access::Get, nonblocking))?;
        let carried = self.carry_slice(src, &near, true, |via, far, into, kept| {
            // SAFETY: as for put_slice; lent for writing.
            unsafe {
                match nonblocking && kept {
                    true => self.lane_get_nbi(call, via, far, into),
                    false => self.lane_get(call, via, far, into),
                }
            }
        })?;
        if carried {
            return Ok(());
        }
        let src = src.cast::<u8>()?;
        self.by_host(
            near.bytes,
            |at, part| self.get_by_path(call, part, src.range(at..at + part.len())?, near.pe),
            |at, part| {
                // SAFETY: the part lies within the program's bytes, which are lent to this call.
                near.copy(at, |engine, to| unsafe {
                    engine.write(to, part.as_ptr(), part.len())
                })
            },
        )
    }

    /// A scope ends, and with it what slices are lent to.
    pub(crate) fn slices_back(&self, completed: &Result<()>) {
        let lent = self.state.wire.slices_lent.take();
        if let (true, Err(_), Some(side)) = (lent, completed, &self.shared.gpu_streams) {
            let_go(side, "scope");
        }
    }

    /// Has the transport that reaches the object take the slice itself, if it does; tells `carry` whether
    /// the program has registered the slice, for longer than this call.
    fn carry_slice<T: Pod>(
        &self,
        far: Sym<T>,
        near: &Settled<'_>,
        written: bool,
        carry: impl FnOnce(&Endpoint, RemoteTarget, LocalBuffer, bool) -> Result<()>,
    ) -> Result<bool> {
        let AccessPath::Lane(via, far) = self.path(near.call, OpKind::Put, far, near.pe)? else {
            return Ok(false);
        };
        if !via.carries_gpu() {
            return Ok(false);
        }
        let (at, len) = (near.pointer(), near.bytes);
        let side = LocalBuffer::at(at, len);
        // The guard that owns the slice is lent with it.
        if let Some((keyed, _)) = self.key_of(via, at, len).filter(|(keyed, _)| keyed.on_gpu) {
            self.state.wire.slices_lent.set(true);
            let carried = carry(via, far, side.keyed(keyed), true);
            return near.carried(carried);
        }
        // SAFETY: the slice is lent to this call.
        let Some(region) = (unsafe { self.register_for_call(via, at, len, written) }) else {
            return Ok(false);
        };
        let key = region.key();
        let keyed = MrKey { key, on_gpu: true };
        // The registration ends behind what uses it.
        near.carried(carry(via, far, side.keyed(keyed), false))
    }
}
