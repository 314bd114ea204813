//! GPU memory for NICs: given where the GPU has it, refused in words elsewhere.
#![cfg(feature = "cuda")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod gpu;

use oxshmem_cuda::{Error, Segment, dma_buf, pointer};

#[test]
fn a_range_is_exported_or_refused() {
    let Some(context) = gpu::context() else {
        return;
    };
    let mut segment = Segment::new(&context, 2 << 20).unwrap();
    segment.grow_to(1).unwrap();
    let answer = dma_buf::export(&context, segment.base().add(100), 5000);
    if !context.device().has_dma_buf() {
        assert!(matches!(answer.unwrap_err(), Error::Unsupported { .. }));
        return;
    }
    match answer {
        Ok(exported) => assert_eq!((exported.offset, exported.len), (100, 5000)),
        // VMM memory needs more than dma-bufs.
        Err(error) => assert!(!context.device().has_gpudirect_rdma_with_vmm(), "{error}"),
    }
    assert!(dma_buf::export(&context, segment.base(), 0).is_err());
}

#[test]
fn synchronous_copies_are_set_or_refused() {
    let Some(context) = gpu::context() else {
        return;
    };
    let mut segment = Segment::new(&context, 2 << 20).unwrap();
    segment.grow_to(1).unwrap();
    if let Err(error) = pointer::set_sync_memops(&context, segment.base()) {
        assert!(error.code().is_some() || error.is_unsupported(), "{error}");
    }
}
