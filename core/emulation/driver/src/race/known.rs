//! The knowledge of a process's host: what it has heard of, and what others may have heard from it.

use std::sync::Arc;

use super::arena;
use super::clock::{Agent, Clock, Stamp, join};

/// A clock for the notes.
pub(super) fn keep(clock: &Arc<Clock>) -> Arc<Clock> {
    match arena::is_inside() {
        true => Arc::new(Clock::clone(clock)),
        false => Arc::clone(clock),
    }
}

/// A process of the job, as a thread that waits for its GPU's work, and gives it work.
#[derive(Default)]
pub(super) struct Host {
    /// Its name in reports; empty if it is alone.
    pub(super) name: String,
    clock: Arc<Clock>,
    /// Knowledge that other hosts may have of it: all that it knew at its last call.
    pub(super) told: Arc<Clock>,
    /// Knowledge that others' kernels may have of it: what kernels have told it to pass on, what was before unseen work, and what it
    /// knew when it wrote to GPU memory itself.
    pub(super) passed: Arc<Clock>,
    /// The number of the last meeting of all that it has come to, and what it knew there and at the one before.
    pub(super) meeting: u64,
    pub(super) said: [Arc<Clock>; 2],
    /// Whether it is there: the library may still end work in that call, which the others then know of.
    meets: bool,
    /// Itself, if accesses of its own are noted, and the epoch that it is in.
    agent: Option<Agent>,
    epoch: u32,
    /// Whether something of this epoch is noted.
    acts: bool,
}

impl Host {
    pub(super) fn new(name: &str) -> Host {
        Host {
            name: name.to_owned(),
            ..Host::default()
        }
    }

    /// The host as a thread, once it is one.
    pub(super) fn agent(&self) -> Option<Agent> {
        self.agent
    }

    /// Makes it the one thread of a strand.
    pub(super) fn becomes(&mut self, strand: u32) -> Agent {
        let agent = Agent {
            strand,
            piece: 1,
            thread: 0,
        };
        self.epoch = 1;
        *self.agent.insert(agent)
    }

    /// An access of its own: its epoch, and all that has happened before it.
    pub(super) fn acts(&mut self) -> (u32, Arc<Clock>) {
        self.acts = true;
        (self.epoch, Arc::clone(&self.clock))
    }

    /// All that it knew when it did something last.
    pub(super) fn clock(&self) -> &Arc<Clock> {
        &self.clock
    }

    /// All that it knows, and has done.
    pub(super) fn now(&mut self) -> &Arc<Clock> {
        if let Some(agent) = self.agent.filter(|_| self.acts) {
            let epoch = self.epoch;
            Arc::make_mut(&mut self.clock).add(Stamp { agent, epoch });
            self.epoch += 1;
            self.acts = false;
        }
        &self.clock
    }

    /// Knows all of this, which is more than it knew.
    pub(super) fn knows(&mut self, clock: Clock) {
        self.clock = Arc::new(clock);
    }

    /// Hears of something. If it tells others at once, they may have heard of it.
    pub(super) fn hears(&mut self, clock: &Arc<Clock>, tells: bool) {
        join(&mut self.clock, clock);
        if tells {
            join(&mut self.told, clock);
        }
        if tells && self.meets {
            join(&mut self.said[(self.meeting % 2) as usize], clock);
        }
    }

    /// Leaves a meeting.
    pub(super) fn leaves(&mut self) {
        self.meets = false;
    }

    /// Tells other hosts what it knows, at a meeting or not; and their kernels, if it writes to GPU memory.
    pub(super) fn tells(&mut self, on_gpu: bool, meeting: u64) {
        let clock = keep(self.now());
        join(&mut self.told, &clock);
        if on_gpu {
            join(&mut self.passed, &clock);
        }
        if meeting != 0 {
            self.meeting = meeting;
            self.meets = true;
            self.said[(meeting % 2) as usize] = clock;
        }
    }

    /// Others may hear of this.
    pub(super) fn passes(&mut self, clock: &Arc<Clock>) {
        join(&mut self.passed, clock);
    }
}
