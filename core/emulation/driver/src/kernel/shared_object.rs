//! Shared objects with code of kernels, from files and from memory.

use std::ffi::{CStr, CString, c_void};
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// An open shared object. It is closed when it is dropped.
#[derive(Debug)]
pub(super) struct SharedObject {
    handle: *mut c_void,
    /// The file of an object from memory. It stays open as long as the object: the loader knows the
    /// object by the path, and so by the descriptor's number.
    _file: Option<File>,
}

// SAFETY: the handle is only given to dlsym and dlclose, which any thread may call.
unsafe impl Send for SharedObject {}
// SAFETY: as above.
unsafe impl Sync for SharedObject {}

impl SharedObject {
    /// Opens the object in a file.
    pub(super) fn open(path: &Path) -> Result<SharedObject, String> {
        let name = CString::new(path.as_os_str().as_bytes()).map_err(|e| e.to_string())?;
        // SAFETY: the user's own code of kernels; its initialisers are theirs to vouch for.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() {
            return Err(last_error(path));
        }
        Ok(SharedObject {
            handle,
            _file: None,
        })
    }

    /// Opens the object whose bytes these are. Each call makes an object with variables of its own.
    pub(super) fn from_bytes(bytes: &[u8]) -> Result<SharedObject, String> {
        let file = memory_file(bytes).map_err(|error| error.to_string())?;
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        let mut object = SharedObject::open(Path::new(&path))?;
        object._file = Some(file);
        Ok(object)
    }

    /// The address of what the object exports under a name.
    pub(super) fn symbol(&self, name: &str) -> Option<*mut c_void> {
        let name = CString::new(name).ok()?;
        // SAFETY: an open library and a string that ends.
        let address = unsafe { libc::dlsym(self.handle, name.as_ptr()) };
        (!address.is_null()).then_some(address)
    }
}

impl Drop for SharedObject {
    fn drop(&mut self) {
        // SAFETY: opened by `open`; functions that could still run hold the object.
        unsafe { libc::dlclose(self.handle) };
    }
}

/// The loader's last message on this thread.
fn last_error(path: &Path) -> String {
    // SAFETY: dlerror gives null or a string that lives until the next call on this thread.
    let words = unsafe {
        let words = libc::dlerror();
        (!words.is_null()).then(|| CStr::from_ptr(words).to_string_lossy().into_owned())
    };
    words.unwrap_or_else(|| format!("{}: can not be loaded", path.display()))
}

/// A file of this process alone with these bytes.
fn memory_file(bytes: &[u8]) -> std::io::Result<File> {
    // SAFETY: the name is a string that ends.
    let descriptor = unsafe { libc::memfd_create(c"oxshmem-kernels".as_ptr(), libc::MFD_CLOEXEC) };
    if descriptor < 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just opened, and nobody else has it.
    let mut file = unsafe { File::from_raw_fd(descriptor) };
    file.write_all(bytes)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use std::path::PathBuf;
    use std::process::Command;

    use super::SharedObject;

    /// The bytes of a shared object that exports the name.
    fn object_with(name: &str) -> Vec<u8> {
        let folder = std::env::temp_dir();
        let stem = format!("softcuda-object-{}-{name}", std::process::id());
        let [source, object] = ["c", "so"].map(|end| folder.join(format!("{stem}.{end}")));
        std::fs::write(&source, format!("int {name};\n")).unwrap();
        let arguments: [PathBuf; 5] = [
            "-shared".into(),
            "-fPIC".into(),
            "-o".into(),
            object.clone(),
            source.clone(),
        ];
        let status = Command::new("cc").args(arguments).status().unwrap();
        assert!(status.success());
        let bytes = std::fs::read(&object).unwrap();
        for file in [source, object] {
            std::fs::remove_file(file).unwrap();
        }
        bytes
    }

    #[test]
    fn two_objects_from_memory_are_two() {
        let first = SharedObject::from_bytes(&object_with("first")).unwrap();
        let second = SharedObject::from_bytes(&object_with("second")).unwrap();
        assert!(first.symbol("first").is_some() && first.symbol("second").is_none());
        assert!(second.symbol("second").is_some() && second.symbol("first").is_none());
    }

    #[test]
    fn bytes_that_are_no_object_are_refused() {
        let words = SharedObject::from_bytes(b"no shared object").expect_err("refused");
        assert!(words.contains("file too short") || words.contains("invalid ELF header"));
    }
}
