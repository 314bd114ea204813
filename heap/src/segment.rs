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
mod tests;
