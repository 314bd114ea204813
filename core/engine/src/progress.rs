//! Waits: the loop of polls, yields and sleeps, the words on which threads park, and the list of long waits.

pub mod atomics;
pub mod futex;
pub mod long_wait;
pub mod long_waits;
pub mod park;
pub mod reason;
pub mod wait;
