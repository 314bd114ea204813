//! A litmus program: its declarations, its statements, and the expectations about its outcomes.

use std::fmt;
use std::ops::Range;

use oxshmem::Cmp;

/// The published memory model whose order a world keeps (M20, M21).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MemoryModel {
    /// OpenSHMEM's: blocking reads return values in the order in which they were performed (M20).
    Ordered,
    /// NVSHMEM's: they need not, and a fence between two of them restores it (M21).
    Relaxed,
}

impl MemoryModel {
    /// Both models.
    pub const ALL: [MemoryModel; 2] = [MemoryModel::Ordered, MemoryModel::Relaxed];
}

impl fmt::Display for MemoryModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            MemoryModel::Ordered => "ordered",
            MemoryModel::Relaxed => "relaxed",
        })
    }
}

/// A declared symmetric object of 64-bit words, 0 on every PE at the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// The variable's name.
    pub name: String,
    /// The number of words; 1 for a plain variable.
    pub words: usize,
}

/// Words of one variable, one after the other, on no PE in particular.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Words {
    /// The index in [`Program::variables`].
    pub variable: usize,
    /// The first word.
    pub first: usize,
    /// The number of words.
    pub count: usize,
}

impl Words {
    /// The single words.
    pub fn each(self) -> impl Iterator<Item = Words> {
        (self.first..self.first + self.count).map(move |first| Words {
            first,
            count: 1,
            ..self
        })
    }

    pub(crate) fn overlaps(self, other: Words) -> bool {
        self.variable == other.variable
            && self.first < other.first + other.count
            && other.first < self.first + self.count
    }
}

/// Words on one PE.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The words.
    pub words: Words,
    /// Their PE.
    pub pe: usize,
}

/// A register's number. Each is written by one statement of one PE.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Register(pub usize);

impl fmt::Display for Register {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "r{}", self.0)
    }
}

/// A context: 0 is the default one, and what statements without a context use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Context(pub usize);

/// An atomic without a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Update {
    /// Store the value.
    Set,
    /// Wrapping sum.
    Add,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
}

impl Update {
    /// Every update.
    pub const ALL: [Update; 5] = [
        Update::Set,
        Update::Add,
        Update::And,
        Update::Or,
        Update::Xor,
    ];

    /// The word's new value.
    #[must_use]
    pub fn apply(self, old: u64, value: u64) -> u64 {
        match self {
            Update::Set => value,
            Update::Add => old.wrapping_add(value),
            Update::And => old & value,
            Update::Or => old | value,
            Update::Xor => old ^ value,
        }
    }
}

/// An atomic that returns the word's old value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fetching {
    /// Only reads.
    Fetch,
    /// `swap` or `fetch_…` with this operand: updates the word.
    Update(Update, u64),
    /// Stores the value if the word is `expected`.
    CompareSwap {
        /// The value to compare with.
        expected: u64,
        /// The new value.
        value: u64,
    },
}

impl Fetching {
    /// The word's new value.
    #[must_use]
    pub fn apply(self, old: u64) -> u64 {
        match self {
            Fetching::Update(update, value) => update.apply(old, value),
            Fetching::CompareSwap { expected, value } if old == expected => value,
            Fetching::Fetch | Fetching::CompareSwap { .. } => old,
        }
    }
}

/// The update of a signal by a put-with-signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SignalOp {
    /// Stores the value.
    Set,
    /// Adds it.
    Add,
}

impl SignalOp {
    /// The atomic that does this.
    #[must_use]
    pub fn update(self) -> Update {
        match self {
            SignalOp::Set => Update::Set,
            SignalOp::Add => Update::Add,
        }
    }
}

/// A collective call in which all PEs meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Meeting {
    /// `barrier_all`, which completes what was issued on the default context.
    BarrierAll,
    /// `sync_all`.
    SyncAll,
    /// `team_sync`: the sync of the team of all PEs.
    TeamSync,
    /// `reduce`, of words that the program does not name; as in the calls below.
    Reduce,
    /// `fcollect`.
    Fcollect,
    /// `alltoall`.
    Alltoall,
    /// `collect`.
    Collect,
    /// `alltoalls`.
    Alltoalls,
    /// `reduce_scatter`.
    ReduceScatter,
    /// `inscan`, in which a PE waits for those before it alone.
    Inscan,
    /// `exscan`, likewise.
    Exscan,
}

impl Meeting {
    /// Every call.
    pub const ALL: [Meeting; 11] = [
        Meeting::BarrierAll,
        Meeting::SyncAll,
        Meeting::TeamSync,
        Meeting::Reduce,
        Meeting::Fcollect,
        Meeting::Alltoall,
        Meeting::Collect,
        Meeting::Alltoalls,
        Meeting::ReduceScatter,
        Meeting::Inscan,
        Meeting::Exscan,
    ];

    /// Whether a PE needs nothing of those after it.
    pub(crate) fn is_scan(self) -> bool {
        matches!(self, Meeting::Inscan | Meeting::Exscan)
    }
}

/// One call of one PE. Lists of values and registers have one element per word.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Statement {
    /// `put`, `put_nbi`.
    Put {
        /// The target.
        to: Place,
        /// The data.
        values: Vec<u64>,
        /// Whether it is nonblocking.
        nbi: bool,
        /// The context.
        context: Context,
    },
    /// `get`, `get_nbi`.
    Get {
        /// The registers that receive the words.
        into: Vec<Register>,
        /// The source.
        from: Place,
        /// Whether it is nonblocking.
        nbi: bool,
        /// The context.
        context: Context,
    },
    /// `set`, `add`, `and`, `or`, `xor`.
    Update {
        /// The operation.
        update: Update,
        /// The target: one word.
        at: Place,
        /// The operand.
        value: u64,
        /// The context.
        context: Context,
    },
    /// `fetch`, `swap`, `compare_swap`, `fetch_add`, …, and these with `_nbi`.
    Fetch {
        /// The register that receives the old value.
        into: Register,
        /// The operation, with its operands.
        fetching: Fetching,
        /// The target: one word.
        at: Place,
        /// Whether it is nonblocking.
        nbi: bool,
        /// The context.
        context: Context,
    },
    /// `put_signal`, `put_signal_nbi`.
    PutSignal {
        /// The target.
        to: Place,
        /// The data.
        values: Vec<u64>,
        /// The signal: one word, on the same PE.
        signal: Words,
        /// The update of the signal.
        op: SignalOp,
        /// The operand of the update.
        value: u64,
        /// Whether it is nonblocking.
        nbi: bool,
        /// The context.
        context: Context,
    },
    /// `write`: a put to this PE itself.
    Write {
        /// The target.
        to: Words,
        /// The data.
        values: Vec<u64>,
    },
    /// `read`: a get from this PE itself.
    Read {
        /// The registers that receive the words.
        into: Vec<Register>,
        /// The source.
        from: Words,
    },
    /// `wait_until`.
    WaitUntil {
        /// One word of this PE.
        word: Words,
        /// The comparison.
        cmp: Cmp,
        /// The value to compare with.
        value: u64,
    },
    /// `signal_wait_until`.
    SignalWaitUntil {
        /// The register, if any, that receives the value with which the wait ended.
        into: Option<Register>,
        /// One word of this PE.
        word: Words,
        /// The comparison.
        cmp: Cmp,
        /// The value to compare with.
        value: u64,
    },
    /// `test`.
    Test {
        /// The register that receives 1 if the comparison holds, else 0.
        into: Register,
        /// One word of this PE.
        word: Words,
        /// The comparison.
        cmp: Cmp,
        /// The value to compare with.
        value: u64,
    },
    /// `signal_fetch`.
    SignalFetch {
        /// The register that receives the value.
        into: Register,
        /// One word of this PE.
        word: Words,
    },
    /// `fence`.
    Fence {
        /// The context.
        context: Context,
    },
    /// `quiet`.
    Quiet {
        /// The context.
        context: Context,
    },
    /// `pe_quiet`.
    PeQuiet {
        /// The target PEs.
        pes: Vec<usize>,
        /// The context.
        context: Context,
    },
    /// `put_counted`.
    PutCounted {
        /// The target.
        to: Place,
        /// The data.
        values: Vec<u64>,
        /// The counter: one word, on the same PE.
        counter: Words,
        /// The context.
        context: Context,
    },
    /// `wait_counted`.
    WaitCounted {
        /// One word of this PE.
        counter: Words,
        /// The number of puts to wait for, which is subtracted from the counter.
        n: u64,
    },
    /// `set_lock`, of the one lock that a program has.
    SetLock,
    /// `clear_lock`.
    ClearLock,
    /// A collective call that returns when all PEs that this one depends on have entered it.
    Meet(Meeting),
    /// `broadcast`.
    Broadcast {
        /// The destination on every PE, the root included.
        to: Words,
        /// The source on the root. As many words as `to`.
        from: Words,
        /// The root.
        root: usize,
    },
}

impl Statement {
    /// Whether it is a blocking read: `get`, `read`, or a fetching atomic. The relaxed model may
    /// perform a run of these in any order (M21).
    #[must_use]
    pub fn is_blocking_read(&self) -> bool {
        match self {
            Statement::Get { nbi, .. } | Statement::Fetch { nbi, .. } => !nbi,
            Statement::Read { .. } => true,
            _ => false,
        }
    }

    /// Whether all PEs make this call together.
    #[must_use]
    pub fn is_collective(&self) -> bool {
        matches!(self, Statement::Meet(_) | Statement::Broadcast { .. })
    }

    /// The registers that it writes.
    #[must_use]
    pub fn registers(&self) -> &[Register] {
        match self {
            Statement::Get { into, .. } | Statement::Read { into, .. } => into,
            Statement::Fetch { into, .. }
            | Statement::Test { into, .. }
            | Statement::SignalFetch { into, .. }
            | Statement::SignalWaitUntil {
                into: Some(into), ..
            } => std::slice::from_ref(into),
            _ => &[],
        }
    }
}

/// The claim of an expectation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Some outcome matches.
    Allowed,
    /// No outcome matches.
    Forbidden,
}

/// The outcomes that an expectation describes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Those with all these values, by label as [`Outcome`](crate::Outcome) prints them.
    Values(Vec<(String, u64)>),
    /// The deadlock: all PEs that are left wait for ever.
    Deadlock,
}

/// A claim of the program's text about its outcomes: for its reader, and to check the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expectation {
    /// The only model that it is about; `None` for both.
    pub model: Option<MemoryModel>,
    /// Whether such an outcome is allowed.
    pub verdict: Verdict,
    /// The outcomes in question.
    pub pattern: Pattern,
}

/// A litmus program. Only [`Program::parse`] makes one: it is within the limits, its places are
/// within their variables, and its collectives are the same on all PEs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    pub(crate) name: String,
    pub(crate) about: Vec<String>,
    pub(crate) rules: Vec<String>,
    pub(crate) models: Vec<MemoryModel>,
    pub(crate) variables: Vec<Variable>,
    pub(crate) observed: Vec<Place>,
    pub(crate) expectations: Vec<Expectation>,
    pub(crate) statements: Vec<Vec<Statement>>,
}

impl Program {
    /// The program's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Lines of text about its purpose.
    #[must_use]
    pub fn about(&self) -> &[String] {
        &self.about
    }

    /// The contract's rules that it exercises.
    #[must_use]
    pub fn rules(&self) -> &[String] {
        &self.rules
    }

    /// The memory models that it is meant for; at least one.
    #[must_use]
    pub fn models(&self) -> &[MemoryModel] {
        &self.models
    }

    /// The symmetric variables.
    #[must_use]
    pub fn variables(&self) -> &[Variable] {
        &self.variables
    }

    /// The single words whose last value belongs to the outcome.
    #[must_use]
    pub fn observed(&self) -> &[Place] {
        &self.observed
    }

    /// The text's claims about its outcomes.
    #[must_use]
    pub fn expectations(&self) -> &[Expectation] {
        &self.expectations
    }

    /// The number of PEs: those with statements, and those that statements name.
    #[must_use]
    pub fn pes(&self) -> usize {
        self.statements.len()
    }

    /// The statements of one PE; empty for a PE that does not exist.
    #[must_use]
    pub fn statements(&self, pe: usize) -> &[Statement] {
        self.statements.get(pe).map_or(&[], Vec::as_slice)
    }

    /// The registers in the order in which outcomes list them.
    #[must_use]
    pub fn registers(&self) -> Vec<Register> {
        let all = self.statements.iter().flatten();
        let mut registers: Vec<_> = all.flat_map(Statement::registers).copied().collect();
        registers.sort_unstable();
        registers
    }

    /// The number of contexts: 1 more than the highest named.
    #[must_use]
    pub fn contexts(&self) -> usize {
        let used = self.statements.iter().flatten().map(|s| match s {
            Statement::Put { context, .. }
            | Statement::Get { context, .. }
            | Statement::Update { context, .. }
            | Statement::Fetch { context, .. }
            | Statement::PutSignal { context, .. }
            | Statement::PutCounted { context, .. }
            | Statement::Fence { context }
            | Statement::Quiet { context }
            | Statement::PeQuiet { context, .. } => context.0 + 1,
            _ => 1,
        });
        used.max().unwrap_or(1)
    }

    /// The runs of two or more blocking reads of one PE with no other statement between, which the
    /// relaxed model may perform in any order (M21): ranges of indices into
    /// [`statements`](Self::statements).
    #[must_use]
    pub fn read_runs(&self, pe: usize) -> Vec<Range<usize>> {
        let statements = self.statements(pe);
        let mut runs = Vec::new();
        let mut start = 0;
        for i in 0..=statements.len() {
            if !statements.get(i).is_some_and(Statement::is_blocking_read) {
                if i >= start + 2 {
                    runs.push(start..i);
                }
                start = i + 1;
            }
        }
        runs
    }

    /// A word as the text names it: `x`, `d[1]`; several words as their variable: `d`.
    #[must_use]
    pub fn words_name(&self, words: Words) -> String {
        match self.variables.get(words.variable) {
            Some(v) if words.count == 1 && v.words > 1 => format!("{}[{}]", v.name, words.first),
            Some(v) => v.name.clone(),
            None => "a word of the library's".into(),
        }
    }

    /// The same on a PE: `x@1`.
    #[must_use]
    pub fn place_name(&self, place: Place) -> String {
        format!("{}@{}", self.words_name(place.words), place.pe)
    }
}
