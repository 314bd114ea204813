//! The expansion of the table's rows to all functions.

use crate::c;
use crate::function::{Function, Param};
use crate::rows::{ROWS, Row};
use crate::types;

/// All functions of the API, in the table's order.
#[must_use]
pub fn functions() -> Vec<Function> {
    ROWS.iter().flat_map(expand).collect()
}

/// The functions of a row: of each type, without a context and with one.
pub(crate) fn expand(row: &'static Row) -> Vec<Function> {
    let mut all = Vec::new();
    for ctx in [false, true] {
        if ctx && !row.name.contains('@') {
            continue;
        }
        for of in types::of(row.types) {
            let name = row.name.replace('@', if ctx { "ctx_" } else { "" });
            let name = name.replace('%', of.map_or("", |of| of.name));
            let c_type = of.map_or("void", |of| of.c);
            let returns = c::with_type(row.returns, c_type);
            let context = ctx.then(|| Param {
                c: "shmem_ctx_t".into(),
                name: "ctx".into(),
            });
            let params = c::params(row.params, c_type);
            all.push(Function {
                name,
                returns,
                params: context.into_iter().chain(params).collect(),
                ctx,
                of,
                row,
            });
        }
    }
    all
}
