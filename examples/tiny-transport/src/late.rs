use std::collections::VecDeque;

use oxshmem_transport::{AtomicOp, Op, Pe, SignalOp, Width};

use crate::operation::Far;

/// An operation that a lane has taken.
#[derive(Debug)]
pub(crate) struct Taken {
    pub pe: Pe,
    pub op: Op,
    /// Its far address, and its signal's, as they were checked then.
    pub far: (Far, Far),
    /// A copy of the near side, where that may be reused already: `op` names this instead.
    pub held: Vec<u8>,
}

impl Taken {
    /// Copies the near side of what sends bytes.
    ///
    /// # Safety
    ///
    /// The near side is still readable.
    pub(crate) unsafe fn hold(&mut self) {
        if let Op::Put { from, .. } | Op::PutSignal { from, .. } | Op::Message { from } =
            &mut self.op
        {
            let mut copy = vec![0; from.len];
            // SAFETY: both are `len` bytes, by the caller's promise and just made; the near side may
            // be memory that others write, which this copy permits.
            unsafe { oxshmem_heap::copy::copy(copy.as_mut_ptr(), from.addr, from.len) };
            from.addr = copy.as_mut_ptr();
            self.held = copy;
        }
    }
}

/// What the far NIC has accepted and not done yet. It does puts first: each in its turn, and before
/// the atomics that came after it, but also before those that came earlier.
#[derive(Debug, Default)]
pub(crate) struct Late {
    puts: VecDeque<Taken>,
    atomics: VecDeque<Taken>,
}

impl Late {
    pub(crate) fn accept(&mut self, taken: Taken) {
        match taken.op {
            // Setting a signal is writing it, adding to it an atomic.
            Op::PutSignal {
                from,
                to,
                signal,
                op: SignalOp::Add,
                value,
            } => {
                let (data, word) = taken.far;
                self.puts.push_back(Taken {
                    pe: taken.pe,
                    op: Op::Put { from, to },
                    far: (data, Far::NOWHERE),
                    held: taken.held,
                });
                self.atomics.push_back(Taken {
                    pe: taken.pe,
                    op: Op::Atomic {
                        op: AtomicOp::Add,
                        width: Width::W64,
                        on: signal,
                        operand: value,
                        compare: 0,
                        fetch: None,
                    },
                    far: (word, Far::NOWHERE),
                    held: Vec::new(),
                });
            }
            Op::Atomic { .. } => self.atomics.push_back(taken),
            _ => self.puts.push_back(taken),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.puts.len() + self.atomics.len()
    }

    pub(crate) fn next_put(&mut self) -> Option<Taken> {
        self.puts.pop_front()
    }

    /// The next of all.
    pub(crate) fn next(&mut self) -> Option<Taken> {
        self.next_put().or_else(|| self.atomics.pop_front())
    }
}
