//! The changes of the header, of `changes.txt`, and of the host's side, that programs have to notice.

use oxshmem_device_library::inbox::HostInbox;
use oxshmem_device_library::ring::HostRing;

use crate::arena::SLOTS;

/// One change of the header.
pub struct Change {
    pub name: &'static str,
    /// The program that notices it, and the path.
    pub by: (&'static str, &'static str),
    /// The part of the header, by a piece of text that it has once.
    pub part: &'static str,
    pub from: &'static str,
    /// The places of `from` behind the part that are passed over.
    pub nth: usize,
    /// Nothing leaves a statement out.
    pub to: &'static str,
}

/// All of them.
pub fn changes() -> Vec<Change> {
    let text = include_str!("changes.txt");
    let records = text.split("\n\n").map(|record| {
        record
            .lines()
            .filter(|line| !line.starts_with('#'))
            .collect::<Vec<_>>()
    });
    let change = |record: Vec<&'static str>| {
        let [name, by, part, from, to] = record[..] else {
            panic!("a change of another form: {record:?}");
        };
        let field = |line: &'static str, prefix: &str| {
            line.strip_prefix(prefix)
                .unwrap_or_else(|| panic!("{name}: `{line}`"))
                .trim()
        };
        let from = field(from, "  ");
        let (nth, from) = match (from.strip_prefix("2nd "), from.strip_prefix("3rd ")) {
            (Some(from), _) => (1, from),
            (_, Some(from)) => (2, from),
            _ => (0, from),
        };
        Change {
            name,
            by: field(by, "  by ").split_once(' ').unwrap(),
            part: field(part, "  in "),
            from,
            nth,
            to: field(to, "  ->"),
        }
    };
    records
        .filter(|record| !record.is_empty())
        .map(change)
        .collect()
}

/// One access of the host's that orders nothing.
pub struct HostChange {
    pub name: &'static str,
    pub by: (&'static str, &'static str),
    /// Whether it is this one, by its offset in the ring's memory or the inbox's.
    pub is_it: fn(Access, usize) -> bool,
}

/// An access of the host's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    RingLoad,
    RingStore,
    InboxLoad,
    InboxStore,
}

fn slots(offset: usize) -> bool {
    (HostRing::SLOTS..HostRing::answers(SLOTS)).contains(&offset)
}

pub const HOST_CHANGES: &[HostChange] = &[
    HostChange {
        name: "a request is read early",
        by: ("mp+signal", "Ring"),
        is_it: |access, offset| access == Access::RingLoad && slots(offset),
    },
    HostChange {
        name: "a slot is freed early",
        by: ("many-puts", "Ring"),
        is_it: |access, offset| access == Access::RingStore && offset == HostRing::TAKEN,
    },
    HostChange {
        name: "sources are freed early",
        by: ("put+reuse", "Ring"),
        is_it: |access, offset| access == Access::RingStore && offset == HostRing::SOURCES_READ,
    },
    HostChange {
        name: "completion is told early",
        by: ("put-nbi+quiet+reuse", "Ring"),
        is_it: |access, offset| access == Access::RingStore && offset == HostRing::DONE,
    },
    HostChange {
        name: "an answer's place is used early",
        by: ("fetch+answers", "Ring"),
        is_it: |access, offset| access == Access::RingLoad && offset >= HostRing::answers(SLOTS),
    },
    HostChange {
        name: "an answer is told early",
        by: ("get", "Ring"),
        is_it: |access, offset| access == Access::RingStore && offset >= HostRing::answers(SLOTS),
    },
    HostChange {
        name: "an errand is told early",
        by: ("add+fence", "Ring"),
        is_it: |access, offset| access == Access::InboxStore && offset == HostInbox::POSTED,
    },
    HostChange {
        name: "an errand's answer is read early",
        by: ("two-adds", "Ring"),
        is_it: |access, _| access == Access::InboxLoad,
    },
];
