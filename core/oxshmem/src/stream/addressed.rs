//! Operations on streams whose local operands are addresses that programs give: memory of this PE's GPU, symmetric or not.

use oxshmem_cuda::{DevicePtr, Stream};
use oxshmem_transport::SignalOp;

use crate::error::Result;
use crate::stream::gpu_streams::InCall;
use crate::stream::library_kernels::{AwaitedWords, Strided};
use crate::stream::reach::compare_number;
use crate::sym::Sym;
use crate::wait_until::Cmp;
use crate::world::World;

/// Elements at strides, the symmetric ones of a PE and those at an address here. Strides are in bytes.
#[derive(Clone, Copy, Debug)]
pub struct StridedElements {
    /// The first symmetric element.
    pub symmetric: Sym<u8>,
    /// From each symmetric element to the next.
    pub symmetric_stride: u64,
    /// The first element here.
    pub local: DevicePtr,
    /// From each element here to the next.
    pub local_stride: u64,
    /// Elements.
    pub count: u64,
    /// Bytes of an element: 1, 2, 4, 8 or 16.
    pub width: u32,
}

/// Words of this PE for which a stream waits.
#[derive(Clone, Copy, Debug)]
pub struct WordsToAwait {
    /// All of them.
    pub words: Sym<u8>,
    /// Their number.
    pub count: u64,
    /// Bytes of a word, 2, 4 or 8.
    pub width: u32,
    /// Whether words are compared as signed numbers.
    pub is_signed: bool,
    /// A number of 32 bits for each word, in memory that the GPU loads: words with another one than 0 are left out. None at 0.
    pub status: DevicePtr,
    /// A value for each word, in such memory. None at 0: `value` is for all.
    pub values: DevicePtr,
    /// The value of all words.
    pub value: u64,
    /// The comparison.
    pub cmp: Cmp,
}

impl World {
    /// A put from an address.
    ///
    /// # Safety
    ///
    /// The source is as many bytes that the GPU loads, which the program leaves until the put is done.
    pub(crate) unsafe fn put_from_address(
        &self,
        call: &'static str,
        dst: Sym<u8>,
        src: DevicePtr,
        (pe, is_nonblocking): (usize, bool),
        stream: &Stream,
    ) -> Result<()> {
        let streams = self.gpu_streams_to_queue(call, stream)?;
        let to = self.reach_on_stream(call, streams, dst, pe)?;
        self.put_by(call, stream, to, (src, dst.bytes()), (pe, is_nonblocking))
    }

    /// A get to an address.
    ///
    /// # Safety
    ///
    /// The destination is as many bytes that the GPU stores, which the program leaves until the get is done.
    pub(crate) unsafe fn get_to_address(
        &self,
        call: &'static str,
        dst: DevicePtr,
        src: Sym<u8>,
        (pe, is_nonblocking): (usize, bool),
        stream: &Stream,
    ) -> Result<()> {
        let streams = self.gpu_streams_to_queue(call, stream)?;
        let from = self.reach_on_stream(call, streams, src, pe)?;
        self.get_by(call, stream, (dst, src.bytes()), from, (pe, is_nonblocking))
    }

    /// A put from an address, and the update of a signal behind it (M22).
    ///
    /// # Safety
    ///
    /// As [`put_from_address`](Self::put_from_address).
    pub(crate) unsafe fn put_signal_from_address(
        &self,
        call: &'static str,
        (dst, src): (Sym<u8>, DevicePtr),
        (signal, value, op): (Sym<u64>, u64, SignalOp),
        (pe, is_nonblocking): (usize, bool),
        stream: &Stream,
    ) -> Result<()> {
        let streams = self.gpu_streams_to_queue(call, stream)?;
        let to = self.reach_on_stream(call, streams, dst, pe)?;
        let word = self.word_on_stream(call, streams, signal, pe)?;
        let put = (to, src, dst.bytes());
        let signal = (word, value, op);
        self.put_signal_by(call, streams, stream, put, signal, (pe, is_nonblocking))
    }

    /// A strided put, or get.
    ///
    /// # Safety
    ///
    /// The elements at the local address are memory of the GPU's, which the program leaves until the operation is done.
    pub(crate) unsafe fn strided_by_address(
        &self,
        call: &'static str,
        is_get: bool,
        elements: StridedElements,
        pe: usize,
        stream: &Stream,
    ) -> Result<()> {
        let streams = self.gpu_streams_to_queue(call, stream)?;
        let library = self.library_kernels(call, streams)?;
        let symmetric = elements.symmetric;
        self.reach_on_stream(call, streams, symmetric, pe)?;
        let remote = (library.own(symmetric.offset()), elements.symmetric_stride);
        let local = (elements.local, elements.local_stride);
        let ((dest, dest_stride), (source, source_stride)) = match is_get {
            true => (local, remote),
            false => (remote, local),
        };
        let elements = Strided {
            dest,
            source,
            dest_stride,
            source_stride,
            count: elements.count,
            width: elements.width,
        };
        // SAFETY: the symmetric elements were checked; the caller promises the others.
        unsafe { library.strided(stream, is_get, elements, pe) }.in_call(call)
    }

    /// A wait for all words (M23).
    ///
    /// # Safety
    ///
    /// `status` and `values` are 0, or have an element for each word, which the program leaves until the wait is over.
    pub(crate) unsafe fn await_words(
        &self,
        call: &'static str,
        awaited: WordsToAwait,
        stream: &Stream,
    ) -> Result<()> {
        let streams = self.gpu_streams_to_queue(call, stream)?;
        let library = self.library_kernels(call, streams)?;
        let awaited = AwaitedWords {
            words: self.own_on_stream(call, streams, awaited.words)?,
            count: awaited.count,
            status: awaited.status,
            compare: compare_number(awaited.cmp),
            value: awaited.value,
            values: awaited.values,
            width: awaited.width,
            is_signed: awaited.is_signed,
        };
        // SAFETY: the words were checked; the caller promises the others.
        unsafe { library.wait_all(stream, awaited) }.in_call(call)
    }
}
