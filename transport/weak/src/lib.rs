//! The weak transport.

mod choice;

pub use choice::{Choices, Environment, Mode, Seeded};
