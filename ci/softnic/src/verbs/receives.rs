//! Shared receive queues.

use std::ffi::c_int;
use std::sync::Arc;

use crate::abi::sys::{ibv_pd, ibv_srq, ibv_srq_attr, ibv_srq_init_attr};
use crate::events::Given;
use crate::object::{Handle, created, returned};
use crate::receive_queue::ReceiveQueue;
use crate::verbs::context::locked;
use crate::verbs::domains::Domain;
use crate::world::Shared;

/// The private part of a shared receive queue.
#[derive(Debug)]
pub(crate) struct SharedInner {
    pub(crate) id: u64,
    pub(crate) queue: Arc<ReceiveQueue>,
    pub(crate) events: Arc<Given>,
}

/// A shared receive queue.
pub(crate) type SharedQueue = Handle<ibv_srq, SharedInner>;

/// # Safety
///
/// The domain lives, the attributes are read and written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_create_srq(
    domain: *mut ibv_pd,
    attr: *mut ibv_srq_init_attr,
) -> *mut ibv_srq {
    created("ibv_create_srq", || {
        // SAFETY: the caller's promise.
        let (owner, context, asked) =
            unsafe { (Domain::of(domain).inner, (*domain).context, *attr) };
        let mut world = locked()?;
        let card = world.cards.get(&owner.card).ok_or(libc::EINVAL)?;
        let profile = &world.devices[card.device].profile;
        if !profile.srq {
            return Err(libc::EOPNOTSUPP);
        }
        let (depth, parts) = (asked.attr.max_wr, asked.attr.max_sge);
        if depth == 0 || depth > profile.max_srq_wr || parts > profile.max_sge {
            return Err(libc::EINVAL);
        }
        let id = world.fresh();
        let queue = Arc::new(ReceiveQueue::new(depth, parts.max(1), None));
        queue.set_limit(asked.attr.srq_limit);
        let events = Arc::<Given>::default();
        let raw = ibv_srq {
            context,
            srq_context: asked.srq_context,
            pd: domain,
            handle: id as u32,
            mutex: libc::PTHREAD_MUTEX_INITIALIZER,
            cond: libc::PTHREAD_COND_INITIALIZER,
            events_completed: 0,
        };
        let inner = SharedInner {
            id,
            queue,
            events: Arc::clone(&events),
        };
        let raw = SharedQueue::create(raw, inner);
        let entry = Shared {
            card: owner.card,
            raw: raw.expose_provenance(),
            events,
        };
        world.shared.insert(id, entry);
        Ok(raw)
    })
}

/// `IBV_SRQ_MAX_WR`, `IBV_SRQ_LIMIT`.
const MAX_WR: c_int = 1;
const LIMIT: c_int = 2;

/// # Safety
///
/// The queue lives, the attributes are read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_modify_srq(
    queue: *mut ibv_srq,
    attr: *mut ibv_srq_attr,
    mask: c_int,
) -> c_int {
    returned("ibv_modify_srq", || {
        // SAFETY: the caller's promise.
        let (inner, asked) = unsafe { (&SharedQueue::of(queue).inner, *attr) };
        if mask & MAX_WR != 0 {
            return Err(libc::EOPNOTSUPP);
        }
        if mask & LIMIT != 0 {
            if asked.srq_limit > inner.queue.depth {
                return Err(libc::EINVAL);
            }
            inner.queue.set_limit(asked.srq_limit);
        }
        Ok(())
    })
}

/// # Safety
///
/// The queue lives, the attributes are written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_query_srq(queue: *mut ibv_srq, attr: *mut ibv_srq_attr) -> c_int {
    returned("ibv_query_srq", || {
        // SAFETY: the caller's promise.
        let inner = unsafe { &SharedQueue::of(queue).inner };
        let answer = ibv_srq_attr {
            max_wr: inner.queue.depth,
            max_sge: inner.queue.parts,
            srq_limit: inner.queue.limit(),
        };
        // SAFETY: the caller's promise.
        unsafe { attr.write(answer) };
        Ok(())
    })
}

/// # Safety
///
/// The queue lives, and is not used any more. Waits until its events are acknowledged.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_destroy_srq(queue: *mut ibv_srq) -> c_int {
    returned("ibv_destroy_srq", || {
        // SAFETY: the caller's promise.
        let inner = unsafe { &SharedQueue::of(queue).inner };
        let mut world = locked()?;
        if world
            .pairs
            .values()
            .any(|pair| pair.shared == Some(inner.id))
        {
            return Err(libc::EBUSY);
        }
        world.shared.remove(&inner.id);
        drop(world);
        inner.events.wait();
        // SAFETY: freed once.
        unsafe { SharedQueue::end(queue) };
        Ok(())
    })
}
