//! Stubs: the host's functions that launch kernels, from which the form of kernels' parameters is read.
//!
//! A stub has the parameters of its kernel in the form in which functions are called: an object may
//! come in one piece or in two, in memory, or, if it is empty, not at all. It stores each into a slot
//! and puts the slots' addresses into an array. So it shows which pieces belong to which parameter.

use std::collections::HashMap;

use super::text;
use super::types::Types;
use crate::error::Failure;

/// A kernel with its parameters.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Kernel {
    /// Its name on the device.
    pub(crate) name: String,
    /// Bytes of each parameter.
    pub(crate) sizes: Vec<u64>,
    /// For each argument of the device function: the parameter that it is a piece of, and where in it.
    pub(crate) pieces: Vec<Piece>,
}

/// The origin of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) parameter: usize,
    pub(crate) offset: u64,
    /// Whether the argument is the parameter's address, and not its value.
    pub(crate) in_memory: bool,
}

/// All kernels that the host half of a file registers.
pub(crate) fn kernels(host: &str) -> Result<Vec<Kernel>, Failure> {
    let types = Types::read(host);
    let strings = strings(host);
    let bodies = bodies(host);
    let mut found = Vec::new();
    for line in host.lines() {
        let Some(at) = line.find("@__cudaRegisterFunction(") else {
            continue;
        };
        let list = &line[at + "@__cudaRegisterFunction".len()..];
        if line.starts_with("declare") {
            continue;
        }
        let end = text::closing(list).unwrap_or(list.len());
        let arguments = text::parts(&list[1..end.max(2) - 1]);
        let named = |index: usize| {
            arguments
                .get(index)
                .and_then(|a| text::parameter(a))
                .map(|p| p.1)
        };
        let (Some(stub), Some(string)) = (named(1), named(2)) else {
            continue;
        };
        let name = strings.get(string).copied().unwrap_or_default();
        let body = bodies.get(stub);
        let kernel = body.and_then(|body| read(body, name, &types)).ok_or_else(|| {
            Failure::new(format!(
                "the parameters of kernel {name} are not understood: an object with a copy constructor or a destructor \
                 of its own can not be a kernel's parameter here; pass a plain object or a pointer"
            ))
        })?;
        found.push(kernel);
    }
    Ok(found)
}

/// Constant strings by their names.
fn strings(host: &str) -> HashMap<&str, &str> {
    let constants = host.lines().filter(|line| line.starts_with('@'));
    constants
        .filter_map(|line| {
            let (name, rest) = line.split_once(" = ")?;
            let (_, string) = rest.split_once(" c\"")?;
            Some((name, string.split("\\00\"").next()?))
        })
        .collect()
}

/// Functions with their header lines, by their names.
fn bodies(host: &str) -> HashMap<&str, &str> {
    let mut found = HashMap::new();
    let mut rest = host;
    while let Some(at) = rest.find("\ndefine ") {
        let body = &rest[at + 1..];
        let end = body.find("\n}").unwrap_or(body.len());
        let line = body.lines().next().unwrap_or_default();
        if let Some((name, _)) = text::header(line) {
            found.insert(name, &body[..end]);
        }
        rest = &body[end..];
    }
    found
}

/// Places in slots: a slot and an offset in it.
type Places<'a> = HashMap<&'a str, (&'a str, u64)>;

fn read(body: &str, name: &str, types: &Types<'_>) -> Option<Kernel> {
    let (_, parameters) = text::header(body.lines().next()?)?;
    let arguments: Vec<(&str, &str, bool)> = text::parts(parameters)
        .into_iter()
        .map(|p| text::parameter(p).map(|(kind, name)| (kind, name, p.contains("byval("))))
        .collect::<Option<_>>()?;
    let mut kinds: HashMap<&str, &str> = HashMap::new();
    for parameter in text::parts(parameters) {
        if let Some(at) = parameter.find("byval(") {
            let kind = &parameter[at + 5..];
            let end = text::closing(kind)?;
            kinds.insert(text::parameter(parameter)?.1, &kind[1..end - 1]);
        }
    }
    let mut places = Places::new();
    let mut stored: HashMap<&str, (&str, u64)> = HashMap::new();
    let mut widened: HashMap<&str, &str> = HashMap::new();
    let mut slots: Vec<&str> = Vec::new();
    for line in body.lines().skip(1).map(str::trim) {
        if line.contains("@__cudaPopCallConfiguration") {
            break;
        }
        if let Some((to, rest)) = line.split_once(" = alloca ") {
            places.insert(to, (to, 0));
            kinds.insert(to, text::leading_type(rest)?.0);
        } else if let Some((to, rest)) = line.split_once(" = getelementptr ") {
            element(to, rest, &mut places, types);
        } else if let Some((to, rest)) = line.split_once(" = zext ") {
            widened.insert(to, text::parameter(rest.split(" to ").next()?)?.1);
        } else if let Some(rest) = line.strip_prefix("store ") {
            let operands = text::parts(rest);
            let value = text::parameter(operands.first()?)?.1;
            let target = text::parameter(operands.get(1)?)?.1;
            let Some(place) = places.get(target).copied() else {
                continue;
            };
            if place.0 == "%kernel_args" {
                slots.push(value);
            }
            stored.insert(widened.get(value).copied().unwrap_or(value), place);
        } else if line.contains("@llvm.memcpy") {
            let list = &line[line.find('(')?..];
            let operands = text::parts(&list[1..text::closing(list)? - 1]);
            let (to, from) = (
                text::parameter(operands.first()?)?.1,
                text::parameter(operands.get(1)?)?.1,
            );
            // An object in pieces is put together elsewhere first.
            for place in stored.values_mut().filter(|place| place.0 == from) {
                place.0 = to;
            }
        }
    }
    let mut pieces = Vec::new();
    for (_, argument, by_value) in &arguments {
        let (slot, offset) = if *by_value {
            (*argument, 0)
        } else {
            *stored.get(argument)?
        };
        let parameter = slots.iter().position(|other| *other == slot)?;
        pieces.push(Piece {
            parameter,
            offset,
            in_memory: *by_value,
        });
    }
    let sizes = slots
        .iter()
        .map(|slot| {
            kinds
                .get(slot)
                .and_then(|kind| types.layout(kind))
                .map(|layout| layout.size)
        })
        .collect::<Option<_>>()?;
    Some(Kernel {
        name: name.to_owned(),
        sizes,
        pieces,
    })
}

/// Notes the place that a `getelementptr` computes.
fn element<'a>(to: &'a str, rest: &'a str, places: &mut Places<'a>, types: &Types<'_>) {
    let operands = text::parts(rest.trim_start_matches("inbounds "));
    let Some((slot, before)) = operands
        .get(1)
        .and_then(|base| text::parameter(base))
        .and_then(|(_, base)| places.get(base).copied())
    else {
        return;
    };
    let last = operands.last().and_then(|o| o.rsplit(' ').next());
    let index: u64 = last.and_then(|word| word.parse().ok()).unwrap_or(0);
    // A piece behind the first: the members before it are one, of at most eight bytes.
    let kind = operands.first().copied().unwrap_or_default();
    let offset = if index == 0 || !kind.starts_with('{') {
        0
    } else {
        let members = text::parts(&kind[1..kind.len() - 1]);
        let first = members
            .first()
            .and_then(|m| types.layout(m))
            .map_or(8, |l| l.size);
        let second = members
            .get(1)
            .and_then(|m| types.layout(m))
            .map_or(8, |l| l.size);
        first.next_multiple_of(second.max(1))
    };
    places.insert(to, (slot, before + offset));
}
