//! Reliable connections on a device that keeps every order: results, refusals, and every way to fail.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]

mod nic;

use std::ptr::null_mut;

use nic::*;

fn here() -> &'static Nic {
    nic("2*strict,small:link=roce:resize_cq=on:queue_bytes=4096,small")
}

/// An end that `small` has room for.
const SMALL: Shape = Shape {
    entries: 255,
    depth: 32,
    ..SHAPE
};

fn strict() -> [End; 2] {
    pair(here(), ["rxe0", "rxe1"], SHAPE)
}

#[test]
fn inline_data_are_read_by_the_call() {
    let [mut one, other] = strict();
    one.store(0, 77);
    let mut inline = request(WRITE, &other, 0, 8);
    (inline.flags, inline.lkey) = (SIGNALED | 8, Some(0));
    one.post(&[inline]);
    one.store(0, 78);
    one.succeed(1);
    assert_eq!(other.load(0), 77);
    inline.len = 33;
    assert_eq!(one.try_post(&[inline]), (libc::EINVAL, 0));
}

#[test]
fn an_atomic_of_a_misaligned_word_is_refused() {
    let [one, other] = strict();
    let mut add = request(ADD, &other, 5, 8);
    add.remote += 4;
    assert_eq!(one.try_post(&[add]), (libc::EINVAL, 0));
}

#[test]
fn a_message_waits_for_a_buffer_and_gives_up_after_its_retries() {
    let [one, other] = strict();
    let before = here().counter("rnr_naks");
    one.post(&[request(SEND, &other, 0, 8)]);
    one.fail(1, ibv_wc_status::IBV_WC_RNR_RETRY_EXC_ERR);
    assert!(here().counter("rnr_naks") >= before + 4);

    // With as many retries as it takes.
    let [one, other] = ["rxe0", "rxe1"].map(|name| End::new(here(), name, SHAPE));
    one.connect(&other, 10, 3, 7);
    other.connect(&one, 10, 3, 7);
    let before = here().counter("rnr_naks");
    one.post(&[request(SEND, &other, 0, 8)]);
    while here().counter("rnr_naks") < before + 2 {
        std::thread::yield_now();
    }
    assert_eq!(other.receive(3, 0, 8), 0);
    one.succeed(1);
    other.succeed(3);
}

#[test]
fn what_a_key_does_not_allow_is_refused_and_ends_the_connection_on_both_sides() {
    refuse(strict, |one, other, after| {
        // A later request is taken, and flushed.
        one.post(&[after]);
        one.fail(2, ibv_wc_status::IBV_WC_WR_FLUSH_ERR);
        // SAFETY: the context is open, the event is written and acknowledged once.
        unsafe {
            let mut event: ibv_async_event = std::mem::zeroed();
            assert_eq!(
                other
                    .nic
                    .ibv
                    .ibv_get_async_event(other.context, &raw mut event),
                0
            );
            assert_eq!((event.event_type, event.element.qp), (3, other.pair));
            other.nic.ibv.ibv_ack_async_event(&raw mut event);
        }
        other.receive(9, 0, 8);
        other.fail(9, ibv_wc_status::IBV_WC_WR_FLUSH_ERR);
    });
}

#[test]
fn a_message_too_long_fails_on_both_sides() {
    let [one, other] = strict();
    other.receive(4, 0, 8);
    one.post(&[request(SEND, &other, 0, 9)]);
    one.fail(1, ibv_wc_status::IBV_WC_REM_INV_REQ_ERR);
    other.fail(4, ibv_wc_status::IBV_WC_LOC_LEN_ERR);
}

#[test]
fn a_slot_is_free_when_its_completion_was_polled_and_not_before() {
    let [one, other] = strict();
    let mut plain = request(WRITE, &other, 0, 8);
    plain.flags = 0;
    one.post(&[plain; 63]);
    one.post(&[request(WRITE, &other, 0, 8)]);
    let full = one.try_post(&[plain; 2]);
    assert_eq!(full, (libc::ENOMEM, 0));
    one.succeed(1);
    one.post(&[plain; 64]);
    assert_eq!(one.try_post(&[plain; 3]), (libc::ENOMEM, 0));
}

#[test]
fn a_queue_that_overruns_is_told_of_and_is_of_no_use() {
    let shape = Shape {
        entries: 4,
        ..SHAPE
    };
    let [one, other] = pair(here(), ["rxe0", "rxe1"], shape);
    one.post(&[request(WRITE, &other, 0, 8); 6]);
    // SAFETY: the context is open, the event is written and acknowledged once.
    unsafe {
        let mut event: ibv_async_event = std::mem::zeroed();
        assert_eq!(
            one.nic.ibv.ibv_get_async_event(one.context, &raw mut event),
            0
        );
        assert_eq!((event.event_type, event.element.cq), (0, one.queue));
        one.nic.ibv.ibv_ack_async_event(&raw mut event);
    }
}

#[test]
fn states_change_in_order_and_with_their_attributes_only() {
    let one = End::new(here(), "rxe0", SHAPE);
    assert_eq!(
        one.modify(|attr| attr.qp_state = ibv_qp_state::IBV_QPS_RTS, 1),
        libc::EINVAL
    );
    assert_eq!(
        one.modify(|attr| attr.qp_state = ibv_qp_state::IBV_QPS_INIT, 1),
        libc::EINVAL
    );
    assert_eq!(
        one.try_post(&[request(WRITE, &one, 0, 8)]),
        (libc::EINVAL, 0)
    );
    assert_eq!(one.receive(1, 0, 8), libc::EINVAL);
    one.connect(&one, 10, 3, 3);
    one.post(&[request(WRITE, &one, 9, 8)]);
    one.succeed(1);
    assert_eq!(
        one.modify(|attr| attr.qp_state = ibv_qp_state::IBV_QPS_RESET, 1),
        0
    );
    assert_eq!(
        one.try_post(&[request(WRITE, &one, 0, 8)]),
        (libc::EINVAL, 0)
    );
}

#[test]
fn limits_are_kept() {
    let nic = here();
    let end = End::new(nic, "mlx5_0", SMALL);
    // SAFETY: all objects live.
    unsafe {
        for (depth, inline, error) in [
            (64, 0, 0),
            (32, 60, 0),
            (65, 0, libc::EINVAL),
            (32, 61, libc::EINVAL),
            (64, 60, libc::ENOMEM),
        ] {
            let mut attr = init_attr(end.queue, depth, inline);
            let pair = nic.ibv.ibv_create_qp(end.domain, &raw mut attr);
            let code = std::io::Error::last_os_error().raw_os_error();
            assert_eq!(pair.is_null(), error != 0, "{depth} {inline}");
            assert!(!pair.is_null() || code == Some(error), "{depth} {inline}");
        }
        assert!(
            nic.ibv
                .ibv_create_cq(end.context, 256, null_mut(), null_mut(), 0)
                .is_null()
        );
        assert_eq!(nic.ibv.ibv_resize_cq(end.queue, 255), 0);
        let fixed = End::new(nic, "mlx5_1", SMALL);
        assert_eq!(nic.ibv.ibv_resize_cq(fixed.queue, 128), libc::EOPNOTSUPP);
    }
}

#[test]
fn a_queue_pair_takes_only_the_operations_that_it_was_made_for() {
    let nic = here();
    let [mut end, other] = ["rxe0", "rxe1"].map(|name| End::new(nic, name, SHAPE));
    // SAFETY: all objects live; an extended context lies at the end of its table. Integers and pointers, for which
    // zero is a value.
    unsafe {
        let front = std::mem::offset_of!(verbs_context, context);
        let table = end.context.byte_sub(front).cast::<verbs_context>();
        let create = (*table).create_qp_ex.unwrap();
        let mut attr: ibv_qp_init_attr_ex = std::mem::zeroed();
        let plain = init_attr(end.queue, 8, 0);
        (attr.send_cq, attr.recv_cq) = (plain.send_cq, plain.recv_cq);
        (attr.cap, attr.qp_type) = (plain.cap, plain.qp_type);
        (attr.comp_mask, attr.pd) = (1 | 1 << 6, end.domain);
        // Segmentation.
        attr.send_ops_flags = 1 << 10;
        assert!(create(end.context, &raw mut attr).is_null());
        // Writes.
        attr.send_ops_flags = 1;
        end.pair = create(end.context, &raw mut attr);
        assert!(!end.pair.is_null());
    }
    end.connect(&other, 10, 3, 3);
    other.connect(&end, 10, 3, 3);
    end.post(&[request(WRITE, &other, 0, 8)]);
    end.succeed(1);
    let refused = end.try_post(&[request(READ, &other, 0, 8)]);
    assert_eq!(refused, (libc::EINVAL, 0));
}

#[test]
fn a_channel_wakes_for_solicited_completions_only_if_so_asked() {
    let nic = here();
    let ends = ["rxe0", "rxe1"].map(|name| End::new(nic, name, SHAPE));
    // SAFETY: all objects live; pointers are written.
    unsafe {
        let channel = nic.ibv.ibv_create_comp_channel(ends[1].context);
        let queue = nic
            .ibv
            .ibv_create_cq(ends[1].context, 16, null_mut(), channel, 0);
        let mut attr = init_attr(queue, 4, 0);
        let pair = nic.ibv.ibv_create_qp(ends[1].domain, &raw mut attr);
        let other = End {
            pair,
            queue,
            ..End::new(nic, "rxe1", SHAPE)
        };
        let other = End {
            region: nic.ibv.ibv_reg_mr_iova2(
                ends[1].domain,
                other.memory.as_ptr().cast_mut().cast(),
                64,
                other.addr(0),
                1,
            ),
            ..other
        };
        ends[0].connect(&other, 10, 3, 3);
        other.connect(&ends[0], 10, 3, 3);
        libc::fcntl((*channel).fd, libc::F_SETFL, libc::O_NONBLOCK);
        let mut got = (null_mut(), null_mut());
        let mut event = || {
            nic.ibv
                .ibv_get_cq_event(channel, &raw mut got.0, &raw mut got.1)
        };
        (0..3).for_each(|id| assert_eq!(other.receive(id, 0, 8), 0));
        ((*other.context).ops.req_notify_cq.unwrap())(queue, 1);
        let mut send = request(SEND, &other, 0, 8);
        ends[0].post(&[send]);
        ends[0].succeed(1);
        assert_eq!(event(), -1);
        send.flags |= 4;
        ends[0].post(&[send]);
        ends[0].succeed(1);
        assert_eq!(event(), 0);
        assert_eq!(event(), -1);
        nic.ibv.ibv_ack_cq_events(queue, 1);
        other.succeed(0);
        other.succeed(1);
    }
}

/// A table has each address twice, once for each version of RoCE.
#[test]
fn ends_of_two_versions_of_roce_do_not_hear_each_other() {
    let ends = || ["rxe0", "rxe1"].map(|name| End::new(here(), name, SHAPE));
    let (first_version, second_version) = (2, 3);
    for (versions, is_heard) in [
        ([first_version, second_version], false),
        ([second_version, first_version], false),
        ([second_version, second_version], true),
        ([first_version, first_version], true),
    ] {
        let [one, other] = ends();
        one.connect_from(versions[0], &other, 10, 3, 3);
        other.connect_from(versions[1], &one, 10, 3, 3);
        one.post(&[request(WRITE, &other, 0, 8)]);
        match is_heard {
            true => {
                one.succeed(1);
            }
            false => one.fail(1, ibv_wc_status::IBV_WC_RETRY_EXC_ERR),
        }
    }
}
