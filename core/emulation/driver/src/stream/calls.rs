//! The driver's calls on streams.

use super::{Kind, Stream, stream};
use crate::call::{Out, Outcome};
use crate::code::Code;
use crate::context::current;
use crate::driver::driver;
use crate::sync::lock;

/// `CU_STREAM_NON_BLOCKING`.
const NON_BLOCKING: u32 = 1;

fn create(out: Out<u64>, flags: u32, priority: i32) -> Outcome {
    let context = current()?;
    out.check()?;
    let kind = match flags {
        0 => Kind::Blocking,
        NON_BLOCKING => Kind::NonBlocking,
        _ => return Err(Code::INVALID_VALUE),
    };
    let stream = Stream::start(&context, kind, priority)?;
    let mut streams = lock(&context.streams);
    context.drop_spent_streams(&mut streams);
    streams.push(stream.clone());
    drop(streams);
    let handle = stream.handle;
    lock(&driver()?.streams).insert(handle, stream);
    out.set(handle)
}

driver_calls! {
    /// Makes a stream.
    fn cuStreamCreate(out: Out<u64>, flags: u32) {
        create(out, flags, 0)
    }

    /// Makes a stream with a priority, which changes nothing here.
    fn cuStreamCreateWithPriority(out: Out<u64>, flags: u32, priority: i32) {
        create(out, flags, priority)
    }

    /// Destroys a stream; its queued work is still done.
    fn cuStreamDestroy_v2(handle: u64) {
        let stream = lock(&driver()?.streams).remove(&handle).ok_or(Code::INVALID_HANDLE)?;
        if let Some(membership) = lock(&stream.capture).take() {
            membership.invalidate();
        }
        stream.close();
        let context = &stream.context;
        context.drop_spent_streams(&mut lock(&context.streams));
        Ok(())
    }

    /// Waits for all work of the stream.
    fn cuStreamSynchronize(handle: u64) {
        let stream = stream(handle)?;
        stream.refuse_while_capturing()?;
        if stream.is_legacy() {
            // The default stream has waited for the blocking ones when an empty task is done.
            return stream.give_and_finish(std::sync::Arc::new(|_| Ok(())));
        }
        stream.finish(stream.given())
    }

    /// Whether the stream has done all its work.
    fn cuStreamQuery(handle: u64) {
        let stream = stream(handle)?;
        stream.refuse_while_capturing()?;
        if stream.is_idle() { stream.context.check() } else { Err(Code::NOT_READY) }
    }

    /// The stream's priority.
    fn cuStreamGetPriority(handle: u64, out: Out<i32>) {
        out.set(stream(handle)?.priority)
    }

    /// The flags that the stream was created with.
    fn cuStreamGetFlags(handle: u64, out: Out<u32>) {
        out.set(u32::from(stream(handle)?.kind == Kind::NonBlocking))
    }

    /// A number that no other stream has.
    fn cuStreamGetId(handle: u64, out: Out<u64>) {
        out.set(stream(handle)?.handle)
    }

    /// The stream's context.
    fn cuStreamGetCtx(handle: u64, out: Out<u64>) {
        out.set(stream(handle)?.context.handle)
    }

    /// The ordinal of the stream's device.
    fn cuStreamGetDevice(handle: u64, out: Out<i32>) {
        out.set(stream(handle)?.context.ordinal as i32)
    }
}
