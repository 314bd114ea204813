//! The selection of a transport towards one PE and one kind of memory: a pure function of the transports'
//! answers.

use std::borrow::Cow;

use oxshmem_transport::{
    AtomicLevel, AtomicOp, AtomicTable, Capabilities, MemoryKind, Reach, Width,
};

use crate::am::request::AmRequest;
use crate::route::path::Path;

/// The order of candidates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preference {
    /// Transports in the order given, however they reach the PE.
    AsGiven,
    /// Transports that map the memory before those that need a lane; alike ones in the order given.
    Nearest,
}

/// One transport, as a candidate towards one PE and one kind of memory.
#[derive(Debug)]
pub struct Candidate<'a> {
    /// The transport's name.
    pub name: &'static str,
    /// Its index among the opened transports, or the reason why it is no candidate.
    pub standing: Result<u8, Cow<'a, str>>,
    /// Its answer about the PE's memory.
    pub reach: Reach,
    /// The atomics by its lane that are exclusive against CPU instructions.
    pub atomics: ByLane,
    /// The facts on which its guarantees towards the PE stand, where they depend on devices.
    pub remark: Option<String>,
}

/// A lane's atomics that are exclusive against CPU instructions (M29).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByLane {
    /// None.
    No,
    /// Its own: they are of the CPU's level.
    Itself,
    /// Messages to the PE's CPU, which performs them.
    Messages,
}

/// The use of an imported region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Imported {
    /// Load and store.
    Mapped,
    /// Operations of a lane.
    Lane,
}

/// A path, with the answers that led to it: best first, the chosen transport's last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen<'a> {
    /// The chosen path.
    pub path: Path,
    /// The answer of each transport, in words.
    pub answers: Vec<(&'static str, Cow<'a, str>)>,
}

impl Chosen<'_> {
    /// Falls back to staging where no transport was chosen and the PE's process copies to and from its GPU's memory
    /// for others; `own` if that is this PE.
    pub fn or_staged(&mut self, stages: bool, own: bool) {
        if self.path != Path::None {
            return;
        }
        let how = match (stages, own) {
            (false, _) => CANNOT_STAGE,
            (true, true) => "chosen: by this process on its own GPU",
            (true, false) => "chosen: through host memory, by the PE's process",
        };
        if stages {
            self.path = Path::Staged;
        }
        self.answers.push(("staged", Cow::Borrowed(how)));
    }
}

/// The atomics of a transport's lanes on memory of a kind at a PE that are as a CPU's. `atomics`: those that the lanes have
/// towards that PE. Operations that are not among them
/// can be made of a compare-swap of the CPU's level; narrower words are checked with each operation.
pub fn cpu_atomics(capabilities: &Capabilities, atomics: &AtomicTable, kind: MemoryKind) -> ByLane {
    let has = |width| atomics.level(AtomicOp::CompareSwap, width) == AtomicLevel::Cpu;
    let messages = kind == MemoryKind::Host && AmRequest::fits(capabilities);
    match (has(Width::W64), has(Width::W32)) {
        (true, true) => ByLane::Itself,
        // Words of both widths take one path.
        _ if messages => ByLane::Messages,
        (true, false) => ByLane::Itself,
        (false, _) => ByLane::No,
    }
}

/// Whether these atomics, of a transport's lanes towards a PE, are of NICs and of 64 bits, of which all others can be made.
pub fn has_nic_atomics(atomics: &AtomicTable) -> bool {
    [AtomicOp::Add, AtomicOp::CompareSwap]
        .into_iter()
        .all(|op| atomics.level(op, Width::W64) == AtomicLevel::Nic)
}

/// The paths of puts and gets, and of atomics. `import` makes the memory usable by the candidate with
/// this index, or gives the reason why it cannot; it is called at most once for each, and only for those that
/// would be chosen.
pub fn choose<'a>(
    preference: Preference,
    candidates: &'a [Candidate<'a>],
    mut import: impl FnMut(u8) -> Result<Imported, String>,
) -> (Chosen<'a>, Chosen<'a>) {
    let mut order: Vec<&'a Candidate<'a>> = candidates.iter().collect();
    if preference == Preference::Nearest {
        // Only candidates that could be chosen move: a refusal keeps its place.
        order.sort_by_key(|c| c.standing.is_ok() && c.reach == Reach::Remote);
    }
    let mut imported: Vec<(u8, Result<Imported, String>)> = Vec::new();
    let mut judge = |candidate: &'a Candidate<'a>, atomics: bool| {
        let index = match (&candidate.standing, &candidate.reach) {
            (Err(why), _) => return Err(Cow::Borrowed(&**why)),
            (_, Reach::None(why)) => return Err(Cow::Borrowed(why.as_str())),
            (Ok(index), _) => *index,
        };
        if atomics && candidate.atomics == ByLane::No {
            return Err(Cow::Borrowed(NO_CPU_ATOMICS));
        }
        let how = match imported.iter().find(|(known, _)| *known == index) {
            Some((_, how)) => how.clone(),
            None => {
                let how = import(index);
                imported.push((index, how.clone()));
                how
            }
        };
        match how {
            Ok(_) if atomics && candidate.atomics == ByLane::Messages => {
                Ok((Path::Message(index), "chosen: active messages"))
            }
            Ok(Imported::Mapped) => Ok((Path::Mapped(index), "chosen: load/store mapped")),
            Ok(Imported::Lane) => Ok((Path::Lane(index), "chosen: lane")),
            Err(why) => Err(Cow::Owned(why)),
        }
    };
    let mut first = |atomics: bool| {
        let mut answers = Vec::new();
        for candidate in &order {
            match judge(candidate, atomics) {
                Ok((path, how)) => {
                    let how = match &candidate.remark {
                        Some(remark) if !path.is_mapped() => Cow::Owned(format!("{how}; {remark}")),
                        _ => Cow::Borrowed(how),
                    };
                    answers.push((candidate.name, how));
                    return Chosen { path, answers };
                }
                Err(why) => answers.push((candidate.name, why)),
            }
        }
        let path = Path::None;
        Chosen { path, answers }
    };
    (first(false), first(true))
}

const CANNOT_STAGE: &str = "the PE's GPU memory was given without a way for its process to copy it";
const NO_CPU_ATOMICS: &str =
    "its atomics are not exclusive against those of CPUs on the same word (M29)";
