//! A litmus program of kernels.

use std::collections::BTreeMap;

use oxshmem::Cmp;
use oxshmem_weak::Scope;

use crate::outcome::Outcome;
use crate::program::{Fetching, Place, Program, Register, SignalOp, Update, Words};

/// The threads that make a call together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Group {
    /// One.
    Thread,
    /// A warp.
    Warp,
    /// A block.
    Block,
    /// All threads of the PE's kernel, at its end.
    Grid,
}

/// The data of a put.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Data {
    /// These values, from memory that nobody else uses.
    Values(Vec<u64>),
    /// The words of a variable on the calling PE.
    Own(Words),
}

/// The words of a call for several words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Several {
    /// All of them.
    All,
    /// One of them.
    Any,
    /// At least one of them.
    Some,
}

/// A collective call on data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collective {
    /// `broadcast`, of this root.
    Broadcast(usize),
    /// `fcollect`.
    Fcollect,
    /// `alltoall`.
    Alltoall,
    /// `reduce`, by sum.
    Sum,
}

/// One call of a thread, or of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are those of the calls' parameters")]
pub enum Call {
    Put {
        to: Place,
        data: Data,
        nbi: bool,
    },
    Iput {
        to: Place,
        from: Words,
    },
    Iget {
        into: Vec<Register>,
        from: Place,
    },
    Get {
        into: Vec<Register>,
        from: Place,
        nbi: bool,
    },
    P {
        to: Place,
        value: u64,
    },
    G {
        into: Register,
        from: Place,
    },
    Update {
        update: Update,
        at: Place,
        value: u64,
    },
    Fetch {
        into: Register,
        fetching: Fetching,
        at: Place,
    },
    PutSignal {
        to: Place,
        data: Data,
        signal: Words,
        op: SignalOp,
        value: u64,
        nbi: bool,
    },
    Signal {
        op: SignalOp,
        at: Place,
        value: u64,
    },
    Write {
        to: Words,
        value: u64,
    },
    Read {
        into: Register,
        from: Words,
    },
    Wait {
        into: Option<Register>,
        word: Words,
        cmp: Cmp,
        value: u64,
    },
    Test {
        into: Register,
        word: Words,
        cmp: Cmp,
        value: u64,
    },
    SignalFetch {
        into: Register,
        word: Words,
    },
    WaitSeveral {
        which: Several,
        into: Option<Register>,
        words: Words,
        cmp: Cmp,
        value: u64,
    },
    TestSeveral {
        which: Several,
        into: Register,
        words: Words,
        cmp: Cmp,
        value: u64,
    },
    Fence,
    Quiet,
    Flush,
    Barrier,
    Sync,
    Collective {
        what: Collective,
        to: Words,
        from: Words,
    },
    SyncGroup,
    NextKernel,
    ThreadFence(Scope),
    AtomicAdd {
        into: Register,
        scope: Scope,
        word: Words,
        value: u64,
    },
    Spin {
        scope: Scope,
        word: Words,
        cmp: Cmp,
        value: u64,
    },
}

impl Call {
    /// The registers that it fills.
    #[must_use]
    pub fn registers(&self) -> &[Register] {
        match self {
            Call::Get { into, .. } | Call::Iget { into, .. } => into,
            Call::G { into, .. }
            | Call::Fetch { into, .. }
            | Call::Read { into, .. }
            | Call::Test { into, .. }
            | Call::SignalFetch { into, .. }
            | Call::TestSeveral { into, .. }
            | Call::AtomicAdd { into, .. } => std::slice::from_ref(into),
            Call::Wait { into, .. } | Call::WaitSeveral { into, .. } => into.as_slice(),
            _ => &[],
        }
    }

    /// Whether all PEs make it together.
    #[must_use]
    pub fn is_collective(&self) -> bool {
        matches!(self, Call::Barrier | Call::Sync | Call::Collective { .. })
    }

    /// Whether it only reads: several such calls in a row have no order (M21).
    #[must_use]
    pub fn is_read(&self) -> bool {
        match self {
            Call::Fetch { fetching, .. } => *fetching == Fetching::Fetch,
            Call::G { .. } | Call::Get { .. } | Call::Iget { .. } | Call::Read { .. } => true,
            _ => false,
        }
    }

    /// Whether a group may make it.
    #[must_use]
    pub fn takes_group(&self) -> bool {
        self.is_collective()
            || matches!(
                self,
                Call::Put { .. }
                    | Call::Iput { .. }
                    | Call::Iget { .. }
                    | Call::Get { .. }
                    | Call::PutSignal { .. }
                    | Call::SyncGroup
                    | Call::NextKernel
            )
    }
}

/// One line of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// The only thread that makes the call; all where there is none.
    pub lane: Option<usize>,
    /// The threads that make it together.
    pub group: Group,
    /// The call.
    pub call: Call,
}

impl Statement {
    /// Whether a thread makes this call.
    #[must_use]
    pub fn is_of(&self, lane: usize) -> bool {
        self.lane.is_none_or(|only| only == lane)
    }

    /// Whether this thread fills the call's registers.
    #[must_use]
    pub fn fills(&self, lane: usize) -> bool {
        lane == self.lane.unwrap_or(0)
    }
}

/// The threads of one block, and their calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The PE.
    pub pe: usize,
    /// The number of the block on its PE.
    pub number: usize,
    /// The number of threads.
    pub lanes: usize,
    /// The calls.
    pub statements: Vec<Statement>,
}

/// A litmus program of kernels. Only [`Kernels::parse`] makes one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernels {
    /// The header, as of other programs.
    pub(crate) head: Program,
    pub(crate) pes: usize,
    pub(crate) blocks: Vec<Block>,
}

impl Kernels {
    /// The header, as of other programs; it has no statements.
    #[must_use]
    pub fn head(&self) -> &Program {
        &self.head
    }

    /// The number of PEs.
    #[must_use]
    pub fn pes(&self) -> usize {
        self.pes
    }

    /// The blocks of all PEs.
    #[must_use]
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// Every register, in order.
    #[must_use]
    pub fn registers(&self) -> Vec<Register> {
        let statements = self.blocks.iter().flat_map(|block| &block.statements);
        let mut all: Vec<_> = statements
            .flat_map(|s| s.call.registers())
            .copied()
            .collect();
        all.sort_unstable();
        all
    }

    /// The variables that are sources of puts and collective calls.
    #[must_use]
    pub fn sources(&self) -> Vec<Words> {
        let statements = self.blocks.iter().flat_map(|block| &block.statements);
        let source = |statement: &Statement| match &statement.call {
            Call::Put {
                data: Data::Own(words),
                ..
            }
            | Call::PutSignal {
                data: Data::Own(words),
                ..
            } => Some(*words),
            Call::Collective { from, .. } | Call::Iput { from, .. } => Some(*from),
            _ => None,
        };
        statements.filter_map(source).collect()
    }

    /// The outcome with these registers, and these values of the observed words.
    #[must_use]
    pub fn outcome(&self, registers: &BTreeMap<Register, u64>, memory: &[u64]) -> Outcome {
        let value = |register: &Register| registers.get(register).copied().unwrap_or(0);
        let of_registers = self.registers();
        let registers = of_registers
            .iter()
            .map(|register| (register.to_string(), value(register)));
        let places = self.head.observed().iter().zip(memory);
        let words =
            places.map(|(&place, &value)| (format!("[{}]", self.head.place_name(place)), value));
        Outcome::Ended(registers.chain(words).collect())
    }
}
