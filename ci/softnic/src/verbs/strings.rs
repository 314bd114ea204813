//! Names of numbers, and conversions of rates.

use std::ffi::{CStr, c_char, c_int};

fn at(names: &'static [&'static CStr], number: c_int) -> *const c_char {
    let found = usize::try_from(number)
        .ok()
        .and_then(|number| names.get(number));
    found.unwrap_or(&c"unknown").as_ptr()
}

/// Name of a completion's status.
#[unsafe(no_mangle)]
pub extern "C" fn ibv_wc_status_str(status: c_int) -> *const c_char {
    at(
        &[
            c"success",
            c"local length error",
            c"local QP operation error",
            c"local EE context operation error",
            c"local protection error",
            c"Work Request Flushed Error",
            c"memory management operation error",
            c"bad response error",
            c"local access error",
            c"remote invalid request error",
            c"remote access error",
            c"remote operation error",
            c"transport retry counter exceeded",
            c"RNR retry counter exceeded",
            c"local RDD violation error",
            c"remote invalid RD request",
            c"aborted error",
            c"invalid EE context number",
            c"invalid EE context state",
            c"fatal error",
            c"response timeout error",
            c"general error",
        ],
        status,
    )
}

/// Name of an event.
#[unsafe(no_mangle)]
pub extern "C" fn ibv_event_type_str(event: c_int) -> *const c_char {
    at(
        &[
            c"CQ error",
            c"local work queue catastrophic error",
            c"invalid request local work queue error",
            c"local access violation work queue error",
            c"communication established",
            c"send queue drained",
            c"path migration succeeded",
            c"path migration request error",
            c"local catastrophic error",
            c"port active",
            c"port error",
            c"LID change",
            c"P_Key change",
            c"SM change",
            c"SRQ catastrophic error",
            c"SRQ limit reached",
            c"last WQE reached",
            c"client reregistration",
            c"GID table change",
            c"WQ fatal",
            c"device speed change",
        ],
        event,
    )
}

/// Name of a port's state.
#[unsafe(no_mangle)]
pub extern "C" fn ibv_port_state_str(state: c_int) -> *const c_char {
    at(
        &[
            c"no state change (NOP)",
            c"down",
            c"init",
            c"armed",
            c"active",
            c"active defer",
        ],
        state,
    )
}

/// Name of a node's type.
#[unsafe(no_mangle)]
pub extern "C" fn ibv_node_type_str(node: c_int) -> *const c_char {
    at(
        &[
            c"unknown",
            c"InfiniBand channel adapter",
            c"InfiniBand switch",
            c"InfiniBand router",
            c"iWARP NIC",
            c"usNIC",
            c"usNIC UDP",
            c"unspecified",
        ],
        node,
    )
}

/// Rates as the specification numbers them, with their multiples of 2.5 Gb/s and their Mb/s.
const RATES: [(c_int, c_int, c_int); 20] = [
    (2, 1, 2_500),
    (5, 2, 5_000),
    (3, 4, 10_000),
    (6, 8, 20_000),
    (4, 12, 30_000),
    (7, 16, 40_000),
    (8, 24, 60_000),
    (9, 32, 80_000),
    (10, 48, 120_000),
    (11, 5, 14_062),
    (12, 45, 112_500),
    (13, 22, 56_250),
    (14, 67, 168_750),
    (15, 10, 25_781),
    (16, 40, 103_125),
    (17, 80, 206_250),
    (18, 120, 309_375),
    (19, 20, 51_562),
    (20, 160, 412_500),
    (23, 320, 825_000),
];

/// Multiple of 2.5 Gb/s of a rate.
#[unsafe(no_mangle)]
pub extern "C" fn ibv_rate_to_mult(rate: c_int) -> c_int {
    RATES
        .iter()
        .find(|one| one.0 == rate)
        .map_or(-1, |one| one.1)
}

/// Rate of a multiple of 2.5 Gb/s.
#[unsafe(no_mangle)]
pub extern "C" fn mult_to_ibv_rate(mult: c_int) -> c_int {
    RATES
        .iter()
        .find(|one| one.1 == mult)
        .map_or(0, |one| one.0)
}

/// Rate in Mb/s.
#[unsafe(no_mangle)]
pub extern "C" fn ibv_rate_to_mbps(rate: c_int) -> c_int {
    RATES
        .iter()
        .find(|one| one.0 == rate)
        .map_or(-1, |one| one.2)
}

/// Rate of so many Mb/s.
#[unsafe(no_mangle)]
pub extern "C" fn mbps_to_ibv_rate(mbps: c_int) -> c_int {
    RATES
        .iter()
        .find(|one| one.2 == mbps)
        .map_or(0, |one| one.0)
}
