//! Accesses of threads: each is compared with those that were before, and noted.

use std::sync::{Arc, OnceLock};

use super::clock::{Clock, Stamp};
use super::known::keep;
use super::notes::{Notes, is_active, notes};
use super::pending::{Completes, Operand};
use super::place::{CODES, Place};
use super::scope::{OF_HOST, Reach, Scope};
use super::shadow::{Access, Kind};
use super::thread::{self, Order, Released, Thread, publish};
use super::{arena, names, report};

/// Orders, as compilers number them.
const RELAXED: u32 = 0;
pub(super) const ACQUIRE: u32 = 2;
pub(super) const RELEASE: u32 = 3;

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
    pub(super) fn forget(&mut self, name: usize, len: usize) {
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

pub(super) fn begin_atomic(
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
static IS_OF_HOST: OnceLock<fn(usize) -> bool> = OnceLock::new();

/// Sets how a word of the host is known. The test locks memory: so it is made before the detector's state is locked, and never
/// where memory is locked.
pub(crate) fn know_words_of_host(test: fn(usize) -> bool) {
    IS_OF_HOST.get_or_init(|| test);
}

pub(super) fn is_of_host(at: usize) -> bool {
    IS_OF_HOST.get().is_some_and(|test| test(at))
}

/// An atomic operation of a thread that was done: what it has read.
pub(crate) fn after_atomic(thread: &mut Thread, at: usize, operation: Atomic, order: u32) {
    let of_host = operation != Atomic::Store && is_of_host(at);
    end_atomic(thread, at, operation, (order, of_host));
}

pub(super) fn end_atomic(
    thread: &mut Thread,
    at: usize,
    operation: Atomic,
    (order, of_host): (u32, bool),
) {
    if operation != Atomic::Store && is_active() {
        let order = Order::of(order);
        let mut notes = notes();
        let name = notes.byte(at);
        notes.shadow.see(name, thread.agent);
        let new = notes.unread(thread, name, order, of_host);
        drop(notes);
        thread.reads(&new, order);
    }
    thread.end_scope();
}

impl Notes {
    /// The releases that are published in a word, given by its name, as far as a thread has not read them yet. In a word that other
    /// processes may write, too, their hosts may have passed on what they were told: their writes are not seen.
    fn unread(
        &mut self,
        thread: &Thread,
        name: usize,
        order: Order,
        of_host: bool,
    ) -> Vec<Released> {
        let host = of_host.then(|| Arc::clone(self.known()));
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
            all.extend(host.map(|known| Released::of_host(&copy(&known))));
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
    if thread.moves_operands() || thread.was_noted(bytes, kind, reach.scope, notes.forgets) {
        return;
    }
    let access = Access::new(
        thread.stamp(),
        kind,
        reach,
        (notes.place(place.pc), place.len),
    );
    compare(notes, place.at, access, thread.before());
}

/// Compares an access with those that were before it, notes it, and tells of a race.
fn compare(notes: &mut Notes, at: usize, access: Access, before: &Clock) {
    let end = at.saturating_add(access.len);
    let mut part = at;
    while part < end {
        let (name, length) = notes.bytes(part, end - part);
        if let Some(other) = notes.shadow.note(name, length, access, before) {
            return tell(notes, (part, name), &access, &other);
        }
        part += length;
    }
}

fn tell(notes: &mut Notes, (at, name): (usize, usize), access: &Access, other: &Access) {
    let (pc, least) = (access.pc.max(other.pc), access.pc.min(other.pc));
    // A copy has no place in the program: one report for each page.
    let page = if least < CODES { name & !4095 } else { 0 };
    let places = (least, pc, page);
    let is_new = notes.told.insert(places);
    arena::inside(false, || {
        // Another process may have told it of its own work.
        report::count(places);
        if is_new {
            report::tell(notes, at, access, other);
        }
    });
}

impl Notes {
    /// The name of a place in code; a code stays what it is.
    fn place(&mut self, pc: usize) -> usize {
        match pc {
            code if code < CODES => code,
            pc => self.code(pc),
        }
    }
}

/// A thread makes a nonblocking call for bytes. `by_copy`: a copy of the host's will move them.
pub(crate) fn operand(
    thread: &mut Thread,
    place: Place,
    operand: Operand,
    (writes, by_copy): (bool, bool),
) {
    let Place { at, len, pc } = place;
    if !is_active() || len == 0 {
        return;
    }
    // As the device library moves them: somebody may wait for a word, and a get that is repeated sees what has come.
    let is_word = matches!(len, 1 | 2 | 4 | 8) && at.is_multiple_of(len);
    let atomic = match writes {
        true => is_word,
        false => operand == Operand::Fetched,
    };
    let (stamp, before) = thread.calls_for(operand);
    let mut notes = notes();
    notes.pending.add(thread.agent);
    let kind = Kind { writes, atomic };
    let place = (notes.place(pc), len);
    let access = Access::new(stamp, kind, thread.place(), place).by_copy(by_copy);
    compare(&mut notes, at, access, &before);
}

impl Notes {
    /// An access of the host's. `by_copy`: a copy will carry it out.
    pub(super) fn host_touches(
        &mut self,
        place: Place,
        stamp: Stamp,
        (writes, by_copy): (bool, bool),
        before: &Clock,
    ) {
        let kind = Kind {
            writes,
            atomic: false,
        };
        let at = (self.place(place.pc), place.len);
        let access = Access::new(stamp, kind, OF_HOST, at).by_copy(by_copy);
        compare(self, place.at, access, before);
    }
}

/// A call of a thread ends the use of operands of nonblocking calls.
pub(crate) fn completes(thread: &mut Thread, by: Completes) {
    if is_active() {
        let notes = notes();
        arena::inside(false, || {
            thread.completes(|clock| notes.complete(clock, by));
        });
    }
}
