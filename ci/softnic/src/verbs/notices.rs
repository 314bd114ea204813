//! Asynchronous events.

use std::ffi::c_int;
use std::ptr::null_mut;

use crate::abi::sys::{ibv_async_event, ibv_async_event__bindgen_ty_1 as Object, ibv_context};
use crate::object::returned;
use crate::verbs::completions::CompletionQueue;
use crate::verbs::context::{locked, opened};
use crate::verbs::pairs::QueuePair;
use crate::verbs::receives::SharedQueue;
use crate::world::World;

/// The object of an event, which then waits for its acknowledgement; `None` if it was destroyed.
fn object(world: &World, tag: u64, id: u64) -> Option<Object> {
    Some(match tag {
        1 => Object {
            port_num: id as c_int,
        },
        2 => {
            let pair = world.pairs.get(&(id as u32))?;
            let raw = *world.pointers.get(&(id as u32))?;
            pair.events.give();
            Object {
                qp: std::ptr::with_exposed_provenance_mut(raw),
            }
        }
        3 => {
            let found = world.completions.get(&id)?;
            found.queue.events.give();
            Object {
                cq: std::ptr::with_exposed_provenance_mut(found.raw),
            }
        }
        4 => {
            let found = world.shared.get(&id)?;
            found.events.give();
            Object {
                srq: std::ptr::with_exposed_provenance_mut(found.raw),
            }
        }
        _ => Object { qp: null_mut() },
    })
}

/// # Safety
///
/// The context is open, the event is written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_get_async_event(
    context: *mut ibv_context,
    event: *mut ibv_async_event,
) -> c_int {
    let code = returned("ibv_get_async_event", || {
        // SAFETY: the caller's promise.
        let pipe = &unsafe { opened(context) }.events;
        loop {
            let (first, id) = pipe.receive().ok_or(libc::EAGAIN)?;
            let world = locked()?;
            let Some(element) = object(&world, first >> 32, id) else {
                continue;
            };
            let written = ibv_async_event {
                element,
                event_type: first as u32,
            };
            // SAFETY: the caller's promise.
            unsafe { event.write(written) };
            return Ok(());
        }
    });
    if code == 0 { 0 } else { -1 }
}

/// # Safety
///
/// The event was got, and is acknowledged once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_ack_async_event(event: *mut ibv_async_event) {
    // SAFETY: the caller's promise.
    let event = unsafe { event.read() };
    // SAFETY: by the event's kind the object is one of these, which waits for this call before it is destroyed.
    unsafe {
        match event.event_type {
            0 => CompletionQueue::of(event.element.cq)
                .inner
                .events
                .acknowledge(1),
            1..=7 | 16 => QueuePair::of(event.element.qp).inner.events.acknowledge(1),
            14 | 15 => SharedQueue::of(event.element.srq)
                .inner
                .events
                .acknowledge(1),
            _ => {}
        }
    }
}
