//! Copies and memory sets.

use std::ffi::c_void;

use crate::driver;
use crate::error::{Error, Outcome, PER_THREAD, get, set};
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

/// Whether source and destination are a device's, by the copy's kind; `None`: the driver finds out.
fn ends(kind: u32) -> Outcome<(Option<bool>, Option<bool>)> {
    Ok(match kind {
        HOST_TO_HOST => (Some(false), Some(false)),
        HOST_TO_DEVICE => (Some(false), Some(true)),
        DEVICE_TO_HOST => (Some(true), Some(false)),
        DEVICE_TO_DEVICE => (Some(true), Some(true)),
        DEFAULT => (None, None),
        _ => return Err(Error::INVALID_COPY_DIRECTION),
    })
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
    let (from_device, to_device) = ends(kind)?;
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

/// `CUDA_MEMCPY3D`.
#[repr(C)]
pub(crate) struct Planes {
    from: PlaneEnd,
    to: PlaneEnd,
    width: usize,
    height: usize,
    depth: usize,
}

#[repr(C)]
struct PlaneEnd {
    x: usize,
    y: usize,
    z: usize,
    level: usize,
    kind: u32,
    host: u64,
    device: u64,
    array: u64,
    reserved: u64,
    pitch: usize,
    height: usize,
}

/// `cudaPitchedPtr`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Pitched {
    address: u64,
    pitch: usize,
    width: usize,
    height: usize,
}

/// `cudaExtent` and `cudaPos`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Extent {
    width: usize,
    height: usize,
    depth: usize,
}

/// `cudaMemcpy3DParms`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Copy3d {
    from_array: u64,
    from_position: Extent,
    from: Pitched,
    to_array: u64,
    to_position: Extent,
    to: Pitched,
    extent: Extent,
    kind: u32,
}

impl PlaneEnd {
    fn new(at: Pitched, position: Extent, device: Option<bool>) -> PlaneEnd {
        let End {
            kind, host, device, ..
        } = End::new(at.address, at.pitch, device);
        PlaneEnd {
            x: position.width,
            y: position.height,
            z: position.depth,
            level: 0,
            kind,
            host,
            device,
            array: 0,
            reserved: 0,
            pitch: at.pitch,
            height: at.height,
        }
    }
}

impl Copy3d {
    /// The driver's form of a copy.
    pub(crate) fn planes(copy: *const Copy3d) -> Outcome<Planes> {
        if copy.is_null() {
            return Err(Error::INVALID_VALUE);
        }
        // SAFETY: not null, so the runtime's caller vouches for it.
        let copy = unsafe { *copy };
        if copy.from_array != 0 || copy.to_array != 0 {
            eprintln!("softcudart: copies of arrays are not supported by the emulation");
            return Err(Error::NOT_SUPPORTED);
        }
        let (from, to) = ends(copy.kind)?;
        Ok(Planes {
            from: PlaneEnd::new(copy.from, copy.from_position, from),
            to: PlaneEnd::new(copy.to, copy.to_position, to),
            width: copy.extent.width,
            height: copy.extent.height,
            depth: copy.extent.depth,
        })
    }
}

/// The driver's form of a copy of bytes.
pub(crate) fn plane(to: u64, from: u64, bytes: usize, kind: u32) -> Outcome<Planes> {
    let start = Extent {
        width: 0,
        height: 0,
        depth: 0,
    };
    let at = |address| Pitched {
        address,
        pitch: bytes,
        width: bytes,
        height: 1,
    };
    let (from_device, to_device) = ends(kind)?;
    Ok(Planes {
        from: PlaneEnd::new(at(from), start, from_device),
        to: PlaneEnd::new(at(to), start, to_device),
        width: bytes,
        height: 1,
        depth: 1,
    })
}

fn planes(copy: *const Copy3d, stream: Option<u64>) -> Outcome {
    let copy = Copy3d::planes(copy)?;
    primary::ensure()?;
    let copy = (&raw const copy).cast::<c_void>();
    match stream {
        None => driver::cuMemcpy3D_v2(copy),
        Some(stream) => driver::cuMemcpy3DAsync_v2(copy, stream),
    }
}

/// Sets bytes of planes of rows.
fn fill_planes(
    at: Pitched,
    extent: Extent,
    fill: impl Fn(u64, usize, usize) -> Outcome,
) -> Outcome {
    primary::ensure()?;
    if extent.width > at.pitch || (extent.depth > 1 && extent.height > at.height) {
        return Err(Error::INVALID_VALUE);
    }
    (0..extent.depth).try_for_each(|plane| {
        let offset = (at.pitch * at.height * plane) as u64;
        fill(at.address + offset, extent.width, extent.height)
    })
}

/// The address in a variable, if so many bytes are there.
pub(crate) fn inside(symbol: *const c_void, bytes: usize, offset: usize) -> Outcome<u64> {
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

    /// Copies planes of rows.
    fn cudaMemcpy3D(copy: *const Copy3d) {
        planes(copy, None)
    }

    /// Memory for planes of rows.
    fn cudaMalloc3D(out: *mut Pitched, extent: Extent) {
        primary::ensure()?;
        let mut pitch = 0;
        let rows = extent.height.checked_mul(extent.depth).ok_or(Error::INVALID_VALUE)?;
        if out.is_null() {
            return Err(Error::INVALID_VALUE);
        }
        let address = get(|out| driver::cuMemAllocPitch_v2(out, &raw mut pitch, extent.width, rows, 4))?;
        set(out, Pitched { address, pitch, width: extent.width, height: extent.height })
    }

    /// Sets bytes of planes of rows.
    fn cudaMemset3D(at: Pitched, value: i32, extent: Extent) {
        fill_planes(at, extent, |plane, width, height| driver::cuMemsetD2D8_v2(plane, at.pitch, value as u8, width, height))
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

    /// Copies planes of rows in the thread's own stream.
    fn cudaMemcpy3D_ptds(copy: *const Copy3d) {
        own(planes(copy, Some(PER_THREAD)))
    }

    /// Sets bytes of planes of rows in the thread's own stream.
    fn cudaMemset3D_ptds(at: Pitched, value: i32, extent: Extent) {
        fill_planes(at, extent, |plane, width, height| {
            driver::cuMemsetD2D8Async(plane, at.pitch, value as u8, width, height, PER_THREAD)
        })
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

    /// Copies planes of rows in a stream.
    fn cudaMemcpy3DAsync, cudaMemcpy3DAsync_ptsz(copy: *const Copy3d; stream) {
        planes(copy, Some(stream))
    }

    /// Sets bytes of planes of rows in a stream.
    fn cudaMemset3DAsync, cudaMemset3DAsync_ptsz(at: Pitched, value: i32, extent: Extent; stream) {
        fill_planes(at, extent, |plane, width, height| {
            driver::cuMemsetD2D8Async(plane, at.pitch, value as u8, width, height, stream)
        })
    }

    /// Sets bytes of rows in a stream.
    fn cudaMemset2DAsync, cudaMemset2DAsync_ptsz(at: u64, pitch: usize, value: i32, width: usize, height: usize; stream) {
        primary::ensure()?;
        driver::cuMemsetD2D8Async(at, pitch, value as u8, width, height, stream)
    }
}
