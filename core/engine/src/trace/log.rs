//! The lines of one PE before they are in its host's file.
//!
//! A file is one JSON array. Its first line opens the array and has an event; every other line begins with
//! the comma that separates it from the line before: so at any moment only the closing bracket is missing, and
//! that may be, in this format. PEs write whole lines, in one call, at the file's end; only where the kernel
//! stops such a call midway, as on a disk that gets full, half a line remains.

use std::fmt;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

use crate::report;
use crate::trace::clock::now;

/// The buffer of lines that are not written yet, in bytes.
const BUFFER: usize = 64 << 10;
/// Longer than any line.
const LINE: usize = 4 << 10;
/// The time after which buffered lines are written, when the next line comes or a wait lasts; in nanoseconds.
const PERIOD: u64 = 1_000_000_000;
/// The most bytes of one PE: as much as viewers bear.
const MAX_BYTES: usize = 64 << 20;

/// The lines of one PE that are not in the file yet.
pub struct Log {
    text: Vec<u8>,
    /// None after a failure, and at the end.
    file: Option<File>,
    path: PathBuf,
    /// The rest of [`MAX_BYTES`].
    credits: usize,
    left_out: u64,
    written_at: u64,
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl Log {
    /// An empty log of this file.
    pub fn new(path: PathBuf, file: File) -> Self {
        Log {
            text: Vec::with_capacity(BUFFER),
            file: Some(file),
            path,
            credits: MAX_BYTES,
            left_out: 0,
            written_at: now(),
        }
    }

    /// One event.
    pub(crate) fn line(&mut self, event: fmt::Arguments<'_>) {
        if self.file.is_none() {
            return;
        }
        if self.credits < LINE {
            self.left_out += 1;
            return;
        }
        let before = self.text.len();
        // Memory takes whatever is written to it; an event that cannot be shown is left out whole.
        if write!(self.text, ",\n{event}").is_err() || self.text.len() - before > LINE {
            self.text.truncate(before);
            self.left_out += 1;
            return;
        }
        self.credits -= self.text.len() - before;
        if self.text.len() + LINE > BUFFER {
            self.write();
        }
        self.write_in_time();
    }

    /// Writes the buffered lines if they have been in memory for some time.
    pub(crate) fn write_in_time(&mut self) {
        if now().saturating_sub(self.written_at) > PERIOD {
            self.write();
        }
    }

    /// Writes the buffered lines.
    pub(crate) fn write(&mut self) {
        self.written_at = now();
        let Some(mut file) = self.file.as_ref() else {
            return;
        };
        let written = file.write_all(&self.text);
        self.text.clear();
        if let Err(error) = written {
            self.file = None;
            report::warn(&format!(
                "the trace {} is not written any further by this PE: {error}; the program goes on",
                self.path.display()
            ));
        }
    }

    /// Writes the last lines, and reports the events that were left out.
    pub(crate) fn end(&mut self) {
        self.write();
        self.file = None;
        let left_out = std::mem::take(&mut self.left_out);
        if left_out > 0 {
            report::warn(&format!(
                "{left_out} events of this PE are not in the trace {}: a PE's part has {} MiB at most; \
                 trace a shorter run",
                self.path.display(),
                MAX_BYTES >> 20
            ));
        }
    }

    /// Ends the array.
    pub(crate) fn close(&self) {
        let file = File::options().append(true).open(&self.path);
        if let Err(error) = file.and_then(|mut file| file.write_all(b"\n]\n")) {
            report::warn(&format!(
                "the trace {} lacks its closing bracket: {error}",
                self.path.display()
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(path: &str) -> Log {
        Log::new(
            path.into(),
            File::options().append(true).open(path).unwrap(),
        )
    }

    #[test]
    fn a_full_disk_ends_the_trace_and_nothing_else() {
        let mut log = log("/dev/full");
        log.line(format_args!("{{}}"));
        assert!(log.file.is_some(), "it is not written yet");
        for _ in 0..2 * BUFFER {
            log.line(format_args!("{{}}"));
        }
        assert!(log.file.is_none() && log.text.is_empty());
    }

    #[test]
    fn memory_and_file_have_limits_and_what_is_beyond_is_counted() {
        let mut log = log("/dev/null");
        log.credits = 2 * LINE;
        let long = "x".repeat(LINE / 2);
        for _ in 0..10 {
            log.line(format_args!("{long}"));
        }
        let kept = log.text.len();
        assert!((LINE..2 * LINE).contains(&kept), "{kept}");
        assert_eq!(log.left_out, 10 - kept as u64 / (LINE as u64 / 2));
        assert!(log.text.capacity() == BUFFER);
    }

    #[test]
    fn a_line_that_is_too_long_is_left_out_whole() {
        let mut log = log("/dev/null");
        log.line(format_args!("{}", "x".repeat(LINE)));
        assert_eq!((log.text.len(), log.left_out), (0, 1));
    }
}
