//! The lane: a queue of operations towards all peers.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use oxshmem_transport::{Completion, Counters, Error, Job, Lane, Op, Pe, Posted, Result};

use crate::inbox::Mailbox;
use crate::kinds::DEPTH;
use crate::late::{Late, Taken};
use crate::operation::{Performer, checked};
use crate::{Endpoint, NAME, Sender, Shared, Table, bad_data, lock, packed, unpacked};

/// A lane's connection with one PE.
#[derive(Debug, Default)]
struct Connection {
    /// This side's endpoint, once made.
    endpoint: Option<u64>,
    /// The peer's mailbox, once connected.
    mailbox: Option<Arc<Mailbox>>,
    counters: Counters,
}

#[derive(Debug)]
pub(crate) struct TinyLane {
    table: Arc<Table>,
    job: Job,
    shared: Arc<Mutex<Shared>>,
    /// The sender of its messages.
    sender: Sender,
    mailbox: Arc<Mailbox>,
    connections: Vec<Connection>,
    /// Posted operations, in order.
    queue: VecDeque<Taken>,
    /// Completed operations that are not performed yet.
    late: Late,
}

/// The limit of delayed operations.
const LATE: usize = 32;

impl TinyLane {
    pub(crate) fn new(
        table: Arc<Table>,
        job: Job,
        shared: Arc<Mutex<Shared>>,
        mailbox: Arc<Mailbox>,
    ) -> TinyLane {
        let connections = (0..job.size).map(|_| Connection::default()).collect();
        let sender = Sender {
            pe: job.me,
            shared: Arc::clone(&shared),
            open: Arc::new(Mutex::new(true)),
        };
        TinyLane {
            table,
            job,
            shared,
            sender,
            mailbox,
            connections,
            queue: VecDeque::new(),
            late: Late::default(),
        }
    }

    /// Takes one step; none is left otherwise.
    fn step(&mut self) -> bool {
        if self.late.len() < LATE
            && let Some(taken) = self.queue.pop_front()
        {
            self.start(taken);
            return true;
        }
        let next = self.late.next();
        next.map(|taken| self.perform(taken)).is_some()
    }

    /// Performs a posted operation, or delays it.
    fn start(&mut self, mut taken: Taken) {
        let pe = taken.pe;
        if lock(&self.shared).lost.contains(&pe) {
            return;
        }
        let late = self.table.kind.guarantees.completion == Completion::Accepted;
        match taken.op {
            Op::Put { .. } | Op::PutSignal { .. } | Op::Atomic { fetch: None, .. } if late => {
                // SAFETY: the poster keeps the local buffer until completion, counted below.
                unsafe { taken.hold() };
                self.late.accept(taken);
            }
            Op::Flush | Op::Atomic { .. } => {
                while let Some(earlier) = self.late.next() {
                    self.perform(earlier);
                }
                self.perform(taken);
            }
            _ => {
                while let Some(earlier) = self.late.next_put() {
                    self.perform(earlier);
                }
                self.perform(taken);
            }
        }
        self.connections[pe.index()].counters.completed += 1;
    }

    fn perform(&self, taken: Taken) {
        let Taken {
            pe,
            op,
            remote,
            held,
        } = taken;
        if lock(&self.shared).lost.contains(&pe) {
            return;
        }
        if let (Op::Message { .. }, Some(mailbox)) = (op, &self.connections[pe.index()].mailbox) {
            mailbox.push(self.sender.clone(), held);
            return;
        }
        let performer = Performer {
            capabilities: &self.table.kind.capabilities,
            nic: &self.table.nic,
        };
        // SAFETY: the local buffer is `held`, or the poster keeps it until completion, which `start`
        // counts after this; `remote` was checked when the operation was taken.
        unsafe { performer.perform(&op, &remote) };
    }
}

// SAFETY: the raw pointers in the queue's `Op`s are the poster's, who promised their validity until
// the lane is done with them, wherever the lane is moved to; or they name what `Taken` holds.
unsafe impl Send for TinyLane {}

impl Lane for TinyLane {
    fn endpoint(&mut self, pe: Pe) -> Result<Vec<u8>> {
        lock(&self.shared).check(&self.job, pe)?;
        let endpoint = Endpoint {
            of: self.job.me,
            towards: pe,
            mailbox: self.mailbox.clone(),
        };
        let mut board = lock(&self.table.board);
        let number = *self.connections[pe.index()]
            .endpoint
            .get_or_insert_with(|| board.number());
        board.endpoints.insert(number, endpoint);
        Ok(packed(b"end ", &[number]))
    }

    fn connect(&mut self, pe: Pe, endpoint: &[u8]) -> Result<()> {
        lock(&self.shared).check(&self.job, pe)?;
        let bad = |why| bad_data("an endpoint", pe, why);
        let [number] = unpacked(b"end ", endpoint).ok_or_else(|| bad("it is not an endpoint"))?;
        let board = lock(&self.table.board);
        let found = board.endpoints.get(&number);
        let found = found.filter(|end| (end.of, end.towards) == (pe, self.job.me));
        let found = found.ok_or_else(|| bad("it was not made by that PE for this one"))?;
        self.connections[pe.index()].mailbox = Some(found.mailbox.clone());
        Ok(())
    }

    unsafe fn post(&mut self, pe: Pe, ops: &[Op]) -> Posted {
        let shared = lock(&self.shared);
        if let Err(error) = shared.check(&self.job, pe) {
            return Posted::refused(0, error);
        }
        let connection = &mut self.connections[pe.index()];
        if connection.mailbox.is_none() {
            let why = "this lane is not connected with it".into();
            return Posted::refused(
                0,
                Error::Unreachable {
                    transport: NAME,
                    pe,
                    why,
                },
            );
        }
        let alone = self.queue.is_empty() && matches!(ops, [Op::Message { .. }]);
        for (accepted, op) in ops.iter().enumerate() {
            if connection.counters.posted - connection.counters.completed >= DEPTH as u64 {
                return Posted::full(accepted);
            }
            let remote = match checked(&self.table.kind.capabilities, &shared, pe, op) {
                Ok(remote) => remote,
                Err(error) => return Posted::refused(accepted, error),
            };
            let held = Vec::new();
            let mut taken = Taken {
                pe,
                op: *op,
                remote,
                held,
            };
            if matches!(op, Op::Message { .. }) {
                // SAFETY: the local buffer is valid now, and perhaps no longer.
                unsafe { taken.hold() };
            }
            self.queue.push_back(taken);
            connection.counters.posted += 1;
        }
        drop(shared);
        // A message that has nothing before it leaves at once: its reader may sleep until it comes.
        if alone && let Some(message) = self.queue.pop_front() {
            self.start(message);
        }
        Posted::all(ops.len())
    }

    /// At most 4 operations a call, and those that must be performed before them.
    fn progress(&mut self) -> Result<()> {
        lock(&self.shared).check_open()?;
        for _ in 0..4 {
            if !self.step() {
                break;
            }
        }
        Ok(())
    }

    fn counters(&self, pe: Pe) -> Counters {
        self.connections
            .get(pe.index())
            .map(|connection| connection.counters)
            .unwrap_or_default()
    }
}

impl Drop for TinyLane {
    fn drop(&mut self) {
        // Completed operations are performed; others may name memory that is gone.
        while let Some(taken) = self.late.next() {
            self.perform(taken);
        }
        *lock(&self.sender.open) = false;
        let mut board = lock(&self.table.board);
        for number in self
            .connections
            .iter()
            .filter_map(|connection| connection.endpoint)
        {
            board.endpoints.remove(&number);
        }
    }
}
