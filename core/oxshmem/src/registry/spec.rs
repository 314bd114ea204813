//! Specification of a transport as a user writes it: its name, with the transport that it wraps in parentheses.

use std::fmt;

/// `loopback`, or `weak(loopback)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Spec {
    pub name: String,
    pub inner: Option<Box<Spec>>,
}

/// The deepest nesting: deeper text is a mistake.
const MAX_DEPTH: usize = 4;

impl Spec {
    /// A list, as a user writes it.
    pub(crate) fn list(specs: &[Spec]) -> String {
        let specs = specs.iter().map(Spec::to_string);
        specs.collect::<Vec<_>>().join(",")
    }

    /// Parses a list, separated by commas. The error says in words what is wrong.
    pub(crate) fn parse_list(text: &str) -> Result<Vec<Spec>, String> {
        let mut parser = Parser { rest: text };
        let mut specs = Vec::new();
        loop {
            let spec = parser.spec(0)?;
            if specs.contains(&spec) {
                return Err(format!("{spec} is named twice; name each transport once"));
            }
            specs.push(spec);
            match parser.next() {
                None => return Ok(specs),
                Some(',') => {}
                Some(')') => return Err("a ) has no ( before it".into()),
                Some(other) => {
                    let after = specs.last().map(Spec::to_string).unwrap_or_default();
                    return Err(format!(
                        "{other:?} after {after:?}; a comma goes between transports"
                    ));
                }
            }
        }
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.inner {
            Some(inner) => write!(f, "{}({inner})", self.name),
            None => f.write_str(&self.name),
        }
    }
}

struct Parser<'a> {
    rest: &'a str,
}

impl Parser<'_> {
    /// The next character that is not white space.
    fn next(&mut self) -> Option<char> {
        let mut rest = self.rest.trim_start().chars();
        let next = rest.next();
        self.rest = rest.as_str();
        next
    }

    fn spec(&mut self, depth: usize) -> Result<Spec, String> {
        if depth > MAX_DEPTH {
            return Err(format!(
                "more than {MAX_DEPTH} transports inside one another"
            ));
        }
        let text = self.rest.trim_start();
        let (name, rest) = match text.find([',', '(', ')']) {
            Some(end) => text.split_at(end),
            None => (text, ""),
        };
        self.rest = rest;
        let name = name.trim_end();
        if name.is_empty() {
            return Err("name transports, separated by commas, such as loopback".into());
        }
        if name.contains(char::is_whitespace) {
            return Err(format!(
                "{name:?} has a space in it; commas separate transports"
            ));
        }
        let mut spec = Spec {
            name: name.into(),
            inner: None,
        };
        if self.rest.starts_with('(') {
            self.next();
            spec.inner = Some(Box::new(self.spec(depth + 1)?));
            match self.next() {
                Some(')') => {}
                Some(',') => return Err(format!("{name} goes around one transport, not several")),
                Some(other) => return Err(format!("{other:?} where the ) of {name}( was to come")),
                None => return Err(format!("the ) of {name}( is missing")),
            }
        }
        Ok(spec)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_text_is_read_or_refused_and_what_is_read_prints_to_itself(
            text in "[a-c(), ]{0,24}|\\PC{0,24}"
        ) {
            if let Ok(specs) = Spec::parse_list(&text) {
                let printed = Spec::list(&specs);
                prop_assert_eq!(Spec::parse_list(&printed), Ok(specs));
            }
        }
    }

    #[test]
    fn commas_within_parentheses_do_not_separate() {
        let why = Spec::parse_list("weak(loopback,verbs)").unwrap_err();
        assert!(why.contains("not several"), "{why}");
        let read = Spec::parse_list("weak(loopback), verbs").unwrap();
        assert_eq!(read.len(), 2);
    }

    #[test]
    fn what_makes_no_sense_says_where() {
        for (text, words) in [
            ("", "name transports"),
            ("loopback,,", "name transports"),
            ("weak()", "name transports"),
            ("weak(loopback", "the ) of weak( is missing"),
            ("loopback)", "has no ("),
            ("verbs, loopback,verbs", "verbs is named twice"),
            (
                "weak(loopback),weak( loopback )",
                "weak(loopback) is named twice",
            ),
            ("weak(loopback)verbs", "after \"weak(loopback)\""),
            ("weak(loopback verbs)", "has a space"),
            (&"weak(".repeat(100_000), "inside one another"),
        ] {
            let why = Spec::parse_list(text).unwrap_err();
            assert!(why.contains(words), "{why}");
        }
    }
}
