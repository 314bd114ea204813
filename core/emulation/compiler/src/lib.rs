//! A compiler driver that builds CUDA programs for CPUs, over the software CUDA driver.
//!
//! A `.cu` file is compiled twice by clang: its host half as for a GPU, and its device half for the
//! CPU. The device half becomes a shared object of its own, which stands in the program where the
//! code for GPUs would stand. Between the two steps of each half a few passes over LLVM's text change
//! what CPUs lack: `ir`.

mod dependencies;
mod elf;
mod error;
mod host_calls;
mod ir;
mod library_files;
mod link;
mod options;
mod oxshmem;
mod refused;
mod signature;
mod toolchain;
mod translate;
mod warnings;

use std::ffi::OsString;
use std::path::PathBuf;

pub use error::Failure;
pub use toolchain::{runtime_folder, setup};

use options::{Goal, Options};
use toolchain::Toolchain;

/// Builds what the words of a command line ask for, which are those of nvcc.
///
/// # Errors
///
/// Options that are not known, tools that are missing, programs that do not compile.
pub fn cc(words: &[OsString]) -> Result<(), Failure> {
    let options = Options::parse(words)?;
    if options.version {
        return toolchain::print_version();
    }
    if options.inputs.is_empty() {
        return Err(Failure::new(
            "no input files; `oxshmem cuda cc --help` shows the options",
        ));
    }
    let tools = Toolchain::find()?;
    let work = toolchain::Scratch::new()?;
    let mut objects = Vec::new();
    for (number, input) in options.inputs.iter().enumerate() {
        if !input.is_source() {
            objects.push(input.path.clone());
            continue;
        }
        let object = match options.goal {
            Goal::Object => options.object_of(input)?,
            _ => work.path().join(format!("{number}.o")),
        };
        translate::source(
            &tools,
            &options,
            input,
            &object,
            &work.path().join(number.to_string()),
        )?;
        objects.push(object);
    }
    let out = options.output.clone();
    match options.goal {
        Goal::Object | Goal::Preprocess(_) => Ok(()),
        Goal::DeviceLink => {
            let out = out.unwrap_or_else(|| PathBuf::from("a_dlink.o"));
            link::device_link(&tools, &options, &objects, work.path(), &out)
        }
        Goal::Archive => link::archive(&objects, &out.unwrap_or_else(|| PathBuf::from("a.a"))),
        Goal::Program => {
            let out = out.unwrap_or_else(|| PathBuf::from("a.out"));
            link::program(&tools, &options, &objects, work.path(), &out)
        }
    }
}
