//! A lane's way to one PE: its queue pair, what is outstanding there, and what it counts.

use std::sync::Arc;
use std::time::Instant;

use oxshmem_transport::{Counters, Error, Pe, Result};

use super::STALL;
use super::pool::Pool;
use super::ring::{Deliver, Ring, Slot};
use crate::NAME;
use crate::domain::{Opened, bad};
use crate::fault::Cause;
use crate::ibv::{CompletionQueue, QueuePair, QueueSizes};
use crate::port::Path;
use crate::shared::Regions;
use crate::wire::{Answer, Endpoint};

/// Reads and atomics that one connection has under way at once.
const READS: u8 = 16;

/// A queue pair with its requests.
#[derive(Debug)]
pub(crate) struct Link {
    // First: what it may still write to goes after it.
    pub(crate) pair: QueuePair,
    pub(crate) ring: Ring,
    /// Bytes that a request may carry itself.
    pub(crate) inline: u32,
    /// The last get or fetch, by its request's number.
    pub(crate) read: Option<u32>,
    /// The last atomic.
    pub(crate) atomic: Option<u32>,
    /// Whether GPU memory was written since the last flush.
    pub(crate) gpu_written: bool,
    /// Bytes that one packet carries.
    pub(crate) packet: u32,
    /// Where its packets go, in words.
    pub(crate) words: String,
    /// Whether anything was ever answered.
    pub(crate) answered: bool,
    /// The oldest request that was outstanding when this was last looked at, and since when it is.
    oldest: Option<(u32, Instant)>,
    endpoint: Endpoint,
    answer: Option<Answer>,
}

impl Link {
    /// Whether what is to be told of has made no progress for [`STALL`]; counts from now on again.
    pub(crate) fn stalls(&mut self, now: Instant) -> bool {
        let oldest = self.ring.expects().then(|| self.ring.oldest());
        match (self.oldest, oldest) {
            (Some((known, since)), Some(oldest)) if known == oldest => {
                let stalls = now.duration_since(since) >= STALL;
                if stalls {
                    self.oldest = Some((oldest, now));
                }
                stalls
            }
            (_, oldest) => {
                self.oldest = oldest.map(|oldest| (oldest, now));
                false
            }
        }
    }
}

#[derive(Debug)]
pub(crate) enum End {
    /// Nothing was made yet.
    None,
    /// An endpoint that is not connected.
    Made(Box<Link>),
    Connected(Box<Link>),
    /// It does no more; nothing of it is outstanding.
    Failed(Cause),
}

#[derive(Debug)]
pub(crate) struct Way {
    pub(crate) end: End,
    pub(crate) counters: Counters,
    pub(crate) regions: Regions,
    /// Whether the lane's list of ways with unsignalled requests has it.
    pub(crate) listed: bool,
    /// Whether somebody waits for those.
    pub(crate) hurried: bool,
}

impl Way {
    pub(crate) fn new() -> Way {
        Way {
            end: End::None,
            counters: Counters::default(),
            regions: Regions::from(Vec::new()),
            listed: false,
            hurried: false,
        }
    }

    /// Why nothing can be posted.
    #[cold]
    pub(crate) fn refusal(&self, pe: Pe) -> Error {
        match &self.end {
            End::Failed(cause) => cause.error(pe),
            _ => Error::Unreachable {
                transport: NAME,
                pe,
                why: "this lane is not connected with it".into(),
            },
        }
    }

    /// The endpoint's bytes; made at the first call, when `room` is called for the requests that it
    /// may hold.
    pub(crate) fn endpoint(
        &mut self,
        opened: &Opened,
        pe: Pe,
        queue: &Arc<CompletionQueue>,
        most: u32,
    ) -> Result<Vec<u8>> {
        match &self.end {
            End::Made(link) | End::Connected(link) => return Ok(link.endpoint.to_bytes()),
            End::Failed(cause) => return Err(cause.error(pe)),
            End::None => {}
        }
        let sizes = QueueSizes {
            depth: most,
            inline: opened.settings.inline,
            most_pairs: opened.port.limits.queue_pairs,
        };
        let pair = QueuePair::new(&opened.domain, queue, queue, None, sizes)?;
        pair.prepare(opened.port.number, opened.port.partition)?;
        let nonce = opened.nonce();
        let endpoint = Endpoint {
            from: opened.shared.job.me.0,
            to: pe.0,
            nonce,
            queue_pair: pair.number(),
            sequence: (nonce >> 40) as u32,
            reads: opened.port.limits.reads_out.clamp(1, READS),
            place: opened.port.place(),
        };
        let bytes = endpoint.to_bytes();
        self.end = End::Made(Box::new(Link {
            inline: pair.inline(),
            pair,
            ring: Ring::new(most),
            read: None,
            atomic: None,
            gpu_written: false,
            packet: 128 << opened.port.mtu,
            words: String::new(),
            answered: false,
            oldest: None,
            endpoint,
            answer: None,
        }));
        Ok(bytes)
    }

    /// Connects with what the peer's domain answered. The same answer twice is no error.
    pub(crate) fn connect(&mut self, opened: &Opened, pe: Pe, answer: &[u8]) -> Result<()> {
        let bad = |why: String| bad("the answer to a lane's endpoint", pe, why);
        let answer = Answer::from_bytes(answer).map_err(bad)?;
        let link = match &mut self.end {
            End::Made(link) => link,
            End::Connected(link) if link.answer == Some(answer) => return Ok(()),
            End::Connected(_) => return Err(bad("this lane is connected already".into())),
            End::Failed(cause) => return Err(cause.error(pe)),
            End::None => return Err(bad("this lane made no endpoint towards it".into())),
        };
        if answer.nonce != link.endpoint.nonce {
            return Err(bad("it answers another endpoint".into()));
        }
        if answer.mtu > opened.port.mtu || answer.reads > link.endpoint.reads {
            return Err(bad("it wants more than was offered".into()));
        }
        if opened.port.state.ethernet && answer.route.is_none() {
            return Err(bad("on RoCE a route is needed".into()));
        }
        let path = Path {
            mtu: answer.mtu,
            route: answer.route,
        };
        let sequences = (link.endpoint.sequence, answer.sequence);
        let connect = opened
            .connection(
                &path,
                answer.lid,
                answer.queue_pair,
                sequences,
                (answer.reads, 1),
            )
            .map_err(bad)?;
        link.pair.connect(&connect)?;
        link.packet = 128 << answer.mtu;
        link.words = connect.words;
        link.answer = Some(answer);
        if let End::Made(link) = std::mem::replace(&mut self.end, End::None) {
            self.end = End::Connected(link);
        }
        Ok(())
    }

    /// Takes the requests up to `number` as complete: delivers what they brought, counts. Gives how
    /// many there were.
    #[inline]
    pub(crate) fn retire(&mut self, number: u32, pool: &mut Pool) -> u32 {
        let End::Connected(link) = &mut self.end else {
            return 0;
        };
        let count = link.ring.up_to(number);
        link.answered |= count > 0;
        for _ in 0..count {
            let Some(slot) = link.ring.pop() else {
                break;
            };
            deliver(&slot, pool);
            self.counters.completed += u64::from(slot.ends);
        }
        count
    }

    /// Ends the queue pair, then takes back what was lent to its requests. Gives how many were
    /// outstanding: so many completions may still lie in the queue.
    #[cold]
    pub(crate) fn give_up(&mut self, cause: Cause, pool: &mut Pool) -> u32 {
        let link = match std::mem::replace(&mut self.end, End::Failed(cause)) {
            End::Made(link) | End::Connected(link) => link,
            End::Failed(first) => {
                self.end = End::Failed(first);
                return 0;
            }
            End::None => return 0,
        };
        let Link { pair, mut ring, .. } = *link;
        let outstanding = ring.outstanding();
        // First, so that it does nothing more even if it cannot be destroyed.
        if let Err(error) = pair.fail() {
            tracing::debug!(%error, "a queue pair that ends");
        }
        // Nothing is written by it after this.
        if let Err(error) = pair.destroy() {
            tracing::error!(%error, outstanding, "a queue pair could not be destroyed: what was \
                 outstanding may still access its local memory; the lane's blocks of it are leaked");
            return outstanding;
        }
        ring.give_up()
            .filter_map(|slot| slot.block)
            .for_each(|block| pool.give(block));
        outstanding
    }
}

#[inline]
fn deliver(slot: &Slot, pool: &mut Pool) {
    let Some(block) = slot.block else {
        return;
    };
    match slot.deliver {
        Deliver::Nothing => {}
        Deliver::Bytes(to, len) => {
            // SAFETY: the poster promised `len` bytes here until the operation is counted, which it
            // is after this; the block has as many, which its request has filled.
            unsafe { oxshmem_heap::copy::copy(to, pool.at(block), len as usize) };
        }
        Deliver::Word(to) => {
            // SAFETY: the block begins with a word that its request has filled.
            let word = unsafe { pool.at(block).cast::<u64>().read() };
            // SAFETY: 8 bytes, aligned (checked when posted), valid by the poster's promise.
            let to = unsafe { std::sync::atomic::AtomicU64::from_ptr(to) };
            to.store(word, std::sync::atomic::Ordering::Relaxed);
        }
    }
    pool.give(block);
}
