//! One output stream of a PE, cut into whole lines.

use super::sink::Sink;

/// A line longer than this is passed on in pieces.
const LONGEST: usize = 1 << 20;

/// The line of a PE's output that is not complete yet.
#[derive(Debug)]
pub(super) struct Lines {
    rank: u32,
    begun: Vec<u8>,
}

impl Lines {
    pub(super) fn new(rank: u32) -> Lines {
        Lines {
            rank,
            begun: Vec::new(),
        }
    }

    /// Adds output, and passes whole lines on.
    pub(super) fn push(&mut self, bytes: &[u8], sink: &mut Sink) {
        let whole = bytes
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |last| last + 1);
        let (whole, rest) = bytes.split_at(whole);
        if !whole.is_empty() {
            self.begun.extend_from_slice(whole);
            self.pass_on(sink);
        }
        self.begun.extend_from_slice(rest);
        if self.begun.len() >= LONGEST {
            self.pass_on(sink);
        }
    }

    /// The stream's end: passes on the last line, though it has no end.
    pub(super) fn finish(&mut self, sink: &mut Sink) {
        self.pass_on(sink);
        self.begun = Vec::new();
    }

    fn pass_on(&mut self, sink: &mut Sink) {
        sink.push(self.rank, &self.begun);
        self.begun.clear();
    }
}
