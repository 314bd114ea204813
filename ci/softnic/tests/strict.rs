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
    nic("2*strict,small:link=roce:resize_cq=on")
}

fn strict() -> [End; 2] {
    pair(here(), ["rxe0", "rxe1"], SHAPE)
}

#[test]
fn writes_and_reads_of_every_length_arrive() {
    let [mut one, other] = strict();
    for len in [0u32, 1, 7, 8, 9, 1023, 1024, 1025, 65_536, 65_537, 300_000] {
        (0..1 << 16).for_each(|word| one.store(word, u64::from(len) << 32 | word as u64));
        one.post(&[request(WRITE, &other, 8, len)]);
        one.succeed(1);
        let (words, rest) = (len as usize / 8, len as usize % 8);
        assert!(
            (0..words).all(|word| other.load(8 + word) == one.load(word)),
            "{len}"
        );
        let mask = (1u64 << (8 * rest)) - 1;
        assert_eq!(other.load(8 + words) & mask, one.load(words) & mask);
        let mut back = request(READ, &other, 8, len);
        back.word = 1 << 16;
        one.post(&[back]);
        one.succeed(1);
        assert!(
            (0..words).all(|word| one.load((1 << 16) + word) == one.load(word)),
            "{len}"
        );
    }
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
fn atomics_give_the_old_word_and_change_it() {
    let [one, mut other] = strict();
    other.store(5, 40);
    let mut add = request(ADD, &other, 5, 8);
    add.operands = [2, 0];
    one.post(&[add]);
    one.succeed(1);
    assert_eq!((one.load(0), other.load(5)), (40, 42));
    let mut swap = request(CAS, &other, 5, 8);
    for (compare, after) in [(41, 42), (42, 9)] {
        swap.operands = [compare, 9];
        one.post(&[swap]);
        one.succeed(1);
        assert_eq!((one.load(0), other.load(5)), (42, after));
    }
    add.remote += 4;
    assert_eq!(one.try_post(&[add]), (libc::EINVAL, 0));
}

#[test]
fn messages_fill_buffers_in_order_with_their_immediate_data() {
    let [mut one, other] = strict();
    one.store(0, 11);
    assert_eq!(other.receive(50, 100, 64), 0);
    assert_eq!(other.receive(51, 200, 64), 0);
    let mut send = request(SEND_IMM, &other, 0, 8);
    send.immediate = 0xabcd;
    let mut write = request(WRITE_IMM, &other, 300, 8);
    (write.id, write.immediate) = (2, 0x1234);
    one.post(&[send, write]);
    one.succeed(1);
    one.succeed(2);
    // SAFETY: both carry immediate data.
    let got = |wc: ibv_wc| unsafe {
        (
            wc.opcode,
            wc.byte_len,
            wc.wc_flags,
            wc.__bindgen_anon_1.imm_data,
        )
    };
    assert_eq!(got(other.succeed(50)), (128, 8, 2, 0xabcd));
    assert_eq!(got(other.succeed(51)), (129, 8, 2, 0x1234));
    assert_eq!(
        (other.load(100), other.load(200), other.load(300)),
        (11, 0, 11)
    );
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
    for (opcode, word, len, spoil) in [
        (WRITE, 0, 8, 1),
        (READ, SHAPE.words - 1, 16, 0),
        (ADD, 0, 8, 1),
        (WRITE, SHAPE.words - 500, 8_000, 0),
    ] {
        let [one, other] = strict();
        let mut bad = request(opcode, &other, word, len);
        bad.rkey ^= spoil;
        let mut after = request(WRITE, &other, 0, 8);
        after.id = 2;
        one.post(&[bad, after]);
        one.fail(1, ibv_wc_status::IBV_WC_REM_ACCESS_ERR);
        one.fail(2, ibv_wc_status::IBV_WC_WR_FLUSH_ERR);
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
        assert_eq!(other.load(0), 0);
    }
}

#[test]
fn a_wrong_local_key_or_a_message_too_long_is_found() {
    let [one, other] = strict();
    let mut bad = request(WRITE, &other, 0, 8);
    bad.lkey = Some(1);
    one.post(&[bad]);
    one.fail(1, ibv_wc_status::IBV_WC_LOC_PROT_ERR);

    let [one, other] = strict();
    other.receive(4, 0, 8);
    one.post(&[request(SEND, &other, 0, 9)]);
    one.fail(1, ibv_wc_status::IBV_WC_REM_INV_REQ_ERR);
    other.fail(4, ibv_wc_status::IBV_WC_LOC_LEN_ERR);
}

#[test]
fn a_destroyed_peer_is_given_up_after_the_retries() {
    let [one, other] = strict();
    // SAFETY: destroyed once, and not used any more.
    assert_eq!(unsafe { other.nic.ibv.ibv_destroy_qp(other.pair) }, 0);
    one.post(&[request(WRITE, &other, 0, 8)]);
    one.fail(1, ibv_wc_status::IBV_WC_RETRY_EXC_ERR);
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
    let end = End::new(
        nic,
        "mlx5_0",
        Shape {
            entries: 255,
            ..SHAPE
        },
    );
    // SAFETY: all objects live.
    unsafe {
        for (depth, inline, good) in [(64, 60, true), (65, 60, false), (64, 61, false)] {
            let mut attr = init_attr(end.queue, depth, inline);
            let pair = nic.ibv.ibv_create_qp(end.domain, &raw mut attr);
            assert_eq!(!pair.is_null(), good, "{depth} {inline}");
        }
        assert!(
            nic.ibv
                .ibv_create_cq(end.context, 256, null_mut(), null_mut(), 0)
                .is_null()
        );
        assert_eq!(
            nic.ibv.ibv_resize_cq(end.queue, 255),
            libc::EOPNOTSUPP.min(0)
        );
    }
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
