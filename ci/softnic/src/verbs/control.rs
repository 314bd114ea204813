//! Calls that libibverbs does not have: settings, faults and counts, for programs that know that they run on
//! this library. They are found by `dlsym`.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::OnceLock;

use crate::command::Command;
use crate::counters::COUNTERS;
use crate::memory;
use crate::object::{Outcome, returned};
use crate::profile::Profile;
use crate::sync::lock;
use crate::verbs::context::locked;
use crate::world::world;

/// # Safety
///
/// `text` is null or a C string.
unsafe fn text<'a>(text: *const c_char) -> Outcome<&'a str> {
    if text.is_null() {
        return Err(libc::EINVAL);
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(text) }
        .to_str()
        .map_err(|_| libc::EINVAL)
}

/// Carries out a command, such as `down mlx5_0 1 500`; README.md lists them. An error's words go to standard error.
///
/// # Safety
///
/// `command` is a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn softnic_control(command: *const c_char) -> c_int {
    returned("softnic_control", || {
        let carry_out = || {
            // SAFETY: the caller's promise.
            let words = unsafe { text(command) }.map_err(|_| "no text".to_owned())?;
            let command = Command::parse(words)?;
            let mut world = lock(world()?);
            world.now = std::time::Instant::now();
            world.command(&command)
        };
        carry_out().map_err(|why| {
            eprintln!("softnic: {why}");
            libc::EINVAL
        })?;
        // Its timers are looked at.
        crate::engine::nudge();
        Ok(())
    })
}

/// A count by its name; `u64::MAX` if there is none of that name. README.md lists them.
///
/// # Safety
///
/// `name` is a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn softnic_counter(name: *const c_char) -> u64 {
    // SAFETY: the caller's promise.
    let name = unsafe { text(name) };
    name.ok()
        .and_then(|name| COUNTERS.named(name))
        .unwrap_or(u64::MAX)
}

/// The names of all profiles, with commas between, as a C string.
#[unsafe(no_mangle)]
pub extern "C" fn softnic_profiles() -> *const c_char {
    static NAMES: OnceLock<CString> = OnceLock::new();
    NAMES
        .get_or_init(|| CString::new(Profile::names()).unwrap_or_default())
        .as_ptr()
}

/// Has host memory count as a GPU's: what NICs write there is visible late.
#[unsafe(no_mangle)]
pub extern "C" fn softnic_gpu_memory(addr: *mut c_void, len: usize, is: c_int) {
    memory::set_gpu(addr.expose_provenance(), len, is != 0);
}

/// Makes visible all that NICs of this process have written to GPU memory, as the driver's flush does.
#[unsafe(no_mangle)]
pub extern "C" fn softnic_flush_gpu() {
    let Ok(mut world) = locked() else { return };
    let pairs: Vec<u32> = world.pairs.keys().copied().collect();
    for pair in pairs {
        world.empty_bus(pair, true);
    }
}
