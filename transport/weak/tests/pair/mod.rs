//! Two PEs over weak(loopback), each with a page that both know, driven without a library.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use oxshmem_loopback::Loopback;
use oxshmem_transport::{
    AtomicOp, Domain, Error, HostId, Job, Lane, Local, LocalKey, Memory, Op, Pe, Peer, Region,
    RegionId, Remote, Schedule, Status, Transport, Width, conformance,
};
use oxshmem_weak::{Scheduler, Settings, Weak};

/// Two PEs. Regions and memory outlive the lanes that tests open, which end their operations.
pub struct Pair {
    pub domains: [Arc<dyn Domain>; 2],
    memory: [Memory; 2],
    keys: [LocalKey; 2],
    _regions: Vec<Box<dyn Region>>,
}

impl Pair {
    pub fn free(settings: Settings) -> Pair {
        Self::over(&Weak::over(Arc::new(Loopback::new()), settings))
    }

    pub fn scheduled(settings: Settings, scheduler: &Arc<Scheduler>) -> Pair {
        let loopback = Arc::new(Loopback::new());
        Self::over(&Weak::scheduled(loopback, settings, scheduler))
    }

    fn over(weak: &Weak) -> Pair {
        let devices = weak.probe().unwrap();
        let host = HostId("here".into());
        let domains = [0, 1].map(|me| {
            let (me, host) = (Pe(me), host.clone());
            weak.open(
                &devices[0],
                &Job {
                    me,
                    size: 2,
                    host_rank: 0,
                    host,
                },
            )
            .unwrap()
        });
        let memory = [(); 2].map(|()| conformance::host_memory(4096).unwrap());
        let both = domains.iter().zip(&memory);
        let regions: Vec<_> = both
            .map(|(d, m)| d.register(RegionId(0), m).unwrap())
            .collect();
        for importer in &domains {
            for (pe, region) in (0..).map(Pe).zip(&regions) {
                let peer = Peer {
                    pe,
                    host: host.clone(),
                    address: Some(domains[pe.index()].address()),
                };
                importer
                    .import(&peer, RegionId(0), region.key(), None)
                    .unwrap();
            }
        }
        Pair {
            domains,
            memory,
            keys: [regions[0].local_key(), regions[1].local_key()],
            _regions: regions,
        }
    }

    /// A word of a PE's page.
    pub fn word(&self, pe: usize, offset: u64) -> &AtomicU64 {
        assert!(offset.is_multiple_of(8) && offset < 4096);
        let base = self.memory[pe].base().as_ptr();
        // SAFETY: inside the page, aligned; everybody accesses it atomically while `self` lives.
        unsafe { AtomicU64::from_ptr(base.add(offset as usize).cast()) }
    }

    pub fn load(&self, pe: usize, offset: u64) -> u64 {
        self.word(pe, offset).load(Ordering::Acquire)
    }

    pub fn store(&self, pe: usize, offset: u64, value: u64) {
        self.word(pe, offset).store(value, Ordering::Release);
    }

    /// `len` bytes of a PE's page as the local buffer of its operations.
    pub fn local(&self, pe: usize, offset: u64, len: usize) -> Local {
        assert!(offset as usize + len <= 4096);
        Local {
            addr: self.memory[pe]
                .base()
                .as_ptr()
                .wrapping_add(offset as usize),
            len,
            key: Some(self.keys[pe]),
        }
    }
}

pub fn at(offset: u64) -> Remote {
    Remote {
        region: RegionId(0),
        offset,
    }
}

/// Adds `operand` to a word.
pub fn add(on: u64, operand: u64, fetch: Option<Local>) -> Op {
    Op::Atomic {
        op: AtomicOp::Add,
        width: Width::W64,
        on: at(on),
        operand,
        compare: 0,
        fetch,
    }
}

/// Posts through Full; how often it was full.
pub fn post(lane: &mut dyn Lane, to: Pe, op: Op, schedule: &dyn Schedule) -> usize {
    for full in 0..10_000 {
        schedule.yield_point();
        // SAFETY: what tests name is a `Pair`'s page, which outlives the lane.
        match unsafe { lane.post(to, &[op]) }.status {
            Status::All => return full,
            Status::Full => {
                lane.progress().unwrap();
                assert!(schedule.idle(), "full for ever");
            }
            Status::Refused(error) => panic!("{error}"),
        }
    }
    panic!("full for ever")
}

/// Posts once: refused, with which error.
pub fn refused(lane: &mut dyn Lane, to: Pe, op: Op) -> Error {
    // SAFETY: as in `post`.
    match unsafe { lane.post(to, &[op]) }.status {
        Status::Refused(error) => error,
        other => panic!("{other:?}"),
    }
}

/// Drives lanes until all that they took is completed.
pub fn complete(lanes: &mut [Box<dyn Lane>], to: Pe, schedule: &dyn Schedule) {
    let done = |lane: &dyn Lane| {
        let counters = lane.counters(to);
        counters.completed == counters.posted
    };
    for _ in 0..10_000 {
        schedule.yield_point();
        for lane in lanes.iter_mut() {
            lane.progress().unwrap();
        }
        if lanes.iter().all(|lane| done(&**lane)) {
            return;
        }
        assert!(schedule.idle(), "nothing moves, but not all is completed");
    }
    panic!("not completed")
}

/// A schedule that holds nobody.
#[derive(Debug)]
pub struct Unscheduled;

impl Schedule for Unscheduled {
    fn yield_point(&self) {}

    fn idle(&self) -> bool {
        std::thread::yield_now();
        true
    }
}
