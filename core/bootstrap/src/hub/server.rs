//! The rendezvous' thread: polls all connections at once, forwards frames between ranks, and tells each of the others' ends.

use std::net::TcpListener;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::admission::{Admission, AdmissionSource};
use super::control::{AbortNotice, Control};
use super::member::{Member, Standing};
use super::survey::{Survey, SurveyResult};
use crate::collective_rounds::{Rounds, Step};
use crate::fault::Fault;
use crate::job_key::JobKey;
use crate::limits::{MAX_MESSAGE_BYTES, gathered_share};
use crate::protocol::frame::{Frame, Kind};

/// Bytes that may wait for one rank before those that send to it are made to wait.
const MAX_BACKLOG: usize = 4 << 20;
/// Answers to its collective calls that may wait for one rank: a PE makes one call at a time, and the next after an answer.
const MAX_ANSWERS: usize = 4;
/// The thread's own state.
pub(super) struct Server {
    control: Arc<Control>,
    admission: Admission,
    members: Vec<Member>,
    rounds: Rounds,
    survey: Survey,
    scratch: Vec<u8>,
}

/// The meaning of a descriptor that was polled.
#[derive(Clone, Copy)]
enum Source {
    Wake,
    Admission(AdmissionSource),
    Member(usize),
}

impl Server {
    pub(super) fn new(
        listener: TcpListener,
        control: Arc<Control>,
        size: u32,
        key: JobKey,
    ) -> Server {
        let absent = |_| Member::absent(size as usize);
        Server {
            admission: Admission::new(listener, key, Arc::clone(&control)),
            control,
            members: (0..size).map(absent).collect(),
            rounds: Rounds::new(size),
            survey: Survey::default(),
            scratch: vec![0; 64 << 10],
        }
    }

    pub(super) fn run(mut self) {
        loop {
            let ready = match self.wait() {
                Ok(ready) => ready,
                Err(error) => {
                    self.control.warn(format!(
                        "the rendezvous ends, since it cannot wait for its connections: {error}"
                    ));
                    return;
                }
            };
            for (source, events) in ready {
                match source {
                    Source::Wake => {
                        if !self.handle_owner() {
                            return;
                        }
                    }
                    Source::Admission(source) => {
                        self.admission.handle_ready(source, &mut self.members);
                    }
                    Source::Member(index) => self.serve(index, events),
                }
            }
            self.expire();
            self.flush();
            self.admission.close_if_complete(&self.members);
        }
    }

    /// Waits until something is ready or due.
    fn wait(&self) -> rustix::io::Result<Vec<(Source, PollFlags)>> {
        let mut sources = vec![Source::Wake];
        let mut waits = vec![PollFd::new(&self.control.wake, PollFlags::IN)];
        for (index, member) in self.members.iter().enumerate() {
            let Some(stream) = &member.stream else {
                continue;
            };
            let mut events = PollFlags::empty();
            // A held sender is not read from, but its end is seen.
            events.set(PollFlags::IN, member.held.is_none());
            events.set(PollFlags::RDHUP, member.held.is_some());
            events.set(PollFlags::OUT, member.backlog() > 0);
            sources.push(Source::Member(index));
            waits.push(PollFd::from_borrowed_fd(stream.as_fd(), events));
        }
        for (source, descriptor) in self.admission.sources() {
            sources.push(Source::Admission(source));
            waits.push(PollFd::from_borrowed_fd(descriptor, PollFlags::IN));
        }
        let due = self.admission.due().into_iter();
        let due = due.chain(self.rounds.deadline()).chain(self.survey.due());
        let due = due.min();
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

    /// Does what the owner asks for; false if that is to end.
    fn handle_owner(&mut self) -> bool {
        self.control.wake.clear();
        let (stop, ended, ask) = {
            let state = &mut *self.control.lock();
            let ended = std::mem::take(&mut state.ended);
            (state.stop, ended, std::mem::take(&mut state.ask))
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
                // Frames that it had yet to send may keep the end of its connection from coming.
                self.process_frames(index);
            }
        }
        !stop
    }

    /// Reads from a member, and processes its frames.
    fn serve(&mut self, index: usize, events: PollFlags) {
        let end = PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
        if !events.intersects(PollFlags::IN | end) {
            return;
        }
        let Some(member) = self.members.get_mut(index) else {
            return;
        };
        if member.held.is_some() {
            // The event is its end: nothing else is polled for.
            self.drain_frames(index);
        } else {
            if !matches!(member.fill(&mut self.scratch), Ok(true)) {
                member.finish();
            }
            self.process_frames(index);
        }
    }

    /// Processes the frames that a member sent before its connection ended: perhaps a goodbye.
    fn drain_frames(&mut self, index: usize) {
        if let Some(member) = self.members.get_mut(index) {
            // No more than its socket holds.
            member.fill_rest(&mut self.scratch);
            member.finish();
            self.process_frames(index);
        }
    }

    /// Processes a member's whole frames, until one has to wait.
    fn process_frames(&mut self, index: usize) {
        loop {
            let Some(member) = self.members.get_mut(index) else {
                return;
            };
            if let Some((to, frame)) = member.held.take() {
                self.forward(index, to, frame);
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
                    if !self.handle_frame(index, frame) {
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
                    self.control
                        .warn(format!("dropped rank {index}'s connection: {error}"));
                    self.disconnect(index);
                    return;
                }
            }
        }
    }

    /// Processes a frame; false if it makes no sense.
    fn handle_frame(&mut self, index: usize, frame: Frame) -> bool {
        let Ok(rank) = u32::try_from(index) else {
            return false;
        };
        let broken = match frame {
            Frame::Enter {
                sequence,
                kind,
                deadline,
                bytes,
            } => match self.entry_fault(index, kind, bytes.len()) {
                Some(fault) => fault,
                None => {
                    let step = self.rounds.enter(rank, sequence, kind, deadline, bytes);
                    self.send_step(step);
                    return true;
                }
            },
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
                    self.forward(index, to, frame.into());
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
        self.control.warn(format!(
            "dropped rank {rank}'s connection: it sent {broken}; all PEs and the launcher must be \
             the same version of oxshmem"
        ));
        false
    }

    /// The fault in a member's entry to a collective call with so many bytes, if there is one.
    fn entry_fault(&self, index: usize, kind: Kind, bytes: usize) -> Option<&'static str> {
        let limit = match kind {
            Kind::Barrier => 0,
            Kind::Allgather => gathered_share(self.members.len()),
        };
        let answers = self.members.get(index).map_or(0, Member::answers);
        if answers >= MAX_ANSWERS {
            Some("collective calls without taking their answers")
        } else if bytes > limit {
            Some("more bytes than a collective call takes")
        } else {
            None
        }
    }

    /// Queues a message, or holds it (and its sender) while its target's backlog is full. A sender
    /// that has ended is not held: it sends no more, and all shall hear of its end.
    fn forward(&mut self, from: usize, to: u32, frame: Arc<[u8]>) {
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

    /// Sends a round's outcome to the ranks that wait for it.
    fn send_step(&mut self, step: Step) {
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
            // Before the others are told, so that the owner finds it before their failures. After an abort the owner ends all.
            let mut state = self.control.lock();
            if state.abort.is_none() {
                state.lost.push(rank);
            }
        }
        let step = self.rounds.gone(rank, orderly);
        self.send_step(step);
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
        if self.control.lock().abort.is_some() {
            return;
        }
        let reported = self.control.report_abort(&notice);
        {
            let mut state = self.control.lock();
            state.abort_reported = reported;
            state.abort = Some(notice);
            // Until the next flush has counted: rank 0's process, which ends itself when all have
            // been told, may hear of it before that.
            state.backlog = usize::MAX;
        }
        // The owner hears of it before any PE ends because of it.
        self.control.owner.signal();
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
        self.send_step(step);
    }

    fn expire(&mut self) {
        let now = Instant::now();
        self.admission.expire(now);
        let step = self.rounds.expire(now);
        self.send_step(step);
        if let Some(result) = self.survey.poll(&mut self.members) {
            self.report_survey(result);
        }
    }

    fn report_survey(&self, result: SurveyResult) {
        if let Some(deadlock) = result.deadlock {
            self.control.warn(deadlock);
        }
        if let Some(snapshot) = result.snapshot {
            self.control.lock().snapshot = Some(snapshot);
            self.control.owner.signal();
        }
    }

    /// Sends as much as the connections take, lets held senders go on, and tells the owner the counts.
    fn flush(&mut self) {
        // A broken connection's end queues frames for others: those are sent in a further pass.
        for _ in 0..2 {
            for index in 0..self.members.len() {
                let Some(member) = self.members.get_mut(index) else {
                    continue;
                };
                if member.backlog() > 0 && member.flush().is_err() {
                    self.drain_frames(index);
                }
            }
            for index in 0..self.members.len() {
                if self
                    .members
                    .get(index)
                    .is_some_and(|member| member.held.is_some())
                {
                    self.process_frames(index);
                }
            }
        }
        let present = |member: &&Member| member.standing == Standing::Present;
        let connected = self.members.iter().filter(|member| member.stream.is_some());
        let (present, backlog) = (
            self.members.iter().filter(present).count(),
            connected.map(Member::backlog).sum::<usize>(),
        );
        let mut state = self.control.lock();
        if (state.present, state.backlog) != (present, backlog) {
            (state.present, state.backlog) = (present, backlog);
            self.control.changed.notify_all();
        }
    }
}
