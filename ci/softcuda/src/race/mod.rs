//! The race detector: accesses of kernels that no barrier, fence, stream or event orders.
//!
//! `oxshmem cuda cc --check` has the compiler call it before each access to memory, and in place of each atomic operation. It keeps,
//! for each byte, the last accesses, and for each thread of a kernel what has happened before it. Two accesses of different threads
//! to one byte, of which one writes, are a race if neither has happened before the other, whether or not this run showed it.
//!
//! The order is that of CUDA's memory model: barriers of blocks and grids, `__syncwarp`, fences and atomic operations with their scopes,
//! and, between kernels, streams, events, and the calls by which the host waits. The host is one thread for it: what the host's own code
//! does to memory is not seen.
//!
//! The processes of a job have one set of [notes], in an [arena] that each of them maps at one address. There, memory and code have
//! [names] that mean the same in all of them. What a host does to tell another one of something is not seen either: the calls by which it does so
//! are ([`host_calls`]), and what it may have told is taken for told.

mod arena;
mod clock;
mod meeting;
mod names;
mod notes;
mod place;
mod report;
mod scope;
mod shadow;
mod thread;

use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

pub(crate) use self::clock::{Agent, Clock};
pub(crate) use self::names::FileId;
pub(crate) use self::place::{COPY, FILL, Place, STREAM_WORD};
pub(crate) use self::scope::Scope;
pub(crate) use self::thread::{Thread, gathered};

pub(crate) use self::clock::join;
use self::notes::{Launch, Notes, is_active, keep, notes, take};
use self::place::CODES;
use self::scope::Reach;
use self::shadow::{Access, Kind};
use self::thread::{Order, Released, publish};
use crate::kernel::shape::Shape;
use crate::sync::lock;

/// Orders, as compilers number them.
const RELAXED: u32 = 0;
const ACQUIRE: u32 = 2;
const RELEASE: u32 = 3;

/// Turns the detector on, for an image that was just loaded: the bytes of its code, from an address.
pub(crate) fn activate((at, length): (usize, usize), content: u64) {
    names::loaded(at, length, content);
    notes::join_job();
    // Else places in it have no line.
    backtrace::clear_symbol_cache();
    report::watch_the_end();
    notes::activate();
}

/// The operation of an access to one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Atomic {
    Load,
    Store,
    ReadModifyWrite,
}

/// A plain or volatile access of a thread. A volatile one is a relaxed operation for the whole system.
pub(crate) fn access(thread: &mut Thread, place: Place, writes: bool, volatile: bool) {
    if !is_active() {
        return;
    }
    if volatile {
        let operation = if writes { Atomic::Store } else { Atomic::Load };
        let how = (RELAXED, is_of_host(place.at));
        begin_atomic(thread, place, operation, how);
        end_atomic(thread, place.at, operation, how);
        return;
    }
    let kind = Kind {
        writes,
        atomic: false,
    };
    let reach = thread.place();
    let mut notes = notes();
    if writes && !notes.published.is_empty() {
        let name = notes.byte(place.at);
        notes.withdraw(name, place.len);
    }
    note(&mut notes, thread, place, kind, reach);
}

impl Notes {
    /// Forgets all that is noted of named bytes.
    fn forget(&mut self, name: usize, len: usize) {
        self.forgets += 1;
        self.shadow.forget(name, len);
        if !self.published.is_empty() {
            self.withdraw(name, len);
        }
    }

    /// Takes back the releases that were published in these bytes.
    fn withdraw(&mut self, at: usize, len: usize) {
        if len <= 8 {
            self.published.remove(&at);
        } else {
            let bytes = at..at.saturating_add(len);
            self.published.retain(|word, _| !bytes.contains(word));
        }
    }
}

/// An atomic operation of a thread that is about to be done: what it publishes.
pub(crate) fn before_atomic(thread: &mut Thread, place: Place, operation: Atomic, order: u32) {
    let of_host = is_of_host(place.at);
    begin_atomic(thread, place, operation, (order, of_host));
}

fn begin_atomic(
    thread: &mut Thread,
    place: Place,
    operation: Atomic,
    (order, of_host): (u32, bool),
) {
    if !is_active() {
        return;
    }
    let kind = Kind {
        writes: operation != Atomic::Load,
        atomic: true,
    };
    let mut notes = notes();
    let reach = thread.next_reach();
    note(&mut notes, thread, place, kind, reach);
    if operation == Atomic::Load {
        return;
    }
    let new = arena::inside(false, || thread.published(Order::of(order)));
    if of_host {
        let host = notes.host();
        let whole = new.iter().filter(|one| one.by.scope == Scope::System);
        whole.for_each(|one| {
            host.hears(&one.clock, true);
            host.passes(&one.clock);
        });
    }
    let name = notes.byte(place.at);
    let published = notes.published.entry(name).or_default();
    if operation == Atomic::Store {
        published.clear();
    }
    for Released { by, clock } in &new {
        let (by, clock) = (*by, keep(clock));
        publish(published, Released { by, clock });
    }
    if published.len() > MANY {
        thread::shorten(published, thread.agent);
    }
}

/// Publications in one word that are not worth a search.
const MANY: usize = 32;

/// Tells whether a word is the host's, which may read it and act on it.
static OF_HOST: OnceLock<fn(usize) -> bool> = OnceLock::new();

/// Sets how a word of the host is known. The test locks memory: so it is made before the detector's state is locked, and never
/// where memory is locked.
pub(crate) fn know_words_of_host(test: fn(usize) -> bool) {
    OF_HOST.get_or_init(|| test);
}

fn is_of_host(at: usize) -> bool {
    OF_HOST.get().is_some_and(|test| test(at))
}

/// An atomic operation of a thread that was done: what it has read.
pub(crate) fn after_atomic(thread: &mut Thread, at: usize, operation: Atomic, order: u32) {
    let of_host = operation != Atomic::Store && is_of_host(at);
    end_atomic(thread, at, operation, (order, of_host));
}

fn end_atomic(thread: &mut Thread, at: usize, operation: Atomic, (order, of_host): (u32, bool)) {
    if operation != Atomic::Store && is_active() {
        let order = Order::of(order);
        let new = notes().unread(thread, at, order, of_host);
        thread.reads(&new, order);
    }
    thread.end_scope();
}

impl Notes {
    /// The releases that are published in a word, as far as a thread has not read them yet. In a word that other processes may write, too, their
    /// hosts may have passed on what they were told: their writes are not seen.
    fn unread(&mut self, thread: &Thread, at: usize, order: Order, of_host: bool) -> Vec<Released> {
        let name = self.byte(at);
        let published = self.published.get(&name).into_iter().flatten();
        let unread = published.filter(|one| !thread.has_read(one, order));
        // Clocks of shared notes stay there.
        let shared = self.numbers.is_some();
        let copy = |clock: &Arc<Clock>| match shared {
            true => Arc::new(Clock::clone(clock)),
            false => Arc::clone(clock),
        };
        arena::inside(false, || {
            let copied = unread.map(|one| Released {
                by: one.by,
                clock: copy(&one.clock),
            });
            let mut all: Vec<_> = copied.collect();
            if of_host {
                all.push(Released::of_host(&copy(&self.hosts[notes::me()].clock)));
            }
            if shared && (of_host || names::is_of_file(name)) {
                all.push(Released::of_host(&self.passed()));
            }
            all
        })
    }
}

/// A fence of a thread.
pub(crate) fn fence(thread: &mut Thread, order: u32) {
    thread.fence(Order::of(order));
}

fn note(notes: &mut Notes, thread: &mut Thread, place: Place, kind: Kind, reach: Reach) {
    let bytes = (place.at, place.len);
    if thread.was_noted(bytes, kind, reach.scope, notes.forgets) {
        return;
    }
    let pc = match place.pc {
        code if code < CODES => code,
        pc => notes.code(pc),
    };
    let access = Access::new(thread.stamp(), kind, reach, (pc, place.len));
    let before = thread.before();
    let name = notes.byte(place.at);
    let Some(other) = notes.shadow.note(name, place.len, access, before) else {
        return;
    };
    // A copy has no place in the program: one report for each page.
    let at = if pc.min(other.pc) < CODES {
        name & !4095
    } else {
        0
    };
    let places = (pc.min(other.pc), pc.max(other.pc), at);
    let is_new = notes.told.insert(places);
    arena::inside(false, || {
        // Another process may have told it of its own work.
        report::count(places);
        if is_new {
            report::tell(notes, place.at, &access, &other);
        }
    });
}

/// The bytes are used by nobody any more, or by somebody else from now on.
pub(crate) fn forget(at: usize, len: usize) {
    if is_active() {
        let mut notes = notes();
        let name = notes.byte(at);
        notes.forget(name, len);
    }
}

/// Bytes of a file are mapped at an address: those of a device's memory.
pub(crate) fn mapped(at: usize, len: usize, file: FileId) {
    names::mapped(at, len, file, 0);
}

/// Memory is mapped no more. Others may have the bytes of a file still.
pub(crate) fn unmapped(at: usize, len: usize) {
    let is_shared = names::is_mapped(at) && is_active() && notes().numbers.is_some();
    if !is_shared {
        forget(at, len);
    }
    names::unmapped(at);
}

/// A file's memory is given back by the process that has made it.
pub(crate) fn ended(file: FileId, len: usize) {
    if is_active() {
        let mut notes = notes();
        let name = notes.numbers.as_mut().and_then(|numbers| numbers.end(file));
        if let Some(name) = name {
            notes.forget(name, len);
        }
    }
}

/// Code is loaded no more.
pub(crate) fn unloaded(at: usize) {
    names::unloaded(at);
}

/// Memory of the program's own is page-locked no more. Its bytes stay what they are.
pub(crate) fn released(at: usize) {
    names::unmapped(at);
}

/// Memory of the program's own is page-locked.
pub(crate) fn page_locked(at: usize, len: usize) {
    if notes::has_job()
        && let Some((file, offset)) = names::shared_file(at)
    {
        names::mapped(at, len, file, offset);
    }
}

/// The host's clock, for work that it gives.
pub(crate) fn host() -> Arc<Clock> {
    match is_active() {
        true => take(&notes().hosts[notes::me()].clock),
        false => Arc::default(),
    }
}

/// Calls in which the host tells others of what it knows: what it hears during one, the library may pass on at once.
static TELLS: AtomicUsize = AtomicUsize::new(0);

/// The host has waited for something.
pub(crate) fn host_waited(clock: &Arc<Clock>) {
    if is_active() {
        notes()
            .host()
            .hears(clock, TELLS.load(Ordering::Relaxed) > 0);
    }
}

/// The host begins a call by which others may hear of it, or comes to a meeting of all. Kernels of others may hear of it where the call
/// has an address of GPU memory.
pub(crate) fn host_calls(arguments: [usize; 6], meeting: u64) {
    TELLS.fetch_add(1, Ordering::Relaxed);
    if is_active() {
        let on_gpu = arguments.into_iter().any(names::is_mapped);
        notes().host().tells(on_gpu, meeting);
    }
}

/// The call is over. `heard`: the host has heard of the other processes, or has met them.
pub(crate) fn host_returns(heard: bool, meeting: u64) {
    TELLS.fetch_sub(1, Ordering::Relaxed);
    if heard && is_active() {
        let mut notes = notes();
        let heard = match meeting {
            0 => notes.told_by_others(),
            meeting => {
                notes.host().leaves();
                notes.said_at(meeting)
            }
        };
        if let Some(heard) = heard {
            notes.host().hears(&heard, false);
        }
    }
}

/// The running piece begins or ends work that is not seen: of a kernel that was not built for the detector. It may hear of others, and
/// others may hear of it.
pub(crate) fn is_unseen() {
    if !is_active() {
        return;
    }
    let heard = {
        let notes = notes();
        notes.told_by_others().map(|told| [told, notes.passed()])
    };
    with_running(|running| {
        heard
            .iter()
            .flatten()
            .for_each(|clock| join(&mut running.clock, clock));
        notes().host().passes(&running.clock);
    });
}

/// The pieces of work of a stream.
#[derive(Debug, Default)]
pub(crate) struct Strand {
    number: OnceLock<u32>,
    done: Mutex<(u32, Arc<Clock>)>,
}

impl Strand {
    /// Its number among those of all processes.
    fn number(&self) -> u32 {
        *self.number.get_or_init(|| {
            let strands = &mut notes().strands;
            strands.push(notes::me());
            (strands.len() - 1) as u32
        })
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
struct Piece {
    strand: u32,
    piece: u32,
    device: u32,
    clock: Arc<Clock>,
}

thread_local! {
    static RUNNING: RefCell<Option<Piece>> = const { RefCell::new(None) };
}

/// Does something for the piece of work that this thread of the host does, if it does one.
fn with_running(note: impl FnOnce(&mut Piece)) {
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
    let is_word = matches!(len, 4 | 8) && at.is_multiple_of(len);
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

/// Launches whose names are kept.
const MOST_LAUNCHES: usize = 4096;

/// The check of one grid.
pub(crate) struct GridCheck {
    strand: u32,
    piece: u32,
    device: u32,
    threads: u32,
    before: Arc<Clock>,
    /// All that its threads which are over have heard of others.
    ended: Mutex<(Clock, Option<Arc<Clock>>)>,
    /// All that has come to its barrier in this round, and in the last one.
    gathering: Mutex<Clock>,
    gathered: Mutex<Arc<Clock>>,
}

impl GridCheck {
    /// The check of a grid that the running piece launches.
    pub(crate) fn begin(name: &str, shape: Shape) -> Option<GridCheck> {
        let running = RUNNING.with_borrow(Option::clone)?;
        let Piece {
            strand,
            piece,
            device,
            clock: before,
        } = running;
        let mut notes = notes();
        if notes.launches.len() >= MOST_LAUNCHES {
            notes.launches.clear();
        }
        let name = name.to_owned();
        notes
            .launches
            .insert((strand, piece), Launch { name, shape });
        drop(notes);
        Some(GridCheck {
            strand,
            piece,
            device,
            threads: shape.block_threads(),
            before,
            ended: Mutex::default(),
            gathering: Mutex::default(),
            gathered: Mutex::default(),
        })
    }

    /// The clock of one of its threads.
    pub(crate) fn thread(&self, block: u64, thread: u32) -> Thread {
        let number = (block as u32)
            .wrapping_mul(self.threads)
            .wrapping_add(thread);
        let agent = Agent {
            strand: self.strand,
            piece: self.piece,
            thread: number,
        };
        Thread::new(agent, self.device, block as u32, &self.before)
    }

    /// A thread of it is over. What it has done itself is over with the grid.
    pub(crate) fn leave(&self, thread: &Thread) {
        let mut ended = lock(&self.ended);
        let (all, last) = &mut *ended;
        let before = thread.before();
        if !last.as_ref().is_some_and(|last| Arc::ptr_eq(last, before)) {
            all.join_others(before, (self.strand, self.piece));
            *last = Some(Arc::clone(before));
        }
    }

    /// A thread comes to its barrier.
    pub(crate) fn arrive(&self, thread: &mut Thread) {
        lock(&self.gathering).join(&thread.release());
    }

    /// All have come.
    pub(crate) fn open(&self) {
        let all = std::mem::take(&mut *lock(&self.gathering));
        *lock(&self.gathered) = Arc::new(all);
    }

    /// A thread goes on from its barrier.
    pub(crate) fn pass(&self, thread: &mut Thread) {
        thread.acquire(&lock(&self.gathered));
    }

    /// All its threads are over.
    pub(crate) fn end(self) {
        let ended = self.ended.into_inner();
        let ended = ended.unwrap_or_else(std::sync::PoisonError::into_inner);
        piece_waited(&Arc::new(ended.0));
    }
}
