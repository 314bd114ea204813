//! A PE's connection to the rendezvous, which the PE's threads share with its receive service.
//!
//! The receive service is the one reader. Any thread may write; frames stay whole, because each is written under a lock.

use std::io::Write;
use std::net::{Shutdown, TcpStream};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvFlags, recv};

use crate::bootstrap::{AskHandler, PeerExit};
use crate::delivery::Delivery;
use crate::descriptors::Peers;
use crate::descriptors::invitation::{CallId, Inbox, Invitation};
use crate::error::{Error, Result, check_bytes};
use crate::fault::Fault;
use crate::hub::Hub;
use crate::limits::{MAX_MESSAGE_BYTES, MAX_WAITING_BYTES};
use crate::lock::unpoisoned;
use crate::process::exit_now;
use crate::protocol::frame::{Channel, Frame, Kind};
use crate::protocol::parser::FrameParser;
use crate::wake::Wake;

/// Time after a collective call's deadline within which the rendezvous may still answer.
const GRACE: Duration = Duration::from_secs(5);
/// Time limit for a PE that ends to wait until the rendezvous closes the connection, too. Bytes that arrive at a closed
/// connection reset it, and a last word that was lost on its way is then not sent again.
const PARTING: Duration = Duration::from_secs(2);

/// The connection, and the state that its users share.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) rank: u32,
    pub(super) size: u32,
    pub(super) stream: TcpStream,
    /// Held while a frame is written, so that frames stay whole.
    writing: Mutex<()>,
    /// Held during a collective call.
    collective: Mutex<()>,
    state: Mutex<ConnectionState>,
    changed: Condvar,
    pub(super) delivery: Delivery,
    /// Lists this PE's waits.
    waits: OnceLock<Waits>,
    pub(super) wake: Wake,
}

/// The function that lists this PE's waits.
struct Waits(AskHandler);

impl std::fmt::Debug for Waits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Waits").finish_non_exhaustive()
    }
}

/// The result of the collective call with this number.
type CallResult = (u64, Result<Vec<Vec<u8>>, Fault>);

#[derive(Debug, Default)]
pub(super) struct ConnectionState {
    /// The number of the next collective call.
    sequence: u64,
    answer: Option<CallResult>,
    fault: Option<Fault>,
    gone: Vec<PeerExit>,
    pub(super) left: bool,
    pub(super) closing: bool,
    pub(super) descriptors: Inbox,
}

impl Connection {
    pub(super) fn new(rank: u32, size: u32, stream: TcpStream) -> Result<Connection> {
        Ok(Connection {
            rank,
            size,
            stream,
            writing: Mutex::default(),
            collective: Mutex::default(),
            state: Mutex::default(),
            changed: Condvar::new(),
            delivery: Delivery::default(),
            waits: OnceLock::new(),
            wake: Wake::new()?,
        })
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, ConnectionState> {
        unpoisoned(self.state.lock())
    }

    pub(super) fn set_on_ask(&self, handler: AskHandler) -> Result<()> {
        let set = self.waits.set(Waits(handler));
        set.map_err(|_| Error::HandlerSet { which: "on_ask" })
    }

    /// Waits until a fault has ended the job's collective calls, at most `limit`.
    pub(super) fn wait_for_fault(&self, limit: Duration) {
        let end = Instant::now() + limit;
        let mut state = self.lock();
        while state.fault.is_none() {
            let Some(left) = end.checked_duration_since(Instant::now()) else {
                return;
            };
            state = unpoisoned(self.changed.wait_timeout(state, left)).0;
        }
    }

    /// Writes a whole frame. The caller holds the lock for it.
    fn send_all(&self, frame: &[u8], _writing: MutexGuard<'_, ()>) -> std::io::Result<()> {
        let sent = (&self.stream).write_all(frame);
        if sent.is_err() {
            // A frame cut off in the middle makes the rest of the stream meaningless. Shutting it
            // down ends the receive service, which then tells of the loss.
            let _ = self.stream.shutdown(Shutdown::Both);
        }
        sent
    }

    /// Sends one frame whole. A frame that cannot be sent means that the rendezvous is lost.
    pub(super) fn write(&self, operation: &'static str, frame: &Frame) -> Result<()> {
        let bytes = frame.encode();
        self.send_all(&bytes, unpoisoned(self.writing.lock()))
            .map_err(|error| match &self.lock().fault {
                Some(fault) => fault.error(operation),
                None => Error::HubLost {
                    operation,
                    why: error.to_string(),
                },
            })
    }

    /// Fails if this PE may not make `operation` any more.
    pub(super) fn check(&self, operation: &'static str) -> Result<MutexGuard<'_, ConnectionState>> {
        let state = self.lock();
        if state.left {
            return Err(Error::Left { operation });
        }
        match &state.fault {
            Some(fault) => Err(fault.error(operation)),
            None => Ok(state),
        }
    }

    /// One collective call.
    pub(super) fn collect(
        &self,
        kind: Kind,
        bytes: Vec<u8>,
        deadline: Duration,
    ) -> Result<Vec<Vec<u8>>> {
        let operation = kind.name();
        let _one_at_a_time = unpoisoned(self.collective.lock());
        let sequence = {
            let mut state = self.check(operation)?;
            state.sequence += 1;
            state.sequence - 1
        };
        self.write(
            operation,
            &Frame::Enter {
                sequence,
                kind,
                deadline,
                bytes,
            },
        )?;
        let end = Instant::now()
            + deadline
                .saturating_add(GRACE)
                .min(Duration::from_secs(1 << 30));
        let mut state = self.lock();
        loop {
            // An answer counts even if the rendezvous ended right after it.
            if let Some((_, answer)) = state.answer.take_if(|(number, _)| *number == sequence) {
                return answer.map_err(|fault| fault.error(operation));
            }
            if let Some(fault) = &state.fault {
                return Err(fault.error(operation));
            }
            let Some(left) = end.checked_duration_since(Instant::now()) else {
                let waited = deadline + GRACE;
                let mut why = format!("it did not answer within {waited:.1?}");
                if self.delivery.is_full() {
                    why.push_str(&format!(
                        "; this PE stopped listening to it with {MAX_WAITING_BYTES} bytes of \
                         messages and no handler for them: call on_message earlier"
                    ));
                }
                return Err(Error::HubLost { operation, why });
            };
            state = unpoisoned(self.changed.wait_timeout(state, left)).0;
        }
    }

    /// The receive service: reads until the connection ends.
    pub(super) fn serve(&self, hub: Option<&Hub>) {
        // Also when a handler panics, no thread shall wait for answers that will not be read.
        struct AtEnd<'a>(&'a Connection, String);
        impl Drop for AtEnd<'_> {
            fn drop(&mut self) {
                self.0.fail_peers(std::mem::take(&mut self.1));
            }
        }
        let mut end = AtEnd(self, "a handler panicked".to_owned());
        let mut parser = FrameParser::default();
        let mut scratch = vec![0; 16 << 10];
        let mut until: Option<Instant> = None;
        end.1 = loop {
            self.delivery.deliver();
            // With too many messages and no handler nothing more is read, so that senders wait,
            // until one is set (which wakes) or the rendezvous ends.
            let readable = if self.delivery.is_full() {
                PollFlags::RDHUP
            } else {
                PollFlags::IN
            };
            let mut waits = [
                PollFd::new(&self.stream, readable),
                PollFd::new(&self.wake, PollFlags::IN),
            ];
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                break "this PE closed it".to_owned();
            }
            let left = left.and_then(|left| Timespec::try_from(left).ok());
            match poll(&mut waits, left.as_ref()) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => break error.to_string(),
            }
            if !waits[1].revents().is_empty() {
                self.wake.clear();
                if self.lock().closing {
                    until.get_or_insert_with(|| Instant::now() + PARTING);
                }
            }
            if waits[0].revents().is_empty() {
                continue;
            }
            match recv(&self.stream, scratch.as_mut_slice(), RecvFlags::DONTWAIT) {
                Ok((_, 0)) => break "it closed the connection".to_owned(),
                Ok((_, count)) => parser.push(&scratch[..count]),
                Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => continue,
                Err(error) => break error.to_string(),
            }
            let malformed = loop {
                match parser.next() {
                    Ok(Some(frame)) => self.handle_frame(frame, hub),
                    Ok(None) => break None,
                    Err(error) => break Some(error),
                }
            };
            if let Some(error) = malformed {
                break error.to_string();
            }
        };
        drop(end);
        // Handlers that are set from now on still get all that was received.
        self.delivery.serve();
    }

    fn handle_frame(&self, frame: Frame, hub: Option<&Hub>) {
        match frame {
            Frame::Complete { sequence, parts } => {
                self.lock().answer = Some((sequence, Ok(parts)));
                self.changed.notify_all();
            }
            Frame::Failed { sequence, fault } => {
                self.lock().answer = Some((sequence, Err(fault)));
                self.changed.notify_all();
            }
            Frame::Message {
                rank,
                channel: Channel::User,
                bytes,
            } => {
                self.delivery.push_message(rank, bytes);
                self.delivery.deliver();
            }
            Frame::Message {
                rank,
                channel: Channel::Descriptors,
                bytes,
            } => {
                self.lock().descriptors.push(rank, &bytes);
                self.changed.notify_all();
            }
            Frame::Exit { rank, orderly } => {
                let exit = PeerExit { rank, orderly };
                self.lock().gone.push(exit);
                self.changed.notify_all();
                self.delivery.push_exit(exit);
                self.delivery.deliver();
            }
            Frame::Abort { status, .. } => {
                if let Some(hub) = hub {
                    hub.say_abort();
                    // This process takes the rendezvous with it: the others hear of it first.
                    hub.wait_until_sent(Duration::from_secs(1));
                }
                exit_now(status)
            }
            Frame::Ask { question } => {
                let waits = self
                    .waits
                    .get()
                    .map_or_else(Vec::new, |Waits(waits)| waits());
                let frame = Frame::Waits { question, waits };
                // A thread that sends may be held by the rendezvous until this one has read more: then nothing is answered.
                if let Ok(writing) = self.writing.try_lock() {
                    // If it cannot be sent, nobody asks any more.
                    let _ = self.send_all(&frame.encode(), writing);
                }
            }
            Frame::Challenge { .. }
            | Frame::Welcome
            | Frame::Refusal(_)
            | Frame::Enter { .. }
            | Frame::Leave
            | Frame::Rest { .. }
            | Frame::Waits { .. }
            | Frame::Hangs => {
                tracing::warn!("ignored a bootstrap frame that makes no sense here: {frame:?}");
            }
        }
    }

    /// The rendezvous is lost, and with it all peers (unless this PE has left them).
    fn fail_peers(&self, why: String) {
        let mut state = self.lock();
        if !state.left && !state.closing {
            let known: Vec<u32> = state.gone.iter().map(|exit| exit.rank).collect();
            for rank in (0..self.size).filter(|rank| *rank != self.rank && !known.contains(rank)) {
                let exit = PeerExit {
                    rank,
                    orderly: false,
                };
                state.gone.push(exit);
                self.delivery.push_exit(exit);
            }
        }
        state.fault.get_or_insert(Fault::HubLost { why });
        drop(state);
        self.changed.notify_all();
    }

    /// Sends a message to one rank.
    pub(super) fn send(
        &self,
        operation: &'static str,
        to: u32,
        channel: Channel,
        message: &[u8],
    ) -> Result<()> {
        if to >= self.size {
            return Err(Error::NoSuchRank {
                rank: to,
                size: self.size,
            });
        }
        check_bytes(operation, message.len(), MAX_MESSAGE_BYTES)?;
        let state = self.check(operation)?;
        if let Some(exit) = state.gone.iter().find(|exit| exit.rank == to) {
            return Err(Error::PeerGone {
                operation,
                rank: to,
                orderly: exit.orderly,
            });
        }
        drop(state);
        self.write(
            operation,
            &Frame::Message {
                rank: to,
                channel,
                bytes: message.to_vec(),
            },
        )
    }
}

impl Peers for Connection {
    fn rank(&self) -> u32 {
        self.rank
    }

    fn send_invitation(&self, to: u32, message: &[u8]) -> Result<()> {
        self.send("share_descriptors", to, Channel::Descriptors, message)
    }

    fn await_invitation(&self, from: u32, call: &CallId, end: Instant) -> Result<Invitation> {
        let operation = "share_descriptors";
        let start = Instant::now();
        let mut state = self.lock();
        loop {
            if let Some(invitation) = state.descriptors.take_invitation(from, call)? {
                return Ok(invitation);
            }
            if let Some(fault) = &state.fault {
                return Err(fault.error(operation));
            }
            if let Some(exit) = state.gone.iter().find(|exit| exit.rank == from) {
                return Err(Error::PeerGone {
                    operation,
                    rank: from,
                    orderly: exit.orderly,
                });
            }
            let Some(left) = end.checked_duration_since(Instant::now()) else {
                let waited = start.elapsed();
                return Err(Error::MissingRanks {
                    operation,
                    ranks: vec![from],
                    waited,
                });
            };
            state = unpoisoned(self.changed.wait_timeout(state, left)).0;
        }
    }

    fn gone(&self, among: &[u32]) -> Option<PeerExit> {
        self.lock()
            .gone
            .iter()
            .find(|exit| among.contains(&exit.rank))
            .copied()
    }
}
