//! The page `docs/memory-model.md`: its figures are programs of the library, its outcomes those of
//! the model, its table of inserted orders that of the code.

#![expect(
    clippy::panic,
    reason = "a page that cannot be read fails the test that reads it"
)]

use std::collections::BTreeSet;

use oxshmem::FenceSite;
use oxshmem_litmus::library::library;
use oxshmem_litmus::{MemoryModel, Program, model};

const DOC: &str = include_str!("../../../docs/memory-model.md");

/// One fenced block.
#[derive(Debug)]
struct Figure {
    name: String,
    /// By column: a PE's number and its statements.
    columns: Vec<(usize, Vec<String>)>,
    /// Sets that the page calls complete, for these models.
    complete: Vec<(Vec<MemoryModel>, BTreeSet<String>)>,
    /// Lines of the litmus format.
    expectations: Vec<String>,
}

fn figures(text: &str) -> Vec<Figure> {
    let mut figures = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line == "```litmus" {
            let body: Vec<_> = lines.by_ref().take_while(|line| *line != "```").collect();
            figures.push(figure(&body));
        }
    }
    figures
}

fn figure(body: &[&str]) -> Figure {
    let [name, heads, rows @ ..] = body else {
        panic!("a figure has a name and PEs: {body:?}")
    };
    let cells = |row: &str| -> Vec<String> {
        let words = |cell: &str| cell.split_whitespace().collect::<Vec<_>>().join(" ");
        row.split('|').map(words).collect()
    };
    let number = |head: &String| -> usize {
        let number = head.strip_prefix("PE ").and_then(|n| n.parse().ok());
        number.unwrap_or_else(|| panic!("{name}: {head:?} is no PE"))
    };
    let mut figure = Figure {
        name: (*name).into(),
        columns: cells(heads)
            .iter()
            .map(|head| (number(head), vec![]))
            .collect(),
        complete: Vec::new(),
        expectations: Vec::new(),
    };
    for row in rows {
        if row.starts_with("expect ") {
            figure.expectations.push((*row).into());
        } else if let Some((head, set)) = row.split_once(':') {
            let models = match head {
                "all outcomes" => MemoryModel::ALL.to_vec(),
                "all outcomes, ordered" => vec![MemoryModel::Ordered],
                "all outcomes, relaxed" => vec![MemoryModel::Relaxed],
                _ => panic!("{name}: {row:?} says nothing that can be checked"),
            };
            let set = set.split(',').map(|outcome| outcome.trim().to_owned());
            figure.complete.push((models, set.collect()));
        } else {
            let row = cells(row);
            assert!(row.len() <= figure.columns.len(), "{name}: {row:?}");
            for ((_, statements), cell) in figure.columns.iter_mut().zip(row) {
                if !cell.is_empty() {
                    statements.push(cell);
                }
            }
        }
    }
    figure
}

fn source(name: &str) -> &'static str {
    let found = library().iter().find(|(known, _)| *known == name);
    found.unwrap_or_else(|| panic!("no program {name}")).1
}

#[test]
fn the_figures_are_programs_of_the_library() {
    let figures = figures(DOC);
    assert!(figures.len() >= 8, "{} figures", figures.len());
    for figure in figures {
        let program = Program::parse(source(&figure.name)).unwrap();
        for pe in 0..program.pes() {
            let statements = program.statements(pe).iter();
            let statements: Vec<_> = statements.map(|s| program.statement_text(s)).collect();
            let column = figure.columns.iter().find(|(of, _)| *of == pe);
            let drawn = column.map_or(&[][..], |(_, drawn)| drawn);
            assert_eq!(drawn, statements, "{}, PE {pe}", figure.name);
        }
        let last = figure.columns.iter().map(|(pe, _)| *pe).max();
        assert!(last < Some(program.pes()), "{}: {last:?}", figure.name);
    }
}

#[test]
fn the_figures_outcomes_are_those_of_the_model() {
    for figure in figures(DOC) {
        let (first, rest) = source(&figure.name).split_once('\n').unwrap();
        let text = format!("{first}\n{}\n{rest}", figure.expectations.join("\n"));
        let program = Program::parse(&text).unwrap();
        for memory_model in MemoryModel::ALL {
            let outcomes = model::outcomes(&program, memory_model).unwrap();
            let found: BTreeSet<_> = outcomes.iter().map(ToString::to_string).collect();
            let unmet = outcomes.unmet();
            assert!(
                unmet.is_empty(),
                "{}, {memory_model}: {unmet:?} of {found:?}",
                figure.name
            );
            let mut said = !figure.expectations.is_empty();
            for (_, set) in (figure.complete.iter()).filter(|(m, _)| m.contains(&memory_model)) {
                assert_eq!(*set, found, "{}, {memory_model}", figure.name);
                said = true;
            }
            assert!(said, "{}: nothing about {memory_model}", figure.name);
        }
    }
}

#[test]
fn every_program_that_is_named_exists() {
    let names: Vec<_> = DOC.split("`litmus ").skip(1).collect();
    assert!(!names.is_empty());
    for rest in names {
        let (name, _) = rest.split_once('`').unwrap();
        source(name);
    }
}

#[test]
fn every_inserted_order_is_in_the_table() {
    let rows = DOC.lines().filter_map(|line| line.strip_prefix("| `"));
    let names: BTreeSet<_> = rows.filter_map(|row| row.split('`').next()).collect();
    for inserted in FenceSite::ALL {
        let name = format!("{inserted:?}");
        assert!(names.contains(name.as_str()), "{name} is not described");
    }
}
