//! A slice or view of cudarc's, as the local operand of a copy: its address, its stream, and what waits for it.

use std::sync::Arc;

use oxshmem_cuda::DevicePtr;
use oxshmem_cuda::cudarc::driver::sys::CUdeviceptr;
use oxshmem_cuda::cudarc::driver::{
    self, CudaSlice, CudaStream, CudaView, CudaViewMut, DevicePtrMut, DeviceSlice,
};

use crate::error::{Error, Result};

/// A slice or view of cudarc's that one operation uses.
pub(crate) enum Slice<'a, T> {
    Read(&'a CudaSlice<T>),
    ReadView(&'a CudaView<'a, T>),
    Written(&'a mut CudaSlice<T>),
    WrittenView(&'a mut CudaViewMut<'a, T>),
}

/// The address of a slice that is read. Its own stream waits for earlier writers. If `recorded`, later writers wait for the
/// work that this stream has by now.
fn read<T, S: driver::DevicePtr<T>>(slice: &S, recorded: bool) -> CUdeviceptr {
    let (at, used) = slice.device_ptr(slice.stream());
    if !recorded {
        std::mem::forget(used);
    }
    at
}

/// As [`read`], of a slice that is written.
fn written<T, S: DevicePtrMut<T>>(slice: &mut S, recorded: bool) -> CUdeviceptr {
    let home = Arc::clone(slice.stream());
    let (at, used) = slice.device_ptr_mut(&home);
    if !recorded {
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

    fn at(&mut self, recorded: bool) -> CUdeviceptr {
        match self {
            Slice::Read(slice) => read(*slice, recorded),
            Slice::ReadView(view) => read(*view, recorded),
            Slice::Written(slice) => written(*slice, recorded),
            Slice::WrittenView(view) => written(*view, recorded),
        }
    }

    /// Makes its own stream wait for the work of cudarc's other streams on it; gives its address.
    ///
    /// # Errors
    ///
    /// [`Error::Gpu`] where it cannot wait: later work on the stream might come before that.
    pub(crate) fn begin(&mut self, call: &'static str) -> Result<DevicePtr> {
        let at = DevicePtr::from_raw(self.at(false));
        // cudarc keeps errors that it cannot return until they are asked for.
        self.home().context().check_err().map_err(|error| {
            let why =
                format!("cudarc's stream cannot wait for what was done to a slice: {error:?}");
            Error::Gpu { call, why }
        })?;
        Ok(at)
    }

    /// Makes cudarc's other streams wait for the work that its own stream has by now.
    pub(crate) fn end(&mut self) {
        self.at(true);
    }
}
