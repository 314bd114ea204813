//! The parser of litmus programs of kernels: blocks of threads instead of PEs.

use oxshmem_weak::Scope;

use super::line::{Line, Token, quote};
use super::statement::{compared, value};
use super::{HEADER, Parser};
use crate::error::Error;
use crate::kernels::program::{Block, Call, Collective, Data, Group, Kernels, Several, Statement};
use crate::limits;
use crate::program::{Fetching, MemoryModel, Register, SignalOp, Update};

/// The calls, for a message.
const CALLS: &str = "put, put_nbi, get, get_nbi, iput, iget, p, g, set, add, and, or, xor, fetch, swap, compare_swap, fetch_add, fetch_and, \
    fetch_or, fetch_xor, put_signal, put_signal_nbi, signal, write, read, wait_until, signal_wait_until, test, signal_fetch, \
    wait_until_all, wait_until_any, wait_until_some, test_all, test_any, test_some, fence, quiet, flush, barrier_all, sync_all, \
    broadcast, fcollect, alltoall, sum, syncwarp, syncthreads, threadfence, atomic_add, spin";

impl Kernels {
    /// Reads a program from its text; [`kernels`](crate::kernels) describes the format.
    ///
    /// # Errors
    ///
    /// [`Error::Syntax`] if it is malformed, beyond [`limits`], or the PEs' blocks call different collectives (M36).
    pub fn parse(text: &str) -> Result<Kernels, Error> {
        let mut parser = Parser::new(text)?;
        let mut blocks: Vec<Block> = Vec::new();
        let mut last = 0;
        for (index, text) in text.lines().enumerate() {
            last = index + 1;
            let mut line = Line::of(text, last);
            let first = line.peek().map_or("", |token| token.text);
            match (first, blocks.last_mut()) {
                ("", _) => {}
                ("PE", _) => {
                    let block = parser.block(&mut line, &blocks)?;
                    blocks.push(block);
                }
                (_, None) => parser.line(&mut line)?,
                (word, Some(_)) if HEADER.contains(&word) => {
                    let problem = format!("`{word}` stands among the calls of a block");
                    return Err(line.here(problem, "put it before the first `PE n block b:`"));
                }
                (_, Some(block)) => {
                    let statement = parser.kernel_statement(&mut line, block.lanes)?;
                    block.statements.push(statement);
                }
            }
        }
        let at_end = |problem: &str, remedy: &str| Error::Syntax {
            line: last.max(1),
            column: 1,
            problem: problem.into(),
            remedy: remedy.into(),
        };
        if parser.program.name.is_empty() {
            return Err(at_end("the program has no name", "add a line `name …`"));
        }
        if blocks.is_empty() {
            return Err(at_end(
                "the program has no block",
                "add `PE 0 block 0:` and calls below it",
            ));
        }
        if !parser.program.models.is_empty() || !parser.named_models.is_empty() {
            let remedy = "leave out `models`, and `ordered` or `relaxed` in `expect`";
            return Err(at_end("programs of kernels have one memory model", remedy));
        }
        parser.program.models = MemoryModel::ALL.into();
        parser.check_expectations()?;
        let collectives = |pe: usize| -> Vec<&Call> {
            let of_pe = blocks.iter().filter(|block| block.pe == pe);
            let all = of_pe
                .flat_map(|block| &block.statements)
                .map(|statement| &statement.call);
            all.filter(|call| call.is_collective()).collect()
        };
        if (1..parser.pes).any(|pe| collectives(pe) != collectives(0)) {
            let remedy = "all PEs make the same collective calls in the same order (M36)";
            return Err(at_end("the PEs call different collectives", remedy));
        }
        Ok(Kernels {
            pes: parser.pes,
            head: parser.program,
            blocks,
        })
    }
}

/// The data of a put as it stands in the text.
fn several(name: &str) -> Option<(bool, Several)> {
    let (is_wait, rest) = match (name.strip_prefix("wait_until_"), name.strip_prefix("test_")) {
        (Some(rest), _) => (true, rest),
        (_, Some(rest)) => (false, rest),
        _ => return None,
    };
    let which = match rest {
        "all" => Several::All,
        "any" => Several::Any,
        "some" => Several::Some,
        _ => return None,
    };
    Some((is_wait, which))
}

impl Parser {
    /// `PE 0 block 1 lanes 4:`
    fn block(&mut self, line: &mut Line<'_>, before: &[Block]) -> Result<Block, Error> {
        const FORM: &str = "write `PE 0 block 1:` or `PE 0 block 1 lanes 4:`";
        line.next("`PE`")?;
        let token = line.next("a PE's number")?;
        if token.text.ends_with(':') {
            return Err(line.at(token, "the PE has no block", FORM));
        }
        let pe = self.pe_number(line, token, token.text)?;
        line.word("block")?;
        let token = line.next("a block's number")?;
        let (text, is_end) = token
            .text
            .strip_suffix(':')
            .map_or((token.text, false), |text| (text, true));
        let number = line.number(token, text, "a block's number")? as usize;
        let lanes = if is_end {
            1
        } else {
            line.word("lanes")?;
            let count = line.next("the number of threads and a colon")?;
            let Some(text) = count.text.strip_suffix(':') else {
                return Err(line.at(count, format!("{} has no colon", quote(count.text)), FORM));
            };
            line.number(count, text, "a number of threads")? as usize
        };
        line.end()?;
        if number >= limits::BLOCKS || !(1..=limits::LANES).contains(&lanes) {
            let remedy = format!(
                "blocks are 0 to {}, of 1 to {} threads",
                limits::BLOCKS - 1,
                limits::LANES
            );
            return Err(line.at(token, "there can be no such block", remedy));
        }
        if before
            .iter()
            .any(|block| (block.pe, block.number) == (pe, number))
        {
            let problem = format!("block {number} of PE {pe} had its calls already");
            return Err(line.at(token, problem, "write all of them under one heading"));
        }
        Ok(Block {
            pe,
            number,
            lanes,
            statements: Vec::new(),
        })
    }

    /// `[lane 2] [r0 … =] [warp|block] call …`
    fn kernel_statement(&mut self, line: &mut Line<'_>, lanes: usize) -> Result<Statement, Error> {
        let start = line.peek();
        let lane = match start {
            Some(token) if token.text == "lane" => {
                line.optional();
                let token = line.next("a thread's number")?;
                let lane = line.number(token, token.text, "a thread's number")? as usize;
                if lane >= lanes {
                    let problem = format!("the block has no thread {lane}");
                    return Err(line.at(token, problem, format!("it has {lanes}")));
                }
                Some(lane)
            }
            _ => None,
        };
        let into = self.registers(line)?;
        let group = match line.peek().map(|token| token.text) {
            Some("warp") => Group::Warp,
            Some("block") => Group::Block,
            _ => Group::Thread,
        };
        if group != Group::Thread {
            line.optional();
        }
        let name = line.next("a call")?;
        let call = self.kernel_call(line, name, &into)?;
        line.end()?;
        let group = match name.text {
            "syncwarp" => Group::Warp,
            "syncthreads" => Group::Block,
            _ => group,
        };
        let at = start.unwrap_or(name);
        if call.registers() != into.as_slice() {
            let problem = format!(
                "`{}` fills {} registers, and {} stand before it",
                name.text,
                call.registers().len(),
                into.len()
            );
            return Err(line.at(at, problem, "write one for each value: `r0 = …`"));
        }
        if group != Group::Thread && (!call.takes_group() || lane.is_some()) {
            let problem = format!("`{}` is not made by a group here", name.text);
            return Err(line.at(at, problem, "leave out `warp` or `block`, or `lane`"));
        }
        if lanes > 1
            && group == Group::Thread
            && lane.is_none()
            && (!into.is_empty() || call.is_collective())
        {
            let problem = format!("each of {lanes} threads would make this call");
            return Err(line.at(at, problem, "write `lane 0` before it, or `block`"));
        }
        Ok(Statement { lane, group, call })
    }

    fn kernel_call(
        &mut self,
        line: &mut Line<'_>,
        name: Token<'_>,
        into: &[Register],
    ) -> Result<Call, Error> {
        let one = into.first().copied();
        let needed = |line: &Line<'_>| {
            one.ok_or_else(|| {
                let problem = format!("`{}` gives a value", name.text);
                line.at(name, problem, format!("write `r0 = {} …`", name.text))
            })
        };
        let nbi = name.text.ends_with("_nbi");
        if let Some(update) = Update::ALL.into_iter().find(|u| u.to_string() == name.text) {
            let at = self.next_word_at(line)?;
            return Ok(Call::Update {
                update,
                at,
                value: value(line)?,
            });
        }
        if let Some((is_wait, which)) = several(name.text) {
            let words = self.next_words(line)?;
            let (cmp, value) = compared(line)?;
            return Ok(match is_wait {
                true => Call::WaitSeveral {
                    which,
                    into: one,
                    words,
                    cmp,
                    value,
                },
                false => Call::TestSeveral {
                    which,
                    into: needed(line)?,
                    words,
                    cmp,
                    value,
                },
            });
        }
        if let Some(fetching) = fetching(name.text) {
            let at = self.next_word_at(line)?;
            let into = needed(line)?;
            let fetching = match fetching {
                Fetching::Update(update, _) => Fetching::Update(update, value(line)?),
                Fetching::CompareSwap { .. } => Fetching::CompareSwap {
                    expected: value(line)?,
                    value: value(line)?,
                },
                Fetching::Fetch => Fetching::Fetch,
            };
            return Ok(Call::Fetch { into, fetching, at });
        }
        Ok(match name.text {
            "put" | "put_nbi" => {
                let to = self.next_place(line)?;
                let data = self.data(line, name, to.words.count)?;
                Call::Put { to, data, nbi }
            }
            "iput" => {
                let to = self.next_place(line)?;
                match self.data(line, name, to.words.count)? {
                    Data::Own(from) => Call::Iput { to, from },
                    Data::Values(_) => {
                        return Err(line.at(
                            name,
                            "`iput` of values",
                            "name its source: `iput d@1 from s`",
                        ));
                    }
                }
            }
            "get" | "get_nbi" | "iget" => {
                let from = self.next_place(line)?;
                if into.len() != from.words.count {
                    let problem = format!("`{}` fills {} registers", name.text, from.words.count);
                    return Err(line.at(
                        name,
                        problem,
                        "write one for each word: `r0 r1 = get d@1`",
                    ));
                }
                match name.text {
                    "iget" => Call::Iget {
                        into: into.to_vec(),
                        from,
                    },
                    _ => Call::Get {
                        into: into.to_vec(),
                        from,
                        nbi,
                    },
                }
            }
            "p" => Call::P {
                to: self.next_word_at(line)?,
                value: value(line)?,
            },
            "g" => Call::G {
                into: needed(line)?,
                from: self.next_word_at(line)?,
            },
            "put_signal" | "put_signal_nbi" => {
                let to = self.next_place(line)?;
                let data = self.data(line, name, to.words.count)?;
                line.word("then")?;
                let op = signal_op(line)?;
                let signal = self.next_word(line)?;
                Call::PutSignal {
                    to,
                    data,
                    signal,
                    op,
                    value: value(line)?,
                    nbi,
                }
            }
            "signal" => {
                let op = signal_op(line)?;
                Call::Signal {
                    op,
                    at: self.next_word_at(line)?,
                    value: value(line)?,
                }
            }
            "write" => Call::Write {
                to: self.next_word(line)?,
                value: value(line)?,
            },
            "read" => Call::Read {
                into: needed(line)?,
                from: self.next_word(line)?,
            },
            "wait_until" | "signal_wait_until" => {
                let (word, cmp, value) = self.comparison(line)?;
                let one = if name.text == "wait_until" {
                    None
                } else {
                    Some(needed(line)?)
                };
                Call::Wait {
                    into: one,
                    word,
                    cmp,
                    value,
                }
            }
            "test" => {
                let (word, cmp, value) = self.comparison(line)?;
                Call::Test {
                    into: needed(line)?,
                    word,
                    cmp,
                    value,
                }
            }
            "signal_fetch" => Call::SignalFetch {
                into: needed(line)?,
                word: self.next_word(line)?,
            },
            "fence" => Call::Fence,
            "quiet" => Call::Quiet,
            "flush" => Call::Flush,
            "barrier_all" => Call::Barrier,
            "sync_all" => Call::Sync,
            "broadcast" => {
                let to = self.next_words(line)?;
                line.word("from")?;
                let from = self.next_place(line)?;
                Call::Collective {
                    what: Collective::Broadcast(from.pe),
                    to,
                    from: from.words,
                }
            }
            "fcollect" | "alltoall" | "sum" => {
                let to = self.next_words(line)?;
                line.word("from")?;
                let from = self.next_words(line)?;
                let what = match name.text {
                    "fcollect" => Collective::Fcollect,
                    "alltoall" => Collective::Alltoall,
                    _ => Collective::Sum,
                };
                Call::Collective { what, to, from }
            }
            "syncwarp" | "syncthreads" => Call::SyncGroup,
            "threadfence" => Call::ThreadFence(scope(line)?),
            "atomic_add" => Call::AtomicAdd {
                into: needed(line)?,
                scope: scope(line)?,
                word: self.next_word(line)?,
                value: value(line)?,
            },
            "spin" => {
                let scope = scope(line)?;
                let (word, cmp, value) = self.comparison(line)?;
                Call::Spin {
                    scope,
                    word,
                    cmp,
                    value,
                }
            }
            other => {
                let problem = format!("{} is no call", quote(other));
                return Err(line.at(name, problem, format!("they are {CALLS}")));
            }
        })
    }

    /// `1 2`, or `from s`.
    fn data(&mut self, line: &mut Line<'_>, name: Token<'_>, words: usize) -> Result<Data, Error> {
        let data = if line.peek().is_some_and(|token| token.text == "from") {
            line.optional();
            Data::Own(self.next_words(line)?)
        } else {
            let mut values = Vec::new();
            while line
                .peek()
                .is_some_and(|token| token.text.bytes().all(|b| b.is_ascii_digit()))
            {
                values.push(value(line)?);
            }
            Data::Values(values)
        };
        let count = match &data {
            Data::Values(values) => values.len(),
            Data::Own(words) => words.count,
        };
        if count == words {
            return Ok(data);
        }
        let problem = format!("`{}` of {words} words has {count} values", name.text);
        Err(line.at(name, problem, "give one value for each word"))
    }
}

/// The fetching atomic of this name, with operands to be filled in.
fn fetching(name: &str) -> Option<Fetching> {
    Some(match name {
        "fetch" => Fetching::Fetch,
        "swap" => Fetching::Update(Update::Set, 0),
        "compare_swap" => Fetching::CompareSwap {
            expected: 0,
            value: 0,
        },
        "fetch_add" => Fetching::Update(Update::Add, 0),
        "fetch_and" => Fetching::Update(Update::And, 0),
        "fetch_or" => Fetching::Update(Update::Or, 0),
        "fetch_xor" => Fetching::Update(Update::Xor, 0),
        _ => return None,
    })
}

fn signal_op(line: &mut Line<'_>) -> Result<SignalOp, Error> {
    let token = line.next("`set` or `add`")?;
    match token.text {
        "set" => Ok(SignalOp::Set),
        "add" => Ok(SignalOp::Add),
        other => {
            let problem = format!("{} is no update of a signal", quote(other));
            Err(line.at(token, problem, "they are `set` and `add`"))
        }
    }
}

fn scope(line: &mut Line<'_>) -> Result<Scope, Error> {
    let token = line.next("`block`, `gpu` or `system`")?;
    match token.text {
        "block" => Ok(Scope::Block),
        "gpu" => Ok(Scope::Gpu),
        "system" => Ok(Scope::System),
        other => {
            let problem = format!("{} is no scope", quote(other));
            Err(line.at(token, problem, "they are `block`, `gpu` and `system`"))
        }
    }
}
