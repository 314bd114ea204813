//! The operations that can be measured.

use super::sizes::Sizes;

/// An operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Op {
    Put,
    Get,
    P,
    G,
    FetchAdd,
    Quiet,
    PQuiet,
    PingPong,
    PutSignal,
    Barrier,
}

impl Op {
    /// In the order of the table.
    pub const ALL: [Op; 10] = [
        Op::P,
        Op::G,
        Op::FetchAdd,
        Op::Quiet,
        Op::PQuiet,
        Op::PingPong,
        Op::Barrier,
        Op::Put,
        Op::Get,
        Op::PutSignal,
    ];

    /// As users write it.
    pub fn name(self) -> &'static str {
        match self {
            Op::Put => "put",
            Op::Get => "get",
            Op::P => "p",
            Op::G => "g",
            Op::FetchAdd => "fetch-add",
            Op::Quiet => "quiet",
            Op::PQuiet => "p-quiet",
            Op::PingPong => "ping-pong",
            Op::PutSignal => "put-signal",
            Op::Barrier => "barrier",
        }
    }

    /// The sizes it is measured at, in bytes, given those asked for. Of one value only its type's.
    pub fn sizes(self, asked: Sizes) -> Vec<usize> {
        match self {
            Op::Put | Op::Get | Op::PutSignal => asked.all(),
            Op::P | Op::G => vec![1, 2, 4, 8],
            Op::FetchAdd => vec![4, 8],
            Op::PQuiet | Op::PingPong => vec![8],
            Op::Quiet | Op::Barrier => vec![0],
        }
    }

    /// Whether bytes per second say something.
    pub fn moves_data(self) -> bool {
        matches!(self, Op::Put | Op::Get | Op::PutSignal)
    }

    /// Whether it takes an answer from another PE.
    pub fn needs_two(self) -> bool {
        matches!(self, Op::PingPong | Op::PutSignal | Op::Barrier)
    }

    /// Operations in one repetition: there and back is two.
    pub fn per_repetition(self) -> f64 {
        if matches!(self, Op::PingPong | Op::PutSignal) {
            2.0
        } else {
            1.0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    #[test]
    fn every_operation_is_measured_once_under_the_name_that_users_write() {
        assert_eq!(Op::ALL.len(), Op::value_variants().len());
        for op in Op::value_variants() {
            assert_eq!(Op::ALL.iter().filter(|other| *other == op).count(), 1);
            assert_eq!(Op::from_str(op.name(), false), Ok(*op));
        }
    }
}
