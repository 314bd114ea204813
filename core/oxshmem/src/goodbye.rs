//! Detection of a missing finalize: a PE that exits with status 0 without it reports that, here and to the other PEs.
//!
//! A PE that ends by an error or a signal reports nothing: its end has another reason. (The C binding finalizes at an exit with
//! status 0. There only `_exit` leaves without finalize, which nothing sees.)

use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use oxshmem_bootstrap::Bootstrap;
use oxshmem_engine::control::message::Message;

use oxshmem_engine::report;

/// Time limit for the messages to the other PEs.
const SEND_DEADLINE: Duration = Duration::from_secs(1);

/// The jobs that this process has joined and not left: one, or two while the world of the first is still ending. PEs that are
/// threads have no entry.
static JOINED: Mutex<Vec<Joined>> = Mutex::new(Vec::new());

struct Joined {
    /// The process that joined. Its children are no PEs.
    process: u32,
    bootstrap: Weak<dyn Bootstrap>,
}

impl Joined {
    fn is_of(&self, bootstrap: &Arc<dyn Bootstrap>) -> bool {
        std::ptr::addr_eq(self.bootstrap.as_ptr(), Arc::as_ptr(bootstrap))
    }
}

fn joined() -> MutexGuard<'static, Vec<Joined>> {
    JOINED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Expects this process, which is a PE, to finalize before it ends.
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

/// Expects nothing more of this PE: it has finalized, or its end has another reason.
pub(crate) fn is_said(bootstrap: &Arc<dyn Bootstrap>) {
    joined().retain(|joined| !joined.is_of(bootstrap));
}

/// Reports that this PE's world has ended without finalize.
pub(crate) fn is_forgotten(bootstrap: &Arc<dyn Bootstrap>) {
    say(|joined| joined.is_of(bootstrap));
}

/// Reports a missing finalize to the jobs of `which`, and expects nothing more of them.
fn say(which: impl Fn(&Joined) -> bool) {
    // The lock is not held while the messages are sent, which may take a second.
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
        let sending = std::thread::Builder::new().spawn(move || {
            let word = Message::Forgot.to_bytes();
            for pe in (0..bootstrap.size()).filter(|pe| *pe != me) {
                // A PE that is gone needs no message.
                let _ = bootstrap.send(pe, &word);
            }
            // The receiver is gone if this took too long.
            let _ = done.send(());
        });
        if sending.is_ok() {
            let _ = is_done.recv_timeout(SEND_DEADLINE);
        }
    }
}

/// Registers a handler of the process's exit, where the C library passes the exit status to it: glibc does.
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
        // SAFETY: the function takes what glibc passes, and may be called at any exit.
        unsafe { on_exit(ended, std::ptr::null_mut()) };
    });
}

/// Elsewhere an exit with status 0 cannot be distinguished from one by an error: the other PEs report a lost PE.
#[cfg(not(target_env = "gnu"))]
fn at_exit() {}
