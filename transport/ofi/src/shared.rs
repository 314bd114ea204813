//! The state of a domain, shared with its lanes, its inbox and its thread.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use oxshmem_transport::{Error, Result, Sleep};

use crate::limits::NAME;
use crate::state::State;

/// A domain's state with its lock.
#[derive(Debug)]
pub(crate) struct Shared {
    state: Mutex<State>,
    /// Wakes the inbox.
    arrived: Condvar,
    /// Calls of lanes that drove the provider: while there are some, the thread need not.
    pub attended: AtomicU64,
    /// Lanes that sleep until something has come for them to drive.
    sleepers: AtomicU32,
    /// Whether the thread sleeps until its descriptor is readable.
    pub asleep: AtomicBool,
    wake: OwnedFd,
    /// Wakes the lanes that sleep.
    wake_lanes: OwnedFd,
}

/// The wait for an operation in place that was cancelled, until its PE is given up.
const PATIENCE: Duration = Duration::from_secs(3);
/// The wait for it, until the endpoint is closed: long, since that ends every connection, and `ofi_rxm` keeps the connection
/// with a PE that was given up (fi_av_remove), so that a PE that was stopped has to move again.
const LAST_PATIENCE: Duration = Duration::from_secs(20);
/// The longest sleep of a lane while the provider has no room for something.
const RETRY: Duration = Duration::from_millis(1);
const NAP: Duration = Duration::from_micros(50);

impl Shared {
    pub(crate) fn new(state: State) -> Result<Shared> {
        Ok(Shared {
            state: Mutex::new(state),
            arrived: Condvar::new(),
            attended: AtomicU64::new(0),
            sleepers: AtomicU32::new(0),
            asleep: AtomicBool::new(false),
            wake: waker()?,
            wake_lanes: waker()?,
        })
    }

    /// Locks. No code that holds the lock leaves the state half changed.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Drives the provider, and wakes the inbox if there is mail.
    pub(crate) fn drive(&self, state: &mut State) -> bool {
        let worked = state.drive();
        // The provider's descriptor does not tell a sleeper of what this thread has taken.
        if worked {
            self.wake_sleepers(state);
        }
        if !state.mailbox.is_empty() || state.failed.is_some() {
            self.arrived.notify_all();
        }
        worked
    }

    /// Sends what streams have, and has the thread look after the rest.
    pub(crate) fn pump(&self, state: &mut State) {
        state.round += 1;
        state.pump();
        if state.has_more() && self.asleep.load(Ordering::Acquire) {
            self.wake();
        }
        if !state.listed.is_empty() {
            self.wake_sleepers(state);
        }
        if !state.mailbox.is_empty() {
            self.arrived.notify_all();
        }
    }

    /// Wakes the lanes that sleep, once.
    fn wake_sleepers(&self, state: &mut State) {
        let asleep = self.sleepers.load(Ordering::Relaxed) > 0;
        if asleep && !std::mem::replace(&mut state.woke_lanes, true) {
            wake(&self.wake_lanes);
        }
    }

    /// Whether lanes drive the provider: they have since `last`, or sleep until there is something.
    pub(crate) fn is_attended(&self, last: &mut u64) -> bool {
        let count = self.attended.load(Ordering::Relaxed);
        let before = std::mem::replace(last, count);
        before != count || self.sleepers.load(Ordering::Relaxed) > 0
    }

    /// Sleeps until the provider has something to do, at most so long.
    pub(crate) fn sleep(&self, longest: Duration) -> Sleep {
        let mut state = self.lock();
        state.pay();
        let longest = match state.has_more() {
            true => longest.min(RETRY),
            false => longest,
        };
        let Some(endpoint) = &state.endpoint else {
            return Sleep::Unsupported;
        };
        let descriptor = match (endpoint.may_sleep(), endpoint.wait_descriptor()) {
            (Some(true), Some(descriptor)) => descriptor,
            (Some(false), Some(_)) => return Sleep::Ready,
            _ => return Sleep::Unsupported,
        };
        self.sleepers.fetch_add(1, Ordering::Relaxed);
        state.woke_lanes = false;
        drop(state);
        let ready = await_descriptors(&self.wake_lanes, Some(descriptor), longest);
        self.sleepers.fetch_sub(1, Ordering::Relaxed);
        self.attended.fetch_add(1, Ordering::Relaxed);
        match ready {
            0 => Sleep::Elapsed,
            _ => Sleep::Ready,
        }
    }

    /// Sleeps until a descriptor is readable or this is [woken](Self::wake), at most so long: for the thread.
    pub(crate) fn await_descriptor(&self, descriptor: Option<RawFd>, longest: Duration) {
        await_descriptors(&self.wake, descriptor, longest);
    }

    /// Wakes the thread.
    pub(crate) fn wake(&self) {
        wake(&self.wake);
    }

    /// Ends the inbox's sleep.
    pub(crate) fn wake_inbox(&self) {
        self.arrived.notify_all();
    }

    /// Sleeps until mail has come or the domain has ended.
    pub(crate) fn await_mail(&self, timeout: Duration) -> Result<()> {
        let idle =
            |state: &mut State| state.mailbox.is_empty() && !state.closed && state.failed.is_none();
        let slept = self.arrived.wait_timeout_while(self.lock(), timeout, idle);
        let (state, _) = slept.unwrap_or_else(PoisonError::into_inner);
        state.check()
    }

    /// Waits, for a bounded time, until a lane's operations to PEs that are gone access local memory no more. An endpoint
    /// that does not end them is closed. Other threads get the lock meanwhile.
    pub(crate) fn end_in_place<'s>(
        &'s self,
        state: MutexGuard<'s, State>,
        lane: u64,
    ) -> MutexGuard<'s, State> {
        self.end_transfers(state, lane, false)
    }

    /// The same of all operations of a lane, which were all cancelled: PEs that do not end theirs are given up first.
    pub(crate) fn end_dropped<'s>(
        &'s self,
        state: MutexGuard<'s, State>,
        lane: u64,
    ) -> MutexGuard<'s, State> {
        self.end_transfers(state, lane, true)
    }

    fn end_transfers<'s>(
        &'s self,
        mut state: MutexGuard<'s, State>,
        lane: u64,
        to_any: bool,
    ) -> MutexGuard<'s, State> {
        let since = Instant::now();
        let mut disconnected = false;
        while state.has_in_place(lane, to_any) {
            let waited = since.elapsed();
            if waited > LAST_PATIENCE {
                let why =
                    "a transfer that was given up does not end, and its memory may be used again";
                state.collapse(why.into());
                break;
            }
            if waited > PATIENCE && !disconnected {
                disconnected = true;
                state.give_up_in_place(lane);
            }
            let worked = self.drive(&mut state);
            drop(state);
            match worked {
                true => std::thread::yield_now(),
                false => std::thread::sleep(NAP),
            }
            state = self.lock();
        }
        state
    }
}

/// A descriptor by which a sleeper is woken.
fn waker() -> Result<OwnedFd> {
    // SAFETY: no precondition.
    let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
    if fd < 0 {
        return Err(Error::Os {
            transport: NAME,
            call: "eventfd".into(),
            source: std::io::Error::last_os_error(),
        });
    }
    // SAFETY: a new descriptor, which nobody else has.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Wakes who sleeps on such a descriptor.
fn wake(waker: &OwnedFd) {
    let one = 1_u64.to_ne_bytes();
    // SAFETY: an open descriptor, and 8 bytes. A counter that is full wakes as well.
    let _ = unsafe { libc::write(waker.as_raw_fd(), one.as_ptr().cast(), one.len()) };
}

/// Sleeps until a descriptor is readable or the sleeper is woken, at most so long. Gives the number of descriptors with an event.
fn await_descriptors(waker: &OwnedFd, descriptor: Option<RawFd>, longest: Duration) -> i32 {
    let poll = |fd| libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    };
    // One that is negative is ignored.
    let mut fds = [poll(descriptor.unwrap_or(-1)), poll(waker.as_raw_fd())];
    let time = libc::timespec {
        tv_sec: longest.as_secs() as libc::time_t,
        tv_nsec: longest.subsec_nanos().into(),
    };
    let len = fds.len() as libc::nfds_t;
    // SAFETY: the entries, and a time, during the call; a descriptor that was closed meanwhile is an event.
    let ready = unsafe { libc::ppoll(fds.as_mut_ptr(), len, &raw const time, std::ptr::null()) };
    let [_, woken] = fds;
    if woken.revents != 0 {
        let mut count = [0_u8; 8];
        // SAFETY: an open descriptor that does not block, and 8 bytes.
        let _ = unsafe { libc::read(woken.fd, count.as_mut_ptr().cast(), count.len()) };
    }
    ready
}
