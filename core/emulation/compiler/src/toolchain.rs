//! The tools and headers that a build needs, and the folders where they are.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::Failure;
use crate::{library_files, refused};

/// The packages of PyPI that have CUDA's headers. Both are needed: the second has `crt/`.
const WHEELS: [&str; 2] = [
    "nvidia-cuda-runtime-cu12==12.8.90",
    "nvidia-cuda-nvcc-cu12==12.8.93",
];
/// The Debian packages that a build needs.
const PACKAGES: [&str; 3] = ["clang-19", "lld-19", "g++"];
/// The folder of Debian's LLVM.
const LLVM: &str = "/usr/lib/llvm-19/bin";

macro_rules! own_files {
    ($($name:literal)*) => {
        &[$(($name, include_str!(concat!("../include/", $name)))),*]
    };
}
const HEADERS: &[(&str, &str)] = own_files!(
    "cuda_runtime.h" "device_launch_parameters.h" "device_functions.h" "math_functions.h"
    "device_atomic_functions.h" "sm_20_atomic_functions.h" "sm_30_intrinsics.h" "sm_32_intrinsics.h"
    "sm_35_intrinsics.h" "sm_60_atomic_functions.h" "sm_61_intrinsics.h" "nvToolsExt.h" "nvtx3/nvToolsExt.h" "cuda_profiler_api.h" "cuda_fp16.h" "cuda_bf16.h"
    "cooperative_groups.h" "cooperative_groups/operations.h" "cooperative_groups/reduce.h"
    "cooperative_groups/scan.h" "cooperative_groups/memcpy_async.h" "emulation/builtins.h"
    "emulation/atomics.h" "emulation/integers.h" "emulation/simd.h" "emulation/math.h"
    "emulation/memory.h" "emulation/warp.h" "emulation/half.h"
);
const SUPPORT: &str = include_str!("../support/support.c");

/// The tools and folders of a build.
#[derive(Debug)]
pub(crate) struct Toolchain {
    pub(crate) clang: PathBuf,
    /// Our headers, before CUDA's own.
    pub(crate) headers: PathBuf,
    pub(crate) cuda: PathBuf,
    /// oxshmem's headers, behind CUDA's.
    pub(crate) library_headers: PathBuf,
    /// The part of each image that calls the driver, compiled.
    pub(crate) support: PathBuf,
    /// The folder of all that is unpacked or compiled once.
    pub(crate) folder: PathBuf,
}

fn cache() -> Result<PathBuf, Failure> {
    let named = env::var_os("XDG_CACHE_HOME").filter(|path| !path.is_empty());
    let base = named
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cache")));
    match base {
        Some(base) => Ok(base.join("oxshmem")),
        None => Err(Failure::new(
            "neither XDG_CACHE_HOME nor HOME is set; one must name a folder for the headers",
        )),
    }
}

fn hash(parts: &impl Hash) -> String {
    let mut hasher = DefaultHasher::new();
    parts.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// A name for a source file that is compiled with these words, the same whenever that is done. A program may have one file twice,
/// with different macros.
pub(crate) fn unit(path: &Path, words: &[OsString]) -> String {
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    hash(&(path, words))
}

fn clang() -> Result<PathBuf, Failure> {
    let named = env::var_os("OXSHMEM_CLANG").map(PathBuf::from);
    let clang = named.unwrap_or_else(|| Path::new(LLVM).join("clang"));
    if !clang.is_file() {
        return Err(Failure::new(format!(
            "{} is not there; install {} (Debian: apt-get install {}), or run `oxshmem cuda setup`",
            clang.display(),
            PACKAGES.join(", "),
            PACKAGES.join(" ")
        )));
    }
    if !clang.with_file_name("ld.lld").is_file() {
        return Err(Failure::new(
            "ld.lld of LLVM 19 is not there; install lld-19, or run `oxshmem cuda setup`",
        ));
    }
    Ok(clang)
}

fn cuda_headers() -> Result<PathBuf, Failure> {
    for name in ["CUDA_HOME", "CUDA_PATH"] {
        let Some(home) = env::var_os(name).filter(|home| !home.is_empty()) else {
            continue;
        };
        let include = PathBuf::from(home).join("include");
        // The layout of some structures changed with 13, and the runtime has those of 12.
        let text = fs::read_to_string(include.join("cuda_runtime_api.h")).unwrap_or_default();
        if text.contains("#define CUDART_VERSION 12") || text.contains("#define CUDART_VERSION  12")
        {
            return Ok(include);
        }
    }
    let kept = cache()?.join("cuda-12.8").join("include");
    if kept.join("cuda_runtime_api.h").is_file() {
        return Ok(kept);
    }
    Err(Failure::new(
        "CUDA's headers are not there: run `oxshmem cuda setup`, which fetches them once (41 MB), or set CUDA_HOME to a toolkit of CUDA 12",
    ))
}

impl Toolchain {
    pub(crate) fn find() -> Result<Toolchain, Failure> {
        let clang = clang()?;
        let cuda = cuda_headers()?;
        let all = hash(&(HEADERS, refused::headers(), SUPPORT, library_files::ALL));
        let folder = cache()?.join(format!("cuda-emulation-{all}"));
        let tools = Toolchain {
            clang,
            headers: folder.join("include"),
            cuda,
            library_headers: folder.join("oxshmem"),
            support: folder.join("support.o"),
            folder,
        };
        if !tools.support.is_file() {
            tools.unpack()?;
        }
        Ok(tools)
    }

    /// Writes our headers and compiles the support code. Several processes may do so at once.
    fn unpack(&self) -> Result<(), Failure> {
        let work = Scratch::new()?;
        for (name, text) in HEADERS {
            write_whole(&self.headers.join(name), text.as_bytes())?;
        }
        for (name, text) in refused::headers() {
            write_whole(&self.headers.join(name), text.as_bytes())?;
        }
        for (name, text) in library_files::HEADERS.into_iter().flatten() {
            write_whole(&self.library_headers.join(name), text.as_bytes())?;
        }
        let source = work.path().join("support.c");
        write_whole(&source, SUPPORT.as_bytes())?;
        let object = work.path().join("support.o");
        let mut command = Command::new(&self.clang);
        command
            .args(["-O2", "-fPIC", "-c", "-o"])
            .arg(&object)
            .arg(&source);
        run(&mut command)?;
        let bytes = fs::read(&object).map_err(|error| Failure::file(&object, &error))?;
        write_whole(&self.support, &bytes)
    }
}

/// Writes a file that others see whole or not at all.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let write = || {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let new = path.with_extension(format!("new{}", std::process::id()));
        fs::write(&new, bytes)?;
        fs::rename(&new, path)
    };
    write().map_err(|error| Failure::file(path, &error))
}

/// Runs a tool. Its messages go to standard error as they come.
pub(crate) fn run(command: &mut Command) -> Result<(), Failure> {
    let shown = command.get_program().to_string_lossy().into_owned();
    let status = command
        .stdin(Stdio::null())
        .status()
        .map_err(|error| Failure::new(format!("{shown}: {error}")))?;
    if status.success() {
        Ok(())
    } else {
        Err(Failure::new(format!("{shown} ended with {status}")))
    }
}

/// A folder for the files of one build, which is removed at the end.
#[derive(Debug)]
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> Result<Scratch, Failure> {
        for number in 0..1000 {
            let path =
                env::temp_dir().join(format!("oxshmem-cuda-cc-{}-{number}", std::process::id()));
            match fs::create_dir(&path) {
                Ok(()) => return Ok(Scratch(path)),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(Failure::file(&path, &error)),
            }
        }
        Err(Failure::new("no folder for temporary files can be made"))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if env::var_os("OXSHMEM_CUDA_KEEP").is_none() {
            let _ = fs::remove_dir_all(&self.0);
        }
    }
}

/// The folder with the runtime library and the software driver, beside the command or below `lib`.
///
/// # Errors
///
/// There is none.
pub fn runtime_folder() -> Result<PathBuf, Failure> {
    let complete = |folder: &PathBuf| {
        ["libsoftcudart.so", "libsoftcuda.so"]
            .iter()
            .all(|name| folder.join(name).is_file())
    };
    let mut folders = Vec::new();
    folders.extend(env::var_os("OXSHMEM_CUDA_RUNTIME").map(PathBuf::from));
    if let Some(own) = env::current_exe()
        .ok()
        .and_then(|exe| fs::canonicalize(exe).ok())
        && let Some(bin) = own.parent()
    {
        folders.push(bin.to_owned());
        // Programs of cargo's tests.
        folders.push(bin.join(".."));
        folders.push(bin.join("../lib/oxshmem"));
        folders.push(bin.join("../lib"));
    }
    match folders.iter().find(|folder| complete(folder)) {
        Some(folder) => fs::canonicalize(folder).map_err(|error| Failure::file(folder, &error)),
        None => Err(Failure::new(
            "libsoftcudart.so and libsoftcuda.so are not beside the command: build oxshmem-softcudart and oxshmem-softcuda, or name their folder in OXSHMEM_CUDA_RUNTIME",
        )),
    }
}

/// A folder that has a library of a build under the name by which programs look for it.
pub(crate) fn linked_folder(library: &Path, name: &str) -> Result<PathBuf, Failure> {
    let folder = cache()?.join(format!("cuda-link-{}", hash(&(library, name))));
    let make = || {
        fs::create_dir_all(&folder)?;
        match std::os::unix::fs::symlink(library, folder.join(name)) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(error),
            _ => Ok(()),
        }
    };
    make().map_err(|error| Failure::file(&folder, &error))?;
    Ok(folder)
}

/// Prints a version in the form that build systems look for.
pub(crate) fn print_version() -> Result<(), Failure> {
    let words = "oxshmem cuda cc: compiler driver for CUDA programs on CPUs\nCuda compilation tools, release 12.8, V12.8.93\n";
    std::io::Write::write_all(&mut std::io::stdout(), words.as_bytes())
        .map_err(|error| Failure::new(error.to_string()))
}

/// Installs what a build needs: Debian's packages, and CUDA's headers from PyPI.
///
/// # Errors
///
/// No right to install, no network.
pub fn setup() -> Result<(), Failure> {
    if clang().is_err() || !has_cpp_library() {
        let root = Command::new("id")
            .arg("-u")
            .output()
            .is_ok_and(|out| out.stdout == b"0\n");
        let by_hand = format!("as root run: apt-get install {}", PACKAGES.join(" "));
        if !root || !Path::new("/usr/bin/apt-get").exists() {
            return Err(Failure::new(format!(
                "clang 19 or a C++ library is missing; {by_hand}"
            )));
        }
        let apt = |words: &[&str]| {
            let mut apt = Command::new("apt-get");
            apt.arg("-q").args(words);
            run(apt.env("DEBIAN_FRONTEND", "noninteractive"))
                .map_err(|error| Failure::new(format!("{error}; {by_hand}")))
        };
        // A fresh container has no lists of packages.
        apt(&["update"])?;
        let install = ["install", "-y", "--no-install-recommends"];
        apt(&[&install[..], &PACKAGES].concat())?;
    }
    if cuda_headers().is_err() {
        fetch_headers()?;
    }
    Toolchain::find().map(|_| ())
}

/// Whether clang finds the headers of a C++ library.
fn has_cpp_library() -> bool {
    let Ok(clang) = clang() else { return false };
    let mut check = Command::new(clang);
    check.args([
        "-x",
        "c++",
        "-fsyntax-only",
        "-include",
        "algorithm",
        "/dev/null",
    ]);
    check.stderr(Stdio::null());
    check.status().is_ok_and(|status| status.success())
}

fn fetch_headers() -> Result<(), Failure> {
    let place = cache()?.join("cuda-12.8");
    fs::create_dir_all(&place).map_err(|error| Failure::file(&place, &error))?;
    let work = Scratch::new()?;
    let environment = work.path().join("venv");
    run(Command::new("python3").args([
        OsStr::new("-m"),
        OsStr::new("venv"),
        environment.as_os_str(),
    ]))
    .map_err(|error| Failure::new(format!("{error}; on Debian install python3-venv")))?;
    let mut pip = Command::new(environment.join("bin/pip"));
    pip.args([
        "install",
        "--quiet",
        "--no-deps",
        "--disable-pip-version-check",
        "--retries",
        "1",
    ])
    .args(WHEELS);
    run(&mut pip).map_err(|error| {
        Failure::new(format!(
            "{error}; {} are needed once, with a network",
            WHEELS.join(" and ")
        ))
    })?;
    let libraries = environment.join("lib");
    let entries = fs::read_dir(&libraries).map_err(|error| Failure::file(&libraries, &error))?;
    let new = place.join(format!("new-{}", std::process::id()));
    for entry in entries.flatten() {
        let packages = entry.path().join("site-packages/nvidia");
        for part in ["cuda_runtime", "cuda_nvcc"] {
            copy_folder(&packages.join(part).join("include"), &new)?;
        }
    }
    let include = place.join("include");
    // Another process may have been quicker.
    if fs::rename(&new, &include).is_err() {
        let _ = fs::remove_dir_all(&new);
    }
    cuda_headers().map(|_| ())
}

fn copy_folder(from: &Path, to: &Path) -> Result<(), Failure> {
    let copy = || -> std::io::Result<Vec<PathBuf>> {
        fs::create_dir_all(to)?;
        let mut folders = Vec::new();
        for entry in fs::read_dir(from)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if let Some(name) = path.file_name() {
                fs::copy(&path, to.join(name))?;
            }
        }
        Ok(folders)
    };
    for folder in copy().map_err(|error| Failure::file(from, &error))? {
        if let Some(name) = folder.file_name() {
            copy_folder(&folder, &to.join(name))?;
        }
    }
    Ok(())
}
