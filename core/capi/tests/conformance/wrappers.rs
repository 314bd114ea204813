//! The parts of an installation beside the library: `oshcc`, `oshrun`, pages, and the files by which other tools find it.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::interface::names;
use super::{PATIENCE, both, compile, here, job, prefix, run, tool};

#[test]
fn options_of_the_launcher_come_in_any_order() {
    let program = compile("old.c", "old-order", &["-std=c99"]);
    let told = run(tool("oshrun")
        .args(["--timeout", PATIENCE, "-l", "-np", "2"])
        .arg(&program));
    assert!(told.contains("[1] PE 1 of 2"), "{told}");
    // Those of a script for another's.
    let others =
        "--allow-run-as-root --oversubscribe --bind-to core --mca memheap ptmalloc -x OF_SCRIPT -q";
    let output = tool("oshrun")
        .args(others.split_whitespace())
        .args(["-np", "2"])
        .arg(&program)
        .env("OF_SCRIPT", "")
        .output();
    let told = both(&output.unwrap());
    assert!(
        told.contains("PE 1 of 2") && told.contains("no meaning here: --mca memheap ptmalloc\n"),
        "{told}"
    );
    assert!(run(tool("oshrun").arg("--version")).starts_with("oxshmem "));
    for (words, message) in [
        (&["-np", "none", "a"][..], "none"),
        (&["-np"], "value is required"),
        (&["-np", "2"], "PROG"),
        (
            &["-N", "2", "a"],
            "for '-N <N>': give the number of PEs by -n",
        ),
    ] {
        let output = tool("oshrun").args(words).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", both(&output));
        assert!(both(&output).contains(message), "{}", both(&output));
    }
}

#[test]
fn the_compiler_wrapper_shows_what_it_does() {
    let show = run(tool("oshcc").args(["-show", "a.c", "-o", "a"]));
    assert!(
        show.starts_with("cc -I") && show.contains("a.c -o a") && show.contains("-loxshmem"),
        "{show}"
    );
    let show = run(tool("oshc++")
        .args(["-showme", "-c", "a.cpp"])
        .env("SHMEM_CXX", "clang++ -v"));
    assert!(
        show.starts_with("clang++ -v -I") && !show.contains("-loxshmem"),
        "{show}"
    );
    assert!(run(tool("oshcxx").args(["-show", "-c", "a.cpp"])).starts_with("c++ -I"));
    assert!(run(tool("oshcc").arg("--showlibs")).contains("-loxshmem"));
    // The compiler is asked, and nothing linked.
    run(tool("oshcc").arg("-v"));
    let output = tool("oshcc").args(["-static", "a.c"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", both(&output));
    assert!(
        both(&output).contains("link the archive"),
        "{}",
        both(&output)
    );
}

#[test]
fn the_compiler_wrapper_passes_on_what_is_not_its_own() {
    let folder = prefix().join("wrapper-test");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(
        folder.join("a.c"),
        "#include <shmem.h>\nint main(void) { shmem_init(); shmem_finalize(); }\n",
    )
    .unwrap();
    let oshcc = |words: &[&str]| run(tool("oshcc").args(words).current_dir(&folder));
    let made = |name: &str| std::fs::remove_file(folder.join(name)).is_ok();
    oshcc(&["-c", "a.c"]);
    assert!(made("a.o"));
    oshcc(&["-S", "a.c"]);
    assert!(made("a.s"));
    assert!(oshcc(&["-E", "a.c"]).contains("shmem_init"));
    assert!(oshcc(&["-M", "a.c"]).contains("include/shmem.h"));
    assert!(oshcc(&["-MM", "a.c"]).starts_with("a.o: a.c"));
    // Compiled, then linked apart.
    oshcc(&["-c", "a.c", "-o", "b.o"]);
    oshcc(&["b.o", "-o", "b"]);
    run(&mut job(2, &folder.join("b")));
    assert!(made("b"));
    let include = format!("-I{}\n", prefix().join("include").display());
    assert_eq!(oshcc(&["--showcompile"]), include);
    assert_eq!(oshcc(&["-showme:compile"]), include);
    for words in ["--showlink", "--showlibs", "-showlibs", "-showme:link"] {
        assert!(oshcc(&[words]).contains("-loxshmem"), "{words}");
    }
    assert!(oshcc(&["--help"]).contains("SHMEM_CC"));
    let named = |tool_name: &str, variables: &[(&str, &str)]| {
        let mut show = tool(tool_name);
        show.args(["-show", "-c", "a"])
            .envs(variables.iter().copied());
        let told = run(&mut show);
        told.split(' ').next().unwrap_or_default().to_owned()
    };
    assert_eq!(named("oshcc", &[("SMA_CC", "gcc")]), "gcc");
    assert_eq!(
        named("oshcc", &[("SMA_CC", "gcc"), ("SHMEM_CC", "clang")]),
        "clang"
    );
    assert_eq!(named("oshCC", &[("SMA_CXX", "g++")]), "g++");
    assert_eq!(
        named("oshc++", &[("SMA_CXX", "g++"), ("SHMEM_CXX", "clang++")]),
        "clang++"
    );
    assert_eq!(named("oshc++", &[("SHMEM_CC", "clang")]), "c++");
}

#[test]
fn the_launcher_wrapper_shows_what_it_does_and_gives_way_to_another() {
    for show in ["-show", "-showme"] {
        let told = run(tool("oshrun").args([show, "-np", "2", "a", "-show"]));
        let launcher = prefix().join("bin/oxshmem");
        assert_eq!(told, format!("{} run -np 2 a -show\n", launcher.display()));
    }
    let told = run(tool("oshrun")
        .args(["-np", "2", "a"])
        .env("OSHRUN_LAUNCHER", "echo by another"));
    assert_eq!(told, "by another -np 2 a\n");
}

/// As a user does, from what was built: PREFIX, and DESTDIR as packages are made.
#[test]
fn make_installs_where_it_is_told_to() {
    let built = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let top = here().join("../..");
    let stage = prefix().join("stage");
    let shown = |target: &str, strip: &str| {
        run(Command::new("make")
            .args(["-n", target, strip, "PREFIX=/opt/shmem"])
            .arg(format!("DESTDIR={}", stage.display()))
            .arg("-C")
            .arg(&top))
    };
    let show = shown("install", "STRIP=yes");
    let to = format!("{}/opt/shmem", stage.display());
    let has = |shown: &str, command: &str| {
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let wanted = words(&format!("{command} {to}"));
        let found = shown.lines().any(|line| {
            let line = words(line);
            line.starts_with(command) && line.ends_with(&wanted[command.len()..])
        });
        assert!(found, "{command}: {shown}");
    };
    has(&show, "core/capi/install");
    assert!(!show.contains("--keep-symbols"), "{show}");
    has(
        &shown("install", "STRIP=no"),
        "core/capi/install --keep-symbols",
    );
    has(&shown("uninstall", "STRIP=yes"), "core/capi/uninstall");
    assert!(
        show.contains("cargo build --release -p oxshmem-capi -p oxshmem-cli"),
        "{show}"
    );
    // The same line with this build.
    let profile = if cfg!(debug_assertions) {
        "debug"
    } else {
        "release"
    };
    run(Command::new(top.join("core/capi/install"))
        .arg(built.join(profile))
        .arg(stage.join("opt/shmem")));
    // It is found by where it lies, so that it may be moved.
    let moved = prefix().join("moved");
    let _ = std::fs::remove_dir_all(&moved);
    std::fs::rename(stage.join("opt/shmem"), &moved).unwrap();
    let program = moved.join("old");
    run(Command::new(moved.join("bin/oshcc"))
        .arg(here().join("tests/c/old.c"))
        .arg("-o")
        .arg(&program));
    let told = run(Command::new(moved.join("bin/oshrun"))
        .args(["-np", "2"])
        .arg(&program)
        .env("SHMEM_SYMMETRIC_SIZE", "16M"));
    assert!(told.contains("PE 1 of 2"), "{told}");

    stripped(&moved);
    pages_have_no_warnings(&moved);
    // All that was installed goes, and no more.
    std::fs::write(moved.join("bin/another"), "").unwrap();
    run(Command::new(top.join("core/capi/uninstall")).arg(&moved));
    let mut left = Vec::new();
    files_below(&moved, &mut left);
    left.sort();
    assert_eq!(left, [moved.join("bin/another"), program]);
    let again = Command::new(top.join("core/capi/uninstall"))
        .arg(&moved)
        .output()
        .unwrap();
    assert_eq!(again.status.code(), Some(1), "{}", both(&again));
    assert!(
        both(&again).contains("what was installed"),
        "{}",
        both(&again)
    );
}

/// Files, links, and folders without either.
fn files_below(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut is_empty = true;
    for entry in std::fs::read_dir(folder).unwrap() {
        is_empty = false;
        let entry = entry.unwrap();
        match entry.file_type().unwrap().is_dir() {
            true => files_below(&entry.path(), found),
            false => found.push(entry.path()),
        }
    }
    if is_empty {
        found.push(folder.to_owned());
    }
}

/// The libraries and the command have no symbols but those that are called by name; with symbols kept they have more.
fn stripped(installed: &Path) {
    for file in ["lib/liboxshmem.so.0", "lib/liboxshmem.a", "bin/oxshmem"] {
        let sections = |prefix: &Path| {
            run(Command::new("objdump")
                .args(["-h", "-w"])
                .arg(prefix.join(file)))
        };
        assert!(!sections(installed).contains(" .debug_line "), "{file}");
        assert!(sections(prefix()).contains(" .debug_line "), "{file}");
    }
}

fn pages_have_no_warnings(installed: &Path) {
    let manual = installed.join("share/man");
    for name in [
        "man1/oxshmem.1",
        "man1/oxshmem-run.1",
        "man1/oshrun.1",
        "man1/oshcc.1",
        "man1/oshc++.1",
        "man7/oxshmem-environment.7",
        "man7/oxshmem-memory-model.7",
    ] {
        assert!(manual.join(name).exists(), "{name}");
    }
    let environment = std::fs::read_to_string(manual.join("man7/oxshmem-environment.7")).unwrap();
    for variable in oxshmem_variables(installed) {
        assert!(
            environment.contains(&format!("\"{variable}\"")),
            "{variable}"
        );
    }
    if Command::new("groff").arg("--version").output().is_err() {
        eprintln!("SKIPPED: there is no groff (Debian: groff-base)");
        return;
    }
    for section in ["man1", "man3", "man7"] {
        // Links to other pages are too many to be read one at a time.
        let pages = std::fs::read_dir(manual.join(section)).unwrap();
        let pages = pages.map(|page| page.unwrap().path());
        let texts = pages.filter(|page| std::fs::metadata(page).unwrap().len() > 100);
        let mut format = Command::new("groff");
        format.args(["-man", "-ww", "-Tutf8", "-z"]).args(texts);
        let output = format.current_dir(&manual).output().unwrap();
        assert!(output.status.success(), "{section}: {}", both(&output));
        assert!(output.stderr.is_empty(), "{section}: {}", both(&output));
    }
}

/// The variables that a program says it reads.
fn oxshmem_variables(installed: &Path) -> Vec<String> {
    let told = run(Command::new(installed.join("old"))
        .env("SHMEM_INFO", "1")
        .env("SHMEM_SYMMETRIC_SIZE", "16M"));
    let lines = told.lines().filter_map(|line| line.strip_prefix("  "));
    let names = lines.filter_map(|line| line.split(':').next());
    let names = names.filter(|name| name.starts_with("OXSHMEM_"));
    let names: Vec<_> = names.map(str::to_owned).collect();
    assert!(names.len() > 20, "{told}");
    names
}

#[test]
fn every_call_has_a_reference_page() {
    let manual = prefix().join("share/man/man3");
    let page = |name: &str| {
        let text = std::fs::read_to_string(manual.join(format!("{name}.3")));
        text.unwrap_or_else(|error| panic!("{name}: {error}"))
    };
    assert!(page("shmem_put").contains("shmem_TYPENAME_put(TYPE *dest"));
    assert_eq!(page("shmem_getmem"), ".so man3/shmem_put.3\n");
    assert_eq!(page("shmem_ctx_long_p"), ".so man3/shmem_put.3\n");
    for name in names().iter().filter(|name| !name.starts_with("pshmem")) {
        let text = page(name);
        let about = match text.strip_prefix(".so man3/") {
            Some(other) => page(other.trim_end().trim_end_matches(".3")),
            None => text,
        };
        assert!(about.contains(".SH DESCRIPTION\n"), "{name}");
    }
}

#[test]
fn cmake_and_pkg_config_find_it() {
    let lib = prefix().join("lib");
    let found = Command::new("pkg-config")
        .args(["--static", "--cflags", "--libs", "oxshmem"])
        .env("PKG_CONFIG_PATH", lib.join("pkgconfig"))
        .output();
    match found {
        Ok(found) => {
            let told = both(&found);
            assert!(
                told.contains("-loxshmem") && told.contains("-lgcc_s"),
                "{told}"
            );
        }
        Err(error) => eprintln!("SKIPPED: pkg-config cannot be run: {error}"),
    }
    let folder = prefix().join("cmake-test");
    std::fs::create_dir_all(&folder).unwrap();
    let source = here().join("tests/c/old.c");
    let project = format!(
        "cmake_minimum_required(VERSION 3.13)\nproject(test C)\nfind_package(oxshmem 0.1 REQUIRED)\n\
         add_executable(old {source})\ntarget_link_libraries(old oxshmem::oxshmem)\n\
         add_executable(old-static {source})\ntarget_link_libraries(old-static oxshmem::oxshmem_static)\n",
        source = source.display()
    );
    std::fs::write(folder.join("CMakeLists.txt"), project).unwrap();
    let path = format!("-DCMAKE_PREFIX_PATH={}", prefix().display());
    if Command::new("cmake").arg("--version").output().is_err() {
        eprintln!("SKIPPED: cmake cannot be run");
        return;
    }
    run(Command::new("cmake")
        .arg("-S")
        .arg(&folder)
        .arg("-B")
        .arg(folder.join("b"))
        .arg(path));
    run(Command::new("cmake").arg("--build").arg(folder.join("b")));
    for program in ["b/old", "b/old-static"] {
        run(&mut job(2, &folder.join(program)));
    }
}
