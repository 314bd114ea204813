//! Global and static variables of the main program are symmetric: the pages of its data become the beginning of the
//! symmetric heap, before the library starts a thread.
//!
//! The writable segments of the main program, without what the loader has made read-only again (RELRO), are copied
//! into a file in memory, which is then mapped in their place, at once. A child of `fork` gets its own copy.
//!
//! Where that cannot be done the heap alone is symmetric, and a message says why: where other threads run already, whose
//! stores could be lost; and in a program that is not linked with the library, such as an interpreter that loads it.

use std::ffi::{CStr, c_int, c_void};
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicUsize, Ordering};

use libc::{PT_DYNAMIC, PT_GNU_RELRO, PT_LOAD, dl_phdr_info};
use oxshmem::Builder;

const PAGE: usize = 4096;
/// Of the dynamic section: its end, and a library that the program needs.
const DT_NULL: i64 = 0;
const DT_NEEDED: i64 = 1;
const DT_STRTAB: i64 = 5;

/// Where the shared pages begin, and their bytes: for the child of a fork.
static BASE: AtomicUsize = AtomicUsize::new(0);
static LEN: AtomicUsize = AtomicUsize::new(0);

/// An entry of the dynamic section.
#[repr(C)]
#[derive(Clone, Copy)]
struct Dynamic {
    tag: i64,
    value: u64,
}

/// What is known of the main program.
#[derive(Debug, Default)]
struct Program {
    /// The pages of its data, from the first to the last.
    start: usize,
    end: usize,
    /// Whether it is linked with this library.
    is_linked: bool,
}

/// Gives the program's data to the world that is to be made; or says why not.
pub(crate) fn share(builder: Builder) -> Builder {
    match shared() {
        Ok(Some((file, base, len))) => {
            BASE.store(base, Ordering::Relaxed);
            LEN.store(len, Ordering::Relaxed);
            // SAFETY: the mapping stays until the process ends. C's stores to variables make no references.
            unsafe {
                builder.program_memory(file, std::ptr::with_exposed_provenance_mut(base), len)
            }
        }
        Ok(None) => builder,
        Err(why) => {
            eprintln!(
                "oxshmem: the symmetric heap alone is symmetric, and no global or static variable: {why}"
            );
            builder
        }
    }
}

fn shared() -> Result<Option<(OwnedFd, usize, usize)>, String> {
    let mut program = Program::default();
    // SAFETY: the function fits, and gets the program's description during the call.
    unsafe { libc::dl_iterate_phdr(Some(describe), (&raw mut program).cast()) };
    if program.start >= program.end {
        return Ok(None);
    }
    if !program.is_linked {
        return Err("the main program is not linked with oxshmem".into());
    }
    let threads = std::fs::read_dir("/proc/self/task").map(Iterator::count);
    if !matches!(threads, Ok(1)) {
        return Err("other threads run already; call shmem_init before they start".into());
    }
    let (start, len) = (program.start, program.end - program.start);
    let file = copy(start, len).map_err(|error| format!("copying the program's data: {error}"))?;
    // SAFETY: the pages are the program's data, of which the file has a copy; nothing else writes to them between,
    // since this is the only thread and what it writes in these calls is on its stack. One call replaces all.
    let mapped = unsafe {
        libc::pthread_atfork(None, None, Some(take_own_copy));
        let flags = libc::MAP_SHARED | libc::MAP_FIXED;
        let at = std::ptr::with_exposed_provenance_mut(start);
        libc::mmap(
            at,
            len,
            libc::PROT_READ | libc::PROT_WRITE,
            flags,
            file.as_raw_fd(),
            0,
        )
    };
    if mapped == libc::MAP_FAILED {
        return Err(format!(
            "mapping the program's data: {}",
            std::io::Error::last_os_error()
        ));
    }
    Ok(Some((file, start, len)))
}

/// A file in memory with a copy of these pages.
fn copy(start: usize, len: usize) -> std::io::Result<OwnedFd> {
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // SAFETY: the name is a string.
    let descriptor = unsafe { libc::memfd_create(c"oxshmem-heap".as_ptr(), flags) };
    if descriptor < 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: it was just made, and is nobody else's.
    let mut file = unsafe { File::from_raw_fd(descriptor) };
    // SAFETY: the program's segments are mapped, readable, and no other thread writes.
    let bytes =
        unsafe { std::slice::from_raw_parts(std::ptr::with_exposed_provenance::<u8>(start), len) };
    file.write_all(bytes)?;
    Ok(file.into())
}

/// In the child of a fork: the parent's variables stay the parent's.
extern "C" fn take_own_copy() {
    let (base, len) = (BASE.load(Ordering::Relaxed), LEN.load(Ordering::Relaxed));
    if len == 0 {
        return;
    }
    // SAFETY: the pages are mapped; a child has one thread. The copy, elsewhere first, takes their place by one call. What
    // fails leaves them as they are: shared.
    unsafe {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let own = libc::mmap(null_mut(), len, protection, flags, -1, 0);
        if own == libc::MAP_FAILED {
            return;
        }
        let at: *mut c_void = std::ptr::with_exposed_provenance_mut(base);
        std::ptr::copy_nonoverlapping(at.cast::<u8>(), own.cast(), len);
        libc::mremap(own, len, len, libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED, at);
    }
}

/// Describes the first object, which is the main program.
unsafe extern "C" fn describe(info: *mut dl_phdr_info, _: usize, program: *mut c_void) -> c_int {
    // SAFETY: the loader gives a description, and the caller its place for another.
    let (info, program) = unsafe { (&*info, &mut *program.cast::<Program>()) };
    // SAFETY: the description has so many headers.
    let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
    let base = info.dlpi_addr as usize;
    let place = |at: u64, len: u64| {
        let start = base.wrapping_add(at as usize);
        (start, start + len as usize)
    };
    let own = describe as *const () as usize;
    let mut read_only = 0;
    for header in headers {
        let (start, end) = place(header.p_vaddr, header.p_memsz);
        match header.p_type {
            PT_GNU_RELRO => read_only = end / PAGE * PAGE,
            PT_LOAD => program.is_linked |= (start..end).contains(&own),
            PT_DYNAMIC => program.is_linked |= needs_oxshmem(start, base),
            _ => {}
        }
    }
    for header in headers {
        let (start, end) = place(header.p_vaddr, header.p_memsz);
        if header.p_type == PT_LOAD && header.p_flags & libc::PF_W != 0 && end > read_only {
            let start = (start / PAGE * PAGE).max(read_only);
            program.start = match program.start {
                0 => start,
                first => first.min(start),
            };
            program.end = program.end.max(end.next_multiple_of(PAGE));
        }
    }
    // No further object.
    1
}

/// Whether a dynamic section names this library.
fn needs_oxshmem(section: usize, base: usize) -> bool {
    let entry = |i: usize| -> Dynamic {
        let entries = std::ptr::with_exposed_provenance::<Dynamic>(section);
        // SAFETY: the section is mapped, and nothing beyond its end is asked for.
        unsafe { entries.add(i).read() }
    };
    let entries = || (0..).map(entry).take_while(|entry| entry.tag != DT_NULL);
    let Some(strings) = entries().find(|entry| entry.tag == DT_STRTAB) else {
        return false;
    };
    // The loader has made it an address; a program that nothing was added to has it as one, too.
    let strings = match strings.value as usize {
        offset if offset < base => base + offset,
        address => address,
    };
    entries()
        .filter(|entry| entry.tag == DT_NEEDED)
        .any(|entry| {
            let name = std::ptr::with_exposed_provenance(strings + entry.value as usize);
            // SAFETY: the program's table of strings is mapped, and each ends with a zero.
            unsafe { CStr::from_ptr(name) }
                .to_bytes()
                .starts_with(b"liboxshmem")
        })
}
