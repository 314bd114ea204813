//! Copies and memory sets.

use std::ffi::c_void;

use crate::driver;
use crate::error::{Error, Outcome, PER_THREAD};
use crate::primary;
use crate::register::variable;

/// `cudaMemcpyKind`.
const HOST_TO_HOST: u32 = 0;
const HOST_TO_DEVICE: u32 = 1;
const DEVICE_TO_HOST: u32 = 2;
const DEVICE_TO_DEVICE: u32 = 3;
const DEFAULT: u32 = 4;

/// Copies; `stream`: without it the call waits as its kind says.
fn copy(to: u64, from: u64, bytes: usize, kind: u32, stream: Option<u64>) -> Outcome {
    primary::ensure()?;
    if bytes == 0 {
        return Ok(());
    }
    match (kind, stream) {
        (HOST_TO_HOST | DEFAULT, None) => driver::cuMemcpy(to, from, bytes),
        (HOST_TO_HOST | DEFAULT, Some(stream)) => driver::cuMemcpyAsync(to, from, bytes, stream),
        (HOST_TO_DEVICE, None) => driver::cuMemcpyHtoD_v2(to, from, bytes),
        (HOST_TO_DEVICE, Some(stream)) => driver::cuMemcpyHtoDAsync_v2(to, from, bytes, stream),
        (DEVICE_TO_HOST, None) => driver::cuMemcpyDtoH_v2(to, from, bytes),
        (DEVICE_TO_HOST, Some(stream)) => driver::cuMemcpyDtoHAsync_v2(to, from, bytes, stream),
        (DEVICE_TO_DEVICE, None) => driver::cuMemcpyDtoD_v2(to, from, bytes),
        (DEVICE_TO_DEVICE, Some(stream)) => driver::cuMemcpyDtoDAsync_v2(to, from, bytes, stream),
        _ => Err(Error::INVALID_COPY_DIRECTION),
    }
}

/// `CUDA_MEMCPY2D`.
#[repr(C)]
struct Rows {
    from: End,
    to: End,
    width: usize,
    height: usize,
}

#[repr(C)]
struct End {
    x: usize,
    y: usize,
    kind: u32,
    host: u64,
    device: u64,
    array: u64,
    pitch: usize,
}

impl End {
    /// `device`: whether the address is of a device; `None`: the driver finds out.
    fn new(address: u64, pitch: usize, device: Option<bool>) -> End {
        let kind = device.map_or(4, |device| if device { 2 } else { 1 });
        End {
            x: 0,
            y: 0,
            kind,
            host: address,
            device: address,
            array: 0,
            pitch,
        }
    }
}

fn rows(
    to: (u64, usize),
    from: (u64, usize),
    extent: (usize, usize),
    kind: u32,
    stream: Option<u64>,
) -> Outcome {
    primary::ensure()?;
    let (width, height) = extent;
    if width > to.1 || width > from.1 {
        return Err(Error::INVALID_VALUE);
    }
    if width == 0 || height == 0 {
        return Ok(());
    }
    let (from_device, to_device) = match kind {
        HOST_TO_HOST => (Some(false), Some(false)),
        HOST_TO_DEVICE => (Some(false), Some(true)),
        DEVICE_TO_HOST => (Some(true), Some(false)),
        DEVICE_TO_DEVICE => (Some(true), Some(true)),
        DEFAULT => (None, None),
        _ => return Err(Error::INVALID_COPY_DIRECTION),
    };
    let copy = Rows {
        from: End::new(from.0, from.1, from_device),
        to: End::new(to.0, to.1, to_device),
        width,
        height,
    };
    let copy = (&raw const copy).cast::<c_void>();
    match stream {
        None => driver::cuMemcpy2D_v2(copy),
        Some(stream) => driver::cuMemcpy2DAsync_v2(copy, stream),
    }
}

/// The address in a variable, if so many bytes are there.
fn inside(symbol: *const c_void, bytes: usize, offset: usize) -> Outcome<u64> {
    let (address, size) = variable(symbol)?;
    match offset.checked_add(bytes) {
        Some(end) if end <= size => Ok(address + offset as u64),
        _ => Err(Error::INVALID_VALUE),
    }
}

fn to_symbol(
    symbol: *const c_void,
    from: u64,
    bytes: usize,
    offset: usize,
    kind: u32,
    stream: Option<u64>,
) -> Outcome {
    if !matches!(kind, HOST_TO_DEVICE | DEVICE_TO_DEVICE | DEFAULT) {
        return Err(Error::INVALID_COPY_DIRECTION);
    }
    copy(inside(symbol, bytes, offset)?, from, bytes, kind, stream)
}

fn from_symbol(
    to: u64,
    symbol: *const c_void,
    bytes: usize,
    offset: usize,
    kind: u32,
    stream: Option<u64>,
) -> Outcome {
    if !matches!(kind, DEVICE_TO_HOST | DEVICE_TO_DEVICE | DEFAULT) {
        return Err(Error::INVALID_COPY_DIRECTION);
    }
    copy(to, inside(symbol, bytes, offset)?, bytes, kind, stream)
}

runtime_calls! {
    /// Copies bytes.
    fn cudaMemcpy(to: u64, from: u64, bytes: usize, kind: u32) {
        copy(to, from, bytes, kind, None)
    }

    /// Copies bytes to another device.
    fn cudaMemcpyPeer(to: u64, to_device: i32, from: u64, from_device: i32, bytes: usize) {
        primary::ensure()?;
        driver::cuMemcpyPeer(to, primary::of(to_device)?, from, primary::of(from_device)?, bytes)
    }

    /// Copies rows.
    fn cudaMemcpy2D(to: u64, to_pitch: usize, from: u64, from_pitch: usize, width: usize, height: usize, kind: u32) {
        rows((to, to_pitch), (from, from_pitch), (width, height), kind, None)
    }

    /// Copies to a variable.
    fn cudaMemcpyToSymbol(symbol: *const c_void, from: u64, bytes: usize, offset: usize, kind: u32) {
        to_symbol(symbol, from, bytes, offset, kind, None)
    }

    /// Copies from a variable.
    fn cudaMemcpyFromSymbol(to: u64, symbol: *const c_void, bytes: usize, offset: usize, kind: u32) {
        from_symbol(to, symbol, bytes, offset, kind, None)
    }

    /// Sets bytes.
    fn cudaMemset(at: u64, value: i32, count: usize) {
        primary::ensure()?;
        if count == 0 { Ok(()) } else { driver::cuMemsetD8_v2(at, value as u8, count) }
    }

    /// Sets bytes of rows.
    fn cudaMemset2D(at: u64, pitch: usize, value: i32, width: usize, height: usize) {
        primary::ensure()?;
        driver::cuMemsetD2D8_v2(at, pitch, value as u8, width, height)
    }
}

/// Waits for the thread's own stream, in which a call that waits has given its work.
fn own(given: Outcome) -> Outcome {
    given?;
    driver::cuStreamSynchronize(PER_THREAD)
}

fn set_bytes(at: u64, value: i32, count: usize, stream: u64) -> Outcome {
    primary::ensure()?;
    if count == 0 {
        return Ok(());
    }
    driver::cuMemsetD8Async(at, value as u8, count, stream)
}

// The same calls for programs in which stream 0 is the thread's own: they wait for nothing in other streams.
runtime_calls! {
    /// Copies bytes in the thread's own stream.
    fn cudaMemcpy_ptds(to: u64, from: u64, bytes: usize, kind: u32) {
        own(copy(to, from, bytes, kind, Some(PER_THREAD)))
    }

    /// Copies rows in the thread's own stream.
    fn cudaMemcpy2D_ptds(to: u64, to_pitch: usize, from: u64, from_pitch: usize, width: usize, height: usize, kind: u32) {
        own(rows((to, to_pitch), (from, from_pitch), (width, height), kind, Some(PER_THREAD)))
    }

    /// Copies to a variable in the thread's own stream.
    fn cudaMemcpyToSymbol_ptds(symbol: *const c_void, from: u64, bytes: usize, offset: usize, kind: u32) {
        own(to_symbol(symbol, from, bytes, offset, kind, Some(PER_THREAD)))
    }

    /// Copies from a variable in the thread's own stream.
    fn cudaMemcpyFromSymbol_ptds(to: u64, symbol: *const c_void, bytes: usize, offset: usize, kind: u32) {
        own(from_symbol(to, symbol, bytes, offset, kind, Some(PER_THREAD)))
    }

    /// Sets bytes in the thread's own stream.
    fn cudaMemset_ptds(at: u64, value: i32, count: usize) {
        set_bytes(at, value, count, PER_THREAD)
    }

    /// Sets bytes of rows in the thread's own stream.
    fn cudaMemset2D_ptds(at: u64, pitch: usize, value: i32, width: usize, height: usize) {
        primary::ensure()?;
        driver::cuMemsetD2D8Async(at, pitch, value as u8, width, height, PER_THREAD)
    }
}

stream_calls! {
    /// Copies bytes in a stream.
    fn cudaMemcpyAsync, cudaMemcpyAsync_ptsz(to: u64, from: u64, bytes: usize, kind: u32; stream) {
        copy(to, from, bytes, kind, Some(stream))
    }

    /// Copies bytes to another device, in a stream.
    fn cudaMemcpyPeerAsync, cudaMemcpyPeerAsync_ptsz(
        to: u64, to_device: i32, from: u64, from_device: i32, bytes: usize; stream
    ) {
        primary::ensure()?;
        driver::cuMemcpyPeerAsync(to, primary::of(to_device)?, from, primary::of(from_device)?, bytes, stream)
    }

    /// Copies rows in a stream.
    fn cudaMemcpy2DAsync, cudaMemcpy2DAsync_ptsz(
        to: u64, to_pitch: usize, from: u64, from_pitch: usize, width: usize, height: usize, kind: u32; stream
    ) {
        rows((to, to_pitch), (from, from_pitch), (width, height), kind, Some(stream))
    }

    /// Copies to a variable in a stream.
    fn cudaMemcpyToSymbolAsync, cudaMemcpyToSymbolAsync_ptsz(
        symbol: *const c_void, from: u64, bytes: usize, offset: usize, kind: u32; stream
    ) {
        to_symbol(symbol, from, bytes, offset, kind, Some(stream))
    }

    /// Copies from a variable in a stream.
    fn cudaMemcpyFromSymbolAsync, cudaMemcpyFromSymbolAsync_ptsz(
        to: u64, symbol: *const c_void, bytes: usize, offset: usize, kind: u32; stream
    ) {
        from_symbol(to, symbol, bytes, offset, kind, Some(stream))
    }

    /// Sets bytes in a stream.
    fn cudaMemsetAsync, cudaMemsetAsync_ptsz(at: u64, value: i32, count: usize; stream) {
        set_bytes(at, value, count, stream)
    }

    /// Sets bytes of rows in a stream.
    fn cudaMemset2DAsync, cudaMemset2DAsync_ptsz(at: u64, pitch: usize, value: i32, width: usize, height: usize; stream) {
        primary::ensure()?;
        driver::cuMemsetD2D8Async(at, pitch, value as u8, width, height, stream)
    }
}
