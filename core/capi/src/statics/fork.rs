//! The program's variables in a child of `fork`: as they were when it was made, and for itself alone.
//!
//! The parent copies the shared pages just before it forks, so that neither it nor another PE can change them in between.
//! The child maps the copy in their place before any code of the program runs in it. `vfork`, and the functions made of
//! it (`posix_spawn`, `system`, `popen`), copy no memory, and need no copy. The system call itself, and
//! `_Fork`, call no handlers: such a child shares the variables until it executes another program.
//!
//! A fork takes longer the more of the variables has been touched: about half a second per gigabyte. Untouched pages cost
//! nothing.
//!
//! Handlers take memory from the system alone: the locks of the program's allocator may be held while they run.

use std::cell::Cell;
use std::ffi::c_void;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::ptr::{null_mut, with_exposed_provenance_mut};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use super::program::Segment;

/// The variables that are shared.
#[derive(Debug)]
struct Shared {
    segments: Vec<Segment>,
    /// The file that is mapped there: the first segment at its beginning, each other at its distance from the first.
    file: File,
}

static SHARED: OnceLock<Shared> = OnceLock::new();
/// Whether this process shares them: its children do not.
static HERE: AtomicBool = AtomicBool::new(false);
/// Whether the handlers are registered.
static HEARD: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// The copies for the child that this thread is making, one behind the other; null if there are none. Thread-local, since
    /// a variable of the program would be shared, too, where it is linked with the archive.
    static COPIES: Cell<*mut c_void> = const { Cell::new(null_mut()) };
}

/// Runs before the program registers handlers of its own: so the copy has what these do before a fork, and what they do in the
/// child they do to the copy.
#[used]
#[unsafe(link_section = ".init_array.00101")]
static REGISTER: extern "C" fn() = register;

extern "C" fn register() {
    // SAFETY: handlers of the library's own, which the loader unregisters together with it.
    let status = unsafe { libc::pthread_atfork(Some(prepare), Some(in_parent), Some(in_child)) };
    HEARD.store(status == 0, Ordering::Relaxed);
}

/// The reason why the program's variables cannot be shared, if there is one.
pub(super) fn objection() -> Option<&'static str> {
    if SHARED.get().is_some() {
        return Some(
            "an initialization that failed has taken them already; start the program anew",
        );
    }
    let heard = HEARD.load(Ordering::Relaxed);
    (!heard).then_some("children of a fork could not have their own, for want of memory")
}

/// Notes that these segments are mapped of the file, from now on.
pub(super) fn note_shared(segments: Vec<Segment>, file: File) {
    if SHARED.set(Shared { segments, file }).is_ok() {
        HERE.store(true, Ordering::Release);
    }
}

fn shared() -> Option<&'static Shared> {
    HERE.load(Ordering::Acquire).then(|| SHARED.get()).flatten()
}

extern "C" fn prepare() {
    if let Some(shared) = shared() {
        COPIES.set(shared.copies().unwrap_or(null_mut()));
    }
}

extern "C" fn in_parent() {
    let Some(shared) = shared() else {
        return;
    };
    let copies = COPIES.replace(null_mut());
    if !copies.is_null() {
        // SAFETY: `prepare` mapped so many bytes, and nothing refers to them.
        unsafe { libc::munmap(copies, shared.len()) };
    }
}

extern "C" fn in_child() {
    let Some(shared) = shared() else {
        return;
    };
    let copies = COPIES.replace(null_mut());
    if copies.is_null() {
        end();
    }
    for (segment, copy) in shared.places(copies) {
        let at: *mut c_void = with_exposed_provenance_mut(segment.start);
        let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        // SAFETY: the copy has the same bytes, and this is the only thread.
        let moved = unsafe { libc::mremap(copy, segment.len(), segment.len(), flags, at) };
        if moved != at {
            end();
        }
    }
    HERE.store(false, Ordering::Release);
}

/// Ends a child whose variables would be its parent's. Calls only what may be called between fork and exec.
fn end() -> ! {
    let why = b"oxshmem: a forked child ends, since there is no memory for variables of its own: use fewer or smaller \
                global and static ones, or posix_spawn\n";
    // SAFETY: `why` has as many bytes; and the process ends.
    unsafe {
        libc::write(libc::STDERR_FILENO, why.as_ptr().cast(), why.len());
        libc::_exit(1)
    }
}

impl Shared {
    /// The bytes of all segments.
    fn len(&self) -> usize {
        self.segments.iter().map(Segment::len).sum()
    }

    /// Each segment, and the address of its copy.
    fn places(&self, copies: *mut c_void) -> impl Iterator<Item = (&Segment, *mut c_void)> {
        let mut next = copies;
        self.segments.iter().map(move |segment| {
            let place = next;
            next = next.wrapping_byte_add(segment.len());
            (segment, place)
        })
    }

    /// Private copies of the segments, where there is memory for them.
    fn copies(&self) -> Option<*mut c_void> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: new memory.
        let copies = unsafe { libc::mmap(null_mut(), self.len(), protection, flags, -1, 0) };
        if copies == libc::MAP_FAILED {
            return None;
        }
        for (segment, place) in self.places(copies) {
            let copied = self.copy(segment, place);
            // SAFETY: whole pages of the new memory.
            let set = unsafe { libc::mprotect(place, segment.len(), segment.protection) };
            if copied.is_err() || set != 0 {
                // SAFETY: mapped above, and nothing refers to it.
                unsafe { libc::munmap(copies, self.len()) };
                return None;
            }
        }
        Some(copies)
    }

    /// Copies a segment to new memory of its size.
    fn copy(&self, segment: &Segment, to: *mut c_void) -> std::io::Result<()> {
        let first = self.segments.first().map_or(0, |first| first.start);
        // The segment's place in the file.
        let (start, end) = (segment.start - first, segment.end - first);
        let mut at = start;
        // Pages that nobody has touched are no data: they stay zero, and take no memory.
        while let Some(data) = self.next(at, libc::SEEK_DATA, end) {
            at = self.next(data, libc::SEEK_HOLE, end).unwrap_or(end);
            let to = to.wrapping_byte_add(data - start).cast::<u8>();
            // SAFETY: as many bytes of the new memory, to which nothing else refers.
            let to = unsafe { std::slice::from_raw_parts_mut(to, at - data) };
            // Read from the file: the program may have protected its pages. Other threads, and PEs, may store there
            // meanwhile, as to any memory that a fork copies.
            self.file.read_exact_at(to, data as u64)?;
        }
        Ok(())
    }

    /// The place where data or a hole begins in the file from `at` on, but before `end`. Where the system does not tell, all
    /// is data.
    fn next(&self, at: usize, what: i32, end: usize) -> Option<usize> {
        if at >= end {
            return None;
        }
        // SAFETY: asks about a file; nobody uses its position.
        let found = unsafe { libc::lseek(self.file.as_raw_fd(), at as i64, what) };
        let found = match found {
            -1 if std::io::Error::last_os_error().raw_os_error() == Some(libc::ENXIO) => end,
            -1 if what == libc::SEEK_DATA => at,
            -1 => end,
            found => found as usize,
        };
        (found < end).then_some(found)
    }
}
