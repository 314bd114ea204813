//! Memory that several processes have at one address: the detector's notes of a job.
//!
//! Values in it may have pointers into it, since each process sees it at [`BASE`]. So the notes are made of the standard
//! library's collections. [`Allocator`] is the library's global one: it takes memory from the arena for a thread that is
//! [inside], and from the system else. A thread is inside while it holds the notes' lock, and only then: so the arena
//! needs no lock of its own.
//!
//! [inside]: inside

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd};
use std::ptr;

/// The address in every process: far from where Linux puts programs, libraries and stacks.
const BASE: usize = 0x2f00_0000_0000;
/// Bytes of address space. Memory is used for what was written alone.
const LENGTH: usize = 64 << 30;
/// Bytes of the smallest piece.
const LEAST: usize = 16;
/// Sizes of pieces: the powers of two.
const SIZES: usize = 40;

/// The start of the arena.
#[repr(C)]
struct Head {
    /// The identity of the library that has made it: another one may have other types.
    library: [u64; 4],
    lock: libc::pthread_mutex_t,
    /// Whether a process has died while it changed the notes.
    broken: bool,
    /// The notes.
    notes: usize,
    /// The first byte that was never used.
    next: usize,
    /// The first free piece of each size. Its first word is the address of the next.
    free: [usize; SIZES],
}

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Does something with memory from the arena, or from the system.
pub(super) fn inside<R>(inside: bool, work: impl FnOnce() -> R) -> R {
    let outer = INSIDE.replace(inside);
    let result = work();
    INSIDE.set(outer);
    result
}

pub(super) fn is_inside() -> bool {
    INSIDE.get()
}

/// Whether this thread is inside from here on.
pub(super) fn enter(inside: bool) {
    INSIDE.set(inside);
}

fn head() -> *mut Head {
    ptr::with_exposed_provenance_mut(BASE)
}

/// Takes a piece. The calling thread is inside.
fn take(layout: Layout) -> *mut u8 {
    let size = layout.size().max(LEAST).next_power_of_two();
    let order = size.trailing_zeros() as usize;
    let head = head();
    // SAFETY: the thread holds the notes' lock, so the arena is mapped and nobody else uses its head.
    let (free, next) = unsafe { (&mut (*head).free, &mut (*head).next) };
    let Some(first) = free.get_mut(order) else {
        return ptr::null_mut();
    };
    if *first != 0 && layout.align() <= LEAST {
        let piece: *mut u8 = ptr::with_exposed_provenance_mut(*first);
        // SAFETY: a free piece, whose first word is the next one's address.
        *first = unsafe { piece.cast::<usize>().read() };
        return piece;
    }
    let at = next.next_multiple_of(layout.align().max(LEAST));
    match at.checked_add(size).filter(|end| *end <= BASE + LENGTH) {
        None => ptr::null_mut(),
        Some(end) => {
            *next = end;
            ptr::with_exposed_provenance_mut(at)
        }
    }
}

/// Gives a piece back. A thread that is not inside leaves it where it is.
fn give_back(piece: *mut u8, layout: Layout) {
    if !is_inside() {
        return;
    }
    let size = layout.size().max(LEAST).next_power_of_two();
    // SAFETY: the thread holds the notes' lock, so nobody else uses the head.
    let free = unsafe { &mut (*head()).free };
    if let Some(first) = free.get_mut(size.trailing_zeros() as usize) {
        // SAFETY: a piece of this size, which nobody uses any more.
        unsafe { piece.cast::<usize>().write(*first) };
        *first = piece.expose_provenance();
    }
}

fn is_of_arena(piece: *mut u8) -> bool {
    (BASE..BASE + LENGTH).contains(&piece.addr())
}

/// The allocator of this library.
pub(super) struct Allocator;

// SAFETY: both sides give pieces that nobody else has; the address tells where a piece is from.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match is_inside() {
            true => take(layout),
            // SAFETY: the caller's promise.
            false => unsafe { System.alloc(layout) },
        }
    }

    unsafe fn dealloc(&self, piece: *mut u8, layout: Layout) {
        match is_of_arena(piece) {
            true => give_back(piece, layout),
            // SAFETY: the caller's promise; it is the system's.
            false => unsafe { System.dealloc(piece, layout) },
        }
    }

    unsafe fn realloc(&self, piece: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !is_inside() && !is_of_arena(piece) {
            // SAFETY: the caller's promise; it is the system's, and stays so.
            return unsafe { System.realloc(piece, layout, size) };
        }
        // SAFETY: the caller's promise.
        let new = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        // SAFETY: a layout of the caller's.
        let to = unsafe { self.alloc(new) };
        if !to.is_null() {
            // SAFETY: two pieces of at least so many bytes.
            unsafe { piece.copy_to_nonoverlapping(to, size.min(layout.size())) };
            // SAFETY: the caller's promise.
            unsafe { self.dealloc(piece, layout) };
        }
        to
    }
}

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// The mapped arena. It stays mapped until the process ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arena(());

/// The identity of this library's file.
fn library() -> io::Result<[u64; 4]> {
    use std::os::unix::fs::MetadataExt;
    // SAFETY: plain data, for which zeros are a value.
    let mut info = unsafe { std::mem::zeroed::<libc::Dl_info>() };
    // SAFETY: the address of a function, and a place for the answer.
    let found = unsafe { libc::dladdr(library as *const libc::c_void, &raw mut info) };
    if found == 0 || info.dli_fname.is_null() {
        return Err(io::Error::other("the library's file is not known"));
    }
    // SAFETY: dladdr gave a string that ends.
    let path = unsafe { std::ffi::CStr::from_ptr(info.dli_fname) };
    let file = std::fs::metadata(path.to_string_lossy().as_ref())?;
    let modified = file.mtime() as u64 ^ file.mtime_nsec() as u64;
    Ok([file.dev(), file.ino(), file.size(), modified])
}

fn failed(code: i32) -> io::Result<()> {
    match code {
        0 => Ok(()),
        code => Err(io::Error::from_raw_os_error(code)),
    }
}

/// A lock for threads of several processes, of which one may die with it.
fn make_lock(lock: *mut libc::pthread_mutex_t) -> io::Result<()> {
    let mut how = MaybeUninit::<libc::pthread_mutexattr_t>::uninit();
    let how = how.as_mut_ptr();
    // SAFETY: a place for the attributes, which the first call fills; and one for the lock, which nobody uses yet.
    unsafe {
        failed(libc::pthread_mutexattr_init(how))?;
        failed(libc::pthread_mutexattr_setpshared(
            how,
            libc::PTHREAD_PROCESS_SHARED,
        ))?;
        failed(libc::pthread_mutexattr_setrobust(
            how,
            libc::PTHREAD_MUTEX_ROBUST,
        ))?;
        failed(libc::pthread_mutex_init(lock, how))
    }
}

impl Arena {
    /// A file for a new arena.
    pub(super) fn file() -> io::Result<File> {
        // SAFETY: a string that ends, and known flags.
        let file = unsafe { libc::memfd_create(c"softcuda-races".as_ptr(), libc::MFD_CLOEXEC) };
        if file < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: just made, and owned by nobody else.
        let file = unsafe { File::from_raw_fd(file) };
        file.set_len(LENGTH as u64)?;
        Ok(file)
    }

    /// Maps an arena's file. `notes` makes the notes of a new one; without, the arena is another process's.
    pub(super) fn map<N>(file: &File, notes: Option<fn() -> N>) -> io::Result<Arena> {
        // SAFETY: a new mapping, which replaces none.
        let at = unsafe {
            libc::mmap(
                head().cast(),
                LENGTH,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_FIXED_NOREPLACE | libc::MAP_NORESERVE,
                file.as_raw_fd(),
                0,
            )
        };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let arena = Arena(());
        let made = match notes {
            Some(notes) => arena.make(notes),
            None => arena.check(),
        };
        made.inspect_err(|_| arena.unmap())?;
        Ok(arena)
    }

    fn make<N>(self, notes: fn() -> N) -> io::Result<()> {
        let head = head();
        // SAFETY: the new file's first page, all zeros, which no other process knows yet.
        unsafe {
            (*head).library = library()?;
            (*head).next = BASE + size_of::<Head>().next_multiple_of(4096);
            make_lock(&raw mut (*head).lock)?;
            let notes = inside(true, || Box::into_raw(Box::new(notes())));
            (*head).notes = notes.expose_provenance();
        }
        Ok(())
    }

    fn check(self) -> io::Result<()> {
        // SAFETY: another process has made the head before it gave the file away, and this part of it stays.
        let theirs = unsafe { (*head()).library };
        match library()? == theirs {
            true => Ok(()),
            false => Err(io::Error::other(
                "another process of the job has another libsoftcuda.so",
            )),
        }
    }

    /// Unmaps it, before anybody uses it.
    pub(super) fn unmap(self) {
        // SAFETY: the mapping is this one's, and nothing in it is used yet.
        unsafe { libc::munmap(head().cast(), LENGTH) };
    }

    /// Locks the notes; none if a process has died while it changed them. The thread is inside then.
    pub(super) fn lock<N>(self) -> Option<*mut N> {
        let head = head();
        // SAFETY: the lock was made with the arena.
        let code = unsafe { libc::pthread_mutex_lock(&raw mut (*head).lock) };
        if code == libc::EOWNERDEAD {
            // SAFETY: this thread has the lock.
            unsafe {
                (*head).broken = true;
                libc::pthread_mutex_consistent(&raw mut (*head).lock);
            }
        }
        // SAFETY: this thread has the lock.
        if !matches!(code, 0 | libc::EOWNERDEAD) || unsafe { (*head).broken } {
            self.unlock();
            return None;
        }
        enter(true);
        // SAFETY: this thread has the lock.
        Some(ptr::with_exposed_provenance_mut(unsafe { (*head).notes }))
    }

    /// Unlocks them.
    pub(super) fn unlock(self) {
        enter(false);
        // SAFETY: this thread has the lock; an error is that it does not.
        unsafe { libc::pthread_mutex_unlock(&raw mut (*head()).lock) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The arena is one for the process, so this is one test.
    #[test]
    fn an_arena_has_memory_for_who_holds_its_lock_and_ends_with_a_process_that_dies_with_it() {
        let file = Arena::file().unwrap();
        let arena = Arena::map(&file, Some(|| 5_u64)).unwrap();
        let notes = arena.lock::<u64>().unwrap();
        // SAFETY: the lock is held.
        assert_eq!(unsafe { *notes }, 5);
        let first = vec![1_u8; 1000];
        let at = first.as_ptr().addr();
        assert!(is_of_arena(first.as_ptr().cast_mut()));
        drop(first);
        let second = vec![2_u8; 900];
        assert_eq!(second.as_ptr().addr(), at, "it is used again");
        let outside = inside(false, || vec![3_u8; 1000]);
        assert!(!is_of_arena(outside.as_ptr().cast_mut()));
        drop(second);
        arena.unlock();
        let own = vec![4_u8; 1000];
        assert!(!is_of_arena(own.as_ptr().cast_mut()));

        // SAFETY: the child makes system calls alone.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let _held = arena.lock::<u64>();
            // SAFETY: no precondition.
            unsafe { libc::_exit(0) };
        }
        // SAFETY: the child's number; nothing is asked of its status.
        unsafe { libc::waitpid(child, ptr::null_mut(), 0) };
        assert!(arena.lock::<u64>().is_none());
        assert!(arena.lock::<u64>().is_none(), "for good");
        assert!(!is_inside());

        // SAFETY: nobody else uses the head.
        unsafe { (*head()).library = [1, 2, 3, 4] };
        arena.unmap();
        let error = Arena::map::<u64>(&file, None).unwrap_err().to_string();
        assert!(error.contains("another libsoftcuda.so"), "{error}");
    }
}
