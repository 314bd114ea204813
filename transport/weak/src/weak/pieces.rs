//! What an operation is made of: the parts of it that happen at one moment each.

use oxshmem_transport::{AtomicOp, Lane, Local, Op, Pe, Remote, Result, SignalOp, Status, Width};

/// Pieces that a put is split into, at most.
const PIECES: usize = 4;

/// A part of an operation that happens at one moment.
pub(super) struct Piece {
    pub op: Op,
    /// It goes after all pieces before it: a signal, a flush.
    pub last: bool,
    state: State,
}

/// How far the wrapped lane is with a piece. It has completed one, or the flush after it, when it has
/// completed so many.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting,
    Given(u64),
    Flushing(u64),
    Done,
    /// The wrapped lane refused it: its PE, or the lane, is gone. It is never performed.
    Refused,
}

impl Piece {
    pub(super) fn is_waiting(&self) -> bool {
        self.state == State::Waiting
    }

    pub(super) fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Whether the wrapped lane has it.
    pub(super) fn is_given(&self) -> bool {
        matches!(self.state, State::Given(_) | State::Flushing(_))
    }

    /// Nothing of it is left to do.
    pub(super) fn done(&mut self) {
        self.state = State::Done;
    }

    /// Gives it to the wrapped lane, if that has room.
    ///
    /// # Safety
    ///
    /// As [`Lane::post`].
    pub(super) unsafe fn give(&mut self, lane: &mut dyn Lane, pe: Pe) -> Result<()> {
        // SAFETY: the caller's promise.
        let posted = unsafe { lane.post(pe, &[self.op]) };
        match posted.status {
            Status::All => self.state = State::Given(lane.counters(pe).posted),
            Status::Full => {}
            Status::Refused(error) => {
                self.state = State::Refused;
                return Err(error);
            }
        }
        Ok(())
    }

    /// Looks how far the wrapped lane is. `places`: what it has completed is in place.
    pub(super) fn look(&mut self, lane: &mut dyn Lane, pe: Pe, places: bool) -> Result<()> {
        let completed = lane.counters(pe).completed;
        match self.state {
            State::Given(target) if completed >= target => {
                if places || self.delivers() {
                    self.state = State::Done;
                    return Ok(());
                }
                // SAFETY: a flush names no memory.
                let posted = unsafe { lane.post(pe, &[Op::Flush]) };
                match posted.status {
                    Status::All => self.state = State::Flushing(lane.counters(pe).posted),
                    Status::Full => {}
                    Status::Refused(error) => {
                        self.state = State::Refused;
                        return Err(error);
                    }
                }
            }
            State::Flushing(target) if completed >= target => self.state = State::Done,
            _ => {}
        }
        Ok(())
    }

    /// Whether it was performed once it is completed, whatever a completion means.
    fn delivers(&self) -> bool {
        matches!(
            self.op,
            Op::Get { .. } | Op::Atomic { fetch: Some(_), .. } | Op::Flush
        )
    }
}

/// The parts of an operation that happen at one moment each.
pub(super) fn pieces(op: &Op) -> Vec<Piece> {
    let piece = |op, last| Piece {
        op,
        last,
        state: State::Waiting,
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
            data.chain([piece(atomic, true)]).collect()
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

/// An operation, for a reader.
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
