//! The parser of statements.

use oxshmem::Cmp;

use super::{Line, Parser, Token, quote, register_of};
use crate::error::Error;
use crate::limits;
use crate::print::COMPARISONS;
use crate::program::{
    Context, Fetching, Meeting, Place, Register, SignalOp, Statement, Update, Words,
};

/// The calls, for a message.
const CALLS: &str = "put, get, set, add, and, or, xor, fetch, swap, compare_swap, fetch_add, \
    fetch_and, fetch_or, fetch_xor, put_signal, write, read, wait_until, signal_wait_until, test, \
    signal_fetch, put_counted, wait_counted, set_lock, clear_lock, fence, quiet, pe_quiet, barrier_all, sync_all, \
    team_sync, reduce, fcollect, alltoall, collect, alltoalls, reduce_scatter, inscan, exscan, \
    broadcast; `_nbi` after put, get, put_signal and the fetching ones";

impl Parser {
    /// `[r0 … =] [ctx1] call …`
    pub(super) fn statement(&mut self, line: &mut Line<'_>, pe: usize) -> Result<(), Error> {
        if self.lines.iter().map(Vec::len).sum::<usize>() == limits::STATEMENTS {
            let remedy = format!("{} at most, of all PEs together", limits::STATEMENTS);
            return Err(line.here("too many statements", remedy));
        }
        let start = line.peek();
        let into = self.registers(line)?;
        let context = context(line)?;
        let call = line.next("a call")?;
        let statement = self.call(line, call, &into, context)?;
        line.end()?;
        if context.is_some() && !takes_context(&statement) {
            let problem = format!("`{}` has no context", call.text);
            return Err(line.at(call, problem, "leave out what stands before it"));
        }
        let wanted = gives(&statement);
        if into.len() != wanted {
            let optional = matches!(statement, Statement::SignalWaitUntil { .. });
            if !(optional && into.is_empty()) {
                let problem = format!(
                    "`{}` gives {wanted} values, and {} registers stand before it",
                    call.text,
                    into.len()
                );
                let remedy = match wanted {
                    0 => "leave out the registers and the `=`".to_string(),
                    1 => format!("write `r0 = {} …`", call.text),
                    _ => format!("write `r0 r1 = {} …`, one for each word", call.text),
                };
                return Err(line.at(start.unwrap_or(call), problem, remedy));
            }
        }
        self.steps += steps(&statement);
        if self.steps > limits::STEPS {
            let problem = format!(
                "up to here the program reads or writes {} words",
                self.steps
            );
            let remedy = format!("{} at most: use fewer calls or words", limits::STEPS);
            return Err(line.at(call, problem, remedy));
        }
        self.push(line, pe, statement);
        Ok(())
    }

    /// `r0 r1 =`, or nothing.
    pub(super) fn registers(&mut self, line: &mut Line<'_>) -> Result<Vec<Register>, Error> {
        let mut into = Vec::new();
        while let Some(token) = line.peek() {
            let Some(register) = register_of(token.text) else {
                break;
            };
            line.optional();
            if self.registers.contains(&register) {
                let problem = format!("{register} is written twice");
                let remedy = "use each register once in a program, so that outcomes are clear";
                return Err(line.at(token, problem, remedy));
            }
            self.registers.push(register);
            into.push(register);
        }
        if !into.is_empty() {
            line.word("=")?;
        }
        Ok(into)
    }

    fn call(
        &mut self,
        line: &mut Line<'_>,
        call: Token<'_>,
        into: &[Register],
        context: Option<Context>,
    ) -> Result<Statement, Error> {
        let context = context.unwrap_or_default();
        let (name, nbi) = match call.text.strip_suffix("_nbi") {
            Some(name) => (name, true),
            None => (call.text, false),
        };
        if let Some(statement) = self.transfer(line, name, into, nbi, context)? {
            return Ok(statement);
        }
        if let Some(statement) = self.fetching(line, name, one(into), nbi, context)? {
            return Ok(statement);
        }
        // These calls have no nonblocking form.
        let update = Update::ALL.into_iter().find(|u| u.to_string() == call.text);
        if let Some(update) = update {
            return Ok(Statement::Update {
                update,
                at: self.next_word_at(line)?,
                value: value(line)?,
                context,
            });
        }
        let meeting = Meeting::ALL
            .into_iter()
            .find(|m| m.to_string() == call.text);
        if let Some(meeting) = meeting {
            return Ok(Statement::Meet(meeting));
        }
        if let Some(statement) = self.own_words(line, call.text, into)? {
            return Ok(statement);
        }
        Ok(match call.text {
            "put_counted" => self.put_counted(line, context)?,
            "set_lock" => Statement::SetLock,
            "clear_lock" => Statement::ClearLock,
            "fence" => Statement::Fence { context },
            "quiet" => Statement::Quiet { context },
            "pe_quiet" => self.pe_quiet(line, context)?,
            "broadcast" => self.broadcast(line)?,
            other => {
                let problem = format!("{} is no call", quote(other));
                return Err(line.at(call, problem, format!("they are {CALLS}")));
            }
        })
    }

    /// The put or get of this name; `None` for another name.
    fn transfer(
        &mut self,
        line: &mut Line<'_>,
        name: &str,
        into: &[Register],
        nbi: bool,
        context: Context,
    ) -> Result<Option<Statement>, Error> {
        Ok(Some(match name {
            "put" => {
                let to = self.next_place(line)?;
                let values = self.values(line, to.words)?;
                Statement::Put {
                    to,
                    values,
                    nbi,
                    context,
                }
            }
            "get" => Statement::Get {
                into: into.to_vec(),
                from: self.next_place(line)?,
                nbi,
                context,
            },
            "put_signal" => self.put_signal(line, nbi, context)?,
            _ => return Ok(None),
        }))
    }

    /// The call of this name on the PE's own words; `None` for another name.
    fn own_words(
        &mut self,
        line: &mut Line<'_>,
        name: &str,
        into: &[Register],
    ) -> Result<Option<Statement>, Error> {
        Ok(Some(match name {
            "wait_counted" => Statement::WaitCounted {
                counter: self.next_word(line)?,
                n: value(line)?,
            },
            "write" => {
                let to = self.next_words(line)?;
                let values = self.values(line, to)?;
                Statement::Write { to, values }
            }
            "read" => Statement::Read {
                into: into.to_vec(),
                from: self.next_words(line)?,
            },
            "wait_until" => {
                let (word, cmp, value) = self.comparison(line)?;
                Statement::WaitUntil { word, cmp, value }
            }
            "signal_wait_until" => {
                let (word, cmp, value) = self.comparison(line)?;
                Statement::SignalWaitUntil {
                    into: into.first().copied(),
                    word,
                    cmp,
                    value,
                }
            }
            "test" => {
                let (word, cmp, value) = self.comparison(line)?;
                Statement::Test {
                    into: one(into),
                    word,
                    cmp,
                    value,
                }
            }
            "signal_fetch" => Statement::SignalFetch {
                into: one(into),
                word: self.next_word(line)?,
            },
            _ => return Ok(None),
        }))
    }

    /// The fetching atomic of this name; `None` for another name.
    fn fetching(
        &mut self,
        line: &mut Line<'_>,
        name: &str,
        into: Register,
        nbi: bool,
        context: Context,
    ) -> Result<Option<Statement>, Error> {
        let update = match name {
            "fetch" | "compare_swap" => None,
            "swap" => Some(Update::Set),
            "fetch_add" => Some(Update::Add),
            "fetch_and" => Some(Update::And),
            "fetch_or" => Some(Update::Or),
            "fetch_xor" => Some(Update::Xor),
            _ => return Ok(None),
        };
        let at = self.next_word_at(line)?;
        let fetching = match update {
            Some(update) => Fetching::Update(update, value(line)?),
            None if name == "fetch" => Fetching::Fetch,
            None => Fetching::CompareSwap {
                expected: value(line)?,
                value: value(line)?,
            },
        };
        Ok(Some(Statement::Fetch {
            into,
            fetching,
            at,
            nbi,
            context,
        }))
    }

    /// `d@1 1 2 then set y 1`
    fn put_signal(
        &mut self,
        line: &mut Line<'_>,
        nbi: bool,
        context: Context,
    ) -> Result<Statement, Error> {
        let to = self.next_place(line)?;
        let values = self.values(line, to.words)?;
        line.word("then")?;
        let token = line.next("`set` or `add`")?;
        let op = match token.text {
            "set" => SignalOp::Set,
            "add" => SignalOp::Add,
            other => {
                let problem = format!("a signal cannot be updated by {}", quote(other));
                return Err(line.at(token, problem, "write `then set y 1` or `then add y 1`"));
            }
        };
        let signal = self.beside(line, "the signal", to.words)?;
        Ok(Statement::PutSignal {
            to,
            values,
            signal,
            op,
            value: value(line)?,
            nbi,
            context,
        })
    }

    /// `d@1 1 2 in y`
    fn put_counted(&mut self, line: &mut Line<'_>, context: Context) -> Result<Statement, Error> {
        let to = self.next_place(line)?;
        let values = self.values(line, to.words)?;
        line.word("in")?;
        let counter = self.beside(line, "the counter", to.words)?;
        Ok(Statement::PutCounted {
            to,
            values,
            counter,
            context,
        })
    }

    /// A second word of a put, on the same PE.
    fn beside(
        &mut self,
        line: &mut Line<'_>,
        which: &'static str,
        data: Words,
    ) -> Result<Words, Error> {
        let token = line.next(&format!("{which}, a word of the same PE"))?;
        let words = self.words(line, token, token.text)?;
        let word = self.single(line, token, words)?;
        if word.overlaps(data) {
            let remedy = "use a word of its own, as the call asks for";
            return Err(line.at(token, format!("{which} lies in the data"), remedy));
        }
        Ok(word)
    }

    fn pe_quiet(&mut self, line: &mut Line<'_>, context: Context) -> Result<Statement, Error> {
        let mut token = line.next("the PEs, as in `pe_quiet 1 2`")?;
        let mut pes = Vec::new();
        loop {
            let pe = self.pe_number(line, token, token.text)?;
            if pes.contains(&pe) {
                let problem = format!("PE {pe} is named twice");
                return Err(line.at(token, problem, "name each PE once"));
            }
            pes.push(pe);
            match line.optional() {
                Some(next) => token = next,
                None => return Ok(Statement::PeQuiet { pes, context }),
            }
        }
    }

    /// `x from y@0`
    fn broadcast(&mut self, line: &mut Line<'_>) -> Result<Statement, Error> {
        let to = self.next_words(line)?;
        line.word("from")?;
        let token = line.next("the source and its PE, as in `y@0`")?;
        let Place {
            words: from,
            pe: root,
        } = self.place(line, token, token.text)?;
        if to.count != from.count {
            let problem = format!("{} words to {}", from.count, to.count);
            return Err(line.at(
                token,
                problem,
                "source and destination have the same length",
            ));
        }
        if to != from && to.overlaps(from) {
            let remedy = "use the same words or others";
            return Err(line.at(token, "source and destination overlap", remedy));
        }
        Ok(Statement::Broadcast { to, from, root })
    }

    /// `y == 1`
    pub(super) fn comparison(&mut self, line: &mut Line<'_>) -> Result<(Words, Cmp, u64), Error> {
        let word = self.next_word(line)?;
        let (cmp, value) = compared(line)?;
        Ok((word, cmp, value))
    }

    pub(super) fn next_place(&mut self, line: &mut Line<'_>) -> Result<Place, Error> {
        let token = line.next("a place, as in `x@1`")?;
        self.place(line, token, token.text)
    }

    pub(super) fn next_word_at(&mut self, line: &mut Line<'_>) -> Result<Place, Error> {
        let token = line.next("a word, as in `x@1`")?;
        let place = self.place(line, token, token.text)?;
        self.one_word(line, token, place)
    }

    pub(super) fn next_words(&mut self, line: &mut Line<'_>) -> Result<Words, Error> {
        let token = line.next("a variable of this PE, as in `x`")?;
        self.words(line, token, token.text)
    }

    pub(super) fn next_word(&mut self, line: &mut Line<'_>) -> Result<Words, Error> {
        let token = line.next("a word of this PE, as in `x`")?;
        let words = self.words(line, token, token.text)?;
        self.single(line, token, words)
    }

    /// As many values as words.
    fn values(&self, line: &mut Line<'_>, words: Words) -> Result<Vec<u64>, Error> {
        (0..words.count).map(|_| value(line)).collect()
    }
}

/// The only register of a call. A missing one is stood in for; `statement` checks the number of
/// registers afterwards.
fn one(into: &[Register]) -> Register {
    into.first().copied().unwrap_or(Register(0))
}

/// `== 1`
pub(super) fn compared(line: &mut Line<'_>) -> Result<(Cmp, u64), Error> {
    let token = line.next("a comparison, as in `y == 1`")?;
    let known = COMPARISONS.iter().find(|(_, sign)| *sign == token.text);
    let Some((cmp, _)) = known else {
        let problem = format!("{} is no comparison", quote(token.text));
        return Err(line.at(token, problem, "they are ==, !=, >, >=, < and <="));
    };
    Ok((*cmp, value(line)?))
}

pub(super) fn value(line: &mut Line<'_>) -> Result<u64, Error> {
    let token = line.next("a value")?;
    line.number(token, token.text, "a value")
}

/// `ctx1`, or nothing.
fn context(line: &mut Line<'_>) -> Result<Option<Context>, Error> {
    let Some(token) = line.peek().filter(|t| t.text.starts_with("ctx")) else {
        return Ok(None);
    };
    line.optional();
    let known = (1..limits::CONTEXTS).find(|n| token.text == format!("ctx{n}"));
    known.map(|n| Some(Context(n))).ok_or_else(|| {
        let problem = format!("{} is no context", quote(token.text));
        let last = limits::CONTEXTS - 1;
        let remedy = format!("they are ctx1 to ctx{last}; the default one is not named");
        line.at(token, problem, remedy)
    })
}

fn takes_context(statement: &Statement) -> bool {
    matches!(
        statement,
        Statement::Put { .. }
            | Statement::Get { .. }
            | Statement::Update { .. }
            | Statement::Fetch { .. }
            | Statement::PutSignal { .. }
            | Statement::PutCounted { .. }
            | Statement::Fence { .. }
            | Statement::Quiet { .. }
            | Statement::PeQuiet { .. }
    )
}

/// The number of registers that it fills.
fn gives(statement: &Statement) -> usize {
    match statement {
        Statement::Get { from, .. } => from.words.count,
        Statement::Read { from, .. } => from.count,
        Statement::Fetch { .. }
        | Statement::Test { .. }
        | Statement::SignalFetch { .. }
        | Statement::SignalWaitUntil { .. } => 1,
        _ => 0,
    }
}

/// An upper bound of its steps in the model: a meeting, and a root's copies, count once per PE
/// here.
fn steps(statement: &Statement) -> usize {
    match statement {
        Statement::Put { to, .. } => to.words.count,
        Statement::PutSignal { to, .. } | Statement::PutCounted { to, .. } => to.words.count + 1,
        Statement::WaitCounted { .. } => 2,
        Statement::Get { from, .. } => from.words.count,
        Statement::Write { to, .. } => to.count,
        Statement::Read { from, .. } => from.count,
        Statement::Fence { .. } | Statement::Quiet { .. } | Statement::PeQuiet { .. } => 0,
        Statement::Broadcast { to, .. } => 2 * to.count,
        _ => 1,
    }
}
