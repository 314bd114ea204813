//! PEs that are this process's own children.

use std::os::fd::AsFd;
use std::process::ChildStdin;

use rustix::event::PollFlags;
use rustix::process::Signal;

use super::crew::{Crew, Event, Stream, Watched};
use super::guardian::Guardian;
use super::input::Pump;
use super::pe::{self, Pe, Plan};
use crate::Result;

/// The PEs of this host and the guardian of their group.
#[derive(Debug)]
pub(super) struct Local {
    // Dropped in this order: PEs first, then what is left of their group.
    pes: Vec<Pe>,
    guardian: Guardian,
    input: Option<Pump>,
    scratch: Vec<u8>,
}

/// What a token means: the process, or one of its streams, of the PE at `token / 3`; or the input.
const END: usize = 0;
const OUT: usize = 1;
const ERR: usize = 2;
const KINDS: usize = 3;
const INPUT: usize = usize::MAX;

impl Local {
    /// Starts the PEs. They are a group of their own, which ends with this or with this process.
    pub(super) fn start(plan: &Plan<'_>) -> Result<Local> {
        let guardian = Guardian::start()?;
        let pes = pe::start_all(plan, guardian.group())?;
        Ok(Local {
            pes,
            guardian,
            input: None,
            scratch: vec![0; 64 << 10],
        })
    }

    /// Reads the terminal for a first PE that could not inherit it.
    pub(super) fn with_terminal(mut self) -> Local {
        self.input = self.take_input().map(Pump::new);
        self
    }

    /// The first PE's input, where that is a pipe.
    pub(super) fn take_input(&mut self) -> Option<ChildStdin> {
        self.pes.first_mut().and_then(|pe| pe.stdin.take())
    }

    /// Ranks and process numbers.
    pub(super) fn pids(&self) -> impl Iterator<Item = (u32, u32)> {
        self.pes.iter().map(|pe| (pe.rank, pe.pid()))
    }

    /// Whether a PE still runs, as far as is known.
    pub(super) fn runs(&self) -> bool {
        self.pes.iter().any(|pe| pe.ended.is_none())
    }
}

impl Crew for Local {
    fn watch<'a>(&'a self, watched: &mut Vec<Watched<'a>>) {
        if let Some((descriptor, write)) = self.input.as_ref().and_then(Pump::wants) {
            let events = if write { PollFlags::OUT } else { PollFlags::IN };
            watched.push(Watched::new(INPUT, descriptor, events));
        }
        for (index, pe) in self.pes.iter().enumerate() {
            let token = KINDS * index;
            if pe.ended.is_none() {
                watched.push(Watched::new(token + END, pe.pidfd.as_fd(), PollFlags::IN));
            }
            if let Some(pipe) = pe.stdout.descriptor() {
                let pipe = Watched::new(token + OUT, pipe, PollFlags::IN);
                watched.push(pipe.bringing(Stream::Out));
            }
            if let Some(pipe) = pe.stderr.descriptor() {
                let pipe = Watched::new(token + ERR, pipe, PollFlags::IN);
                watched.push(pipe.bringing(Stream::Err));
            }
        }
    }

    fn act(&mut self, token: usize, heard: &mut Vec<Event>) -> Result<()> {
        if token == INPUT {
            if !self.input.as_mut().is_some_and(Pump::step) {
                self.input = None;
            }
            return Ok(());
        }
        let Some(pe) = self.pes.get_mut(token / KINDS) else {
            return Ok(());
        };
        let rank = pe.rank;
        let (pipe, stream) = match token % KINDS {
            OUT => (&mut pe.stdout, Stream::Out),
            ERR => (&mut pe.stderr, Stream::Err),
            _ => {
                if pe.reap()?
                    && let Some(how) = pe.ended
                {
                    heard.push(Event::Ended { rank, how });
                }
                return Ok(());
            }
        };
        let count = pipe.read(&mut self.scratch);
        if let Some(bytes) = self.scratch.get(..count).filter(|bytes| !bytes.is_empty()) {
            let bytes = bytes.to_vec();
            heard.push(Event::Output {
                rank,
                stream,
                bytes,
            });
        }
        if pipe.descriptor().is_none() {
            heard.push(Event::OutputEnd { rank, stream });
        }
        Ok(())
    }

    fn signal(&mut self, signal: Signal) {
        match signal {
            // The launcher's user asks who waits for whom by this one: it is to end nobody.
            Signal::USR1 => self.pes.iter().for_each(|pe| pe.signal_if_heeded(signal)),
            _ => self.guardian.signal(signal),
        }
    }

    fn kill(&mut self) {
        self.guardian.signal(Signal::KILL);
        self.pes.iter_mut().for_each(Pe::kill);
    }

    fn wind_up(&mut self, heard: &mut Vec<Event>) {
        self.guardian.signal(Signal::KILL);
        self.input = None;
        // What left the group, and still writes, is not heard.
        for pe in &mut self.pes {
            let rank = pe.rank;
            for (pipe, stream) in [&mut pe.stdout, &mut pe.stderr]
                .into_iter()
                .zip(Stream::BOTH)
            {
                if pipe.end_with_what_came() {
                    heard.push(Event::OutputEnd { rank, stream });
                }
            }
        }
    }

    fn is_wound_up(&self) -> bool {
        let open = |pe: &Pe| pe.stdout.descriptor().or(pe.stderr.descriptor()).is_some();
        !self.pes.iter().any(open)
    }
}
