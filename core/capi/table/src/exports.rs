//! The Rust source of the library's symbols.
//!
//! Each function is the strong symbol `pshmem_X`, which hands its arguments with its own name to the row's
//! implementation; `shmem_X` is a weak alias of it, so that a profiling tool can define its own. The aliases stand in
//! the same Rust module as the functions: the compiler puts a module into one object file, and an alias can be made only
//! in the object file that defines its function.

use std::fmt::Write;

use crate::function::Function;
use crate::table::functions;
use crate::types::ALL;

/// The source of all exported functions.
#[must_use]
pub fn exports() -> String {
    let mut source = String::from("// Generated from the table by build.rs.\n");
    let mut aliases = String::new();
    for function in functions() {
        // Functions that are written by hand, aliases and all.
        if by_value_in_x87(&function) {
            continue;
        }
        let symbol = function.twin();
        if let Some(twin) = &symbol {
            let name = &function.name;
            let _ = writeln!(
                aliases,
                "    \".weak {name}\", \".type {name}, @function\", \".set {name}, {twin}\","
            );
        }
        let symbol = symbol.as_ref().unwrap_or(&function.name);
        let _ = writeln!(source, "{}", export(&function, symbol));
    }
    let _ = write!(source, "core::arch::global_asm!(\n{aliases});\n");
    source
}

/// Whether a function takes or returns a `long double` by value. Rust has no such type: `long_double.rs` has these
/// functions.
fn by_value_in_x87(function: &Function) -> bool {
    const LONG_DOUBLE: &str = "long double";
    function.returns == LONG_DOUBLE || function.params.iter().any(|param| param.c == LONG_DOUBLE)
}

fn export(function: &Function, symbol: &str) -> String {
    let element = function.of.map_or("c_void", |of| of.rust);
    let fixed = function.params.iter().filter(|param| !param.c.is_empty());
    let params = fixed.clone().map(|param| {
        let rust = rust_type(&param.c, element);
        format!("{}: {rust}", lower(&param.name))
    });
    let params = params.collect::<Vec<_>>().join(", ");
    let returns = match function.returns.as_str() {
        "void" => String::new(),
        returns => format!(" -> {}", rust_type(returns, element)),
    };
    let default = (function.row.takes_context() && !function.ctx).then_some("Ctx::DEFAULT");
    let given = fixed.map(|param| lower(&param.name));
    let call = [format!("{:?}", function.name)];
    let given = call
        .into_iter()
        .chain(default.map(str::to_owned))
        .chain(given);
    let given = given.collect::<Vec<_>>().join(", ");
    let body = function.row.call;
    format!(
        "#[unsafe(no_mangle)]\npub unsafe extern \"C\" fn {symbol}({params}){returns} {{ unsafe {{ {body}({given}) }} }}"
    )
}

fn lower(name: &str) -> String {
    match name {
        "PE_root" => "root".into(),
        "PE_start" => "start".into(),
        "PE_size" => "size".into(),
        "logPE_stride" => "log_stride".into(),
        "pSync" => "_psync".into(),
        "pWrk" => "_pwrk".into(),
        other => other.into(),
    }
}

/// A type of C's in Rust, where `void` is `element`.
fn rust_type(c: &str, element: &str) -> String {
    if let Some(pointed) = c.strip_suffix('*') {
        let (kind, pointed) = match pointed.trim().strip_prefix("const ") {
            Some(pointed) => ("*const", pointed),
            None => ("*mut", pointed.trim()),
        };
        return format!("{kind} {}", rust_type(pointed, element));
    }
    let named = match c {
        "void" => element,
        "int" => "c_int",
        "long" => "c_long",
        "size_t" => "usize",
        "ptrdiff_t" => "isize",
        "shmem_ctx_t" => "Ctx",
        "shmem_team_t" => "Team",
        "shmem_team_config_t" => "TeamConfig",
        "shmem_ctx_session_config_t" => "SessionConfig",
        _ => ALL.iter().find(|of| of.c == c).map_or(c, |of| of.rust),
    };
    named.into()
}

/// The linker's version script of the shared library: what it exports.
#[must_use]
pub fn version_script() -> String {
    let mut script = String::from("{\n  global:\n");
    for function in functions() {
        let _ = writeln!(script, "    {};", function.name);
        if let Some(twin) = function.twin() {
            let _ = writeln!(script, "    {twin};");
        }
    }
    // The variable that inlined calls read, and the calls of images with kernels.
    script.push_str(
        "    oxshmem_inline;\n    oxshmem_register_image;\n    oxshmem_unregister_image;\n};\n",
    );
    script
}
