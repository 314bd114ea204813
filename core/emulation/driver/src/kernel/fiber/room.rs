//! Room on a device: all grids of this process share it. Other processes' work has turns of its own, as on a GPU.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::config::MOST_DEVICES;

/// A device's whole room.
const WHOLE: u64 = 1 << 40;

#[derive(Debug)]
struct Device {
    taken: AtomicU64,
    /// The number of times that a thread of one of its kernels did more than wait.
    moves: AtomicU64,
}

static DEVICES: [Device; MOST_DEVICES] = [const {
    Device {
        taken: AtomicU64::new(0),
        moves: AtomicU64::new(0),
    }
}; MOST_DEVICES];

/// The room that a grid's blocks take.
#[derive(Debug)]
pub(crate) struct Room {
    device: &'static Device,
    /// Blocks of the grid that fit at once, if nothing else is there.
    pub(super) most: u64,
}

impl Room {
    /// Room on a device, which holds so many of a grid's blocks.
    pub(crate) fn on(device: usize, most: u64) -> Room {
        Room {
            device: &DEVICES[device % MOST_DEVICES],
            most: most.max(1),
        }
    }

    /// Takes the room of so many blocks, if it is there.
    pub(super) fn take(&self, blocks: u64) -> bool {
        let share = (WHOLE / self.most).saturating_mul(blocks);
        let more = |taken: u64| Some(taken.saturating_add(share)).filter(|all| *all <= WHOLE);
        let taken = &self.device.taken;
        // Relaxed: the number alone matters.
        taken
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more)
            .is_ok()
    }

    /// Gives it back.
    pub(super) fn give_back(&self, blocks: u64) {
        let share = WHOLE / self.most * blocks;
        self.device.taken.fetch_sub(share, Ordering::Relaxed);
    }

    /// Notes that a thread did more than wait.
    pub(super) fn moved(&self) {
        self.device.moves.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn moves(&self) -> u64 {
        self.device.moves.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grids_of_one_device_share_its_room() {
        let device = MOST_DEVICES - 1;
        let (one, other) = (Room::on(device, 3), Room::on(device, 8));
        assert!((0..3).all(|_| one.take(1)));
        assert!(!one.take(1) && !other.take(1));
        one.give_back(1);
        // A third of the room has two eighths, and no more.
        assert!(!other.take(3) && other.take(1) && other.take(1) && !other.take(1));
        assert!(Room::on(device - 1, 1).take(1), "another device");
        one.give_back(2);
        assert!(other.take(6) && !other.take(1));
    }
}
