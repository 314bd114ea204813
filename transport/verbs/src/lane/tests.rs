//! On a device, with what only this crate can do to a queue pair.

use std::time::{Duration, Instant};

use oxshmem_transport::{Domain, HostId, Lane, Local, Op, Pe, RegionId, Remote, Transport};

use super::way::End;
use super::*;
use crate::domain::VerbsDomain;
use crate::port::Port;
use crate::settings::Settings;
use crate::{Verbs, statistics::Totals};

const PE0: Pe = Pe(0);

/// A PE that talks to itself, over the first device.
fn alone() -> (VerbsDomain, Arc<Opened>, VerbsLane) {
    let verbs = Verbs::with(Settings::default());
    let devices = verbs.probe().unwrap_or_else(|error| panic!("{error}"));
    let open = || Port::open(&devices[0].name, &Settings::default()).unwrap();
    let job = oxshmem_transport::Job {
        me: PE0,
        size: 1,
        host: HostId("here".into()),
    };
    let totals = Arc::new(Totals::default());
    let domain = VerbsDomain::new(
        open(),
        Settings::default(),
        job.clone(),
        Arc::clone(&totals),
    )
    .unwrap();
    let opened = Arc::new(Opened::new(open(), Settings::default(), job, totals).unwrap());
    let mut lane = VerbsLane::new(&opened).unwrap();
    let endpoint = lane.endpoint(PE0).unwrap();
    let answer = domain.accept(PE0, &endpoint).unwrap();
    lane.connect(PE0, &answer).unwrap();
    (domain, opened, lane)
}

#[test]
#[ignore = "needs an RDMA device; run in ci/softroce"]
fn a_queue_pair_forced_into_error_is_a_named_error_and_gives_all_room_back() {
    let (domain, opened, mut lane) = alone();
    let memory = oxshmem_transport::conformance::host_memory(1 << 20).unwrap();
    let region = domain.register(RegionId(0), &memory).unwrap();
    let key = crate::wire::Key::from_bytes(oxshmem_transport::Region::key(&*region)).unwrap();
    opened
        .shared
        .import(PE0, RegionId(0), crate::shared::Imported::new(key));
    let room = lane.room;
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
    let End::Connected(link) = &lane.ways[0].end else {
        panic!("not connected");
    };
    link.pair.fail().unwrap();
    // What was complete before that is; the next call, or its completion, finds the failure.
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
    assert!(
        matches!(&error, Error::Connection { pe: PE0, .. }),
        "{error}"
    );
    // Told once, if at all there; then never again.
    let _told = lane.progress();
    lane.progress().unwrap();
    assert_eq!((lane.room, lane.stale), (room, 0));
    // SAFETY: as above.
    let again = unsafe { lane.post(PE0, &gets) };
    assert!(
        matches!(
            again.status,
            oxshmem_transport::Status::Refused(Error::Connection { .. })
        ),
        "{again:?}"
    );
}
