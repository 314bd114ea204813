//! A function of the API, as C declares it.

use crate::rows::Row;
use crate::types::Type;

/// A function's parameter.
#[derive(Clone, Debug)]
pub struct Param {
    /// Its type in C.
    pub c: String,
    /// Its name.
    pub name: String,
}

/// A function of the API.
#[derive(Clone, Debug)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// The type that it returns, in C.
    pub returns: String,
    /// Its parameters, the context first where it has one.
    pub params: Vec<Param>,
    /// Whether it has the context.
    pub ctx: bool,
    /// The type of its elements; `None` for a function without one.
    pub of: Option<Type>,
    /// The row that it is of.
    pub row: &'static Row,
}

impl Function {
    /// Whether it is oxshmem's own, and no call of OpenSHMEM: `shmemx.h` declares these.
    #[must_use]
    pub fn beyond(&self) -> bool {
        self.name.starts_with("shmemx_")
    }

    /// Its twin for tools, if it has one: all do but the oldest.
    #[must_use]
    pub fn twin(&self) -> Option<String> {
        let has = self.name.starts_with("shmem_") || self.beyond();
        has.then(|| format!("p{}", self.name))
    }
}
