//! Slices on a GPU, registered once with the transports, for many transfers.

use std::fmt;
use std::ops::Deref;

use bytemuck::Pod;
use oxshmem_cuda::cudarc::driver::{self, CudaSlice, CudaViewMut};
use oxshmem_engine::lane::rail::Rail;
use oxshmem_engine::memory::registrations::Registration;
use oxshmem_transport::MemoryKind;

use crate::context::Context;
use crate::copies::local_operand::{CopySource, CopyTarget};
use crate::error::Result;

/// A slice of cudarc's, registered with every transport that carries GPU memory: they move data from and to
/// it directly, nonblocking too, without a registration for each call. Made by [`Context::register_gpu`]; the registration ends
/// when it is dropped. It owns the slice, so that no forgotten registration outlives the memory.
///
/// It is not symmetric (M1): it can be no PE's target. cudarc reads it as the slice that it is, and writes it
/// by [`view_mut`](Self::view_mut).
///
/// ```no_run
/// use oxshmem::{MemoryKind, World, cuda::cudarc::driver::CudaContext};
///
/// fn main() -> Result<(), Box<dyn std::error::Error>> {
///     let world = World::init()?;
///     let stream = CudaContext::new(0)?.default_stream();
///     let x = world.alloc_on::<u64>(MemoryKind::Cuda, 512)?;
///     let mut slice = world.register_gpu(stream.alloc_zeros::<u64>(512)?)?;
///     stream.memcpy_htod(&[1; 512], &mut slice.view_mut())?;
///     world.put_from(x, &slice, 1)?;
///     world.get_into(&mut slice, x, 1)?;
///     let values = stream.clone_dtoh(&*slice)?;
///     Ok(())
/// }
/// ```
pub struct RegisteredGpu<'w, T> {
    /// Dropped before the memory.
    registration: Registration<'w>,
    slice: CudaSlice<T>,
}

impl Context<'_> {
    /// Registers a slice of cudarc's on this PE's GPU for many transfers. Without it, calls register a slice
    /// themselves each time, where that costs less than to copy it through host memory.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`](crate::Error::Argument) if the slice is on another GPU, or the world has no CUDA
    /// heap. The error of a transport that has failed or was closed. A transport that cannot register such memory (a
    /// NIC, memory of CUDA's pools) causes no error: its transfers go through host memory.
    pub fn register_gpu<T: Pod>(&self, slice: CudaSlice<T>) -> Result<RegisteredGpu<'_, T>> {
        const CALL: &str = "register_gpu";
        self.in_call(CALL)
            .check_home(self.gpu_streams(CALL)?, slice.stream())?;
        let (start, _) = driver::DevicePtr::device_ptr(&slice, slice.stream());
        let start = std::ptr::with_exposed_provenance_mut(start as usize);
        let needs = |rail: &Rail| rail.carries_gpu() && !rail.is_retired();
        // SAFETY: the guard owns the slice, and ends the registration before it.
        let registration =
            unsafe { self.make_known(MemoryKind::Cuda, start, slice.num_bytes(), needs) }?;
        Ok(RegisteredGpu {
            registration,
            slice,
        })
    }
}

impl<T> RegisteredGpu<'_, T> {
    /// Ends the registration and gives the slice back.
    #[must_use]
    pub fn into_slice(self) -> CudaSlice<T> {
        let RegisteredGpu {
            registration,
            slice,
        } = self;
        drop(registration);
        slice
    }

    /// A view for writes by cudarc: its copies and kernels.
    pub fn view_mut(&mut self) -> CudaViewMut<'_, T> {
        self.slice.as_view_mut()
    }
}

impl<'a, T> From<&'a RegisteredGpu<'_, T>> for CopySource<'a, T> {
    fn from(registered: &'a RegisteredGpu<'_, T>) -> Self {
        CopySource::from(&registered.slice)
    }
}

impl<'a, T> From<&'a mut RegisteredGpu<'_, T>> for CopyTarget<'a, T> {
    fn from(registered: &'a mut RegisteredGpu<'_, T>) -> Self {
        CopyTarget::from(&mut registered.slice)
    }
}

impl<T> Deref for RegisteredGpu<'_, T> {
    type Target = CudaSlice<T>;
    fn deref(&self) -> &CudaSlice<T> {
        &self.slice
    }
}

impl<T> fmt::Debug for RegisteredGpu<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RegisteredGpu")
            .field("len", &self.slice.len())
            .finish_non_exhaustive()
    }
}
