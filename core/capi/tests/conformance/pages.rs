//! The programs of the documentation, as a reader would copy them.

use std::path::PathBuf;

use super::{PATIENCE, here, job, prefix, python, run, tool};

/// The page's blocks of a language.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let text = std::fs::read_to_string(here().join("../../docs").join(page)).unwrap();
    let fence = format!("```{language}\n");
    let blocks = text.split(&fence).skip(1);
    blocks
        .map(|block| block.split("```").next().unwrap().to_string())
        .collect()
}

/// A file of a block, for a compiler or an interpreter.
fn file(name: &str, text: &str) -> PathBuf {
    let folder = prefix().join("pages");
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join(name);
    std::fs::write(&file, text).unwrap();
    file
}

#[test]
fn programs_in_c_of_the_pages() {
    for (page, count) in [("c.md", 1), ("guide/first-steps-c.md", 3)] {
        let blocks = blocks(page, "c");
        assert_eq!(blocks.len(), count, "{page}");
        for (number, block) in blocks.iter().enumerate() {
            let name = format!("{}-{number}", page.replace('/', "-"));
            let source = file(&format!("{name}.c"), block);
            let program = source.with_extension("");
            let mut compile = tool("oshcc");
            compile.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-o"]);
            run(compile.arg(&program).arg(source));
            run(&mut job(4, &program));
        }
    }
}

#[test]
fn the_program_in_python_of_the_pages() {
    let Some(python) = python() else {
        eprintln!("SKIPPED: there is no python3 with numpy (Debian: python3-numpy)");
        return;
    };
    let examples = here().join("../../examples/python");
    let run_block = |block: &str| {
        let script = file("page.py", block);
        let mut job = tool("oshrun");
        job.args(["-n", "4", "--timeout", PATIENCE, python])
            .arg(script);
        job.env("OXSHMEM_LIBRARY", prefix().join("lib/liboxshmem.so"));
        job.env("SHMEM_SYMMETRIC_SIZE", "64M")
            .env("PYTHONPATH", &examples);
        run(job.env("PYTHONDONTWRITEBYTECODE", "1"));
    };
    for page in ["c.md", "guide/first-steps-python.md"] {
        let blocks = blocks(page, "python");
        let mut own = blocks
            .iter()
            .filter(|block| block.starts_with("import shmem_ctypes"));
        run_block(own.next().unwrap());
        assert!(own.next().is_none(), "{page}");
    }
}
