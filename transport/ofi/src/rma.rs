//! The provider's reads, writes and atomics on a peer's memory.

use oxshmem_transport::{AtomicRequest, Local, Result};

use crate::fabric::endpoint::RemotePlace;
use crate::fabric::slots::{BUFFER, SlotId};
use crate::peer::Failure;
use crate::state::{EntryId, Flight, State};
use crate::stream::Step;

/// The direction of an operation of the provider on a peer's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Read,
    Write,
}

impl State {
    /// A read or write of the rest of an entry, whose local memory is given, or of a part as long as the provider takes.
    pub(crate) fn advance_rma(
        &mut self,
        of: EntryId,
        (way, on_gpu): (Way, bool),
        rest: Local,
        place: RemotePlace,
    ) -> Step {
        if rest.len == 0 {
            return self.begin(of, 0);
        }
        let Some(address) = self.address_of(of.pe) else {
            return Step::Blocked;
        };
        let len = (rest.len as u64).min(self.ways.longest);
        let part = Local {
            len: len as usize,
            ..rest
        };
        let last = part.len == rest.len;
        if part.len <= BUFFER && !on_gpu {
            let Some(slot) = self.take_slot(of.pe, false) else {
                return Step::Blocked;
            };
            let Some(endpoint) = self.endpoint.as_mut() else {
                return Step::Blocked;
            };
            let (taken, flight) = match way {
                Way::Write => {
                    let buffer = endpoint.bytes(slot);
                    if buffer.len() >= part.len {
                        // SAFETY: the poster keeps the source readable, or it was copied; the buffer is this process's.
                        unsafe {
                            oxshmem_heap::copy::copy(buffer.as_mut_ptr(), part.addr, part.len);
                        }
                    }
                    let taken = endpoint.write(slot, part.len, address, place);
                    (taken, Flight::Write { of })
                }
                Way::Read => {
                    let taken = endpoint.read(slot, part.len, address, place);
                    (taken, Flight::Read { of, into: part })
                }
            };
            return self.posted(of, slot, flight, taken, (len, last));
        }
        let Some(slot) = self.take_bare(of.pe) else {
            return Step::Blocked;
        };
        let local = self.local_place(part, len);
        let Some(endpoint) = self.endpoint.as_mut() else {
            return Step::Blocked;
        };
        // SAFETY: the poster keeps the memory until the operation has completed, or its lane or PE is gone, for which
        // it then waits.
        let taken = unsafe {
            match way {
                Way::Write => endpoint.write_from(slot, local, address, place),
                Way::Read => endpoint.read_into(slot, local, address, place),
            }
        };
        self.posted(of, slot, Flight::InPlace { of }, taken, (len, last))
    }

    /// An atomic of the provider.
    pub(crate) fn advance_atomic(
        &mut self,
        of: EntryId,
        request: AtomicRequest,
        fetch: Option<Local>,
        place: RemotePlace,
    ) -> Step {
        let Some(address) = self.address_of(of.pe) else {
            return Step::Blocked;
        };
        let Some(slot) = self.take_slot(of.pe, false) else {
            return Step::Blocked;
        };
        let Some(endpoint) = self.endpoint.as_mut() else {
            return Step::Blocked;
        };
        let taken = endpoint.atomic(slot, request, fetch.is_some(), address, place);
        let flight = Flight::Atomic { of, into: fetch };
        self.posted(of, slot, flight, taken, (0, true))
    }

    /// Records a read or write of an entry that the provider was given.
    fn posted(
        &mut self,
        of: EntryId,
        slot: SlotId,
        flight: Flight,
        taken: Result<bool>,
        (len, last): (u64, bool),
    ) -> Step {
        let in_place = matches!(flight, Flight::InPlace { .. });
        if !matches!(taken, Ok(true)) {
            match in_place {
                true => self.free_bare(of.pe, slot),
                false => self.free_slot(of.pe, slot),
            }
            match taken {
                Err(error) => self.fail_peer(of.pe, Failure::of(&error)),
                Ok(_) => self.took(of.pe, false),
            }
            return Step::Blocked;
        }
        self.took(of.pe, true);
        self.set_flight(slot, flight);
        self.part_begun(of, in_place);
        if let Some(stream) = self.stream(of.lane, of.pe) {
            if let Some(entry) = stream.entry(of.serial) {
                entry.started += len;
            }
            if last {
                stream.begin();
            }
        }
        Step::Done
    }
}
