//! The hosts' threads that serve rings and inboxes, and the NICs.
//!
//! They are agents of the simulated memory. The protocols are the library's own ([`HostRing`], [`HostInbox`]); what is done with a
//! request is as in core/oxshmem/src/device/ring_server.rs.

mod nic;
mod words;

use std::collections::{HashMap, VecDeque};

use oxshmem_device_library::inbox::{Errand, HostInbox};
use oxshmem_device_library::ring::{HostRing, Operation, Request};
use oxshmem_weak::Agent;

use crate::arena::{Arena, SLOTS};
use crate::changes::HostChange;
use crate::simulation::with;
use nic::{Action, Posted};
use words::Words;

/// The reason why a host does not look at the next request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waits {
    /// A put's source is read.
    Source(u64),
    /// An operation is complete; then the request of this ticket is answered.
    Answer {
        operation: u64,
        ticket: u64,
        flushes: bool,
    },
    /// The next answer finds a place.
    Place { ticket: u64 },
    /// Everything is complete.
    All { flushes: bool },
}

/// A host, with its NIC.
pub struct Host {
    pe: usize,
    pub agent: Agent,
    /// The NIC's reads of this PE's memory, and what it writes there for this PE.
    nic: Agent,
    ring: HostRing<Words>,
    inbox: HostInbox<Words>,
    posted: Vec<Posted>,
    posts: u64,
    generation: u64,
    waits: Option<Waits>,
    /// The results of operations that are complete.
    results: HashMap<u64, Vec<u64>>,
    /// Answers that have no place yet. Their tickets follow each other.
    answers: VecDeque<u64>,
    in_flight: bool,
    reads_sources: bool,
    gets: bool,
    asked: VecDeque<(usize, u64, Errand)>,
    errand: Option<(u64, usize, u64)>,
    /// The number of stores when it last found nothing to do.
    pub idle_at: Option<u64>,
}

/// All hosts of a run.
pub struct Hosts {
    pub all: Vec<Host>,
}

impl Hosts {
    pub fn new(
        arena: &Arena,
        pes: usize,
        is_late: bool,
        change: Option<&'static HostChange>,
    ) -> Hosts {
        let host = |pe| {
            let (agent, nic) = with(|run| {
                let machine = &mut run.memory.machine;
                let agent = machine.agent(oxshmem_weak::Place::Outside);
                let nic = if is_late {
                    machine.late_nic(pe)
                } else {
                    machine.agent(oxshmem_weak::Place::Outside)
                };
                (agent, nic)
            });
            let words = |start, is_inbox| Words {
                start,
                agent,
                is_inbox,
                change,
            };
            Host {
                pe,
                agent,
                nic,
                ring: HostRing::with(words(arena.host_ring(pe), false), SLOTS),
                inbox: HostInbox::with(words(arena.host_inbox(pe), true)),
                posted: Vec::new(),
                posts: 0,
                generation: 0,
                waits: None,
                results: HashMap::new(),
                answers: VecDeque::new(),
                in_flight: false,
                reads_sources: false,
                gets: false,
                asked: VecDeque::new(),
                errand: None,
                idle_at: None,
            }
        };
        Hosts {
            all: (0..pes).map(host).collect(),
        }
    }

    /// Whether an errand of this PE's GPU waits for a thread.
    pub fn has_errand(&self, pe: usize) -> bool {
        self.all[pe].errand.is_some()
    }

    /// Whether all is done that so many requests asked for.
    pub fn is_idle(&self, pe: usize, requests: u64) -> bool {
        let host = &self.all[pe];
        host.ring.taken() == requests
            && host.posted.is_empty()
            && host.waits.is_none()
            && host.errand.is_none()
            && host.asked.is_empty()
            && !host.in_flight
    }

    /// One step of a host's thread. False if there was nothing to do.
    pub fn step(&mut self, arena: &Arena, pe: usize) -> bool {
        self.serve_inbox(pe) | self.serve_ring(arena, pe)
    }

    /// Asks the GPU for the next atomic, or passes its answer on.
    fn serve_inbox(&mut self, pe: usize) -> bool {
        let host = &mut self.all[pe];
        if let Some((number, from, operation)) = host.errand {
            let Some(old) = host.inbox.answer(number) else {
                return false;
            };
            host.errand = None;
            // The reply is a message from host to host.
            let (replier, asked_by) = (self.all[pe].agent, self.all[from].agent);
            with(|run| run.memory.machine.inform(replier, asked_by));
            let asker = &mut self.all[from];
            asker.posted.retain(|posted| posted.number != operation);
            asker.results.insert(operation, vec![old]);
            return true;
        }
        let Some((from, operation, errand)) = host.asked.pop_front() else {
            return false;
        };
        host.errand = Some((host.inbox.post(&errand), from, operation));
        true
    }

    fn serve_ring(&mut self, arena: &Arena, pe: usize) -> bool {
        if let Some(waits) = self.all[pe].waits {
            return self.go_on(pe, waits);
        }
        let host = &mut self.all[pe];
        if let Some((ticket, request)) = host.ring.take() {
            with(|run| run.tell(|_| format!("host {pe} takes {ticket}: {request:?}")));
            host.execute(arena, ticket, &request);
            host.free_sources();
            return true;
        }
        if host.in_flight {
            host.waits = Some(Waits::All { flushes: false });
            return true;
        }
        false
    }

    /// Goes on with a request that waits.
    fn go_on(&mut self, pe: usize, waits: Waits) -> bool {
        let host = &mut self.all[pe];
        let is_posted = |number| host.posted.iter().any(|posted| posted.number == number);
        match waits {
            Waits::Source(number) => {
                let reads = |posted: &Posted| {
                    posted.number == number
                        && matches!(&posted.action, Action::Put { from: Some(_), values, .. } if values.is_empty())
                };
                if host.posted.iter().any(reads) {
                    return false;
                }
                host.waits = host.reads_sources.then_some(Waits::All { flushes: false });
            }
            Waits::Answer { operation, .. } if is_posted(operation) => return false,
            Waits::Answer {
                operation,
                ticket,
                flushes,
            } => {
                if flushes {
                    with(|run| run.memory.machine.flush(host.agent, host.pe));
                }
                let values = host.results.remove(&operation);
                host.answers.extend(values.unwrap_or_else(|| vec![0]));
                host.waits = Some(Waits::Place { ticket });
            }
            Waits::Place { ticket } => {
                let next = host.answers.front().copied().unwrap_or(0);
                if !host.ring.answer(ticket, next) {
                    return false;
                }
                host.answers.pop_front();
                let is_last = host.answers.is_empty();
                host.waits = (!is_last).then_some(Waits::Place { ticket: ticket + 1 });
            }
            Waits::All { .. } if !host.posted.is_empty() => return false,
            Waits::All { flushes } => {
                if flushes || host.gets {
                    with(|run| run.memory.machine.flush(host.agent, host.pe));
                }
                (host.in_flight, host.reads_sources, host.gets, host.waits) =
                    (false, false, false, None);
                let count = host.ring.taken();
                host.ring.free_sources(count);
                host.ring.complete(count);
            }
        }
        if host.waits.is_none() {
            host.free_sources();
        }
        true
    }
}

impl Host {
    fn free_sources(&self) {
        if self.waits.is_none() && !self.reads_sources {
            self.ring.free_sources(self.ring.taken());
        }
    }

    /// Begins a request.
    fn execute(&mut self, arena: &Arena, ticket: u64, request: &Request) {
        let to = request.pe as usize;
        let remote = arena.heap(to, request.remote);
        let words = (request.bytes / 8) as usize;
        let left = || (0..words).collect();
        // Of values: the lanes whose requests are joined.
        let lanes = 1 + usize::from(request.more);
        let operation = match request.operation {
            Some(operation) if to < arena.pes() && is_whole(operation, request.bytes) => operation,
            // The real host ends the job's waits.
            _ => return with(|run| run.memory.fault = Some(format!("{request:?}"))),
        };
        match operation {
            Operation::Put | Operation::PutSignal => {
                let number = self.post(
                    to,
                    Action::Put {
                        from: Some(request.local as usize),
                        to: remote,
                        values: Vec::new(),
                        left: left(),
                    },
                );
                self.in_flight = true;
                if operation == Operation::PutSignal {
                    self.generation += 1;
                    self.signal(arena, request);
                }
                if operation == Operation::PutSignal || request.width != 0 {
                    self.waits = Some(Waits::Source(number));
                } else {
                    self.reads_sources = true;
                }
            }
            Operation::PutValue => {
                self.post(
                    to,
                    Action::Put {
                        from: None,
                        to: remote,
                        values: self.ring.values()[..lanes].to_vec(),
                        left: (0..lanes).collect(),
                    },
                );
                self.in_flight = true;
            }
            Operation::Get => {
                // A get sees the puts before it, so it waits for them.
                self.generation += 1;
                let number = self.post(
                    to,
                    Action::Get {
                        from: remote,
                        to: request.local as usize,
                        left: left(),
                    },
                );
                if request.width == 0 {
                    (self.in_flight, self.gets) = (true, true);
                } else {
                    self.waits = Some(Waits::Answer {
                        operation: number,
                        ticket,
                        flushes: true,
                    });
                }
            }
            Operation::GetValue => {
                self.generation += 1;
                let number = self.post(
                    to,
                    Action::Values {
                        from: remote,
                        values: vec![0; lanes],
                        left: (0..lanes).collect(),
                    },
                );
                self.waits = Some(Waits::Answer {
                    operation: number,
                    ticket,
                    flushes: false,
                });
            }
            Operation::Signal => self.signal(arena, request),
            Operation::Fence => self.generation += 1,
            Operation::Quiet => self.waits = Some(Waits::All { flushes: false }),
            Operation::Flush => self.waits = Some(Waits::All { flushes: true }),
            _ => {
                let (number, fetches) = atomic(operation);
                let errand = Errand {
                    word: remote as u64,
                    operation: number,
                    width: u32::from(request.width),
                    operand: request.value,
                    compare: request.compare,
                    old: 0,
                    done: 0,
                    padding: [0; 2],
                };
                let number = self.post(
                    to,
                    Action::Atomic {
                        errand,
                        is_asked: false,
                    },
                );
                if fetches {
                    self.waits = Some(Waits::Answer {
                        operation: number,
                        ticket,
                        flushes: false,
                    });
                } else {
                    self.in_flight = true;
                }
            }
        }
        // The doorbell: a NIC does nothing before what the host knew then.
        let (host, nic) = (self.agent, self.nic);
        with(|run| run.memory.machine.inform(host, nic));
    }

    fn signal(&mut self, arena: &Arena, request: &Request) {
        let to = request.pe as usize;
        let word = arena.heap(to, request.compare);
        self.in_flight = true;
        let action = match request.width {
            0 => Action::Put {
                from: None,
                to: word,
                values: vec![request.value],
                left: vec![0],
            },
            _ => {
                let errand = Errand {
                    word: word as u64,
                    operation: 2,
                    width: 8,
                    operand: request.value,
                    compare: 0,
                    old: 0,
                    done: 0,
                    padding: [0; 2],
                };
                Action::Atomic {
                    errand,
                    is_asked: false,
                }
            }
        };
        self.post(to, action);
    }
}

/// Whether a request may have so many bytes: words of 8, few, and one at least where it is a transfer.
fn is_whole(operation: Operation, bytes: u64) -> bool {
    let transfers = matches!(
        operation,
        Operation::Put | Operation::PutSignal | Operation::Get
    );
    bytes.is_multiple_of(8) && bytes <= 64 && (bytes > 0 || !transfers)
}

/// The number of an atomic in the order of `AtomicOp::ALL`, and whether its result is wanted.
fn atomic(operation: Operation) -> (u32, bool) {
    match operation {
        Operation::Fetch => (0, true),
        Operation::Set => (1, false),
        Operation::Add => (2, false),
        Operation::FetchAdd => (2, true),
        Operation::And => (3, false),
        Operation::FetchAnd => (3, true),
        Operation::Or => (4, false),
        Operation::FetchOr => (4, true),
        Operation::Xor => (5, false),
        Operation::FetchXor => (5, true),
        Operation::Swap => (6, true),
        Operation::CompareSwap => (7, true),
        other => panic!("{other:?} is no atomic"),
    }
}
