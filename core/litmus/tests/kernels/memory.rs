//! The simulated memory of all PEs' GPUs and hosts, by address.
//!
//! Each word of 4 or 8 bytes is a word of [`Scoped`] from its first access on. The memory at its address holds its value before that;
//! later it is scratch space, by which plain accesses of compiled code are told their values.

use std::collections::HashMap;
use std::ops::Range;

use oxshmem_weak::{Access, Agent, Choices, Scope, Scoped, Seeded, Word};

/// The addresses, and what the machine makes of them.
pub struct Memory {
    pub machine: Scoped,
    pub random: Seeded,
    words: HashMap<usize, (Word, usize)>,
    range: Range<usize>,
    guarded: Vec<Range<usize>>,
    /// An access that there cannot be: the run is worth nothing from there on.
    pub fault: Option<String>,
    /// The number of stores so far.
    pub stores: u64,
    /// One load in so many is stale, if it may be.
    staleness: usize,
    /// One store in so many goes before others, if it may.
    lateness: usize,
}

impl Memory {
    /// The words of 8 bytes at `range`, which the caller keeps allocated, and accesses in no other way.
    pub fn new(range: Range<usize>, guarded: Vec<Range<usize>>, random: Seeded) -> Memory {
        let staleness = [2, 3, 6, 20][random.choose(4)];
        let lateness = [2, 6, 30][random.choose(3)];
        Memory {
            machine: Scoped::new(),
            random,
            words: HashMap::new(),
            range,
            guarded,
            fault: None,
            stores: 0,
            staleness,
            lateness,
        }
    }

    /// One in `n`.
    pub fn chance(&self, n: usize) -> bool {
        self.random.choose(n) == 0
    }

    /// The word at an address. One access of another width, or of no word, is a fault.
    pub fn word(&mut self, at: usize, bytes: usize) -> Word {
        if let Some(&(word, width)) = self.words.get(&at) {
            if width != bytes {
                self.fault = Some(format!("{bytes} bytes at {at:#x}, which had {width}"));
            }
            return word;
        }
        let fits = (bytes == 4 || bytes == 8) && at.is_multiple_of(bytes);
        if !fits || !self.range.contains(&at) {
            self.fault = Some(format!("{bytes} bytes at {at:#x}"));
            return self.machine.word(0, false);
        }
        let guarded = self.guarded.iter().any(|range| range.contains(&at));
        let word = self.machine.word(peek(at, bytes), guarded);
        self.words.insert(at, (word, bytes));
        word
    }

    fn back(&self, choices: usize, rarity: usize) -> usize {
        match choices {
            0 | 1 => 0,
            _ if !self.chance(rarity) => 0,
            2 => 1,
            more => 1 + self.random.choose(more - 1),
        }
    }

    pub fn load(&mut self, agent: Agent, at: usize, bytes: usize, access: Access) -> u64 {
        let word = self.word(at, bytes);
        let back = self.back(self.machine.loads(agent, word), self.staleness);
        self.machine.load(agent, word, access, back)
    }

    pub fn store(&mut self, agent: Agent, at: usize, bytes: usize, value: u64, access: Access) {
        let word = self.word(at, bytes);
        let back = self.back(self.machine.stores(agent, word, access), self.lateness);
        self.stores += 1;
        self.machine.store(agent, word, value, access, back);
    }

    pub fn update(
        &mut self,
        agent: Agent,
        at: usize,
        bytes: usize,
        access: Access,
        to: impl Fn(u64) -> Option<u64>,
    ) -> u64 {
        let word = self.word(at, bytes);
        let back = self.back(self.machine.stores(agent, word, access), self.staleness);
        self.stores += 1;
        self.machine.update((agent, word), access, back, to)
    }

    /// A plain load of compiled code that follows: memory has for it what the machine gives.
    pub fn plain_load(&mut self, agent: Agent, at: usize, bytes: usize) {
        for (at, bytes) in pieces(at, bytes) {
            let value = self.load(agent, at, bytes, Access::WEAK);
            poke(at, bytes, value);
        }
    }

    /// A plain store of compiled code that has just been made.
    pub fn plain_store(&mut self, agent: Agent, at: usize, bytes: usize, access: Access) {
        for (at, bytes) in pieces(at, bytes) {
            let value = peek(at, bytes);
            // Memory has the first value of a word where it is not known yet: the machine learns of 0.
            if !self.words.contains_key(&at) {
                poke(at, bytes, 0);
                self.word(at, bytes);
            }
            self.store(agent, at, bytes, value, access);
        }
    }

    /// The last value of a word.
    pub fn last(&mut self, at: usize) -> u64 {
        let word = self.word(at, 8);
        self.machine.last(word)
    }
}

/// The strength of an access of hosts and NICs that orders nothing.
pub fn relaxed() -> Access {
    Access::relaxed(Scope::System)
}

/// Words of an access: of 8 bytes, or one of fewer.
fn pieces(at: usize, bytes: usize) -> impl Iterator<Item = (usize, usize)> {
    let each = bytes.min(8);
    (at..at + bytes).step_by(each).map(move |at| (at, each))
}

/// The bytes of the arena, which is allocated while a [`Memory`] lives.
pub fn peek(at: usize, bytes: usize) -> u64 {
    // SAFETY: aligned words of the arena, by `Memory::word`'s checks and `Memory::new`'s promise; one thread uses it.
    unsafe {
        match bytes {
            4 => u64::from(std::ptr::with_exposed_provenance::<u32>(at).read_volatile()),
            _ => std::ptr::with_exposed_provenance::<u64>(at).read_volatile(),
        }
    }
}

/// The same, written.
pub fn poke(at: usize, bytes: usize, value: u64) {
    // SAFETY: as in `peek`.
    unsafe {
        match bytes {
            4 => std::ptr::with_exposed_provenance_mut::<u32>(at).write_volatile(value as u32),
            _ => std::ptr::with_exposed_provenance_mut::<u64>(at).write_volatile(value),
        }
    }
}
