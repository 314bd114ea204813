//! Every program over weak: no forbidden outcome, and every allowed one.

mod two_at_once;

use oxshmem_litmus::directed::{Search, search};
use oxshmem_litmus::{Program, library, machines, model};
use two_at_once::two_at_once;

#[test]
fn exactly_what_is_allowed_happens_over_weak() {
    let mut all = Vec::new();
    for (name, text) in library::library() {
        let program = Program::parse(text).unwrap();
        all.extend(program.models().iter().map(|model| (name, text, *model)));
    }
    two_at_once(all, |(name, text, model)| {
        let program = Program::parse(text).unwrap();
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
    });
}
