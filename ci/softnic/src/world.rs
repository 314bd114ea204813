//! All objects of the process's NICs, under one lock, and the timers that belong to them.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::ffi::c_int;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use crate::abi::sys::{ibv_event_type, ibv_wc};
use crate::command::Cue;
use crate::completion::{Entry, Queue};
use crate::device::{Card, Device};
use crate::events::Given;
use crate::keys::Keys;
use crate::pair::Pair;
use crate::random::Random;
use crate::settings::{Settings, settings};
use crate::wire::Packet;

/// The object of an asynchronous event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Element {
    Device,
    Port(u8),
    Pair(u32),
    Completions(u64),
    Receives(u64),
}

/// Work that is due at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    /// A queue pair's deadline for an answer.
    Answer(u32),
    /// The end of a queue pair's pause.
    Pause(u32),
    Arrive(u32, u64, u32),
    Place(u32, u64),
    Link(usize, u8),
    /// The late end of a queue pair's flush.
    Flush(u32),
    Event(u32, u32, Element),
}

/// A completion queue as the world knows it: the program's pointer, and the queue.
#[derive(Debug)]
pub(crate) struct Completions {
    pub(crate) raw: usize,
    pub(crate) card: u32,
    pub(crate) queue: Arc<Queue>,
}

/// A shared receive queue.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) card: u32,
    pub(crate) raw: usize,
    pub(crate) events: Arc<Given>,
}

/// Everything.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) settings: &'static Settings,
    pub(crate) random: Random,
    /// The time of the step that runs.
    pub(crate) now: Instant,
    /// The number of this process among those of its network: the first bits of its queue pairs' numbers.
    pub(crate) process: Option<u32>,
    pub(crate) devices: Vec<Device>,
    pub(crate) cards: HashMap<u32, Card>,
    pub(crate) keys: Keys,
    pub(crate) pairs: HashMap<u32, Pair>,
    /// The pointers of queue pairs, by number.
    pub(crate) pointers: HashMap<u32, usize>,
    pub(crate) completions: HashMap<u64, Completions>,
    pub(crate) shared: HashMap<u64, Shared>,
    /// Packets to queue pairs of this process, and of others.
    pub(crate) local: VecDeque<Packet>,
    pub(crate) remote: VecDeque<Packet>,
    pub(crate) timers: BinaryHeap<Reverse<(Instant, Timer)>>,
    /// Requests that were fetched from their queues.
    pub(crate) fetched: u64,
    pub(crate) cues: Vec<Cue>,
    /// The time after which a failed queue pair gives back the shared buffer that it had begun to fill.
    pub(crate) late_flush: Option<Duration>,
    /// Queue pairs more that refuse to fail and to be destroyed.
    pub(crate) stuck: u32,
    /// The error that they give.
    pub(crate) stuck_code: c_int,
    last: u64,
}

/// Bits of a queue pair's number that count within its process.
pub(crate) const PAIR_BITS: u32 = 14;

impl World {
    fn new(settings: &'static Settings) -> World {
        World {
            settings,
            random: Random::new(settings.seed),
            now: Instant::now(),
            process: None,
            devices: Device::all(settings),
            cards: HashMap::new(),
            keys: Keys::default(),
            pairs: HashMap::new(),
            pointers: HashMap::new(),
            completions: HashMap::new(),
            shared: HashMap::new(),
            local: VecDeque::new(),
            remote: VecDeque::new(),
            timers: BinaryHeap::new(),
            fetched: 0,
            cues: settings.cues.clone(),
            late_flush: None,
            stuck: 0,
            stuck_code: libc::EBUSY,
            last: 0,
        }
    }

    /// A number that no other object of the process has.
    pub(crate) fn fresh(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// A number for a new queue pair. Numbers come back late.
    pub(crate) fn fresh_pair(&mut self) -> Option<u32> {
        let process = self.process?;
        (0..1 << PAIR_BITS).find_map(|_| {
            let number = (process << PAIR_BITS) | (self.fresh() as u32 & ((1 << PAIR_BITS) - 1));
            // Numbers 0 and 1 are those of management.
            (number > 1 && !self.pairs.contains_key(&number)).then_some(number)
        })
    }

    /// Hands a packet to the wire; `None` is one that could not leave.
    pub(crate) fn send(&mut self, packet: Option<Packet>) {
        let Some(packet) = packet else {
            crate::counters::COUNTERS.dropped.add(1);
            return;
        };
        match self.process == Some(packet.to >> PAIR_BITS) {
            true => self.local.push_back(packet),
            false => self.remote.push_back(packet),
        }
    }

    pub(crate) fn after(&mut self, delay: Duration, timer: Timer) {
        self.timers.push(Reverse((self.now + delay, timer)));
    }

    /// Has a context's program be told of an event, as late as its device tells.
    pub(crate) fn event(&mut self, card: u32, kind: ibv_event_type::Type, element: Element) {
        let Some(opened) = self.cards.get(&card) else {
            return;
        };
        match self.devices[opened.device].profile.events {
            Duration::ZERO => self.tell(card, kind, element),
            late => self.after(late, Timer::Event(card, kind, element)),
        }
    }

    /// Tells of an event now.
    pub(crate) fn tell(&self, card: u32, kind: ibv_event_type::Type, element: Element) {
        let (tag, id) = match element {
            Element::Device => (0, 0),
            Element::Port(number) => (1, number.into()),
            Element::Pair(number) => (2, number.into()),
            Element::Completions(id) => (3, id),
            Element::Receives(id) => (4, id),
        };
        if let Some(card) = self.cards.get(&card) {
            card.events.send(u64::from(kind) | tag << 32, id);
        }
    }

    /// Completes a request or a buffer. A queue that overruns is of no use any more, and that is told.
    pub(crate) fn complete(&mut self, card: u32, queue: &Arc<Queue>, entry: Entry) {
        if !queue.push(entry) {
            self.event(
                card,
                ibv_event_type::IBV_EVENT_CQ_ERR,
                Element::Completions(queue.id),
            );
        }
    }
}

/// A completion with nothing in it.
pub(crate) fn empty_wc() -> ibv_wc {
    // SAFETY: integers only, for which zero is a value.
    unsafe { std::mem::zeroed() }
}

static WORLD: OnceLock<Mutex<World>> = OnceLock::new();

/// The world, made at the first call; the words for a setting that cannot be understood.
pub(crate) fn world() -> Result<&'static Mutex<World>, &'static str> {
    let settings = settings()?;
    Ok(WORLD.get_or_init(|| Mutex::new(World::new(settings))))
}
