//! Exchange of a few bytes among the members in a collective call, such as the reason of its failure.

use oxshmem_engine::memory::mapped::HostMemory;

use crate::call::CollectiveCall;
use crate::elements::Elements;
use crate::error::{Error, Result};
use crate::signature::CallSignature;
use crate::transfer::Transfer;

/// Bytes of the length before the data.
const HEADER: usize = size_of::<u64>();
/// The most bytes that a member sends.
const MAX_BYTES: u64 = 1 << 20;

/// A failure of a member, as it goes to the others.
struct Failure {
    /// The requested bytes and the heap's limit, where the heap is full.
    out_of_memory: Option<(u64, u64)>,
    why: String,
}

impl Failure {
    fn to_bytes(error: &Error) -> Vec<u8> {
        let (out_of_memory, why) = match error {
            Error::OutOfMemory {
                bytes, limit, why, ..
            } => (Some((*bytes, *limit)), why.clone()),
            error => (None, error.to_string()),
        };
        let mut encoded = vec![u8::from(out_of_memory.is_some())];
        if let Some((bytes, limit)) = out_of_memory {
            encoded.extend_from_slice(&bytes.to_ne_bytes());
            encoded.extend_from_slice(&limit.to_ne_bytes());
        }
        encoded.extend_from_slice(why.as_bytes());
        encoded
    }

    fn of_bytes(encoded: &[u8]) -> Option<Failure> {
        let (kind, rest) = encoded.split_first()?;
        if *kind == 0 {
            return Some(Failure {
                out_of_memory: None,
                why: lossy(rest),
            });
        }
        let (bytes, rest) = rest.split_first_chunk()?;
        let (limit, why) = rest.split_first_chunk()?;
        Some(Failure {
            out_of_memory: Some((u64::from_ne_bytes(*bytes), u64::from_ne_bytes(*limit))),
            why: lossy(why),
        })
    }

    /// The error of the other members, when it was this one's.
    fn on(self, call: &'static str, pe: usize) -> Error {
        let Failure { out_of_memory, why } = self;
        match out_of_memory {
            Some((bytes, limit)) => Error::OutOfMemory {
                call,
                bytes,
                limit,
                why: format!("on PE {pe}: {why}"),
            },
            None => Error::FailedElsewhere { call, pe, why },
        }
    }
}

/// The mark between the calls that PEs tell each other.
const SEPARATOR: &str = "\n";

impl CollectiveCall<'_> {
    /// Arrives, and gathers a few bytes of each member, in the team's order.
    ///
    /// `mine` as in [`arrive`](Self::arrive).
    pub(crate) fn allgather_small(
        &mut self,
        mine: Result<()>,
        bytes: &[u8],
    ) -> Result<Vec<Vec<u8>>> {
        self.write_part(bytes, 0)?;
        self.arrive(mine)?;
        self.read_all(bytes)
    }

    /// [`allgather_small`](Self::allgather_small) of the reasons why a call failed. If it fails itself, no reason is
    /// known.
    fn exchange_errors(&mut self, bytes: &[u8]) -> Result<Vec<Vec<u8>>> {
        self.info.signature = const { CallSignature::of("explain") };
        self.write_part(bytes, 0)?;
        self.agree(None)?;
        let all = self.read_all(bytes)?;
        // A member that fails may end: none does before all have read.
        self.agree(None)?;
        Ok(all)
    }

    /// Writes the bytes from `done` on, as many as fit, where the next arrival announces them.
    fn write_part(&self, bytes: &[u8], done: usize) -> Result<()> {
        let scratch = self.scratch()?;
        let own = self.worker.own(scratch);
        let rest = bytes.get(done..).unwrap_or_default();
        let part = rest.get(..rest.len().min(scratch.len() - HEADER));
        own.copy_from(&(bytes.len() as u64).to_ne_bytes());
        let part = part.unwrap_or_default();
        own.part(HEADER, part.len()).copy_from(part);
        Ok(())
    }

    /// Reads the members' bytes, in as many arrivals as the longest needs.
    fn read_all(&mut self, bytes: &[u8]) -> Result<Vec<Vec<u8>>> {
        let (members, me) = (self.team.members.len(), self.team.members.me());
        let mut all = vec![Vec::new(); members];
        let capacity = self.team.scratch(0)?.len() - HEADER;
        let mut done = 0;
        loop {
            let scratch = self.team.scratch(self.epoch())?;
            let mut longest = bytes.len();
            for (rank, theirs) in all.iter_mut().enumerate().filter(|(rank, _)| *rank != me) {
                let pe = self.team.members.pe(rank);
                match read_part(self.transfer(), scratch, pe, theirs) {
                    Ok(len) => longest = longest.max(len),
                    Err(error) => {
                        // This PE does not know how many arrivals are to come.
                        self.abort(&error);
                        return Err(error);
                    }
                }
            }
            done += capacity;
            if done >= longest {
                break;
            }
            self.write_part(bytes, done)?;
            self.agree(None)?;
        }
        if let Some(mine) = all.get_mut(me) {
            *mine = bytes.to_vec();
        }
        Ok(all)
    }

    /// The error where every member is here and knows that one or more failed: they exchange the reasons.
    #[cold]
    pub(crate) fn failed_together(&mut self, mine: Result<()>) -> Result<()> {
        let call = self.info.name;
        let reasons = self.exchange_errors(
            &mine
                .as_ref()
                .err()
                .map(Failure::to_bytes)
                .unwrap_or_default(),
        );
        mine?;
        let reasons = reasons?;
        let (rank, failure) = match reasons.iter().position(|reason| !reason.is_empty()) {
            Some(rank) => (
                rank,
                reasons
                    .get(rank)
                    .and_then(|reason| Failure::of_bytes(reason)),
            ),
            // An error always has words.
            None => (self.team.members.me(), None),
        };
        Err(match failure {
            Some(failure) => failure.on(call, self.pe(rank)),
            None => Error::FailedElsewhere {
                call,
                pe: self.pe(rank),
                why: "it does not say why".into(),
            },
        })
    }

    /// The error where every member is here, with the same verdict: they exchange the calls that they made, after so many
    /// [eager](super::eager) ones.
    #[cold]
    pub(crate) fn mismatch(&mut self, words: &str, eager_calls: usize) -> Error {
        let call = self.info.name;
        let last = self.state.last_eager;
        let eager = (eager_calls > 0).then(|| {
            format!(
                "{eager_calls} x broadcast without meeting (the last of {} bytes from root {})",
                last.bytes, last.root
            )
        });
        let mut calls: Vec<&str> = self.state.recent.iter().map(String::as_str).collect();
        calls.extend(eager.as_deref());
        // A call that is counted is in the list already.
        if !calls.last().is_some_and(|last| last.ends_with(words)) {
            calls.push(words);
        }
        let calls = calls.join(SEPARATOR);
        // The members agree again from here: they all start a new history.
        self.state.history = 0;
        self.state.calls = 0;
        self.state.recent.clear();
        let all = match self.exchange_errors(calls.as_bytes()) {
            Ok(all) => all,
            Err(error) => return error,
        };
        let all = all.iter().map(|calls| lossy(calls));
        let all: Vec<(String, String)> = (all.enumerate())
            .map(|(rank, calls)| (self.pe(rank).to_string(), calls))
            .collect();
        let detail = difference(&all);
        Error::CollectiveMismatch { call, detail }
    }
}

/// The calls of each PE from the first on that differs, in words. `all` has each PE's number and its calls.
fn difference(all: &[(String, String)]) -> String {
    let mut groups: Vec<(Vec<&str>, Vec<&str>)> = Vec::new();
    for (pe, calls) in all {
        let calls: Vec<&str> = calls.split(SEPARATOR).collect();
        match groups.iter_mut().find(|(other, _)| *other == calls) {
            Some((_, pes)) => pes.push(pe),
            None => groups.push((calls, vec![pe])),
        }
    }
    let same = |at: usize| {
        let mut calls = groups.iter().map(|(calls, _)| calls.get(at));
        let first = calls.next().flatten();
        first.is_some() && calls.all(|call| call == first)
    };
    // Each PE's last call is told.
    let shortest = groups.iter().map(|(calls, _)| calls.len()).min();
    let agreed = (0..shortest.unwrap_or(0).saturating_sub(1))
        .take_while(|at| same(*at))
        .count();
    let each = groups.iter().map(|(calls, pes)| {
        let calls = calls.get(agreed..).unwrap_or_default();
        format!("PE {} called {}", pes.join(", "), calls.join(", "))
    });
    each.collect::<Vec<_>>().join("; ")
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Appends the next part of a PE's bytes to those before. Gives how many bytes there are in all.
fn read_part(
    transfer: Transfer<'_>,
    scratch: Elements<u8>,
    pe: usize,
    bytes: &mut Vec<u8>,
) -> Result<usize> {
    let Transfer { worker, call } = transfer;
    let mut header = [0; HEADER];
    worker.get_bytes(&mut header, scratch, pe)?;
    let len = match u64::from_ne_bytes(header) {
        len if len <= MAX_BYTES => len as usize,
        len => {
            return Err(Error::Argument {
                call,
                what: format!("PE {pe} tells {len} bytes; its memory is not as this PE's"),
            });
        }
    };
    let (start, capacity) = (bytes.len(), scratch.len() - HEADER);
    bytes.resize(len.min(start + capacity).max(start), 0);
    if let Some(part) = bytes.get_mut(start..)
        && !part.is_empty()
    {
        worker.get_bytes(part, scratch.range(HEADER..)?, pe)?;
    }
    Ok(len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_calls_from_the_first_difference_on_are_told() {
        let told = |calls: &[&str]| {
            let all = (0..).zip(calls);
            let all: Vec<_> = all
                .map(|(pe, calls): (usize, _)| (pe.to_string(), (*calls).to_owned()))
                .collect();
            difference(&all)
        };
        let words = "PE 0 called #3 free(8), sync(); PE 1, 2 called sync()";
        let short = "#1 alloc(8)\nsync()";
        assert_eq!(
            told(&["#1 alloc(8)\n#3 free(8)\nsync()", short, short]),
            words
        );
        let words = "PE 0 called split(1); PE 1 called split(2)";
        assert_eq!(
            told(&["#1 alloc(8)\nsplit(1)", "#1 alloc(8)\nsplit(2)"]),
            words
        );
        assert_eq!(told(&["a()", "b()"]), "PE 0 called a(); PE 1 called b()");
        // Calls that are longer ago than a PE remembers made the difference.
        assert_eq!(told(&["a()", "a()"]), "PE 0, 1 called a()");
    }
}
