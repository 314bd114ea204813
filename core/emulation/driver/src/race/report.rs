//! The report of a race: both places, and what would order them.

use std::collections::HashSet;
use std::ffi::{c_int, c_void};
use std::path::Path;
use std::sync::{LazyLock, Mutex, Once};

use super::clock::Agent;
use super::known::Host;
use super::notes::Notes;
use super::pending::{self, Operand};
use super::place::{COPY, FILL, HOST_CALL, STREAM_WORD};
use super::scope::{OF_HOST, Reach};
use super::shadow::Access;
use crate::sync::lock;

/// The exit status of a process in which a race was found, as that of the compilers' own checks.
const STATUS: i32 = 66;
/// Lanes of a warp.
const LANES: u32 = 32;

/// The places of the races that this process has found.
static FOUND: LazyLock<Mutex<HashSet<Places>>> = LazyLock::new(Mutex::default);

/// The places of a race: in code, and in memory for those that have none in code.
pub(super) type Places = (usize, usize, usize);

/// Counts a race.
pub(super) fn count(places: Places) {
    lock(&FOUND).insert(places);
}

/// Tells of a race between an access to an address and an earlier one.
pub(super) fn tell(notes: &Notes, at: usize, access: &Access, other: &Access) {
    let tell = || {
        eprintln!(
            "softcuda: race: {}\n  and, before it, {}\n  at {:#x}: neither is ordered before the other. {}",
            told(notes, access),
            told(notes, other),
            at,
            mend(notes, access, other)
        );
    };
    // To read debug information takes more than a fiber's stack.
    std::thread::scope(|scope| {
        let done = std::thread::Builder::new().spawn_scoped(scope, tell);
        if done.is_err() {
            eprintln!("softcuda: race at {at:#x}: no thread can be started to say where");
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
    let count = lock(&FOUND).len();
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
fn told(notes: &Notes, access: &Access) -> String {
    let len = access.len;
    let operand = Operand::of_agent(access.stamp.agent);
    let what = match (operand, access.kind.writes, access.kind.atomic) {
        (None, true, false) => "a write",
        (None, false, false) => "a read",
        (None, true, true) => "an atomic or volatile write",
        (None, false, true) => "an atomic or volatile read",
        (Some(_), true, _) => "a nonblocking write",
        (Some(_), false, _) => "a nonblocking read",
    };
    let agent = pending::caller(access.stamp.agent);
    let process = process(notes, agent);
    let whose = match notes.hosts.get(process) {
        Some(host) if notes.hosts.len() > 1 => format!("{}'s ", host.name),
        _ => String::new(),
    };
    match access.pc {
        COPY => return format!("{what} of {len} bytes by {}", article(&whose, "copy")),
        FILL => {
            let fill = article(&whose, "fill (cudaMemset)");
            return format!("{what} of {len} bytes by {fill}");
        }
        HOST_CALL => {
            let call = article(&whose, "call of the host");
            return format!("{what} of {len} bytes by {call}");
        }
        STREAM_WORD => {
            let stream = article(&whose, "stream (cuStreamWriteValue)");
            return format!("a write of {stream}");
        }
        _ => {}
    }
    let is_host = |host: &Host| host.agent() == Some(agent);
    let who = match notes.launches.get(&(agent.strand, agent.piece)) {
        None if notes.hosts.iter().any(is_host) => "the host".to_owned(),
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
    let scope = match access.kind.atomic && operand.is_none() {
        true => format!(", scope {}", access.reach.scope.name()),
        false => String::new(),
    };
    format!(
        "{what} of {len} bytes by {whose}{who} at {}{scope}",
        line(notes, access.pc)
    )
}

/// A thing, and whose it is if there are several processes.
fn article(whose: &str, thing: &str) -> String {
    match whose {
        "" => format!("a {thing}"),
        whose => format!("{whose}{thing}"),
    }
}

/// The number of the process of an agent.
fn process(notes: &Notes, agent: Agent) -> usize {
    let process = notes.strands.get(pending::caller(agent).strand as usize);
    process.copied().unwrap_or(usize::MAX)
}

/// File and line of a place in a kernel: of the program's own if possible, whose functions have the emulation's in them.
fn line(notes: &Notes, name: usize) -> String {
    let place = match &notes.numbers {
        None => Some(name),
        Some(numbers) => numbers.place(name),
    };
    let Some(pc) = place else {
        return "a place in an image that this process has not loaded".to_owned();
    };
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

/// Whether a file is one of the emulation's headers, whose functions stand for a GPU's instructions, or the device library's.
fn is_of_emulation(file: &Path) -> bool {
    let folder = file.parent().and_then(Path::file_name);
    let is_header = file.extension().is_some_and(|e| e == "h");
    folder.is_some_and(|name| name == "emulation") && is_header || file.ends_with("oxshmem.cuh")
}

/// A function's name as programs have it.
fn plain(name: &str) -> String {
    backtrace::SymbolName::new(name.as_bytes()).to_string()
}

/// The call that may be missing, between an access and an earlier one.
fn mend(notes: &Notes, one: &Access, other: &Access) -> &'static str {
    let (a, b) = (one.stamp.agent, other.stamp.agent);
    let operands = [a, b].map(Operand::of_agent);
    let between = process(notes, a) != process(notes, b);
    let is_put =
        |operand: Option<Operand>| matches!(operand, Some(Operand::Dest | Operand::Signalled));
    if between && is_put(operands[0]) && operands[1].is_none() {
        return "Either another PE uses what a nonblocking put writes: behind a quiet or fence of a thread that comes after the call, a signal or \
                flag, and a wait for it. Or the put comes once its target is free there: behind a fence and a signal of that PE, and a wait for it.";
    }
    match operands.into_iter().flatten().next() {
        None => {}
        Some(Operand::Source) => {
            return "The source of a nonblocking put may be changed behind a quiet (or flush) of a thread that comes after the call.";
        }
        Some(Operand::Dest | Operand::Signalled) if between => {
            return "What a nonblocking put has written is used by another PE behind a quiet or fence of a thread that comes after the call, a \
                    signal or flag, and a wait for it; or behind the host's quiet or barrier.";
        }
        Some(_) => {
            return "The operands of a nonblocking call may be used behind a quiet of a thread that comes after the call.";
        }
    }
    let places: [Reach; 2] = [one.reach, other.reach];
    if between {
        return "PEs are ordered by a signal or a flag: a fence before it (oxshmem::fence, nvshmem_fence, __threadfence_system), or a put with a signal, and a \
                wait for it; or by a barrier, for kernels' work when the host has waited for it (cudaStreamSynchronize).";
    }
    if one.reach == OF_HOST || other.reach == OF_HOST {
        return "The host comes after work that it has waited for (cudaStreamSynchronize, cudaEventSynchronize), and before work that it gives later.";
    }
    if a.strand != b.strand || a.piece != b.piece {
        return "Work of different streams is ordered by an event (cudaStreamWaitEvent) or by the host.";
    }
    if one.kind.atomic && other.kind.atomic {
        return "The scope of one operation does not reach the other's block or device.";
    }
    if places[0].block == places[1].block {
        let threads = notes
            .launches
            .get(&(a.strand, a.piece))
            .map_or(u32::MAX, |launch| launch.shape.block_threads());
        let lane = |agent: Agent| agent.thread % threads / LANES;
        return match lane(a) == lane(b) {
            true => {
                "Lanes of a warp are ordered by __syncwarp(), and threads of several warps by __syncthreads()."
            }
            false => "Threads of a block are ordered by __syncthreads().",
        };
    }
    "Blocks are ordered by a flag: a fence (__threadfence) before the atomic store, and one behind the load; or by the grid's barrier."
}
