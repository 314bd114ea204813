//! From cudarc's types and to them. Both use a GPU's primary context, so streams and addresses are
//! the same; that they come from the same driver is checked.

use std::sync::Arc;

use cudarc::driver::sys::{CUcontext, CUstream};
use cudarc::driver::{CudaContext, CudaStream};

use crate::context::Context;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::stream::Stream;

/// The context of a cudarc context's GPU.
pub fn context(of: &CudaContext) -> Result<Context> {
    let context = Context::new(&Device::new(of.ordinal())?)?;
    if context.as_raw() != of.cu_ctx().cast() {
        return Err(Error::Invalid {
            what: "taking a cudarc context",
            why: "cudarc loaded another driver than oxshmem, or uses a context of its own: with \
                  OXSHMEM_CUDA_LIBRARY set, call oxshmem before cudarc; take stubs folders off \
                  LD_LIBRARY_PATH"
                .into(),
        });
    }
    Ok(context)
}

/// A cudarc stream, kept while the result lives.
pub fn stream(of: &Arc<CudaStream>) -> Result<Stream> {
    let context = context(of.context())?;
    // SAFETY: the stream is cudarc's and alive, and is kept so.
    unsafe {
        Stream::kept(
            &context,
            of.cu_stream().cast(),
            Arc::<CudaStream>::clone(of),
        )
    }
}

/// A context's handle in cudarc's type, valid while the context lives.
#[must_use]
pub fn raw_context(of: &Context) -> CUcontext {
    of.as_raw().cast()
}

/// A stream's handle in cudarc's type, valid while the stream lives.
#[must_use]
pub fn raw_stream(of: &Stream) -> CUstream {
    of.as_raw().cast()
}
