//! The main program as the loader knows it: where its data lies.

use std::ffi::{CStr, c_int, c_void};
use std::ops::Range;
use std::sync::atomic::AtomicU8;

use libc::{PT_DYNAMIC, PT_GNU_RELRO, PT_INTERP, PT_LOAD, dl_phdr_info};

pub(super) const PAGE: usize = 4096;
/// Tags of the dynamic section: its end, a library that is needed, the strings, the object's own name.
const DT_NULL: i64 = 0;
const DT_NEEDED: i64 = 1;
const DT_STRTAB: i64 = 5;
const DT_SONAME: i64 = 14;

/// The first and the last of the library's own variables in a program that is linked with the archive: the installation
/// has placed all of them between these, in pages of their own (`core/capi/archive.ld`).
#[used]
#[unsafe(link_section = ".oxshmem.first")]
static FIRST: AtomicU8 = AtomicU8::new(0);
#[used]
#[unsafe(link_section = ".oxshmem.last")]
static LAST: AtomicU8 = AtomicU8::new(0);

/// The pages of the library's own variables; none where they have no pages of their own, as in the shared library.
fn own_pages() -> Range<usize> {
    let (first, last) = ((&raw const FIRST).addr(), (&raw const LAST).addr());
    if first.is_multiple_of(PAGE) {
        first..(last + 1).next_multiple_of(PAGE)
    } else {
        0..0
    }
}

/// A program header.
type Header = libc::Elf64_Phdr;

/// An entry of the dynamic section.
#[repr(C)]
#[derive(Clone, Copy)]
struct Dynamic {
    tag: i64,
    value: u64,
}

/// The main program.
#[derive(Debug, Default)]
pub(super) struct Program {
    /// Its data, lowest first; without that of the library, whose pages remain private to this process.
    pub segments: Vec<Segment>,
    /// Whether it was linked with this library, directly or through other libraries.
    pub is_linked: bool,
    /// Whether it was linked with shared libraries at all.
    pub is_dynamic: bool,
    /// The address of its headers, which are mapped of its file.
    pub headers: usize,
}

/// Whole pages of data that the program may write, as it was linked: without those that the loader has made read-only since.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    pub start: usize,
    pub end: usize,
    /// The end of the pages that the program's file has bytes for; the rest are zero until they are touched.
    pub filled: usize,
    /// As `mmap` takes it; 0 until [`find_protections`](super::maps::find_protections) finds it.
    pub protection: c_int,
}

impl Segment {
    pub(super) fn len(&self) -> usize {
        self.end - self.start
    }

    /// The rest of it without some pages: the part before them, and the part behind.
    fn without(self, pages: &Range<usize>) -> impl Iterator<Item = Segment> {
        let before = Segment {
            end: self.end.min(pages.start),
            ..self
        };
        let behind = Segment {
            start: self.start.max(pages.end),
            ..self
        };
        let parts = if pages.is_empty() {
            [Some(self), None]
        } else {
            [Some(before), Some(behind)]
        };
        let parts = parts.into_iter().flatten();
        parts.filter(|part| part.start < part.end)
    }
}

/// The main program of this process.
pub(super) fn of_this_process() -> Program {
    let mut loaded = Loaded::default();
    // SAFETY: the function has the type that the call needs, and gets `loaded` during the call alone.
    unsafe { libc::dl_iterate_phdr(Some(describe), (&raw mut loaded).cast()) };
    let is_linked = needs_own(&loaded.objects);
    let mut program = loaded.program;
    program.is_linked = is_linked;
    let own = own_pages();
    let segments = program.segments.iter();
    program.segments = segments.flat_map(|segment| segment.without(&own)).collect();
    program.segments.sort_by_key(|segment| segment.start);
    program
}

/// The objects that the loader has loaded.
#[derive(Default)]
struct Loaded {
    program: Program,
    /// The first is the main program.
    objects: Vec<Object>,
}

/// The main program or a library.
#[derive(Clone, Debug, Default)]
struct Object {
    /// The names by which others may need it: its file's, and its own (`DT_SONAME`).
    names: Vec<Vec<u8>>,
    /// Libraries that it was linked with, by names.
    needs: Vec<Vec<u8>>,
    /// Whether this code is in it.
    is_own: bool,
}

/// Whether the first object contains this library or was linked with it, directly or through other libraries. It is neither
/// where the program or one of its libraries has loaded this one by `dlopen`.
fn needs_own(objects: &[Object]) -> bool {
    let mut known = vec![0];
    let mut at = 0;
    while let Some(object) = known.get(at).and_then(|index| objects.get(*index)) {
        if object.is_own {
            return true;
        }
        for name in &object.needs {
            let needed = objects.iter().position(|other| other.names.contains(name));
            known.extend(needed.filter(|needed| !known.contains(needed)));
        }
        at += 1;
    }
    false
}

/// Describes an object; the first is the main program.
unsafe extern "C" fn describe(info: *mut dl_phdr_info, _: usize, loaded: *mut c_void) -> c_int {
    // SAFETY: the loader gives a description, and the caller of `dl_iterate_phdr` its `Loaded`.
    let (info, loaded) = unsafe { (&*info, &mut *loaded.cast::<Loaded>()) };
    // SAFETY: the description has `dlpi_phnum` headers.
    let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
    let base = info.dlpi_addr as usize;
    if loaded.objects.is_empty() {
        describe_program(&mut loaded.program, headers, base);
    }
    let mut object = Object::default();
    if !info.dlpi_name.is_null() {
        // SAFETY: the loader's name of it, which ends with a zero.
        let name = unsafe { CStr::from_ptr(info.dlpi_name) };
        object.names.push(file_of(name.to_bytes()));
    }
    let own = describe as *const () as usize;
    for header in headers {
        let (start, end) = range(header, base);
        match header.p_type {
            PT_LOAD => object.is_own |= (start..end).contains(&own),
            PT_DYNAMIC => read_names(start, base, &mut object),
            _ => {}
        }
    }
    loaded.objects.push(object);
    0
}

/// The addresses of a segment of an object.
fn range(header: &Header, base: usize) -> (usize, usize) {
    let start = base.wrapping_add(header.p_vaddr as usize);
    (start, start + header.p_memsz as usize)
}

/// A name without the folders before it: a library may be found in another folder than the one it was linked in.
fn file_of(name: &[u8]) -> Vec<u8> {
    let mut parts = name.rsplit(|byte| *byte == b'/');
    parts.next().unwrap_or_default().to_vec()
}

fn describe_program(program: &mut Program, headers: &[Header], base: usize) {
    program.headers = headers.as_ptr().addr();
    let mut read_only = 0;
    for header in headers {
        match header.p_type {
            PT_GNU_RELRO => read_only = range(header, base).1 / PAGE * PAGE,
            PT_INTERP => program.is_dynamic = true,
            _ => {}
        }
    }
    for header in headers {
        let (start, end) = range(header, base);
        if header.p_type == PT_LOAD && header.p_flags & libc::PF_W != 0 && end > read_only {
            let filled = start + header.p_filesz as usize;
            program.segments.push(Segment {
                start: (start / PAGE * PAGE).max(read_only),
                end: end.next_multiple_of(PAGE),
                filled: filled.next_multiple_of(PAGE),
                protection: 0,
            });
        }
    }
}

/// Reads an object's own name, and the libraries that it needs, from its dynamic section.
fn read_names(section: usize, base: usize, object: &mut Object) {
    let entry = |i: usize| -> Dynamic {
        let entries = std::ptr::with_exposed_provenance::<Dynamic>(section);
        // SAFETY: the section is mapped, and no entry beyond its end is read.
        unsafe { entries.add(i).read() }
    };
    let entries = || (0..).map(entry).take_while(|entry| entry.tag != DT_NULL);
    let Some(strings) = entries().find(|entry| entry.tag == DT_STRTAB) else {
        return;
    };
    // The loader has made it an address, except in the kernel's own object; a program that was linked at its address has it
    // as one, too.
    let strings = match strings.value as usize {
        offset if offset < base => base + offset,
        address => address,
    };
    for entry in entries() {
        let list = match entry.tag {
            DT_NEEDED => &mut object.needs,
            DT_SONAME => &mut object.names,
            _ => continue,
        };
        let name = std::ptr::with_exposed_provenance(strings + entry.value as usize);
        // SAFETY: the object's table of strings is mapped, and each ends with a zero.
        let name = unsafe { CStr::from_ptr(name) };
        list.push(file_of(name.to_bytes()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(name: &str, needs: &[&str]) -> Object {
        Object {
            names: vec![file_of(name.as_bytes())],
            needs: needs.iter().map(|name| name.as_bytes().to_vec()).collect(),
            is_own: false,
        }
    }

    #[test]
    fn a_program_is_linked_with_what_its_libraries_were_linked_with() {
        let own = Object {
            is_own: true,
            ..object("/opt/lib/liboxshmem.so", &["libc.so.6"])
        };
        let libc = object("/lib/libc.so.6", &[]);
        let tool = object("./libtool.so", &["libc.so.6", "liboxshmem.so"]);
        let other = object("liboxshmem_other.so", &["libc.so.6"]);
        let linked = |needs: &[&str], others: &[&Object]| {
            let mut objects = vec![object("", needs)];
            objects.extend(others.iter().map(|other| (*other).clone()));
            needs_own(&objects)
        };
        assert!(linked(&["liboxshmem.so"], &[&libc, &own]));
        assert!(linked(&["libtool.so"], &[&tool, &libc, &own]));
        // It is there because it was loaded later.
        assert!(!linked(&["libc.so.6"], &[&libc, &own]));
        assert!(!linked(&["libc.so.6"], &[&libc, &tool, &own]));
        assert!(!linked(&["liboxshmem_other.so"], &[&other, &libc, &own]));
        // Libraries that need each other, and one that is not there.
        let (one, two) = (object("one", &["two"]), object("two", &["one", "none"]));
        assert!(!linked(&["one"], &[&one, &two, &own]));
        // With the archive it is in the program.
        assert!(needs_own(&[own]));
        assert!(!needs_own(&[]));
    }
}
