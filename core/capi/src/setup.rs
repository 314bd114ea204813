//! Initialization, exit, and the numbers of PEs.

use std::ffi::{c_int, c_void};
use std::io::Write;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use oxshmem::{MemoryModel, World, bindings};

use crate::entries::ActiveSets;
use crate::failure::{self, CResult, Failure, or_abort_job, report};
use crate::handles::Table;
use crate::library::{self, Library};
use crate::{collectives, contexts, cuda, inline, statics, teams};

const SINGLE: c_int = 0;
const SERIALIZED: c_int = 2;
const MULTIPLE: c_int = 3;

/// The number of initializations that are not yet finalized.
static INITIALIZED: AtomicI32 = AtomicI32::new(0);

/// The world after the last finalize. A process joins its job once, and leaves it when it exits, since it may initialize
/// again.
static QUIESCENT: Mutex<Option<World>> = Mutex::new(None);

fn quiescent() -> MutexGuard<'static, Option<World>> {
    QUIESCENT.lock().unwrap_or_else(PoisonError::into_inner)
}

unsafe extern "C" {
    /// glibc: a function to call at the process's exit, with its status.
    fn on_exit(function: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
}

pub(crate) fn init(call: &'static str) {
    or_abort_job(call, initialize(SINGLE));
}

pub(crate) unsafe fn init_thread(
    call: &'static str,
    requested: c_int,
    provided: *mut c_int,
) -> c_int {
    match initialize(requested) {
        Ok(level) => {
            if !provided.is_null() {
                // SAFETY: the caller gives a place for an int.
                unsafe { provided.write(level) };
            }
            0
        }
        Err(failure) => {
            report(call, &failure);
            -1
        }
    }
}

/// Initializes, or counts one more initialization. Gives the thread level.
fn initialize(requested: c_int) -> CResult<c_int> {
    if !(SINGLE..=MULTIPLE).contains(&requested) {
        return Err(Failure::argument(
            "requested",
            format!("{requested} is no thread level; give one of SHMEM_THREAD_SINGLE to _MULTIPLE"),
        ));
    }
    if let Ok(library) = library::get() {
        INITIALIZED.fetch_add(1, Ordering::Relaxed);
        return Ok(library.level);
    }
    // The lock is not held meanwhile: another thread may end the process.
    let quiesced = quiescent().take();
    let world = match quiesced {
        Some(world) => {
            bindings::unquiesce(&world)?;
            world
        }
        None => {
            open_streams();
            // C's calls are always of the ordered model (M21).
            let builder = World::builder().model(MemoryModel::Ordered);
            statics::join(bindings::without_places(cuda::default_heap(
                builder.active_sets(),
            )))?
        }
    };
    // Each PE asks for a level of its own.
    let is_alone = requested < MULTIPLE;
    let is_each_alone = bindings::all_say(&world, is_alone)?;
    let library = Library::new(world, requested, is_each_alone);
    let library = library::set(library, !is_alone)?;
    if is_alone {
        inline::allow(library);
    }
    contexts::add_default(library);
    teams::add_predefined(library);
    INITIALIZED.store(1, Ordering::Relaxed);
    at_exit();
    print_settings(library);
    Ok(library.level)
}

/// Opens those of stdin, stdout and stderr that are closed: else a file of the library's would get that number, and the
/// program would write to it.
fn open_streams() {
    for stream in 0..=libc::STDERR_FILENO {
        // SAFETY: asks whether a descriptor is open.
        if unsafe { libc::fcntl(stream, libc::F_GETFD) } < 0 {
            // SAFETY: the name is a string. It gets the lowest number that is free.
            unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_RDWR) };
        }
    }
}

/// Prints what SHMEM_VERSION, SHMEM_INFO and SHMEM_DEBUG ask for, once in a job.
fn print_settings(library: &Library) {
    let is_set = |name: &str| {
        let names = [format!("SHMEM_{name}"), format!("SMA_{name}")];
        names.iter().any(|name| std::env::var_os(name).is_some())
    };
    let (world, first) = (&library.world, library.world.my_pe() == 0);
    let mut text = String::new();
    if first && is_set("VERSION") {
        text += concat!("oxshmem ", env!("CARGO_PKG_VERSION"), ", OpenSHMEM 1.6\n");
    }
    if first && is_set("INFO") {
        text += "oxshmem reads these environment variables:\n";
        let own = [
            ("VERSION", "any value prints the version at start"),
            ("INFO", "any value prints this"),
            ("DEBUG", "any value prints how each PE reaches the others"),
        ];
        for (name, help) in own {
            text += &format!("  SHMEM_{name} (or SMA_{name}): {help}\n");
        }
        for variable in oxshmem::variables() {
            let (name, meaning, default) = (variable.name, variable.meaning, variable.default);
            text += &format!("  {name}: {meaning} [{default}]\n");
        }
    }
    // An error of stdout is ignored.
    let mut stdout = std::io::stdout();
    let _ = stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush());
    if is_set("DEBUG") {
        failure::print(&format!(
            "PE {} of {}: process {}, {} bytes of symmetric heap, visibility {:?}",
            world.my_pe(),
            world.n_pes(),
            std::process::id(),
            world.heap_limit(),
            world.visibility()
        ));
    }
}

/// Registers the exit handler once: a process that ends well without `shmem_finalize` finalizes there, and one that has
/// finalized leaves the job.
fn at_exit() {
    if PROCESS.swap(std::process::id(), Ordering::Relaxed) == 0 {
        // SAFETY: the function may be called at any exit.
        unsafe { on_exit(finalize_at_exit, std::ptr::null_mut()) };
    }
}

/// The process that is the PE, once it has initialized; its children are no PEs.
static PROCESS: AtomicU32 = AtomicU32::new(0);

extern "C" fn finalize_at_exit(status: c_int, _: *mut c_void) {
    if PROCESS.load(Ordering::Relaxed) != std::process::id() {
        return;
    }
    // A PE that fails ends the job, and waits for nobody.
    if let (0, Ok(library)) = (status, library::get())
        && let Err(failure) = finalize_or_warn(library)
    {
        failure::abort_job("shmem_finalize at exit", failure);
    }
    let quiesced = quiescent().take();
    if let Some(world) = quiesced {
        // Nobody could use an error.
        let _ = bindings::detach(world);
    }
}

fn finalize_or_warn(library: &'static Library) -> CResult {
    if library.threads().is_none() && !library.is_initializer_here_or_ended() {
        failure::note_clean_exit();
        failure::print(&format!(
            "PE {}: exit by another thread than that which called shmem_init, which may be in a call: to the other PEs \
             this one is lost; call shmem_finalize first",
            library.world.my_pe()
        ));
        return Ok(());
    }
    if library.level < SERIALIZED {
        failure::note_clean_exit();
        INITIALIZED.store(0, Ordering::Relaxed);
        return last_finalize();
    }
    // All stays as it is until the process ends: other threads may be in calls, or come to some. (They must not at
    // SERIALIZED, where lanes have no lock; in what is mapped nothing comes of it.)
    library.quiet_all()?;
    // No other PE has left before this.
    failure::note_clean_exit();
    Ok(library.with_world(bindings::finalize_at_exit)?)
}

pub(crate) fn start_pes(call: &'static str, _npes: c_int) {
    if library::get().is_err() {
        init(call);
    }
}

pub(crate) fn finalize(call: &'static str) {
    // The program's exit handlers may run after the library's.
    if failure::is_exiting() {
        return;
    }
    // A finalize too many ends nothing, not at exit either: programs do that, and other libraries let them.
    if library::get().is_err() && PROCESS.load(Ordering::Relaxed) == std::process::id() {
        return;
    }
    let done =
        library::get().and_then(
            |library| match INITIALIZED.fetch_sub(1, Ordering::Relaxed) {
                1 => last_finalize(),
                _ => collectives::everyone(library),
            },
        );
    or_abort_job(call, done);
}

fn last_finalize() -> CResult {
    let library = library::get()?;
    contexts::destroy_all(library);
    teams::leave_all(library);
    inline::forbid();
    let Some(mut library) = library::take() else {
        return Err(Failure::NotInitialized);
    };
    // Contexts and teams refer to the world: they go before it is moved.
    let threads = library.end_threads();
    library.contexts = Table::new(0);
    library.teams = Table::new(0);
    library.active_sets = ActiveSets::default();
    let world = library.world;
    let quiesced = bindings::quiesce(&world);
    *quiescent() = Some(world);
    threads?;
    Ok(quiesced?)
}

pub(crate) unsafe fn query_initialized(_: &'static str, initialized: *mut c_int) {
    if !initialized.is_null() {
        // SAFETY: the caller gives a place for an int.
        unsafe { initialized.write(library::get().is_ok().into()) };
    }
}

pub(crate) unsafe fn query_thread(call: &'static str, provided: *mut c_int) {
    let level = or_abort_job(call, library::get()).level;
    if !provided.is_null() {
        // SAFETY: the caller gives a place for an int.
        unsafe { provided.write(level) };
    }
}

pub(crate) fn global_exit(_: &'static str, status: c_int) {
    failure::exit_job(status)
}

#[inline]
pub(crate) fn my_pe(call: &'static str) -> c_int {
    or_abort_job(call, library::get()).world.my_pe() as c_int
}

#[inline]
pub(crate) fn n_pes(call: &'static str) -> c_int {
    or_abort_job(call, library::get()).world.n_pes() as c_int
}
