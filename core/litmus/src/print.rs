//! The text of programs, which parses back to the same program.

use std::fmt::{self, Display, Formatter};

use oxshmem::Cmp;

use crate::program::{
    Context, Expectation, Fetching, Meeting, MemoryModel, Pattern, Program, SignalOp, Statement,
    Update, Variable, Verdict,
};

/// Every comparison with its sign.
pub(crate) const COMPARISONS: [(Cmp, &str); 6] = [
    (Cmp::Eq, "=="),
    (Cmp::Ne, "!="),
    (Cmp::Gt, ">"),
    (Cmp::Ge, ">="),
    (Cmp::Lt, "<"),
    (Cmp::Le, "<="),
];

/// The sign of a comparison.
pub(crate) fn sign(cmp: Cmp) -> &'static str {
    let known = COMPARISONS.iter().find(|(other, _)| *other == cmp);
    known.map_or("", |(_, sign)| sign)
}

impl Display for Update {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Update::Set => "set",
            Update::Add => "add",
            Update::And => "and",
            Update::Or => "or",
            Update::Xor => "xor",
        })
    }
}

impl Display for SignalOp {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.update().fmt(f)
    }
}

impl Display for Meeting {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Meeting::BarrierAll => "barrier_all",
            Meeting::SyncAll => "sync_all",
            Meeting::TeamSync => "team_sync",
            Meeting::Reduce => "reduce",
            Meeting::Fcollect => "fcollect",
            Meeting::Alltoall => "alltoall",
            Meeting::Collect => "collect",
            Meeting::Alltoalls => "alltoalls",
            Meeting::ReduceScatter => "reduce_scatter",
            Meeting::Inscan => "inscan",
            Meeting::Exscan => "exscan",
        })
    }
}

impl Display for Variable {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.words {
            1 => f.write_str(&self.name),
            words => write!(f, "{}[{words}]", self.name),
        }
    }
}

impl Display for Pattern {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Pattern::Deadlock => f.write_str("deadlock"),
            Pattern::Values(values) => {
                let values: Vec<_> = values.iter().map(|(l, v)| format!("{l}={v}")).collect();
                f.write_str(&values.join(" "))
            }
        }
    }
}

impl Display for Expectation {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("expect ")?;
        if let Some(model) = self.model {
            write!(f, "{model} ")?;
        }
        let verdict = match self.verdict {
            Verdict::Allowed => "allowed",
            Verdict::Forbidden => "forbidden",
        };
        write!(f, "{verdict} {}", self.pattern)
    }
}

/// The name of a fetching atomic.
pub(crate) fn fetching_name(fetching: Fetching) -> &'static str {
    match fetching {
        Fetching::Fetch => "fetch",
        Fetching::CompareSwap { .. } => "compare_swap",
        Fetching::Update(update, _) => match update {
            Update::Set => "swap",
            Update::Add => "fetch_add",
            Update::And => "fetch_and",
            Update::Or => "fetch_or",
            Update::Xor => "fetch_xor",
        },
    }
}

pub(crate) fn list<T: Display>(values: &[T]) -> String {
    values.iter().map(|v| format!(" {v}")).collect()
}

fn prefix(context: Context) -> String {
    match context.0 {
        0 => String::new(),
        n => format!("ctx{n} "),
    }
}

pub(crate) fn suffix(nbi: bool) -> &'static str {
    if nbi { "_nbi" } else { "" }
}

impl Program {
    /// The text of one statement of this program.
    #[must_use]
    pub fn statement_text(&self, statement: &Statement) -> String {
        let place = |at| self.place_name(at);
        let words = |at| self.words_name(at);
        let gets = |into: &[_]| format!("{} =", list(into)).trim_start().to_string();
        match statement {
            Statement::Put {
                to,
                values,
                nbi,
                context,
            } => {
                let (context, nbi, values) = (prefix(*context), suffix(*nbi), list(values));
                format!("{context}put{nbi} {}{values}", place(*to))
            }
            Statement::Get {
                into,
                from,
                nbi,
                context,
            } => {
                let (context, nbi) = (prefix(*context), suffix(*nbi));
                format!("{} {context}get{nbi} {}", gets(into), place(*from))
            }
            Statement::Update {
                update,
                at,
                value,
                context,
            } => format!("{}{update} {} {value}", prefix(*context), place(*at)),
            Statement::Fetch {
                into,
                fetching,
                at,
                nbi,
                context,
            } => {
                let (context, nbi) = (prefix(*context), suffix(*nbi));
                let operands = match fetching {
                    Fetching::Fetch => String::new(),
                    Fetching::Update(_, value) => format!(" {value}"),
                    Fetching::CompareSwap { expected, value } => format!(" {expected} {value}"),
                };
                let (name, at) = (fetching_name(*fetching), place(*at));
                format!("{into} = {context}{name}{nbi} {at}{operands}")
            }
            Statement::PutSignal {
                to,
                values,
                signal,
                op,
                value,
                nbi,
                context,
            } => {
                let (context, nbi, values) = (prefix(*context), suffix(*nbi), list(values));
                let (to, signal) = (place(*to), words(*signal));
                format!("{context}put_signal{nbi} {to}{values} then {op} {signal} {value}")
            }
            Statement::Write { to, values } => format!("write {}{}", words(*to), list(values)),
            Statement::Read { into, from } => format!("{} read {}", gets(into), words(*from)),
            Statement::WaitUntil { word, cmp, value } => {
                format!("wait_until {} {} {value}", words(*word), sign(*cmp))
            }
            Statement::SignalWaitUntil {
                into,
                word,
                cmp,
                value,
            } => {
                let into = into.map_or(String::new(), |r| format!("{r} = "));
                format!(
                    "{into}signal_wait_until {} {} {value}",
                    words(*word),
                    sign(*cmp)
                )
            }
            Statement::Test {
                into,
                word,
                cmp,
                value,
            } => format!("{into} = test {} {} {value}", words(*word), sign(*cmp)),
            Statement::SignalFetch { into, word } => {
                format!("{into} = signal_fetch {}", words(*word))
            }
            Statement::Fence { context } => format!("{}fence", prefix(*context)),
            Statement::Quiet { context } => format!("{}quiet", prefix(*context)),
            Statement::PeQuiet { pes, context } => {
                format!("{}pe_quiet{}", prefix(*context), list(pes))
            }
            Statement::PutCounted {
                to,
                values,
                counter,
                context,
            } => {
                let (context, values) = (prefix(*context), list(values));
                let (to, counter) = (place(*to), words(*counter));
                format!("{context}put_counted {to}{values} in {counter}")
            }
            Statement::WaitCounted { counter, n } => {
                format!("wait_counted {} {n}", words(*counter))
            }
            Statement::SetLock => "set_lock".into(),
            Statement::ClearLock => "clear_lock".into(),
            Statement::Meet(meeting) => meeting.to_string(),
            Statement::Broadcast { to, from, root } => {
                format!("broadcast {} from {}@{root}", words(*to), words(*from))
            }
        }
    }
}

impl Display for Program {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "name {}", self.name)?;
        for line in &self.about {
            writeln!(f, "about {line}")?;
        }
        if !self.rules.is_empty() {
            writeln!(f, "rules{}", list(&self.rules))?;
        }
        if self.models != MemoryModel::ALL {
            writeln!(f, "models{}", list(&self.models))?;
        }
        if !self.variables.is_empty() {
            writeln!(f, "vars{}", list(&self.variables))?;
        }
        if !self.observed.is_empty() {
            let places = self.observed.iter().map(|&place| self.place_name(place));
            writeln!(f, "observe{}", list(&places.collect::<Vec<_>>()))?;
        }
        for expectation in &self.expectations {
            writeln!(f, "{expectation}")?;
        }
        for (pe, statements) in self.statements.iter().enumerate() {
            writeln!(f, "PE {pe}:")?;
            for statement in statements {
                writeln!(f, "  {}", self.statement_text(statement))?;
            }
        }
        Ok(())
    }
}
