//! Frames and hellos: their bytes, that they survive any cutting of the stream, and that garbage is an error.

use std::time::Duration;

use proptest::prelude::*;

use super::frame::{Channel, Frame, Kind};
use super::hello::{BadHello, Claim, HELLO_BYTES, Hello, MAGIC, NONCE_BYTES, Nonce, Proof};
use super::parser::FrameParser;
use crate::error::Error;
use crate::fault::Fault;
use crate::job_key::JobKey;
use crate::limits::MAX_BODY;
use crate::waits::{Awaited, Waiting};

fn any_fault() -> impl Strategy<Value = Fault> {
    prop_oneof![
        (prop::collection::vec(any::<u32>(), 0..9), 0u64..1 << 40).prop_map(|(ranks, ms)| {
            Fault::Missing {
                ranks,
                waited: Duration::from_millis(ms),
            }
        }),
        (any::<u32>(), any::<bool>()).prop_map(|(rank, orderly)| Fault::Gone { rank, orderly }),
        ".{0,40}".prop_map(|what| Fault::Mismatch { what }),
        ".{0,40}".prop_map(|why| Fault::HubLost { why }),
        (any::<u32>(), any::<i32>(), ".{0,40}").prop_map(|(by, status, why)| Fault::Aborted {
            by,
            status,
            why
        }),
    ]
}

fn any_wait() -> impl Strategy<Value = Waiting> {
    let whom = prop_oneof![
        any::<u32>().prop_map(Awaited::Rank),
        any::<u32>().prop_map(Awaited::Lane),
        Just(Awaited::Any),
        Just(Awaited::Itself),
    ];
    (any::<u32>(), whom, ".{0,16}", ".{0,120}").prop_map(|(ms, whom, call, what)| {
        let plain = |text: String| text.replace(char::is_control, " ");
        Waiting {
            lasted: Duration::from_millis(ms.into()),
            whom,
            call: plain(call),
            what: plain(what),
        }
    })
}

fn any_frame() -> impl Strategy<Value = Frame> {
    let bytes = || prop::collection::vec(any::<u8>(), 0..300);
    prop_oneof![
        any::<(Nonce, Proof)>().prop_map(|(nonce, proof)| Frame::Challenge { nonce, proof }),
        Just(Frame::Welcome),
        ".{0,40}".prop_map(Frame::Refusal),
        (any::<u64>(), any::<bool>(), 0u64..1 << 40, bytes()).prop_map(
            |(sequence, barrier, ms, bytes)| Frame::Enter {
                sequence,
                kind: if barrier {
                    Kind::Barrier
                } else {
                    Kind::Allgather
                },
                deadline: Duration::from_millis(ms),
                bytes,
            }
        ),
        (any::<u64>(), prop::collection::vec(bytes(), 0..6))
            .prop_map(|(sequence, parts)| Frame::Complete { sequence, parts }),
        (any::<u64>(), any_fault()).prop_map(|(sequence, fault)| Frame::Failed { sequence, fault }),
        (any::<u32>(), any::<bool>(), bytes()).prop_map(|(rank, user, bytes)| {
            let channel = if user {
                Channel::User
            } else {
                Channel::Descriptors
            };
            Frame::Message {
                rank,
                channel,
                bytes,
            }
        }),
        (any::<u32>(), any::<i32>(), ".{0,40}").prop_map(|(by, status, why)| Frame::Abort {
            by,
            status,
            why
        }),
        Just(Frame::Leave),
        any::<bool>().prop_map(|may_end| Frame::Rest { may_end }),
        (any::<u32>(), any::<bool>()).prop_map(|(rank, orderly)| Frame::Exit { rank, orderly }),
        any::<u32>().prop_map(|question| Frame::Ask { question }),
        (any::<u32>(), prop::collection::vec(any_wait(), 0..16))
            .prop_map(|(question, waits)| Frame::Waits { question, waits }),
        Just(Frame::Hangs),
    ]
}

proptest! {
    #[test]
    fn frames_survive_any_cutting_of_the_stream(
        frames in prop::collection::vec(any_frame(), 0..8),
        cuts in prop::collection::vec(1usize..200, 1..50),
    ) {
        let stream: Vec<u8> = frames.iter().flat_map(Frame::encode).collect();
        let mut parser = FrameParser::default();
        let mut seen = Vec::new();
        let mut rest = stream.as_slice();
        for cut in cuts.iter().cycle() {
            let (piece, later) = rest.split_at((*cut).min(rest.len()));
            parser.push(piece);
            while let Some(frame) = parser.next().unwrap() {
                seen.push(frame);
            }
            rest = later;
            if rest.is_empty() {
                break;
            }
        }
        prop_assert_eq!(seen, frames);
    }

    #[test]
    fn garbage_never_panics_nor_allocates_beyond_what_came(
        pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..20),
    ) {
        let mut parser = FrameParser::default();
        let mut pushed = 0;
        'stream: for piece in pieces {
            parser.push(&piece);
            pushed += piece.len();
            prop_assert!(parser.bytes.capacity() <= 2 * pushed.max(64));
            loop {
                match parser.next() {
                    Ok(Some(_)) => {}
                    Ok(None) => break,
                    Err(_) => break 'stream,
                }
            }
        }
    }

    #[test]
    fn damaged_frames_give_an_error_or_a_frame_but_never_panic(
        frame in any_frame(), at in any::<prop::sample::Index>(), flip in 1u8..,
    ) {
        let mut bytes = frame.encode();
        let at = at.index(bytes.len());
        bytes[at] ^= flip;
        let mut parser = FrameParser::default();
        parser.push(&bytes);
        while let Ok(Some(_)) = parser.next() {}
    }

    #[test]
    fn truncated_frames_wait_for_more(frame in any_frame(), keep in any::<prop::sample::Index>()) {
        let bytes = frame.encode();
        let mut parser = FrameParser::default();
        parser.push(&bytes[..keep.index(bytes.len())]);
        prop_assert!(matches!(parser.next(), Ok(None)));
    }

    #[test]
    fn arbitrary_hellos_never_panic(bytes in prop::array::uniform32(any::<u8>()), fix in any::<bool>()) {
        let mut hello = [0; HELLO_BYTES];
        hello[..32].copy_from_slice(&bytes);
        if fix {
            hello[..8].copy_from_slice(&MAGIC);
        }
        let decoded = Hello::decode(&hello);
        prop_assert_eq!(matches!(decoded, Err(BadHello::Foreign)), !Hello::may_begin(&hello));
    }
}

#[test]
fn the_result_of_a_large_allgather_travels_packed() {
    let part = |rank: u32| [&rank.to_le_bytes()[..], &[b'c'; 1000]].concat();
    let parts: Vec<Vec<u8>> = (0..2000).map(part).collect();
    let sequence = 5;
    let frame = Frame::Complete { sequence, parts };
    let bytes = frame.encode();
    assert!(bytes.len() < 2000 * 100, "{}", bytes.len());
    let mut parser = FrameParser::default();
    parser.push(&bytes);
    assert_eq!(parser.next().unwrap(), Some(frame));
}

#[test]
fn oversize_frame_is_refused_at_its_header() {
    let mut parser = FrameParser::default();
    let announced = u32::try_from(MAX_BODY + 1).unwrap();
    parser.push(&announced.to_le_bytes());
    parser.push(&[6]);
    assert!(matches!(parser.next(), Err(Error::Protocol { .. })));
}

#[test]
fn hello_of_another_version_is_told_apart_from_a_stranger() {
    let key = JobKey::random().unwrap();
    let hello = Hello {
        rank: 1,
        size: 2,
        key,
    };
    let mut bytes = hello.encode(&[7; NONCE_BYTES]);
    let claim = Claim { rank: 1, size: 2 };
    assert_eq!(Hello::decode(&bytes), Ok(claim));
    bytes[8] = 9;
    assert_eq!(Hello::decode(&bytes).unwrap_err(), BadHello::Version(9));
    bytes[0] = b'G';
    assert_eq!(Hello::decode(&bytes).unwrap_err(), BadHello::Foreign);
}

/// A program of one build may meet a launcher of another: other bytes need another version.
#[test]
fn frames_and_hellos_have_the_bytes_of_version_4() {
    let (rank, size) = (0x0102, 0x0304);
    let key = JobKey::random().unwrap();
    let hello = Hello { rank, size, key }.encode(&[7; NONCE_BYTES]);
    assert_eq!(&hello[..8], b"\x89OXSHMEM");
    assert_eq!(hello[8..20], [4, 0, 0, 0, 2, 1, 0, 0, 4, 3, 0, 0]);
    assert_eq!(hello[20..], [7; 32]);

    let failed = |fault| Frame::Failed { sequence: 6, fault };
    let enter = |kind| Frame::Enter {
        sequence: 0x0102,
        kind,
        deadline: Duration::from_millis(1500),
        bytes: vec![9],
    };
    let message = |channel| Frame::Message {
        rank: 2,
        channel,
        bytes: vec![8],
    };
    let wait = |whom| Waiting {
        call: "put".into(),
        whom,
        what: "it".into(),
        lasted: Duration::from_secs(1),
    };
    let (nonce, proof) = ([1; 32], [2; 32]);
    let why = || "no".to_owned();
    // Kind and body: `bN` are bytes, `wN` 32-bit and `dN` 64-bit numbers, other words are text.
    let cases = [
        (Frame::Welcome, "b1"),
        (Frame::Refusal(why()), "b2 no"),
        (enter(Kind::Barrier), "b3 d258 b0 d1500 b9"),
        (enter(Kind::Allgather), "b3 d258 b1 d1500 b9"),
        (
            Frame::Complete {
                sequence: 5,
                parts: vec![vec![1, 2], vec![]],
            },
            "b4 d5 w2 b1 b2 w0",
        ),
        (
            failed(Fault::Missing {
                ranks: vec![7, 8],
                waited: Duration::from_secs(2),
            }),
            "b5 d6 b0 d2000 w7 w8",
        ),
        (
            failed(Fault::Gone {
                rank: 3,
                orderly: true,
            }),
            "b5 d6 b1 w3 b1",
        ),
        (failed(Fault::Mismatch { what: why() }), "b5 d6 b2 no"),
        (failed(Fault::HubLost { why: why() }), "b5 d6 b3 no"),
        (
            failed(Fault::Aborted {
                by: 1,
                status: 9,
                why: why(),
            }),
            "b5 d6 b4 w1 w9 no",
        ),
        (message(Channel::User), "b6 w2 b0 b8"),
        (message(Channel::Descriptors), "b6 w2 b1 b8"),
        (
            Frame::Abort {
                by: 1,
                status: -1,
                why: why(),
            },
            "b7 w1 w4294967295 no",
        ),
        (Frame::Leave, "b8"),
        (
            Frame::Exit {
                rank: 4,
                orderly: false,
            },
            "b9 w4 b0",
        ),
        (Frame::Rest { may_end: true }, "b11 b1"),
        (
            Frame::Waits {
                question: 7,
                waits: vec![wait(Awaited::Rank(3)), wait(Awaited::Itself)],
            },
            "b13 w7 d1000 b0 w3 w3 put w2 it d1000 b3 w0 w3 put w2 it",
        ),
        (Frame::Hangs, "b14"),
        (Frame::Ask { question: 7 }, "b15 w7"),
    ];
    let number = |digits: &str| digits.parse::<u64>();
    for (frame, words) in cases {
        let mut bytes = Vec::new();
        for word in words.split(' ') {
            let (kind, digits) = word.split_at(1);
            match (kind, number(digits)) {
                ("b", Ok(number)) => bytes.extend(&number.to_le_bytes()[..1]),
                ("w", Ok(number)) => bytes.extend(&number.to_le_bytes()[..4]),
                ("d", Ok(number)) => bytes.extend(&number.to_le_bytes()),
                _ => bytes.extend(word.as_bytes()),
            }
        }
        let length = u32::try_from(bytes.len() - 1).unwrap().to_le_bytes();
        assert_eq!(frame.encode(), [&length[..], &bytes].concat(), "{frame:?}");
    }
    let challenge = Frame::Challenge { nonce, proof }.encode();
    assert_eq!(challenge[..5], [64, 0, 0, 0, 12]);
    assert_eq!(challenge[5..], [nonce, proof].concat());
}
