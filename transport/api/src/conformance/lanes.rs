//! Lanes whose return values are checked, and their progress.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::time::{Duration, Instant};

use super::report::Found;
use super::world::World;
use crate::capabilities::WireUp;
use crate::error::Error;
use crate::op::{Local, Op, Remote};
use crate::pe::Pe;
use crate::traits::{Counters, Domain, Lane, Posted, Status};

/// A lane whose every return value is checked for consistency with its counters.
#[derive(Debug)]
pub(super) struct Watched<'w> {
    pub(super) lane: Box<dyn Lane>,
    seen: Vec<Counters>,
    world: PhantomData<&'w ()>,
}

impl<'w> Watched<'w> {
    pub(super) fn new(lane: Box<dyn Lane>, size: u32) -> Watched<'w> {
        Watched {
            lane,
            seen: vec![Counters::default(); size as usize],
            world: PhantomData,
        }
    }

    /// One call of `post`. The operations' local memory is that of areas of the world that `'w` borrows.
    pub(super) fn post(&mut self, pe: Pe, ops: &[Op]) -> Found<Posted> {
        let before = self.lane.counters(pe).posted;
        // SAFETY: each `Local` was made by an `Area` of the world; the world is borrowed for 'w,
        // so it outlives this lane, whose end ends the operations. Checks change a source only
        // after its completion, once it is reusable, or where it is inline.
        let posted = unsafe { self.lane.post(pe, ops) };
        let short = posted.accepted < ops.len();
        match &posted.status {
            Status::All if short => {
                return Err(format!(
                    "All, but {} of {} accepted",
                    posted.accepted,
                    ops.len()
                ));
            }
            Status::Full | Status::Refused(_) if !short => {
                return Err(format!(
                    "{:?}, though all of {} accepted",
                    posted.status,
                    ops.len()
                ));
            }
            _ => {}
        }
        if pe.index() < self.seen.len() {
            let counted = self.lane.counters(pe).posted;
            if counted != before + posted.accepted as u64 {
                return Err(format!(
                    "{} accepted, but posted went from {before} to {counted}",
                    posted.accepted
                ));
            }
            self.counters(pe)?;
        }
        Ok(posted)
    }

    /// A fence, which posts and completes nothing.
    pub(super) fn fence(&mut self, pe: Pe) -> Found<()> {
        let posted = self.counters(pe)?.posted;
        self.lane.fence(pe);
        match self.counters(pe)?.posted {
            now if now == posted => Ok(()),
            now => Err(format!("posted went from {posted} to {now} by a fence")),
        }
    }

    /// The counters, which must neither go back nor count more than was posted.
    pub(super) fn counters(&mut self, pe: Pe) -> Found<Counters> {
        let (now, seen) = (self.lane.counters(pe), self.seen[pe.index()]);
        if now.completed > now.posted {
            return Err(format!("more completed than posted: {now:?}"));
        }
        let reusable = self.lane.reusable(pe);
        if !(now.completed..=now.posted).contains(&reusable) {
            return Err(format!("{reusable} are reusable: {now:?}"));
        }
        if now.posted < seen.posted || now.completed < seen.completed {
            return Err(format!("counters went back from {seen:?} to {now:?}"));
        }
        self.seen[pe.index()] = now;
        Ok(now)
    }

    pub(super) fn progress(&mut self) -> Found<()> {
        self.lane.progress().map_err(|e| format!("progress: {e}"))
    }
}

impl World<'_> {
    /// One lane of each PE, wired with all PEs.
    pub(super) fn lanes(&self) -> Found<Lanes<'_>> {
        let mut lanes = Vec::new();
        for member in &self.members {
            let lane = member.domain.lane().map_err(|e| format!("lane: {e}"))?;
            lanes.push(Watched::new(lane, self.size()));
        }
        if self.capabilities.wire_up == WireUp::PerLane {
            self.wire(&mut lanes)?;
        }
        Ok(Lanes::new(self, lanes))
    }

    /// Connects each lane with every PE.
    fn wire(&self, lanes: &mut [Watched<'_>]) -> Found<()> {
        for (from, lane) in (0..).map(Pe).zip(lanes) {
            for pe in (0..self.size()).map(Pe) {
                connect(&mut *lane.lane, from, pe, &*self.member(pe).domain)?;
            }
        }
        Ok(())
    }
}

/// Connects a lane of PE `from` with PE `pe`, whose domain accepts it.
pub(super) fn connect(lane: &mut dyn Lane, from: Pe, pe: Pe, domain: &dyn Domain) -> Found<()> {
    let endpoint = lane.endpoint(pe);
    let endpoint = endpoint.map_err(|e| format!("endpoint of PE {from} towards {pe}: {e}"))?;
    let answer = domain.accept(from, &endpoint);
    let answer = answer.map_err(|e| format!("accept of PE {from}'s lane by PE {pe}: {e}"))?;
    let connected = lane.connect(pe, &answer);
    connected.map_err(|e| format!("connect of PE {from} with {pe}: {e}"))
}

/// Lanes of different PEs of a world, driven together.
pub(super) struct Lanes<'w> {
    world: &'w World<'w>,
    lanes: BTreeMap<Pe, Watched<'w>>,
}

impl<'w> Lanes<'w> {
    /// Lane `n` is PE `n`'s.
    pub(super) fn new(world: &'w World<'w>, lanes: Vec<Watched<'w>>) -> Lanes<'w> {
        Lanes {
            world,
            lanes: (0..).map(Pe).zip(lanes).collect(),
        }
    }

    /// Each lane by itself, for threads that drive one each.
    pub(super) fn split(self) -> impl Iterator<Item = (Pe, Lanes<'w>)> {
        let world = self.world;
        self.lanes.into_iter().map(move |(pe, lane)| {
            (
                pe,
                Lanes {
                    world,
                    lanes: BTreeMap::from([(pe, lane)]),
                },
            )
        })
    }

    #[allow(clippy::panic, reason = "a bug of the suite, never of the transport")]
    pub(super) fn of(&mut self, pe: Pe) -> &mut Watched<'w> {
        match self.lanes.get_mut(&pe) {
            Some(lane) => lane,
            None => panic!("the suite drives no lane of PE {pe} here"),
        }
    }

    /// One round of progress: the origin's, and the others' only where the target must help.
    pub(super) fn drive(&mut self, from: Pe) -> Found<()> {
        let all = !self.world.capabilities.passive_target;
        for (&pe, lane) in &mut self.lanes {
            if all || pe == from {
                lane.progress()?;
            }
        }
        Ok(())
    }

    /// Posts all, through Full.
    pub(super) fn post_all(&mut self, from: Pe, pe: Pe, ops: &[Op]) -> Found<()> {
        let mut rest = ops;
        let mut patience = Patience::new(self.world.deadline());
        loop {
            let posted = self.of(from).post(pe, rest)?;
            rest = &rest[posted.accepted..];
            match posted.status {
                Status::All => return Ok(()),
                Status::Full => {
                    self.drive(from)?;
                    patience.round(|| format!("Full towards PE {pe}, {} left", rest.len()))?;
                }
                Status::Refused(error) => return Err(format!("{:?} refused: {error}", rest[0])),
            }
        }
    }

    /// Waits until all that was posted has completed.
    pub(super) fn complete(&mut self, from: Pe, pe: Pe) -> Found<()> {
        let mut patience = Patience::new(self.world.deadline());
        loop {
            let now = self.of(from).counters(pe)?;
            if now.completed == now.posted {
                return Ok(());
            }
            self.drive(from)?;
            patience.round(|| format!("from PE {from} to PE {pe}: {now:?}"))?;
        }
    }

    /// Waits until the local memory of all that was posted is reusable.
    pub(super) fn reuse(&mut self, from: Pe, pe: Pe) -> Found<()> {
        let mut patience = Patience::new(self.world.deadline());
        loop {
            let now = self.of(from).counters(pe)?;
            let reusable = self.of(from).lane.reusable(pe);
            if reusable == now.posted {
                return Ok(());
            }
            self.drive(from)?;
            patience
                .round(|| format!("from PE {from} to PE {pe}: {reusable} reusable, {now:?}"))?;
        }
    }

    /// Waits until all that was posted is in the target's memory: by its completion where that
    /// means it, else by a flush.
    pub(super) fn place(&mut self, from: Pe, pe: Pe) -> Found<()> {
        if !self.world.completion_places() {
            self.post_all(from, pe, &[Op::Flush])?;
        }
        self.complete(from, pe)
    }

    /// Posts and has it placed.
    pub(super) fn perform(&mut self, from: Pe, pe: Pe, ops: &[Op]) -> Found<()> {
        self.post_all(from, pe, ops)?;
        self.place(from, pe)
    }

    /// That an operation is refused with an error that `fits`, that nothing of it was taken, and
    /// that the lane carries on.
    pub(super) fn refused(
        &mut self,
        from: Pe,
        pe: Pe,
        op: Op,
        want: &str,
        fits: impl Fn(&Error) -> bool,
    ) -> Found<()> {
        let posted = self.of(from).post(pe, &[op])?;
        match posted.status {
            Status::Refused(error) if fits(&error) => self.drive(from),
            Status::Refused(error) => Err(format!(
                "{op:?} was refused with {error:?}, not with {want}"
            )),
            other => Err(format!(
                "{op:?} was answered {other:?}, not refused with {want}"
            )),
        }
    }
}

/// A bounded number of polls, with a yield of the processor in between.
pub(super) struct Patience {
    since: Instant,
    wait: Duration,
}

impl Patience {
    pub(super) fn new(wait: Duration) -> Patience {
        Patience {
            since: Instant::now(),
            wait,
        }
    }

    /// Gives up the processor; an error once the deadline has passed.
    pub(super) fn round(&mut self, state: impl FnOnce() -> String) -> Found<()> {
        if self.since.elapsed() > self.wait {
            return Err(format!("not done within {:?}: {}", self.wait, state()));
        }
        std::thread::yield_now();
        Ok(())
    }
}

/// A put.
pub(super) fn put(from: Local, to: Remote) -> Op {
    Op::Put { from, to }
}

/// A get.
pub(super) fn get(into: Local, from: Remote) -> Op {
    Op::Get { into, from }
}
