//! The way in which bindgen makes all declarations.

use anyhow::{Result, anyhow};
use bindgen::{Builder, EnumVariation, RustEdition, RustTarget};

/// Declarations that begin with these lines. Functions are looked up in a library that is opened at run time.
pub fn builder(head: &str) -> Result<Builder> {
    let target = RustTarget::stable(85, 0).map_err(|_| anyhow!("bindgen knows no Rust 1.85"))?;
    Ok(Builder::default()
        .rust_target(target)
        .rust_edition(RustEdition::Edition2024)
        .formatter(bindgen::Formatter::Prettyplease)
        .raw_line(head)
        .disable_header_comment()
        .ctypes_prefix("std::ffi")
        .layout_tests(false)
        .default_enum_style(EnumVariation::ModuleConsts)
        .prepend_enum_name(false)
        .dynamic_library_name("Functions")
        .dynamic_link_require_all(true)
        .generate_comments(false)
        .derive_debug(false)
        .wrap_unsafe_ops(true))
}
