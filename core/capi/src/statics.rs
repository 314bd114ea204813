//! Symmetric global and static variables of the main program: the pages of its data become the beginning of the
//! symmetric heap, before the library starts a thread.
//!
//! The writable segments of the main program, without those parts that the loader has made read-only again (RELRO), are copied
//! into a file in memory, which is then mapped in their place. In a program that is linked with the archive the library's own
//! variables are left out: else a put that misses could change them. Pages that were never touched stay holes of the file. A
//! child of `fork` gets [its own copy](fork).
//!
//! In some programs that cannot be done. Then the heap alone is symmetric, and a message says why:
//!
//! - other threads run already, and their stores could be lost;
//! - the program has protected some of its data, or mapped something else there;
//! - it has no shared libraries, so that the C library's own variables, such as its locks, are among the program's.
//!
//! In a program that is not linked with the library, such as an interpreter that loads it, no variable could be meant, and
//! there is no message.

mod fork;
mod maps;
mod program;

use std::ffi::c_void;
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::ptr::{null_mut, with_exposed_provenance, with_exposed_provenance_mut};

use oxshmem::{Builder, World, bindings};

use crate::failure;

use self::program::{PAGE, Segment};

/// The variables as shared memory.
struct Shared {
    file: OwnedFd,
    /// The address and the bytes of its mapping.
    base: usize,
    len: usize,
}

/// Joins the job, with the program's data as symmetric memory. Where that cannot be, one PE says why: all join alike.
pub(crate) fn join(builder: Builder) -> oxshmem::Result<World> {
    let (builder, why) = match shared() {
        Ok(Some(Shared { file, base, len })) => {
            // SAFETY: the mapping stays until the process ends. C's stores to variables make no references.
            let with = unsafe {
                bindings::program_memory(builder, file, with_exposed_provenance_mut(base), len)
            };
            (with, None)
        }
        Ok(None) => (builder, None),
        Err(why) => (builder, Some(why)),
    };
    let joined = builder.join();
    // PEs that differ here do not join at all.
    if let (Some(why), true) = (
        why,
        joined.as_ref().map_or(true, |world| world.my_pe() == 0),
    ) {
        failure::print(&format!(
            "the symmetric heap alone is symmetric, and no global or static variable: {why}"
        ));
    }
    joined
}

fn shared() -> Result<Option<Shared>, String> {
    let mut program = program::of_this_process();
    if program.segments.is_empty() || !program.is_linked {
        return Ok(None);
    }
    if !program.is_dynamic {
        return Err(
            "the C library's are among them; link without -static, which liboxshmem.a does not need"
                .into(),
        );
    }
    if let Some(why) = fork::objection() {
        return Err(why.into());
    }
    let threads = std::fs::read_dir("/proc/self/task").map(Iterator::count);
    if let Some(why) = objection_of_threads(threads) {
        return Err(why);
    }
    let maps = std::fs::read("/proc/self/maps").map_err(failed("looking at"))?;
    let maps = String::from_utf8_lossy(&maps);
    maps::find_protections(&maps, program.headers, &mut program.segments).map_err(|at| {
        format!("the program has mapped or protected what lies at {at:#x} among them; do so elsewhere, or after shmem_init")
    })?;
    let _blocked = BlockedSignals::all();
    replace(program.segments).map(Some)
}

/// The objection, unless this thread alone runs.
fn objection_of_threads(threads: std::io::Result<usize>) -> Option<String> {
    match threads {
        Ok(1) => None,
        Ok(_) => Some("other threads run already; call shmem_init before they start".into()),
        Err(error) => Some(format!(
            "whether other threads run cannot be told (/proc/self/task: {error}); mount /proc"
        )),
    }
}

/// An error about the program's data, in words.
fn failed(what: &'static str) -> impl FnOnce(std::io::Error) -> String {
    move |error| format!("{what} the program's data: {error}")
}

/// Signals are blocked while it lives: the stores of a handler in the meantime would be lost.
struct BlockedSignals(libc::sigset_t);

impl BlockedSignals {
    fn all() -> Self {
        let mut all = std::mem::MaybeUninit::uninit();
        let mut before = std::mem::MaybeUninit::uninit();
        // SAFETY: the first call fills `all`, and the second, which has nothing to refuse, `before`.
        unsafe {
            libc::sigfillset(all.as_mut_ptr());
            libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
            BlockedSignals(before.assume_init())
        }
    }
}

impl Drop for BlockedSignals {
    fn drop(&mut self) {
        // SAFETY: the set was filled.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, null_mut()) };
    }
}

/// Replaces the segments by mappings of a file with the same bytes. Nothing writes to them meanwhile: this is the
/// only thread, and it writes to its stack alone.
fn replace(mut segments: Vec<Segment>) -> Result<Shared, String> {
    let first = segments.first().map_or(0, |first| first.start);
    let len = segments.last().map_or(0, |last| last.end) - first;
    let file = new_file(len)?;
    for segment in &segments {
        copy(segment, &file, first).map_err(failed("copying"))?;
    }
    let kept = file.try_clone().map_err(failed("keeping"))?;
    let mapped = segments.iter().try_for_each(|segment| {
        let at: *mut c_void = with_exposed_provenance_mut(segment.start);
        let flags = libc::MAP_SHARED | libc::MAP_FIXED;
        let (offset, file) = ((segment.start - first) as i64, file.as_raw_fd());
        // SAFETY: the pages are the program's data, of which the file has a copy. One call replaces them.
        let mapped =
            unsafe { libc::mmap(at, segment.len(), segment.protection, flags, file, offset) };
        match mapped {
            libc::MAP_FAILED => Err((segment.start, std::io::Error::last_os_error())),
            _ => Ok(()),
        }
    });
    if let Err((failed, _)) = &mapped {
        segments.retain(|segment| segment.start < *failed);
    }
    // Also where a later segment was not mapped: the earlier ones are.
    fork::note_shared(segments, kept);
    mapped.map_err(|(_, error)| failed("mapping")(error))?;
    Ok(Shared {
        file: file.into(),
        base: first,
        len,
    })
}

/// A file in memory of `len` bytes, all holes.
fn new_file(len: usize) -> Result<File, String> {
    let mut most = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the place is for a limit. Growing a file beyond it would kill the process by SIGXFSZ.
    let limited = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut most) } == 0;
    if limited && most.rlim_cur < len as u64 {
        return Err(format!(
            "they have {len} bytes, and files may have {} in this shell; raise `ulimit -f`",
            most.rlim_cur
        ));
    }
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // SAFETY: the name is a string.
    let descriptor = unsafe { libc::memfd_create(c"oxshmem-heap".as_ptr(), flags) };
    if descriptor < 0 {
        let error = std::io::Error::last_os_error();
        return Err(format!("making a file for the program's data: {error}"));
    }
    // SAFETY: it was just made, and is nobody else's.
    let file = unsafe { File::from_raw_fd(descriptor) };
    let sized = file.set_len(len as u64);
    sized.map_err(|error| format!("making a file for the program's data: {error}"))?;
    Ok(file)
}

/// The number of entries of the page map that are read at once.
const BATCH: usize = 512;
/// The bits of an entry for a page that is present or swapped out.
const TOUCHED: u64 = 0b11 << 62;

/// Copies a segment's pages to its place in the file, but for those that are zero.
fn copy(segment: &Segment, file: &File, first: usize) -> std::io::Result<()> {
    let map = File::open("/proc/self/pagemap").ok();
    for start in (segment.start..segment.end).step_by(BATCH * PAGE) {
        let mut entries = [0; BATCH * size_of::<u64>()];
        let at = (start / PAGE * size_of::<u64>()) as u64;
        let read = map.as_ref().map(|map| map.read_exact_at(&mut entries, at));
        let (entries, _) = entries.as_chunks::<8>();
        let pages = (start..segment.end).step_by(PAGE).zip(entries);
        for (page, entry) in pages {
            let touched = u64::from_ne_bytes(*entry) & TOUCHED != 0;
            // Where the map cannot be read, each page is read.
            if page >= segment.filled && !touched && matches!(read, Some(Ok(()))) {
                continue;
            }
            // SAFETY: the program's segments are mapped, readable, and nothing writes to them.
            let bytes =
                unsafe { std::slice::from_raw_parts(with_exposed_provenance::<u8>(page), PAGE) };
            if bytes.iter().any(|byte| *byte != 0) {
                write_at(file, bytes, page - first)?;
            }
        }
    }
    Ok(())
}

/// Writes at an offset of the file by the system call itself: AddressSanitizer replaces the C library's function, and takes the
/// gaps between variables for a fault.
fn write_at(file: &File, mut bytes: &[u8], mut at: usize) -> std::io::Result<()> {
    while !bytes.is_empty() {
        let (from, len) = (bytes.as_ptr(), bytes.len());
        // SAFETY: as many bytes are read as there are.
        let written = unsafe { libc::syscall(libc::SYS_pwrite64, file.as_raw_fd(), from, len, at) };
        match usize::try_from(written) {
            Ok(0) => return Err(std::io::ErrorKind::WriteZero.into()),
            Ok(written) => {
                bytes = bytes.get(written..).unwrap_or_default();
                at += written;
            }
            Err(_) => {
                let error = std::io::Error::last_os_error();
                if error.kind() != std::io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::objection_of_threads;

    #[test]
    fn what_is_in_the_way_is_told_apart() {
        assert_eq!(objection_of_threads(Ok(1)), None);
        let told = objection_of_threads(Ok(2)).unwrap();
        assert!(told.contains("other threads run already"), "{told}");
        let absent = std::io::Error::from_raw_os_error(libc::ENOENT);
        let told = objection_of_threads(Err(absent)).unwrap();
        assert!(told.contains("mount /proc"), "{told}");
    }
}
