//! Limits of the machine itself, with nothing of oxshmem in between.

use std::hint::black_box;

use oxshmem::{Cmp, Error, PeerPtr, Result};

use super::pair::Turns;
use crate::perf::ground::{Ground, Room, Seat, Target, pattern, same};
use crate::perf::metric::Metric;
use crate::perf::op::{OneSided, Op, Span, Who, Work};

/// Polls of a word before oxshmem's wait takes over, which yields and notices a failed PE.
const LOOKS: u32 = 100_000;

pub const OPS: &[Op] = &[
    Op {
        name: MEMCPY,
        about: "limit: PE 0 copies private memory, back to back",
        span: Span::bytes(|_, _| Room::default()),
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
        prepare: |ground, _| Turns::boxed(ground, Vec::new(), store, look),
    },
];

pub const MEMCPY: &str = "memcpy";
pub const BARE_PING_PONG: &str = "bare-ping-pong";

struct Copy {
    from: Vec<u8>,
    to: Vec<u8>,
}

impl Work for Copy {
    fn run(&mut self, ground: &Ground<'_>, count: u64) -> Result<()> {
        self.post(&ground.target(ground.world), count)
    }

    fn one_sided(&mut self) -> Option<&mut dyn OneSided> {
        Some(self)
    }

    fn check(&self, _: &Ground<'_>, seat: Seat, _total: u64) -> anyhow::Result<()> {
        if !seat.acts {
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
pub fn is_mapped(ground: &Ground<'_>) -> Result<bool> {
    let both = ground.leads() || ground.answers();
    let not = both && ground.world.ptr(ground.word, ground.peer()).is_none();
    ground.world.write(ground.word, &[u64::from(not)])?;
    ground.world.sum_reduce(ground.word, ground.word)?;
    Ok(ground.world.g(ground.word, ground.world.my_pe())? == 0)
}

fn mapped<'w>(ground: &Ground<'w>, pe: usize) -> Result<PeerPtr<'w, u64>> {
    ground.world.ptr(ground.word, pe).ok_or(Error::Argument {
        call: BARE_PING_PONG,
        what: format!("PE {pe} is not mapped here, which this measures"),
    })
}

fn store(ground: &Ground<'_>, _: &[u8], value: u64) -> Result<()> {
    mapped(ground, ground.peer())?.store(0, value)
}

fn look(ground: &Ground<'_>, value: u64) -> Result<()> {
    let own = mapped(ground, ground.world.my_pe())?;
    for _ in 0..LOOKS {
        if own.load(0)? == value {
            return Ok(());
        }
        std::hint::spin_loop();
    }
    ground.world.wait_until(ground.word, Cmp::Eq, value)
}
