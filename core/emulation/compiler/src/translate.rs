//! One source file becomes one object.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::error::Failure;
use crate::ir;
use crate::options::{Goal, Input, Kind, Options};
use crate::toolchain::{Toolchain, run, unit};

/// Compiles a source to an object. `work` begins the names of temporary files.
pub(crate) fn source(
    tools: &Toolchain,
    options: &Options,
    input: &Input,
    object: &Path,
    work: &Path,
) -> Result<(), Failure> {
    if let Goal::Preprocess(option) = options.goal {
        let mut command = host_driver(tools, options, input, &options.host);
        command.arg(option);
        command.args(options.dependencies.words_of_list(option));
        if let Some(out) = &options.output {
            command.arg("-o").arg(out);
        }
        return run(command.arg(&input.path));
    }
    let dependencies = options.dependency_words(input, object);
    let for_host = [&options.host[..], &dependencies].concat();
    if input.kind != Kind::Cuda {
        let mut command = host_driver(tools, options, input, &for_host);
        command
            .arg(format!("-O{}", options.level))
            .arg("-c")
            .arg("-o")
            .arg(object);
        return run(command.arg(&input.path));
    }
    let unit = unit(&input.path, &options.common);
    let host_text = work.with_extension("host.ll");
    let device_text = work.with_extension("device.ll");
    let placeholder = work.with_extension("placeholder");
    fs::write(&placeholder, "x").map_err(|error| Failure::file(&placeholder, &error))?;

    let front_end = |words: &[OsString]| {
        front_end(
            tools,
            options,
            input,
            words,
            &host_text,
            &placeholder,
            &unit,
        )
    };
    let host = front_end(&for_host)?;
    let device = device_front_end(&front_end(&[])?, &device_text, options.check);
    show(options, &device);
    run(Command::new(&tools.clang).args(&device))?;
    show(options, &host);
    run(Command::new(&tools.clang).args(&host))?;

    let read = |path: &Path| fs::read_to_string(path).map_err(|error| Failure::file(path, &error));
    let host = read(&host_text)?;
    let kernels = ir::stub::kernels(&host)?;
    let device = ir::device::passes(&read(&device_text)?, &kernels, options.check)?;
    let write = |path: &Path, text: &str| {
        fs::write(path, text).map_err(|error| Failure::file(path, &error))
    };
    write(&device_text, &device)?;
    let device_object = work.with_extension("device.o");
    back_end(tools, options, &device_text, &device_object, true)?;
    let code = if options.relocatable {
        device_object
    } else {
        let image = work.with_extension("device.so");
        crate::link::image(tools, options, std::slice::from_ref(&device_object), &image)?;
        image
    };
    let code = fs::read(&code).map_err(|error| Failure::file(&code, &error))?;
    let host = if options.relocatable {
        ir::host::carry(&host, &ir::host::piece(&code), &unit)
    } else {
        ir::host::embed(&host, &ir::host::image(&code))
    };
    let host = match options.check {
        true => ir::host::check(&host),
        false => host,
    };
    write(&host_text, &host)?;
    back_end(tools, options, &host_text, object, false)
}

fn show(options: &Options, words: &[OsString]) {
    if options.verbose {
        let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
        eprintln!("oxshmem cuda cc: clang {}", words.join(" "));
    }
}

/// The compiler with the options that every source has, and `words`.
fn host_driver(tools: &Toolchain, options: &Options, input: &Input, words: &[OsString]) -> Command {
    let program = if input.kind == Kind::C {
        "clang"
    } else {
        "clang++"
    };
    let mut command = Command::new(tools.clang.with_file_name(program));
    let language = match input.kind {
        Kind::Cuda => "cuda",
        Kind::C => "c",
        _ => "c++",
    };
    if input.kind != Kind::C {
        command.arg(format!("-std={}", options.standard));
    }
    if input.kind == Kind::Cuda {
        command.args([
            "--cuda-host-only",
            "-nocudainc",
            "-nocudalib",
            "-fdeclspec",
            "-Xclang",
            "-target-sdk-version=12.4",
            "-Xclang",
            "-fcuda-allow-variadic-functions",
            "-include",
            "cuda_runtime.h",
            "-D__CUDACC__",
            "-D__CUDACC_VER_MAJOR__=12",
            "-D__CUDACC_VER_MINOR__=8",
            "-D__CUDACC_VER_BUILD__=93",
            "-D__CUDACC_EXTENDED_LAMBDA__",
            "-D__CUDACC_RELAXED_CONSTEXPR__",
        ]);
        if options.relocatable {
            command.arg("-D__CUDACC_RDC__");
        }
    }
    command.arg("-DOXSHMEM_EMULATION=1").arg("-fPIC");
    if options.debug {
        command.arg("-g");
    } else if options.check {
        command.arg("-gline-tables-only");
    }
    command.args(&options.common).args(words);
    if options.check {
        // Inlined calls of the host are not seen.
        command.arg("-UOXSHMEM_INLINE");
    }
    for folder in [&tools.headers, &tools.cuda, &tools.library_headers] {
        command.arg("-isystem").arg(folder);
    }
    // The language counts for the inputs behind it.
    command.arg("-x").arg(language);
    command
}

/// The words of clang's own front end for the host half of a file. `words` are for that half.
fn front_end(
    tools: &Toolchain,
    options: &Options,
    input: &Input,
    words: &[OsString],
    out: &Path,
    placeholder: &Path,
    unit: &str,
) -> Result<Vec<OsString>, Failure> {
    let mut command = host_driver(tools, options, input, words);
    // With 0 clang forbids all later optimisation, which unused parts of headers need.
    let level = if options.level == "0" {
        "1"
    } else {
        &options.level
    };
    command.arg(format!("-O{level}")).args([
        "-fno-discard-value-names",
        "-Xclang",
        "-disable-llvm-passes",
        "-S",
        "-emit-llvm",
        "-###",
    ]);
    command
        .args(["-Xclang", "-fcuda-include-gpubinary", "-Xclang"])
        .arg(placeholder);
    if options.relocatable {
        command
            .args(["-Xclang", "-fgpu-rdc", "-Xclang"])
            .arg(format!("-cuid={unit}"));
    }
    command
        .arg(&input.path)
        .arg("-o")
        .arg(out)
        .stdin(Stdio::null());
    let output = command
        .output()
        .map_err(|error| Failure::new(format!("clang: {error}")))?;
    let text = String::from_utf8_lossy(&output.stderr);
    let line = text.lines().rev().find(|line| line.contains("\"-cc1\""));
    let Some(line) = line.filter(|_| output.status.success()) else {
        return Err(Failure::new(format!("clang refuses its options:\n{text}")));
    };
    let words = split(line);
    let mut kept: Vec<OsString> = Vec::new();
    let mut words = words.into_iter().skip(1).peekable();
    while let Some(word) = words.next() {
        // Wrappers of clang's own for headers, in place of which ours stand.
        if word == "-internal-isystem"
            && words
                .peek()
                .is_some_and(|next| next.ends_with("cuda_wrappers"))
        {
            words.next();
            continue;
        }
        kept.push(word.into());
    }
    Ok(kept)
}

/// The words for the device half: the same headers and options, for the device's functions.
fn device_front_end(host: &[OsString], out: &Path, check: bool) -> Vec<OsString> {
    let mut words: Vec<OsString> = Vec::new();
    let mut host = host.iter();
    while let Some(word) = host.next() {
        match word.to_str() {
            Some("-fcuda-include-gpubinary") => {
                host.next();
            }
            Some("-aux-triple") => {
                host.next();
                words.extend(["-aux-triple".into(), "x86_64-pc-linux-gnu".into()]);
            }
            Some("-o") => {
                host.next();
                words.extend(["-o".into(), out.into()]);
            }
            Some("-x") => {
                words.extend(
                    [
                        "-fcuda-is-device",
                        "-U__CUDA_ARCH__",
                        "-D__CUDA_ARCH__=900",
                        "-debug-info-kind=line-tables-only",
                        "-dwarf-version=5",
                        // A lane may hand an uninitialised value to a function: a shuffle reads only those of some lanes.
                        "-no-enable-noundef-analysis",
                        // Conversions of numbers out of range give the nearest value, and of NaN zero, as on a GPU.
                        "-fno-strict-float-cast-overflow",
                    ]
                    .map(OsString::from),
                );
                if check {
                    words.extend(["-fsanitize=thread", "-DOXSHMEM_RACES=1"].map(OsString::from));
                }
                words.push(word.clone());
            }
            _ => words.push(word.clone()),
        }
    }
    words
}

/// The words of a line in which clang shows a command.
fn split(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let (mut quoted, mut escaped) = (false, false);
    for c in line.chars() {
        if escaped {
            word.get_or_insert_default().push(c);
            escaped = false;
        } else if c == '\\' {
            escaped = true;
        } else if c == '"' {
            quoted = !quoted;
            word.get_or_insert_default();
        } else if c == ' ' && !quoted {
            words.extend(word.take());
        } else {
            word.get_or_insert_default().push(c);
        }
    }
    words.extend(word);
    words
}

/// Compiles LLVM's text to an object.
fn back_end(
    tools: &Toolchain,
    options: &Options,
    text: &Path,
    object: &Path,
    device: bool,
) -> Result<(), Failure> {
    let mut command = Command::new(&tools.clang);
    let level = if device && options.level == "0" {
        "1"
    } else {
        &options.level
    };
    command
        .arg(format!("-O{level}"))
        .args(["-w", "-fPIC", "-c", "-x", "ir"]);
    if device {
        command.arg("-femulated-tls");
    }
    if options.check {
        // The calls of the compiler's race detector, which the driver's answers. Volatile accesses have names of their own.
        command.args([
            "-fsanitize=thread",
            "-mllvm",
            "-tsan-distinguish-volatile=1",
            "-mllvm",
            "-tsan-instrument-func-entry-exit=0",
        ]);
    }
    if options.check && !device {
        // The runtime has functions for plain accesses alone: words by which the host and kernels tell each other of something are known
        // by the kernel's.
        command.args([
            "-mllvm",
            "-tsan-instrument-atomics=0",
            "-mllvm",
            "-tsan-handle-cxx-exceptions=0",
        ]);
    }
    run(command.arg(text).arg("-o").arg(object))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clangs_lines_are_split_at_the_blanks_that_are_not_quoted() {
        assert_eq!(
            split(" \"/a b/clang\" \"-cc1\" \"-D\" \"X=\\\"y\\\"\""),
            ["/a b/clang", "-cc1", "-D", "X=\"y\""]
        );
    }
}
