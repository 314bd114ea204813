//! The choice between a region's two keys for puts, by which a fence costs no round trip.
//!
//! By relaxed keys, writes pass each other on the target's bus. A write by a strict key passes none before it there, and
//! may itself be passed by later ones with relaxed keys. So from a fence on puts take the strict key: all of them, until
//! a flush has completed, by which all writes before it are in memory. Devices that place out of order have no such fence.

/// The keys of one connection's puts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PutKeys {
    /// Those by which puts may pass each other.
    Relaxed,
    /// Those by which they may not, since a fence.
    Strict,
    /// The same, until the flush with this request has completed.
    StrictUntil(u32),
}

impl PutKeys {
    /// Whether a put takes the strict key. `is_outstanding`: whether the request of this number has not completed. The keys
    /// are relaxed again once the flush has.
    #[inline]
    pub(crate) fn are_strict(&mut self, is_outstanding: impl FnOnce(u32) -> bool) -> bool {
        match *self {
            PutKeys::Relaxed => false,
            PutKeys::Strict => true,
            PutKeys::StrictUntil(flush) => {
                let strict = is_outstanding(flush);
                if !strict {
                    *self = PutKeys::Relaxed;
                }
                strict
            }
        }
    }

    /// A fence.
    #[inline]
    pub(crate) fn fence(&mut self) {
        *self = PutKeys::Strict;
    }

    /// A flush, which ends with this request.
    #[inline]
    pub(crate) fn flush(&mut self, last: u32) {
        if *self != PutKeys::Relaxed {
            *self = PutKeys::StrictUntil(last);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m17_after_a_fence_puts_are_strict_until_a_flush_has_completed() {
        let mut keys = PutKeys::Relaxed;
        assert!(!keys.are_strict(|_| true));
        keys.fence();
        // A later put by a relaxed key would pass the ones before the fence.
        for _ in 0..3 {
            assert!(keys.are_strict(|_| false));
        }
        keys.flush(7);
        assert!(keys.are_strict(|flush| flush == 7));
        assert!(!keys.are_strict(|_| false));
        assert_eq!(keys, PutKeys::Relaxed);
    }

    #[test]
    fn m17_a_fence_behind_a_flush_lasts_until_the_next_one() {
        let mut keys = PutKeys::Relaxed;
        keys.flush(1);
        assert_eq!(keys, PutKeys::Relaxed);
        keys.fence();
        keys.flush(2);
        keys.fence();
        assert!(keys.are_strict(|_| false));
    }
}
