//! Attributes of a start, and unique ids.
//!
//! Programs give attributes that they have not initialized: the calls here set every field.

use std::ffi::c_void;
use std::sync::{Mutex, MutexGuard, PoisonError};

use oxshmem::bindings;
use oxshmem_bootstrap::Invitation;

use crate::failure::{Done, Failure, status};
use crate::types::{ID_BYTES, InitAttr, UniqueId};

/// The ids that this process has made and not yet joined by.
static MADE: Mutex<Vec<Invitation>> = Mutex::new(Vec::new());

fn made() -> MutexGuard<'static, Vec<Invitation>> {
    MADE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes an id: this process is the place where the others meet.
pub(crate) fn new_id() -> Done<UniqueId> {
    // A zero ends it.
    let invitation = Invitation::new(&|name| bindings::variable(name), ID_BYTES - 1)?;
    let mut id = UniqueId {
        version: UniqueId::VERSION,
        internal: [0; ID_BYTES],
    };
    let text = invitation.id().as_bytes();
    let Some(place) = id.internal.get_mut(..text.len()) else {
        return Err(Failure::Start("the id is too long".into()));
    };
    place.copy_from_slice(text);
    made().push(invitation);
    Ok(id)
}

/// The words of an id.
pub(crate) fn text_of(id: &UniqueId) -> Done<&str> {
    let end = id.internal.iter().position(|byte| *byte == 0);
    let bytes = &id.internal[..end.unwrap_or(ID_BYTES)];
    let text = std::str::from_utf8(bytes)
        .ok()
        .filter(|text| !text.is_empty());
    text.ok_or_else(|| {
        Failure::argument(
            "the unique id is none of this library's: the process that makes it could not (its error says why), or its 128 bytes from \
             nvshmemx_get_uniqueid did not come to this one as they were",
        )
    })
}

/// The id's place, if this process has made it. Its other ids go: a process is in one job at a time.
pub(crate) fn take_invitation(id: &str) -> Option<Invitation> {
    let made = std::mem::take(&mut *made());
    made.into_iter().find(|invitation| invitation.id() == id)
}

pub(crate) unsafe fn get_uniqueid(call: &'static str, uniqueid: *mut UniqueId) -> i32 {
    let give = || {
        if uniqueid.is_null() {
            return Err(Failure::argument(
                "argument uniqueid: this is null; give a place for the id",
            ));
        }
        let id = new_id()?;
        // SAFETY: the caller gives a place for an id.
        unsafe { uniqueid.write(id) };
        Ok(())
    };
    status(call, give())
}

/// Writes attributes, if there is a place.
///
/// # Safety
///
/// It is null, or a place for attributes.
unsafe fn give(attributes: *mut InitAttr, filled: InitAttr) -> Done {
    if attributes.is_null() {
        return Err(Failure::argument(
            "argument attr: this is null; give a place for the attributes",
        ));
    }
    // SAFETY: the caller gives a place for attributes.
    unsafe { attributes.write(filled) };
    Ok(())
}

pub(crate) unsafe fn set_attr_uniqueid_args(
    call: &'static str,
    myrank: i32,
    nranks: i32,
    uniqueid: *const UniqueId,
    attr: *mut InitAttr,
) -> i32 {
    let mut filled = InitAttr::EMPTY;
    let args = &mut filled.args.uid_args;
    (args.id, args.myrank, args.nranks) = (uniqueid.cast_mut(), myrank, nranks);
    // SAFETY: the caller's promise.
    status(call, unsafe { give(attr, filled) })
}

pub(crate) unsafe fn set_attr_mpi_comm_args(
    call: &'static str,
    mpi_comm: *mut c_void,
    nvshmem_attr: *mut InitAttr,
) -> i32 {
    let mut filled = InitAttr::EMPTY;
    filled.mpi_comm = mpi_comm;
    // SAFETY: the caller's promise.
    status(call, unsafe { give(nvshmem_attr, filled) })
}
