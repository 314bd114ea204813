//! What the members of a team tell each other in a collective call: a few bytes each, such as why it
//! failed.

use super::call::CollectiveCall;
use crate::mapped::HostMemory;
use crate::sync_area::CallSignature;
use crate::{Context, Error, Result, Sym};

/// Bytes that say how many follow.
const HEAD: usize = size_of::<u64>();
/// More than this no member tells, in bytes.
const MOST: u64 = 1 << 20;

/// A failure of a member, as it tells the others.
struct Failure {
    /// Bytes that were asked for and the heap's limit, where it has no room for them.
    no_room: Option<(u64, u64)>,
    why: String,
}

impl Failure {
    fn to_bytes(error: &Error) -> Vec<u8> {
        let (asked, why) = match error {
            Error::OutOfMemory {
                bytes, limit, why, ..
            } => (Some((*bytes, *limit)), why.clone()),
            error => (None, error.to_string()),
        };
        let mut told = vec![u8::from(asked.is_some())];
        if let Some((bytes, limit)) = asked {
            told.extend_from_slice(&bytes.to_ne_bytes());
            told.extend_from_slice(&limit.to_ne_bytes());
        }
        told.extend_from_slice(why.as_bytes());
        told
    }

    fn of_bytes(told: &[u8]) -> Option<Failure> {
        let (kind, rest) = told.split_first()?;
        if *kind == 0 {
            return Some(Failure {
                no_room: None,
                why: lossy(rest),
            });
        }
        let (bytes, rest) = rest.split_first_chunk()?;
        let (limit, why) = rest.split_first_chunk()?;
        Some(Failure {
            no_room: Some((u64::from_ne_bytes(*bytes), u64::from_ne_bytes(*limit))),
            why: lossy(why),
        })
    }

    /// The error of the other members, when it was this one's.
    fn on(self, call: &'static str, pe: usize) -> Error {
        let Failure { no_room, why } = self;
        match no_room {
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

impl CollectiveCall<'_> {
    /// Arrives; then every member has told all others some bytes. Gives what each told, in the team's
    /// order.
    ///
    /// `mine` as in [`arrive`](Self::arrive).
    pub(super) fn allgather_small(
        &mut self,
        mine: Result<()>,
        bytes: &[u8],
    ) -> Result<Vec<Vec<u8>>> {
        self.write_told(bytes, 0)?;
        self.arrive(mine)?;
        self.read_told(bytes)
    }

    /// [`tell_all`](Self::tell_all) of why a call failed, of which nothing more is told if it fails itself.
    fn exchange_errors(&mut self, bytes: &[u8]) -> Result<Vec<Vec<u8>>> {
        self.call.digest = const { CallSignature::of("explain") };
        self.write_told(bytes, 0)?;
        self.agree(None)?;
        let told = self.read_told(bytes)?;
        // Who fails may end: nobody before all have read.
        self.agree(None)?;
        Ok(told)
    }

    /// Puts the bytes from `done` on, as many as there is room for, where the next arrival announces them.
    fn write_told(&self, bytes: &[u8], done: usize) -> Result<()> {
        let place = self.scratch()?;
        let own = self.world.own(place);
        let rest = bytes.get(done..).unwrap_or_default();
        let piece = rest.get(..rest.len().min(place.len() - HEAD));
        own.copy_from(&(bytes.len() as u64).to_ne_bytes());
        let piece = piece.unwrap_or_default();
        own.part(HEAD, piece.len()).copy_from(piece);
        Ok(())
    }

    /// Reads what the members told, in as many arrivals as the longest needs.
    fn read_told(&mut self, bytes: &[u8]) -> Result<Vec<Vec<u8>>> {
        let (members, me) = (self.core.members.len(), self.core.members.me());
        let mut told = vec![Vec::new(); members];
        let room = self.core.scratch(0)?.len() - HEAD;
        let mut done = 0;
        loop {
            let place = self.core.scratch(self.epoch())?;
            let mut longest = bytes.len();
            for (i, theirs) in told.iter_mut().enumerate().filter(|(i, _)| *i != me) {
                let pe = self.core.members.pe(i);
                match self.world.read_piece(self.call.name, place, pe, theirs) {
                    Ok(len) => longest = longest.max(len),
                    Err(error) => {
                        // It does not know how many arrivals are to come.
                        self.abort(&error);
                        return Err(error);
                    }
                }
            }
            done += room;
            if done >= longest {
                break;
            }
            self.write_told(bytes, done)?;
            self.agree(None)?;
        }
        if let Some(mine) = told.get_mut(me) {
            *mine = bytes.to_vec();
        }
        Ok(told)
    }

    /// Every member is here, and knows that one or more failed: they tell each other why.
    #[cold]
    pub(super) fn failed_together(&mut self, mine: Result<()>) -> Result<()> {
        let call = self.call.name;
        let told = self.exchange_errors(
            &mine
                .as_ref()
                .err()
                .map(Failure::to_bytes)
                .unwrap_or_default(),
        );
        mine?;
        let told = told?;
        let (place, failure) = match told.iter().position(|said| !said.is_empty()) {
            Some(place) => (
                place,
                told.get(place).and_then(|said| Failure::of_bytes(said)),
            ),
            // An error always has words.
            None => (self.core.members.me(), None),
        };
        Err(match failure {
            Some(failure) => failure.on(call, self.pe(place)),
            None => Error::FailedElsewhere {
                call,
                pe: self.pe(place),
                why: "it does not say why".into(),
            },
        })
    }

    /// Every member is here, with the same verdict: they tell each other what they called, after so many
    /// calls [ahead](super::ahead).
    #[cold]
    pub(super) fn mismatch(&mut self, words: &str, ahead: usize) -> Error {
        let call = self.call.name;
        let (root, bytes) = self.state.last;
        let ahead = (ahead > 0).then(|| {
            format!(
                "{ahead} x broadcast without meeting (the last of {bytes} bytes from root {root})"
            )
        });
        let mut told: Vec<&str> = self.state.recent.iter().map(String::as_str).collect();
        told.extend(ahead.as_deref());
        // A call that is counted is in the list already.
        if !told.last().is_some_and(|last| last.ends_with(words)) {
            told.push(words);
        }
        let told = told.join(", ");
        // The members agree again from here: they all start a new history.
        self.state.history = 0;
        self.state.calls = 0;
        self.state.recent.clear();
        let all = match self.exchange_errors(told.as_bytes()) {
            Ok(all) => all,
            Err(error) => return error,
        };
        let mut groups: Vec<(String, Vec<String>)> = Vec::new();
        for (place, said) in all.iter().enumerate() {
            let (said, pe) = (lossy(said), self.pe(place).to_string());
            match groups.iter_mut().find(|(other, _)| *other == said) {
                Some((_, pes)) => pes.push(pe),
                None => groups.push((said, vec![pe])),
            }
        }
        let detail = groups
            .into_iter()
            .map(|(said, pes)| format!("PE {} called {said}", pes.join(", ")))
            .collect::<Vec<_>>()
            .join("; ");
        Error::CollectiveMismatch { call, detail }
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl Context<'_> {
    /// Adds the next piece of what a PE tells to what came before; gives how many bytes it tells in all.
    fn read_piece(
        &self,
        call: &'static str,
        place: Sym<u8>,
        pe: usize,
        told: &mut Vec<u8>,
    ) -> Result<usize> {
        let mut head = [0; HEAD];
        self.get_by_path(call, &mut head, place, pe)?;
        let len = match u64::from_ne_bytes(head) {
            len if len <= MOST => len as usize,
            len => {
                return Err(Error::Argument {
                    call,
                    what: format!("PE {pe} tells {len} bytes; its memory is not as this PE's"),
                });
            }
        };
        let (start, room) = (told.len(), place.len() - HEAD);
        told.resize(len.min(start + room).max(start), 0);
        if let Some(piece) = told.get_mut(start..)
            && !piece.is_empty()
        {
            self.get_by_path(call, piece, place.range(HEAD..)?, pe)?;
        }
        Ok(len)
    }
}
