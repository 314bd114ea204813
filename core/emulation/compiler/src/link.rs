//! Linking: device code to an image, objects to a program.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::Failure;
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
    if !options.debug {
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
        let members = match bytes.strip_prefix(b"!<arch>\n") {
            Some(rest) => members(rest),
            None => vec![&bytes[..]],
        };
        for (place, member) in members.into_iter().enumerate() {
            if section(member, LINKED).is_some() {
                return Ok(Vec::new());
            }
            let Some(mut pieces) = section(member, host::SECTION) else {
                continue;
            };
            let mut piece = 0;
            while let Some(rest) = pieces.strip_prefix(&host::PIECE) {
                let length = number_at(rest, 0, 8) as usize;
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

/// The files in an archive.
fn members(mut rest: &[u8]) -> Vec<&[u8]> {
    let mut found = Vec::new();
    while rest.len() >= 60 {
        let size = std::str::from_utf8(&rest[48..58])
            .ok()
            .and_then(|text| text.trim().parse::<usize>().ok());
        let Some(body) = size.and_then(|size| rest.get(60..)?.get(..size)) else {
            break;
        };
        found.push(body);
        rest = rest
            .get(60 + body.len().next_multiple_of(2)..)
            .unwrap_or_default();
    }
    found
}

fn number_at(bytes: &[u8], at: usize, size: usize) -> u64 {
    let field = bytes
        .get(at..)
        .and_then(|rest| rest.get(..size))
        .unwrap_or_default();
    field
        .iter()
        .rev()
        .fold(0, |sum, byte| (sum << 8) | u64::from(*byte))
}

/// A section of a file in the format ELF, for x86-64.
fn section<'a>(file: &'a [u8], wanted: &str) -> Option<&'a [u8]> {
    if !file.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let table = number_at(file, 40, 8) as usize;
    let entry = number_at(file, 58, 2) as usize;
    let header = |index: usize| {
        file.get(table.checked_add(index.checked_mul(entry)?)?..)?
            .get(..entry)
    };
    let bytes = |header: &[u8]| {
        let (offset, size) = (
            number_at(header, 24, 8) as usize,
            number_at(header, 32, 8) as usize,
        );
        file.get(offset..offset.checked_add(size)?)
    };
    let names = bytes(header(number_at(file, 62, 2) as usize)?)?;
    (0..number_at(file, 60, 2) as usize)
        .filter_map(header)
        .find_map(|header| {
            let name = names.get(number_at(header, 0, 4) as usize..)?;
            let rest = name.strip_prefix(wanted.as_bytes())?;
            if rest.first() == Some(&0) {
                bytes(header)
            } else {
                None
            }
        })
}

/// Links the device code of objects, and makes the object that carries it. None if there is none.
pub(crate) fn device(
    tools: &Toolchain,
    options: &Options,
    objects: &[PathBuf],
    work: &Path,
    out: &Path,
) -> Result<bool, Failure> {
    let pieces = device_objects(objects, work)?;
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

/// The object by which a program names the host build of oxshmem's kernels.
fn announcement(tools: &Toolchain, work: &Path) -> Result<PathBuf, Failure> {
    let text = oxshmem::announcement(&oxshmem::kernels(tools)?);
    let (source, object) = (work.join("kernels.c"), work.join("kernels.o"));
    fs::write(&source, text).map_err(|error| Failure::file(&source, &error))?;
    let mut command = Command::new(&tools.clang);
    run(command
        .args(["-fPIC", "-O1", "-c", "-o"])
        .arg(&object)
        .arg(&source))?;
    Ok(object)
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
    let linked: Vec<PathBuf> = objects
        .iter()
        .filter(|path| {
            path.extension()
                .is_some_and(|e| e == "o" || e == "a" || e == "obj")
        })
        .cloned()
        .collect();
    let carries = device(tools, options, &linked, work, &carrier)?;
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
    if oxshmem::is_called(objects) {
        command.arg(announcement(tools, work)?);
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
    if let Some((library, folder)) = oxshmem::library(&runtime)? {
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
