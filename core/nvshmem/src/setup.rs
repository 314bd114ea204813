//! Initialization, exit, and the numbers of PEs.

use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::AtomicI32;
use std::time::Duration;

use oxshmem::bindings;
use oxshmem_bootstrap::Bootstrap;

use crate::attributes::{take_invitation, text_of};
use crate::environment;
use crate::failure::{self, Done, Failure, code, or_end_job, status};
use crate::job::Job;
use crate::numbers;
use crate::other_libraries::{self, Found};
use crate::state;
use crate::types::{DeviceLibraryCallback, InitAttr, NO_DEVICE, Version};

/// Bits of the flags of a start.
mod flag {
    /// PEs as threads are no other way here.
    pub(super) const THREAD_PES: u32 = 1;
    pub(super) const MPI: u32 = 2;
    pub(super) const SHMEM: u32 = 4;
    pub(super) const UNIQUE_ID: u32 = 8;
}

/// The thread level: calls may come from any thread, one at a time.
const SERIALIZED: i32 = 2;
const MULTIPLE: i32 = 3;

/// The version of NVSHMEM's interface, and of the vendor's library whose names are here.
const API: [i32; 2] = [1, 3];
const VENDOR: [i32; 3] = [3, 8, 0];
/// The name that the library says, as the header's `NVSHMEM_VENDOR_STRING`, with its final zero.
const NAME: &[u8] = b"oxshmem, with NVSHMEM's names of 3.8.0\0";

/// The way to the job.
enum Way {
    /// The environment describes it.
    Environment,
    /// A library of the program's has given all processes an id, or the program has.
    Id(Found),
}

unsafe extern "C" {
    /// glibc: a function to call at the process's exit, with its status.
    fn on_exit(function: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
}

/// A variable of NVIDIA's library, which programs refer to that have that one's device library linked in: no device transport is chosen.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "the name is given")]
pub static nvshmem_selected_device_transport: AtomicI32 = AtomicI32::new(0);

/// Initializes, or counts one more initialization.
fn initialize(call: &'static str, way: impl FnOnce() -> Done<Way>, device: i32) -> Done {
    state::refuse_child()?;
    let mut state = state::job();
    if state.as_ref().is_none_or(|job| !job.is_initialized()) {
        let way = way()?;
        let is_kept = matches!(way, Way::Environment) && state.is_some();
        if !is_kept {
            if let Some(rests) = state.take() {
                // A PE that rests in another job leaves it.
                rests.leave_at_exit()?;
            }
            let is_of_environment = matches!(way, Way::Environment);
            let bootstrap = connect(way)?;
            state::abort_by(&bootstrap);
            let job = Job::join(bootstrap, is_of_environment, device)?;
            if job.me == 0 {
                environment::tell();
            }
            *state = Some(job);
        }
    }
    at_exit();
    let job = state.as_mut().ok_or(Failure::NotInitialized)?;
    job.begin(call)
}

/// The bootstrap of a way.
fn connect(way: Way) -> Done<Arc<dyn Bootstrap>> {
    let deadline = bindings::bootstrap_deadline()?;
    let Found { rank, size, id } = match way {
        Way::Environment => {
            let lookup = |name: &str| bindings::variable(name);
            return Ok(oxshmem_bootstrap::join(&lookup, deadline)?);
        }
        Way::Id(found) => found,
    };
    let numbers = u32::try_from(rank).ok().zip(u32::try_from(size).ok());
    let Some((rank, size)) = numbers else {
        return Err(Failure::argument(format!(
            "rank {rank} of {size}: ranks are 0 and above, and a job has 1 PE at least"
        )));
    };
    let id = text_of(&id)?;
    Ok(match take_invitation(id) {
        Some(invitation) => invitation.join(rank, size, deadline)?,
        None => oxshmem_bootstrap::join_by_id(id, rank, size, deadline)?,
    })
}

/// The way that the environment chooses where a program leaves it open.
fn open_way() -> Done<Way> {
    match environment::bootstrap().as_deref() {
        // SAFETY: null stands for all processes.
        Some("MPI") => Ok(Way::Id(unsafe {
            other_libraries::by_mpi(std::ptr::null_mut())
        }?)),
        Some("SHMEM") => Ok(Way::Id(other_libraries::by_shmem()?)),
        _ => Ok(Way::Environment),
    }
}

/// The way that attributes name.
///
/// # Safety
///
/// The attributes are null or initialized as the flags need them.
unsafe fn way_of(flags: u32, attributes: *const InitAttr) -> Done<Way> {
    const KNOWN: u32 = flag::THREAD_PES | flag::MPI | flag::SHMEM | flag::UNIQUE_ID;
    if flags & !KNOWN != 0 {
        return Err(Failure::argument(format!(
            "argument flags: {flags:#x} has bits that name no way to start; give one of NVSHMEMX_INIT_WITH_MPI_COMM, _WITH_SHMEM and \
             _WITH_UNIQUEID, or 0"
        )));
    }
    // SAFETY: the caller's promise.
    let given = unsafe { attributes.as_ref() };
    let of = |what: &str| {
        given.ok_or_else(|| Failure::argument(format!("argument attributes: this is null; {what}")))
    };
    if flags & flag::UNIQUE_ID != 0 {
        let args = of("fill them by nvshmemx_set_attr_uniqueid_args")?
            .args
            .uid_args;
        // SAFETY: the caller gives the id that all processes have.
        let id = unsafe { args.id.as_ref() }.ok_or_else(|| {
            Failure::argument(
                "the attributes have no unique id; fill them by nvshmemx_set_attr_uniqueid_args",
            )
        })?;
        return Ok(Way::Id(Found {
            rank: args.myrank,
            size: args.nranks,
            id: *id,
        }));
    }
    if flags & flag::MPI != 0 {
        let communicator = of("give the communicator in mpi_comm")?.mpi_comm;
        // SAFETY: the caller gives a communicator of its MPI.
        return Ok(Way::Id(unsafe { other_libraries::by_mpi(communicator) }?));
    }
    if flags & flag::SHMEM != 0 {
        return Ok(Way::Id(other_libraries::by_shmem()?));
    }
    open_way()
}

pub(crate) unsafe fn init(call: &'static str) {
    or_end_job(call, initialize(call, open_way, NO_DEVICE));
}

pub(crate) unsafe fn init_thread(call: &'static str, requested: i32, provided: *mut i32) -> i32 {
    let check = || match requested {
        0..=MULTIPLE => initialize(call, open_way, NO_DEVICE),
        other => Err(Failure::argument(format!(
            "argument requested: {other} is no thread level; give one of NVSHMEM_THREAD_SINGLE to _MULTIPLE"
        ))),
    };
    let done = check();
    // SAFETY: the caller's promise.
    unsafe { query_thread(call, provided) };
    status(call, done)
}

pub(crate) unsafe fn query_thread(_: &'static str, provided: *mut i32) {
    if !provided.is_null() {
        // SAFETY: the caller gives a place for an int.
        unsafe { provided.write(SERIALIZED) };
    }
}

pub(crate) unsafe fn init_attr(call: &'static str, flags: u32, attributes: *mut InitAttr) -> i32 {
    // The GPU's number is in attributes of the second version.
    // SAFETY: the caller gives null or attributes.
    let device = unsafe { attributes.as_ref() }
        .filter(|given| given.version == InitAttr::VERSION)
        .map_or(NO_DEVICE, |given| given.args.cuda_device_id);
    // SAFETY: the caller's promise.
    let way = || unsafe { way_of(flags, attributes.cast_const()) };
    status(call, initialize(call, way, device))
}

/// The same: modules that do not announce themselves get their states by the calls that name one.
pub(crate) unsafe fn hostlib_init_attr(call: &'static str, flags: u32, attr: *mut InitAttr) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { init_attr(call, flags, attr) }
}

pub(crate) unsafe fn id_hostlib_init_attr(
    call: &'static str,
    requested: i32,
    provided: *mut i32,
    bootstrap_flags: u32,
    attr: *mut InitAttr,
    _: Version,
    _: DeviceLibraryCallback,
) -> i32 {
    let _ = requested;
    // SAFETY: the caller's promise.
    unsafe {
        query_thread(call, provided);
        init_attr(call, bootstrap_flags, attr)
    }
}

/// Answers an init. With the last one the PE leaves its job, or rests.
fn end() -> Done {
    let mut state = state::job();
    let Some(job) = state.as_mut().filter(|job| job.is_initialized()) else {
        // One too many ends nothing.
        return match state::is_process() {
            true => Ok(()),
            false => Err(Failure::NotInitialized),
        };
    };
    let is_gone = job.end()?;
    if !job.is_initialized() {
        numbers::set(-1, -1);
    }
    if is_gone {
        *state = None;
    }
    Ok(())
}

pub(crate) unsafe fn finalize(call: &'static str) {
    or_end_job(call, end());
}

pub(crate) unsafe fn hostlib_finalize(call: &'static str) {
    or_end_job(call, end());
}

pub(crate) unsafe fn id_hostlib_finalize(call: &'static str, _: *mut c_void, _: *mut c_void) {
    or_end_job(call, end());
}

/// The time that the process's exit waits for another thread's call.
const PATIENCE: Duration = Duration::from_secs(5);

/// Registers the exit handler once.
fn at_exit() {
    if state::note_process() {
        // SAFETY: the function may be called at any exit.
        unsafe { on_exit(leave_at_exit, std::ptr::null_mut()) };
    }
}

extern "C" fn leave_at_exit(status: c_int, _: *mut c_void) {
    // A PE that fails ends the job, and waits for nobody.
    if !state::is_process() || status != 0 {
        return;
    }
    let Some(mut state) = state::job_at_exit(PATIENCE) else {
        failure::print(
            "exit while another thread is in a call: to the other PEs this one is lost; call nvshmem_finalize first",
        );
        return;
    };
    let job = state.take();
    drop(state);
    if let Some(Err(failure)) = job.map(Job::leave_at_exit) {
        failure::report("nvshmem_finalize at exit", &failure);
    }
}

pub(crate) unsafe fn global_exit(_: &'static str, status: i32) {
    failure::end_job(status)
}

pub(crate) unsafe fn my_pe(call: &'static str) -> i32 {
    or_end_job(call, numbers::my_pe().ok_or(Failure::NotInitialized))
}

pub(crate) unsafe fn n_pes(call: &'static str) -> i32 {
    or_end_job(call, numbers::n_pes().ok_or(Failure::NotInitialized))
}

/// Writes numbers where there are places for them.
///
/// # Safety
///
/// Each is null, or a place for an int.
unsafe fn give<const K: usize>(numbers: [i32; K], places: [*mut i32; K]) {
    for (number, place) in numbers.into_iter().zip(places) {
        if !place.is_null() {
            // SAFETY: the caller gives places for numbers.
            unsafe { place.write(number) };
        }
    }
}

pub(crate) unsafe fn info_get_version(_: &'static str, major: *mut i32, minor: *mut i32) {
    // SAFETY: the caller's promise.
    unsafe { give(API, [major, minor]) };
}

pub(crate) unsafe fn vendor_get_version_info(
    _: &'static str,
    major: *mut i32,
    minor: *mut i32,
    patch: *mut i32,
) {
    // SAFETY: the caller's promise.
    unsafe { give(VENDOR, [major, minor, patch]) };
}

pub(crate) unsafe fn info_get_name(_: &'static str, name: *mut c_char) {
    if !name.is_null() {
        // SAFETY: the caller gives room for a name of the longest, which has more bytes than this.
        unsafe { name.copy_from_nonoverlapping(NAME.as_ptr().cast(), NAME.len()) };
    }
}

pub(crate) unsafe fn init_status(_: &'static str) -> i32 {
    const NOT: i32 = 0;
    const BOOTSTRAPPED: i32 = 1;
    const INITIALIZED: i32 = 2;
    match &*state::job() {
        Some(job) if !job.is_initialized() => NOT,
        None => NOT,
        Some(job) if !job.is_open() => BOOTSTRAPPED,
        Some(_) => INITIALIZED,
    }
}

pub(crate) unsafe fn status_string(_: &'static str, status: i32) -> *const c_char {
    let words = match status {
        code::SUCCESS => c"success",
        code::INVALID_VALUE => c"an argument makes no sense",
        code::OUT_OF_MEMORY => c"no memory is left",
        code::NOT_SUPPORTED => c"the call is not there in this library",
        4 => c"PEs differ where they must be alike",
        code::GPU_NOT_SELECTED => c"no GPU is chosen",
        6 => c"a collective launch failed",
        code::INTERNAL => c"the call failed; the message on stderr says why",
        _ => c"no status of this library's",
    };
    words.as_ptr()
}
