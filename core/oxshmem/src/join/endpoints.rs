//! A PE's endpoints towards all, as bytes: each PE reads its own part of what another tells, and
//! steps over what is meant for others.
//!
//! First, for each PE, where its part ends, counted from the end of these numbers; then the parts,
//! each some entries of a name and an endpoint, each with its length before it. All numbers are u32,
//! little-endian.

/// By PE, the endpoints towards it by the names of transports.
pub(super) fn write(all: &[Vec<(String, Vec<u8>)>]) -> Result<Vec<u8>, &'static str> {
    let number = |n: usize| u32::try_from(n).map_err(|_| "longer than 4 GiB");
    let (mut ends, mut parts) = (Vec::with_capacity(4 * all.len()), Vec::new());
    for towards in all {
        for (name, endpoint) in towards {
            for bytes in [name.as_bytes(), endpoint] {
                parts.extend(number(bytes.len())?.to_le_bytes());
                parts.extend(bytes);
            }
        }
        ends.extend(number(parts.len())?.to_le_bytes());
    }
    ends.append(&mut parts);
    Ok(ends)
}

/// Those towards `pe`, among as many PEs as there are `size`.
pub(super) fn read(
    bytes: &[u8],
    pe: usize,
    size: usize,
) -> Result<Vec<(&str, &[u8])>, &'static str> {
    const SHORT: &str = "too few bytes";
    let table = size.checked_mul(4).ok_or(SHORT)?;
    let (ends, parts) = bytes.split_at_checked(table).ok_or(SHORT)?;
    let (ends, _) = ends.as_chunks::<4>();
    let end = |pe: usize| ends.get(pe).map(|end| u32::from_le_bytes(*end) as usize);
    let start = pe.checked_sub(1).map_or(Some(0), end);
    let range = start.ok_or(SHORT)?..end(pe).ok_or(SHORT)?;
    let mut part = parts.get(range).ok_or(SHORT)?;
    let mut next = || -> Option<&[u8]> {
        let (length, rest) = part.split_first_chunk()?;
        let (bytes, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        part = rest;
        Some(bytes)
    };
    let mut towards = Vec::new();
    while let Some(name) = next() {
        let name = std::str::from_utf8(name).map_err(|_| "a name that is no text")?;
        towards.push((name, next().ok_or(SHORT)?));
    }
    match part {
        [] => Ok(towards),
        _ => Err(SHORT),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn each_pe_reads_what_was_meant_for_it(
            all in proptest::collection::vec(
                proptest::collection::vec(
                    ("\\PC{0,9}", proptest::collection::vec(any::<u8>(), 0..30)),
                    0..3,
                ),
                0..6,
            )
        ) {
            let bytes = write(&all).unwrap();
            for (pe, towards) in all.iter().enumerate() {
                let read = read(&bytes, pe, all.len()).unwrap();
                let read = read.into_iter().map(|(name, bytes)| (name.to_owned(), bytes.to_vec()));
                prop_assert_eq!(&read.collect::<Vec<_>>(), towards);
            }
            prop_assert!(read(&bytes, all.len(), all.len()).is_err());
        }

        #[test]
        fn any_bytes_are_read_or_refused(
            bytes in proptest::collection::vec(prop_oneof![Just(0_u8), Just(4), any::<u8>()], 0..60),
            pe in 0_usize..4,
        ) {
            if let Ok(towards) = read(&bytes, pe, 3) {
                let told: usize = towards.iter().map(|(name, bytes)| 8 + name.len() + bytes.len()).sum();
                prop_assert!(told + 12 <= bytes.len());
            }
        }
    }
}
