//! The identity of this host.

use crate::error::{Error, Result};
use crate::tree::Tree;

const BOOT_ID: &str = "proc/sys/kernel/random/boot_id";

/// The running kernel's boot id: equal for two processes only if they run on one kernel.
///
/// Containers share it with their host; two virtual machines never do.
///
/// # Errors
/// [`Error::Missing`] or [`Error::Read`] where `/proc` is not mounted or may not be read;
/// [`Error::Malformed`] where the file is empty.
pub fn boot_id() -> Result<String> {
    boot_id_of(Tree::live())?.ok_or_else(|| Error::Missing {
        path: Tree::live().path(BOOT_ID),
    })
}

/// The host's name, or `unknown` where it cannot be read. For people: it identifies nothing.
pub fn hostname() -> String {
    hostname_of(Tree::live())
}

pub(crate) fn boot_id_of(tree: Tree<'_>) -> Result<Option<String>> {
    match tree.text(BOOT_ID)? {
        Some(text) if text.trim().is_empty() => Err(tree.malformed(BOOT_ID, "it is empty".into())),
        text => Ok(text.map(|text| text.trim().to_owned())),
    }
}

pub(crate) fn hostname_of(tree: Tree<'_>) -> String {
    let text = tree
        .text("proc/sys/kernel/hostname")
        .ok()
        .flatten()
        .unwrap_or_default();
    match text.trim() {
        "" => "unknown".to_owned(),
        name => name.to_owned(),
    }
}
