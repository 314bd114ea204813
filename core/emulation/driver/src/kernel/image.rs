//! Images: kernels built for the host from a `.cu` file by `oxshmem cuda cc`.
//!
//! An image is [`MAGIC`], the length of a shared object as a number of eight bytes, and the shared
//! object. Its exports:
//!
//! * for each kernel `NAME`, `void NAME__packed(void **arguments)`, one thread's run, and
//!   `uint64_t NAME__parameters[]`: the number of parameters, and the bytes of each;
//! * `void *softcuda_calls`, which the driver sets to the table of the calls that kernels make;
//! * `softcuda_checked`, if the code tells the [race detector](crate::race) of its accesses;
//! * the module's variables under their own names.
//!
//! Each load makes a new copy of the variables, as on a device.

use std::ffi::{c_int, c_void};
use std::hash::{DefaultHasher, Hash, Hasher};

use super::fiber::{CALLS, Calls};
use super::shape::Packed;
use super::shared_object::SharedObject;
use crate::call::{In, Outcome};
use crate::code::Code;

/// The first bytes of an image; the last of them is the version.
const MAGIC: [u8; 8] = *b"OXSHGPU\x01";
/// Parameters of a kernel at most: their bytes are limited, too.
const MOST_PARAMETERS: u64 = 4096;
/// `RTLD_DL_SYMENT`.
const SYMBOL_ENTRY: c_int = 1;

unsafe extern "C" {
    /// As `dladdr`, and gives the symbol's entry in its table.
    safe fn dladdr1(
        address: *const c_void,
        info: *mut libc::Dl_info,
        extra: *mut *const libc::Elf64_Sym,
        flags: c_int,
    ) -> c_int;
}

/// A loaded image.
#[derive(Debug)]
pub(crate) struct Image {
    object: SharedObject,
    /// The first address of its code, if it was built for the race detector.
    start: usize,
    /// Whether it was built for the race detector.
    pub(crate) checked: bool,
}

/// Whether the bytes are an image, and not PTX.
pub(crate) fn is_image(at: In<u8>) -> bool {
    MAGIC
        .iter()
        .enumerate()
        .all(|(index, byte)| at.at(index).is_ok_and(|found| found == *byte))
}

/// The bytes of an image's shared object.
fn object<'a>(at: In<u8>) -> Outcome<&'a [u8]> {
    let head = at.list(16)?;
    let length = head[8..].try_into().map_or(0, u64::from_le_bytes);
    let length = usize::try_from(length).map_err(|_| Code::INVALID_IMAGE)?;
    // SAFETY: the caller of the driver vouches for an image, whose head says how long it is.
    Ok(unsafe { std::slice::from_raw_parts(at.raw().add(16), length) })
}

impl Drop for Image {
    fn drop(&mut self) {
        if self.checked {
            crate::race::unloaded(self.start);
        }
    }
}

impl Image {
    /// Loads a copy of an image.
    pub(crate) fn load(at: In<u8>) -> Outcome<Image> {
        let refuse = |words: String| {
            eprintln!("softcuda: an image of kernels can not be loaded: {words}");
            Code::INVALID_IMAGE
        };
        let code = object(at)?;
        let object = SharedObject::from_bytes(code).map_err(refuse)?;
        let slot = object
            .symbol("softcuda_calls")
            .ok_or_else(|| refuse("it exports no softcuda_calls".to_owned()))?;
        // SAFETY: by the agreement above, a variable that holds a pointer to the table.
        unsafe { slot.cast::<*const Calls>().write(&raw const CALLS) };
        let checked = object.symbol("softcuda_checked").is_some();
        let mut start = 0;
        if checked {
            let mut content = DefaultHasher::new();
            code.hash(&mut content);
            start = crate::race::activate(slot.addr(), content.finish());
        }
        Ok(Image {
            object,
            start,
            checked,
        })
    }

    /// A kernel's code, and the bytes of each of its parameters.
    pub(crate) fn kernel(&self, name: &str) -> Option<(Packed, Vec<usize>)> {
        let code = self.object.symbol(&format!("{name}__packed"))?;
        let list = self
            .object
            .symbol(&format!("{name}__parameters"))?
            .cast::<u64>();
        // SAFETY: by the agreement above, the list begins with its count.
        let count = unsafe { list.read() }.min(MOST_PARAMETERS) as usize;
        // SAFETY: by the agreement above, so many numbers follow.
        let sizes = (1..=count).map(|at| unsafe { list.add(at).read() } as usize);
        let sizes = sizes.collect();
        // SAFETY: by the agreement above, a function of that type.
        let code = unsafe { std::mem::transmute::<*mut c_void, Packed>(code) };
        Some((code, sizes))
    }

    /// Address and bytes of a variable.
    pub(crate) fn variable(&self, name: &str) -> Option<(u64, usize)> {
        let address = self.object.symbol(name)?;
        // SAFETY: plain data, for which zeros are a value.
        let mut info = unsafe { std::mem::zeroed::<libc::Dl_info>() };
        let mut entry = std::ptr::null();
        if dladdr1(address, &raw mut info, &raw mut entry, SYMBOL_ENTRY) == 0 || entry.is_null() {
            return None;
        }
        // SAFETY: dladdr1 gave the entry, in a library that is open.
        let size = unsafe { (*entry).st_size } as usize;
        Some((address as u64, size))
    }
}
