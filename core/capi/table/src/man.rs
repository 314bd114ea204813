//! The reference pages, as manual pages.

use std::fmt::Write;

use crate::c;
use crate::pages::{PAGES, Page};
use crate::rows::{ROWS, Row};
use crate::table::expand;
use crate::types::{self, Set};

/// All pages: their names in `core/capi/man/`, and their text. Of `links` each line is a page and another call that it is
/// about.
#[must_use]
pub fn manual() -> Vec<(String, String)> {
    let name = |page: &Page| format!("{}.3", page.families[0]);
    let mut links = String::new();
    for page in PAGES {
        for function in rows(page).into_iter().flat_map(expand) {
            if function.name != page.families[0] {
                let _ = writeln!(links, "{} {}", name(page), function.name);
            }
        }
    }
    let pages = PAGES.iter().map(|page| (name(page), text(page)));
    pages.chain([("links".into(), links)]).collect()
}

/// The rows that a page is about.
fn rows(page: &Page) -> Vec<&'static Row> {
    ROWS.iter()
        .filter(|row| page.families.contains(&family(row).as_str()))
        .collect()
}

/// The family of a row: its name without the marks of type and context.
pub(crate) fn family(row: &Row) -> String {
    row.name
        .replace('@', "")
        .replace("_%_", "_")
        .replace('%', "")
}

/// A row's name in a synopsis.
fn shown(row: &Row) -> String {
    let stands = match row.types {
        Set::Mem => "mem",
        Set::Sizes | Set::OldSizes => "SIZE",
        _ => "TYPENAME",
    };
    row.name.replace('@', "").replace('%', stands)
}

fn text(page: &Page) -> String {
    let rows = rows(page);
    let mut names: Vec<String> = page.families.iter().map(|name| (*name).into()).collect();
    for row in &rows {
        // Names with a type or a context are too many to list: they have links.
        let others = expand(row)
            .into_iter()
            .filter(|function| !function.ctx && function.of.is_none_or(|of| of.c == "void"));
        for function in others {
            if !names.contains(&function.name) {
                names.push(function.name);
            }
        }
    }
    let mut text =
        String::from(".\\\" Generated from oxshmem's table (core/capi/table); do not edit.\n");
    let _ = writeln!(text, ".TH {} 3 \"\" oxshmem OpenSHMEM", page.families[0]);
    let _ = writeln!(text, ".SH NAME\n{} \\- {}", names.join(", "), page.about);
    let beyond = page.families[0].starts_with("shmemx_");
    let header = if beyond { "shmemx.h" } else { "shmem.h" };
    let _ = writeln!(text, ".SH SYNOPSIS\n.nf\n#include <{header}>\n");
    for row in rows.iter().filter(|row| !row.others_have) {
        let _ = writeln!(text, "{}", prototype(row));
    }
    let generics: Vec<&str> = rows.iter().filter_map(|row| row.generic).collect();
    let with_ctx = rows.iter().any(|row| row.name.contains('@'));
    if let Some(first) = generics.first() {
        let ctx = if with_ctx { "[ctx, ]" } else { "" };
        let _ = writeln!(
            text,
            "\nIn C11 and C++, for all types: {first}({ctx}...){}",
            if generics.len() > 1 { " and so on" } else { "" }
        );
    }
    text.push_str(".fi\n.SH DESCRIPTION\n");
    text.push_str(&escaped(&page.text.replace("\n\n", "\n.PP\n")));
    text.push('\n');
    if rows.iter().any(|row| row.name.contains('@')) {
        text.push_str(
            ".PP\nThe form of another context is shmem_ctx_X(ctx, ...) for shmem_X(...).\n",
        );
    }
    let mut told = Vec::new();
    for row in &rows {
        let all = types::of(row.types);
        let named: Vec<&str> = all
            .iter()
            .flatten()
            .map(|of| of.name)
            .filter(|name| *name != "mem")
            .collect();
        if named.is_empty() || told.contains(&named) {
            continue;
        }
        let what = match row.types {
            Set::Sizes | Set::OldSizes => "SIZE",
            _ => "TYPENAME",
        };
        let beyond = if row.others_have {
            " also, beyond OpenSHMEM,"
        } else {
            ""
        };
        let _ = writeln!(
            text,
            ".PP\n{what} in {} is{beyond} one of {}.",
            escaped(&shown(row)),
            named.join(", ")
        );
        told.push(named);
    }
    for row in rows.iter().filter(|row| row.deprecated.is_some()) {
        let _ = writeln!(
            text,
            ".PP\n{} is deprecated since OpenSHMEM {}.",
            escaped(&shown(row)),
            row.deprecated.unwrap_or("")
        );
    }
    text.push_str(
        ".SH ERRORS\nA call that cannot be done and gives no status says on standard error what, where and why, and ends the job \
         with status 1.\n.SH SEE ALSO\nThe OpenSHMEM specification, version 1.6, at http://www.openshmem.org\n",
    );
    text
}

fn prototype(row: &Row) -> String {
    let of = match row.types {
        Set::Mem | Set::Sizes | Set::OldSizes => "void",
        _ => "TYPE",
    };
    let params = c::list(&c::params(row.params, of));
    let returns = c::with_type(row.returns, of);
    format!("{}({params});", c::typed(&returns, &shown(row)))
}

/// Text for troff, to which a plain `-` is a hyphen. Requests, lines that begin with a dot, stay as they are.
fn escaped(text: &str) -> String {
    text.replace('-', "\\-")
}
