//! Shared objects that lie in memory, as files to be opened.

use std::fs::File;
use std::io::{Result, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::path::PathBuf;

/// A file of this process alone with these bytes, and its path, which is good while the file is open.
pub(super) fn memory_file(bytes: &[u8]) -> Result<(File, PathBuf)> {
    // SAFETY: the name is a string that ends.
    let descriptor = unsafe { libc::memfd_create(c"oxshmem-kernels".as_ptr(), libc::MFD_CLOEXEC) };
    if descriptor < 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just opened, and nobody else has it.
    let mut file = unsafe { File::from_raw_fd(descriptor) };
    file.write_all(bytes)?;
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok((file, path.into()))
}
