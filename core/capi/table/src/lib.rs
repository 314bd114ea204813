//! The OpenSHMEM C API as one table, and what is generated from it.
//!
//! [`rows`] has a line for each family of functions: how its names are made, of which types there are
//! functions, their parameters in C, and the Rust function that implements them all. [`functions`] expands
//! that to all 1788 functions of OpenSHMEM, and what there is beyond it (`shmemx_`, and
//! functions of types that others' libraries have). From these come
//!
//! - [`exports`], the Rust source of the symbols (`core/capi/build.rs` writes it where the library includes it);
//! - [`headers`], which are checked in at `core/capi/include/` so that they can be read, and which
//!   `cargo run -p oxshmem-capi-table` writes anew; a test tells when they are not current;
//! - [`manual`], the reference pages, likewise in `core/capi/man/`;
//! - [`wrong_calls`], calls that make no sense, which a conformance program makes;
//! - the lists of types over which the conformance programs expand (`oxshmem_types.h`, beside those).
//!
//! To add a function, add a row, and the function that it names to `core/capi/src`.

mod c;
mod exports;
mod generics;
mod headers;
mod inlined;
mod man;
mod pages;
pub mod rows;
pub mod types;
mod wrong;

use rows::{ROWS, Row};
use types::Type;

pub use exports::{exports, version_script};
pub use headers::headers;
pub use man::manual;
pub use wrong::wrong_calls;

/// All that is checked in, by its name in `core/capi/`.
#[must_use]
pub fn files() -> Vec<(String, String)> {
    let headers = headers().into_iter();
    let headers = headers.map(|(name, text)| (format!("include/{name}"), text));
    let pages = manual().into_iter();
    headers
        .chain(pages.map(|(name, text)| (format!("man/{name}"), text)))
        .collect()
}

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
    /// What it returns, in C.
    pub returns: String,
    /// Its parameters, the context first where it has one.
    pub params: Vec<Param>,
    /// Whether it has the context.
    pub ctx: bool,
    /// Of which type of elements it is, if there are several.
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

/// All functions of the API, in the table's order.
#[must_use]
pub fn functions() -> Vec<Function> {
    ROWS.iter().flat_map(expand).collect()
}

/// The functions of a row: of each type, without a context and with one.
fn expand(row: &'static Row) -> Vec<Function> {
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const NAMES: &str = include_str!("../data/names.txt");
    const OTHERS: &str = include_str!("../data/others.txt");

    #[test]
    fn the_table_has_every_name_of_the_specification_and_of_others_and_no_more() {
        let all = functions().into_iter().filter(|f| !f.beyond());
        let (others, of_it): (Vec<_>, Vec<_>) = all.partition(|f| f.row.others_have);
        assert_eq!(NAMES.lines().count(), 1788);
        for (names, functions) in [(NAMES, of_it), (OTHERS, others)] {
            let named: BTreeSet<&str> = names.lines().collect();
            let made: BTreeSet<&str> = functions.iter().map(|f| f.name.as_str()).collect();
            assert_eq!(made.len(), functions.len(), "a name is made twice");
            let missing: Vec<_> = named.difference(&made).collect();
            let extra: Vec<_> = made.difference(&named).collect();
            assert!(missing.is_empty(), "missing: {missing:?}");
            assert!(extra.is_empty(), "extra: {extra:?}");
        }
    }

    #[test]
    fn what_is_checked_in_is_current() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for (name, text) in files() {
            let found = std::fs::read_to_string(folder.join(&name)).unwrap_or_default();
            assert!(
                found == text,
                "core/capi/{name} is not what the table gives; run cargo run -p oxshmem-capi-table"
            );
        }
        // The pages of other sections are written by hand.
        let pages = std::fs::read_dir(folder.join("man")).unwrap();
        let names = pages.map(|page| page.unwrap().file_name().into_string().unwrap());
        let made = names.filter(|name| name == "links" || name.ends_with(".3"));
        assert_eq!(made.count(), manual().len(), "files in core/capi/man/");
    }

    /// The names by which somebody who knows the C API looks for a call of the Rust library.
    #[test]
    fn every_family_is_an_alias_in_the_documentation_of_the_rust_library() {
        // Rust has no such calls.
        const NONE: [&str; 7] = [
            "shmem_ctx_get_team",
            "shmem_info_get_name",
            "shmem_info_get_version",
            "shmem_pcontrol",
            "shmem_query_initialized",
            "shmem_query_thread",
            "shmemx_wtime",
        ];
        let sources =
            sources(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../oxshmem/src"));
        let families = pages::PAGES.iter().flat_map(|page| page.families);
        let missing: Vec<_> = families
            .filter(|family| !NONE.contains(family))
            .filter(|family| !sources.contains(&format!("\"{family}\"")))
            .collect();
        assert!(missing.is_empty(), "no #[doc(alias)] for {missing:?}");
    }

    /// All Rust code in a folder.
    fn sources(folder: &std::path::Path) -> String {
        let mut all = String::new();
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                all.push_str(&sources(&path));
            } else {
                all.push_str(&std::fs::read_to_string(path).unwrap());
            }
        }
        all
    }

    #[test]
    fn every_function_is_on_one_page() {
        let on_pages: Vec<&str> = pages::PAGES
            .iter()
            .flat_map(|page| page.families.iter().copied())
            .collect();
        let described: BTreeSet<_> = on_pages.iter().copied().collect();
        assert_eq!(described.len(), on_pages.len(), "one is on two pages");
        let families: BTreeSet<String> = ROWS.iter().map(man::family).collect();
        let families: BTreeSet<&str> = families.iter().map(String::as_str).collect();
        let differ: Vec<_> = described.symmetric_difference(&families).collect();
        assert!(differ.is_empty(), "{differ:?}");
    }
}
