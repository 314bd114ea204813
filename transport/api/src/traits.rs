//! The traits of a transport: [`Transport`] opens a [`Domain`], which registers memory and opens [`Lane`]s.

use std::any::Any;
use std::fmt;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

use crate::capabilities::{AtomicTable, Capabilities, SignalSupport};
use crate::error::{Error, Result};
use crate::guarantees::Guarantees;
use crate::inbox::Inbox;
use crate::memory::{LocalKey, Memory, MemoryKind, RegionId};
use crate::op::Op;
use crate::pe::Pe;
use crate::schedule::{Accessor, Schedule};

/// The host of a PE: equal ids claim one kernel and one memory. The claim alone does not make memory
/// reachable; mapping it does.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostId(pub String);

/// The job, as a domain needs to know it.
#[derive(Clone, Debug)]
pub struct Job {
    /// This PE.
    pub me: Pe,
    /// Number of PEs.
    pub size: u32,
    /// This PE's number among those of its host, where that is known before the PEs have met; else `me`. Transports spread
    /// their interrupts over a host's CPUs by it, and rely on it for nothing else.
    pub host_rank: u32,
    /// This PE's host.
    pub host: HostId,
}

/// One peer (or this PE itself), as a domain needs to know it.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Its number.
    pub pe: Pe,
    /// Its host.
    pub host: HostId,
    /// The [`Domain::address`] of its domain of the same transport; none if it has no such domain.
    pub address: Option<Vec<u8>>,
}

/// Something a transport can be opened on: a NIC port, a GPU, or the host's memory itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// Its name, such as `mlx5_0:1`, `GPU-…` or `memory`.
    pub name: String,
    /// One line about it for `oxshmem info`.
    pub description: String,
    /// Its bandwidth in Mb/s, by which networks are compared; 0 if the transport does not know it.
    pub megabits: u32,
    /// The networks that it is in. None if all devices of the transport reach each other, or if the transport cannot tell.
    pub networks: Vec<Network>,
}

/// A network of one transport's devices. Two devices with a network in common reach each other. The name means
/// nothing to the layers above: it is compared, and shown to users.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Network {
    /// Networks with equal names are one. Short, because every PE sends it to all, and readable, such as
    /// `RoCE 10.1.0.0/16`.
    pub name: String,
    /// Whether its devices may be unable to reach each other, and the transport cannot find out here. The same for every
    /// device in it.
    pub uncertain: bool,
}

/// A device that a PE may use beside the one that its domain is opened on.
#[derive(Clone, Copy, Debug)]
pub struct Further<'d> {
    /// The device.
    pub device: &'d Device,
    /// Whether it is at least as near to the PE as the one opened, and is not the one that another PE of its host opens. It may
    /// be in another network.
    pub is_spare: bool,
}

/// The access to one peer's memory of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// None; the reason, in words for `oxshmem info`.
    None(String),
    /// By operations on a lane.
    Remote,
    /// By CPU loads, stores and atomic instructions on a mapping, as well as on a lane.
    Mapped {
        /// Whether [`Domain::import`] needs the region's descriptor.
        descriptor: bool,
    },
}

/// A kind of transport. Stateless until opened; safe to construct where its library or hardware is
/// missing.
///
/// # Safety
///
/// Callers access memory by the addresses that a transport's objects give. An implementation promises, for every
/// object that comes from it:
///
/// - [`RemoteRegion::mapped`] gives the start of [`RemoteRegion::len`] bytes that are readable and
///   writable while the object of [`keep_alive`](RemoteRegion::keep_alive) lives.
/// - An operation accesses its local memory within the range it was given, and not after it is
///   counted as completed, was cancelled because its PE was [lost](Domain::peer_lost) or the connection has
///   failed, or its lane was dropped.
pub unsafe trait Transport: Send + Sync + fmt::Debug {
    /// Its name, as users write it in `OXSHMEM_TRANSPORT`.
    fn name(&self) -> &'static str;

    /// The devices it could be opened on here, best first. `Err` says why there are none.
    fn probe(&self) -> Result<Vec<Device>>;

    /// Opens a domain for one PE.
    fn open(&self, device: &Device, job: &Job) -> Result<Arc<dyn Domain>>;

    /// The setting by which a user says whether the devices of an [uncertain](Network::uncertain) network reach each other,
    /// as `on` or `off`. None if there is no such setting.
    fn network_setting(&self) -> Option<&'static str> {
        None
    }

    /// Opens a domain for one PE, that may use `further` devices too, nearest first. By default it uses none.
    fn open_with(
        &self,
        device: &Device,
        _further: &[Further<'_>],
        job: &Job,
    ) -> Result<Arc<dyn Domain>> {
        self.open(device, job)
    }
}

/// One PE's opened transport.
pub trait Domain: Send + Sync + fmt::Debug {
    /// Its capabilities. Constant while the domain lives.
    fn capabilities(&self) -> &Capabilities;

    /// Its guarantees about memory of this kind at the target; none if it cannot reach such memory. Constant
    /// while the domain lives.
    fn guarantees(&self, kind: MemoryKind) -> Option<Guarantees>;

    /// Its guarantees about memory of this kind at one peer, where they depend on the peer's device. Constant
    /// while the domain lives. By default those of [`guarantees`](Self::guarantees).
    fn guarantees_towards(&self, _peer: &Peer, kind: MemoryKind) -> Option<Guarantees> {
        self.guarantees(kind)
    }

    /// Its atomics on memory at one peer, where they depend on the peer's device: a part of those of
    /// [`capabilities`](Self::capabilities), which are the default. Lanes refuse others by name. Constant while the domain
    /// lives.
    fn atomics_towards(&self, _peer: &Peer) -> AtomicTable {
        self.capabilities().atomics
    }

    /// Its put-with-signal to one peer, where it depends on the peer's device: that of
    /// [`capabilities`](Self::capabilities), which is the default, or none. Constant while the domain lives.
    fn put_signal_towards(&self, _peer: &Peer) -> SignalSupport {
        self.capabilities().put_signal
    }

    /// The most messages of this PE that may be at a peer without a reply, if there is a limit: its inbox has room for as many
    /// of each PE, and further ones may hold up the lanes that they take. All lanes of this PE share it. At least 1.
    /// Constant while the domain lives. By default there is no limit.
    fn message_window(&self, _peer: &Peer) -> Option<u32> {
        None
    }

    /// The facts about the devices at both ends on which the guarantees towards a peer stand, with their price,
    /// in words for `oxshmem info`; none where nothing depends on a device.
    fn explain(&self, _peer: &Peer) -> Option<String> {
        None
    }

    /// The address of this domain for peers' domains, as bytes.
    fn address(&self) -> Vec<u8>;

    /// Whether and how memory of `kind` at `peer` can be reached.
    fn reach(&self, peer: &Peer, kind: MemoryKind) -> Reach;

    /// Whether importing this peer's regions of `kind` needs their descriptors.
    fn wants_descriptor(&self, peer: &Peer, kind: MemoryKind) -> bool {
        matches!(self.reach(peer, kind), Reach::Mapped { descriptor: true })
    }

    /// Registers memory, under a number by which peers name it. A number is free again once its
    /// region was dropped; one in use is refused.
    fn register(&self, id: RegionId, memory: &Memory) -> Result<Box<dyn Region>>;

    /// Registers memory for the local side of operations only: sources, and destinations as well if
    /// `written`. For buffers longer than [`Limits::unregistered`](crate::Limits) that lie in no region.
    ///
    /// # Safety
    ///
    /// The bytes stay mapped while the registration lives.
    unsafe fn register_local(
        &self,
        _addr: *mut u8,
        _len: usize,
        _written: bool,
    ) -> Result<Box<dyn LocalRegion>> {
        Err(Error::Unsupported {
            transport: "this transport",
            what: "registering local memory".into(),
        })
    }

    /// Makes a peer's region usable here. `region` is its number at that peer, `key` its [`Region::key`],
    /// `descriptor` a duplicate of its [`Region::descriptor`], where one could be passed. Every lane can use
    /// the region from then on.
    fn import(
        &self,
        peer: &Peer,
        region: RegionId,
        key: &[u8],
        descriptor: Option<OwnedFd>,
    ) -> Result<Arc<dyn RemoteRegion>>;

    /// Opens a lane, towards all PEs that this transport reaches.
    fn lane(&self) -> Result<Box<dyn Lane>>;

    /// Accepts the [`endpoint`](Lane::endpoint) that a lane of `pe` made towards this PE, and gives the bytes
    /// for its [`connect`](Lane::connect): this side is ready for its operations then. Called from any thread, and for a PE's own lane towards
    /// itself too. Only where [`WireUp::PerLane`](crate::WireUp) is declared.
    fn accept(&self, pe: Pe, _endpoint: &[u8]) -> Result<Vec<u8>> {
        Err(Error::Unsupported {
            transport: "this transport",
            what: format!("connecting PE {pe}'s lane, since lanes need no connection"),
        })
    }

    /// The messages that others' lanes send to this PE. There is one inbox; a second call while it
    /// lives is refused. Only where [`Capabilities::message`] is not 0; lanes may send to this PE
    /// before it is taken, and then wait for it.
    fn inbox(&self) -> Result<Box<dyn Inbox>> {
        Err(Error::Unsupported {
            transport: "this transport",
            what: "receiving messages".into(),
        })
    }

    /// Makes data that other PEs' operations, or this PE's gets, have placed in its memory of `kind` visible
    /// to its processor, where [`GpuFlush::Target`](crate::GpuFlush) says that this is needed (M27).
    fn make_visible(&self, _kind: MemoryKind) -> Result<()> {
        Ok(())
    }

    /// The scheduler of this PE's thread, where this transport simulates its PEs' machine.
    fn schedule(&self) -> Option<Arc<dyn Schedule>> {
        None
    }

    /// Notifies the domain that a PE has died, has left, or is not to be waited for any more. Operations to it
    /// then give [`Error::PeerLost`]. Each lane cancels its outstanding ones: when the first call of its
    /// [`post`](Lane::post) or [`progress`](Lane::progress) after this one has returned, they access local
    /// memory no more, and no [`Reply`](crate::Reply) to its messages arrives from there.
    fn peer_lost(&self, pe: Pe);

    /// Ends the domain: lanes give [`Error::Closed`] from now on. Idempotent.
    fn shutdown(&self);
}

/// A registered piece of this PE's memory. Dropping it ends the registration.
pub trait Region: Send + Sync + fmt::Debug {
    /// Its number.
    fn id(&self) -> RegionId;

    /// The key by which a peer imports it, as bytes.
    fn key(&self) -> &[u8];

    /// The key of local buffers in it.
    fn local_key(&self) -> LocalKey;

    /// A descriptor that a peer on the same host needs as well.
    fn descriptor(&self) -> Option<BorrowedFd<'_>>;
}

/// Memory registered for the local side of operations. Dropping it ends the registration.
pub trait LocalRegion: Send + Sync + fmt::Debug {
    /// The key of local buffers in it.
    fn key(&self) -> LocalKey;
}

/// A peer's region, imported.
pub trait RemoteRegion: Send + Sync + fmt::Debug {
    /// The address at which this process can load and store it, if it can: valid while this object lives.
    fn mapped(&self) -> Option<NonNull<u8>>;

    /// The accessor for this PE's CPU, where the transport simulates a mapping; then
    /// [`mapped`](Self::mapped) gives none although [`Domain::reach`] said `Mapped`.
    fn accessor(&self) -> Option<Arc<dyn Accessor>> {
        None
    }

    /// The GPU address at which this PE's GPU can load and store it, if it can: valid while this object
    /// lives.
    fn on_gpu(&self) -> Option<u64> {
        None
    }

    /// Bytes.
    fn len(&self) -> usize;

    /// Whether it has no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// An object that must outlive uses of [`mapped`](Self::mapped), for callers that keep the address
    /// without this region.
    fn keep_alive(&self) -> Arc<dyn Any + Send + Sync>;
}

/// The operations towards one PE that a lane has accepted and completed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Accepted by `post`.
    pub posted: u64,
    /// Completed, in the sense of [`Guarantees::completion`] for puts; gets and fetches have
    /// delivered their data.
    pub completed: u64,
}

/// The outcome of a post.
#[derive(Debug)]
#[must_use]
pub struct Posted {
    /// The number of operations accepted, from the first on.
    pub accepted: usize,
    /// The reason why not more.
    pub status: Status,
}

/// Whether a batch was accepted whole, or the reason why not.
#[derive(Debug)]
pub enum Status {
    /// Accepted whole.
    All,
    /// The lane is full: progress, then post the rest.
    Full,
    /// The operation after the accepted ones can never be accepted, or the connection has failed.
    Refused(Error),
}

impl Posted {
    /// A batch of `n`, accepted whole.
    pub const fn all(n: usize) -> Self {
        Posted {
            accepted: n,
            status: Status::All,
        }
    }

    /// The first `accepted`; then the lane is full.
    pub const fn full(accepted: usize) -> Self {
        Posted {
            accepted,
            status: Status::Full,
        }
    }

    /// The first `accepted`; the next one is refused.
    pub const fn refused(accepted: usize, error: Error) -> Self {
        Posted {
            accepted,
            status: Status::Refused(error),
        }
    }
}

/// The end of a lane's sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sleep {
    /// None: the lane cannot sleep, and returned at once.
    Unsupported,
    /// The time has passed.
    Elapsed,
    /// There may be something to do.
    Ready,
}

/// A stream of operations. One owner at a time; all calls return at once.
///
/// Dropping a lane waits, for a bounded time, until no outstanding operation can access local memory any
/// more, nor a reply to its messages arrive.
pub trait Lane: Send + fmt::Debug {
    /// Where [`WireUp::PerLane`](crate::WireUp) is declared: makes this side's endpoint towards
    /// `pe` and gives its bytes for the peer's domain; the same each time. Else empty.
    fn endpoint(&mut self, pe: Pe) -> Result<Vec<u8>>;

    /// Connects the endpoint towards `pe` with the bytes that the peer's domain gave to
    /// [accept](Domain::accept) it.
    fn connect(&mut self, pe: Pe, endpoint: &[u8]) -> Result<()>;

    /// Posts operations towards one PE, in order. Accepts a prefix. An accepted operation can fail only
    /// with the PE; a refused one moves no byte, and is refused again if it is posted again. It is refused with
    /// [`Error::Closed`] after shutdown, [`Error::PeerLost`] after a loss, [`Error::Unreachable`]
    /// towards a PE outside the job or not connected, and by its own fault with
    /// [`Error::Unsupported`], [`Error::UnknownRegion`], [`Error::OutOfRange`] or
    /// [`Error::Misaligned`].
    ///
    /// # Safety
    ///
    /// Every `Local` stays valid for its access (and, beyond the inline limit, unmoved and, if a
    /// source, unchanged) until the operation has completed, or is [reusable](Self::reusable), or the lane was dropped. The memory of
    /// every registered region is as its [`Memory`] says, while its owner lives.
    unsafe fn post(&mut self, pe: Pe, ops: &[Op]) -> Posted;

    /// Does a bounded amount of outstanding work. `Err` is a failure of the whole lane or of the connection with
    /// one PE. Operations outstanding towards that PE are cancelled then, as after its
    /// [loss](Domain::peer_lost), and its counters no longer grow.
    ///
    /// [`Error::Interrupted`] is none: it asks the caller to connect the lane with that PE again, by
    /// [`endpoint`](Self::endpoint), [accept](Domain::accept) and [`connect`](Self::connect). Until then the lane takes no
    /// operations towards it and keeps the outstanding ones, which access no memory. Then it carries them out.
    fn progress(&mut self) -> Result<()>;

    /// Sleeps until there may be something for [`progress`](Self::progress) to do, at most so long. Lanes whose
    /// [data move inside calls](crate::Capabilities::moves_in_calls) can, if their device has something to sleep on.
    fn sleep(&mut self, _longest: Duration) -> Sleep {
        Sleep::Unsupported
    }

    /// The counts of operations accepted and completed towards `pe`.
    fn counters(&self, pe: Pe) -> Counters;

    /// The number of operations towards `pe`, from the first accepted on, whose local memory is accessed no more: a source
    /// may change, a destination has its data. All that have completed are among them. A lane that learns of nothing
    /// earlier says just these.
    fn reusable(&self, pe: Pe) -> u64 {
        self.counters(pe).completed
    }

    /// Orders the puts posted to `pe` so far before those posted from now on, where
    /// [`Guarantees::put_fence_put`] is declared. It waits for nothing and sends nothing. Later puts may be slower until
    /// the next flush towards `pe`.
    fn fence(&mut self, _pe: Pe) {}

    /// Asks for the completions of all operations posted to `pe` so far, because a caller waits for
    /// them. A lane that learns of completions late, because it seldom requests a completion from its
    /// device, learns of these soon.
    fn request_completion(&mut self, _pe: Pe) {}
}
