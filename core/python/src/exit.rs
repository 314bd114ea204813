//! The end of the process: a PE whose program has not finalized does so, if the program ends with status 0.

use std::ffi::{c_int, c_void};
use std::io::Write;
use std::sync::Once;

use oxshmem::Error;

use crate::errors::Failure;
use crate::job;

unsafe extern "C" {
    /// glibc: a function to call at the process's exit, with its status.
    fn on_exit(function: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
}

/// Registers the handler once.
pub(crate) fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the function may be called at any exit; this library is never unloaded.
        unsafe { on_exit(leave, std::ptr::null_mut()) };
    });
}

/// Prints a message on stderr. An error there is ignored: nobody could read of it.
fn print(message: &str) {
    let _ = std::io::stderr().write_all(format!("oxshmem: {message}\n").as_bytes());
}

/// A program that fails ends its job, and waits for nobody.
extern "C" fn leave(status: c_int, _: *mut c_void) {
    if status != 0 || job::is_forked() {
        return;
    }
    let Some(state) = job::current() else { return };
    match state.finalize_at_exit() {
        Some(Ok(())) => {}
        Some(Err(Failure::Core(error))) => print(&format!("at exit: {}", words(&error))),
        Some(Err(_)) => {}
        None => print(
            "exit while another thread is in a call: to the other PEs this one is lost; join your threads, and call finalize() first",
        ),
    }
}

fn words(error: &Error) -> String {
    error.to_string()
}
