//! Writes the exported functions and the linker's list of them, from the table.

use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    let out = env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("cargo sets OUT_DIR"))?;
    let out = Path::new(&out);
    fs::write(out.join("exports.rs"), oxshmem_nvshmem_table::exports())?;
    let script = out.join("exports.map");
    fs::write(&script, oxshmem_nvshmem_table::version_script())?;
    println!(
        "cargo::rustc-cdylib-link-arg=-Wl,--version-script={}",
        script.display()
    );
    // The exit handler stays where it is.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libnvshmem_host.so.3");
    Ok(())
}
