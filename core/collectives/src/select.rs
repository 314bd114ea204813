//! The choice of a collective call's algorithm, by its kind, its bytes and its team.

use std::fmt;

use crate::team::TeamState;

/// The algorithm by which a collective call moves its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CollectiveAlgorithm {
    /// Through the members' scratch memory, in one arrival.
    Eager,
    /// From object to object, between two arrivals; or in one, in which each object is read as soon as its member is here.
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

/// The value of `OXSHMEM_COLLECTIVES`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Choices {
    /// An algorithm for each kind, where it names one.
    algorithms: [Option<CollectiveAlgorithm>; CollectiveKind::ALL.len()],
    /// Whether hosts do not matter.
    pub flat: bool,
}

/// The word for [`Choices::flat`].
const FLAT: &str = "flat";

impl Choices {
    /// Reads a list such as `reduce=direct,broadcast=scratch,flat`, or one algorithm for all.
    pub fn parse(text: &str) -> Result<Self, String> {
        let algorithm = |text: &str| match text.trim() {
            "auto" => Ok(None),
            "scratch" => Ok(Some(CollectiveAlgorithm::Eager)),
            "direct" => Ok(Some(CollectiveAlgorithm::Direct)),
            other => Err(format!(
                "{other:?} is no algorithm; choose auto, scratch or direct, or flat"
            )),
        };
        let mut choices = Choices::default();
        for part in text.split(',') {
            match part.split_once('=') {
                None if part.trim() == FLAT => choices.flat = true,
                None => choices.algorithms = [algorithm(part)?; CollectiveKind::ALL.len()],
                Some((name, chosen)) => {
                    let named = |kind: &CollectiveKind| kind.name() == name.trim();
                    let at = CollectiveKind::ALL.iter().position(named).ok_or_else(|| {
                        let known = CollectiveKind::ALL.map(CollectiveKind::name).join(", ");
                        format!("{name:?} is no kind of call; they are {known}")
                    })?;
                    if let Some(choice) = choices.algorithms.get_mut(at) {
                        *choice = algorithm(chosen)?;
                    }
                }
            }
        }
        Ok(choices)
    }

    fn get(self, kind: CollectiveKind) -> Option<CollectiveAlgorithm> {
        self.algorithms.get(kind as usize).copied().flatten()
    }
}

/// The form that can be parsed again.
impl fmt::Display for Choices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, kind) in CollectiveKind::ALL.into_iter().enumerate() {
            let algorithm = match self.get(kind) {
                None => "auto",
                Some(CollectiveAlgorithm::Eager) => "scratch",
                Some(CollectiveAlgorithm::Direct) => "direct",
            };
            let comma = if i > 0 { "," } else { "" };
            write!(f, "{comma}{}={algorithm}", kind.name())?;
        }
        if self.flat {
            write!(f, ",{FLAT}")
        } else {
            Ok(())
        }
    }
}

/// Bytes of all members' data that every member folds, where they reach each other by lanes. Beyond that, one arrival
/// more costs less.
const FOLDED_BY_ALL: usize = 64 << 10;
/// Bytes that a member reads from scratch memory, where members load each other's memory and are oversubscribed. Beyond
/// that, one arrival more costs less than to move bytes twice from one CPU's cache to another's. An arrival is then a turn
/// of each member.
const READ_OVERSUBSCRIBED: usize = 16 << 10;
/// The same where each member has a CPU.
const READ_AT_ONCE: usize = 4 << 10;
/// The same for folds, of which each member does but its share by the direct algorithm.
const FOLDED_AT_ONCE: usize = 1 << 10;

/// The data of a call that go into each member's scratch memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Payload {
    pub bytes: usize,
    /// Whether the objects are on a GPU, whose memory other PEs' CPUs do not load.
    pub on_gpu: bool,
}

/// The most bytes that a call of this kind can put into half of a member's scratch memory. Where reductions
/// go host by host, each host's result has its place there, too.
fn capacity(kind: CollectiveKind, team: &TeamState) -> usize {
    match (kind, &team.hosts) {
        (CollectiveKind::Reduce, Some(_)) => (team.half() / 2) & !63,
        _ => team.half(),
    }
}

/// The most bytes of a member's scratch memory that a call of this kind uses without a choice of the user's.
fn eager_limit(kind: CollectiveKind, team: &TeamState, on_gpu: bool) -> usize {
    let (half, members) = (capacity(kind, team), team.members.len());
    let folds = matches!(kind, CollectiveKind::Reduce | CollectiveKind::Scan);
    let read = match (team.mapped && !on_gpu, team.oversubscribed()) {
        (false, _) if folds => FOLDED_BY_ALL,
        // Strided elements are packed together there.
        _ if kind == CollectiveKind::Alltoalls => return half,
        (false, _) => return half,
        (true, true) => READ_OVERSUBSCRIBED,
        (true, false) if folds => FOLDED_AT_ONCE,
        (true, false) => READ_AT_ONCE,
    };
    match kind {
        // A block of each other member, of as many.
        CollectiveKind::Broadcast | CollectiveKind::Alltoall | CollectiveKind::Alltoalls => {
            half.min(read)
        }
        // The data of the members of a host, and then of hosts; of all members, if all are on one host.
        CollectiveKind::Reduce => {
            let parts = team.hosts.as_ref().map_or(members, |hosts| hosts.widest());
            half.min((read / parts).max(64))
        }
        // A cache line at least of each.
        CollectiveKind::Collect | CollectiveKind::Fcollect | CollectiveKind::Scan => {
            half.min((read / members).max(64))
        }
    }
}

/// The algorithm of a call with this payload. The same on every member, given the same arguments.
#[inline]
pub(crate) fn select(
    choices: Choices,
    kind: CollectiveKind,
    team: &TeamState,
    payload: Payload,
) -> CollectiveAlgorithm {
    let Payload { bytes, on_gpu } = payload;
    match choices.get(kind) {
        Some(CollectiveAlgorithm::Eager) if bytes <= capacity(kind, team) => {
            CollectiveAlgorithm::Eager
        }
        None if bytes <= eager_limit(kind, team, on_gpu) => CollectiveAlgorithm::Eager,
        _ => CollectiveAlgorithm::Direct,
    }
}

/// The algorithms of one kind of collective call of all PEs.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct CollectiveChoice {
    /// The kind of call.
    pub call: &'static str,
    /// Up to so many bytes in each PE's scratch memory it goes by [`CollectiveAlgorithm::Eager`], beyond by
    /// [`CollectiveAlgorithm::Direct`]. Those are the bytes of a PE's source, in host memory: for `alltoall` all its
    /// blocks.
    pub scratch: usize,
    /// Whether `OXSHMEM_COLLECTIVES` says so.
    pub set: bool,
    /// Whether it is hierarchical: the PEs of a host have a part of it among themselves, and hosts the other. That is so
    /// for [direct](CollectiveAlgorithm::Direct) calls, and reductions by either algorithm.
    pub by_host: bool,
}

/// The algorithms of a team's collective calls, by kind.
pub fn algorithms_of(team: &TeamState, choices: Choices) -> Vec<CollectiveChoice> {
    let choice = |kind: CollectiveKind| CollectiveChoice {
        call: kind.name(),
        scratch: match choices.get(kind) {
            Some(CollectiveAlgorithm::Direct) => 0,
            Some(CollectiveAlgorithm::Eager) => capacity(kind, team),
            None => eager_limit(kind, team, false),
        },
        set: choices.get(kind).is_some(),
        by_host: team.hosts.is_some()
            && matches!(
                kind,
                CollectiveKind::Broadcast | CollectiveKind::Fcollect | CollectiveKind::Reduce
            ),
    };
    CollectiveKind::ALL.into_iter().map(choice).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elements::Elements;
    use crate::layout::{JobShape, Layout};
    use oxshmem_engine::group::Group;

    fn host(bytes: usize) -> Payload {
        Payload {
            bytes,
            on_gpu: false,
        }
    }

    /// Teams of one host, and of two.
    fn teams(pes: usize) -> impl Iterator<Item = TeamState> {
        let variants = [(false, false), (false, true), (true, false), (true, true)];
        let on_one = variants.into_iter().map(move |(mapped, oversubscribed)| {
            let shape = JobShape {
                pes,
                hosts: 1,
                max_pes_per_host: pes,
                oversubscribed,
            };
            let layout = Layout::wide(shape, 64 << 10);
            let memory = Elements::unaccessed(0, layout.bytes());
            TeamState::new(Group::all(pes, 0), layout, memory, mapped, 0).unwrap()
        });
        let on_two = [false, true].into_iter().map(move |oversubscribed| {
            let shape = JobShape {
                pes,
                hosts: 2,
                max_pes_per_host: pes.div_ceil(2),
                oversubscribed,
            };
            let layout = Layout::wide(shape, 64 << 10);
            let memory = Elements::unaccessed(0, layout.bytes());
            let team = TeamState::new(Group::all(pes, 0), layout, memory, false, 0).unwrap();
            let hosts: Vec<u32> = (0..pes as u32).map(|pe| pe % 2).collect();
            team.on_hosts(Some(&hosts))
        });
        on_one.chain(on_two)
    }

    #[test]
    fn a_word_goes_by_scratch_memory_and_what_is_large_directly() {
        for team in [2, 8, 1000].into_iter().flat_map(teams) {
            for (kind, on_gpu) in CollectiveKind::ALL
                .into_iter()
                .flat_map(|k| [(k, false), (k, true)])
            {
                let algorithm =
                    |bytes| select(Choices::default(), kind, &team, Payload { bytes, on_gpu });
                let head = if kind == CollectiveKind::Collect {
                    24
                } else {
                    8
                };
                assert_eq!(
                    algorithm(head),
                    CollectiveAlgorithm::Eager,
                    "{kind:?} {team:?}"
                );
                assert_eq!(
                    algorithm(1 << 20),
                    CollectiveAlgorithm::Direct,
                    "{kind:?} {team:?}"
                );
                let limit = eager_limit(kind, &team, on_gpu);
                assert!(
                    limit <= capacity(kind, &team)
                        && algorithm(limit) == CollectiveAlgorithm::Eager
                );
                assert_eq!(algorithm(limit + 1), CollectiveAlgorithm::Direct);
            }
        }
    }

    #[test]
    fn what_is_chosen_by_the_user_goes_so_where_it_fits() {
        for team in teams(8) {
            for (chosen, named) in [
                ("scratch", CollectiveAlgorithm::Eager),
                ("direct", CollectiveAlgorithm::Direct),
            ] {
                let choices = Choices::parse(chosen).unwrap();
                let capacity = capacity(CollectiveKind::Reduce, &team);
                // Where hosts fold first, their results have a place, too.
                let shares = if team.hosts.is_some() { 2 } else { 1 };
                assert!(shares * capacity <= team.half());
                for bytes in [0, 8, capacity] {
                    let algorithm = select(choices, CollectiveKind::Reduce, &team, host(bytes));
                    assert_eq!(algorithm, named);
                }
                let large = select(choices, CollectiveKind::Reduce, &team, host(capacity + 1));
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
