//! The second stage of the start: this PE's world, its GPU, the library's stream and the teams.

use std::ffi::c_void;
use std::sync::Arc;

use bytemuck::Pod;
use oxshmem::cuda::{Context, Device, DevicePtr, Stream, StreamOptions};
use oxshmem::{AttachedTeam, DeviceLibrary, Sym, World, bindings};
use oxshmem_bootstrap::Bootstrap;

use crate::environment;
use crate::failure::{Done, Failure};
use crate::places::Places;
use crate::team_table::{self, TeamEntry};
use crate::triplets::Exchange;
use crate::types::StreamHandle;

/// The limit of the GPU heap where GPU memory cannot be mapped piece by piece, and the environment says nothing.
const WHOLE_HEAP: usize = 1 << 30;

/// This PE and its GPU.
pub(crate) struct Pe {
    /// The stream of the host's own calls.
    pub(crate) stream: Stream,
    /// By their handles. Dropped before the world, to which they belong.
    pub(crate) teams: Vec<Option<TeamEntry>>,
    /// The memory of splits.
    pub(crate) exchange: Exchange,
    places: Places,
    pub(crate) world: World,
}

impl Pe {
    /// Opens the GPU that is current, or the one that is named. Collective.
    pub(crate) fn open(
        call: &'static str,
        bootstrap: Arc<dyn Bootstrap>,
        places: &Places,
        device: Option<usize>,
    ) -> Done<Pe> {
        let context = context(call, device)?;
        let limit = match context.device().has_vmm() {
            // Memory is committed as it is allocated.
            true => context.device().total_memory(),
            false => WHOLE_HEAP,
        };
        bindings::forget_losses();
        let builder = World::builder().bootstrap(bootstrap);
        let builder = environment::apply(builder);
        let builder = bindings::default_gpu_limit(builder, limit);
        let builder = bindings::gpu_context(builder, context.clone());
        let builder = bindings::shared_by_gpu(builder);
        let world = bindings::without_places(builder).join()?;
        let stream = Stream::new(&context, &StreamOptions::default())?;
        let mut pe = Pe {
            stream,
            teams: Vec::new(),
            exchange: Exchange::new(&world)?,
            places: places.clone(),
            world,
        };
        pe.open_library(call)?;
        Ok(pe)
    }

    /// Opens the device library, makes the teams that are always there, and gives all images their states. Collective.
    fn open_library(&mut self, call: &'static str) -> Done {
        let library = bindings::device_library(&self.world)?;
        library.reserve_teams(team_table::room(&self.world))?;
        self.teams = team_table::predefined(&self.world, &library, &self.places)?;
        let gpu = self.gpu();
        // SAFETY: the library is only now being initialized: no kernel that makes its calls can have been launched.
        unsafe { bindings::prepare_images(&library, call, gpu, false) }?;
        Ok(())
    }

    /// The number of the GPU.
    fn gpu(&self) -> usize {
        bindings::gpu_number(&self.world).unwrap_or_default()
    }

    /// The device library.
    pub(crate) fn library(&self) -> Done<DeviceLibrary<'_>> {
        Ok(bindings::device_library(&self.world)?)
    }

    /// Gives those images their states that were loaded since the last call.
    pub(crate) fn prepare_new_images(&self, call: &'static str) -> Done {
        let library = self.library()?;
        // SAFETY: an image that has just been loaded was given no state yet, so that no kernel of its can be making calls.
        unsafe { bindings::prepare_images(&library, call, self.gpu(), true) }?;
        Ok(())
    }

    /// Refuses another GPU than the heap's as the current one.
    pub(crate) fn check_current(&self, call: &'static str) -> Done {
        let own = self.world.gpu_context();
        if own.map_or(Ok(true), Context::is_current)? {
            return Ok(());
        }
        // SAFETY: it is only named.
        let Some(current) = unsafe { bindings::current_context(call) }? else {
            return Ok(());
        };
        let (current, own) = (current.device().ordinal(), self.gpu());
        Err(Failure::argument(format!(
            "the current context is another one (GPU {current}) than that in which the library has opened this PE's heap (GPU {own}): the one \
             that was current then; call cudaSetDevice({own}) before, or make that context current"
        )))
    }

    /// A user's stream.
    ///
    /// # Safety
    ///
    /// It is a stream of the driver's, or 0, 1 or 2, and stays until the work is done that the call queues.
    pub(crate) unsafe fn user_stream(&self, stream: StreamHandle) -> Done<Stream> {
        let Some(context) = self.world.gpu_context() else {
            return Err(Failure::Start("this PE has no GPU".into()));
        };
        // SAFETY: the caller makes the same promise.
        Ok(unsafe { Stream::borrow(context, stream) }?)
    }

    /// A symmetric object by its address.
    pub(crate) fn object<T: Pod>(
        &self,
        name: &'static str,
        address: *const T,
        len: usize,
    ) -> Done<Sym<T>> {
        let address = if len == 0 { std::ptr::null() } else { address };
        // The error begins with the argument's name.
        bindings::object_at(&self.world, name, address, len)
            .map_err(|error| Failure::argument(format!("argument {error}")))
    }

    /// The bytes of a symmetric object.
    pub(crate) fn bytes<T: Pod>(
        &self,
        name: &'static str,
        address: *const T,
        len: usize,
    ) -> Done<Sym<u8>> {
        // Where checks are on, an address is aligned for its type (M38).
        if !address.is_aligned() && bindings::is_checked(&self.world) {
            return Ok(self.object(name, address, len)?.to_bytes());
        }
        self.object(
            name,
            address.cast::<u8>(),
            len.saturating_mul(size_of::<T>()),
        )
    }

    /// A PE's number.
    pub(crate) fn pe(&self, pe: i32) -> Done<usize> {
        let n = self.world.n_pes();
        let number = usize::try_from(pe).ok().filter(|pe| *pe < n);
        number.ok_or_else(|| {
            Failure::argument(format!(
                "argument pe: there is no PE {pe}; here PEs are 0 to {}",
                n - 1
            ))
        })
    }

    /// A team, by its handle.
    pub(crate) fn team(&self, team: i32) -> Done<AttachedTeam<'_>> {
        let entry = usize::try_from(team)
            .ok()
            .and_then(|team| self.teams.get(team)?.as_ref());
        let Some(entry) = entry else {
            return Err(Failure::argument(format!(
                "argument team: {team} is no team of this PE, or was destroyed"
            )));
        };
        Ok(entry.team.attach(&self.world)?)
    }

    /// Waits for the library's own stream, and completes what kernels have asked of the host (M19).
    pub(crate) fn finish(&self) -> Done {
        self.world.synchronize(&self.stream).map_err(|error| {
            // A kernel that made a bad call has ended all waits: its words are the cause.
            let cause = self.library().map(|library| library.check());
            Failure::Core(cause.ok().and_then(Result::err).unwrap_or(error))
        })
    }

    /// [`finish`](Self::finish), then the host's operations.
    pub(crate) fn quiet(&self) -> Done {
        self.finish()?;
        Ok(self.world.quiet()?)
    }

    pub(crate) fn barrier_all(&self) -> Done {
        self.quiet()?;
        Ok(self.world.barrier_all()?)
    }

    /// The last finalize of a PE that may initialize again. Collective.
    pub(crate) fn rest(&mut self) -> Done {
        self.quiet()?;
        // Teams end with the world's rest.
        for entry in std::mem::take(&mut self.teams).into_iter().flatten() {
            entry.team.leave(&self.world)?;
        }
        Ok(bindings::quiesce(&self.world)?)
    }

    /// An init after that. Collective.
    pub(crate) fn begin_again(&mut self, call: &'static str) -> Done {
        bindings::unquiesce(&self.world)?;
        self.exchange = Exchange::new(&self.world)?;
        self.open_library(call)
    }

    /// Leaves the job. Collective.
    pub(crate) fn finalize(self) -> Done {
        self.quiet()?;
        let Pe {
            stream,
            teams,
            world,
            ..
        } = self;
        drop((stream, teams));
        Ok(world.finalize()?)
    }

    /// Leaves the job while the process ends.
    pub(crate) fn finalize_at_exit(self) -> Done {
        let ended = bindings::finalize_at_exit(&self.world);
        // The driver may be gone already: nothing of the GPU's is freed.
        std::mem::forget(self);
        Ok(ended?)
    }

    /// Leaves the job after a [`rest`](Self::rest).
    pub(crate) fn detach(self) -> Done {
        let Pe { stream, world, .. } = self;
        // The driver may be gone already.
        std::mem::forget(stream);
        Ok(bindings::detach(world)?)
    }

    /// The address at which this PE's GPU has a PE's copy of an object.
    pub(crate) fn address_at(&self, object: Sym<u8>, pe: usize) -> Option<*mut c_void> {
        let address = bindings::gpu_address_of(&self.world, object, pe)?;
        Some(std::ptr::with_exposed_provenance_mut(address as usize))
    }
}

/// The GPU to open: the current one, or the one that is named, or the first.
fn context(call: &'static str, device: Option<usize>) -> Done<Context> {
    // SAFETY: a program that makes a context of its own keeps it until it has finalized (docs/nvshmem.md).
    match unsafe { bindings::current_context(call) }? {
        Some(context) => Ok(context),
        // The CUDA runtime of a program that chooses none uses the first.
        None => Ok(Context::new(&Device::new(device.unwrap_or(0))?)?),
    }
}

/// An address that a program gives, for the GPU.
pub(crate) fn gpu_pointer<T>(address: *const T) -> DevicePtr {
    DevicePtr::from_host(address)
}
