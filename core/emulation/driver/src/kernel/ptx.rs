//! The declarations in PTX text: entries with the sizes of their parameters, and variables.

use crate::call::Outcome;
use crate::code::Code;

/// The newest PTX version that a driver of CUDA 12.8 accepts.
const NEWEST: (u32, u32) = (8, 7);
/// The devices' compute capability, in the form of PTX targets.
const TARGET: u32 = 90;

/// A kernel as PTX declares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) name: String,
    /// Bytes of each parameter.
    pub(crate) parameters: Vec<usize>,
}

/// A variable as PTX declares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Variable {
    pub(crate) name: String,
    pub(crate) size: usize,
}

/// The declarations of one module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Declarations {
    pub(crate) entries: Vec<Entry>,
    pub(crate) variables: Vec<Variable>,
}

/// The reason why text is refused, with words for the JIT's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) code: Code,
    pub(crate) words: String,
}

fn refused(code: Code, words: impl Into<String>) -> Refused {
    Refused {
        code,
        words: words.into(),
    }
}

/// Text without comments.
fn strip(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('/') {
        let (before, after) = rest.split_at(at);
        plain.push_str(before);
        let end = if after.starts_with("//") {
            after.find('\n').unwrap_or(after.len())
        } else if after.starts_with("/*") {
            after.find("*/").map_or(after.len(), |end| end + 2)
        } else {
            plain.push('/');
            1
        };
        plain.push(' ');
        rest = &after[end..];
    }
    plain.push_str(rest);
    plain
}

fn size_of_type(word: &str) -> Option<usize> {
    let kind = word.strip_prefix('.')?;
    let digits = kind.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    match digits.parse::<usize>().ok()? {
        bits @ (8 | 16 | 32 | 64 | 128) => Some(bits / 8),
        _ => None,
    }
}

/// Name and bytes of a declaration such as `.param .align 8 .b8 name[48]`.
fn sized(declaration: &str) -> Option<(String, usize)> {
    // A variable's initial value is ignored.
    let declared = declaration.split('=').next().unwrap_or_default();
    let mut element = None;
    let mut name = None;
    for word in declared.split_whitespace() {
        match size_of_type(word) {
            Some(size) => element = Some(size),
            None if element.is_some() && !word.starts_with('.') && name.is_none() => {
                name = Some(word);
            }
            None => {}
        }
    }
    let (element, name) = (element?, name?);
    match name.split_once('[') {
        None => Some((name.to_owned(), element)),
        Some((name, count)) => {
            let count: usize = count.trim_end_matches(']').parse().ok()?;
            Some((name.to_owned(), element * count))
        }
    }
}

fn entry(text: &str) -> Option<Entry> {
    let text = text.trim_start();
    let end = text.find(|c: char| c.is_whitespace() || "({;".contains(c))?;
    let (name, rest) = text.split_at(end);
    let rest = rest.trim_start();
    let parameters = match rest.strip_prefix('(') {
        None => Vec::new(),
        Some(list) => list[..list.find(')')?]
            .split(',')
            .filter(|parameter| !parameter.trim().is_empty())
            .map(|parameter| sized(parameter).map(|(_, size)| size))
            .collect::<Option<_>>()?,
    };
    Some(Entry {
        name: name.to_owned(),
        parameters,
    })
}

fn check_version(text: &str) -> Result<(), Refused> {
    let missing = || refused(Code::INVALID_PTX, "no .version directive: this is not PTX");
    let version = text.split_once(".version").ok_or_else(missing)?.1;
    let version = version.split_whitespace().next().ok_or_else(missing)?;
    let (major, minor) = version.split_once('.').ok_or_else(missing)?;
    let version = (
        major.parse().map_err(|_| missing())?,
        minor.parse().map_err(|_| missing())?,
    );
    if version > NEWEST {
        let (major, minor) = version;
        return Err(refused(
            Code::UNSUPPORTED_PTX_VERSION,
            format!(
                "PTX .version {major}.{minor} is newer than this driver's {}.{}",
                NEWEST.0, NEWEST.1
            ),
        ));
    }
    let target = text
        .split_once(".target")
        .and_then(|(_, rest)| rest.split_whitespace().next());
    let target = target.unwrap_or_default().trim_end_matches(',');
    let number = target.strip_prefix("sm_").unwrap_or_default();
    let exact = number.ends_with('a') || number.ends_with('f');
    match number.trim_end_matches(['a', 'f']).parse::<u32>() {
        Ok(capability) if capability <= TARGET && (!exact || capability == TARGET) => Ok(()),
        _ => Err(refused(
            Code::INVALID_PTX,
            format!(".target '{target}' can not run on a device of capability 9.0"),
        )),
    }
}

/// Reads the declarations of a module.
pub(crate) fn parse(text: &str) -> Result<Declarations, Refused> {
    let text = strip(text);
    check_version(&text)?;
    let mut declarations = Declarations::default();
    let mut rest = text.as_str();
    while let Some(at) = rest.find(".entry") {
        rest = &rest[at + ".entry".len()..];
        let found = entry(rest)
            .ok_or_else(|| refused(Code::INVALID_PTX, "an .entry without a readable head"))?;
        declarations.entries.push(found);
    }
    // Variables stand outside of bodies.
    let mut depth = 0usize;
    for statement in text.split_inclusive([';', '{', '}']) {
        let (body, end) = statement.split_at(statement.len() - 1);
        let outside = depth == 0 && !body.contains(".entry") && !body.contains(".func");
        let space = [".global ", ".const "].iter().find_map(|space| {
            let at = body.find(space)?;
            Some((at, space.len()))
        });
        if let Some((at, length)) = space
            && outside
            && !body.contains(".extern")
            && let Some((name, size)) = sized(&body[at + length..])
        {
            declarations.variables.push(Variable { name, size });
        }
        match end {
            "{" => depth += 1,
            "}" => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    Ok(declarations)
}

/// The text of a module image, which must be PTX: GPU binaries cannot be executed here.
pub(crate) fn text(image: crate::call::In<u8>) -> Outcome<String> {
    if image.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    let head = [image.at(0)?, image.at(1).unwrap_or(0)];
    // ELF (a cubin), or the fat binary's magic numbers.
    if head == [0x7f, b'E'] || head == [0x50, 0xed] || head == [0xb1, 0x43] {
        return Err(Code::NO_BINARY_FOR_GPU);
    }
    image.text().map_err(|_| Code::INVALID_IMAGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = ".version 8.0\n.target sm_70\n.address_size 64\n";

    #[test]
    fn entries_variables_and_sizes_are_found() {
        let text = format!(
            "// a comment with .entry nothing(\n{HEAD}
            .visible .const .align 8 .b8 state[48];
            .global .align 4 .u32 count = 7;
            .extern .global .align 4 .u32 elsewhere;
            .visible .entry put(
                .param .u64 put_param_0, /* .u64 more, */
                .param .align 8 .b8 put_param_1[24],
                .param .f32 put_param_2
            )
            .maxntid 128, 1, 1
            {{ .reg .b64 %rd<3>; ld.global .u32 %r1, [%rd1]; ret; }}
            .weak .entry nothing() {{ ret; }}
            .entry bare {{ ret; }}"
        );
        let found = parse(&text).unwrap();
        let entry = |name: &str, parameters: &[usize]| Entry {
            name: name.to_owned(),
            parameters: parameters.to_vec(),
        };
        assert_eq!(
            found.entries,
            [
                entry("put", &[8, 24, 4]),
                entry("nothing", &[]),
                entry("bare", &[])
            ]
        );
        let variable = |name: &str, size| Variable {
            name: name.to_owned(),
            size,
        };
        assert_eq!(
            found.variables,
            [variable("state", 48), variable("count", 4)]
        );
    }

    #[test]
    fn what_the_real_driver_refuses_is_refused() {
        let code = |text: &str| parse(text).unwrap_err().code;
        assert_eq!(code("not PTX at all"), Code::INVALID_PTX);
        assert_eq!(
            code(".version 9.0\n.target sm_75\n"),
            Code::UNSUPPORTED_PTX_VERSION
        );
        assert_eq!(code(".version 8.0\n.target sm_100\n"), Code::INVALID_PTX);
        assert_eq!(code(".version 8.0\n.target sm_80a\n"), Code::INVALID_PTX);
        assert!(parse(".version 8.7\n.target sm_90a\n").is_ok());
    }
}
