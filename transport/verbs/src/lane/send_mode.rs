//! The choice of the method by which a source gets into a request, and the split of puts at words.

use super::batch::LocalBuffer;
use crate::limits::UNREGISTERED;
use crate::region::MrKey;

/// The method by which the bytes of a source get into a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendMode {
    /// The CPU copies them into the request.
    Inline,
    /// The CPU copies them to a bounce block.
    Bcopy,
    /// The NIC reads them in place, by this lkey.
    Zcopy(u32),
    /// They are too long to copy, and have no key.
    Refused,
}

/// The method for `len` bytes, where a request carries up to `max_inline`. The CPU never reads GPU memory.
#[inline]
pub(crate) fn send_mode(len: usize, key: Option<MrKey>, max_inline: u32) -> SendMode {
    match key {
        Some(MrKey {
            lkey, on_gpu: true, ..
        }) => SendMode::Zcopy(lkey),
        _ if len <= max_inline as usize => SendMode::Inline,
        _ if len <= UNREGISTERED => SendMode::Bcopy,
        Some(MrKey { lkey, .. }) => SendMode::Zcopy(lkey),
        None => SendMode::Refused,
    }
}

/// The bytes before the first whole word at `to`, the rest, and the length of the former. None where one
/// packet carries all, or packets end between words.
#[inline]
pub(crate) fn split(
    local: LocalBuffer,
    to: u64,
    packet: u32,
) -> Option<(LocalBuffer, LocalBuffer, u32)> {
    let head = (to.wrapping_neg() % 8) as u32;
    match local {
        LocalBuffer::Inline(addr, len) if head > 0 && len > packet => Some((
            LocalBuffer::Inline(addr, head),
            LocalBuffer::Inline(addr.wrapping_add(head as usize), len - head),
            head,
        )),
        LocalBuffer::Registered(addr, len, key) if head > 0 && len > packet => Some((
            LocalBuffer::Registered(addr, head, key),
            LocalBuffer::Registered(addr.wrapping_add(head as usize), len - head, key),
            head,
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The offsets and lengths of the writes of a put of `len` bytes to `to`, by packets of 1024 bytes.
    fn writes(to: u64, len: u32) -> Vec<(u64, u32)> {
        let source = std::ptr::null_mut::<u8>();
        let measure = |local| match local {
            LocalBuffer::Registered(addr, len, 7) => (addr.addr() as u64, len),
            other => panic!("{other:?}"),
        };
        match split(LocalBuffer::Registered(source, len, 7), to, 1024) {
            None => vec![(0, len)],
            Some((head, rest, _)) => vec![measure(head), measure(rest)],
        }
    }

    #[test]
    fn no_packet_of_a_put_ends_inside_a_word_that_it_writes_whole() {
        for to in 0x1000..0x1010 {
            for len in [1, 8, 1023, 1024, 1025, 1032, 5000] {
                let writes = writes(to, len);
                let mut next = 0;
                for (start, len) in &writes {
                    assert_eq!(*start, next, "bytes are left out or sent twice");
                    next += u64::from(*len);
                    let cuts = (1..*len).filter(|n| n % 1024 == 0);
                    for cut in cuts {
                        assert_eq!((to + start + u64::from(cut)) % 8, 0, "{to:#x} {len} {cut}");
                    }
                }
                assert_eq!(next, u64::from(len));
            }
        }
    }

    #[test]
    fn the_cpu_copies_nothing_out_of_gpu_memory_whatever_its_length() {
        let key = |on_gpu| {
            Some(MrKey {
                lkey: 7,
                further: None,
                on_gpu,
            })
        };
        for len in [1, 8, 220, 221, UNREGISTERED, UNREGISTERED + 1, 1 << 30] {
            for inline in [0, 220, 4096] {
                assert_eq!(
                    send_mode(len, key(true), inline),
                    SendMode::Zcopy(7),
                    "{len}"
                );
            }
        }
        // Host memory is copied up to where that is cheap.
        for key in [None, key(false)] {
            assert_eq!(send_mode(220, key, 220), SendMode::Inline);
            assert_eq!(send_mode(221, key, 220), SendMode::Bcopy);
            assert_eq!(send_mode(UNREGISTERED, key, 0), SendMode::Bcopy);
        }
        assert_eq!(
            send_mode(UNREGISTERED + 1, key(false), 220),
            SendMode::Zcopy(7)
        );
        assert_eq!(send_mode(UNREGISTERED + 1, None, 220), SendMode::Refused);
    }

    #[test]
    fn only_puts_that_need_it_are_split() {
        assert_eq!(writes(0x1000, 5000).len(), 1);
        assert_eq!(writes(0x1001, 1024).len(), 1);
        assert_eq!(writes(0x1001, 1025), [(0, 7), (7, 1018)]);
    }
}
