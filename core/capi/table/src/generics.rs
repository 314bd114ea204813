//! The C11 macros and the C++ overloads: one name for the functions of all types.

use std::fmt::Write;

use crate::function::{Function, Param};
use crate::table::functions;
use crate::types::distinct;
use crate::{c, inlined};

/// The functions of one name.
struct Generic {
    name: &'static str,
    /// One for each type that is a type of its own in C, without a context.
    plain: Vec<Function>,
    /// The same with a context, if there are such.
    ctx: Vec<Function>,
}

fn generics() -> Vec<Generic> {
    let mut all: Vec<Generic> = Vec::new();
    for function in functions() {
        let Some(name) = function.row.generic else {
            continue;
        };
        if !all.iter().any(|generic| generic.name == name) {
            all.push(Generic {
                name,
                plain: Vec::new(),
                ctx: Vec::new(),
            });
        }
        let Some(generic) = all.iter_mut().find(|generic| generic.name == name) else {
            continue;
        };
        let forms = if function.ctx {
            &mut generic.ctx
        } else {
            &mut generic.plain
        };
        let same = |a: &Function, b: &Function| match (a.of, b.of) {
            (Some(a), Some(b)) => distinct(a.c) == distinct(b.c),
            _ => false,
        };
        if !forms.iter().any(|other| same(other, &function)) {
            forms.push(function);
        }
    }
    all
}

/// Whether it takes symmetric objects that a program may have declared volatile, such as flags: those of collective
/// calls are none.
fn has_volatile_form(function: &Function) -> bool {
    !function
        .params
        .iter()
        .any(|param| param.c == "shmem_team_t")
}

/// The parameters, of which those that point to symmetric objects, or to what is put there, may be volatile.
fn volatile_params(function: &Function) -> Vec<Param> {
    const OBJECTS: [&str; 5] = ["dest", "source", "ivar", "ivars", "sig_addr"];
    let params = function.params.iter().cloned();
    let qualified = params.map(|param| {
        if !OBJECTS.contains(&param.name.as_str()) || !param.c.ends_with('*') {
            return param;
        }
        Param {
            c: format!("volatile {}", param.c),
            ..param
        }
    });
    qualified.collect()
}

/// The name by which the C11 macros call a function: that of its volatile form if it has one, else its own.
fn called(function: &Function) -> String {
    if has_volatile_form(function) {
        format!("ox{}", function.name)
    } else {
        function.name.clone()
    }
}

/// The functions that have a volatile form, which are called by a name for that.
fn volatile_functions() -> Vec<Function> {
    let all = generics().into_iter();
    let functions = all.flat_map(|generic| generic.plain.into_iter().chain(generic.ctx));
    functions.filter(has_volatile_form).collect()
}

/// The volatile form of a function.
fn volatile_form(function: &Function) -> String {
    let declared = c::typed(&function.returns, &called(function));
    format!("{declared}({})", c::list(&volatile_params(function)))
}

/// The names for volatile forms.
pub(crate) fn volatile_names() -> String {
    let (inlined, others): (Vec<_>, Vec<_>) =
        volatile_functions().into_iter().partition(inlined::has);
    let names = |functions: Vec<Function>| {
        let each = functions.iter();
        let each = each.map(|f| format!("{} __asm__(\"{}\");\n", volatile_form(f), f.name));
        each.collect::<String>()
    };
    format!(
        "{}#ifndef OXSHMEM_INLINE\n{}#endif\n",
        names(others),
        names(inlined)
    )
}

/// The volatile forms of those that are compiled into programs.
pub(crate) fn volatile_calls() -> String {
    let functions = volatile_functions().into_iter().filter(inlined::has);
    let each = functions.map(|function| {
        let cast = |c: &str, name: &str| format!("({c})(uintptr_t){name}");
        let given = given(&function, &volatile_params(&function), cast);
        let returns = match function.returns.as_str() {
            "void" => "",
            _ => "return ",
        };
        let form = volatile_form(&function);
        format!(
            "OXSHMEM_INLINED {form} {{ {returns}{}({given}); }}\n",
            function.name
        )
    });
    each.collect()
}

/// Arguments for a function whose parameters may be volatile, where they are not.
fn given(function: &Function, volatile: &[Param], cast: impl Fn(&str, &str) -> String) -> String {
    let both = volatile.iter().zip(&function.params);
    let given = both.map(|(param, plain)| {
        if param.c == plain.c {
            plain.name.clone()
        } else {
            cast(&plain.c, &plain.name)
        }
    });
    given.collect::<Vec<_>>().join(", ")
}

/// The associations that choose among functions by the type of a pointer to their elements.
fn choices(functions: &[Function], indent: &str) -> String {
    let mut text = String::new();
    for function in functions {
        let Some(of) = function.of else { continue };
        let by = function.params.iter().find(|param| {
            let pointed = param.c.strip_suffix('*').map(str::trim);
            pointed.is_some_and(|pointed| pointed.strip_prefix("const ").unwrap_or(pointed) == of.c)
        });
        let (c, name) = (distinct(of.c), called(function));
        let by_const = by.is_some_and(|by| by.c.starts_with("const "));
        let volatile = has_volatile_form(function);
        for (qualified, taken) in [
            ("", true),
            ("const ", by_const),
            ("volatile ", volatile),
            ("const volatile ", by_const && volatile),
        ] {
            if taken {
                let _ = writeln!(text, "{indent}{qualified}{c} *: {name}, \\");
            }
        }
    }
    let _ = write!(text, "{indent}default: oxshmem_no_such_call");
    text
}

/// The C11 macros.
pub(crate) fn macros() -> String {
    let mut text = String::new();
    for generic in generics() {
        let name = generic.name;
        let (first, second) = (
            "(OXSHMEM_FIRST(__VA_ARGS__, 0))",
            "(OXSHMEM_SECOND(__VA_ARGS__, 0, 0))",
        );
        let typed = generic.plain.iter().any(|function| function.of.is_some());
        let chosen = match (generic.plain.as_slice(), generic.ctx.as_slice()) {
            ([sync], []) if !typed => {
                format!(
                    "_Generic({first}, shmem_team_t: {}, default: {name})",
                    sync.name
                )
            }
            ([plain], [ctx]) if !typed => {
                format!(
                    "_Generic({first}, shmem_ctx_t: {}, default: {})",
                    called(ctx),
                    called(plain)
                )
            }
            (plain, []) => {
                let team = plain
                    .first()
                    .is_some_and(|f| f.params.first().is_some_and(|p| p.c == "shmem_team_t"));
                let by = if team { second } else { first };
                format!("_Generic({by}, \\\n{})", choices(plain, "    "))
            }
            (plain, ctx) => format!(
                "_Generic({first}, \\\n    shmem_ctx_t: _Generic({second}, \\\n{}), \\\n{})",
                choices(ctx, "        "),
                choices(plain, "    ")
            ),
        };
        let _ = writeln!(text, "#define {name}(...) {chosen}(__VA_ARGS__)");
    }
    text
}

/// The C++ overloads.
pub(crate) fn overloads() -> String {
    let all = functions();
    let types =
        |f: &Function| -> Vec<String> { f.params.iter().map(|p| distinct(&p.c).into()).collect() };
    let mut text = String::new();
    for generic in generics() {
        for function in generic.plain.iter().chain(&generic.ctx) {
            // A function of C that has this name and these parameters needs no overload.
            let is_c = |f: &&Function| f.name == generic.name && types(f) == types(function);
            if all.iter().find(is_c).is_none() {
                let _ = writeln!(text, "{}", overload(function, generic.name, |c| c.into()));
            }
            if has_volatile_form(function) {
                let _ = writeln!(text, "{}", volatile_overload(function, generic.name));
            }
        }
    }
    for function in &all {
        let standard = |c: &str| {
            c.replace("oxshmem_complexd", "std::complex<double>")
                .replace("oxshmem_complexf", "std::complex<float>")
        };
        if function.of.is_some_and(|of| of.name.starts_with("complex")) {
            let _ = writeln!(text, "{}", overload(function, &function.name, standard));
            if let Some(name) = function.row.generic {
                let _ = writeln!(text, "{}", overload(function, name, standard));
            }
        }
    }
    text
}

fn volatile_overload(function: &Function, name: &str) -> String {
    let params = volatile_params(function);
    let given = given(function, &params, |c, name| {
        format!("const_cast<{c}>({name})")
    });
    inline(function, name, &params, &given)
}

fn overload(function: &Function, name: &str, as_type: impl Fn(&str) -> String) -> String {
    let mut params = function.params.clone();
    let mut given = Vec::new();
    for param in &mut params {
        let c = as_type(&param.c);
        given.push(if c == param.c {
            param.name.clone()
        } else {
            format!("reinterpret_cast<{}>({})", param.c, param.name)
        });
        param.c = c;
    }
    inline(function, name, &params, &given.join(", "))
}

/// A function of C++ that gives these arguments to the one of C.
fn inline(function: &Function, name: &str, params: &[Param], given: &str) -> String {
    format!(
        "static inline {}({}) {{ return {}({given}); }}",
        c::typed(&function.returns, name),
        c::list(params),
        function.name,
    )
}
