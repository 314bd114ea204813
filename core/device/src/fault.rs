//! The record of a kernel's bad call, in words.

use std::fmt;

use crate::layout::{COMPLETE, Fault};

/// The calls that record faults, in the order of `Call` in `header/check.cuh`.
pub const CALLS: [&str; 19] = [
    "put",
    "get",
    "p",
    "g",
    "iput",
    "iget",
    "put_signal",
    "signal",
    "an atomic",
    "a wait",
    "a test",
    "a query of a team",
    "broadcast",
    "fcollect",
    "alltoall",
    "reduce",
    "reduce_scatter",
    "a scan",
    "barrier or sync",
];

/// The kinds of faults, in the order of `Kind` in `header/check.cuh`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// There is no such PE.
    Pe,
    /// The range is not in the symmetric heap (M35).
    Range,
    /// The address is not aligned to its type (M38).
    Alignment,
    /// There is no such team.
    Team,
    /// The root is no member.
    Root,
    /// A stride is less than 1.
    Stride,
}

impl Kind {
    const ALL: [Kind; 6] = [
        Kind::Pe,
        Kind::Range,
        Kind::Alignment,
        Kind::Team,
        Kind::Root,
        Kind::Stride,
    ];
}

/// A bad call of a kernel: the call, its fault, and the thread that made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadCall {
    /// The call.
    pub call: &'static str,
    /// The kind of its fault.
    pub kind: Kind,
    /// The PE that was given; or the team, root or stride, by the kind.
    pub value: i64,
    /// The address that was given; 0 if the fault is of none.
    pub address: u64,
    /// The bytes from there on that the call would have used.
    pub bytes: u64,
    /// The block's indices in the grid.
    pub block: [u32; 3],
    /// The thread's indices in its block.
    pub thread: [u32; 3],
}

impl BadCall {
    /// The record's contents; none unless it is complete.
    #[must_use]
    pub fn of(record: &Fault) -> Option<BadCall> {
        if record.state != COMPLETE {
            return None;
        }
        Some(BadCall {
            call: CALLS.get(record.call as usize)?,
            kind: *Kind::ALL.get(record.kind as usize)?,
            value: record.pe,
            address: record.address,
            bytes: record.bytes,
            block: record.block,
            thread: record.thread,
        })
    }
}

impl fmt::Display for BadCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BadCall {
            call,
            value,
            address,
            bytes,
            ..
        } = self;
        write!(f, "{call} in a kernel: ")?;
        match self.kind {
            Kind::Pe => write!(f, "there is no PE {value}"),
            Kind::Range => write!(
                f,
                "{bytes} bytes at {address:#x}, towards PE {value}, do not lie in the GPU heap; give an address of \
                 this PE's own symmetric objects"
            ),
            Kind::Alignment => write!(
                f,
                "the address {address:#x}, towards PE {value}, is not aligned to its type"
            ),
            Kind::Team => write!(f, "there is no team {value}"),
            Kind::Root => write!(f, "member {value}, the root, does not exist"),
            Kind::Stride => write!(f, "the stride {value} is less than 1"),
        }?;
        let ([bx, by, bz], [x, y, z]) = (self.block, self.thread);
        write!(f, " (block {bx},{by},{bz}, thread {x},{y},{z})")
    }
}

#[cfg(test)]
mod tests {
    use bytemuck::Zeroable;

    use super::*;

    #[test]
    fn a_record_is_told_in_words_once_it_is_complete() {
        let mut record = Fault {
            call: 2,
            kind: 0,
            pe: 7,
            thread: [5, 0, 0],
            ..Fault::zeroed()
        };
        assert_eq!(BadCall::of(&record), None);
        record.state = 1;
        assert_eq!(BadCall::of(&record), None);
        record.state = 2;
        let told = BadCall::of(&record).unwrap().to_string();
        assert_eq!(
            told,
            "p in a kernel: there is no PE 7 (block 0,0,0, thread 5,0,0)"
        );
    }

    /// Names in the header's enumerations, in order.
    #[test]
    fn calls_and_kinds_are_the_headers() {
        let names = |prefix: &str| {
            crate::HEADER
                .lines()
                .filter(|line| line.trim_start().starts_with(prefix) && line.ends_with(','))
                .map(|line| {
                    line.trim()
                        .trim_start_matches(prefix)
                        .trim_end_matches(',')
                        .to_lowercase()
                })
                .collect::<Vec<_>>()
        };
        assert_eq!(names("CALL_").len(), CALLS.len());
        let kinds = Kind::ALL.map(|kind| format!("{kind:?}").to_lowercase());
        assert_eq!(names("KIND_"), kinds);
        for (name, call) in names("CALL_").iter().zip(CALLS) {
            assert!(call.contains(&**name), "{name}: {call}");
        }
    }
}
