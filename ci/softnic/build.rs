//! The library's settings: the name of libibverbs inside it, and no unloading.

fn main() {
    // Programs that ask the loader for libibverbs.so.1 after this library is loaded get this one.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libibverbs.so.1");
    // The engine is a thread: the code that it runs must not be unloaded under it.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo:rerun-if-changed=build.rs");
}
