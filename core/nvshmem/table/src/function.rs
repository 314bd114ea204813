//! A function, as C declares it.

use crate::rows::{Form, Row};
use crate::types::Type;

/// A function's parameter.
#[derive(Clone, Debug)]
pub struct Param {
    /// Its type in C.
    pub c: String,
    /// Its name.
    pub name: String,
}

/// A function of the table.
#[derive(Clone, Debug)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// The type that it returns, in C.
    pub returns: String,
    /// Its parameters.
    pub params: Vec<Param>,
    /// The type of its elements; `None` for a function without one.
    pub of: Option<Type>,
    /// Its form.
    pub form: Form,
    /// The row that it is of.
    pub row: &'static Row,
}

impl Function {
    /// Whether it is of the extensions, which `nvshmemx.h` declares.
    #[must_use]
    pub fn is_extension(&self) -> bool {
        self.name.starts_with("nvshmemx_")
    }
}
