//! The options of the command line, which are those of nvcc.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::dependencies::{Dependencies, ListOption};
use crate::error::Failure;
use crate::warnings::WarningsAsErrors;

/// The kind of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Cuda,
    Cpp,
    C,
    /// An object, an archive or a shared library.
    Linked,
}

#[derive(Clone, Debug)]
pub(crate) struct Input {
    pub(crate) path: PathBuf,
    pub(crate) kind: Kind,
}

impl Input {
    pub(crate) fn is_source(&self) -> bool {
        self.kind != Kind::Linked
    }
}

/// The result that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Goal {
    Program,
    /// `-c`, `-dc`.
    Object,
    /// `-E`, and the lists of headers, `-M` and `-MM`.
    Preprocess(&'static str),
    /// `-dlink`.
    DeviceLink,
    /// `-lib`.
    Archive,
}

/// A command line that was understood.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) goal: Goal,
    pub(crate) version: bool,
    /// Whether device code of several files is linked together (`-rdc=true`).
    pub(crate) relocatable: bool,
    pub(crate) shared: bool,
    pub(crate) verbose: bool,
    pub(crate) level: String,
    pub(crate) debug: bool,
    /// Whether kernels tell the race detector of their accesses (`--check`).
    pub(crate) check: bool,
    pub(crate) standard: String,
    pub(crate) output: Option<PathBuf>,
    pub(crate) inputs: Vec<Input>,
    /// Words for both halves of a file: `-I`, `-D`, `-U`, `-include`, warnings.
    pub(crate) common: Vec<OsString>,
    /// Words for the host half alone, and for the linking of a program: `-Xcompiler`.
    pub(crate) host: Vec<OsString>,
    /// The list of headers that is written beside an object.
    pub(crate) dependencies: Dependencies,
    /// The folder for objects that have no name (`-odir`).
    pub(crate) folder: Option<PathBuf>,
    /// Words for the linker: `-L`, `-l`, `-Xlinker`.
    pub(crate) link: Vec<OsString>,
    /// Whether a program that calls the driver is linked (`-lcuda`).
    pub(crate) driver: bool,
}

impl Options {
    pub(crate) fn object_of(&self, input: &Input) -> Result<PathBuf, Failure> {
        match &self.output {
            Some(_) if self.inputs.iter().filter(|i| i.is_source()).count() > 1 => Err(
                Failure::new("-o names one file, and -c with several sources makes several"),
            ),
            Some(path) => Ok(path.clone()),
            None => {
                let name = Path::new(input.path.file_name().unwrap_or_default());
                let folder = self.folder.clone().unwrap_or_default();
                Ok(folder.join(name.with_extension("o")))
            }
        }
    }

    /// The words for the list of a source's headers.
    pub(crate) fn dependency_words(&self, input: &Input, object: &Path) -> Vec<OsString> {
        let is_object = self.goal == Goal::Object;
        let is_only = self.inputs.iter().filter(|i| i.is_source()).count() < 2;
        let out = self.output.as_deref().filter(|_| is_only);
        self.dependencies
            .words_of(&input.path, is_object.then_some(object), out)
    }

    /// Understands the words of a command line.
    pub(crate) fn parse(words: &[OsString]) -> Result<Options, Failure> {
        let mut parser = Parser {
            words,
            at: 0,
            forced: None,
            options: Options {
                goal: Goal::Program,
                version: false,
                relocatable: false,
                shared: false,
                verbose: false,
                level: "1".to_owned(),
                debug: false,
                check: false,
                standard: "c++17".to_owned(),
                output: None,
                inputs: Vec::new(),
                common: Vec::new(),
                host: Vec::new(),
                dependencies: Dependencies::default(),
                folder: None,
                link: Vec::new(),
                driver: false,
            },
        };
        while let Some(word) = parser.next() {
            parser.word(&word)?;
        }
        Ok(parser.options)
    }
}

/// Options with a value that have no effect here.
const IGNORED_WITH_VALUE: &[&str] = &[
    "-arch",
    "--gpu-architecture",
    "-gencode",
    "--generate-code",
    "-code",
    "--gpu-code",
    "-ccbin",
    "--compiler-bindir",
    "-maxrregcount",
    "--maxrregcount",
    "-cudart",
    "--cudart",
    "-t",
    "--threads",
    "-Xptxas",
    "--ptxas-options",
    "-Xcudafe",
    "-diag-suppress",
    "--diag-suppress",
    "-diag_suppress",
    "--diag_suppress",
    "-Xnvlink",
    "-nvlink-options",
    "--nvlink-options",
    "-ftz",
    "--ftz",
    "-prec-div",
    "--prec-div",
    "-prec-sqrt",
    "--prec-sqrt",
    "-fmad",
    "--fmad",
    "-split-compile",
    "--split-compile",
    "-Xfatbin",
    "-dopt",
    "--dopt",
    "-cudadevrt",
    "--cudadevrt",
    "-keep-dir",
    "--keep-dir",
    "-compress-mode",
    "--compress-mode",
];

/// Options without a value that have no effect here.
const IGNORED: &[&str] = &[
    "-lineinfo",
    "--generate-line-info",
    "--expt-relaxed-constexpr",
    "-expt-relaxed-constexpr",
    "--extended-lambda",
    "-extended-lambda",
    "--expt-extended-lambda",
    "-expt-extended-lambda",
    "-G",
    "--device-debug",
    "-use_fast_math",
    "--use_fast_math",
    "-forward-unknown-to-host-compiler",
    "--forward-unknown-to-host-compiler",
    "-restrict",
    "--restrict",
    "-m64",
    "--m64",
    "-res-usage",
    "--resource-usage",
    "-extra-device-vectorization",
    "-dlto",
    "-allow-unsupported-compiler",
    "--allow-unsupported-compiler",
    "-noeh",
    "--no-exceptions",
    "-keep",
    "--keep",
    "--source-in-ptx",
    "-source-in-ptx",
    "-src-in-ptx",
    "-pipe",
    "-forward-unknown-opts",
    "--forward-unknown-opts",
];

/// Options that ask for what only a GPU can run.
const REFUSED: &[&str] = &[
    "-ptx",
    "--ptx",
    "-cubin",
    "--cubin",
    "-fatbin",
    "--fatbin",
    "-optix-ir",
];

struct Parser<'a> {
    words: &'a [OsString],
    at: usize,
    /// The kind that `-x` gives to the inputs behind it.
    forced: Option<Kind>,
    options: Options,
}

impl Parser<'_> {
    fn next(&mut self) -> Option<OsString> {
        let word = self.words.get(self.at).cloned();
        self.at += 1;
        word
    }

    /// The value of an option: behind `=` or joined to it, else the next word.
    fn value(&mut self, word: &str, name: &str) -> Result<String, Failure> {
        if let Some(rest) = word.strip_prefix(name)
            && !rest.is_empty()
        {
            return Ok(rest.strip_prefix('=').unwrap_or(rest).to_owned());
        }
        match self.next() {
            Some(value) => Ok(value.to_string_lossy().into_owned()),
            None => Err(Failure::new(format!("{name} has no value"))),
        }
    }

    fn input(&mut self, path: &OsStr) -> Result<(), Failure> {
        let path = PathBuf::from(path);
        let kind = self.forced.or_else(|| kind_of(&path));
        let Some(kind) = kind else {
            return Err(Failure::new(format!(
                "{}: a file of an unknown kind; sources end in .cu, .cpp, .cc, .cxx or .c, objects in .o, .a or .so; -x cu forces one",
                path.display()
            )));
        };
        self.options.inputs.push(Input { path, kind });
        Ok(())
    }

    fn word(&mut self, raw: &OsStr) -> Result<(), Failure> {
        let word = raw.to_string_lossy().into_owned();
        if !word.starts_with('-') || word == "-" {
            return self.input(raw);
        }
        let plain = word.split('=').next().unwrap_or_default();
        if word == "-run" || word == "--run" {
            return Err(Failure::new(
                "-run: this compiler starts no program; build it by -o NAME, and start it",
            ));
        }
        if REFUSED.contains(&plain) {
            return Err(Failure::new(format!(
                "{plain} makes code for GPUs, and this compiler has none: it builds programs for the CPU"
            )));
        }
        if IGNORED.contains(&word.as_str()) {
            return Ok(());
        }
        // The number of threads, joined to its name.
        if let Some(number) = word.strip_prefix("-t")
            && number.parse::<u32>().is_ok()
        {
            return Ok(());
        }
        if let Some(name) = IGNORED_WITH_VALUE.iter().find(|name| **name == plain) {
            if !word.contains('=') {
                self.value(&word, name)?;
            }
            if name.contains("ccbin") || name.contains("compiler-bindir") {
                eprintln!("oxshmem cuda cc: {name} has no effect: clang 19 compiles both halves");
            }
            return Ok(());
        }
        if self.goal(&word)
            || self.mode(&word)?
            || self.for_compiler(&word)?
            || self.for_linker(&word)?
        {
            return Ok(());
        }
        Err(Failure::new(format!(
            "option {word} is not known; give options for the host compiler by -Xcompiler, those for the linker by -Xlinker"
        )))
    }

    fn goal(&mut self, word: &str) -> bool {
        let options = &mut self.options;
        match word {
            "-c" | "--compile" => options.goal = Goal::Object,
            "-dc" | "--device-c" => {
                options.goal = Goal::Object;
                options.relocatable = true;
            }
            "-dw" | "--device-w" => options.goal = Goal::Object,
            "-E" | "--preprocess" => options.goal = Goal::Preprocess("-E"),
            "-M" | "--generate-dependencies" => options.goal = Goal::Preprocess("-M"),
            "-MM" | "--generate-nonsystem-dependencies" => {
                options.goal = Goal::Preprocess("-MM");
            }
            "-dlink" | "--device-link" => options.goal = Goal::DeviceLink,
            "-lib" | "--lib" => options.goal = Goal::Archive,
            "-shared" | "--shared" => options.shared = true,
            "-V" | "--version" => options.version = true,
            "-v" | "--verbose" => options.verbose = true,
            "-g" | "--debug" => options.debug = true,
            "--check" => options.check = true,
            "-w" | "--disable-warnings" => options.common.push("-w".into()),
            _ => return false,
        }
        true
    }

    /// Options on the language and the form of the result.
    fn mode(&mut self, word: &str) -> Result<bool, Failure> {
        let is_longer = |name: &&str| word.starts_with(*name);
        if word.starts_with("-o") && !["-odir", "-opt"].iter().any(is_longer)
            || word.starts_with("--output-file")
        {
            let name = if word.starts_with("--") {
                "--output-file"
            } else {
                "-o"
            };
            self.options.output = Some(self.value(word, name)?.into());
        } else if word.starts_with("-rdc") || word.starts_with("--relocatable-device-code") {
            let name = if word.starts_with("-rdc") {
                "-rdc"
            } else {
                "--relocatable-device-code"
            };
            self.options.relocatable = match self.value(word, name)?.as_str() {
                "true" => true,
                "false" => false,
                other => return Err(Failure::new(format!("{name}={other}: true or false"))),
            };
        } else if word.starts_with("-std") || word.starts_with("--std") {
            let name = if word.starts_with("--") {
                "--std"
            } else {
                "-std"
            };
            self.options.standard = self.value(word, name)?;
        } else if word.starts_with("-default-stream") || word.starts_with("--default-stream") {
            let name = if word.starts_with("--") {
                "--default-stream"
            } else {
                "-default-stream"
            };
            match self.value(word, name)?.as_str() {
                "legacy" => {}
                "per-thread" => self
                    .options
                    .common
                    .push("-DCUDA_API_PER_THREAD_DEFAULT_STREAM=1".into()),
                other => {
                    return Err(Failure::new(format!(
                        "{name}={other}: legacy or per-thread"
                    )));
                }
            }
        } else if word == "-x" || word.starts_with("--x") || word.starts_with("-x=") {
            let name = if word.starts_with("--") { "--x" } else { "-x" };
            self.forced = Some(match self.value(word, name)?.as_str() {
                "cu" | "cuda" => Kind::Cuda,
                "c++" => Kind::Cpp,
                "c" => Kind::C,
                other => return Err(Failure::new(format!("-x {other}: cu, c++ or c"))),
            });
        } else if let Some(level) = word
            .strip_prefix("-O")
            .or_else(|| word.strip_prefix("--optimize="))
        {
            self.options.level = match level {
                "" => "1".to_owned(),
                "0" | "1" | "2" | "3" | "s" => level.to_owned(),
                other => return Err(Failure::new(format!("-O{other}: 0 to 3"))),
            };
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    fn for_compiler(&mut self, word: &str) -> Result<bool, Failure> {
        const JOINED: [(&str, &str); 6] = [
            ("-I", "-I"),
            ("-D", "-D"),
            ("-U", "-U"),
            ("-isystem", "-isystem"),
            ("-include", "-include"),
            ("--pre-include", "-include"),
        ];
        const LONG: [(&str, &str); 4] = [
            ("--include-path", "-I"),
            ("--define-macro", "-D"),
            ("--undefine-macro", "-U"),
            ("--system-include", "-isystem"),
        ];
        // The longer names come first: -isystem begins with -I for nobody, -include with -i.
        let found = LONG
            .iter()
            .chain(&JOINED)
            .find(|(name, _)| word.starts_with(name));
        if let Some((name, meaning)) = found {
            let value = self.value(word, name)?;
            let values: Vec<&str> = if *meaning == "-I" {
                value.split(',').collect()
            } else {
                vec![&value]
            };
            for value in values {
                self.options
                    .common
                    .extend([(*meaning).into(), value.into()]);
            }
            return Ok(true);
        }
        for name in ["-Xcompiler", "--compiler-options"] {
            if word.starts_with(name) {
                let value = self.value(word, name)?;
                for piece in value.split_whitespace() {
                    // From there on commas are the linker's, and none between options.
                    let (before, linker) = match piece.find("-Wl,") {
                        Some(at) => piece.split_at(at),
                        None => (piece, ""),
                    };
                    let words = before.split(',').filter(|word| !word.is_empty());
                    self.options.host.extend(words.map(OsString::from));
                    let linker = Some(linker).filter(|word| !word.is_empty());
                    self.options.link.extend(linker.map(OsString::from));
                }
                return Ok(true);
            }
        }
        if let Some(option) = ListOption::of(word) {
            let value = match option.has_value() {
                true => self.value(word, word)?,
                false => String::new(),
            };
            self.options.dependencies.take(option, value);
        } else if word.starts_with("-odir") || word.starts_with("--output-directory") {
            let name = if word.starts_with("--") {
                "--output-directory"
            } else {
                "-odir"
            };
            self.options.folder = Some(self.value(word, name)?.into());
        } else if word == "-Werror" || word.starts_with("-Werror=") || word == "--Werror" {
            let next = self.words.get(self.at).map(|next| next.to_string_lossy());
            let errors = WarningsAsErrors::of(word, next.as_deref());
            self.at += usize::from(errors.takes_next);
            self.options.common.extend(errors.words);
        } else if word.starts_with("-W") && !word.starts_with("-Wl,") {
            // Warnings are clang's: those that it does not know it ignores.
            self.options
                .common
                .extend([word.into(), "-Wno-unknown-warning-option".into()]);
        } else if word.starts_with("-f") && word.len() > 2 || word == "-pthread" {
            self.options.host.push(word.into());
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    fn for_linker(&mut self, word: &str) -> Result<bool, Failure> {
        for name in ["-Xlinker", "--linker-options", "-linker-options"] {
            if word.starts_with(name) {
                let value = self.value(word, name)?;
                for piece in value.split(',') {
                    self.options.link.extend(["-Xlinker".into(), piece.into()]);
                }
                return Ok(true);
            }
        }
        if word.starts_with("-Wl,") {
            self.options.link.push(word.into());
        } else if word.starts_with("-L") || word.starts_with("--library-path") {
            let name = if word.starts_with("-L") {
                "-L"
            } else {
                "--library-path"
            };
            let value = self.value(word, name)?;
            self.options.link.push(format!("-L{value}").into());
        } else if word.starts_with("-l") || word.starts_with("--library") {
            let name = if word.starts_with("-l") {
                "-l"
            } else {
                "--library"
            };
            match self.value(word, name)?.as_str() {
                // The runtime is always linked, in our form.
                "cudart" | "cudart_static" | "cudadevrt" => {}
                "cuda" => self.options.driver = true,
                value => self.options.link.push(format!("-l{value}").into()),
            }
        } else {
            return Ok(false);
        }
        Ok(true)
    }
}

fn kind_of(path: &Path) -> Option<Kind> {
    let name = path.file_name()?.to_str()?;
    if name.contains(".so.") {
        return Some(Kind::Linked);
    }
    match path.extension()?.to_str()? {
        "cu" => Some(Kind::Cuda),
        "cpp" | "cc" | "cxx" | "c++" | "C" => Some(Kind::Cpp),
        "c" => Some(Kind::C),
        "o" | "a" | "so" | "obj" => Some(Kind::Linked),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, Failure> {
        let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        Options::parse(&words)
    }

    #[test]
    fn a_usual_line_of_nvcc_is_understood() {
        let options = parse(
            "-arch=sm_90 -gencode arch=compute_80,code=sm_80 -O3 -std=c++14 -rdc=true -Iinclude -I more -DN=3 \
             -Xcompiler -Wall,-fPIC -lineinfo --expt-relaxed-constexpr a.cu b.o -lcuda -lcudart -lm -L /x -o prog",
        )
        .unwrap();
        assert!(options.relocatable && options.driver && options.goal == Goal::Program);
        assert_eq!(
            (options.level.as_str(), options.standard.as_str()),
            ("3", "c++14")
        );
        assert_eq!(options.inputs.len(), 2);
        assert_eq!(options.common, ["-I", "include", "-I", "more", "-D", "N=3"]);
        assert_eq!(options.host, ["-Wall", "-fPIC"]);
        assert_eq!(options.link, ["-lm", "-L/x"]);
        assert_eq!(options.output.as_deref(), Some(Path::new("prog")));
    }

    #[test]
    fn objects_without_a_name_lie_in_the_named_folder() {
        let options = parse("-MD -c d/a.cu -odir out").unwrap();
        let input = &options.inputs[0];
        let object = options.object_of(input).unwrap();
        assert_eq!(object, Path::new("out/a.o"));
        let words = options.dependency_words(input, &object);
        assert!(words.contains(&"out/a.d".into()), "{words:?}");
        // A program of several sources has a list of each.
        let options = parse("-MD a.cu d/b.cu -o prog").unwrap();
        for (input, list) in options.inputs.iter().zip(["a.d", "b.d"]) {
            let words = options.dependency_words(input, Path::new("/tmp/0.o"));
            assert!(words.contains(&list.into()), "{words:?}");
        }
    }

    #[test]
    fn options_of_the_host_compiler_and_of_the_linker_are_kept_apart() {
        let options =
            parse("-Xcompiler -fPIC,-Wall -Xcompiler -Wl,-rpath,/x -Xcompiler=-O3 -Werror all-warnings a.cu").unwrap();
        assert_eq!(options.host, ["-fPIC", "-Wall", "-O3"]);
        assert_eq!(options.link, ["-Wl,-rpath,/x"]);
        assert_eq!(options.common, ["-Werror"]);
        assert_eq!(options.inputs.len(), 1);
        let options = parse("-Werror cross-execution-space-call a.cu -Werror").unwrap();
        assert_eq!(options.common, ["-Werror"]);
        let words = ["-Xcompiler", "-fPIC,-Wl,-z,now -fopenmp,-Wall", "a.cu"];
        let options = Options::parse(&words.map(OsString::from)).unwrap();
        assert_eq!(options.host, ["-fPIC", "-fopenmp", "-Wall"]);
        assert_eq!(options.link, ["-Wl,-z,now"]);
    }

    #[test]
    fn options_that_are_not_known_and_code_for_gpus_are_refused_by_name() {
        for (line, name) in [
            ("a.cu --frobnicate", "--frobnicate"),
            ("-ptx a.cu", "-ptx"),
            ("a.xyz", "a.xyz"),
        ] {
            let words = parse(line).unwrap_err().to_string();
            assert!(words.contains(name), "{words}");
        }
    }
}
