//! Slices of cudarc's as the local operand of an operation on a stream; and symmetric memory as a slice for cudarc.

use std::marker::PhantomData;
use std::sync::Arc;

use bytemuck::Pod;
use oxshmem_cuda::cudarc::driver;
use oxshmem_cuda::cudarc::driver::sys::CUdeviceptr;
use oxshmem_cuda::cudarc::driver::{
    CudaStream, DevicePtrMut, DeviceSlice, LaunchArgs, PushKernelArg, SyncOnDrop,
};
use oxshmem_cuda::{DevicePtr, Event, Stream, interop};

use crate::copies::local_operand::LocalOperand;
use crate::error::Result;
use crate::stream::gpu_streams::{DRAIN_LIMIT, GpuStreams, InCall};
use crate::sym::Sym;
use crate::world::World;
use oxshmem_engine::report;

impl World {
    /// Queues an operation, given the address of its local operand, if that is as long as
    /// `remote`. On the GPU it comes after earlier work on a slice, and before later work on it.
    pub(super) fn with_local_operand<T: Pod>(
        &self,
        call: &'static str,
        streams: &GpuStreams,
        remote: Sym<T>,
        local: LocalOperand<'_, T>,
        stream: &Stream,
        queue: impl FnOnce(DevicePtr) -> Result<()>,
    ) -> Result<()> {
        let mut slice = match local {
            LocalOperand::Symmetric(sym) => {
                self.check_pair(call, remote, sym)?;
                return queue(self.own_on_stream(call, streams, sym)?);
            }
            LocalOperand::Slice(slice) => slice,
        };
        self.in_call(call).check_slice(streams, remote, &slice)?;
        let home = interop::stream(slice.home()).in_call(call)?;
        let ordered = home.as_raw() == stream.as_raw() || stream.is_capturing().in_call(call)?;
        // Made before anything is queued, so that queued work can be waited for.
        let event = if ordered {
            None
        } else {
            Some(Event::new(stream.context()).in_call(call)?)
        };
        let then = |first: &Stream, then: &Stream| {
            event.as_ref().map_or(Ok(()), |event| {
                first.record(event)?;
                then.wait(event)
            })
        };
        let at = slice.begin(call)?;
        then(&home, stream).in_call(call)?;
        let queued = queue(at);
        // Also if `queue` failed: a part may have been queued.
        let followed = then(stream, &home);
        if followed.is_err() {
            // The program may free the slice when this returns.
            let ended = stream.synchronize_within(DRAIN_LIMIT);
            ended.unwrap_or_else(|error| {
                let what = "a slice's stream can neither be told to wait nor be waited for";
                report::warn(&format!("{what}: {error}"));
            });
        }
        slice.end();
        queued?;
        followed.in_call(call)
    }

    /// This PE's own copy of an object in GPU memory, for cudarc's copies and kernels. cudarc takes `stream` as
    /// its stream. Peers may write it at any time, as symmetric memory is.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`](crate::Error::Argument) for an object in host memory, and where cudarc uses another context.
    pub fn gpu_view<'w, T: Pod>(
        &'w self,
        sym: Sym<T>,
        stream: &Arc<CudaStream>,
    ) -> Result<GpuView<'w, T>> {
        const CALL: &str = "gpu_view";
        let ours = interop::stream(stream).in_call(CALL)?;
        let streams = self.gpu_streams_for(CALL, &ours)?;
        let at = self.own_on_stream(CALL, streams, sym)?;
        Ok(GpuView {
            at: at.as_raw(),
            len: sym.len(),
            stream: Arc::clone(stream),
            world: PhantomData,
            elements: PhantomData,
        })
    }
}

/// This PE's own copy of a symmetric object in GPU memory, as a device slice of cudarc's: for its copies,
/// and for `launch_builder(..).arg(&view)`. It has no events of its own: the program orders the streams that use it.
#[derive(Debug)]
pub struct GpuView<'w, T> {
    at: CUdeviceptr,
    len: usize,
    stream: Arc<CudaStream>,
    world: PhantomData<&'w World>,
    elements: PhantomData<fn() -> T>,
}

impl<T> DeviceSlice<T> for GpuView<'_, T> {
    fn len(&self) -> usize {
        self.len
    }

    fn stream(&self) -> &Arc<CudaStream> {
        &self.stream
    }
}

impl<T> driver::DevicePtr<T> for GpuView<'_, T> {
    fn device_ptr<'a>(&'a self, _stream: &'a CudaStream) -> (CUdeviceptr, SyncOnDrop<'a>) {
        (self.at, SyncOnDrop::Record(None))
    }
}

impl<T> DevicePtrMut<T> for GpuView<'_, T> {
    fn device_ptr_mut<'a>(&'a mut self, _stream: &'a CudaStream) -> (CUdeviceptr, SyncOnDrop<'a>) {
        (self.at, SyncOnDrop::Record(None))
    }
}

// SAFETY: pushes the address of the device pointer, which lives as long as the arguments, as cudarc's own
// implementations for slices do.
unsafe impl<'a, 'b: 'a, T> PushKernelArg<&'b GpuView<'_, T>> for LaunchArgs<'a> {
    #[inline(always)]
    fn arg(&mut self, arg: &'b GpuView<'_, T>) -> &mut Self {
        self.arg(&arg.at)
    }
}
