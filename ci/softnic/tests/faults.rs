//! Faults on command: links that go down and come back, changes of addresses, completion errors, full queues.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]

mod nic;

use std::sync::{Mutex, MutexGuard};

use nic::*;

/// Faults concern the whole process: one test at a time.
fn here() -> (&'static Nic, MutexGuard<'static, ()>) {
    static ALONE: Mutex<()> = Mutex::new(());
    let alone = ALONE.lock().unwrap_or_else(|error| error.into_inner());
    (nic("2*cx6:bus=0"), alone)
}

/// The next event of a context: its kind, and the port.
fn event(end: &End) -> (u32, i32) {
    // SAFETY: the context is open, the event is written and acknowledged once; these tests wait for ports' events only.
    unsafe {
        let mut event: ibv_async_event = std::mem::zeroed();
        assert_eq!(
            end.nic.ibv.ibv_get_async_event(end.context, &raw mut event),
            0
        );
        end.nic.ibv.ibv_ack_async_event(&raw mut event);
        (event.event_type, event.element.port_num)
    }
}

#[test]
fn a_link_that_comes_back_in_time_is_survived_and_one_that_does_not_is_told() {
    let (nic, _alone) = here();
    let [one, other] = pair(nic, ["mlx5_0", "mlx5_1"], SHAPE);
    // 8 times 13 ms, by the time scale of these tests; the link is down for 10 ms.
    let long = [
        End::new(nic, "mlx5_0", SHAPE),
        End::new(nic, "mlx5_1", SHAPE),
    ];
    long[0].connect(&long[1], 14, 7, 7);
    long[1].connect(&long[0], 14, 7, 7);
    assert_eq!(nic.control("down mlx5_1 1 50"), 0);
    long[0].post(&[request(WRITE, &long[1], 0, 8)]);
    long[0].succeed(1);
    assert_eq!(event(&long[1]), (10, 1));
    assert_eq!(event(&long[1]), (9, 1));

    assert_eq!(nic.control("down mlx5_1 1"), 0);
    one.post(&[request(WRITE, &other, 0, 8)]);
    one.fail(1, ibv_wc_status::IBV_WC_RETRY_EXC_ERR);
    assert_eq!(nic.control("up mlx5_1 1"), 0);
}

#[test]
fn changes_of_addresses_are_told_and_connections_to_the_old_ones_die() {
    let (nic, _alone) = here();
    let [one, other] = pair(nic, ["mlx5_0", "mlx5_1"], SHAPE);
    assert_eq!(nic.control("gid mlx5_1 1 0 fe80::77"), 0);
    assert_eq!(event(&other), (18, 1));
    assert_eq!(other.address().1[15], 0x77);
    assert_eq!(nic.control("lid mlx5_1 1 77"), 0);
    assert_eq!(event(&other), (11, 1));
    assert_eq!(other.address().2, 77);
    one.post(&[request(WRITE, &other, 0, 8)]);
    one.fail(1, ibv_wc_status::IBV_WC_RETRY_EXC_ERR);
    assert_eq!(nic.control("pkey mlx5_1 1 1 0x8005"), 0);
    assert_eq!(event(&other), (12, 1));
    for (name, kind) in [("SM_CHANGE", 13), ("CLIENT_REREGISTER", 17)] {
        assert_eq!(nic.control(&format!("event mlx5_1 {name} 1")), 0);
        assert_eq!(event(&other), (kind, 1));
    }
    // A connection to the new address lives.
    let [one, other] = pair(nic, ["mlx5_0", "mlx5_1"], SHAPE);
    one.post(&[request(WRITE, &other, 0, 8)]);
    one.succeed(1);
}

/// A queue pair with a shared receive queue of one buffer, and that queue.
fn sharing(end: &End) -> (*mut ibv_qp, *mut ibv_srq) {
    // SAFETY: all objects live; the list is sound, the buffer is registered.
    unsafe {
        let mut asked: ibv_srq_init_attr = std::mem::zeroed();
        (asked.attr.max_wr, asked.attr.max_sge) = (4, 1);
        let shared = end.nic.ibv.ibv_create_srq(end.domain, &raw mut asked);
        assert!(!shared.is_null());
        let mut attr = init_attr(end.queue, 4, 0);
        attr.srq = shared;
        let pair = end.nic.ibv.ibv_create_qp(end.domain, &raw mut attr);
        assert!(!pair.is_null());
        let mut buffer = ibv_sge {
            addr: end.addr(0),
            length: 64,
            lkey: (*end.region).lkey,
        };
        let mut request: ibv_recv_wr = std::mem::zeroed();
        (request.wr_id, request.sg_list, request.num_sge) = (7, &raw mut buffer, 1);
        let mut bad = std::ptr::null_mut();
        let post = (*end.context).ops.post_srq_recv.unwrap();
        assert_eq!(post(shared, &raw mut request, &raw mut bad), 0);
        (pair, shared)
    }
}

#[test]
fn a_failed_pair_gives_its_shared_buffer_back_late_and_loses_it_if_it_ends_before() {
    let (nic, _alone) = here();
    let end = End::new(nic, "mlx5_0", SHAPE);
    assert_eq!(nic.control("flush 50"), 0);
    let fail = |pair| {
        // SAFETY: integers only; the queue pair lives.
        unsafe {
            let mut attr: ibv_qp_attr = std::mem::zeroed();
            attr.qp_state = ibv_qp_state::IBV_QPS_ERR;
            assert_eq!(nic.ibv.ibv_modify_qp(pair, &raw mut attr, 1), 0);
        }
    };
    let (pair, _) = sharing(&end);
    fail(pair);
    end.fail(7, ibv_wc_status::IBV_WC_WR_FLUSH_ERR);
    assert_eq!(event(&end).0, 16);
    let (pair, shared) = sharing(&end);
    fail(pair);
    // SAFETY: both live and are used no more.
    unsafe {
        assert_eq!(nic.ibv.ibv_destroy_qp(pair), 0);
        assert_eq!(nic.ibv.ibv_destroy_srq(shared), 0);
    }
    assert!(end.poll().is_none());
    assert_eq!(nic.control("flush 0"), 0);
}

#[test]
fn a_request_fails_with_any_status_and_a_queue_is_full_on_command() {
    let (nic, _alone) = here();
    for status in [1, 2, 9, 16, 19, 21] {
        let [one, other] = pair(nic, ["mlx5_0", "mlx5_1"], SHAPE);
        assert_eq!(nic.control(&format!("status {status}")), 0);
        one.post(&[request(WRITE, &other, 0, 8)]);
        one.fail(1, status);
    }
    let [one, other] = pair(nic, ["mlx5_0", "mlx5_1"], SHAPE);
    assert_eq!(nic.control("full 1"), 0);
    let posts = [request(WRITE, &other, 0, 8); 2];
    assert_eq!(one.try_post(&posts), (libc::ENOMEM, 0));
    one.post(&posts);
    assert_eq!(nic.control("explode"), libc::EINVAL);
    assert_eq!(nic.control("down mlx5_9 1"), libc::EINVAL);
}

#[test]
fn a_stuck_pair_neither_fails_nor_ends() {
    let (nic, _alone) = here();
    let end = End::new(nic, "mlx5_0", SHAPE);
    let (stuck, shared) = sharing(&end);
    let (pair, other) = sharing(&end);
    assert_eq!(nic.control("stuck 1"), 0);
    // SAFETY: integers only; the queue pairs and the shared queues live, and the last one is used no more.
    unsafe {
        let mut attr: ibv_qp_attr = std::mem::zeroed();
        attr.qp_state = ibv_qp_state::IBV_QPS_ERR;
        let mut fail = |pair| nic.ibv.ibv_modify_qp(pair, &raw mut attr, 1);
        assert_eq!([fail(stuck), fail(pair)], [libc::EBUSY, 0]);
        assert_eq!(nic.ibv.ibv_destroy_qp(stuck), libc::EBUSY);
        assert_eq!(nic.ibv.ibv_destroy_qp(stuck), libc::EBUSY);
        assert_eq!(nic.ibv.ibv_destroy_srq(shared), libc::EBUSY);
        assert_eq!(nic.ibv.ibv_destroy_qp(pair), 0);
        assert_eq!(nic.ibv.ibv_destroy_srq(other), 0);
    }
}
