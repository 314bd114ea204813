//! The parser of the calls of kernels.

use oxshmem_weak::Scope;

use super::Parser;
use super::line::{Line, Token, quote};
use super::statement::{compared, value};
use crate::error::Error;
use crate::kernels::program::{Call, Collective, Data, Several};
use crate::program::{Fetching, Register, SignalOp, Update};

/// The calls, for a message.
const CALLS: &str = "put, put_nbi, get, get_nbi, iput, iget, p, g, set, add, and, or, xor, fetch, swap, compare_swap, fetch_add, fetch_and, \
    fetch_or, fetch_xor, put_signal, put_signal_nbi, signal, write, read, wait_until, signal_wait_until, test, signal_fetch, \
    wait_until_all, wait_until_any, wait_until_some, test_all, test_any, test_some, fence, quiet, flush, barrier_all, sync_all, \
    broadcast, fcollect, alltoall, sum, syncwarp, syncthreads, next_kernel, threadfence, atomic_add, spin";

/// The call for several words of this name: whether it waits, and for which.
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
    pub(super) fn kernel_call(
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
            "next_kernel" => Call::NextKernel,
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
