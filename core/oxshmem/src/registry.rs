//! The built-in transports: the one place that names them. Best first. Those that need a library or
//! hardware are behind features; loopback needs neither.

use std::sync::Arc;

use oxshmem_transport::Transport;

use crate::{Error, Result};

/// Every transport that this build has.
#[must_use]
pub fn built_in() -> Vec<Arc<dyn Transport>> {
    vec![Arc::new(oxshmem_loopback::Loopback::new())]
}

/// Those of `all` that `wanted` names, in its order.
pub(crate) fn select(
    all: Vec<Arc<dyn Transport>>,
    wanted: Option<&[String]>,
) -> Result<Vec<Arc<dyn Transport>>> {
    let Some(wanted) = wanted else { return Ok(all) };
    wanted
        .iter()
        .map(|name| {
            all.iter()
                .find(|t| t.name() == name)
                .cloned()
                .ok_or_else(|| {
                    let known: Vec<&str> = all.iter().map(|t| t.name()).collect();
                    Error::Config {
                        name: "OXSHMEM_TRANSPORT".into(),
                        value: wanted.join(","),
                        why: format!("there is no transport {name:?}; this build has {known:?}"),
                    }
                })
        })
        .collect()
}
