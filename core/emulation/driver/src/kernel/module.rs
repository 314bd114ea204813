//! Modules: loaded PTX, its functions and its variables.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use super::image::{self, Image};
use super::ptx::{self, Declarations};
use super::shape::{MOST_THREADS, Packed};
use crate::call::{In, Out, Outcome};
use crate::code::Code;
use crate::context::{Context, current};
use crate::driver::{Driver, driver, fresh};
use crate::sync::{lock, write};

/// Dynamic shared memory of a block: by default, and at most.
const SHARED: i32 = 48 << 10;
const MOST_SHARED: i32 = 227 << 10;
/// `CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES`, `..._PREFERRED_SHARED_MEMORY_CARVEOUT`.
const MAX_DYNAMIC_SHARED: u32 = 8;
const CARVEOUT: u32 = 9;

/// A kernel that can be launched.
pub(crate) struct Function {
    pub(crate) context: u64,
    pub(crate) parameters: Vec<usize>,
    pub(crate) name: String,
    pub(crate) code: Packed,
    /// The image that the code is in; it stays as long as the function. `None`: the host build.
    pub(crate) image: Option<Arc<Image>>,
    module: u64,
    max_dynamic_shared: Mutex<i32>,
}

impl Function {
    /// Bytes of dynamic shared memory that a launch may ask for.
    pub(crate) fn max_dynamic_shared(&self) -> i32 {
        *lock(&self.max_dynamic_shared)
    }
}

/// The origin of a module's code.
pub(super) enum Source {
    /// PTX, which names what is taken from the host build of the kernels.
    Ptx(Declarations),
    Image(Arc<Image>),
}

impl Source {
    /// The code at an address: PTX, or an image.
    pub(super) fn load(code: In<u8>, log: Log) -> Outcome<Source> {
        if image::is_image(code) {
            return Ok(Source::Image(Arc::new(Image::load(code)?)));
        }
        Source::of_ptx(&ptx::text(code)?, log)
    }

    /// The PTX of a file.
    pub(super) fn load_file(path: In<u8>, log: Log) -> Outcome<Source> {
        let bytes = std::fs::read(path.text()?).map_err(|_| Code::FILE_NOT_FOUND)?;
        let text = String::from_utf8(bytes).map_err(|_| Code::NO_BINARY_FOR_GPU)?;
        Source::of_ptx(&text, log)
    }

    fn of_ptx(text: &str, log: Log) -> Outcome<Source> {
        let declarations = ptx::parse(text).map_err(|refused| {
            log.write(&format!("softcuda: {}", refused.words));
            refused.code
        })?;
        Ok(Source::Ptx(declarations))
    }

    pub(super) fn has_kernel(&self, name: &str) -> bool {
        match self {
            Source::Ptx(declarations) => {
                declarations.entries.iter().any(|entry| entry.name == name)
            }
            Source::Image(image) => image.kernel(name).is_some(),
        }
    }
}

struct Module {
    context: u64,
    source: Arc<Source>,
    /// Address and size of each variable that was looked up or created.
    variables: HashMap<String, (u64, usize)>,
    functions: HashMap<String, u64>,
}

/// All modules, functions and libraries of the process.
#[derive(Default)]
pub(crate) struct Modules {
    modules: HashMap<u64, Module>,
    functions: HashMap<u64, Arc<Function>>,
    pub(super) libraries: HashMap<u64, Library>,
    pub(super) kernels: HashMap<u64, Kernel>,
}

impl Modules {
    /// Drops the entries of a context that is destroyed.
    pub(crate) fn forget(&mut self, context: u64) {
        self.modules.retain(|_, module| module.context != context);
        self.functions
            .retain(|_, function| function.context != context);
    }

    fn module(&mut self, handle: u64) -> Outcome<&mut Module> {
        self.modules.get_mut(&handle).ok_or(Code::INVALID_HANDLE)
    }

    fn has(&self, module: u64) -> bool {
        self.modules.contains_key(&module)
    }

    /// A new module in a context.
    pub(super) fn add(&mut self, context: &Context, source: Arc<Source>) -> u64 {
        let module = Module {
            context: context.handle,
            source,
            variables: HashMap::new(),
            functions: HashMap::new(),
        };
        let handle = fresh();
        self.modules.insert(handle, module);
        handle
    }
}

/// A library (`CUlibrary`): its code, and what was asked for of it.
pub(super) struct Library {
    pub(super) source: Arc<Source>,
    /// The module in each context that used the library.
    pub(super) modules: HashMap<u64, u64>,
}

impl Library {
    pub(super) fn new(source: Arc<Source>) -> Library {
        Library {
            source,
            modules: HashMap::new(),
        }
    }
}

/// A kernel of a library, which belongs to no context.
pub(super) struct Kernel {
    pub(super) library: u64,
    pub(super) name: String,
}

/// The library's module in this context; it is made at the first use.
pub(super) fn module_in(modules: &mut Modules, library: u64, context: &Context) -> Outcome<u64> {
    let known = modules.libraries.get(&library);
    let known = known.ok_or(Code::INVALID_HANDLE)?;
    // A context that was destroyed has taken its modules with it.
    if let Some(handle) = known.modules.get(&context.handle)
        && modules.has(*handle)
    {
        return Ok(*handle);
    }
    let source = known.source.clone();
    let handle = modules.add(context, source);
    if let Some(library) = modules.libraries.get_mut(&library) {
        library.modules.insert(context.handle, handle);
    }
    Ok(handle)
}

/// The function that stands for a library's kernel in the caller's context.
pub(super) fn function_of(driver: &Driver, kernel: u64) -> Outcome<u64> {
    let context = current()?;
    let (module, name) = {
        let mut modules = lock(&driver.modules);
        let known = modules.kernels.get(&kernel);
        let known = known.ok_or(Code::INVALID_HANDLE)?;
        let (library, name) = (known.library, known.name.clone());
        (module_in(&mut modules, library, &context)?, name)
    };
    find_function(driver, module, &name)
}

/// A function by its handle, of a module that is still loaded. The kernel of a library stands for its function in the current context.
pub(crate) fn function(handle: u64) -> Outcome<Arc<Function>> {
    let driver = driver()?;
    let find = |handle| lock(&driver.modules).functions.get(&handle).cloned();
    match find(handle) {
        Some(function) => Ok(function),
        None => find(function_of(driver, handle)?).ok_or(Code::INVALID_HANDLE),
    }
}

/// The JIT's log: `CU_JIT_ERROR_LOG_BUFFER` and its size.
#[derive(Clone, Copy, Default)]
pub(super) struct Log {
    buffer: usize,
    room: usize,
}

impl Log {
    const INFO_BUFFER: u32 = 3;
    const INFO_ROOM: u32 = 4;
    const ERROR_BUFFER: u32 = 5;
    const ERROR_ROOM: u32 = 6;

    fn find(options: &[u32], values: &[usize], buffer: u32, room: u32) -> Log {
        let value = |wanted| {
            let at = options.iter().position(|option| *option == wanted);
            at.and_then(|at| values.get(at)).copied().unwrap_or(0)
        };
        // The size is a 32-bit number that travels as a pointer.
        Log {
            buffer: value(buffer),
            room: value(room) as u32 as usize,
        }
    }

    /// The log that a call's options name; the log of what is no error is left empty.
    pub(super) fn of_options(options: In<u32>, values: In<usize>, count: u32) -> Outcome<Log> {
        let (options, values) = (options.list(count as usize)?, values.list(count as usize)?);
        let find = |buffer, room| Log::find(&options, &values, buffer, room);
        find(Log::INFO_BUFFER, Log::INFO_ROOM).write("");
        let errors = find(Log::ERROR_BUFFER, Log::ERROR_ROOM);
        errors.write("");
        Ok(errors)
    }

    fn write(self, words: &str) {
        if self.buffer == 0 || self.room == 0 {
            return;
        }
        let length = words.len().min(self.room - 1);
        let at = self.buffer as *mut u8;
        // SAFETY: the caller of the driver vouches for a buffer of that size.
        unsafe {
            at.copy_from_nonoverlapping(words.as_ptr(), length);
            at.add(length).write(0);
        }
    }
}

fn load(out: Out<u64>, image: In<u8>, log: Log) -> Outcome {
    let context = current()?;
    out.check()?;
    crate::graph::refuse_unsafe()?;
    add_module(out, &context, Source::load(image, log)?)
}

fn add_module(out: Out<u64>, context: &Context, source: Source) -> Outcome {
    let handle = lock(&driver()?.modules).add(context, Arc::new(source));
    out.set(handle)
}

/// Unloads a module; its functions and variables are gone.
pub(super) fn unload(driver: &Driver, handle: u64) -> Outcome {
    let mut modules = lock(&driver.modules);
    let module = modules
        .modules
        .remove(&handle)
        .ok_or(Code::INVALID_HANDLE)?;
    modules
        .functions
        .retain(|_, function| function.module != handle);
    drop(modules);
    let mut memory = write(&driver.memory);
    for (address, _) in module.variables.into_values() {
        memory.remove_variable(address);
    }
    Ok(())
}

/// Code and parameters of a kernel that PTX declares, from the host build.
fn in_host_build(
    driver: &Driver,
    declarations: &Declarations,
    name: &str,
) -> Outcome<(Packed, Vec<usize>)> {
    let entry = declarations.entries.iter().find(|entry| entry.name == name);
    let entry = entry.ok_or(Code::NOT_FOUND)?;
    let Some(library) = &driver.kernels else {
        eprintln!(
            "softcuda: kernel {name} can not run: SOFTCUDA_KERNELS names no host build of it; link the program by `oxshmem cuda cc`, or \
             set SOFTCUDA_KERNELS to the libsoftcuda_kernels.so of an installation"
        );
        return Err(Code::NOT_FOUND);
    };
    let Some(code) = library.kernel(name) else {
        eprintln!("softcuda: kernel {name} can not run: the host build exports no {name}__packed");
        return Err(Code::NOT_FOUND);
    };
    Ok((code, entry.parameters.clone()))
}

pub(super) fn find_function(driver: &Driver, module_handle: u64, name: &str) -> Outcome<u64> {
    let mut modules = lock(&driver.modules);
    let module = modules.module(module_handle)?;
    if let Some(handle) = module.functions.get(name) {
        return Ok(*handle);
    }
    let (code, parameters, image) = match &*module.source {
        Source::Ptx(declarations) => {
            let (code, parameters) = in_host_build(driver, declarations, name)?;
            (code, parameters, None)
        }
        Source::Image(image) => {
            let (code, parameters) = image.kernel(name).ok_or(Code::NOT_FOUND)?;
            (code, parameters, Some(image.clone()))
        }
    };
    let handle = fresh();
    module.functions.insert(name.to_owned(), handle);
    let function = Function {
        context: module.context,
        parameters,
        name: name.to_owned(),
        code,
        image,
        module: module_handle,
        max_dynamic_shared: Mutex::new(SHARED),
    };
    modules.functions.insert(handle, Arc::new(function));
    Ok(handle)
}

/// A variable's address: in the host build if it has one, else in memory of its own.
pub(super) fn find_variable(
    driver: &Driver,
    context: &Context,
    module: u64,
    name: &str,
) -> Outcome<(u64, usize)> {
    let mut modules = lock(&driver.modules);
    let module = modules.module(module)?;
    if let Some(known) = module.variables.get(name) {
        return Ok(*known);
    }
    let (address, size) = match &*module.source {
        Source::Image(image) => {
            let (address, size) = image.variable(name).ok_or(Code::NOT_FOUND)?;
            write(&driver.memory).add_global(address, size as u64, context);
            (address, size)
        }
        Source::Ptx(declarations) => {
            let declared = declarations.variables.iter().find(|v| v.name == name);
            let size = declared.ok_or(Code::NOT_FOUND)?.size;
            let in_build = driver
                .kernels
                .as_ref()
                .and_then(|build| build.variable(name));
            let address = match in_build {
                Some(address) => {
                    write(&driver.memory).add_global(address, size as u64, context);
                    address
                }
                None => crate::memory::allocate(context, size as u64, false)?,
            };
            (address, size)
        }
    };
    module.variables.insert(name.to_owned(), (address, size));
    Ok((address, size))
}

fn attribute(function: &Function, number: u32) -> Outcome<i32> {
    Ok(match number {
        0 => MOST_THREADS as i32,
        // Shared, constant and local bytes are not known here.
        1..=3 => 0,
        4 => 32,
        5 => 80,
        6 => 90,
        MAX_DYNAMIC_SHARED => function.max_dynamic_shared(),
        CARVEOUT => -1,
        7 | 10..=16 => 0,
        _ => return Err(Code::INVALID_VALUE),
    })
}

driver_calls! {
    /// Loads PTX.
    fn cuModuleLoadData(out: Out<u64>, image: In<u8>) {
        load(out, image, Log::default())
    }

    /// Loads PTX, with options for the JIT; only those for logs have an effect.
    fn cuModuleLoadDataEx(
        out: Out<u64>,
        image: In<u8>,
        count: u32,
        options: In<u32>,
        values: In<usize>,
    ) {
        load(out, image, Log::of_options(options, values, count)?)
    }

    /// Loads PTX from a file.
    fn cuModuleLoad(out: Out<u64>, path: In<u8>) {
        let context = current()?;
        out.check()?;
        add_module(out, &context, Source::load_file(path, Log::default())?)
    }

    /// Unloads a module.
    fn cuModuleUnload(handle: u64) {
        current()?;
        unload(driver()?, handle)
    }

    /// A kernel of a module.
    fn cuModuleGetFunction(out: Out<u64>, module: u64, name: In<u8>) {
        current()?;
        out.check()?;
        out.set(find_function(driver()?, module, &name.text()?)?)
    }

    /// A variable of a module.
    fn cuModuleGetGlobal_v2(address: Out<u64>, size: Out<usize>, module: u64, name: In<u8>) {
        let context = current()?;
        let (at, bytes) = find_variable(driver()?, &context, module, &name.text()?)?;
        address.set_if_wanted(at);
        size.set_if_wanted(bytes);
        Ok(())
    }

    /// Loads a kernel's code, which is always loaded.
    fn cuFuncLoad(handle: u64) {
        function(handle).map(|_| ())
    }

    /// The module of a kernel.
    fn cuFuncGetModule(out: Out<u64>, handle: u64) {
        out.set(function(handle)?.module)
    }

    /// An attribute of a kernel.
    fn cuFuncGetAttribute(out: Out<i32>, number: u32, handle: u64) {
        current()?;
        out.check()?;
        out.set(attribute(&*function(handle)?, number)?)
    }

    /// Asks for more dynamic shared memory.
    fn cuFuncSetAttribute(handle: u64, number: u32, value: i32) {
        current()?;
        let function = function(handle)?;
        match number {
            MAX_DYNAMIC_SHARED if (0..=MOST_SHARED).contains(&value) => {
                *lock(&function.max_dynamic_shared) = value;
                Ok(())
            }
            CARVEOUT if (-1..=100).contains(&value) => Ok(()),
            _ => Err(Code::INVALID_VALUE),
        }
    }

    /// A hint about caches, which has no effect here.
    fn cuFuncSetCacheConfig(handle: u64, config: u32) {
        function(handle)?;
        if config > 3 { Err(Code::INVALID_VALUE) } else { Ok(()) }
    }

    /// Blocks that a multiprocessor holds at once: as many as have room for their threads.
    fn cuOccupancyMaxActiveBlocksPerMultiprocessor(
        out: Out<i32>,
        handle: u64,
        threads: i32,
        shared: usize,
    ) {
        current()?;
        function(handle)?;
        if threads < 1 || shared > MOST_SHARED as usize {
            return Err(Code::INVALID_VALUE);
        }
        out.set(if threads > MOST_THREADS as i32 { 0 } else { (2048 / threads).min(32) })
    }
}

/// Blocks of a kernel that the whole device holds at once.
pub(crate) fn resident_blocks(threads: u32) -> u64 {
    u64::from((2048 / threads.max(1)).min(32)) * crate::device::multiprocessors() as u64
}
