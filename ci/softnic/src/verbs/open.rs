//! Devices are opened and closed.

use std::ffi::c_int;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::abi::extended::EXTENDED;
use crate::abi::sys::{ibv_context, ibv_context_ops, ibv_device, verbs_context};
use crate::device::Card;
use crate::events::Pipe;
use crate::object::{FORKED, created, returned};
use crate::verbs::context::{FRONT, Opened, Whole, locked, opened};
use crate::verbs::devices::Listed;
use crate::verbs::{pairs, post, queries};

extern "C" fn in_forked_child() {
    // Relaxed: no other thread runs there yet.
    FORKED.store(true, Ordering::Relaxed);
}

fn operations() -> ibv_context_ops {
    ibv_context_ops {
        _compat_query_device: None,
        _compat_query_port: None,
        _compat_alloc_pd: None,
        _compat_dealloc_pd: None,
        _compat_reg_mr: None,
        _compat_rereg_mr: None,
        _compat_dereg_mr: None,
        alloc_mw: None,
        bind_mw: None,
        dealloc_mw: None,
        _compat_create_cq: None,
        poll_cq: Some(post::poll_cq),
        req_notify_cq: Some(post::req_notify_cq),
        _compat_cq_event: None,
        _compat_resize_cq: None,
        _compat_destroy_cq: None,
        _compat_create_srq: None,
        _compat_modify_srq: None,
        _compat_query_srq: None,
        _compat_destroy_srq: None,
        post_srq_recv: Some(post::post_srq_recv),
        _compat_create_qp: None,
        _compat_query_qp: None,
        _compat_modify_qp: None,
        _compat_destroy_qp: None,
        post_send: Some(post::post_send),
        post_recv: Some(post::post_recv),
        _compat_create_ah: None,
        _compat_destroy_ah: None,
        _compat_attach_mcast: None,
        _compat_detach_mcast: None,
        _compat_async_event: None,
    }
}

/// # Safety
///
/// The device is of a list.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_open_device(device: *mut ibv_device) -> *mut ibv_context {
    created("ibv_open_device", || {
        // SAFETY: the caller's promise.
        let number = unsafe { Listed::of(device) }.inner;
        static ONCE: std::sync::Once = std::sync::Once::new();
        ONCE.call_once(|| {
            // SAFETY: the handler only stores to an atomic, which is fine in a forked child.
            unsafe { libc::pthread_atfork(None, None, Some(in_forked_child)) };
        });
        let events = Arc::new(Pipe::new()?);
        let clock = Arc::<AtomicU64>::default();
        let mut world = locked()?;
        let card = world.fresh() as u32;
        world.cards.insert(
            card,
            Card {
                device: number,
                events: Arc::clone(&events),
            },
        );
        let context = ibv_context {
            device,
            ops: operations(),
            cmd_fd: -1,
            async_fd: events.descriptor(),
            num_comp_vectors: 4,
            mutex: libc::PTHREAD_MUTEX_INITIALIZER,
            abi_compat: EXTENDED,
        };
        // SAFETY: integers, pointers and functions that may be absent, for which zero is a value.
        let mut front: verbs_context = unsafe { std::mem::zeroed() };
        front.query_port = Some(queries::query_port);
        front.query_device_ex = Some(queries::query_device_ex);
        front.create_qp_ex = Some(pairs::create_qp_ex);
        front.sz = size_of::<verbs_context>();
        front.context = context;
        let inner = Opened {
            card,
            device: number,
            events,
            clock,
        };
        let whole = NonNull::new(Whole::create(front, inner)).ok_or(libc::ENOMEM)?;
        // SAFETY: inside the object that was just made.
        Ok(unsafe { whole.byte_add(FRONT).cast().as_ptr() })
    })
}

/// # Safety
///
/// The context is open, and not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_close_device(context: *mut ibv_context) -> c_int {
    returned("ibv_close_device", || {
        // SAFETY: the caller's promise.
        let card = unsafe { opened(context) }.card;
        let mut world = locked()?;
        if world.pairs.values().any(|pair| pair.card == card) || world.keys.of_card(card) > 0 {
            return Err(libc::EBUSY);
        }
        world.cards.remove(&card);
        drop(world);
        // SAFETY: at its distance from the beginning, freed once.
        unsafe { Whole::end(context.byte_sub(FRONT).cast()) };
        Ok(())
    })
}
