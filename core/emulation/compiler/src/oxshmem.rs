//! oxshmem itself, for programs that call it: its shared library, and the host build of its kernels.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::elf;
use crate::error::Failure;
use crate::library_files::{MODULES, SOURCES};
use crate::toolchain::{self, Scratch, Toolchain, run};

/// The names by which programs use GPU memory: that of a call that `oxshmem.cuh` makes, and the beginning of those of the C API.
const CALLED: [&str; 2] = ["oxshmem_register_image", "shmemx_cuda_"];

/// The mark of a module's source that names its kernels whose threads meet.
const USES_BARRIERS: &str = "#pragma softcuda uses_barriers ";

/// Whether one of these objects, archives and libraries uses oxshmem's GPU memory, by the names in their symbol tables.
pub(crate) fn is_called(files: &[PathBuf]) -> bool {
    let is_called = |name: &[u8]| CALLED.iter().any(|part| contains(name, part.as_bytes()));
    files.iter().any(|path| {
        let bytes = fs::read(path).unwrap_or_default();
        elf::names(&bytes).any(is_called)
    })
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// The shared library, and the folder in which programs find it: an installation's, or that of a build, where a link has its
/// name. None if it is not there.
pub(crate) fn library(runtime: &Path) -> Result<Option<(PathBuf, PathBuf)>, Failure> {
    const NAME: &str = "liboxshmem.so.0";
    let installed = runtime.join("..").join(NAME);
    if installed.is_file() {
        let library =
            fs::canonicalize(&installed).map_err(|error| Failure::file(&installed, &error))?;
        let folder = library.parent().unwrap_or(runtime).to_owned();
        return Ok(Some((library, folder)));
    }
    let built = runtime.join("liboxshmem_capi.so");
    if !built.is_file() {
        return Ok(None);
    }
    let folder = toolchain::linked_folder(&built, NAME)?;
    Ok(Some((folder.join(NAME), folder)))
}

/// The host build of the library's own kernels. It is compiled once.
pub(crate) fn kernels(tools: &Toolchain) -> Result<PathBuf, Failure> {
    let out = tools.folder.join("kernels.so");
    if out.is_file() {
        return Ok(out);
    }
    let work = Scratch::new()?;
    for (name, text) in SOURCES {
        toolchain::write_whole(&work.path().join(name), text.as_bytes())?;
    }
    let device = work.path().join("transport/nvlink/device");
    let mut command = Command::new(tools.clang.with_file_name("clang++"));
    command
        .args([
            "-std=c++17",
            "-O2",
            "-fPIC",
            "-fno-strict-aliasing",
            "-ffp-contract=off",
            "-w",
            "-shared",
        ])
        .arg("-include")
        .arg(device.join("host_shim.h"))
        .arg("-I")
        .arg(&device)
        .arg("-I")
        .arg(work.path().join("core/device/include"));
    for (number, (module, ptx)) in MODULES.iter().enumerate() {
        let mut text = format!("#include \"{}\"\n", work.path().join(module).display());
        for kernel in entries(ptx) {
            let _ = writeln!(text, "SOFTCUDA_ENTRY({kernel})");
        }
        let unit = work.path().join(format!("{number}.cpp"));
        toolchain::write_whole(&unit, text.as_bytes())?;
        command.arg(unit);
    }
    let unit = work.path().join("barriers.cpp");
    toolchain::write_whole(&unit, barriers().as_bytes())?;
    let made = work.path().join("kernels.so");
    run(command.arg(unit).arg("-o").arg(&made))?;
    let bytes = fs::read(&made).map_err(|error| Failure::file(&made, &error))?;
    toolchain::write_whole(&out, &bytes)?;
    Ok(out)
}

/// The kernels of a module.
fn entries(ptx: &str) -> impl Iterator<Item = &str> {
    let names = ptx.split(".entry ").skip(1);
    names.filter_map(|rest| Some(rest.split_once('(')?.0.trim()))
}

/// The list of the kernels whose threads meet. `ci/softcuda-kernels` also takes all kernels of a module that has a block's barrier
/// and names none; a test sees to it that there is no such module here.
fn barriers() -> String {
    let lines = SOURCES.iter().flat_map(|(_, text)| text.lines());
    let named = lines.filter_map(|line| line.strip_prefix(USES_BARRIERS));
    let names: String = named
        .flat_map(str::split_whitespace)
        .map(|name| format!(" \"{name}\\0\""))
        .collect();
    format!("extern \"C\" const char softcuda_uses_barriers[] ={names};\n")
}

/// The source of the object by which a program carries the host build of these kernels.
pub(crate) const ANNOUNCEMENT: &str = r#"
__asm__(".section .rodata\n.balign 16\noxshmem_kernels:\n.incbin \"KERNELS\"\noxshmem_kernels_end:\n.previous\n");
extern const char oxshmem_kernels[], oxshmem_kernels_end[];
extern void __oxshmemUseKernels(const void *library, __SIZE_TYPE__ bytes);
__attribute__((constructor(101))) static void announce(void) {
    __oxshmemUseKernels(oxshmem_kernels, (__SIZE_TYPE__)(oxshmem_kernels_end - oxshmem_kernels));
}
"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_module_has_kernels_and_some_of_them_meet() {
        let all: Vec<usize> = MODULES
            .iter()
            .map(|(_, ptx)| entries(ptx).count())
            .collect();
        assert!(all.iter().all(|kernels| *kernels > 0), "{all:?}");
        let barriers = barriers();
        for kernel in ["oxshmem_barrier", "oxshmem_copy_signal"] {
            assert!(barriers.contains(&format!("\"{kernel}\\0\"")), "{barriers}");
        }
    }

    /// The files that a source includes, and itself.
    fn parts(module: &str) -> Vec<&'static str> {
        let mut names = vec![module.rsplit('/').next().unwrap()];
        let mut at = 0;
        let mut texts = Vec::new();
        while let Some(name) = names.get(at) {
            let ends = format!("/{name}");
            let (_, text) = SOURCES
                .iter()
                .find(|(path, _)| path.ends_with(&ends))
                .unwrap();
            texts.push(*text);
            let includes = text
                .lines()
                .filter_map(|line| line.strip_prefix("#include \""));
            for include in includes.filter_map(|rest| rest.strip_suffix('"')) {
                let file = include.rsplit('/').next().unwrap();
                if !names.contains(&file) {
                    names.push(file);
                }
            }
            at += 1;
        }
        texts
    }

    #[test]
    fn a_module_whose_threads_meet_names_its_kernels_that_do() {
        for (module, _) in MODULES {
            let texts = parts(module);
            let has = |words: &str| texts.iter().any(|text| text.contains(words));
            assert!(!has("__syncthreads()") || has(USES_BARRIERS), "{module}");
        }
    }

    /// A file that is included and not in the list would be missed only where there is no checkout.
    #[test]
    fn every_part_of_the_kernels_is_in_the_list() {
        for (name, text) in SOURCES {
            let includes = text
                .lines()
                .filter_map(|line| line.strip_prefix("#include \""));
            for include in includes.filter_map(|rest| rest.strip_suffix('"')) {
                let file = include.rsplit('/').next().unwrap_or(include);
                let ends = format!("/{file}");
                assert!(
                    SOURCES.iter().any(|(name, _)| name.ends_with(&ends)),
                    "{name}: {include}"
                );
            }
        }
    }
}
