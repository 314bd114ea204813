//! Beside a program's own cudarc: the same driver, the same context, the same memory.
#![cfg(feature = "cuda")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod gpu;

use cudarc::driver::{CudaContext, DevicePtr as _, DevicePtrMut as _};
use gpu::{PATIENCE, download, pattern};
use oxshmem_cuda::{DevicePtr, Segment, Stream, StreamOptions, interop, pointer};

#[test]
fn cudarc_s_context_and_streams_are_the_same() {
    let Some(ours) = gpu::context() else { return };
    let theirs = CudaContext::new(0).unwrap();
    let context = interop::context(&theirs).unwrap();
    assert_eq!(context, ours);
    assert_eq!(interop::raw_context(&context), theirs.cu_ctx());
    let user = theirs.new_stream().unwrap();
    let stream = interop::stream(&user).unwrap();
    assert_eq!(interop::raw_stream(&stream), user.cu_stream());
    assert_eq!(stream.context(), &ours);
    // It is kept, and destroyed by cudarc alone.
    drop(user);
    stream.synchronize_within(PATIENCE).unwrap();
}

#[test]
fn cudarc_s_slices_are_sources_and_targets() {
    let Some(ours) = gpu::context() else { return };
    let theirs = CudaContext::new(0).unwrap();
    let user = theirs.new_stream().unwrap();
    let stream = interop::stream(&user).unwrap();
    let bytes = pattern(1 << 16, 3);
    let source = user.clone_htod(&bytes).unwrap();
    let mut target = user.alloc_zeros::<u8>(bytes.len()).unwrap();
    let mut segment = Segment::new(&ours, 2 << 20).unwrap();
    segment.grow_to(bytes.len()).unwrap();
    {
        let (from, _kept) = source.device_ptr(&user);
        let (to, _kept) = target.device_ptr_mut(&user);
        let told = pointer::attributes(&ours, DevicePtr::from_raw(from)).unwrap();
        assert_eq!(told.memory, pointer::Memory::Device);
        // SAFETY: all ranges are mapped and live until the wait below, and the stream keeps order.
        unsafe {
            stream
                .copy(segment.base(), DevicePtr::from_raw(from), bytes.len())
                .unwrap();
            stream
                .copy(DevicePtr::from_raw(to), segment.base(), bytes.len())
                .unwrap();
        }
        stream.synchronize_within(PATIENCE).unwrap();
    }
    assert!(user.clone_dtoh(&target).unwrap() == bytes);
    let other = Stream::new(&ours, &StreamOptions::default()).unwrap();
    assert!(download(&other, segment.base(), bytes.len()) == bytes);
}
