//! Meetings of the lanes of a warp: synchronisation, shuffles, votes, and lanes that are at one place by chance.

use std::cell::{Cell, RefCell, UnsafeCell};

use crate::race;

/// The lanes of a warp.
pub(super) const LANES: u32 = 32;

/// The values of the lanes that met. Kernels read it in this form.
#[repr(C)]
pub(crate) struct Exchange {
    /// The lanes that took part.
    pub(super) lanes: u32,
    unused: u32,
    values: [u64; LANES as usize],
}

/// One set of lanes that meets, again and again.
struct Meeting {
    mask: u32,
    /// The operation in which the lanes meet.
    kind: u32,
    arrived: u32,
    values: [u64; LANES as usize],
    /// The result of the last meeting. It stands until all lanes have come to the next one, and so
    /// have read it.
    done: Box<Exchange>,
}

/// The kind of `__activemask`, which waits for no lane, and that of `__syncwarp`, as the emulation's headers number them.
pub(super) const ACTIVE: u32 = 0;
pub(super) const SYNC: u32 = 1;

/// Lanes that came to one place of the code before the first of them went on.
#[derive(Clone, Copy, Debug)]
struct Gathering {
    place: u64,
    lanes: u32,
    /// Those that have not gone on.
    here: u32,
}

/// A meeting that is complete: its lanes, and its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Met {
    pub(super) lanes: u32,
    pub(super) kind: u32,
}

/// The outcome of an arrival.
pub(super) enum Arrival {
    /// The last lane has come. The others go on now.
    Complete(Met),
    /// Others are still to come.
    Early,
    /// Another lane of the same set waits in another operation.
    Mismatch,
}

/// A warp of a block.
pub(super) struct Warp {
    /// Lanes that exist and have not ended.
    alive: Cell<u32>,
    meetings: RefCell<Vec<Meeting>>,
    gatherings: RefCell<Vec<Gathering>>,
    /// The lanes of the gathering that a lane was told of last.
    told: UnsafeCell<Exchange>,
}

impl Warp {
    pub(super) fn new(lanes: u32) -> Warp {
        let alive = if lanes >= LANES {
            u32::MAX
        } else {
            (1 << lanes) - 1
        };
        Warp {
            alive: Cell::new(alive),
            meetings: RefCell::default(),
            gatherings: RefCell::default(),
            told: UnsafeCell::new(Exchange {
                lanes: 0,
                unused: 0,
                values: [0; LANES as usize],
            }),
        }
    }

    /// A lane comes to a place. It joins those that are there, if none of them has gone on.
    pub(super) fn gather(&self, lane: u32, place: u64) {
        let mut gatherings = self.gatherings.borrow_mut();
        let is_open = |g: &&mut Gathering| g.place == place && g.here == g.lanes;
        match gatherings.iter_mut().find(is_open) {
            Some(open) => {
                open.lanes |= 1 << lane;
                open.here |= 1 << lane;
            }
            None => gatherings.push(Gathering {
                place,
                lanes: 1 << lane,
                here: 1 << lane,
            }),
        }
    }

    /// The lane goes on. The pointer is to the lanes that it has gathered with, until another lane of the warp asks.
    pub(super) fn gathered(&self, lane: u32) -> *const Exchange {
        let mut gatherings = self.gatherings.borrow_mut();
        let own = gatherings.iter_mut().find(|g| g.here & (1 << lane) != 0);
        let lanes = own.map_or(1 << lane, |own| {
            own.here &= !(1 << lane);
            own.lanes
        });
        gatherings.retain(|gathering| gathering.here != 0);
        let told = self.told.get();
        // SAFETY: one thread runs all lanes of a block, and each has read its answer before another one runs.
        unsafe { (*told).lanes = lanes };
        told
    }

    /// Has the race detector forget the memory from which lanes read.
    pub(super) fn forget(&self) {
        for meeting in self.meetings.borrow().iter() {
            let done = std::ptr::from_ref(&*meeting.done);
            race::forget(done as usize, size_of::<Exchange>());
        }
        race::forget(self.told.get() as usize, size_of::<Exchange>());
    }

    /// Enters a lane's value into the meeting of `mask`. The pointer is to the meeting's result,
    /// which is there once the meeting is complete.
    pub(super) fn arrive(
        &self,
        lane: u32,
        mask: u32,
        kind: u32,
        value: u64,
    ) -> (Arrival, *const Exchange) {
        let mut meetings = self.meetings.borrow_mut();
        let at = meetings.iter().position(|m| m.mask == mask);
        let at = at.unwrap_or_else(|| {
            meetings.push(Meeting {
                mask,
                kind,
                arrived: 0,
                values: [0; LANES as usize],
                done: Box::new(Exchange {
                    lanes: 0,
                    unused: 0,
                    values: [0; LANES as usize],
                }),
            });
            meetings.len() - 1
        });
        let meeting = &mut meetings[at];
        let done = std::ptr::from_ref(&*meeting.done);
        if meeting.arrived != 0 && meeting.kind != kind {
            return (Arrival::Mismatch, done);
        }
        meeting.kind = kind;
        meeting.arrived |= 1 << lane;
        meeting.values[lane as usize] = value;
        if meeting.complete(self.alive.get()) {
            let lanes = meeting.done.lanes;
            (Arrival::Complete(Met { lanes, kind }), done)
        } else {
            (Arrival::Early, done)
        }
    }

    /// Notes that a lane has ended. Returns the meetings that waited for it alone.
    pub(super) fn leave(&self, lane: u32) -> Vec<Met> {
        let alive = self.alive.get() & !(1 << lane);
        self.alive.set(alive);
        let mut meetings = self.meetings.borrow_mut();
        let waiting = meetings.iter_mut().filter(|meeting| meeting.arrived != 0);
        let complete = waiting.filter_map(|meeting| {
            let kind = meeting.kind;
            if !meeting.complete(alive) {
                return None;
            }
            let lanes = meeting.done.lanes;
            Some(Met { lanes, kind })
        });
        complete.collect()
    }

    /// The masks at which lanes wait, with the lanes that have come.
    pub(super) fn waiting(&self) -> Vec<(u32, u32)> {
        let meetings = self.meetings.borrow();
        let waiting = meetings.iter().filter(|meeting| meeting.arrived != 0);
        waiting.map(|m| (m.mask, m.arrived)).collect()
    }
}

impl Meeting {
    /// Ends the meeting if all lanes that can come have come.
    fn complete(&mut self, alive: u32) -> bool {
        if self.arrived != self.mask & alive {
            return false;
        }
        self.done.lanes = self.arrived;
        self.done.values = self.values;
        self.arrived = 0;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_meet_and_read_all_values() {
        let warp = Warp::new(3);
        let (first, _) = warp.arrive(0, u32::MAX, 1, 10);
        assert!(matches!(first, Arrival::Early));
        let (second, _) = warp.arrive(2, u32::MAX, 1, 12);
        assert!(matches!(second, Arrival::Early));
        let (third, _) = warp.arrive(1, u32::MAX, 1, 11);
        let all = Met {
            lanes: 0b111,
            kind: 1,
        };
        assert!(matches!(third, Arrival::Complete(met) if met == all));
        let meetings = warp.meetings.borrow();
        assert_eq!(meetings[0].done.lanes, 0b111);
        assert_eq!(meetings[0].done.values[..3], [10, 11, 12]);
    }

    #[test]
    fn lanes_gather_at_a_place_until_one_goes_on() {
        let warp = Warp::new(4);
        // SAFETY: the warp lives, and nothing changes the answer while it is read.
        let go_on = |lane| unsafe { (*warp.gathered(lane)).lanes };
        warp.gather(0, 7);
        warp.gather(2, 8);
        warp.gather(1, 7);
        assert_eq!(go_on(1), 0b0011);
        warp.gather(3, 7);
        assert_eq!((go_on(0), go_on(3), go_on(2)), (0b0011, 0b1000, 0b0100));
        assert!(warp.gatherings.borrow().is_empty());
    }

    #[test]
    fn a_lane_that_ended_is_not_awaited() {
        let warp = Warp::new(2);
        assert!(matches!(warp.arrive(0, 0b11, 1, 5).0, Arrival::Early));
        let alone = Met {
            lanes: 0b01,
            kind: 1,
        };
        assert_eq!(warp.leave(1), [alone]);
    }

    #[test]
    fn two_operations_do_not_meet() {
        let warp = Warp::new(2);
        assert!(matches!(warp.arrive(0, 0b11, 1, 5).0, Arrival::Early));
        assert!(matches!(warp.arrive(1, 0b11, 2, 5).0, Arrival::Mismatch));
    }
}
