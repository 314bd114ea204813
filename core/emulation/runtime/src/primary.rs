//! The thread's device, and the primary contexts.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::driver;
use crate::error::{Error, Outcome, get};

thread_local! {
    static DEVICE: Cell<i32> = const { Cell::new(0) };
}

static RETAINED: Mutex<Option<HashMap<i32, u64>>> = Mutex::new(None);

/// The primary context of a device, which is retained once.
pub(crate) fn of(device: i32) -> Outcome<u64> {
    driver::start()?;
    let mut retained = RETAINED.lock().unwrap_or_else(PoisonError::into_inner);
    let retained = retained.get_or_insert_default();
    if let Some(context) = retained.get(&device) {
        return Ok(*context);
    }
    let context = get(|out| driver::cuDevicePrimaryCtxRetain(out, device))?;
    retained.insert(device, context);
    Ok(context)
}

/// Makes sure that the thread has a context: the current one if there is one, else the primary one of
/// its device. Returns the device.
pub(crate) fn ensure() -> Outcome<i32> {
    driver::start()?;
    let current = get(driver::cuCtxGetCurrent)?;
    if current != 0 {
        return get(driver::cuCtxGetDevice);
    }
    let device = DEVICE.get();
    driver::cuCtxSetCurrent(of(device)?)?;
    Ok(device)
}

/// The thread's device. No context is made for the answer.
pub(crate) fn device() -> Outcome<i32> {
    driver::start()?;
    let current = get(driver::cuCtxGetCurrent)?;
    if current != 0 {
        return get(driver::cuCtxGetDevice);
    }
    Ok(DEVICE.get())
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

/// Destroys the primary context of the thread's device.
pub(crate) fn reset() -> Outcome {
    let device = device()?;
    let mut retained = RETAINED.lock().unwrap_or_else(PoisonError::into_inner);
    if retained.get_or_insert_default().remove(&device).is_some() {
        driver::cuCtxSetCurrent(0)?;
        driver::cuDevicePrimaryCtxRelease_v2(device)?;
    }
    DEVICE.set(device);
    Ok(())
}
