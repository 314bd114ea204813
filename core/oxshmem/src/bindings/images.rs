//! The images of this process: its own, and those of libraries that are loaded and unloaded.
//!
//! An image that is used has its library kept loaded. So a `dlclose` in another thread runs none of its destructors meanwhile: they would
//! wait for the use and hold the loader's lock, which the use may need.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::{NonNull, null_mut};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use oxshmem_cuda::DevicePtr;

use oxshmem_device_library::STATE;

use crate::device::{DeviceLibrary, check_version};
use crate::error::{Error, Result};

/// `struct oxshmem_image` of `core/device/header/image.cuh`: an image whose kernels call oxshmem.
#[repr(C)]
#[derive(Debug)]
pub struct Image {
    /// The version of its header, and the bytes of its state.
    abi: u32,
    /// Gives the address of the image's state on a device.
    locate: Option<unsafe extern "C" fn(c_int, *mut *mut c_void) -> c_int>,
    /// The words for an error of that.
    error: Option<unsafe extern "C" fn(c_int) -> *const c_char>,
}

/// An image of this process.
#[derive(Debug)]
struct Known {
    image: NonNull<Image>,
    /// The calls that use it now. It stays until there are none.
    uses: usize,
    /// Whether it was given its state since it came.
    is_ready: bool,
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

/// Announces an image: `oxshmem_register_image` of a binding.
///
/// # Safety
///
/// It is null, or the structure stays as it is, and its functions callable, until [`unregister_image`] returns for it.
pub unsafe fn register_image(image: *const Image) {
    let image = NonNull::new(image.cast_mut());
    images().extend(image.map(|image| Known {
        image,
        uses: 0,
        is_ready: false,
    }));
}

/// Withdraws an image, whose library is unloaded: `oxshmem_unregister_image` of a binding. Waits for calls that use it.
pub fn unregister_image(image: *const Image) {
    let is_it = |known: &Known| known.image.as_ptr().cast_const() == image;
    let mut known = images();
    while known.iter().any(|known| is_it(known) && known.uses > 0) {
        known = UNUSED.wait(known).unwrap_or_else(PoisonError::into_inner);
    }
    known.retain(|known| !is_it(known));
}

/// Whether images have announced themselves.
#[must_use]
pub fn has_images() -> bool {
    !images().is_empty()
}

/// Gives the state of every image its contents, or of those alone that came since the last call.
///
/// # Errors
///
/// [`Error::Gpu`] where an image was compiled with the header of another version, or its variable is not found.
///
/// # Safety
///
/// None of the images' kernels runs.
pub unsafe fn prepare_images(
    library: &DeviceLibrary<'_>,
    call: &'static str,
    gpu: usize,
    are_new_alone: bool,
) -> Result<()> {
    // The list is not locked meanwhile: the runtime may load an image, which announces itself.
    let wanted = |known: &&Known| !(are_new_alone && known.is_ready);
    let known: Vec<_> = images()
        .iter()
        .filter(wanted)
        .map(|known| known.image)
        .collect();
    let mut used = known.into_iter().filter_map(ImageUse::begin);
    used.try_for_each(|used| {
        // SAFETY: the caller makes the same promise.
        unsafe { used.prepare(library, call, gpu) }?;
        used.note_ready();
        Ok(())
    })
}

/// The use of an image, which keeps it registered.
struct ImageUse {
    image: NonNull<Image>,
    /// Outlives the rest: its end may unload the image.
    _library: Option<Library>,
}

impl ImageUse {
    /// None if the image is not registered any more.
    fn begin(image: NonNull<Image>) -> Option<ImageUse> {
        // Without the list's lock: a library that is being unloaded withdraws its image.
        let library = Library::of(image.as_ptr().addr());
        images().iter_mut().find(|known| known.image == image)?.uses += 1;
        Some(ImageUse {
            image,
            _library: library,
        })
    }

    fn image(&self) -> &Image {
        // SAFETY: the image is registered, and unregister waits for this use, so it is mapped and stays as it is.
        unsafe { self.image.as_ref() }
    }

    fn note_ready(&self) {
        let mut images = images();
        let own = images.iter_mut().find(|known| known.image == self.image);
        if let Some(own) = own {
            own.is_ready = true;
        }
    }

    /// # Safety
    ///
    /// None of the image's kernels runs.
    unsafe fn prepare(
        &self,
        library: &DeviceLibrary<'_>,
        call: &'static str,
        gpu: usize,
    ) -> Result<()> {
        let image = self.image();
        let failed = |why| Error::Gpu { call, why };
        check_version(call, image.abi)?;
        let Some(locate) = image.locate else {
            return Err(failed(
                "an image without a function that locates its state".into(),
            ));
        };
        let mut state = null_mut();
        let number = c_int::try_from(gpu).unwrap_or(-1);
        // SAFETY: the image is registered, and unregister waits for this use, so its code is mapped; the place is this function's.
        let code = unsafe { locate(number, &raw mut state) };
        if code != 0 {
            let words = image.error.map_or(std::ptr::null(), |error| {
                // SAFETY: the image is registered, and unregister waits for this use, so its code is mapped.
                unsafe { error(code) }
            });
            let words = match words.is_null() {
                true => "an unknown error".into(),
                // SAFETY: the words are a string that ends, and stay as long as the image's runtime, which the use keeps.
                false => unsafe { CStr::from_ptr(words) }.to_string_lossy(),
            };
            return Err(failed(format!(
                "the variable {STATE:?} of an image is not found on GPU {gpu}: {words}"
            )));
        }
        let state = DevicePtr::from_raw(state.addr() as u64);
        // SAFETY: the image, which is registered, has found its variable by this address, and its first word is `abi`; the caller promises
        // the rest.
        unsafe { library.prepare_state(call, state) }
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
