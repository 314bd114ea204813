//! The source that is compiled: the device header with its PTX instructions as calls, and with every change of [`changes`], one
//! of which may be chosen when it runs.

use std::cmp::Reverse;

use crate::changes::{Change, changes};

/// The header for the simulation.
pub fn header() -> String {
    let all = changes();
    // Long pieces first: a short one may lie in them.
    let mut by_length: Vec<(usize, &Change)> = all.iter().enumerate().collect();
    by_length.sort_by_key(|(_, change)| Reverse(change.from.len()));
    let header = oxshmem_device_library::HEADER.to_string();
    let changed = by_length
        .into_iter()
        .fold(header, |header, (number, change)| {
            changed(&header, number, change)
        });
    let mut whole = include_str!("shim.h").to_string();
    whole.push_str(&with_calls(&changed));
    whole
}

/// The text with one more change, which is made where `weak_change` has this number.
fn changed(header: &str, number: usize, change: &Change) -> String {
    let Change {
        name,
        part,
        from,
        nth,
        to,
        ..
    } = change;
    assert_eq!(
        header.matches(part).count(),
        1,
        "{name}: `{part}` in the header"
    );
    let start = header.find(part).unwrap();
    let places: Vec<usize> = header[start..]
        .match_indices(from)
        .map(|(at, _)| start + at)
        .collect();
    let at = *places
        .get(*nth)
        .unwrap_or_else(|| panic!("{name}: no `{from}` behind `{part}`"));
    let (before, rest) = header.split_at(at);
    let rest = &rest[from.len()..];
    let chosen = match from.ends_with(';') {
        true if to.is_empty() => format!("if (weak_change != {number}) {from}"),
        true => format!("if (weak_change != {number}) {from} else {to}"),
        false => format!("(weak_change != {number} ? {from} : {to})"),
    };
    format!("{before}{chosen}{rest}")
}

/// The text with a call in place of each `asm(…)` and `asm volatile(…)`.
fn with_calls(header: &str) -> String {
    let header = header.replace("asm volatile(", "asm(");
    let mut made = String::new();
    let mut rest = header.as_str();
    while let Some(at) = rest.find("asm(") {
        made.push_str(&rest[..at]);
        let (inner, behind) = parenthesised(&rest[at + "asm(".len()..]);
        made.push_str(&call(&inner.replace("\\\n", "\n").replace('\n', " ")));
        rest = behind;
    }
    made.push_str(rest);
    assert!(!made.contains("asm "), "an instruction is left");
    made
}

/// The text up to the parenthesis that closes, and that behind it. Strings have none.
fn parenthesised(text: &str) -> (&str, &str) {
    let mut depth = 1;
    for (at, c) in text.char_indices() {
        depth += match c {
            '(' => 1,
            ')' => -1,
            _ => 0,
        };
        if depth == 0 {
            return (&text[..at], &text[at + 1..]);
        }
    }
    panic!("an instruction does not end: {text:.80}");
}

/// The text at the separators that stand outside of strings and parentheses.
fn split(text: &str, separator: char) -> Vec<&str> {
    let (mut parts, mut start, mut depth, mut in_string) = (Vec::new(), 0, 0, false);
    for (at, c) in text.char_indices() {
        match c {
            '"' => in_string = !in_string,
            '(' if !in_string => depth += 1,
            ')' if !in_string => depth -= 1,
            _ if c == separator && !in_string && depth == 0 => {
                parts.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    parts.retain(|part| !part.is_empty() || separator == ':');
    parts
}

/// `"ld.relaxed.sys.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory"` as a call.
fn call(instruction: &str) -> String {
    let sections = split(instruction, ':');
    let operand = |constraint: &str| {
        let open = constraint.rfind('"').map_or(0, |at| at + 1);
        let open = open
            + constraint[open..]
                .find('(')
                .expect("an operand in parentheses");
        let (inner, _) = parenthesised(&constraint[open + 1..]);
        inner.to_string()
    };
    let of = |section: usize| split(sections.get(section).copied().unwrap_or(""), ',');
    let outputs = of(1)
        .into_iter()
        .map(|output| format!("weak_out({})", operand(output)));
    let inputs = of(2).into_iter().map(operand);
    let arguments: Vec<String> = [sections[0].to_string()]
        .into_iter()
        .chain(outputs)
        .chain(inputs)
        .collect();
    format!("weak_ptx({})", arguments.join(", "))
}
