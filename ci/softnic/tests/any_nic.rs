//! Results that every NIC gives. The tests run on the software NIC; with `SOFTNIC_LIBRARY=libibverbs.so.1` and
//! `SOFTNIC_DEVICES`, two names of devices with a comma between them, on those devices. `ci/test-verbs` runs them on
//! soft-RoCE, so that the software NIC is held against an independent implementation.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]

mod nic;

use std::time::Instant;

use nic::*;

/// The flag of immediate data. NICs may set others beside it.
const WITH_IMM: u32 = 2;

fn ends() -> [End; 2] {
    let names = std::env::var("SOFTNIC_DEVICES").unwrap_or("rxe0,rxe1".into());
    let (first, second) = names
        .split_once(',')
        .expect("SOFTNIC_DEVICES names two devices");
    pair(nic("2*strict"), [first, second], SHAPE)
}

#[test]
fn writes_and_reads_of_every_length_arrive() {
    let [mut one, other] = ends();
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
fn atomics_give_the_old_word_and_change_it() {
    let [one, mut other] = ends();
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
}

#[test]
fn messages_fill_buffers_in_order_with_their_immediate_data() {
    let [mut one, other] = ends();
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
            wc.wc_flags & WITH_IMM,
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
fn a_key_that_does_not_fit_is_refused_and_flushes_later_requests() {
    refuse(ends, |_, _, _| {});
}

#[test]
fn a_wrong_local_key_is_found() {
    let [one, other] = ends();
    let mut bad = request(WRITE, &other, 0, 8);
    bad.lkey = Some(1);
    one.post(&[bad]);
    // Soft-RoCE of Linux 6.1 reports the first.
    let reported = [
        ibv_wc_status::IBV_WC_LOC_QP_OP_ERR,
        ibv_wc_status::IBV_WC_LOC_PROT_ERR,
    ];
    assert!(reported.contains(&one.wait().status));
}

#[test]
fn a_message_longer_than_its_buffer_fails_at_its_sender() {
    let [one, other] = ends();
    assert_eq!(other.receive(4, 0, 8), 0);
    one.post(&[request(SEND, &other, 0, 9)]);
    // Soft-RoCE of Linux 6.1 reports the first.
    let reported = [
        ibv_wc_status::IBV_WC_REM_OP_ERR,
        ibv_wc_status::IBV_WC_REM_INV_REQ_ERR,
    ];
    assert!(reported.contains(&one.wait().status));
}

#[test]
fn a_message_without_a_buffer_gives_up_after_its_retries() {
    let [one, other] = ends();
    one.post(&[request(SEND, &other, 0, 8)]);
    one.fail(1, ibv_wc_status::IBV_WC_RNR_RETRY_EXC_ERR);
}

#[test]
fn a_destroyed_peer_is_given_up_after_the_retries() {
    let [one, other] = ends();
    // SAFETY: destroyed once, and not used any more.
    assert_eq!(unsafe { other.nic.ibv.ibv_destroy_qp(other.pair) }, 0);
    one.post(&[request(WRITE, &other, 0, 8)]);
    one.fail(1, ibv_wc_status::IBV_WC_RETRY_EXC_ERR);
}

#[test]
fn an_atomic_comes_after_the_writes_before_it() {
    let [mut one, other] = ends();
    for round in 1..200 {
        one.store(0, round);
        let mut add = request(ADD, &other, 1000, 8);
        (add.id, add.word, add.operands) = (2, 600, [1, 0]);
        one.post(&[request(WRITE, &other, 0, 4096), add]);
        let since = Instant::now();
        while other.load(1000) < round {
            assert!(since.elapsed() < PATIENCE, "round {round}: no atomic came");
            std::hint::spin_loop();
        }
        assert_eq!(other.load(0), round);
        one.succeed(1);
        one.succeed(2);
        assert_eq!(one.load(600), round - 1);
    }
}
