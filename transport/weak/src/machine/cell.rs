//! Cells: words whose values PEs may see differently.

use oxshmem_transport::Pe;

/// Cells are told apart by the storage they belong to and their place in it, in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct CellId {
    pub(super) storage: u64,
    pub(super) word: u64,
}

/// The bytes of a cell that an access concerns: bit i for byte i.
pub(super) type Mask = u8;

/// `old` with the bytes in `mask` taken from `new`.
pub(super) fn merged(old: u64, new: u64, mask: Mask) -> u64 {
    if mask == Mask::MAX {
        return new;
    }
    let bits = spread(mask);
    (old & !bits) | (new & bits)
}

/// All bits of the bytes in `mask`.
fn spread(mask: Mask) -> u64 {
    (0..8)
        .filter(|byte| mask & (1 << byte) != 0)
        .fold(0, |bits, byte| bits | (0xff << (8 * byte)))
}

/// The bounds of what a CPU may not have seen yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct View {
    /// This CPU's accesses see everything up to this moment.
    pub(super) floor: u64,
    /// As a GPU's own PE: of what NICs wrote it sees everything up to this moment instead.
    pub(super) nic_floor: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Write {
    time: u64,
    value: u64,
    by_nic: bool,
}

/// How many values of a cell are remembered at most. More only let a CPU be staler than that.
const REMEMBERED: usize = 24;

/// Eight aligned bytes: the newest value, and those that some CPU may still see.
#[derive(Clone, Debug)]
pub(super) struct Cell {
    newest: u64,
    past: Option<Box<Past>>,
}

#[derive(Clone, Debug)]
struct Past {
    /// Oldest first, the newest value's own write last.
    writes: Vec<Write>,
    /// For each CPU the time of the latest write that it has seen here.
    seen: Box<[u64]>,
}

impl Past {
    /// The oldest write that this CPU may see.
    fn first(&self, cpu: Pe, view: View) -> usize {
        let seen = self.seen.get(cpu.index()).copied().unwrap_or(0);
        let known = |write: &Write| {
            let floor = view.nic_floor.filter(|_| write.by_nic);
            write.time <= seen || write.time <= floor.unwrap_or(view.floor)
        };
        self.writes.iter().rposition(known).unwrap_or(0)
    }

    fn see(&mut self, cpu: Pe, time: u64) {
        if let Some(seen) = self.seen.get_mut(cpu.index()) {
            *seen = time.max(*seen);
        }
    }
}

impl Cell {
    pub(super) fn newest(&self) -> u64 {
        self.newest
    }

    /// A cell that has always had this value.
    pub(super) fn new(value: u64) -> Cell {
        Cell {
            newest: value,
            past: None,
        }
    }

    /// How many values this CPU may see; at least 1.
    pub(super) fn values(&self, cpu: Pe, view: View) -> usize {
        match &self.past {
            Some(past) => past.writes.len() - past.first(cpu, view),
            None => 1,
        }
    }

    /// The value that is `back` older than the newest, and when it was written. Now seen by `cpu`.
    pub(super) fn read(&mut self, cpu: Pe, back: usize) -> (u64, u64) {
        let Some(past) = &mut self.past else {
            return (self.newest, 0);
        };
        let index = past.writes.len().saturating_sub(1 + back);
        let Some(&Write { time, value, .. }) = past.writes.get(index) else {
            return (self.newest, 0);
        };
        past.see(cpu, time);
        (value, time)
    }

    /// Whether the CPU has not seen the newest value.
    pub(super) fn is_behind(&self, cpu: Pe) -> bool {
        self.past.as_ref().is_some_and(|past| {
            let seen = past.seen.get(cpu.index()).copied().unwrap_or(0);
            past.writes.last().is_some_and(|write| write.time > seen)
        })
    }

    /// Performed at `time`, later than all before; `by` is the CPU that did it, none for a NIC.
    pub(super) fn write(&mut self, value: u64, time: u64, by: Option<Pe>, views: &Views) {
        let before = Write {
            time: 0,
            value: self.newest,
            by_nic: false,
        };
        let past = self.past.get_or_insert_with(|| {
            Box::new(Past {
                writes: vec![before],
                seen: vec![0; views.cpus()].into(),
            })
        });
        let by_nic = by.is_none();
        past.writes.push(Write {
            time,
            value,
            by_nic,
        });
        if let Some(cpu) = by {
            past.see(cpu, time);
        }
        self.newest = value;
        let forgettable = (0..views.cpus())
            .map(|cpu| {
                let cpu = Pe(cpu as u32);
                past.first(cpu, views.of(cpu))
            })
            .min()
            .unwrap_or(0)
            .max(past.writes.len().saturating_sub(REMEMBERED));
        past.writes.drain(..forgettable);
    }
}

/// How all CPUs look at the cells of one storage.
#[derive(Debug)]
pub(super) struct Views(pub(super) Vec<View>);

impl Views {
    fn cpus(&self) -> usize {
        self.0.len()
    }

    fn of(&self, cpu: Pe) -> View {
        self.0.get(cpu.index()).copied().unwrap_or(View {
            floor: 0,
            nic_floor: None,
        })
    }
}
