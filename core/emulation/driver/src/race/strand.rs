//! Work that streams do piece by piece.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, OnceLock};

use super::access::{
    ACQUIRE, Atomic, RELEASE, access, after_atomic, before_atomic, begin_atomic, end_atomic,
};
use super::clock::{Agent, Clock, join};
use super::notes::{is_active, notes};
use super::place::{Place, STREAM_WORD};
use super::thread::Thread;
use crate::sync::lock;

/// The pieces of work of a stream.
#[derive(Debug, Default)]
pub(crate) struct Strand {
    number: OnceLock<u32>,
    done: Mutex<(u32, Arc<Clock>)>,
}

impl Strand {
    /// Its number among those of all processes.
    fn number(&self) -> u32 {
        *self.number.get_or_init(|| notes().new_strand())
    }

    /// The clock behind all that it has done.
    pub(crate) fn clock(&self) -> Arc<Clock> {
        Arc::clone(&lock(&self.done).1)
    }

    /// Something comes before its next piece.
    pub(crate) fn follow(&self, clock: &Arc<Clock>) {
        join(&mut lock(&self.done).1, clock);
    }

    /// Does its next piece, which happens on this thread of the host.
    pub(crate) fn piece<R>(&self, device: usize, work: impl FnOnce() -> R) -> R {
        if !is_active() {
            return work();
        }
        let number = self.number();
        let (piece, before) = {
            let done = lock(&self.done);
            (done.0 + 1, Arc::clone(&done.1))
        };
        let running = Piece {
            strand: number,
            piece,
            device: device as u32,
            clock: before,
        };
        let outer = RUNNING.replace(Some(running));
        let result = work();
        let ended = RUNNING.replace(outer);
        let mut done = lock(&self.done);
        if let Some(ended) = ended {
            join(&mut done.1, &ended.clock);
            done.0 = ended.piece;
            Arc::make_mut(&mut done.1).end(number, ended.piece);
        }
        result
    }
}

/// The piece of work that a thread of the host does for a stream.
#[derive(Clone)]
pub(super) struct Piece {
    pub(super) strand: u32,
    pub(super) piece: u32,
    pub(super) device: u32,
    pub(super) clock: Arc<Clock>,
}

thread_local! {
    static RUNNING: RefCell<Option<Piece>> = const { RefCell::new(None) };
}

/// The piece of work that this thread of the host does.
pub(super) fn running() -> Option<Piece> {
    RUNNING.with_borrow(Option::clone)
}

/// Does something for the piece of work that this thread of the host does, if it does one.
pub(super) fn with_running(note: impl FnOnce(&mut Piece)) {
    RUNNING.with_borrow_mut(|running| {
        if let Some(running) = running {
            note(running);
        }
    });
}

/// The running piece of work is over, and the next begins: a graph has several.
pub(crate) fn next_piece() {
    with_running(|running| {
        Arc::make_mut(&mut running.clock).end(running.strand, running.piece);
        running.piece += 1;
    });
}

/// The running piece of work has waited for something.
pub(crate) fn piece_waited(clock: &Arc<Clock>) {
    with_running(|running| join(&mut running.clock, clock));
}

/// The clock of the running piece.
pub(crate) fn piece_clock() -> Arc<Clock> {
    RUNNING.with_borrow(|running| {
        let clock = running.as_ref().map(|running| Arc::clone(&running.clock));
        clock.unwrap_or_default()
    })
}

/// The running piece as a thread that accesses memory itself.
fn as_thread(running: &Piece) -> Thread {
    let agent = Agent {
        strand: running.strand,
        piece: running.piece,
        thread: 0,
    };
    Thread::new(agent, running.device, 0, &running.clock)
}

/// The running piece accesses bytes: a copy or a fill. One of a word moves it whole, as an atomic operation does.
/// `of_host`: in memory of the host.
pub(crate) fn piece_accesses(place: Place, writes: bool, of_host: bool) {
    let Place { at, len, .. } = place;
    if !is_active() || len == 0 {
        return;
    }
    let is_word = matches!(len, 2 | 4 | 8) && at.is_multiple_of(len);
    with_running(|running| {
        let mut thread = as_thread(running);
        if !is_word {
            return access(&mut thread, place, writes, false);
        }
        let (operation, order) = match writes {
            true => (Atomic::Store, RELEASE),
            false => (Atomic::Load, ACQUIRE),
        };
        begin_atomic(&mut thread, place, operation, (order, of_host));
        if writes {
            // Work that is not seen may wait for the word.
            let written = thread.release();
            notes().host().passes(&written);
        }
        end_atomic(&mut thread, at, operation, (order, of_host));
        join(&mut running.clock, thread.before());
    });
}

/// The running piece has written a word, for others to wait for.
pub(crate) fn piece_releases(at: usize, len: usize) {
    if !is_active() {
        return;
    }
    let pc = STREAM_WORD;
    with_running(|running| {
        let place = Place { at, len, pc };
        before_atomic(&mut as_thread(running), place, Atomic::Store, RELEASE);
    });
}

/// The running piece has seen a word that others have written.
pub(crate) fn piece_acquires(at: usize) {
    if !is_active() {
        return;
    }
    with_running(|running| {
        let mut thread = as_thread(running);
        after_atomic(&mut thread, at, Atomic::Load, ACQUIRE);
        join(&mut running.clock, thread.before());
    });
}
