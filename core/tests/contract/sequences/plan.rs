//! The steps of a sequence, as arbitrary numbers that [`super::script`] reduces to their domains. So every plan
//! is valid, and every part of one that it shrinks to.

use proptest::prelude::*;

/// A sequence of calls that all PEs make in this order, each those of its teams.
#[derive(Clone, Debug)]
pub struct Plan {
    pub pes: usize,
    pub steps: Vec<Step>,
}

/// One step. `team` is the number of a team among those that there are.
#[derive(Clone, Debug)]
pub enum Step {
    Split {
        team: usize,
        shape: Shape,
    },
    Destroy {
        team: usize,
    },
    Call {
        team: usize,
        call: Call,
    },
    /// A call that fails on every member, and changes nothing.
    Wrong {
        team: usize,
        how: usize,
    },
    /// Each member puts to one other.
    Exchange {
        team: usize,
        by: By,
        shift: usize,
        len: usize,
        seed: usize,
    },
    /// Each member adds to one word, which a lock guards.
    Count {
        team: usize,
    },
    /// All PEs allocate a block and free the one before.
    Allocate {
        words: usize,
    },
}

#[derive(Clone, Debug)]
pub enum Shape {
    Strided {
        start: usize,
        stride: isize,
        size: usize,
    },
    Listed {
        seed: usize,
        size: usize,
    },
    Grid {
        xrange: usize,
    },
}

/// How data gets to another member, and how that one knows.
#[derive(Clone, Copy, Debug)]
pub enum By {
    Counter,
    Signal,
    /// A context of the team, completed before a sync.
    Context,
    /// The world's context, completed by a barrier.
    Barrier,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Sync,
    Barrier,
    Broadcast,
    Collect,
    Fcollect,
    Alltoall,
    Alltoalls,
    Reduce,
    ReduceScatter,
    Inscan,
    Exscan,
}

impl Kind {
    pub const ALL: [Kind; 11] = [
        Kind::Sync,
        Kind::Barrier,
        Kind::Broadcast,
        Kind::Collect,
        Kind::Fcollect,
        Kind::Alltoall,
        Kind::Alltoalls,
        Kind::Reduce,
        Kind::ReduceScatter,
        Kind::Inscan,
        Kind::Exscan,
    ];
}

#[derive(Clone, Debug)]
pub struct Call {
    pub kind: Kind,
    pub number: usize,
    pub fold: usize,
    pub root: usize,
    /// Elements: few, or this part of as many as there can be, in 1/1000.
    pub len: Len,
    /// Of the destination and of the source.
    pub strides: (usize, usize),
    /// Where the destination and the source lie in their halves of the memory.
    pub places: (usize, usize),
    /// The destination's half of the memory: the second instead of the first.
    pub flipped: bool,
    pub in_place: bool,
    /// Whether the members write their sources anew before.
    pub fresh: bool,
    /// Whether they write them again as soon as the call returns.
    pub reused: bool,
    pub seed: usize,
}

#[derive(Clone, Copy, Debug)]
pub enum Len {
    Few(usize),
    Part(usize),
}

/// Plans for so many PEs, of up to so many steps.
pub fn plans(pes: std::ops::RangeInclusive<usize>, steps: usize) -> impl Strategy<Value = Plan> {
    (pes, prop::collection::vec(step(), 1..=steps)).prop_map(|(pes, steps)| Plan { pes, steps })
}

const ANY: std::ops::Range<usize> = 0..1000;

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        20 => (ANY, call()).prop_map(|(team, call)| Step::Call { team, call }),
        5 => (ANY, shape()).prop_map(|(team, shape)| Step::Split { team, shape }),
        3 => ANY.prop_map(|team| Step::Destroy { team }),
        2 => (ANY, ANY).prop_map(|(team, how)| Step::Wrong { team, how }),
        3 => (ANY, by(), ANY, 0_usize..600, ANY).prop_map(|(team, by, shift, len, seed)| {
            Step::Exchange { team, by, shift, len, seed }
        }),
        1 => ANY.prop_map(|team| Step::Count { team }),
        1 => (0_usize..50).prop_map(|words| Step::Allocate { words }),
    ]
}

fn shape() -> impl Strategy<Value = Shape> {
    prop_oneof![
        (ANY, -3_isize..=3, ANY).prop_map(|(start, stride, size)| Shape::Strided {
            start,
            stride,
            size
        }),
        (ANY, ANY).prop_map(|(seed, size)| Shape::Listed { seed, size }),
        ANY.prop_map(|xrange| Shape::Grid { xrange }),
    ]
}

fn by() -> impl Strategy<Value = By> {
    prop::sample::select(vec![By::Counter, By::Signal, By::Context, By::Barrier])
}

fn call() -> impl Strategy<Value = Call> {
    let kinds = prop::sample::select(&Kind::ALL[..]);
    let len = prop_oneof![
        3 => (0_usize..6).prop_map(Len::Few),
        2 => (0_usize..100).prop_map(Len::Part),
        1 => (0_usize..=1000).prop_map(Len::Part),
    ];
    (
        (kinds, ANY, ANY, ANY, len),
        (1_usize..4, 1_usize..4),
        (0_usize..100_000, 0_usize..100_000),
        any::<[bool; 4]>(),
        ANY,
    )
        .prop_map(
            |((kind, number, fold, root, len), strides, places, flags, seed)| Call {
                kind,
                number,
                fold,
                root,
                len,
                strides,
                places,
                flipped: flags[0],
                in_place: flags[1],
                fresh: flags[2],
                reused: flags[3],
                seed,
            },
        )
}
