//! Slices of cudarc's as this PE's side of an operation on a stream; and symmetric memory as cudarc takes
//! it.

use std::marker::PhantomData;
use std::sync::Arc;

use bytemuck::Pod;
use oxshmem_cuda::cudarc::driver;
use oxshmem_cuda::cudarc::driver::sys::CUdeviceptr;
use oxshmem_cuda::cudarc::driver::{
    CudaStream, DevicePtrMut, DeviceSlice, LaunchArgs, PushKernelArg, SyncOnDrop,
};
use oxshmem_cuda::{DevicePtr, Event, Stream, interop};

use super::RUN_OUT;
use super::gpu_streams::{GpuStreams, Told};
use crate::copies::LocalOperand;
use crate::{Result, Sym, World, report};

impl World {
    /// Queues what an operation does with its near side, given its address, when that side is as long as
    /// `far`. On the GPU it comes after what was done to a slice, and what is done to it later after it.
    pub(super) fn with_near<T: Pod>(
        &self,
        call: &'static str,
        side: &GpuStreams,
        far: Sym<T>,
        near: LocalOperand<'_, T>,
        stream: &Stream,
        queue: impl FnOnce(DevicePtr) -> Result<()>,
    ) -> Result<()> {
        let mut slice = match near {
            LocalOperand::Symmetric(sym) => {
                self.check_pair(call, far, sym)?;
                return queue(self.on_stream(call, side, sym, self.my_pe())?);
            }
            LocalOperand::Slice(slice) => slice,
        };
        self.check_slice(call, side, far, &slice)?;
        let home = interop::stream(slice.home()).told(call)?;
        let ordered = home.as_raw() == stream.as_raw() || stream.is_capturing().told(call)?;
        // Had before anything is queued, so that what is queued can be waited for.
        let event = match ordered {
            true => None,
            false => Some(Event::new(stream.context()).told(call)?),
        };
        let then = |first: &Stream, then: &Stream| {
            event.as_ref().map_or(Ok(()), |event| {
                first.record(event)?;
                then.wait(event)
            })
        };
        let at = slice.begin(call)?;
        then(&home, stream).told(call)?;
        let queued = queue(at);
        // Also if that failed: part of it may have been queued.
        let followed = then(stream, &home);
        if followed.is_err() {
            // The program may free the slice when this returns.
            let ended = stream.synchronize_within(RUN_OUT);
            ended.unwrap_or_else(|error| {
                let what = "a slice's stream can neither be told to wait nor be waited for";
                report::warn(&format!("{what}: {error}"));
            });
        }
        slice.end();
        queued?;
        followed.told(call)
    }

    /// This PE's own copy of an object in GPU memory, for cudarc's copies and kernels. `stream` is what
    /// cudarc takes as its stream. Peers may write it at any time, as symmetric memory is.
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
        let ours = interop::stream(stream).told(CALL)?;
        let side = self.side(CALL, &ours)?;
        let at = self.on_stream(CALL, side, sym, self.my_pe())?;
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
/// and for `launch_builder(..).arg(&view)`. It has no events of its own: streams that use it are ordered
/// by the program.
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
