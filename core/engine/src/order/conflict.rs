//! The entries of checked mode's table: an access to a word that is in flight, and whether another one conflicts with
//! it (M31, M32). Pure data.

/// Words that a PE's table has room for.
pub const SLOTS: usize = 1 << 14;

/// The access of an operation to a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reads it, not atomically.
    Get,
    /// Writes it, not atomically.
    Put,
    /// An atomic of this type.
    Atomic(Type),
}

/// The type of an atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Type(pub &'static str);

/// The types that atomics take; an entry holds the index.
const TYPES: [&str; 8] = ["i32", "u32", "f32", "i64", "u64", "f64", "isize", "usize"];

impl Access {
    pub(crate) fn number(self) -> u64 {
        match self {
            Access::Get => 1,
            Access::Put => 2,
            Access::Atomic(Type(name)) => {
                3 + TYPES.iter().position(|t| *t == name).unwrap_or(TYPES.len()) as u64
            }
        }
    }

    pub(crate) fn name(number: u64) -> String {
        match number {
            1 => "a get".into(),
            2 => "a put".into(),
            n => format!(
                "an atomic of type {}",
                TYPES.get(n as usize - 3).unwrap_or(&"?")
            ),
        }
    }

    /// Whether two accesses, by number, may meet on a word: both are not atomic, or both are atomics of one type.
    pub(crate) fn may_meet(one: u64, other: u64) -> bool {
        let plain = |n: u64| n < 3;
        one == other || (plain(one) && plain(other))
    }
}

/// One slot of a table: word (36 bits), access (8), operations in flight (8), origin (12).
#[derive(Clone, Copy)]
pub(crate) struct Entry(pub u64);

impl Entry {
    const ONE: u64 = 1 << 12;
    /// The origin of operations of several PEs.
    pub(crate) const MANY: u64 = 0xfff;
    /// Words beyond this have no entries; the upper half is for GPU memory.
    pub(crate) const WORDS: u64 = 1 << 36;

    pub(crate) fn new(word: u64, access: u64, origin: usize) -> Self {
        Entry(word << 28 | access << 20 | Self::ONE | Self::origin_bits(origin))
    }

    pub(crate) fn origin_bits(origin: usize) -> u64 {
        (origin as u64).min(Self::MANY)
    }

    pub(crate) fn word(self) -> u64 {
        self.0 >> 28
    }

    pub(crate) fn access(self) -> u64 {
        self.0 >> 20 & 0xff
    }

    pub(crate) fn count(self) -> u64 {
        self.0 >> 12 & 0xff
    }

    pub(crate) fn origin(self) -> u64 {
        self.0 & 0xfff
    }

    pub(crate) fn one_more(self, origin: usize) -> Option<Self> {
        let same = self.origin() == Self::origin_bits(origin);
        let next = if same { self.0 } else { self.0 | Self::MANY };
        (self.count() < 0xff).then_some(Entry(next + Self::ONE))
    }

    pub(crate) fn one_less(self) -> Self {
        if self.count() <= 1 {
            Entry(0)
        } else {
            Entry(self.0 - Self::ONE)
        }
    }
}

/// The entries of a context's own operations in flight: PE, slot, word.
pub(crate) type Entered = Vec<(usize, usize, u64)>;
