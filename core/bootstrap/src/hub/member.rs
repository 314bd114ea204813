//! One rank of the job, as the rendezvous sees it: its connection, and the frames that wait for it.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use crate::error::Result;
use crate::protocol::frame::Frame;
use crate::protocol::parser::FrameParser;

/// The progress of a rank through its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// Not connected yet.
    Absent,
    /// Connected.
    Present,
    /// Said goodbye.
    Left,
    /// Ended without a goodbye.
    Died,
}

/// A rank's connection, and the frames that wait to be sent to it (from before it connected, too).
#[derive(Debug)]
pub(super) struct Member {
    pub(super) standing: Standing,
    pub(super) stream: Option<TcpStream>,
    /// A frame that cannot be forwarded before its receiver has taken others.
    pub(super) held: Option<(u32, Arc<[u8]>)>,
    /// Whether all that it will ever send has been received.
    pub(super) finished: bool,
    /// Whether its end counts as a goodbye.
    pub(super) may_end: bool,
    /// Whether its process has ended, as the owner says: it sends nothing beyond what is in flight.
    pub(super) process_ended: bool,
    parser: FrameParser,
    outgoing: VecDeque<Arc<[u8]>>,
    /// Bytes of the first outgoing frame that are sent already.
    sent: usize,
    backlog: usize,
    /// Answers to collective calls among the outgoing frames.
    answers: usize,
}

impl Member {
    pub(super) fn absent(size: usize) -> Member {
        Member {
            standing: Standing::Absent,
            stream: None,
            held: None,
            finished: false,
            may_end: false,
            process_ended: false,
            parser: FrameParser::of_pe(size),
            outgoing: VecDeque::new(),
            sent: 0,
            backlog: 0,
            answers: 0,
        }
    }

    /// Whether it can be told anything, now or when it connects.
    pub(super) fn listens(&self) -> bool {
        match self.standing {
            Standing::Absent => true,
            Standing::Present | Standing::Left => self.stream.is_some(),
            Standing::Died => false,
        }
    }

    /// Bytes that wait to be sent to it.
    pub(super) fn backlog(&self) -> usize {
        self.backlog
    }

    /// Answers to collective calls that wait to be sent to it.
    pub(super) fn answers(&self) -> usize {
        self.answers
    }

    /// Puts a frame at the end of what it will be sent.
    pub(super) fn queue(&mut self, frame: Arc<[u8]>) {
        if self.listens() {
            self.backlog += frame.len();
            self.answers += usize::from(Frame::is_answer(&frame));
            self.outgoing.push_back(frame);
        }
    }

    /// Puts a frame before all that waits; for the first frame of a connection.
    pub(super) fn queue_first(&mut self, frame: Arc<[u8]>) {
        self.backlog += frame.len();
        self.outgoing.push_front(frame);
    }

    /// Sends as much as the connection takes. An error means that it is broken.
    pub(super) fn flush(&mut self) -> std::io::Result<()> {
        let Some(stream) = &mut self.stream else {
            return Ok(());
        };
        while let Some(frame) = self.outgoing.front() {
            match stream.write(&frame[self.sent..]) {
                Ok(count) => {
                    self.sent += count;
                    self.backlog -= count;
                    if self.sent == frame.len() {
                        self.sent = 0;
                        self.answers -= usize::from(Frame::is_answer(frame));
                        self.outgoing.pop_front();
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Reads once, without waiting; false at the end of the stream.
    pub(super) fn fill(&mut self, scratch: &mut [u8]) -> std::io::Result<bool> {
        let Some(stream) = &mut self.stream else {
            return Ok(false);
        };
        match stream.read(scratch) {
            Ok(0) => Ok(false),
            Ok(count) => {
                self.parser.push(&scratch[..count]);
                Ok(true)
            }
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
            {
                Ok(true)
            }
            Err(error) => Err(error),
        }
    }

    /// Reads all that is left of a connection that the other end has closed.
    pub(super) fn fill_rest(&mut self, scratch: &mut [u8]) {
        let Some(stream) = &mut self.stream else {
            return;
        };
        loop {
            match stream.read(scratch) {
                Ok(0) => return,
                Ok(count) => self.parser.push(&scratch[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    }

    /// Nothing more comes from it. The frames that it sent before are still processed; its end waits for that.
    pub(super) fn finish(&mut self) {
        self.finished = true;
        self.stream = None;
    }

    /// The next whole frame.
    pub(super) fn next_frame(&mut self) -> Result<Option<Frame>> {
        self.parser.next()
    }

    /// Hangs up.
    pub(super) fn disconnect(&mut self) {
        self.stream = None;
        self.held = None;
        self.outgoing.clear();
        self.sent = 0;
        self.backlog = 0;
        self.answers = 0;
    }
}
