//! A lane: streams of operations towards all peers, on the domain's endpoint.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use oxshmem_transport::{
    AtomicLevel, Capabilities, Counters, Error, Lane, Local, Op, Pe, Posted, Remote, Result,
    SignalSupport, Sleep,
};

use crate::lane_state::LaneState;
use crate::limits::{DEPTH, NAME};
use crate::message::Signal;
use crate::own::{OwnOp, goes_through_provider};
use crate::shared::Shared;
use crate::state::State;
use crate::stream::{Entry, Stream};
use crate::wire::Key;

#[derive(Debug)]
pub(crate) struct OfiLane {
    shared: Arc<Shared>,
    capabilities: Arc<Capabilities>,
    /// Its number, which no other lane of the domain ever has.
    number: u64,
}

impl OfiLane {
    pub(crate) fn new(shared: &Arc<Shared>, capabilities: &Arc<Capabilities>) -> Result<OfiLane> {
        let mut state = shared.lock();
        state.check()?;
        let number = state.next_lane;
        state.next_lane += 1;
        state.lanes.insert(number, LaneState::default());
        Ok(OfiLane {
            shared: Arc::clone(shared),
            capabilities: Arc::clone(capabilities),
            number,
        })
    }

    /// The entry of a sound operation.
    fn entry(&self, state: &State, pe: Pe, op: &Op) -> Result<Entry> {
        let (target, signal) = checked(&self.capabilities, state, pe, op)?;
        Ok(Entry {
            op: *op,
            target,
            signal,
            on_gpu: local_side(op).is_some_and(|local| state.is_on_gpu(local)),
            copied: Vec::new(),
            started: 0,
            is_begun: false,
            parts: 0,
            number: 0,
        })
    }
}

fn unsupported(what: String) -> Error {
    Error::Unsupported {
        transport: NAME,
        what,
    }
}

/// The local memory of a transfer, which may be a GPU's.
fn local_side(op: &Op) -> Option<&Local> {
    match op {
        Op::Put { from, .. } | Op::PutSignal { from, .. } => Some(from),
        Op::Get { into, .. } => Some(into),
        _ => None,
    }
}

/// The place of a remote address in a PE's imported region, which is checked for a size and an alignment.
fn find(
    state: &State,
    pe: Pe,
    at: Remote,
    what: &'static str,
    size: (u64, u64),
) -> Result<(Key, u64)> {
    let peer = state.peers.get(pe.index());
    let key = peer.and_then(|peer| peer.regions.get(&at.region.0));
    let key = key.ok_or(Error::UnknownRegion {
        transport: NAME,
        region: at.region.0,
        pe,
    })?;
    at.check(NAME, what, size, key.len)?;
    Ok((*key, at.offset))
}

/// The place of a sound operation, and its signal.
type Checked = (Option<(Key, u64)>, Option<Signal>);

/// Checks everything that can be wrong with an operation. Gives its place, and its signal.
fn checked(capabilities: &Capabilities, state: &State, pe: Pe, op: &Op) -> Result<Checked> {
    let transfer = |local: &Local, limits: oxshmem_transport::Limits| match local.len as u64 {
        len if len > limits.max => Err(unsupported(format!("a transfer of {len} bytes"))),
        len if len > limits.unregistered && local.key.is_none() => Err(unsupported(format!(
            "a transfer of {len} unregistered bytes"
        ))),
        len => Ok(len),
    };
    match op {
        Op::Put { from, to } => {
            let len = transfer(from, capabilities.put)?;
            Ok((Some(find(state, pe, *to, "a put", (len, 1))?), None))
        }
        Op::Get { into, from } => {
            let len = transfer(into, capabilities.get)?;
            Ok((Some(find(state, pe, *from, "a get", (len, 1))?), None))
        }
        Op::PutSignal {
            from,
            to,
            signal,
            op,
            value,
        } if capabilities.put_signal == SignalSupport::Native(AtomicLevel::Cpu) => {
            let len = transfer(from, capabilities.put)?;
            let target = find(state, pe, *to, "a put", (len, 1))?;
            let (key, offset) = find(state, pe, *signal, "a signal", (8, 8))?;
            let signal = Signal {
                region: key.region,
                offset,
                op: *op,
                value: *value,
            };
            Ok((Some(target), Some(signal)))
        }
        Op::Atomic {
            op,
            width,
            on,
            fetch,
            ..
        } if (state.peers.get(pe.index())).is_some_and(|peer| peer.atomics.has(*op, *width)) => {
            let bytes = width.bytes() as u64;
            if let Some(fetch) = fetch {
                fetch.check_fetch(NAME, *width)?;
            }
            Ok((
                Some(find(state, pe, *on, "an atomic", (bytes, bytes))?),
                None,
            ))
        }
        Op::Message { from } if from.len <= capabilities.message as usize => Ok((None, None)),
        Op::Flush => Ok((None, None)),
        other => Err(unsupported(format!("{other:?}"))),
    }
}

impl Lane for OfiLane {
    fn endpoint(&mut self, _: Pe) -> Result<Vec<u8>> {
        self.shared.lock().check()?;
        Ok(Vec::new())
    }

    fn connect(&mut self, _: Pe, _: &[u8]) -> Result<()> {
        Ok(())
    }

    unsafe fn post(&mut self, pe: Pe, ops: &[Op]) -> Posted {
        let mut state = self.shared.lock();
        if let Err(error) = state.check() {
            return Posted::refused(0, error);
        }
        let me = state.job.me;
        let Some(peer) = state.peers.get(pe.index()) else {
            let why = format!("the job has {} PEs", state.job.size);
            let transport = NAME;
            return Posted::refused(0, Error::Unreachable { transport, pe, why });
        };
        if let Some(error) = peer.refusal(pe) {
            drop(self.shared.end_in_place(state, self.number));
            return Posted::refused(0, error);
        }
        let needs_address = |op: &Op| {
            let on_gpu = local_side(op).is_some_and(|local| state.is_on_gpu(local));
            pe != me || goes_through_provider(op, on_gpu)
        };
        if peer.known.is_none() && ops.iter().any(needs_address) {
            let why = "its address is not known here".into();
            let transport = NAME;
            return Posted::refused(0, Error::Unreachable { transport, pe, why });
        }
        let mut posted = Posted::all(ops.len());
        for (accepted, op) in ops.iter().enumerate() {
            let entry = match self.entry(&state, pe, op) {
                Ok(entry) => entry,
                Err(error) => {
                    posted = Posted::refused(accepted, error);
                    break;
                }
            };
            let Some(lane) = state.lanes.get_mut(&self.number) else {
                return Posted::refused(accepted, Error::Closed { transport: NAME });
            };
            let stream = lane.streams.entry(pe.0).or_default();
            if stream.entries.len() >= DEPTH {
                posted = Posted::full(accepted);
                break;
            }
            stream.counters.posted += 1;
            // Operations on this PE's own memory wait for earlier ones only.
            if pe == me
                && stream.entries.is_empty()
                && !goes_through_provider(&entry.op, entry.on_gpu)
            {
                stream.counters.completed += 1;
                // SAFETY: the caller's promise.
                unsafe { state.perform_here(self.number, OwnOp::of(&entry)) };
            } else {
                stream.entries.push_back(entry);
            }
        }
        let waits = state.stream(self.number, pe.0);
        if waits.is_some_and(|stream| stream.current().is_some()) {
            state.list(self.number, pe.0);
        }
        self.shared.pump(&mut state);
        // SAFETY: sources are readable, by the caller's promise.
        unsafe { state.keep_short_sources(self.number, pe.0) };
        posted
    }

    fn progress(&mut self) -> Result<()> {
        self.shared.attended.fetch_add(1, Ordering::Relaxed);
        let mut state = self.shared.lock();
        state.check()?;
        self.shared.drive(&mut state);
        state = self.shared.end_in_place(state, self.number);
        state.check()?;
        let lane = state.lanes.get_mut(&self.number);
        lane.and_then(|lane| lane.reports.pop_front())
            .map_or(Ok(()), Err)
    }

    fn sleep(&mut self, longest: Duration) -> Sleep {
        self.shared.sleep(longest)
    }

    fn counters(&self, pe: Pe) -> Counters {
        let mut state = self.shared.lock();
        let stream = state.stream(self.number, pe.0);
        stream.map_or_else(Counters::default, |stream| stream.counters)
    }

    fn reusable(&self, pe: Pe) -> u64 {
        let mut state = self.shared.lock();
        let stream = state.stream(self.number, pe.0);
        stream.map_or(0, |stream| Stream::reusable(stream))
    }
}

impl Drop for OfiLane {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        if let Some(lane) = state.lanes.get_mut(&self.number) {
            lane.streams.values_mut().for_each(Stream::cancel);
        }
        state = self.shared.end_dropped(state, self.number);
        state.lanes.remove(&self.number);
    }
}
