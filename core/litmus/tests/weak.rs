//! Every program over weak(loopback): nothing that the model forbids, and everything that it allows.

use std::sync::Arc;

use oxshmem::World;
use oxshmem_litmus::directed::{Machine, Search, search};
use oxshmem_litmus::{MemoryModel, Program, library, model};
use oxshmem_weak::{Scheduler, Settings, Weak};

fn machine(pes: usize, model: MemoryModel) -> Machine {
    let scheduler = Scheduler::new(pes);
    let loopback = oxshmem::registry::built_in().remove(0);
    let weak = Weak::scheduled(loopback, Settings::worst(0), &scheduler);
    let builder = World::builder()
        .model(model.into())
        .heap_limit(1 << 20)
        .transports(vec![Arc::new(weak)]);
    Machine { scheduler, builder }
}

#[test]
fn exactly_what_is_allowed_happens_over_weak_lanes() {
    let only = std::env::var("LITMUS").ok();
    for (name, text) in library::library() {
        if only.as_ref().is_some_and(|only| only != name) {
            continue;
        }
        let program = Program::parse(text).unwrap();
        for &model in program.models() {
            let outcomes = model::outcomes(&program, model).unwrap();
            let machine = machine(program.pes(), model);
            let how = Search {
                seed: 1,
                least: 50,
                most: 1000,
            };
            let begun = std::time::Instant::now();
            let report = search(&machine, &program, &outcomes, how).unwrap();
            println!("{} {:?}", report, begun.elapsed());
        }
    }
}
