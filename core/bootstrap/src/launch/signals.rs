//! Signals to the launcher, received through a descriptor in its poll loop.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::process::Signal;

use crate::error::{Error, Result, io};

/// Signals that are caught and passed on to the PEs, except those that the launcher was started with ignored.
const CAUGHT: [Signal; 9] = [
    Signal::INT,
    Signal::TERM,
    Signal::HUP,
    Signal::QUIT,
    Signal::USR1,
    Signal::USR2,
    Signal::WINCH,
    Signal::TSTP,
    Signal::CONT,
];

/// While this exists, the calling thread gets those signals from a descriptor.
pub(super) struct CaughtSignals {
    descriptor: OwnedFd,
    before: libc::sigset_t,
}

impl CaughtSignals {
    pub(super) fn begin() -> Result<CaughtSignals> {
        let mut set = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: `sigemptyset` initialises the set, which the others then get initialised.
        let set = unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            // A signal that is ignored on entry (by nohup, or a shell for background jobs) stays so, for
            // the PEs too, which inherit that.
            for signal in CAUGHT.into_iter().filter(|signal| !is_ignored(*signal)) {
                libc::sigaddset(set.as_mut_ptr(), signal.as_raw());
            }
            set.assume_init()
        };
        // SAFETY: the set is initialised; -1 asks for a new descriptor.
        let descriptor =
            unsafe { libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
        if descriptor < 0 {
            let source = std::io::Error::last_os_error();
            return Err(Error::Io {
                action: "making a signal descriptor",
                source,
            });
        }
        // SAFETY: `signalfd` has just made this descriptor, and nothing else owns it.
        let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
        let mut before = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: the set is initialised, and `before` is a place for one.
        let code =
            unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, before.as_mut_ptr()) };
        if code != 0 {
            let source = std::io::Error::from_raw_os_error(code);
            return Err(Error::Io {
                action: "blocking signals",
                source,
            });
        }
        // SAFETY: `pthread_sigmask` succeeded, so it has written the former mask.
        let before = unsafe { before.assume_init() };
        Ok(CaughtSignals { descriptor, before })
    }

    /// The next signal that has come.
    pub(super) fn next(&self) -> Result<Option<Signal>> {
        let mut record = [0; size_of::<libc::signalfd_siginfo>()];
        match rustix::io::read(&self.descriptor, &mut record) {
            Ok(_) => {
                // The signal's number is the record's first field, a u32.
                let number = record
                    .first_chunk()
                    .map_or(0, |bytes| i32::from_ne_bytes(*bytes));
                Ok(CAUGHT.into_iter().find(|signal| signal.as_raw() == number))
            }
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Ok(None),
            Err(error) => Err(io("reading signals")(error)),
        }
    }
}

impl AsFd for CaughtSignals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl Drop for CaughtSignals {
    fn drop(&mut self) {
        // Signals that are still unread belong to the job that has ended.
        while let Ok(Some(_)) = self.next() {}
        // SAFETY: `before` is the mask that `begin` got from the kernel.
        unsafe {
            libc::pthread_sigmask(
                libc::SIG_SETMASK,
                &raw const self.before,
                std::ptr::null_mut(),
            );
        }
    }
}

/// Whether this process ignores `signal`.
fn is_ignored(signal: Signal) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: a null pointer changes nothing; `action` is a place for what is set now.
    let code = unsafe { libc::sigaction(signal.as_raw(), std::ptr::null(), action.as_mut_ptr()) };
    // SAFETY: `sigaction` succeeded, so it has written the action.
    code == 0 && unsafe { action.assume_init() }.sa_sigaction == libc::SIG_IGN
}
