//! Loopback among threads, through the suite; what is loopback's own beside it.

use std::sync::Arc;

use oxshmem_heap::{Segment, SegmentOptions};
use oxshmem_loopback::Loopback;
use oxshmem_transport::{
    Device, Domain, HostId, Job, Memory, MemoryKind, Pe, Peer, Reach, RegionId, Result, Transport,
    conformance,
};

struct Harness(Loopback);

impl conformance::Harness for Harness {
    fn transport(&self) -> &dyn Transport {
        &self.0
    }
}

#[test]
fn loopback_among_threads_passes_the_conformance_suite() {
    let report = conformance::run(&Harness(Loopback::new()));
    assert!(report.passed(), "{report}");
}

/// Each PE has a loopback of its own, as processes do: all memory is reached by descriptor.
#[derive(Debug)]
struct Separate;

// SAFETY: all comes from a Loopback.
unsafe impl Transport for Separate {
    fn name(&self) -> &'static str {
        "loopback by descriptor"
    }

    fn probe(&self) -> Result<Vec<Device>> {
        Loopback::new().probe()
    }

    fn open(&self, device: &Device, job: &Job) -> Result<Arc<dyn Domain>> {
        Loopback::new().open(device, job)
    }
}

struct ByDescriptor;

impl conformance::Harness for ByDescriptor {
    fn transport(&self) -> &dyn Transport {
        &Separate
    }

    fn memory(&self, _pe: Pe, kind: MemoryKind, len: usize) -> Result<Memory, String> {
        let mut segment =
            Segment::create(len, &SegmentOptions::default()).map_err(|error| error.to_string())?;
        segment.commit(len).map_err(|error| error.to_string())?;
        let mapping = segment.mapping().clone();
        let descriptor = Some(segment.descriptor().clone());
        // SAFETY: the mapping keeps the bytes mapped, and its own methods don't touch them.
        Ok(unsafe { Memory::new(mapping.base(), mapping.len(), kind, descriptor, mapping) })
    }
}

#[test]
fn loopback_by_descriptor_passes_the_conformance_suite() {
    let report = conformance::run(&ByDescriptor);
    assert!(report.passed(), "{report}");
}

#[allow(clippy::unwrap_used, reason = "of a test")]
fn open(loopback: &Loopback, me: u32) -> Arc<dyn Domain> {
    let job = Job {
        me: Pe(me),
        size: 2,
        host_rank: 0,
        host: HostId("here".into()),
    };
    loopback.open(&loopback.probe().unwrap()[0], &job).unwrap()
}

#[test]
fn another_host_is_not_reached_and_the_reason_names_both() {
    let loopback = Loopback::new();
    let (me, other) = (open(&loopback, 0), open(&loopback, 1));
    let host = HostId("elsewhere".into());
    let peer = Peer {
        pe: Pe(1),
        host,
        address: Some(other.address()),
    };
    let Reach::None(why) = me.reach(&peer, MemoryKind::Host) else {
        panic!("reached")
    };
    assert!(why.contains("elsewhere") && why.contains("here"), "{why}");
}

#[test]
fn a_key_of_another_loopback_needs_its_descriptor() {
    let (one, two) = (Loopback::new(), Loopback::new());
    let (me, other) = (open(&one, 0), open(&two, 1));
    let host = HostId("here".into());
    let peer = Peer {
        pe: Pe(1),
        host,
        address: Some(other.address()),
    };
    assert_eq!(
        me.reach(&peer, MemoryKind::Host),
        Reach::Mapped { descriptor: true }
    );
    let memory = conformance::host_memory(4096).unwrap();
    let region = other.register(RegionId(0), &memory).unwrap();
    let error = me
        .import(&peer, region.id(), region.key(), None)
        .unwrap_err()
        .to_string();
    assert!(error.contains("descriptor"), "{error}");
}

#[test]
fn memory_off_its_page_is_refused() {
    let whole = conformance::host_memory(8192).unwrap();
    // SAFETY: inside the allocation, which its owner keeps.
    let memory = unsafe {
        let base = whole.base().add(64);
        Memory::new(base, 4096, whole.kind(), None, whole.owner().clone())
    };
    let error = open(&Loopback::new(), 0)
        .register(RegionId(0), &memory)
        .unwrap_err()
        .to_string();
    assert!(error.contains("page"), "{error}");
}

#[test]
fn an_ended_registration_cannot_be_imported_and_an_import_outlives_it() {
    let loopback = Loopback::new();
    let (me, other) = (open(&loopback, 0), open(&loopback, 1));
    let peer = Peer {
        pe: Pe(1),
        host: HostId("here".into()),
        address: Some(other.address()),
    };
    let memory = conformance::host_memory(4096).unwrap();
    let owner = Arc::downgrade(memory.owner());
    let region = other.register(RegionId(0), &memory).unwrap();
    drop(memory);
    let key = region.key().to_vec();
    let imported = me.import(&peer, region.id(), &key, None).unwrap();
    drop(region);
    assert!(owner.upgrade().is_some(), "the import lost its memory");
    assert!(
        me.import(&peer, oxshmem_transport::RegionId(0), &key, None)
            .is_err()
    );
    drop((imported, me));
    assert!(owner.upgrade().is_none(), "somebody keeps the memory");
}
