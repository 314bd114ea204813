//! Operations on streams that are kernels of the device library: single values, strided and nonblocking transfers, waits for several
//! words. [`World::device_library`] is open before their first use; the nonblocking transfers need it towards PEs that are not mapped.

use bytemuck::{Pod, bytes_of, bytes_of_mut};
use oxshmem_cuda::{DevicePtr, Pinned, PinnedOptions, Stream};
use oxshmem_engine::progress::reason::WaitsOn;
use oxshmem_transport::SignalOp;

use crate::device::ring_state::lock;
use crate::error::{Error, Result};
use crate::stream::gpu_streams::{GpuStreams, InCall};
use crate::stream::library_kernels::{AwaitedWords, Strided};
use crate::stream::reach::{compare_number, is_signed};
use crate::strided::Blocks;
use crate::sym::Sym;
use crate::wait_until::{Cmp, Waitable};
use crate::world::World;

/// The words of a wait, and what each is compared with.
struct Awaited<T> {
    words: Sym<T>,
    status: Option<Sym<i32>>,
    cmp: Cmp,
    value: T,
    values: Option<Sym<T>>,
}

impl World {
    /// [`put_on_stream`](Self::put_on_stream) that may still read `src`, an object of this PE's, when the stream goes on: until a
    /// quiet or a barrier on the stream, or [`synchronize`](Self::synchronize) (M18, M37).
    #[doc(alias = "nvshmemx_putmem_nbi_on_stream")]
    pub fn put_nbi_on_stream<T: Pod>(
        &self,
        dst: Sym<T>,
        src: Sym<T>,
        pe: usize,
        stream: &Stream,
    ) -> Result<()> {
        const CALL: &str = "put_nbi_on_stream";
        let streams = self.gpu_streams_to_queue(CALL, stream)?;
        self.check_pair(CALL, dst, src)?;
        let to = self.reach_on_stream(CALL, streams, dst, pe)?;
        let from = self.own_on_stream(CALL, streams, src)?;
        self.put_by(CALL, stream, to, (from, dst.bytes()), (pe, true))
    }

    /// [`get_on_stream`](Self::get_on_stream) whose data is there after a quiet or a barrier on the stream, or
    /// [`synchronize`](Self::synchronize) (M18, M37).
    #[doc(alias = "nvshmemx_getmem_nbi_on_stream")]
    pub fn get_nbi_on_stream<T: Pod>(
        &self,
        dst: Sym<T>,
        src: Sym<T>,
        pe: usize,
        stream: &Stream,
    ) -> Result<()> {
        const CALL: &str = "get_nbi_on_stream";
        let streams = self.gpu_streams_to_queue(CALL, stream)?;
        self.check_pair(CALL, dst, src)?;
        let from = self.reach_on_stream(CALL, streams, src, pe)?;
        let to = self.own_on_stream(CALL, streams, dst)?;
        self.get_by(CALL, stream, (to, dst.bytes()), from, (pe, true))
    }

    /// [`put_signal_on_stream`](Self::put_signal_on_stream) that may still read `src` when the stream goes on, as
    /// [`put_nbi_on_stream`](Self::put_nbi_on_stream).
    #[doc(alias = "nvshmemx_putmem_signal_nbi_on_stream")]
    #[expect(clippy::too_many_arguments, reason = "NVSHMEM's has these")]
    pub fn put_signal_nbi_on_stream<T: Pod>(
        &self,
        dst: Sym<T>,
        src: Sym<T>,
        signal: Sym<u64>,
        value: u64,
        op: SignalOp,
        pe: usize,
        stream: &Stream,
    ) -> Result<()> {
        const CALL: &str = "put_signal_nbi_on_stream";
        let streams = self.gpu_streams_to_queue(CALL, stream)?;
        self.check_pair(CALL, dst, src)?;
        let to = self.reach_on_stream(CALL, streams, dst, pe)?;
        let word = self.word_on_stream(CALL, streams, signal, pe)?;
        let from = self.own_on_stream(CALL, streams, src)?;
        let put = (to, from, dst.bytes());
        self.put_signal_by(CALL, streams, stream, put, (word, value, op), (pe, true))
    }

    /// Puts one value of 1, 2, 4 or 8 bytes to PE `pe`, when the stream reaches it. It is stored whole.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] for a type of another size, or unless [`device_library`](Self::device_library) is open.
    #[doc(alias = "nvshmemx_int_p_on_stream")]
    pub fn p_on_stream<T: Pod>(
        &self,
        dst: Sym<T>,
        value: T,
        pe: usize,
        stream: &Stream,
    ) -> Result<()> {
        const CALL: &str = "p_on_stream";
        let streams = self.gpu_streams_to_queue(CALL, stream)?;
        let library = self.library_kernels(CALL, streams)?;
        self.word_on_stream(CALL, streams, dst, pe)?;
        check_value(CALL, dst)?;
        let mut word = [0_u8; 8];
        for (to, from) in word.iter_mut().zip(bytes_of(&value)) {
            *to = *from;
        }
        let value = (u64::from_le_bytes(word), size_of::<T>());
        // SAFETY: the word was checked: PE `pe` has it at this place of its heap, aligned to its size.
        let queued = unsafe { library.p(stream, library.own(dst.offset()), value, pe) };
        queued.in_call(CALL)
    }

    /// Gets one value of 1, 2, 4 or 8 bytes of PE `pe`, when the stream reaches it, and waits for it. It is loaded whole.
    ///
    /// # Errors
    ///
    /// As [`synchronize`](Self::synchronize) and [`p_on_stream`](Self::p_on_stream); [`Error::Argument`] while the stream is captured
    /// into a graph.
    #[doc(alias = "nvshmemx_int_g_on_stream")]
    pub fn g_on_stream<T: Pod>(&self, src: Sym<T>, pe: usize, stream: &Stream) -> Result<T> {
        const CALL: &str = "g_on_stream";
        let streams = self.gpu_streams_to_queue(CALL, stream)?;
        let library = self.library_kernels(CALL, streams)?;
        self.word_on_stream(CALL, streams, src, pe)?;
        check_value(CALL, src)?;
        if stream.is_capturing().in_call(CALL)? {
            return Err(Error::Argument {
                call: CALL,
                what: "the stream is captured into a graph, and this call waits for its work; use get_on_stream".into(),
            });
        }
        let mut result = lock(&library.result);
        let context = &streams.gpu.context;
        let new = || Pinned::new(context, size_of::<u64>(), &PinnedOptions::default());
        let memory = match result.take() {
            Some(memory) => memory,
            None => new().in_call(CALL)?,
        };
        let source = (library.own(src.offset()), size_of::<T>());
        // SAFETY: the word was checked; the result's is no other call's until its work is done.
        let queued = unsafe { library.g(stream, memory.device_ptr(), source, pe) };
        let done = queued
            .in_call(CALL)
            .and_then(|()| self.drain_stream(CALL, streams, stream, WaitsOn::AnyPeer))
            .and_then(|()| self.complete_requests(CALL, streams));
        if let Err(error) = done {
            // The kernel may still write it.
            std::mem::forget(memory);
            return Err(error);
        }
        // SAFETY: the memory has 8 bytes, and the kernel that wrote them is done.
        let word = unsafe { memory.as_ptr().cast::<[u8; 8]>().read() };
        *result = Some(memory);
        let mut value = T::zeroed();
        for (to, from) in bytes_of_mut(&mut value).iter_mut().zip(word) {
            *to = from;
        }
        Ok(value)
    }

    /// Puts `count` elements, every `src_stride`-th of `src`, to every `dst_stride`-th of `dst` on PE `pe`, when the stream reaches
    /// it. Strides are in elements and at least 1.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] for a stride of 0, elements beyond the end of an object, or unless
    /// [`device_library`](Self::device_library) is open.
    #[doc(alias = "nvshmemx_int_iput_on_stream")]
    #[expect(clippy::too_many_arguments, reason = "NVSHMEM's has these")]
    pub fn iput_on_stream<T: Pod>(
        &self,
        dst: Sym<T>,
        src: Sym<T>,
        dst_stride: usize,
        src_stride: usize,
        count: usize,
        pe: usize,
        stream: &Stream,
    ) -> Result<()> {
        let blocks = Blocks::of_put(dst_stride, src_stride, 1, count);
        self.strided_on_stream("iput_on_stream", (dst, src), blocks, (pe, false), stream)
    }

    /// Gets `count` elements, every `src_stride`-th of `src` on PE `pe`, into every `dst_stride`-th of `dst`, when the stream reaches
    /// it. Otherwise as [`iput_on_stream`](Self::iput_on_stream).
    ///
    /// # Errors
    ///
    /// As [`iput_on_stream`](Self::iput_on_stream).
    #[doc(alias = "nvshmemx_int_iget_on_stream")]
    #[expect(clippy::too_many_arguments, reason = "NVSHMEM's has these")]
    pub fn iget_on_stream<T: Pod>(
        &self,
        dst: Sym<T>,
        src: Sym<T>,
        dst_stride: usize,
        src_stride: usize,
        count: usize,
        pe: usize,
        stream: &Stream,
    ) -> Result<()> {
        let blocks = Blocks::of_get(dst_stride, src_stride, 1, count);
        self.strided_on_stream("iget_on_stream", (dst, src), blocks, (pe, true), stream)
    }

    fn strided_on_stream<T: Pod>(
        &self,
        call: &'static str,
        (dst, src): (Sym<T>, Sym<T>),
        blocks: Blocks,
        (pe, is_get): (usize, bool),
        stream: &Stream,
    ) -> Result<()> {
        let streams = self.gpu_streams_to_queue(call, stream)?;
        let library = self.library_kernels(call, streams)?;
        let (remote, local) = match is_get {
            true => (src, dst),
            false => (dst, src),
        };
        blocks.check(call, remote)?;
        blocks.check_local(call, local.len())?;
        self.reach_on_stream(call, streams, remote, pe)?;
        self.own_on_stream(call, streams, local)?;
        if blocks.count == 0 || size_of::<T>() == 0 {
            return Ok(());
        }
        let of = |sym: Sym<T>, stride: usize| {
            (
                library.own(sym.offset()),
                stride.wrapping_mul(size_of::<T>()) as u64,
            )
        };
        let (remote, local) = (
            of(remote, blocks.remote_stride),
            of(local, blocks.local_stride),
        );
        let ((dest, dest_stride), (source, source_stride)) = match is_get {
            true => (local, remote),
            false => (remote, local),
        };
        let elements = Strided {
            dest,
            source,
            dest_stride,
            source_stride,
            count: blocks.count as u64,
            width: size_of::<T>() as u32,
        };
        // SAFETY: both objects have as many elements at these strides, as was checked.
        let queued = unsafe { library.strided(stream, is_get, elements, pe) };
        queued.in_call(call)
    }

    /// Lets the stream go on when each of this PE's own `words` compares with `value` as wanted (M23). `status`, if it is given, has
    /// an element for each word: words with another one than 0 are left out.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] where the lengths differ, or unless [`device_library`](Self::device_library) is open.
    #[doc(alias = "nvshmemx_int_wait_until_all_on_stream")]
    pub fn wait_until_all_on_stream<T: Waitable>(
        &self,
        words: Sym<T>,
        status: Option<Sym<i32>>,
        cmp: Cmp,
        value: T,
        stream: &Stream,
    ) -> Result<()> {
        let awaited = Awaited {
            words,
            status,
            cmp,
            value,
            values: None,
        };
        self.wait_all_on_stream("wait_until_all_on_stream", &awaited, stream)
    }

    /// As [`wait_until_all_on_stream`](Self::wait_until_all_on_stream), with a value of its own for each word: `values` is an object
    /// of this PE's in GPU memory.
    ///
    /// # Errors
    ///
    /// As [`wait_until_all_on_stream`](Self::wait_until_all_on_stream).
    #[doc(alias = "nvshmemx_int_wait_until_all_vector_on_stream")]
    pub fn wait_until_all_vector_on_stream<T: Waitable>(
        &self,
        words: Sym<T>,
        status: Option<Sym<i32>>,
        cmp: Cmp,
        values: Sym<T>,
        stream: &Stream,
    ) -> Result<()> {
        let awaited = Awaited {
            words,
            status,
            cmp,
            value: T::zeroed(),
            values: Some(values),
        };
        self.wait_all_on_stream("wait_until_all_vector_on_stream", &awaited, stream)
    }

    fn wait_all_on_stream<T: Waitable>(
        &self,
        call: &'static str,
        awaited: &Awaited<T>,
        stream: &Stream,
    ) -> Result<()> {
        let streams = self.gpu_streams_to_queue(call, stream)?;
        let library = self.library_kernels(call, streams)?;
        let count = awaited.words.len();
        let words = self.own_on_stream(call, streams, awaited.words)?;
        let values = self.beside_words(call, streams, awaited.values, count)?;
        let status = self.beside_words(call, streams, awaited.status, count)?;
        let awaited = AwaitedWords {
            words,
            count: count as u64,
            status,
            compare: compare_number(awaited.cmp),
            value: awaited.value.bits(),
            values,
            width: size_of::<T>() as u32,
            is_signed: is_signed::<T>(),
        };
        // SAFETY: the objects lie in this PE's own heap, aligned for their types, with an element for each word.
        let queued = unsafe { library.wait_all(stream, awaited) };
        queued.in_call(call)
    }

    /// The address of an object with an element for each of `count` words; 0 where none is given.
    fn beside_words<T: Pod>(
        &self,
        call: &'static str,
        streams: &GpuStreams,
        sym: Option<Sym<T>>,
        count: usize,
    ) -> Result<DevicePtr> {
        match sym {
            None => Ok(DevicePtr::from_raw(0)),
            Some(sym) if sym.len() == count => self.own_on_stream(call, streams, sym),
            Some(sym) => Err(Error::Argument {
                call,
                what: format!(
                    "{count} words, and {} elements beside them; make them equal",
                    sym.len()
                ),
            }),
        }
    }
}

/// Refuses a value that is not stored whole.
fn check_value<T: Pod>(call: &'static str, sym: Sym<T>) -> Result<()> {
    match size_of::<T>() {
        align @ (1 | 2 | 4 | 8) if sym.offset().is_multiple_of(align as u64) => Ok(()),
        align @ (1 | 2 | 4 | 8) => Err(Error::Misaligned {
            call,
            offset: sym.offset(),
            align,
        }),
        other => Err(Error::Argument {
            call,
            what: format!(
                "a value has 1, 2, 4 or 8 bytes, not {other}; use put_on_stream or get_on_stream"
            ),
        }),
    }
}
