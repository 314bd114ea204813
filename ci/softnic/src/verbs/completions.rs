//! Completion queues and the channels that wake programs for them.

use std::ffi::{c_int, c_uint, c_void};
use std::sync::Arc;

use crate::abi::sys::{ibv_comp_channel, ibv_context, ibv_cq};
use crate::completion::Queue;
use crate::counters::COUNTERS;
use crate::events::Pipe;
use crate::object::{Handle, created, returned};
use crate::verbs::context::{locked, opened};
use crate::world::Completions;

type Channel = Handle<ibv_comp_channel, Arc<Pipe>>;
/// A completion queue.
pub(crate) type CompletionQueue = Handle<ibv_cq, Arc<Queue>>;

/// # Safety
///
/// The context is open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_create_comp_channel(
    context: *mut ibv_context,
) -> *mut ibv_comp_channel {
    created("ibv_create_comp_channel", || {
        let pipe = Arc::new(Pipe::new()?);
        let raw = ibv_comp_channel {
            context,
            fd: pipe.descriptor(),
            refcnt: 0,
        };
        Ok(Channel::create(raw, pipe))
    })
}

/// # Safety
///
/// The channel lives, and is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_destroy_comp_channel(channel: *mut ibv_comp_channel) -> c_int {
    returned("ibv_destroy_comp_channel", || {
        // SAFETY: the caller's promise.
        let shared = Arc::strong_count(unsafe { &Channel::of(channel).inner });
        if shared > 1 {
            return Err(libc::EBUSY);
        }
        // SAFETY: freed once.
        unsafe { Channel::end(channel) };
        Ok(())
    })
}

/// # Safety
///
/// The context is open, the channel is null or lives.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_create_cq(
    context: *mut ibv_context,
    entries: c_int,
    program: *mut c_void,
    channel: *mut ibv_comp_channel,
    vector: c_int,
) -> *mut ibv_cq {
    created("ibv_create_cq", || {
        // SAFETY: the caller's promise.
        let (opened, vectors) = unsafe { (opened(context), (*context).num_comp_vectors) };
        let mut world = locked()?;
        let profile = &world.devices[opened.device].profile;
        let most = profile.max_cqe.min(c_int::MAX as u32) as c_int;
        let fits = (1..=most).contains(&entries) && (0..vectors).contains(&vector);
        let queues = profile.max_cq as usize;
        let patience = profile.poll;
        if !fits {
            return Err(libc::EINVAL);
        }
        let of_card = world
            .completions
            .values()
            .filter(|one| one.card == opened.card);
        if of_card.count() >= queues {
            return Err(libc::ENOMEM);
        }
        let pipe = match channel.is_null() {
            true => None,
            // SAFETY: the caller's promise.
            false => Some(Arc::clone(unsafe { &Channel::of(channel).inner })),
        };
        if pipe.is_some() {
            COUNTERS.newest_vector.set(vector as u64);
        }
        let id = world.fresh();
        let queue = Arc::new(Queue::new(
            id,
            entries as usize,
            pipe,
            Arc::clone(&opened.clock),
            patience,
        ));
        let raw = ibv_cq {
            context,
            channel,
            cq_context: program,
            handle: id as u32,
            cqe: entries,
            mutex: libc::PTHREAD_MUTEX_INITIALIZER,
            cond: libc::PTHREAD_COND_INITIALIZER,
            comp_events_completed: 0,
            async_events_completed: 0,
        };
        let raw = CompletionQueue::create(raw, Arc::clone(&queue));
        let entry = Completions {
            raw: raw.expose_provenance(),
            card: opened.card,
            queue,
        };
        world.completions.insert(id, entry);
        Ok(raw)
    })
}

/// # Safety
///
/// The queue lives; nobody else changes its size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_resize_cq(queue: *mut ibv_cq, entries: c_int) -> c_int {
    returned("ibv_resize_cq", || {
        // SAFETY: the caller's promise.
        let (inner, opened) =
            unsafe { (&CompletionQueue::of(queue).inner, opened((*queue).context)) };
        let world = locked()?;
        let profile = &world.devices[opened.device].profile;
        if !profile.resize_cq {
            return Err(libc::EOPNOTSUPP);
        }
        let most = profile.max_cqe.min(c_int::MAX as u32) as c_int;
        if !(1..=most).contains(&entries) || !inner.resize(entries as usize) {
            return Err(libc::EINVAL);
        }
        // SAFETY: the caller's promise; only programs read it.
        unsafe { (*queue).cqe = entries };
        Ok(())
    })
}

/// # Safety
///
/// The queue lives, and is not used any more. Waits until its events are acknowledged.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_destroy_cq(queue: *mut ibv_cq) -> c_int {
    returned("ibv_destroy_cq", || {
        // SAFETY: the caller's promise.
        let inner = Arc::clone(unsafe { &CompletionQueue::of(queue).inner });
        let mut world = locked()?;
        let used = world.pairs.values().any(|pair| {
            Arc::ptr_eq(&pair.send_completions, &inner)
                || Arc::ptr_eq(&pair.receive_completions, &inner)
        });
        if used {
            return Err(libc::EBUSY);
        }
        world.completions.remove(&inner.id);
        drop(world);
        inner.events.wait();
        inner.notifications.wait();
        // SAFETY: freed once.
        unsafe { CompletionQueue::end(queue) };
        Ok(())
    })
}

/// # Safety
///
/// The channel lives, the two pointers are written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_get_cq_event(
    channel: *mut ibv_comp_channel,
    queue: *mut *mut ibv_cq,
    program: *mut *mut c_void,
) -> c_int {
    let code = returned("ibv_get_cq_event", || {
        // SAFETY: the caller's promise.
        let pipe = unsafe { &Channel::of(channel).inner };
        loop {
            let (id, _) = pipe.receive().ok_or(libc::EAGAIN)?;
            let world = locked()?;
            // A queue that has been destroyed tells nothing.
            let Some(found) = world.completions.get(&id) else {
                continue;
            };
            found.queue.notifications.give();
            let raw: *mut ibv_cq = std::ptr::with_exposed_provenance_mut(found.raw);
            // SAFETY: the caller's promise; the queue lives while it is in the table.
            unsafe {
                queue.write(raw);
                program.write((*raw).cq_context);
            }
            return Ok(());
        }
    });
    if code == 0 { 0 } else { -1 }
}

/// # Safety
///
/// The queue lives, and as many events were got and not acknowledged.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_ack_cq_events(queue: *mut ibv_cq, count: c_uint) {
    // SAFETY: the caller's promise.
    let inner = Arc::clone(unsafe { &CompletionQueue::of(queue).inner });
    inner.notifications.acknowledge(count);
}
