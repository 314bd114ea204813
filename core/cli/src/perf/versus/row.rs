//! The rows of the comparison, and the bounds of their ratios.

use oxshmem_figures::Bound;
use serde::Serialize;

/// The operation of a row, towards the other PE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Puts to and fro, each after the other's was seen: half a round trip.
    PingPong,
    /// Gets, each after the one before.
    Get,
    /// Fetching additions to a word of the NIC's atomic domain, each after the one before.
    FetchAdd,
    /// Nonblocking puts from the heap, then a quiet.
    Stream,
}

/// The unit of a row's figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Nanoseconds of one operation, the median over operations. Less is better.
    Nanoseconds,
    /// Bytes per second. More is better.
    Bandwidth,
    /// Operations per second. More is better.
    Rate,
}

impl Unit {
    /// The bound of oxshmem's figure divided by perftest's, on a device in software or in hardware.
    pub fn bound(self, software: bool) -> Bound {
        match (self, software) {
            (Unit::Nanoseconds, true) => Bound::AtMost(1.15),
            (Unit::Nanoseconds, false) => Bound::AtMost(1.05),
            (Unit::Bandwidth | Unit::Rate, true) => Bound::AtLeast(0.9),
            (Unit::Bandwidth | Unit::Rate, false) => Bound::AtLeast(0.95),
        }
    }
}

/// perftest's cost to post one operation of a row, by its sources.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Posting {
    /// Work requests.
    pub requests: f64,
    /// Calls of `ibv_post_send`.
    pub doorbells: f64,
    /// Completions.
    pub completions: f64,
}

/// One comparison.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    pub name: &'static str,
    pub work: Work,
    pub unit: Unit,
    /// Bytes of one operation.
    pub bytes: usize,
    /// perftest's program.
    pub program: &'static str,
    /// Its arguments, beside those for the connection, the size and the number.
    pub args: &'static [&'static str],
    pub posting: Posting,
}

/// One request, one doorbell and one completion for each operation.
const SINGLY: Posting = Posting {
    requests: 1.0,
    doorbells: 1.0,
    completions: 1.0,
};

/// One doorbell for each request, one completion for each hundred (`--cq-mod`).
const STREAM: Posting = Posting {
    completions: 0.01,
    ..SINGLY
};

/// Lists of 16 requests, of which only the last one is signaled.
const LISTS: Posting = Posting {
    requests: 1.0,
    doorbells: 1.0 / 16.0,
    completions: 1.0 / 16.0,
};

const fn latency(
    name: &'static str,
    work: Work,
    bytes: usize,
    program: &'static str,
    args: &'static [&'static str],
) -> Row {
    Row {
        name,
        work,
        unit: Unit::Nanoseconds,
        bytes,
        program,
        args,
        posting: SINGLY,
    }
}

const fn bandwidth(name: &'static str, bytes: usize) -> Row {
    Row {
        name,
        work: Work::Stream,
        unit: Unit::Bandwidth,
        bytes,
        program: "ib_write_bw",
        args: &[],
        posting: STREAM,
    }
}

/// All rows, in the order of the table.
pub const ROWS: [Row; 8] = [
    latency("put 8 B", Work::PingPong, 8, "ib_write_lat", &[]),
    latency("put 4 KiB", Work::PingPong, 4 << 10, "ib_write_lat", &[]),
    latency("get 8 B", Work::Get, 8, "ib_read_lat", &[]),
    latency("get 4 KiB", Work::Get, 4 << 10, "ib_read_lat", &[]),
    latency(
        "fetch-add",
        Work::FetchAdd,
        8,
        "ib_atomic_lat",
        &["-A", "FETCH_AND_ADD"],
    ),
    bandwidth("put 64 KiB", 64 << 10),
    bandwidth("put 1 MiB", 1 << 20),
    Row {
        name: "puts of 8 B",
        work: Work::Stream,
        unit: Unit::Rate,
        bytes: 8,
        program: "ib_write_bw",
        args: &["-l", "16"],
        posting: LISTS,
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn less_time_and_more_of_everything_else_is_better() {
        let time = Unit::Nanoseconds.bound(true);
        assert!(time.met(1.15) && time.met(0.5) && !time.met(1.16));
        let rate = Unit::Rate.bound(true);
        assert!(rate.met(0.9) && rate.met(2.0) && !rate.met(0.89));
        assert!(!Unit::Nanoseconds.bound(false).met(1.1));
    }

    #[test]
    fn streams_can_be_cut_into_lists() {
        for row in ROWS {
            assert_eq!(row.args.contains(&"-l"), row.posting.doorbells < 1.0);
            assert!(row.bytes >= 8 && row.bytes.is_multiple_of(8));
        }
    }
}
