//! Atomics of the provider on a PE's own words, between other operations of the PE on its own memory.

#![allow(clippy::unwrap_used)]

use std::any::Any;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use oxshmem_ofi::{Atomics, Interface, Ofi, Settings};
use oxshmem_transport::{
    AtomicLevel, AtomicOp, HostId, Job, Local, Memory, MemoryKind, Op, Pe, Peer, RegionId, Remote,
    Transport, Width,
};

const REGION: RegionId = RegionId(0);

fn at(offset: u64) -> Remote {
    Remote {
        region: REGION,
        offset,
    }
}

fn local(word: &AtomicU64) -> Local {
    Local {
        addr: word.as_ptr().cast(),
        len: 8,
        key: None,
    }
}

fn add(operand: u64, fetch: Option<Local>) -> Op {
    Op::Atomic {
        op: AtomicOp::Add,
        width: Width::W64,
        on: at(8),
        operand,
        compare: 0,
        fetch,
    }
}

#[test]
fn m29_own_words_are_reached_by_the_provider_and_what_follows_counts_after_that() {
    let ofi = Ofi::with(Settings {
        providers: Some(vec!["tcp".into()]),
        interfaces: Some(vec![Interface::Name("lo".into())]),
        atomics: Atomics::Provider,
        ..Settings::default()
    });
    let device = ofi.probe().unwrap().swap_remove(0);
    let host = HostId("one".into());
    let job = Job {
        me: Pe(0),
        size: 1,
        host_rank: 0,
        host: host.clone(),
    };
    let domain = ofi.open(&device, &job).unwrap();
    let own = Peer {
        pe: Pe(0),
        host,
        address: Some(domain.address()),
    };
    let table = domain.atomics_towards(&own);
    assert_eq!(table.level(AtomicOp::Add, Width::W64), AtomicLevel::Nic);
    assert!(domain.explain(&own).unwrap().contains("as a NIC's"));

    let words: Arc<Vec<AtomicU64>> = Arc::new((0..512).map(|_| AtomicU64::new(0)).collect());
    let base = NonNull::new(words.as_ptr().cast_mut().cast::<u8>()).unwrap();
    let owner: Arc<dyn Any + Send + Sync> = words.clone();
    // SAFETY: the owner keeps the words, which are atomics.
    let memory = unsafe { Memory::new(base, 4096, MemoryKind::Host, None, owner) };
    let region = domain.register(REGION, &memory).unwrap();
    let _reached = domain.reach(&own, MemoryKind::Host);
    let _imported = domain.import(&own, REGION, region.key(), None).unwrap();

    let mut lane = domain.lane().unwrap();
    let (old, source) = (AtomicU64::new(u64::MAX), AtomicU64::new(7));
    for round in 0..100 {
        old.store(u64::MAX, Ordering::SeqCst);
        let put = Op::Put {
            from: local(&source),
            to: at(64),
        };
        let ops = [add(1, Some(local(&old))), put, add(1, None)];
        // SAFETY: the words live until the lane has ended.
        let posted = unsafe { lane.post(Pe(0), &ops) };
        assert_eq!(posted.accepted, 3);
        let since = Instant::now();
        loop {
            let completed = lane.counters(Pe(0)).completed - 3 * round;
            let fetched = old.load(Ordering::SeqCst) != u64::MAX;
            assert!(fetched || completed == 0, "an operation overtook the count");
            if completed == 3 {
                break;
            }
            assert!(since.elapsed() < Duration::from_secs(60), "{completed}");
            lane.progress().unwrap();
        }
        assert_eq!(old.load(Ordering::SeqCst), 2 * round);
        assert_eq!(words[1].load(Ordering::SeqCst), 2 * round + 2);
        assert_eq!(words[8].load(Ordering::SeqCst), 7);
    }
}
