//! A trace as a viewer reads it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

/// A file's name in the temporary directory, and the file removed at the end.
pub struct File(pub PathBuf);

impl File {
    pub fn new() -> File {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let (process, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let name = format!("oxshmem-trace-{process}-{count}.json");
        File(std::env::temp_dir().join(name))
    }

    pub fn name(&self) -> &str {
        self.0.to_str().unwrap()
    }

    /// Whether there is an event of a PE with this name; what else is there may be half written.
    pub fn shows(&self, pe: u64, name: &str) -> bool {
        let text = fs::read_to_string(&self.0).unwrap();
        let (pe, name) = (format!("\"pid\":{pe},"), format!("\"name\":\"{name}\""));
        text.lines()
            .any(|line| line.contains(&pe) && line.contains(&name))
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// A span of the time line, in nanoseconds.
#[derive(Clone, Debug)]
pub struct Span {
    pub pe: u64,
    pub track: u64,
    pub name: String,
    pub kind: String,
    pub from: u64,
    pub to: u64,
    pub args: Value,
}

/// All that a trace holds.
pub struct Events {
    pub spans: Vec<Span>,
    /// By PE and track.
    pub tracks: BTreeMap<(u64, u64), String>,
    /// By PE.
    pub processes: BTreeMap<u64, String>,
    /// By PE and name: the last values of each.
    pub counts: BTreeMap<(u64, String), Value>,
    /// Whether its array was ended.
    pub ended: bool,
}

fn number(event: &Value, name: &str) -> u64 {
    event[name]
        .as_u64()
        .unwrap_or_else(|| panic!("{name}: {event}"))
}

fn nanoseconds(event: &Value, name: &str) -> u64 {
    let micros = event[name]
        .as_f64()
        .unwrap_or_else(|| panic!("{name}: {event}"));
    (micros * 1e3).round() as u64
}

impl Events {
    /// Reads a file, of which the closing bracket alone may be missing.
    pub fn read(path: &Path) -> Events {
        let mut text = fs::read_to_string(path).unwrap();
        let ended = text.trim_end().ends_with(']');
        if !ended {
            text.push(']');
        }
        let all: Vec<Value> = serde_json::from_str(&text).unwrap();
        let mut events = Events {
            spans: Vec::new(),
            tracks: BTreeMap::new(),
            processes: BTreeMap::new(),
            counts: BTreeMap::new(),
            ended,
        };
        for event in &all {
            events.take(event);
        }
        events
    }

    fn take(&mut self, event: &Value) {
        let (pe, track) = (number(event, "pid"), number(event, "tid"));
        let name = event["name"].as_str().unwrap().to_owned();
        let args = event["args"].clone();
        match event["ph"].as_str().unwrap() {
            "X" => {
                let from = nanoseconds(event, "ts");
                self.spans.push(Span {
                    pe,
                    track,
                    name,
                    kind: event["cat"].as_str().unwrap().to_owned(),
                    from,
                    to: from + nanoseconds(event, "dur"),
                    args,
                });
            }
            "C" => {
                self.counts.insert((pe, name), args);
            }
            "M" => {
                let said = || args["name"].as_str().unwrap().to_owned();
                match name.as_str() {
                    "process_name" => {
                        self.processes.insert(pe, said());
                    }
                    "thread_name" => {
                        self.tracks.insert((pe, track), said());
                    }
                    _ => {}
                }
            }
            other => panic!("no event of this kind is written: {other}"),
        }
    }

    /// A PE's spans with this name.
    pub fn of(&self, pe: u64, name: &str) -> Vec<&Span> {
        let all = self.spans.iter();
        all.filter(|span| span.pe == pe && span.name == name)
            .collect()
    }

    /// The spans within one, on its track.
    pub fn within(&self, outer: &Span) -> Vec<&Span> {
        let inside = |span: &&Span| {
            (span.pe, span.track) == (outer.pe, outer.track)
                && span.name != outer.name
                && (outer.from..=outer.to).contains(&span.from)
        };
        self.spans.iter().filter(inside).collect()
    }

    /// The number of a PE's track with this name.
    pub fn track(&self, pe: u64, name: &str) -> u64 {
        let named = |((of, _), known): &(&(u64, u64), &String)| *of == pe && *known == name;
        let found = self.tracks.iter().find(named);
        found
            .unwrap_or_else(|| panic!("{name}: {:?}", self.tracks))
            .0
            .1
    }

    /// That each track has a name, and that its spans are apart or one inside the other.
    pub fn check(&self) {
        let mut tracks: BTreeMap<(u64, u64), Vec<&Span>> = BTreeMap::new();
        for span in &self.spans {
            tracks.entry((span.pe, span.track)).or_default().push(span);
        }
        for (track, mut spans) in tracks {
            assert!(self.tracks.contains_key(&track), "{track:?} has no name");
            assert!(self.processes.contains_key(&track.0), "{track:?} has no PE");
            spans.sort_by_key(|span| (span.from, std::cmp::Reverse(span.to)));
            let mut open: Vec<&Span> = Vec::new();
            for span in spans {
                open.retain(|outer| outer.to > span.from);
                if let Some(outer) = open.last() {
                    assert!(span.to <= outer.to, "{span:?} leaves {outer:?}");
                }
                open.push(span);
            }
        }
    }
}
