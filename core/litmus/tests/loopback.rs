//! Every program of the library over real loopback, PEs as threads: no outcome that the model
//! forbids.

use oxshmem::testing::spmd_with;
use oxshmem::{MemoryKind, World};
use oxshmem_litmus::free::Runs;
use oxshmem_litmus::{Outcome, Program, free, library, model};

fn runs(count: u64) -> Runs {
    Runs {
        count,
        seed: 7,
        memory: MemoryKind::Host,
    }
}

#[test]
fn nothing_forbidden_happens_between_threads() {
    for (name, text) in library::library() {
        let program = Program::parse(text).unwrap();
        for &model in program.models() {
            let outcomes = model::outcomes(&program, model).unwrap();
            if outcomes.allows(&Outcome::Deadlock) {
                continue;
            }
            let builder = World::builder().model(model.into()).heap_limit(1 << 20);
            let reports = spmd_with(builder, program.pes(), |world| {
                free::run(world, &program, &outcomes, runs(100))
            });
            let report = reports.unwrap().into_iter().flatten().next().unwrap();
            assert!(report.is_clean(), "{name}: {report}");
            assert_eq!(report.runs, 100);
        }
    }
}

#[test]
fn pes_that_a_program_does_not_have_take_part_in_its_collectives() {
    let collective = library::library().iter().filter_map(|(_, text)| {
        let program = Program::parse(text).unwrap();
        let all = program.statements(0).iter();
        (all.filter(|s| s.is_collective()).count() > 0).then_some(program)
    });
    let programs: Vec<Program> = collective.collect();
    assert!(programs.len() > 2);
    for program in programs {
        let model = program.models()[0];
        let outcomes = model::outcomes(&program, model).unwrap();
        let builder = World::builder().model(model.into()).heap_limit(1 << 20);
        let reports = spmd_with(builder, program.pes() + 2, |world| {
            free::run(world, &program, &outcomes, runs(20))
        });
        let report = reports.unwrap().into_iter().flatten().next().unwrap();
        assert!(report.is_clean(), "{report}");
    }
}
