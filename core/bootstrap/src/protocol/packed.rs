//! The packed result of an allgather: many ranks' words about themselves are much alike, and go to every one of them.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;

use crate::error::{Error, Result};
use crate::limits::MAX_BODY;

/// Results of fewer bytes go as they are: there are few ranks, and packing takes longer than sending.
pub(super) const LEAST: usize = 1 << 20;

/// Packs a result that is worth it.
pub(super) fn pack(plain: &[u8]) -> Option<Vec<u8>> {
    if plain.len() < LEAST {
        return None;
    }
    let mut packer = DeflateEncoder::new(Vec::new(), Compression::fast());
    packer.write_all(plain).ok()?;
    let packed = packer.finish().ok()?;
    (packed.len() < plain.len()).then_some(packed)
}

/// Unpacks a result, at most as much as any frame may have.
pub(super) fn unpack(packed: &[u8]) -> Result<Vec<u8>> {
    let mut plain = Vec::new();
    let mut unpacker = DeflateDecoder::new(packed).take(MAX_BODY as u64 + 1);
    let broken = |why: &dyn std::fmt::Display| Error::Protocol {
        what: format!("a packed result that cannot be unpacked: {why}"),
    };
    unpacker
        .read_to_end(&mut plain)
        .map_err(|error| broken(&error))?;
    if plain.len() > MAX_BODY {
        return Err(broken(&"it is too long"));
    }
    Ok(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_like_parts_become_a_tenth_and_come_back() {
        let parts = (0..5000).map(|rank| {
            format!(
                "{{\"host\":\"{:032x}\",\"address\":\"{:040x}\",\"rest\":\"{}\"}}",
                rank / 8,
                rank * 7919,
                "x".repeat(300)
            )
        });
        let plain = parts.collect::<String>().into_bytes();
        let packed = pack(&plain).unwrap();
        assert!(packed.len() < plain.len() / 10, "{}", packed.len());
        assert_eq!(unpack(&packed).unwrap(), plain);
    }

    #[test]
    fn little_is_not_packed_nor_what_does_not_shrink() {
        assert_eq!(pack(&vec![0; LEAST - 1]), None);
        let mut random = 1_u64;
        let mut noise = || {
            random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            (random >> 56) as u8
        };
        let noise: Vec<u8> = (0..LEAST).map(|_| noise()).collect();
        assert_eq!(pack(&noise), None);
    }

    #[test]
    fn what_would_unpack_to_more_than_a_frame_or_to_nothing_sensible_is_refused() {
        let endless = pack(&vec![7; MAX_BODY + 100]).unwrap();
        assert!(endless.len() < 1 << 20);
        let refused = unpack(&endless).unwrap_err().to_string();
        assert!(refused.contains("too long"), "{refused}");
        assert!(unpack(&[0xff; 40]).is_err());
        let cut = &endless[..endless.len() / 2];
        assert!(unpack(cut).is_err());
    }
}
