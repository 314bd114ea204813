//! PEs that die or stop during long transfers, over TCP: their connection ends, and no other.

#![allow(clippy::unwrap_used)]

use std::any::Any;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use oxshmem_ofi::{Interface, Ofi, Settings};
use oxshmem_transport::{
    Domain, Error, HostId, Job, Lane, Local, Memory, MemoryKind, Op, Pe, Peer, Region, RegionId,
    Remote, Status, Transport,
};

const REGION: RegionId = RegionId(0);
/// Bytes of each PE's region, and of a transfer.
const LEN: usize = 4 << 20;
/// Transfers that are outstanding at once: more than the sockets between two PEs hold.
const OUTSTANDING: usize = 16;
/// The PE of the other process, and one of this process that lives on.
const OTHER: Pe = Pe(1);
const THIRD: Pe = Pe(2);
/// The environment variables with PE 0's address and the provider, of the other process.
const ADDRESS: &str = "OFI_TESTS_ADDRESS";
const PROVIDER: &str = "OFI_TESTS_PROVIDER";
/// Those of libfabric 1.17 over TCP: without a layer above, and with one.
const PROVIDERS: [&str; 2] = ["net", "tcp"];
const DEADLINE: Duration = Duration::from_secs(60);
/// For connections: a PE that was reached counts as gone after three times as long, if nothing was under way to it when it
/// died.
const CONNECTS: Duration = Duration::from_secs(10);

fn host() -> HostId {
    HostId("one".into())
}

fn open(me: Pe, provider: &str) -> Arc<dyn Domain> {
    let ofi = Ofi::with(Settings {
        providers: Some(vec![provider.into()]),
        interfaces: Some(vec![Interface::Name("lo".into())]),
        connect_timeout: CONNECTS,
        ..Settings::default()
    });
    let device = ofi.probe().unwrap().swap_remove(0);
    let job = Job {
        me,
        size: 3,
        host: host(),
        host_rank: 0,
    };
    ofi.open(&device, &job).unwrap()
}

fn peer(pe: Pe, address: Vec<u8>) -> Peer {
    Peer {
        pe,
        host: host(),
        address: Some(address),
    }
}

/// Registers a region of `LEN` bytes; gives its first byte, too.
fn register(domain: &dyn Domain) -> (Box<dyn Region>, *mut u8) {
    let words: Arc<Vec<AtomicU64>> = Arc::new((0..LEN / 8).map(|_| AtomicU64::new(0)).collect());
    let base = NonNull::new(words.as_ptr().cast_mut().cast::<u8>()).unwrap();
    let owner: Arc<dyn Any + Send + Sync> = words;
    // SAFETY: the owner keeps the words, which are atomics.
    let memory = unsafe { Memory::new(base, LEN, MemoryKind::Host, None, owner) };
    (domain.register(REGION, &memory).unwrap(), base.as_ptr())
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().chunks(2);
    let byte = |two| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap();
    digits.map(byte).collect()
}

/// PE 1, which lives until its input ends, or it is killed.
#[test]
#[ignore = "the other process of the tests here"]
fn other_process() {
    let domain = open(OTHER, &std::env::var(PROVIDER).unwrap());
    let (region, _) = register(&*domain);
    let address = from_hex(&std::env::var(ADDRESS).unwrap());
    let _learnt = domain.reach(&peer(Pe(0), address), MemoryKind::Host);
    println!(
        "\nhere {} {}",
        to_hex(&domain.address()),
        to_hex(region.key())
    );
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

/// PE 0 of a job of three, with PE 1 in another process.
struct Job3 {
    other: Child,
    domain: Arc<dyn Domain>,
    memory: *mut u8,
    _regions: [Box<dyn Region>; 2],
    _third: Arc<dyn Domain>,
}

impl Job3 {
    fn start(provider: &str) -> Job3 {
        let (domain, third) = (open(Pe(0), provider), open(THIRD, provider));
        let (own, memory) = register(&*domain);
        let (of_third, _) = register(&*third);
        let mut other = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "other_process", "--ignored", "--nocapture"])
            .env(ADDRESS, to_hex(&domain.address()))
            .env(PROVIDER, provider)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(other.stdout.take().unwrap()).lines();
        let line = lines.find_map(|line| Some(line.ok()?.strip_prefix("here ")?.to_owned()));
        let line = line.unwrap();
        let (address, key) = line.split_once(' ').unwrap();
        let theirs = peer(OTHER, from_hex(address));
        let _reached = domain.reach(&theirs, MemoryKind::Host);
        domain
            .import(&theirs, REGION, &from_hex(key), None)
            .unwrap();
        let _learnt = third.reach(&peer(Pe(0), domain.address()), MemoryKind::Host);
        let theirs = peer(THIRD, third.address());
        let _reached = domain.reach(&theirs, MemoryKind::Host);
        domain
            .import(&theirs, REGION, of_third.key(), None)
            .unwrap();
        Job3 {
            other,
            domain,
            memory,
            _regions: [own, of_third],
            _third: third,
        }
    }

    fn op(&self, gets: bool, len: usize) -> Op {
        let there = Remote {
            region: REGION,
            offset: 0,
        };
        let here = Local {
            addr: self.memory,
            len,
            key: None,
        };
        match gets {
            true => Op::Get {
                into: here,
                from: there,
            },
            false => Op::Put {
                from: here,
                to: there,
            },
        }
    }

    /// Long transfers with PE 1, as many as there may be.
    fn begin(&self, lane: &mut dyn Lane, gets: bool) {
        let ops = vec![self.op(gets, LEN); OUTSTANDING];
        // SAFETY: the region, which the job holds, outlives the lane.
        let posted = unsafe { lane.post(OTHER, &ops) };
        assert_eq!(posted.accepted, OUTSTANDING);
    }

    /// A transfer of a lane with PE 2 completes.
    fn reaches_the_third(&self, lane: &mut dyn Lane, len: usize) {
        let before = lane.counters(THIRD).completed;
        // SAFETY: as above.
        let posted = unsafe { lane.post(THIRD, &[self.op(false, len)]) };
        assert!(matches!(posted.status, Status::All), "{posted:?}");
        until(|| {
            lane.progress().unwrap();
            lane.counters(THIRD).completed > before
        });
    }

    fn signal(&self, signal: i32) {
        let process = self.other.id().cast_signed();
        // SAFETY: a child of this process that was not waited for.
        let sent = unsafe { libc::kill(process, signal) };
        assert_eq!(sent, 0);
    }
}

impl Drop for Job3 {
    fn drop(&mut self) {
        let _gone = self.other.kill();
        let _status = self.other.wait();
    }
}

/// Each provider, with puts and with gets.
fn ways() -> impl Iterator<Item = (&'static str, bool)> {
    PROVIDERS
        .into_iter()
        .flat_map(|provider| [false, true].map(|gets| (provider, gets)))
}

fn until(mut is_so: impl FnMut() -> bool) {
    let since = Instant::now();
    while !is_so() {
        assert!(since.elapsed() < DEADLINE, "it does not come to that");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_pe_that_dies_during_long_transfers_ends_no_connection_but_its_own() {
    for (provider, gets) in ways() {
        let job = Job3::start(provider);
        let mut lane = job.domain.lane().unwrap();
        job.reaches_the_third(&mut *lane, LEN);
        job.begin(&mut *lane, gets);
        // The others are under way then.
        until(|| {
            lane.progress().unwrap();
            lane.counters(OTHER).completed > 0
        });
        job.begin(&mut *lane, gets);
        job.signal(libc::SIGKILL);
        let mut error = None;
        until(|| {
            error = lane.progress().err();
            error.is_some()
        });
        let named = matches!(
            error,
            Some(Error::PeerLost { pe: OTHER, .. } | Error::Connection { pe: OTHER, .. })
        );
        assert!(named, "{error:?}");
        job.reaches_the_third(&mut *lane, LEN);
        let mut new = job.domain.lane().unwrap();
        job.reaches_the_third(&mut *new, 8);
    }
}

#[test]
fn a_dropped_lane_gives_up_a_pe_that_does_not_move_and_holds_up_nobody() {
    for (provider, gets) in ways() {
        let job = Job3::start(provider);
        let (mut lane, mut new) = (job.domain.lane().unwrap(), job.domain.lane().unwrap());
        // Connected, and then stopped.
        job.begin(&mut *lane, gets);
        until(|| {
            lane.progress().unwrap();
            lane.counters(OTHER).completed > 0
        });
        job.begin(&mut *lane, gets);
        job.signal(libc::SIGSTOP);
        job.begin(&mut *lane, gets);
        let mut last = lane.counters(OTHER);
        until(|| {
            for _ in 0..200 {
                lane.progress().unwrap();
                std::thread::sleep(Duration::from_millis(1));
            }
            std::mem::replace(&mut last, lane.counters(OTHER)) == last
        });
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                drop(lane);
                ended.store(true, Ordering::Release);
            });
            job.reaches_the_third(&mut *new, LEN);
            assert!(!ended.load(Ordering::Acquire), "nothing was stuck");
            // It is given up first. Then it moves again.
            until(|| {
                // SAFETY: as above.
                let posted = unsafe { new.post(OTHER, &[Op::Flush]) };
                let _report = new.progress();
                matches!(posted.status, Status::Refused(_))
            });
            assert!(!ended.load(Ordering::Acquire), "nothing was stuck");
            job.signal(libc::SIGCONT);
        });
        job.reaches_the_third(&mut *new, LEN);
        // SAFETY: as above.
        let posted = unsafe { new.post(OTHER, &[job.op(false, 8)]) };
        let named = matches!(
            posted.status,
            Status::Refused(Error::Connection { pe: OTHER, .. })
        );
        assert!(named, "{posted:?}");
    }
}
