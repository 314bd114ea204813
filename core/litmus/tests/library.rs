//! The programs of `core/litmus/programs`: complete, printable, free of deadlocks, and as their
//! texts expect.

use std::collections::BTreeSet;

use oxshmem_litmus::{Outcome, Pattern, Program, Verdict, library::library, model};

fn programs() -> Result<Vec<Program>, String> {
    let parsed = |&(name, text): &(&str, &str)| {
        Program::parse(text).map_err(|error| format!("{name}.litmus: {error}"))
    };
    library().iter().map(parsed).collect()
}

#[test]
fn the_list_is_the_folder() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/programs");
    let files = std::fs::read_dir(folder).unwrap();
    let files = files.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let files: BTreeSet<_> = files
        .filter_map(|file| file.strip_suffix(".litmus").map(str::to_string))
        .collect();
    let listed = library().iter().map(|(name, _)| name.to_string());
    assert_eq!(files, listed.collect());
}

#[test]
fn each_is_named_as_its_file_and_says_what_it_shows() {
    for ((file, _), program) in library().iter().zip(programs().unwrap()) {
        assert_eq!(program.name(), *file);
        assert!(!program.about().is_empty(), "{file}: no `about`");
        assert!(!program.rules().is_empty(), "{file}: no `rules`");
        assert!(!program.expectations().is_empty(), "{file}: no `expect`");
    }
}

#[test]
fn each_prints_back_to_itself() {
    for program in programs().unwrap() {
        let text = program.to_string();
        assert_eq!(Program::parse(&text), Ok(program), "{text}");
    }
}

#[test]
fn each_meets_its_expectations_and_ends() {
    for program in programs().unwrap() {
        for &memory_model in program.models() {
            let outcomes = model::outcomes(&program, memory_model).unwrap();
            let name = program.name();
            println!(
                "{name:24} {memory_model}: {} outcomes, {} states",
                outcomes.len(),
                outcomes.states()
            );
            let unmet = outcomes.unmet();
            let found: Vec<_> = outcomes.iter().map(ToString::to_string).collect();
            assert!(
                unmet.is_empty(),
                "{name}, {memory_model}: {} does not hold for {found:?}",
                unmet[0]
            );
            let expected = program
                .expectations()
                .iter()
                .any(|e| e.pattern == Pattern::Deadlock && e.verdict == Verdict::Allowed);
            let stuck = outcomes.witness(&Outcome::Deadlock);
            assert!(
                expected || stuck.is_none(),
                "{name} can get stuck: {stuck:#?}"
            );
        }
    }
}
