//! The rendezvous' way in: accepts connections, authenticates them, and admits PEs to their ranks.
//!
//! A flood of connections that never authenticate keeps no PE out: the oldest are dropped for new ones, warnings about them
//! are counted, and none is waited for.

use std::io::ErrorKind;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::control::Control;
use super::member::{Member, Standing};
use super::refusals::Refusals;
use super::unauthenticated::{Unauthenticated, Verdict};
use crate::job_key::JobKey;
use crate::protocol::frame::Frame;
use crate::protocol::hello::{Claim, WATCHER};

/// Connections that may be open without having proven that they know the key; more push out the oldest,
/// and a PE that is pushed out so connects again.
const MAX_UNAUTHENTICATED: usize = 256;
/// Connections accepted before the others are polled again.
const MAX_ACCEPTS: usize = 64;
/// Pause before new connections are accepted when there is no descriptor left for them.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The listener, and the connections that are not PEs' (yet).
pub(super) struct Admission {
    /// Closed when every rank has joined or ended: no other is expected.
    listener: Option<TcpListener>,
    key: JobKey,
    control: Arc<Control>,
    unauthenticated: Vec<Unauthenticated>,
    /// Connections of watchers, held open until either end hangs up, which is all that they are for.
    watchers: Vec<TcpStream>,
    refusals: Refusals,
    accept_after: Option<Instant>,
    /// Whether the user has been told that connections cannot be accepted.
    warned_of_accept: bool,
}

/// A descriptor to poll.
#[derive(Clone, Copy)]
pub(super) enum AdmissionSource {
    Listener,
    Unauthenticated(usize),
    Watcher(usize),
}

impl Admission {
    pub(super) fn new(listener: TcpListener, key: JobKey, control: Arc<Control>) -> Admission {
        Admission {
            listener: Some(listener),
            key,
            control,
            unauthenticated: Vec::new(),
            watchers: Vec::new(),
            refusals: Refusals::default(),
            accept_after: None,
            warned_of_accept: false,
        }
    }

    /// The descriptors to poll for input. Connections come last to first, so that the indices stay right while
    /// some are removed; the listener comes after them, as it adds some.
    pub(super) fn sources(&self) -> impl Iterator<Item = (AdmissionSource, BorrowedFd<'_>)> {
        let unauthenticated = self.unauthenticated.iter().enumerate().rev();
        let unauthenticated = unauthenticated
            .map(|(index, one)| (AdmissionSource::Unauthenticated(index), one.stream.as_fd()));
        let watchers = self.watchers.iter().enumerate().rev();
        let watchers = watchers.map(|(index, one)| (AdmissionSource::Watcher(index), one.as_fd()));
        let listener = self.listener.as_ref();
        let listener = listener.filter(|_| self.accept_after.is_none());
        let listener = listener.map(|listener| (AdmissionSource::Listener, listener.as_fd()));
        unauthenticated.chain(watchers).chain(listener)
    }

    /// The next time at which [`expire`](Self::expire) has something to do.
    pub(super) fn due(&self) -> Option<Instant> {
        let deadlines = self.unauthenticated.iter().map(Unauthenticated::deadline);
        deadlines.chain(self.accept_after).min()
    }

    /// Goes on with a descriptor that has become ready.
    pub(super) fn handle_ready(&mut self, source: AdmissionSource, members: &mut [Member]) {
        match source {
            AdmissionSource::Listener => self.accept(members),
            AdmissionSource::Unauthenticated(index) => self.authenticate(index, members),
            // A watcher sends nothing, so the event is its end.
            AdmissionSource::Watcher(index) => drop(self.watchers.swap_remove(index)),
        }
    }

    /// Drops connections that have not authenticated in time.
    pub(super) fn expire(&mut self, now: Instant) {
        self.unauthenticated.retain(|one| one.deadline() > now);
        self.accept_after = self.accept_after.filter(|after| *after > now);
    }

    /// Closes the listener once every rank has joined or ended.
    pub(super) fn close_if_complete(&mut self, members: &[Member]) {
        let is_absent = |member: &Member| member.standing == Standing::Absent;
        if self.listener.is_some() && !members.iter().any(is_absent) {
            self.listener = None;
        }
    }

    fn accept(&mut self, members: &mut [Member]) {
        for _ in 0..MAX_ACCEPTS {
            self.drop_oldest(members);
            let Some(listener) = &self.listener else {
                return;
            };
            match listener.accept() {
                Ok((stream, _)) => {
                    if stream.set_nonblocking(true).is_err() {
                        continue;
                    }
                    // Without it frames are late, never wrong.
                    let _ = stream.set_nodelay(true);
                    let connection = Unauthenticated::new(stream, Instant::now());
                    self.unauthenticated.push(connection);
                    // A PE sends its hello at once, so most hellos are here by now.
                    self.authenticate(self.unauthenticated.len() - 1, members);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::Interrupted | ErrorKind::ConnectionAborted
                    ) => {}
                Err(error) => {
                    if !std::mem::replace(&mut self.warned_of_accept, true) {
                        self.control.warn(format!(
                            "the rendezvous cannot accept a connection and keeps trying: {error}; \
                             if it has no descriptors left, raise its limit (ulimit -n)"
                        ));
                    }
                    self.accept_after = Some(Instant::now() + ACCEPT_PAUSE);
                    return;
                }
            }
        }
    }

    /// Frees a place for one more connection: drops the oldest, whatever it has sent: without its proof that shows
    /// nothing.
    fn drop_oldest(&mut self, members: &mut [Member]) {
        while self.unauthenticated.len() >= MAX_UNAUTHENTICATED {
            let before = self.unauthenticated.len();
            // Its proof may have come by now.
            self.authenticate(0, members);
            if self.unauthenticated.len() == before {
                self.unauthenticated.remove(0);
            }
        }
    }

    /// Reads from a connection, and admits it if it is a PE of this job.
    fn authenticate(&mut self, index: usize, members: &mut [Member]) {
        let Some(connection) = self.unauthenticated.get_mut(index) else {
            return;
        };
        let verdict = connection.read(&self.key);
        if matches!(verdict, Verdict::Pending) {
            return;
        }
        let connection = self.unauthenticated.remove(index);
        match verdict {
            Verdict::Pending | Verdict::Drop => {}
            Verdict::Refuse(why) => self.refuse(connection, why),
            // Each host has one watcher and at least one PE, so there are never more watchers than PEs.
            Verdict::Pe(claim) if claim.rank == WATCHER && self.watchers.len() < members.len() => {
                self.watchers.extend(connection.welcome());
            }
            // Most likely the last words of a process that ended while it joined.
            Verdict::Pe(claim) if has_ended(claim.rank, members) => {}
            Verdict::Pe(claim) => match objection(claim, members) {
                Some(why) => self.refuse(connection, why),
                None => {
                    if let Some(member) = members.get_mut(claim.rank as usize) {
                        member.standing = Standing::Present;
                        member.stream = Some(connection.stream);
                        member.queue_first(Frame::Welcome.encode().into());
                    }
                }
            },
        }
    }

    fn refuse(&mut self, connection: Unauthenticated, why: String) {
        let origin = connection.origin();
        let warning = format!("refused a connection from {origin}: {why}");
        if let Some(line) = self.refusals.add(warning) {
            self.control.warn(line);
        }
        connection.refuse(why);
    }
}

/// Whether that rank's process has ended, as the owner says.
fn has_ended(rank: u32, members: &[Member]) -> bool {
    let member = members.get(rank as usize);
    member.is_some_and(|member| member.process_ended)
}

/// The reason for which a PE that knows the key cannot join, if there is one.
fn objection(claim: Claim, members: &[Member]) -> Option<String> {
    let size = members.len();
    if claim.size as usize != size {
        return Some(format!(
            "it was told that the job has {} PEs, but the rendezvous was told {size}; start \
             all with the same number",
            claim.size
        ));
    }
    let rank = claim.rank;
    match members.get(rank as usize).map(|member| member.standing) {
        Some(Standing::Absent) => None,
        Some(Standing::Present) => Some(format!(
            "another process is rank {rank} of this job already; give each PE its own rank"
        )),
        Some(Standing::Left | Standing::Died) => Some(format!(
            "rank {rank} of this job has ended already; a process joins once, and an ended PE \
             is not replaced"
        )),
        None => Some(format!("the job has ranks 0 to {}", size.saturating_sub(1))),
    }
}
