//! Memory and code that begin and end: their names, and what is noted of their bytes.

use super::names::{self, FileId};
use super::notes::{self, is_active, notes};

/// The bytes are used by nobody any more, or by somebody else from now on.
pub(crate) fn forget(at: usize, len: usize) {
    if is_active() {
        let mut notes = notes();
        let name = notes.byte(at);
        notes.forget(name, len);
    }
}

/// Bytes of a file are mapped at an address: those of a device's memory.
pub(crate) fn mapped(at: usize, len: usize, file: FileId) {
    names::mapped(at, len, file, 0);
}

/// Memory is mapped no more. Others may have the bytes of a file still.
pub(crate) fn unmapped(at: usize, len: usize) {
    let is_shared = names::is_mapped(at) && is_active() && notes().numbers.is_some();
    if !is_shared {
        forget(at, len);
    }
    names::unmapped(at);
}

/// A file's memory is given back by the process that has made it.
pub(crate) fn ended(file: FileId, len: usize) {
    if is_active() {
        let mut notes = notes();
        let name = notes.numbers.as_mut().and_then(|numbers| numbers.end(file));
        if let Some(name) = name {
            notes.forget(name, len);
        }
    }
}

/// Code is loaded no more.
pub(crate) fn unloaded(at: usize) {
    names::unloaded(at);
}

/// Memory of the program's own is page-locked no more. Its bytes stay what they are.
pub(crate) fn released(at: usize) {
    names::unmapped(at);
}

/// Memory of the program's own is page-locked.
pub(crate) fn page_locked(at: usize, len: usize) {
    if notes::has_job()
        && let Some((file, offset)) = names::shared_file(at)
    {
        names::mapped(at, len, file, offset);
    }
}
