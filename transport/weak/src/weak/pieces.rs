//! The pieces of an operation: its parts that are performed at one moment each.

use oxshmem_transport::{AtomicOp, Lane, Local, Op, Pe, Remote, Result, SignalOp, Status, Width};

/// Pieces that a put is split into, at most.
const PIECES: usize = 4;

/// A part of an operation that is performed at one moment.
pub(super) struct Piece {
    pub op: Op,
    /// Whether it follows all pieces before it: a signal, a flush.
    pub last: bool,
    state: PieceState,
}

/// The progress of the wrapped lane with a piece. The number is the completion count at which the piece, or the
/// flush behind it, is done.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PieceState {
    Waiting,
    Given(u64),
    Flushing(u64),
    Done,
    /// The wrapped lane refused it: its PE, or the lane, is gone. It is never performed.
    Refused,
}

impl Piece {
    pub(super) fn is_waiting(&self) -> bool {
        self.state == PieceState::Waiting
    }

    pub(super) fn is_done(&self) -> bool {
        self.state == PieceState::Done
    }

    /// Whether the wrapped lane has it.
    pub(super) fn is_given(&self) -> bool {
        matches!(self.state, PieceState::Given(_) | PieceState::Flushing(_))
    }

    /// Marks it as done.
    pub(super) fn done(&mut self) {
        self.state = PieceState::Done;
    }

    /// Gives it to the wrapped lane, if that has room.
    ///
    /// # Safety
    ///
    /// As [`Lane::post`].
    pub(super) unsafe fn give(&mut self, lane: &mut dyn Lane, pe: Pe) -> Result<()> {
        // SAFETY: the operation's local memory is valid, as this function's caller promises.
        let posted = unsafe { lane.post(pe, &[self.op]) };
        match posted.status {
            Status::All => self.state = PieceState::Given(lane.counters(pe).posted),
            Status::Full => {}
            Status::Refused(error) => {
                self.state = PieceState::Refused;
                return Err(error);
            }
        }
        Ok(())
    }

    /// Polls the wrapped lane for its completion. `places`: completed operations are placed.
    pub(super) fn poll(&mut self, lane: &mut dyn Lane, pe: Pe, places: bool) -> Result<()> {
        let completed = lane.counters(pe).completed;
        match self.state {
            PieceState::Given(target) if completed >= target => {
                if places || self.delivers() {
                    self.state = PieceState::Done;
                    return Ok(());
                }
                // SAFETY: a flush names no memory.
                let posted = unsafe { lane.post(pe, &[Op::Flush]) };
                match posted.status {
                    Status::All => self.state = PieceState::Flushing(lane.counters(pe).posted),
                    Status::Full => {}
                    Status::Refused(error) => {
                        self.state = PieceState::Refused;
                        return Err(error);
                    }
                }
            }
            PieceState::Flushing(target) if completed >= target => self.state = PieceState::Done,
            _ => {}
        }
        Ok(())
    }

    /// Whether its completion means that it was performed, whatever completions mean otherwise.
    fn delivers(&self) -> bool {
        matches!(
            self.op,
            Op::Get { .. } | Op::Atomic { fetch: Some(_), .. } | Op::Flush
        )
    }
}

/// The pieces of an operation. `signal_waits`: a signal comes after its data.
pub(super) fn pieces(op: &Op, signal_waits: bool) -> Vec<Piece> {
    let piece = |op, last| Piece {
        op,
        last,
        state: PieceState::Waiting,
    };
    match *op {
        Op::Put { from, to } => parts(from, to).map(|op| piece(op, false)).collect(),
        Op::Get { into, from } => {
            let puts = parts(into, from);
            let gets = puts.filter_map(|part| match part {
                Op::Put {
                    from: into,
                    to: from,
                } => Some(Op::Get { into, from }),
                _ => None,
            });
            gets.map(|op| piece(op, false)).collect()
        }
        Op::PutSignal {
            from,
            to,
            signal,
            op,
            value,
        } => {
            let atomic = Op::Atomic {
                op: match op {
                    SignalOp::Set => AtomicOp::Set,
                    SignalOp::Add => AtomicOp::Add,
                },
                width: Width::W64,
                on: signal,
                operand: value,
                compare: 0,
                fetch: None,
            };
            let data = parts(from, to).map(|op| piece(op, false));
            data.chain([piece(atomic, signal_waits)]).collect()
        }
        op => vec![piece(op, matches!(op, Op::Flush))],
    }
}

/// A put's bytes in a few pieces, cut where an aligned word begins.
fn parts(from: Local, to: Remote) -> impl Iterator<Item = Op> {
    let words = from.len.div_ceil(8);
    let size = words.div_ceil(PIECES).max(1) * 8;
    let first = (size - (to.offset % 8) as usize).min(from.len);
    let mut at = 0;
    std::iter::from_fn(move || {
        if at >= from.len {
            return None;
        }
        let len = if at == 0 { first } else { size }.min(from.len - at);
        let part = Op::Put {
            from: Local {
                addr: from.addr.wrapping_add(at),
                len,
                ..from
            },
            to: Remote {
                offset: to.offset + at as u64,
                ..to
            },
        };
        at += len;
        Some(part)
    })
}

/// An operation in words, for a reader.
pub(super) fn words(pe: Pe, op: &Op) -> String {
    match op {
        Op::Put { from, to } => {
            format!("puts {} bytes at {} of PE {pe}", from.len, to.offset)
        }
        Op::Get { into, from } => {
            format!("gets {} bytes at {} of PE {pe}", into.len, from.offset)
        }
        Op::PutSignal { from, to, .. } => format!(
            "puts {} bytes at {} of PE {pe}, with a signal",
            from.len, to.offset
        ),
        Op::Atomic { op, on, .. } => format!("atomic {op} at {} of PE {pe}", on.offset),
        _ => format!("a flush towards PE {pe}"),
    }
}
