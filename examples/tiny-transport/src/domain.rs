//! The domain: one PE's memory and peers.

use std::any::Any;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex};

use oxshmem_transport::{
    Capabilities, Domain, Error, Guarantees, Inbox, Job, Lane, LocalKey, Memory, MemoryKind, Pe,
    Peer, Reach, Region, RegionId, RegionNumber, RegionNumbers, RemoteRegion, Result,
};

use crate::inbox::{Mailbox, TinyInbox};
use crate::lane::TinyLane;
use crate::{Endpoint, NAME, Shared, Step, Table, bad_data, lock, packed, unpacked};

/// One PE's opened transport.
#[derive(Debug)]
pub(crate) struct TinyDomain {
    table: Arc<Table>,
    job: Job,
    shared: Arc<Mutex<Shared>>,
    numbers: RegionNumbers,
    mailbox: Arc<Mailbox>,
    /// The endpoints made for others' lanes.
    accepted: Mutex<Vec<u64>>,
}

impl TinyDomain {
    pub(crate) fn new(table: Arc<Table>, job: Job) -> TinyDomain {
        TinyDomain {
            table,
            job,
            shared: Arc::default(),
            mailbox: Arc::default(),
            numbers: RegionNumbers::default(),
            accepted: Mutex::default(),
        }
    }

    fn carries(&self, kind: MemoryKind) -> bool {
        self.table.kind.capabilities.memory.contains(&kind)
    }
}

impl Domain for TinyDomain {
    fn capabilities(&self) -> &Capabilities {
        &self.table.kind.capabilities
    }

    fn guarantees(&self, kind: MemoryKind) -> Option<Guarantees> {
        self.carries(kind).then_some(self.table.kind.guarantees)
    }

    /// This process, and the table in it: two PEs reach each other if they name the same.
    fn address(&self) -> Vec<u8> {
        packed(
            b"addr",
            &[
                std::process::id().into(),
                Arc::as_ptr(&self.table).addr() as u64,
            ],
        )
    }

    fn reach(&self, peer: &Peer, kind: MemoryKind) -> Reach {
        match &peer.address {
            _ if !self.carries(kind) => Reach::None(format!("{kind} memory is not copied")),
            None => Reach::None("it has no tiny transport open".into()),
            Some(address) if *address != self.address() => {
                Reach::None("it shares no table with this PE; give both the same Tiny".into())
            }
            Some(_) => Reach::Remote,
        }
    }

    fn register(&self, id: RegionId, memory: &Memory) -> Result<Box<dyn Region>> {
        if !self.carries(memory.kind()) || !memory.base().addr().get().is_multiple_of(4096) {
            let why = format!(
                "only {:?} that begins on a page",
                self.capabilities().memory
            );
            return Err(Error::Memory {
                transport: NAME,
                kind: memory.kind(),
                why,
            });
        }
        let taken = self.numbers.claim(NAME, id, memory)?;
        let mut board = lock(&self.table.board);
        if board.refusals.contains(&(Step::Register, self.job.me, id)) {
            let why = "refused on demand".into();
            return Err(Error::Memory {
                transport: NAME,
                kind: memory.kind(),
                why,
            });
        }
        let number = board.number();
        board
            .regions
            .insert(number, (self.job.me, id, memory.clone()));
        let key = packed(b"key ", &[number, memory.len() as u64]);
        Ok(Box::new(TinyRegion {
            table: self.table.clone(),
            taken,
            number,
            key,
        }))
    }

    fn import(
        &self,
        peer: &Peer,
        region: RegionId,
        key: &[u8],
        _: Option<OwnedFd>,
    ) -> Result<Arc<dyn RemoteRegion>> {
        let bad = |why| bad_data("the key of a region", peer.pe, why);
        let [number, len] = unpacked(b"key ", key).ok_or_else(|| bad("it is not a key"))?;
        let board = lock(&self.table.board);
        if board
            .refusals
            .contains(&(Step::Import, self.job.me, region))
        {
            return Err(bad("refused on demand"));
        }
        let (pe, id, memory) = board
            .regions
            .get(&number)
            .ok_or_else(|| bad("no such region"))?;
        if (*pe, *id, memory.len() as u64) != (peer.pe, region, len) {
            return Err(bad("it is another region's"));
        }
        let memory = memory.clone();
        lock(&self.shared)
            .imported
            .insert((peer.pe, region), memory.clone());
        Ok(Arc::new(TinyRemote(memory)))
    }

    fn lane(&self) -> Result<Box<dyn Lane>> {
        let (table, job, shared) = (self.table.clone(), self.job.clone(), self.shared.clone());
        lock(&shared).check_open()?;
        let mailbox = self.mailbox.clone();
        Ok(Box::new(TinyLane::new(table, job, shared, mailbox)))
    }

    /// The lane may connect with any number of this PE: there is nothing to set up on this side.
    fn accept(&self, pe: Pe, endpoint: &[u8]) -> Result<Vec<u8>> {
        lock(&self.shared).check(&self.job, pe)?;
        let me = self.job.me;
        let bad = |why| bad_data("an endpoint", pe, why);
        let [number] = unpacked(b"end ", endpoint).ok_or_else(|| bad("it is not an endpoint"))?;
        let mut board = lock(&self.table.board);
        let theirs = board.endpoints.get(&number);
        if theirs.is_none_or(|end| (end.of, end.towards) != (pe, me)) {
            return Err(bad("it was not made by that PE for this one"));
        }
        let number = board.number();
        let mailbox = self.mailbox.clone();
        board.endpoints.insert(
            number,
            Endpoint {
                of: me,
                towards: pe,
                mailbox,
            },
        );
        lock(&self.accepted).push(number);
        Ok(packed(b"end ", &[number]))
    }

    fn inbox(&self) -> Result<Box<dyn Inbox>> {
        if self.table.kind.capabilities.message == 0 {
            return Err(Error::Unsupported {
                transport: NAME,
                what: "receiving messages".into(),
            });
        }
        let (mailbox, shared) = (self.mailbox.clone(), self.shared.clone());
        Ok(Box::new(TinyInbox::open(self.job.me, mailbox, shared)?))
    }

    fn peer_lost(&self, pe: Pe) {
        lock(&self.shared).lost.insert(pe);
    }

    fn shutdown(&self) {
        lock(&self.shared).closed = true;
        self.mailbox.close();
    }
}

impl Drop for TinyDomain {
    fn drop(&mut self) {
        let mut board = lock(&self.table.board);
        for number in lock(&self.accepted).drain(..) {
            board.endpoints.remove(&number);
        }
    }
}

#[derive(Debug)]
struct TinyRegion {
    table: Arc<Table>,
    taken: RegionNumber,
    number: u64,
    key: Vec<u8>,
}

impl Region for TinyRegion {
    fn id(&self) -> RegionId {
        self.taken.id()
    }

    fn key(&self) -> &[u8] {
        &self.key
    }

    fn local_key(&self) -> LocalKey {
        LocalKey(self.number)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

impl Drop for TinyRegion {
    fn drop(&mut self) {
        lock(&self.table.board).regions.remove(&self.number);
    }
}

#[derive(Debug)]
struct TinyRemote(Memory);

impl RemoteRegion for TinyRemote {
    fn mapped(&self) -> Option<NonNull<u8>> {
        None
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn keep_alive(&self) -> Arc<dyn Any + Send + Sync> {
        self.0.owner().clone()
    }
}
