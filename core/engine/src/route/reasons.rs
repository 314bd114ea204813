//! The reasons of route selection in words: each text and each list of texts kept once.

use std::collections::HashMap;

/// One transport's answer about one PE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteCandidate {
    /// The transport.
    pub transport: String,
    /// Its answer, in words.
    pub answer: String,
}

/// A text's number.
type Text = u32;
/// Transports' names with their answers.
type List = Box<[(Text, Text)]>;

/// All lists of reasons, by number.
#[derive(Debug)]
pub struct Reasons {
    texts: Box<[Box<str>]>,
    lists: Box<[List]>,
}

impl Reasons {
    /// The list with this number, in words.
    pub(crate) fn list(&self, number: u32) -> Vec<RouteCandidate> {
        let text = |at: Text| {
            let text = self.texts.get(at as usize);
            text.map(|text| text.to_string()).unwrap_or_default()
        };
        let list = self.lists.get(number as usize);
        list.into_iter()
            .flatten()
            .map(|&(name, answer)| RouteCandidate {
                transport: text(name),
                answer: text(answer),
            })
            .collect()
    }
}

/// Gives each distinct text and list a number.
#[derive(Debug, Default)]
pub struct Interner {
    texts: HashMap<Box<str>, Text>,
    lists: HashMap<List, u32>,
}

impl Interner {
    fn text(&mut self, text: &str) -> Text {
        if let Some(&known) = self.texts.get(text) {
            return known;
        }
        let number = self.texts.len() as Text;
        self.texts.insert(text.into(), number);
        number
    }

    /// The number of a list of (transport, answer).
    pub fn list(&mut self, answers: &[(&str, &str)]) -> u32 {
        let list: List = answers
            .iter()
            .map(|(name, answer)| (self.text(name), self.text(answer)))
            .collect();
        let next = self.lists.len() as u32;
        *self.lists.entry(list).or_insert(next)
    }

    /// The texts and lists, each once.
    pub fn finish(self) -> Reasons {
        Reasons {
            texts: by_number(self.texts),
            lists: by_number(self.lists),
        }
    }
}

fn by_number<T>(map: HashMap<T, u32>) -> Box<[T]> {
    let mut all: Vec<(u32, T)> = map.into_iter().map(|(thing, at)| (at, thing)).collect();
    all.sort_unstable_by_key(|(at, _)| *at);
    all.into_iter().map(|(_, thing)| thing).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_lists_are_kept_once_and_come_back_as_given() {
        let mut interner = Interner::default();
        let local = [("a", "chosen")];
        let remote = [("a", "another host"), ("b", "chosen")];
        let numbers: Vec<u32> = [&local[..], &remote, &local, &remote, &[]]
            .iter()
            .map(|list| interner.list(list))
            .collect();
        assert_eq!(numbers, [0, 1, 0, 1, 2]);
        let reasons = interner.finish();
        assert_eq!(reasons.texts.len(), 4);
        let words = |number| -> Vec<(String, String)> {
            let list = reasons.list(number).into_iter();
            list.map(|c| (c.transport, c.answer)).collect()
        };
        let owned = |(a, b): &(&str, &str)| (a.to_string(), b.to_string());
        assert_eq!(words(1), remote.iter().map(owned).collect::<Vec<_>>());
        assert_eq!(words(0), local.iter().map(owned).collect::<Vec<_>>());
        assert!(words(2).is_empty() && words(9).is_empty());
    }
}
