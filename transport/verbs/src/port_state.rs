//! One PE's opened port: its device objects, its settings, and the state that all parts of its domain share.

use std::collections::HashSet;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use crossbeam::queue::SegQueue;
use oxshmem_transport::{Error, Job, Pe, Result};

use crate::addressing::Addressing;
use crate::arena::Arena;
use crate::domain_state::{PublishedState, RailLoss};
use crate::ibv::{
    Access, CompletionQueue, ConnectAttributes, Event, ProtectionDomain, QueuePair, QueueSizes,
    ReceiveSource,
};
use crate::limits::NAME;
use crate::pair_watch::WatchedPairs;
use crate::placement::{self, Placement};
use crate::port::{Path, Port, path};
use crate::settings::Settings;
use crate::statistics::Totals;
use crate::wire::{MOST_NETWORKS, RailAddress, TargetProperties};

/// Requests of one operation: the head of a put, the rest, a signal.
pub(crate) const REQUESTS_PER_OPERATION: u32 = 3;

/// Requests beside those of operations: a barrier, and a read between a put to one device's memory and a signal in another's.
const SPARE_REQUESTS: u32 = 2;

/// Operations in flight towards one PE without which a lane is of no use: the least that a user may ask for.
pub(crate) const LEAST_DEPTH: u32 = 16;

/// The requests in flight of so many operations.
pub(crate) fn requests(operations: u32) -> u32 {
    REQUESTS_PER_OPERATION * operations + SPARE_REQUESTS
}

/// Calls of `progress` or `drain` between two checks for the device's events, which are system calls, where
/// no inbox waits for them.
pub(crate) const EVENTS: u32 = 4096;

/// The time for which one warning of an interruption stands.
const WARNING_PERIOD: Duration = Duration::from_secs(60);

/// An opened port with its protection domain, and the state that the domain's lanes, responder and inbox
/// share.
#[derive(Debug)]
pub(crate) struct PortState {
    /// Its number among the NICs of this PE.
    pub(crate) rail: u8,
    /// The networks that it is in for certain.
    pub(crate) networks: Vec<String>,
    pub(crate) port: Port,
    pub(crate) protection_domain: Arc<ProtectionDomain>,
    pub(crate) settings: Settings,
    pub(crate) published: Arc<PublishedState>,
    pub(crate) totals: Arc<Totals>,
    /// The order in which this device places writes that arrive.
    pub(crate) placement: Placement,
    /// Operations in flight towards one PE that a lane holds.
    pub(crate) depth: u32,
    nonce: AtomicU64,
    /// The queue pairs of lanes.
    pub(crate) watched_pairs: Arc<WatchedPairs>,
    /// Numbers of the responder's queue pairs whose failure the device has reported.
    failed_pairs: SegQueue<u32>,
    /// Numbers of failed queue pairs that have given back all shared receive buffers.
    drained_pairs: Mutex<HashSet<u32>>,
    is_down: AtomicBool,
    /// The time at which it went down last.
    down_since: Mutex<Option<Instant>>,
    /// The time of the last warning of an interruption.
    interruption_warned: Mutex<Option<Instant>>,
    /// The port's address and partition as they are now.
    addressing: RwLock<Arc<Addressing>>,
    /// Whether there is an inbox. It waits for the device's events, too.
    pub(crate) inbox_taken: AtomicBool,
}

impl PortState {
    pub(crate) fn new(
        port: Port,
        settings: Settings,
        job: Job,
        totals: Arc<Totals>,
    ) -> Result<PortState> {
        let published = Arc::new(PublishedState::new(job));
        PortState::of_rail(0, port, settings, published, totals)
    }

    /// One of this PE's NICs after the first.
    pub(crate) fn further(&self, rail: u8, port: Port) -> Result<PortState> {
        let (published, totals) = (Arc::clone(&self.published), Arc::clone(&self.totals));
        PortState::of_rail(rail, port, self.settings.clone(), published, totals)
    }

    fn of_rail(
        rail: u8,
        port: Port,
        settings: Settings,
        published: Arc<PublishedState>,
        totals: Arc<Totals>,
    ) -> Result<PortState> {
        let protection_domain = protection_domain(&port)?;
        let start = RandomState::new().build_hasher().finish();
        let mut networks = port.certain_networks(&settings);
        networks.truncate(MOST_NETWORKS);
        let mut port_state = PortState {
            rail,
            networks,
            placement: Placement::NotAnswered,
            depth: 0,
            protection_domain,
            interruption_warned: Mutex::default(),
            addressing: RwLock::new(Arc::new(port.addressing())),
            port,
            settings,
            published,
            totals,
            nonce: AtomicU64::new(start),
            watched_pairs: Arc::default(),
            failed_pairs: SegQueue::new(),
            drained_pairs: Mutex::default(),
            is_down: AtomicBool::new(false),
            down_since: Mutex::default(),
            inbox_taken: AtomicBool::new(false),
        };
        port_state.placement = port_state.decide_placement();
        port_state.depth = port_state.usable_depth()?;
        Ok(port_state)
    }

    /// The depth that queue pairs of this device can have: found by one, for how much a request of some length takes is the
    /// provider's.
    fn usable_depth(&self) -> Result<u32> {
        let wanted = operation_depth(&self.port, &self.settings);
        let sizes = QueueSizes {
            depth: requests(wanted),
            least_depth: requests(LEAST_DEPTH.min(wanted)),
            inline: self.settings.inline,
            max_pairs: self.port.limits.queue_pairs,
        };
        let queue = Arc::new(CompletionQueue::new(&self.port.context, 4, None)?);
        let pair = QueuePair::new(
            &self.protection_domain,
            &queue,
            &queue,
            ReceiveSource::None,
            sizes,
        )?;
        let depth = (pair.depth() - SPARE_REQUESTS) / REQUESTS_PER_OPERATION;
        if depth < wanted {
            tracing::warn!(port = %self.port.name(), depth, wanted, "the device has no queue pairs of the \
                 depth of OXSHMEM_VERBS_DEPTH");
        }
        Ok(depth)
    }

    fn decide_placement(&self) -> Placement {
        let (name, limits) = (self.port.context.name(), self.port.limits);
        let kind = match self.port.software {
            true => placement::Kind::InOrder,
            false => placement::kind(name, limits.vendor, limits.part),
        };
        let ask = || match self.asked_for_order() {
            Ok(answer) => answer,
            Err(error) => {
                tracing::warn!(port = %self.port.name(), %error, "the device's order of writes \
                     cannot be asked for");
                None
            }
        };
        Placement::decide(self.settings.in_order, kind, ask)
    }

    /// The device's answer, which it gives for a connected queue pair only.
    fn asked_for_order(&self) -> Result<Option<bool>> {
        let queue = Arc::new(CompletionQueue::new(&self.port.context, 4, None)?);
        Ok(self.pair_with_itself(&queue)?.data_in_order())
    }

    /// An error if a connection places writes in another order than peers were told of: the device may answer by the path.
    pub(crate) fn check_order(&self, pe: Pe, pair: &QueuePair) -> Result<()> {
        let is_told = self.placement == Placement::DeviceInOrder;
        // Twice: a question that fails counts as a no.
        let differs = || pair.data_in_order() == Some(false) && pair.data_in_order() == Some(false);
        if !(is_told && differs()) {
            return Ok(());
        }
        Err(Error::Unreachable {
            transport: NAME,
            pe,
            why: format!(
                "port {} places writes out of order on this connection, and said otherwise of one with itself; set \
                 OXSHMEM_VERBS_IN_ORDER=off on the host of PE {}",
                self.port.name(),
                self.published.job.me
            ),
        })
    }

    /// A queue pair of two requests that is connected with itself.
    pub(crate) fn pair_with_itself(&self, queue: &Arc<CompletionQueue>) -> Result<QueuePair> {
        let port = &self.port;
        let sizes = QueueSizes {
            depth: 2,
            least_depth: 2,
            inline: 0,
            max_pairs: port.limits.queue_pairs,
        };
        let pair = QueuePair::new(
            &self.protection_domain,
            queue,
            queue,
            ReceiveSource::None,
            sizes,
        )?;
        let addressing = self.addressing();
        pair.prepare(port.number, addressing.partition)?;
        // As connections do.
        if let Some(ece) = pair.ece() {
            pair.take_ece(ece);
        }
        let here = addressing.address();
        let unavailable = |why| Error::Unavailable {
            transport: NAME,
            why,
        };
        let path = path(&here, &here, self.route_needed()).map_err(unavailable)?;
        let sequence = (self.next_nonce() >> 40) as u32;
        let (number, sequences) = (pair.number(), (sequence, sequence));
        let attributes = self
            .connect_attributes(&path, here.lid, number, sequences, (1, 1))
            .map_err(unavailable)?;
        pair.connect(&attributes)?;
        Ok(pair)
    }

    /// The address of this NIC.
    pub(crate) fn rail_address(&self) -> RailAddress {
        RailAddress {
            name: self.port.name(),
            port: self.addressing().address(),
            networks: self.networks.clone(),
        }
    }

    /// Whether the device performs atomics that change a word.
    pub(crate) fn has_atomics(&self) -> bool {
        self.port.limits.has_atomics()
    }

    /// The properties of this device as a target.
    pub(crate) fn target_properties(&self) -> TargetProperties {
        TargetProperties {
            placement: self.placement,
            has_strict_keys: !self.protection_domain.relaxed_only(),
            has_atomics: self.has_atomics(),
        }
    }

    /// Handles the device's asynchronous events. A port that goes down may come back before the retries
    /// are over, so that event ends nothing: if it does not come back, the connections' errors name it.
    pub(crate) fn events(&self) {
        while let Some(event) = self.port.context.next_event() {
            self.event(event);
        }
    }

    /// This NIC has failed: the others of its PE carry on, if there are any.
    #[cold]
    pub(crate) fn fail(&self, why: &str) {
        match self.published.fail_rail(self.rail, why) {
            RailLoss::Known => {}
            RailLoss::OthersLeft => {
                tracing::warn!(%why, "one of the NICs of this PE is lost: the others carry on");
            }
            RailLoss::Last => tracing::error!(%why),
        }
    }

    /// Whether its device has not failed.
    pub(crate) fn is_alive(&self) -> bool {
        !self.published.has_rail_failed(self.rail)
    }

    /// Whether new connections may use this NIC.
    pub(crate) fn is_usable(&self) -> bool {
        self.is_alive() && !self.is_down()
    }

    /// Handles one event.
    #[cold]
    pub(crate) fn event(&self, event: Event) {
        let port = self.port.name();
        match event {
            Event::Fatal(name) => {
                self.fail(&format!(
                    "the device failed ({name} on {port}); see the kernel log"
                ));
            }
            Event::PortDown(number) if number == self.port.number => {
                tracing::warn!(%port, "the port went down (IBV_EVENT_PORT_ERR)");
                self.is_down.store(true, Ordering::Relaxed);
                *self.down_since() = Some(Instant::now());
                self.published.set_down(self.rail, true);
            }
            Event::PortUp(number) if number == self.port.number => {
                tracing::info!(%port, "the port is up again (IBV_EVENT_PORT_ACTIVE)");
                self.is_down.store(false, Ordering::Relaxed);
                self.published.set_down(self.rail, false);
                self.refresh("IBV_EVENT_PORT_ACTIVE");
            }
            Event::PortChanged(number, name)
                if number.is_none_or(|number| number == self.port.number) =>
            {
                self.refresh(name);
            }
            Event::PairFailed(number, name) => {
                tracing::warn!(%port, queue_pair = number, "a queue pair failed ({name})");
                match self.watched_pairs.fail(number) {
                    true => self.published.have_lanes_look(),
                    false => self.failed_pairs.push(number),
                }
            }
            Event::LastReceive(number) => {
                self.drained().insert(number);
            }
            other => tracing::debug!(%port, ?other, "a device's event"),
        }
    }

    /// The port's address and partition as they are now, as far as the device has said so.
    pub(crate) fn addressing(&self) -> Arc<Addressing> {
        let known = self.addressing.read();
        Arc::clone(&known.unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads the port's address and partition again, after an event of this name.
    #[cold]
    fn refresh(&self, event: &str) {
        let port = self.port.name();
        let known = self.addressing.write();
        let mut known = known.unwrap_or_else(PoisonError::into_inner);
        match self
            .port
            .addressing_now(&self.settings, known.partition_key)
        {
            Ok(now) => {
                let changes = known.changes(&now).join("; ");
                *known = Arc::new(now);
                drop(known);
                if changes.is_empty() {
                    tracing::debug!(%port, event, "an event after which all is as before");
                } else {
                    tracing::warn!(%port, event, %changes, "the port has changed; connections that were made \
                         before may fail");
                }
            }
            // One that is down is looked at again when it is up.
            Err(error) => {
                tracing::debug!(%port, event, %error, "an event after which the port cannot be used")
            }
        }
    }

    /// Whether this side's port is known to be down.
    pub(crate) fn is_down(&self) -> bool {
        // Relaxed: only for an error's words.
        self.is_down.load(Ordering::Relaxed)
    }

    fn down_since(&self) -> MutexGuard<'_, Option<Instant>> {
        let since = self.down_since.lock();
        since.unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether this side's port is known to be down for longer than retries last.
    pub(crate) fn is_down_for_long(&self) -> bool {
        let longest = retry_time(self.port.timeout, self.port.retries);
        let since = *self.down_since();
        self.is_down() && since.is_some_and(|since| since.elapsed() > longest)
    }

    /// The time until which packets of a queue pair that has ended now may come; none if none may. `is_silent`: its peer did not
    /// answer for as long as the retries last, after the last of which it was waited for one time-out.
    pub(crate) fn packets_until(&self, is_silent: bool) -> Option<Instant> {
        let waited = match is_silent {
            true => retry_time(self.port.timeout, 0),
            false => Duration::ZERO,
        };
        let rest = self.settings.packet_lifetime.checked_sub(waited)?;
        Instant::now().checked_add(rest)
    }

    /// Warns of a connection that was interrupted for this reason, and is made again. One warning stands for all of a while: a link that was
    /// down interrupts many.
    pub(crate) fn report_interruption(&self, pe: Pe, reason: &str) {
        let port = self.port.name();
        let warned = self.interruption_warned.lock();
        let mut warned = warned.unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let was_warned = warned.is_some_and(|warned| now.duration_since(warned) < WARNING_PERIOD);
        // The port's own event was a warning.
        if was_warned || self.is_down() {
            tracing::info!(%port, %pe, "a connection was interrupted too, and is made again");
            return;
        }
        *warned = Some(now);
        drop(warned);
        tracing::warn!(%port, %pe, "{reason}: the connection, with nothing in doubt outstanding, is made again");
    }

    /// The queue pairs reported as failed since the last call.
    pub(crate) fn take_failed_pairs(&self) -> Vec<u32> {
        std::iter::from_fn(|| self.failed_pairs.pop()).collect()
    }

    fn drained(&self) -> MutexGuard<'_, HashSet<u32>> {
        self.drained_pairs
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a failed queue pair has given back all shared receive buffers, as far as the device has told.
    pub(crate) fn is_drained(&self, number: u32) -> bool {
        self.drained().contains(&number)
    }

    /// Forgets a queue pair, whose number may be another's from now on.
    pub(crate) fn forget_drained(&self, number: u32) {
        self.drained().remove(&number);
    }

    /// Notes a queue pair that this side found failed.
    pub(crate) fn pair_failed(&self, number: u32) {
        self.failed_pairs.push(number);
    }

    /// A number that no other endpoint has, with high probability not even another host's.
    pub(crate) fn next_nonce(&self) -> u64 {
        // Relaxed: only the numbers matter.
        let count = self.nonce.fetch_add(1, Ordering::Relaxed);
        count.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    /// Whether packets carry a route within an InfiniBand subnet too.
    pub(crate) fn route_needed(&self) -> bool {
        self.settings.global_route || self.port.attributes.needs_route
    }

    /// The attributes by which a queue pair of this side is connected; those that differ from one to the
    /// next are given.
    pub(crate) fn connect_attributes(
        &self,
        path: &Path,
        their_lid: u16,
        their_number: u32,
        sequences: (u32, u32),
        reads: (u8, u8),
    ) -> Result<ConnectAttributes, String> {
        let here = self.addressing();
        // Tables change, and then the index of an identifier may be another's.
        let index = |ours| match self.port.index_of(ours, &here.gids) {
            Ok(Some(index)) => Ok(index),
            Ok(None) => Err(format!("{ours} is not an identifier of this port")),
            Err(error) => Err(error.to_string()),
        };
        let route = match path.route {
            Some((ours, theirs)) => Some((index(ours)?, theirs)),
            None => None,
        };
        let (our_sequence, their_sequence) = sequences;
        let (reads_out, reads_in) = reads;
        let port = self.port.name();
        let (bytes, partition) = (128u32 << path.mtu, here.partition_key);
        let ends = match path.route {
            Some((ours, theirs)) => format!("from {ours} to {theirs}"),
            None => format!("from LID {} to LID {their_lid}", here.lid),
        };
        Ok(ConnectAttributes {
            description: format!("{ends}, port {port}, MTU {bytes}, P_Key {partition:#06x}"),
            port: self.port.number,
            mtu: path.mtu,
            their_number,
            their_sequence,
            our_sequence,
            their_lid,
            route,
            service_level: self.settings.service_level,
            traffic_class: self.port.traffic_class,
            flow_label: self.settings.flow_label,
            timeout: self.port.timeout,
            retries: self.port.retries,
            receiver_retries: self.settings.rnr_retry,
            receiver_timer: self.settings.min_rnr_timer,
            reads_out,
            reads_in,
        })
    }
}

/// The time for which a request without an answer is repeated: 4.096 µs times a power of two, for each repetition.
fn retry_time(timeout: u8, retries: u8) -> Duration {
    let once = Duration::from_nanos(4096).saturating_mul(1 << timeout.min(31));
    once.saturating_mul(u32::from(retries) + 1)
}

/// The protection domain, by the keys that the device has. Some devices refuse registrations in which their writes keep
/// their order on the bus.
fn protection_domain(port: &Port) -> Result<Arc<ProtectionDomain>> {
    let new = || ProtectionDomain::new(&port.context, port.limits.has_atomics());
    let strict = Arc::new(new()?);
    if port.software {
        return Ok(strict);
    }
    let refused = match Arena::with(&strict, TRIAL, Access::Remote) {
        Ok(_) => return Ok(strict),
        Err(error) => error,
    };
    let relaxed = Arc::new(new()?.with_relaxed_keys_only());
    if Arena::with(&relaxed, TRIAL, Access::Remote).is_err() {
        // The order is not the reason.
        return Err(refused);
    }
    tracing::warn!(port = %port.name(), %refused, "the device has keys with relaxed ordering only: fences \
         and signals are slower");
    Ok(relaxed)
}

/// Bytes of a registration that is tried.
const TRIAL: usize = 4096;

/// The number of operations in flight towards one PE, each with as many requests as one may need. Two more
/// requests are kept back.
fn operation_depth(port: &Port, settings: &Settings) -> u32 {
    let most = port.limits.queue_depth.saturating_sub(SPARE_REQUESTS) / REQUESTS_PER_OPERATION;
    settings.depth.min(most).max(1)
}

/// The error for bytes of a peer that are not what they should be.
pub(crate) fn bad_peer_data(what: &'static str, pe: Pe, why: String) -> Error {
    Error::BadPeerData {
        transport: NAME,
        what,
        pe,
        why,
    }
}
