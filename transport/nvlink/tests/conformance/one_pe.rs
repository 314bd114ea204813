//! Tests beyond the suite: local buffers outside the heap, and lanes that end beside a program's work.

use std::sync::Arc;
use std::time::{Duration, Instant};

use oxshmem_cuda::{
    Compare, Context, DevicePtr, Pinned, PinnedOptions, Segment, SegmentKind, Stream, devices,
};
use oxshmem_nvlink::{Nvlink, UNREGISTERED};
use oxshmem_transport::conformance::Contents;
use oxshmem_transport::{
    Domain, Error, HostId, Job, Lane, Local, LocalRegion, Memory, MemoryKind, Op, Pe, Peer, Region,
    RegionId, Remote, RemoteRegion, Result, Status, Transport,
};

use crate::memory::{Gpu, PATIENCE, zeroed};

const ME: Pe = Pe(0);
const LEN: usize = 1 << 20;

/// The context of a GPU, if there is such; [`crate::OnGpus`] says where there must be.
fn context(gpu: usize) -> Option<Context> {
    let all = devices().ok()?;
    Some(Context::new(all.get(gpu)?).unwrap())
}

/// The one PE of a job, and [`LEN`] bytes of its GPU's, which it reaches by lanes.
struct Alone {
    domain: Arc<dyn Domain>,
    memory: Memory,
    _registered: (Box<dyn Region>, Arc<dyn RemoteRegion>),
}

impl Alone {
    fn new(context: &Context) -> Alone {
        let transport = Nvlink::on(context.clone());
        let host = HostId("here".into());
        let job = Job {
            me: ME,
            size: 1,
            host_rank: 0,
            host: host.clone(),
        };
        let domain = transport.open(&transport.probe().unwrap()[0], &job);
        let domain = domain.unwrap();
        let memory = zeroed(context, LEN).unwrap();
        let region = domain.register(RegionId(0), &memory).unwrap();
        let peer = Peer {
            pe: ME,
            host,
            address: Some(domain.address()),
        };
        let imported = domain.import(&peer, RegionId(0), region.key(), None);
        Alone {
            domain,
            memory,
            _registered: (region, imported.unwrap()),
        }
    }

    fn register(&self, addr: *mut u8, len: usize) -> Result<Box<dyn LocalRegion>> {
        // SAFETY: the tests' memory outlives what is done with it.
        unsafe { self.domain.register_local(addr, len, true) }
    }
}

fn put(lane: &mut dyn Lane, from: Local) {
    let to = Remote {
        region: RegionId(0),
        offset: 0,
    };
    // SAFETY: the tests keep the source until `finish`, unchanged where it is longer than what is copied.
    let posted = unsafe { lane.post(ME, &[Op::Put { from, to }]) };
    assert!(matches!(posted.status, Status::All), "{posted:?}");
}

fn finish(lane: &mut dyn Lane) {
    let start = Instant::now();
    while lane.counters(ME).completed < lane.counters(ME).posted {
        lane.progress().unwrap();
        assert!(start.elapsed() < PATIENCE);
        std::thread::yield_now();
    }
}

#[test]
fn m15_page_locked_memory_goes_as_it_is_and_what_is_short_is_copied_at_once() {
    let Some(context) = context(0) else { return };
    let pe = Alone::new(&context);
    let gpu = Gpu::new(&context, &pe.memory).unwrap();
    let pinned = Pinned::new(&context, LEN, &PinnedOptions::default()).unwrap();
    let local = pe.register(pinned.as_ptr(), LEN).unwrap();
    let mut lane = pe.domain.lane().unwrap();
    let local = |len| Local {
        addr: pinned.as_ptr(),
        len,
        key: Some(local.key()),
    };
    let fill = |byte, len| {
        assert!(len <= LEN);
        // SAFETY: as many bytes, which nothing else touches now.
        unsafe { pinned.as_ptr().write_bytes(byte, len) };
    };
    fill(7, UNREGISTERED);
    put(&mut *lane, local(UNREGISTERED));
    fill(8, UNREGISTERED);
    finish(&mut *lane);
    let mut found = vec![0; LEN];
    gpu.read(0, &mut found);
    assert!(found[..UNREGISTERED].iter().all(|&byte| byte == 7));

    fill(9, LEN);
    put(&mut *lane, local(LEN));
    finish(&mut *lane);
    gpu.read(0, &mut found);
    assert!(found.iter().all(|&byte| byte == 9));
}

#[test]
fn memory_that_the_gpu_does_not_reach_is_no_local_buffer() {
    let Some(context) = context(0) else { return };
    let pe = Alone::new(&context);
    let mut ordinary = vec![0_u8; 4096];
    let refused = pe.register(ordinary.as_mut_ptr(), 4096).unwrap_err();
    assert!(matches!(refused, Error::Unsupported { .. }), "{refused}");
    let text = refused.to_string();
    assert!(text.contains("cuMemHostRegister"), "{text}");

    let mut segment = Segment::new(&context, 4 << 20).unwrap();
    segment.grow_to(1).unwrap();
    let (base, len) = (segment.base().as_raw(), segment.committed());
    let at = |address: u64| std::ptr::with_exposed_provenance_mut::<u8>(address as usize);
    pe.register(at(base), len).unwrap();
    if len < segment.limit() {
        // Behind it is no memory.
        pe.register(at(base), len + 1).unwrap_err();
    }
    let around = pe.register(at(u64::MAX - 8), 16).unwrap_err();
    assert!(around.to_string().contains("wraps"), "{around}");

    let Some(other) = self::context(1) else {
        return;
    };
    let mut theirs = Segment::new(&other, 2 << 20).unwrap();
    theirs.grow_to(1).unwrap();
    if theirs.kind() == SegmentKind::Legacy {
        // Contexts are the process's, and another test may have enabled access between them.
        return;
    }
    let refused = pe.register(at(theirs.base().as_raw()), 8).unwrap_err();
    let kind = MemoryKind::Cuda;
    assert!(
        matches!(&refused, Error::Memory { kind: k, .. } if *k == kind),
        "{refused}"
    );
    assert!(refused.to_string().contains("GPU 1"), "{refused}");
}

/// To give page-locked memory back is to wait for all of the context's work.
#[test]
fn a_lane_ends_and_another_begins_while_the_program_s_work_waits_for_this_pe() {
    let Some(context) = context(0) else { return };
    let pe = Alone::new(&context);
    let stream = Stream::new(&context, &Default::default()).unwrap();
    let word = DevicePtr::from_host(pe.memory.base().as_ptr());
    let waits = |value| {
        // SAFETY: the word is mapped, and what waits for it ends before it does.
        unsafe { stream.wait_value64(word, Compare::Eq, value, false) }.unwrap();
    };
    // The second lane finds the memory of the first.
    for value in [1_u64, 2] {
        waits(value);
        drop(pe.domain.lane().unwrap());
        assert!(!stream.is_idle().unwrap());
        let mut lane = pe.domain.lane().unwrap();
        let source = value.to_ne_bytes();
        let from = Local {
            addr: source.as_ptr().cast_mut(),
            len: source.len(),
            key: None,
        };
        put(&mut *lane, from);
        finish(&mut *lane);
        stream.synchronize_within(Duration::from_secs(20)).unwrap();
    }
}
