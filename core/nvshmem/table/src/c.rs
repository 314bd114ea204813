//! Declarations in C, as far as the table has them.

use crate::function::{Function, Param};

/// A piece of C in which `T` stands for the type of elements.
pub(crate) fn with_type(text: &str, c_type: &str) -> String {
    let words = text.split(' ').map(|word| match word {
        "T" => c_type,
        _ => word,
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Parameters that are written as in C, with a space between type and name (`const T *source, int pe`).
pub(crate) fn params(text: &str, c_type: &str) -> Vec<Param> {
    let each = text.split(", ").filter(|param| !param.is_empty());
    each.map(|param| {
        let at = param.rfind([' ', '*']).map_or(0, |at| at + 1);
        let (c, name) = param.split_at(at);
        Param {
            c: with_type(c.trim(), c_type),
            name: name.into(),
        }
    })
    .collect()
}

/// Parameters as a prototype has them.
pub(crate) fn list(params: &[Param]) -> String {
    if params.is_empty() {
        return "void".into();
    }
    let each = params.iter().map(|Param { c, name }| typed(c, name));
    each.collect::<Vec<_>>().join(", ")
}

/// A type and a name after it.
pub(crate) fn typed(c: &str, name: &str) -> String {
    if c.ends_with('*') {
        format!("{c}{name}")
    } else {
        format!("{c} {name}")
    }
}

/// A function's head.
pub(crate) fn head(function: &Function) -> String {
    format!(
        "{}({})",
        typed(&function.returns, &function.name),
        list(&function.params)
    )
}

const GENERATED: &str = "/* Generated from oxshmem's table (core/nvshmem/table); do not edit. */\n";

/// A header of its own.
pub(crate) fn guarded(guard: &str, about: &str, body: &str) -> String {
    format!("/* {about} */\n{GENERATED}#ifndef {guard}\n#define {guard}\n\n{body}\n#endif\n")
}
