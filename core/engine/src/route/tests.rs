//! Routes chosen among stand-ins that declare what the real transports will.

use oxshmem_transport::{MemoryKind, Reach};

use super::path::Path;
use super::rules::{Pair, Rules};
use super::select::{ByLane, Candidate, Chosen, Imported, Preference, choose};

/// A stand-in's answers about a PE of the same host (or another) and one kind of memory.
struct StandIn {
    name: &'static str,
    reach: fn(MemoryKind, bool) -> Reach,
    atomics: ByLane,
}

const MAPPED: Reach = Reach::Mapped { descriptor: true };

/// GPUs of one host, by mapping; no atomics that CPUs take part in.
const NVLINK: StandIn = StandIn {
    name: "nvlink",
    reach: |kind, same_host| match (kind, same_host) {
        (MemoryKind::Cuda, true) => MAPPED,
        (MemoryKind::Cuda, false) => Reach::None("another NVLink domain".into()),
        _ => Reach::None("host memory is not a GPU's".into()),
    },
    atomics: ByLane::No,
};
const LOOPBACK: StandIn = StandIn {
    name: "loopback",
    reach: |kind, same_host| match (kind, same_host) {
        (MemoryKind::Host, true) => MAPPED,
        (MemoryKind::Host, false) => Reach::None("another host".into()),
        _ => Reach::None("GPU memory is not the CPU's".into()),
    },
    atomics: ByLane::Itself,
};
/// Everything everywhere, by the NIC, whose atomics are its own.
const VERBS: StandIn = StandIn {
    name: "verbs",
    reach: |_, _| Reach::Remote,
    atomics: ByLane::No,
};
/// Maps host memory by a bridge that carries no atomics.
const BRIDGE: StandIn = StandIn {
    name: "bridge",
    reach: |kind, _| match kind {
        MemoryKind::Host => MAPPED,
        _ => Reach::None("host memory only".into()),
    },
    atomics: ByLane::No,
};

fn candidates(
    transports: &[StandIn],
    kind: MemoryKind,
    same_host: bool,
) -> Vec<Candidate<'static>> {
    (0..)
        .zip(transports)
        .map(|(index, transport)| Candidate {
            name: transport.name,
            standing: Ok(index),
            reach: (transport.reach)(kind, same_host),
            atomics: transport.atomics,
            remark: None,
        })
        .collect()
}

/// As [`choose`] where every import succeeds.
fn paths<'a>(preference: Preference, from: &'a [Candidate<'a>]) -> (Chosen<'a>, Chosen<'a>) {
    choose(preference, from, |index| {
        Ok(match from[usize::from(index)].reach {
            Reach::Mapped { .. } => Imported::Mapped,
            _ => Imported::Lane,
        })
    })
}

fn words(chosen: &Chosen<'_>) -> Vec<String> {
    let answers = chosen.answers.iter();
    answers
        .map(|(name, why)| format!("{name}: {why}"))
        .collect()
}

#[test]
fn each_kind_of_memory_takes_the_best_that_reaches_it() {
    use MemoryKind::{Cuda, Host};
    let all = [NVLINK, LOOPBACK, VERBS];
    for (kind, same_host, copies, atomics) in [
        (Host, true, Path::Mapped(1), Path::Mapped(1)),
        (Host, false, Path::Lane(2), Path::None),
        (Cuda, true, Path::Mapped(0), Path::None),
        (Cuda, false, Path::Lane(2), Path::None),
    ] {
        let from = candidates(&all, kind, same_host);
        let (puts, adds) = paths(Preference::Nearest, &from);
        assert_eq!(
            (puts.path, adds.path),
            (copies, atomics),
            "{kind} {same_host}"
        );
    }
}

#[test]
fn m29_atomics_take_another_transport_than_puts_where_the_first_lacks_those_of_a_cpu() {
    let from = candidates(&[BRIDGE, LOOPBACK, VERBS], MemoryKind::Host, true);
    let (puts, adds) = paths(Preference::Nearest, &from);
    assert_eq!((puts.path, adds.path), (Path::Mapped(0), Path::Mapped(1)));
    assert_eq!(words(&puts), ["bridge: chosen: load/store mapped"]);
    let refused =
        "bridge: its atomics are not exclusive against those of CPUs on the same word (M29)";
    assert_eq!(
        words(&adds),
        [refused, "loopback: chosen: load/store mapped"]
    );
}

#[test]
fn every_refusal_is_kept_with_its_reason() {
    let mut from = candidates(&[NVLINK, LOOPBACK, VERBS], MemoryKind::Host, false);
    from[0].standing = Err("no driver".into());
    let (puts, adds) = paths(Preference::Nearest, &from);
    let common = ["nvlink: no driver", "loopback: another host"];
    assert_eq!(
        words(&puts),
        [&common[..], &["verbs: chosen: lane"]].concat()
    );
    assert_eq!(adds.path, Path::None);
    assert_eq!(words(&adds)[..2], common);
    assert!(words(&adds)[2].contains("M29"));
}

#[test]
fn m29_atomics_take_a_message_where_no_lane_does_them_as_a_cpu() {
    let messages = |stand_in| StandIn {
        atomics: ByLane::Messages,
        ..stand_in
    };
    let from = candidates(&[LOOPBACK, messages(VERBS)], MemoryKind::Host, false);
    let (puts, adds) = paths(Preference::Nearest, &from);
    assert_eq!((puts.path, adds.path), (Path::Lane(1), Path::Message(1)));
    assert_eq!(
        words(&adds),
        ["loopback: another host", "verbs: chosen: active messages"]
    );
    let from = candidates(&[LOOPBACK, messages(VERBS)], MemoryKind::Host, true);
    assert_eq!(paths(Preference::Nearest, &from).1.path, Path::Mapped(0));
    // A mapping is no reason to use a CPU's instructions where the transport's atomics are no CPU's.
    let from = candidates(&[messages(BRIDGE)], MemoryKind::Host, true);
    let (puts, adds) = paths(Preference::Nearest, &from);
    assert_eq!((puts.path, adds.path), (Path::Mapped(0), Path::Message(0)));
}

#[test]
fn what_cannot_be_imported_gives_way_to_the_next() {
    let from = candidates(&[LOOPBACK, VERBS], MemoryKind::Host, true);
    let mut asked = Vec::new();
    let (puts, adds) = choose(Preference::Nearest, &from, |index| {
        asked.push(index);
        match index {
            0 => Err("no descriptor came".into()),
            _ => Ok(Imported::Lane),
        }
    });
    assert_eq!((puts.path, adds.path), (Path::Lane(1), Path::None));
    assert_eq!(
        words(&puts),
        ["loopback: no descriptor came", "verbs: chosen: lane"]
    );
    // Once each, though atomics ask too.
    assert_eq!(asked, [0, 1]);
}

#[test]
fn the_order_that_a_user_gives_goes_before_nearness() {
    let from = candidates(&[VERBS, LOOPBACK], MemoryKind::Host, true);
    assert_eq!(paths(Preference::AsGiven, &from).0.path, Path::Lane(0));
    let (puts, _) = paths(Preference::Nearest, &from);
    assert_eq!(puts.path, Path::Mapped(1));
}

#[test]
fn a_rule_refuses_the_same_to_both_ends() {
    let rules = Rules::parse("local=^loopback, 4-5=verbs, remote=nvlink, far=verbs").unwrap();
    let pair = |pes, hosts| Pair { pes, hosts };
    let refused = |pair, transport| rules.refuse(pair, transport);
    let near = pair([0, 1], ["a", "a"]);
    let say = |rule: &str| Some(format!("OXSHMEM_ROUTE says {rule}"));
    assert_eq!(refused(near, "loopback"), say("local=^loopback"));
    assert_eq!(refused(near, "verbs"), None);
    for pes in [[0, 5], [5, 0]] {
        // The first that names one holds.
        let pair = pair(pes, ["a", "b"]);
        assert_eq!(refused(pair, "nvlink"), say("4-5=verbs"));
        assert_eq!(refused(pair, "verbs"), None);
    }
    assert_eq!(
        refused(pair([0, 1], ["a", "far"]), "verbs"),
        say("remote=nvlink")
    );
}

#[test]
fn a_host_whose_id_reads_as_something_else_is_named_with_its_prefix() {
    let text = "host:7=verbs,7=^verbs,host:local=verbs,host:1-2=verbs,far=verbs,host:host:a=verbs";
    let rules = Rules::parse(text).unwrap();
    assert_eq!(rules.to_string(), text);
    let hosts = ["7", "local", "1-2", "far", "host:a", "a", "a", "a"];
    assert_eq!(rules.check(&["verbs"], &hosts), Ok(()));
    let pair = |pes, hosts| Pair { pes, hosts };
    let refuse = |pair| rules.refuse(pair, "loopback");
    assert!(
        refuse(pair([0, 5], ["7", "a"]))
            .unwrap()
            .ends_with("host:7=verbs")
    );
    assert_eq!(refuse(pair([5, 7], ["a", "a"])), None);
    assert!(Rules::parse("host:=verbs").is_err());
    let plain = Rules::parse("host:far=verbs").unwrap();
    assert_eq!(plain.to_string(), "far=verbs");
}

#[test]
fn rules_about_what_there_is_not_say_what_there_is() {
    let check = |text: &str| {
        let rules = Rules::parse(text)?;
        rules.check(&["loopback", "verbs"], &["a", "a", "b"])
    };
    assert_eq!(check("local=loopback,b=verbs,0-2=^verbs"), Ok(()));
    for (text, words) in [
        (
            "local=nvlink",
            "no transport \"nvlink\" among [\"loopback\", \"verbs\"]",
        ),
        ("2-3=verbs", "no PE 3; this job's are 0 to 2"),
        ("host:2=verbs", "there is no host \"2\""),
        ("c=verbs", "no host \"c\"; there are [\"a\", \"b\"]"),
        ("local", "has no ="),
        ("=verbs", "lacks a side"),
        ("local=^", "lacks a side"),
        ("3-1=verbs", "backwards"),
    ] {
        let why = check(text).unwrap_err();
        assert!(why.contains(words), "{text}: {why}");
    }
}

#[test]
fn the_facts_about_a_lanes_device_are_told_with_the_choice() {
    let mut from = candidates(&[VERBS], MemoryKind::Host, false);
    from[0].remark = Some("its NIC places writes in order".into());
    let (copies, _) = paths(Preference::Nearest, &from);
    assert!(
        words(&copies)
            .iter()
            .any(|answer| answer.contains("chosen: lane; its NIC places writes in order")),
        "{:?}",
        words(&copies)
    );
}
