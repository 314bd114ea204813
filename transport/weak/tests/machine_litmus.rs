//! The classic shapes, run in every way there is: exactly what the machine is to allow.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod machine_explorer;

use std::collections::BTreeSet;
use std::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst};

use machine_explorer::Do::{Fence, Load, MakeVisible, NicCopy, NicGet, NicPut, Store, Update};
use machine_explorer::{Do, Var, outcomes};
use oxshmem_transport::AtomicOp::{Add, Swap};

const X: Var = Var::Host(0);
const Y: Var = Var::Host(1);

/// All values of `width` registers that are each 0 or 1.
fn bits(width: u32) -> BTreeSet<Vec<u64>> {
    (0..1u64 << width)
        .map(|all| (0..width).rev().map(|bit| (all >> bit) & 1).collect())
        .collect()
}

/// All but these.
fn but<const N: usize>(width: u32, forbidden: [&[u64]; N]) -> BTreeSet<Vec<u64>> {
    let mut all = bits(width);
    for outcome in forbidden {
        assert!(all.remove(outcome), "{outcome:?} is none of them");
    }
    all
}

fn set<const N: usize>(outcomes: [&[u64]; N]) -> BTreeSet<Vec<u64>> {
    outcomes.iter().map(|outcome| outcome.to_vec()).collect()
}

/// Message passing: (the flag, the data) as the reader saw them.
fn message_passing(writer: &[Do], reader: &[Do]) -> BTreeSet<Vec<u64>> {
    outcomes(&[writer, reader], 2, &[])
}

fn write(middle: &[Do], order: Ordering) -> Vec<Do> {
    let mut all = vec![Store(X, 1, Relaxed)];
    all.extend(middle);
    all.push(Store(Y, 1, order));
    all
}

fn read(order: Ordering, middle: &[Do]) -> Vec<Do> {
    let mut all = vec![Load(0, Y, order)];
    all.extend(middle);
    all.push(Load(1, X, Relaxed));
    all
}

#[test]
fn mp_needs_a_release_and_an_acquire() {
    let everything = bits(2);
    let kept = but(2, [&[1, 0]]);
    let (store, load) = (Relaxed, Relaxed);
    // Nothing: the stores drain in any order, the loads see old values.
    assert_eq!(
        message_passing(&write(&[], store), &read(load, &[])),
        everything
    );
    // Half of it is nothing, in whatever way it is written.
    for writer in [write(&[], Release), write(&[Fence(Release)], store)] {
        assert_eq!(message_passing(&writer, &read(load, &[])), everything);
    }
    for reader in [read(Acquire, &[]), read(load, &[Fence(Acquire)])] {
        assert_eq!(message_passing(&write(&[], store), &reader), everything);
    }
    // An acquire fence does not order stores, a release fence no loads.
    assert_eq!(
        message_passing(&write(&[Fence(Acquire)], store), &read(Acquire, &[])),
        everything
    );
    assert_eq!(
        message_passing(&write(&[], Release), &read(load, &[Fence(Release)])),
        everything
    );
    for writer in [
        write(&[], Release),
        write(&[], SeqCst),
        write(&[Fence(Release)], store),
        write(&[Fence(AcqRel)], store),
        write(&[Fence(SeqCst)], store),
    ] {
        for reader in [
            read(Acquire, &[]),
            read(SeqCst, &[]),
            read(load, &[Fence(Acquire)]),
            read(load, &[Fence(AcqRel)]),
            read(load, &[Fence(SeqCst)]),
        ] {
            assert_eq!(
                message_passing(&writer, &reader),
                kept,
                "{writer:?} {reader:?}"
            );
        }
    }
}

#[test]
fn mp_a_release_before_the_wrong_store_is_no_release() {
    // The release orders what is before it; the flag, after it, drains first.
    let writer = [Store(X, 1, Release), Store(Y, 1, Relaxed)];
    assert_eq!(message_passing(&writer, &read(Acquire, &[])), bits(2));
}

#[test]
fn mp_by_read_modify_writes() {
    let flag = |order| Update(2, Y, Swap, 1, order);
    let all = |writer: &[Do], reader: &[Do]| -> BTreeSet<Vec<u64>> {
        let found = outcomes(&[writer, reader], 3, &[]);
        found.into_iter().map(|all| all[..2].to_vec()).collect()
    };
    let kept = but(2, [&[1, 0]]);
    let data = Store(X, 1, Relaxed);
    // A relaxed update is performed at once, before the data has drained.
    assert_eq!(all(&[data, flag(Relaxed)], &read(Acquire, &[])), bits(2));
    assert_eq!(all(&[data, flag(Acquire)], &read(Acquire, &[])), bits(2));
    assert_eq!(all(&[data, flag(Release)], &read(Acquire, &[])), kept);
    assert_eq!(
        all(&[data, Fence(Release), flag(Relaxed)], &read(Acquire, &[])),
        kept
    );
    // The reader's update: of acquire, or followed by a fence.
    let look = |order| Update(0, Y, Add, 0, order);
    let then = Load(1, X, Relaxed);
    let writer = write(&[], Release);
    assert_eq!(all(&writer, &[look(Relaxed), then]), bits(2));
    assert_eq!(all(&writer, &[look(Release), then]), bits(2));
    assert_eq!(all(&writer, &[look(Acquire), then]), kept);
    assert_eq!(all(&writer, &[look(Relaxed), Fence(Acquire), then]), kept);
}

#[test]
fn sb_needs_a_full_fence_on_both_sides() {
    let side = |mine, theirs, register, middle: &[Do], orders: (Ordering, Ordering)| {
        let mut all = vec![Store(mine, 1, orders.0)];
        all.extend(middle);
        all.push(Load(register, theirs, orders.1));
        all
    };
    let both = |one: &[Do], other: &[Do], orders| {
        let (one, other) = (side(X, Y, 0, one, orders), side(Y, X, 1, other, orders));
        outcomes(&[&one, &other], 2, &[])
    };
    let full = [Fence(SeqCst)];
    let none = (Relaxed, Relaxed);
    assert_eq!(both(&[], &[], none), bits(2));
    assert_eq!(both(&[], &[], (Release, Acquire)), bits(2));
    assert_eq!(both(&[Fence(AcqRel)], &[Fence(AcqRel)], none), bits(2));
    assert_eq!(both(&full, &[], none), bits(2));
    let kept = but(2, [&[0, 0]]);
    assert_eq!(both(&full, &full, none), kept);
    assert_eq!(both(&[], &[], (SeqCst, SeqCst)), kept);
}

#[test]
fn lb_does_not_occur() {
    // Loads are performed at once: a store is never before them.
    let one = [Load(0, X, Relaxed), Store(Y, 1, Relaxed)];
    let other = [Load(1, Y, Relaxed), Store(X, 1, Relaxed)];
    assert_eq!(outcomes(&[&one, &other], 2, &[]), but(2, [&[1, 1]]));
}

#[test]
fn iriw_is_forbidden_where_both_readers_acquire() {
    let (x, y) = ([Store(X, 1, Relaxed)], [Store(Y, 1, Relaxed)]);
    let readers = |order| {
        let one = [Load(0, X, order), Load(1, Y, Relaxed)];
        let other = [Load(2, Y, order), Load(3, X, Relaxed)];
        outcomes(&[&x, &y, &one, &other], 4, &[])
    };
    assert_eq!(readers(Relaxed), bits(4));
    // Multi-copy atomic: the writes have one order for all.
    assert_eq!(readers(Acquire), but(4, [&[1, 0, 1, 0]]));
}

#[test]
fn wrc_is_forbidden_where_the_last_reader_acquires() {
    let write = [Store(X, 1, Relaxed)];
    let pass = [Load(0, X, Relaxed), Store(Y, 1, Relaxed)];
    let last = |order| {
        let read = [Load(1, Y, order), Load(2, X, Relaxed)];
        outcomes(&[&write, &pass, &read], 3, &[])
    };
    assert_eq!(last(Relaxed), bits(3));
    // The second store drains after its PE has seen the first in memory, whatever its order.
    assert_eq!(last(Acquire), but(3, [&[1, 1, 0]]));
}

#[test]
fn corr_never_goes_back() {
    let write = [Store(X, 1, Relaxed), Store(X, 2, Relaxed)];
    let read = [Load(0, X, Relaxed), Load(1, X, Relaxed)];
    let forward = set([&[0, 0], &[0, 1], &[0, 2], &[1, 1], &[1, 2], &[2, 2]]);
    assert_eq!(outcomes(&[&write, &read], 2, &[]), forward);
}

#[test]
fn corr_two_readers_agree_on_the_order() {
    let (one, other) = ([Store(X, 1, Relaxed)], [Store(X, 2, Relaxed)]);
    let reader = |first| [Load(first, X, Relaxed), Load(first + 1, X, Relaxed)];
    let found = outcomes(&[&one, &other, &reader(0), &reader(2)], 4, &[]);
    assert!(found.contains(&vec![1, 2, 1, 2]) && found.contains(&vec![2, 1, 2, 1]));
    assert!(!found.contains(&vec![1, 2, 2, 1]) && !found.contains(&vec![2, 1, 1, 2]));
}

#[test]
fn coww_the_later_store_stays() {
    let write = [Store(X, 1, Relaxed), Store(X, 2, Relaxed)];
    assert_eq!(outcomes(&[&write], 0, &[X]), set([&[2]]));
    let update = [Store(X, 1, Relaxed), Update(0, X, Add, 2, Relaxed)];
    assert_eq!(outcomes(&[&update], 1, &[X]), set([&[1, 3]]));
}

#[test]
fn cowr_a_cpu_sees_its_own_store_or_a_later_one() {
    let one = [Store(X, 1, Relaxed), Load(0, X, Relaxed)];
    let other = [Store(X, 2, Relaxed)];
    let found = outcomes(&[&one, &other], 1, &[X]);
    assert_eq!(found, set([&[1, 1], &[1, 2], &[2, 2]]));
}

#[test]
fn s_needs_the_writers_release_only() {
    let second = [Load(0, Y, Relaxed), Store(X, 1, Relaxed)];
    let first = |order| [Store(X, 2, Relaxed), Store(Y, 1, order)];
    let kept = set([&[0, 1], &[0, 2], &[1, 1]]);
    assert_eq!(outcomes(&[&first(Release), &second], 1, &[X]), kept);
    let mut everything = kept;
    everything.insert(vec![1, 2]);
    assert_eq!(outcomes(&[&first(Relaxed), &second], 1, &[X]), everything);
}

#[test]
fn r_needs_a_full_fence() {
    let both = |fence: &[Do]| {
        let first = [&[Store(X, 1, Relaxed)], fence, &[Store(Y, 1, Relaxed)]].concat();
        let second = [&[Store(Y, 2, Relaxed)], fence, &[Load(0, X, Relaxed)]].concat();
        outcomes(&[&first, &second], 1, &[Y])
    };
    let kept = set([&[0, 1], &[1, 1], &[1, 2]]);
    assert_eq!(both(&[Fence(SeqCst)]), kept);
    let mut everything = kept;
    everything.insert(vec![0, 2]);
    assert_eq!(both(&[]), everything);
    assert_eq!(both(&[Fence(AcqRel)]), everything);
}

#[test]
fn two_plus_two_writes_need_a_release_on_both_sides() {
    let both = |one: Ordering, other: Ordering| {
        let first = [Store(X, 1, Relaxed), Store(Y, 2, one)];
        let second = [Store(Y, 1, Relaxed), Store(X, 2, other)];
        outcomes(&[&first, &second], 0, &[X, Y])
    };
    let kept = set([&[1, 2], &[2, 1], &[2, 2]]);
    let everything = set([&[1, 1], &[1, 2], &[2, 1], &[2, 2]]);
    assert_eq!(both(Relaxed, Relaxed), everything);
    assert_eq!(both(Release, Relaxed), everything);
    assert_eq!(both(Release, Release), kept);
}

#[test]
fn updates_are_exclusive() {
    let add = |register| [Update(register, X, Add, 1, Relaxed)];
    let found = outcomes(&[&add(0), &add(1)], 2, &[X]);
    assert_eq!(found, set([&[0, 1, 2], &[1, 0, 2]]));
}

#[test]
fn a_nic_overtakes_stores_unless_a_release_fence_is_before_it() {
    let flag = NicPut(Y, 1);
    let data = Store(X, 1, Relaxed);
    let reader = read(Acquire, &[]);
    assert_eq!(message_passing(&[data, flag], &reader), bits(2));
    // A release store of something else is no fence; nor is one after the doorbell.
    let other = Store(Var::Host(2), 1, Release);
    assert_eq!(message_passing(&[data, other, flag], &reader), bits(2));
    assert_eq!(
        message_passing(&[data, flag, Fence(Release)], &reader),
        bits(2)
    );
    let kept = but(2, [&[1, 0]]);
    assert_eq!(
        message_passing(&[data, Fence(Release), flag], &reader),
        kept
    );
    assert_eq!(message_passing(&[data, Fence(SeqCst), flag], &reader), kept);
}

#[test]
fn a_nic_reads_memory_that_stores_may_not_have_reached() {
    let copy = NicCopy(Y, X);
    let data = Store(X, 1, Relaxed);
    assert_eq!(outcomes(&[&[data, copy]], 0, &[Y]), set([&[0], &[1]]));
    assert_eq!(
        outcomes(&[&[data, Fence(Release), copy]], 0, &[Y]),
        set([&[1]])
    );
}

#[test]
fn m27_a_gpu_sees_what_nics_wrote_once_it_is_made_visible() {
    let data = Var::Gpu(0);
    let nic = [NicPut(data, 1)];
    let reader = |middle: &[Do]| {
        let mut all = vec![NicGet(0, data)];
        all.extend(middle);
        all.push(Load(1, data, Acquire));
        all
    };
    let kept = but(2, [&[1, 0]]);
    // Other NICs see it at once; the GPU when it pleases.
    let gpu = |middle: &[Do]| outcomes(&[&nic, &reader(middle)], 2, &[]);
    assert_eq!(gpu(&[]), bits(2));
    assert_eq!(gpu(&[Fence(SeqCst)]), bits(2));
    assert_eq!(gpu(&[MakeVisible]), kept);
    // Another PE's accesses don't go by way of that GPU: a full fence is enough for them.
    let other = outcomes(&[&nic, &[], &reader(&[Fence(SeqCst)])], 2, &[]);
    assert_eq!(other, kept);
}

#[test]
fn m27_what_the_gpus_pe_stored_itself_needs_no_flush() {
    let data = Var::Gpu(0);
    let own = [Store(data, 1, Relaxed), Load(0, data, Relaxed)];
    assert_eq!(outcomes(&[&[], &own], 1, &[data]), set([&[1, 1]]));
}
