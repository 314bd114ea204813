//! The byte format of what simulated PEs exchange.

/// Packs a tag and numbers.
pub(super) fn packed(tag: [u8; 4], numbers: &[u64]) -> Vec<u8> {
    let numbers = numbers.iter().flat_map(|number| number.to_le_bytes());
    tag.into_iter().chain(numbers).collect()
}

/// Unpacks bytes that [`packed`] made; none for others.
pub(super) fn unpacked<const N: usize>(tag: [u8; 4], bytes: &[u8]) -> Option<[u64; N]> {
    let (words, rest) = bytes.strip_prefix(tag.as_slice())?.as_chunks();
    let numbers: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
    numbers.try_into().ok().filter(|_| rest.is_empty())
}
