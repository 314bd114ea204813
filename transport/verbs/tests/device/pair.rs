//! Two PEs in this process, each with a domain on a port of its own, a region of memory and a lane.

#[path = "ports.rs"]
mod ports;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use oxshmem_transport::{
    Domain, Error, HostId, Job, Lane, Local, Memory, Op, Pe, Peer, Region, RegionId, Remote,
    Status, Transport, conformance,
};
use oxshmem_verbs::{Settings, Verbs};

/// How long a wait may last.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub struct Side {
    // Lanes end before the memory that they use.
    pub lane: Box<dyn Lane>,
    pub region: Option<Box<dyn Region>>,
    pub domain: Arc<dyn Domain>,
    pub memory: Memory,
    pub pe: Pe,
}

impl Side {
    pub fn new(verbs: &Verbs, pe: Pe, len: usize) -> Side {
        let devices = verbs.probe().unwrap_or_else(|error| panic!("{error}"));
        let job = Job {
            me: pe,
            size: 2,
            host_rank: 0,
            host: HostId(format!("host {pe}")),
        };
        let ports = ports::for_pes(&devices);
        let device = ports[pe.index() % ports.len()];
        let domain = verbs.open(device, &job).unwrap();
        let memory = conformance::host_memory(len).unwrap();
        let region = domain.register(RegionId(0), &memory).unwrap();
        Side {
            lane: domain.lane().unwrap(),
            region: Some(region),
            domain,
            memory,
            pe,
        }
    }

    pub fn peer(&self) -> Peer {
        Peer {
            pe: self.pe,
            host: HostId(format!("host {}", self.pe)),
            address: Some(self.domain.address()),
        }
    }

    pub fn word(&self, offset: usize) -> &AtomicU64 {
        assert!(offset.is_multiple_of(8) && offset + 8 <= self.memory.len());
        // SAFETY: an aligned word inside memory that `self` keeps, accessed atomically or by NICs.
        unsafe { AtomicU64::from_ptr(self.memory.base().as_ptr().add(offset).cast()) }
    }

    pub fn load(&self, offset: usize) -> u64 {
        self.word(offset).load(Ordering::Acquire)
    }

    pub fn store(&self, offset: usize, value: u64) {
        self.word(offset).store(value, Ordering::Release);
    }

    /// Its own memory, as the local buffer of its operations.
    pub fn local(&self, offset: usize, len: usize) -> Local {
        assert!(offset + len <= self.memory.len());
        Local {
            // SAFETY: inside the memory, checked above.
            addr: unsafe { self.memory.base().as_ptr().add(offset) },
            len,
            key: self.region.as_ref().map(|region| region.local_key()),
        }
    }

    /// # Safety
    ///
    /// As for [`Lane::post`].
    pub unsafe fn post(&mut self, pe: Pe, ops: &[Op]) -> Result<(), Error> {
        let since = Instant::now();
        let mut rest = ops;
        loop {
            // SAFETY: the caller's promise.
            let posted = unsafe { self.lane.post(pe, rest) };
            rest = &rest[posted.accepted..];
            match posted.status {
                Status::All => return Ok(()),
                Status::Refused(error) => return Err(error),
                Status::Full => self.lane.progress()?,
            }
            assert!(since.elapsed() < PATIENCE, "full for ever");
            std::thread::yield_now();
        }
    }

    /// Until all that was posted to `pe` is complete.
    pub fn complete(&mut self, pe: Pe) -> Result<(), Error> {
        let since = Instant::now();
        loop {
            let now = self.lane.counters(pe);
            if now.completed == now.posted {
                return Ok(());
            }
            self.lane.progress()?;
            assert!(since.elapsed() < PATIENCE, "{now:?}");
            std::thread::yield_now();
        }
    }

    /// # Safety
    ///
    /// As for [`Lane::post`].
    pub unsafe fn perform(&mut self, pe: Pe, ops: &[Op]) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe { self.post(pe, ops) }?;
        // SAFETY: a flush has no local buffer.
        unsafe { self.post(pe, &[Op::Flush]) }?;
        self.complete(pe)
    }
}

pub fn remote(offset: u64) -> Remote {
    Remote {
        region: RegionId(0),
        offset,
    }
}

pub const PE0: Pe = Pe(0);
pub const PE1: Pe = Pe(1);

/// Two PEs whose regions and lanes know each other.
pub fn pair(settings: Settings, len: usize) -> [Side; 2] {
    let verbs = Verbs::with(settings);
    pair_of(&verbs, len)
}

pub fn pair_of(verbs: &Verbs, len: usize) -> [Side; 2] {
    connected([PE0, PE1].map(|pe| Side::new(verbs, pe, len)))
}

/// The sides, whose regions and lanes know each other from now on.
pub fn connected(mut sides: [Side; 2]) -> [Side; 2] {
    for (here, there) in [(0, 1), (1, 0), (0, 0), (1, 1)] {
        let peer = sides[there].peer();
        let region = sides[there].region.as_ref().unwrap();
        let key = region.key().to_vec();
        let pe = sides[there].pe;
        let imported = sides[here].domain.import(&peer, RegionId(0), &key, None);
        assert_eq!(imported.unwrap().len(), sides[there].memory.len());
        let endpoint = sides[here].lane.endpoint(pe).unwrap();
        let from = sides[here].pe;
        let answer = sides[there].domain.accept(from, &endpoint).unwrap();
        sides[here].lane.connect(pe, &answer).unwrap();
    }
    sides
}
