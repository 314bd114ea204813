//! The library's settings: its name in programs that are linked with it, and no unloading.

fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libsoftcudart.so");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo:rerun-if-changed=build.rs");
}
