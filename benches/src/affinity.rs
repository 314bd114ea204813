//! The processors on which the calling thread, and its children, may run.

use std::io;

/// The processors that are allowed now.
pub fn allowed() -> io::Result<Vec<usize>> {
    // SAFETY: all-zero bytes are an empty cpu_set_t.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes at most the size passed into `set`.
    let got = unsafe { libc::sched_getaffinity(0, size_of_val(&set), &raw mut set) };
    if got != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the index is below CPU_SETSIZE, the number of bits in `set`.
    let has = |cpu: &usize| unsafe { libc::CPU_ISSET(*cpu, &set) };
    Ok((0..libc::CPU_SETSIZE as usize).filter(has).collect())
}

/// Allows only these processors.
pub fn restrict(cpus: &[usize]) -> io::Result<()> {
    // SAFETY: all-zero bytes are an empty cpu_set_t.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    for cpu in cpus.iter().filter(|cpu| **cpu < libc::CPU_SETSIZE as usize) {
        // SAFETY: the index is below CPU_SETSIZE, the number of bits in `set`.
        unsafe { libc::CPU_SET(*cpu, &mut set) };
    }
    // SAFETY: the kernel reads the size passed from `set`.
    match unsafe { libc::sched_setaffinity(0, size_of_val(&set), &raw const set) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
