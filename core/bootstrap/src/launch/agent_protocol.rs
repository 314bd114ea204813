//! The protocol between the launcher and an agent, through the agent's standard streams.
//!
//! The agent begins with a [greeting]. Then both sides send frames: a length (u32, little
//! endian, of the body), a kind (u8), the body. Remote shells may print text of their own before the
//! greeting, and never after it.

use std::ffi::OsString;
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use rustix::io::Errno;

use super::process_group::Stream;
use crate::codec::{Reader, Writer, malformed};
use crate::error::{Error, Result};
use crate::exit_status::ExitStatus;
use crate::job_key::JobKey;

const MAGIC: [u8; 8] = *b"\x89OXAGENT";
const VERSION: u32 = 1;
/// Bytes of a greeting.
pub(super) const GREETING_BYTES: usize = 8 + 4;
/// The longest body: a program's arguments and variables.
const MAX_BODY: usize = 16 << 20;
const HEADER_BYTES: usize = 5;
/// Bytes of output that an agent sends before the launcher has taken them.
pub(super) const WINDOW: usize = 256 << 10;

/// A command of the launcher to an agent. The end of the stream means: end everything.
#[derive(Clone, Debug)]
pub(super) enum Command {
    /// Start these PEs. The first command, and the only one of its kind.
    Start(Box<Start>),
    /// Send all PEs this signal.
    Signal(i32),
    /// Kill all PEs.
    Kill,
    /// Input for rank 0; none at its end.
    Input(Vec<u8>),
    /// So many bytes of output have been passed on: credits for as many more.
    Taken(u32),
}

/// The PEs that an agent is to start.
#[derive(Clone, Debug)]
pub(super) struct Start {
    pub(super) first: u32,
    pub(super) first_local: u32,
    pub(super) count: u32,
    pub(super) size: u32,
    pub(super) key: JobKey,
    /// Addresses at which the rendezvous may be reached, as host:port.
    pub(super) candidates: Vec<String>,
    /// The rendezvous' port, if the agent may try other addresses than the candidates.
    pub(super) port: Option<u16>,
    pub(super) bind: String,
    pub(super) folder: OsString,
    pub(super) program: OsString,
    pub(super) args: Vec<OsString>,
    pub(super) env: Vec<(OsString, OsString)>,
}

/// A report of an agent to the launcher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Report {
    /// The PEs run, with these process numbers.
    Started(Vec<u32>),
    /// The PEs could not be started, and the launcher is to end with this status.
    Refused { status: i32, why: String },
    /// Output of the host's `index`th PE.
    Output {
        index: u32,
        stream: Stream,
        bytes: Vec<u8>,
    },
    /// That stream has ended.
    OutputEnd { index: u32, stream: Stream },
    /// That PE has ended.
    Ended { index: u32, exit: ExitStatus },
    /// The input has been taken; more is welcome.
    InputTaken,
    /// All is over, and the agent ends.
    Done,
}

/// An agent's first bytes.
pub(super) fn greeting() -> [u8; GREETING_BYTES] {
    let mut bytes = [0; GREETING_BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..].copy_from_slice(&VERSION.to_le_bytes());
    bytes
}

/// The beginning of an agent's stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opening {
    /// No whole greeting yet.
    Pending,
    /// A greeting, which ends here.
    Greeted(usize),
    /// One of another version.
    Version(u32),
}

/// Looks for the greeting in the bytes received so far.
pub(super) fn opening(bytes: &[u8]) -> Opening {
    let Some(at) = bytes.windows(MAGIC.len()).position(|some| some == MAGIC) else {
        return Opening::Pending;
    };
    let version = bytes.get(at + MAGIC.len()..).and_then(<[u8]>::first_chunk);
    match version.map(|bytes| u32::from_le_bytes(*bytes)) {
        None => Opening::Pending,
        Some(VERSION) => Opening::Greeted(at + GREETING_BYTES),
        Some(other) => Opening::Version(other),
    }
}

/// Bytes to be sent to the other side.
#[derive(Debug, Default)]
pub(super) struct Outbox(Vec<u8>);

impl Outbox {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn push_bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn push(&mut self, kind: u8, body: impl FnOnce(&mut Writer<'_>)) {
        let start = self.0.len();
        self.0.extend_from_slice(&[0, 0, 0, 0, kind]);
        body(&mut Writer(&mut self.0));
        let length = self.0.len() - start - HEADER_BYTES;
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        if let Some(header) = self.0.get_mut(start..start + 4) {
            header.copy_from_slice(&length.to_le_bytes());
        }
    }

    pub(super) fn command(&mut self, command: &Command) {
        match command {
            Command::Start(start) => self.push(1, |to| start.encode(to)),
            Command::Signal(signal) => self.push(2, |to| {
                to.i32(*signal);
            }),
            Command::Kill => self.push(3, |_| {}),
            Command::Input(bytes) => self.push(4, |to| {
                to.raw(bytes);
            }),
            Command::Taken(count) => self.push(5, |to| {
                to.u32(*count);
            }),
        }
    }

    pub(super) fn report(&mut self, report: &Report) {
        let code = |stream: &Stream| match stream {
            Stream::Out => 1,
            Stream::Err => 2,
        };
        match report {
            Report::Started(pids) => self.push(1, |to| {
                for pid in pids {
                    to.u32(*pid);
                }
            }),
            Report::Refused { status, why } => self.push(2, |to| {
                to.i32(*status).raw(why.as_bytes());
            }),
            Report::Output {
                index,
                stream,
                bytes,
            } => self.push(3, |to| {
                to.u32(*index).u32(code(stream)).raw(bytes);
            }),
            Report::OutputEnd { index, stream } => self.push(4, |to| {
                to.u32(*index).u32(code(stream));
            }),
            Report::Ended { index, exit } => self.push(5, |to| {
                let (kind, value) = match exit {
                    ExitStatus::Exit(status) => (0, *status),
                    ExitStatus::Signal(signal) => (1, *signal),
                };
                to.u32(*index).u32(kind).i32(value);
            }),
            Report::InputTaken => self.push(6, |_| {}),
            Report::Done => self.push(7, |_| {}),
        }
    }

    /// Writes what the stream takes without waiting.
    pub(super) fn flush(&mut self, stream: impl AsFd) -> rustix::io::Result<()> {
        let mut written = 0;
        let end = loop {
            let Some(rest) = self.0.get(written..).filter(|rest| !rest.is_empty()) else {
                break Ok(());
            };
            match rustix::io::write(&stream, rest) {
                Ok(count) => written += count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        self.0.drain(..written);
        end
    }
}

/// Bytes received from the other side.
#[derive(Debug, Default)]
pub(super) struct Inbox(Vec<u8>);

impl Inbox {
    /// A whole stream.
    #[cfg(any(fuzzing, test))]
    pub(super) fn of_bytes(bytes: &[u8]) -> Inbox {
        Inbox(bytes.to_vec())
    }

    /// Bytes that no frame has consumed yet.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Drops the first bytes.
    pub(super) fn skip(&mut self, count: usize) {
        self.0.drain(..count.min(self.0.len()));
    }

    /// Reads without waiting, up to 256 KiB; false at the end of the stream.
    pub(super) fn fill(&mut self, stream: impl AsFd) -> rustix::io::Result<bool> {
        let mut scratch = [0; 16 << 10];
        for _ in 0..16 {
            match rustix::io::read(&stream, &mut scratch) {
                Ok(0) => return Ok(false),
                Ok(count) => self.0.extend_from_slice(&scratch[..count]),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    fn next<T>(
        &mut self,
        decode: impl FnOnce(u8, &mut Reader<'_>) -> Result<T>,
    ) -> Result<Option<T>> {
        let Some((header, rest)) = self.0.split_first_chunk::<HEADER_BYTES>() else {
            return Ok(None);
        };
        let [a, b, c, d, kind] = *header;
        let length = u32::from_le_bytes([a, b, c, d]) as usize;
        if length > MAX_BODY {
            return Err(Error::Protocol {
                what: format!("a frame that announces {length} bytes"),
            });
        }
        let Some(body) = rest.get(..length) else {
            return Ok(None);
        };
        let mut from = Reader(body);
        let frame = decode(kind, &mut from).and_then(|frame| from.end().map(|()| frame));
        let frame = frame.map_err(|_| Error::Protocol {
            what: format!("a damaged frame of kind {kind}"),
        })?;
        self.skip(HEADER_BYTES + length);
        Ok(Some(frame))
    }

    /// The next whole command. After an error the stream is unusable.
    pub(super) fn next_command(&mut self) -> Result<Option<Command>> {
        self.next(|kind, from| {
            Ok(match kind {
                1 => Command::Start(Box::new(Start::decode(from)?)),
                2 => Command::Signal(from.i32()?),
                3 => Command::Kill,
                4 => Command::Input(from.rest().to_vec()),
                5 => Command::Taken(from.u32()?),
                _ => return Err(malformed("command", kind)),
            })
        })
    }

    /// The next whole report. After an error the stream is unusable.
    pub(super) fn next_report(&mut self) -> Result<Option<Report>> {
        self.next(|kind, from| {
            Ok(match kind {
                1 => {
                    let mut pids = Vec::new();
                    while !from.is_empty() {
                        pids.push(from.u32()?);
                    }
                    Report::Started(pids)
                }
                2 => Report::Refused {
                    status: from.i32()?,
                    why: String::from_utf8_lossy(from.rest()).into_owned(),
                },
                3 => Report::Output {
                    index: from.u32()?,
                    stream: stream(from)?,
                    bytes: from.rest().to_vec(),
                },
                4 => Report::OutputEnd {
                    index: from.u32()?,
                    stream: stream(from)?,
                },
                5 => Report::Ended {
                    index: from.u32()?,
                    exit: match (from.u32()?, from.i32()?) {
                        (0, status) => ExitStatus::Exit(status),
                        (1, signal) => ExitStatus::Signal(signal),
                        (other, _) => return Err(malformed("kind of end", other)),
                    },
                },
                6 => Report::InputTaken,
                7 => Report::Done,
                _ => return Err(malformed("report", kind)),
            })
        })
    }
}

impl Start {
    fn encode(&self, to: &mut Writer<'_>) {
        for number in [self.first, self.first_local, self.count, self.size] {
            to.u32(number);
        }
        to.raw(self.key.bytes());
        to.u32(self.port.unwrap_or(0).into());
        to.list(&self.candidates, |to, text| {
            to.bytes(text.as_bytes());
        });
        to.bytes(self.bind.as_bytes());
        to.bytes(self.folder.as_bytes());
        to.bytes(self.program.as_bytes());
        to.list(&self.args, |to, arg| {
            to.bytes(arg.as_bytes());
        });
        to.list(&self.env, |to, (name, value)| {
            to.bytes(name.as_bytes()).bytes(value.as_bytes());
        });
    }

    fn decode(from: &mut Reader<'_>) -> Result<Start> {
        let port = |number| u16::try_from(number).map_err(|_| malformed("port", number));
        Ok(Start {
            first: from.u32()?,
            first_local: from.u32()?,
            count: from.u32()?,
            size: from.u32()?,
            key: JobKey::from_bytes(from.array()?),
            port: Some(port(from.u32()?)?).filter(|port| *port != 0),
            candidates: from.list(text)?,
            bind: text(from)?,
            folder: os_string(from)?,
            program: os_string(from)?,
            args: from.list(os_string)?,
            env: from.list(|from| Ok((os_string(from)?, os_string(from)?)))?,
        })
    }
}

/// An operating system's string behind its length.
fn os_string(from: &mut Reader<'_>) -> Result<OsString> {
    Ok(OsString::from_vec(from.bytes()?.to_vec()))
}

fn text(from: &mut Reader<'_>) -> Result<String> {
    String::from_utf8(from.bytes()?.to_vec()).map_err(|error| malformed("text", error))
}

fn stream(from: &mut Reader<'_>) -> Result<Stream> {
    match from.u32()? {
        1 => Ok(Stream::Out),
        2 => Ok(Stream::Err),
        other => Err(malformed("stream", other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sent(send: impl FnOnce(&mut Outbox)) -> Inbox {
        let mut outbox = Outbox::default();
        send(&mut outbox);
        Inbox(outbox.0)
    }

    #[test]
    fn a_start_arrives_as_it_was_sent() {
        let start = Start {
            first: 4,
            first_local: 1,
            count: 3,
            size: 8,
            key: JobKey::random().unwrap(),
            candidates: vec!["10.0.8.254:7".into(), "[::1]:7".into()],
            port: Some(7),
            bind: "core".into(),
            folder: "/tmp".into(),
            program: OsString::from_vec(vec![b'p', 0xff]),
            args: vec!["a b".into(), OsString::new()],
            env: vec![("NAME".into(), "a\nvalue".into())],
        };
        let mut inbox = sent(|to| to.command(&Command::Start(Box::new(start.clone()))));
        let Ok(Some(Command::Start(came))) = inbox.next_command() else {
            panic!("no start")
        };
        assert_eq!(format!("{came:?}"), format!("{start:?}"));
        assert!(came.key.matches(&start.key));
        assert!(inbox.bytes().is_empty());
    }

    /// The other side may be of another build: other bytes need another version.
    #[test]
    fn commands_and_reports_have_the_bytes_of_version_1() {
        let framed = |kind: u8, words: &[u32], tail: &[u8]| {
            let body = words.iter().flat_map(|word| word.to_le_bytes());
            let body: Vec<u8> = body.chain(tail.iter().copied()).collect();
            let length = u32::try_from(body.len()).unwrap();
            [&length.to_le_bytes()[..], &[kind], &body].concat()
        };
        for (command, bytes) in [
            (Command::Signal(15), framed(2, &[15], &[])),
            (Command::Kill, framed(3, &[], &[])),
            (Command::Input(vec![9]), framed(4, &[], &[9])),
            (Command::Taken(258), framed(5, &[258], &[])),
        ] {
            assert_eq!(sent(|to| to.command(&command)).0, bytes, "{command:?}");
        }
        let (index, why) = (1, "no".to_owned());
        let stream = Stream::Err;
        let bytes = vec![9];
        let ended = |exit| Report::Ended { index, exit };
        for (report, bytes) in [
            (Report::Started(vec![1, 2]), framed(1, &[1, 2], &[])),
            (
                Report::Refused { status: 126, why },
                framed(2, &[126], b"no"),
            ),
            (
                Report::Output {
                    index,
                    stream,
                    bytes,
                },
                framed(3, &[1, 2], &[9]),
            ),
            (
                Report::OutputEnd {
                    index,
                    stream: Stream::Out,
                },
                framed(4, &[1, 1], &[]),
            ),
            (ended(ExitStatus::Exit(7)), framed(5, &[1, 0, 7], &[])),
            (ended(ExitStatus::Signal(9)), framed(5, &[1, 1, 9], &[])),
            (Report::InputTaken, framed(6, &[], &[])),
            (Report::Done, framed(7, &[], &[])),
        ] {
            assert_eq!(sent(|to| to.report(&report)).0, bytes, "{report:?}");
        }

        let key = JobKey::random().unwrap();
        let start = Command::Start(Box::new(Start {
            first: 4,
            first_local: 1,
            count: 3,
            size: 8,
            key,
            candidates: vec!["c".into()],
            port: Some(7),
            bind: String::new(),
            folder: "/".into(),
            program: "p".into(),
            args: Vec::new(),
            env: vec![("n".into(), "v".into())],
        }));
        let texts = b"\x01\0\0\0\x01\0\0\0c\0\0\0\0\x01\0\0\0/\x01\0\0\0p\0\0\0\0\x01\0\0\0\x01\0\0\0n\x01\0\0\0v";
        let tail = [&key.bytes()[..], &[7, 0, 0, 0], texts].concat();
        assert_eq!(
            sent(|to| to.command(&start)).0,
            framed(1, &[4, 1, 3, 8], &tail)
        );
    }

    #[test]
    fn a_greeting_is_found_behind_a_shells_chatter() {
        let chatter = b"Welcome to host b\n\x89OX not yet\n".to_vec();
        assert_eq!(opening(&chatter), Opening::Pending);
        let mut all = [&chatter[..], &greeting()[..], &[9]].concat();
        assert_eq!(opening(&all), Opening::Greeted(all.len() - 1));
        assert_eq!(opening(&all[..all.len() - 3]), Opening::Pending);
        let version = all.len() - 5;
        all[version] = 7;
        assert_eq!(opening(&all), Opening::Version(7));
    }

    fn any_report() -> impl Strategy<Value = Report> {
        let stream = || prop_oneof![Just(Stream::Out), Just(Stream::Err)];
        prop_oneof![
            prop::collection::vec(any::<u32>(), 0..9).prop_map(Report::Started),
            (any::<i32>(), ".{0,40}").prop_map(|(status, why)| Report::Refused { status, why }),
            (
                any::<u32>(),
                stream(),
                prop::collection::vec(any::<u8>(), 0..99)
            )
                .prop_map(|(index, stream, bytes)| Report::Output {
                    index,
                    stream,
                    bytes
                }),
            (any::<u32>(), stream())
                .prop_map(|(index, stream)| Report::OutputEnd { index, stream }),
            (any::<u32>(), any::<bool>(), any::<i32>()).prop_map(|(index, exit, value)| {
                let exit = if exit {
                    ExitStatus::Exit(value)
                } else {
                    ExitStatus::Signal(value)
                };
                Report::Ended { index, exit }
            }),
            Just(Report::InputTaken),
            Just(Report::Done),
        ]
    }

    proptest! {
        #[test]
        fn reports_survive_and_truncated_ones_wait(
            reports in prop::collection::vec(any_report(), 1..8), keep in any::<prop::sample::Index>(),
        ) {
            let whole = sent(|to| reports.iter().for_each(|report| to.report(report)));
            let keep = keep.index(whole.0.len());
            let (head, tail) = whole.0.split_at(keep);
            let mut inbox = Inbox(head.to_vec());
            let mut came = Vec::new();
            while let Some(report) = inbox.next_report().unwrap() {
                came.push(report);
            }
            inbox.0.extend_from_slice(tail);
            while let Some(report) = inbox.next_report().unwrap() {
                came.push(report);
            }
            prop_assert_eq!(came, reports);
        }

        #[test]
        fn garbage_is_an_error_or_waits_but_never_panics(
            bytes in prop::collection::vec(any::<u8>(), 0..200), kind in 0u8..9,
        ) {
            let length = u32::try_from(bytes.len()).unwrap();
            let frame = [&length.to_le_bytes()[..], &[kind], &bytes].concat();
            for bytes in [bytes, frame] {
                let mut inbox = Inbox(bytes.clone());
                while let Ok(Some(_)) = inbox.next_command() {}
                let mut inbox = Inbox(bytes);
                while let Ok(Some(_)) = inbox.next_report() {}
            }
        }
    }
}
