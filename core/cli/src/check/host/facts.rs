//! Properties of a host that are compared with those of others.

use std::collections::BTreeMap;

/// Properties that are to be alike on all hosts, by name.
pub type Facts = BTreeMap<String, String>;
