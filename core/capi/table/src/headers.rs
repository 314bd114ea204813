//! The generated headers.

use std::fmt::Write;

use crate::function::Function;
use crate::table::functions;
use crate::types::{self, Set};
use crate::{c, generics, inlined};

const GENERATED: &str = "/* Generated from oxshmem's table (core/capi/table); do not edit. */\n";

/// All generated headers: their names in `core/capi/include/`, and their text.
#[must_use]
pub fn headers() -> Vec<(&'static str, String)> {
    vec![
        ("shmem.h", shmem()),
        ("shmemx.h", shmemx()),
        ("pshmem.h", pshmem()),
        ("oxshmem/generics.h", generic()),
        ("oxshmem/overloads.h", overloads()),
        ("oxshmem/inline.h", inline()),
        ("../tests/c/types.h", lists()),
    ]
}

fn guarded(guard: &str, about: &str, body: &str) -> String {
    format!("/* {about} */\n{GENERATED}#ifndef {guard}\n#define {guard}\n\n{body}\n#endif\n")
}

fn in_c(body: &str) -> String {
    format!(
        "#ifdef __cplusplus\nextern \"C\" {{\n#endif\n\n{body}\n#ifdef __cplusplus\n}}\n#endif\n"
    )
}

/// Declarations with `long long`, which C89 and C++98 have by their compilers' grace alone: `-pedantic` says nothing of them.
fn with_long_long(body: &str) -> String {
    format!(
        "#pragma GCC diagnostic push\n#pragma GCC diagnostic ignored \"-Wlong-long\"\n\n{body}\n#pragma GCC diagnostic pop\n"
    )
}

fn shmem() -> String {
    let mut text = String::new();
    for (function, first) in with_firsts() {
        if function.beyond() {
            continue;
        }
        if first && let Some(version) = function.row.deprecated {
            let _ = writeln!(text, "/* Deprecated in OpenSHMEM {version}. */");
        }
        if first && function.row.others_have {
            let all = types::of(function.row.types);
            let names: Vec<_> = all.iter().flatten().map(|of| of.name).collect();
            let _ = writeln!(
                text,
                "/* Of {} as others have it, beyond OpenSHMEM. */",
                names.join(", ")
            );
        }
        let _ = writeln!(text, "{}", c::prototype(&function, &function.name));
    }
    let body = format!(
        "#include <oxshmem/base.h>\n\n{}\n#include <oxshmem/removed.h>\n\n#ifdef Py_PYTHON_H\n#include <oxshmem/shmem4py.h>\n#endif\n\n#ifdef OXSHMEM_INLINE\n#include <oxshmem/inline.h>\n#endif\n\n\
         #if defined(__cplusplus)\n#include <oxshmem/overloads.h>\n\
         #elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L\n#include <oxshmem/generics.h>\n#endif\n",
        in_c(&text)
    );
    let body = with_long_long(&body);
    guarded("SHMEM_H", "The OpenSHMEM API in C and C++.", &body)
}

/// A program that may meet libraries without one of these asks for `HAVE_SHMEMX_...`.
fn shmemx() -> String {
    let mut text = String::new();
    for function in functions().iter().filter(|function| function.beyond()) {
        let _ = writeln!(text, "#define HAVE_{} 1", function.name.to_uppercase());
        let _ = writeln!(text, "{}", c::prototype(function, &function.name));
    }
    let body = format!("#include <shmem.h>\n\n{}", in_c(&text));
    guarded("SHMEMX_H", "What oxshmem has beyond OpenSHMEM.", &body)
}

/// Each function, and whether it is the first of its row.
fn with_firsts() -> Vec<(Function, bool)> {
    let mut last = None;
    let all = functions().into_iter().map(|function| {
        let row = Some((function.row.name, function.row.types));
        let first = last != row;
        last = row;
        (function, first)
    });
    all.collect()
}

fn pshmem() -> String {
    let mut text = String::new();
    for function in functions() {
        if let Some(twin) = function.twin() {
            let _ = writeln!(text, "{}", c::prototype(&function, &twin));
        }
    }
    let body = with_long_long(&format!("#include <oxshmem/base.h>\n\n{}", in_c(&text)));
    let about = "The names that a profiling tool calls which defines those of shmem.h itself.";
    guarded("PSHMEM_H", about, &body)
}

fn generic() -> String {
    let body = format!(
        "/* Its first and its second argument, if followed by enough others. */\n\
         #define OXSHMEM_FIRST(first, ...) first\n#define OXSHMEM_SECOND(first, second, ...) second\n\n\
         /* What is chosen for a type of which there is no function: nothing fits as its argument. */\n\
         struct oxshmem_no_such_type;\n\
         void oxshmem_no_such_call(struct oxshmem_no_such_type, struct oxshmem_no_such_type);\n\n\
         /* The same functions, for objects that may be volatile. */\n{}\n{}",
        generics::volatile_names(),
        generics::macros()
    );
    let about = "One name for the functions of all types, in C11. Included by shmem.h.";
    guarded("OXSHMEM_GENERICS_H", about, &body)
}

fn overloads() -> String {
    // A program may include shmem.h where all else is C's.
    let body = format!(
        "extern \"C++\" {{\n\n#include <complex>\n\n{}\n}}\n",
        generics::overloads()
    );
    let about = "One name for the functions of all types, in C++. Included by shmem.h.";
    guarded("OXSHMEM_OVERLOADS_H", about, &body)
}

fn inline() -> String {
    let calls = in_c(&inlined::calls());
    let body = format!(
        "#pragma GCC system_header\n\n#include <oxshmem/direct.h>\n\n{calls}\n\
         /* For generics.h: the same of objects that may be volatile. */\n#ifndef __cplusplus\n{}#endif\n",
        generics::volatile_calls()
    );
    let about = "The calls that -DOXSHMEM_INLINE compiles into programs. Included by shmem.h.";
    guarded("OXSHMEM_INLINE_H", about, &body)
}

/// Lists of types for the conformance programs: `RMA_TYPES(X)` is `X(float, float)` and so on for each type.
fn lists() -> String {
    let sets = [
        ("RMA_TYPES", Set::Rma),
        ("STANDARD_TYPES", Set::Standard),
        ("EXTENDED_TYPES", Set::Extended),
        ("BITWISE_TYPES", Set::Bitwise),
        ("OLD_EXTENDED_TYPES", Set::OldExtended),
        ("OLD_STANDARD_TYPES", Set::OldStandard),
        ("OLD_WAITS_TYPES", Set::OldWaits),
        ("OLD_WAIT_TYPES", Set::OldWait),
        ("REDUCE_BITS_TYPES", Set::ReduceBits),
        ("REDUCE_SUM_TYPES", Set::ReduceSum),
        ("OLD_REDUCE_BITS_TYPES", Set::OldReduceBits),
        ("OLD_REDUCE_ORDER_TYPES", Set::OldReduceOrder),
        ("OLD_REDUCE_SUM_TYPES", Set::OldReduceSum),
    ];
    let mut text = String::new();
    for (name, set) in sets {
        let all = types::of(set);
        let each = all.iter().flatten();
        let each: Vec<_> = each.map(|of| format!("X({}, {})", of.name, of.c)).collect();
        let _ = writeln!(
            text,
            "#define {name}(X) \\\n    {}\n",
            each.join(" \\\n    ")
        );
        // Types that C11 and C++ tell apart.
        let mut seen = Vec::new();
        let distinct = all.iter().flatten().filter(|of| {
            let c = types::distinct(of.c);
            let new = !seen.contains(&c);
            seen.push(c);
            new
        });
        let each: Vec<_> = distinct
            .map(|of| format!("X({}, {})", of.name, of.c))
            .collect();
        let _ = writeln!(
            text,
            "#define DISTINCT_{name}(X) \\\n    {}\n",
            each.join(" \\\n    ")
        );
    }
    let about = "The types over which the conformance programs expand.";
    guarded("OXSHMEM_TESTS_TYPES_H", about, &text)
}
