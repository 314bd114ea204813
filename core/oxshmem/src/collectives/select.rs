//! Which way a collective call goes: by its kind, its bytes and its team.

use std::fmt;

use crate::World;
use crate::team::TeamState;

/// How a collective call moves its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CollectiveAlgorithm {
    /// By the members' scratch memory, in one arrival.
    Eager,
    /// From object to object, between two arrivals; or in one, in which each is read as soon as its member is here.
    Direct,
}

/// A kind of collective call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CollectiveKind {
    Broadcast,
    Collect,
    Fcollect,
    Alltoall,
    Alltoalls,
    Reduce,
    Scan,
}

impl CollectiveKind {
    pub(crate) const ALL: [CollectiveKind; 7] = [
        CollectiveKind::Broadcast,
        CollectiveKind::Collect,
        CollectiveKind::Fcollect,
        CollectiveKind::Alltoall,
        CollectiveKind::Alltoalls,
        CollectiveKind::Reduce,
        CollectiveKind::Scan,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            CollectiveKind::Broadcast => "broadcast",
            CollectiveKind::Collect => "collect",
            CollectiveKind::Fcollect => "fcollect",
            CollectiveKind::Alltoall => "alltoall",
            CollectiveKind::Alltoalls => "alltoalls",
            CollectiveKind::Reduce => "reduce",
            CollectiveKind::Scan => "scan",
        }
    }
}

/// What `OXSHMEM_COLLECTIVES` says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Choices {
    /// A way for each kind, where it names one.
    ways: [Option<CollectiveAlgorithm>; CollectiveKind::ALL.len()],
    /// Whether hosts are of no account.
    pub(crate) flat: bool,
}

/// What hosts are of no account by.
const FLAT: &str = "flat";

impl Choices {
    /// Reads a list such as `reduce=direct,broadcast=scratch,flat`, or one way for all.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let way = |text: &str| match text.trim() {
            "auto" => Ok(None),
            "scratch" => Ok(Some(CollectiveAlgorithm::Eager)),
            "direct" => Ok(Some(CollectiveAlgorithm::Direct)),
            other => Err(format!(
                "{other:?} is no way; choose auto, scratch or direct, or flat"
            )),
        };
        let mut choices = Choices::default();
        for part in text.split(',') {
            match part.split_once('=') {
                None if part.trim() == FLAT => choices.flat = true,
                None => choices.ways = [way(part)?; CollectiveKind::ALL.len()],
                Some((name, chosen)) => {
                    let named = |kind: &CollectiveKind| kind.name() == name.trim();
                    let at = CollectiveKind::ALL.iter().position(named).ok_or_else(|| {
                        let known = CollectiveKind::ALL.map(CollectiveKind::name).join(", ");
                        format!("{name:?} is no kind of call; they are {known}")
                    })?;
                    if let Some(place) = choices.ways.get_mut(at) {
                        *place = way(chosen)?;
                    }
                }
            }
        }
        Ok(choices)
    }

    fn get(self, kind: CollectiveKind) -> Option<CollectiveAlgorithm> {
        self.ways.get(kind as usize).copied().flatten()
    }
}

/// As it can be parsed again.
impl fmt::Display for Choices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, kind) in CollectiveKind::ALL.into_iter().enumerate() {
            let way = match self.get(kind) {
                None => "auto",
                Some(CollectiveAlgorithm::Eager) => "scratch",
                Some(CollectiveAlgorithm::Direct) => "direct",
            };
            let comma = if i > 0 { "," } else { "" };
            write!(f, "{comma}{}={way}", kind.name())?;
        }
        match self.flat {
            true => write!(f, ",{FLAT}"),
            false => Ok(()),
        }
    }
}

/// Where members reach each other by lanes, every member folds all that the others gave, up to so many
/// bytes of them all together; beyond, one arrival more costs less than that.
const FOLDED_BY_ALL: usize = 64 << 10;
/// Where they load each other's memory, a member reads up to so many bytes from scratch memory: an arrival
/// more costs less than to move others twice from one CPU's cache to another's. The first where members
/// outnumber the CPUs and an arrival is a turn of each, the others where each has a CPU; those are
/// fewer for folds, of which each member does but its share by the direct way.
const READ_IN_TURNS: usize = 16 << 10;
const READ_AT_ONCE: usize = 4 << 10;
const FOLDED_AT_ONCE: usize = 1 << 10;

/// The most bytes that a call of this kind can put into half of a member's scratch memory: where reductions
/// go host by host, what comes of each host has its place there, too.
fn room(kind: CollectiveKind, core: &TeamState) -> usize {
    match (kind, &core.hosts) {
        (CollectiveKind::Reduce, Some(_)) => (core.half() / 2) & !63,
        _ => core.half(),
    }
}

/// The most bytes of a member's scratch memory that a call of this kind uses by itself. What is given may be
/// on a GPU, whose memory other PEs' CPUs do not load.
fn most(kind: CollectiveKind, core: &TeamState, on_gpu: bool) -> usize {
    let (half, members) = (room(kind, core), core.members.len());
    let folds = matches!(kind, CollectiveKind::Reduce | CollectiveKind::Scan);
    let read = match (core.mapped && !on_gpu, core.oversubscribed()) {
        (false, _) if folds => FOLDED_BY_ALL,
        // What is strided is packed together there.
        _ if kind == CollectiveKind::Alltoalls => return half,
        (false, _) => return half,
        (true, true) => READ_IN_TURNS,
        (true, false) if folds => FOLDED_AT_ONCE,
        (true, false) => READ_AT_ONCE,
    };
    match kind {
        // Of each other member a block, of as many.
        CollectiveKind::Broadcast | CollectiveKind::Alltoall | CollectiveKind::Alltoalls => {
            half.min(read)
        }
        // Of the members of a host, and then of hosts.
        CollectiveKind::Reduce if let Some(hosts) = &core.hosts => {
            half.min((read / hosts.widest()).max(64))
        }
        // Of each a cache line at least.
        CollectiveKind::Collect
        | CollectiveKind::Fcollect
        | CollectiveKind::Reduce
        | CollectiveKind::Scan => half.min((read / members).max(64)),
    }
}

/// The way of a call that puts so many bytes, which may be on a GPU, into each member's scratch memory, if
/// it goes that way. The same on every member, given the same arguments.
pub(crate) fn select(
    choices: Choices,
    kind: CollectiveKind,
    core: &TeamState,
    (bytes, on_gpu): (usize, bool),
) -> CollectiveAlgorithm {
    match choices.get(kind) {
        Some(CollectiveAlgorithm::Eager) if bytes <= room(kind, core) => CollectiveAlgorithm::Eager,
        None if bytes <= most(kind, core, on_gpu) => CollectiveAlgorithm::Eager,
        _ => CollectiveAlgorithm::Direct,
    }
}

/// How one kind of collective call of all PEs goes.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct CollectiveChoice {
    /// The kind of call.
    pub call: &'static str,
    /// Up to so many bytes in each PE's scratch memory it goes by [`Way::Scratch`], beyond by
    /// [`Way::Direct`]. Those are the bytes that a PE gives, in host memory: for `alltoall` all its blocks.
    pub scratch: usize,
    /// Whether `OXSHMEM_COLLECTIVES` says so.
    pub set: bool,
    /// Whether the PEs of a host have a part of it among themselves, and hosts the other: for what goes
    /// [directly](Way::Direct), and reductions of either way.
    pub by_host: bool,
}

impl World {
    /// How collective calls of all PEs go, by kind.
    #[must_use]
    pub fn collective_choices(&self) -> Vec<CollectiveChoice> {
        let choices = self.shared.config.collectives;
        let core = &self.shared.sync_area.all;
        let choice = |kind: CollectiveKind| CollectiveChoice {
            call: kind.name(),
            scratch: match choices.get(kind) {
                Some(CollectiveAlgorithm::Direct) => 0,
                Some(CollectiveAlgorithm::Eager) => room(kind, core),
                None => most(kind, core, false),
            },
            set: choices.get(kind).is_some(),
            by_host: core.hosts.is_some()
                && matches!(
                    kind,
                    CollectiveKind::Broadcast | CollectiveKind::Fcollect | CollectiveKind::Reduce
                ),
        };
        CollectiveKind::ALL.into_iter().map(choice).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sym;
    use crate::team::{Group, JobShape, Layout};

    /// Of one host, and of two.
    fn cores(pes: usize) -> impl Iterator<Item = TeamState> {
        let variants = [(false, false), (false, true), (true, false), (true, true)];
        let on_one = variants.into_iter().map(move |(mapped, oversubscribed)| {
            let crowd = JobShape {
                pes,
                hosts: 1,
                max_pes_per_host: pes,
                oversubscribed,
            };
            let layout = Layout::wide(crowd, 64 << 10);
            let memory = Sym::new(2, 0, 0, layout.bytes());
            TeamState::new(Group::all(pes, 0), layout, memory, mapped, 0).unwrap()
        });
        let on_two = [false, true].into_iter().map(move |oversubscribed| {
            let crowd = JobShape {
                pes,
                hosts: 2,
                max_pes_per_host: pes.div_ceil(2),
                oversubscribed,
            };
            let layout = Layout::wide(crowd, 64 << 10);
            let memory = Sym::new(2, 0, 0, layout.bytes());
            let core = TeamState::new(Group::all(pes, 0), layout, memory, false, 0).unwrap();
            let hosts: Vec<u32> = (0..pes as u32).map(|pe| pe % 2).collect();
            core.on_hosts(Some(&hosts))
        });
        on_one.chain(on_two)
    }

    #[test]
    fn a_word_goes_by_scratch_memory_and_what_is_large_directly() {
        for core in [2, 8, 1000].into_iter().flat_map(cores) {
            for (kind, on_gpu) in CollectiveKind::ALL
                .into_iter()
                .flat_map(|k| [(k, false), (k, true)])
            {
                let way = |bytes| select(Choices::default(), kind, &core, (bytes, on_gpu));
                let head = if kind == CollectiveKind::Collect {
                    24
                } else {
                    8
                };
                assert_eq!(way(head), CollectiveAlgorithm::Eager, "{kind:?} {core:?}");
                assert_eq!(
                    way(1 << 20),
                    CollectiveAlgorithm::Direct,
                    "{kind:?} {core:?}"
                );
                let most = most(kind, &core, on_gpu);
                assert!(most <= room(kind, &core) && way(most) == CollectiveAlgorithm::Eager);
                assert_eq!(way(most + 1), CollectiveAlgorithm::Direct);
            }
        }
    }

    #[test]
    fn what_is_chosen_by_the_user_goes_so_where_it_fits() {
        for core in cores(8) {
            for (chosen, named) in [
                ("scratch", CollectiveAlgorithm::Eager),
                ("direct", CollectiveAlgorithm::Direct),
            ] {
                let choices = Choices::parse(chosen).unwrap();
                let room = room(CollectiveKind::Reduce, &core);
                // Where hosts fold first, there is room for what comes of that, too.
                let shares = if core.hosts.is_some() { 2 } else { 1 };
                assert!(shares * room <= core.half());
                for bytes in [0, 8, room] {
                    let way = select(choices, CollectiveKind::Reduce, &core, (bytes, false));
                    assert_eq!(way, named);
                }
                let large = select(choices, CollectiveKind::Reduce, &core, (room + 1, false));
                assert_eq!(large, CollectiveAlgorithm::Direct);
            }
        }
    }

    #[test]
    fn choices_are_read_as_they_are_told() {
        let all = Choices::parse("direct").unwrap();
        assert!(
            CollectiveKind::ALL
                .iter()
                .all(|kind| all.get(*kind) == Some(CollectiveAlgorithm::Direct))
        );
        let some = Choices::parse("scratch, reduce = direct,scan=auto").unwrap();
        assert_eq!(
            some.get(CollectiveKind::Reduce),
            Some(CollectiveAlgorithm::Direct)
        );
        assert_eq!(some.get(CollectiveKind::Scan), None);
        assert_eq!(
            some.get(CollectiveKind::Collect),
            Some(CollectiveAlgorithm::Eager)
        );
        let flat = Choices::parse("flat, reduce=direct").unwrap();
        assert!(
            flat.flat
                && flat.get(CollectiveKind::Reduce) == Some(CollectiveAlgorithm::Direct)
                && !some.flat
        );
        for choices in [all, some, flat, Choices::default()] {
            assert_eq!(Choices::parse(&choices.to_string()), Ok(choices));
        }
        assert!(Choices::parse("reduce=fast").unwrap_err().contains("fast"));
        assert!(Choices::parse("sum=direct").unwrap_err().contains("reduce"));
        assert!(Choices::parse("").is_err());
    }
}
