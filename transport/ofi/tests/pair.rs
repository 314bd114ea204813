//! Two domains of this process over TCP: operations that one refuses, and sleeps while nothing comes.

#![allow(clippy::unwrap_used)]

use std::any::Any;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use oxshmem_ofi::{Interface, Ofi, Settings};
use oxshmem_transport::{
    Domain, Error, HostId, Job, Lane, Local, Memory, MemoryKind, Op, Pe, Peer, Region, RegionId,
    Remote, Sleep, Transport,
};

fn host() -> HostId {
    HostId("one".into())
}

const REGION: RegionId = RegionId(0);

fn open(me: u32, provider: &str) -> Arc<dyn Domain> {
    let ofi = Ofi::with(Settings {
        providers: Some(vec![provider.into()]),
        interfaces: Some(vec![Interface::Name("lo".into())]),
        ..Settings::default()
    });
    let device = ofi.probe().unwrap().swap_remove(0);
    let job = Job {
        me: Pe(me),
        size: 2,
        host_rank: 0,
        host: host(),
    };
    ofi.open(&device, &job).unwrap()
}

fn peer(pe: u32, domain: &dyn Domain) -> Peer {
    Peer {
        pe: Pe(pe),
        host: host(),
        address: Some(domain.address()),
    }
}

fn register(domain: &dyn Domain) -> Box<dyn Region> {
    let words: Arc<Vec<AtomicU64>> = Arc::new((0..512).map(|_| AtomicU64::new(0)).collect());
    let base = NonNull::new(words.as_ptr().cast_mut().cast::<u8>()).unwrap();
    let owner: Arc<dyn Any + Send + Sync> = words;
    // SAFETY: the owner keeps the words, which are atomics.
    let memory = unsafe { Memory::new(base, 4096, MemoryKind::Host, None, owner) };
    domain.register(REGION, &memory).unwrap()
}

fn put(value: &mut u64) -> Op {
    let to = Remote {
        region: REGION,
        offset: 8,
    };
    let from = Local {
        addr: (&raw mut *value).cast(),
        len: 8,
        key: None,
    };
    Op::Put { from, to }
}

/// Drives a lane until it reports an error, or has completed `completed` operations.
fn drive(lane: &mut dyn Lane, completed: u64) -> Result<(), Error> {
    let since = Instant::now();
    while lane.counters(Pe(1)).completed < completed {
        lane.progress()?;
        assert!(since.elapsed() < Duration::from_secs(30), "no answer came");
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

#[test]
fn m35_a_put_to_memory_that_its_pe_has_freed_is_an_error_of_the_poster() {
    let (one, other) = (open(0, "tcp"), open(1, "tcp"));
    let region = register(&*other);
    for (from, to, pe) in [(&one, &other, 1), (&other, &one, 0)] {
        let _learnt = from.reach(&peer(pe, &**to), MemoryKind::Host);
    }
    let theirs = peer(1, &*other);
    let imported = one.import(&theirs, REGION, region.key(), None).unwrap();
    assert_eq!(imported.len(), 4096);
    let mut lane = one.lane().unwrap();
    let mut value = 5;
    // SAFETY: the value lives until the lane has ended.
    let posted = unsafe { lane.post(Pe(1), &[put(&mut value)]) };
    assert_eq!(posted.accepted, 1);
    drive(&mut *lane, 1).unwrap();

    drop(region);
    // SAFETY: as above.
    let posted = unsafe { lane.post(Pe(1), &[put(&mut value), Op::Flush]) };
    assert_eq!(posted.accepted, 2);
    let error = drive(&mut *lane, 2).unwrap_err();
    let told = error.to_string();
    let named = matches!(error, Error::Connection { pe: Pe(1), .. });
    assert!(named && told.contains("refused a put"), "{told}");
    assert_eq!(lane.counters(Pe(1)).completed, 1, "neither is complete");
    drop(lane);
}

/// Sleeps of a lane while nothing comes, at most: what the other side had to tell may still have come in the first ones.
const SLEEPS: u32 = 50;

#[test]
fn a_sleep_lasts_while_nothing_comes_though_operations_have_ended() {
    for provider in ["tcp", "net"] {
        let (one, other) = (open(0, provider), open(1, provider));
        let region = register(&*other);
        for (from, to, pe) in [(&one, &other, 1), (&other, &one, 0)] {
            let _learnt = from.reach(&peer(pe, &**to), MemoryKind::Host);
        }
        let theirs = peer(1, &*other);
        one.import(&theirs, REGION, region.key(), None).unwrap();
        let mut lane = one.lane().unwrap();
        let mut value = 5;
        // SAFETY: the value lives until the lane has ended.
        let posted = unsafe { lane.post(Pe(1), &[put(&mut value), Op::Flush]) };
        assert_eq!(posted.accepted, 2, "{provider}");
        drive(&mut *lane, 2).unwrap();
        let lasts = (0..SLEEPS).any(|_| {
            lane.progress().unwrap();
            matches!(lane.sleep(Duration::from_millis(5)), Sleep::Elapsed)
        });
        assert!(lasts, "{provider}: every sleep ended at once");
    }
}
