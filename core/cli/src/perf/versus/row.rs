//! What is compared: rows of both sides, and how they must come out.

use oxshmem_figures::Bound;
use serde::Serialize;

/// What a row does, towards the other PE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Puts there and back, each after the other's was seen: half a round trip.
    PingPong,
    /// Gets, each after the one before.
    Get,
    /// Fetching additions to a word that the NIC has, each after the one before.
    FetchAdd,
    /// Nonblocking puts out of the heap, then a quiet.
    Stream,
}

/// What a row's figure counts.
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
    /// How oxshmem's figure of this unit, divided by perftest's, must come out on a device in software or not.
    pub fn bound(self, software: bool) -> Bound {
        match (self, software) {
            (Unit::Nanoseconds, true) => Bound::AtMost(1.15),
            (Unit::Nanoseconds, false) => Bound::AtMost(1.05),
            (Unit::Bandwidth | Unit::Rate, true) => Bound::AtLeast(0.9),
            (Unit::Bandwidth | Unit::Rate, false) => Bound::AtLeast(0.95),
        }
    }
}

/// How perftest posts in a row, by its sources: for one operation.
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
    /// The program of perftest.
    pub program: &'static str,
    /// Its arguments, beside those of the connection, size and number.
    pub args: &'static [&'static str],
    pub posting: Posting,
}

/// One request, one doorbell and one completion for each operation.
const SINGLY: Posting = Posting {
    requests: 1.0,
    doorbells: 1.0,
    completions: 1.0,
};

/// Doorbells of single requests, a completion for each hundred (`--cq-mod`).
const STREAM: Posting = Posting {
    completions: 0.01,
    ..SINGLY
};

/// Lists of 16 requests, of which the last completes.
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

/// All of them, in the order of the table.
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
