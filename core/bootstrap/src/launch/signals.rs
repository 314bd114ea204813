//! Signals to the launcher, received in its poll loop.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::process::Signal;

use crate::error::io;
use crate::{Error, Result};

/// What is caught and passed on to the PEs, as far as the launcher was not started with it ignored.
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
pub(super) struct Caught {
    descriptor: OwnedFd,
    before: libc::sigset_t,
}

impl Caught {
    pub(super) fn begin() -> Result<Caught> {
        let mut set = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: `sigemptyset` initialises the set, which the others then get initialised.
        let set = unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            // What is ignored on entry (as nohup does, and shells for background jobs) stays so, for
            // the PEs too, who inherit that.
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
        Ok(Caught { descriptor, before })
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

impl AsFd for Caught {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl Drop for Caught {
    fn drop(&mut self) {
        // Signals that nobody has read yet belong to the job that has ended.
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

/// " (SIGKILL)", or nothing for a signal without a common name.
pub(super) fn name_in_brackets(signal: i32) -> String {
    let name = match signal {
        libc::SIGHUP => "HUP",
        libc::SIGINT => "INT",
        libc::SIGQUIT => "QUIT",
        libc::SIGILL => "ILL",
        libc::SIGTRAP => "TRAP",
        libc::SIGABRT => "ABRT",
        libc::SIGBUS => "BUS",
        libc::SIGFPE => "FPE",
        libc::SIGKILL => "KILL",
        libc::SIGUSR1 => "USR1",
        libc::SIGSEGV => "SEGV",
        libc::SIGUSR2 => "USR2",
        libc::SIGPIPE => "PIPE",
        libc::SIGALRM => "ALRM",
        libc::SIGTERM => "TERM",
        libc::SIGXCPU => "XCPU",
        libc::SIGXFSZ => "XFSZ",
        libc::SIGSYS => "SYS",
        _ => return String::new(),
    };
    format!(" (SIG{name})")
}
