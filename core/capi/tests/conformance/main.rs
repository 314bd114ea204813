//! Programs in C and C++, compiled and run as a user would: with `oshcc` and `oshrun` of an installation.
//!
//! The specification's rules, and the programs of `c/` that show them:
//!
//! - Arguments: sources anywhere, several pieces of memory in one call, nothing wherever it is: `rules.c`, and zero
//!   lengths with null in `rma.c`, `signals.c`, `collectives.c`, `active_sets.c`; variables of the program: `statics.c`, `wrapped.c`;
//!   numbers of PEs by the context's team: `teams.c`; at odd places: `unaligned.c`. A target that is in no call: `rules.c`.
//! - Order: fence between put and flag `order.c`, `kernels.c`; quiet, and that all see what it completed, `rules.c`; of
//!   contexts `rules.c`, `teams.c`; of some PEs alone `order.c`; strides and blocks `rma.c`; values that are fetched
//!   without waiting `atomics.c`.
//! - Atomics: each of each type, alone against others, old values: `atomics.c`; on variables: `statics.c`.
//! - Signals: data before their signal, none with a signal, set and add: `signals.c`, `grids.c`.
//! - Waits: no words, masks, fairness, signs, words that are put: `waits.c`; sets while others still come: `grids.c`.
//! - Collectives: layout, in place, roots, sizes that differ, one after another, teams in any order: `collectives.c`,
//!   `rules.c`; active sets, their arrays left as they were, a root's own destination: `active_sets.c`, `sgi.c`; of PEs that are
//!   none of the members: `outsiders.c`.
//! - The heap: what gives null, what changes nothing, `memory.c`; which calls wait for all, `rules.c`.
//! - Teams: splits that are right and wrong, handles that are none or were destroyed, configurations: `teams.c`; by squares:
//!   `grids.c`.
//! - Contexts and sessions: `teams.c`; one for each thread, and threads in turns: `objects.cpp`; left to the library: `rules.c`.
//! - Begin and end: nested `order.c`, again `again.c`, by `start_pes` and without finalize `old.c`, by `global_exit`
//!   `bad.c`, while threads are in calls `ends.c`; environment: below.
//! - Addresses: `memory.c`, `statics.c`. Locks: `order.c`, with whose turn it is, `rules.c`, `objects.cpp`. A tool's functions: `profile.c`,
//!   `tool.c`.
//! - What makes no sense: `bad.c`, and every argument of every kind of call `wrong.c`; of one PE among others, and PEs that
//!   differ: `differ.c`. Types: `prototypes.c`; all of their
//!   values: `precise.c`. Constants: `constants.c`.
//! - With `-DOXSHMEM_INLINE`: `rma.c`, `atomics.c`, the macros and overloads, `kernels.c` and `bad.c` again; which calls stay calls: `inline.c`.
//!
//! `ci/test-verbs` runs them on several hosts.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod interface;
mod pages;
mod wrappers;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use interface::symbols;

/// How long a program may take, in `oshrun`'s words: so much longer than it does that only one that hangs is ended.
const PATIENCE: &str = "240s";

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Runs a command; gives its output, or panics if it fails.
fn run(command: &mut Command) -> String {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}\n{}", both(&output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn both(output: &Output) -> String {
    let [out, err] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    format!("{}\n{out}{err}", output.status)
}

/// The library and the launcher as built, installed once.
fn prefix() -> &'static Path {
    static PREFIX: OnceLock<PathBuf> = OnceLock::new();
    PREFIX.get_or_init(|| {
        // Cargo builds neither a test's own shared library nor another package's program.
        let mut build = Command::new(env!("CARGO"));
        build.args([
            "build",
            "-q",
            "-p",
            "oxshmem-capi",
            "-p",
            "oxshmem-cli",
            "--no-default-features",
        ]);
        let features = [
            (cfg!(feature = "cuda"), "oxshmem-capi/cuda,oxshmem-cli/cuda"),
            (
                cfg!(feature = "hwloc"),
                "oxshmem-capi/hwloc,oxshmem-cli/hwloc",
            ),
            (
                cfg!(feature = "verbs"),
                "oxshmem-capi/verbs,oxshmem-cli/verbs",
            ),
        ];
        for (_, names) in features.into_iter().filter(|(on, _)| *on) {
            build.args(["--features", names]);
        }
        let profile = match cfg!(debug_assertions) {
            true => "debug",
            false => {
                build.arg("--release");
                "release"
            }
        };
        // With the rest of the workspace, where `ci/test` runs this.
        if std::env::var_os("OXSHMEM_TEST_BUILT").is_none() {
            run(&mut build);
        }
        let tmp = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let prefix = tmp.join("capi");
        let built = tmp.parent().unwrap().join(profile);
        run(Command::new(here().join("install")).args([
            Path::new("--keep-symbols"),
            &built,
            &prefix,
        ]));
        prefix
    })
}

fn tool(name: &str) -> Command {
    Command::new(prefix().join("bin").join(name))
}

/// A program of `tests/c`, compiled once for each name.
fn compile(source: &str, name: &str, flags: &[&str]) -> PathBuf {
    let program = prefix().join(format!("test-{name}"));
    let compiler = match source.ends_with("pp") {
        true => "oshc++",
        false => "oshcc",
    };
    let source = here().join("tests/c").join(source);
    let mut compile = tool(compiler);
    compile
        .args(["-Wall", "-Werror", "-g", "-O1", "-o"])
        .arg(&program)
        .arg(source)
        .args(flags);
    run(&mut compile);
    program
}

fn job(pes: usize, program: &Path) -> Command {
    let mut job = tool("oshrun");
    job.args(["-np", &pes.to_string(), "--timeout", PATIENCE])
        .arg(program);
    // So that a small machine holds all tests' heaps at once.
    job.env("SHMEM_SYMMETRIC_SIZE", "64M");
    job
}

/// Whether this is a run of `ci/test`, which leaves to `ci/soak` what others show, too.
fn is_quick() -> bool {
    std::env::var_os("OXSHMEM_TEST_QUICK").is_some()
}

/// The numbers of PEs of jobs of a program. `ci/test` leaves out those that lie between others, and eight PEs
/// but for the programs whose messages between PEs depend on the number.
fn each(source: &str) -> &'static [usize] {
    match source {
        _ if !is_quick() => &[1, 2, 3, 4, 8],
        "collectives.c" | "rules.c" => &[1, 3, 8],
        _ => &[1, 3],
    }
}

/// Runs a program with each number of PEs.
fn passes(source: &str, flags: &[&str]) {
    let name = format!("{source}{}", flags.concat());
    let name = name.replace(['.', '/', ',', '='], "-");
    let program = compile(source, &name, flags);
    for &pes in each(source) {
        run(&mut job(pes, &program));
    }
    // By lanes, in checked mode and by such as put everything off that they may.
    run(job(2, &program).env("OXSHMEM_CHECK", "1"));
    run(job(3, &program).env("OXSHMEM_TRANSPORT", "weak(loopback)"));
}

macro_rules! programs {
    ($($name:ident: $source:literal, [$($flag:literal),*];)*) => {$(
        #[test]
        fn $name() {
            passes($source, &[$($flag),*]);
        }
    )*};
}
programs! {
    put_and_get_of_every_type: "rma.c", ["-std=c99"];
    atomics_of_every_type: "atomics.c", ["-std=c99"];
    signals_of_every_type: "signals.c", ["-std=c99"];
    waits_of_every_type: "waits.c", ["-std=c99"];
    collective_calls_of_every_type: "collectives.c", ["-std=c99"];
    collective_calls_of_active_sets: "active_sets.c", ["-std=c99"];
    memory: "memory.c", ["-std=c99"];
    rules_that_no_other_program_shows: "rules.c", ["-std=c99"];
    teams_and_contexts: "teams.c", ["-std=c99"];
    order_locks_and_nested_initialization: "order.c", ["-std=c99"];
    values_that_need_all_of_their_type: "precise.c", ["-std=gnu99"];
    constants: "constants.c", ["-std=c99"];
    macros_of_c11: "generics.c", ["-std=c11"];
    overloads_of_cpp: "generics.cpp", ["-std=c++11"];
    put_and_get_inlined_of_every_type: "rma.c", ["-std=c89", "-O2", "-DOXSHMEM_INLINE"];
    atomics_inlined_of_every_type: "atomics.c", ["-std=c89", "-O2", "-DOXSHMEM_INLINE"];
    threads_in_calls_at_once: "threads.c", ["-std=gnu99", "-pthread"];
    threads_of_cpp: "threads.cpp", ["-std=c++11", "-pthread"];
    a_function_of_the_programs_own: "profile.c", [];
    finalized_and_initialized_again: "again.c", [];
    variables_of_the_program: "statics.c", [];
    variables_of_a_program_that_is_bound_at_once: "statics.c", ["-pie", "-fPIE", "-Wl,-z,now"];
}

#[test]
fn inlined_are_words_alone_and_only_where_the_library_would_do_an_instruction_or_two() {
    let program = |name: &str, flags: &[&str]| {
        let flags = [&["-std=c99", "-O2", "-DOXSHMEM_INLINE"], flags].concat();
        compile("inline.c", name, &flags)
    };
    let usual = program("inline", &[]);
    // It has a copy of the library's pointer.
    let fixed = program("inline-fixed", &["-no-pie"]);
    let other = program("inline-other", &["-DOXSHMEM_DIRECT_VERSION=1"]);
    let calls = |program: &Path, calls: &str, level: &str| {
        let mut job = job(2, program);
        job.args([calls, level]);
        job
    };
    for level in ["0", "1", "2"] {
        run(&mut calls(&usual, "0", level));
    }
    run(&mut calls(&fixed, "0", "0"));
    run(&mut calls(&other, "6", "0"));
    run(&mut calls(&usual, "6", "3"));
    run(calls(&usual, "6", "0").env("OXSHMEM_CHECK", "1"));
    run(calls(&usual, "6", "0").env("OXSHMEM_TRANSPORT", "weak(loopback)"));
}

#[test]
fn puts_and_gets_that_are_aligned_for_no_type_copy_bytes() {
    for flags in [&["-std=c99"][..], &["-std=c99", "-O2", "-DOXSHMEM_INLINE"]] {
        let program = compile(
            "unaligned.c",
            &format!("unaligned{}", flags.concat()),
            flags,
        );
        for &pes in each("unaligned.c") {
            run(&mut job(pes, &program));
        }
        // Where threads share a context, and by lanes.
        run(job(2, &program).arg("3"));
        for level in ["0", "3"] {
            run(job(3, &program)
                .env("OXSHMEM_TRANSPORT", "weak(loopback)")
                .arg(level));
        }
    }
}

#[test]
fn programs_by_macros_overloads_and_flags_run_inlined() {
    for (source, standard) in [
        ("generics.c", "-std=c11"),
        ("generics.cpp", "-std=c++11"),
        ("kernels.c", "-std=c99"),
    ] {
        let flags = [standard, "-O2", "-Wextra", "-pedantic", "-DOXSHMEM_INLINE"];
        let program = compile(source, &format!("inlined-{source}"), &flags);
        run(&mut job(3, &program));
        let undefined = symbols(Command::new("nm").arg("-u").arg(&program), "Uw");
        let called = |name: &str| undefined.contains(name);
        assert!(
            called("pshmem_double_p") && !called("shmem_double_p"),
            "{source}"
        );
    }
}

#[test]
fn variables_of_a_program_at_a_fixed_place_that_may_be_executed() {
    let flags = ["-no-pie", "-Wl,-z,norelro", "-DRWX"];
    let program = compile("statics.c", "statics-fixed", &flags);
    run(&mut job(2, &program));
    // Where the heap of `malloc` begins right behind them.
    let mut fixed = Command::new("setarch");
    fixed.args(["-R", "true"]);
    match fixed.status() {
        Ok(status) if status.success() => {
            run(job(2, Path::new("setarch")).arg("-R").arg(&program));
        }
        _ => eprintln!("SKIPPED: addresses cannot be made the same in each run here"),
    }
}

/// AddressSanitizer looks at what C functions read of the program's data, whoever calls them, and at what is not freed.
#[test]
fn a_program_that_a_sanitizer_watches() {
    let flags = ["-std=gnu99", "-fsanitize=address,undefined"];
    let program = compile("sgi.c", "sgi-watched", &flags);
    run(&mut job(2, &program));
}

#[test]
fn a_program_that_counts_its_lines_writes_the_counts() {
    let program = compile("statics.c", "statics-counted", &["--coverage"]);
    let counts = prefix().join("test-statics-counted-statics.gcda");
    let _ = std::fs::remove_file(&counts);
    run(&mut job(2, &program));
    assert!(std::fs::metadata(counts).unwrap().len() > 0);
}

#[test]
fn the_heap_alone_is_symmetric_where_variables_cannot_be_and_a_message_says_so() {
    let program = compile("statics.c", "statics-alone", &[]);
    let changed = "the program has mapped or protected";
    for (how, message) in [
        ("threads", "other threads run already"),
        ("protected", changed),
        ("mapped", changed),
    ] {
        let output = job(2, &program).arg(how).output().unwrap();
        let told = both(&output);
        assert!(output.status.success(), "{how}: {told}");
        // By one PE.
        assert_eq!(told.matches(message).count(), 1, "{how}: {told}");
    }

    let loads = prefix().join("test-loads");
    let source = here().join("tests/c/loads.c");
    run(Command::new("cc")
        .arg(source)
        .arg("-o")
        .arg(&loads)
        .arg("-ldl"));
    let library = prefix().join("lib/liboxshmem.so");
    let output = job(2, &loads).arg(library).output().unwrap();
    let told = both(&output);
    assert!(output.status.success(), "{told}");
    // It has no variables that it could have meant.
    assert_eq!(told.trim(), output.status.to_string(), "{told}");
}

/// Be it that the program does not name the library, or that its linker drops the name.
#[test]
fn variables_of_a_program_are_symmetric_where_another_library_brings_this_one() {
    let source = here().join("tests/c/wrapped.c");
    let library = prefix().join("lib/libwrapper.so");
    run(tool("oshcc")
        .args(["-DLIBRARY", "-shared", "-fPIC", "-o"])
        .arg(&library)
        .arg(&source));
    let program = prefix().join("test-wrapped");
    for compiler in [Command::new("cc"), tool("oshcc")] {
        let mut link = compiler;
        link.args(["-Wl,--as-needed", "-o"])
            .arg(&program)
            .arg(&source)
            .arg(&library);
        run(&mut link);
        let output = job(2, &program).output().unwrap();
        let told = both(&output);
        assert!(output.status.success(), "{told}");
        assert_eq!(told.trim(), output.status.to_string(), "{told}");
    }
}

#[test]
fn a_limit_of_files_is_told_and_kills_nobody() {
    let program = compile("statics.c", "statics-limited", &[]);
    let mut limited = job(1, Path::new("sh"));
    limited
        .arg("-c")
        .arg("ulimit -f 1000; exec \"$0\"")
        .arg(&program);
    let output = limited.output().unwrap();
    let told = both(&output);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("ulimit -f"), "{told}");
}

#[test]
fn the_program_has_the_whole_heap_that_it_asked_for() {
    let program = compile("memory.c", "memory-whole", &[]);
    for size in [1 << 19, 1 << 20, 3_000_000] {
        run(job(2, &program)
            .env("SHMEM_SYMMETRIC_SIZE", size.to_string())
            .arg(size.to_string()));
    }
}

#[test]
fn active_sets_need_no_room_for_each_and_none_of_teams() {
    let program = compile("active_sets.c", "active-sets-many", &[]);
    for teams in ["1", "4"] {
        let mut job = job(4, &program);
        run(job.env("OXSHMEM_TEAMS", teams).arg("full"));
    }
    let threads = compile(
        "threads.c",
        "active-sets-threads",
        &["-std=gnu99", "-pthread"],
    );
    run(job(1, &threads).env("OXSHMEM_TEAMS", "1").arg("full"));
}

#[test]
fn who_is_none_of_an_active_set_does_nothing_in_its_calls_and_says_so_once() {
    let program = compile("outsiders.c", "outsiders", &["-std=c99"]);
    for pes in 2..=4 {
        let output = job(pes, &program).output().unwrap();
        let told = both(&output);
        assert!(output.status.success(), "{told}");
        for pe in 0..pes {
            // PE 1 is a member of each.
            let line = format!("PE {pe}: shmem_broadcast32: this PE is none of the members");
            let times = usize::from(pe != 1);
            assert_eq!(told.matches(&line).count(), times, "{told}");
        }
        assert_eq!(told.matches("oxshmem: ").count(), pes - 1, "{told}");
    }
    run(job(3, &program).env("OXSHMEM_TRANSPORT", "weak(loopback)"));
}

#[test]
fn a_pe_that_is_in_many_teams_has_a_handle_for_one_more() {
    let program = compile("teams.c", "teams-many", &[]);
    run(job(2, &program).env("OXSHMEM_TEAMS", "4200").arg("4150"));
}

/// Runs a program that is written as users write them, with so many PEs as they like.
fn runs(source: &str, standard: &str, flags: &[&str]) {
    let strict = [standard, "-Wextra", "-pedantic"];
    let flags: Vec<_> = strict.iter().chain(flags).copied().collect();
    let program = compile(
        source,
        &format!("{source}{standard}").replace(['.', '='], "-"),
        &flags,
    );
    let all: &[usize] = if is_quick() { &[4] } else { &[2, 4, 8] };
    for &pes in all {
        run(&mut job(pes, &program));
    }
}

#[test]
fn a_program_as_they_were_in_the_nineties() {
    runs("sgi.c", "-std=c89", &[]);
}

#[test]
fn kernels_that_openshmem_is_measured_with() {
    runs("kernels.c", "-std=c99", &["-O2"]);
}

#[test]
fn programs_on_grids_by_macros() {
    runs("grids.c", "-std=c11", &["-O2"]);
}

#[test]
fn classes_and_threads_of_cpp() {
    runs("objects.cpp", "-std=c++11", &["-O0", "-pthread"]);
    let program = compile("objects.cpp", "objects-levels", &["-std=c++11", "-pthread"]);
    for level in ["serialized", "funneled"] {
        run(job(3, &program).arg(level));
        let transports = ["weak(loopback)", "loopback"];
        let tried = if is_quick() {
            &transports[..1]
        } else {
            &transports
        };
        for &transport in tried {
            let mut levels = job(3, &program);
            run(levels.arg(level).env("OXSHMEM_TRANSPORT", transport));
        }
    }
    compile(
        "objects.cpp",
        "objects-20",
        &[
            "-std=c++20",
            "-Wold-style-cast",
            "-Wextra",
            "-pedantic",
            "-O2",
            "-pthread",
        ],
    );
}

/// The first Python that has numpy, if one has.
fn python() -> Option<&'static str> {
    ["python3", "/usr/bin/python3"].into_iter().find(|python| {
        let found = Command::new(python).args(["-c", "import numpy"]).output();
        found.is_ok_and(|found| found.status.success())
    })
}

#[test]
fn arrays_of_python_over_symmetric_memory() {
    let Some(python) = python() else {
        eprintln!("SKIPPED: there is no python3 with numpy (Debian: python3-numpy)");
        return;
    };
    let examples = here().join("../../examples/python");
    let run_python = |pes: &str, script: &Path| {
        let mut run_python = tool("oshrun");
        run_python.args(["-n", pes, "--timeout", PATIENCE, python]);
        run_python.arg(script).env("SHMEM_SYMMETRIC_SIZE", "64M");
        run_python.env("OXSHMEM_LIBRARY", prefix().join("lib/liboxshmem.so"));
        run_python.env("PYTHONPATH", &examples);
        run_python.env("PYTHONDONTWRITEBYTECODE", "1");
        run(&mut run_python)
    };
    for pes in ["1", "4"] {
        let told = run_python(pes, &examples.join("ring.py"));
        assert!(told.contains(&format!("{pes} PEs: right")), "{told}");
    }
    let told = run_python("2", &here().join("tests/refused.py"));
    assert!(told.contains("all refused"), "{told}");
}

#[test]
fn every_wrong_argument_and_every_call_out_of_its_time_ends_with_a_message() {
    let folder = prefix().join("wrong");
    std::fs::create_dir_all(&folder).unwrap();
    let has_cuda = cfg!(feature = "cuda");
    let calls = oxshmem_capi_table::wrong_calls(has_cuda);
    std::fs::write(folder.join("wrong.h"), calls).unwrap();
    let program = compile(
        "wrong.c",
        "wrong.c",
        &[
            "-std=gnu99",
            &format!("-I{}", folder.display()),
            if has_cuda { "-UNO_CUDA" } else { "-DNO_CUDA" },
        ],
    );
    run(Command::new(program).env("SHMEM_SYMMETRIC_SIZE", "1M"));
}

/// A program of `tests/c`, linked with the archive.
fn with_archive(name: &str, flags: &[&str]) -> PathBuf {
    let include = format!("-I{}", prefix().join("include").display());
    let program = prefix().join(format!("static-{name}{}", flags.concat()));
    let mut link = Command::new("cc");
    link.args(["-g", &include, "-o"])
        .arg(&program)
        .arg(here().join("tests/c").join(format!("{name}.c")))
        .arg(prefix().join("lib/liboxshmem.a"));
    link.args(["-lpthread", "-ldl", "-lm", "-lgcc_s", "-lrt"])
        .args(flags);
    run(&mut link);
    program
}

#[test]
fn a_program_linked_with_the_archive_runs_and_may_define_functions() {
    for name in ["rma", "profile", "statics"] {
        run(&mut job(2, &with_archive(name, &[])));
    }
    // Where the library's own variables lie amid those of the program.
    match Command::new("ld.gold").arg("--version").output() {
        Ok(_) => drop(run(&mut job(
            2,
            &with_archive("statics", &["-fuse-ld=gold"]),
        ))),
        Err(_) => eprintln!("SKIPPED: there is no ld.gold (Debian: binutils)"),
    }
}

/// Be it in the shared library or in the program itself.
#[test]
fn the_librarys_own_variables_are_not_symmetric() {
    for program in [compile("own.c", "own", &[]), with_archive("own", &[])] {
        run(&mut job(2, &program));
        let output = job(2, &program).arg("put").output().unwrap();
        let told = both(&output);
        assert_eq!(output.status.code(), Some(1), "{told}");
        assert!(told.contains("is no address of symmetric memory"), "{told}");
    }
    // All of them: what is left elsewhere is read-only, or a thread's.
    let sections = run(Command::new("objdump")
        .args(["-h", "-w"])
        .arg(prefix().join("lib/liboxshmem.a")));
    let left: Vec<_> = sections
        .lines()
        .filter_map(|line| {
            let words: Vec<_> = line.split_whitespace().collect();
            let [_, name, size, ..] = words.as_slice() else {
                return None;
            };
            let may_write = line.contains("ALLOC") && !line.contains("READONLY");
            let goes_elsewhere = [".ldata", ".data.rel.ro", ".tdata", ".tbss", ".init_array"];
            let is_left = may_write
                && u64::from_str_radix(size, 16) != Ok(0)
                && !goes_elsewhere.iter().any(|prefix| name.starts_with(prefix));
            is_left.then(|| (*name).to_owned())
        })
        .collect();
    assert!(left.is_empty(), "{left:?}");
    assert!(sections.contains(" .ldata "), "no section of its own");
}

#[test]
fn what_makes_no_sense_ends_the_job_with_a_message() {
    let program = compile("bad.c", "bad", &[]);
    let inlined = compile("bad.c", "bad-inlined", &["-O2", "-DOXSHMEM_INLINE"]);
    for (what, message) in [
        ("before", "shmem_long_p: oxshmem is not initialized"),
        ("my_pe_before", "shmem_my_pe: oxshmem is not initialized"),
        ("after", "shmem_quiet: oxshmem is not initialized"),
        ("p_after", "shmem_long_p: oxshmem is not initialized"),
        ("pe", "shmem_long_p: argument pe: there is no PE 2"),
        (
            "negative_pe",
            "shmem_long_g: argument pe: there is no PE -3",
        ),
        ("private", "shmem_long_put: argument dest: "),
        ("private_source", "shmem_long_get: argument source: "),
        ("null", "shmem_long_p: argument dest: this is null"),
        ("misaligned", "shmem_long_p: argument dest: "),
        ("misaligned_g", "shmem_long_g: argument source: "),
        ("misaligned_put", "shmem_long_put: argument dest: "),
        ("misaligned_get", "shmem_long_get: argument source: "),
        ("misaligned_nbi", "shmem_long_put_nbi: argument dest: "),
        ("misaligned_iput", "shmem_long_iput: argument dest: "),
        ("misaligned_iget", "shmem_long_iget: argument source: "),
        ("misaligned_data", "shmem_long_put_signal: argument dest: "),
        ("misaligned_too_long", "shmem_long_put: argument dest: "),
        (
            "misaligned_signal",
            "shmem_long_put_signal: argument sig_addr: ",
        ),
        (
            "misaligned_atomic",
            "shmem_long_atomic_add: argument dest: ",
        ),
        ("misaligned_wait", "shmem_long_wait_until: argument ivar: "),
        ("past_block", "shmem_long_p: argument dest: "),
        ("over_block", "shmem_long_get: argument source: "),
        ("freed_block", "shmem_long_atomic_add: argument dest: "),
        ("of_peer", "shmem_long_p: argument dest: "),
        ("too_long", "shmem_long_put: argument dest: "),
        ("ctx", "shmem_ctx_long_p: argument ctx: "),
        ("destroyed_ctx", "shmem_ctx_long_p: argument ctx: "),
        ("made_up_ctx", "shmem_ctx_quiet: argument ctx: "),
        ("stride", "shmem_long_iput: argument dst: "),
        ("cmp", "shmem_long_wait_until: argument cmp: "),
        ("sig_op", "shmem_long_put_signal: argument sig_op: "),
        ("private_wait", "shmem_long_wait_until: argument ivar: "),
        ("lock", "shmem_set_lock: argument lock: "),
        ("clear", "shmem_clear_lock: "),
        ("free", "shmem_free: "),
        ("free_inside", "shmem_free: "),
        ("collective", "shmem_"),
        ("broadcast", "shmem_long_broadcast: argument dest: "),
        (
            "active_set",
            "shmem_barrier: argument PE_start, logPE_stride, PE_size: ",
        ),
        (
            "outsider",
            "shmem_barrier: argument PE_start, logPE_stride, PE_size: this PE is none of the members",
        ),
    ] {
        // Of the calls that may be inlined.
        let word = [
            "before",
            "p_after",
            "pe",
            "negative_pe",
            "private",
            "private_source",
            "null",
            "misaligned",
            "misaligned_g",
            "misaligned_put",
        ];
        let programs = [Some(&program), word.contains(&what).then_some(&inlined)];
        for program in programs.into_iter().flatten() {
            // Without checks those that copy, and those that look at a word, are taken.
            let always = [
                "misaligned_too_long",
                "misaligned_signal",
                "misaligned_atomic",
            ];
            let is_taken = (what.starts_with("misaligned") && !always.contains(&what))
                || what.ends_with("_block")
                || what == "outsider";
            let checked = if is_taken { "1" } else { "0" };
            let mut bad = job(2, program);
            let output = bad.arg(what).env("OXSHMEM_CHECK", checked).output();
            let output = output.unwrap();
            let told = both(&output);
            assert_eq!(output.status.code(), Some(1), "{what}: {told}");
            assert!(told.contains(message), "{what}: {told}");
        }
    }
}

/// Each hears of it where one or all give what makes no sense, or they differ, and none waits for ever.
#[test]
fn pes_that_differ_all_hear_of_it() {
    let program = compile("differ.c", "differ", &["-std=gnu99"]);
    for pes in 2..=4 {
        run(&mut job(pes, &program));
        for (what, call) in [
            ("broadcast of too many", "shmem_long_broadcast: "),
            ("active set of too many", "shmem_fcollect64: "),
            ("active set of differing numbers", "shmem_long_sum_to_all: "),
            ("allocation of differing sizes", "shmem_malloc: "),
            // A PE that finalizes meets the others in the world.
            ("no team, in the world", "shmem_finalize: "),
        ] {
            let output = job(pes, &program).arg(what).output().unwrap();
            let told = both(&output);
            assert_eq!(output.status.code(), Some(1), "{what}: {told}");
            assert!(told.contains(call), "{what}: {told}");
        }
        for what in [
            "no team",
            "ended team",
            "no team, shared",
            "no team, shared, twice",
        ] {
            let output = job(pes, &program).arg(what).output().unwrap();
            let told = both(&output);
            assert!(output.status.success(), "{what}: {told}");
            let all_told = told.matches("shmem_long_sum_reduce: ").count();
            assert_eq!(all_told, pes, "{what}: {told}");
            assert!(
                told.contains("this is no team, or was destroyed"),
                "{what}: {told}"
            );
        }
    }
    for what in ["", "no team", "ended team, twice"] {
        run(job(2, &program).env("OXSHMEM_CHECK", "1").arg(what));
        run(job(3, &program)
            .env("OXSHMEM_TRANSPORT", "weak(loopback)")
            .arg(what));
    }
}

#[test]
fn the_jobs_status_is_that_of_global_exit_and_of_a_pe_that_fails() {
    let program = compile("bad.c", "bad-status", &[]);
    for (what, statuses) in [
        ("global_exit", 42..=42),
        ("global_exit_of_last", 43..=43),
        // The first that is heard.
        ("global_exit_of_all", 50..=52),
        ("exit", 3..=3),
    ] {
        let output = job(3, &program).arg(what).output().unwrap();
        let status = output.status.code().unwrap();
        assert!(statuses.contains(&status), "{what}: {}", both(&output));
    }
}

/// Such a program ends, in time and with its status, whatever its threads do.
#[test]
fn an_exit_waits_for_no_thread_and_frees_nothing_that_one_uses() {
    let program = compile("ends.c", "ends", &["-std=gnu99", "-pthread"]);
    for (how, status, words) in [
        ("another reads", 5, "the last words"),
        ("elsewhere", 1, "exit by another thread"),
        ("unheard", 1, ""),
        ("during calls", 0, ""),
        ("during serialized calls", 0, ""),
        ("joins", 0, "joined"),
        ("fails meanwhile", 1, "there is no PE 77"),
        ("begun by another", 0, ""),
        ("main thread ends", 0, ""),
        ("finalize at exit", 0, ""),
        ("finalize, and at exit", 0, ""),
        ("without streams", 0, ""),
    ] {
        let output = job(2, &program).arg(how).output().unwrap();
        let told = both(&output);
        assert_eq!(output.status.code(), Some(status), "{how}: {told}");
        let is_elsewhere = told.contains("exit by another thread");
        assert_eq!(is_elsewhere, how == "elsewhere", "{how}: {told}");
        assert!(told.contains(words), "{how}: {told}");
    }
    // Waits drive what all threads have issued, at the end too.
    for how in ["during calls", "joins"] {
        run(job(2, &program)
            .env("OXSHMEM_TRANSPORT", "weak(loopback)")
            .arg(how));
    }
}

#[test]
fn a_program_of_openshmem_1_0_needs_no_finalize() {
    let program = compile("old.c", "old", &["-std=c99"]);
    for pes in 1..=3 {
        let told = run(&mut job(pes, &program));
        for pe in 0..pes {
            let line = format!("PE {pe} of {pes}: {}", (pe + pes - 1) % pes);
            assert!(told.contains(&line), "{told}");
        }
    }
}

/// A shared library of its own, which the program is linked with or not.
#[test]
fn a_tool_counts_the_calls_of_a_program_that_knows_nothing_of_it() {
    let library = prefix().join("lib/libtool-test.so");
    run(tool("oshcc")
        .args(["-shared", "-fPIC", "-o"])
        .arg(&library)
        .arg(here().join("tests/c/tool.c")));
    let counted = "3 puts, 1 gets, 2 barriers";
    let program = compile("tooled.c", "tooled", &[]);
    let linked = compile("tooled.c", "tooled-linked", &[library.to_str().unwrap()]);
    let mut preloaded = job(2, Path::new("env"));
    preloaded
        .arg(format!("LD_PRELOAD={}", library.display()))
        .arg(&program);
    for (how, job, times) in [
        ("alone", &mut job(2, &program), 0),
        ("linked", &mut job(2, &linked), 2),
        ("preloaded", &mut preloaded, 2),
    ] {
        let told = run(job);
        assert_eq!(told.matches(counted).count(), times, "{how}: {told}");
    }
}

#[test]
fn settings_are_shown_and_bad_ones_refused() {
    let program = compile("old.c", "old-settings", &[]);
    let told = run(job(2, &program)
        .env("SMA_VERSION", "0")
        .env("SHMEM_INFO", ""));
    assert!(
        told.contains("OpenSHMEM 1.6") && told.contains("OXSHMEM_SYMMETRIC_SIZE"),
        "{told}"
    );
    let words = [
        ("VERSION", "OpenSHMEM 1.6"),
        ("INFO", "OXSHMEM_SYMMETRIC_SIZE"),
        ("DEBUG", "PE 1 of 2: process "),
    ];
    for (name, words) in words {
        for prefix in ["SHMEM", "SMA"] {
            let told = job(2, &program)
                .env(format!("{prefix}_{name}"), "1")
                .output()
                .unwrap();
            let is_well = told.status.success();
            let told = both(&told);
            assert!(is_well && told.contains(words), "{prefix}_{name}: {told}");
        }
        let told = both(&job(2, &program).output().unwrap());
        assert!(!told.contains(words), "{name}: {told}");
    }
    let by_status = compile("constants.c", "constants-refused", &[]);
    for size in ["lots", "-1", "1x", "100T"] {
        let output = job(2, &program)
            .env("SHMEM_SYMMETRIC_SIZE", size)
            .output()
            .unwrap();
        let told = both(&output);
        assert!(
            output.status.code() == Some(1) && told.contains(" SHMEM_SYMMETRIC_SIZE="),
            "{size}: {told}"
        );
        // A call that gives a status gives one.
        let told = job(2, &by_status)
            .arg("refused")
            .env("SHMEM_SYMMETRIC_SIZE", size)
            .output();
        let told = both(&told.unwrap());
        assert!(
            told.contains("refused: status 1, initialized 0")
                && told.contains(" SHMEM_SYMMETRIC_SIZE="),
            "{size}: {told}"
        );
    }
}
