//! The calls on tiles, which are templates over their tensors.

use std::fmt::Write;

use crate::c;
use crate::rows::Form;

/// The forms of each call.
const FORMS: [Form; 4] = [Form::Device, Form::Warp, Form::Warpgroup, Form::Block];

/// The names that are classes, or functions of the host as well: `core/nvshmem/include/device_host/nvshmem_tensor.h` has them.
const MAKERS: [&str; 3] = ["make_shape", "make_stride", "make_layout"];

/// All names of functions, without their namespace.
#[must_use]
pub fn names() -> Vec<String> {
    let mut names: Vec<String> = MAKERS.map(str::to_owned).into();
    for form in FORMS {
        let suffix = form.suffix();
        let plain = ["put", "get", "broadcast", "allgather", "collective_wait"];
        names.extend(plain.map(|call| format!("tile_{call}{suffix}")));
        for fold in ["sum", "min", "max"] {
            let kinds = ["reduce", "rooted_reduce"];
            names.extend(kinds.map(|kind| format!("tile_{fold}_{kind}{suffix}")));
        }
    }
    names
}

/// Whether a call is refused where a program makes it, and why.
#[must_use]
pub fn refused(name: &str) -> Option<&'static str> {
    name.starts_with("tile_allgather").then_some(
        "the place of each PE's tile in the tensor of all is not specified; each PE can make tile_broadcast of its tile to its place",
    )
}

/// The header with these calls.
pub(crate) fn header() -> String {
    let mut text = String::from(
        "#include \"oxshmem_tiles.cuh\"\n\nnamespace nvshmemx {\n\n\
         /* `flag` is for times to come, in NVSHMEM, too. A team has one collective call under way at a time. */\n",
    );
    for form in FORMS {
        let (suffix, scope) = (form.suffix(), form.scope());
        let mut call = |algorithm: &str, name: String, first: &str, last: &str, body: String| {
            let _ = writeln!(
                text,
                "template <class src_tensor_t, class dst_tensor_t, class tuple_t, {algorithm} algo> NVSHMEMI_DEVICE int {name}{suffix}({first}src_tensor_t src, dst_tensor_t dst, tuple_t start_coord, tuple_t boundary{last}, uint64_t) {{ {body} }}"
            );
        };
        let tiles = "src, dst, start_coord, boundary";
        let team = "nvshmem_team_t team, ";
        for name in ["tile_put", "tile_get"] {
            let body = format!("return nvshmem_ox::{name}({scope}, {tiles}, pe);");
            call("tile_algo_t", name.into(), "", ", int pe", body);
        }
        let body = format!("return nvshmem_ox::tile_broadcast({scope}, team, {tiles});");
        call("tile_coll_algo_t", "tile_broadcast".into(), team, "", body);
        for (fold, class) in [("sum", "Sum"), ("min", "Min"), ("max", "Max")] {
            for (kind, last, root) in [
                ("reduce", "", "-1"),
                ("reduce", ", int root", "root"),
                ("rooted_reduce", ", int root", "root"),
            ] {
                let body = format!(
                    "return nvshmem_ox::tile_reduce<oxshmem::{class}>({scope}, team, {tiles}, {root});"
                );
                call(
                    "tile_coll_algo_t",
                    format!("tile_{fold}_{kind}"),
                    team,
                    last,
                    body,
                );
            }
        }
        if let Some(why) = refused("tile_allgather") {
            let body = format!(
                "static_assert(nvshmem_ox::Never<src_tensor_t>::value, \"oxshmem refuses nvshmemx::tile_allgather{suffix}: {why}\"); return NVSHMEMX_ERROR_NOT_SUPPORTED;"
            );
            call("tile_coll_algo_t", "tile_allgather".into(), team, "", body);
        }
        let _ = writeln!(
            text,
            "template <tile_coll_algo_t algo> NVSHMEMI_DEVICE int tile_collective_wait{suffix}(nvshmem_team_t team, uint64_t) {{ return nvshmem_ox::tile_collective_wait({scope}, team); }}"
        );
    }
    text.push_str("\n}\n");
    c::guarded("NVSHMEM_TILES_CUH", "The calls of kernels on tiles.", &text)
}
