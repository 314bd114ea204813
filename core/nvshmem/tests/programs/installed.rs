//! Parts of an installation beside the library: the launcher, the tool, and the files by which CMake finds it.

use std::path::Path;
use std::process::{Command, Output};

use super::{both, build, can_build, here, home, oxshmem, run};

fn tool(name: &str) -> Command {
    let mut tool = Command::new(home().join("bin").join(name));
    tool.env("NVSHMEM_SYMMETRIC_SIZE", "16M");
    tool.env("OXSHMEM_SYMMETRIC_SIZE", "16M");
    tool
}

fn launched(words: &[&str]) -> Output {
    tool("nvshmrun").args(words).output().unwrap()
}

#[test]
fn the_launcher_takes_hydras_options() {
    let show = "echo $PART in $(basename $PWD) as $OTHER";
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let wanted = folder.file_name().unwrap().to_str().unwrap();
    let at = folder.to_str().unwrap();
    for words in [
        &[
            "-n",
            "2",
            "-genv",
            "PART",
            "one",
            "-env",
            "OTHER=two",
            "-wdir",
            at,
            "sh",
            "-c",
            show,
        ][..],
        &[
            "-ppn", "2", "-np", "2", "--genv", "PART=one", "-env", "OTHER", "two", "-wdir", at,
            "--", "sh", "-c", show,
        ],
    ] {
        let told = both(&launched(words));
        let lines = told.matches(&format!("one in {wanted} as two")).count();
        assert_eq!(lines, 2, "{words:?}: {told}");
        assert_eq!(
            words.contains(&"-ppn"),
            told.contains("no meaning here: -ppn 2"),
            "{told}"
        );
    }
    let told = both(&launched(&[
        "-prepend-rank",
        "-genvall",
        "-n",
        "2",
        "echo",
        "-n",
        "hello",
    ]));
    assert!(told.contains("[1] hello"), "{told}");
    let told = both(&launched(&["-version"]));
    assert!(told.contains("oxshmem "), "{told}");
    for (words, message) in [
        (&["-n"][..], "-n has no value"),
        (&["-genv", "PART"], "-genv PART has no value"),
        (&["-n", "2"], "PROG"),
        (&["-frobnicate", "a"], "-f"),
    ] {
        let refused = launched(words);
        assert_eq!(
            refused.status.code(),
            Some(2),
            "{words:?}: {}",
            both(&refused)
        );
        assert!(
            both(&refused).contains(message),
            "{words:?}: {}",
            both(&refused)
        );
    }
    let another = tool("nvshmrun")
        .args(["-n", "2", "a"])
        .env("NVSHMRUN_LAUNCHER", "echo by another")
        .output();
    assert!(both(&another.unwrap()).contains("by another -n 2 a"));
}

/// The names in the list that `nvshmem-info` reads.
fn variables() -> Vec<&'static str> {
    let list = include_str!("../../lib/variables.txt").lines();
    list.map(|line| line.split('\t').next().unwrap()).collect()
}

#[test]
fn the_tool_tells_versions_and_variables() {
    let told = |option: &str| {
        run(tool("nvshmem-info")
            .arg(option)
            .env("NVSHMEM_DEBUG", "warn"))
    };
    assert!(told("-n").starts_with("NVSHMEM v3."), "{}", told("-n"));
    assert!(told("-h").contains("usage: nvshmem-info"));
    assert!(told("-b").contains("oxshmem "), "{}", told("-b"));
    let all = told("-a");
    assert!(
        all.contains("NVSHMEM_SYMMETRIC_SIZE: 16M") && all.contains("NVSHMEM_DEBUG: warn"),
        "{all}"
    );
    for part in ["-n", "-b", "-e"] {
        assert!(all.contains(&told(part)), "{part}: {all}");
    }
    let refused = tool("nvshmem-info").arg("-z").output().unwrap();
    assert_eq!(refused.status.code(), Some(2), "{}", both(&refused));
}

/// The library says the same variables as the list, and the guide has each of them.
#[test]
fn variables_with_an_effect_are_in_the_list_and_in_the_guide() {
    let guide = include_str!("../../../../docs/nvshmem.md");
    for name in variables() {
        assert!(guide.contains(&format!("`{name}`")), "{name}");
    }
    let Some(program) = build("variables", &["queries.cu"]) else {
        return;
    };
    let mut job = tool("nvshmrun");
    job.args(["-n", "2"]).arg(program).env("NVSHMEM_INFO", "1");
    let output = job.env("NVSHMEM_QP_DEPTH", "7").output().unwrap();
    let told = both(&output);
    assert!(output.status.success(), "{told}");
    let lines = told
        .lines()
        .filter_map(|line| line.strip_prefix("oxshmem:   "));
    let mut said: Vec<&str> = lines.filter_map(|line| line.split(':').next()).collect();
    let mut listed = variables();
    said.sort_unstable();
    listed.sort_unstable();
    assert_eq!(said, listed, "{told}");
    let without = told
        .matches("without effect here: NVSHMEM_QP_DEPTH")
        .count();
    assert_eq!(without, 1, "{told}");
}

/// The library is on no default path, and its name is NVSHMEM's.
#[test]
fn the_library_has_a_folder_of_its_own() {
    let library = home().join("lib/libnvshmem_host.so.3");
    let names = run(Command::new("readelf").arg("-d").arg(library));
    assert!(names.contains("[libnvshmem_host.so.3]"), "{names}");
    let above = home().parent().unwrap();
    let others = std::fs::read_dir(above).unwrap();
    let others = others.map(|entry| entry.unwrap().file_name());
    assert!(
        !others
            .into_iter()
            .any(|name| name.to_string_lossy().starts_with("libnvshmem"))
    );
    let archive = run(Command::new("nm").arg(home().join("lib/libnvshmem_device.a")));
    assert!(archive.contains("R oxshmem_nvshmem_device"), "{archive}");
}

/// As the files of users have it. There is no CUDA here, so the language is C++, and `oxshmem cuda cc` is the compiler.
#[test]
fn cmake_finds_it() {
    if Command::new("cmake").arg("--version").output().is_err() {
        eprintln!("SKIPPED: cmake cannot be run");
        return;
    }
    if !can_build() {
        return;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("nvshmem-cmake");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    // A compiler for CMake is one command.
    let compiler = folder.join("cc");
    let script = format!("#!/bin/sh\nexec {} cuda cc \"$@\"\n", oxshmem().display());
    std::fs::write(&compiler, script).unwrap();
    run(Command::new("chmod").arg("+x").arg(&compiler));
    let programs = here().join("tests/programs");
    let project = format!(
        "cmake_minimum_required(VERSION 3.18)\nproject(test CXX)\nfind_package(NVSHMEM 3.1 REQUIRED)\n\
         if(NOT NVSHMEM_FOUND OR NOT NVSHMEM_VERSION MATCHES \"^3[.]\")\n  message(FATAL_ERROR \"${{NVSHMEM_VERSION}}\")\nendif()\n\
         get_target_property(includes nvshmem::nvshmem_host INTERFACE_INCLUDE_DIRECTORIES)\n\
         foreach(part host device)\n  get_target_property(file nvshmem::nvshmem_${{part}} IMPORTED_LOCATION)\n\
         if(NOT EXISTS \"${{file}}\")\n    message(FATAL_ERROR \"${{file}}\")\n  endif()\n  list(APPEND files \"${{file}}\")\nendforeach()\n\
         add_custom_command(OUTPUT ring COMMAND {compiler} -std=c++17 -I${{includes}} {programs}/ring.cu -o ring ${{files}})\n\
         add_custom_target(programs ALL DEPENDS ring)\n\
         add_executable(plain plain.cpp)\ntarget_link_libraries(plain nvshmem::nvshmem)\n",
        compiler = compiler.display(),
        programs = programs.display(),
    );
    std::fs::write(folder.join("CMakeLists.txt"), project).unwrap();
    let plain = "#include <nvshmem.h>\n#include <nvshmemx.h>\nint main() {\n    int major = 0, minor = 0;\n    \
                 nvshmem_info_get_version(&major, &minor);\n    return major == NVSHMEM_MAJOR_VERSION ? 0 : 1;\n}\n";
    std::fs::write(folder.join("plain.cpp"), plain).unwrap();
    let below = folder.join("b");
    let mut configure = Command::new("cmake");
    configure.arg("-S").arg(&folder).arg("-B").arg(&below);
    run(configure.arg(format!("-DNVSHMEM_ROOT={}", home().display())));
    run(Command::new("cmake")
        .arg("--build")
        .arg(&below)
        .arg("--verbose"));
    run(&mut Command::new(below.join("plain")));
    let mut job = tool("nvshmrun");
    job.args(["-n", "2"]).arg(below.join("ring"));
    run(job.env("LD_LIBRARY_PATH", home().join("lib")));
    // A newer version than this one is not found.
    let newer = std::fs::read_to_string(folder.join("CMakeLists.txt")).unwrap();
    std::fs::write(
        folder.join("CMakeLists.txt"),
        newer.replace("NVSHMEM 3.1", "NVSHMEM 99"),
    )
    .unwrap();
    let refused = configure.output().unwrap();
    assert!(
        !refused.status.success() && both(&refused).contains("99"),
        "{}",
        both(&refused)
    );
}
