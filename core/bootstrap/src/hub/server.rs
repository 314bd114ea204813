//! The rendezvous' thread: waits for all connections at once and answers each.

use std::io::ErrorKind;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::member::{Member, Standing};
use super::stranger::{Identity, Stranger};
use super::survey::{Found, Survey};
use super::warnings::Warnings;
use super::{AbortNotice, Shared, Speech};
use crate::fault::Fault;
use crate::job_key::JobKey;
use crate::protocol::{Claim, Frame, Kind, MAX_MESSAGE_BYTES, WATCHER, gathered_share};
use crate::rounds::{Rounds, Step};

/// Connections that may be open without having proven that they know the key; more push out the oldest,
/// and a PE that is pushed out so connects again.
const MAX_STRANGERS: usize = 256;
/// Connections taken before the others are looked at again.
const MAX_ACCEPTS: usize = 64;
/// Bytes that may wait for one rank before those that send to it are made to wait.
const MAX_BACKLOG: usize = 4 << 20;
/// Answers to its collective calls that may wait for one rank: a PE makes one call at a time, and the next after an answer.
const MAX_ANSWERS: usize = 4;
/// How long new connections wait when there is no descriptor or place left for them.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

pub(super) struct Server {
    /// Closed when every rank has joined or ended: nobody else is expected.
    listener: Option<TcpListener>,
    shared: Arc<Shared>,
    key: JobKey,
    speech: Speech,
    members: Vec<Member>,
    strangers: Vec<Stranger>,
    /// Held open until either end hangs up, which is all they are for.
    watchers: Vec<TcpStream>,
    /// Warnings about strangers.
    refusals: Warnings,
    rounds: Rounds,
    survey: Survey,
    accept_after: Option<Instant>,
    /// Whether the user has been told that connections cannot be accepted.
    told_of_accept: bool,
    scratch: Vec<u8>,
}

/// What `poll` watched.
#[derive(Clone, Copy)]
enum Source {
    Wake,
    Listener,
    Stranger(usize),
    Watcher(usize),
    Member(usize),
}

impl Server {
    pub(super) fn new(
        listener: TcpListener,
        shared: Arc<Shared>,
        (size, key): (u32, JobKey),
        speech: Speech,
    ) -> Server {
        let absent = |_| Member::absent(size as usize);
        Server {
            listener: Some(listener),
            shared,
            key,
            speech,
            members: (0..size).map(absent).collect(),
            strangers: Vec::new(),
            watchers: Vec::new(),
            refusals: Warnings::default(),
            rounds: Rounds::new(size),
            survey: Survey::default(),
            accept_after: None,
            told_of_accept: false,
            scratch: vec![0; 64 << 10],
        }
    }

    pub(super) fn run(mut self) {
        loop {
            let ready = match self.wait() {
                Ok(ready) => ready,
                Err(error) => {
                    self.warn(format!(
                        "the rendezvous ends, since it cannot wait for its connections: {error}"
                    ));
                    return;
                }
            };
            for (source, events) in ready {
                match source {
                    Source::Wake => {
                        if !self.heed_owner() {
                            return;
                        }
                    }
                    Source::Listener => self.accept(),
                    Source::Stranger(index) => self.meet(index),
                    // It was to say nothing, so that what came is its end.
                    Source::Watcher(index) => drop(self.watchers.swap_remove(index)),
                    Source::Member(index) => self.serve(index, events),
                }
            }
            self.expire();
            self.flush();
            let is_absent = |member: &Member| member.standing == Standing::Absent;
            if self.listener.is_some() && !self.members.iter().any(is_absent) {
                self.listener = None;
            }
        }
    }

    /// Warns on stderr, which this thread never waits for.
    fn warn(&self, warning: String) {
        match self.speech.warn {
            Some(warn) => warn(&warning),
            None => {
                self.shared.lock().warnings.push(warning);
                self.shared.owner.signal();
            }
        }
    }

    /// Warns of a stranger, unless there have been many such.
    fn warn_of_stranger(&mut self, warning: String) {
        if let Some(line) = self.refusals.add(warning) {
            self.warn(line);
        }
    }

    /// Waits until something is ready or due. Strangers and watchers come last to first, so that the
    /// indices stay right while some are removed.
    fn wait(&self) -> rustix::io::Result<Vec<(Source, PollFlags)>> {
        let mut sources = vec![Source::Wake];
        let mut waits = vec![PollFd::new(&self.shared.wake, PollFlags::IN)];
        for (index, member) in self.members.iter().enumerate() {
            let Some(stream) = &member.stream else {
                continue;
            };
            let mut events = PollFlags::empty();
            // A held sender is not read from, yet its end is seen.
            events.set(PollFlags::IN, member.held.is_none());
            events.set(PollFlags::RDHUP, member.held.is_some());
            events.set(PollFlags::OUT, member.backlog() > 0);
            sources.push(Source::Member(index));
            waits.push(PollFd::from_borrowed_fd(stream.as_fd(), events));
        }
        for (index, stranger) in self.strangers.iter().enumerate().rev() {
            sources.push(Source::Stranger(index));
            waits.push(PollFd::from_borrowed_fd(
                stranger.stream.as_fd(),
                PollFlags::IN,
            ));
        }
        for (index, watcher) in self.watchers.iter().enumerate().rev() {
            sources.push(Source::Watcher(index));
            waits.push(PollFd::new(watcher, PollFlags::IN));
        }
        if let Some(listener) = self
            .listener
            .as_ref()
            .filter(|_| self.accept_after.is_none())
        {
            sources.push(Source::Listener);
            waits.push(PollFd::new(listener, PollFlags::IN));
        }
        let due = self
            .strangers
            .iter()
            .map(Stranger::until)
            .chain(self.rounds.deadline());
        let due = due.chain(self.accept_after).chain(self.survey.due()).min();
        let timeout = due.map(|due| due.saturating_duration_since(Instant::now()));
        // Rounded up, so as not to wake just before the time and find nothing due.
        let timeout =
            timeout.and_then(|left| Timespec::try_from(left + Duration::from_millis(1)).ok());
        match poll(&mut waits, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error),
        }
        let ready = sources.into_iter().zip(waits.iter().map(PollFd::revents));
        Ok(ready.filter(|(_, events)| !events.is_empty()).collect())
    }

    /// Does what the owner asks; false if that is to end.
    fn heed_owner(&mut self) -> bool {
        self.shared.wake.clear();
        let (stop, ended, ask) = {
            let control = &mut *self.shared.lock();
            let ended = std::mem::take(&mut control.ended);
            (control.stop, ended, std::mem::take(&mut control.ask))
        };
        if ask {
            self.survey.begin(&mut self.members, true);
        }
        for rank in ended {
            let index = rank as usize;
            let Some(member) = self.members.get_mut(index) else {
                continue;
            };
            member.process_ended = true;
            if member.standing == Standing::Absent {
                self.end(rank, false);
            } else if member.held.is_some() {
                // What it had yet to send may keep the end of its connection from coming.
                self.obey(index);
            }
        }
        !stop
    }

    fn accept(&mut self) {
        for _ in 0..MAX_ACCEPTS {
            self.make_room();
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
                    self.strangers.push(Stranger::new(stream, Instant::now()));
                    // A PE speaks at once, so most have by now.
                    self.meet(self.strangers.len() - 1);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::Interrupted | ErrorKind::ConnectionAborted
                    ) => {}
                Err(error) => {
                    if !std::mem::replace(&mut self.told_of_accept, true) {
                        self.warn(format!(
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

    /// Makes room for one more stranger, at the cost of the oldest, whatever it has said: what a stranger
    /// says shows nothing before its proof.
    fn make_room(&mut self) {
        while self.strangers.len() >= MAX_STRANGERS {
            let before = self.strangers.len();
            // Its proof may have come by now.
            self.meet(0);
            if self.strangers.len() == before {
                self.strangers.remove(0);
            }
        }
    }

    /// Hears a stranger, and makes a member of it if it is one.
    fn meet(&mut self, index: usize) {
        let Some(stranger) = self.strangers.get_mut(index) else {
            return;
        };
        let identity = stranger.listen(&self.key);
        if matches!(identity, Identity::Unknown) {
            return;
        }
        let stranger = self.strangers.remove(index);
        match identity {
            Identity::Unknown | Identity::Nobody => {}
            Identity::Refused(why) => self.refuse(stranger, why),
            // Each host has one, and a PE at least.
            Identity::Pe(claim)
                if claim.rank == WATCHER && self.watchers.len() < self.members.len() =>
            {
                self.watchers.extend(stranger.welcome());
            }
            // The last of a process that ended while it joined, most likely.
            Identity::Pe(claim) if self.has_ended(claim.rank) => {}
            Identity::Pe(claim) => match self.objection(claim) {
                Some(why) => self.refuse(stranger, why),
                None => {
                    let Some(member) = self.members.get_mut(claim.rank as usize) else {
                        return;
                    };
                    member.standing = Standing::Present;
                    member.stream = Some(stranger.stream);
                    member.queue_first(Frame::Welcome.encode().into());
                }
            },
        }
    }

    /// Whether that rank's process has ended, as the owner says.
    fn has_ended(&self, rank: u32) -> bool {
        let member = self.members.get(rank as usize);
        member.is_some_and(|member| member.process_ended)
    }

    fn refuse(&mut self, stranger: Stranger, why: String) {
        let origin = stranger.origin();
        self.warn_of_stranger(format!("refused a connection from {origin}: {why}"));
        stranger.refuse(why);
    }

    /// Why a PE that knows the key cannot join, if so.
    fn objection(&self, claim: Claim) -> Option<String> {
        let size = self.members.len();
        if claim.size as usize != size {
            return Some(format!(
                "it was told that the job has {} PEs, but the rendezvous was told {size}; start \
                 all with the same number",
                claim.size
            ));
        }
        let rank = claim.rank;
        match self
            .members
            .get(rank as usize)
            .map(|member| member.standing)
        {
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

    /// Reads from a member and does what it says.
    fn serve(&mut self, index: usize, events: PollFlags) {
        let end = PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
        if !events.intersects(PollFlags::IN | end) {
            return;
        }
        let Some(member) = self.members.get_mut(index) else {
            return;
        };
        if member.held.is_some() {
            // What is reported here is its end.
            self.hear_last(index);
        } else {
            if !matches!(member.fill(&mut self.scratch), Ok(true)) {
                member.finish();
            }
            self.obey(index);
        }
    }

    /// Does what a member has said before its connection ended: a goodbye, perhaps.
    fn hear_last(&mut self, index: usize) {
        if let Some(member) = self.members.get_mut(index) {
            // There is only so much left to read.
            member.fill_rest(&mut self.scratch);
            member.finish();
            self.obey(index);
        }
    }

    /// Does what a member's whole frames say, until one has to wait.
    fn obey(&mut self, index: usize) {
        loop {
            let Some(member) = self.members.get_mut(index) else {
                return;
            };
            if let Some((to, frame)) = member.held.take() {
                self.pass_on(index, to, frame);
                if self
                    .members
                    .get(index)
                    .is_some_and(|member| member.held.is_some())
                {
                    return;
                }
                continue;
            }
            match member.next_frame() {
                Ok(Some(frame)) => {
                    if !self.act(index, frame) {
                        self.disconnect(index);
                        return;
                    }
                }
                Ok(None) => {
                    if member.finished {
                        self.disconnect(index);
                    }
                    return;
                }
                Err(error) => {
                    self.warn(format!("dropped rank {index}'s connection: {error}"));
                    self.disconnect(index);
                    return;
                }
            }
        }
    }

    /// Does what a frame says; false if it makes no sense.
    fn act(&mut self, index: usize, frame: Frame) -> bool {
        let Ok(rank) = u32::try_from(index) else {
            return false;
        };
        let broken = match frame {
            Frame::Enter {
                sequence,
                kind,
                deadline,
                bytes,
            } => {
                let limit = match kind {
                    Kind::Barrier => 0,
                    Kind::Allgather => gathered_share(self.members.len()),
                };
                let answers = self.members.get(index).map_or(0, Member::answers);
                if answers >= MAX_ANSWERS {
                    "collective calls without taking their answers"
                } else if bytes.len() <= limit {
                    let step = self.rounds.enter(rank, sequence, kind, deadline, bytes);
                    self.announce(step);
                    return true;
                } else {
                    "more bytes than a collective call takes"
                }
            }
            Frame::Message {
                rank: to,
                channel,
                bytes,
            } => {
                if bytes.len() <= MAX_MESSAGE_BYTES && (to as usize) < self.members.len() {
                    let frame = Frame::Message {
                        rank,
                        channel,
                        bytes,
                    }
                    .encode();
                    self.pass_on(index, to, frame.into());
                    return true;
                }
                "a message that is too long or to no rank"
            }
            Frame::Abort { status, why, .. } => {
                self.abort(AbortNotice { rank, status, why });
                return true;
            }
            Frame::Leave => {
                if self
                    .members
                    .get(index)
                    .is_some_and(|m| m.standing == Standing::Present)
                {
                    self.end(rank, true);
                }
                return true;
            }
            Frame::Rest { may_end } => {
                if let Some(member) = self.members.get_mut(index) {
                    member.may_end = may_end;
                }
                return true;
            }
            Frame::Waits { question, waits } => {
                self.survey.answer(rank, question, waits);
                return true;
            }
            Frame::Hangs => {
                self.survey.hangs();
                return true;
            }
            Frame::Challenge { .. }
            | Frame::Welcome
            | Frame::Refusal(_)
            | Frame::Ask { .. }
            | Frame::Complete { .. }
            | Frame::Failed { .. }
            | Frame::Exit { .. } => "a frame that only the rendezvous sends",
        };
        self.warn(format!(
            "dropped rank {rank}'s connection: it sent {broken}; all PEs and the launcher must be \
             the same version of oxshmem"
        ));
        false
    }

    /// Queues a message, or holds it (and its sender) while its target has too much to take. One
    /// that has ended is not held: it sends no more, and all shall hear of its end.
    fn pass_on(&mut self, from: usize, to: u32, frame: Arc<[u8]>) {
        let over = |sender: &Member| sender.finished || sender.process_ended;
        let ended = self.members.get(from).is_none_or(over);
        let Some(target) = self.members.get_mut(to as usize) else {
            return;
        };
        if !ended && target.listens() && target.backlog() > MAX_BACKLOG {
            if let Some(sender) = self.members.get_mut(from) {
                sender.held = Some((to, frame));
            }
        } else {
            target.queue(frame);
        }
    }

    fn announce(&mut self, step: Step) {
        match step {
            Step::Wait => {}
            Step::Complete { sequence, parts } => {
                let frame: Arc<[u8]> = Frame::Complete { sequence, parts }.encode().into();
                for member in &mut self.members {
                    member.queue(Arc::clone(&frame));
                }
            }
            Step::Failed {
                sequence,
                fault,
                ranks,
            } => {
                let frame: Arc<[u8]> = Frame::Failed { sequence, fault }.encode().into();
                for rank in ranks {
                    if let Some(member) = self.members.get_mut(rank as usize) {
                        member.queue(Arc::clone(&frame));
                    }
                }
            }
        }
    }

    /// A rank has left or died: tells all others.
    fn end(&mut self, rank: u32, orderly: bool) {
        let Some(member) = self.members.get_mut(rank as usize) else {
            return;
        };
        member.standing = if orderly {
            Standing::Left
        } else {
            Standing::Died
        };
        if !orderly {
            // Before the others are told, so that the owner finds it before their failures. After an abort it ends all.
            let mut control = self.shared.lock();
            if control.abort.is_none() {
                control.lost.push(rank);
            }
        }
        let step = self.rounds.gone(rank, orderly);
        self.announce(step);
        let frame: Arc<[u8]> = Frame::Exit { rank, orderly }.encode().into();
        for (_, other) in (0..)
            .zip(&mut self.members)
            .filter(|(other, _)| *other != rank)
        {
            other.queue(Arc::clone(&frame));
        }
    }

    /// A member's connection is over.
    fn disconnect(&mut self, index: usize) {
        let Some(member) = self.members.get_mut(index) else {
            return;
        };
        let (ended, orderly) = (member.standing == Standing::Present, member.may_end);
        member.disconnect();
        if ended && let Ok(rank) = u32::try_from(index) {
            self.end(rank, orderly);
        }
    }

    fn abort(&mut self, notice: AbortNotice) {
        let AbortNotice {
            rank: by,
            status,
            why,
        } = notice.clone();
        if self.shared.lock().abort.is_some() {
            return;
        }
        let said = (self.speech.tell)(&notice);
        {
            let mut control = self.shared.lock();
            control.said = said;
            control.abort = Some(notice);
            // Until the next flush has counted: rank 0's process, which ends itself when all have
            // been told, may hear of it before that.
            control.backlog = usize::MAX;
        }
        // The owner hears of it before any PE ends because of it.
        self.shared.owner.signal();
        let fault = Fault::Aborted {
            by,
            status,
            why: why.clone(),
        };
        // The abort's status goes before the end of the collective call that it ends: a PE that waits
        // in one leaves with the former.
        let frame: Arc<[u8]> = Frame::Abort { by, status, why }.encode().into();
        for member in &mut self.members {
            member.queue(Arc::clone(&frame));
        }
        let step = self.rounds.fail(fault, None);
        self.announce(step);
    }

    fn expire(&mut self) {
        let now = Instant::now();
        self.strangers.retain(|stranger| stranger.until() > now);
        self.accept_after = self.accept_after.filter(|after| *after > now);
        let step = self.rounds.expire(now);
        self.announce(step);
        if let Some(found) = self.survey.look(&mut self.members) {
            self.tell_waits(found);
        }
    }

    fn tell_waits(&self, found: Found) {
        if let Some(deadlock) = found.deadlock {
            self.warn(deadlock);
        }
        if let Some(picture) = found.picture {
            self.shared.lock().picture = Some(picture);
            self.shared.owner.signal();
        }
    }

    /// Sends what can be sent, lets held senders go on, and tells the owner where things stand.
    fn flush(&mut self) {
        // What a broken connection's end queues for others is sent in a further pass.
        for _ in 0..2 {
            for index in 0..self.members.len() {
                let Some(member) = self.members.get_mut(index) else {
                    continue;
                };
                if member.backlog() > 0 && member.flush().is_err() {
                    self.hear_last(index);
                }
            }
            for index in 0..self.members.len() {
                if self
                    .members
                    .get(index)
                    .is_some_and(|member| member.held.is_some())
                {
                    self.obey(index);
                }
            }
        }
        let present = |member: &&Member| member.standing == Standing::Present;
        let connected = self.members.iter().filter(|member| member.stream.is_some());
        let (present, backlog) = (
            self.members.iter().filter(present).count(),
            connected.map(Member::backlog).sum::<usize>(),
        );
        let mut control = self.shared.lock();
        if (control.present, control.backlog) != (present, backlog) {
            (control.present, control.backlog) = (present, backlog);
            self.shared.changed.notify_all();
        }
    }
}
