//! The memory of all PEs of a run: where everything lies, and what kernels are told of it.

use std::ops::Range;

use oxshmem_device_library::inbox::{HostInbox, Inbox};
use oxshmem_device_library::layout::{FLUSH_AFTER_WAIT, State, Team, UNMAPPED};
use oxshmem_device_library::ring::{HostRing, Ring};
use oxshmem_litmus::Words;
use oxshmem_litmus::kernels::Kernels;

use crate::memory::poke;

/// The slots of the ring: few, so that programs come to use them again.
pub const SLOTS: u64 = 2;
/// Bytes of a member's place in a team's scratch memory.
const PLACE: u64 = 16;
const HEAP: usize = 2048;
const TEAM_WORDS: usize = 1024;
const SCRATCH: usize = 1280;
const HEAD: usize = HEAP;
const CREDIT: usize = HEAP + 8;
const CLAIMED: usize = HEAP + 16;
const SHARED: usize = HEAP + 24;
const TEAM: usize = HEAP + 64;
const PRIVATE: usize = HEAP + 256;
const PRIVATE_BYTES: usize = 2048;
const RING: usize = PRIVATE + PRIVATE_BYTES;
const INBOX: usize = RING + HostRing::bytes(SLOTS).next_multiple_of(64);
const STOP: usize = INBOX + HostInbox::BYTES;
const PE: usize = STOP + 64;
/// PEs at most.
pub const PES: usize = 4;

/// The ways between PEs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// All PEs are mapped.
    Mapped,
    /// All others are reached by the ring. Its data is visible where it is placed.
    Ring,
    /// The same; NICs place the data, which GPUs see after a flush.
    RingByNic,
    /// PEs 0 and 1 are mapped for each other, and 2 and 3. The rest goes by the ring.
    Mixed,
    /// The same; with NICs as above.
    MixedByNic,
}

impl Path {
    pub const ALL: [Path; 5] = [
        Path::Mapped,
        Path::Ring,
        Path::RingByNic,
        Path::Mixed,
        Path::MixedByNic,
    ];

    pub fn is_mapped(self, from: usize, to: usize) -> bool {
        from == to
            || match self {
                Path::Mapped => true,
                Path::Ring | Path::RingByNic => false,
                Path::Mixed | Path::MixedByNic => from / 2 == to / 2,
            }
    }

    pub fn is_late(self) -> bool {
        matches!(self, Path::RingByNic | Path::MixedByNic)
    }

    pub fn has_ring(self) -> bool {
        self != Path::Mapped
    }
}

/// Zeroed memory, used again by one run after the other. It never moves.
pub struct Arena {
    words: Box<[u64]>,
    distances: Vec<Vec<i64>>,
    teams: Vec<u64>,
    members: Vec<u32>,
    rings: Vec<Ring>,
    inboxes: Vec<Inbox>,
    states: Vec<State>,
    /// The offset of each variable in the heap.
    variables: Vec<usize>,
    private: [usize; PES],
}

impl Arena {
    pub fn new() -> Arena {
        let mut words = vec![0_u64; (PES * PE + 64) / 8].into_boxed_slice();
        words.as_mut_ptr().expose_provenance();
        Arena {
            words,
            distances: Vec::new(),
            teams: Vec::new(),
            members: Vec::new(),
            rings: Vec::new(),
            inboxes: Vec::new(),
            states: Vec::new(),
            variables: Vec::new(),
            private: [0; PES],
        }
    }

    fn start(&self) -> usize {
        self.words.as_ptr().addr().next_multiple_of(64)
    }

    pub fn range(&self) -> Range<usize> {
        self.start()..self.start() + PES * PE
    }

    fn at(&self, pe: usize, offset: usize) -> usize {
        self.start() + pe * PE + offset
    }

    /// The memory at the start of a run of this program.
    pub fn prepare(&mut self, kernels: &Kernels, path: Path) {
        self.words.fill(0);
        self.private = [0; PES];
        let n = kernels.pes();
        assert!(n <= PES, "{n} PEs");
        let lanes = kernels
            .blocks()
            .iter()
            .map(|block| block.lanes as u64)
            .max();
        // Lanes that post together wait for room for the last of them.
        assert!(lanes <= Some(SLOTS), "{lanes:?} lanes");
        let mut next = 0;
        self.variables.clear();
        for variable in kernels.head().variables() {
            self.variables.push(next);
            // Pairs of words are copied as such from multiples of 16 on.
            next += (variable.words * 8).next_multiple_of(16);
        }
        assert!(next <= TEAM_WORDS, "the variables fill {next} bytes");
        self.members = (0..n as u32).collect();
        let distances = |from: usize| {
            let of = |to: usize| {
                if path.is_mapped(from, to) {
                    (to as i64 - from as i64) * PE as i64
                } else {
                    UNMAPPED
                }
            };
            (0..n).map(of).collect()
        };
        self.distances = (0..n).map(distances).collect();
        self.teams = (0..n).map(|pe| self.at(pe, TEAM) as u64).collect();
        let ring = |pe: usize| Ring {
            slots: self.at(pe, RING + HostRing::SLOTS) as u64,
            answers: self.at(pe, RING + HostRing::answers(SLOTS)) as u64,
            head: self.at(pe, HEAD) as u64,
            taken: self.at(pe, RING + HostRing::TAKEN) as u64,
            sources_read: self.at(pe, RING + HostRing::SOURCES_READ) as u64,
            done: self.at(pe, RING + HostRing::DONE) as u64,
            credit: self.at(pe, CREDIT) as u64,
            mask: SLOTS - 1,
        };
        self.rings = (0..n).map(ring).collect();
        let inbox = |pe: usize| {
            HostInbox::for_kernels(self.at(pe, INBOX) as u64, self.at(pe, CLAIMED) as u64)
        };
        self.inboxes = (0..n).map(inbox).collect();
        for pe in 0..n {
            let team = Team {
                n: n as u32,
                me: pe as u32,
                members: self.members.as_ptr().addr() as u64,
                words: self.at(pe, TEAM_WORDS) as u64,
                scratch: self.at(pe, SCRATCH) as u64,
                place: PLACE,
                epoch: 0,
                met: 0,
                half_used: [0; 2],
            };
            for (word, value) in bytemuck::bytes_of(&team).chunks_exact(8).enumerate() {
                let value = u64::from_le_bytes(value.try_into().unwrap());
                poke(self.at(pe, TEAM) + 8 * word, 8, value);
            }
            poke(self.at(pe, SHARED), 4, 1);
        }
        let address = |of: *const Ring| of.addr() as u64;
        let state = |pe: usize| State {
            abi: State::ABI_WORD,
            me: pe as u32,
            n: n as u32,
            flags: if path.is_late() { FLUSH_AFTER_WAIT } else { 0 },
            heap: self.at(pe, 0) as u64,
            heap_bytes: HEAP as u64,
            distances: self.distances[pe].as_ptr().addr() as u64,
            teams: (&raw const self.teams[pe]).addr() as u64,
            shared: self.at(pe, SHARED) as u64,
            ring: if path.has_ring() {
                address(&raw const self.rings[pe])
            } else {
                0
            },
            stop: self.at(pe, STOP) as u64,
            fault: 0,
            deadline: 0,
            inbox: if path.has_ring() { self.inbox(pe) } else { 0 },
            reserved: [0; 2],
        };
        self.states = (0..n).map(state).collect();
        // Compiled code reads all of them by these addresses.
        self.members.as_ptr().expose_provenance();
        self.teams.as_ptr().expose_provenance();
        self.rings.as_ptr().expose_provenance();
        self.inboxes.as_ptr().expose_provenance();
        for distances in &self.distances {
            distances.as_ptr().expose_provenance();
        }
    }

    /// The number of PEs of the program.
    pub fn pes(&self) -> usize {
        self.states.len()
    }

    pub fn state(&self, pe: usize) -> *const State {
        &raw const self.states[pe]
    }

    /// The inbox as kernels find it.
    pub fn inbox(&self, pe: usize) -> u64 {
        (&raw const self.inboxes[pe]).addr() as u64
    }

    /// The address of the count of requests.
    pub fn head(&self, pe: usize) -> usize {
        self.at(pe, HEAD)
    }

    /// The address of the host's part of a ring.
    pub fn host_ring(&self, pe: usize) -> usize {
        self.at(pe, RING)
    }

    /// The address of the host's part of an inbox.
    pub fn host_inbox(&self, pe: usize) -> usize {
        self.at(pe, INBOX)
    }

    /// The address of words in a PE's heap.
    pub fn words(&self, words: Words, pe: usize) -> usize {
        self.at(pe, self.variables[words.variable] + 8 * words.first)
    }

    /// The address of an offset in a PE's heap.
    pub fn heap(&self, pe: usize, offset: u64) -> usize {
        self.at(pe, offset as usize)
    }

    /// Memory of a PE's GPU that nobody has used, 16 bytes more than wanted apart from others.
    pub fn private(&mut self, pe: usize, words: usize) -> usize {
        let at = self.private[pe];
        self.private[pe] += (8 * words).next_multiple_of(16);
        assert!(
            self.private[pe] <= PRIVATE_BYTES,
            "a program with more data than there is place"
        );
        self.at(pe, PRIVATE + at)
    }

    /// The words in which an unordered store behind a load is a fault: the requests and answers of rings, the errands of
    /// inboxes, the scratch memory of teams, the sources of puts.
    pub fn guarded(&self, kernels: &Kernels) -> Vec<Range<usize>> {
        let mut all = Vec::new();
        for pe in 0..kernels.pes() {
            for slot in 0..SLOTS as usize {
                let slot_at = self.at(pe, RING + HostRing::SLOTS + 64 * slot);
                all.push(slot_at..slot_at + 56);
                let answer = self.at(pe, RING + HostRing::answers(SLOTS) + 16 * slot);
                all.push(answer..answer + 8);
            }
            all.push(self.at(pe, SCRATCH)..self.at(pe, HEAP));
            all.push(self.at(pe, PRIVATE)..self.at(pe, RING));
            for words in kernels.sources() {
                let at = self.words(words, pe);
                all.push(at..at + 8 * words.count);
            }
        }
        all
    }
}
