//! Faults of devices and links, played on cue by the software NIC. ci/test-softnic runs these tests:
//!
//! ```text
//! LD_LIBRARY_PATH=FOLDER-OF-SOFTNIC OXSHMEM_SOFTNIC=4*cx6 OXSHMEM_SOFTNIC_TIME_SCALE=0.02 \
//!     target/debug/deps/softnic-… --ignored --skip by_path:: --skip fabrics:: --skip roce:: --skip weaker:: --skip isolated:: --test-threads 1
//! ```

#![cfg(feature = "rdma")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]

mod addresses;
mod attributes;
mod by_path;
mod claims;
mod events;
mod first_nic;
mod full;
mod links;
mod nic;
#[path = "../device/pair.rs"]
mod pair;
mod queue_pairs;
mod rails;
mod receives;

use std::time::{Duration, Instant};

use oxshmem_transport::{Error, Op};
use oxshmem_verbs::Settings;

use self::nic::control;
use self::pair::{PATIENCE, PE0, PE1, Side, remote};

/// Gives a side a new lane, connected with the other one as a job would do it.
fn connect_anew(local: &mut Side, target: &Side) -> Result<(), Error> {
    local.lane = local.domain.lane()?;
    let endpoint = local.lane.endpoint(target.pe)?;
    let answer = target.domain.accept(local.pe, &endpoint)?;
    local.lane.connect(target.pe, &answer)
}

/// Puts a word, and looks whether it has arrived.
fn put(local: &mut Side, target: &Side, value: u64) -> Result<(), Error> {
    local.store(0, value);
    let op = Op::Put {
        from: local.local(0, 8),
        to: remote(0),
    };
    // SAFETY: the side's memory, which is left alone.
    unsafe { local.perform(target.pe, &[op]) }?;
    assert_eq!(target.load(0), value);
    Ok(())
}

/// Settings with which a connection to nobody fails soon: 8 times 5 ms, by the time scale of these tests.
fn impatient() -> Settings {
    Settings {
        timeout: Some(16),
        packet_lifetime: Duration::from_millis(20),
        ..Settings::default()
    }
}

/// Drives a lane until it has an error.
fn error_of(side: &mut Side) -> Error {
    let since = Instant::now();
    loop {
        if let Err(error) = side.lane.progress() {
            return error;
        }
        assert!(since.elapsed() < PATIENCE, "no error came");
        std::thread::yield_now();
    }
}

/// Drives a lane until something has come.
fn drive_until(side: &mut Side, what: &str, has_come: impl Fn() -> bool) {
    let since = Instant::now();
    while !has_come() {
        side.lane.progress().unwrap();
        assert!(since.elapsed() < PATIENCE, "{what}");
    }
}

/// Two sides over the first two devices, each with its name.
fn sides(settings: Settings) -> [Side; 2] {
    let sides = pair::pair(settings, 1 << 20);
    assert_eq!([sides[0].pe, sides[1].pe], [PE0, PE1]);
    sides
}
