//! The words of LLVM's text: names, lists, and the places where they end.

/// The name that begins with `@` or `%` at the start of the text, and what is behind it.
pub(super) fn name(text: &str) -> Option<(&str, &str)> {
    let body = text.strip_prefix(['@', '%'])?;
    let length = match body.strip_prefix('"') {
        Some(quoted) => quoted.find('"')? + 2,
        None => body
            .find(|c: char| !(c.is_ascii_alphanumeric() || "_.$-".contains(c)))
            .unwrap_or(body.len()),
    };
    Some(text.split_at(length + 1))
}

/// The index behind the bracket that closes the one at the start of the text.
pub(super) fn closing(text: &str) -> Option<usize> {
    let mut depth = 0;
    let mut quoted = false;
    for (at, c) in text.char_indices() {
        match c {
            '"' => quoted = !quoted,
            '(' | '[' | '{' | '<' if !quoted => depth += 1,
            ')' | ']' | '}' | '>' if !quoted => {
                depth -= 1;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

/// The parts of a list with commas, which brackets and quotes hide.
pub(super) fn parts(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let (mut depth, mut quoted, mut start) = (0, false, 0);
    for (at, c) in text.char_indices() {
        match c {
            '"' => quoted = !quoted,
            '(' | '[' | '{' | '<' if !quoted => depth += 1,
            ')' | ']' | '}' | '>' if !quoted => depth -= 1,
            ',' if depth == 0 && !quoted => {
                found.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    let last = text[start..].trim();
    if !last.is_empty() {
        found.push(last);
    }
    found
}

/// The type at the start of the text, and what is behind it.
pub(super) fn leading_type(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start();
    let length = match text.chars().next()? {
        '{' | '[' | '<' => closing(text)?,
        '%' => name(text)?.0.len(),
        _ => text
            .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
            .unwrap_or(text.len()),
    };
    Some(text.split_at(length))
}

/// A parameter or argument: its type, and the name behind its attributes.
pub(super) fn parameter(text: &str) -> Option<(&str, &str)> {
    let (kind, rest) = leading_type(text)?;
    let at = rest.rfind(['%', '@'])?;
    Some((kind, rest[at..].trim()))
}

/// A function's header line: its name with `@`, and its parameters.
pub(super) fn header(line: &str) -> Option<(&str, &str)> {
    let at = line.find('@')?;
    let (name, rest) = name(&line[at..])?;
    let end = closing(rest)?;
    Some((name, &rest[1..end - 1]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_types_are_split_where_llvm_splits_them() {
        assert_eq!(
            parts("ptr noundef %a, { i64, i32 } %b, ptr byval(%\"struct.a,b\") align 8 %c"),
            [
                "ptr noundef %a",
                "{ i64, i32 } %b",
                "ptr byval(%\"struct.a,b\") align 8 %c"
            ]
        );
        assert_eq!(
            parameter("<2 x float> %s.coerce"),
            Some(("<2 x float>", "%s.coerce"))
        );
        assert_eq!(parameter("i32 noundef signext %0"), Some(("i32", "%0")));
        assert_eq!(
            header("define void @_Z1kPf(ptr noundef %a) #0 {"),
            Some(("@_Z1kPf", "ptr noundef %a"))
        );
    }
}
