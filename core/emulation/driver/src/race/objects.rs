//! The shared objects and the program in this process, whose code accesses memory.

use std::ffi::{c_int, c_void};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;

/// The addresses of the shared object that has an address in it: the first, and their number.
pub(super) fn extent(inside: usize) -> (usize, usize) {
    struct Search {
        inside: usize,
        found: (usize, usize),
    }
    unsafe extern "C" fn look(
        object: *mut libc::dl_phdr_info,
        _: usize,
        search: *mut c_void,
    ) -> c_int {
        // SAFETY: the object that the loader gives, and the search that `extent` gives.
        let (object, search) = unsafe { (&*object, &mut *search.cast::<Search>()) };
        let count = usize::from(object.dlpi_phnum);
        // SAFETY: so many headers lie there.
        let headers = unsafe { std::slice::from_raw_parts(object.dlpi_phdr, count) };
        let loaded = headers.iter().filter(|one| one.p_type == libc::PT_LOAD);
        let end = loaded.map(|one| (one.p_vaddr + one.p_memsz) as usize).max();
        let (base, length) = (object.dlpi_addr as usize, end.unwrap_or(0));
        if (base..base + length).contains(&search.inside) {
            search.found = (base, length);
        }
        0
    }
    let mut search = Search {
        inside,
        found: (0, 0),
    };
    // SAFETY: the function above, and what it expects.
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut search).cast()) };
    search.found
}

/// A hash of the file that code was loaded from, the same in all processes that run it.
pub(super) fn content(inside: usize) -> u64 {
    // SAFETY: plain data, for which zeros are a value.
    let mut info = unsafe { std::mem::zeroed::<libc::Dl_info>() };
    let at: *const c_void = std::ptr::without_provenance(inside);
    // SAFETY: any address, and a place for the answer.
    let found = unsafe { libc::dladdr(at, &raw mut info) };
    let mut hash = DefaultHasher::new();
    if found != 0 && !info.dli_fname.is_null() {
        // SAFETY: dladdr gave a string that ends.
        let name = unsafe { std::ffi::CStr::from_ptr(info.dli_fname) };
        name.hash(&mut hash);
        // The program itself has the name by which it was called.
        let path = name.to_string_lossy();
        let file =
            std::fs::metadata(path.as_ref()).or_else(|_| std::fs::metadata("/proc/self/exe"));
        if let Ok(file) = file {
            (file.dev(), file.ino(), file.mtime_nsec()).hash(&mut hash);
        }
    }
    hash.finish()
}
