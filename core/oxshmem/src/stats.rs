//! Statistics of a job, shown at its end: `OXSHMEM_STATS` (docs/statistics.md).
//!
//! A program's operations are counted by the slow branch, which they all take then: no peer is in the tables that the
//! fast path reads. Without the variable that path is as it always is.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytemuck::Pod;
use oxshmem_bootstrap::exchange;
use oxshmem_transport::MemoryKind;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::route::Path;
use crate::shared::Shared;
use crate::{Context, Sym, World, report};

/// Where the statistics go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// PE 0's standard error.
    Stderr,
    /// A file that PE 0 writes.
    File(PathBuf),
}

/// A kind of operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Put,
    Get,
    PutSignal,
    Atomic,
}

const KINDS: usize = 4;
/// This PE's own memory, and GPU memory by way of host memory; the transports come after these.
const OWN: usize = 0;
const STAGED: usize = 1;
const FIRST_TRANSPORT: usize = 2;

/// What one PE has counted.
pub(crate) struct Stats {
    target: Target,
    /// Operations and bytes of each kind, by way.
    ways: Box<[[Count; KINDS]]>,
    /// By the call that waited.
    waits: Mutex<BTreeMap<&'static str, Waits>>,
}

#[derive(Default)]
struct Count {
    operations: AtomicU64,
    bytes: AtomicU64,
}

/// Waits in one call.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
struct Waits {
    count: u64,
    nanos: u64,
    longest: u64,
}

impl Waits {
    fn add(&mut self, other: Waits) {
        self.count += other.count;
        self.nanos += other.nanos;
        self.longest = self.longest.max(other.longest);
    }
}

/// One PE's part, as it is told to the one that shows all.
#[derive(Clone, Default, Serialize, Deserialize)]
struct Told {
    /// Operations and bytes of each kind, by way; without those that carried nothing.
    ways: BTreeMap<String, [(u64, u64); KINDS]>,
    waits: BTreeMap<String, Waits>,
    /// The most bytes of the heap that were in use, and of the GPU heap.
    heaps: [u64; 2],
}

impl Told {
    fn add(&mut self, other: &Told) {
        for (way, counts) in &other.ways {
            let sums = self.ways.entry(way.clone()).or_default();
            for (sum, count) in sums.iter_mut().zip(counts) {
                *sum = (sum.0 + count.0, sum.1 + count.1);
            }
        }
        for (call, waits) in &other.waits {
            self.waits.entry(call.clone()).or_default().add(*waits);
        }
        for (most, theirs) in self.heaps.iter_mut().zip(other.heaps) {
            *most = (*most).max(theirs);
        }
    }
}

impl Stats {
    pub(crate) fn new(target: Target, transports: usize) -> Self {
        Stats {
            target,
            ways: (0..FIRST_TRANSPORT + transports)
                .map(|_| Default::default())
                .collect(),
            waits: Mutex::default(),
        }
    }

    fn count(&self, way: usize, kind: Kind, bytes: usize) {
        if let Some(count) = self.ways.get(way).and_then(|way| way.get(kind as usize)) {
            count.operations.fetch_add(1, Ordering::Relaxed);
            count.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        }
    }

    /// A wait has ended that was not over at once.
    pub(crate) fn waited(&self, call: &'static str, lasted: Duration) {
        let nanos = u64::try_from(lasted.as_nanos()).unwrap_or(u64::MAX);
        let mut waits = self.waits.lock().unwrap_or_else(PoisonError::into_inner);
        waits.entry(call).or_default().add(Waits {
            count: 1,
            nanos,
            longest: nanos,
        });
    }
}

impl Shared {
    fn told(&self, stats: &Stats) -> Told {
        let name = |way: usize| match way {
            OWN => "own memory",
            STAGED => "staged",
            way => self
                .rails
                .get(way - FIRST_TRANSPORT)
                .map_or("unknown", |via| via.name),
        };
        let mut told = Told::default();
        for (way, counts) in stats.ways.iter().enumerate() {
            let read = |count: &Count| {
                let read = |number: &AtomicU64| number.load(Ordering::Relaxed);
                (read(&count.operations), read(&count.bytes))
            };
            let counts = counts.each_ref().map(read);
            if counts.iter().any(|(operations, _)| *operations > 0) {
                told.ways.insert(name(way).to_owned(), counts);
            }
        }
        let waits = stats.waits.lock().unwrap_or_else(PoisonError::into_inner);
        let named = waits
            .iter()
            .map(|(call, waits)| ((*call).to_owned(), *waits));
        told.waits = named.collect();
        told.heaps = [MemoryKind::Host, MemoryKind::Cuda].map(|kind| self.heap(kind).most_used());
        told
    }
}

impl Context<'_> {
    /// Counts an operation of the program's towards a PE, by its number in the world, if that is wanted.
    #[inline]
    pub(crate) fn count<T: Pod>(&self, kind: Kind, on: Sym<T>, bytes: usize, pe: usize) {
        if let Some(stats) = &self.shared.stats {
            let memory = self.kind_of(on).unwrap_or(MemoryKind::Host);
            self.count_in(stats, kind, (memory, on.is_nic()), bytes, pe);
        }
    }

    // Apart, so that the slow branch is as small as it was: compilers would have the fast one prepare for it else.
    #[cold]
    #[inline(never)]
    fn count_in(
        &self,
        stats: &Stats,
        kind: Kind,
        (memory, is_nic): (MemoryKind, bool),
        bytes: usize,
        pe: usize,
    ) {
        let ways = self.shared.routes.paths_to(pe);
        let way = match kind {
            Kind::Put | Kind::Get | Kind::PutSignal => ways.copies(memory),
            Kind::Atomic if is_nic => ways.nic,
            Kind::Atomic => ways.atomics(memory),
        };
        let way = match (way, way.transport()) {
            (Path::Staged, _) => STAGED,
            _ if pe == self.shared.me => OWN,
            (_, Some(transport)) => FIRST_TRANSPORT + transport,
            // The call is about to fail.
            _ => return,
        };
        stats.count(way, kind, bytes);
    }
}

impl World {
    /// Shows what every PE has counted, when each has come here.
    pub(crate) fn end_stats(&self) {
        let Some(stats) = &self.shared.stats else {
            return;
        };
        let mine = self.shared.told(stats);
        let all = exchange(&*self.shared.bootstrap, &mine).map_err(Error::from);
        let all: Vec<Told> = match all {
            Ok(all) => all,
            Err(error) => {
                report::warn(&format!(
                    "no statistics, which all PEs show together: {error}"
                ));
                return;
            }
        };
        if self.shared.me != 0 {
            return;
        }
        match &stats.target {
            Target::Stderr => {
                // Where it cannot be written nobody wants to know.
                let _ = std::io::stderr().write_all(table(&all, MOST_PES).as_bytes());
            }
            Target::File(path) => {
                if let Err(error) = std::fs::write(path, table(&all, usize::MAX)) {
                    let path = path.display();
                    report::warn(&format!(
                        "the statistics cannot be written to {path} (OXSHMEM_STATS): {error}"
                    ));
                }
            }
        }
    }
}

/// On a terminal, PEs have lines of their own up to so many.
const MOST_PES: usize = 16;

/// All PEs' statistics as text: of each, if there are no more than so many, and together.
fn table(all: &[Told], most: usize) -> String {
    let mut sum = Told::default();
    all.iter().for_each(|told| sum.add(told));
    let mut rows: Vec<(String, &Told)> = Vec::new();
    if all.len() <= most {
        rows.extend(
            (0..)
                .zip(all)
                .map(|(pe, told): (usize, _)| (pe.to_string(), told)),
        );
    }
    rows.push(("all".into(), &sum));
    let mut text = format!("oxshmem: statistics of {} PEs (OXSHMEM_STATS)\n", all.len());
    // Memory takes whatever is written to it.
    let mut line = |words: std::fmt::Arguments<'_>| {
        let _ = writeln!(text, "{words}");
    };
    line(format_args!(
        "{:>5}  {:<16} {:>12} {:>16} {:>12} {:>16} {:>12} {:>16} {:>12}",
        "PE", "way", "puts", "bytes", "gets", "bytes", "put-signals", "bytes", "atomics"
    ));
    for (pe, told) in &rows {
        for (way, [put, get, signal, atomic]) in &told.ways {
            line(format_args!(
                "{pe:>5}  {way:<16} {:>12} {:>16} {:>12} {:>16} {:>12} {:>16} {:>12}",
                put.0, put.1, get.0, get.1, signal.0, signal.1, atomic.0
            ));
        }
    }
    line(format_args!(
        "{:>5}  {:<28} {:>12} {:>16} {:>16}",
        "PE", "waits in", "waits", "seconds", "longest"
    ));
    for (pe, told) in &rows {
        for (call, waits) in &told.waits {
            let seconds = |nanos: u64| Duration::from_nanos(nanos).as_secs_f64();
            line(format_args!(
                "{pe:>5}  {call:<28} {:>12} {:>16.6} {:>16.6}",
                waits.count,
                seconds(waits.nanos),
                seconds(waits.longest)
            ));
        }
    }
    line(format_args!(
        "{:>5}  {:<16} {:>16}",
        "PE", "heap", "most bytes"
    ));
    for (pe, told) in &rows {
        for (heap, bytes) in ["host", "GPU"].into_iter().zip(told.heaps) {
            if bytes > 0 {
                line(format_args!("{pe:>5}  {heap:<16} {bytes:>16}"));
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(puts: u64, heap: u64) -> Told {
        let counts = [(puts, 8 * puts), (0, 0), (0, 0), (3, 24)];
        let waits = Waits {
            count: 1,
            nanos: puts * 1_000_000_000,
            longest: puts * 1_000_000_000,
        };
        Told {
            ways: [("loopback".to_owned(), counts)].into(),
            waits: [("barrier_all".to_owned(), waits)].into(),
            heaps: [heap, 0],
        }
    }

    fn lines(text: &str) -> Vec<Vec<&str>> {
        text.lines()
            .map(|line| line.split_whitespace().collect())
            .collect()
    }

    #[test]
    fn a_table_has_each_pe_and_all_together() {
        let text = table(&[told(1, 64), told(2, 128)], 2);
        let lines = lines(&text);
        for wanted in [
            "0 loopback 1 8 0 0 0 0 3",
            "1 loopback 2 16 0 0 0 0 3",
            "all loopback 3 24 0 0 0 0 6",
            "all barrier_all 2 3.000000 2.000000",
            "1 host 128",
            "all host 128",
        ] {
            assert!(
                lines.contains(&wanted.split_whitespace().collect()),
                "{wanted}: {text}"
            );
        }
        assert!(!text.contains("GPU"), "{text}");
    }

    #[test]
    fn many_pes_are_shown_together_only() {
        let text = table(&[told(1, 64), told(2, 128), told(3, 1)], 2);
        let lines = lines(&text);
        assert_eq!(
            lines
                .iter()
                .filter(|line| line.contains(&"loopback"))
                .count(),
            1
        );
    }
}
