//! The goodbye that a program forgets: a PE that ends well, and has not finalized, says so by name, here and to the others.
//!
//! A PE that ends by an error or a signal says nothing: its end has another reason. (The C binding finalizes at an exit with
//! status 0, so that there only `_exit` leaves in this way, which nothing sees.)

use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use oxshmem_bootstrap::Bootstrap;

use crate::control::Message;
use crate::report;

/// How long telling the others may take.
const LAST_WORD: Duration = Duration::from_secs(1);

/// The jobs that this process has joined and not left: one, or two while the world of the first is still ending. (PEs that
/// are threads say nothing.)
static JOINED: Mutex<Vec<Joined>> = Mutex::new(Vec::new());

struct Joined {
    /// Its children are no PEs.
    process: u32,
    bootstrap: Weak<dyn Bootstrap>,
}

impl Joined {
    fn is_of(&self, bootstrap: &Arc<dyn Bootstrap>) -> bool {
        std::ptr::addr_eq(self.bootstrap.as_ptr(), Arc::as_ptr(bootstrap))
    }
}

/// The PEs of the last of those jobs that have said it.
static FORGETFUL: Mutex<Vec<u32>> = Mutex::new(Vec::new());

fn joined() -> MutexGuard<'static, Vec<Joined>> {
    JOINED.lock().unwrap_or_else(PoisonError::into_inner)
}

fn forgetful() -> MutexGuard<'static, Vec<u32>> {
    FORGETFUL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// This process joins a job, whose PEs have said nothing yet.
pub(crate) fn begin() {
    forgetful().clear();
}

/// This process is a PE, and is to finalize before it ends.
pub(crate) fn expect(bootstrap: &Arc<dyn Bootstrap>) {
    if bootstrap.size() == 1 {
        return;
    }
    joined().push(Joined {
        process: std::process::id(),
        bootstrap: Arc::downgrade(bootstrap),
    });
    at_exit();
}

/// It has, or its end has another reason.
pub(crate) fn is_said(bootstrap: &Arc<dyn Bootstrap>) {
    joined().retain(|joined| !joined.is_of(bootstrap));
}

/// It has not, and its world has ended: says so.
pub(crate) fn is_forgotten(bootstrap: &Arc<dyn Bootstrap>) {
    say(|joined| joined.is_of(bootstrap));
}

/// Says it to the jobs of `which`, and forgets these.
fn say(which: impl Fn(&Joined) -> bool) {
    // Never while the others hear of it, which may take a second.
    let ended: Vec<Joined> = joined().extract_if(.., |joined| which(joined)).collect();
    for joined in ended {
        if joined.process == std::process::id() {
            joined.say();
        }
    }
}

impl Joined {
    fn say(&self) {
        let Some(bootstrap) = self.bootstrap.upgrade() else {
            return;
        };
        let me = bootstrap.rank();
        report::say(&format!(
            "warning: PE {me} left without finalize: call World::finalize, in C shmem_finalize, before the program ends"
        ));
        let (done, is_done) = channel();
        let told = std::thread::Builder::new().spawn(move || {
            let word = Message::Forgot.to_bytes();
            for pe in (0..bootstrap.size()).filter(|pe| *pe != me) {
                // A PE that is gone need not hear of it.
                let _ = bootstrap.send(pe, &word);
            }
            // Nobody waits any more if this took too long.
            let _ = done.send(());
        });
        if told.is_ok() {
            let _ = is_done.recv_timeout(LAST_WORD);
        }
    }
}

/// A PE of this process's job has said it.
pub(crate) fn is_forgotten_by(pe: u32) {
    forgetful().push(pe);
}

/// Whether this PE has left without finalize, by its own word.
pub(crate) fn has_forgotten(pe: usize) -> bool {
    forgetful().iter().any(|known| *known as usize == pe)
}

/// A lost PE, in words.
pub(crate) fn of_lost(pe: usize) -> String {
    match has_forgotten(pe) {
        true => format!(
            "PE {pe} left without finalize; have its program call World::finalize, in C shmem_finalize, before it ends"
        ),
        false => format!(
            "PE {pe} is lost (it died, or left the job); after World::acknowledge_lost the others can go on with calls \
             that do not need it (no collective ones)"
        ),
    }
}

/// Has the process's end looked at, where the C library passes an exit's status on: glibc's does.
#[cfg(target_env = "gnu")]
fn at_exit() {
    use std::ffi::{c_int, c_void};
    use std::sync::Once;

    unsafe extern "C" {
        /// glibc: a function to call at the process's exit, with its status.
        fn on_exit(function: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
    }

    extern "C" fn ended(status: c_int, _: *mut c_void) {
        if status == 0 {
            say(|_| true);
        }
    }

    static AT_EXIT: Once = Once::new();
    AT_EXIT.call_once(|| {
        // SAFETY: the function may be called at any exit.
        unsafe { on_exit(ended, std::ptr::null_mut()) };
    });
}

/// Elsewhere an end of the program cannot be told from an error's: the others hear of a lost PE.
#[cfg(not(target_env = "gnu"))]
fn at_exit() {}
