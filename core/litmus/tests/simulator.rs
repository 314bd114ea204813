//! Every program over the simulated weak CPU: nothing that the model forbids.

use oxshmem::World;
use oxshmem_litmus::directed::{Machine, Search, search};
use oxshmem_litmus::{Program, library, model};
use oxshmem_weak::{Scheduler, Simulator};
use std::sync::Arc;

fn machine(pes: usize, model: oxshmem_litmus::MemoryModel) -> Machine {
    let scheduler = Scheduler::new(pes);
    let machine = oxshmem_weak::Machine::new(pes as u32, Arc::clone(&scheduler) as _);
    scheduler.attach(Arc::downgrade(&machine) as _);
    let schedules = Arc::clone(&scheduler);
    let simulator = Simulator::new(machine).scheduled(move |pe| schedules.schedule(pe));
    let builder = World::builder()
        .model(model.into())
        .heap_limit(1 << 20)
        .transports(vec![Arc::new(simulator)]);
    Machine { scheduler, builder }
}

#[test]
fn nothing_forbidden_happens_on_a_simulated_cpu() {
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
                most: 300,
            };
            let begun = std::time::Instant::now();
            let report = search(&machine, &program, &outcomes, how).unwrap();
            println!("{} {:?}", report, begun.elapsed());
        }
    }
}
