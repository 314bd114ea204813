//! Entry points for `ci/fuzz`.

use super::packet::{read_answer, read_hello};
use crate::job_key::JobKey;

/// A packet of either kind.
pub fn descriptors(bytes: &[u8]) {
    let Some((&ranks, packet)) = bytes.split_first() else {
        return;
    };
    let key = packet.first_chunk().map(|key| JobKey::from_bytes(*key));
    if let Some(key) = key {
        read_hello(packet, &key);
    }
    let _ = read_answer(packet, usize::from(ranks));
}
