//! The generated headers: the host's declarations, and the calls of kernels.

use std::fmt::Write;

use crate::c;
use crate::function::Function;
use crate::rows::Form;
use crate::table::functions;
use crate::tiles;

/// All generated headers: their names in `core/nvshmem/include/`, and their text.
#[must_use]
pub fn headers() -> Vec<(&'static str, String)> {
    vec![
        ("host/nvshmem_api.h", host(false)),
        ("host/nvshmemx_api.h", host(true)),
        ("device/nvshmem_device.cuh", device(false)),
        ("device/nvshmemx_device.cuh", device(true)),
        ("device/nvshmem_tiles.cuh", tiles::header()),
    ]
}

/// A family of functions under one condition of the preprocessor.
fn under(condition: &str, lines: &str) -> String {
    if lines.is_empty() {
        return String::new();
    }
    format!("#if {condition}\n{lines}#endif\n")
}

fn in_c(lines: &str) -> String {
    format!("NVSHMEMI_C_BEGIN\n{lines}NVSHMEMI_C_END\n")
}

/// The host's functions of `nvshmem.h`, or of its extensions. Those that kernels have, too, lie in a namespace where a source has
/// both halves: the function that calls one or the other has the name.
fn host(extensions: bool) -> String {
    let [
        mut alone,
        mut both,
        mut bits,
        mut both_halves,
        mut alone_halves,
        mut in_c_alone,
    ] = [const { String::new() }; 6];
    for function in functions() {
        let inline = function.row.host.starts_with("launch::");
        if function.is_extension() != extensions || !function.form.on_host() || inline {
            continue;
        }
        let prototype = format!("{};\n", c::head(&function));
        if passes_half(&function) {
            in_c_alone.push_str(&prototype);
            let _ = writeln!(bits, "{};", c::head(&with_bits(&function)));
            let halves = match function.form {
                Form::Both => &mut both_halves,
                _ => &mut alone_halves,
            };
            let _ = writeln!(
                halves,
                "static inline {} {{ {}; }}",
                c::head(&function),
                host_call(&function)
            );
        } else if function.form == Form::Both {
            both.push_str(&prototype);
        } else {
            alone.push_str(&prototype);
        }
    }
    let namespace = |lines: &str| format!("namespace nvshmem_host {{\n{}}}\n", in_c(lines));
    let (file, about) = if extensions {
        ("NVSHMEMX_API_H", "The host's calls of the extensions.")
    } else {
        ("NVSHMEM_API_H", "The host's calls.")
    };
    let body = format!(
        "#include \"../device_host/nvshmem_types.h\"\n#include \"halves.h\"\n{}\n{}\n{}\n{}#ifdef __cplusplus\n{}{}#else\n{}#endif\n{}",
        if extensions {
            "#include \"collective_launch.h\"\n"
        } else {
            ""
        },
        in_c(&alone),
        format_args!("NVSHMEMI_BOTH_BEGIN\n{}NVSHMEMI_BOTH_END\n", in_c(&both)),
        "\n/* 16-bit floating-point numbers go to the library and come from it as their bits. */\n",
        namespace(&bits),
        under(
            "NVSHMEMI_HAS_HALF",
            &format!(
                "{alone_halves}{}",
                under("!NVSHMEMI_IN_KERNELS", &both_halves)
            )
        ),
        in_c_alone,
        under("NVSHMEMI_IN_KERNELS", "#include \"../nvshmem.h\"\n"),
    );
    c::guarded(file, about, &body)
}

/// Whether a function takes or gives a 16-bit floating-point number by value. How that is passed differs between compilers.
fn passes_half(function: &Function) -> bool {
    let is_half = |c: &str| {
        matches!(
            c.strip_prefix("const ").unwrap_or(c),
            "half" | "__nv_bfloat16"
        )
    };
    is_half(&function.returns) || function.params.iter().any(|param| is_half(&param.c))
}

/// The same with the bits of such numbers.
fn with_bits(function: &Function) -> Function {
    let bits = |c: &str| match c.strip_prefix("const ").unwrap_or(c) {
        "half" | "__nv_bfloat16" => "unsigned short".to_owned(),
        _ => c.to_owned(),
    };
    let mut made = function.clone();
    made.returns = bits(&function.returns);
    for param in &mut made.params {
        param.c = bits(&param.c);
    }
    made
}

/// The call of the library from the host's half of a function.
fn host_call(function: &Function) -> String {
    let given = function.params.iter().zip(with_bits(function).params);
    let given = given.map(|(param, bits)| {
        if param.c == bits.c {
            param.name.clone()
        } else {
            format!("nvshmem_host::bits({})", param.name)
        }
    });
    let given = given.collect::<Vec<_>>().join(", ");
    let call = format!("nvshmem_host::{}({given})", function.name);
    match function.returns.as_str() {
        "void" => call,
        "half" | "__nv_bfloat16" => {
            format!("return nvshmem_host::of_bits<{}>({call})", function.returns)
        }
        _ => format!("return {call}"),
    }
}

/// The calls of kernels.
fn device(extensions: bool) -> String {
    let (mut lines, mut halves) = (String::new(), String::new());
    for function in functions() {
        if function.is_extension() != extensions || !function.form.in_kernels() {
            continue;
        }
        let lines = if passes_half(&function) {
            &mut halves
        } else {
            &mut lines
        };
        let (head, body) = (c::head(&function), device_body(&function));
        let lazy = if function.row.lazy {
            "NVSHMEMI_LAZY "
        } else {
            ""
        };
        let _ = if function.form == Form::Both {
            writeln!(
                lines,
                "{lazy}NVSHMEMI_BOTH {head} NVSHMEMI_HALVES({body}, {})",
                host_call(&function)
            )
        } else {
            writeln!(lines, "{lazy}NVSHMEMI_DEVICE {head} {{ {body}; }}")
        };
    }
    let (file, about) = if extensions {
        (
            "NVSHMEMX_DEVICE_CUH",
            "The calls of kernels: the extensions.",
        )
    } else {
        ("NVSHMEM_DEVICE_CUH", "The calls of kernels.")
    };
    let body = format!(
        "#include \"oxshmem_calls.cuh\"\n\n{lines}\n{}",
        under("NVSHMEMI_HAS_HALF", &halves)
    );
    c::guarded(file, about, &body)
}

fn device_body(function: &Function) -> String {
    let body = function.row.device.trim_end_matches(';');
    let body = body.replace("{S}", function.form.scope());
    match function.of {
        None => body,
        Some(of) => {
            let item = if of.bytes == 16 {
                "ulonglong2"
            } else {
                of.word()
            };
            let body = body.replace("(T)", &format!("({})", of.c));
            let body = body
                .replace("{C}", of.canonical())
                .replace("{W}", of.word());
            body.replace("{I}", item)
                .replace("{N}", &of.bytes.to_string())
        }
    }
}
