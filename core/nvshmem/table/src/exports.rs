//! The Rust source of the host library's symbols: each hands its arguments, behind its own name, to the row's function.

use std::fmt::Write;

use crate::c;
use crate::function::Function;
use crate::rows::Form;
use crate::table::functions;
use crate::types::ALL;

/// The functions that the host library exports.
fn exported() -> impl Iterator<Item = Function> {
    functions()
        .into_iter()
        .filter(|function| function.form.on_host())
}

/// The source of all exported functions.
#[must_use]
pub fn exports() -> String {
    let mut source = String::from("// Generated from the table by build.rs.\n");
    for function in exported() {
        let _ = writeln!(source, "{}", export(&function));
    }
    source
}

fn export(function: &Function) -> String {
    let (body, between) = called(function);
    let element = function.of.map_or("c_void", |of| of.rust);
    let generic = function.of.map(|of| format!("::<{}>", of.rust));
    let params = params(function, element);
    let given = [format!("{:?}", function.name)].into_iter();
    let given = given.chain(between.map(str::to_owned));
    let given = given.chain(params.iter().map(|(name, _)| name.clone()));
    let given = given.collect::<Vec<_>>().join(", ");
    let params = params.iter().map(|(name, rust)| format!("{name}: {rust}"));
    let params = params.collect::<Vec<_>>().join(", ");
    let (name, returns) = (&function.name, returns(function, element));
    format!(
        "#[unsafe(no_mangle)]\npub unsafe extern \"C\" fn {name}({params}){returns} {{ unsafe {{ crate::{body}{}({given}) }} }}",
        generic.unwrap_or_default()
    )
}

/// A function's parameters in Rust, names and types.
fn params(function: &Function, element: &str) -> Vec<(String, String)> {
    let stream = (function.form == Form::OnStream).then_some("cudaStream_t stream");
    let declared = c::params(function.row.params, "void");
    let declared = declared
        .into_iter()
        .chain(c::params(stream.unwrap_or_default(), "void"));
    declared
        .map(|param| (lower(&param.name).to_owned(), rust_type(&param.c, element)))
        .collect()
}

/// The end of a function's declaration in Rust.
fn returns(function: &Function, element: &str) -> String {
    match function.row.returns {
        "void" => String::new(),
        "T" => format!(" -> {element}"),
        returns => format!(" -> {}", rust_type(returns, element)),
    }
}

/// The Rust function that a host function calls, and the argument between the call's name and the parameters, if there is one.
fn called(function: &Function) -> (String, Option<&'static str>) {
    let (path, between) = match function.row.host.split_once(' ') {
        Some((path, between)) => (path, Some(between)),
        None => (function.row.host, None),
    };
    match (function.form, path.rsplit_once("::")) {
        (Form::OnStream, Some((_, last))) => (format!("streams::{last}"), between),
        _ => (path.to_owned(), between),
    }
}

fn lower(name: &str) -> &str {
    match name {
        "PE_root" => "root",
        "PE_start" => "start",
        "PE_stride" => "stride",
        "PE_size" => "size",
        "gridDims" => "grid",
        "blockDims" => "block",
        "sharedMem" => "shared_bytes",
        "nelems" | "nreduce" | "bytes" => "n",
        other => other,
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
    let c = c.strip_prefix("const ").unwrap_or(c);
    let named = match c {
        "void" => element,
        "size_t" => "usize",
        "ptrdiff_t" => "isize",
        "char" if element == "c_void" => "c_char",
        "nvshmem_team_t" | "nvshmemx_qp_handle_t" | "nvshmemx_smem_amount_t" => "i32",
        "cudaStream_t" => "StreamHandle",
        "CUmodule" | "CUlibrary" => "*mut c_void",
        "dim3" => "Dim3",
        "nvshmem_team_config_t" => "TeamConfig",
        "nvshmemx_init_attr_t" => "InitAttr",
        "nvshmemx_uniqueid_t" => "UniqueId",
        "nvshmemx_team_uniqueid_t" | "nvshmemx_region_handle_t" => "u64",
        "nvshmemx_region_attrs_t" => "RegionAttrs",
        "nvshmemx_collective_launch_attr_t" => "LaunchAttr",
        "nvshmemi_version_t" => "Version",
        "nvshmemx_device_lib_init_cb" => "DeviceLibraryCallback",
        _ => ALL.iter().find(|of| of.c == c).map_or(c, |of| of.rust),
    };
    named.into()
}

/// The linker's version script of the host library: the names that it exports.
#[must_use]
pub fn version_script() -> String {
    let mut script = String::from("{\n  global:\n");
    for function in exported() {
        let _ = writeln!(script, "    {};", function.name);
    }
    // The announcements of images with kernels.
    script.push_str("    oxshmem_prepare_launch;\n    oxshmem_register_image;\n    oxshmem_unregister_image;\n};\n");
    script
}
