//! The text of programs of kernels, which parses back to the same program.

use std::fmt::{self, Display, Formatter};

use oxshmem_weak::Scope;

use super::program::{Block, Call, Collective, Data, Group, Kernels, Several, Statement};
use crate::print::{fetching_name, list, sign, suffix};
use crate::program::{Fetching, Program, Register};

fn scope_name(scope: Scope) -> &'static str {
    match scope {
        Scope::Block => "block",
        Scope::Gpu => "gpu",
        Scope::System => "system",
    }
}

fn data(head: &Program, data: &Data) -> String {
    match data {
        Data::Values(values) => list(values),
        Data::Own(words) => format!(" from {}", head.words_name(*words)),
    }
}

fn several(which: Several) -> &'static str {
    match which {
        Several::All => "all",
        Several::Any => "any",
        Several::Some => "some",
    }
}

fn registers(into: &[Register]) -> String {
    match into {
        [] => String::new(),
        _ => format!("{} = ", list(into).trim_start()),
    }
}

impl Kernels {
    /// The text of one line of this program.
    #[must_use]
    pub fn statement_text(&self, statement: &Statement) -> String {
        let lane = statement
            .lane
            .map_or(String::new(), |lane| format!("lane {lane} "));
        let group = match (statement.group, &statement.call) {
            (Group::Thread, _) | (_, Call::SyncGroup | Call::NextKernel) => "",
            (Group::Warp, _) => "warp ",
            (Group::Block | Group::Grid, _) => "block ",
        };
        let into = registers(statement.call.registers());
        format!("{lane}{into}{group}{}", self.call_text(statement))
    }

    fn call_text(&self, statement: &Statement) -> String {
        let head = self.head();
        let place = |at| head.place_name(at);
        let words = |at| head.words_name(at);
        match &statement.call {
            Call::Put {
                to,
                data: from,
                nbi,
            } => format!("put{} {}{}", suffix(*nbi), place(*to), data(head, from)),
            Call::Iput { to, from } => format!("iput {} from {}", place(*to), words(*from)),
            Call::Get { from, nbi, .. } => format!("get{} {}", suffix(*nbi), place(*from)),
            Call::Iget { from, .. } => format!("iget {}", place(*from)),
            Call::P { to, value } => format!("p {} {value}", place(*to)),
            Call::G { from, .. } => format!("g {}", place(*from)),
            Call::Update { update, at, value } => format!("{update} {} {value}", place(*at)),
            Call::Fetch { fetching, at, .. } => {
                let operands = match fetching {
                    Fetching::Fetch => String::new(),
                    Fetching::Update(_, value) => format!(" {value}"),
                    Fetching::CompareSwap { expected, value } => format!(" {expected} {value}"),
                };
                format!("{} {}{operands}", fetching_name(*fetching), place(*at))
            }
            Call::PutSignal {
                to,
                data: from,
                signal,
                op,
                value,
                nbi,
            } => {
                let (nbi, from, signal) = (suffix(*nbi), data(head, from), words(*signal));
                format!(
                    "put_signal{nbi} {}{from} then {op} {signal} {value}",
                    place(*to)
                )
            }
            Call::Signal { op, at, value } => format!("signal {op} {} {value}", place(*at)),
            Call::Write { to, value } => format!("write {} {value}", words(*to)),
            Call::Read { from, .. } => format!("read {}", words(*from)),
            Call::Wait {
                into,
                word,
                cmp,
                value,
            } => {
                let name = if into.is_some() {
                    "signal_wait_until"
                } else {
                    "wait_until"
                };
                format!("{name} {} {} {value}", words(*word), sign(*cmp))
            }
            Call::Test {
                word, cmp, value, ..
            } => format!("test {} {} {value}", words(*word), sign(*cmp)),
            Call::SignalFetch { word, .. } => format!("signal_fetch {}", words(*word)),
            Call::WaitSeveral {
                which,
                words: of,
                cmp,
                value,
                ..
            } => {
                format!(
                    "wait_until_{} {} {} {value}",
                    several(*which),
                    words(*of),
                    sign(*cmp)
                )
            }
            Call::TestSeveral {
                which,
                words: of,
                cmp,
                value,
                ..
            } => {
                format!(
                    "test_{} {} {} {value}",
                    several(*which),
                    words(*of),
                    sign(*cmp)
                )
            }
            Call::Fence => "fence".into(),
            Call::Quiet => "quiet".into(),
            Call::Flush => "flush".into(),
            Call::Barrier => "barrier_all".into(),
            Call::Sync => "sync_all".into(),
            Call::Collective { what, to, from } => {
                let (to, from) = (words(*to), words(*from));
                match what {
                    Collective::Broadcast(root) => format!("broadcast {to} from {from}@{root}"),
                    Collective::Fcollect => format!("fcollect {to} from {from}"),
                    Collective::Alltoall => format!("alltoall {to} from {from}"),
                    Collective::Sum => format!("sum {to} from {from}"),
                }
            }
            Call::SyncGroup if statement.group == Group::Warp => "syncwarp".into(),
            Call::SyncGroup => "syncthreads".into(),
            Call::NextKernel => "next_kernel".into(),
            Call::ThreadFence(scope) => format!("threadfence {}", scope_name(*scope)),
            Call::AtomicAdd {
                scope, word, value, ..
            } => {
                format!("atomic_add {} {} {value}", scope_name(*scope), words(*word))
            }
            Call::Spin {
                scope,
                word,
                cmp,
                value,
            } => {
                format!(
                    "spin {} {} {} {value}",
                    scope_name(*scope),
                    words(*word),
                    sign(*cmp)
                )
            }
        }
    }
}

impl Display for Kernels {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.head().fmt(f)?;
        for block in self.blocks() {
            let Block {
                pe,
                number,
                lanes,
                statements,
            } = block;
            match lanes {
                1 => writeln!(f, "PE {pe} block {number}:")?,
                _ => writeln!(f, "PE {pe} block {number} lanes {lanes}:")?,
            }
            for statement in statements {
                writeln!(f, "  {}", self.statement_text(statement))?;
            }
        }
        Ok(())
    }
}
