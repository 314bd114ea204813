//! The calls that may be compiled into programs: puts, gets and atomics of one word on the default context, fence and
//! quiet.
//!
//! Each does the library's work by the functions of `include/oxshmem/direct.h`, or else calls its twin in the library.

use std::fmt::Write;

use crate::c;
use crate::function::Function;
use crate::table::functions;

/// The kind of an inlined call, by which its body is written.
enum CallKind {
    /// Puts the value that it is given.
    P,
    /// Returns the value that it gets.
    G,
    /// Puts elements, if they are one word.
    Put,
    /// Gets elements, if they are one word.
    Get,
    /// Performs an atomic: its name after `OXSHMEM_`, its value and its condition, each as a name in C.
    Atomic(&'static str, &'static str, &'static str),
    /// Fence or quiet, by this call of `direct.h`.
    Order(&'static str),
}

impl CallKind {
    fn of(function: &Function) -> Option<Self> {
        // Elements of more than a word.
        let is_large = function
            .of
            .is_some_and(|of| of.c == "long double" || of.name == "128");
        let call = function.row.call;
        match call {
            _ if function.ctx || is_large => None,
            "rma::p" => Some(CallKind::P),
            "rma::g" => Some(CallKind::G),
            "rma::put" => Some(CallKind::Put),
            "rma::get" => Some(CallKind::Get),
            "order::quiet" => Some(CallKind::Order("oxshmem_order(1)")),
            "order::fence" => Some(CallKind::Order("oxshmem_order(0)")),
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
        Some(CallKind::Atomic(op, value, cond))
    }
}

/// Whether a function has an inlined form.
pub(crate) fn has(function: &Function) -> bool {
    CallKind::of(function).is_some()
}

/// The definitions of all inlined forms.
pub(crate) fn calls() -> String {
    let mut text = String::new();
    for function in functions() {
        let (Some(kind), Some(twin)) = (CallKind::of(&function), function.twin()) else {
            continue;
        };
        let given: Vec<_> = function.params.iter().map(|p| p.name.as_str()).collect();
        let called = format!("{twin}({})", given.join(", "));
        let size = element_size(&function);
        let body = match kind {
            CallKind::P => format!("if (!oxshmem_p(dest, &value, sizeof value, pe)) {called};"),
            CallKind::G => format!(
                "{} value; if (!oxshmem_g(&value, source, sizeof value, pe)) value = {called}; return value;",
                function.returns
            ),
            CallKind::Put => {
                format!("if (!oxshmem_put(dest, source, nelems, {size}, pe)) {called};")
            }
            CallKind::Get => {
                format!("if (!oxshmem_get(dest, source, nelems, {size}, pe)) {called};")
            }
            CallKind::Atomic(op, value, cond) => atomic(&function, &called, op, value, cond),
            CallKind::Order(order) => format!("if (!{order}) {called};"),
        };
        let declared = c::typed(&function.returns, &function.name);
        let params = c::list(&function.params);
        let _ = writeln!(text, "{}", c::prototype(&function, &twin));
        let _ = writeln!(text, "OXSHMEM_INLINED {declared}({params}) {{ {body} }}");
    }
    text
}

/// The body of an atomic.
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
