//! Sinks: the launcher's own output and error streams, written to without ever waiting for their readers.

use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::FileType;
use rustix::io::Errno;
use rustix::net::SendFlags;

/// Bytes that may wait in a sink before the PEs are made to wait.
const ENOUGH: usize = 64 << 10;
/// Bytes that a pipe or terminal takes whole, and without blocking, when it says that it is
/// writable.
const SAFE_WRITE: usize = 4096;

/// One of the process's standard streams.
pub(super) fn standard(descriptor: i32) -> BorrowedFd<'static> {
    // SAFETY: Rust opens the standard streams at start where they are closed, and nothing here
    // closes them.
    unsafe { BorrowedFd::borrow_raw(descriptor) }
}

/// A stream that text is written to without waiting for its reader.
///
/// The stream is shared with the launcher's parent, so it is not made non-blocking; instead,
/// no more is written than it takes. The launcher's other stream may be the same file: so a line of up to 4 KiB
/// is written by one call, and stays whole.
pub(super) struct Sink {
    stream: BorrowedFd<'static>,
    kind: FileType,
    tagged: bool,
    waiting: Vec<u8>,
    written: usize,
    /// The source of the line that has begun and not ended.
    open_line: Option<Source>,
    fault: Option<Errno>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    Pe(u32),
    Launcher,
}

impl Sink {
    pub(super) fn new(stream: BorrowedFd<'static>, tagged: bool) -> Sink {
        let kind = rustix::fs::fstat(stream).map_or(FileType::Unknown, |stat| {
            FileType::from_raw_mode(stat.st_mode)
        });
        let (waiting, written) = (Vec::new(), 0);
        Sink {
            stream,
            kind,
            tagged,
            waiting,
            written,
            open_line: None,
            fault: None,
        }
    }

    /// Whether the PEs should wait before they say more.
    pub(super) fn is_full(&self) -> bool {
        self.pending() >= ENOUGH
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pending() == 0
    }

    fn pending(&self) -> usize {
        self.waiting.len() - self.written
    }

    /// The error after which nothing more can be written, if there was one: with `PIPE`, the reader is gone.
    pub(super) fn fault(&self) -> Option<Errno> {
        self.fault
    }

    pub(super) fn stream(&self) -> BorrowedFd<'static> {
        self.stream
    }

    /// Takes text of PE `rank`: whole lines, or a piece of one.
    pub(super) fn push(&mut self, rank: u32, text: &[u8]) {
        self.append(Source::Pe(rank), text);
    }

    /// Takes one line of the launcher's own.
    pub(super) fn say(&mut self, line: &str) {
        self.append(
            Source::Launcher,
            format!("oxshmem run: {line}\n").as_bytes(),
        );
    }

    fn append(&mut self, source: Source, text: &[u8]) {
        if self.fault.is_some() || text.is_empty() {
            return;
        }
        if self.open_line.is_some_and(|owner| owner != source) {
            // Another source's unfinished line ends here, so that no two mix.
            self.waiting.push(b'\n');
            self.open_line = None;
        }
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            if let (Source::Pe(rank), true, None) = (source, self.tagged, self.open_line) {
                // Writing to a Vec does not fail.
                let _ = write!(self.waiting, "[{rank}] ");
            }
            self.waiting.extend_from_slice(line);
            self.open_line = (!line.ends_with(b"\n")).then_some(source);
        }
    }

    /// Writes as much as the stream takes, but not for too long.
    pub(super) fn flush(&mut self) {
        for _ in 0..16 {
            if self.is_empty() || !self.is_writable() {
                return;
            }
            let bytes = &self.waiting[self.written..];
            let result = match self.kind {
                FileType::RegularFile => rustix::io::write(self.stream, bytes),
                FileType::Socket => {
                    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
                    rustix::net::send(self.stream, bytes, flags)
                }
                _ => rustix::io::write(self.stream, piece(bytes)),
            };
            match result {
                Ok(count) => self.written += count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(error) => {
                    // Nobody reads, or nothing can be stored: no more is written.
                    self.fault = Some(error);
                    self.written = self.waiting.len();
                }
            }
            if self.is_empty() {
                self.waiting.clear();
                self.written = 0;
            } else if self.written > ENOUGH {
                self.waiting.drain(..self.written);
                self.written = 0;
            }
        }
    }

    fn is_writable(&self) -> bool {
        let mut wait = [PollFd::from_borrowed_fd(
            self.stream.as_fd(),
            PollFlags::OUT,
        )];
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        matches!(poll(&mut wait, Some(&now)), Ok(1..))
    }
}

/// The bytes to write at once: whole lines, unless they are too long.
fn piece(bytes: &[u8]) -> &[u8] {
    if bytes.len() <= SAFE_WRITE {
        return bytes;
    }
    let start = &bytes[..SAFE_WRITE];
    let end = start.iter().rposition(|byte| *byte == b'\n');
    &start[..end.map_or(SAFE_WRITE, |last| last + 1)]
}
