//! The model against other computations of the same outcomes, on random programs.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::events::Set;
use crate::outcome::Outcome;
use crate::program::Statement;

/// Random statements of one PE, from templates: `%` is a fresh register, `#` a fresh value.
fn statements(templates: &'static [&'static str]) -> impl Strategy<Value = Vec<&'static str>> {
    proptest::collection::vec(proptest::sample::select(templates), 0..5)
}

/// The text of a program with these statements; `between` comes after each of them.
fn text(pes: &[Vec<&str>], between: &str) -> String {
    let (mut register, mut value) = (0, 0);
    let mut text = String::from("name random\nvars x y\nobserve x@0 y@1\n");
    for (pe, statements) in pes.iter().enumerate() {
        text += &format!("PE {pe}:\n");
        for template in statements {
            for c in template.chars() {
                match c {
                    '%' => {
                        text += &format!("r{register}");
                        register += 1;
                    }
                    '#' => {
                        value += 1;
                        text += &value.to_string();
                    }
                    c => text.push(c),
                }
            }
            text += &format!("\n{between}\n");
        }
    }
    text
}

const SIMPLE: &[&str] = &[
    "put x@0 #",
    "put y@1 #",
    "set x@0 #",
    "add y@1 #",
    "% = get x@0",
    "% = get y@1",
    "% = fetch_add x@0 #",
    "% = swap y@1 #",
    "% = compare_swap x@0 0 #",
];

const ANY: &[&str] = &[
    "put x@0 #",
    "put y@1 #",
    "put_nbi x@0 #",
    "put_signal x@0 # then set y #",
    "put_signal_nbi y@1 # then add x #",
    "add x@0 #",
    "ctx1 put x@0 #",
    "ctx1 set y@1 #",
    "write x #",
    "% = read x",
    "% = get x@0",
    "% = get y@1",
    "% = get_nbi x@0",
    "% = ctx1 get x@0",
    "% = fetch y@1",
    "% = fetch_add x@0 #",
    "% = fetch_add_nbi y@1 #",
    "% = test x == 1",
    "wait_until x >= 1",
    "fence",
    "ctx1 fence",
    "quiet",
    "ctx1 quiet",
    "pe_quiet 0",
];

fn all(machine: Machine<'_>, model: MemoryModel) -> Option<BTreeSet<Outcome>> {
    let outcomes = explore(machine, model, STATES).ok()?;
    Some(outcomes.iter().cloned().collect())
}

fn allowed(text: &str, model: MemoryModel) -> Option<BTreeSet<Outcome>> {
    all(Machine::of(&Program::parse(text).ok()?, model), model)
}

/// The outcomes of every interleaving of the PEs' statements, each performed at once.
fn interleavings(program: &Program) -> BTreeSet<Outcome> {
    let registers = program.registers();
    let mut ends = BTreeSet::new();
    let start = (vec![0; program.pes()], [0; 2], vec![0; registers.len()]);
    let mut seen = HashSet::from([start.clone()]);
    let mut left = vec![start];
    while let Some((at, memory, values)) = left.pop() {
        let mut ended = true;
        for pe in 0..program.pes() {
            let Some(statement) = program.statements(pe).get(at[pe]) else {
                continue;
            };
            ended = false;
            let (mut at, mut memory, mut values) = (at.clone(), memory, values.clone());
            at[pe] += 1;
            let mut note = |register, value| {
                values[registers.iter().position(|r| *r == register).unwrap()] = value;
            };
            match statement {
                Statement::Put { to, values, .. } => memory[to.words.variable] = values[0],
                Statement::Update {
                    update, at, value, ..
                } => {
                    let word = &mut memory[at.words.variable];
                    *word = update.apply(*word, *value);
                }
                Statement::Get { into, from, .. } => note(into[0], memory[from.words.variable]),
                Statement::Fetch {
                    into, fetching, at, ..
                } => {
                    let word = &mut memory[at.words.variable];
                    note(*into, *word);
                    *word = fetching.apply(*word);
                }
                Statement::Quiet { .. } => {}
                other => unreachable!("{other:?} is not among the simple ones"),
            }
            let next = (at, memory, values);
            if seen.insert(next.clone()) {
                left.push(next);
            }
        }
        if ended {
            ends.insert(program.outcome(&values, &memory));
        }
    }
    ends
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..Default::default() })]

    #[test]
    fn with_a_quiet_after_each_call_only_interleavings_are_left(
        pes in proptest::collection::vec(statements(SIMPLE), 2..=2)
    ) {
        let text = text(&pes, "quiet");
        let program = Program::parse(&text).unwrap();
        let expected = interleavings(&program);
        for model in MemoryModel::ALL {
            let found = allowed(&text, model).unwrap();
            prop_assert_eq!(&found, &expected, "{}", text);
        }
    }

    #[test]
    fn interleavings_are_always_allowed(
        pes in proptest::collection::vec(statements(SIMPLE), 2..=3)
    ) {
        let text = text(&pes, "");
        let expected = interleavings(&Program::parse(&text).unwrap());
        for model in MemoryModel::ALL {
            if let Some(found) = allowed(&text, model) {
                prop_assert!(found.is_superset(&expected), "{}", text);
            }
        }
    }

    #[test]
    fn what_is_ordered_is_allowed_when_relaxed(
        pes in proptest::collection::vec(statements(ANY), 2..=3)
    ) {
        let text = text(&pes, "");
        let ordered = allowed(&text, MemoryModel::Ordered);
        let relaxed = allowed(&text, MemoryModel::Relaxed);
        if let (Some(ordered), Some(relaxed)) = (ordered, relaxed) {
            prop_assert!(relaxed.is_superset(&ordered), "{}", text);
        }
    }

    #[test]
    fn a_fence_or_quiet_more_allows_nothing_more(
        pes in proptest::collection::vec(statements(ANY), 2..=2),
        more in proptest::sample::select(&["fence", "quiet", "ctx1 fence", "ctx1 quiet"][..]),
    ) {
        let (without, with) = (text(&pes, ""), text(&pes, more));
        for model in MemoryModel::ALL {
            if let (Some(without), Some(with)) = (allowed(&without, model), allowed(&with, model)) {
                prop_assert!(without.is_superset(&with), "{}", text(&pes, ""));
            }
        }
    }

    #[test]
    fn leaving_out_orders_that_make_no_difference_leaves_out_no_outcome(
        pes in proptest::collection::vec(statements(ANY), 2..=3)
    ) {
        let text = text(&pes, "");
        let program = Program::parse(&text).unwrap();
        for model in MemoryModel::ALL {
            let reduced = all(Machine::of(&program, model), model);
            let mut whole = Machine::of(&program, model);
            for event in &mut whole.events.all {
                event.conflicts = Set::MAX;
            }
            whole.events.readers.fill(Set::MAX);
            if let (Some(reduced), Some(whole)) = (reduced, all(whole, model)) {
                prop_assert_eq!(reduced, whole, "{}", text);
            }
        }
    }

    #[test]
    fn witnesses_have_every_step_once(
        pes in proptest::collection::vec(statements(ANY), 2..=2)
    ) {
        let program = Program::parse(&text(&pes, "")).unwrap();
        for model in MemoryModel::ALL {
            let outcomes = outcomes(&program, model).unwrap();
            for outcome in outcomes.iter() {
                let steps = outcomes.witness(outcome).unwrap();
                let events = outcomes.machine.events.all.len();
                match outcome {
                    Outcome::Ended(_) => prop_assert_eq!(steps.len(), events),
                    Outcome::Deadlock => prop_assert!(steps.len() < events),
                }
            }
        }
    }
}
