//! Objects, libraries and archives of them: the parts that a link looks at.

/// The object or library that a file is, or those in an archive.
pub(crate) fn files(bytes: &[u8]) -> Vec<&[u8]> {
    match bytes.strip_prefix(b"!<arch>\n") {
        Some(rest) => members(rest),
        None => vec![bytes],
    }
}

/// The strings in the tables of symbols of a file, and of those in an archive.
pub(crate) fn names(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let tables = files(bytes)
        .into_iter()
        .flat_map(|file| [".strtab", ".dynstr"].map(|name| section(file, name)));
    let tables = tables.flatten();
    tables.flat_map(|names| names.split(|byte| *byte == 0))
}

/// The files in an archive.
fn members(mut rest: &[u8]) -> Vec<&[u8]> {
    let mut found = Vec::new();
    while rest.len() >= 60 {
        let size = std::str::from_utf8(&rest[48..58])
            .ok()
            .and_then(|text| text.trim().parse::<usize>().ok());
        let Some(body) = size.and_then(|size| rest.get(60..)?.get(..size)) else {
            break;
        };
        found.push(body);
        rest = rest
            .get(60 + body.len().next_multiple_of(2)..)
            .unwrap_or_default();
    }
    found
}

pub(crate) fn number_at(bytes: &[u8], at: usize, size: usize) -> u64 {
    let field = bytes
        .get(at..)
        .and_then(|rest| rest.get(..size))
        .unwrap_or_default();
    field
        .iter()
        .rev()
        .fold(0, |sum, byte| (sum << 8) | u64::from(*byte))
}

/// A section of a file in the format ELF, for x86-64.
pub(crate) fn section<'a>(file: &'a [u8], wanted: &str) -> Option<&'a [u8]> {
    if !file.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let table = number_at(file, 40, 8) as usize;
    let entry = number_at(file, 58, 2) as usize;
    let header = |index: usize| {
        file.get(table.checked_add(index.checked_mul(entry)?)?..)?
            .get(..entry)
    };
    let bytes = |header: &[u8]| {
        let (offset, size) = (
            number_at(header, 24, 8) as usize,
            number_at(header, 32, 8) as usize,
        );
        file.get(offset..offset.checked_add(size)?)
    };
    let names = bytes(header(number_at(file, 62, 2) as usize)?)?;
    (0..number_at(file, 60, 2) as usize)
        .filter_map(header)
        .find_map(|header| {
            let name = names.get(number_at(header, 0, 4) as usize..)?;
            let rest = name.strip_prefix(wanted.as_bytes())?;
            if rest.first() == Some(&0) {
                bytes(header)
            } else {
                None
            }
        })
}
