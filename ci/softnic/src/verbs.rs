//! The exported calls of libibverbs, and the operations behind a context.

pub(crate) mod address;
pub(crate) mod completions;
pub(crate) mod context;
pub(crate) mod control;
pub(crate) mod devices;
pub(crate) mod domains;
pub(crate) mod notices;
pub(crate) mod open;
pub(crate) mod pairs;
pub(crate) mod post;
pub(crate) mod queries;
pub(crate) mod receives;
pub(crate) mod strings;
pub(crate) mod transitions;
