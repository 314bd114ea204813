//! GPU memory for the suite.

use std::ptr::{NonNull, with_exposed_provenance_mut};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use oxshmem_cuda::{Context, DevicePtr, Names, Result, Segment, Stream, StreamOptions};
use oxshmem_transport::conformance::Contents;
use oxshmem_transport::{Memory, MemoryKind};

/// As long as anything may take.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// At least `len` bytes on a GPU, all 0.
pub fn zeroed(context: &Context, len: usize) -> Result<Memory> {
    let mut segment = Segment::new(context, len)?;
    segment.grow_to(len)?;
    let (base, len) = (segment.base(), segment.committed());
    let handles = &segment.extents()[0].handles;
    let descriptor = handles.fd.as_ref().map(|fd| fd.try_clone().unwrap());
    let names = Names::of(handles).to_bytes();
    let stream = Stream::new(context, &StreamOptions::default())?;
    // SAFETY: the segment keeps the bytes, which nobody else knows yet.
    unsafe { stream.fill(base, 0, len) }?;
    stream.synchronize_within(PATIENCE)?;
    let base = NonNull::new(with_exposed_provenance_mut(base.as_raw() as usize)).unwrap();
    let owner = Arc::new(segment);
    // SAFETY: the segment keeps the memory where it is, and the CPU doesn't touch it.
    let memory =
        unsafe { Memory::new(base, len, MemoryKind::Cuda, descriptor.map(Arc::new), owner) };
    Ok(memory.named(names))
}

/// Looks into memory by a stream's copies.
#[derive(Debug)]
pub struct Gpu {
    memory: Memory,
    stream: Mutex<Stream>,
}

impl Gpu {
    pub fn new(context: &Context, memory: &Memory) -> Result<Gpu> {
        Ok(Gpu {
            memory: memory.clone(),
            stream: Mutex::new(Stream::new(context, &StreamOptions::default())?),
        })
    }

    fn copy(&self, to: DevicePtr, from: DevicePtr, len: usize) {
        let stream = self.stream.lock().unwrap();
        // SAFETY: both sides have `len` bytes until the wait below is over: the suite's buffer, and
        // memory that `self.memory` keeps; words in it are moved whole.
        unsafe { stream.copy(to, from, len) }.unwrap();
        stream.synchronize_within(PATIENCE).unwrap();
    }

    fn at(&self, offset: u64, len: usize) -> DevicePtr {
        assert!(offset as usize + len <= self.memory.len());
        DevicePtr::from_host(self.memory.base().as_ptr()).add(offset as usize)
    }
}

impl Contents for Gpu {
    fn read(&self, offset: u64, into: &mut [u8]) {
        let from = self.at(offset, into.len());
        self.copy(DevicePtr::from_host(into.as_mut_ptr()), from, into.len());
    }

    fn write(&self, offset: u64, bytes: &[u8]) {
        let to = self.at(offset, bytes.len());
        self.copy(to, DevicePtr::from_host(bytes.as_ptr()), bytes.len());
    }
}
