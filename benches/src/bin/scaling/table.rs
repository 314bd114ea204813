//! The tables of docs/scaling.md.

use std::fmt::Write as _;

use crate::collective::Cost;
use crate::model::{Model, Reduce};
use crate::results::Results;
use crate::rows::Job;

pub fn markdown(results: &Results) -> String {
    let mut text = String::new();
    // A `String` accepts all text that is written.
    let _ = write_all(&mut text, results);
    text
}

fn write_all(text: &mut String, results: &Results) -> std::fmt::Result {
    writeln!(text, "### PEs as threads, {} CPUs\n", results.cpus)?;
    writeln!(
        text,
        "| PEs | start | allocated a PE | resident a PE | internals | threads | barrier, median (best) | switches | \
         all-reduce, likewise | switches |\n|---|---|---|---|---|---|---|---|---|---|"
    )?;
    for row in &results.threads {
        let start = time(row.start_s);
        line(text, row, &start, &bytes(row.each.allocated))?;
    }
    writeln!(text, "\n### PEs as processes, {} CPUs\n", results.cpus)?;
    writeln!(
        text,
        "| PEs | start; empty program | proportional a PE | resident a PE | internals | threads | barrier, median (best) | \
         switches | all-reduce, likewise | switches | descriptors |\n|---|---|---|---|---|---|---|---|---|---|---|"
    )?;
    for Both(row, empty_s) in results.processes.iter().map(|p| Both(&p.row, p.empty_s)) {
        let start = format!("{}; {}", time(row.start_s), time(empty_s));
        line(text, row, &start, &bytes(row.each.pss))?;
        // Directly after the cells that both have.
        text.truncate(text.trim_end().len());
        writeln!(text, " {:.0} |", row.each.descriptors)?;
    }
    writeln!(
        text,
        "\n### The rendezvous, by this host's TCP\n\n| connections | until all are there | barrier | \
         1 KiB of each to all | a question and its answer |\n|---|---|---|---|---|"
    )?;
    for row in &results.meetings {
        writeln!(
            text,
            "| {} | {} | {} | {} | {} |",
            row.pes,
            time(row.connect_s),
            time(row.barrier_s),
            time(row.gather_s),
            time(row.question_s)
        )?;
    }
    let (few, many) = &results.alone;
    writeln!(
        text,
        "\n### One PE among others that are stand-ins\n\n| PEs | hosts | its part of joining | allocated | \
         bytes given in each exchange |\n|---|---|---|---|---|"
    )?;
    for row in [few, many] {
        let given: Vec<String> = row.exchanges.iter().map(usize::to_string).collect();
        let (join, allocated) = (time(row.join_s), bytes(row.allocated));
        let (pes, hosts, given) = (row.pes, row.hosts, given.join(", "));
        writeln!(text, "| {pes} | {hosts} | {join} | {allocated} | {given} |")?;
    }
    match &results.model {
        Some(model) => modelled(text, model),
        None => Ok(()),
    }
}

struct Both<'a>(&'a Job, f64);

fn line(text: &mut String, row: &Job, start: &str, memory: &str) -> std::fmt::Result {
    let cost = |cost: Cost| format!("{} ({})", time(cost.seconds), time(cost.best));
    writeln!(
        text,
        "| {} | {start} | {memory} | {} | {} | {:.1} | {} | {:.1} | {} | {:.1} |",
        row.pes,
        bytes(row.each.rss),
        bytes(row.internals as f64),
        row.each.threads,
        cost(row.barrier),
        row.barrier.switches,
        cost(row.reduce),
        row.reduce.switches,
    )
}

fn modelled(text: &mut String, model: &Model) -> std::fmt::Result {
    let (start, memory) = (&model.start, &model.memory);
    writeln!(
        text,
        "\n### {} PEs on {} hosts\n\n| quantity | value | from |\n|---|---|---|",
        model.pes, model.hosts
    )?;
    let mut row =
        |what: &str, value: String, by: String| writeln!(text, "| {what} | {value} | {by} |");
    row(
        "the rendezvous sends",
        bytes(start.sent),
        format!(
            "{} of each PE; of all together, packed, {} to each",
            bytes(start.given as f64),
            bytes(start.told as f64)
        ),
    )?;
    row(
        "in that time",
        time(start.sending_s),
        "10 Gbit/s, assumed".into(),
    )?;
    row(
        "of its CPU, at most",
        time(start.passing_s),
        format!("{:.2} ns a byte, both ends here", start.byte_s * 1e9),
    )?;
    row(
        "a PE's own part of joining",
        time(start.join_s),
        "measured among stand-ins".into(),
    )?;
    row(
        "connecting queue pairs, until the first barrier is passed",
        time(start.connecting_s),
        format!(
            "{:.0} questions of {}",
            start.questions,
            time(start.question_s)
        ),
    )?;
    row(
        "a process",
        bytes(memory.base),
        "proportional, of the most measured above".into(),
    )?;
    row(
        "tables for all peers",
        bytes(memory.tables),
        format!("{:.0} bytes each", memory.each),
    )?;
    row(
        "queue pairs of a PE's barriers",
        format!("{} and as many of others", memory.pairs),
        "host-by-host signalling".into(),
    )?;
    for arrival in &model.barriers {
        row(
            &format!("barrier, {}", arrival.way),
            time(arrival.seconds),
            format!(
                "{} rounds between hosts, {} within; {} remote PEs signalled",
                arrival.far_rounds, arrival.near_rounds, arrival.told
            ),
        )?;
    }
    for reduce in &model.reduces {
        let Reduce {
            way,
            reads,
            seconds,
            questions,
            connecting_s,
        } = reduce;
        row(
            &format!("all-reduce of a word, {way}"),
            time(*seconds),
            by_reads(reads),
        )?;
        row(
            "connecting queue pairs in the first of those, at most",
            time(*connecting_s),
            format!("{questions:.0} questions of {}", time(start.question_s)),
        )?;
    }
    Ok(())
}

/// A PE's part of an all-reduce.
fn by_reads(reads: &[usize]) -> String {
    let step =
        |reads: &usize| format!("a barrier, and {reads} reads by each PE, in flight together");
    let steps: Vec<String> = reads.iter().map(step).collect();
    steps.join("; ")
}

fn time(seconds: f64) -> String {
    scaled(
        seconds,
        &[(1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")],
    )
}

fn bytes(bytes: f64) -> String {
    let (kib, mib, gib) = (1024.0, 1024.0 * 1024.0, 1024.0 * 1024.0 * 1024.0);
    scaled(
        bytes,
        &[(gib, "GiB"), (mib, "MiB"), (kib, "KiB"), (1.0, "B")],
    )
}

/// The value in the greatest unit that it reaches, with three digits.
fn scaled(value: f64, units: &[(f64, &str)]) -> String {
    let reached = units.iter().find(|(unit, _)| value.abs() >= *unit);
    let Some((unit, name)) = reached.or(units.last()) else {
        return value.to_string();
    };
    let value = value / unit;
    let digits = match value.abs() {
        100.0.. => 0,
        10.0..100.0 => 1,
        _ => 2,
    };
    format!("{value:.digits$} {name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_three_digits_in_the_unit_that_fits() {
        assert_eq!(time(0.001_234), "1.23 ms");
        assert_eq!(time(12.3), "12.3 s");
        assert_eq!(time(0.0), "0.00 ns");
        assert_eq!(bytes(1536.0), "1.50 KiB");
        assert_eq!(bytes(4e11), "373 GiB");
    }
}
