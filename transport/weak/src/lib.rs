//! The weak transport.

mod choice;
mod machine;
mod simulator;

pub use choice::{Choices, Environment, Mode, Seeded};
pub use machine::{Machine, Storage};
pub use simulator::{Simulator, simulated_gpu_memory};
