//! The bootstrap of PEs that are threads of one process.

use std::collections::{BTreeSet, HashMap};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::bootstrap::{Bootstrap, ExitHandler, MessageHandler, PeerExit};
use crate::collective_rounds::{Rounds, Step};
use crate::delivery::{Delivery, SERVICE_STACK, join_service};
use crate::descriptors::check_list;
use crate::error::{Error, Result, check_bytes, io};
use crate::fault::Fault;
use crate::limits::{MAX_MESSAGE_BYTES, gathered_share};
use crate::lock::unpoisoned;
use crate::protocol::frame::Kind;
use crate::variables::DEFAULT_DEADLINE;

/// Longest time between checks for ended PEs, while a message waits for a free place in the receiver's queue.
const ROOM_SLICE: Duration = Duration::from_millis(100);

/// A PE that is a thread: one of a [`group`](InProcess::group).
///
/// Dropping it without [`leave`](Bootstrap::leave) counts as dying. [`abort`](Bootstrap::abort)
/// makes every call of the whole group fail from then on, since a thread cannot be killed. Handlers
/// run on a thread of the PE's own, which exists once one is set.
#[derive(Debug)]
pub struct InProcess {
    rank: u32,
    group: Arc<Group>,
    /// This PE's next collective call; held during it.
    sequence: Mutex<u64>,
    service: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Group {
    size: u32,
    deadline: Duration,
    state: Mutex<GroupState>,
    changed: Condvar,
    deliveries: Vec<Arc<Delivery>>,
}

/// A finished collective call, until all PEs have taken its result.
#[derive(Debug)]
struct Finished {
    result: Result<Arc<Vec<Vec<u8>>>, Fault>,
    untaken: u32,
}

/// Descriptors in exchange among the PEs of a list.
#[derive(Debug, Default)]
struct Exchange {
    given: HashMap<u32, Vec<OwnedFd>>,
    taken: usize,
}

#[derive(Debug)]
struct GroupState {
    rounds: Rounds,
    finished: HashMap<u64, Finished>,
    ended: Vec<PeerExit>,
    /// The PEs whose end counts as a goodbye.
    resting: BTreeSet<u32>,
    /// The number of calls of each PE with each list, and the exchanges in flight.
    exchange_counts: HashMap<(u32, Vec<u32>), u64>,
    exchanges: HashMap<(Vec<u32>, u64), Exchange>,
}

impl InProcess {
    /// The PEs of a group of `size` (at least one), in rank order, with the default deadline.
    pub fn group(size: u32) -> Vec<Arc<InProcess>> {
        Self::group_with_deadline(size, DEFAULT_DEADLINE)
    }

    /// As [`group`](Self::group), with another deadline for collective calls.
    pub fn group_with_deadline(size: u32, deadline: Duration) -> Vec<Arc<InProcess>> {
        let group = Arc::new(Group {
            size,
            deadline,
            state: Mutex::new(GroupState {
                rounds: Rounds::new(size),
                finished: HashMap::new(),
                ended: Vec::new(),
                resting: BTreeSet::new(),
                exchange_counts: HashMap::new(),
                exchanges: HashMap::new(),
            }),
            changed: Condvar::new(),
            deliveries: (0..size).map(|_| Arc::default()).collect(),
        });
        let member = |rank| {
            let (group, sequence, service) =
                (Arc::clone(&group), Mutex::default(), Mutex::default());
            Arc::new(InProcess {
                rank,
                group,
                sequence,
                service,
            })
        };
        (0..size).map(member).collect()
    }

    fn delivery(&self) -> &Arc<Delivery> {
        // `group` makes one delivery per rank, and ranks are its indices.
        &self.group.deliveries[self.rank as usize]
    }

    fn start_service(&self) -> Result<()> {
        let mut service = unpoisoned(self.service.lock());
        if service.is_none() {
            let delivery = Arc::clone(self.delivery());
            let thread = std::thread::Builder::new()
                .name(format!("receive-{}", self.rank))
                .stack_size(SERVICE_STACK)
                .spawn(move || delivery.serve())
                .map_err(io("starting the receive service's thread"))?;
            *service = Some(thread);
        }
        Ok(())
    }

    /// Fails if the group was aborted or this PE has left.
    fn check(&self, operation: &'static str) -> Result<MutexGuard<'_, GroupState>> {
        let state = self.group.lock();
        if let Some(fault @ Fault::Aborted { .. }) = state.rounds.fault() {
            return Err(fault.error(operation));
        }
        if state.ended.iter().any(|exit| exit.rank == self.rank) {
            return Err(Error::Left { operation });
        }
        Ok(state)
    }

    fn collect(&self, kind: Kind, bytes: Vec<u8>) -> Result<Arc<Vec<Vec<u8>>>> {
        let operation = kind.name();
        let mut next = unpoisoned(self.sequence.lock());
        let sequence = *next;
        let mut state = self.check(operation)?;
        *next += 1;
        let step = state
            .rounds
            .enter(self.rank, sequence, kind, self.group.deadline, bytes);
        self.group.announce(&mut state, step);
        loop {
            if let Some(finished) = state.finished.get_mut(&sequence) {
                let result = finished.result.clone();
                finished.untaken -= 1;
                if finished.untaken == 0 {
                    state.finished.remove(&sequence);
                }
                return result.map_err(|fault| fault.error(operation));
            }
            if let Some(fault) = state.rounds.fault() {
                return Err(fault.error(operation));
            }
            let now = Instant::now();
            let end = state.rounds.deadline().unwrap_or(now);
            if end <= now {
                let step = state.rounds.expire(now);
                self.group.announce(&mut state, step);
                continue;
            }
            state = self.group.wait(state, end - now);
        }
    }

    fn end(&self, orderly: bool) {
        let exit = PeerExit {
            rank: self.rank,
            orderly,
        };
        let mut state = self.group.lock();
        if state.ended.iter().any(|ended| ended.rank == self.rank) {
            return;
        }
        state.ended.push(exit);
        let step = state.rounds.gone(self.rank, orderly);
        self.group.announce(&mut state, step);
        for (_, delivery) in (0..)
            .zip(&self.group.deliveries)
            .filter(|(rank, _)| *rank != self.rank)
        {
            delivery.push_exit(exit);
        }
        drop(state);
        self.group.changed.notify_all();
    }
}

impl Group {
    fn lock(&self) -> MutexGuard<'_, GroupState> {
        unpoisoned(self.state.lock())
    }

    fn wait<'a>(
        &self,
        state: MutexGuard<'a, GroupState>,
        limit: Duration,
    ) -> MutexGuard<'a, GroupState> {
        unpoisoned(self.changed.wait_timeout(state, limit)).0
    }

    /// Wakes the waiting PEs after a step. A completed call's result is kept for each of them; a failed call's error is in
    /// `rounds`.
    fn announce(&self, state: &mut GroupState, step: Step) {
        match step {
            Step::Wait => return,
            Step::Complete { sequence, parts } => {
                let finished = Finished {
                    result: Ok(Arc::new(parts)),
                    untaken: self.size,
                };
                state.finished.insert(sequence, finished);
            }
            Step::Failed { .. } => {}
        }
        self.changed.notify_all();
    }
}

impl Bootstrap for InProcess {
    fn rank(&self) -> u32 {
        self.rank
    }

    fn size(&self) -> u32 {
        self.group.size
    }

    fn describe(&self) -> String {
        format!("in-process: thread {} of {}", self.rank, self.group.size)
    }

    fn allgather(&self, mine: &[u8]) -> Result<Vec<Vec<u8>>> {
        let limit = gathered_share(self.group.size as usize);
        check_bytes("allgather", mine.len(), limit)?;
        self.collect(Kind::Allgather, mine.to_vec())
            .map(Arc::unwrap_or_clone)
    }

    fn barrier(&self) -> Result<()> {
        self.collect(Kind::Barrier, Vec::new()).map(drop)
    }

    fn send(&self, to: u32, message: &[u8]) -> Result<()> {
        let operation = "send";
        let size = self.group.size;
        let target = self.group.deliveries.get(to as usize);
        let target = target.ok_or(Error::NoSuchRank { rank: to, size })?;
        check_bytes(operation, message.len(), MAX_MESSAGE_BYTES)?;
        let end = Instant::now() + self.group.deadline;
        let _unchanged = loop {
            let is_free = target.wait_until_not_full(ROOM_SLICE);
            let state = self.check(operation)?;
            if let Some(exit) = state.ended.iter().find(|exit| exit.rank == to) {
                return Err(Error::PeerGone {
                    operation,
                    rank: to,
                    orderly: exit.orderly,
                });
            }
            if is_free {
                break state;
            }
            if Instant::now() >= end {
                return Err(Error::Unheard { rank: to });
            }
        };
        // Still under the lock, so that no message comes after its sender's end.
        target.push_message(self.rank, message.to_vec());
        Ok(())
    }

    fn on_message(&self, handler: MessageHandler) -> Result<()> {
        self.delivery().set_on_message(handler)?;
        self.start_service()
    }

    fn on_exit(&self, handler: ExitHandler) -> Result<()> {
        self.delivery().set_on_exit(handler)?;
        self.start_service()
    }

    fn share_descriptors(
        &self,
        among: &[u32],
        mine: &[BorrowedFd<'_>],
        deadline: Duration,
    ) -> Result<Vec<Vec<OwnedFd>>> {
        let operation = "share_descriptors";
        check_list(among, self.rank, self.group.size)?;
        let start = Instant::now();
        let copies = mine
            .iter()
            .map(BorrowedFd::try_clone_to_owned)
            .collect::<std::io::Result<_>>();
        let copies = copies.map_err(io("duplicating a descriptor"))?;

        let mut state = self.check(operation)?;
        let count = state
            .exchange_counts
            .entry((self.rank, among.to_vec()))
            .or_default();
        let key = (among.to_vec(), *count);
        *count += 1;
        state
            .exchanges
            .entry(key.clone())
            .or_default()
            .given
            .insert(self.rank, copies);
        self.group.changed.notify_all();
        loop {
            if let Some(exchange) = state.exchanges.get_mut(&key)
                && exchange.given.len() == among.len()
            {
                let copies = exchange.copies_for(self.rank, among);
                exchange.taken += 1;
                if exchange.taken == among.len() {
                    state.exchanges.remove(&key);
                }
                return copies.map_err(io("duplicating a peer's descriptor"));
            }
            if let Some(fault @ Fault::Aborted { .. }) = state.rounds.fault() {
                return Err(fault.error(operation));
            }
            if let Some(exit) = state.ended.iter().find(|exit| among.contains(&exit.rank)) {
                return Err(Error::PeerGone {
                    operation,
                    rank: exit.rank,
                    orderly: exit.orderly,
                });
            }
            let Some(left) = deadline.checked_sub(start.elapsed()) else {
                let came = |rank: &&u32| {
                    state
                        .exchanges
                        .get(&key)
                        .is_some_and(|e| e.given.contains_key(rank))
                };
                let ranks = among.iter().filter(|rank| !came(rank)).copied().collect();
                return Err(Error::MissingRanks {
                    operation,
                    ranks,
                    waited: start.elapsed(),
                });
            };
            state = self.group.wait(state, left);
        }
    }

    fn abort(&self, status: i32, why: &str) {
        let fault = Fault::Aborted {
            by: self.rank,
            status,
            why: why.to_owned(),
        };
        let mut state = self.group.lock();
        let step = state.rounds.fail(fault, None);
        self.group.announce(&mut state, step);
        drop(state);
        // PEs that are in no call of this trait hear of it as of a death.
        self.end(false);
    }

    fn leave(&self) {
        self.end(true);
    }

    fn rest(&self, may_end: bool) {
        let mut state = self.group.lock();
        if may_end {
            state.resting.insert(self.rank);
        } else {
            state.resting.remove(&self.rank);
        }
    }
}

impl Exchange {
    fn copies_for(&self, rank: u32, among: &[u32]) -> std::io::Result<Vec<Vec<OwnedFd>>> {
        let copies = among.iter().map(|from| match self.given.get(from) {
            Some(given) if *from != rank => given.iter().map(OwnedFd::try_clone).collect(),
            _ => Ok(Vec::new()),
        });
        copies.collect()
    }
}

impl Drop for InProcess {
    fn drop(&mut self) {
        let orderly = self.group.lock().resting.contains(&self.rank);
        self.end(orderly);
        self.delivery().close();
        if let Some(service) = unpoisoned(self.service.get_mut()).take() {
            join_service(service);
        }
    }
}
