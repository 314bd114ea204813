//! The form of both versions' messages: a command, and values by name.

use super::version::unexpected;
use crate::error::{Error, Result};

/// A message's `name=value` pairs, in order. The first is the command.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Fields(Vec<(String, String)>);

impl Fields {
    /// A line of PMI-1, without its end: pairs between spaces. A word without `=` belongs to the
    /// value before it (process managers write messages so).
    pub(super) fn of_line(line: &[u8]) -> Fields {
        let mut fields = Vec::<(String, String)>::new();
        for word in String::from_utf8_lossy(line).split_ascii_whitespace() {
            match (word.split_once('='), fields.last_mut()) {
                (Some((name, value)), _) => fields.push((name.to_owned(), value.to_owned())),
                (None, Some((_, value))) => {
                    value.push(' ');
                    value.push_str(word);
                }
                (None, None) => fields.push((word.to_owned(), String::new())),
            }
        }
        Fields(fields)
    }

    /// A message of PMI-2, without its length: each pair ends with `;`, and `;;` is one within a
    /// value.
    pub(super) fn of_message(message: &[u8]) -> Fields {
        let text = String::from_utf8_lossy(message);
        let mut fields = Vec::new();
        let mut pair = String::new();
        let mut characters = text.chars().peekable();
        while let Some(character) = characters.next() {
            if character != ';' || characters.next_if_eq(&';').is_some() {
                pair.push(character);
            } else {
                fields.extend(split(&std::mem::take(&mut pair)));
            }
        }
        fields.extend(split(&pair));
        Fields(fields)
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0
            .iter()
            .find_map(|(found, value)| (found == name).then_some(value.as_str()))
    }

    /// This message, if it is the answer `command` and reports success.
    pub(super) fn expect(
        self,
        interface: &'static str,
        step: &'static str,
        command: &str,
    ) -> Result<Fields> {
        let cut = |text: &str| text.chars().take(80).collect::<String>();
        let got = self.get("cmd").unwrap_or("none");
        if got != command {
            let what = format!("the answer is the command {:?}, not {command:?}", cut(got));
            return Err(unexpected(interface, step, what));
        }
        match self.get("rc") {
            None | Some("0") => Ok(self),
            Some(code) => {
                let words = self
                    .get("errmsg")
                    .or(self.get("msg"))
                    .unwrap_or("no reason");
                Err(Error::ProcessManager {
                    interface,
                    step,
                    why: format!(
                        "the process manager says {:?} (rc={:?})",
                        cut(words),
                        cut(code)
                    ),
                    hint: "see what it printed itself",
                })
            }
        }
    }
}

fn split(pair: &str) -> Option<(String, String)> {
    let pair = pair.trim_matches(|c: char| c.is_ascii_whitespace() || c == '\0');
    let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
    (!name.is_empty()).then(|| (name.to_owned(), value.to_owned()))
}

/// A PMI-2 message of these pairs, with its length before it.
pub(super) fn message(pairs: &[(&str, &str)]) -> Vec<u8> {
    let body: String = pairs
        .iter()
        .map(|(name, value)| format!("{name}={};", value.replace(';', ";;")))
        .collect();
    format!("{:<6}{body}", body.len()).into_bytes()
}

/// The length that six bytes announce, padded on either side.
pub(super) fn length(header: &[u8]) -> Option<usize> {
    std::str::from_utf8(header).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_line_is_pairs_between_spaces() {
        let fields = Fields::of_line(b"cmd=get_result rc=0 msg=key found value=a/b=c,[::1]:5");
        assert_eq!(fields.get("msg"), Some("key found"));
        assert_eq!(fields.get("value"), Some("a/b=c,[::1]:5"));
        assert_eq!(fields.get("nothing"), None);
    }

    #[test]
    fn lengths_are_read_from_either_padding() {
        assert_eq!(length(b"42    "), Some(42));
        assert_eq!(length(b"    42"), Some(42));
        assert_eq!(length(b"000042"), Some(42));
        assert_eq!(length(b"4 2   "), None);
        assert_eq!(length(b"-1    "), None);
    }

    #[test]
    fn a_refusal_comes_with_the_managers_words() {
        let refused = Fields::of_line(b"cmd=put_result rc=-1 msg=duplicate_key");
        let error = refused.expect("PMI-1", "publishing", "put_result");
        let words = error.unwrap_err().to_string();
        assert!(words.contains("duplicate_key"), "{words}");
        let other = Fields::of_line(b"cmd=tell value=secret");
        let error = other.expect("PMI-1", "publishing", "put_result");
        let words = error.unwrap_err().to_string();
        assert!(
            words.contains("tell") && !words.contains("secret"),
            "{words}"
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_parsed_without_panic(bytes: Vec<u8>) {
            let _ = Fields::of_line(&bytes).expect("PMI-1", "testing", "x");
            let _ = Fields::of_message(&bytes).expect("PMI-2", "testing", "x");
            let _ = length(&bytes);
        }

        #[test]
        fn a_message_survives_its_wire(value in "[a-z;=/:,\\[\\]]{1,200}", key in "[a-z]{1,20}") {
            // A semicolon at the front of a value and one at its end are the wire's hard cases.
            let bytes = message(&[("cmd", "kvs-put"), (&key, &value)]);
            let (header, body) = bytes.split_at(6);
            prop_assert_eq!(length(header), Some(body.len()));
            let fields = Fields::of_message(body);
            prop_assert_eq!(fields.get("cmd"), Some("kvs-put"));
            if key != "cmd" {
                prop_assert_eq!(fields.get(&key), Some(value.as_str()));
            }
        }
    }
}
