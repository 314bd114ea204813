//! The primary connection at another NIC, where a PE has several and the one of the connection is lost.
//!
//! A connection that is made again offers a primary queue pair at each NIC that may have one, those that work first; the peer
//! chooses. A NIC is left when its peer is silent, when it fails, or when its port is down and an operation is to be posted
//! while nothing is in doubt; where replies to messages may be on their way, not before it has been for longer than retries
//! last. Requests that were outstanding are treated as those of any
//! [interrupted](super::interruption) connection.

use oxshmem_transport::{Pe, Result};

use super::VerbsLane;
use super::connection::{Connection, ConnectionState};
use super::interruption::Interruption;
use super::kept::Kept;
use super::nics::room_at;
use super::requester::{Making, Requester};
use crate::completion_error::CompletionError;
use crate::port_state::PortState;

impl Making<'_> {
    /// The NICs for a primary queue pair, in the order in which the peer is to choose one. `kept`: of the connection before.
    fn primary_nics(&self, kept: Option<&Kept>) -> Vec<u8> {
        let usable = self.rails.stand_ins().filter(|state| {
            // They may say that the port is down, or has another address.
            state.events();
            state.is_alive() && self.nic(state.rail).is_some()
        });
        let mut usable: Vec<&PortState> = usable.map(|state| &**state).collect();
        let is_left = |rail| kept.is_some_and(|kept| kept.leaves_nic && kept.nics.here == rail);
        usable.sort_by_key(|state| (state.is_down(), is_left(state.rail), state.rail));
        let first_works = usable.first().is_none_or(|state| state.rail == 0);
        if kept.is_none() && first_works {
            return vec![0];
        }
        usable.iter().map(|state| state.rail).collect()
    }

    /// Makes a primary queue pair at each of these, one at least.
    pub(super) fn primaries(
        &self,
        kept: Option<&Kept>,
        make: impl Fn(u8) -> Result<Requester>,
    ) -> Result<Vec<Requester>> {
        let (mut made, mut refused) = (Vec::new(), None);
        for rail in self.primary_nics(kept) {
            match make(rail) {
                Ok(requester) => made.push(requester),
                Err(error) => {
                    let pe = self.pe;
                    tracing::debug!(%pe, rail, %error, "no queue pair at one of the NICs");
                    refused.get_or_insert(error);
                }
            }
        }
        match refused {
            Some(error) if made.is_empty() => Err(error),
            _ if made.is_empty() => Ok(vec![make(0)?]),
            _ => Ok(made),
        }
    }
}

impl Connection {
    /// The NIC of the primary queue pair, if nothing is in doubt that is outstanding, and whether replies may be on their way.
    fn nic_to_leave(&self) -> Option<(u8, bool)> {
        let ConnectionState::Connected(queues) = &self.state else {
            return None;
        };
        let operations = self.operations.as_ref();
        let is_idle = operations.is_none_or(|operations| operations.is_empty());
        let nic = (queues.primary.rail, queues.primary.has_sent_messages);
        (is_idle && self.in_doubt() == 0).then_some(nic)
    }
}

impl VerbsLane {
    /// Whether another NIC than this one may have primary connections, and works.
    pub(super) fn has_stand_in(&self, rail: u8) -> bool {
        let mut others = self.further_stand_ins(rail);
        others.next().is_some()
    }

    fn further_stand_ins(&self, rail: u8) -> impl Iterator<Item = &PortState> {
        let all = self.rails.stand_ins().map(|state| &**state);
        let of_lane = |rail| room_at(&self.room, &self.further, rail).is_some();
        all.filter(move |state| state.rail != rail && of_lane(state.rail) && state.is_usable())
    }

    /// Leaves the NIC of a PE's primary connection, if its port is down, another one that works is in a network of it, and
    /// nothing outstanding is in doubt. Gives whether it did. `progress` then asks for the connection.
    #[cold]
    pub(super) fn leaves_down_port(&mut self, pe: Pe) -> bool {
        let connection = self.connections.get(pe.index());
        let Some((rail, may_have_replies)) = connection.and_then(Connection::nic_to_leave) else {
            return false;
        };
        // A reply on its way comes by the old connection alone, and is not given up for an outage that retries survive.
        let is_lost = |state: &PortState| match may_have_replies {
            true => state.is_down_for_long(),
            false => state.is_down(),
        };
        let Some(left) = self.rails.get(rail).filter(|state| is_lost(state)) else {
            return false;
        };
        // The peer's NIC is in one of these.
        let is_near = |state: &PortState| {
            let mut networks = state.networks.iter();
            networks.any(|name| left.networks.contains(name))
        };
        if !self.further_stand_ins(rail).any(is_near) {
            return false;
        }
        let why = CompletionError::Failed(format!("port {} is down", left.port.name()));
        self.leave_nic(pe, &why)
    }

    /// Leaves the NIC of a PE's primary connection, which has failed. If it cannot, the connection fails.
    #[cold]
    pub(super) fn leave_failed_nic(&mut self, pe: Pe) {
        let rail = self.rail_of(pe, 0);
        let port = self.rails.get(rail).map(|state| state.port.name());
        let port = port.unwrap_or_default();
        let why = CompletionError::Failed(format!("the device of {port} has failed"));
        if !self.leave_nic(pe, &why) {
            self.fail(pe, why);
        }
    }

    fn leave_nic(&mut self, pe: Pe, why: &CompletionError) -> bool {
        let connected = self.connected(pe);
        let oldest = connected.map(|(_, queues)| queues.primary.send_queue.oldest());
        oldest.is_some_and(|oldest| self.interrupt(pe, oldest, Interruption::LostNic, why))
    }
}
