//! The library's settings: the driver's name inside it, and no unloading.

fn main() {
    // Programs that ask the loader for libcuda.so.1 after this library is loaded get this one.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libcuda.so.1");
    // Streams are threads: the code they run must not be unloaded under them.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo:rerun-if-changed=build.rs");
}
