//! Calls on streams.

mod collectives;

use bytemuck::bytes_of;
use oxshmem::cuda::{DevicePtr, Stream};
use oxshmem::{Cmp, SignalOp, Sym, bindings};

use crate::failure::{Done, Failure, or_end_job, status};
use crate::pe::{Pe, gpu_pointer};
use crate::state::with_pe;
use crate::types::{Element, StreamHandle};

pub(crate) use collectives::*;

/// NVSHMEM's numbers of a signal's operations.
const SIGNAL_SET: i32 = 9;
const SIGNAL_ADD: i32 = 10;

/// A signal's operation by its number.
fn signal_operation(number: i32) -> Done<SignalOp> {
    match number {
        SIGNAL_SET => Ok(SignalOp::Set),
        SIGNAL_ADD => Ok(SignalOp::Add),
        other => Err(Failure::argument(format!(
            "argument sig_op: {other} is no operation; give NVSHMEM_SIGNAL_SET or NVSHMEM_SIGNAL_ADD"
        ))),
    }
}

/// A comparison by NVSHMEM's number: EQ NE GT LE LT GE.
fn comparison(number: i32) -> Done<Cmp> {
    const ALL: [Cmp; 6] = [Cmp::Eq, Cmp::Ne, Cmp::Gt, Cmp::Le, Cmp::Lt, Cmp::Ge];
    let found = usize::try_from(number)
        .ok()
        .and_then(|number| ALL.get(number));
    found.copied().ok_or_else(|| {
        Failure::argument(format!(
            "argument cmp: {number} is no comparison; give one of NVSHMEM_CMP_EQ to NVSHMEM_CMP_GE"
        ))
    })
}

/// Does something on a user's stream.
///
/// # Safety
///
/// The stream is the driver's, and stays until the work is done that is queued.
unsafe fn on_stream<R>(
    call: &'static str,
    stream: StreamHandle,
    act: impl FnOnce(&Pe, &Stream) -> Done<R>,
) -> Done<R> {
    with_pe(call, |own| {
        // SAFETY: the caller makes the same promise.
        let stream = unsafe { own.user_stream(stream) }?;
        act(own, &stream)
    })
}

/// Queues a put.
///
/// # Safety
///
/// The source is so many elements that the GPU loads, which the program leaves until the put is done.
pub(crate) unsafe fn queue_put<T: Element>(
    own: &Pe,
    call: &'static str,
    (dest, source, n): (*mut T, *const T, usize),
    (pe, is_nonblocking): (i32, bool),
    stream: &Stream,
) -> Done {
    let way = (own.pe(pe)?, is_nonblocking);
    if n == 0 {
        return Ok(());
    }
    let dest = own.bytes("dest", dest.cast_const(), n)?;
    // SAFETY: the caller makes the same promise.
    unsafe { bindings::put_on_stream(&own.world, call, dest, gpu_pointer(source), way, stream) }?;
    Ok(())
}

/// Queues a get.
///
/// # Safety
///
/// The destination is so many elements that the GPU stores, which the program leaves until the get is done.
pub(crate) unsafe fn queue_get<T: Element>(
    own: &Pe,
    call: &'static str,
    (dest, source, n): (*mut T, *const T, usize),
    (pe, is_nonblocking): (i32, bool),
    stream: &Stream,
) -> Done {
    let way = (own.pe(pe)?, is_nonblocking);
    if n == 0 {
        return Ok(());
    }
    let source = own.bytes("source", source, n)?;
    let dest = gpu_pointer(dest.cast_const());
    // SAFETY: the caller makes the same promise.
    unsafe { bindings::get_on_stream(&own.world, call, dest, source, way, stream) }?;
    Ok(())
}

/// The bytes from the first element to behind the last of `n`, and a stride in bytes.
fn span<T>(name: &str, stride: isize, n: usize) -> Done<(usize, u64)> {
    let stride = usize::try_from(stride).ok().filter(|stride| *stride > 0);
    let stride = stride.ok_or_else(|| {
        Failure::argument(format!("argument {name}: a stride is 1 element at least"))
    })?;
    let last = n.saturating_sub(1).saturating_mul(stride);
    let elements = if n == 0 { 0 } else { last.saturating_add(1) };
    Ok((elements, (stride.saturating_mul(size_of::<T>())) as u64))
}

/// Queues a strided put.
///
/// # Safety
///
/// As [`queue_put`].
pub(crate) unsafe fn queue_iput<T: Element>(
    own: &Pe,
    call: &'static str,
    (dest, source): (*mut T, *const T),
    (dst, sst): (isize, isize),
    n: usize,
    pe: i32,
    stream: &Stream,
) -> Done {
    let pe = own.pe(pe)?;
    if n == 0 {
        return Ok(());
    }
    let (elements, symmetric_stride) = span::<T>("dst", dst, n)?;
    let (_, local_stride) = span::<T>("sst", sst, n)?;
    let elements = bindings::StridedElements {
        symmetric: own.bytes("dest", dest.cast_const(), elements)?,
        symmetric_stride,
        local: gpu_pointer(source),
        local_stride,
        count: n as u64,
        width: size_of::<T>() as u32,
    };
    // SAFETY: the caller makes the same promise.
    unsafe { bindings::strided_on_stream(&own.world, call, false, elements, pe, stream) }?;
    Ok(())
}

/// Queues a strided get.
///
/// # Safety
///
/// As [`queue_get`].
pub(crate) unsafe fn queue_iget<T: Element>(
    own: &Pe,
    call: &'static str,
    (dest, source): (*mut T, *const T),
    (dst, sst): (isize, isize),
    n: usize,
    pe: i32,
    stream: &Stream,
) -> Done {
    let pe = own.pe(pe)?;
    if n == 0 {
        return Ok(());
    }
    let (_, local_stride) = span::<T>("dst", dst, n)?;
    let (elements, symmetric_stride) = span::<T>("sst", sst, n)?;
    let elements = bindings::StridedElements {
        symmetric: own.bytes("source", source, elements)?,
        symmetric_stride,
        local: gpu_pointer(dest.cast_const()),
        local_stride,
        count: n as u64,
        width: size_of::<T>() as u32,
    };
    // SAFETY: the caller makes the same promise.
    unsafe { bindings::strided_on_stream(&own.world, call, true, elements, pe, stream) }?;
    Ok(())
}

/// Queues the put of a value.
pub(crate) fn queue_p<T: Element>(
    own: &Pe,
    dest: *mut T,
    value: T,
    pe: i32,
    stream: &Stream,
) -> Done {
    let dest: Sym<T> = own.object("dest", dest.cast_const(), 1)?;
    Ok(own.world.p_on_stream(dest, value, own.pe(pe)?, stream)?)
}

/// A PE's value, when the stream has reached the call.
pub(crate) fn value_of<T: Element>(
    own: &Pe,
    source: *const T,
    pe: i32,
    stream: &Stream,
) -> Done<T> {
    let source: Sym<T> = own.object("source", source, 1)?;
    Ok(own.world.g_on_stream(source, own.pe(pe)?, stream)?)
}

/// A word's bits, the lowest first.
fn bits<T: Element>(value: T) -> u64 {
    let mut word = [0; 8];
    for (to, from) in word.iter_mut().zip(bytes_of(&value)) {
        *to = *from;
    }
    u64::from_le_bytes(word)
}

/// Whether a type of words has numbers below 0.
fn is_signed<T: Element + PartialOrd>() -> bool {
    let mut all = T::zeroed();
    bytemuck::bytes_of_mut(&mut all).fill(0xff);
    all < T::zeroed()
}

pub(crate) unsafe fn quiet(call: &'static str, stream: StreamHandle) {
    // SAFETY: the caller's promise.
    let done = unsafe {
        on_stream(call, stream, |own, stream| {
            Ok(own.world.quiet_on_stream(stream)?)
        })
    };
    or_end_job(call, done);
}

/// Sources are free after a quiet.
pub(crate) unsafe fn flush(call: &'static str, stream: StreamHandle) {
    // SAFETY: the caller's promise.
    unsafe { quiet(call, stream) };
}

pub(crate) unsafe fn barrier(call: &'static str, team: i32, stream: StreamHandle) -> i32 {
    // SAFETY: the caller's promise.
    status(call, unsafe {
        on_stream(call, stream, |own, stream| {
            Ok(own.team(team)?.barrier_on_stream(stream)?)
        })
    })
}

pub(crate) unsafe fn barrier_all(call: &'static str, stream: StreamHandle) {
    // SAFETY: the caller's promise.
    let done = unsafe {
        on_stream(call, stream, |own, stream| {
            Ok(own.world.barrier_all_on_stream(stream)?)
        })
    };
    or_end_job(call, done);
}

pub(crate) unsafe fn sync(call: &'static str, team: i32, stream: StreamHandle) -> i32 {
    // SAFETY: the caller's promise.
    status(call, unsafe {
        on_stream(call, stream, |own, stream| {
            Ok(own.team(team)?.sync_on_stream(stream)?)
        })
    })
}

pub(crate) unsafe fn sync_all(call: &'static str, stream: StreamHandle) {
    // SAFETY: the caller's promise.
    let done = unsafe {
        on_stream(call, stream, |own, stream| {
            Ok(own.world.sync_all_on_stream(stream)?)
        })
    };
    or_end_job(call, done);
}

/// Makes a copy on a user's stream, or ends the job.
macro_rules! copies {
    ($($name:ident: $queue:ident, $is_nonblocking:literal;)*) => {$(
        pub(crate) unsafe fn $name<T: Element>(
            call: &'static str,
            dest: *mut T,
            source: *const T,
            n: usize,
            pe: i32,
            stream: StreamHandle,
        ) {
            // SAFETY: the caller's promise.
            let done = unsafe {
                on_stream(call, stream, |own, stream| {
                    $queue(own, call, (dest, source, n), (pe, $is_nonblocking), stream)
                })
            };
            or_end_job(call, done);
        }
    )*};
}
copies! {
    put: queue_put, false;
    put_nbi: queue_put, true;
    get: queue_get, false;
    get_nbi: queue_get, true;
}

/// Makes a strided copy on a user's stream, or ends the job.
macro_rules! strided {
    ($($name:ident: $queue:ident;)*) => {$(
        pub(crate) unsafe fn $name<T: Element>(
            call: &'static str,
            dest: *mut T,
            source: *const T,
            dst: isize,
            sst: isize,
            n: usize,
            pe: i32,
            stream: StreamHandle,
        ) {
            // SAFETY: the caller's promise.
            let done = unsafe {
                on_stream(call, stream, |own, stream| {
                    $queue(own, call, (dest, source), (dst, sst), n, pe, stream)
                })
            };
            or_end_job(call, done);
        }
    )*};
}
strided! {
    iput: queue_iput;
    iget: queue_iget;
}

pub(crate) unsafe fn p<T: Element>(
    call: &'static str,
    dest: *mut T,
    value: T,
    pe: i32,
    stream: StreamHandle,
) {
    // SAFETY: the caller's promise.
    let done = unsafe {
        on_stream(call, stream, |own, stream| {
            queue_p(own, dest, value, pe, stream)
        })
    };
    or_end_job(call, done);
}

pub(crate) unsafe fn g<T: Element>(
    call: &'static str,
    source: *const T,
    pe: i32,
    stream: StreamHandle,
) -> T {
    // SAFETY: the caller's promise.
    let value = unsafe {
        on_stream(call, stream, |own, stream| {
            value_of(own, source, pe, stream)
        })
    };
    or_end_job(call, value)
}

/// Queues a put and its signal.
///
/// # Safety
///
/// As [`queue_put`], and the stream is the driver's.
unsafe fn put_with_signal<T: Element>(
    call: &'static str,
    (dest, source, n): (*mut T, *const T, usize),
    (sig_addr, signal, sig_op): (*mut u64, u64, i32),
    (pe, is_nonblocking): (i32, bool),
    stream: StreamHandle,
) {
    let queue = |own: &Pe, stream: &Stream| {
        let way = (own.pe(pe)?, is_nonblocking);
        let word = own.object("sig_addr", sig_addr.cast_const(), 1)?;
        let operation = signal_operation(sig_op)?;
        if n == 0 {
            let (pe, _) = way;
            return Ok(own
                .world
                .signal_on_stream(word, signal, operation, pe, stream)?);
        }
        let copy = (
            own.bytes("dest", dest.cast_const(), n)?,
            gpu_pointer(source),
        );
        let signal = (word, signal, operation);
        // SAFETY: the caller makes the same promise.
        unsafe { bindings::put_signal_on_stream(&own.world, call, copy, signal, way, stream) }?;
        Ok(())
    };
    // SAFETY: the caller makes the same promise.
    or_end_job(call, unsafe { on_stream(call, stream, queue) });
}

pub(crate) unsafe fn put_signal<T: Element>(
    call: &'static str,
    dest: *mut T,
    source: *const T,
    n: usize,
    sig_addr: *mut u64,
    signal: u64,
    sig_op: i32,
    pe: i32,
    stream: StreamHandle,
) {
    let (copy, signal) = ((dest, source, n), (sig_addr, signal, sig_op));
    // SAFETY: the caller's promise.
    unsafe { put_with_signal(call, copy, signal, (pe, false), stream) };
}

pub(crate) unsafe fn put_signal_nbi<T: Element>(
    call: &'static str,
    dest: *mut T,
    source: *const T,
    n: usize,
    sig_addr: *mut u64,
    signal: u64,
    sig_op: i32,
    pe: i32,
    stream: StreamHandle,
) {
    let (copy, signal) = ((dest, source, n), (sig_addr, signal, sig_op));
    // SAFETY: the caller's promise.
    unsafe { put_with_signal(call, copy, signal, (pe, true), stream) };
}

pub(crate) unsafe fn signal_op(
    call: &'static str,
    sig_addr: *mut u64,
    signal: u64,
    sig_op: i32,
    pe: i32,
    stream: StreamHandle,
) {
    let queue = |own: &Pe, stream: &Stream| {
        let word: Sym<u64> = own.object("sig_addr", sig_addr.cast_const(), 1)?;
        let (operation, pe) = (signal_operation(sig_op)?, own.pe(pe)?);
        Ok(own
            .world
            .signal_on_stream(word, signal, operation, pe, stream)?)
    };
    // SAFETY: the caller's promise.
    or_end_job(call, unsafe { on_stream(call, stream, queue) });
}

/// The values with which words are compared.
enum Wanted<T> {
    All(T),
    Each(*mut T),
}

/// Queues a wait for words of this PE.
///
/// # Safety
///
/// The status is null, or has a number for each word, and so have values for each; the program leaves them until the wait is over. The
/// stream is the driver's.
unsafe fn wait<T: Element + PartialOrd>(
    call: &'static str,
    (ivars, n): (*mut T, usize),
    status: *const i32,
    (cmp, wanted): (i32, Wanted<T>),
    stream: StreamHandle,
) {
    let queue = |own: &Pe, stream: &Stream| {
        if n == 0 {
            return Ok(());
        }
        let words: Sym<T> = own.object("ivars", ivars.cast_const(), n)?;
        let (value, values) = match wanted {
            Wanted::All(value) => (bits(value), DevicePtr::from_raw(0)),
            Wanted::Each(values) => (0, gpu_pointer(values.cast_const())),
        };
        let awaited = bindings::WordsToAwait {
            words: words.to_bytes(),
            count: n as u64,
            width: size_of::<T>() as u32,
            is_signed: is_signed::<T>(),
            status: gpu_pointer(status),
            values,
            value,
            cmp: comparison(cmp)?,
        };
        // SAFETY: the caller makes the same promise.
        unsafe { bindings::wait_on_stream(&own.world, call, awaited, stream) }?;
        Ok(())
    };
    // SAFETY: the caller makes the same promise.
    or_end_job(call, unsafe { on_stream(call, stream, queue) });
}

pub(crate) unsafe fn signal_wait_until(
    call: &'static str,
    sig_addr: *mut u64,
    cmp: i32,
    cmp_value: u64,
    stream: StreamHandle,
) {
    // SAFETY: the caller's promise.
    unsafe { wait_until(call, sig_addr, cmp, cmp_value, stream) };
}

pub(crate) unsafe fn wait_until<T: Element + PartialOrd>(
    call: &'static str,
    ivar: *mut T,
    cmp: i32,
    cmp_value: T,
    stream: StreamHandle,
) {
    let wanted = (cmp, Wanted::All(cmp_value));
    // SAFETY: the caller's promise.
    unsafe { wait(call, (ivar, 1), std::ptr::null(), wanted, stream) };
}

pub(crate) unsafe fn wait_until_all<T: Element + PartialOrd>(
    call: &'static str,
    ivars: *mut T,
    n: usize,
    status: *const i32,
    cmp: i32,
    cmp_value: T,
    stream: StreamHandle,
) {
    let wanted = (cmp, Wanted::All(cmp_value));
    // SAFETY: the caller's promise.
    unsafe { wait(call, (ivars, n), status, wanted, stream) };
}

pub(crate) unsafe fn wait_until_all_vector<T: Element + PartialOrd>(
    call: &'static str,
    ivars: *mut T,
    n: usize,
    status: *const i32,
    cmp: i32,
    cmp_values: *mut T,
    stream: StreamHandle,
) {
    let wanted = (cmp, Wanted::Each(cmp_values));
    // SAFETY: the caller's promise.
    unsafe { wait(call, (ivars, n), status, wanted, stream) };
}
