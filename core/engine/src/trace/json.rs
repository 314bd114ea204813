//! The few forms of JSON that events are made of.

use std::fmt::{self, Display, Write};

/// Words as a JSON string.
#[derive(Debug)]
pub struct Quoted<T>(pub T);

impl<T: Display> Display for Quoted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        write!(Escaped(f), "{}", self.0)?;
        f.write_char('"')
    }
}

struct Escaped<'f, 'b>(&'f mut fmt::Formatter<'b>);

impl Write for Escaped<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let special = |c: char| c == '"' || c == '\\' || c < ' ';
        let mut rest = text;
        while let Some(at) = rest.find(special) {
            let (plain, from) = rest.split_at(at);
            let mut chars = from.chars();
            self.0.write_str(plain)?;
            if let Some(c) = chars.next() {
                write!(self.0, "\\u{:04x}", u32::from(c))?;
            }
            rest = chars.as_str();
        }
        self.0.write_str(rest)
    }
}

/// An event about a PE or one of its tracks, and not of a moment.
pub fn about(pe: usize, track: u64, what: &str, args: fmt::Arguments<'_>) -> String {
    format!("{{\"ph\":\"M\",\"pid\":{pe},\"tid\":{track},\"name\":\"{what}\",\"args\":{{{args}}}}}")
}

/// Nanoseconds as microseconds.
pub(crate) struct Micros(pub u64);

impl Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_back_from_json() {
        for words in ["", "PE 3", "a \"b\" \\ c\n\td\u{1}é", "\\\"", "\u{7f}"] {
            let json = Quoted(words).to_string();
            assert_eq!(
                serde_json::from_str::<String>(&json).unwrap(),
                words,
                "{json}"
            );
        }
    }

    #[test]
    fn nanoseconds_are_thousandths() {
        let shown = [0, 7, 1_000, 12_345_678].map(|ns| Micros(ns).to_string());
        assert_eq!(shown, ["0.000", "0.007", "1.000", "12345.678"]);
    }
}
