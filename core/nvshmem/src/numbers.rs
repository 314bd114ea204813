//! This PE's number and the number of PEs, for calls that wait for nobody.

use std::sync::atomic::{AtomicI32, Ordering};

/// Both numbers, while the library is initialized; below 0 else.
static NUMBERS: [AtomicI32; 2] = [AtomicI32::new(-1), AtomicI32::new(-1)];

/// Sets them.
pub(crate) fn set(me: i32, n: i32) {
    for (number, value) in NUMBERS.iter().zip([me, n]) {
        number.store(value, Ordering::Relaxed);
    }
}

fn number(which: usize) -> Option<i32> {
    Some(NUMBERS[which].load(Ordering::Relaxed)).filter(|number| *number >= 0)
}

/// This PE's number, while the library is initialized.
pub(crate) fn my_pe() -> Option<i32> {
    number(0)
}

/// The number of PEs, while the library is initialized.
pub(crate) fn n_pes() -> Option<i32> {
    number(1)
}
