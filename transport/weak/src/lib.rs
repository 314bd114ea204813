//! The weak transport.

mod choice;
mod machine;

pub use choice::{Choices, Environment, Mode, Seeded};
pub use machine::{Machine, Storage};
