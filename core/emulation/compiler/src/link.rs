//! Linking: device code to an image, objects to a program.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::elf;
use crate::error::Failure;
use crate::host_calls;
use crate::ir::host;
use crate::options::Options;
use crate::oxshmem;
use crate::toolchain::{self, Toolchain, run};

/// The source of the object that carries an image of several files.
const CARRIER: &str = r#"
__asm__(".section .rodata\n.balign 16\noxshmem_image:\n.incbin \"IMAGE\"\n.previous\n");
extern const char oxshmem_image[];
extern void **__oxshmemRegisterImage(const void *image);
extern void __cudaUnregisterFatBinary(void **image);
static void **handle;
/* Before the files' own: they register their kernels with the image that was announced last. */
__attribute__((constructor(101))) static void announce(void) { handle = __oxshmemRegisterImage(oxshmem_image); }
__attribute__((destructor(101))) static void withdraw(void) { __cudaUnregisterFatBinary(handle); }
__attribute__((section(".oxshmem_linked"), used)) static const char linked[] = "linked";
"#;
/// The section that says that an object carries the image of the others.
const LINKED: &str = ".oxshmem_linked";

/// Links device objects to a shared object, in which no name is left open.
pub(crate) fn image(
    tools: &Toolchain,
    options: &Options,
    objects: &[PathBuf],
    out: &Path,
) -> Result<(), Failure> {
    let mut command = Command::new(tools.clang.with_file_name("clang++"));
    command.args([
        "-shared",
        "-fuse-ld=lld",
        "-Wl,-Bsymbolic",
        "-Wl,-z,defs",
        "-Wl,--as-needed",
    ]);
    // A report of a race has files and lines.
    if !options.debug && !options.check {
        command.arg("-Wl,--strip-debug");
    }
    command
        .arg("-o")
        .arg(out)
        .args(objects)
        .arg(&tools.support)
        .arg("-lm");
    run(&mut command).map_err(|error| {
        Failure::new(format!(
            "device code does not link ({error}): a name above is used in device code and defined in none; code of several files needs -rdc=true"
        ))
    })
}

/// The device code in objects, as files of its own; none if an object carries their image already.
fn device_objects(objects: &[PathBuf], work: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut found = Vec::new();
    for (number, path) in objects.iter().enumerate() {
        let bytes = fs::read(path).map_err(|error| Failure::file(path, &error))?;
        for (place, member) in elf::files(&bytes).into_iter().enumerate() {
            if elf::section(member, LINKED).is_some() {
                return Ok(Vec::new());
            }
            let Some(mut pieces) = elf::section(member, host::SECTION) else {
                continue;
            };
            let mut piece = 0;
            while let Some(rest) = pieces.strip_prefix(&host::PIECE) {
                let length = elf::number_at(rest, 0, 8) as usize;
                let Some(code) = rest.get(8..).and_then(|rest| rest.get(..length)) else {
                    return Err(Failure::new(format!(
                        "{}: its device code is cut off",
                        path.display()
                    )));
                };
                let out = work.join(format!("device-{number}-{place}-{piece}.o"));
                fs::write(&out, code).map_err(|error| Failure::file(&out, &error))?;
                found.push(out);
                piece += 1;
                pieces = rest
                    .get((16 + length).next_multiple_of(16) - 8..)
                    .unwrap_or_default();
            }
        }
    }
    Ok(found)
}

/// `-dlink`: the object that carries the device code of objects and archives.
pub(crate) fn device_link(
    tools: &Toolchain,
    options: &Options,
    objects: &[PathBuf],
    work: &Path,
    out: &Path,
) -> Result<(), Failure> {
    device(tools, options, &files(options, objects), work, out).map(drop)
}

/// Links the device code of objects and archives, and makes the object that carries it. None if there is none.
fn device(
    tools: &Toolchain,
    options: &Options,
    files: &[PathBuf],
    work: &Path,
    out: &Path,
) -> Result<bool, Failure> {
    let is_static = |path: &&PathBuf| {
        let ending = path.extension();
        ending.is_some_and(|e| e == "o" || e == "a" || e == "obj")
    };
    let linked: Vec<PathBuf> = files.iter().filter(is_static).cloned().collect();
    let pieces = device_objects(&linked, work)?;
    if pieces.is_empty() {
        return Ok(false);
    }
    let shared = work.join("linked.so");
    image(tools, options, &pieces, &shared)?;
    let code = fs::read(&shared).map_err(|error| Failure::file(&shared, &error))?;
    let file = work.join("linked.image");
    fs::write(&file, host::image(&code)).map_err(|error| Failure::file(&file, &error))?;
    let source = work.join("carrier.c");
    fs::write(&source, CARRIER.replace("IMAGE", &file.to_string_lossy()))
        .map_err(|error| Failure::file(&source, &error))?;
    let mut command = Command::new(&tools.clang);
    run(command
        .args(["-fPIC", "-O1", "-c", "-o"])
        .arg(out)
        .arg(&source))?;
    Ok(true)
}

/// The object by which a program carries the host build of oxshmem's kernels.
fn announcement(tools: &Toolchain, work: &Path) -> Result<PathBuf, Failure> {
    let kernels = oxshmem::kernels(tools)?;
    let (library, source) = (work.join("kernels.so"), work.join("kernels.c"));
    fs::copy(&kernels, &library).map_err(|error| Failure::file(&kernels, &error))?;
    let text = oxshmem::ANNOUNCEMENT.replace("KERNELS", &library.to_string_lossy());
    fs::write(&source, text).map_err(|error| Failure::file(&source, &error))?;
    let object = work.join("kernels.o");
    let mut command = Command::new(&tools.clang);
    run(command
        .args(["-fPIC", "-O1", "-c", "-o"])
        .arg(&object)
        .arg(&source))?;
    Ok(object)
}

/// The libraries and archives that the linker finds for `-l` in the folders of `-L`.
fn found_libraries(words: &[OsString]) -> Vec<PathBuf> {
    let all = |prefix: &str| -> Vec<String> {
        let values = words
            .iter()
            .filter_map(|word| word.to_str()?.strip_prefix(prefix));
        values.map(str::to_owned).collect()
    };
    let folders = all("-L");
    let find = |name: String| {
        let files = match name.strip_prefix(':') {
            Some(file) => vec![file.to_owned()],
            None => vec![format!("lib{name}.so"), format!("lib{name}.a")],
        };
        let paths = folders
            .iter()
            .flat_map(|folder| files.iter().map(|file| Path::new(folder).join(file)));
        paths.into_iter().find(|path| path.is_file())
    };
    all("-l").into_iter().filter_map(find).collect()
}

/// Objects, and the libraries and archives that are named by `-l`.
fn files(options: &Options, objects: &[PathBuf]) -> Vec<PathBuf> {
    [objects, &found_libraries(&options.link)].concat()
}

/// Has a program look for its libraries in a folder.
fn rpath(command: &mut Command, folder: &Path) {
    let mut word = OsString::from("-Wl,-rpath,");
    word.push(folder);
    command.arg(word);
}

/// Links a program, or a shared library.
pub(crate) fn program(
    tools: &Toolchain,
    options: &Options,
    objects: &[PathBuf],
    work: &Path,
    out: &Path,
) -> Result<(), Failure> {
    let runtime = toolchain::runtime_folder()?;
    let carrier = work.join("carrier.o");
    let files = files(options, objects);
    let carries = device(tools, options, &files, work, &carrier)?;
    let mut command = Command::new(tools.clang.with_file_name("clang++"));
    command.arg("-fuse-ld=lld");
    if options.shared {
        command.arg("-shared");
    }
    command
        .arg("-Wno-unused-command-line-argument")
        .args(&options.host);
    command.arg("-o").arg(out).args(objects);
    if carries {
        command.arg(&carrier);
    }
    if oxshmem::is_called(&files) {
        command.arg(announcement(tools, work)?);
    }
    let library = oxshmem::library(&runtime)?;
    if let Some((library, _)) = library.as_ref().filter(|_| options.check) {
        command.args(host_calls::object(tools, &files, library, work)?);
        command.arg(host_calls::EXPORT);
    }
    command.args(&options.link);
    rpath(&mut command, &runtime);
    if options.driver {
        let driver = runtime.join("libsoftcuda.so");
        rpath(
            &mut command,
            &toolchain::linked_folder(&driver, "libcuda.so.1")?,
        );
        command.arg(driver);
    }
    // Programs that make none of its calls do not need it.
    if let Some((library, folder)) = library {
        rpath(&mut command, &folder);
        command.args(["-Wl,--push-state,--as-needed"]);
        command.arg(library).arg("-Wl,--pop-state");
    }
    command
        .arg(runtime.join("libsoftcudart.so"))
        .args(["-lm", "-ldl", "-lpthread"]);
    run(&mut command)
}

/// Makes an archive of objects.
pub(crate) fn archive(objects: &[PathBuf], out: &Path) -> Result<(), Failure> {
    run(Command::new("ar").arg("rcs").arg(out).args(objects))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toolchain::Scratch;

    #[test]
    fn libraries_are_found_in_the_folders_of_a_line_as_the_linker_finds_them() {
        let work = Scratch::new().unwrap();
        let folder = |name: &str| work.path().join(name);
        for name in ["one", "two"] {
            fs::create_dir(folder(name)).unwrap();
        }
        for name in ["one/libx.a", "two/libx.so", "two/liby.so", "two/liby.a"] {
            fs::write(folder(name), "").unwrap();
        }
        let mut words: Vec<OsString> = ["-lx", "-ly", "-l:liby.a", "-lm"].map(Into::into).into();
        for name in ["one", "two"] {
            words.push(format!("-L{}", folder(name).display()).into());
        }
        let found = ["one/libx.a", "two/liby.so", "two/liby.a"].map(folder);
        assert_eq!(found_libraries(&words), found);
    }
}
