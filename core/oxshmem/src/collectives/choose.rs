//! Which way a collective call goes: by its kind, its bytes and its team.

use std::fmt;

use crate::World;
use crate::team::Core;

/// How a collective call moves its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// By the members' scratch memory, in one arrival.
    Scratch,
    /// From object to object, between two arrivals; or in one, in which each is read as soon as its member is here.
    Direct,
}

/// A kind of collective call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Broadcast,
    Collect,
    Fcollect,
    Alltoall,
    Alltoalls,
    Reduce,
    Scan,
}

impl Kind {
    pub(crate) const ALL: [Kind; 7] = [
        Kind::Broadcast,
        Kind::Collect,
        Kind::Fcollect,
        Kind::Alltoall,
        Kind::Alltoalls,
        Kind::Reduce,
        Kind::Scan,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Kind::Broadcast => "broadcast",
            Kind::Collect => "collect",
            Kind::Fcollect => "fcollect",
            Kind::Alltoall => "alltoall",
            Kind::Alltoalls => "alltoalls",
            Kind::Reduce => "reduce",
            Kind::Scan => "scan",
        }
    }
}

/// What `OXSHMEM_COLLECTIVES` says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Choices {
    /// A way for each kind, where it names one.
    ways: [Option<Way>; Kind::ALL.len()],
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
            "scratch" => Ok(Some(Way::Scratch)),
            "direct" => Ok(Some(Way::Direct)),
            other => Err(format!(
                "{other:?} is no way; choose auto, scratch or direct, or flat"
            )),
        };
        let mut choices = Choices::default();
        for part in text.split(',') {
            match part.split_once('=') {
                None if part.trim() == FLAT => choices.flat = true,
                None => choices.ways = [way(part)?; Kind::ALL.len()],
                Some((name, chosen)) => {
                    let named = |kind: &Kind| kind.name() == name.trim();
                    let at = Kind::ALL.iter().position(named).ok_or_else(|| {
                        let known = Kind::ALL.map(Kind::name).join(", ");
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

    fn get(self, kind: Kind) -> Option<Way> {
        self.ways.get(kind as usize).copied().flatten()
    }
}

/// As it can be parsed again.
impl fmt::Display for Choices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, kind) in Kind::ALL.into_iter().enumerate() {
            let way = match self.get(kind) {
                None => "auto",
                Some(Way::Scratch) => "scratch",
                Some(Way::Direct) => "direct",
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
fn room(kind: Kind, core: &Core) -> usize {
    match (kind, &core.hosts) {
        (Kind::Reduce, Some(_)) => (core.half() / 2) & !63,
        _ => core.half(),
    }
}

/// The most bytes of a member's scratch memory that a call of this kind uses by itself. What is given may be
/// on a GPU, whose memory other PEs' CPUs do not load.
fn most(kind: Kind, core: &Core, on_gpu: bool) -> usize {
    let (half, members) = (room(kind, core), core.members.len());
    let folds = matches!(kind, Kind::Reduce | Kind::Scan);
    let read = match (core.mapped && !on_gpu, core.in_turns()) {
        (false, _) if folds => FOLDED_BY_ALL,
        // What is strided is packed together there.
        _ if kind == Kind::Alltoalls => return half,
        (false, _) => return half,
        (true, true) => READ_IN_TURNS,
        (true, false) if folds => FOLDED_AT_ONCE,
        (true, false) => READ_AT_ONCE,
    };
    match kind {
        // Of each other member a block, of as many.
        Kind::Broadcast | Kind::Alltoall | Kind::Alltoalls => half.min(read),
        // Of the members of a host, and then of hosts.
        Kind::Reduce if let Some(hosts) = &core.hosts => half.min((read / hosts.widest()).max(64)),
        // Of each a cache line at least.
        Kind::Collect | Kind::Fcollect | Kind::Reduce | Kind::Scan => {
            half.min((read / members).max(64))
        }
    }
}

/// The way of a call that puts so many bytes, which may be on a GPU, into each member's scratch memory, if
/// it goes that way. The same on every member, given the same arguments.
pub(crate) fn choose(
    choices: Choices,
    kind: Kind,
    core: &Core,
    (bytes, on_gpu): (usize, bool),
) -> Way {
    match choices.get(kind) {
        Some(Way::Scratch) if bytes <= room(kind, core) => Way::Scratch,
        None if bytes <= most(kind, core, on_gpu) => Way::Scratch,
        _ => Way::Direct,
    }
}

/// How one kind of collective call of all PEs goes.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Choice {
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
    pub fn collective_choices(&self) -> Vec<Choice> {
        let choices = self.shared.config.collectives;
        let core = &self.shared.internal.all;
        let choice = |kind: Kind| Choice {
            call: kind.name(),
            scratch: match choices.get(kind) {
                Some(Way::Direct) => 0,
                Some(Way::Scratch) => room(kind, core),
                None => most(kind, core, false),
            },
            set: choices.get(kind).is_some(),
            by_host: core.hosts.is_some()
                && matches!(kind, Kind::Broadcast | Kind::Fcollect | Kind::Reduce),
        };
        Kind::ALL.into_iter().map(choice).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sym;
    use crate::team::{Crowd, Layout, Members};

    /// Of one host, and of two.
    fn cores(pes: usize) -> impl Iterator<Item = Core> {
        let variants = [(false, false), (false, true), (true, false), (true, true)];
        let on_one = variants.into_iter().map(move |(mapped, oversubscribed)| {
            let crowd = Crowd {
                pes,
                hosts: 1,
                most_near: pes,
                oversubscribed,
            };
            let layout = Layout::wide(crowd, 64 << 10);
            let memory = Sym::new(2, 0, 0, layout.bytes());
            Core::new(Members::all(pes, 0), layout, memory, mapped, 0).unwrap()
        });
        let on_two = [false, true].into_iter().map(move |oversubscribed| {
            let crowd = Crowd {
                pes,
                hosts: 2,
                most_near: pes.div_ceil(2),
                oversubscribed,
            };
            let layout = Layout::wide(crowd, 64 << 10);
            let memory = Sym::new(2, 0, 0, layout.bytes());
            let core = Core::new(Members::all(pes, 0), layout, memory, false, 0).unwrap();
            let hosts: Vec<u32> = (0..pes as u32).map(|pe| pe % 2).collect();
            core.on_hosts(Some(&hosts))
        });
        on_one.chain(on_two)
    }

    #[test]
    fn a_word_goes_by_scratch_memory_and_what_is_large_directly() {
        for core in [2, 8, 1000].into_iter().flat_map(cores) {
            for (kind, on_gpu) in Kind::ALL.into_iter().flat_map(|k| [(k, false), (k, true)]) {
                let way = |bytes| choose(Choices::default(), kind, &core, (bytes, on_gpu));
                let head = if kind == Kind::Collect { 24 } else { 8 };
                assert_eq!(way(head), Way::Scratch, "{kind:?} {core:?}");
                assert_eq!(way(1 << 20), Way::Direct, "{kind:?} {core:?}");
                let most = most(kind, &core, on_gpu);
                assert!(most <= room(kind, &core) && way(most) == Way::Scratch);
                assert_eq!(way(most + 1), Way::Direct);
            }
        }
    }

    #[test]
    fn what_is_chosen_by_the_user_goes_so_where_it_fits() {
        for core in cores(8) {
            for (chosen, named) in [("scratch", Way::Scratch), ("direct", Way::Direct)] {
                let choices = Choices::parse(chosen).unwrap();
                let room = room(Kind::Reduce, &core);
                // Where hosts fold first, there is room for what comes of that, too.
                let shares = if core.hosts.is_some() { 2 } else { 1 };
                assert!(shares * room <= core.half());
                for bytes in [0, 8, room] {
                    let way = choose(choices, Kind::Reduce, &core, (bytes, false));
                    assert_eq!(way, named);
                }
                let large = choose(choices, Kind::Reduce, &core, (room + 1, false));
                assert_eq!(large, Way::Direct);
            }
        }
    }

    #[test]
    fn choices_are_read_as_they_are_told() {
        let all = Choices::parse("direct").unwrap();
        assert!(
            Kind::ALL
                .iter()
                .all(|kind| all.get(*kind) == Some(Way::Direct))
        );
        let some = Choices::parse("scratch, reduce = direct,scan=auto").unwrap();
        assert_eq!(some.get(Kind::Reduce), Some(Way::Direct));
        assert_eq!(some.get(Kind::Scan), None);
        assert_eq!(some.get(Kind::Collect), Some(Way::Scratch));
        let flat = Choices::parse("flat, reduce=direct").unwrap();
        assert!(flat.flat && flat.get(Kind::Reduce) == Some(Way::Direct) && !some.flat);
        for choices in [all, some, flat, Choices::default()] {
            assert_eq!(Choices::parse(&choices.to_string()), Ok(choices));
        }
        assert!(Choices::parse("reduce=fast").unwrap_err().contains("fast"));
        assert!(Choices::parse("sum=direct").unwrap_err().contains("reduce"));
        assert!(Choices::parse("").is_err());
    }
}
