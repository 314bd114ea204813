//! This PE's side of an operation on a stream: symmetric memory, or a slice of cudarc's; and symmetric
//! memory as cudarc takes it.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use bytemuck::Pod;
use oxshmem_cuda::cudarc::driver;
use oxshmem_cuda::cudarc::driver::sys::CUdeviceptr;
use oxshmem_cuda::cudarc::driver::{
    CudaSlice, CudaStream, CudaView, CudaViewMut, DevicePtrMut, DeviceSlice, LaunchArgs,
    PushKernelArg, SyncOnDrop,
};
use oxshmem_cuda::{DevicePtr, Event, Stream, interop};
use oxshmem_transport::MemoryKind;

use super::side::{GpuSide, failed};
use crate::{Error, Result, Sym, World};

/// What a put on a stream reads: a [`Sym`] in GPU memory, or a slice or view of cudarc's on this PE's
/// GPU.
///
/// A slice's own stream and the put's wait for each other, so that what cudarc does with the slice later
/// comes later; but not within a graph that is being captured, where the program sees to that.
#[derive(Debug)]
pub struct GpuSource<'a, T>(Near<'a, T>);

/// What a get on a stream writes; as [`GpuSource`].
pub struct GpuTarget<'a, T>(Target<'a, T>);

enum Target<'a, T> {
    Symmetric(Sym<T>),
    Slice(&'a mut (dyn Writable<T> + 'a)),
}

impl<T> fmt::Debug for GpuTarget<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Target::Symmetric(sym) => sym.fmt(f),
            Target::Slice(slice) => write!(f, "{} bytes of a slice", slice.bytes()),
        }
    }
}

/// A slice or view of cudarc's that may be written.
trait Writable<T> {
    fn bytes(&self) -> usize;
    fn home(&self) -> Arc<CudaStream>;
    /// Its address; its own stream waits for who reads or writes it, and they for that stream from the
    /// guard's end on.
    fn lend<'x>(&'x mut self, home: &'x CudaStream) -> (CUdeviceptr, SyncOnDrop<'x>);
}

impl<T, S: DevicePtrMut<T>> Writable<T> for S {
    fn bytes(&self) -> usize {
        self.num_bytes()
    }

    fn home(&self) -> Arc<CudaStream> {
        Arc::clone(self.stream())
    }

    fn lend<'x>(&'x mut self, home: &'x CudaStream) -> (CUdeviceptr, SyncOnDrop<'x>) {
        self.device_ptr_mut(home)
    }
}

pub(super) enum Near<'a, T> {
    Symmetric(Sym<T>),
    Borrowed(Borrowed<'a>),
}

impl<T> fmt::Debug for Near<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Near::Symmetric(sym) => sym.fmt(f),
            Near::Borrowed(slice) => write!(f, "{} bytes of a slice", slice.bytes),
        }
    }
}

pub(super) struct Borrowed<'a> {
    at: DevicePtr,
    bytes: usize,
    home: &'a Arc<CudaStream>,
    /// When dropped, tells cudarc that the slice was used on its home stream.
    _used: SyncOnDrop<'a>,
}

impl<T> GpuSource<'_, T> {
    pub(super) fn near(&self) -> &Near<'_, T> {
        &self.0
    }
}

impl<T> GpuTarget<'_, T> {
    /// The stream of a slice's own, if it is one.
    pub(super) fn home(&self) -> Option<Arc<CudaStream>> {
        match &self.0 {
            Target::Symmetric(_) => None,
            Target::Slice(slice) => Some(slice.home()),
        }
    }

    /// What is written, where `home` is what [`home`](Self::home) gave.
    pub(super) fn near<'x>(&'x mut self, home: Option<&'x Arc<CudaStream>>) -> Option<Near<'x, T>> {
        match (&mut self.0, home) {
            (Target::Symmetric(sym), _) => Some(Near::Symmetric(*sym)),
            (Target::Slice(slice), Some(home)) => {
                let bytes = slice.bytes();
                let (at, used) = slice.lend(home);
                Some(Near::Borrowed(Borrowed {
                    at: DevicePtr::from_raw(at),
                    bytes,
                    home,
                    _used: used,
                }))
            }
            (Target::Slice(_), None) => None,
        }
    }
}

impl<T> From<Sym<T>> for GpuSource<'_, T> {
    fn from(sym: Sym<T>) -> Self {
        GpuSource(Near::Symmetric(sym))
    }
}

impl<T> From<Sym<T>> for GpuTarget<'_, T> {
    fn from(sym: Sym<T>) -> Self {
        GpuTarget(Target::Symmetric(sym))
    }
}

fn read<'a, T, S: driver::DevicePtr<T>>(slice: &'a S) -> Near<'a, T> {
    let home = slice.stream();
    let (at, used) = slice.device_ptr(home);
    Near::Borrowed(Borrowed {
        at: DevicePtr::from_raw(at),
        bytes: slice.num_bytes(),
        home,
        _used: used,
    })
}

impl<'a, T> From<&'a CudaSlice<T>> for GpuSource<'a, T> {
    fn from(slice: &'a CudaSlice<T>) -> Self {
        GpuSource(read(slice))
    }
}

impl<'a, T> From<&'a CudaView<'_, T>> for GpuSource<'a, T> {
    fn from(view: &'a CudaView<'_, T>) -> Self {
        GpuSource(read(view))
    }
}

impl<'a, T> From<&'a mut CudaSlice<T>> for GpuTarget<'a, T> {
    fn from(slice: &'a mut CudaSlice<T>) -> Self {
        GpuTarget(Target::Slice(slice))
    }
}

impl<'a, T> From<&'a mut CudaViewMut<'a, T>> for GpuTarget<'a, T> {
    fn from(view: &'a mut CudaViewMut<'a, T>) -> Self {
        GpuTarget(Target::Slice(view))
    }
}

impl World {
    /// Where the near side is, if it is as long as `far`; `stream` comes after what was done to it.
    pub(super) fn near_on_stream<T: Pod>(
        &self,
        call: &'static str,
        side: &GpuSide,
        far: Sym<T>,
        near: &Near<'_, T>,
        stream: &Stream,
    ) -> Result<DevicePtr> {
        let slice = match near {
            Near::Symmetric(sym) => {
                self.check_pair(call, far, *sym)?;
                return self.on_stream(call, side, *sym, self.my_pe());
            }
            Near::Borrowed(slice) => slice,
        };
        if slice.bytes != far.bytes() {
            return Err(Error::Argument {
                call,
                what: format!(
                    "the slice has {} bytes, the object {}; make them equal",
                    slice.bytes,
                    far.bytes()
                ),
            });
        }
        let context = slice.home.context();
        if context.cu_ctx() != interop::raw_context(&side.context) {
            return Err(Error::Argument {
                call,
                what: format!(
                    "the slice lies on cudarc's GPU {}, this PE's heap on GPU {} (or their contexts \
                     differ); take World::gpu_context's GPU",
                    context.ordinal(),
                    side.context.device().ordinal()
                ),
            });
        }
        self.follow(call, slice, stream, true)?;
        Ok(slice.at)
    }

    /// After the operation was queued: what comes later on the slice's own stream comes after it.
    pub(super) fn done_on_stream<T: Pod>(
        &self,
        call: &'static str,
        near: &Near<'_, T>,
        stream: &Stream,
    ) -> Result<()> {
        match near {
            Near::Symmetric(_) => Ok(()),
            Near::Borrowed(slice) => self.follow(call, slice, stream, false),
        }
    }

    /// Lets `stream` go after what was queued on the slice's own, or that one after `stream`.
    fn follow(
        &self,
        call: &'static str,
        slice: &Borrowed<'_>,
        stream: &Stream,
        home_first: bool,
    ) -> Result<()> {
        let order = || {
            let home = interop::stream(slice.home)?;
            if home.as_raw() == stream.as_raw() || stream.is_capturing()? {
                return Ok(());
            }
            let (first, then) = match home_first {
                true => (&home, stream),
                false => (stream, &home),
            };
            let event = Event::new(stream.context())?;
            first.record(&event)?;
            then.wait(&event)
        };
        order().map_err(|error| failed(call, &error))
    }

    /// This PE's own copy of an object in GPU memory, for cudarc's copies and kernels. `stream` is what
    /// cudarc takes as its stream. Peers may write it at any time, as symmetric memory is.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] for an object in host memory, and where cudarc uses another context.
    pub fn gpu_view<'w, T: Pod>(
        &'w self,
        sym: Sym<T>,
        stream: &Arc<CudaStream>,
    ) -> Result<GpuView<'w, T>> {
        const CALL: &str = "gpu_view";
        let ours = interop::stream(stream).map_err(|error| failed(CALL, &error))?;
        let side = self.side(CALL, &ours)?;
        let at = self.on_stream(CALL, side, sym, self.my_pe())?;
        debug_assert_eq!(self.kind_of(sym), Some(MemoryKind::Cuda));
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
