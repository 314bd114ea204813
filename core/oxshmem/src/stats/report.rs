//! The report of all PEs' statistics, at the end of a job.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use oxshmem_bootstrap::exchange;
use oxshmem_engine::report;
use oxshmem_transport::MemoryKind;
use serde::{Deserialize, Serialize};

use super::counters::{Count, FIRST_TRANSPORT, KINDS, OWN_MEMORY, STAGED, Stats, Target, Waits};
use crate::error::Error;
use crate::pe_state::PeState;
use crate::world::World;

/// One PE's counts, for the PE that shows all.
#[derive(Clone, Default, Serialize, Deserialize)]
struct PeStats {
    /// Operations and bytes of each kind, by path; without paths that no operation took.
    paths: BTreeMap<String, [(u64, u64); KINDS]>,
    waits: BTreeMap<String, Waits>,
    /// The highest use of the host heap and of the GPU heap, in bytes.
    heaps: [u64; 2],
}

impl PeStats {
    fn add(&mut self, other: &PeStats) {
        for (path, counts) in &other.paths {
            let sums = self.paths.entry(path.clone()).or_default();
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

impl PeState {
    fn pe_stats(&self, stats: &Stats) -> PeStats {
        let name = |path: usize| match path {
            OWN_MEMORY => "own memory",
            STAGED => "staged",
            path => self
                .engine
                .rails
                .get(path - FIRST_TRANSPORT)
                .map_or("unknown", |rail| rail.name),
        };
        let mut mine = PeStats::default();
        for (path, counts) in stats.paths.iter().enumerate() {
            let read = |count: &Count| {
                let read = |number: &AtomicU64| number.load(Ordering::Relaxed);
                (read(&count.operations), read(&count.bytes))
            };
            let counts = counts.each_ref().map(read);
            if counts.iter().any(|(operations, _)| *operations > 0) {
                mine.paths.insert(name(path).to_owned(), counts);
            }
        }
        let waits = stats.waits.lock().unwrap_or_else(PoisonError::into_inner);
        let named = waits
            .iter()
            .map(|(call, waits)| ((*call).to_owned(), *waits));
        mine.waits = named.collect();
        mine.heaps = [MemoryKind::Host, MemoryKind::Cuda].map(|kind| self.heap(kind).most_used());
        mine
    }
}

impl World {
    /// Shows all PEs' statistics. Collective.
    pub(crate) fn end_stats(&self) {
        let Some(stats) = &self.pe.stats else {
            return;
        };
        let mine = self.pe.pe_stats(stats);
        let all = exchange(&*self.worker.engine.bootstrap, &mine).map_err(Error::from);
        let all: Vec<PeStats> = match all {
            Ok(all) => all,
            Err(error) => {
                report::warn(&format!(
                    "no statistics, which all PEs show together: {error}"
                ));
                return;
            }
        };
        if self.worker.engine.me != 0 {
            return;
        }
        match &stats.target {
            Target::Stderr => {
                // If standard error cannot be written, nobody reads it.
                let _ = std::io::stderr().write_all(table(&all, MAX_PES_SHOWN).as_bytes());
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

/// The number of PEs up to which each has lines of its own on a terminal.
const MAX_PES_SHOWN: usize = 16;

/// All PEs' statistics as text: the sums, and each PE's if there are at most `max_shown`.
fn table(all: &[PeStats], max_shown: usize) -> String {
    let mut sum = PeStats::default();
    all.iter().for_each(|pe| sum.add(pe));
    let mut rows: Vec<(String, &PeStats)> = Vec::new();
    if all.len() <= max_shown {
        rows.extend(
            (0..)
                .zip(all)
                .map(|(pe, stats): (usize, _)| (pe.to_string(), stats)),
        );
    }
    rows.push(("all".into(), &sum));
    let mut text = format!("oxshmem: statistics of {} PEs (OXSHMEM_STATS)\n", all.len());
    // Writing to a string cannot fail.
    let mut line = |words: std::fmt::Arguments<'_>| {
        let _ = writeln!(text, "{words}");
    };
    line(format_args!(
        "{:>5}  {:<16} {:>12} {:>16} {:>12} {:>16} {:>12} {:>16} {:>12}",
        "PE", "way", "puts", "bytes", "gets", "bytes", "put-signals", "bytes", "atomics"
    ));
    for (pe, stats) in &rows {
        for (path, [put, get, signal, atomic]) in &stats.paths {
            line(format_args!(
                "{pe:>5}  {path:<16} {:>12} {:>16} {:>12} {:>16} {:>12} {:>16} {:>12}",
                put.0, put.1, get.0, get.1, signal.0, signal.1, atomic.0
            ));
        }
    }
    line(format_args!(
        "{:>5}  {:<28} {:>12} {:>16} {:>16}",
        "PE", "waits in", "waits", "seconds", "longest"
    ));
    for (pe, stats) in &rows {
        for (call, waits) in &stats.waits {
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
    for (pe, stats) in &rows {
        for (heap, bytes) in ["host", "GPU"].into_iter().zip(stats.heaps) {
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

    fn stats(puts: u64, heap: u64) -> PeStats {
        let counts = [(puts, 8 * puts), (0, 0), (0, 0), (3, 24)];
        let waits = Waits {
            count: 1,
            nanos: puts * 1_000_000_000,
            longest: puts * 1_000_000_000,
        };
        PeStats {
            paths: [("loopback".to_owned(), counts)].into(),
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
        let text = table(&[stats(1, 64), stats(2, 128)], 2);
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
        let text = table(&[stats(1, 64), stats(2, 128), stats(3, 1)], 2);
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
