//! The images of this process: its own, and those of libraries that are loaded and unloaded.
//!
//! An image that is used has its library kept loaded. So a `dlclose` in another thread runs none of its destructors meanwhile: they would
//! wait for the use and hold the loader's lock, which the use may need.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::NonNull;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// `struct oxshmem_image` of `core/device/header/image.cuh`.
#[repr(C)]
#[derive(Debug)]
pub struct Image {
    /// The version of its header, and the bytes of its state.
    pub(crate) abi: u32,
    /// Makes a device the thread's own, and gives the address of the image's state there.
    pub(crate) locate: Option<unsafe extern "C" fn(c_int, *mut *mut c_void) -> c_int>,
    /// The words for an error of that.
    pub(crate) error: Option<unsafe extern "C" fn(c_int) -> *const c_char>,
}

/// An image of this process.
#[derive(Debug)]
struct Known {
    image: NonNull<Image>,
    /// The calls that use it now. It stays until there are none.
    uses: usize,
}

// SAFETY: an image is read alone, by any thread, while it is registered.
unsafe impl Send for Known {}

/// The images of this process.
static IMAGES: Mutex<Vec<Known>> = Mutex::new(Vec::new());
/// Told when a use ends.
static UNUSED: Condvar = Condvar::new();

fn images() -> MutexGuard<'static, Vec<Known>> {
    IMAGES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Announces an image.
///
/// # Safety
///
/// It is null, or the structure stays as it is, and its functions callable, until [`oxshmem_unregister_image`] returns for it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn oxshmem_register_image(image: *const Image) {
    let image = NonNull::new(image.cast_mut());
    images().extend(image.map(|image| Known { image, uses: 0 }));
}

/// Withdraws an image, whose library is unloaded. Waits for calls that use it.
#[unsafe(no_mangle)]
pub extern "C" fn oxshmem_unregister_image(image: *const Image) {
    let is_it = |known: &Known| known.image.as_ptr().cast_const() == image;
    let mut known = images();
    while known.iter().any(|known| is_it(known) && known.uses > 0) {
        known = UNUSED.wait(known).unwrap_or_else(PoisonError::into_inner);
    }
    known.retain(|known| !is_it(known));
}

/// Whether there is none.
pub(crate) fn is_empty() -> bool {
    images().is_empty()
}

/// Those of now.
pub(crate) fn all() -> Vec<NonNull<Image>> {
    images().iter().map(|known| known.image).collect()
}

/// The use of an image, which keeps it registered.
pub(crate) struct ImageUse {
    image: NonNull<Image>,
    /// Outlives the rest: its end may unload the image.
    _library: Option<Library>,
}

impl ImageUse {
    /// None if the image is not registered any more.
    pub(crate) fn begin(image: NonNull<Image>) -> Option<ImageUse> {
        // Without the list's lock: a library that is being unloaded withdraws its image.
        let library = Library::of(image.as_ptr().addr());
        images().iter_mut().find(|known| known.image == image)?.uses += 1;
        Some(ImageUse {
            image,
            _library: library,
        })
    }

    pub(crate) fn image(&self) -> &Image {
        // SAFETY: the image is registered, and unregister waits for this use, so it is mapped and stays as it is.
        unsafe { self.image.as_ref() }
    }
}

impl Drop for ImageUse {
    fn drop(&mut self) {
        let mut images = images();
        let own = images.iter_mut().find(|known| known.image == self.image);
        if let Some(own) = own {
            own.uses -= 1;
        }
        UNUSED.notify_all();
    }
}

/// A library that stays loaded.
struct Library(NonNull<c_void>);

/// The name of the object that has an address in it.
struct Search {
    address: usize,
    name: Option<CString>,
}

unsafe extern "C" fn look(object: *mut libc::dl_phdr_info, _: usize, data: *mut c_void) -> c_int {
    // SAFETY: the object that the loader gives, and the search that `Library::of` gives.
    let (object, search) = unsafe { (&*object, &mut *data.cast::<Search>()) };
    // SAFETY: the loader gives so many headers.
    let headers =
        unsafe { std::slice::from_raw_parts(object.dlpi_phdr, usize::from(object.dlpi_phnum)) };
    let has = headers.iter().any(|header| {
        let start = object.dlpi_addr.wrapping_add(header.p_vaddr) as usize;
        let inside = search.address.wrapping_sub(start) < header.p_memsz as usize;
        header.p_type == libc::PT_LOAD && inside
    });
    if has && !object.dlpi_name.is_null() {
        // SAFETY: the loader gives a string that ends, and unloads nothing meanwhile.
        search.name = Some(unsafe { CStr::from_ptr(object.dlpi_name) }.to_owned());
    }
    c_int::from(has)
}

impl Library {
    /// That with an address in it; none for the program itself, which stays.
    fn of(address: usize) -> Option<Library> {
        let mut search = Search {
            address,
            name: None,
        };
        // SAFETY: the function above, and the search that it expects.
        unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut search).cast()) };
        let name = search.name.filter(|name| !name.is_empty())?;
        // SAFETY: a string that ends; nothing is loaded that is not there.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
        NonNull::new(handle).map(Library)
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        // SAFETY: `of` opened it, and nothing else closes this handle.
        unsafe { libc::dlclose(self.0.as_ptr()) };
    }
}
