//! The host as a thread: it gives work to streams, waits for it, and calls a library by which other hosts hear of it.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::access::is_of_host;
use super::clock::{Clock, Stamp, join};
use super::notes::{Notes, is_active, notes, take};
use super::pending::{Completes, Operand};
use super::place::{HOST_CALL, Place};
use super::strand::with_running;
use super::{arena, names};

thread_local! {
    /// The calls of a library that this thread is in.
    static CALLS: Cell<usize> = const { Cell::new(0) };
    /// Whether this thread runs code of the program: it has made such a call, or it is the first one.
    static OF_PROGRAM: Cell<bool> = Cell::new(is_first_thread());
}

fn is_first_thread() -> bool {
    // SAFETY: both calls only give numbers.
    unsafe { libc::gettid() == libc::getpid() }
}

/// Whether what this thread does is the library's work: it may carry out what kernels have asked for.
fn is_library() -> bool {
    CALLS.get() > 0 || !OF_PROGRAM.get()
}

/// The host's clock, for work that it gives.
pub(crate) fn host() -> Arc<Clock> {
    if !is_active() {
        return Arc::default();
    }
    let mut notes = notes();
    match is_library() {
        true => notes.known_and_passed(),
        false => take(notes.known()),
    }
}

/// Calls in which the host tells others of what it knows: what it hears during one, the library may pass on at once.
static TELLS: AtomicUsize = AtomicUsize::new(0);

/// The host has waited for something.
pub(crate) fn host_waited(clock: &Arc<Clock>) {
    if !is_active() {
        return;
    }
    let mut notes = notes();
    let host = notes.host();
    host.hears(clock, TELLS.load(Ordering::Relaxed) > 0);
    if is_library() {
        // The kernels that have asked for the work go on.
        host.passes(clock);
    }
}

/// A call of a library, by which others may hear of the host.
pub(crate) struct HostCall {
    /// Its first arguments.
    pub(crate) arguments: [usize; 6],
    /// Those of them that are addresses, as bits.
    pub(crate) addresses: u32,
    /// The nonblocking calls that it completes.
    pub(crate) completes: Option<Completes>,
    /// Its number if it is a meeting of all processes, from 1 on, or 0.
    pub(crate) meeting: u64,
}

/// The host begins a call. Kernels of others may hear of it where the call has an address of GPU memory. Gives which arguments are such
/// addresses, as bits.
pub(crate) fn host_calls(call: &HostCall) -> u32 {
    TELLS.fetch_add(1, Ordering::Relaxed);
    CALLS.set(CALLS.get() + 1);
    OF_PROGRAM.set(true);
    if !is_active() {
        return 0;
    }
    let is_on_gpu = |at: &usize| {
        let is_address = call.addresses & (1 << at) != 0;
        is_address
            && call
                .arguments
                .get(*at)
                .is_some_and(|at| names::is_mapped(*at))
    };
    let on_gpu = (0..call.arguments.len()).filter(is_on_gpu);
    let on_gpu = on_gpu.fold(0, |bits, at| bits | 1 << at);
    let mut notes = notes();
    if let Some(by) = call.completes {
        notes.host_completes(by);
    }
    notes.host().tells(on_gpu != 0, call.meeting);
    on_gpu
}

impl Notes {
    /// A call of the host ends the use of operands of nonblocking calls.
    fn host_completes(&mut self, by: Completes) {
        let mut clock = Clock::clone(self.known());
        self.complete(&mut clock, by);
        self.host().knows(clock);
    }
}

/// The host makes a nonblocking call for bytes, which copies will move.
pub(crate) fn host_operand(at: usize, len: usize, operand: Operand, writes: bool) {
    if !is_active() || len == 0 {
        return;
    }
    let mut notes = notes();
    let caller = notes.host_agent();
    notes.pending.add(caller);
    let (epoch, before) = notes.host().acts();
    let agent = operand.agent(caller);
    let place = Place {
        at,
        len,
        pc: HOST_CALL,
    };
    notes.host_touches(place, Stamp { agent, epoch }, (writes, true), &before);
}

/// Code of the host accesses memory. That which is page-locked and this process's own counts: in what several processes share, hosts
/// may tell each other of something by accesses that are not seen.
pub(crate) fn host_accesses(place: Place, writes: bool) {
    if !is_active() || !is_of_host(place.at) || names::is_mapped(place.at) {
        return;
    }
    names::know_code(place.pc);
    let mut notes = notes();
    let agent = notes.host_agent();
    let (epoch, before) = notes.host().acts();
    notes.host_touches(place, Stamp { agent, epoch }, (writes, false), &before);
}

/// The call is over. `heard`: the host has heard of the other processes, or has met them.
pub(crate) fn host_returns(heard: bool, meeting: u64) {
    TELLS.fetch_sub(1, Ordering::Relaxed);
    CALLS.set(CALLS.get().saturating_sub(1));
    if heard && is_active() {
        let mut notes = notes();
        let heard = match meeting {
            0 => notes.told_by_others(),
            meeting => {
                notes.host().leaves();
                notes.said_at(meeting)
            }
        };
        if let Some(heard) = heard {
            notes.host().hears(&heard, false);
        }
    }
}

/// The running piece begins or ends work that is not seen: of a kernel that was not built for the detector. It may hear of others, and
/// others may hear of it. It may have waited for a word, which is not seen either.
pub(crate) fn is_unseen() {
    if !is_active() {
        return;
    }
    let heard = {
        let notes = notes();
        let told = notes.told_by_others();
        let of_hosts = told.map(|told| [told, notes.passed()]);
        let of_hosts = of_hosts.into_iter().flatten();
        of_hosts
            .chain([notes.published_to_all()])
            .collect::<Vec<_>>()
    };
    with_running(|running| {
        heard
            .iter()
            .for_each(|clock| join(&mut running.clock, clock));
        let mut notes = notes();
        // It may be a quiet of the library's.
        arena::inside(false, || {
            notes.complete(Arc::make_mut(&mut running.clock), Completes::Quiet);
        });
        notes.host().passes(&running.clock);
    });
}
