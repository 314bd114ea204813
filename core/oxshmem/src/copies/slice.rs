//! Slices of cudarc's as the local operand of copies that the host issues.
//!
//! Where a transport carries GPU memory to the remote side, and can register the slice, it moves the data itself;
//! else the data goes through a private buffer, and this PE's own GPU copies.

use bytemuck::Pod;
use oxshmem_cuda::cudarc::driver::{CudaSlice, CudaStream, CudaView, CudaViewMut};
use oxshmem_cuda::{DevicePtr, Stream, interop};
use oxshmem_engine::lane::endpoint::Endpoint;
use oxshmem_engine::lane::local_buffer::LocalBuffer;
use oxshmem_engine::lane::remote::RemoteTarget;
use oxshmem_engine::memory::registrations::MrKey;
use oxshmem_engine::ops::access_path::AccessPath;
use oxshmem_engine::ops::copy::via_host;
use oxshmem_engine::order::conflict::Access;
use oxshmem_engine::order::op_set::OpKind;
use oxshmem_engine::progress::reason::WaitsOn;

use crate::context::Context;
use crate::copies::gpu_slice::Slice;
use crate::copies::local_operand::{CopySource, CopyTarget, LocalOperand};
use crate::error::{Error, Result};
use crate::gpu::cuda::copy_engine::Engine;
use crate::stats::counters::Kind;
use crate::stream::gpu_streams::{DRAIN_LIMIT, GpuStreams, InCall};
use crate::sym::Sym;
use oxshmem_engine::report;

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

/// Waits until the GPU does not use the slices of a failed call any more, before the program may
/// free them.
pub(crate) fn await_release(streams: &GpuStreams, call: &'static str) {
    let why = match streams.drained_within(call, DRAIN_LIMIT) {
        Ok(true) => return,
        Ok(false) => format!("the GPU is busy after {DRAIN_LIMIT:?}"),
        Err(error) => error.to_string(),
    };
    report::warn(&format!(
        "{call} has failed, and its slice may be in use yet: {why}; keep it until the GPU is idle"
    ));
}

/// A slice that the host copies from or to: no work on the GPU uses it meanwhile.
struct IdleSlice<'w> {
    call: &'static str,
    streams: &'w GpuStreams,
    /// The PE of the remote side, by its number in the world.
    pe: usize,
    at: DevicePtr,
    bytes: usize,
    home: Stream,
}

impl IdleSlice<'_> {
    /// The address for transports; the CPU cannot use it.
    fn pointer(&self) -> *mut u8 {
        std::ptr::with_exposed_provenance_mut(self.at.as_raw() as usize)
    }

    /// The result of a lane's transfer. One that failed may have left work behind that the slice's own stream, on
    /// which cudarc frees it, does not wait for.
    fn carried(&self, result: Result<()>) -> Result<bool> {
        if result.is_err() {
            await_release(self.streams, self.call);
        }
        result.map(|()| true)
    }

    /// Copies a part of it, from `at` on, by this PE's GPU.
    fn copy(
        &self,
        at: usize,
        copy: impl FnOnce(&mut Engine, DevicePtr) -> Result<(), String>,
    ) -> Result<()> {
        let mut engine = self.streams.gpu.engine();
        copy(&mut engine, self.at.add(at)).map_err(|why| {
            // cudarc's next work on the slice comes after the cancelled copy.
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
    /// Refuses a slice that is not as long as the remote side, or not on this PE's GPU.
    pub(crate) fn check_slice<T: Pod>(
        &self,
        streams: &GpuStreams,
        remote: Sym<T>,
        slice: &Slice<'_, T>,
    ) -> Result<()> {
        if slice.bytes() != remote.bytes() {
            return Err(Error::Argument {
                call: self.call(),
                what: format!(
                    "the slice has {} bytes, the object {}; make them equal",
                    slice.bytes(),
                    remote.bytes()
                ),
            });
        }
        self.check_home(streams, slice.home())
    }

    /// Refuses a slice with this stream that is not on this PE's GPU.
    pub(crate) fn check_home(&self, streams: &GpuStreams, home: &CudaStream) -> Result<()> {
        let context = home.context();
        if context.cu_ctx() != interop::raw_context(&streams.gpu.context) {
            return Err(Error::Argument {
                call: self.call(),
                what: format!(
                    "the slice lies on cudarc's GPU {}, this PE's heap on GPU {} (or their contexts \
                     differ); take World::gpu_context's GPU",
                    context.ordinal(),
                    streams.gpu.context.device().ordinal()
                ),
            });
        }
        Ok(())
    }

    /// Checks both sides, and waits until the work queued on the slice is done.
    fn await_slice<T: Pod>(
        &self,
        remote: Sym<T>,
        pe: usize,
        mut slice: Slice<'_, T>,
        access: Access,
        in_flight: bool,
    ) -> Result<IdleSlice<'_>> {
        let streams = self.gpu_streams(self.call())?;
        self.check_slice(streams, remote, &slice)?;
        let pe = self.check(remote, remote.len(), pe)?;
        self.guard(access, remote, remote.len(), pe, in_flight)?;
        let kind = match access {
            Access::Get => Kind::Get,
            _ => Kind::Put,
        };
        self.count(kind, remote, remote.bytes(), pe);
        let home = interop::stream(slice.home()).in_call(self.call())?;
        if home.is_capturing().in_call(self.call())? {
            return Err(Error::Argument {
                call: self.call(),
                what: "the slice's stream is being captured into a graph; use the calls on streams, or \
                       end the capture first"
                    .into(),
            });
        }
        let at = slice.begin(self.call())?;
        // A stream waits for PEs only where calls of this world have queued such waits.
        let needs = if streams.is_used() {
            WaitsOn::AnyPeer
        } else {
            WaitsOn::Pe(pe)
        };
        self.drain_stream(self.call(), streams, &home, needs)?;
        Ok(IdleSlice {
            call: self.call(),
            streams,
            pe,
            at,
            bytes: slice.bytes(),
            home,
        })
    }

    /// Puts a slice.
    pub(super) fn put_slice<T: Pod>(
        &self,
        dst: Sym<T>,
        slice: Slice<'_, T>,
        pe: usize,
        nonblocking: bool,
    ) -> Result<()> {
        let local = self.await_slice(dst, pe, slice, Access::Put, true)?;
        let carried =
            self.carry_slice(dst, &local, false, |endpoint, remote, from, registered| {
                // SAFETY: as many bytes of the program's, lent to this call; or lent to a scope, and registered as long.
                unsafe {
                    if nonblocking && registered {
                        Ok(self.worker.lane_put_nbi(endpoint, remote, from)?)
                    } else {
                        Ok(self.worker.lane_put(endpoint, remote, from)?)
                    }
                }
            })?;
        if carried {
            return Ok(());
        }
        let dst = dst.cast::<u8>()?;
        via_host(
            local.bytes,
            |at, part| {
                // SAFETY: the part lies within the program's bytes, which are lent to this call.
                local.copy(at, |engine, from| unsafe {
                    engine.read(part.as_mut_ptr(), from, part.len())
                })
            },
            |at, part| {
                let dst = dst.range(at..at + part.len())?;
                Ok(self.worker.put_bytes(dst, part, local.pe)?)
            },
        )
    }

    /// Gets into a slice.
    pub(super) fn get_slice<T: Pod>(
        &self,
        slice: Slice<'_, T>,
        src: Sym<T>,
        pe: usize,
        nonblocking: bool,
    ) -> Result<()> {
        let local = self.await_slice(src, pe, slice, Access::Get, nonblocking)?;
        let carried =
            self.carry_slice(src, &local, true, |endpoint, remote, into, registered| {
                // SAFETY: as for put_slice; lent for writing.
                unsafe {
                    if nonblocking && registered {
                        Ok(self.worker.lane_get_nbi(endpoint, remote, into)?)
                    } else {
                        Ok(self.worker.lane_get(endpoint, remote, into)?)
                    }
                }
            })?;
        if carried {
            return Ok(());
        }
        let src = src.cast::<u8>()?;
        via_host(
            local.bytes,
            |at, part| {
                let src = src.range(at..at + part.len())?;
                Ok(self.worker.get_bytes(part, src, local.pe)?)
            },
            |at, part| {
                // SAFETY: the part lies within the program's bytes, which are lent to this call.
                local.copy(at, |engine, to| unsafe {
                    engine.write(to, part.as_ptr(), part.len())
                })
            },
        )
    }

    /// Called when a scope ends: the slices lent to it go back to the program.
    pub(crate) fn slices_back(&self, completed: &Result<()>) {
        let lent = self.worker.state.lanes.slices_lent.take();
        if let (true, Err(_), Some(streams)) = (lent, completed, &self.pe.gpu_streams) {
            await_release(streams, "scope");
        }
    }

    /// Transfers the slice by the transport that reaches the object, if that carries GPU memory. `carry` gets whether
    /// the program has registered the slice, for longer than this call.
    fn carry_slice<T: Pod>(
        &self,
        remote: Sym<T>,
        local: &IdleSlice<'_>,
        written: bool,
        carry: impl FnOnce(&Endpoint, RemoteTarget, LocalBuffer, bool) -> Result<()>,
    ) -> Result<bool> {
        let AccessPath::Lane(endpoint, remote) =
            self.worker
                .in_call(local.call)
                .access_path(OpKind::Put, remote, local.pe)?
        else {
            return Ok(false);
        };
        if !endpoint.carries_gpu() {
            return Ok(false);
        }
        let (at, len) = (local.pointer(), local.bytes);
        let buffer = LocalBuffer::at(at, len);
        // The slice is lent together with the guard that owns it.
        if let Some((key, _)) = self
            .worker
            .key_of(endpoint, at, len)
            .filter(|(key, _)| key.on_gpu)
        {
            self.worker.state.lanes.slices_lent.set(true);
            let carried = carry(endpoint, remote, buffer.keyed(key), true);
            return local.carried(carried);
        }
        // SAFETY: the slice is lent to this call.
        let Some(region) = (unsafe { self.worker.register_for_call(endpoint, at, len, written) })
        else {
            return Ok(false);
        };
        let key = MrKey {
            key: region.key(),
            on_gpu: true,
        };
        // The registration ends after the transfer that uses it.
        local.carried(carry(endpoint, remote, buffer.keyed(key), false))
    }
}
