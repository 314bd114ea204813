//! The packed length of all PEs' contributions, as the rendezvous packs them
//! (`core/bootstrap/src/protocol/packed.rs`).

use std::io::Write as _;

use flate2::Compression;
use flate2::write::DeflateEncoder;

/// Hexadecimal digits in a row that are particular to a PE: addresses, keys, names of hosts.
const OWN: usize = 12;
/// A result of fewer bytes is not packed.
const LEAST: usize = 1 << 20;

/// The packed bytes of so many contributions like `part`, in which every digit of their own is
/// random. Real ones, of neighbours on one network, are more alike.
pub fn bytes(part: &[u8], pes: usize) -> usize {
    if part.len() * pes < LEAST {
        return part.len() * pes;
    }
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut digit = || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        b"0123456789abcdef"
            .get((random >> 60) as usize)
            .copied()
            .unwrap_or(b'0')
    };
    let mut packer = DeflateEncoder::new(Vec::new(), Compression::fast());
    for _ in 0..pes {
        let mut own = part.to_vec();
        for run in own.chunk_by_mut(|a, b| a.is_ascii_hexdigit() == b.is_ascii_hexdigit()) {
            if run.len() >= OWN && run.iter().all(u8::is_ascii_hexdigit) {
                run.fill_with(&mut digit);
            }
        }
        // A `Vec` accepts all data that is written.
        let _ = packer.write_all(&own);
    }
    packer.finish().map_or(0, |packed| packed.len())
}
