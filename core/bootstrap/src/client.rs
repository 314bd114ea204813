//! A PE's side of the rendezvous.

use std::io::Write;
use std::net::{Shutdown, TcpStream};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvFlags, recv};

use crate::delivery::{Delivery, MAX_WAITING_BYTES, join_service};
use crate::descriptors::{self, Exchange};
use crate::error::io;
use crate::fault::Fault;
use crate::hub::Hub;
use crate::job_key::JobKey;
use crate::launch::process_status;
use crate::protocol::{
    Channel, Frame, FrameParser, Hello, Kind, MAX_MESSAGE_BYTES, check_bytes, gathered_share,
};
use crate::wake::Wake;
use crate::{AskHandler, Bootstrap, Error, ExitHandler, MessageHandler, PeerExit, Result};

mod connect;
#[cfg(test)]
mod tests;

use connect::connect;
pub(crate) use connect::{Attempt, Listens, introduce};

/// How long after a collective call's deadline the rendezvous may still answer.
const GRACE: Duration = Duration::from_secs(5);
/// How long an abort waits for the rendezvous to end this process.
const ABORT_PATIENCE: Duration = Duration::from_secs(5);
/// How long who ends waits for the rendezvous to close the connection, too. What comes for a connection that is closed
/// already resets it, and a last word that was lost on its way is then not sent again.
const PARTING: Duration = Duration::from_secs(2);

/// A PE of a job whose PEs are processes, connected to the job's rendezvous over TCP.
///
/// A thread of its own, the receive service, reads what comes. Dropping it without
/// [`leave`](Bootstrap::leave) counts as dying. Where this process hosts the rendezvous (rank 0 of
/// a job that something other than oxshmem's launcher started), dropping it waits until the other
/// ranks have left or died, at most the deadline it was made with.
#[derive(Debug)]
pub struct TcpBootstrap {
    address: String,
    deadline: Duration,
    link: Arc<Link>,
    service: Option<JoinHandle<()>>,
    hub: Option<Arc<Hub>>,
    /// Through what it learnt of the rendezvous, if not from variables.
    found_by: Option<&'static str>,
}

/// What the PE's threads and its receive service share.
#[derive(Debug)]
struct Link {
    rank: u32,
    size: u32,
    stream: TcpStream,
    /// Held while a frame is written, so that frames stay whole.
    writing: Mutex<()>,
    /// Held during a collective call.
    collective: Mutex<()>,
    state: Mutex<State>,
    changed: Condvar,
    delivery: Delivery,
    /// Gives this PE's waits.
    waits: OnceLock<Waits>,
    wake: Wake,
}

/// The function that lists this PE's waits.
struct Waits(AskHandler);

impl std::fmt::Debug for Waits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Waits").finish_non_exhaustive()
    }
}

/// What came of the collective call with this number.
type Answer = (u64, std::result::Result<Vec<Vec<u8>>, Fault>);

#[derive(Debug, Default)]
struct State {
    /// The number of the next collective call.
    sequence: u64,
    answer: Option<Answer>,
    fault: Option<Fault>,
    gone: Vec<PeerExit>,
    left: bool,
    closing: bool,
    descriptors: descriptors::Inbox,
}

impl TcpBootstrap {
    /// Connects rank `rank` of `size` to the rendezvous at `address` ("host:port"), retrying until
    /// `deadline` because the rendezvous may start later. `deadline` also bounds each collective
    /// call.
    pub fn connect(
        address: &str,
        rank: u32,
        size: u32,
        key: JobKey,
        deadline: Duration,
    ) -> Result<TcpBootstrap> {
        let hello = Hello { rank, size, key };
        Self::new(address, hello, deadline, Listens::Later, None)
    }

    /// As [`connect`](Self::connect); `hub`, if any, is the rendezvous, in this process. There may
    /// be several addresses, between commas, to be tried in this order.
    pub(crate) fn new(
        address: &str,
        hello: Hello,
        deadline: Duration,
        listens: Listens,
        hub: Option<Hub>,
    ) -> Result<TcpBootstrap> {
        let Hello { rank, size, .. } = hello;
        let link = Arc::new(Link {
            rank,
            size,
            stream: connect(address, hello, deadline, listens)?,
            writing: Mutex::default(),
            collective: Mutex::default(),
            state: Mutex::default(),
            changed: Condvar::new(),
            delivery: Delivery::default(),
            waits: OnceLock::new(),
            wake: Wake::new()?,
        });
        let hub = hub.map(Arc::new);
        let service = {
            let (link, hub) = (Arc::clone(&link), hub.clone());
            std::thread::Builder::new()
                .name("oxshmem-receive".into())
                .stack_size(crate::SERVICE_STACK)
                .spawn(move || link.serve(hub.as_deref()))
                .map_err(io("starting the receive service's thread"))?
        };
        let service = Some(service);
        Ok(TcpBootstrap {
            address: address.to_owned(),
            deadline,
            link,
            service,
            hub,
            found_by: None,
        })
    }

    /// The same, learnt of through `found_by`, and with the deadline that its collective calls have
    /// from now on.
    pub(crate) fn found_by(mut self, found_by: &'static str, deadline: Duration) -> TcpBootstrap {
        self.found_by = Some(found_by);
        self.deadline = deadline;
        self
    }
}

impl Link {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a whole frame, in this thread's turn to write.
    fn send_all(&self, frame: &[u8], _turn: MutexGuard<'_, ()>) -> std::io::Result<()> {
        let sent = (&self.stream).write_all(frame);
        if sent.is_err() {
            // A frame cut off in the middle makes the rest of the stream meaningless. Shutting it
            // down ends the receive service, which then tells of the loss.
            let _ = self.stream.shutdown(Shutdown::Both);
        }
        sent
    }

    /// Sends one frame whole. A frame that cannot be sent means that the rendezvous is lost.
    fn write(&self, operation: &'static str, frame: &Frame) -> Result<()> {
        let bytes = frame.encode();
        let turn = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        self.send_all(&bytes, turn)
            .map_err(|error| match &self.lock().fault {
                Some(fault) => fault.error(operation),
                None => Error::HubLost {
                    operation,
                    why: error.to_string(),
                },
            })
    }

    /// Fails if this PE may not make `operation` any more.
    fn check(&self, operation: &'static str) -> Result<MutexGuard<'_, State>> {
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
    fn collect(&self, kind: Kind, bytes: Vec<u8>, deadline: Duration) -> Result<Vec<Vec<u8>>> {
        let operation = kind.name();
        let _turn = self
            .collective
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
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
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The receive service: reads until the connection ends.
    fn serve(&self, hub: Option<&Hub>) {
        // Also when a handler panics, nobody shall wait for answers that will not be read.
        struct AtEnd<'a>(&'a Link, String);
        impl Drop for AtEnd<'_> {
            fn drop(&mut self) {
                self.0.lose(std::mem::take(&mut self.1));
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
                    Ok(Some(frame)) => self.act(frame, hub),
                    Ok(None) => break None,
                    Err(error) => break Some(error),
                }
            };
            if let Some(error) = malformed {
                break error.to_string();
            }
        };
        drop(end);
        // Handlers that are set from now on still hear of all that came.
        self.delivery.serve();
    }

    fn act(&self, frame: Frame, hub: Option<&Hub>) {
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
                if let Ok(turn) = self.writing.try_lock() {
                    // Where it cannot be sent nobody asks any more.
                    let _ = self.send_all(&frame.encode(), turn);
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
    fn lose(&self, why: String) {
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
}

impl Bootstrap for TcpBootstrap {
    fn rank(&self) -> u32 {
        self.link.rank
    }

    fn size(&self) -> u32 {
        self.link.size
    }

    fn describe(&self) -> String {
        let Link { rank, size, .. } = *self.link;
        let host = if self.hub.is_some() {
            " (hosted here)"
        } else {
            ""
        };
        let found = match self.found_by {
            Some(name) => format!(", found by {name}"),
            None => String::new(),
        };
        format!(
            "tcp: rank {rank} of {size}, rendezvous at {}{host}{found}",
            self.address
        )
    }

    fn allgather(&self, mine: &[u8]) -> Result<Vec<Vec<u8>>> {
        let limit = gathered_share(self.link.size as usize);
        check_bytes("allgather", mine.len(), limit)?;
        let parts = self
            .link
            .collect(Kind::Allgather, mine.to_vec(), self.deadline)?;
        if parts.len() == self.link.size as usize {
            return Ok(parts);
        }
        let what = format!(
            "an allgather with {} parts for {} ranks",
            parts.len(),
            self.link.size
        );
        Err(Error::Protocol { what })
    }

    fn barrier(&self) -> Result<()> {
        self.link
            .collect(Kind::Barrier, Vec::new(), self.deadline)
            .map(drop)
    }

    fn send(&self, to: u32, message: &[u8]) -> Result<()> {
        self.link.send("send", to, Channel::User, message)
    }

    fn on_message(&self, handler: MessageHandler) -> Result<()> {
        self.link.delivery.set_on_message(handler)?;
        self.link.wake.signal();
        Ok(())
    }

    fn on_ask(&self, handler: AskHandler) -> Result<()> {
        let set = self.link.waits.set(Waits(handler));
        set.map_err(|_| Error::HandlerSet { which: "on_ask" })
    }

    fn hangs(&self) {
        // The loss of the rendezvous is told elsewhere.
        let _ = self.link.write("hangs", &Frame::Hangs);
    }

    fn on_exit(&self, handler: ExitHandler) -> Result<()> {
        self.link.delivery.set_on_exit(handler)?;
        self.link.wake.signal();
        Ok(())
    }

    fn share_descriptors(
        &self,
        among: &[u32],
        mine: &[BorrowedFd<'_>],
        deadline: Duration,
    ) -> Result<Vec<Vec<OwnedFd>>> {
        descriptors::check_list(among, self.link.rank, self.link.size)?;
        let turn = self
            .link
            .check("share_descriptors")?
            .descriptors
            .begin(among);
        Exchange {
            peers: &*self.link,
            among,
            turn,
            end: Instant::now() + deadline,
        }
        .run(mine)
    }

    fn abort(&self, status: i32, why: &str) {
        let by = self.link.rank;
        let frame = Frame::Abort {
            by,
            status,
            why: why.to_owned(),
        };
        if self.link.write("abort", &frame).is_err() {
            return;
        }
        // The receive service ends this process when the abort comes back.
        let end = Instant::now() + ABORT_PATIENCE;
        let mut state = self.link.lock();
        while state.fault.is_none() {
            let Some(left) = end.checked_duration_since(Instant::now()) else {
                return;
            };
            let waited = self.link.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn leave(&self) {
        if !std::mem::replace(&mut self.link.lock().left, true) {
            // If it cannot be said, there is nobody left to say it to.
            let _ = self.link.write("leave", &Frame::Leave);
        }
    }

    fn outlast(&self) {
        if let Some(hub) = &self.hub {
            hub.wait_until_deserted(self.deadline);
        }
    }

    fn rest(&self, may_end: bool) {
        // As in `leave`.
        let _ = self.link.write("rest", &Frame::Rest { may_end });
    }
}

impl Link {
    fn send(
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

impl descriptors::Peers for Link {
    fn rank(&self) -> u32 {
        self.rank
    }

    fn tell(&self, to: u32, message: &[u8]) -> Result<()> {
        self.send("share_descriptors", to, Channel::Descriptors, message)
    }

    fn hear(
        &self,
        from: u32,
        turn: &descriptors::Turn,
        end: Instant,
    ) -> Result<descriptors::Invitation> {
        let operation = "share_descriptors";
        let start = Instant::now();
        let mut state = self.lock();
        loop {
            if let Some(invitation) = state.descriptors.take(from, turn)? {
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
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
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

impl Drop for TcpBootstrap {
    fn drop(&mut self) {
        self.link.lock().closing = true;
        // The rendezvous sees this PE's end behind what it has said, and closes the connection.
        let _ = self.link.stream.shutdown(Shutdown::Write);
        self.link.wake.signal();
        self.link.delivery.close();
        if let Some(service) = self.service.take() {
            join_service(service);
        }
        self.outlast();
    }
}

/// Ends the process without running what it would run at a normal end: another thread may hold any lock. At once, but
/// for a process manager that is to be told first, in a few seconds at most.
pub(crate) fn exit_now(status: i32) -> ! {
    crate::ending::tell(status);
    // SAFETY: `_exit` takes no memory of ours and has no precondition.
    unsafe { libc::_exit(process_status(status)) }
}
