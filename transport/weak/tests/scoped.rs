//! The simulated memory with scopes: what it shows and what it forbids, by small programs of which all executions are made.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use oxshmem_weak::{Access, Agent, Place, Scope, Scoped, Word};

/// One step of an agent.
#[derive(Clone, Copy)]
enum Step {
    Store(usize, u64, Access),
    /// The value goes to the outcome.
    Load(usize, Access),
    Add(usize, Access),
    Fence(Scope),
    Sequential(Scope),
}
use Step::{Add, Fence, Load, Sequential, Store};

const WEAK: Access = Access::WEAK;

fn relaxed() -> Access {
    Access::relaxed(Scope::System)
}

/// Threads of GPU 0, in this block.
fn block(block: usize) -> Place {
    Place::Thread { gpu: 0, block }
}

fn gpu(gpu: usize) -> Place {
    Place::Thread { gpu, block: 0 }
}

/// All outcomes: each agent's loaded values.
fn outcomes(agents: &[(Place, &[Step])]) -> BTreeSet<Vec<Vec<u64>>> {
    let mut memory = Scoped::new();
    (0..2).for_each(|_| _ = memory.word(0, false));
    let known: Vec<Agent> = agents
        .iter()
        .map(|(place, _)| memory.agent(*place))
        .collect();
    let mut found = BTreeSet::new();
    let mut open = vec![(
        memory,
        vec![0; agents.len()],
        vec![Vec::new(); agents.len()],
    )];
    while let Some((memory, at, seen)) = open.pop() {
        let mut is_over = true;
        for (number, (_, steps)) in agents.iter().enumerate() {
            let Some(step) = steps.get(at[number]) else {
                continue;
            };
            is_over = false;
            let agent = known[number];
            let choices = match *step {
                Store(word, _, access) | Add(word, access) => {
                    memory.stores(agent, Word(word), access)
                }
                Load(word, _) => memory.loads(agent, Word(word)),
                Fence(_) | Sequential(_) => 1,
            };
            for back in 0..choices {
                let (mut memory, mut at, mut seen) = (memory.clone(), at.clone(), seen.clone());
                match *step {
                    Store(word, value, access) => {
                        memory.store(agent, Word(word), value, access, back)
                    }
                    Load(word, access) => {
                        seen[number].push(memory.load(agent, Word(word), access, back))
                    }
                    Add(word, access) => {
                        seen[number].push(memory.update(
                            (agent, Word(word)),
                            access,
                            back,
                            |old| Some(old + 1),
                        ));
                    }
                    Fence(scope) => memory.fence(agent, scope),
                    Sequential(scope) => memory.sequential_fence(agent, scope),
                }
                at[number] += 1;
                open.push((memory, at, seen));
            }
        }
        if is_over {
            found.insert(seen);
        }
    }
    found
}

/// Whether data that was stored before a flag may be missed behind it.
fn misses(writer: Place, store: &[Step], reader: Place, load: &[Step]) -> bool {
    let ends = outcomes(&[(writer, store), (reader, load)]);
    ends.iter().any(|seen| seen[1] == [1, 0])
}

#[test]
fn a_flag_orders_data_by_a_release_and_an_acquire_alone() {
    let stores = |flag: Access| [Store(0, 1, WEAK), Store(1, 1, flag)];
    let loads = |flag: Access| [Load(1, flag), Load(0, WEAK)];
    let (release, acquire) = (relaxed().release(), relaxed().acquire());
    assert!(misses(gpu(0), &stores(relaxed()), gpu(1), &loads(acquire)));
    assert!(misses(gpu(0), &stores(release), gpu(1), &loads(relaxed())));
    assert!(misses(gpu(0), &stores(WEAK), gpu(1), &loads(acquire)));
    assert!(!misses(gpu(0), &stores(release), gpu(1), &loads(acquire)));
    assert!(!misses(
        gpu(0),
        &stores(release),
        Place::Outside,
        &loads(acquire)
    ));
}

#[test]
fn fences_are_as_good() {
    let stores = |scope| [Store(0, 1, WEAK), Fence(scope), Store(1, 1, relaxed())];
    let loads = |scope| [Load(1, relaxed()), Fence(scope), Load(0, WEAK)];
    assert!(!misses(
        gpu(0),
        &stores(Scope::System),
        gpu(1),
        &loads(Scope::System)
    ));
    assert!(misses(
        gpu(0),
        &stores(Scope::Gpu),
        gpu(1),
        &loads(Scope::System)
    ));
    assert!(misses(
        gpu(0),
        &stores(Scope::System),
        gpu(1),
        &loads(Scope::Gpu)
    ));
    // A weak store behind a fence is no release.
    let weak = [Store(0, 1, WEAK), Fence(Scope::System), Store(1, 1, WEAK)];
    assert!(misses(gpu(0), &weak, gpu(1), &loads(Scope::System)));
}

#[test]
fn scopes_include_the_other_agent_or_order_nothing() {
    let stores = |scope| {
        [
            Store(0, 1, WEAK),
            Store(1, 1, Access::relaxed(scope).release()),
        ]
    };
    let loads = |scope| [Load(1, Access::relaxed(scope).acquire()), Load(0, WEAK)];
    for (writer, reader, needed) in [
        (block(0), block(0), Scope::Block),
        (block(0), block(1), Scope::Gpu),
        (gpu(0), gpu(1), Scope::System),
        (gpu(0), Place::Outside, Scope::System),
    ] {
        for released in [Scope::Block, Scope::Gpu, Scope::System] {
            for acquired in [Scope::Block, Scope::Gpu, Scope::System] {
                let missed = misses(writer, &stores(released), reader, &loads(acquired));
                assert_eq!(
                    missed,
                    released < needed || acquired < needed,
                    "{writer:?} {reader:?} {released:?} {acquired:?}"
                );
            }
        }
    }
}

#[test]
fn strong_loads_of_one_word_do_not_go_back_and_weak_ones_may() {
    let again = |access| {
        let ends = outcomes(&[
            (gpu(0), &[Store(0, 1, relaxed())]),
            (gpu(1), &[Load(0, access), Load(0, access)]),
        ]);
        ends.contains(&vec![vec![], vec![1, 0]])
    };
    assert!(!again(relaxed()));
    assert!(again(Access::relaxed(Scope::Gpu)));
    assert!(again(WEAK));
}

#[test]
fn store_buffering_needs_sequential_fences_of_the_system() {
    let both = |fence: Step| {
        let one = [Store(0, 1, relaxed()), fence, Load(1, relaxed())];
        let other = [Store(1, 1, relaxed()), fence, Load(0, relaxed())];
        outcomes(&[(gpu(0), &one), (gpu(1), &other)]).contains(&vec![vec![0], vec![0]])
    };
    assert!(both(Fence(Scope::System)));
    assert!(both(Sequential(Scope::Gpu)));
    assert!(!both(Sequential(Scope::System)));
}

#[test]
fn readers_need_not_agree_but_for_sequential_fences() {
    let disagree = |fence: Step| {
        let reader = |first, second| {
            [
                Load(first, relaxed().acquire()),
                fence,
                Load(second, relaxed().acquire()),
            ]
        };
        let stores = [[Store(0, 1, relaxed())], [Store(1, 1, relaxed())]];
        let (one, other) = (reader(0, 1), reader(1, 0));
        let agents: [(Place, &[Step]); 4] = [
            (gpu(0), &stores[0]),
            (gpu(1), &stores[1]),
            (gpu(2), &one),
            (gpu(3), &other),
        ];
        outcomes(&agents).contains(&vec![vec![], vec![], vec![1, 0], vec![1, 0]])
    };
    assert!(disagree(Fence(Scope::System)));
    assert!(!disagree(Sequential(Scope::System)));
}

#[test]
fn read_modify_writes_are_exclusive_within_their_scopes() {
    let lost = |other: Place, scope| {
        let add = [Add(0, Access::relaxed(scope))];
        outcomes(&[(gpu(0), &add), (other, &add)]).contains(&vec![vec![0], vec![0]])
    };
    assert!(!lost(gpu(1), Scope::System));
    assert!(lost(gpu(1), Scope::Gpu));
    assert!(!lost(block(1), Scope::Gpu));
    assert!(lost(block(1), Scope::Block));
}

#[test]
fn read_modify_writes_hand_on_what_was_released() {
    let add = [Add(1, relaxed())];
    let stores = [Store(0, 1, WEAK), Store(1, 1, relaxed().release())];
    let loads = [Load(1, relaxed().acquire()), Load(0, WEAK)];
    let ends = outcomes(&[(gpu(0), &stores), (gpu(1), &add), (gpu(2), &loads)]);
    assert!(ends.contains(&vec![vec![], vec![1], vec![2, 1]]));
    assert!(!ends.contains(&vec![vec![], vec![1], vec![2, 0]]));
}

#[test]
fn a_meeting_orders_and_is_cumulative() {
    let mut memory = Scoped::new();
    let (data, flag) = (memory.word(0, false), memory.word(0, false));
    let [one, other] = [block(0), block(0)].map(|place| memory.agent(place));
    let far = memory.agent(gpu(1));
    memory.store(one, data, 1, WEAK, 0);
    assert_eq!(memory.loads(other, data), 2);
    memory.meet(&[one, other]);
    assert_eq!(memory.loads(other, data), 1);
    memory.store(other, flag, 1, relaxed().release(), 0);
    assert_eq!(memory.loads(far, data), 2);
    memory.load(far, flag, relaxed().acquire(), 0);
    assert_eq!(memory.loads(far, data), 1);
}

#[test]
fn a_late_nic_is_seen_after_a_flush() {
    let mut memory = Scoped::new();
    let (data, flag) = (memory.word(0, false), memory.word(0, false));
    let nic = memory.late_nic(0);
    let [thread, host] = [gpu(0), Place::Outside].map(|place| memory.agent(place));
    memory.store(nic, data, 1, relaxed().release(), 0);
    memory.store(nic, flag, 1, relaxed().release(), 0);
    memory.load(thread, flag, relaxed().acquire(), 0);
    memory.complete(nic, host);
    memory.inform(host, thread);
    assert_eq!(memory.loads(thread, data), 2);
    memory.flush(host, 0);
    memory.inform(host, thread);
    assert_eq!(memory.loads(thread, data), 1);
}

#[test]
fn an_unordered_store_behind_a_load_is_a_hazard_in_guarded_words() {
    for is_ordered in [false, true] {
        let mut memory = Scoped::new();
        let (data, flag) = (memory.word(0, true), memory.word(0, false));
        let [reader, writer] = [gpu(0), gpu(1)].map(|place| memory.agent(place));
        memory.load(reader, data, WEAK, 0);
        let access = if is_ordered {
            relaxed().release()
        } else {
            relaxed()
        };
        memory.store(reader, flag, 1, access, 0);
        memory.load(writer, flag, relaxed().acquire(), 0);
        memory.store(writer, data, 1, WEAK, 0);
        assert_eq!(memory.hazards().is_empty(), is_ordered);
    }
}

#[test]
fn equal_memories_have_equal_fingerprints() {
    let make = |value| {
        let mut memory = Scoped::new();
        let word = memory.word(0, false);
        let agent = memory.agent(gpu(0));
        memory.store(agent, word, value, relaxed(), 0);
        memory.fingerprint()
    };
    assert_eq!(make(1), make(1));
    assert_ne!(make(1), make(2));
}
