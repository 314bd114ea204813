//! The translation of a program to events: one for each word that it reads or writes, and one for
//! each collective call.

mod thread;

use crate::events::{Action, Event, Events, Own, Set, only};
use crate::program::{
    Context, Fetching, Meeting, MemoryModel, Place, Program, Register, Statement, Update, Words,
};
use oxshmem::Cmp;
use thread::{Issued, Kind, Thread};

/// The events of a program in one memory model.
pub(crate) fn events(program: &Program, model: MemoryModel) -> Events {
    let mut translation = Translation {
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
        translation.cell(place);
    }
    translation.collectives();
    for pe in 0..program.pes() {
        translation.thread(pe);
    }
    translation.events.close();
    translation.events
}

/// The events of the collectives, which belong to several PEs.
enum CollectiveEvents {
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

/// A translation under construction.
struct Translation<'p> {
    program: &'p Program,
    model: MemoryModel,
    events: Events,
    collectives: Vec<CollectiveEvents>,
}

impl Translation<'_> {
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
                    CollectiveEvents::Scans(pes.map(meet).collect())
                }
                Statement::Meet(_) => {
                    CollectiveEvents::Meets(self.event(None, statement, Action::Meet, 0))
                }
                Statement::Broadcast { to, from, root } => self.broadcast((to, from), root),
                _ => continue,
            };
            self.collectives.push(collective);
        }
    }

    /// A broadcast's copies. Their PEs set the statements' indices.
    fn broadcast(&mut self, (to, from): (Words, Words), root: usize) -> CollectiveEvents {
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
        CollectiveEvents::Gives {
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
        let mut thread = Thread::new(pe);
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
            CollectiveEvents::Meets(meet) => {
                events[*meet].after |= thread.before;
                thread.before |= only(*meet);
            }
            CollectiveEvents::Scans(meets) => {
                events[meets[pe]].statement = at;
                for &meet in &meets[pe..] {
                    events[meet].after |= thread.before;
                }
                thread.before |= only(meets[pe]);
            }
            CollectiveEvents::Gives { root, given, taken } => {
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
        match statement {
            Statement::Put { .. }
            | Statement::Write { .. }
            | Statement::PutSignal { .. }
            | Statement::PutCounted { .. }
            | Statement::Get { .. }
            | Statement::Read { .. } => self.transfer(thread, at, statement),
            Statement::Update { .. } | Statement::Fetch { .. } => {
                self.atomic(thread, at, statement);
            }
            Statement::WaitCounted { .. }
            | Statement::WaitUntil { .. }
            | Statement::SignalWaitUntil { .. }
            | Statement::SignalFetch { .. }
            | Statement::Test { .. } => self.wait(thread, at, statement),
            Statement::SetLock | Statement::ClearLock => self.lock_call(thread, at, statement),
            Statement::Fence { context } => thread.fence(*context, self.model),
            Statement::Quiet { context } => thread.quiet(Some(*context), None),
            Statement::PeQuiet { pes, context } => thread.quiet(Some(*context), Some(pes)),
            // `thread` has handled these.
            Statement::Meet(_) | Statement::Broadcast { .. } => {}
        }
    }

    /// Adds a put, a get, or an access of the PE to its own memory.
    fn transfer(&mut self, thread: &mut Thread, at: usize, statement: &Statement) {
        let pe = thread.pe;
        let default = Context::default();
        match *statement {
            Statement::Put {
                to,
                ref values,
                nbi,
                context,
            } => {
                self.writes(thread, at, to, values, update(nbi), context);
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
                self.puts_signal(thread, at, (to, values, signal), update(nbi), context);
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
            _ => {}
        }
    }

    /// Adds an atomic.
    fn atomic(&mut self, thread: &mut Thread, at: usize, statement: &Statement) {
        match *statement {
            Statement::Update {
                update,
                at: place,
                value,
                context,
            } => {
                let action = Action::Update(self.cell(place), update, value);
                self.issue(thread, at, action, Kind::Update, context, place.pe);
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
                let event = self.issue(thread, at, action, update(nbi), context, place.pe);
                if !nbi {
                    self.waits_for(thread, event);
                }
            }
            _ => {}
        }
    }

    /// Adds a wait or a test.
    fn wait(&mut self, thread: &mut Thread, at: usize, statement: &Statement) {
        let pe = thread.pe;
        match *statement {
            Statement::WaitCounted { counter, n } => {
                let cell = self.own(counter, pe);
                self.read_own(thread, at, Action::Wait(cell, Cmp::Ge, n, None));
                let less = Action::Update(cell, Update::Add, n.wrapping_neg());
                let event = self.event(Some(pe), at, less, thread.before);
                thread.before |= only(event);
            }
            Statement::SignalFetch { into, word } => {
                let action = Action::Read(self.own(word, pe), self.register(into));
                self.read_own(thread, at, action);
            }
            Statement::Test {
                into,
                word,
                cmp,
                value,
            } => {
                let action = Action::Test(self.own(word, pe), cmp, value, self.register(into));
                self.read_own(thread, at, action);
            }
            Statement::WaitUntil { word, cmp, value } => {
                let action = Action::Wait(self.own(word, pe), cmp, value, None);
                self.read_own(thread, at, action);
            }
            Statement::SignalWaitUntil {
                into,
                word,
                cmp,
                value,
            } => {
                let into = into.map(|register| self.register(register));
                let action = Action::Wait(self.own(word, pe), cmp, value, into);
                self.read_own(thread, at, action);
            }
            _ => {}
        }
    }

    /// Adds the acquisition or the release of the lock.
    fn lock_call(&mut self, thread: &mut Thread, at: usize, statement: &Statement) {
        let pe = thread.pe;
        let lock = self.lock();
        let action = if *statement == Statement::SetLock {
            Action::Lock(lock)
        } else {
            thread.quiet(Some(Context::default()), None);
            Action::Write(lock, 0)
        };
        let event = self.event(Some(pe), at, action, thread.before);
        thread.before |= only(event);
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
    fn read_own(&mut self, thread: &mut Thread, at: usize, action: Action) {
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

/// The kind of an update.
fn update(nbi: bool) -> Kind {
    if nbi { Kind::NbiUpdate } else { Kind::Update }
}
