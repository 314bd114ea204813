//! What may be a near side outside the heap, and what is refused.

use std::sync::Arc;
use std::time::{Duration, Instant};

use oxshmem_cuda::{Context, Pinned, PinnedOptions, Segment, devices};
use oxshmem_nvlink::{Nvlink, UNREGISTERED};
use oxshmem_transport::conformance::Contents;
use oxshmem_transport::{
    Domain, Error, HostId, Job, Lane, Local, LocalRegion, MemoryKind, Op, Pe, Peer, RegionId,
    Remote, Result, Status, Transport,
};

use crate::memory::{Gpu, zeroed};

const ME: Pe = Pe(0);

/// The context of a GPU, if there is such; [`crate::OnGpus`] says where there must be.
fn context(gpu: usize) -> Option<Context> {
    let all = devices().ok()?;
    Some(Context::new(all.get(gpu)?).unwrap())
}

/// A domain of a job of one PE.
fn domain(context: &Context) -> (Arc<dyn Domain>, HostId) {
    let transport = Nvlink::on(context.clone());
    let host = HostId("here".into());
    let job = Job {
        me: ME,
        size: 1,
        host: host.clone(),
    };
    let device = &transport.probe().unwrap()[0];
    (transport.open(device, &job).unwrap(), host)
}

fn register(domain: &dyn Domain, addr: *mut u8, len: usize) -> Result<Box<dyn LocalRegion>> {
    // SAFETY: the tests' memory outlives what is done with it.
    unsafe { domain.register_local(addr, len, true) }
}

fn put(lane: &mut dyn Lane, from: Local) {
    let to = Remote {
        region: RegionId(0),
        offset: 0,
    };
    // SAFETY: the tests keep the source until `finish`, unchanged where that is longer than what is copied.
    let posted = unsafe { lane.post(ME, &[Op::Put { from, to }]) };
    assert!(matches!(posted.status, Status::All), "{posted:?}");
}

fn finish(lane: &mut dyn Lane) {
    let start = Instant::now();
    while lane.counters(ME).completed < lane.counters(ME).posted {
        lane.progress().unwrap();
        assert!(start.elapsed() < Duration::from_secs(20));
        std::thread::yield_now();
    }
}

#[test]
fn m15_page_locked_memory_goes_as_it_is_and_what_is_short_is_copied_at_once() {
    let Some(context) = context(0) else { return };
    let (domain, host) = domain(&context);
    let memory = zeroed(&context, 1 << 20).unwrap();
    let region = domain.register(RegionId(0), &memory).unwrap();
    let peer = Peer {
        pe: ME,
        host,
        address: Some(domain.address()),
    };
    let _imported = domain
        .import(&peer, RegionId(0), region.key(), None)
        .unwrap();
    let gpu = Gpu::new(&context, &memory).unwrap();

    let pinned = Pinned::new(&context, 1 << 20, &PinnedOptions::default()).unwrap();
    let local = register(&*domain, pinned.as_ptr(), pinned.len()).unwrap();
    let mut lane = domain.lane().unwrap();
    let near = |len| Local {
        addr: pinned.as_ptr(),
        len,
        key: Some(local.key()),
    };
    let fill = |byte, len| {
        assert!(len <= pinned.len());
        // SAFETY: as many bytes, which nothing else touches now.
        unsafe { pinned.as_ptr().write_bytes(byte, len) };
    };
    fill(7, UNREGISTERED);
    put(&mut *lane, near(UNREGISTERED));
    fill(8, UNREGISTERED);
    finish(&mut *lane);
    let mut found = vec![0; 1 << 20];
    gpu.read(0, &mut found);
    assert!(found[..UNREGISTERED].iter().all(|&byte| byte == 7));

    fill(9, 1 << 20);
    put(&mut *lane, near(1 << 20));
    finish(&mut *lane);
    gpu.read(0, &mut found);
    assert!(found.iter().all(|&byte| byte == 9));
}

#[test]
fn memory_that_the_gpu_does_not_reach_is_no_near_side() {
    let Some(context) = context(0) else { return };
    let (domain, _) = domain(&context);
    let mut ordinary = vec![0_u8; 4096];
    let refused = register(&*domain, ordinary.as_mut_ptr(), 4096).unwrap_err();
    assert!(matches!(refused, Error::Unsupported { .. }), "{refused}");
    assert!(
        refused.to_string().contains("cuMemHostRegister"),
        "{refused}"
    );

    let mut segment = Segment::new(&context, 4 << 20).unwrap();
    segment.grow_to(1).unwrap();
    let (base, len) = (segment.base().as_raw(), segment.committed());
    let at = |address: u64| std::ptr::with_exposed_provenance_mut::<u8>(address as usize);
    register(&*domain, at(base), len).unwrap();
    if len < segment.limit() {
        // What lies behind it is no memory.
        register(&*domain, at(base), len + 1).unwrap_err();
    }
    let around = register(&*domain, at(u64::MAX - 8), 16).unwrap_err();
    assert!(around.to_string().contains("wraps"), "{around}");

    let Some(other) = self::context(1) else {
        return;
    };
    let mut theirs = Segment::new(&other, 2 << 20).unwrap();
    theirs.grow_to(1).unwrap();
    let refused = register(&*domain, at(theirs.base().as_raw()), 8).unwrap_err();
    let kind = MemoryKind::Cuda;
    assert!(
        matches!(&refused, Error::Memory { kind: k, .. } if *k == kind),
        "{refused}"
    );
    assert!(refused.to_string().contains("GPU 1"), "{refused}");
}
