//! The responder's half of a queue pair: it checks requests, lets them arrive in the order that its device
//! keeps, and performs them on this process's memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::abi::sys::{ibv_access_flags as flags, ibv_event_type, ibv_wc_opcode, ibv_wc_status};
use crate::bytes;
use crate::completion::Entry;
use crate::counters::COUNTERS;
use crate::keys::Range;
use crate::pair::{Arrival, Pair, Placement};
use crate::profile::Atomics;
use crate::receive_queue::Buffer;
use crate::wire::{Body, Packet, Position, Refusal, Remote};
use crate::world::{Element, Timer, World, empty_wc};

/// Answers of atomics that are kept for repeated ones.
const ANSWERS: usize = 512;
/// Packets that may be on their way to a queue pair; beyond that some are placed early.
const MOST_ARRIVING: usize = 4096;

/// `IBV_WC_WITH_IMM`.
const WITH_IMMEDIATE: u32 = 2;

/// The result of a check: memory, or a refusal with the event that this side's program hears.
type Checked<T> = Result<T, (Refusal, ibv_event_type::Type)>;

const INVALID: (Refusal, ibv_event_type::Type) =
    (Refusal::Invalid, ibv_event_type::IBV_EVENT_QP_REQ_ERR);
const ACCESS: (Refusal, ibv_event_type::Type) =
    (Refusal::Access, ibv_event_type::IBV_EVENT_QP_ACCESS_ERR);

impl World {
    /// Handles a request of a peer.
    pub(crate) fn requested(&mut self, packet: Packet) {
        let number = packet.to;
        let (sequence, clock) = (packet.sequence, packet.clock);
        let found = self.pairs.get(&number);
        let found = found.filter(|pair| pair.hears(&self.devices[pair.device], &packet));
        let Some(pair) = found else {
            COUNTERS.dropped.add(1);
            return;
        };
        if sequence > pair.answer.expected {
            COUNTERS.dropped.add(1);
            return;
        }
        if sequence < pair.answer.expected {
            return self.repeated(packet);
        }
        let checked = self.check(number, &packet);
        match checked {
            Ok(true) => {}
            Ok(false) => {
                COUNTERS.rnr_naks.add(1);
                let Some(pair) = self.pairs.get(&number) else {
                    return;
                };
                let timer = pair.attr.min_rnr_timer;
                return self.reply(number, sequence, clock, Body::NotReady(timer));
            }
            Err((why, event)) => {
                COUNTERS.naks.add(1);
                self.arrive_all(number);
                self.reply(number, sequence, clock, Body::Refused(why));
                return self.fail(number, Some(event));
            }
        }
        let Some(pair) = self.pairs.get_mut(&number) else {
            return;
        };
        pair.answer.expected += 1;
        self.schedule(number, packet);
    }

    /// Answers a request that was received before, if it was performed.
    fn repeated(&mut self, packet: Packet) {
        let (number, sequence, clock) = (packet.to, packet.sequence, packet.clock);
        let Some(pair) = self.pairs.get(&number) else {
            return;
        };
        if pair.answer.missing.contains_key(&sequence) {
            return;
        }
        match packet.body {
            Body::Read(remote, len) => self.perform_read(number, sequence, remote, len, clock),
            Body::Atomic(..) => {
                let kept = pair.answer.answers.iter().find(|(of, _)| *of == sequence);
                if let Some((_, old)) = kept.copied() {
                    self.reply(
                        number,
                        sequence,
                        clock,
                        Body::Data(old.to_ne_bytes().to_vec()),
                    );
                }
            }
            _ => self.reply(number, sequence, clock, Body::Done),
        }
    }

    /// Whether a request may be performed; false if there is no buffer for it.
    fn check(&mut self, number: u32, packet: &Packet) -> Checked<bool> {
        let Some(pair) = self.pairs.get(&number) else {
            return Ok(true);
        };
        if packet.route.mtu as u32 > pair.attr.path_mtu {
            return Err(INVALID);
        }
        let allowed = pair.attr.qp_access_flags;
        let checks_empty = self.devices[pair.device].profile.empty_keys;
        let memory = |remote: &Remote, len: u64, needed: flags| {
            if allowed & needed.0 == 0 {
                return Err(INVALID);
            }
            // Nothing is accessed, so by the specification no key is looked at.
            if len == 0 && !checks_empty {
                return Ok(());
            }
            let found = self
                .keys
                .remote(pair.owner, remote.key, remote.addr, len, needed);
            found.map(drop).map_err(|_| ACCESS)
        };
        match &packet.body {
            Body::Write(remote, position, _) => {
                let start = Remote {
                    addr: remote.addr.wrapping_sub(position.offset),
                    ..*remote
                };
                memory(&start, position.total, flags::IBV_ACCESS_REMOTE_WRITE)?;
                Ok(position.immediate.is_none() || !pair.receive.is_empty())
            }
            Body::Read(remote, len) => {
                if pair.attr.max_dest_rd_atomic == 0 {
                    return Err(INVALID);
                }
                memory(remote, (*len).into(), flags::IBV_ACCESS_REMOTE_READ).map(|()| true)
            }
            Body::Atomic(remote, ..) => {
                let has = self.devices[pair.device].profile.atomics != Atomics::None;
                if !remote.addr.is_multiple_of(8) || !has || pair.attr.max_dest_rd_atomic == 0 {
                    return Err(INVALID);
                }
                memory(remote, 8, flags::IBV_ACCESS_REMOTE_ATOMIC).map(|()| true)
            }
            Body::Send(position, _) => {
                if position.offset > 0 {
                    return Ok(true);
                }
                self.begin_receive(number, position.total)
            }
            _ => Err(INVALID),
        }
    }

    /// Takes a buffer for a message; false if there is none.
    fn begin_receive(&mut self, number: u32, len: u64) -> Checked<bool> {
        let Some(pair) = self.pairs.get_mut(&number) else {
            return Ok(true);
        };
        let Some((buffer, below)) = pair.receive.take() else {
            return Ok(false);
        };
        let (card, shared) = (pair.card, pair.shared);
        if buffer.len() < len {
            self.fail_buffer(number, buffer.id, ibv_wc_status::IBV_WC_LOC_LEN_ERR);
            return Err(INVALID);
        }
        pair.answer.buffer = Some(Arc::new(buffer));
        if below && let Some(shared) = shared {
            let kind = ibv_event_type::IBV_EVENT_SRQ_LIMIT_REACHED;
            self.event(card, kind, Element::Receives(shared));
        }
        Ok(true)
    }

    /// Has a request arrive, in packets: at once, or late, as the device's way is.
    fn schedule(&mut self, number: u32, packet: Packet) {
        let (sequence, clock) = (packet.sequence, packet.clock);
        let Some(pair) = self.pairs.get_mut(&number) else {
            return;
        };
        let profile = &self.devices[pair.device].profile;
        let (mtu, skew, read_orders) = (profile.packet(), profile.skew, profile.read_orders);
        let lazy = skew.max(profile.lazy);
        let mtu = mtu.min(128 << pair.attr.path_mtu.clamp(1, 5));
        let mut arrivals = Vec::new();
        match packet.body {
            Body::Write(remote, position, data) => {
                COUNTERS.writes.add(1);
                let needed = flags::IBV_ACCESS_REMOTE_WRITE;
                let range = self.keys.remote(
                    pair.owner,
                    remote.key,
                    remote.addr,
                    data.len() as u64,
                    needed,
                );
                if let Ok(range) = range {
                    arrivals = cut(pair, range, data, mtu)
                        .into_iter()
                        .map(Arrival::Write)
                        .collect();
                }
                if position.immediate.is_some()
                    && let Some((buffer, _)) = pair.receive.take()
                {
                    arrivals.push(Arrival::Immediate(buffer, position, clock));
                }
            }
            Body::Send(position, data) => {
                COUNTERS.sends.add(1);
                if let Some(buffer) = pair.answer.buffer.clone() {
                    if position.last {
                        pair.answer.buffer = None;
                    }
                    arrivals.push(Arrival::Send(buffer, position, data, clock));
                }
            }
            Body::Read(remote, len) => arrivals.push(Arrival::Read(remote, len, clock)),
            Body::Atomic(remote, compares, operands) => {
                arrivals.push(Arrival::Atomic(remote, compares, operands, clock));
            }
            _ => {}
        }
        if arrivals.is_empty() {
            return self.reply(number, sequence, clock, Body::Done);
        }
        pair.answer
            .missing
            .insert(sequence, (arrivals.len() as u32, clock));
        for (part, arrival) in (0..).zip(arrivals) {
            // A message is not sent by several ways, so it is as late as the way it takes.
            let most = if arrival.responds() { lazy } else { skew };
            let delay = self.random.delay(most);
            let Some(pair) = self.pairs.get_mut(&number) else {
                return;
            };
            let arriving = &pair.answer.arriving;
            let follows = arriving
                .values()
                .any(|earlier| arrival.follows(earlier, read_orders));
            pair.answer.arriving.insert((sequence, part), arrival);
            // One that follows another without being late itself is late with it where routing is adaptive.
            if most.is_zero() || delay.is_zero() && !follows {
                self.arrive(number, sequence, part);
            } else {
                self.after(delay, Timer::Arrive(number, sequence, part));
            }
        }
        self.limit_arriving(number);
    }

    fn limit_arriving(&mut self, number: u32) {
        while let Some(pair) = self.pairs.get(&number)
            && pair.answer.arriving.len() > MOST_ARRIVING
            && let Some((sequence, part)) = pair.answer.arriving.keys().next().copied()
        {
            self.arrive(number, sequence, part);
        }
    }

    /// Has all arrive that was sent.
    pub(crate) fn arrive_all(&mut self, number: u32) {
        self.arrive_those(number, u64::MAX, |_| true);
    }

    /// Has all arrive that was sent before `sequence` and that `chosen` names, in any order that these permit among
    /// themselves.
    fn arrive_those(&mut self, number: u32, sequence: u64, chosen: impl Fn(&Arrival) -> bool) {
        loop {
            let Some(pair) = self.pairs.get(&number) else {
                return;
            };
            let before = pair.answer.arriving.range(..(sequence, 0));
            let mut keys: Vec<(u64, u32)> = before
                .filter(|(_, earlier)| chosen(earlier))
                .map(|(key, _)| *key)
                .collect();
            if keys.is_empty() {
                return;
            }
            // Each has those arrive first that it follows itself.
            self.random.shuffle(&mut keys);
            for (sequence, part) in keys {
                self.arrive(number, sequence, part);
            }
        }
    }

    /// Handles the arrival of one thing, after those that must come before it.
    pub(crate) fn arrive(&mut self, number: u32, sequence: u64, part: u32) {
        let Some(pair) = self.pairs.get_mut(&number) else {
            return;
        };
        let Some(arrival) = pair.answer.arriving.remove(&(sequence, part)) else {
            return;
        };
        let read_orders = self.devices[pair.device].profile.read_orders;
        self.arrive_those(number, sequence, |earlier| {
            arrival.follows(earlier, read_orders)
        });
        if part > 0 && !matches!(arrival, Arrival::Write(_)) {
            self.arrive_parts(number, sequence, part);
        }
        match arrival {
            Arrival::Write(placement) => {
                self.enter_bus(number, placement);
                self.arrived(number, sequence);
            }
            Arrival::Immediate(buffer, position, clock) => {
                self.empty_bus(number, false);
                self.received(number, &buffer, &position, clock, true);
                self.arrived(number, sequence);
            }
            Arrival::Send(buffer, position, data, clock) => {
                self.empty_bus(number, false);
                if self.perform_send(number, &buffer, &position, &data, clock) {
                    self.arrived(number, sequence);
                }
            }
            Arrival::Read(remote, len, clock) => {
                self.forget_missing(number, sequence);
                self.perform_read(number, sequence, remote, len, clock);
            }
            Arrival::Atomic(remote, compares, operands, clock) => {
                self.forget_missing(number, sequence);
                self.perform_atomic(number, sequence, remote, (compares, operands), clock);
            }
        }
    }

    /// Has the packets of a message arrive that come before its end.
    fn arrive_parts(&mut self, number: u32, sequence: u64, end: u32) {
        let Some(pair) = self.pairs.get(&number) else {
            return;
        };
        let range = pair.answer.arriving.range((sequence, 0)..(sequence, end));
        let mut parts: Vec<u32> = range.map(|((_, part), _)| *part).collect();
        self.random.shuffle(&mut parts);
        for part in parts {
            self.arrive(number, sequence, part);
        }
    }

    fn forget_missing(&mut self, number: u32, sequence: u64) {
        if let Some(pair) = self.pairs.get_mut(&number) {
            pair.answer.missing.remove(&sequence);
        }
    }

    /// Acknowledges a segment of which everything has arrived. It need not be visible yet.
    fn arrived(&mut self, number: u32, sequence: u64) {
        let Some(pair) = self.pairs.get_mut(&number) else {
            return;
        };
        let Some((missing, clock)) = pair.answer.missing.get_mut(&sequence) else {
            return;
        };
        *missing -= 1;
        let clock = *clock;
        if *missing == 0 {
            pair.answer.missing.remove(&sequence);
            self.reply(number, sequence, clock, Body::Done);
        }
    }

    fn reply(&mut self, number: u32, sequence: u64, clock: u64, body: Body) {
        let Some(pair) = self.pairs.get(&number) else {
            return;
        };
        let packet = pair.packet(&self.devices[pair.device], sequence, clock + 1, body);
        self.send(packet);
    }

    /// Puts on the bus what this device writes to GPU memory for its own requests, or a message.
    pub(crate) fn enter_bus_late(&mut self, number: u32, pieces: Vec<(Range, Vec<u8>)>) {
        for (range, data) in pieces {
            let Some(pair) = self.pairs.get_mut(&number) else {
                return;
            };
            let placement = placement(pair, range, data);
            self.enter_bus(number, placement);
        }
    }

    /// Puts a write on the bus: it becomes visible at once, or late; by a strict key not before those before it.
    fn enter_bus(&mut self, number: u32, mut placement: Placement) {
        let now = self.now;
        let Some(pair) = self.pairs.get_mut(&number) else {
            return;
        };
        let profile = &self.devices[pair.device].profile;
        let most = match placement.gpu {
            true => profile.gpu,
            false => profile.bus,
        };
        let (id, gpu, relaxed) = (placement.id, placement.gpu, placement.relaxed);
        let before = pair
            .answer
            .bus
            .iter()
            .filter(|one| one.gpu == gpu && !relaxed);
        let latest = before.filter_map(|one| one.due).max();
        let due = latest.unwrap_or(now).max(now + self.random.delay(most));
        placement.due = Some(due);
        pair.answer.bus.push_back(placement);
        if due == now {
            return self.place(number, id);
        }
        COUNTERS.late.add(1);
        self.after(due - now, Timer::Place(number, id));
    }

    /// Makes a write visible; one by a strict key after those before it.
    pub(crate) fn place(&mut self, number: u32, id: u64) {
        let Some(pair) = self.pairs.get_mut(&number) else {
            return;
        };
        let bus = &mut pair.answer.bus;
        let Some(at) = bus.iter().position(|one| one.id == id) else {
            return;
        };
        let gpu = bus[at].gpu;
        if bus[at].relaxed {
            if let Some(one) = bus.remove(at) {
                write(&one);
            }
            return;
        }
        let mut before: Vec<Placement> = Vec::new();
        let mut index = 0;
        while index < bus.len() {
            let done = bus[index].id == id;
            if bus[index].gpu == gpu {
                before.extend(bus.remove(index));
            } else {
                index += 1;
            }
            if done {
                break;
            }
        }
        before.iter().for_each(write);
    }

    /// Makes all writes on the bus visible: a read or a completion passes none. Those to GPU memory only if that is read.
    pub(crate) fn empty_bus(&mut self, number: u32, gpu: bool) {
        self.empty_bus_but(number, |one| one.gpu && !gpu);
    }

    fn empty_bus_but(&mut self, number: u32, stays: impl Fn(&Placement) -> bool) {
        let Some(pair) = self.pairs.get_mut(&number) else {
            return;
        };
        let bus = &mut pair.answer.bus;
        bus.iter().filter(|one| !stays(one)).for_each(write);
        bus.retain(stays);
    }

    fn perform_send(
        &mut self,
        number: u32,
        buffer: &Buffer,
        position: &Position,
        data: &[u8],
        clock: u64,
    ) -> bool {
        let Some(pair) = self.pairs.get(&number) else {
            return false;
        };
        let placed = self
            .keys
            .scatter(pair.owner, &buffer.parts, position.offset, data);
        let Ok(late) = placed else {
            self.fail_buffer(number, buffer.id, ibv_wc_status::IBV_WC_LOC_PROT_ERR);
            let Some(pair) = self.pairs.get(&number) else {
                return false;
            };
            let sequence = pair.answer.missing.keys().min().copied().unwrap_or(0);
            self.reply(number, sequence, clock, Body::Refused(Refusal::Operation));
            self.fail(number, Some(ibv_event_type::IBV_EVENT_QP_FATAL));
            return false;
        };
        self.enter_bus_late(number, late);
        if position.last {
            self.received(number, buffer, position, clock, false);
        }
        true
    }

    /// Completes a receive buffer.
    fn received(
        &mut self,
        number: u32,
        buffer: &Buffer,
        position: &Position,
        clock: u64,
        write: bool,
    ) {
        let Some(pair) = self.pairs.get(&number) else {
            return;
        };
        let mut wc = empty_wc();
        (wc.wr_id, wc.qp_num, wc.src_qp) = (buffer.id, number, pair.attr.dest_qp_num);
        wc.byte_len = position.total as u32;
        wc.opcode = match write {
            true => ibv_wc_opcode::IBV_WC_RECV_RDMA_WITH_IMM,
            false => ibv_wc_opcode::IBV_WC_RECV,
        };
        if let Some(immediate) = position.immediate {
            wc.wc_flags |= WITH_IMMEDIATE;
            wc.__bindgen_anon_1.imm_data = immediate;
        }
        wc.slid = pair.attr.ah_attr.dlid;
        let entry = Entry {
            wc,
            frees: None,
            clock,
            solicited: position.solicited,
        };
        let (card, queue) = (pair.card, Arc::clone(&pair.receive_completions));
        self.complete(card, &queue, entry);
    }

    fn perform_read(&mut self, number: u32, sequence: u64, remote: Remote, len: u32, clock: u64) {
        COUNTERS.reads.add(1);
        let Some(pair) = self.pairs.get(&number) else {
            return;
        };
        let mut data = Vec::new();
        if len > 0 {
            let needed = flags::IBV_ACCESS_REMOTE_READ;
            let range = self
                .keys
                .remote(pair.owner, remote.key, remote.addr, len.into(), needed);
            let Ok(range) = range else {
                self.reply(number, sequence, clock, Body::Refused(Refusal::Access));
                return self.fail(number, Some(ibv_event_type::IBV_EVENT_QP_ACCESS_ERR));
            };
            // Nothing that has arrived is passed on the bus.
            let flushes = self.devices[pair.device].profile.gpu_read_flushes;
            self.empty_bus(number, range.gpu && flushes);
            // SAFETY: inside a registration, whose memory stays as long as it is registered.
            unsafe {
                bytes::gather(
                    std::ptr::with_exposed_provenance(range.addr),
                    len as usize,
                    &mut data,
                )
            };
            if let Some(pair) = self.pairs.get(&number) {
                let on_bus = pair.answer.bus.iter();
                on_bus.for_each(|one| overlay(&mut data, range.addr, one));
            }
        }
        self.reply(number, sequence, clock, Body::Data(data));
    }

    fn perform_atomic(
        &mut self,
        number: u32,
        sequence: u64,
        remote: Remote,
        what: (bool, [u64; 2]),
        clock: u64,
    ) {
        COUNTERS.atomics.add(1);
        let Some(pair) = self.pairs.get(&number) else {
            return;
        };
        let needed = flags::IBV_ACCESS_REMOTE_ATOMIC;
        let Ok(range) = self
            .keys
            .remote(pair.owner, remote.key, remote.addr, 8, needed)
        else {
            self.reply(number, sequence, clock, Body::Refused(Refusal::Access));
            return self.fail(number, Some(ibv_event_type::IBV_EVENT_QP_ACCESS_ERR));
        };
        let profile = &self.devices[pair.device].profile;
        let alone = profile.atomics.lose_the_cpus();
        let passes = range.relaxed && profile.relaxed_atomics;
        self.empty_bus_but(number, |one| {
            one.gpu || passes && one.relaxed && !one.overlaps(range.addr, 8)
        });
        let Some(pair) = self.pairs.get_mut(&number) else {
            return;
        };
        // SAFETY: an aligned word inside a registration, which programs access atomically or not at all.
        let word =
            unsafe { AtomicU64::from_ptr(std::ptr::with_exposed_provenance_mut(range.addr)) };
        let old = modify(word, what, alone);
        if pair.answer.answers.len() == ANSWERS {
            pair.answer.answers.pop_front();
        }
        pair.answer.answers.push_back((sequence, old));
        self.reply(
            number,
            sequence,
            clock,
            Body::Data(old.to_ne_bytes().to_vec()),
        );
    }
}

/// An atomic on a word, and the word before. `alone`: exclusive against others of the device, and not of CPUs.
fn modify(word: &AtomicU64, (compares, [first, second]): (bool, [u64; 2]), alone: bool) -> u64 {
    let new = |old: u64| match compares {
        true if old == first => second,
        true => old,
        false => old.wrapping_add(first),
    };
    if !alone {
        let changed = word.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |old| Some(new(old)));
        return changed.unwrap_or_else(|old| old);
    }
    let old = word.load(Ordering::SeqCst);
    // Long enough for a CPU's atomic to come between, and be lost.
    std::thread::yield_now();
    word.store(new(old), Ordering::SeqCst);
    old
}

/// A write to memory.
fn placement(pair: &mut Pair, range: Range, data: Vec<u8>) -> Placement {
    pair.answer.placements += 1;
    Placement {
        id: pair.answer.placements,
        due: None,
        addr: range.addr,
        data,
        relaxed: range.relaxed,
        gpu: range.gpu,
    }
}

/// A write's packets, of which each ends where a multiple of the packet's size is reached.
fn cut(pair: &mut Pair, range: Range, data: Vec<u8>, mtu: usize) -> Vec<Placement> {
    let mut placement = |at: usize, data: Vec<u8>| {
        let addr = range.addr + at;
        placement(pair, Range { addr, ..range }, data)
    };
    if data.len() <= mtu {
        return if data.is_empty() {
            Vec::new()
        } else {
            vec![placement(0, data)]
        };
    }
    let parts = data.chunks(mtu).enumerate();
    parts
        .map(|(at, part)| placement(at * mtu, part.to_vec()))
        .collect()
}

/// Shows a write that is on the bus in bytes that were read from `addr` on: a read sees what is not visible yet.
fn overlay(data: &mut [u8], addr: usize, one: &Placement) {
    let from = addr.max(one.addr);
    let end = (addr + data.len()).min(one.addr + one.data.len());
    if from < end {
        data[from - addr..end - addr].copy_from_slice(&one.data[from - one.addr..end - one.addr]);
    }
}

fn write(one: &Placement) {
    // SAFETY: inside a registration: before one ends, all writes to it are made.
    unsafe { bytes::place(std::ptr::with_exposed_provenance_mut(one.addr), &one.data) };
}
