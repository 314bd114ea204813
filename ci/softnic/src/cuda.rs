//! A CUDA driver that says which memory is a GPU's, and whose flush makes NICs' writes visible there.

use std::ffi::{CString, c_char, c_int, c_void};
use std::path::Path;
use std::sync::OnceLock;

use crate::settings::settings;
use crate::verbs::control::softnic_flush_gpu;

/// `CU_POINTER_ATTRIBUTE_MEMORY_TYPE`.
const MEMORY_TYPE: u32 = 2;
/// `CU_MEMORYTYPE_DEVICE`.
const DEVICE: u32 = 2;

/// `cuPointerGetAttribute`.
type GetAttribute = unsafe extern "C" fn(*mut c_void, u32, u64) -> c_int;
/// `softcuda_on_flush`.
type OnFlush = unsafe extern "C" fn(extern "C" fn());

/// The driver of `OXSHMEM_SOFTNIC_CUDA`.
struct Driver {
    attribute: GetAttribute,
}

impl Driver {
    fn open(path: &Path) -> Result<Driver, String> {
        let name = path.display();
        let text = CString::new(path.as_os_str().as_encoded_bytes()).map_err(|e| e.to_string())?;
        // SAFETY: a C string. The program has opened the library, or opens it later: its initializers run once.
        let library = unsafe { libc::dlopen(text.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if library.is_null() {
            return Err(format!("{name} cannot be opened"));
        }
        let find = |call: *const c_char| {
            // SAFETY: the library is never closed; a C string.
            let found = unsafe { libc::dlsym(library, call) };
            (!found.is_null()).then_some(found)
        };
        let attribute = find(c"cuPointerGetAttribute".as_ptr());
        let on_flush = find(c"softcuda_on_flush".as_ptr());
        let (Some(attribute), Some(on_flush)) = (attribute, on_flush) else {
            return Err(format!("{name} is not the driver of core/emulation/driver"));
        };
        // SAFETY: calls of these types, by their names.
        let (attribute, on_flush) = unsafe {
            let attribute: GetAttribute = std::mem::transmute(attribute);
            let on_flush: OnFlush = std::mem::transmute(on_flush);
            (attribute, on_flush)
        };
        // SAFETY: the call lives as long as the process.
        unsafe { on_flush(softnic_flush_gpu) };
        Ok(Driver { attribute })
    }

    fn has(&self, addr: usize) -> bool {
        let mut kind = 0_u32;
        // SAFETY: the attribute is a number of 32 bits. A driver that is not initialized refuses the call.
        let code = unsafe { (self.attribute)((&raw mut kind).cast(), MEMORY_TYPE, addr as u64) };
        code == 0 && kind == DEVICE
    }
}

static DRIVER: OnceLock<Option<Driver>> = OnceLock::new();

/// Whether the driver of `OXSHMEM_SOFTNIC_CUDA`, if there is one, says that an address is a GPU's.
pub(crate) fn is_device_memory(addr: usize) -> bool {
    let open = || {
        let path = settings().ok()?.cuda.as_deref()?;
        let opened = Driver::open(path);
        opened
            .map_err(|why| eprintln!("softnic: OXSHMEM_SOFTNIC_CUDA: {why}; no memory is a GPU's"))
            .ok()
    };
    let driver = DRIVER.get_or_init(open);
    driver.as_ref().is_some_and(|driver| driver.has(addr))
}
