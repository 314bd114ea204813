//! The values of a request, which lanes of a warp may have made together for neighbouring words.

use oxshmem_device_library::ring::{LANES, Request};

/// Room for the values of a warp. They are aligned as they are at their PE, so that each is copied whole.
#[repr(align(8))]
pub(super) struct Values([u8; LANES * 8 + 8]);

impl Values {
    pub(super) fn new() -> Values {
        Values([0; LANES * 8 + 8])
    }

    /// The bytes of one value.
    pub(super) fn width(request: &Request) -> usize {
        usize::from(request.width).clamp(1, 8)
    }

    /// The bytes of a request's values.
    pub(super) fn of(&mut self, request: &Request) -> &mut [u8] {
        let start = (request.remote % 8) as usize;
        let bytes = Self::width(request) * (1 + usize::from(request.more));
        self.0.get_mut(start..start + bytes).unwrap_or_default()
    }

    /// Fills them in from words.
    pub(super) fn fill(&mut self, request: &Request, words: &[u64]) -> &mut [u8] {
        let width = Self::width(request);
        let bytes = self.of(request);
        for (value, word) in bytes.chunks_exact_mut(width).zip(words) {
            value.copy_from_slice(word.to_le_bytes().get(..width).unwrap_or_default());
        }
        bytes
    }

    /// Each of them as a word.
    pub(super) fn words(&mut self, request: &Request) -> impl Iterator<Item = u64> {
        let width = Self::width(request);
        self.of(request).chunks_exact(width).map(|value| {
            let mut word = [0; 8];
            word.iter_mut()
                .zip(value)
                .for_each(|(to, from)| *to = *from);
            u64::from_le_bytes(word)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(remote: u64, width: u8, more: u8) -> Request {
        Request {
            operation: None,
            width,
            more,
            pe: 0,
            remote,
            local: 0,
            bytes: 0,
            value: 0,
            compare: 0,
        }
    }

    #[test]
    fn values_are_aligned_as_their_words_and_come_back() {
        for (remote, width, more) in [(64, 8, 31), (4, 4, 31), (6, 2, 3), (7, 1, 0)] {
            let request = request(remote, width, more);
            let words: Vec<u64> = (0..=u64::from(more)).map(|word| word + 1).collect();
            let mut values = Values::new();
            let bytes = values.fill(&request, &words);
            assert_eq!(bytes.as_ptr() as u64 % 8, remote % 8);
            assert_eq!(bytes.len(), usize::from(width) * words.len());
            assert!(values.words(&request).eq(words));
        }
    }

    #[test]
    fn a_width_that_no_value_has_reaches_no_further() {
        assert_eq!(Values::new().of(&request(7, 255, 31)).len(), 256);
        assert_eq!(Values::new().of(&request(0, 0, 0)).len(), 1);
    }
}
