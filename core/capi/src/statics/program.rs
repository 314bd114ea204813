//! What the loader knows of the main program: where its data lies.

use std::ffi::{CStr, c_int, c_void};

use libc::{PT_DYNAMIC, PT_GNU_RELRO, PT_INTERP, PT_LOAD, dl_phdr_info};

pub(super) const PAGE: usize = 4096;
/// Of the dynamic section: its end, and a library that the program needs.
const DT_NULL: i64 = 0;
const DT_NEEDED: i64 = 1;
const DT_STRTAB: i64 = 5;

/// An entry of the dynamic section.
#[repr(C)]
#[derive(Clone, Copy)]
struct Dynamic {
    tag: i64,
    value: u64,
}

/// What is known of the main program.
#[derive(Debug, Default)]
pub(super) struct Program {
    /// Its data, lowest first.
    pub segments: Vec<Segment>,
    /// Whether it is linked with this library.
    pub is_linked: bool,
    /// Whether it was linked with shared libraries at all.
    pub is_dynamic: bool,
    /// Where its headers lie, which are mapped of its file.
    pub headers: usize,
}

/// Whole pages of data that the program may write, as it was linked: without what the loader has made read-only since.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    pub start: usize,
    pub end: usize,
    /// Where the pages end that the program's file has something for; the rest are zero until they are touched.
    pub filled: usize,
    /// As `mmap` takes it; 0 until it is looked for.
    pub protection: c_int,
}

impl Segment {
    pub(super) fn len(&self) -> usize {
        self.end - self.start
    }
}

/// The main program of this process.
pub(super) fn of_this_process() -> Program {
    let mut program = Program::default();
    // SAFETY: the function fits, and gets the program's description during the call.
    unsafe { libc::dl_iterate_phdr(Some(describe), (&raw mut program).cast()) };
    program.segments.sort_by_key(|segment| segment.start);
    program
}

/// Describes the first object, which is the main program.
unsafe extern "C" fn describe(info: *mut dl_phdr_info, _: usize, program: *mut c_void) -> c_int {
    // SAFETY: the loader gives a description, and the caller its place for another.
    let (info, program) = unsafe { (&*info, &mut *program.cast::<Program>()) };
    // SAFETY: the description has so many headers.
    let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
    program.headers = info.dlpi_phdr.addr();
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
            PT_INTERP => program.is_dynamic = true,
            PT_LOAD => program.is_linked |= (start..end).contains(&own),
            PT_DYNAMIC => program.is_linked |= needs_oxshmem(start, base),
            _ => {}
        }
    }
    for header in headers {
        let (start, end) = place(header.p_vaddr, header.p_memsz);
        if header.p_type == PT_LOAD && header.p_flags & libc::PF_W != 0 && end > read_only {
            let (_, filled) = place(header.p_vaddr, header.p_filesz);
            program.segments.push(Segment {
                start: (start / PAGE * PAGE).max(read_only),
                end: end.next_multiple_of(PAGE),
                filled: filled.next_multiple_of(PAGE),
                protection: 0,
            });
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
