//! The liveness of PEs, and the tables that must not lead to lost ones any more.

use std::any::Any;
use std::fmt;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::peer::entry::{Peer, PeerWords, Tables, table};
use crate::peer::exit_reports::{ExitReports, SystemClock};

// The states of a PE's end, as bits; none of them while it lives.
/// The bootstrap reported that it died: every PE gets that report.
const DIED: u32 = 1;
/// The bootstrap reported that it left in order: it was through with finalize, so every PE had arrived there.
const LEFT: u32 = 2;
/// No path leads there any more: after one of these, or because this PE alone found that it cannot be reached, or was
/// notified so by that PE.
const LOST: u32 = 4;
/// The program has acknowledged its loss.
const ACKNOWLEDGED: u32 = 8;

/// The state that a PE's contexts share: the lost PEs, and the mappings of every PE's heap. PEs are numbered as in
/// the world.
pub struct Liveness {
    state: Box<[AtomicU32]>,
    any: AtomicBool,
    /// The number of acknowledgements.
    acknowledged: AtomicU32,
    /// The wait for reports behind failures.
    reports: ExitReports,
    /// The default context's table.
    peers: Arc<[Peer]>,
    words: Arc<[PeerWords]>,
    /// The other contexts'.
    others: Mutex<Vec<ContextTable>>,
    /// The owners that keep each base mapped.
    _keep: Vec<Arc<dyn Any + Send + Sync>>,
}

/// A context's table.
struct ContextTable {
    peers: Weak<[Peer]>,
    words: Weak<[PeerWords]>,
    members: Option<Arc<[u32]>>,
}

impl fmt::Debug for Liveness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Liveness").finish_non_exhaustive()
    }
}

impl Liveness {
    pub(crate) fn new(tables: &Tables, keep: Vec<Arc<dyn Any + Send + Sync>>) -> Self {
        Liveness {
            state: (0..tables.count).map(|_| AtomicU32::new(0)).collect(),
            any: AtomicBool::new(false),
            acknowledged: AtomicU32::new(0),
            reports: ExitReports::default(),
            peers: Arc::clone(&tables.peers),
            words: Arc::clone(&tables.words),
            others: Mutex::default(),
            _keep: keep,
        }
    }

    fn others(&self) -> MutexGuard<'_, Vec<ContextTable>> {
        self.others.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Number of PEs in the world.
    pub(crate) fn len(&self) -> usize {
        self.state.len()
    }

    /// The base of a PE's heap.
    pub(crate) fn base(&self, pe: usize) -> Option<&AtomicPtr<u8>> {
        Some(&self.peers.get(pe)?.base)
    }

    /// The same for atomics.
    pub(crate) fn word(&self, pe: usize) -> Option<&AtomicPtr<u8>> {
        Some(&self.words.get(pe)?.0)
    }

    /// The tables of another context. From here on a loss reaches them.
    pub(crate) fn tables_of(&self, members: Option<&Arc<[u32]>>) -> Tables {
        // Before the bases are read: a loss that is found later unmaps the new tables, too.
        let mut others = self.others();
        let bases = |pe: usize| {
            let load = |base: Option<&AtomicPtr<u8>>| {
                base.map_or(null_mut(), |base| base.load(Ordering::Acquire))
            };
            (load(self.base(pe)), load(self.word(pe)))
        };
        let made = table(match members {
            None => (0..self.state.len()).map(bases).collect(),
            Some(members) => members.iter().map(|&pe| bases(pe as usize)).collect(),
        });
        others.push(ContextTable {
            peers: Arc::downgrade(&made.peers),
            words: Arc::downgrade(&made.words),
            members: members.cloned(),
        });
        made
    }

    /// A context has ended.
    pub(crate) fn forget(&self, peers: &Arc<[Peer]>) {
        let ended = Arc::as_ptr(peers).cast::<Peer>();
        let mut others = self.others();
        others.retain(|other| !std::ptr::addr_eq(other.peers.as_ptr(), ended));
    }

    /// Notes the bootstrap's report of a PE's end, before any path that leads there is ended, which may take a while:
    /// a thread whose lane fails meanwhile finds the reason.
    pub fn note_exit(&self, pe: usize, orderly: bool) {
        if let Some(state) = self.state.get(pe) {
            state.fetch_or(if orderly { LEFT } else { DIED }, Ordering::Release);
        }
    }

    /// Records that a PE is lost. Called from any thread.
    pub fn mark_lost(&self, pe: usize) {
        if let Some(state) = self.state.get(pe) {
            // First the flag, then its effect: a thread that finds no base finds the flag.
            state.fetch_or(LOST, Ordering::Release);
            self.any.store(true, Ordering::Release);
            self.unmap(pe);
        }
    }

    /// Ends the mappings of a PE that was lost.
    fn unmap(&self, pe: usize) {
        unmap(&self.peers, &self.words, pe);
        for other in self.others().iter() {
            let (Some(peers), Some(words)) = (other.peers.upgrade(), other.words.upgrade()) else {
                continue;
            };
            match &other.members {
                None => unmap(&peers, &words, pe),
                Some(members) => {
                    let member = members.iter().position(|&member| member as usize == pe);
                    member.into_iter().for_each(|at| unmap(&peers, &words, at));
                }
            }
        }
    }

    fn state(&self, pe: usize) -> u32 {
        let state = self.state.get(pe);
        state.map_or(0, |state| state.load(Ordering::Acquire))
    }

    /// Whether a PE is lost: it died, or left the job.
    pub fn is_lost(&self, pe: usize) -> bool {
        let lost = self.state(pe) & LOST != 0;
        if lost {
            // A thread that has once seen the loss meets no mapping afterwards (`mark_lost` may not be that far).
            self.unmap(pe);
        }
        lost
    }

    /// Whether the bootstrap has reported its end: every PE gets that report, and it is lost to this one, or is about to
    /// be.
    pub(crate) fn exit_is_known(&self, pe: usize) -> bool {
        self.state(pe) & (DIED | LEFT) != 0
    }

    /// [`exit_is_known`](Self::exit_is_known), after the moment that the bootstrap's report may take. Failures of other
    /// PEs that are seen meanwhile wait for theirs at the same time.
    pub(crate) fn exit_is_reported(&self, pe: usize) -> bool {
        self.reports.wait(&SystemClock, || self.exit_is_known(pe))
    }

    /// Whether the PE is gone without having finalized.
    pub fn has_died(&self, pe: usize) -> bool {
        self.state(pe) & (LOST | LEFT) == LOST
    }

    /// Whether the program has acknowledged the PE's loss.
    pub(crate) fn is_acknowledged(&self, pe: usize) -> bool {
        self.state(pe) & ACKNOWLEDGED != 0
    }

    /// Whether any PE was ever lost.
    #[inline]
    pub fn any(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }

    /// A PE whose loss the program has not acknowledged.
    pub fn first_lost(&self) -> Option<usize> {
        if !self.any() {
            return None;
        }
        let unknown = |pe: &usize| {
            let state = self.state(*pe);
            state & LOST != 0 && state & ACKNOWLEDGED == 0
        };
        (0..self.state.len()).find(unknown)
    }

    /// Acknowledges every loss so far; gives all the lost.
    pub fn acknowledge(&self) -> Vec<usize> {
        let mut all = Vec::new();
        for (pe, state) in self.state.iter().enumerate() {
            if state.load(Ordering::Acquire) & LOST != 0 {
                state.fetch_or(ACKNOWLEDGED, Ordering::Release);
                all.push(pe);
            }
        }
        // After the marks: a thread that sees the count sees them.
        self.acknowledged.fetch_add(1, Ordering::Release);
        all
    }

    /// The number of acknowledgements.
    pub(crate) fn acknowledgements(&self) -> u32 {
        self.acknowledged.load(Ordering::Acquire)
    }
}

/// Ends the mapping of a table's entry.
fn unmap(peers: &[Peer], words: &[PeerWords], at: usize) {
    if let (Some(peer), Some(word)) = (peers.get(at), words.get(at)) {
        peer.base.store(null_mut(), Ordering::Release);
        peer.store_base.store(null_mut(), Ordering::Release);
        word.0.store(null_mut(), Ordering::Release);
    }
}
