//! Initialization, exit, and the PE's number.

use std::ffi::{c_int, c_void};
use std::io::Write;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use oxshmem::{MemoryModel, World};

use crate::active_sets::Sets;
use crate::failure::{self, Done, Failure, or_end, tell};
use crate::handles::Table;
use crate::library::{self, Library};
use crate::{collectives, contexts, statics, teams};

const SINGLE: c_int = 0;
const SERIALIZED: c_int = 2;
const MULTIPLE: c_int = 3;

/// How often the library was initialized and not yet finalized.
static INITIALIZED: AtomicI32 = AtomicI32::new(0);

/// The world after the last finalize: a process joins its job once, and leaves it when it ends, since it may initialize
/// again.
static RESTING: Mutex<Option<World>> = Mutex::new(None);

fn resting() -> MutexGuard<'static, Option<World>> {
    RESTING.lock().unwrap_or_else(PoisonError::into_inner)
}

unsafe extern "C" {
    /// glibc: a function to call at the process's exit, with its status.
    fn on_exit(function: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
}

pub(crate) fn init(call: &'static str) {
    or_end(call, initialize(SINGLE));
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
            tell(call, &failure);
            -1
        }
    }
}

/// Initializes, or counts one initialization more; gives the thread level.
fn initialize(requested: c_int) -> Done<c_int> {
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
    // Not locked meanwhile: another thread may end the process.
    let rested = resting().take();
    let world = match rested {
        Some(world) => {
            world.resume()?;
            world
        }
        None => {
            open_streams();
            // C's calls are always of the ordered model (M21).
            let builder = World::builder().model(MemoryModel::Ordered);
            statics::join(builder.active_sets().without_places())?
        }
    };
    // Each PE asks for a level of its own.
    let is_alone = requested < MULTIPLE;
    let is_each_alone = world.all_say(is_alone)?;
    let library = Library::new(world, requested, is_each_alone);
    let library = library::set(library, !is_alone)?;
    contexts::add_default(library);
    teams::add_predefined(library);
    INITIALIZED.store(1, Ordering::Relaxed);
    at_exit();
    tell_settings(library);
    Ok(library.level)
}

/// Opens those of stdin, stdout and stderr that are closed: else a file of the library's had that number, and the program
/// would write to it.
fn open_streams() {
    for stream in 0..=libc::STDERR_FILENO {
        // SAFETY: asks of a number whether it is open.
        if unsafe { libc::fcntl(stream, libc::F_GETFD) } < 0 {
            // SAFETY: the name is a string. It gets the lowest number that is free.
            unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_RDWR) };
        }
    }
}

/// What SHMEM_VERSION, SHMEM_INFO and SHMEM_DEBUG ask for, once a job.
fn tell_settings(library: &Library) {
    let is_set = |name: &str| {
        let names = [format!("SHMEM_{name}"), format!("SMA_{name}")];
        names.iter().any(|name| std::env::var_os(name).is_some())
    };
    let (world, first) = (&library.world, library.world.my_pe() == 0);
    let mut told = String::new();
    if first && is_set("VERSION") {
        told += concat!("oxshmem ", env!("CARGO_PKG_VERSION"), ", OpenSHMEM 1.6\n");
    }
    if first && is_set("INFO") {
        told += "oxshmem reads these environment variables:\n";
        let own = [
            ("VERSION", "any value prints the version at start"),
            ("INFO", "any value prints this"),
            ("DEBUG", "any value prints how each PE reaches the others"),
        ];
        for (name, help) in own {
            told += &format!("  SHMEM_{name} (or SMA_{name}): {help}\n");
        }
        for variable in oxshmem::variables() {
            let (name, meaning, default) = (variable.name, variable.meaning, variable.default);
            told += &format!("  {name}: {meaning} [{default}]\n");
        }
    }
    // Where it cannot be written nobody wants to know.
    let mut stdout = std::io::stdout();
    let _ = stdout
        .write_all(told.as_bytes())
        .and_then(|()| stdout.flush());
    if is_set("DEBUG") {
        failure::say(&format!(
            "PE {} of {}: process {}, {} bytes of symmetric heap, visibility {:?}",
            world.my_pe(),
            world.n_pes(),
            std::process::id(),
            world.heap_limit(),
            world.visibility()
        ));
    }
}

/// Sees to it once that a process that ends well without `shmem_finalize` finalizes, and that one that has finalized
/// leaves.
fn at_exit() {
    if PROCESS.swap(std::process::id(), Ordering::Relaxed) == 0 {
        // SAFETY: the function may be called at any exit.
        unsafe { on_exit(finalize_at_exit, std::ptr::null_mut()) };
    }
}

/// The process that is the PE, once it has initialized; its children are not.
static PROCESS: AtomicU32 = AtomicU32::new(0);

extern "C" fn finalize_at_exit(status: c_int, _: *mut c_void) {
    if PROCESS.load(Ordering::Relaxed) != std::process::id() {
        return;
    }
    // Who fails ends the job, and waits for nobody.
    if let (0, Ok(library)) = (status, library::get())
        && let Err(failure) = finalize_or_tell(library)
    {
        failure::end("shmem_finalize at exit", failure);
    }
    let rested = resting().take();
    if let Some(world) = rested {
        // Nobody is left to hear of a failure.
        let _ = world.leave();
    }
}

fn finalize_or_tell(library: &'static Library) -> Done {
    if library.threads().is_none() && !library.is_of_this_thread_or_one_that_ended() {
        failure::exits_well();
        failure::say(&format!(
            "PE {}: exit by another thread than that which called shmem_init, which may be in a call: to the other PEs \
             this one is lost; call shmem_finalize first",
            library.world.my_pe()
        ));
        return Ok(());
    }
    if library.level < SERIALIZED {
        failure::exits_well();
        INITIALIZED.store(0, Ordering::Relaxed);
        return last_finalize();
    }
    // All stays as it is until the process ends: other threads may be in calls, or come to some. (They must not at
    // SERIALIZED, where lanes have no lock; in what is mapped nothing comes of it.)
    library.complete_all()?;
    // No other PE has left before.
    failure::exits_well();
    Ok(library.alone(World::finalize_in_place)?)
}

pub(crate) fn start_pes(call: &'static str, _npes: c_int) {
    if library::get().is_err() {
        init(call);
    }
}

pub(crate) fn finalize(call: &'static str) {
    // What the program has to be called at exit may come after what the library has.
    if failure::is_exiting() {
        return;
    }
    // One more than there were initializations ends nothing, at exit neither: programs do that, and other libraries let them.
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
    or_end(call, done);
}

fn last_finalize() -> Done {
    let library = library::get()?;
    contexts::destroy_all(library);
    teams::leave_all(library);
    let Some(mut library) = library::take() else {
        return Err(Failure::NotInitialized);
    };
    // What refers to the world goes before the world is moved.
    let threads = library.end_threads();
    library.contexts = Table::new(0);
    library.teams = Table::new(0);
    library.active_sets = Sets::new();
    let world = library.world;
    let rested = world.rest();
    *resting() = Some(world);
    threads?;
    Ok(rested?)
}

pub(crate) unsafe fn query_initialized(_: &'static str, initialized: *mut c_int) {
    if !initialized.is_null() {
        // SAFETY: the caller gives a place for an int.
        unsafe { initialized.write(library::get().is_ok().into()) };
    }
}

pub(crate) unsafe fn query_thread(call: &'static str, provided: *mut c_int) {
    let level = or_end(call, library::get()).level;
    if !provided.is_null() {
        // SAFETY: the caller gives a place for an int.
        unsafe { provided.write(level) };
    }
}

pub(crate) fn global_exit(_: &'static str, status: c_int) {
    failure::exit(status)
}

#[inline]
pub(crate) fn my_pe(call: &'static str) -> c_int {
    or_end(call, library::get()).world.my_pe() as c_int
}

#[inline]
pub(crate) fn n_pes(call: &'static str) -> c_int {
    or_end(call, library::get()).world.n_pes() as c_int
}
