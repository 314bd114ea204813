//! Prints the outcomes that the model allows for a litmus file, and an execution that leads to
//! each.

use std::error::Error;

use oxshmem_litmus::{Program, model};

fn main() -> Result<(), Box<dyn Error>> {
    for path in std::env::args_os().skip(1) {
        let program = Program::parse(&std::fs::read_to_string(path)?)?;
        for &memory_model in program.models() {
            let outcomes = model::outcomes(&program, memory_model)?;
            let (count, states) = (outcomes.len(), outcomes.states());
            println!(
                "{}, {memory_model}: {count} outcomes, {states} states",
                program.name()
            );
            for outcome in outcomes.iter() {
                println!("  {outcome}");
                for step in outcomes.witness(outcome).unwrap_or_default() {
                    println!("    {step}");
                }
            }
        }
    }
    Ok(())
}
