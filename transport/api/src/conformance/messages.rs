//! Checks of messages, of the inbox that takes them, and of the replies to them.

use std::time::{Duration, Instant};

use super::harness::Harness;
use super::lanes::{Lanes, Patience, put};
use super::report::{Done, Found};
use super::world::{PE0, PE1, TARGET, World, to};
use crate::error::Error;
use crate::inbox::{Inbox, Reply};
use crate::op::{Op, Remote};
use crate::pe::Pe;
use crate::traits::Status;

const UNDECLARED: Done = Done::Free("messages are not declared");

/// The offset in PE 0's target of the words for replies, and in PE 1's of a word for data.
const VALUE: u64 = 1024;
const NUMBER: u64 = 1032;
const DATA: u64 = 64;

fn inbox(world: &World<'_>, pe: Pe) -> Found<Box<dyn Inbox>> {
    let inbox = world.member(pe).domain.inbox();
    inbox.map_err(|e| format!("the inbox of PE {pe}: {e}"))
}

fn message(world: &World<'_>, at: u64, len: u64) -> Op {
    let from = world.member(PE0).loose.buffer(at, len);
    Op::Message { from }
}

/// Serves PE 1's inbox, by `handler`, until `enough`; PE 0's lane is driven for its completions.
fn serve_until(
    lanes: &mut Lanes<'_>,
    world: &World<'_>,
    inbox: &mut dyn Inbox,
    handler: &mut dyn FnMut(Pe, &[u8]) -> Option<Reply>,
    mut enough: impl FnMut() -> bool,
) -> Found<()> {
    let mut patience = Patience::new(world.deadline());
    while !enough() {
        inbox.drain(handler).map_err(|e| format!("serve: {e}"))?;
        lanes.drive(PE0)?;
        patience.round(|| "messages do not come, or their answers".into())?;
    }
    Ok(())
}

/// Undeclared, messages and the inbox are Unsupported; declared, longer ones are.
pub(super) fn refusals(harness: &dyn Harness) -> Found {
    let world = World::small(harness, 2)?;
    let mut lanes = world.lanes()?;
    let most = u64::from(world.capabilities.message);
    if most == 0
        && let Ok(inbox) = world.member(PE1).domain.inbox()
    {
        return Err(format!("messages are not declared, yet there is {inbox:?}"));
    }
    lanes.refused(PE0, PE1, message(&world, 0, most + 1), "Unsupported", |e| {
        matches!(e, Error::Unsupported { .. })
    })?;
    Ok(Done::Tried)
}

/// Messages of every length arrive whole, in the order sent, each once, whether they were sent before
/// the inbox was opened or after; the sender's bytes may change at once. The target's lanes make no
/// call.
pub(super) fn arrive(harness: &dyn Harness) -> Found {
    let world = World::small(harness, 2)?;
    let most = u64::from(world.capabilities.message);
    if most == 0 {
        return Ok(UNDECLARED);
    }
    let mut lanes = world.lanes()?;
    let source = &world.member(PE0).loose;
    let count = 200;
    let content = |k: u64| -> Vec<u8> {
        let len = k % (most + 1);
        (0..len).map(|at| (k * 31 + at) as u8).collect()
    };
    let early = u64::from(world.capabilities.depth.unwrap_or(u32::MAX)).min(20);
    let send = |lanes: &mut Lanes<'_>, k: u64| -> Found<Status> {
        let bytes = content(k);
        for (at, &byte) in (0..).zip(&bytes) {
            source.set(at, 1, byte);
        }
        let posted = lanes
            .of(PE0)
            .post(PE1, &[message(&world, 0, bytes.len() as u64)])?;
        source.set(0, most, 0xee);
        Ok(posted.status)
    };
    let mut sent = 0;
    while sent < early {
        match send(&mut lanes, sent)? {
            Status::All => sent += 1,
            other => return Err(format!("message {sent}, nobody serving: {other:?}")),
        }
    }
    let mut inbox = inbox(&world, PE1)?;
    let mut got: Vec<(Pe, Vec<u8>)> = Vec::new();
    let mut patience = Patience::new(world.deadline());
    while (got.len() as u64) < count {
        while sent < count {
            match send(&mut lanes, sent)? {
                Status::All => sent += 1,
                Status::Full => break,
                Status::Refused(error) => return Err(format!("message {sent}: {error}")),
            }
        }
        inbox
            .drain(&mut |pe, bytes| {
                got.push((pe, bytes.to_vec()));
                None
            })
            .map_err(|e| format!("serve: {e}"))?;
        lanes.drive(PE0)?;
        patience.round(|| format!("{} of {count} messages came", got.len()))?;
    }
    lanes.place(PE0, PE1)?;
    for _ in 0..100 {
        let more = inbox.drain(&mut |_, _| None);
        let more = more.map_err(|e| format!("serve: {e}"))?;
        if more != 0 {
            return Err(format!("{more} messages more than the {count} sent"));
        }
    }
    for (k, (pe, bytes)) in (0..).zip(got) {
        if pe != PE0 || bytes != content(k) {
            return Err(format!("message {k} came from PE {pe} as {bytes:?}"));
        }
    }
    Ok(Done::Tried)
}

/// A reply's value is visible before its number; messages of two senders are told apart; a put before a
/// message is visible to the message's handler, where that is promised.
pub(super) fn replies(harness: &dyn Harness) -> Found {
    let world = World::small(harness, 2)?;
    if world.capabilities.message < 8 {
        return Ok(UNDECLARED);
    }
    let mut lanes = world.lanes()?;
    let mut inbox = inbox(&world, PE1)?;
    let (own, local) = (&world.member(PE0).target, &world.member(PE0).local);
    let remote = &world.member(PE1).target;
    let word = |offset| Remote {
        region: TARGET,
        offset,
    };
    for round in 1..=500u64 {
        local.store(0, round);
        world.member(PE0).loose.store(0, round);
        let both = [put(local.buffer(0, 8), to(DATA)), message(&world, 0, 8)];
        lanes.post_all(PE0, PE1, &both)?;
        let mut seen = Vec::new();
        let mut handler = |pe: Pe, bytes: &[u8]| {
            seen.push((pe, bytes.to_vec(), remote.load(DATA)));
            Some(Reply {
                to: word(VALUE),
                value: 3 * round,
                number: round,
            })
        };
        let done = || own.load(NUMBER) == round;
        serve_until(&mut lanes, &world, &mut *inbox, &mut handler, done)?;
        let value = own.load(VALUE);
        if value != 3 * round {
            return Err(format!("answer {round} is there, its value is {value}"));
        }
        match &seen[..] {
            [(PE0, bytes, data)] if bytes[..] == round.to_ne_bytes() => {
                if world.guarantees.put_message && *data != round {
                    return Err(format!("message {round} came before the put before it"));
                }
            }
            other => return Err(format!("message {round} was served as {other:?}")),
        }
    }
    Ok(Done::Tried)
}

/// More replies than any queue holds all arrive, each at its sender.
pub(super) fn many_replies(harness: &dyn Harness) -> Found {
    let world = World::small(harness, 3)?;
    if world.capabilities.message < 8 {
        return Ok(UNDECLARED);
    }
    let mut lanes = world.lanes()?;
    let mut inbox = inbox(&world, PE1)?;
    const EACH: u64 = 300;
    let senders = [PE0, Pe(2)];
    let mut sent = [0; 2];
    let mut patience = Patience::new(world.deadline());
    loop {
        for (at, pe) in senders.into_iter().enumerate() {
            let from = &world.member(pe).loose;
            while sent[at] < EACH {
                from.store(0, sent[at]);
                let op = Op::Message {
                    from: from.buffer(0, 8),
                };
                match lanes.of(pe).post(PE1, &[op])?.status {
                    Status::All => sent[at] += 1,
                    Status::Full => break,
                    Status::Refused(error) => return Err(format!("PE {pe}: {error}")),
                }
            }
            lanes.drive(pe)?;
        }
        inbox
            .drain(&mut |pe, bytes| {
                let number = bytes.try_into().map_or(u64::MAX, u64::from_ne_bytes);
                let place = |offset| Remote {
                    region: TARGET,
                    offset: offset + 16 * (number % EACH),
                };
                Some(Reply {
                    to: place(0),
                    value: number + 1000 * u64::from(pe.0),
                    number: number + 1,
                })
            })
            .map_err(|e| format!("serve: {e}"))?;
        let told = |pe: Pe| (0..EACH).all(|k| world.member(pe).target.load(16 * k + 8) == k + 1);
        if senders.into_iter().all(told) {
            break;
        }
        patience.round(|| format!("{sent:?} sent, not all answered"))?;
    }
    for pe in senders {
        for k in 0..EACH {
            let value = world.member(pe).target.load(16 * k);
            if value != k + 1000 * u64::from(pe.0) {
                return Err(format!("answer {k} to PE {pe} is {value}"));
            }
        }
    }
    Ok(Done::Tried)
}

/// As many messages of each PE as may be without a reply hold up no lane, though nobody takes them.
pub(super) fn window(harness: &dyn Harness) -> Found {
    let world = World::small(harness, 3)?;
    if world.capabilities.message < 8 {
        return Ok(UNDECLARED);
    }
    let window = |pe: Pe| {
        let domain = &world.member(pe).domain;
        domain.message_window(&world.member(PE1).peer)
    };
    let senders = [PE0, PE1, Pe(2)];
    let windows = senders.map(window);
    if windows.contains(&Some(0)) {
        return Err("a window of no messages".into());
    }
    if windows.contains(&None) {
        return Ok(Done::Free("messages without a reply have no limit"));
    }
    let mut lanes = world.lanes()?;
    for (pe, window) in senders.into_iter().zip(windows) {
        let from = &world.member(pe).loose;
        let message = Op::Message {
            from: from.buffer(0, 8),
        };
        for _ in 0..window.unwrap_or(0) {
            lanes.post_all(pe, PE1, &[message])?;
        }
    }
    for pe in senders {
        lanes.place(pe, PE1)?;
    }
    Ok(Done::Tried)
}

/// There is one inbox at a time, and another after it. A sleep ends when a message arrives or its time
/// is over; after shutdown all is Closed.
pub(super) fn inbox_life(harness: &dyn Harness) -> Found {
    let world = World::small(harness, 2)?;
    if world.capabilities.message == 0 {
        return Ok(UNDECLARED);
    }
    let mut lanes = world.lanes()?;
    let domain = &world.member(PE1).domain;
    let first = inbox(&world, PE1)?;
    if let Ok(second) = domain.inbox() {
        return Err(format!("a second inbox beside the first: {second:?}"));
    }
    drop(first);
    let mut inbox = inbox(&world, PE1)?;
    let wait = |inbox: &mut dyn Inbox, time| inbox.wait(time).map_err(|e| format!("wait: {e}"));
    wait(&mut *inbox, Duration::from_millis(10))?;

    lanes.post_all(PE0, PE1, &[message(&world, 0, 1)])?;
    let since = Instant::now();
    let mut served = 0;
    while served == 0 {
        wait(&mut *inbox, world.deadline())?;
        let count = inbox.drain(&mut |_, _| None);
        served += count.map_err(|e| format!("serve: {e}"))?;
        if since.elapsed() >= world.deadline() {
            return Err("a message came and ended no sleep".into());
        }
    }
    lanes.place(PE0, PE1)?;
    let ended = std::thread::scope(|scope| {
        let sleeper = scope.spawn(|| {
            let since = Instant::now();
            loop {
                match inbox.wait(world.deadline()) {
                    Err(Error::Closed { .. }) => return Ok(()),
                    Err(other) => return Err(format!("a sleep at shutdown: {other:?}")),
                    Ok(()) if since.elapsed() >= world.deadline() => {
                        return Err("shutdown ended no sleep".to_owned());
                    }
                    Ok(()) => {}
                }
            }
        });
        std::thread::sleep(Duration::from_millis(20));
        domain.shutdown();
        sleeper
            .join()
            .map_err(|_| "a call panicked; none may".to_owned())?
    });
    ended?;
    match inbox.drain(&mut |_, _| None) {
        Err(Error::Closed { .. }) => {}
        other => return Err(format!("serve after shutdown: {other:?}, not Closed")),
    }
    drop(inbox);
    match domain.inbox() {
        Err(Error::Closed { .. }) => Ok(Done::Tried),
        other => Err(format!("an inbox after shutdown: {other:?}, not Closed")),
    }
}

/// A lost sender gets no reply, and replies to others are sent as before.
pub(super) fn lost_sender(harness: &dyn Harness) -> Found {
    let world = World::small(harness, 3)?;
    if world.capabilities.message < 8 {
        return Ok(UNDECLARED);
    }
    let mut lanes = world.lanes()?;
    let mut inbox = inbox(&world, PE1)?;
    const LOST: Pe = Pe(2);
    let from = &world.member(LOST).loose;
    let op = Op::Message {
        from: from.buffer(0, 8),
    };
    lanes.post_all(LOST, PE1, &[op])?;
    lanes.place(LOST, PE1)?;
    world.member(PE1).domain.peer_lost(LOST);
    let word = |offset| Remote {
        region: TARGET,
        offset,
    };
    let mut handler = |_: Pe, _: &[u8]| {
        Some(Reply {
            to: word(VALUE),
            value: 7,
            number: 8,
        })
    };
    lanes.post_all(PE0, PE1, &[message(&world, 0, 8)])?;
    let own = &world.member(PE0).target;
    let done = || own.load(NUMBER) == 8;
    serve_until(&mut lanes, &world, &mut *inbox, &mut handler, done)?;
    match own.load(VALUE) {
        7 => Ok(Done::Tried),
        other => Err(format!("beside a lost sender an answer's value is {other}")),
    }
}

/// No reply arrives at a lane that was dropped, nor from a lost PE once the lane has made a call.
pub(super) fn late_replies(harness: &dyn Harness) -> Found {
    for drops in [false, true] {
        let world = World::small(harness, 2)?;
        if world.capabilities.message < 8 {
            return Ok(UNDECLARED);
        }
        let mut lanes = world.lanes()?;
        let mut inbox = inbox(&world, PE1)?;
        let own = &world.member(PE0).target;
        own.store(VALUE, 0);
        own.store(NUMBER, 0);
        lanes.post_all(PE0, PE1, &[message(&world, 0, 8)])?;
        lanes.place(PE0, PE1)?;
        if drops {
            drop(lanes);
        } else {
            world.member(PE0).domain.peer_lost(PE1);
            match lanes.of(PE0).lane.progress() {
                Ok(()) | Err(Error::PeerLost { pe: PE1, .. }) => {}
                Err(other) => return Err(format!("progress after PE 1 was lost: {other:?}")),
            }
        }
        let word = |offset| Remote {
            region: TARGET,
            offset,
        };
        for _ in 0..100 {
            let mut handler = |_: Pe, _: &[u8]| {
                Some(Reply {
                    to: word(VALUE),
                    value: 7,
                    number: 8,
                })
            };
            let served = inbox.drain(&mut handler);
            served.map_err(|e| format!("serve: {e}"))?;
            std::thread::yield_now();
        }
        if (own.load(VALUE), own.load(NUMBER)) != (0, 0) {
            let whom = if drops {
                "a lane that is gone"
            } else {
                "a lane that gave its PE up"
            };
            return Err(format!("{whom} was answered"));
        }
    }
    Ok(Done::Tried)
}
