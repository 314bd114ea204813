//! Flushes of GPUs, after which they see the data that NICs have placed in their memory (M27).

use std::collections::VecDeque;

use crate::am::pending_replies::{PendingReply, ReplyReader, SlotState};
use crate::am::request::{Action, FLUSHED};
use crate::control::message::ControlRequest;
use crate::control::pending::PendingCall;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::gpu::flush::rail_of_requests;
use crate::lane::in_flight::Effect;
use crate::lane::remote::LanePeer;
use crate::order::fence_site::FenceSite;
use crate::peer::pe_set::Towards;
use crate::worker::Worker;

/// A flush of another PE's GPU that was requested.
enum FlushRequest {
    /// By a message to its progress thread.
    Message(PendingReply),
    /// By the bootstrap.
    Control(PendingCall),
}

impl Worker {
    /// [`Engine::make_gpu_data_visible`].
    #[inline(always)]
    pub fn make_gpu_data_visible(&self) -> Result<()> {
        self.engine.make_gpu_data_visible()
    }

    /// Completes this PE's puts into its own GPU memory, for its GPU and for others.
    pub fn make_own_gpu_visible(&self) -> Result<()> {
        self.quiet_slow(Some(&[self.engine.me]), true)?;
        self.make_gpu_data_visible()
    }

    /// Has the GPUs of these PEs that are due make visible the data that were placed in their memory (M27): each is
    /// requested before any is awaited, as far as there are slots for replies. The PEs need make no call for it.
    #[inline]
    pub(crate) fn flush_gpus(&self, towards: &Towards<'_>) -> Result<()> {
        if self.state.lanes.gpu_flushes_due.borrow().is_empty() {
            return Ok(());
        }
        self.flush_due_gpus(towards)
    }

    #[cold]
    fn flush_due_gpus(&self, towards: &Towards<'_>) -> Result<()> {
        let due = &self.state.lanes.gpu_flushes_due;
        let mut first = Ok(());
        let mut end = |pe: usize, flushed: Result<()>| match flushed {
            Ok(()) => due.borrow_mut().remove(pe),
            Err(error) => first = std::mem::replace(&mut first, Ok(())).and(Err(error)),
        };
        let mut requested = VecDeque::new();
        let mut from = 0;
        loop {
            let Some(pe) = due.borrow().next(from) else {
                break;
            };
            from = pe + 1;
            if !towards.has(pe) {
                continue;
            }
            if pe == self.engine.me {
                end(pe, self.engine.gpu_flushes.flush().map_err(Error::from));
                continue;
            }
            let request = loop {
                match self.request_gpu_flush(pe, requested.is_empty()) {
                    Ok(Some(request)) => break Ok(request),
                    Ok(None) => {}
                    Err(error) => break Err(error),
                }
                // No slot is free: this quiet's own oldest one becomes so.
                if let Some((pe, request)) = requested.pop_front() {
                    end(pe, self.await_gpu_flush(request));
                }
            };
            match request {
                Ok(request) => requested.push_back((pe, request)),
                Err(error) => end(pe, Err(error)),
            }
        }
        for (pe, request) in requested {
            end(pe, self.await_gpu_flush(request));
        }
        first
    }

    /// Requests a flush of another PE's GPU: by a message to its progress thread, or by the bootstrap, whose service
    /// replies. None if there is no slot for the reply to a message; it waits for one only if it `may_wait`.
    fn request_gpu_flush(&self, pe: usize, may_wait: bool) -> Result<Option<FlushRequest>> {
        let Some(peer) = self.messages_to(pe) else {
            let pending = self.begin_call(pe, ControlRequest::FlushGpu)?;
            return Ok(Some(FlushRequest::Control(pending)));
        };
        let sent = if may_wait {
            self.claim_slot(peer, ReplyReader::Quiet)?
        } else {
            match self.try_claim_slot(peer, ReplyReader::Quiet)? {
                SlotState::Free(sent) => sent,
                _ => return Ok(None),
            }
        };
        self.post_request(peer, sent, Action::FlushGpu, Effect::Read)?;
        Ok(Some(FlushRequest::Message(sent)))
    }

    /// The lane whose messages ask a PE for a flush of its GPU, unless there is none, or the connection has failed.
    fn messages_to(&self, pe: usize) -> Option<LanePeer<'_>> {
        let engine = &self.engine;
        let index = rail_of_requests(engine.routes.paths_to(pe), &engine.rails)?;
        let endpoint = self.state.lanes.endpoints.get(index)?;
        let works = endpoint.lane_failure().is_none() && endpoint.failure_towards(pe).is_none();
        works.then_some(LanePeer { endpoint, pe })
    }

    /// Waits for the reply to a request for a flush.
    fn await_gpu_flush(&self, request: FlushRequest) -> Result<()> {
        match request {
            FlushRequest::Control(pending) => {
                self.await_reply(pending, "its GPU's flush").map(|_| ())
            }
            FlushRequest::Message(sent) => match self.take_reply(sent)? {
                FLUSHED => Ok(()),
                _ => Err(Error::FailedElsewhere {
                    call: self.call(),
                    pe: sent.pe,
                    why: "its GPU cannot be flushed; its own warning says why".into(),
                }),
            },
        }
    }
}

impl Engine {
    /// Flushes this PE's GPU, which then sees the data that NICs have placed in its memory, where a
    /// transport needs that (M27). Run by waits, tests and barriers.
    #[inline(always)]
    pub fn make_gpu_data_visible(&self) -> Result<()> {
        let flushes = &self.gpu_flushes;
        if !flushes.are_needed() || !self.inserts(FenceSite::WaitGpu) {
            return Ok(());
        }
        Ok(flushes.flush()?)
    }
}
