//! Checks of declarations, registration, addresses, keys and connections.

use super::harness::Harness;
use super::lanes::{Watched, put};
use super::report::{Done, Found};
use super::world::{PE0, PE1, World, open, passed_descriptor, to};
use crate::capabilities::{AtomicLevel, Limits, SignalSupport, WireUp};
use crate::error::Error;
use crate::memory::{Memory, MemoryKind, RegionId};
use crate::traits::{Domain, Peer, Reach, Status};

/// Limits, kinds and guarantees contradict neither each other nor themselves.
pub(super) fn declarations(harness: &dyn Harness) -> Found {
    if harness.transport().name().is_empty() {
        return Err("the transport's name is empty".into());
    }
    let domain = open(harness, PE0, 2)?;
    let capabilities = domain.capabilities();
    for (what, limits) in [("put", capabilities.put), ("get", capabilities.get)] {
        let Limits {
            max,
            align,
            unregistered,
            inline,
            ordered,
        } = limits;
        if max == 0 {
            return Err(format!("{what}: no size at all (max is 0)"));
        }
        if !align.is_power_of_two() {
            return Err(format!("{what}: alignment {align} is not a power of two"));
        }
        if ordered < 8 {
            return Err(format!(
                "{what}: not even a word keeps an order: {limits:?}"
            ));
        }
        if unregistered > max || inline > max {
            return Err(format!(
                "{what}: a limit exceeds the largest size: {limits:?}"
            ));
        }
    }
    if capabilities.depth == Some(0) {
        return Err("a lane that holds no operation".into());
    }
    if capabilities.put_signal == SignalSupport::Native(AtomicLevel::None) {
        return Err("put-with-signal whose signal is at no level".into());
    }
    for kind in MemoryKind::ALL {
        let listed = capabilities.memory.contains(&kind);
        if listed != domain.guarantees(kind).is_some() {
            return Err(format!(
                "{kind} memory: listed is {listed}, guarantees say otherwise"
            ));
        }
    }
    if domain.capabilities() != capabilities {
        return Err("capabilities changed between two calls".into());
    }
    Ok(Done::Tried)
}

/// Regions have the numbers they were given, each once at a time, and stable keys.
pub(super) fn numbering(harness: &dyn Harness) -> Found {
    let domain = open(harness, PE0, 1)?;
    let register = |number: u32| -> Found<_> {
        let memory = harness.memory(PE0, harness.kind(), 4096)?;
        Ok(domain.register(RegionId(number), &memory))
    };
    let sound = |number: u32| -> Found<_> {
        let region = register(number)?.map_err(|e| format!("register as {number}: {e}"))?;
        if region.id() != RegionId(number) {
            return Err(format!("registration {number} is called {:?}", region.id()));
        }
        if region.key() != region.key() {
            return Err("a region's key changed between two calls".into());
        }
        Ok(region)
    };
    let mut regions = Vec::new();
    for number in [0, 1, 7, 3] {
        regions.push(sound(number)?);
    }
    match register(7)? {
        Err(Error::Memory { .. }) => {}
        other => return Err(format!("a number in use was given again: {other:?}")),
    }
    drop(regions.remove(1));
    regions.push(sound(1)?);
    Ok(Done::Tried)
}

/// Kinds not listed are refused, at registration and in reach; listed ones can be registered.
pub(super) fn other_kinds(harness: &dyn Harness) -> Found {
    let domain = open(harness, PE0, 1)?;
    let peer = peer_of(harness, &*domain);
    for kind in MemoryKind::ALL {
        let listed = domain.capabilities().memory.contains(&kind);
        if listed {
            let memory = harness.memory(PE0, kind, 4096)?;
            domain
                .register(RegionId(0), &memory)
                .map_err(|e| format!("register of {kind} memory: {e}"))?;
            continue;
        }
        let host = harness.memory(PE0, MemoryKind::Host, 4096)?;
        let (base, len, owner) = (host.base(), host.len(), host.owner().clone());
        // SAFETY: the host's memory, under another kind's name; a domain that does not list the kind
        // must refuse it by that name, without a touch.
        let memory = unsafe { Memory::new(base, len, kind, None, owner) };
        match domain.register(RegionId(1), &memory) {
            Err(Error::Memory { kind: named, .. }) if named == kind => {}
            other => {
                return Err(format!(
                    "{kind} memory is not listed, yet register: {other:?}"
                ));
            }
        }
        if !matches!(domain.reach(&peer, kind), Reach::None(_)) {
            return Err(format!("{kind} memory is not listed, yet reachable"));
        }
    }
    Ok(Done::Tried)
}

fn peer_of(harness: &dyn Harness, domain: &dyn Domain) -> Peer {
    Peer {
        pe: PE0,
        host: harness.host(PE0),
        address: Some(domain.address()),
    }
}

/// Garbled forms of the bytes that a domain or region gave: cut, lengthened, overwritten.
fn garbled(sound: &[u8]) -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = (0..sound.len()).map(|cut| sound[..cut].to_vec()).collect();
    all.push([sound, &[0]].concat());
    for byte in [0, 0x55, 0xff] {
        if !sound.is_empty() {
            all.push(vec![byte; sound.len()]);
        }
        all.push(vec![byte; sound.len() + 4096]);
    }
    all.retain(|bytes| bytes != sound);
    all
}

/// Each bit of `sound` turned, one at a time.
fn bit_flips(sound: &[u8]) -> impl Iterator<Item = Vec<u8>> + '_ {
    (0..sound.len() * 8).map(|bit| {
        let mut bytes = sound.to_vec();
        bytes[bit / 8] ^= 1 << (bit % 8);
        bytes
    })
}

/// A sound address is reachable, garbage and no address are not.
pub(super) fn addresses(harness: &dyn Harness) -> Found {
    let me = open(harness, PE0, 2)?;
    let other = open(harness, PE1, 2)?;
    let sound = other.address();
    let peer = Peer {
        pe: PE1,
        host: harness.host(PE1),
        address: Some(sound.clone()),
    };
    if let Reach::None(why) = me.reach(&peer, harness.kind()) {
        return Err(format!("a sound address is not reachable: {why}"));
    }
    let none = Peer {
        address: None,
        ..peer.clone()
    };
    match me.reach(&none, harness.kind()) {
        Reach::None(why) if !why.is_empty() => {}
        other => return Err(format!("a peer without such a domain: {other:?}")),
    }
    for bytes in garbled(&sound) {
        let garbage = Peer {
            address: Some(bytes.clone()),
            ..peer.clone()
        };
        match me.reach(&garbage, harness.kind()) {
            Reach::None(why) if !why.is_empty() => {}
            other => return Err(format!("address {bytes:?}: {other:?}")),
        }
    }
    for bytes in bit_flips(&sound) {
        // The transport may judge whether such a peer could exist; only panics are wrong.
        let flipped = Peer {
            address: Some(bytes),
            ..peer.clone()
        };
        let _judged = me.reach(&flipped, harness.kind());
    }
    Ok(Done::Tried)
}

/// Garbled keys are refused; the sound one is still good afterwards.
pub(super) fn keys(harness: &dyn Harness) -> Found {
    let world = World::small(harness, 2)?;
    let owner = world.member(PE1);
    let region = &*owner.regions[0];
    let sound = region.key();
    // Another domain imports, so that no other check sees leftovers of garbage.
    let importer = open(harness, PE0, 2)?;
    for bytes in garbled(sound) {
        let passed = passed_descriptor(region)?;
        match importer.import(&owner.peer, region.id(), &bytes, passed) {
            Err(Error::BadPeerData { pe, .. }) if pe == PE1 => {}
            other => return Err(format!("key {bytes:?}: {other:?}, not BadPeerData of PE 1")),
        }
    }
    for bytes in bit_flips(sound) {
        // A number may be another's number; only panics and lengths without memory are wrong.
        let passed = passed_descriptor(region)?;
        if let Ok(imported) = importer.import(&owner.peer, region.id(), &bytes, passed)
            && (imported.mapped().is_some() || imported.on_gpu().is_some())
            && imported.len() as u64 > owner.target.len()
        {
            return Err("a key that lies about its length was mapped".into());
        }
    }
    let imported = importer
        .import(&owner.peer, region.id(), sound, passed_descriptor(region)?)
        .map_err(|e| format!("the sound key after garbage: {e}"))?;
    if imported.len() as u64 != owner.target.len() {
        return Err(format!(
            "a region of {} imported as {}",
            owner.target.len(),
            imported.len()
        ));
    }
    Ok(Done::Tried)
}

/// If reach says so, imports can be stored to, the owner sees it, and the address stays valid as long as its
/// keeper.
pub(super) fn mapped(harness: &dyn Harness) -> Found {
    let world = World::small(harness, 2)?;
    let (me, owner) = (world.member(PE0), world.member(PE1));
    let region = &me.imported[1];
    if region.is_empty() || region.len() as u64 != owner.target.len() {
        return Err(format!(
            "a region of {} imported as {}",
            owner.target.len(),
            region.len()
        ));
    }
    let reach = me.domain.reach(&owner.peer, harness.kind());
    let base = match (reach, region.mapped()) {
        (Reach::Mapped { .. }, Some(base)) => base,
        (Reach::Mapped { .. }, None) => return Err("reach says mapped, the import is not".into()),
        (_, Some(_)) => return Err("the import is mapped, but reach does not say so".into()),
        (_, None) => return Ok(Done::Free("peers are not mapped")),
    };
    let last = region.len() as u64 - 8;
    for offset in [0, 8, last] {
        let value = 0x0123_4567_89ab_cdef ^ offset;
        // SAFETY: the region is mapped with `len` bytes at `base`, page-aligned as memory is, while
        // `region` lives; the word is accessed atomically by both sides.
        unsafe { word(base.as_ptr(), offset) }.store(value, std::sync::atomic::Ordering::Release);
        if owner.target.load(offset) != value {
            return Err(format!(
                "a store through the mapping at {offset} is not seen"
            ));
        }
    }
    let keeper = region.keep_alive();
    drop(world);
    // SAFETY: `keeper` keeps the mapping, as `RemoteRegion::keep_alive` promises.
    let kept = unsafe { word(base.as_ptr(), last) }.load(std::sync::atomic::Ordering::Acquire);
    drop(keeper);
    if kept != 0x0123_4567_89ab_cdef ^ last {
        return Err("the mapping lost its content though it was kept alive".into());
    }
    Ok(Done::Tried)
}

/// # Safety
///
/// `offset` is a multiple of 8 inside memory at `base`, aligned, which lives as long as the result
/// is used, and is accessed atomically meanwhile.
unsafe fn word<'a>(base: *mut u8, offset: u64) -> &'a std::sync::atomic::AtomicU64 {
    // SAFETY: the word is aligned and in memory that lives, as this function's caller promises.
    unsafe { std::sync::atomic::AtomicU64::from_ptr(base.add(offset as usize).cast()) }
}

/// Endpoints are empty where none are needed; where they are, garbage and use before connecting
/// are refused.
pub(super) fn wiring(harness: &dyn Harness) -> Found {
    let world = World::small(harness, 2)?;
    let member = world.member(PE0);
    let mut lane = member.domain.lane().map_err(|e| format!("lane: {e}"))?;
    let endpoint = lane.endpoint(PE1).map_err(|e| format!("endpoint: {e}"))?;
    if world.capabilities.wire_up == WireUp::None {
        if !endpoint.is_empty() {
            return Err("an endpoint is not empty, though no wiring is declared".into());
        }
        return Ok(Done::Tried);
    }
    if lane.endpoint(PE1).ok().as_ref() != Some(&endpoint) {
        return Err("an endpoint changed between two calls".into());
    }
    let other = &world.member(PE1).domain;
    for bytes in garbled(&endpoint) {
        match other.accept(PE0, &bytes) {
            Err(Error::BadPeerData { pe, .. }) if pe == PE0 => {}
            answer => return Err(format!("accept of {bytes:?}: {answer:?}, not BadPeerData")),
        }
    }
    for bytes in bit_flips(&endpoint) {
        // A number may be another's number; only panics are wrong.
        let _answer = other.accept(PE0, &bytes);
    }
    let sound = other.accept(PE0, &endpoint);
    let sound = sound.map_err(|e| format!("accept after garbage: {e}"))?;
    for bytes in garbled(&sound) {
        match lane.connect(PE1, &bytes) {
            Err(Error::BadPeerData { pe, .. }) if pe == PE1 => {}
            other => return Err(format!("answer {bytes:?}: {other:?}, not BadPeerData")),
        }
    }
    let mut watched = Watched::new(lane, 2);
    let early = watched.post(PE1, &[put(member.local.buffer(0, 8), to(0))])?;
    match early.status {
        Status::Refused(Error::Unreachable { pe, .. }) if pe == PE1 => {}
        other => {
            return Err(format!(
                "a post before connecting: {other:?}, not Unreachable"
            ));
        }
    }
    watched
        .lane
        .connect(PE1, &sound)
        .map_err(|e| format!("connect after garbage: {e}"))?;
    // Where the target has to help, a lane of its own drives it.
    let mut lanes = world.lanes()?;
    *lanes.of(PE0) = watched;
    lanes.perform(PE0, PE1, &[put(member.local.buffer(0, 8), to(0))])?;
    Ok(Done::Tried)
}
