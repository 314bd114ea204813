//! The weak transport.

mod choice;
mod machine;
mod scheduler;
mod scoped;
mod simulator;
mod weak;

pub use choice::{Choices, Environment, Mode, Seeded};
pub use machine::{Machine, Storage};
pub use scheduler::{Plan, Scheduler, Trace, Turn, shrink};
pub use scoped::{Access, Agent, Hazard, Place, Scope, Scoped, Word};
pub use simulator::{Simulator, simulated_gpu_memory};
pub use weak::{Fenced, Settings, Weak};
