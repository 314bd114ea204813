//! Libraries of kernels (`CUlibrary`): code that is loaded once, and gets a module in each context that uses it.

use std::collections::HashMap;
use std::sync::Arc;

use super::module::{self, Log, Modules, Source};
use crate::call::{In, Out, Outcome};
use crate::code::Code;
use crate::context::{Context, current};
use crate::driver::{Driver, driver, fresh};
use crate::sync::lock;

/// The loaded code, and what was asked for of it.
pub(super) struct Library {
    source: Arc<Source>,
    /// The module in each context that used the library.
    modules: HashMap<u64, u64>,
}

/// A kernel of a library, which belongs to no context.
pub(super) struct Kernel {
    library: u64,
    name: String,
}

/// The library's module in this context; it is made at the first use.
fn module_in(modules: &mut Modules, library: u64, context: &Context) -> Outcome<u64> {
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
    module::find_function(driver, module, &name)
}

fn add(out: Out<u64>, source: Source) -> Outcome {
    let library = Library {
        source: Arc::new(source),
        modules: HashMap::new(),
    };
    let handle = fresh();
    lock(&driver()?.modules).libraries.insert(handle, library);
    out.set(handle)
}

driver_calls! {
    /// Loads code for all contexts. Of the options, those for the JIT's log have an effect.
    fn cuLibraryLoadData(
        out: Out<u64>,
        code: In<u8>,
        options: In<u32>,
        values: In<usize>,
        count: u32,
        library_options: In<u32>,
        library_values: In<usize>,
        library_count: u32,
    ) {
        let _ = (library_options, library_values, library_count);
        driver()?;
        out.check()?;
        let log = Log::of_options(options, values, count)?;
        add(out, Source::load(code, log)?)
    }

    /// Loads code from a file.
    fn cuLibraryLoadFromFile(
        out: Out<u64>,
        path: In<u8>,
        options: In<u32>,
        values: In<usize>,
        count: u32,
        library_options: In<u32>,
        library_values: In<usize>,
        library_count: u32,
    ) {
        let _ = (library_options, library_values, library_count);
        driver()?;
        out.check()?;
        let log = Log::of_options(options, values, count)?;
        add(out, Source::load_file(path, log)?)
    }

    /// Unloads a library, and its modules in all contexts.
    fn cuLibraryUnload(library: u64) {
        let driver = driver()?;
        let gone = {
            let mut modules = lock(&driver.modules);
            let gone = modules.libraries.remove(&library).ok_or(Code::INVALID_HANDLE)?;
            modules.kernels.retain(|_, kernel| kernel.library != library);
            gone
        };
        for module in gone.modules.into_values() {
            // A module may have gone with its context.
            let _ = module::unload(driver, module);
        }
        Ok(())
    }

    /// The library's module in the current context.
    fn cuLibraryGetModule(out: Out<u64>, library: u64) {
        let context = current()?;
        out.check()?;
        let module = module_in(&mut lock(&driver()?.modules), library, &context)?;
        out.set(module)
    }

    /// A kernel of a library. A launch takes it as a function.
    fn cuLibraryGetKernel(out: Out<u64>, library: u64, name: In<u8>) {
        out.check()?;
        let name = name.text()?;
        let mut modules = lock(&driver()?.modules);
        let known = modules.libraries.get(&library).ok_or(Code::INVALID_HANDLE)?;
        if !known.source.has_kernel(&name) {
            return Err(Code::NOT_FOUND);
        }
        let handle = fresh();
        modules.kernels.insert(handle, Kernel { library, name });
        out.set(handle)
    }

    /// A variable of a library, in the current context.
    fn cuLibraryGetGlobal(address: Out<u64>, size: Out<usize>, library: u64, name: In<u8>) {
        let context = current()?;
        let driver = driver()?;
        let module = module_in(&mut lock(&driver.modules), library, &context)?;
        let (at, bytes) = module::find_variable(driver, &context, module, &name.text()?)?;
        address.set_if_wanted(at);
        size.set_if_wanted(bytes);
        Ok(())
    }

    /// The function of a library's kernel, in the current context.
    fn cuKernelGetFunction(out: Out<u64>, kernel: u64) {
        out.check()?;
        out.set(function_of(driver()?, kernel)?)
    }
}
