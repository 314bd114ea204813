//! Registration: images, their kernels and variables, which programs announce before `main`.

use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::driver;
use crate::error::{Error, Outcome, get};
use crate::primary;

/// `CU_STREAM_CAPTURE_MODE_RELAXED`.
const CAPTURE_MODE_RELAXED: u32 = 2;

/// The structure that clang puts before code for GPUs.
#[repr(C)]
struct Wrapper {
    magic: u32,
    version: u32,
    data: *const c_void,
    unused: *const c_void,
}

/// A kernel or a variable: the image that has it, and its name there.
#[derive(Clone)]
struct Entry {
    image: usize,
    name: CString,
    bytes: usize,
}

#[derive(Default)]
struct Registry {
    /// Images by the order of their registration: the address of their bytes.
    images: Vec<usize>,
    /// The image of several files, which was announced last.
    linked: Option<usize>,
    kernels: HashMap<usize, Entry>,
    variables: HashMap<usize, Entry>,
    /// Loaded modules, by context and image.
    modules: HashMap<(u64, usize), u64>,
    functions: HashMap<(u64, usize), u64>,
}

static REGISTRY: Mutex<Option<Registry>> = Mutex::new(None);

fn with<T>(body: impl FnOnce(&mut Registry) -> T) -> T {
    let mut registry: MutexGuard<'_, Option<Registry>> =
        REGISTRY.lock().unwrap_or_else(PoisonError::into_inner);
    body(registry.get_or_insert_default())
}

impl Registry {
    fn add_image(&mut self, data: *const c_void) -> usize {
        self.images.push(data as usize);
        self.images.len() - 1
    }

    /// Forgets an image, and gives its modules, each with its context.
    fn remove_image(&mut self, image: usize) -> Vec<(u64, u64)> {
        // The numbers of the others stay.
        if let Some(data) = self.images.get_mut(image) {
            *data = 0;
        }
        self.linked = self.linked.filter(|linked| *linked != image);
        let kernels = &mut self.kernels;
        self.functions.retain(|(_, stub), _| {
            let entry = kernels.get(stub);
            entry.is_none_or(|entry| entry.image != image)
        });
        kernels.retain(|_, entry| entry.image != image);
        self.variables.retain(|_, entry| entry.image != image);
        let modules = self.modules.extract_if(|(_, of), _| *of == image);
        modules
            .map(|((context, _), module)| (context, module))
            .collect()
    }

    /// The image's module in a context, which is loaded at the first use.
    fn module(&mut self, context: u64, image: usize) -> Outcome<u64> {
        if let Some(module) = self.modules.get(&(context, image)) {
            return Ok(*module);
        }
        let data = self.images.get(image).copied().filter(|data| *data != 0);
        let data = data.ok_or(Error::INVALID_VALUE)?;
        // A stream may be captured meanwhile: the program has not asked for this.
        let mut mode = CAPTURE_MODE_RELAXED;
        driver::cuThreadExchangeStreamCaptureMode(&raw mut mode)?;
        let module = get(|out| driver::cuModuleLoadData(out, data as *const c_void));
        driver::cuThreadExchangeStreamCaptureMode(&raw mut mode)?;
        let module = module?;
        self.modules.insert((context, image), module);
        Ok(module)
    }
}

/// A handle of an image, as `__cudaRegister...` take it. Not null, and no address that is used.
fn handle(image: usize) -> *mut *mut c_void {
    std::ptr::without_provenance_mut(image + 1)
}

/// The image of a handle; one that there is not, if the handle is null.
fn number(handle: *mut *mut c_void) -> usize {
    handle.addr().wrapping_sub(1)
}

fn text(name: *const c_char) -> CString {
    if name.is_null() {
        return CString::default();
    }
    // SAFETY: the compiler gives the names as strings that end.
    unsafe { CStr::from_ptr(name) }.to_owned()
}

/// The driver's function of a kernel, in the current context.
pub(crate) fn function(stub: *const c_void) -> Outcome<u64> {
    primary::ensure()?;
    let context = get(driver::cuCtxGetCurrent)?;
    with(|registry| {
        if let Some(function) = registry.functions.get(&(context, stub as usize)) {
            return Ok(*function);
        }
        let entry = registry.kernels.get(&(stub as usize)).cloned();
        let entry = entry.ok_or(Error::INVALID_DEVICE_FUNCTION)?;
        let module = registry.module(context, entry.image)?;
        let function = get(|out| driver::cuModuleGetFunction(out, module, entry.name.as_ptr()))
            .map_err(|_| Error::INVALID_DEVICE_FUNCTION)?;
        registry
            .functions
            .insert((context, stub as usize), function);
        Ok(function)
    })
}

/// Address and bytes of a variable, in the current context.
pub(crate) fn variable(symbol: *const c_void) -> Outcome<(u64, usize)> {
    primary::ensure()?;
    let context = get(driver::cuCtxGetCurrent)?;
    with(|registry| {
        let entry = registry.variables.get(&(symbol as usize)).cloned();
        let entry = entry.ok_or(Error::INVALID_SYMBOL)?;
        let module = registry.module(context, entry.image)?;
        let mut bytes = 0;
        let address = get(|out| {
            driver::cuModuleGetGlobal_v2(out, &raw mut bytes, module, entry.name.as_ptr())
        })
        .map_err(|_| Error::INVALID_SYMBOL)?;
        Ok((address, if entry.bytes == 0 { bytes } else { entry.bytes }))
    })
}

/// The name of a kernel on the device.
pub(crate) fn name(stub: *const c_void) -> Outcome<*const c_char> {
    with(|registry| {
        let entry = registry.kernels.get(&(stub as usize));
        entry
            .map(|entry| entry.name.as_ptr())
            .ok_or(Error::INVALID_DEVICE_FUNCTION)
    })
}

/// Forgets what was loaded in a context that is gone.
pub(crate) fn forget(context: u64) {
    with(|registry| {
        registry.modules.retain(|(of, _), _| *of != context);
        registry.functions.retain(|(of, _), _| *of != context);
    });
}

/// Adds an image, and loads the driver, which other libraries of the program may look for before it calls the runtime.
fn announce(data: *const c_void) -> usize {
    // A program that needs the driver gets the error from its first call.
    let _ = driver::open();
    with(|registry| registry.add_image(data))
}

/// Unloads an image's modules. Work that uses them keeps their code until it is done.
fn withdraw(image: usize) {
    let modules = with(|registry| registry.remove_image(image));
    for (context, module) in modules {
        let unload = || -> Outcome {
            let before = get(driver::cuCtxGetCurrent)?;
            driver::cuCtxSetCurrent(context)?;
            let unloaded = driver::cuModuleUnload(module);
            driver::cuCtxSetCurrent(before)?;
            unloaded
        };
        // The process may be at its end, and nobody could use an error.
        let _ = unload();
    }
}

/// Announces the image of a file.
#[unsafe(no_mangle)]
unsafe extern "C" fn __cudaRegisterFatBinary(wrapper: *const c_void) -> *mut *mut c_void {
    // SAFETY: the compiler gives the address of such a structure.
    let data = unsafe { (*wrapper.cast::<Wrapper>()).data };
    handle(announce(data))
}

/// Ends the announcements of a file.
#[unsafe(no_mangle)]
unsafe extern "C" fn __cudaRegisterFatBinaryEnd(_image: *mut *mut c_void) {}

/// Withdraws the image of a file, at the end of its program or library.
#[unsafe(no_mangle)]
unsafe extern "C" fn __cudaUnregisterFatBinary(image: *mut *mut c_void) {
    withdraw(number(image));
}

/// Announces an image of several files, which register their kernels after it.
#[unsafe(no_mangle)]
unsafe extern "C" fn __oxshmemRegisterImage(image: *const c_void) -> *mut *mut c_void {
    let number = announce(image);
    with(|registry| registry.linked = Some(number));
    handle(number)
}

/// Gives the driver the host build of the kernels that libraries of the program load as PTX.
#[unsafe(no_mangle)]
unsafe extern "C" fn __oxshmemUseKernels(library: *const u8, bytes: usize) {
    if driver::open().is_err() {
        return;
    }
    if let Some(name) = driver::symbol(c"softcuda_use_kernels") {
        // SAFETY: the driver's function of that name has this type; the compiler gives the bytes that the program carries.
        unsafe {
            std::mem::transmute::<usize, unsafe extern "C" fn(*const u8, usize)>(name)(
                library, bytes,
            );
        }
    }
}

/// Has a file register its kernels with the image that it was linked to.
#[unsafe(no_mangle)]
unsafe extern "C" fn __oxshmemRegisterLinkedBinary(
    register: unsafe extern "C" fn(*mut *mut c_void),
    _wrapper: *const c_void,
    _module: *const c_char,
    _callback: *const c_void,
) {
    match with(|registry| registry.linked) {
        // SAFETY: the compiler's own function, for a handle of ours.
        Some(image) => unsafe { register(handle(image)) },
        None => eprintln!(
            "softcudart: a file built with -rdc=true was not linked by `oxshmem cuda cc`: its kernels are not there"
        ),
    }
}

/// Announces a kernel.
#[unsafe(no_mangle)]
unsafe extern "C" fn __cudaRegisterFunction(
    image: *mut *mut c_void,
    stub: *const c_void,
    _stub_again: *const c_char,
    name: *const c_char,
    _limit: c_int,
    _thread: *const c_void,
    _block: *const c_void,
    _threads: *const c_void,
    _grid: *const c_void,
    _size: *const c_int,
) -> c_int {
    let entry = Entry {
        image: number(image),
        name: text(name),
        bytes: 0,
    };
    with(|registry| registry.kernels.insert(stub as usize, entry));
    0
}

/// Announces a variable.
#[unsafe(no_mangle)]
unsafe extern "C" fn __cudaRegisterVar(
    image: *mut *mut c_void,
    shadow: *const c_void,
    _address: *const c_char,
    name: *const c_char,
    _external: c_int,
    bytes: usize,
    _constant: c_int,
    _global: c_int,
) {
    let entry = Entry {
        image: number(image),
        name: text(name),
        bytes,
    };
    with(|registry| registry.variables.insert(shadow as usize, entry));
}

/// Announces a texture, which is not supported.
#[unsafe(no_mangle)]
unsafe extern "C" fn __cudaRegisterTexture() {
    eprintln!("softcudart: texture references are not supported");
}

/// Announces a surface, which is not supported.
#[unsafe(no_mangle)]
unsafe extern "C" fn __cudaRegisterSurface() {
    eprintln!("softcudart: surface references are not supported");
}
