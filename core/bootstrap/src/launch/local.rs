//! The PE processes of this host: this process's own children.

use std::os::fd::AsFd;
use std::process::ChildStdin;

use rustix::event::PollFlags;
use rustix::process::Signal;

use super::input::Pump;
use super::process_group::{Event, ProcessGroup, Stream, Watched};
use super::reaper::Reaper;
use super::spawn::{Pe, SpawnPlan, spawn_all};
use crate::error::Result;

/// The PEs of this host, and the reaper of their group.
#[derive(Debug)]
pub(super) struct Local {
    // Dropped in this order: PEs first, then the rest of their group.
    pes: Vec<Pe>,
    reaper: Reaper,
    input: Option<Pump>,
    scratch: Vec<u8>,
}

/// The meaning of a token: the process, or one of its streams, of the PE at `token / 3`; or the input.
const END: usize = 0;
const OUT: usize = 1;
const ERR: usize = 2;
const KINDS: usize = 3;
const INPUT: usize = usize::MAX;

impl Local {
    /// Starts the PEs. They are a group of their own, which ends with this or with this process.
    pub(super) fn start(plan: &SpawnPlan<'_>) -> Result<Local> {
        let reaper = Reaper::start()?;
        let pes = spawn_all(plan, reaper.group())?;
        Ok(Local {
            pes,
            reaper,
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

impl ProcessGroup for Local {
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
                watched.push(pipe.with_output(Stream::Out));
            }
            if let Some(pipe) = pe.stderr.descriptor() {
                let pipe = Watched::new(token + ERR, pipe, PollFlags::IN);
                watched.push(pipe.with_output(Stream::Err));
            }
        }
    }

    fn handle_ready(&mut self, token: usize, events: &mut Vec<Event>) -> Result<()> {
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
                    && let Some(exit) = pe.ended
                {
                    events.push(Event::Ended { rank, exit });
                }
                return Ok(());
            }
        };
        let count = pipe.read(&mut self.scratch);
        if let Some(bytes) = self.scratch.get(..count).filter(|bytes| !bytes.is_empty()) {
            let bytes = bytes.to_vec();
            events.push(Event::Output {
                rank,
                stream,
                bytes,
            });
        }
        if pipe.descriptor().is_none() {
            events.push(Event::OutputEnd { rank, stream });
        }
        Ok(())
    }

    fn signal(&mut self, signal: Signal) {
        match signal {
            // By this one the launcher's user asks which PE waits for which: it must not end a PE.
            Signal::USR1 => self.pes.iter().for_each(|pe| pe.signal_if_handled(signal)),
            _ => self.reaper.signal(signal),
        }
    }

    fn kill(&mut self) {
        self.reaper.signal(Signal::KILL);
        self.pes.iter_mut().for_each(Pe::kill);
    }

    fn finish(&mut self, events: &mut Vec<Event>) {
        self.reaper.signal(Signal::KILL);
        self.input = None;
        // Later output of processes that left the group is not read.
        for pe in &mut self.pes {
            let rank = pe.rank;
            for (pipe, stream) in [&mut pe.stdout, &mut pe.stderr]
                .into_iter()
                .zip(Stream::BOTH)
            {
                if pipe.end_with_what_came() {
                    events.push(Event::OutputEnd { rank, stream });
                }
            }
        }
    }

    fn is_finished(&self) -> bool {
        let open = |pe: &Pe| pe.stdout.descriptor().or(pe.stderr.descriptor()).is_some();
        !self.pes.iter().any(open)
    }
}
