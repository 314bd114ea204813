//! Every program over weak: nothing that the model forbids, and everything that it allows.

use oxshmem_litmus::directed::{Search, search};
use oxshmem_litmus::{Program, library, machines, model};

#[test]
fn exactly_what_is_allowed_happens_over_weak() {
    for (name, text) in library::library() {
        let program = Program::parse(text).unwrap();
        for &model in program.models() {
            let outcomes = model::outcomes(&program, model).unwrap();
            let machines = machines::weak(program.pes(), model);
            let how = Search {
                seed: 1,
                least: 30,
                most: 3000,
            };
            let report = search(&machines, &program, &outcomes, how).unwrap();
            println!("{report}");
            assert!(report.is_clean(), "{name}: {report}");
            assert!(report.is_complete(), "{name}: {report}");
        }
    }
}
