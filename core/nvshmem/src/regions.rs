//! Regions: hints of NVSHMEM's, which have no effect here. Their handles count them.

use std::sync::Mutex;
use std::sync::PoisonError;

use crate::failure::{Failure, status};
use crate::types::RegionAttrs;

/// The hints of each region by its handle, which is its place plus one; none once it is stopped.
static REGIONS: Mutex<Vec<Option<u32>>> = Mutex::new(Vec::new());

pub(crate) unsafe fn start(call: &'static str, handle: *mut u64, attrs: *const RegionAttrs) -> i32 {
    if handle.is_null() {
        return status(
            call,
            Err(Failure::argument(
                "argument handle: this is null; give a place for the handle",
            )),
        );
    }
    // SAFETY: the caller gives attributes, or null.
    let hints = unsafe { attrs.as_ref() }.map_or(0, |attrs| attrs.hints);
    let mut regions = REGIONS.lock().unwrap_or_else(PoisonError::into_inner);
    let free = regions.iter().position(Option::is_none);
    let place = free.unwrap_or_else(|| {
        regions.push(None);
        regions.len() - 1
    });
    regions[place] = Some(hints);
    // SAFETY: the caller gives a place for a handle.
    unsafe { handle.write(place as u64 + 1) };
    status(call, Ok(()))
}

pub(crate) unsafe fn stop(call: &'static str, handle: u64) -> i32 {
    let mut regions = REGIONS.lock().unwrap_or_else(PoisonError::into_inner);
    let place = usize::try_from(handle)
        .ok()
        .and_then(|handle| handle.checked_sub(1));
    let stopped = place.and_then(|place| regions.get_mut(place)?.take());
    let stopped = stopped.ok_or_else(|| {
        Failure::argument(format!(
            "argument handle: {handle} is no region that was started and not stopped"
        ))
    });
    status(call, stopped.map(drop))
}

pub(crate) unsafe fn is_active(call: &'static str, hints: u32, active: *mut i32) -> i32 {
    if active.is_null() {
        return status(
            call,
            Err(Failure::argument(
                "argument active: this is null; give a place for the answer",
            )),
        );
    }
    let regions = REGIONS.lock().unwrap_or_else(PoisonError::into_inner);
    let found = regions
        .iter()
        .flatten()
        .any(|region| region & hints == hints);
    // SAFETY: the caller gives a place for an int.
    unsafe { active.write(found.into()) };
    status(call, Ok(()))
}
