//! The symmetric heap of one PE: host memory that is committed as the heap grows, and never unmapped before its end.

use std::fmt;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{
    FallocateFlags, MemfdFlags, SealFlags, fallocate, fcntl_add_seals, ftruncate, memfd_create,
};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use crate::available::Available;
use crate::error::{Error, Result};
use crate::mapping::Mapping;

/// Memory is committed in multiples of this, unless huge pages are larger.
const GRANULE: usize = 256 << 10;

/// The size of huge pages to which the kernel joins ordinary ones. Where its huge pages are larger, it finds none to join.
const HUGE: usize = 2 << 20;

/// No more than this is committed without a new look at how much memory there is: other PEs of the
/// host commit at the same time.
const STEP: usize = 16 << 20;

/// The choice of the pages that back a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum HugePages {
    /// The kernel's default: ordinary pages, unless it is set otherwise.
    Off,
    /// Huge pages of 2 MiB as far as whole ones fit and the kernel has any to give; ordinary ones for the rest.
    /// From Linux 6.1 on that is so whatever its settings are, unless they deny it.
    #[default]
    Transparent,
    /// Pages of 2 MiB from the pool that the administrator set aside; an error if it is too small.
    Explicit2M,
    /// Pages of 1 GiB, likewise.
    Explicit1G,
}

impl HugePages {
    /// The size of a page, in bytes, where pages come from a pool.
    fn pool(self) -> Option<usize> {
        match self {
            HugePages::Off | HugePages::Transparent => None,
            HugePages::Explicit2M => Some(2 << 20),
            HugePages::Explicit1G => Some(1 << 30),
        }
    }
}

/// How to make a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SegmentOptions {
    /// The pages to use.
    pub huge_pages: HugePages,
    /// The NUMA node to take memory from while it has any.
    pub numa_node: Option<u32>,
}

/// The outcome of advice to the kernel, which it may not follow.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AdviceOutcome {
    /// It was not asked for.
    NotAsked,
    /// The kernel has taken note.
    Yes,
    /// It was refused; why, in words.
    No(String),
}

impl fmt::Display for AdviceOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AdviceOutcome::NotAsked => f.write_str("not asked for"),
            AdviceOutcome::Yes => f.write_str("yes"),
            AdviceOutcome::No(why) => write!(f, "no: {why}"),
        }
    }
}

/// This PE's heap memory: a memfd of the heap's limit in size, mapped whole, of which the first
/// [`committed`](Self::committed) bytes are backed by memory.
///
/// The file is sealed against shrinking and growing, so that peers can trust their mappings of it.
/// It has no name in any file system and vanishes with the last process that has it.
#[derive(Debug)]
pub struct Segment {
    descriptor: Arc<OwnedFd>,
    mapping: Arc<Mapping>,
    committed: usize,
    granule: usize,
    pool: Option<usize>,
    transparent: AdviceOutcome,
    numa: AdviceOutcome,
}

impl Segment {
    /// Makes a segment of `limit` bytes (rounded up to whole pages), with nothing committed.
    ///
    /// Transparent huge pages and the NUMA node are wishes: see
    /// [`transparent_huge_pages`](Self::transparent_huge_pages) and [`numa`](Self::numa).
    pub fn create(limit: usize, options: &SegmentOptions) -> Result<Self> {
        Self::with(None, limit, options)
    }

    /// Makes a segment of a memfd that has `used` bytes already, whole pages of ordinary size that count as
    /// committed: what the program has mapped of it becomes the segment's beginning.
    ///
    /// Not of huge pages from a pool: [`Error::BadLimit`].
    pub fn beginning_with(
        file: OwnedFd,
        used: usize,
        limit: usize,
        options: &SegmentOptions,
    ) -> Result<Self> {
        Self::with(Some((file, used)), limit, options)
    }

    fn with(
        begun: Option<(OwnedFd, usize)>,
        limit: usize,
        options: &SegmentOptions,
    ) -> Result<Self> {
        let bad = |why: String| Error::BadLimit { limit, why };
        let pool = options.huge_pages.pool();
        let page = pool.unwrap_or_else(rustix::param::page_size);
        let size = limit
            .checked_next_multiple_of(page)
            .filter(|size| i64::try_from(*size).is_ok())
            .ok_or_else(|| bad("no file can be so large; set a lower limit".into()))?;
        if size == 0 {
            return Err(bad("it would be empty; set a higher limit".into()));
        }
        // Growing a file beyond this limit would kill the process by SIGXFSZ.
        if let Some(most) = getrlimit(Resource::Fsize).current
            && most < size as u64
        {
            let why = format!(
                "files may have {most} bytes in this shell; raise `ulimit -f`, or set a lower limit"
            );
            return Err(bad(why));
        }

        let (file, used) = match begun {
            Some(_) if pool.is_some() => {
                return Err(bad("its beginning has ordinary pages".into()));
            }
            Some((_, used)) if used > size => {
                return Err(bad(format!(
                    "it begins with {used} bytes; set a higher limit"
                )));
            }
            Some(begun) => begun,
            None => (Self::file(limit, options)?, 0),
        };
        ftruncate(&file, size as u64)
            .map_err(|errno| Error::os(format!("ftruncate to {size} bytes"), errno))?;
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)
            .map_err(|errno| Error::os("sealing a memfd", errno))?;
        let mapping = Mapping::of_own(file.as_fd(), size)?;
        let transparent = match options.huge_pages {
            HugePages::Transparent => AdviceOutcome::Yes,
            _ => AdviceOutcome::NotAsked,
        };
        let numa = match options.numa_node {
            Some(node) => prefer_node(&mapping, node),
            None => AdviceOutcome::NotAsked,
        };
        Ok(Segment {
            descriptor: Arc::new(file),
            mapping: Arc::new(mapping),
            committed: used,
            granule: pool.unwrap_or(GRANULE),
            pool,
            transparent,
            numa,
        })
    }

    /// An empty file.
    fn file(limit: usize, options: &SegmentOptions) -> Result<OwnedFd> {
        let bad = |why: String| Error::BadLimit { limit, why };
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let flags = flags
            | match options.huge_pages {
                HugePages::Off | HugePages::Transparent => MemfdFlags::empty(),
                HugePages::Explicit2M => MemfdFlags::HUGETLB | MemfdFlags::HUGE_2MB,
                HugePages::Explicit1G => MemfdFlags::HUGETLB | MemfdFlags::HUGE_1GB,
            };
        memfd_create(c"oxshmem-heap", flags).map_err(|errno| match options.huge_pages.pool() {
            Some(page) => bad(format!(
                "this machine has no pages of {page} bytes ({errno}); use transparent huge pages"
            )),
            None => Error::os("memfd_create", errno),
        })
    }

    /// Backs at least the first `upto` bytes with zeroed memory; those that are backed already stay
    /// as they are. Without enough memory fails with [`Error::NoMemory`], and nothing has changed
    /// (M13).
    pub fn commit(&mut self, upto: usize) -> Result<()> {
        let limit = self.limit();
        if upto > limit {
            return Err(Error::BeyondLimit {
                wanted: upto,
                limit,
            });
        }
        let target = self.rounded(upto);
        let mut reached = self.committed;
        let mut asks = self.transparent != AdviceOutcome::NotAsked;
        while reached < target {
            let step = (target - reached).min(STEP.max(self.granule));
            let committed = self.look(target - reached).and_then(|()| {
                asks = asks && self.ask_for_huge(reached, reached + step);
                self.back(reached, step)
            });
            if let Err(why) = committed {
                // Releases the bytes that this call committed so far: of huge pages even the step that failed may
                // have left some. If this fails, a later call finds them committed, which does no harm.
                _ = self.punch(self.committed, reached + step);
                return Err(why.into_error(upto, self.committed, limit));
            }
            reached += step;
        }
        self.committed = self.committed.max(target);
        Ok(())
    }

    /// Gives back all memory beyond the first `down_to` bytes (rounded up to what was committed with
    /// them): for the roll-back of a growth that failed on another PE. What was there is lost.
    pub fn uncommit(&mut self, down_to: usize) -> Result<()> {
        let target = self.rounded(down_to.min(self.limit()));
        if target < self.committed {
            self.punch(target, self.committed)
                .map_err(|errno| Error::os("giving back a heap's memory", errno))?;
            self.committed = target;
        }
        Ok(())
    }

    /// Bytes from the start that are backed by memory.
    #[must_use]
    pub fn committed(&self) -> usize {
        self.committed
    }

    /// Bytes in all, the most that can be committed.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.mapping.len()
    }

    /// The file, for peers to map.
    #[must_use]
    pub fn descriptor(&self) -> &Arc<OwnedFd> {
        &self.descriptor
    }

    /// Where this process has it.
    #[must_use]
    pub fn mapping(&self) -> &Arc<Mapping> {
        &self.mapping
    }

    /// Whether the kernel gave transparent huge pages, when it was asked last: at each growth in which one fits.
    #[must_use]
    pub fn transparent_huge_pages(&self) -> &AdviceOutcome {
        &self.transparent
    }

    /// Whether memory comes from the preferred NUMA node.
    #[must_use]
    pub fn numa(&self) -> &AdviceOutcome {
        &self.numa
    }

    fn rounded(&self, bytes: usize) -> usize {
        bytes
            .checked_next_multiple_of(self.granule)
            .unwrap_or(usize::MAX)
            .min(self.limit())
    }

    /// Whether there is memory for so many bytes more.
    fn look(&self, left: usize) -> Result<(), Shortage> {
        if self.pool.is_none()
            && let Some(memory) = Available::now()
        {
            // The last part is left to others: at zero, the kernel kills.
            let free = memory.free.saturating_sub(memory.total / 64);
            if (left as u64) > free {
                return Err(Shortage::Seen {
                    free,
                    bound: memory.bound,
                });
            }
        }
        Ok(())
    }

    /// Backs a range by pages; what has some keeps them.
    fn back(&self, from: usize, len: usize) -> Result<(), Shortage> {
        let pool = self.pool;
        self.allocate(from, len)
            .map_err(|errno| Shortage::Told { errno, pool })
    }

    fn allocate(&self, from: usize, len: usize) -> Result<(), Errno> {
        let flags = FallocateFlags::empty();
        loop {
            match fallocate(&*self.descriptor, flags, from as u64, len as u64) {
                Err(Errno::INTR) => {}
                result => return result,
            }
        }
    }

    /// Has the kernel back a range, which is to be backed anyway, by huge pages, as far as whole ones fit up to its end.
    /// One that begins before the range may hold ordinary pages in use: their bytes stay. False where it is in vain
    /// to ask for more now.
    fn ask_for_huge(&mut self, from: usize, to: usize) -> bool {
        let (from, to) = (from / HUGE * HUGE, to / HUGE * HUGE);
        if from >= to {
            return true;
        }
        // It joins nothing where there is no page yet.
        let page = rustix::param::page_size();
        if (from..to)
            .step_by(HUGE)
            .any(|at| self.allocate(at, page).is_err())
        {
            return false;
        }
        // SAFETY: within our own mapping, since `to` is at most its length; no byte changes.
        let result = unsafe {
            let at = self.mapping.base().add(from).as_ptr();
            libc::madvise(at.cast(), to - from, libc::MADV_COLLAPSE)
        };
        if result == 0 {
            self.transparent = AdviceOutcome::Yes;
            return true;
        }
        let error = std::io::Error::last_os_error();
        self.transparent = AdviceOutcome::No(format!(
            "madvise(MADV_COLLAPSE): {error}; it wants Linux 6.1, free memory in pieces of 2 MiB, and no `deny` in \
             /sys/kernel/mm/transparent_hugepage/shmem_enabled"
        ));
        // Pages that a device holds cannot be moved; others can.
        error.raw_os_error() == Some(libc::EAGAIN)
    }

    fn punch(&self, from: usize, to: usize) -> Result<(), Errno> {
        if from >= to {
            return Ok(());
        }
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        loop {
            match fallocate(&*self.descriptor, flags, from as u64, (to - from) as u64) {
                Err(Errno::INTR) => {}
                result => return result,
            }
        }
    }
}

/// Why a step could not be committed.
enum Shortage {
    /// There is visibly too little.
    Seen { free: u64, bound: String },
    /// The kernel said so.
    Told { errno: Errno, pool: Option<usize> },
}

impl Shortage {
    fn into_error(self, wanted: usize, committed: usize, limit: usize) -> Error {
        let why = match self {
            Shortage::Seen { free, bound } => format!(
                "{bound} has {free} bytes to give; use less, start fewer PEs per host, or raise \
                 its limit"
            ),
            Shortage::Told {
                errno: Errno::NOSPC | Errno::NOMEM,
                pool: Some(page),
            } => format!(
                "the pool of {} KiB huge pages has {}; enlarge it (as root, write the number of \
                 pages to {}), or use transparent huge pages",
                page >> 10,
                free_in_pool(page).map_or("too few free".into(), |free| format!("{free} free")),
                pool_file(page, "nr_hugepages"),
            ),
            Shortage::Told {
                errno: errno @ (Errno::NOSPC | Errno::NOMEM),
                pool: None,
            } => format!(
                "the kernel has none ({errno}); use less, or see overcommit_memory in `man 5 proc`"
            ),
            Shortage::Told { errno, .. } => format!("fallocate: {errno}"),
        };
        Error::NoMemory {
            wanted,
            committed,
            limit,
            why,
        }
    }
}

fn pool_file(page: usize, name: &str) -> String {
    format!("/sys/kernel/mm/hugepages/hugepages-{}kB/{name}", page >> 10)
}

fn free_in_pool(page: usize) -> Option<u64> {
    std::fs::read_to_string(pool_file(page, "free_hugepages"))
        .ok()?
        .trim()
        .parse()
        .ok()
}

fn prefer_node(mapping: &Mapping, node: u32) -> AdviceOutcome {
    // A mask of 1024 nodes, the most that Linux can be built for.
    let mut mask = [0u64; 16];
    let Some(word) = mask.get_mut(node as usize / 64) else {
        return AdviceOutcome::No(format!("there is no NUMA node {node}"));
    };
    *word = 1 << (node % 64);
    // SAFETY: a policy for our own mapping, before anything is committed; the mask outlives the
    // call and has as many bits as it is told (the kernel ignores the last one).
    let result = unsafe {
        libc::syscall(
            libc::SYS_mbind,
            mapping.base().as_ptr(),
            mapping.len(),
            libc::MPOL_PREFERRED,
            mask.as_ptr(),
            mask.len() * 64 + 1,
            0,
        )
    };
    match result {
        0 => AdviceOutcome::Yes,
        _ => AdviceOutcome::No(format!(
            "mbind to node {node}: {}",
            std::io::Error::last_os_error()
        )),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    use super::*;

    fn segment(limit: usize) -> Segment {
        Segment::create(limit, &SegmentOptions::default()).unwrap()
    }

    /// The word at an offset of a mapping.
    fn word(mapping: &Mapping, offset: usize) -> &AtomicU64 {
        assert!(offset.is_multiple_of(8) && offset + 8 <= mapping.len());
        // SAFETY: in the mapping, aligned, and accessed by atomics only.
        unsafe { mapping.base().add(offset).cast::<AtomicU64>().as_ref() }
    }

    /// Bytes of memory that the file really has.
    fn backed(segment: &Segment) -> usize {
        rustix::fs::fstat(&**segment.descriptor())
            .unwrap()
            .st_blocks as usize
            * 512
    }

    /// A file of the program's, with a word at its end.
    fn begun(bytes: usize) -> OwnedFd {
        let file = Segment::file(bytes, &SegmentOptions::default()).unwrap();
        ftruncate(&file, bytes as u64).unwrap();
        rustix::io::pwrite(&file, &7_u64.to_ne_bytes(), bytes as u64 - 8).unwrap();
        file
    }

    #[test]
    fn a_segment_begins_with_what_its_file_has() {
        let options = SegmentOptions::default();
        let mut segment = Segment::beginning_with(begun(8192), 8192, 1 << 20, &options).unwrap();
        assert_eq!(segment.limit(), 1 << 20);
        segment.commit(100_000).unwrap();
        segment.uncommit(8192).unwrap();
        assert_eq!(word(segment.mapping(), 8184).load(Relaxed), 7);
        // The committed bytes stay, though no more can be committed.
        assert!(segment.commit(2 << 20).is_err());
        assert_eq!(word(segment.mapping(), 8184).load(Relaxed), 7);
        assert!(Segment::beginning_with(begun(8192), 8192, 4096, &options).is_err());
        let huge_pages = HugePages::Explicit2M;
        let pool = SegmentOptions {
            huge_pages,
            ..options
        };
        assert!(Segment::beginning_with(begun(8192), 8192, 1 << 20, &pool).is_err());
    }

    #[test]
    fn nothing_is_committed_until_asked_for() {
        let mut segment = segment(1 << 30);
        assert_eq!(
            (segment.limit(), segment.committed(), backed(&segment)),
            (1 << 30, 0, 0)
        );
        segment.commit(1).unwrap();
        assert_eq!((segment.committed(), backed(&segment)), (GRANULE, GRANULE));
        segment.commit(GRANULE).unwrap();
        assert_eq!(segment.committed(), GRANULE);
        segment.commit(40 << 20).unwrap();
        assert_eq!(
            (segment.committed(), backed(&segment)),
            (40 << 20, 40 << 20)
        );
        segment.commit(0).unwrap();
        assert_eq!(segment.committed(), 40 << 20);
    }

    #[test]
    fn a_peer_that_maps_the_descriptor_sees_the_same_bytes() {
        let mut segment = segment(GRANULE);
        segment.commit(GRANULE).unwrap();
        let descriptor = Arc::clone(segment.descriptor());
        let peer = Mapping::of_descriptor(descriptor.as_fd(), segment.limit()).unwrap();
        word(segment.mapping(), 4096).store(42, Relaxed);
        assert_eq!(word(&peer, 4096).load(Relaxed), 42);
        drop(segment);
        assert_eq!(
            word(&peer, 4096).load(Relaxed),
            42,
            "a mapping outlives its segment"
        );
    }

    #[test]
    fn m13_an_uncommitted_growth_leaves_the_rest_as_it_was() {
        let mut segment = segment(64 << 20);
        segment.commit(1 << 20).unwrap();
        word(segment.mapping(), (1 << 20) - 8).store(1, Relaxed);
        segment.commit(40 << 20).unwrap();
        word(segment.mapping(), 1 << 20).store(2, Relaxed);
        segment.uncommit(1 << 20).unwrap();
        assert_eq!((segment.committed(), backed(&segment)), (1 << 20, 1 << 20));
        assert_eq!(word(segment.mapping(), (1 << 20) - 8).load(Relaxed), 1);
        segment.commit(2 << 20).unwrap();
        assert_eq!(
            word(segment.mapping(), 1 << 20).load(Relaxed),
            0,
            "memory comes zeroed"
        );
        segment.uncommit(50 << 20).unwrap();
        assert_eq!(segment.committed(), 2 << 20, "uncommit never commits");
    }

    #[test]
    fn m13_lack_of_memory_is_an_error_that_changes_nothing() {
        let mut segment = segment(1 << 44);
        segment.commit(1 << 20).unwrap();
        word(segment.mapping(), 0).store(3, Relaxed);
        let error = segment.commit(1 << 43).unwrap_err();
        assert!(
            matches!(error, Error::NoMemory { wanted, committed, .. }
                if wanted == 1 << 43 && committed == 1 << 20),
            "{error}"
        );
        assert_eq!((segment.committed(), backed(&segment)), (1 << 20, 1 << 20));
        assert_eq!(word(segment.mapping(), 0).load(Relaxed), 3);
        segment.commit(2 << 20).unwrap();
    }

    #[test]
    fn more_than_the_limit_is_refused() {
        let mut segment = segment(5000);
        assert_eq!(segment.limit(), 8192, "whole pages");
        segment.commit(8192).unwrap();
        assert_eq!((segment.committed(), backed(&segment)), (8192, 8192));
        for wanted in [8193, usize::MAX] {
            let error = segment.commit(wanted).unwrap_err();
            assert!(
                matches!(error, Error::BeyondLimit { limit: 8192, .. }),
                "{error}"
            );
        }
    }

    #[test]
    fn the_file_can_neither_shrink_nor_grow() {
        let segment = segment(1 << 20);
        for size in [0, 4096, 2 << 20] {
            assert_eq!(ftruncate(&**segment.descriptor(), size), Err(Errno::PERM));
        }
    }

    /// Bytes at an address that this process has mapped by huge pages.
    fn mapped_huge(mapping: &Mapping) -> usize {
        let from = format!("{:x}-", mapping.base().addr());
        let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let mut lines = smaps.lines().skip_while(|line| !line.starts_with(&from));
        let kib = lines
            .find_map(|line| line.strip_prefix("ShmemPmdMapped:"))
            .unwrap();
        kib.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
    }

    #[test]
    fn whole_huge_pages_are_given_where_the_kernel_has_any() {
        let mut segment = segment(64 << 20);
        segment.commit(HUGE - GRANULE).unwrap();
        assert_eq!(
            *segment.transparent_huge_pages(),
            AdviceOutcome::Yes,
            "not yet asked"
        );
        word(segment.mapping(), HUGE - GRANULE - 8).store(5, Relaxed);
        segment.commit(4 * HUGE + GRANULE).unwrap();
        assert_eq!(
            backed(&segment),
            4 * HUGE + GRANULE,
            "the rest is of ordinary pages"
        );
        assert_eq!(word(segment.mapping(), HUGE - GRANULE - 8).load(Relaxed), 5);
        let peer = Mapping::of_descriptor(segment.descriptor().as_fd(), 64 << 20).unwrap();
        for at in (0..4 * HUGE + GRANULE).step_by(4096).skip(1) {
            assert_eq!(word(&peer, at).load(Relaxed), 0);
            word(segment.mapping(), at).store(at as u64, Relaxed);
            assert_eq!(word(&peer, at).load(Relaxed), at as u64);
        }
        match segment.transparent_huge_pages() {
            AdviceOutcome::Yes => {
                assert_eq!(mapped_huge(segment.mapping()), 4 * HUGE);
                assert_eq!(mapped_huge(&peer), 4 * HUGE);
            }
            refused => println!("no huge pages here: {refused}"),
        }
    }

    #[test]
    fn ordinary_pages_are_used_where_no_huge_ones_are_asked_for() {
        let options = SegmentOptions {
            huge_pages: HugePages::Off,
            ..SegmentOptions::default()
        };
        let mut segment = Segment::create(64 << 20, &options).unwrap();
        segment.commit(4 * HUGE).unwrap();
        assert_eq!(*segment.transparent_huge_pages(), AdviceOutcome::NotAsked);
        word(segment.mapping(), 0).store(1, Relaxed);
        // Nothing, unless the kernel is set to give shared memory huge pages unasked.
        let setting = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/shmem_enabled");
        if setting.is_ok_and(|setting| setting.contains("[never]")) {
            assert_eq!(mapped_huge(segment.mapping()), 0);
        }
    }

    #[test]
    fn impossible_limits_are_refused() {
        for limit in [0, usize::MAX, 1 << 63] {
            let error = Segment::create(limit, &SegmentOptions::default()).unwrap_err();
            assert!(matches!(error, Error::BadLimit { .. }), "{limit}: {error}");
        }
        let error = Segment::create(1 << 58, &SegmentOptions::default())
            .unwrap_err()
            .to_string();
        assert!(error.contains("288230376151711744 bytes"), "{error}");
    }

    #[test]
    fn explicit_huge_pages_are_committed_whole_or_refused_with_the_way_to_mend_it() {
        // Works whether or not the machine has set pages aside; says which it was.
        let options = SegmentOptions {
            huge_pages: HugePages::Explicit2M,
            ..Default::default()
        };
        let mut segment = match Segment::create(64 << 30, &options) {
            Ok(segment) => segment,
            Err(error) => {
                println!("no huge pages here: {error}");
                assert!(matches!(error, Error::BadLimit { .. }), "{error}");
                return;
            }
        };
        if free_in_pool(2 << 20).is_some_and(|free| free > 0) {
            println!("with a pool of huge pages");
            segment.commit(1).unwrap();
            assert_eq!((segment.committed(), backed(&segment)), (2 << 20, 2 << 20));
            word(segment.mapping(), (2 << 20) - 8).store(1, Relaxed);
        } else {
            println!("with an empty pool of huge pages");
        }
        let before = backed(&segment);
        let error = segment.commit(64 << 30).unwrap_err().to_string();
        assert!(error.contains("nr_hugepages"), "{error}");
        assert_eq!(backed(&segment), before, "m13: the heap is unchanged");
    }

    #[test]
    fn a_numa_node_is_preferred_or_the_refusal_reported() {
        let node = |node| SegmentOptions {
            numa_node: Some(node),
            ..Default::default()
        };
        let mut segment = Segment::create(1 << 20, &node(0)).unwrap();
        assert_ne!(*segment.numa(), AdviceOutcome::NotAsked);
        segment.commit(1 << 20).unwrap();
        for absent in [1023, 1024, u32::MAX] {
            let segment = Segment::create(1 << 20, &node(absent)).unwrap();
            assert!(
                matches!(segment.numa(), AdviceOutcome::No(_)),
                "{absent}: {}",
                segment.numa()
            );
        }
        assert_eq!(*self::segment(4096).numa(), AdviceOutcome::NotAsked);
    }
}
