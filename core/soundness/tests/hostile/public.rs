//! The public functions of oxshmem, found in its sources.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// A function: `Type::name` or `module::name`, and its declaration.
#[derive(Debug)]
pub struct Function {
    pub name: String,
    pub declared: String,
    /// Whether it takes or returns a type that only a machine with a GPU has.
    pub needs_gpu: bool,
}

impl Function {
    pub fn is_unsafe(&self) -> bool {
        self.declared.contains("unsafe fn ")
    }
}

pub fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../oxshmem/src")
}

/// All functions, in the order of the sources.
pub fn functions() -> Vec<Function> {
    let mut files = Vec::new();
    find(&sources(), &mut files);
    assert!(files.len() > 50, "the sources of oxshmem");
    files.sort();
    let own = files.iter().flat_map(|file| of_file(file));
    own.chain(handed_on()).collect()
}

/// The functions of types that oxshmem hands on from the crates below it.
fn handed_on() -> Vec<Function> {
    let root = fs::read_to_string(sources().join("lib.rs")).unwrap();
    let uses = root
        .split("pub use oxshmem_")
        .skip(1)
        .filter(|rest| rest.starts_with("engine::") || rest.starts_with("collectives::"))
        .map(|rest| rest.split_once(';').unwrap().0);
    let is_type = |word: &&str| word.starts_with(char::is_uppercase);
    let types: BTreeSet<&str> = uses
        .flat_map(|words| words.split(|c: char| !c.is_alphanumeric()).filter(is_type))
        .collect();
    assert!(types.contains("LongDouble") && types.contains("Route"));
    let mut files = Vec::new();
    for below in ["engine", "collectives"] {
        find(&sources().join("../..").join(below).join("src"), &mut files);
    }
    files.sort();
    let all = files.iter().flat_map(|file| of_file(file));
    all.filter(|function| {
        let owner = function.name.split("::").next();
        owner.is_some_and(|owner| types.contains(owner))
    })
    .collect()
}

fn find(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.extension() {
            _ if path.is_dir() => find(&path, files),
            Some(kind) if kind == "rs" => files.push(path),
            _ => {}
        }
    }
}

/// Macros that define functions, with the types that they are for. The functions' names follow the
/// macro's.
const MACROS: [(&str, &[&str]); 3] = [
    ("atomics.rs", &["Context"]),
    ("wait_until.rs", &["Context", "SharedContext"]),
    ("nbi.rs", &["Scope"]),
];
/// The number of such definitions.
const DEFINITIONS: usize = 7;

fn of_file(file: &Path) -> Vec<Function> {
    let text = fs::read_to_string(file).unwrap();
    // Unit tests are not part of the public interface.
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    // The files of `bindings` define its functions.
    let of_bindings = file
        .parent()
        .is_some_and(|folder| folder.ends_with("bindings"));
    let module = match of_bindings {
        true => "bindings",
        false => file.file_stem().unwrap().to_str().unwrap(),
    };
    let needs_gpu = [
        "/stream",
        "/register/gpu",
        "/src/device",
        "/bindings/gpu",
        "/bindings/images",
    ]
    .iter()
    .any(|part| file.to_str().unwrap().contains(part));
    let mut owner = module.to_owned();
    let mut found = Vec::new();
    let lines: Vec<&str> = text.lines().collect();
    for (i, line) in lines.iter().enumerate() {
        if line.starts_with("impl") {
            owner = implemented(line).unwrap_or(module).to_owned();
        } else if line.starts_with('}') {
            owner = module.to_owned();
        }
        let Some(name) = defined(line.trim_start()) else {
            continue;
        };
        let rest = lines[i..].iter().take_while(|line| !line.ends_with('{'));
        let declared: Vec<&str> = rest.chain([line]).copied().collect();
        let declared = declared.join(" ");
        let name = name.to_owned();
        if name.starts_with('$') {
            found.extend(of_macro(module, text, &name));
            continue;
        }
        // A macro that is called for several types.
        for owner in owners(module, &owner, line) {
            found.push(Function {
                name: format!("{owner}::{name}"),
                declared: declared.clone(),
                needs_gpu,
            });
        }
    }
    found
}

/// The type of an `impl` line; `None` if it implements a trait.
fn implemented(line: &str) -> Option<&str> {
    if line.contains(" for ") {
        return None;
    }
    let words = line.strip_prefix("impl")?;
    let of = match words.strip_prefix('<') {
        Some(_) => words.split_once("> ")?.1,
        None => words.trim_start(),
    };
    of.split(|c: char| !c.is_alphanumeric()).next()
}

/// The name of a public function that a line defines, if it does.
fn defined(line: &str) -> Option<&str> {
    let mut rest = line.strip_prefix("pub ")?;
    for word in ["const ", "unsafe "] {
        rest = rest.strip_prefix(word).unwrap_or(rest);
    }
    let name = rest.strip_prefix("fn ")?;
    name.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '$')
        .next()
}

/// The owners of a function. A line indented more than a method stands in a macro, whose callers
/// are the owners.
fn owners<'a>(module: &'a str, owner: &'a str, line: &str) -> Vec<&'a str> {
    match line.starts_with("        ") {
        true if module == "wait_until" => vec!["Context", "SharedContext"],
        _ => vec![owner],
    }
}

/// The functions that a macro defines by this variable. Their names stand at the macro's calls.
fn of_macro(module: &str, text: &str, variable: &str) -> Vec<Function> {
    let names: Vec<String> = match module {
        // `"alias" name, "alias" name_nbi: …`, or `"alias" name: …`.
        "atomics" | "nbi" => {
            let atomics = fs::read_to_string(sources().join("atomics.rs")).unwrap();
            let named = atomics.split("\"shmem_atomic_").skip(1);
            let names = named.filter_map(|rest| {
                rest.split_once("\" ")?
                    .1
                    .split([',', ':'])
                    .next()
                    .map(str::to_owned)
            });
            names
                .filter(|name| name.ends_with("_nbi") == (module == "nbi"))
                .collect()
        }
        "wait_until" => {
            let place = ["$wait", "$wait_vector", "$test", "$test_vector"];
            let place = place.iter().position(|name| *name == variable).unwrap();
            let named = text
                .lines()
                .filter(|line| line.trim_start().starts_with("wait_until_"));
            named
                .filter_map(|line| line.split_whitespace().nth(place).map(str::to_owned))
                .collect()
        }
        other => panic!("{other}.rs defines {variable} in a macro that this does not know"),
    };
    assert!(names.len() >= 3, "{module}: {names:?}");
    let (_, types) = MACROS
        .iter()
        .find(|(file, _)| file.strip_suffix(".rs") == Some(module))
        .unwrap();
    let all = types
        .iter()
        .flat_map(|of| names.iter().map(move |name| (of, name)));
    all.map(|(of, name)| Function {
        name: format!("{of}::{name}"),
        declared: String::new(),
        needs_gpu: false,
    })
    .collect()
}

/// All names, each once.
pub fn names() -> BTreeSet<String> {
    functions()
        .into_iter()
        .map(|function| function.name)
        .collect()
}

#[test]
fn the_sources_define_as_many_functions_by_macros_as_are_read() {
    let mut files = Vec::new();
    find(&sources(), &mut files);
    let texts = files.iter().map(|file| fs::read_to_string(file).unwrap());
    let defined: usize = texts.map(|text| text.matches("pub fn $").count()).sum();
    assert_eq!(
        defined, DEFINITIONS,
        "a macro that defines public functions came or went"
    );
}
