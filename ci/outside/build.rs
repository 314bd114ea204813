//! Copies the first program out of README, as a reader would.

use std::{env, fs, path::Path};

const README: &str = "../../README.md";

fn main() {
    println!("cargo::rerun-if-changed={README}");
    let readme = fs::read_to_string(README).expect("README.md is beside ci");
    let (_, program) = readme
        .split_once("```rust,no_run\n")
        .expect("README.md has a program");
    let (program, _) = program.split_once("```").expect("the program ends");
    let directory = env::var("OUT_DIR").expect("cargo says where");
    fs::write(Path::new(&directory).join("readme.rs"), program).expect("cargo's folder is there");
}
