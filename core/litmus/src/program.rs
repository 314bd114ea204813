//! A litmus program: what it declares, its statements, and what is expected of it.

use std::fmt;
use std::ops::Range;

/// The bounds of a program, which keep hostile texts and the model's work small.
pub mod limits {
    /// Bytes of a text.
    pub const TEXT: usize = 64 * 1024;
    /// Characters of a name, a variable or a line of `about`.
    pub const NAME: usize = 100;
    /// Lines of `about`, rules, and expectations, each.
    pub const HEADER: usize = 32;
    /// PEs.
    pub const PES: usize = 8;
    /// Variables.
    pub const VARIABLES: usize = 16;
    /// Words of one variable.
    pub const WORDS: usize = 8;
    /// Registers.
    pub const REGISTERS: usize = 64;
    /// Contexts, the default one included.
    pub const CONTEXTS: usize = 4;
    /// Statements of all PEs together.
    pub const STATEMENTS: usize = 64;
    /// Steps of the model: one for each word that a statement reads or writes, and for each
    /// collective.
    pub const STEPS: usize = 128;
}

/// Which published memory model's order a world keeps (M20, M21).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MemoryModel {
    /// OpenSHMEM's: blocking reads return values in the order in which they were performed (M20).
    Ordered,
    /// NVSHMEM's: they need not, and a fence between two of them restores it (M21).
    Relaxed,
}

impl MemoryModel {
    /// Both.
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
    /// Its name.
    pub name: String,
    /// Its number of words; 1 for a plain one.
    pub words: usize,
}

/// Words of one variable, one after the other, on no PE in particular.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Words {
    /// Which of [`Program::variables`].
    pub variable: usize,
    /// The first word.
    pub first: usize,
    /// How many.
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
    /// Which words.
    pub words: Words,
    /// Whose.
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

/// How a word is compared with a value: `word CMP value`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cmp {
    /// Equal.
    Eq,
    /// Not equal.
    Ne,
    /// Greater.
    Gt,
    /// Greater or equal.
    Ge,
    /// Less.
    Lt,
    /// Less or equal.
    Le,
}

impl Cmp {
    /// Every comparison.
    pub const ALL: [Cmp; 6] = [Cmp::Eq, Cmp::Ne, Cmp::Gt, Cmp::Ge, Cmp::Lt, Cmp::Le];

    /// Whether `word CMP value` holds.
    #[must_use]
    pub fn holds(self, word: u64, value: u64) -> bool {
        match self {
            Cmp::Eq => word == value,
            Cmp::Ne => word != value,
            Cmp::Gt => word > value,
            Cmp::Ge => word >= value,
            Cmp::Lt => word < value,
            Cmp::Le => word <= value,
        }
    }
}

/// An atomic that gives nothing back.
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

    /// What the word is afterwards.
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

/// An atomic that gives back the word's old value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fetching {
    /// Only reads.
    Fetch,
    /// `swap` or `fetch_…` with this operand: updates the word.
    Update(Update, u64),
    /// Stores the value if the word is `expected`.
    CompareSwap {
        /// What the word has to be.
        expected: u64,
        /// What it is then.
        value: u64,
    },
}

impl Fetching {
    /// What the word is afterwards.
    #[must_use]
    pub fn apply(self, old: u64) -> u64 {
        match self {
            Fetching::Update(update, value) => update.apply(old, value),
            Fetching::CompareSwap { expected, value } if old == expected => value,
            Fetching::Fetch | Fetching::CompareSwap { .. } => old,
        }
    }
}

/// How a put-with-signal updates its signal.
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

/// How all PEs meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Meeting {
    /// `barrier_all`, which completes what was issued on the default context.
    BarrierAll,
    /// `sync_all`.
    SyncAll,
    /// `team_sync`: the sync of the team of all PEs.
    TeamSync,
    /// `reduce`, of words that the program does not name; so are these of the others.
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
    /// Every one.
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
        /// Where to.
        to: Place,
        /// What.
        values: Vec<u64>,
        /// Nonblocking.
        nbi: bool,
        /// On which context.
        context: Context,
    },
    /// `get`, `get_nbi`.
    Get {
        /// The registers that get the words.
        into: Vec<Register>,
        /// Where from.
        from: Place,
        /// Nonblocking.
        nbi: bool,
        /// On which context.
        context: Context,
    },
    /// `set`, `add`, `and`, `or`, `xor`.
    Update {
        /// Which.
        update: Update,
        /// One word.
        at: Place,
        /// The operand.
        value: u64,
        /// On which context.
        context: Context,
    },
    /// `fetch`, `swap`, `compare_swap`, `fetch_add`, …, and these with `_nbi`.
    Fetch {
        /// Gets the old value.
        into: Register,
        /// Which, with its operands.
        fetching: Fetching,
        /// One word.
        at: Place,
        /// Nonblocking.
        nbi: bool,
        /// On which context.
        context: Context,
    },
    /// `put_signal`, `put_signal_nbi`.
    PutSignal {
        /// Where to.
        to: Place,
        /// What.
        values: Vec<u64>,
        /// The signal: one word, on the same PE.
        signal: Words,
        /// How it is updated.
        op: SignalOp,
        /// With which operand.
        value: u64,
        /// Nonblocking.
        nbi: bool,
        /// On which context.
        context: Context,
    },
    /// `write`: a put to this PE itself.
    Write {
        /// Where to.
        to: Words,
        /// What.
        values: Vec<u64>,
    },
    /// `read`: a get from this PE itself.
    Read {
        /// The registers that get the words.
        into: Vec<Register>,
        /// Where from.
        from: Words,
    },
    /// `wait_until`.
    WaitUntil {
        /// One word of this PE.
        word: Words,
        /// How it has to compare.
        cmp: Cmp,
        /// With what.
        value: u64,
    },
    /// `signal_wait_until`.
    SignalWaitUntil {
        /// Gets the value that compared, if it is asked for.
        into: Option<Register>,
        /// One word of this PE.
        word: Words,
        /// How it has to compare.
        cmp: Cmp,
        /// With what.
        value: u64,
    },
    /// `test`.
    Test {
        /// Gets 1 if it compares, else 0.
        into: Register,
        /// One word of this PE.
        word: Words,
        /// How it is compared.
        cmp: Cmp,
        /// With what.
        value: u64,
    },
    /// `signal_fetch`.
    SignalFetch {
        /// Gets the value.
        into: Register,
        /// One word of this PE.
        word: Words,
    },
    /// `fence`.
    Fence {
        /// Of which context.
        context: Context,
    },
    /// `quiet`.
    Quiet {
        /// Of which context.
        context: Context,
    },
    /// `pe_quiet`.
    PeQuiet {
        /// Towards which PEs.
        pes: Vec<usize>,
        /// Of which context.
        context: Context,
    },
    /// `put_counted`.
    PutCounted {
        /// Where to.
        to: Place,
        /// What.
        values: Vec<u64>,
        /// The counter: one word, on the same PE.
        counter: Words,
        /// On which context.
        context: Context,
    },
    /// `wait_counted`.
    WaitCounted {
        /// One word of this PE.
        counter: Words,
        /// For so many puts, which it takes off the count.
        n: u64,
    },
    /// `set_lock`, of the one lock that a program has.
    SetLock,
    /// `clear_lock`.
    ClearLock,
    /// A call of all PEs in which each needs something of others, who have come when it returns.
    Meet(Meeting),
    /// `broadcast`.
    Broadcast {
        /// Written on every PE, the root included.
        to: Words,
        /// Read on the root. As many words as `to`.
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

/// Whether an expectation is about what may happen, or about what may not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Some outcome matches.
    Allowed,
    /// No outcome matches.
    Forbidden,
}

/// Which outcomes an expectation is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Those that have all these values, by label as [`Outcome`](crate::Outcome) prints them.
    Values(Vec<(String, u64)>),
    /// The one in which all PEs that are left wait for ever.
    Deadlock,
}

/// What the program's text says about its outcomes: for its reader, and to check the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expectation {
    /// In this model only.
    pub model: Option<MemoryModel>,
    /// Whether there is such an outcome.
    pub verdict: Verdict,
    /// What such an outcome is.
    pub pattern: Pattern,
}

/// A litmus program. Made by [`Program::parse`] alone, which keeps it within [`limits`], its places
/// within their variables, and its collectives the same on all PEs.
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
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it shows: lines of text.
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

    /// What its text says about its outcomes.
    #[must_use]
    pub fn expectations(&self) -> &[Expectation] {
        &self.expectations
    }

    /// How many PEs it has: those with statements, and those they name.
    #[must_use]
    pub fn pes(&self) -> usize {
        self.statements.len()
    }

    /// What one PE does; nothing, where there is no such PE.
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

    /// How many contexts it uses: 1 more than the highest named.
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

    /// A word as the text names it: `x`, `d[1]`; several as their variable: `d`.
    #[must_use]
    pub fn words_name(&self, words: Words) -> String {
        match self.variables.get(words.variable) {
            Some(v) if words.count == 1 && v.words > 1 => format!("{}[{}]", v.name, words.first),
            Some(v) => v.name.clone(),
            None => "a word of the library's".into(),
        }
    }

    /// Likewise on a PE: `x@1`.
    #[must_use]
    pub fn place_name(&self, place: Place) -> String {
        format!("{}@{}", self.words_name(place.words), place.pe)
    }
}
