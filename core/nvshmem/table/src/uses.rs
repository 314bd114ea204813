//! Sources that make every call once, for compilers. They are not run.

use std::fmt::Write;

use crate::function::Function;
use crate::table::functions;
use crate::tiles;

/// Arguments of the right types, all from one address.
fn arguments(function: &Function) -> String {
    let each = function.params.iter().map(|param| {
        let c = param.c.strip_prefix("const ").unwrap_or(&param.c);
        if param.c.ends_with('*') {
            format!("({})p", param.c)
        } else {
            format!("*({c} *)p")
        }
    });
    each.collect::<Vec<_>>().join(", ")
}

/// A C or C++ function for each function of the host. Those with a type that the headers of CUDA have lie behind a condition.
#[must_use]
pub fn uses_on_host() -> String {
    let mut text = String::from("#include <nvshmem.h>\n#include <nvshmemx.h>\n");
    for (number, function) in functions().iter().filter(|f| f.form.on_host()).enumerate() {
        let line = format!(
            "void use_{number}(char *p) {{ (void)p, (void){}({}); }}\n",
            function.name,
            arguments(function)
        );
        let needs = |what: &str| {
            function.params.iter().any(|param| param.c.contains(what))
                || function.returns.contains(what)
        };
        let condition = if function.row.host.starts_with("launch::") {
            Some("NVSHMEMI_HAS_CUDART")
        } else if needs("half") || needs("bfloat16") {
            Some("NVSHMEMI_HAS_HALF")
        } else {
            None
        };
        let _ = match condition {
            Some(condition) => write!(text, "#if {condition}\n{line}#endif\n"),
            None => write!(text, "{line}"),
        };
    }
    text
}

/// A kernel for each function of kernels, of those whose number is `part` modulo `parts`.
#[must_use]
pub fn uses_in_kernels(part: usize, parts: usize) -> String {
    let mut text = String::from("#include <nvshmem.h>\n#include <nvshmemx.h>\n");
    for (number, function) in functions()
        .iter()
        .filter(|f| f.form.in_kernels())
        .enumerate()
    {
        if number % parts != part {
            continue;
        }
        let kept = if function.returns == "void" {
            String::new()
        } else {
            format!("*({} *)p = ", function.returns)
        };
        let kept = kept.replace("const ", "");
        let line = format!(
            "extern \"C\" __global__ void use_{number}(char *p) {{ (void)p; {kept}{}({}); }}\n",
            function.name,
            arguments(function)
        );
        let c = |what: &str| function.params.iter().any(|param| param.c.contains(what));
        if c("half") || c("bfloat16") {
            let _ = write!(text, "#if NVSHMEMI_HAS_HALF\n{line}#endif\n");
        } else {
            text.push_str(&line);
        }
    }
    if part == 0 {
        text.push_str(&uses_of_tiles());
    }
    text
}

fn uses_of_tiles() -> String {
    let mut text = String::from(
        "typedef nvshmemx::Layout<nvshmemx::shape<ConstInt<4>, int>, nvshmemx::stride<ConstInt<1>, int>> UsedLayout;\n\
         typedef nvshmemx::Tensor<float, UsedLayout> UsedTensor;\n\
         typedef nvshmemx::shape<int, int> UsedPlace;\n\
         extern \"C\" __global__ void use_tiles(char *p, int n) {\n\
         \x20   const UsedLayout layout = nvshmemx::make_layout(nvshmemx::make_shape(ConstInt<4>(), n), nvshmemx::make_stride(ConstInt<1>(), n));\n\
         \x20   UsedTensor tensor((float *)p, layout);\n\
         \x20   const UsedPlace place = nvshmemx::make_shape(n, n);\n",
    );
    for name in tiles::names()
        .iter()
        .filter(|name| name.starts_with("tile_"))
    {
        if tiles::refused(name).is_some() {
            continue;
        }
        let call = if name.contains("collective_wait") {
            format!("{name}<nvshmemx::NVLS_ONE_SHOT_PULL_NBI>(n, 0)")
        } else {
            let of_team = !name.contains("_put") && !name.contains("_get");
            let (algorithm, team) = if of_team {
                ("NVLS_ONE_SHOT_PULL_NBI", "n, ")
            } else {
                ("PEER_PUSH_NBI", "")
            };
            let last = if name.contains("rooted") || !of_team {
                "n, "
            } else {
                ""
            };
            format!(
                "{name}<UsedTensor, UsedTensor, UsedPlace, nvshmemx::{algorithm}>({team}tensor, tensor, place, place, {last}0)"
            )
        };
        let _ = writeln!(text, "    *(int *)p = nvshmemx::{call};");
    }
    text.push_str("}\n");
    text
}
