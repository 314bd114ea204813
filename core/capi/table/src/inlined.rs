//! The calls that programs may have compiled into them: one word, put or got on the default context.
//!
//! Each does by `include/oxshmem/direct.h` what the library would, or calls its twin there.

use std::fmt::Write;

use crate::{Function, c, functions};

/// What an inlined call does.
enum Way {
    /// Puts the value that it is given.
    P,
    /// Gives the value that it gets.
    G,
    /// Puts elements, if they are one word.
    Put,
    /// Gets such.
    Get,
}

impl Way {
    fn of(function: &Function) -> Option<Self> {
        // More than a word.
        let is_large = function
            .of
            .is_some_and(|of| of.c == "long double" || of.name == "128");
        match function.row.call {
            _ if function.ctx || is_large => None,
            "rma::p" => Some(Way::P),
            "rma::g" => Some(Way::G),
            "rma::put" => Some(Way::Put),
            "rma::get" => Some(Way::Get),
            _ => None,
        }
    }
}

/// Whether a program may have it.
pub(crate) fn has(function: &Function) -> bool {
    Way::of(function).is_some()
}

/// The definitions.
pub(crate) fn calls() -> String {
    let mut text = String::new();
    for function in functions() {
        let (Some(way), Some(twin)) = (Way::of(&function), function.twin()) else {
            continue;
        };
        let given: Vec<_> = function.params.iter().map(|p| p.name.as_str()).collect();
        let called = format!("{twin}({})", given.join(", "));
        let size = element_size(&function);
        let body = match way {
            Way::P => format!("if (!oxshmem_p(dest, &value, sizeof value, pe)) {called};"),
            Way::G => format!(
                "{} value; if (!oxshmem_g(&value, source, sizeof value, pe)) value = {called}; return value;",
                function.returns
            ),
            Way::Put => format!("if (!oxshmem_put(dest, source, nelems, {size}, pe)) {called};"),
            Way::Get => format!("if (!oxshmem_get(dest, source, nelems, {size}, pe)) {called};"),
        };
        let declared = c::typed(&function.returns, &function.name);
        let params = c::list(&function.params);
        let _ = writeln!(text, "{}", c::prototype(&function, &twin));
        let _ = writeln!(text, "OXSHMEM_INLINED {declared}({params}) {{ {body} }}");
    }
    text
}

/// The bytes of an element, in C.
fn element_size(function: &Function) -> String {
    match function.of {
        Some(of) if of.c == "void" => match of.name.parse::<usize>() {
            Ok(bits) => (bits / 8).to_string(),
            Err(_) => "1".into(),
        },
        _ => "sizeof *dest".into(),
    }
}
