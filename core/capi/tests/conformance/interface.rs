//! The interface as compilers and linkers see it: names, types, headers; and that programs call every function.

use std::collections::BTreeSet;
use std::process::Command;

use super::{here, prefix, run, tool};

/// The API's names, and those for tools.
pub fn names() -> BTreeSet<String> {
    let all = include_str!("../../table/data/names.txt").lines();
    let all = all.chain(include_str!("../../table/data/others.txt").lines());
    let all = all.chain([
        "shmemx_cuda_check",
        "shmemx_cuda_device",
        "shmemx_cuda_init",
        "shmemx_cuda_malloc",
        "shmemx_cuda_ptr",
        "shmemx_cuda_reserve_teams",
        "shmemx_cuda_resume",
        "shmemx_cuda_team",
        "shmemx_wtime",
    ]);
    let twins = all.clone().filter(|name| name.starts_with("shmem"));
    let twins = twins.filter(|name| *name != "shmemalign");
    let twins = twins.map(|name| format!("p{name}"));
    all.map(str::to_owned).chain(twins).collect()
}

/// The names that `nm` lists with one of these letters.
pub fn symbols(nm: &mut Command, letters: &str) -> BTreeSet<String> {
    let listed = run(nm);
    let lines = listed
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>());
    let chosen = lines.filter_map(|words| match words.as_slice() {
        [.., letter, name] if letters.contains(letter) => Some((*name).to_owned()),
        _ => None,
    });
    chosen.collect()
}

#[test]
fn each_function_and_its_twin_have_the_type_of_the_specification() {
    let object = prefix().join("prototypes.o");
    let source = here().join("tests/c/prototypes.c");
    run(tool("oshcc")
        .args(["-std=c99", "-Wall", "-Werror", "-c", "-o"])
        .arg(&object)
        .arg(source));
    let had = symbols(Command::new("nm").arg("-u").arg(&object), "U");
    let differ: Vec<_> = had.symmetric_difference(&names()).cloned().collect();
    assert!(differ.is_empty(), "{differ:?}");
}

#[test]
fn both_libraries_have_all_names_and_no_others() {
    let lib = prefix().join("lib");
    let mut shared = symbols(
        Command::new("nm")
            .arg("-D")
            .arg("--defined-only")
            .arg(lib.join("liboxshmem.so")),
        "TWD",
    );
    let archive = symbols(
        Command::new("nm")
            .arg("--defined-only")
            .arg("-g")
            .arg(lib.join("liboxshmem.a")),
        "TWDBRV",
    );
    // The linker's own, of sections.
    shared.retain(|name| !name.starts_with("__st"));
    let mut all = names();
    // The table that inlined calls read, and the calls of images with kernels.
    let own = ["inline", "register_image", "unregister_image"];
    all.extend(own.map(|name| format!("oxshmem_{name}")));
    for found in [shared, archive] {
        let differ: Vec<_> = found.symmetric_difference(&all).cloned().collect();
        assert!(differ.is_empty(), "{differ:?}");
    }
}

#[test]
fn the_headers_are_every_standards_without_a_warning_by_each_compiler_that_there_is() {
    let source = here().join("tests/c/headers.c");
    for compiler in ["cc", "clang"] {
        if Command::new(compiler).arg("--version").output().is_err() {
            eprintln!("SKIPPED: there is no {compiler}");
            continue;
        }
        for (language, standard) in [
            ("c", "-std=c89"),
            ("c", "-std=c99"),
            ("c", "-std=c11"),
            ("c", "-std=c2x"),
            ("c++", "-std=c++98"),
            ("c++", "-std=c++11"),
            ("c++", "-std=c++20"),
        ] {
            for inlined in ["-UOXSHMEM_INLINE", "-DOXSHMEM_INLINE"] {
                let mut check = tool("oshcc");
                check.args(["-x", language, standard, inlined, "-fsyntax-only"]);
                check.args(["-Wall", "-Wextra", "-Werror", "-pedantic-errors"]);
                run(check.env("SHMEM_CC", compiler).arg(&source));
            }
        }
    }
}

/// The package asks for calls by macros, and would define those itself that no macro names. No other program sees them.
#[test]
fn extensions_of_python_see_what_shmem4py_asks_for() {
    for (python, declared) in [("-DPy_PYTHON_H", true), ("-UPy_PYTHON_H", false)] {
        let mut macros = tool("oshcc");
        macros.args([python, "-x", "c", "-E", "-dM"]);
        let macros = run(macros.arg(here().join("tests/c/headers.c")));
        for call in ["shmem_pcontrol", "shmem_team_t", "shmem_wait_test_many"] {
            let defined = macros.contains(&format!("#define PySHMEM_HAVE_{call} 1\n"));
            assert_eq!(defined, declared, "{python}: {call}");
        }
    }
}

/// That the programs of `main` call everything.
#[test]
fn every_function_is_called_by_some_program() {
    let called: BTreeSet<String> = [
        "rma",
        "atomics",
        "signals",
        "waits",
        "collectives",
        "active_sets",
        "memory",
        "teams",
        "order",
        "bad",
        "old",
    ]
    .into_iter()
    .flat_map(|name| {
        let object = prefix().join(format!("coverage-{name}.o"));
        let source = here().join("tests/c").join(format!("{name}.c"));
        run(tool("oshcc")
            .args(["-std=gnu99", "-c", "-o"])
            .arg(&object)
            .arg(source));
        symbols(Command::new("nm").arg("-u").arg(&object), "U")
    })
    .collect();
    // CUDA programs have a compiler of their own.
    let programs = std::fs::read_dir(here().join("tests/cuda")).unwrap();
    let programs = programs.map(|entry| entry.unwrap().path());
    let programs = programs.filter(|path| path.extension().is_some_and(|end| end == "cu"));
    let cuda: String = programs
        .map(|path| std::fs::read_to_string(path).unwrap())
        .collect();
    let by_cuda =
        |name: &str| name.starts_with("shmemx_cuda_") && cuda.contains(&format!("{name}("));
    let all = names();
    let uncalled: Vec<_> = all
        .difference(&called)
        .filter(|name| !name.starts_with("pshmem") && !by_cuda(name))
        .collect();
    assert!(uncalled.is_empty(), "{uncalled:?}");
}
