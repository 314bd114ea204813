//! Libraries of kernels (`CUlibrary`): code that is loaded once, and gets a module in each context that uses it.

use std::sync::Arc;

use super::module::{self, Kernel, Library, Log, Source, function_of, module_in};
use crate::call::{In, Out, Outcome};
use crate::code::Code;
use crate::context::current;
use crate::driver::{driver, fresh};
use crate::sync::lock;

/// The options of a load that are for the JIT: their numbers, their values, and how many there are.
type Options = (In<u32>, In<usize>, u32);

/// Makes a library of code that `source` loads.
fn load(
    out: Out<u64>,
    (options, values, count): Options,
    source: impl FnOnce(Log) -> Outcome<Source>,
) -> Outcome {
    let driver = driver()?;
    out.check()?;
    let source = source(Log::of_options(options, values, count)?)?;
    let library = Library::new(Arc::new(source));
    let handle = fresh();
    lock(&driver.modules).libraries.insert(handle, library);
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
        load(out, (options, values, count), |log| Source::load(code, log))
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
        load(out, (options, values, count), |log| Source::load_file(path, log))
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
