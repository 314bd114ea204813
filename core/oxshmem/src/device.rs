//! The device library: operations inside CUDA kernels, by the header `oxshmem.cuh`.

pub(crate) mod layout;
pub(crate) mod open_library;
pub(crate) mod ring_server;
pub(crate) mod ring_state;
pub(crate) mod ring_values;

use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytemuck::{Zeroable, bytes_of, cast_slice};
use oxshmem_collectives::team::{TeamInKernels, TeamState};
use oxshmem_cuda::{DevicePtr, Module};
use oxshmem_device_library::fault::BadCall;
use oxshmem_device_library::layout::{
    FLUSH_AFTER_WAIT, Shared, State, Team as DeviceTeam, UNMAPPED,
};
use oxshmem_device_library::{HEADER, STATE};
use oxshmem_engine::memory::target::OWN;
use oxshmem_transport::MemoryKind;

use crate::context::options::ContextOptions;
use crate::device::layout::{
    DeviceLayout, PERMANENT, SCRATCH_SLOT_BYTES, STAGING_BYTES, STAGING_LOCK, TeamChunk,
};
use crate::device::open_library::OpenLibrary;
use crate::device::ring_server::{RingServer, Served};
use crate::device::ring_state::RingQuiet;
use crate::error::{Error, Result};
use crate::gpu::cuda::inbox::GpuInbox;
use crate::stream::gpu_streams::{GpuStreams, InCall};
use crate::stream::library_kernels::{LibraryKernels, Staging};
use crate::sym::Sym;
use crate::team::Team;
use crate::world::World;

/// The text of `oxshmem.cuh`, to be given to a compiler at run time: it has no includes of its own.
pub const DEVICE_HEADER: &str = HEADER;

/// The value of the stop word after a wait of a kernel that took longer than it may.
const STOP_DEADLINE: u32 = 3;

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
    open: &'w OpenLibrary,
    state: State,
}

impl<'w> DeviceLibrary<'w> {
    fn of(world: &'w World, streams: &'w GpuStreams, open: &'w OpenLibrary) -> Self {
        DeviceLibrary {
            world,
            streams,
            open,
            state: open.state,
        }
    }
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
    /// a thread of this process, which uses the routes that the host's calls use. Calls on streams reach such PEs from here on, too.
    ///
    /// Call it before kernels or streams of this PE wait for anything: loading the library's kernels may wait for those that run.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] without a CUDA heap, or if it was opened before; [`Error::Gpu`] on all PEs where one cannot open its part,
    /// after which the call may be made again.
    pub fn device_library(&self) -> Result<DeviceLibrary<'_>> {
        const CALL: &str = "device_library";
        let streams = self.gpu_streams(CALL)?;
        if self.inner.device.get().is_some() {
            return Err(Error::Argument {
                call: CALL,
                what: "this world's device library is open already; open it once, and prepare all modules with it".into(),
            });
        }
        let (open, kernels) = self.make_device_library(CALL, streams)?;
        let open = self.inner.device.get_or_init(|| open);
        // The cell is empty: a library is opened once.
        let _ = streams.library.set(kernels);
        Ok(DeviceLibrary::of(self, streams, open))
    }

    /// [`bindings::device_library`](crate::bindings::device_library).
    pub(crate) fn open_or_get_device_library(&self) -> Result<DeviceLibrary<'_>> {
        match self.opened_device_library() {
            Some(library) => Ok(library),
            None => self.device_library(),
        }
    }

    /// [`bindings::open_device_library`](crate::bindings::open_device_library).
    pub(crate) fn opened_device_library(&self) -> Option<DeviceLibrary<'_>> {
        let open = self.inner.device.get()?;
        let streams = self.pe.gpu_streams.as_deref()?;
        Some(DeviceLibrary::of(self, streams, open))
    }

    /// Allocates its memory, which all PEs do or none, and has each PE set up its own part. Collective: a failure of one PE alone
    /// comes after the last allocation, and is every PE's.
    fn make_device_library(
        &self,
        call: &'static str,
        streams: &GpuStreams,
    ) -> Result<(OpenLibrary, LibraryKernels)> {
        let mut open = self.allocate_device_library(call, streams)?;
        let ready = self.set_up_device_library(call, streams, &mut open);
        let all_ready = self.all_say(ready.is_ok());
        if matches!(all_ready, Ok(false)) {
            self.free_device_library(open);
            ready?;
            return Err(Error::Gpu {
                call,
                why: "another PE could not open its part of the device library; its error says why"
                    .into(),
            });
        }
        let (inbox, kernels) = ready?;
        all_ready?;
        streams.gpu.open_inbox(inbox);
        // No PE's kernels call before all inboxes are open.
        self.barrier_all()?;
        Ok((open, kernels))
    }

    /// Gives the memory back of a library that no kernel knows of. All PEs do so, and none uses it any more.
    fn free_device_library(&self, open: OpenLibrary) {
        let OpenLibrary {
            server,
            layout,
            chunks,
            staging,
            ..
        } = open;
        drop(server);
        let chunks = chunks.into_inner();
        let mut heap = self.heap(MemoryKind::Cuda);
        let blocks = chunks.iter().map(|chunk| &chunk.block);
        blocks
            .chain([&layout.block])
            .chain(&staging)
            .for_each(|block| heap.free(block.offset()));
    }

    /// All of its memory. Collective: there is all of it on all PEs, or none.
    fn allocate_device_library(
        &self,
        call: &'static str,
        streams: &GpuStreams,
    ) -> Result<OpenLibrary> {
        // Their slots are the numbers of teams that are split from others, which come first.
        let splits = self.pe.sync_area.pool.budget().splits();
        let (pes, teams) = (self.n_pes(), PERMANENT + splits.len());
        let block =
            self.allocate_own_on(MemoryKind::Cuda, call, DeviceLayout::bytes(pes, teams))?;
        let layout = DeviceLayout { block, pes, teams };
        let heap = self.worker.local_address(block.into()) as u64 - block.offset();
        let mut open = OpenLibrary {
            server: None,
            layout,
            chunks: RefCell::default(),
            staging: None,
            heap,
            state: self.device_state(streams, layout, heap),
        };
        let [of_world, of_others] = SCRATCH_SLOT_BYTES;
        let others = PERMANENT - 1 + TeamChunk::first_teams(pes, splits.len());
        let library = DeviceLibrary::of(self, streams, &open);
        let added = library
            .add_chunk(call, 1, of_world)
            .and_then(|()| library.add_chunk(call, others, of_others))
            .and_then(|()| self.allocate_staging(call, streams));
        match added {
            Ok(staging) => {
                open.staging = staging;
                Ok(open)
            }
            // An allocation fails on all PEs alike (M13); after a loss the world is of no use any more.
            Err(error) => {
                if matches!(error, Error::OutOfMemory { .. }) {
                    self.free_device_library(open);
                }
                Err(error)
            }
        }
    }

    /// The memory for what comes of PEs that are not mapped, on all PEs where one of them does not map another.
    fn allocate_staging(
        &self,
        call: &'static str,
        streams: &GpuStreams,
    ) -> Result<Option<Sym<u8>>> {
        let needs = streams.collective.is_err();
        let bytes = STAGING_LOCK + STAGING_BYTES;
        needs
            .then(|| self.allocate_own_on(MemoryKind::Cuda, call, bytes))
            .transpose()
    }

    /// This PE's own part: the thread that serves kernels, if one is needed, and the contents of its memory. Gives its inbox, and the
    /// kernels of streams. It meets no other PE.
    fn set_up_device_library(
        &self,
        call: &'static str,
        streams: &GpuStreams,
        open: &mut OpenLibrary,
    ) -> Result<(GpuInbox, LibraryKernels)> {
        // A GPU reaches its own memory, whatever the routes are.
        let is_mapped = |pe| pe == self.my_pe() || streams.address(pe, 0).is_some();
        if !(0..open.layout.pes).all(is_mapped) {
            open.server = Some(RingServer::start(Served {
                context: self.context_of(None, ContextOptions::NONE)?,
                stop_word: Arc::clone(&streams.stop_word),
                gpu: streams.gpu.clone(),
                heap: (open.heap, self.gpu_heap_limit() as u64),
                handles: (self.gpu_tag(), OWN),
                head: DevicePtr::from_raw(open.heap).add(open.layout.start() + DeviceLayout::HEAD),
            })?);
            open.state.ring = open.heap + (open.layout.start() + DeviceLayout::RING) as u64;
        }
        let library = DeviceLibrary::of(self, streams, open);
        let start = open.layout.start();
        let address = library.own(start + DeviceLayout::INBOX);
        let inbox =
            GpuInbox::new(&streams.gpu.context, address).map_err(|why| Error::Gpu { call, why })?;
        library.fill(call)?;
        let described = inbox.for_kernels(library.own(start + DeviceLayout::CLAIMED));
        library.write(call, address, bytes_of(&described))?;
        Ok((inbox, library.load_stream_kernels(call)?))
    }

    fn device_state(&self, streams: &GpuStreams, layout: DeviceLayout, heap: u64) -> State {
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
            distances: own(layout.start() + DeviceLayout::DISTANCES),
            teams: own(layout.pointer(0)),
            shared: own(layout.start()),
            ring: 0,
            stop: streams.stop().stop.as_raw(),
            fault: streams.stop_word.fault_address().as_raw(),
            deadline: 0,
            inbox: own(layout.start() + DeviceLayout::INBOX),
            reserved: [0; 2],
        }
    }
}

impl DeviceLibrary<'_> {
    /// The address of a byte of this PE's GPU heap.
    fn own(&self, offset: usize) -> DevicePtr {
        DevicePtr::from_raw(self.open.heap).add(offset)
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

    /// Zeroes this PE's part, and writes what exists once, and the permanent teams. The caller ensures that all PEs have done so before
    /// any goes on.
    fn fill(&self, call: &'static str) -> Result<()> {
        let layout = &self.open.layout;
        let zeros = vec![0; DeviceLayout::bytes(layout.pes, layout.teams)];
        self.write_own(call, layout.start(), &zeros)?;
        let shared = Shared {
            teams: layout.teams as u32,
            turn: 0,
        };
        self.write_own(call, layout.start(), bytes_of(&shared))?;
        if let Some(server) = &self.open.server {
            let counter = |at| self.own(layout.start() + at);
            let ring = server.ring(counter(DeviceLayout::HEAD), counter(DeviceLayout::CREDIT));
            self.write_own(call, layout.start() + DeviceLayout::RING, bytes_of(&ring))?;
        }
        let distance_to = |pe| match self.heap_of(pe) {
            0 => UNMAPPED,
            heap => heap.wrapping_sub(self.open.heap) as i64,
        };
        let distances: Vec<i64> = (0..layout.pes).map(distance_to).collect();
        self.write_own(
            call,
            layout.start() + DeviceLayout::DISTANCES,
            cast_slice(&distances),
        )?;
        self.write_team(call, 0, self.world.team().state())?;
        self.write_team(call, 1, self.world.shared_team().state())
    }

    /// The kernels of calls on streams.
    fn load_stream_kernels(&self, call: &'static str) -> Result<LibraryKernels> {
        let context = &self.streams.gpu.context;
        let (mut kernels, state) = LibraryKernels::load(context, self.open.heap).in_call(call)?;
        self.write(call, state, bytes_of(&self.state))?;
        kernels.ring = self.open.server.as_ref().and_then(RingServer::quiet_handle);
        if let Some(block) = self.open.staging {
            let lock = self.own(block.offset() as usize);
            self.write(call, lock, &[0; STAGING_LOCK])?;
            kernels.staging = Some(Staging {
                lock,
                rows: lock.add(STAGING_LOCK),
                bytes: STAGING_BYTES as u64,
            });
        }
        Ok(kernels)
    }

    /// Memory for the next teams by their numbers. Collective.
    fn add_chunk(&self, call: &'static str, count: usize, slot_bytes: usize) -> Result<()> {
        let pes = self.open.layout.pes;
        let bytes = count.saturating_mul(TeamChunk::bytes_of_team(pes, slot_bytes));
        let block = self.world.allocate_own_on(MemoryKind::Cuda, call, bytes)?;
        let first = self.open.team_capacity();
        let chunk = TeamChunk {
            block,
            pes,
            first,
            count,
            slot_bytes,
        };
        self.open.chunks.borrow_mut().push(chunk);
        Ok(())
    }

    /// Gives kernels memory for the first `teams` teams besides the world's and the shared one. Collective over all PEs.
    ///
    /// A team's number is the least that is free on all its members: all teams that a PE is in count, whether kernels use them or
    /// not. At first there is memory for 16, or for as many as fit into 1 MiB: in jobs of up to 7 PEs for 256, the default of
    /// `OXSHMEM_TEAMS`.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] for more than `OXSHMEM_TEAMS` allows, [`Error::OutOfMemory`] without that much GPU memory.
    #[doc(alias = "shmemx_cuda_reserve_teams")]
    pub fn reserve_teams(&self, teams: usize) -> Result<()> {
        const CALL: &str = "DeviceLibrary::reserve_teams";
        let (wanted, most) = (teams.saturating_add(PERMANENT), self.open.layout.teams);
        if wanted > most {
            return Err(Error::Argument {
                call: CALL,
                what: format!(
                    "a PE may be in {} teams at most, not {teams}; set OXSHMEM_TEAMS higher",
                    most - PERMANENT
                ),
            });
        }
        let [_, slot_bytes] = SCRATCH_SLOT_BYTES;
        match wanted.saturating_sub(self.open.team_capacity()) {
            0 => Ok(()),
            more => self.add_chunk(CALL, more, slot_bytes),
        }
    }

    /// The address of a PE's heap for this PE's GPU; 0 where it is not mapped.
    fn heap_of(&self, pe: usize) -> u64 {
        match self.streams.address(pe, 0) {
            // A GPU reaches its own memory, whatever the routes are.
            _ if pe == self.world.my_pe() => self.open.heap,
            mapped => mapped.map_or(0, DevicePtr::as_raw),
        }
    }

    fn write_team(&self, call: &'static str, number: usize, state: &TeamState) -> Result<()> {
        let members = &state.members;
        let Some(at) = self.open.layout_of(number) else {
            return Err(Error::Argument {
                call,
                what: format!(
                    "team number {} is beyond the {} that kernels have memory for; teams count whether kernels use them or not; \
                     call reserve_teams for more, on all PEs (in C: shmemx_cuda_reserve_teams)",
                    (number + 1).saturating_sub(PERMANENT),
                    self.open.team_capacity().saturating_sub(PERMANENT)
                ),
            });
        };
        let own = |offset| self.own(offset).as_raw();
        let zeros = vec![0_u8; self.open.layout.pes * size_of::<u64>()];
        self.write_own(call, at.words, &zeros)?;
        let pes: Vec<u32> = members.pes().map(|pe| pe as u32).collect();
        self.write_own(call, at.members, cast_slice(&pes))?;
        let heaps: Vec<u64> = members.pes().map(|pe| self.heap_of(pe)).collect();
        self.write_own(call, at.heaps, cast_slice(&heaps))?;
        let team = DeviceTeam {
            n: pes.len() as u32,
            me: members.me() as u32,
            members: own(at.members),
            words: own(at.words),
            scratch: own(at.scratch),
            place: at.slot_bytes as u64,
            ..DeviceTeam::zeroed()
        };
        self.write_own(call, at.team, bytes_of(&team))?;
        let address = own(at.team);
        self.write_own(call, self.open.layout.pointer(number), bytes_of(&address))?;
        // The cell is empty, or this one's contents are the same.
        let _ = state.in_kernels.set(TeamInKernels {
            number: number as i32,
            heaps: own(at.heaps),
        });
        Ok(())
    }

    /// Gives the kernels of a module their PE, their peers and their teams. Before any of them is launched; not while
    /// one runs.
    ///
    /// # Errors
    ///
    /// [`Error::Gpu`] where the module has no variable `oxshmem_state`, or one of another version's header.
    #[doc(alias("nvshmemx_cumodule_init", "shmemx_cuda_init"))]
    pub fn prepare(&self, module: &Module) -> Result<()> {
        const CALL: &str = "DeviceLibrary::prepare";
        let (state, bytes) = module.global(STATE).map_err(|error| Error::Gpu {
            call: CALL,
            why: format!("{error}; do its kernels include oxshmem.cuh?"),
        })?;
        // SAFETY: the module's own variable; the caller launches none of its kernels yet.
        unsafe { self.prepare_variable(CALL, state, bytes) }
    }

    /// [`bindings::prepare_module`](crate::bindings::prepare_module).
    ///
    /// # Safety
    ///
    /// As of that.
    pub(crate) unsafe fn prepare_variable(
        &self,
        call: &'static str,
        state: DevicePtr,
        bytes: usize,
    ) -> Result<()> {
        if bytes != size_of::<State>() {
            let word = match bytes {
                0..4 => 0,
                // SAFETY: every version's state begins with its word.
                _ => unsafe { self.version_word(call, state) }?,
            };
            return Err(other_version(call, bytes, word >> 16));
        }
        // SAFETY: the variable is as long as a state, and the caller launches none of the module's kernels yet.
        unsafe { self.prepare_state(call, state) }
    }

    /// Gives the kernels of a loaded image their PE, their peers and their teams, as [`prepare`](Self::prepare) does.
    ///
    /// # Errors
    ///
    /// [`Error::Gpu`] where the image was compiled with another version's header.
    ///
    /// # Safety
    ///
    /// The address is that of the image's `oxshmem_state` on this PE's GPU, whose first word is the version and size of its
    /// header, and none of the image's kernels runs.
    pub(crate) unsafe fn prepare_state(&self, call: &'static str, state: DevicePtr) -> Result<()> {
        // SAFETY: the caller's state begins with its version.
        check_version(call, unsafe { self.version_word(call, state) }?)?;
        self.streams.note_used();
        self.write(call, state, bytes_of(&self.state))
    }

    /// The version and the size that an image's state names.
    ///
    /// # Safety
    ///
    /// The address is that of an image's state with at least 4 bytes, and nothing writes it now.
    unsafe fn version_word(&self, call: &'static str, state: DevicePtr) -> Result<u32> {
        let mut word = 0_u32;
        // SAFETY: the address has 4 readable bytes of the image's state, and no kernel runs that could change them (`# Safety`).
        let read = unsafe {
            self.streams
                .gpu
                .engine()
                .read((&raw mut word).cast(), state, size_of_val(&word))
        };
        read.map_err(|why| Error::Gpu { call, why })?;
        Ok(word)
    }

    /// Makes a team known to kernels, and gives its number there, the same on all members. Collective over the team. It must not
    /// be used in kernels once it is destroyed.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] on all members where the team's number is beyond those that kernels have memory for: see
    /// [`reserve_teams`](Self::reserve_teams).
    #[doc(alias = "shmemx_cuda_team")]
    pub fn add_team(&self, team: &Team<'_>) -> Result<i32> {
        const CALL: &str = "DeviceLibrary::add_team";
        let state = team.state();
        let number = match state.slot() {
            Some(slot) => PERMANENT + slot,
            // The permanent ones are known.
            None => return Ok(i32::from(state.members.len() != self.world.n_pes())),
        };
        let written = match state.in_kernels.get() {
            // Its words may be in use.
            Some(_) => Ok(()),
            None => self.write_team(CALL, number, state),
        };
        let met = team.barrier();
        written.and(met)?;
        Ok(number as i32)
    }

    /// The error of a kernel: its first bad call, if it was compiled with `OXSHMEM_CHECK`, or a wait that took
    /// longer than the state's deadline. All waits of kernels have ended then, until
    /// [`resume`](Self::resume). Call it after the stream's synchronization.
    #[doc(alias = "shmemx_cuda_check")]
    pub fn check(&self) -> Result<()> {
        const CALL: &str = "DeviceLibrary::check";
        if let Some(bad) = self.bad_call() {
            return Err(Error::Gpu {
                call: CALL,
                why: bad.to_string(),
            });
        }
        if let Some(why) = self.streams.ring().and_then(RingQuiet::failure) {
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

    /// Forgets a bad call or a deadline that has passed: waits wait again. No kernel runs meanwhile that makes calls.
    #[doc(alias = "shmemx_cuda_resume")]
    pub fn resume(&self) {
        self.streams.stop_word.forget_bad_call();
        self.world.resume_streams(self.streams);
    }
}

/// Refuses another version's first word of a state.
pub(crate) fn check_version(call: &'static str, abi: u32) -> Result<()> {
    match abi {
        State::ABI_WORD => Ok(()),
        other => Err(other_version(call, (other & 0xffff) as usize, other >> 16)),
    }
}

/// The refusal of an image whose state has `bytes` bytes and another version.
fn other_version(call: &'static str, bytes: usize, version: u32) -> Error {
    Error::Gpu {
        call,
        why: format!(
            "the module's state has {bytes} bytes and version {version}, this library's {} and {}: it was compiled with the \
             oxshmem.cuh of another version; compile it with this one's",
            size_of::<State>(),
            State::ABI_WORD >> 16
        ),
    }
}
