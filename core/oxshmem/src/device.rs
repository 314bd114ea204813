//! The device library: operations inside CUDA kernels, by the header `oxshmem.cuh`.

pub(crate) mod ring_server;
pub(crate) mod ring_state;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytemuck::{Zeroable, bytes_of, cast_slice};
use oxshmem_cuda::{DevicePtr, Module};
use oxshmem_device_library::fault::BadCall;
use oxshmem_device_library::layout::{FLUSH_AFTER_WAIT, Shared, State, Team as DeviceTeam};
use oxshmem_device_library::{HEADER, STATE};
use oxshmem_engine::group::Group;
use oxshmem_engine::memory::target::OWN;
use oxshmem_transport::MemoryKind;

use crate::context::options::ContextOptions;
use crate::device::ring_server::{RingServer, Served};
use crate::error::{Error, Result};
use crate::gpu::cuda::inbox::GpuInbox;
use crate::stream::gpu_streams::GpuStreams;
use crate::sym::Sym;
use crate::team::Team;
use crate::world::World;

/// The text of `oxshmem.cuh`, to be given to a compiler at run time: it has no includes of its own.
pub const DEVICE_HEADER: &str = HEADER;

/// The bytes of a member's place in the scratch memory of the world's team, and of others.
const PLACES: [usize; 2] = [4096, 256];
/// The teams that always are: the world, and that of the PEs that share memory.
const PERMANENT: usize = 2;

/// The value of the stop word after a wait of a kernel that took longer than it may.
const STOP_DEADLINE: u32 = 3;

/// The places of the device library's memory in each PE's GPU heap: the same on all PEs.
#[derive(Clone, Copy, Debug)]
struct Places {
    block: Sym<u8>,
    pes: usize,
    teams: usize,
}

impl Places {
    /// The ring's description, and its counter of tickets.
    const RING: usize = 64;
    const HEAD: usize = 192;
    /// The inbox's description, and its counter of claims.
    const INBOX: usize = 256;
    const CLAIMED: usize = 320;
    /// The table of each PE's heap.
    const PEERS: usize = 384;

    /// The bytes before the scratch memory, and of all.
    fn bytes(pes: usize, teams: usize) -> (usize, usize) {
        let per_team = size_of::<u64>()
            + size_of::<DeviceTeam>()
            + pes * (size_of::<u64>() + size_of::<u32>());
        let before = Self::PEERS + pes * size_of::<u64>() + teams * per_team;
        let before = before.next_multiple_of(64);
        let [of_world, of_others] = PLACES.map(|place| 2 * pes * place);
        (before, before + of_world + (teams - 1) * of_others)
    }

    fn start(&self) -> usize {
        self.block.offset() as usize
    }

    fn pointer(&self, team: usize) -> usize {
        self.start() + Self::PEERS + self.pes * size_of::<u64>() + team * size_of::<u64>()
    }

    fn team(&self, team: usize) -> usize {
        self.pointer(self.teams) + team * size_of::<DeviceTeam>()
    }

    fn words(&self, team: usize) -> usize {
        self.team(self.teams) + team * self.pes * size_of::<u64>()
    }

    fn members(&self, team: usize) -> usize {
        self.words(self.teams) + team * self.pes * size_of::<u32>()
    }

    /// The team's scratch memory, and the bytes of a place in it.
    fn scratch(&self, team: usize) -> (usize, usize) {
        let (before, _) = Self::bytes(self.pes, self.teams);
        let first = self.start() + before;
        let [of_world, of_others] = PLACES;
        match team.checked_sub(1) {
            None => (first, of_world),
            Some(others) => (
                first + 2 * self.pes * (of_world + others * of_others),
                of_others,
            ),
        }
    }
}

/// The device library of a world, by which its kernels call oxshmem.
///
/// A kernel's source includes `oxshmem.cuh` ([`DEVICE_HEADER`]). [`prepare`](Self::prepare) each module of such kernels before
/// the first launch. The calls are described in `core/device/README.md`; they follow M15 to M30 and G1 to G6 of the memory
/// model.
///
/// The memory that it uses stays allocated until the world ends.
pub struct DeviceLibrary<'w> {
    world: &'w World,
    streams: &'w GpuStreams,
    /// The server of requests, unless every PE is mapped.
    server: Option<&'w RingServer>,
    places: Places,
    /// The address of this PE's GPU heap.
    heap: u64,
    state: State,
}

impl fmt::Debug for DeviceLibrary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceLibrary")
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

impl World {
    /// Opens the device library. Collective; once in a world's life.
    ///
    /// Kernels load and store the memory of PEs that is mapped for their GPU (M8). Their calls towards other PEs are requests to
    /// a thread of this process, which uses the routes that the host's calls use.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] without a CUDA heap, or if it was opened before.
    pub fn device_library(&self) -> Result<DeviceLibrary<'_>> {
        const CALL: &str = "device_library";
        let streams = self.gpu_streams(CALL)?;
        if self.inner.ring_server.get().is_some() {
            return Err(Error::Argument {
                call: CALL,
                what: "this world's device library is open already; open it once, and prepare all modules with it".into(),
            });
        }
        let (pes, teams) = (self.n_pes(), PERMANENT + self.pe.config.teams);
        let (_, bytes) = Places::bytes(pes, teams);
        let block = self.allocate_own_on(MemoryKind::Cuda, CALL, bytes)?;
        let places = Places { block, pes, teams };
        let heap = self.worker.local_address(block.into()) as u64 - block.offset();
        // A GPU reaches its own memory, whatever the routes are.
        let is_mapped = |pe| pe == self.my_pe() || streams.address(pe, 0).is_some();
        let served = Served {
            context: self.context_of(None, ContextOptions::NONE)?,
            stop_word: Arc::clone(&streams.stop_word),
            gpu: streams.gpu.clone(),
            heap: (heap, self.gpu_heap_limit() as u64),
            handles: (self.gpu_tag(), OWN),
        };
        let server = match (0..pes).all(is_mapped) {
            true => None,
            false => Some(RingServer::start(served)?),
        };
        let mut library = DeviceLibrary {
            world: self,
            streams,
            server: self.inner.ring_server.get_or_init(|| server).as_ref(),
            places,
            heap,
            state: self.device_state(streams, places, heap),
        };
        if let Some(server) = library.server {
            if let Some(quiet) = server.quiet_handle() {
                // The cell is empty: a library is opened once.
                let _ = streams.ring_quiet.set(quiet);
            }
            library.state.ring = library.own(places.start() + Places::RING).as_raw();
        }
        let address = library.own(places.start() + Places::INBOX);
        let inbox = GpuInbox::new(&streams.gpu.context, address)
            .map_err(|why| Error::Gpu { call: CALL, why })?;
        library.fill(CALL)?;
        let described = inbox.for_kernels(library.own(places.start() + Places::CLAIMED));
        library.write(CALL, address, bytes_of(&described))?;
        streams.gpu.open_inbox(inbox);
        self.barrier_all()?;
        Ok(library)
    }

    fn device_state(&self, streams: &GpuStreams, places: Places, heap: u64) -> State {
        let own = |offset: usize| heap + offset as u64;
        State {
            abi: State::ABI_WORD,
            me: self.my_pe() as u32,
            n: self.n_pes() as u32,
            flags: match self.worker.engine.gpu_flushes.are_needed() {
                true => FLUSH_AFTER_WAIT,
                false => 0,
            },
            heap,
            heap_bytes: self.gpu_heap_limit() as u64,
            peers: own(places.start() + Places::PEERS),
            teams: own(places.pointer(0)),
            shared: own(places.start()),
            ring: 0,
            stop: streams.stop().stop.as_raw(),
            fault: streams.stop_word.fault_address().as_raw(),
            deadline: 0,
            inbox: own(places.start() + Places::INBOX),
            reserved: [0; 2],
        }
    }
}

impl DeviceLibrary<'_> {
    /// The address of a byte of this PE's GPU heap.
    fn own(&self, offset: usize) -> DevicePtr {
        DevicePtr::from_raw(self.heap).add(offset)
    }

    /// Writes a few bytes of GPU memory: of the library's own, or of a module's variable that is as long.
    fn write(&self, call: &'static str, to: DevicePtr, bytes: &[u8]) -> Result<()> {
        let mut engine = self.streams.gpu.engine();
        // SAFETY: the target is as long, and nothing else uses it until this returns.
        let written = unsafe { engine.write(to, bytes.as_ptr(), bytes.len()) };
        written.map_err(|why| Error::Gpu { call, why })
    }

    fn write_own(&self, call: &'static str, offset: usize, bytes: &[u8]) -> Result<()> {
        self.write(call, self.own(offset), bytes)
    }

    /// Zeroes this PE's part, and writes the permanent teams. The caller ensures that all PEs have done so before any goes on.
    fn fill(&self, call: &'static str) -> Result<()> {
        let places = &self.places;
        let (before, _) = Places::bytes(places.pes, places.teams);
        self.write_own(call, places.start(), &vec![0; before])?;
        let shared = Shared {
            teams: places.teams as u32,
            turn: 0,
        };
        self.write_own(call, places.start(), bytes_of(&shared))?;
        if let Some(server) = self.server {
            let ring = server.ring(self.own(places.start() + Places::HEAD));
            self.write_own(call, places.start() + Places::RING, bytes_of(&ring))?;
        }
        let heap_of = |pe| match self.streams.address(pe, 0) {
            _ if pe == self.world.my_pe() => self.heap,
            mapped => mapped.map_or(0, DevicePtr::as_raw),
        };
        let peers: Vec<u64> = (0..places.pes).map(heap_of).collect();
        self.write_own(call, places.start() + Places::PEERS, cast_slice(&peers))?;
        self.write_team(call, 0, &self.world.team().state().members)?;
        self.write_team(call, 1, &self.world.shared_team().state().members)
    }

    fn write_team(&self, call: &'static str, number: usize, members: &Group) -> Result<()> {
        let places = &self.places;
        let own = |offset| self.own(offset).as_raw();
        let pes: Vec<u32> = members.pes().map(|pe| pe as u32).collect();
        self.write_own(call, places.members(number), cast_slice(&pes))?;
        let (scratch, place) = places.scratch(number);
        let team = DeviceTeam {
            n: pes.len() as u32,
            me: members.me() as u32,
            members: own(places.members(number)),
            words: own(places.words(number)),
            scratch: own(scratch),
            place: place as u64,
            ..DeviceTeam::zeroed()
        };
        self.write_own(call, places.team(number), bytes_of(&team))?;
        let address = own(places.team(number));
        self.write_own(call, places.pointer(number), bytes_of(&address))
    }

    /// Gives the kernels of a module their PE, their peers and their teams. Before any of them is launched; not while
    /// one runs.
    ///
    /// # Errors
    ///
    /// [`Error::Gpu`] where the module has no variable `oxshmem_state`, or one of another version's header.
    #[doc(alias = "nvshmemx_cumodule_init")]
    pub fn prepare(&self, module: &Module) -> Result<()> {
        const CALL: &str = "DeviceLibrary::prepare";
        let (state, bytes) = module.global(STATE).map_err(|error| Error::Gpu {
            call: CALL,
            why: format!("{error}; do its kernels include oxshmem.cuh?"),
        })?;
        let mut abi = 0_u32;
        // Every version's state begins with it.
        if bytes >= size_of_val(&abi) {
            let mut engine = self.streams.gpu.engine();
            // SAFETY: both ends have as many bytes, and nothing writes the module's variable now.
            let read = unsafe { engine.read((&raw mut abi).cast(), state, size_of_val(&abi)) };
            read.map_err(|why| Error::Gpu { call: CALL, why })?;
        }
        if (bytes, abi) != (size_of::<State>(), State::ABI_WORD) {
            return Err(Error::Gpu {
                call: CALL,
                why: format!(
                    "the module's state has {bytes} bytes and version {}, this library's {} and {}: it was compiled with the \
                     oxshmem.cuh of another version; compile it with this one's",
                    abi >> 16,
                    size_of::<State>(),
                    State::ABI_WORD >> 16
                ),
            });
        }
        self.streams.note_used();
        self.write(CALL, state, bytes_of(&self.state))
    }

    /// Makes a team known to kernels, and gives its number there, the same on all members. Collective over the team. It must not
    /// be used in kernels once it is destroyed.
    pub fn add_team(&self, team: &Team<'_>) -> Result<i32> {
        const CALL: &str = "DeviceLibrary::add_team";
        let state = team.state();
        let number = match state.slot() {
            Some(slot) => PERMANENT + slot,
            // The permanent ones are known.
            None => return Ok(i32::from(state.members.len() != self.world.n_pes())),
        };
        let zeros = vec![0_u8; self.places.pes * size_of::<u64>()];
        let written = self
            .write_own(CALL, self.places.words(number), &zeros)
            .and_then(|()| self.write_team(CALL, number, &state.members));
        let met = team.barrier();
        written.and(met)?;
        Ok(number as i32)
    }

    /// The error of a kernel: its first bad call, if it was compiled with `OXSHMEM_CHECK`, or a wait that took
    /// longer than the state's deadline. All waits of kernels have ended then, until
    /// [`resume`](Self::resume). Call it after the stream's synchronization.
    pub fn check(&self) -> Result<()> {
        const CALL: &str = "DeviceLibrary::check";
        if let Some(bad) = self.bad_call() {
            return Err(Error::Gpu {
                call: CALL,
                why: bad.to_string(),
            });
        }
        if let Some(why) = self.server.and_then(RingServer::failure) {
            return Err(Error::Gpu { call: CALL, why });
        }
        match self.streams.stop_word.value() {
            STOP_DEADLINE => Err(Error::Gpu {
                call: CALL,
                why: "a wait of a kernel took longer than it may".into(),
            }),
            _ => self
                .world
                .refuse_after_loss(CALL, oxshmem_engine::progress::reason::WaitsOn::AnyPeer),
        }
    }

    /// The first bad call of a kernel that was compiled with `OXSHMEM_CHECK`.
    #[must_use]
    pub fn bad_call(&self) -> Option<BadCall> {
        self.streams.stop_word.bad_call()
    }

    /// Sets how long a wait of a kernel may take, for modules that are [prepared](Self::prepare) after it; none for ever.
    pub fn set_deadline(&mut self, deadline: Option<Duration>) {
        let nanoseconds =
            deadline.map_or(0, |deadline| deadline.as_nanos().clamp(1, u64::MAX.into()));
        self.state.deadline = nanoseconds as u64;
    }

    /// Forgets a bad call or a deadline that has passed: waits wait again.
    pub fn resume(&self) {
        self.streams.stop_word.forget_bad_call();
        self.world.resume_streams(self.streams);
    }
}
