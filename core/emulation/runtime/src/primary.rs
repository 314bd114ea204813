//! The thread's device, and the primary contexts.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

use crate::driver;
use crate::error::{Error, Outcome, get};

thread_local! {
    static DEVICE: Cell<i32> = const { Cell::new(0) };
}

/// The primary contexts of this process.
#[derive(Default)]
struct Contexts {
    /// Those that are retained, by device.
    retained: HashMap<i32, u64>,
    /// Those that were given back; they may be current on threads still.
    gone: HashSet<u64>,
}

static CONTEXTS: Mutex<Option<Contexts>> = Mutex::new(None);

fn with<T>(body: impl FnOnce(&mut Contexts) -> T) -> T {
    let mut contexts = CONTEXTS.lock().unwrap_or_else(PoisonError::into_inner);
    body(contexts.get_or_insert_default())
}

/// The primary context of a device, which is retained once.
pub(crate) fn of(device: i32) -> Outcome<u64> {
    driver::start()?;
    with(|contexts| {
        if let Some(context) = contexts.retained.get(&device) {
            return Ok(*context);
        }
        let context = get(|out| driver::cuDevicePrimaryCtxRetain(out, device))?;
        contexts.gone.remove(&context);
        contexts.retained.insert(device, context);
        Ok(context)
    })
}

/// The device of the thread's current context; none without such a context, or with one that was given back.
fn current() -> Outcome<Option<i32>> {
    driver::start()?;
    let current = get(driver::cuCtxGetCurrent)?;
    if current == 0 || with(|contexts| contexts.gone.contains(&current)) {
        return Ok(None);
    }
    get(driver::cuCtxGetDevice).map(Some)
}

/// Makes sure that the thread has a context: the current one if there is one, else the primary one of
/// its device. Returns the device.
pub(crate) fn ensure() -> Outcome<i32> {
    if let Some(device) = current()? {
        return Ok(device);
    }
    let device = DEVICE.get();
    driver::cuCtxSetCurrent(of(device)?)?;
    Ok(device)
}

/// The thread's device. No context is made for the answer.
pub(crate) fn device() -> Outcome<i32> {
    Ok(current()?.unwrap_or_else(|| DEVICE.get()))
}

/// Makes a device the thread's own, and its primary context current.
pub(crate) fn choose(device: i32) -> Outcome {
    driver::start()?;
    let count = get(driver::cuDeviceGetCount)?;
    if !(0..count).contains(&device) {
        return Err(Error::INVALID_DEVICE);
    }
    DEVICE.set(device);
    driver::cuCtxSetCurrent(of(device)?)
}

/// Destroys the primary context of the thread's device, if it has one, and returns it. Other threads that have it get a new one
/// with their next call.
pub(crate) fn reset() -> Outcome<Option<u64>> {
    let device = device()?;
    let gone = with(|contexts| {
        let gone = contexts.retained.remove(&device);
        if let Some(context) = gone {
            contexts.gone.insert(context);
            driver::cuCtxSetCurrent(0)?;
            driver::cuDevicePrimaryCtxRelease_v2(device)?;
        }
        Ok(gone)
    })?;
    DEVICE.set(device);
    Ok(gone)
}
