//! A program as a set of events and their partial order. A program has no branches, so each word
//! that it reads or writes is one event, and the order that the contract gives within a PE is
//! fixed.

use std::collections::BTreeMap;

use crate::program::{
    Cmp, Context, Fetching, Meeting, MemoryModel, Place, Program, Register, Statement, Update,
    Words, limits,
};

/// A set of events, by index.
pub(crate) type Set = u128;

pub(crate) const fn only(event: usize) -> Set {
    1 << event
}

/// The action of an event. Cells and registers are indices into [`Events::cells`] and
/// [`Events::registers`].
#[derive(Clone, Copy, Debug)]
pub(crate) enum Action {
    Write(usize, u64),
    Update(usize, Update, u64),
    Read(usize, usize),
    Exchange(usize, Fetching, usize),
    Test(usize, Cmp, u64, usize),
    Wait(usize, Cmp, u64, Option<usize>),
    /// Acquires a lock that is free.
    Lock(usize),
    /// Copies a broadcast's word: from, to. No program variable is on one of the two sides.
    Copy(usize, usize),
    /// All PEs have entered a collective call; for a scan, those up to this PE.
    Meet,
}

impl Action {
    pub fn reads(self) -> Option<usize> {
        match self {
            Action::Write(..) | Action::Update(_, Update::Set, _) | Action::Meet => None,
            Action::Update(cell, ..)
            | Action::Read(cell, _)
            | Action::Exchange(cell, ..)
            | Action::Test(cell, ..)
            | Action::Wait(cell, ..)
            | Action::Lock(cell)
            | Action::Copy(cell, _) => Some(cell),
        }
    }

    pub fn writes(self) -> Option<usize> {
        match self {
            Action::Write(cell, _)
            | Action::Update(cell, ..)
            | Action::Exchange(cell, ..)
            | Action::Lock(cell)
            | Action::Copy(_, cell) => Some(cell),
            Action::Read(..) | Action::Test(..) | Action::Wait(..) | Action::Meet => None,
        }
    }

    /// The value that it writes, if it is known before the event is performed.
    fn known_value(self) -> Option<u64> {
        match self {
            Action::Write(_, value) | Action::Update(_, Update::Set, value) => Some(value),
            _ => None,
        }
    }

    fn conflicts(self, other: Action) -> bool {
        let hits = |writes: Option<usize>, by: Action| {
            writes.is_some() && (by.reads() == writes || by.writes() == writes)
        };
        hits(self.writes(), other) || hits(other.writes(), self)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Event {
    /// The PE of the event; `None` for a meeting of all.
    pub pe: Option<usize>,
    /// The index of the PE's statement.
    pub statement: usize,
    pub action: Action,
    /// The events that are performed before it.
    pub after: Set,
    /// For a read: this PE's own earlier puts to the word, which a read from memory waits for.
    pub flush: Set,
    /// For a read: this PE's last write to the word, whose value may be forwarded while it is in
    /// flight.
    pub forward: Option<Own>,
    /// Events on the same word that may come before or after this one, where one of the two writes.
    pub conflicts: Set,
}

/// A write of the PE that reads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Own {
    pub write: usize,
    pub value: u64,
}

/// A program's events in one memory model.
#[derive(Debug)]
pub(crate) struct Events {
    pub all: Vec<Event>,
    /// The cells' words; the observed words come first.
    pub cells: Vec<Place>,
    /// For each cell, the events that read it.
    pub readers: Vec<Set>,
    pub registers: Vec<Register>,
}

/// An issued operation that its PE did not wait for, as fence and quiet need it.
#[derive(Clone, Copy)]
struct Issued {
    event: usize,
    kind: Kind,
    context: Context,
    target: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A store of the PE to its own memory, which belongs to no context.
    Store,
    /// A put, put-with-signal or atomic.
    Update,
    /// A nonblocking put, put-with-signal or atomic.
    NbiUpdate,
    /// A nonblocking operation that only reads: no fence orders it.
    NbiRead,
}

/// The state of one PE's translation, statement by statement.
struct Thread {
    pe: usize,
    /// The events that precede all later ones.
    before: Set,
    /// The relaxed model's current run of blocking reads, which are unordered among themselves.
    run: Set,
    issued: Vec<Issued>,
    /// The events that a fence ordered before later operations, by context and target.
    fenced: [[Set; limits::PES]; limits::CONTEXTS],
    /// The events that a fence ordered before later stores of this PE.
    fenced_stores: Set,
    /// The PE's last write to each cell.
    last: BTreeMap<usize, usize>,
    /// The PE's blocking puts to each cell.
    puts: BTreeMap<usize, Vec<Issued>>,
}

impl Thread {
    /// The events that precede a later operation of this kind.
    fn order(&self, kind: Kind, context: Context, target: usize, model: MemoryModel) -> Set {
        let fenced = match kind {
            Kind::Store => self.fenced_stores,
            _ if is_fenced(kind, model) => self.fenced[context.0][target],
            _ => 0,
        };
        self.before | fenced
    }

    fn fence(&mut self, context: Context, model: MemoryModel) {
        for issued in &self.issued {
            let event = only(issued.event);
            match issued.kind {
                // Events towards all PEs: any of them may learn of this PE's store.
                Kind::Store => {
                    self.fenced[context.0].iter_mut().for_each(|t| *t |= event);
                    self.fenced_stores |= event;
                }
                kind if issued.context == context && is_fenced(kind, model) => {
                    self.fenced[context.0][issued.target] |= event;
                    if issued.target == self.pe {
                        self.fenced_stores |= event;
                    }
                }
                _ => {}
            }
        }
    }

    /// Waits for issued operations: on a context (or only stores), towards some PEs (or all).
    fn quiet(&mut self, context: Option<Context>, pes: Option<&[usize]>) {
        for issued in &self.issued {
            let ours = issued.kind == Kind::Store || Some(issued.context) == context;
            if ours && pes.is_none_or(|pes| pes.contains(&issued.target)) {
                self.before |= only(issued.event);
            }
        }
    }
}

/// Whether a fence orders operations of this kind (M17, M18).
fn is_fenced(kind: Kind, model: MemoryModel) -> bool {
    match kind {
        Kind::Store | Kind::Update => true,
        Kind::NbiUpdate => model == MemoryModel::Ordered,
        Kind::NbiRead => false,
    }
}

/// The events of the collectives, which belong to several PEs.
enum Collective {
    Meets(usize),
    /// A scan: for each PE, its meeting with those before it.
    Scans(Vec<usize>),
    /// A broadcast.
    Gives {
        root: usize,
        /// For each word, the root's copy to a cell that only this event writes.
        given: Vec<usize>,
        /// For each PE and word, the copy from that cell.
        taken: Vec<Vec<usize>>,
    },
}

struct Builder<'p> {
    program: &'p Program,
    model: MemoryModel,
    events: Events,
    collectives: Vec<Collective>,
}

impl Events {
    pub fn of(program: &Program, model: MemoryModel) -> Events {
        let mut builder = Builder {
            program,
            model,
            events: Events {
                all: Vec::new(),
                cells: Vec::new(),
                readers: Vec::new(),
                registers: program.registers(),
            },
            collectives: Vec::new(),
        };
        for &place in program.observed() {
            builder.cell(place);
        }
        builder.collectives();
        for pe in 0..program.pes() {
            builder.thread(pe);
        }
        builder.events.close();
        builder.events
    }

    /// Makes `after` transitive, and finds the conflicts and each cell's readers.
    fn close(&mut self) {
        self.readers = vec![0; self.cells.len()];
        for (index, event) in self.all.iter().enumerate() {
            if let Some(cell) = event.action.reads() {
                self.readers[cell] |= only(index);
            }
        }
        let events = self.all.len();
        loop {
            let mut grew = false;
            for i in 0..events {
                let direct = self.all[i].after;
                let more = (0..events)
                    .filter(|&j| direct & only(j) != 0)
                    .fold(direct, |set, j| set | self.all[j].after);
                grew |= more != direct;
                self.all[i].after = more;
            }
            if !grew {
                break;
            }
        }
        for i in 0..events {
            for j in 0..events {
                let (a, b) = (&self.all[i], &self.all[j]);
                let ordered = a.after & only(j) != 0 || b.after & only(i) != 0;
                if i != j && !ordered && a.action.conflicts(b.action) {
                    self.all[i].conflicts |= only(j);
                }
            }
        }
    }
}

impl Builder<'_> {
    fn cell(&mut self, place: Place) -> usize {
        let cells = &mut self.events.cells;
        cells.iter().position(|c| *c == place).unwrap_or_else(|| {
            cells.push(place);
            cells.len() - 1
        })
    }

    fn own(&mut self, words: Words, pe: usize) -> usize {
        self.cell(Place { words, pe })
    }

    fn register(&self, register: Register) -> usize {
        // The list is sorted and holds every register of the program.
        self.events.registers.partition_point(|r| *r < register)
    }

    fn event(&mut self, pe: Option<usize>, statement: usize, action: Action, after: Set) -> usize {
        self.events.all.push(Event {
            pe,
            statement,
            action,
            after,
            flush: 0,
            forward: None,
            conflicts: 0,
        });
        self.events.all.len() - 1
    }

    /// Creates the meetings and copies before the PEs' own events, since each PE refers to them.
    /// The PEs call the same collectives, so PE 0's stand for all.
    fn collectives(&mut self) {
        for (statement, called) in self.program.statements(0).iter().enumerate() {
            let collective = match *called {
                Statement::Meet(meeting) if meeting.is_scan() => {
                    let pes = 0..self.program.pes();
                    let meet = |pe| self.event(Some(pe), 0, Action::Meet, 0);
                    Collective::Scans(pes.map(meet).collect())
                }
                Statement::Meet(_) => {
                    Collective::Meets(self.event(None, statement, Action::Meet, 0))
                }
                Statement::Broadcast { to, from, root } => self.broadcast((to, from), root),
                _ => continue,
            };
            self.collectives.push(collective);
        }
    }

    /// A broadcast's copies. Their PEs set the statements' indices.
    fn broadcast(&mut self, (to, from): (Words, Words), root: usize) -> Collective {
        let pes = self.program.pes();
        let hidden: Vec<usize> = (0..from.count).map(|_| self.hidden(root)).collect();
        let give = |(from, hidden): (Words, &usize)| {
            let from = self.own(from, root);
            self.event(Some(root), 0, Action::Copy(from, *hidden), 0)
        };
        let given: Vec<usize> = from.each().zip(&hidden).map(give).collect();
        let take = |pe: usize| -> Vec<usize> {
            let words = to.each().zip(hidden.iter().zip(&given));
            let take = |(to, (hidden, given)): (Words, (&usize, &usize))| {
                let to = self.own(to, pe);
                self.event(Some(pe), 0, Action::Copy(*hidden, to), only(*given))
            };
            words.map(take).collect()
        };
        Collective::Gives {
            root,
            taken: (0..pes).map(take).collect(),
            given,
        }
    }

    /// The cell of the program's lock: 1 while a PE holds it.
    fn lock(&mut self) -> usize {
        let words = Words {
            variable: usize::MAX,
            first: usize::MAX,
            count: 1,
        };
        self.own(words, 0)
    }

    /// A cell that no statement names.
    fn hidden(&mut self, pe: usize) -> usize {
        let words = Words {
            variable: usize::MAX,
            first: self.events.cells.len(),
            count: 1,
        };
        self.cell(Place { words, pe })
    }

    fn thread(&mut self, pe: usize) {
        let mut thread = Thread {
            pe,
            before: 0,
            run: 0,
            issued: Vec::new(),
            fenced: [[0; limits::PES]; limits::CONTEXTS],
            fenced_stores: 0,
            last: BTreeMap::new(),
            puts: BTreeMap::new(),
        };
        let mut met = 0;
        let program = self.program;
        for (at, statement) in program.statements(pe).iter().enumerate() {
            if !(self.model == MemoryModel::Relaxed && statement.is_blocking_read()) {
                thread.before |= std::mem::take(&mut thread.run);
            }
            match statement {
                Statement::Meet(Meeting::BarrierAll) => {
                    thread.quiet(Some(Context::default()), None);
                }
                Statement::Meet(_) => thread.quiet(None, None),
                Statement::Broadcast { .. } => {}
                _ => {
                    self.statement(&mut thread, at, statement);
                    continue;
                }
            }
            self.meet(&mut thread, at, met);
            met += 1;
        }
    }

    /// Adds one PE's part of a collective.
    fn meet(&mut self, thread: &mut Thread, at: usize, which: usize) {
        let (events, pe) = (&mut self.events.all, thread.pe);
        match &self.collectives[which] {
            Collective::Meets(meet) => {
                events[*meet].after |= thread.before;
                thread.before |= only(*meet);
            }
            Collective::Scans(meets) => {
                events[meets[pe]].statement = at;
                for &meet in &meets[pe..] {
                    events[meet].after |= thread.before;
                }
                thread.before |= only(meets[pe]);
            }
            Collective::Gives { root, given, taken } => {
                if *root == pe {
                    // A PE reads its own stores.
                    thread.quiet(None, None);
                }
                let before = thread.before;
                let given = given.iter().filter(|_| *root == pe);
                for &copy in given.chain(&taken[pe]) {
                    // A PE's own earlier stores do not overwrite the received word.
                    let cell = events[copy].action.writes();
                    let stores = thread.issued.iter().filter(|i| i.kind == Kind::Store);
                    let undone = stores.filter(|i| events[i.event].action.writes() == cell);
                    let stored = undone.fold(0, |set, i| set | only(i.event));
                    events[copy].statement = at;
                    events[copy].after |= before | stored;
                    thread.before |= only(copy);
                    if let Some(cell) = events[copy].action.writes() {
                        thread.last.insert(cell, copy);
                    }
                }
            }
        }
    }

    fn statement(&mut self, thread: &mut Thread, at: usize, statement: &Statement) {
        let pe = thread.pe;
        let default = Context::default();
        let kind = |nbi: bool| if nbi { Kind::NbiUpdate } else { Kind::Update };
        match *statement {
            Statement::Put {
                to,
                ref values,
                nbi,
                context,
            } => {
                self.writes(thread, at, to, values, kind(nbi), context);
            }
            Statement::Write { to, ref values } => {
                let to = Place { words: to, pe };
                self.writes(thread, at, to, values, Kind::Store, default);
            }
            Statement::PutSignal {
                to,
                ref values,
                signal,
                op,
                value,
                nbi,
                context,
            } => {
                let signal = (signal, op.update(), value);
                self.puts_signal(thread, at, (to, values, signal), kind(nbi), context);
            }
            Statement::PutCounted {
                to,
                ref values,
                counter,
                context,
            } => {
                let signal = (counter, Update::Add, 1);
                self.puts_signal(thread, at, (to, values, signal), Kind::Update, context);
            }
            Statement::WaitCounted { counter, n } => {
                let cell = self.own(counter, pe);
                self.look(thread, at, Action::Wait(cell, Cmp::Ge, n, None));
                let less = Action::Update(cell, Update::Add, n.wrapping_neg());
                let event = self.event(Some(pe), at, less, thread.before);
                thread.before |= only(event);
            }
            Statement::SetLock => {
                let lock = Action::Lock(self.lock());
                let event = self.event(Some(pe), at, lock, thread.before);
                thread.before |= only(event);
            }
            Statement::ClearLock => {
                thread.quiet(Some(default), None);
                let clear = Action::Write(self.lock(), 0);
                let event = self.event(Some(pe), at, clear, thread.before);
                thread.before |= only(event);
            }
            Statement::Update {
                update,
                at: place,
                value,
                context,
            } => {
                let action = Action::Update(self.cell(place), update, value);
                self.issue(thread, at, action, Kind::Update, context, place.pe);
            }
            Statement::Get {
                ref into,
                from,
                nbi,
                context,
            } => self.reads(thread, at, into, from, nbi, context),
            Statement::Read { ref into, from } => {
                let from = Place { words: from, pe };
                self.reads(thread, at, into, from, false, default);
            }
            Statement::Fetch {
                into,
                fetching: Fetching::Fetch,
                at: place,
                nbi,
                context,
            } => self.reads(thread, at, &[into], place, nbi, context),
            Statement::Fetch {
                into,
                fetching,
                at: place,
                nbi,
                context,
            } => {
                let action = Action::Exchange(self.cell(place), fetching, self.register(into));
                let event = self.issue(thread, at, action, kind(nbi), context, place.pe);
                if !nbi {
                    self.waits_for(thread, event);
                }
            }
            Statement::SignalFetch { into, word } => {
                let action = Action::Read(self.own(word, pe), self.register(into));
                self.look(thread, at, action);
            }
            Statement::Test {
                into,
                word,
                cmp,
                value,
            } => {
                let action = Action::Test(self.own(word, pe), cmp, value, self.register(into));
                self.look(thread, at, action);
            }
            Statement::WaitUntil { word, cmp, value } => {
                let action = Action::Wait(self.own(word, pe), cmp, value, None);
                self.look(thread, at, action);
            }
            Statement::SignalWaitUntil {
                into,
                word,
                cmp,
                value,
            } => {
                let into = into.map(|register| self.register(register));
                let action = Action::Wait(self.own(word, pe), cmp, value, into);
                self.look(thread, at, action);
            }
            Statement::Fence { context } => thread.fence(context, self.model),
            Statement::Quiet { context } => thread.quiet(Some(context), None),
            Statement::PeQuiet { ref pes, context } => thread.quiet(Some(context), Some(pes)),
            // `thread` has handled these.
            Statement::Meet(_) | Statement::Broadcast { .. } => {}
        }
    }

    /// Issues an operation that its PE does not wait for.
    fn issue(
        &mut self,
        thread: &mut Thread,
        at: usize,
        action: Action,
        kind: Kind,
        context: Context,
        target: usize,
    ) -> usize {
        let after = thread.order(kind, context, target, self.model);
        let event = self.event(Some(thread.pe), at, action, after);
        let issued = Issued {
            event,
            kind,
            context,
            target,
        };
        thread.issued.push(issued);
        if let Some(cell) = action.writes() {
            thread.last.insert(cell, event);
            if matches!(action, Action::Write(..)) && kind != Kind::NbiUpdate {
                thread.puts.entry(cell).or_default().push(issued);
            }
        }
        event
    }

    /// Adds a put's words, and then its signal: the word, its update and the operand.
    fn puts_signal(
        &mut self,
        thread: &mut Thread,
        at: usize,
        (to, values, (signal, update, value)): (Place, &[u64], (Words, Update, u64)),
        kind: Kind,
        context: Context,
    ) {
        let data = self.writes(thread, at, to, values, kind, context);
        let action = Action::Update(self.own(signal, to.pe), update, value);
        let event = self.issue(thread, at, action, kind, context, to.pe);
        self.events.all[event].after |= data;
    }

    /// Adds a put's words, in any order.
    fn writes(
        &mut self,
        thread: &mut Thread,
        at: usize,
        to: Place,
        values: &[u64],
        kind: Kind,
        context: Context,
    ) -> Set {
        let mut events = 0;
        for (words, &value) in to.words.each().zip(values) {
            let action = Action::Write(self.own(words, to.pe), value);
            events |= only(self.issue(thread, at, action, kind, context, to.pe));
        }
        events
    }

    /// Adds a get's words, in any order.
    fn reads(
        &mut self,
        thread: &mut Thread,
        at: usize,
        into: &[Register],
        from: Place,
        nbi: bool,
        context: Context,
    ) {
        let mut events = 0;
        for (words, &register) in from.words.each().zip(into) {
            let action = Action::Read(self.own(words, from.pe), self.register(register));
            let event = self.issue(thread, at, action, Kind::NbiRead, context, from.pe);
            self.sees_own(thread, event, context, !nbi);
            events |= only(event);
        }
        if !nbi {
            self.waits_for_all(thread, events);
        }
    }

    /// Adds a wait or test, or another ordered read of the PE's own memory.
    fn look(&mut self, thread: &mut Thread, at: usize, action: Action) {
        let event = self.event(Some(thread.pe), at, action, thread.before);
        self.sees_own(thread, event, Context::default(), true);
        thread.before |= only(event);
    }

    /// Notes which of this PE's own writes a read of the same word may or must see.
    fn sees_own(&mut self, thread: &Thread, event: usize, context: Context, blocking: bool) {
        let Some(cell) = self.events.all[event].action.reads() else {
            return;
        };
        let last = thread.last.get(&cell).copied();
        let own = last.and_then(|write| {
            let value = self.events.all[write].action.known_value()?;
            Some(Own { write, value })
        });
        let puts = thread.puts.get(&cell).into_iter().flatten();
        let puts = puts.filter(|p| p.kind == Kind::Store || p.context == context);
        let flush = puts.fold(0, |set, p| set | only(p.event));
        let read = &mut self.events.all[event];
        read.forward = own;
        read.flush = if blocking { flush } else { 0 };
    }

    fn waits_for(&self, thread: &mut Thread, event: usize) {
        self.waits_for_all(thread, only(event));
    }

    /// Lets the PE go on when these are performed; but the relaxed model's reads do not wait for
    /// each other.
    fn waits_for_all(&self, thread: &mut Thread, events: Set) {
        match self.model {
            MemoryModel::Ordered => thread.before |= events,
            MemoryModel::Relaxed => thread.run |= events,
        }
    }
}
