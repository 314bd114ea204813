//! Completed operations whose effect is delayed, as a NIC may delay it.

use std::collections::VecDeque;

use oxshmem_transport::{AtomicOp, Op, Pe, SignalOp, Width};

use crate::operation::RemoteAddress;

/// An operation that a lane has taken.
#[derive(Debug)]
pub(crate) struct Taken {
    pub pe: Pe,
    pub op: Op,
    /// Its remote address, and its signal's, as they were checked then.
    pub remote: (RemoteAddress, RemoteAddress),
    /// A copy of the local buffer, if that may be reused already: `op` names this instead.
    pub held: Vec<u8>,
}

impl Taken {
    /// Copies the local buffer of an operation that sends bytes.
    ///
    /// # Safety
    ///
    /// The local buffer is still readable.
    pub(crate) unsafe fn hold(&mut self) {
        if let Op::Put { from, .. } | Op::PutSignal { from, .. } | Op::Message { from } =
            &mut self.op
        {
            let mut copy = vec![0; from.len];
            // SAFETY: both are `len` bytes: the source as this function's caller promises, the copy just
            // made. The local buffer may be memory that others write, which this copy permits.
            unsafe { oxshmem_heap::copy::copy(copy.as_mut_ptr(), from.addr, from.len) };
            from.addr = copy.as_mut_ptr();
            self.held = copy;
        }
    }
}

/// Operations that the remote NIC has accepted and not performed yet. It performs puts first: in order, and before
/// the atomics that were posted after them, but also before earlier ones.
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
                let (data, word) = taken.remote;
                self.puts.push_back(Taken {
                    pe: taken.pe,
                    op: Op::Put { from, to },
                    remote: (data, RemoteAddress::NOWHERE),
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
                    remote: (word, RemoteAddress::NOWHERE),
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
