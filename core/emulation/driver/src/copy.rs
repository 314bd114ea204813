//! Copies between any two addresses, of bytes or of rows.
//!
//! A copy is synchronous if the driver's documentation says so: see [`give`].

use std::sync::Arc;

use crate::call::{In, Outcome};
use crate::code::Code;
use crate::context::{Context, by_handle, current};
use crate::driver::{driver, running};
use crate::memory::{Found, Place, Want};
use crate::race;
use crate::stream::{Stream, Work, stream};
use crate::sync::read;

/// Rows of bytes; a plain copy is one row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rows {
    pub(crate) width: u64,
    pub(crate) height: u64,
    pub(crate) to_pitch: u64,
    pub(crate) from_pitch: u64,
}

impl Rows {
    pub(crate) fn one(length: usize) -> Rows {
        let length = length as u64;
        Rows {
            width: length,
            height: 1,
            to_pitch: length,
            from_pitch: length,
        }
    }

    fn is_empty(&self) -> bool {
        self.width == 0 || self.height == 0
    }

    /// Bytes from the first to the last, with a pitch.
    pub(crate) fn extent(&self, pitch: u64) -> Outcome<u64> {
        (self.height - 1)
            .checked_mul(pitch)
            .and_then(|bytes| bytes.checked_add(self.width))
            .ok_or(Code::INVALID_VALUE)
    }
}

/// The kind of memory that a call names for one end of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Host,
    Device,
    /// The driver finds out.
    Either,
}

impl End {
    fn fits(self, place: Place) -> bool {
        match self {
            End::Either => true,
            // Page-locked memory is device memory too: devices see it at its address.
            End::Device => place != Place::Pageable,
            End::Host => place != Place::Device,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Copy {
    to: u64,
    from: u64,
    rows: Rows,
}

fn find_both(copy: &Copy, context: &Context, running_now: bool) -> Outcome<(Found, Found)> {
    let driver = if running_now { running()? } else { driver()? };
    let memory = read(&driver.memory);
    let want = |write| Want {
        context,
        write,
        direct: false,
    };
    let to = memory.find(copy.to, copy.rows.extent(copy.rows.to_pitch)?, want(true))?;
    let from = memory.find(
        copy.from,
        copy.rows.extent(copy.rows.from_pitch)?,
        want(false),
    )?;
    Ok((to, from))
}

/// Copies one row. Words that fit a register are moved whole, as a copy engine does.
///
/// # Safety
/// Both ends are valid for `length` bytes. Others may use them at the same time, as on a device.
unsafe fn move_row(to: *mut u8, from: *const u8, length: usize) {
    let aligned =
        |size: usize| length == size && (to as usize | from as usize).is_multiple_of(size);
    // SAFETY: the caller's promise; aligned as checked just now.
    unsafe {
        if aligned(8) {
            to.cast::<u64>()
                .write_volatile(from.cast::<u64>().read_volatile());
        } else if aligned(4) {
            to.cast::<u32>()
                .write_volatile(from.cast::<u32>().read_volatile());
        } else {
            std::ptr::copy(from, to, length);
        }
    }
}

/// Copies the bytes that are at its addresses now.
fn run(copy: &Copy, context: &Context) -> Outcome {
    let memory = read(&running()?.memory);
    let want = |write| Want {
        context,
        write,
        direct: false,
    };
    let rows = copy.rows;
    let gone = |_| Code::ILLEGAL_ADDRESS;
    let to = memory
        .find(copy.to, rows.extent(rows.to_pitch)?, want(true))
        .map_err(gone)?;
    let from = memory
        .find(copy.from, rows.extent(rows.from_pitch)?, want(false))
        .map_err(gone)?;
    for row in 0..rows.height {
        let ends = [
            (&to, copy.to + row * rows.to_pitch, true),
            (&from, copy.from + row * rows.from_pitch, false),
        ];
        for (found, at, writes) in ends {
            found.accessed(at, rows.width, writes, race::COPY);
        }
        // SAFETY: the memory is held for reading, so both ranges stay mapped; pageable ones are
        // vouched for by the caller of the driver until the copy is done.
        unsafe {
            move_row(
                to.bytes.add((row * rows.to_pitch) as usize),
                from.bytes.add((row * rows.from_pitch) as usize),
                rows.width as usize,
            );
        }
    }
    Ok(())
}

/// Reads pageable rows into one buffer.
fn snapshot(copy: &Copy) -> Arc<Vec<u8>> {
    let rows = copy.rows;
    let mut bytes = vec![0u8; (rows.width * rows.height) as usize];
    for (row, chunk) in bytes.chunks_exact_mut(rows.width as usize).enumerate() {
        let from = (copy.from + row as u64 * rows.from_pitch) as *const u8;
        // SAFETY: the caller of the driver vouches for its own memory while the call runs.
        unsafe { from.copy_to_nonoverlapping(chunk.as_mut_ptr(), chunk.len()) };
    }
    Arc::new(bytes)
}

/// Gives a copy to a stream.
///
/// * From pageable memory to a device: the source is read before the call returns; the bytes
///   arrive later, also where the call is a synchronous one.
/// * To pageable memory: the call returns when all bytes have arrived.
/// * Else an asynchronous call returns at once, and a synchronous one when all bytes have arrived.
///   From device to device a copy is always asynchronous (unless `SYNC_MEMOPS` is set).
fn give(stream: &Arc<Stream>, copy: Copy, ends: (End, End), synchronous: bool) -> Outcome {
    if copy.rows.is_empty() {
        return Ok(());
    }
    if copy.rows.height > 1
        && (copy.rows.to_pitch < copy.rows.width || copy.rows.from_pitch < copy.rows.width)
    {
        return Err(Code::INVALID_VALUE);
    }
    let (to, from) = find_both(&copy, &stream.context, false)?;
    if !ends.0.fits(to.place) || !ends.1.fits(from.place) {
        return Err(Code::INVALID_VALUE);
    }
    let capturing = stream.capturing().is_some();
    if capturing && synchronous {
        return stream.refuse_while_capturing();
    }
    if from.place == Place::Pageable && to.place == Place::Device && !capturing {
        if synchronous {
            // Earlier work may be about to write the source.
            stream.finish(stream.give(Arc::new(|_| Ok(())))?)?;
        }
        let bytes = snapshot(&copy);
        let ticket = stream.give(Arc::new(move |context| {
            let rows = Rows {
                from_pitch: copy.rows.width,
                ..copy.rows
            };
            run(
                &Copy {
                    from: bytes.as_ptr() as u64,
                    rows,
                    ..copy
                },
                context,
            )
        }))?;
        return if synchronous && to.sync_memops {
            stream.finish(ticket)
        } else {
            Ok(())
        };
    }
    let ticket = stream.give(Arc::new(move |context| run(&copy, context)))?;
    let between_devices = to.place == Place::Device && from.place == Place::Device;
    let waits = if synchronous {
        !between_devices || to.sync_memops || from.sync_memops
    } else {
        to.place == Place::Pageable && !capturing
    };
    if waits { stream.finish(ticket) } else { Ok(()) }
}

fn synchronous(copy: Copy, ends: (End, End)) -> Outcome {
    let context = current()?;
    crate::graph::refuse_unsafe()?;
    give(&context.legacy_stream()?, copy, ends, true)
}

fn asynchronous(copy: Copy, ends: (End, End), handle: u64) -> Outcome {
    current()?;
    give(&stream(handle)?, copy, ends, false)
}

fn plain(to: u64, from: u64, length: usize) -> Copy {
    Copy {
        to,
        from,
        rows: Rows::one(length),
    }
}

/// `CUDA_MEMCPY2D`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copy2d {
    from: End2d,
    to: End2d,
    width: usize,
    height: usize,
}

/// One end of a `CUDA_MEMCPY2D`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct End2d {
    x: usize,
    y: usize,
    kind: u32,
    host: u64,
    device: u64,
    array: u64,
    pitch: usize,
}

const _: () = assert!(size_of::<Copy2d>() == 128);

impl End2d {
    fn place(&self) -> Outcome<(u64, End)> {
        let (base, end) = match self.kind {
            1 => (self.host, End::Host),
            2 => (self.device, End::Device),
            // Arrays are not supported.
            3 => return Err(Code::NOT_SUPPORTED),
            4 => (self.device, End::Either),
            _ => return Err(Code::INVALID_VALUE),
        };
        let offset = self
            .y
            .checked_mul(self.pitch)
            .and_then(|bytes| bytes.checked_add(self.x));
        let address = offset.and_then(|offset| base.checked_add(offset as u64));
        Ok((address.ok_or(Code::INVALID_VALUE)?, end))
    }
}

impl Copy2d {
    fn plain(&self) -> Outcome<(Copy, (End, End))> {
        let (to, to_end) = self.to.place()?;
        let (from, from_end) = self.from.place()?;
        let pitch = |end: &End2d| if end.pitch == 0 { self.width } else { end.pitch } as u64;
        let rows = Rows {
            width: self.width as u64,
            height: self.height as u64,
            to_pitch: pitch(&self.to),
            from_pitch: pitch(&self.from),
        };
        Ok((Copy { to, from, rows }, (to_end, from_end)))
    }
}

/// `CUDA_MEMCPY3D`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copy3d {
    from: End3d,
    to: End3d,
    width: usize,
    height: usize,
    depth: usize,
}

/// One end of a `CUDA_MEMCPY3D`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct End3d {
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
    /// Rows of a plane.
    height: usize,
}

const _: () = assert!(size_of::<Copy3d>() == 200);

impl End3d {
    /// This end of the copy of a plane.
    fn plane(&self, z: usize) -> Outcome<End2d> {
        let rows = (self.z + z).checked_mul(self.height);
        Ok(End2d {
            x: self.x,
            y: rows
                .and_then(|rows| rows.checked_add(self.y))
                .ok_or(Code::INVALID_VALUE)?,
            kind: self.kind,
            host: self.host,
            device: self.device,
            array: self.array,
            pitch: self.pitch,
        })
    }
}

impl Copy3d {
    /// The copies of its planes.
    fn planes(&self) -> Outcome<Vec<(Copy, (End, End))>> {
        let short = |end: &End3d| self.depth > 1 && end.height < self.height;
        if short(&self.from) || short(&self.to) {
            return Err(Code::INVALID_VALUE);
        }
        let plane = |z| {
            Copy2d {
                from: self.from.plane(z)?,
                to: self.to.plane(z)?,
                width: self.width,
                height: self.height,
            }
            .plain()
        };
        (0..self.depth).map(plane).collect()
    }

    /// The copy as work of a graph.
    pub(crate) fn work(&self, context: &Context) -> Outcome<Work> {
        let mut planes = Vec::new();
        for (copy, ends) in self.planes()? {
            if copy.rows.is_empty() {
                continue;
            }
            let (to, from) = find_both(&copy, context, false)?;
            if !ends.0.fits(to.place) || !ends.1.fits(from.place) {
                return Err(Code::INVALID_VALUE);
            }
            planes.push(copy);
        }
        Ok(Arc::new(move |context| {
            planes.iter().try_for_each(|copy| run(copy, context))
        }))
    }
}

driver_calls! {
    /// Copies between any two addresses.
    fn cuMemcpy(to: u64, from: u64, length: usize) {
        synchronous(plain(to, from, length), (End::Either, End::Either))
    }

    /// Copies between any two addresses.
    fn cuMemcpyAsync(to: u64, from: u64, length: usize, handle: u64) {
        asynchronous(plain(to, from, length), (End::Either, End::Either), handle)
    }

    /// Copies from host to device.
    fn cuMemcpyHtoD_v2(to: u64, from: u64, length: usize) {
        synchronous(plain(to, from, length), (End::Device, End::Host))
    }

    /// Copies from host to device.
    fn cuMemcpyHtoDAsync_v2(to: u64, from: u64, length: usize, handle: u64) {
        asynchronous(plain(to, from, length), (End::Device, End::Host), handle)
    }

    /// Copies from device to host.
    fn cuMemcpyDtoH_v2(to: u64, from: u64, length: usize) {
        synchronous(plain(to, from, length), (End::Host, End::Device))
    }

    /// Copies from device to host.
    fn cuMemcpyDtoHAsync_v2(to: u64, from: u64, length: usize, handle: u64) {
        asynchronous(plain(to, from, length), (End::Host, End::Device), handle)
    }

    /// Copies from device to device; returns before it is done.
    fn cuMemcpyDtoD_v2(to: u64, from: u64, length: usize) {
        synchronous(plain(to, from, length), (End::Device, End::Device))
    }

    /// Copies from device to device.
    fn cuMemcpyDtoDAsync_v2(to: u64, from: u64, length: usize, handle: u64) {
        asynchronous(plain(to, from, length), (End::Device, End::Device), handle)
    }

    /// Copies between devices, in the order of both.
    fn cuMemcpyPeer(to: u64, to_context: u64, from: u64, from_context: u64, length: usize) {
        by_handle(to_context)?.synchronize()?;
        by_handle(from_context)?.synchronize()?;
        synchronous(plain(to, from, length), (End::Device, End::Device))
    }

    /// Copies between devices.
    fn cuMemcpyPeerAsync(
        to: u64,
        to_context: u64,
        from: u64,
        from_context: u64,
        length: usize,
        handle: u64,
    ) {
        by_handle(to_context)?;
        by_handle(from_context)?;
        asynchronous(plain(to, from, length), (End::Device, End::Device), handle)
    }

    /// Copies rows.
    fn cuMemcpy2D_v2(copy: In<Copy2d>) {
        let (copy, ends) = copy.get()?.plain()?;
        synchronous(copy, ends)
    }

    /// Copies rows, aligned or not.
    fn cuMemcpy2DUnaligned_v2(copy: In<Copy2d>) {
        let (copy, ends) = copy.get()?.plain()?;
        synchronous(copy, ends)
    }

    /// Copies rows.
    fn cuMemcpy2DAsync_v2(copy: In<Copy2d>, handle: u64) {
        let (copy, ends) = copy.get()?.plain()?;
        asynchronous(copy, ends, handle)
    }

    /// Copies planes of rows.
    fn cuMemcpy3D_v2(copy: In<Copy3d>) {
        for (copy, ends) in copy.get()?.planes()? {
            synchronous(copy, ends)?;
        }
        Ok(())
    }

    /// Copies planes of rows.
    fn cuMemcpy3DAsync_v2(copy: In<Copy3d>, handle: u64) {
        for (copy, ends) in copy.get()?.planes()? {
            asynchronous(copy, ends, handle)?;
        }
        Ok(())
    }
}
