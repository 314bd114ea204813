//! A model of a job of thousands, from measurements on this machine and a few assumed figures of
//! networks.

use serde::Serialize;

use crate::rows::{Alone, Meeting, Processes, WIDTH};

/// Assumed: the time of a word from one host to another, from its post through three switches until
/// it is noticed, in seconds.
pub const LATENCY: f64 = 2e-6;
/// Assumed: the time of one more message of a NIC that is busy with others, in seconds.
pub const GAP: f64 = 0.2e-6;
/// Assumed: the bandwidth of the rendezvous' host by TCP, in bytes per second (10 Gbit/s).
pub const TCP: f64 = 1.25e9;
/// Bytes of other PEs' values that are in flight together (`transfer.rs` of the collectives). A
/// single word goes through scratch memory, whatever the number of PEs (`select.rs` beside it).
const IN_FLIGHT: usize = 1 << 20;
/// The number of hosts from which on they are read in rows and columns (`hierarchy.rs` of teams).
const IN_ROWS: usize = 32;

/// The results of the model.
#[derive(Debug, Serialize)]
pub struct Model {
    pub pes: usize,
    pub hosts: usize,
    pub start: Start,
    pub memory: Memory,
    /// Two cases: each PE maps all of its host, and it does not.
    pub barriers: [Arrival; 2],
    /// All-reduces of one word, in the same two cases.
    pub reduces: [Reduce; 2],
}

/// Measured constants, and their results for the start of a job.
#[derive(Debug, Serialize)]
pub struct Start {
    /// Bytes of a PE's contributions to all exchanges.
    pub given: usize,
    /// Bytes that a PE receives of all contributions, which are packed, at most.
    pub told: usize,
    /// Bytes that the rendezvous sends to all PEs.
    pub sent: f64,
    /// Seconds to send them over the network.
    pub sending_s: f64,
    /// Seconds to forward one byte here, with both ends on the same CPUs.
    pub byte_s: f64,
    /// Seconds to forward all bytes: an upper bound for the rendezvous' CPU.
    pub passing_s: f64,
    /// Seconds of a PE's own part.
    pub join_s: f64,
    /// Seconds of the rendezvous for a question and its answer.
    pub question_s: f64,
    /// Questions of all PEs for queue pairs, until the first barrier has completed.
    pub questions: f64,
    pub connecting_s: f64,
}

/// Bytes of a PE.
#[derive(Debug, Serialize)]
pub struct Memory {
    /// A process with the library, in a small job.
    pub base: f64,
    /// Bytes of the library's tables for each peer.
    pub each: f64,
    pub tables: f64,
    /// Queue pairs on each PE that barriers make.
    pub pairs: usize,
}

/// An all-reduce, as in `reduce.rs` and `reduce_hierarchical.rs` of the collectives.
#[derive(Debug, Serialize)]
pub struct Reduce {
    pub way: &'static str,
    /// After each arrival: the number of PEs that a PE reads over the network, and that read it.
    pub reads: Vec<usize>,
    pub seconds: f64,
    /// Questions of all PEs for queue pairs in the first one, at most: barriers have made some.
    pub questions: f64,
    pub connecting_s: f64,
}

impl Model {
    /// The model; `None` without enough measurements.
    pub fn of(
        processes: &[Processes],
        meetings: &[Meeting],
        (few, many): &(Alone, Alone),
    ) -> Option<Model> {
        let (two, most) = (
            processes.first().filter(|two| two.row.pes == 2)?,
            processes.last()?,
        );
        let meeting = meetings.last()?;
        let (pes, hosts) = (many.pes, many.hosts);
        let all = pes as f64;
        let near_s = two.row.barrier.seconds;
        let barriers = [by_host(pes, hosts, near_s), flat(pes, hosts, near_s)];
        let [barrier, _] = &barriers;

        let given: usize = many.exchanges.iter().sum();
        let sent = all * many.packed as f64;
        let passed = (meeting.pes * meeting.pes * meeting.gather_bytes) as f64;
        let byte_s = (meeting.gather_s - meeting.barrier_s).max(0.0) / passed;
        let questions = all * barrier.told as f64;
        let start = Start {
            given,
            told: many.packed,
            sent,
            sending_s: sent / TCP,
            byte_s,
            passing_s: sent * byte_s,
            join_s: many.join_s,
            question_s: meeting.question_s,
            questions,
            connecting_s: questions * meeting.question_s,
        };
        let each = (many.allocated - few.allocated) / (many.pes - few.pes) as f64;
        let memory = Memory {
            base: most.row.each.pss,
            each,
            tables: each * all,
            pairs: barrier.told,
        };
        // Within the arrival a host's PEs fold their contributions. Then each PE reads the result
        // of each other host, or of a row of hosts and, after one more arrival, of each other row.
        // If PEs do not map their hosts, each reads every other PE.
        let [by_host, flat] = &barriers;
        let reduces = [
            Reduce::after(by_host, across(hosts), all, meeting.question_s),
            Reduce::after(flat, vec![pes - 1], all, meeting.question_s),
        ];
        Some(Model {
            pes,
            hosts,
            start,
            memory,
            barriers,
            reduces,
        })
    }
}

impl Reduce {
    /// The cost for a word that each of `all` PEs reads from so many others after such an arrival,
    /// and perhaps from others after another.
    fn after(arrival: &Arrival, reads: Vec<usize>, all: f64, question_s: f64) -> Self {
        let step = |reads: &usize| {
            let waits = (reads * size_of::<u64>()).div_ceil(IN_FLIGHT);
            // A NIC sends the requests of its PE's reads and its replies to the others'.
            let messages = (2 * reads).saturating_sub(1);
            arrival.seconds + waits as f64 * 2.0 * LATENCY + messages as f64 * GAP
        };
        let questions = all * reads.iter().sum::<usize>() as f64;
        Reduce {
            way: arrival.way,
            seconds: reads.iter().map(step).sum(),
            reads,
            questions,
            connecting_s: questions * question_s,
        }
    }
}

/// The number of hosts that a PE reads after each arrival.
fn across(hosts: usize) -> Vec<usize> {
    if hosts < IN_ROWS {
        return vec![hosts - 1];
    }
    let rows = hosts.isqrt();
    vec![hosts.div_ceil(rows) - 1, rows - 1]
}

/// The arrival of all PEs, as `state.rs` of teams lays it out.
#[derive(Debug, Serialize)]
pub struct Arrival {
    pub way: &'static str,
    /// Rounds between hosts, and rounds within hosts alone.
    pub far_rounds: usize,
    pub near_rounds: usize,
    /// PEs of other hosts that a PE signals.
    pub told: usize,
    pub seconds: f64,
}

/// Every PE signals every other, whatever route there is between them.
fn flat(pes: usize, hosts: usize, near_s: f64) -> Arrival {
    let (radix, width) = (radix(pes, WIDTH), pes.div_ceil(hosts));
    let (mut distance, mut far_rounds, mut near_rounds, mut told) = (1, 0, 0, 0);
    let mut seconds = 0.0;
    while distance < pes {
        let digits = (1..radix).take_while(|digit| digit * distance < pes);
        // About half of those less than a host's width away are on the same host.
        let remote = digits.filter(|digit| hosts > 1 && 2 * digit * distance > width);
        let remote = remote.count();
        match remote {
            0 => {
                near_rounds += 1;
                seconds += near_s;
            }
            remote => {
                far_rounds += 1;
                seconds += LATENCY + (remote - 1) as f64 * GAP;
            }
        }
        told += remote;
        distance *= radix;
    }
    Arrival {
        way: "all by each other",
        far_rounds,
        near_rounds,
        told,
        seconds,
    }
}

/// The PEs of a host among themselves; then the hosts among themselves, with each PE taking its
/// share of the words; and the PEs of a host again, after each of those rounds.
fn by_host(pes: usize, hosts: usize, near_s: f64) -> Arrival {
    let width = pes.div_ceil(hosts);
    let radix = radix(hosts, WIDTH * width);
    let (mut distance, mut far_rounds, mut told, mut seconds) = (1, 0, 0, near_s);
    while distance < hosts {
        let digits = (1..radix).take_while(|digit| digit * distance < hosts);
        let share = digits.count().div_ceil(width);
        far_rounds += 1;
        told += share;
        seconds += LATENCY + share.saturating_sub(1) as f64 * GAP + near_s;
        distance *= radix;
    }
    Arrival {
        way: "host by host",
        far_rounds,
        near_rounds: far_rounds + 1,
        told,
        seconds,
    }
}

/// The radix: one round for so many at most, else two.
fn radix(count: usize, one_round: usize) -> usize {
    if count <= one_round {
        count.max(2)
    } else {
        count.isqrt() + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_have_the_rounds_and_words_of_their_layout() {
        let told = |arrival: Arrival| (arrival.near_rounds, arrival.far_rounds, arrival.told);
        // 100 digits in a round, of which 4 are on the own host; 99 in the other.
        assert_eq!(told(flat(10_000, 1_250, 0.0)), (0, 2, 96 + 99));
        // 35 and 34 words, shared by 8 PEs.
        assert_eq!(told(by_host(10_000, 1_250, 0.0)), (3, 2, 5 + 5));
        assert_eq!(told(by_host(16, 2, 0.0)), (2, 1, 1));
        assert_eq!(told(flat(8, 1, 0.0)), (1, 0, 0));
        let seconds = by_host(16, 2, 1.0).seconds;
        assert!((seconds - 2.0 - LATENCY).abs() < 1e-12, "{seconds}");
    }

    #[test]
    fn a_word_is_read_of_each_other_host_or_of_rows_and_columns_of_them() {
        assert_eq!(across(1), [0]);
        assert_eq!(across(31), [30]);
        assert_eq!(across(32), [6, 4]);
        assert_eq!(across(1_250), [35, 34]);
        let arrival = by_host(10_000, 1_250, 0.0);
        let twice = Reduce::after(&arrival, vec![35, 34], 1.0, 1.0);
        let once = |reads| Reduce::after(&arrival, vec![reads], 1.0, 1.0).seconds;
        assert!((twice.seconds - once(35) - once(34)).abs() < 1e-12);
        assert_eq!(twice.questions, 69.0);
        let reduce = Reduce::after(&arrival, vec![1_249], 10_000.0, 1e-4);
        // One round trip, and as many messages of a NIC as it has requests and replies.
        let reading = reduce.seconds - arrival.seconds;
        assert!(
            (reading - 2.0 * LATENCY - 2_497.0 * GAP).abs() < 1e-12,
            "{reading}"
        );
        assert_eq!(reduce.questions, 12_490_000.0);
        assert!((reduce.connecting_s - 1_249.0).abs() < 1e-6);
        // More words than may be in flight together need two latencies.
        let most = IN_FLIGHT / size_of::<u64>();
        let waits = |reads| {
            let reduce = Reduce::after(&arrival, vec![reads], 1.0, 0.0);
            let rest = reduce.seconds - arrival.seconds - (2 * reads - 1) as f64 * GAP;
            (rest / 2.0 / LATENCY).round()
        };
        assert_eq!([waits(most), waits(most + 1)], [1.0, 2.0]);
    }
}
