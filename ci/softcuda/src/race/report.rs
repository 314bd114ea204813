//! The report of a race: both places, and what would order them.

use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::path::Path;
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

use super::clock::Agent;
use super::place::{COPY, FILL, Place, STREAM_WORD};
use super::scope::Reach;
use super::shadow::Access;
use crate::kernel::shape::Shape;

/// A kernel that was launched.
#[derive(Clone, Debug)]
pub(crate) struct Launch {
    pub(crate) name: String,
    pub(crate) shape: Shape,
}

/// The exit status of a process in which a race was found, as that of the compilers' own checks.
const STATUS: i32 = 66;
/// Lanes of a warp.
const LANES: u32 = 32;

static FOUND: AtomicU32 = AtomicU32::new(0);

/// Tells of a race between an access to a place and an earlier one.
pub(super) fn tell(
    launches: &HashMap<(u32, u32), Launch>,
    place: Place,
    access: &Access,
    other: &Access,
) {
    FOUND.fetch_add(1, Ordering::Relaxed);
    let tell = || {
        eprintln!(
            "softcuda: race: {}\n  and, before it, {}\n  at {:#x}: neither is ordered before the other. {}",
            told(launches, access),
            told(launches, other),
            place.at,
            mend(launches, access, other)
        );
    };
    // To read debug information takes more than a fiber's stack.
    std::thread::scope(|scope| {
        let done = std::thread::Builder::new().spawn_scoped(scope, tell);
        if done.is_err() {
            eprintln!(
                "softcuda: race at {:#x}: no thread can be started to say where",
                place.at
            );
        }
    });
}

unsafe extern "C" {
    /// As `atexit`, of the C library: the function gets the exit status.
    safe fn on_exit(function: extern "C" fn(c_int, *mut c_void), data: *mut c_void) -> c_int;
}

/// Has the end of the process say whether races were found. What is registered later runs before.
pub(super) fn watch_the_end() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        on_exit(at_exit, std::ptr::null_mut());
    });
}

/// Gives a process with races a status that says so, if it did not fail otherwise.
extern "C" fn at_exit(status: c_int, _: *mut c_void) {
    let count = FOUND.load(Ordering::Relaxed);
    if count == 0 {
        return;
    }
    let kept = if status == 0 { STATUS } else { status };
    eprintln!("softcuda: {count} races were found; the exit status is {kept}");
    if status == 0 {
        // SAFETY: no precondition. What was registered before this library was loaded, the C library's own, does not run.
        unsafe {
            libc::fflush(std::ptr::null_mut());
            libc::_exit(STATUS);
        }
    }
}

/// An access in words.
fn told(launches: &HashMap<(u32, u32), Launch>, access: &Access) -> String {
    let len = access.len;
    let what = match (access.kind.writes, access.kind.atomic) {
        (true, false) => "a write",
        (false, false) => "a read",
        (true, true) => "an atomic or volatile write",
        (false, true) => "an atomic or volatile read",
    };
    match access.pc {
        COPY => return format!("{what} of {len} bytes by a copy"),
        FILL => return format!("{what} of {len} bytes by a fill (cudaMemset)"),
        STREAM_WORD => return "a write of a stream (cuStreamWriteValue)".to_owned(),
        _ => {}
    }
    let agent = access.stamp.agent;
    let who = match launches.get(&(agent.strand, agent.piece)) {
        None => format!("thread {}", agent.thread),
        Some(launch) => {
            let threads = launch.shape.block_threads();
            let block = u64::from(agent.thread / threads);
            let position = launch.shape.position(block, agent.thread % threads);
            format!(
                "block {:?} thread {:?} of kernel {}",
                position.block,
                position.thread,
                plain(&launch.name)
            )
        }
    };
    let scope = match access.kind.atomic {
        true => format!(", scope {}", access.reach.scope.name()),
        false => String::new(),
    };
    format!(
        "{what} of {len} bytes by {who} at {}{scope}",
        line(access.pc)
    )
}

/// File and line of a place in a kernel: of the program's own if possible, whose functions have the emulation's in them.
fn line(pc: usize) -> String {
    let (mut own, mut any) = (None, None);
    // The call's own line, not that behind it.
    backtrace::resolve((pc - 1) as *mut c_void, |symbol| {
        if let (Some(file), Some(line)) = (symbol.filename(), symbol.lineno()) {
            let found = || format!("{}:{line}", file.display());
            any.get_or_insert_with(found);
            if !is_of_emulation(file) {
                own.get_or_insert_with(found);
            }
        }
    });
    own.or(any).unwrap_or_else(|| format!("{pc:#x}"))
}

/// Whether a file is one of the emulation's headers, whose functions stand for a GPU's instructions.
fn is_of_emulation(file: &Path) -> bool {
    let folder = file.parent().and_then(Path::file_name);
    folder.is_some_and(|name| name == "emulation") && file.extension().is_some_and(|e| e == "h")
}

/// A function's name as programs have it.
fn plain(name: &str) -> String {
    backtrace::SymbolName::new(name.as_bytes()).to_string()
}

/// The call that may be missing.
fn mend(launches: &HashMap<(u32, u32), Launch>, one: &Access, other: &Access) -> &'static str {
    let (a, b) = (one.stamp.agent, other.stamp.agent);
    let places: [Reach; 2] = [one.reach, other.reach];
    if a.strand != b.strand || a.piece != b.piece {
        return "Work of different streams is ordered by an event (cudaStreamWaitEvent) or by the host.";
    }
    if one.kind.atomic && other.kind.atomic {
        return "The scope of one operation does not reach the other's block or device.";
    }
    if places[0].block == places[1].block {
        let threads = launches
            .get(&(a.strand, a.piece))
            .map_or(u32::MAX, |launch| launch.shape.block_threads());
        let lane = |agent: Agent| agent.thread % threads / LANES;
        return match lane(a) == lane(b) {
            true => "Lanes of a warp are ordered by __syncwarp() or __syncthreads().",
            false => "Threads of a block are ordered by __syncthreads().",
        };
    }
    "Blocks are ordered by a flag: a fence (__threadfence) before the atomic store, and one behind the load; or by the grid's barrier."
}
