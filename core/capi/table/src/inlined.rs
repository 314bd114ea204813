//! The calls that programs may have compiled into them: one word, put, got or changed on the default context, and what orders
//! that.
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
    /// Does one of `OXSHMEM_FETCH` and so on, with the value and the condition that these are in C.
    Atomic(&'static str, &'static str, &'static str),
    /// Orders, by that call.
    Order(&'static str),
}

impl Way {
    fn of(function: &Function) -> Option<Self> {
        // More than a word.
        let is_large = function
            .of
            .is_some_and(|of| of.c == "long double" || of.name == "128");
        let call = function.row.call;
        match call {
            _ if function.ctx || is_large => None,
            "rma::p" => Some(Way::P),
            "rma::g" => Some(Way::G),
            "rma::put" => Some(Way::Put),
            "rma::get" => Some(Way::Get),
            "order::quiet" => Some(Way::Order("oxshmem_order(1)")),
            "order::fence" => Some(Way::Order("oxshmem_order(0)")),
            _ => Self::atomic(call.strip_prefix("atomics::")?),
        }
    }

    fn atomic(call: &str) -> Option<Self> {
        let (op, value, cond) = match call {
            "fetch" => ("FETCH", "none", "none"),
            "set" => ("SET", "value", "value"),
            "swap" => ("SWAP", "value", "value"),
            "compare_swap" => ("COMPARE_SWAP", "value", "cond"),
            "fetch_inc" | "inc" => ("ADD", "one", "one"),
            "fetch_add" | "add" => ("ADD", "value", "value"),
            "fetch_and" | "and" => ("AND", "value", "value"),
            "fetch_or" | "or" => ("OR", "value", "value"),
            "fetch_xor" | "xor" => ("XOR", "value", "value"),
            _ => return None,
        };
        Some(Way::Atomic(op, value, cond))
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
            Way::Atomic(op, value, cond) => atomic(&function, &called, op, value, cond),
            Way::Order(order) => format!("if (!{order}) {called};"),
        };
        let declared = c::typed(&function.returns, &function.name);
        let params = c::list(&function.params);
        let _ = writeln!(text, "{}", c::prototype(&function, &twin));
        let _ = writeln!(text, "OXSHMEM_INLINED {declared}({params}) {{ {body} }}");
    }
    text
}

/// What an atomic consists of.
fn atomic(function: &Function, called: &str, op: &str, value: &str, cond: &str) -> String {
    let c = function.of.map_or("void", |of| of.c);
    let on = match op {
        "FETCH" => "source",
        _ => "dest",
    };
    let given = match value {
        "one" => ", one = 1",
        "none" => ", none = 0",
        _ => "",
    };
    let done =
        format!("oxshmem_atomic(OXSHMEM_{op}, {on}, &{value}, &{cond}, &old, sizeof old, pe)");
    match function.returns.as_str() {
        "void" => format!("{c} old{given}; if (!{done}) {called};"),
        _ => format!("{c} old{given}; if (!{done}) old = {called}; return old;"),
    }
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
