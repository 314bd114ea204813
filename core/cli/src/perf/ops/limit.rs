//! Limits of the machine itself, with nothing of oxshmem in between.

use std::hint::black_box;

use oxshmem::{Cmp, Error, PeerPtr, Result};

use super::pair::Turns;
use crate::perf::fixture::{Fixture, Footprint, Role, Target, pattern, same};
use crate::perf::metric::Metric;
use crate::perf::op::{OneSided, Op, Span, Who, Work};

/// Polls of a word before oxshmem's wait takes over, which yields and notices a failed PE.
const POLLS: u32 = 100_000;

pub const OPS: &[Op] = &[
    Op {
        name: MEMCPY,
        about: "limit: PE 0 copies private memory, back to back",
        span: Span::bytes(|_, _| Footprint::default()),
        metrics: &[Metric::Bandwidth, Metric::Latency, Metric::Rate],
        who: Who::Alone,
        prepare: |_, bytes| {
            Ok(Box::new(Copy {
                from: pattern(MEMCPY, bytes),
                to: vec![0; bytes],
            }))
        },
    },
    Op {
        name: BARE_PING_PONG,
        about: "limit: ping-pong by plain stores and loads, between mapped PEs",
        span: Span::Values(&[8]),
        metrics: &[Metric::Latency],
        who: Who::Pair,
        prepare: |fixture, _| Turns::boxed(fixture, Vec::new(), store, poll),
    },
];

pub const MEMCPY: &str = "memcpy";
pub const BARE_PING_PONG: &str = "bare-ping-pong";

struct Copy {
    from: Vec<u8>,
    to: Vec<u8>,
}

impl Work for Copy {
    fn run(&mut self, fixture: &Fixture<'_>, count: u64) -> Result<()> {
        self.post(&fixture.target(fixture.world), count)
    }

    fn one_sided(&mut self) -> Option<&mut dyn OneSided> {
        Some(self)
    }

    fn check(&self, _: &Fixture<'_>, role: Role, _total: u64) -> anyhow::Result<()> {
        if !role.acts {
            return Ok(());
        }
        same(&self.to, &self.from)
    }
}

impl OneSided for Copy {
    fn post(&mut self, _: &Target<'_, '_>, count: u64) -> Result<()> {
        for _ in 0..count {
            black_box(&mut *self.to).copy_from_slice(black_box(&self.from));
        }
        Ok(())
    }
}

/// Whether PE 0 and its partner load and store each other's memory. Collective.
pub fn is_mapped(fixture: &Fixture<'_>) -> Result<bool> {
    let both = fixture.leads() || fixture.answers();
    let not = both && fixture.world.ptr(fixture.word, fixture.peer()).is_none();
    fixture.world.write(fixture.word, &[u64::from(not)])?;
    fixture.world.sum_reduce(fixture.word, fixture.word)?;
    Ok(fixture.world.g(fixture.word, fixture.world.my_pe())? == 0)
}

fn mapped<'w>(fixture: &Fixture<'w>, pe: usize) -> Result<PeerPtr<'w, u64>> {
    fixture.world.ptr(fixture.word, pe).ok_or(Error::Argument {
        call: BARE_PING_PONG,
        what: format!("PE {pe} is not mapped here, which this measures"),
    })
}

fn store(fixture: &Fixture<'_>, _: &[u8], value: u64) -> Result<()> {
    mapped(fixture, fixture.peer())?.store(0, value)
}

fn poll(fixture: &Fixture<'_>, value: u64) -> Result<()> {
    let own = mapped(fixture, fixture.world.my_pe())?;
    for _ in 0..POLLS {
        if own.load(0)? == value {
            return Ok(());
        }
        std::hint::spin_loop();
    }
    fixture.world.wait_until(fixture.word, Cmp::Eq, value)
}
