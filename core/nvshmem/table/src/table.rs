//! The expansion of the table's rows to all functions.

use crate::c;
use crate::function::{Function, Param};
use crate::rows::{Form, ROWS, Row};
use crate::types::{self, Type};

/// All functions, in the table's order.
#[must_use]
pub fn functions() -> Vec<Function> {
    ROWS.iter().flat_map(expand).collect()
}

/// The functions of a row: of each form, of each type.
fn expand(row: &'static Row) -> impl Iterator<Item = Function> {
    let of_form = move |&form: &Form| {
        types::of(row.types)
            .into_iter()
            .map(move |of| function(row, form, of))
    };
    row.forms.iter().flat_map(of_form)
}

fn function(row: &'static Row, form: Form, of: Option<Type>) -> Function {
    let name = row.name.replace('%', of.map_or("", |of| of.name));
    let name = match (form, name.split_once('_')) {
        (Form::Host | Form::Both | Form::Device, _) | (_, None) => name,
        (_, Some((_, rest))) => {
            let qp = if form.has_qp() { "qp_" } else { "" };
            format!("nvshmemx_{qp}{rest}{}", form.suffix())
        }
    };
    let c_type = of.map_or("void", |of| of.c);
    let mut params = c::params(row.params, c_type);
    let last = match form {
        Form::OnStream => Some(("cudaStream_t", "stream")),
        _ if form.has_qp() => Some(("nvshmemx_qp_handle_t", "qp_index")),
        _ => None,
    };
    params.extend(last.map(|(c, name)| Param {
        c: c.into(),
        name: name.into(),
    }));
    Function {
        name,
        returns: c::with_type(row.returns, c_type),
        params,
        of,
        form,
        row,
    }
}
