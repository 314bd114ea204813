//! The state of a queue pair: what it has been told, what it has sent, and what it has received.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use crate::abi::sys::{ibv_qp_attr, ibv_qp_cap, ibv_qp_state, ibv_wc_status};
use crate::completion::Queue;
use crate::device::{Device, Port, same_partition};
use crate::events::Given;
use crate::keys::Owner;
use crate::receive_queue::{Buffer, ReceiveQueue};
use crate::send_queue::{Request, SendQueue};
use crate::wire::{Body, Packet, Position, Remote, Route};

/// A request on its way.
#[derive(Debug)]
pub(crate) struct Sending {
    pub(crate) request: Request,
    /// Bytes that were sent, or asked for.
    pub(crate) sent: u64,
    pub(crate) started: bool,
    /// Whether it was counted among those at which faults may happen.
    pub(crate) counted: bool,
    /// Whether all of it was sent.
    pub(crate) complete: bool,
    /// Segments that are not yet answered.
    pub(crate) unanswered: u32,
    pub(crate) failed: Option<ibv_wc_status::Type>,
    pub(crate) clock: u64,
}

/// A segment that was sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    pub(crate) sequence: u64,
    /// The number of its request.
    pub(crate) request: u64,
    pub(crate) offset: u64,
    pub(crate) len: u64,
    pub(crate) answered: bool,
}

/// The requester's half.
#[derive(Debug, Default)]
pub(crate) struct Requester {
    /// Requests that have not completed, oldest first.
    pub(crate) requests: VecDeque<Sending>,
    /// Segments from the oldest unanswered one on, numbers without gaps.
    pub(crate) segments: VecDeque<Segment>,
    pub(crate) next: u64,
    /// Reads and atomics without an answer.
    pub(crate) reads: u32,
    /// The time of the last answer to one, on the clock of round trips.
    pub(crate) read_clock: u64,
    pub(crate) retries: u8,
    pub(crate) pauses: u8,
    /// Not before then anything is sent again, or at all.
    pub(crate) paused: Option<Instant>,
    pub(crate) deadline: Option<Instant>,
    /// Whether a timer for the deadline runs.
    pub(crate) timed: bool,
}

/// Something that has been sent here, and has not arrived.
#[derive(Debug)]
pub(crate) enum Arrival {
    /// A packet of a write.
    Write(Placement),
    /// The end of a write with immediate data.
    Immediate(Buffer, Position, u64),
    Send(Arc<Buffer>, Position, Vec<u8>, u64),
    Read(Remote, u32, u64),
    Atomic(Remote, bool, [u64; 2], u64),
}

impl Arrival {
    /// Whether it arrives after `earlier`, which was sent before it. An atomic, a message or a write may come before a
    /// read that was sent earlier, and a message or a write before an atomic: a sender that minds sets a fence.
    pub(crate) fn follows(&self, earlier: &Arrival, read_orders: bool) -> bool {
        match (self, earlier) {
            (Arrival::Write(_), _) => false,
            (Arrival::Read(..), _) => read_orders,
            (Arrival::Atomic(..), earlier) => !matches!(earlier, Arrival::Read(..)),
            (Arrival::Send(..) | Arrival::Immediate(..), earlier) => {
                !matches!(earlier, Arrival::Read(..) | Arrival::Atomic(..))
            }
        }
    }

    /// Whether it is a read or an atomic, whose sender waits for a result.
    pub(crate) fn responds(&self) -> bool {
        matches!(self, Arrival::Read(..) | Arrival::Atomic(..))
    }
}

/// Bytes on the bus.
#[derive(Debug)]
pub(crate) struct Placement {
    pub(crate) id: u64,
    /// The time at which it becomes visible by itself, once it is on the bus.
    pub(crate) due: Option<Instant>,
    pub(crate) addr: usize,
    pub(crate) data: Vec<u8>,
    pub(crate) relaxed: bool,
    pub(crate) gpu: bool,
}

impl Placement {
    /// Whether it writes any of `len` bytes from `addr` on.
    pub(crate) fn overlaps(&self, addr: usize, len: usize) -> bool {
        self.addr < addr + len && addr < self.addr + self.data.len()
    }
}

/// The responder's half.
#[derive(Debug, Default)]
pub(crate) struct Responder {
    pub(crate) expected: u64,
    /// By sequence number, and packet of the segment.
    pub(crate) arriving: BTreeMap<(u64, u32), Arrival>,
    /// Packets of each segment that have not arrived, and the time on its clock.
    pub(crate) missing: HashMap<u64, (u32, u64)>,
    pub(crate) bus: VecDeque<Placement>,
    pub(crate) placements: u64,
    /// The buffer of the message that is being received.
    pub(crate) buffer: Option<Arc<Buffer>>,
    /// Whether that buffer is flushed later than the rest.
    pub(crate) flushes_late: bool,
    /// Answers of the last atomics, for repeated ones.
    pub(crate) answers: VecDeque<(u64, u64)>,
}

/// A queue pair.
pub(crate) struct Pair {
    pub(crate) number: u32,
    pub(crate) card: u32,
    pub(crate) device: usize,
    pub(crate) owner: Owner,
    pub(crate) state: ibv_qp_state::Type,
    pub(crate) attr: ibv_qp_attr,
    pub(crate) cap: ibv_qp_cap,
    pub(crate) ece: [u32; 2],
    /// Whether it refuses to fail and to be destroyed, on cue.
    pub(crate) stuck: bool,
    pub(crate) send: Arc<SendQueue>,
    pub(crate) receive: Arc<ReceiveQueue>,
    /// The number of its shared receive queue.
    pub(crate) shared: Option<u64>,
    pub(crate) send_completions: Arc<Queue>,
    pub(crate) receive_completions: Arc<Queue>,
    pub(crate) events: Arc<Given>,
    pub(crate) ask: Requester,
    pub(crate) answer: Responder,
}

impl std::fmt::Debug for Pair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pair")
            .field("number", &self.number)
            .field("state", &self.state)
            .field("ask", &self.ask)
            .field("answer", &self.answer)
            .finish_non_exhaustive()
    }
}

impl Pair {
    /// Whether it performs peers' requests.
    pub(crate) fn receives(&self) -> bool {
        use ibv_qp_state::{IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_SQD};
        matches!(self.state, IBV_QPS_RTR | IBV_QPS_RTS | IBV_QPS_SQD)
    }

    /// Whether a peer's request is for it, and arrives.
    pub(crate) fn hears(&self, device: &Device, packet: &Packet) -> bool {
        let Some(port) = device.port(self.attr.port_num) else {
            return false;
        };
        let ours = port
            .pkeys
            .get(usize::from(self.attr.pkey_index))
            .copied()
            .unwrap_or(0);
        self.receives()
            && packet.from == self.attr.dest_qp_num
            && packet.route.first == self.attr.rq_psn
            && self
                .version(port)
                .is_none_or(|own| own == packet.route.version)
            && port.takes(device.ethernet(), &packet.route)
            && same_partition(ours, packet.route.partition)
    }

    /// The version of RoCE of its own identifier: 0 on InfiniBand, none if its address is gone.
    fn version(&self, port: &Port) -> Option<u8> {
        let address = &self.attr.ah_attr;
        if address.is_global == 0 {
            return Some(0);
        }
        let gid = port.gids.get(usize::from(address.grh.sgid_index))?;
        gid.map(|gid| gid.kind as u8)
    }

    /// A packet for its peer. `None`: the port's link is down, or its address gone, so nothing leaves.
    pub(crate) fn packet(
        &self,
        device: &Device,
        sequence: u64,
        clock: u64,
        body: Body,
    ) -> Option<Packet> {
        let port = device.port(self.attr.port_num).filter(|port| port.up)?;
        let address = &self.attr.ah_attr;
        // The source address must be there still.
        let version = self.version(port)?;
        // SAFETY: all views of the union are 16 bytes of which all values are valid.
        let gid = unsafe { address.grh.dgid.raw };
        let route = Route {
            ethernet: device.ethernet(),
            subnet: port.subnet,
            lid: (!device.ethernet()).then_some(address.dlid),
            gid,
            version,
            partition: *port.pkeys.get(usize::from(self.attr.pkey_index))?,
            first: self.attr.sq_psn,
            mtu: self.attr.path_mtu as u8,
        };
        Some(Packet {
            to: self.attr.dest_qp_num,
            from: self.number,
            sequence,
            clock,
            route,
            body,
        })
    }
}
