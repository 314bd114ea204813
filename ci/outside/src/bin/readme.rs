//! README's program, word for word.

include!(concat!(env!("OUT_DIR"), "/readme.rs"));
