//! Entry points to the parsers of foreign bytes, for `ci/fuzz`. Tests build them, too, so that they keep up.

pub use crate::descriptors::fuzzing::descriptors;
pub use crate::environment::fuzzing::publication;
pub use crate::launch::fuzzing::agent;
pub use crate::pmi::fuzzing::{pmi_1, pmi_2};

use crate::protocol::frame::Frame;
use crate::protocol::hello::{HELLO_BYTES, Hello};
use crate::protocol::parser::FrameParser;

/// The first bytes of a connection.
pub fn hello(bytes: &[u8]) {
    Hello::may_begin(bytes);
    if let Some(hello) = bytes.first_chunk::<HELLO_BYTES>() {
        let _ = Hello::decode(hello);
    }
}

/// A stream of frames, from a PE of a job or from the rendezvous, in two pieces.
pub fn frames(bytes: &[u8]) {
    let Some((&[size, cut], stream)) = bytes.split_first_chunk() else {
        return;
    };
    let (first, second) = stream.split_at(usize::from(cut).min(stream.len()));
    let parsers = [
        FrameParser::of_pe(usize::from(size).max(1)),
        FrameParser::default(),
    ];
    for mut parser in parsers {
        for piece in [first, second] {
            parser.push(piece);
            while let Ok(Some(frame)) = parser.next() {
                survives(&frame);
            }
        }
    }
}

/// A frame that was understood is the same one after it was sent on.
fn survives(frame: &Frame) {
    let mut parser = FrameParser::default();
    parser.push(&frame.encode());
    let again = parser.next();
    assert!(
        matches!(&again, Ok(Some(again)) if again == frame),
        "{frame:?} became {again:?}"
    );
}
