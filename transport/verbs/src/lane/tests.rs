//! Lanes on a device, with failures that only this crate can cause.

use std::time::{Duration, Instant};

use oxshmem_transport::{Domain, HostId, Lane, Local, Op, Pe, RegionId, Remote, Transport};

use super::*;
use crate::domain::VerbsDomain;
use crate::port::Port;
use crate::settings::Settings;
use crate::{Verbs, statistics::Totals};

const PE0: Pe = Pe(0);

/// A PE that talks to itself, over the first device.
fn alone() -> (VerbsDomain, Arc<PortState>, VerbsLane) {
    let verbs = Verbs::with(Settings::default());
    let devices = verbs.probe().unwrap_or_else(|error| panic!("{error}"));
    let open = || Port::open(&devices[0].name, &Settings::default()).unwrap();
    let job = oxshmem_transport::Job {
        me: PE0,
        size: 1,
        host_rank: 0,
        host: HostId("here".into()),
    };
    let totals = Arc::new(Totals::default());
    let domain = VerbsDomain::new(
        open(),
        Settings::default(),
        None,
        (job.clone(), Arc::clone(&totals)),
        None,
    )
    .unwrap();
    let port_state = Arc::new(PortState::new(open(), Settings::default(), job, totals).unwrap());
    let mut lane = VerbsLane::new(&Rails::alone(Arc::clone(&port_state))).unwrap();
    let endpoint = lane.endpoint(PE0).unwrap();
    let answer = domain.accept(PE0, &endpoint).unwrap();
    lane.connect(PE0, &answer).unwrap();
    (domain, port_state, lane)
}

#[test]
#[ignore = "needs an RDMA device; run in ci/softroce"]
fn a_queue_pair_forced_into_error_with_gets_alone_is_an_interruption_and_gives_all_credits_back() {
    let (domain, port_state, mut lane) = alone();
    let memory = oxshmem_transport::conformance::host_memory(1 << 20).unwrap();
    let region = domain.register(RegionId(0), &memory).unwrap();
    let key = crate::wire::Key::from_bytes(oxshmem_transport::Region::key(&*region)).unwrap();
    port_state.published.import(
        PE0,
        RegionId(0),
        &crate::remote_region::Imported::by_rail(&key, false),
    );
    let credits = lane.room.credits;
    let get = |at: usize| Op::Get {
        into: Local {
            addr: memory.base().as_ptr().wrapping_add(at),
            len: 4096,
            key: None,
        },
        from: Remote {
            region: RegionId(0),
            offset: 0,
        },
    };
    let gets: Vec<Op> = (0..32).map(|k| get(k * 4096)).collect();
    // SAFETY: the memory outlives the lane's work, and is left alone.
    let posted = unsafe { lane.post(PE0, &gets) };
    assert_eq!(posted.accepted, 32, "{posted:?}");
    let ConnectionState::Connected(queues) = &lane.connections[0].state else {
        panic!("not connected");
    };
    queues.primary.pair.fail().unwrap();
    // Operations complete before that are; the next call, or its completion, finds the failure.
    let since = Instant::now();
    let error = loop {
        // SAFETY: as above.
        let posted = unsafe { lane.post(PE0, &gets) };
        if let oxshmem_transport::Status::Refused(error) = posted.status {
            break error;
        }
        if let Err(error) = lane.progress() {
            break error;
        }
        assert!(since.elapsed() < Duration::from_secs(30), "no error came");
        std::thread::yield_now();
    };
    // No operation is in doubt: gets may be performed again.
    assert!(
        matches!(&error, Error::Interrupted { pe: PE0, .. }),
        "{error}"
    );
    // Told once, if at all there; then never again.
    let _told = lane.progress();
    lane.progress().unwrap();
    assert_eq!((lane.room.credits, lane.room.flushed), (credits, 0));
    // Nothing goes until the connection is made again.
    // SAFETY: as above.
    let again = unsafe { lane.post(PE0, &gets) };
    let waits = matches!(again.status, oxshmem_transport::Status::Full);
    assert!(again.accepted == 0 && waits, "{again:?}");
}

/// Drives until there is an error, which must come in time.
fn error_in_time(lane: &mut VerbsLane, mut also: impl FnMut()) -> Error {
    let since = Instant::now();
    loop {
        also();
        if let Err(error) = lane.progress() {
            return error;
        }
        // SAFETY: no local buffer.
        let posted = unsafe { lane.post(PE0, &[Op::Flush]) };
        if let oxshmem_transport::Status::Refused(error) = posted.status {
            return error;
        }
        assert!(since.elapsed() < Duration::from_secs(30), "no error came");
        std::thread::yield_now();
    }
}

#[test]
#[ignore = "needs an RDMA device; run in ci/softroce"]
fn a_connection_that_nobody_ever_answered_names_both_ends_instead_of_a_lost_pe() {
    let (domain, port_state, _) = alone();
    let mut lane = VerbsLane::new(&Rails::alone(Arc::clone(&port_state))).unwrap();
    let endpoint = lane.endpoint(PE0).unwrap();
    let answer = domain.accept(PE0, &endpoint).unwrap();
    let mut answer = crate::wire::EndpointReplies::from_bytes(&answer).unwrap();
    // Nobody's.
    answer.0[0].as_mut().unwrap().queue_pair = 0x00fe_dcba;
    lane.connect(PE0, &answer.to_bytes()).unwrap();
    let error = error_in_time(&mut lane, || ());
    assert!(
        matches!(&error, Error::Connection { pe: PE0, .. }),
        "{error}"
    );
    let told = error.to_string();
    let gid = port_state.port.gids[0].1.to_string();
    for part in [
        "no packet was ever answered",
        "4791",
        &gid,
        &port_state.port.name(),
    ] {
        assert!(told.contains(part), "{told}");
    }
}

#[test]
#[ignore = "needs an RDMA device; run in ci/softroce"]
fn a_device_that_fails_ends_the_lane_with_the_name_of_its_event() {
    let (_domain, port_state, mut lane) = alone();
    port_state.event(crate::ibv::Event::Fatal("IBV_EVENT_DEVICE_FATAL"));
    let error = error_in_time(&mut lane, || ());
    assert!(
        error.to_string().contains("IBV_EVENT_DEVICE_FATAL"),
        "{error}"
    );
    assert!(lane.endpoint(PE0).is_err());
}

#[test]
#[ignore = "needs an RDMA device; run in ci/softroce"]
fn a_message_that_cannot_be_answered_ends_its_own_connection_and_not_the_inbox() {
    use oxshmem_transport::{Inbox, Reply};
    let (domain, port_state, mut bad) = alone();
    let mut inbox = domain.inbox().unwrap();
    let mut good = VerbsLane::new(&Rails::alone(Arc::clone(&port_state))).unwrap();
    let endpoint = good.endpoint(PE0).unwrap();
    let answer = domain.accept(PE0, &endpoint).unwrap();
    good.connect(PE0, &answer).unwrap();
    let send = |lane: &mut VerbsLane, byte: u8| {
        let byte = [byte];
        let from = Local {
            addr: byte.as_ptr().cast_mut(),
            len: 1,
            key: None,
        };
        // SAFETY: one byte, copied by the call.
        let posted = unsafe { lane.post(PE0, &[Op::Message { from }]) };
        assert_eq!(posted.accepted, 1, "{posted:?}");
    };
    let serve = |inbox: &mut dyn Inbox, seen: &mut Vec<u8>| {
        let nowhere = Remote {
            region: RegionId(77),
            offset: 0,
        };
        let mut each = |_: Pe, bytes: &[u8]| {
            seen.extend_from_slice(bytes);
            (bytes == [1]).then_some(Reply {
                to: nowhere,
                value: 1,
                number: 1,
            })
        };
        inbox.drain(&mut each).unwrap();
    };
    send(&mut bad, 1);
    let mut seen = Vec::new();
    let error = error_in_time(&mut bad, || serve(&mut *inbox, &mut seen));
    // Interrupted, if the message itself was received: the layer above knows that its reply is missing.
    assert!(
        matches!(
            error,
            Error::PeerLost { .. }
                | Error::Connection { pe: PE0, .. }
                | Error::Interrupted { pe: PE0, .. }
        ),
        "{error}"
    );
    send(&mut good, 2);
    let since = Instant::now();
    while seen != [1, 2] {
        serve(&mut *inbox, &mut seen);
        good.progress().unwrap();
        assert!(since.elapsed() < Duration::from_secs(30), "{seen:?}");
        std::thread::yield_now();
    }
}

#[test]
#[ignore = "needs an RDMA device; run in ci/softroce"]
fn a_lost_pe_writes_nothing_any_more() {
    let (domain, port_state, mut lane) = alone();
    let memory = oxshmem_transport::conformance::host_memory(1 << 20).unwrap();
    let region = domain.register(RegionId(0), &memory).unwrap();
    let key = crate::wire::Key::from_bytes(oxshmem_transport::Region::key(&*region)).unwrap();
    let imported = crate::remote_region::Imported::by_rail(&key, false);
    port_state.published.import(PE0, RegionId(0), &imported);
    let word = || {
        // SAFETY: the region's first word, aligned; the memory lives.
        let word = unsafe { std::sync::atomic::AtomicU64::from_ptr(memory.base().as_ptr().cast()) };
        word.load(std::sync::atomic::Ordering::Acquire)
    };
    let put = |lane: &mut VerbsLane, value: u64| {
        let bytes = value.to_le_bytes();
        let op = Op::Put {
            from: Local {
                addr: bytes.as_ptr().cast_mut(),
                len: 8,
                key: None,
            },
            to: Remote {
                region: RegionId(0),
                offset: 0,
            },
        };
        // SAFETY: eight bytes, copied by the call.
        unsafe { lane.post(PE0, &[op]) }
    };
    assert_eq!(put(&mut lane, 1).accepted, 1);
    let since = Instant::now();
    while word() != 1 {
        lane.progress().unwrap();
        assert!(since.elapsed() < Duration::from_secs(30), "no put came");
        std::thread::yield_now();
    }
    // At the answering side alone: the lane does not know.
    domain.peer_lost(PE0);
    assert_eq!(put(&mut lane, 2).accepted, 1);
    let error = error_in_time(&mut lane, || ());
    assert!(
        matches!(
            error,
            Error::PeerLost { .. } | Error::Connection { pe: PE0, .. }
        ),
        "{error}"
    );
    assert_eq!(word(), 1, "written after the PE was lost");
}
