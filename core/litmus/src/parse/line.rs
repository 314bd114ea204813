//! One line of a text as tokens, each with its column.

use crate::error::Error;

/// A run of characters without white space.
#[derive(Clone, Copy)]
pub(super) struct Token<'t> {
    pub text: &'t str,
    /// Column in characters, from 1.
    pub column: usize,
}

/// The tokens of a line, and the index of the next.
pub(super) struct Line<'t> {
    pub number: usize,
    tokens: Vec<Token<'t>>,
    next: usize,
    /// The column just after the last token.
    end: usize,
}

impl<'t> Line<'t> {
    pub fn of(text: &'t str, number: usize) -> Self {
        let text = text.split_once('#').map_or(text, |(before, _)| before);
        let (mut tokens, mut end) = (Vec::new(), 1);
        let mut start = None;
        let mut column = 0;
        for (at, c) in text.char_indices().chain([(text.len(), ' ')]) {
            column += 1;
            match (c.is_whitespace(), start) {
                (false, None) => start = Some((at, column)),
                (true, Some((from, first))) => {
                    let text = &text[from..at];
                    tokens.push(Token {
                        text,
                        column: first,
                    });
                    end = column;
                    start = None;
                }
                _ => {}
            }
        }
        Line {
            number,
            tokens,
            next: 0,
            end,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    pub fn peek(&self) -> Option<Token<'t>> {
        self.tokens.get(self.next).copied()
    }

    /// The next token, if there is one.
    pub fn optional(&mut self) -> Option<Token<'t>> {
        let token = self.peek()?;
        self.next += 1;
        Some(token)
    }

    /// The next token, which must exist.
    pub fn next(&mut self, what: &str) -> Result<Token<'t>, Error> {
        match self.optional() {
            Some(token) => Ok(token),
            None => Err(self.here("the line ends too early", format!("here belongs {what}"))),
        }
    }

    /// The next token, which must be this word.
    pub fn word(&mut self, word: &str) -> Result<(), Error> {
        let token = self.next(&format!("`{word}`"))?;
        if token.text == word {
            return Ok(());
        }
        let problem = format!("{} stands in the wrong place", quote(token.text));
        Err(self.at(token, problem, format!("here belongs `{word}`")))
    }

    /// Refuses further tokens.
    pub fn end(&self) -> Result<(), Error> {
        match self.peek() {
            None => Ok(()),
            Some(token) => {
                let problem = format!("{} is too much", quote(token.text));
                Err(self.at(token, problem, "end the line before it"))
            }
        }
    }

    /// A number that is a token, or a part of one.
    pub fn number(&self, token: Token<'_>, text: &str, what: &str) -> Result<u64, Error> {
        let digits = text.bytes().all(|b| b.is_ascii_digit());
        match text.parse() {
            Ok(value) if digits => Ok(value),
            _ => {
                let problem = format!("{} is not {what}", quote(text));
                let remedy = "write a decimal number of 64 bits without a sign";
                Err(self.at(token, problem, remedy))
            }
        }
    }

    pub fn at(
        &self,
        token: Token<'_>,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Error {
        Error::Syntax {
            line: self.number,
            column: token.column,
            problem: problem.into(),
            remedy: remedy.into(),
        }
    }

    /// An error at the next token, or at the line's end.
    pub fn here(&self, problem: impl Into<String>, remedy: impl Into<String>) -> Error {
        let column = self.peek().map_or(self.end, |token| token.column);
        let token = Token { text: "", column };
        self.at(token, problem, remedy)
    }
}

/// A piece of the text for a message: shortened, and with control characters escaped.
pub(super) fn quote(text: &str) -> String {
    const SHOWN: usize = 40;
    let mut shown: String = text
        .chars()
        .take(SHOWN)
        .flat_map(char::escape_debug)
        .collect();
    if text.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    format!("`{shown}`")
}
