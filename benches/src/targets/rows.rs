//! The lines of the table, group by group.

use oxshmem_figures::Bound;
use oxshmem_figures::units::Bytes;

use super::target::{Figure, Group, Source, Target};
use crate::samples::Side;
use crate::sizes::{
    BLOCKS, BROADCAST_SIZES, COLLECTIVE_BLOCKS, COLLECTIVE_PES, Collective, GUPS_SHIFT,
    LARGEST_TCP_BLOCK, PROGRAM_PES, SMALL_BLOCKS, SORT_SHIFTS, TCP_BLOCKS, THREADS, WINDOW_PUTS,
    WINDOW_SIZES, latency_blocks,
};

/// Every line.
pub fn all(source: Source) -> impl Iterator<Item = Target> {
    let groups = match source {
        Source::Rust => vec![
            small(),
            blocks(),
            latency(),
            barrier(2.0),
            collectives(),
            gups(2.0),
            sort(),
            patterns(),
            tcp(),
            threads(),
            start(),
        ],
        Source::C => vec![
            calls(),
            barrier(1.5),
            collectives(),
            gups(1.0),
            sort(),
            patterns(),
            start(),
        ],
    };
    groups.into_iter().flatten()
}

fn of(side: Side, row: impl Into<String>) -> Figure {
    let rows = vec![row.into()];
    Figure { side, rows }
}

fn ours(row: impl Into<String>) -> Figure {
    of(Side::Oxshmem, row)
}

fn oshmem(row: impl Into<String>) -> Figure {
    of(Side::Oshmem, row)
}

fn ucx(row: impl Into<String>) -> Figure {
    of(Side::Ucx, row)
}

/// The best of several methods that the machine has.
fn best(rows: &[&str]) -> Figure {
    Figure {
        side: Side::Oxshmem,
        rows: rows.iter().map(|row| (*row).into()).collect(),
    }
}

fn at_most(value: f64) -> Option<Bound> {
    Some(Bound::AtMost(value))
}

fn at_least(value: f64) -> Option<Bound> {
    Some(Bound::AtLeast(value))
}

fn ratio(
    group: Group,
    name: impl Into<String>,
    value: Figure,
    by: Figure,
    bound: Option<Bound>,
) -> Target {
    Target {
        group,
        name: name.into(),
        unit: "ratio",
        value,
        by: Some(by),
        bound,
    }
}

fn plain(group: Group, name: &str, unit: &'static str, row: &str, bound: Option<Bound>) -> Target {
    Target {
        group,
        name: name.into(),
        unit,
        value: ours(row),
        by: None,
        bound,
    }
}

/// OSHMEM's time divided by ours, of the same row.
fn times_oshmem(group: Group, name: &str, row: &str, bound: Option<Bound>) -> Target {
    let name = format!("{name}: times OSHMEM's speed");
    ratio(group, name, oshmem(row), ours(row), bound)
}

/// UCX's time divided by ours, of the same row; only for information.
fn times_ucx(name: &str, row: &str) -> Target {
    let name = format!("{name}: times UCX's speed");
    ratio(Group::Micro, name, ucx(row), ours(row), None)
}

/// Operations of 8 bytes.
fn small() -> Vec<Target> {
    let over = |name: &str, row, by, bound| ratio(Group::Micro, name, ours(row), by, bound);
    let over_oshmem = |name, row, bound| over(&format!("{name} / OSHMEM"), row, oshmem(row), bound);
    let third = at_most(1.0 / 3.0);
    let fenced = best(&["store_mfence", "store_locked"]);
    let nanoseconds = |name, row, bound| plain(Group::Micro, name, "ns", row, bound);
    vec![
        over_oshmem("8-byte put", "put8", third),
        over(
            "8-byte put / checked store",
            "put8",
            ours("store8"),
            at_most(1.5),
        ),
        over_oshmem("8-byte p", "p8", None),
        over("8-byte p / checked store", "p8", ours("store8"), None),
        over_oshmem("8-byte get", "get8", third),
        over("8-byte get / checked load", "get8", ours("load8"), None),
        over_oshmem("fetch-add", "fetch_add8", at_most(0.7)),
        over(
            "fetch-add / lock xadd",
            "fetch_add8",
            ours("xadd8"),
            at_most(1.3),
        ),
        over_oshmem("quiet, clean", "quiet_clean", None),
        over_oshmem("put + quiet", "put_quiet", None),
        over(
            "put + quiet / store + fence",
            "put_quiet",
            fenced,
            at_most(1.2),
        ),
        times_oshmem(
            Group::Micro,
            "rate of 8-byte puts, one quiet",
            "put8",
            at_least(2.0),
        ),
        times_oshmem(
            Group::Micro,
            "rate of 8-byte puts, quiet each 64",
            "put8_window",
            at_least(2.0),
        ),
        times_oshmem(
            Group::Micro,
            "rate of 8-byte put_nbi, quiet each 64",
            "put_nbi8_window",
            at_least(2.0),
        ),
        times_ucx("rate of 8-byte puts, one quiet", "put8"),
        times_ucx("8-byte get", "get8"),
        times_ucx("fetch-add", "fetch_add8"),
        nanoseconds("8-byte put", "put8", None),
        nanoseconds("8-byte get", "get8", None),
        nanoseconds("fetch-add", "fetch_add8", None),
        nanoseconds("quiet, clean", "quiet_clean", at_most(2.0)),
    ]
}

/// Streams of larger puts and gets.
fn blocks() -> Vec<Target> {
    let each = BLOCKS
        .into_iter()
        .flat_map(|bytes| ["put", "get"].map(|way| (way, bytes)));
    let lines = each.flat_map(|(way, bytes)| {
        let row = format!("{way}_{bytes}");
        let name = format!("{way} {}", Bytes(bytes));
        let memcpy = ours(format!("memcpy_{row}"));
        let of_memcpy = format!("{name}: times memcpy's speed");
        [
            ratio(Group::Micro, of_memcpy, memcpy, ours(&row), at_least(0.97)),
            times_oshmem(Group::Micro, &name, &row, at_least(1.0)),
            times_ucx(&name, &row),
        ]
    });
    lines.collect()
}

fn latency() -> Vec<Target> {
    let bare = best(&[
        "bare_ping_pong",
        "bare_ping_pong_steps",
        "bare_ping_pong_pause",
    ]);
    let (name, row) = ("ping-pong", "ping_pong");
    let mut lines = vec![
        ratio(
            Group::Micro,
            "ping-pong / bare",
            ours(row),
            bare,
            at_most(1.15),
        ),
        times_oshmem(Group::Micro, name, row, at_least(1.5)),
        times_ucx(name, row),
        plain(Group::Micro, "ping-pong, half round trip", "ns", row, None),
    ];
    for bytes in latency_blocks() {
        let row = format!("put_latency_{bytes}");
        let name = format!("put {} with a flag, and back", Bytes(bytes));
        lines.push(times_oshmem(Group::Micro, &name, &row, None));
        lines.push(times_ucx(&name, &row));
    }
    lines
}

/// C's calls between two PEs.
fn calls() -> Vec<Target> {
    let blocks = SMALL_BLOCKS.into_iter().chain(BLOCKS).flat_map(|bytes| {
        ["put", "get"].map(|way| {
            let least = if (way, bytes) == ("put", 8) { 2.0 } else { 1.0 };
            let name = format!("{way}mem {}", Bytes(bytes));
            (name, format!("{way}_{bytes}"), least)
        })
    });
    let latency = latency_blocks().map(|bytes| {
        let name = format!("putmem {} with a flag, and back", Bytes(bytes));
        (name, format!("put_latency_{bytes}"), 1.0)
    });
    let each = [
        ("8-byte put", "put8", 2.0),
        ("8-byte p", "p8", 2.0),
        ("8-byte get", "get8", 1.0),
        ("8-byte g", "g8", 1.0),
        ("fetch-add", "fetch_add8", 1.0),
        ("add", "add8", 1.0),
        ("compare-swap", "compare_swap8", 1.0),
        ("quiet, clean", "quiet_clean", 1.0),
        ("put + quiet", "put_quiet", 1.0),
        ("8-byte puts, quiet each 64", "put8_window", 1.0),
        ("8-byte put_nbi, quiet each 64", "put_nbi8_window", 1.0),
        ("ping-pong", "ping_pong", 1.5),
    ];
    let each = each.map(|(name, row, least)| (name.into(), row.into(), least));
    let all = each.into_iter().chain(blocks).chain(latency);
    all.map(|(name, row, least): (String, String, f64)| {
        times_oshmem(Group::Micro, &name, &row, at_least(least))
    })
    .collect()
}

fn barrier(least_of_two: f64) -> Vec<Target> {
    let line = |(group, pes, least)| {
        let name = format!("barrier, {pes} PEs");
        times_oshmem(group, &name, &format!("barrier_{pes}"), at_least(least))
    };
    let each = [
        (Group::Micro, 2, least_of_two),
        (Group::Barrier, 4, 1.5),
        (Group::Barrier, 8, 1.5),
    ];
    each.map(line).into()
}

fn collectives() -> Vec<Target> {
    let mut lines = Vec::new();
    for call in Collective::ALL {
        for (bytes, pes) in COLLECTIVE_BLOCKS
            .into_iter()
            .flat_map(|bytes| COLLECTIVE_PES.map(|pes| (bytes, pes)))
        {
            let name = format!("{} {}, {pes} PEs", call.name(), Bytes(bytes));
            let row = call.row(bytes, pes);
            lines.push(times_oshmem(Group::Collectives, &name, &row, at_least(1.0)));
        }
    }
    lines
}

fn gups(least: f64) -> Vec<Target> {
    let mib = (8 << GUPS_SHIFT) >> 20;
    let line = |pes| {
        let atomic = format!("random updates by atomic xor, {mib} MiB a PE, {pes} PEs");
        let by_copies = format!("random updates by get and put, {mib} MiB a PE, {pes} PEs");
        let row = |way| format!("gups_{way}_{pes}");
        [
            times_oshmem(Group::Gups, &atomic, &row("xor"), at_least(least)),
            times_oshmem(Group::Gups, &by_copies, &row("get_put"), at_least(least)),
        ]
    };
    PROGRAM_PES.into_iter().flat_map(line).collect()
}

fn sort() -> Vec<Target> {
    let each = SORT_SHIFTS
        .into_iter()
        .flat_map(|shift| PROGRAM_PES.map(|pes| (shift, pes)));
    let lines = each.flat_map(|(shift, pes)| {
        let name = format!("sort of 2^{shift} keys, {pes} PEs");
        let exchange = format!("{name}, its exchange");
        let (whole, part) = (
            format!("sort_{shift}_{pes}"),
            format!("sort_exchange_{shift}_{pes}"),
        );
        [
            times_oshmem(Group::Sort, &name, &whole, at_least(1.0)),
            times_oshmem(Group::Sort, &exchange, &part, None),
        ]
    });
    lines.collect()
}

fn patterns() -> Vec<Target> {
    let windows = WINDOW_SIZES.map(|bytes| {
        let name = format!("windows of {WINDOW_PUTS} puts of {}", Bytes(bytes));
        (name, format!("window_{bytes}"))
    });
    let broadcasts = BROADCAST_SIZES.into_iter().flat_map(|bytes| {
        COLLECTIVE_PES.map(|pes| {
            let name = format!(
                "broadcast {} alone after a barrier, {pes} PEs",
                Bytes(bytes)
            );
            (name, format!("broadcast_alone_{bytes}_{pes}"))
        })
    });
    let all = windows.into_iter().chain(broadcasts);
    all.map(|(name, row)| times_oshmem(Group::Patterns, &name, &row, at_least(1.0)))
        .collect()
}

/// Operations between two hosts: half round trips over libfabric's own, bandwidth and message rate as shares of the best that
/// there is, and every row over OSHMEM's.
fn tcp() -> Vec<Target> {
    let libfabric = |row: &str| of(Side::Libfabric, row);
    let sockets = |row: &str| of(Side::Sockets, row);
    let line = |name: String, value, by, bound| ratio(Group::Tcp, name, value, by, bound);
    let blocks = |way: &str| TCP_BLOCKS.map(|bytes| format!("{way}_{bytes}"));
    let trips = ["ping_pong".to_owned(), "get8".to_owned()];
    let trips = trips.into_iter().chain(blocks("put_latency"));
    let mut all: Vec<Target> = trips
        .map(|row| {
            let name = format!("{row}: half round trip / libfabric's");
            line(name, ours(&row), libfabric(&row), at_most(1.2))
        })
        .collect();
    let largest = format!("put_{LARGEST_TCP_BLOCK}");
    all.push(line(
        format!("{largest}: times a bare socket's bandwidth"),
        sockets(&largest),
        ours(&largest),
        at_least(0.9),
    ));
    all.push(line(
        "rate of 8-byte put_nbi, quiet each 64: times libfabric's".into(),
        libfabric("put_nbi8_window"),
        ours("put_nbi8_window"),
        at_least(0.9),
    ));
    let alone = ["put8", "put_nbi8_window", "get8", "fetch_add8", "put_quiet"];
    let alone = alone.map(str::to_owned).into_iter();
    let rows = alone
        .chain(blocks("put"))
        .chain(blocks("get"))
        .chain(["ping_pong".to_owned()])
        .chain(blocks("put_latency"))
        .chain(["barrier_2".to_owned()]);
    all.extend(rows.map(|row| {
        let name = format!("{row} / OSHMEM over UCX's TCP");
        line(name, ours(&row), oshmem(&row), at_most(1.0))
    }));
    let told = [
        ("ping_pong", sockets("ping_pong")),
        ("ping_pong", ucx("ping_pong")),
        ("get8", ucx("get8")),
    ];
    let told = told.map(|(row, by)| {
        let name = format!("{row} / {}'s", by.side.name());
        line(name, ours(row), by, None)
    });
    all.extend(told);
    let calls = ["put8", "get8", "put_quiet", "put_1048576"];
    all.extend(calls.map(|row| {
        let name = format!("system calls of {row}, an operation");
        plain(Group::Tcp, &name, "calls", &format!("calls_{row}"), None)
    }));
    all
}

fn threads() -> Vec<Target> {
    let line = |name: String, row: String, bound| {
        ratio(Group::Threads, name, ours("threads_1"), ours(row), bound)
    };
    vec![
        line(
            format!("rate of {THREADS} threads, a context each / of one"),
            format!("threads_{THREADS}"),
            at_least(1.8),
        ),
        line(
            format!("rate of {THREADS} threads, one shared context / of one"),
            format!("threads_{THREADS}_shared"),
            None,
        ),
    ]
}

fn start() -> Vec<Target> {
    let told = |name, unit, row, bound| plain(Group::Start, name, unit, row, bound);
    vec![
        times_oshmem(Group::Start, "empty program, 4 PEs", "empty_4", None),
        times_oshmem(Group::Start, "empty program, 64 PEs", "empty_64", None),
        times_oshmem(
            Group::Start,
            "64 MiB allocated and put into",
            "first_use",
            at_least(1.0),
        ),
        told("empty program, 4 PEs", "s", "empty_4", at_most(0.1)),
        told("empty program, 64 PEs", "s", "empty_64", at_most(0.8)),
        told("resident a PE (PSS), 64 PEs", "MiB", "pss_64", at_most(8.0)),
        told("resident a PE (RSS), 64 PEs", "MiB", "rss_64", None),
    ]
}
