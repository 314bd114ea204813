//! The device library of a world, once it is open.

use std::cell::RefCell;

use oxshmem_device_library::layout::State;

use super::layout::{DeviceLayout, TeamChunk, TeamLayout};
use super::ring_server::RingServer;
use crate::sym::Sym;

/// Everything of it that lasts as long as the world.
#[derive(Debug)]
pub(crate) struct OpenLibrary {
    /// The thread that serves kernels, unless every PE is mapped.
    pub server: Option<RingServer>,
    /// Its memory in each PE's GPU heap.
    pub layout: DeviceLayout,
    /// The memory of teams, in the order of their numbers.
    pub chunks: RefCell<Vec<TeamChunk>>,
    /// The memory for elements of members that are not mapped, on streams; on all PEs where one of them maps another's not.
    pub staging: Option<Sym<u8>>,
    /// The address of this PE's GPU heap.
    pub heap: u64,
    /// The state of images, unless the program sets another deadline.
    pub state: State,
}

impl OpenLibrary {
    /// Ends it, and keeps the memory that kernels may still use until the process ends.
    pub(crate) fn keep_memory(self) {
        if let Some(server) = &self.server {
            server.keep_memory();
        }
    }

    /// The memory of a team, if there is some.
    pub(super) fn layout_of(&self, team: usize) -> Option<TeamLayout> {
        self.chunks
            .borrow()
            .iter()
            .find_map(|chunk| chunk.find(team))
    }

    /// The number of teams that there is memory for, the permanent ones among them.
    pub(super) fn team_capacity(&self) -> usize {
        self.chunks.borrow().iter().map(|chunk| chunk.count).sum()
    }
}
