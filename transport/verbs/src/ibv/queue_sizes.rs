//! The sizes of a queue pair, and the smaller ones that are tried where a device refuses them: pure decisions.

use std::io;

/// The sizes of a queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueueSizes {
    /// Requests.
    pub(crate) depth: u32,
    /// Requests without which it is of no use.
    pub(crate) least_depth: u32,
    /// Bytes that a request may carry inline, as far as the device can.
    pub(crate) inline: u32,
    /// Queue pairs that the device holds, for the error's description.
    pub(crate) max_pairs: u32,
}

impl QueueSizes {
    /// The sizes to try after a refusal with an error of this number; none if smaller ones do not help. Providers name a
    /// request that is too long by several numbers, and a queue that is too large by one.
    fn after(self, code: i32) -> Option<QueueSizes> {
        let shorter = || {
            (self.inline > 0).then_some(QueueSizes {
                inline: self.inline / 2,
                ..self
            })
        };
        match code {
            libc::ENOMEM if self.depth > self.least_depth => Some(QueueSizes {
                depth: (self.depth / 2).max(self.least_depth),
                ..self
            }),
            libc::ENOMEM | libc::EINVAL | libc::EOPNOTSUPP => shorter(),
            _ => None,
        }
    }

    /// Creates something of these sizes, or of the largest that `create` does not refuse. The error is the first one: the
    /// refusal of what was wanted.
    pub(crate) fn largest<T>(
        self,
        mut create: impl FnMut(QueueSizes) -> io::Result<T>,
    ) -> io::Result<T> {
        let (mut sizes, mut first) = (self, None);
        loop {
            let error = match create(sizes) {
                Ok(created) => return Ok(created),
                Err(error) => error,
            };
            let next = error.raw_os_error().and_then(|code| sizes.after(code));
            let error = first.take().unwrap_or(error);
            match next {
                Some(smaller) => (sizes, first) = (smaller, Some(error)),
                None => return Err(error),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WANTED: QueueSizes = QueueSizes {
        depth: 386,
        least_depth: 50,
        inline: 220,
        max_pairs: 1000,
    };

    /// The sizes tried on a device that refuses with these errors, the last again and again, and the error at the end.
    fn tried(codes: &[i32]) -> (Vec<(u32, u32)>, Option<i32>) {
        let mut tried = Vec::new();
        let refused = WANTED.largest(|sizes| -> io::Result<()> {
            let code = codes[tried.len().min(codes.len() - 1)];
            tried.push((sizes.depth, sizes.inline));
            Err(io::Error::from_raw_os_error(code))
        });
        (tried, refused.unwrap_err().raw_os_error())
    }

    #[test]
    fn inline_data_are_halved_where_requests_are_too_long_and_the_queue_is_left() {
        for code in [libc::EINVAL, libc::EOPNOTSUPP] {
            let (tried, error) = tried(&[code]);
            let inline = [220, 110, 55, 27, 13, 6, 3, 1, 0];
            assert_eq!(tried, inline.map(|inline| (386, inline)));
            assert_eq!(error, Some(code));
        }
    }

    #[test]
    fn a_queue_that_is_too_large_is_halved_first_and_no_further_than_it_may() {
        let (tried, error) = tried(&[libc::ENOMEM]);
        let sizes = [(386, 220), (193, 220), (96, 220), (50, 220), (50, 110)];
        assert_eq!(tried[..5], sizes);
        assert_eq!((tried.last(), error), (Some(&(50, 0)), Some(libc::ENOMEM)));
    }

    #[test]
    fn other_errors_end_it_at_once_and_the_first_is_the_one_that_is_told() {
        assert_eq!(tried(&[libc::EPERM]), (vec![(386, 220)], Some(libc::EPERM)));
        let (tried, error) = tried(&[libc::EINVAL, libc::EPERM]);
        assert_eq!((tried.len(), error), (2, Some(libc::EINVAL)));
    }

    #[test]
    fn what_the_device_takes_is_kept() {
        let taken = WANTED.largest(|sizes| match sizes.depth * sizes.inline {
            0..10_000 => Ok(sizes),
            _ => Err(io::Error::from_raw_os_error(libc::ENOMEM)),
        });
        let taken = taken.unwrap();
        assert_eq!((taken.depth, taken.inline), (50, 110));
    }
}
