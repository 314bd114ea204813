//! Questions of programs about PEs, addresses and the library.

use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;

use oxshmem::{Sym, bindings};

use crate::call::pe_index;
use crate::handles::Team;
use crate::library::{self, Library};

/// `SHMEM_VENDOR_STRING`.
const NAME: &[u8] = concat!("oxshmem ", env!("CARGO_PKG_VERSION"), "\0").as_bytes();

/// The library and a byte of symmetric memory, if the address is one.
fn byte(address: *const c_void) -> Option<(&'static Library, Sym<u8>)> {
    let library = library::get().ok()?;
    let byte = bindings::object_at(&library.world, "addr", address.cast::<u8>(), 1).ok()?;
    Some((library, byte))
}

pub(crate) fn pe_accessible(_: &'static str, pe: c_int) -> c_int {
    let library = library::get().ok();
    library
        .is_some_and(|library| library.world.pe_accessible(pe_index(pe)))
        .into()
}

pub(crate) fn addr_accessible(_: &'static str, addr: *const c_void, pe: c_int) -> c_int {
    let found = byte(addr);
    found
        .is_some_and(|(library, byte)| library.world.addr_accessible(byte, pe_index(pe)))
        .into()
}

pub(crate) fn ptr(_: &'static str, dest: *const c_void, pe: c_int) -> *mut c_void {
    at(dest, pe_index(pe))
}

/// The address here of a PE's copy, by the PE's number in the world.
fn at(dest: *const c_void, pe: usize) -> *mut c_void {
    let Some((library, byte)) = byte(dest) else {
        return null_mut();
    };
    // A PE reaches itself, whatever is checked, but for GPU memory, which the CPU cannot load.
    if pe == library.world.my_pe() && bindings::address_of(&library.world, byte).is_some() {
        return dest.cast_mut();
    }
    let found = library.world.ptr(byte, pe);
    found.map_or(null_mut(), |at| at.as_ptr().cast())
}

pub(crate) fn team_ptr(_: &'static str, team: Team, dest: *const c_void, pe: c_int) -> *mut c_void {
    let in_world = || {
        let library = library::get().ok()?;
        let team = library.teams.get(team.0)?.members(&library.world)?;
        team.translate(usize::try_from(pe).ok()?, &library.world.team())
    };
    in_world().map_or(null_mut(), |pe| at(dest, pe))
}

pub(crate) unsafe fn version(_: &'static str, major: *mut c_int, minor: *mut c_int) {
    for (place, number) in [(major, 1), (minor, 6)] {
        if !place.is_null() {
            // SAFETY: the caller gives places for two ints.
            unsafe { place.write(number) };
        }
    }
}

pub(crate) unsafe fn name(_: &'static str, name: *mut c_char) {
    if !name.is_null() {
        // SAFETY: the caller gives SHMEM_MAX_NAME_LEN bytes, which are more.
        unsafe { std::ptr::copy_nonoverlapping(NAME.as_ptr().cast(), name, NAME.len()) };
    }
}

/// Seconds since the system began.
pub(crate) fn wtime(_: &'static str) -> f64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the place is that of a `timespec`; every Linux has this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}

/// Does nothing: a tool that interposes sees the calls.
pub(crate) fn pcontrol(_: &'static str, _level: c_int) {}
