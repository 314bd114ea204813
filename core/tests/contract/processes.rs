//! The cases with processes as PEs: one job per number of PEs runs them all, each test looks up its
//! own.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};

use crate::job::{Job, Process, end_well, this_program};
use crate::programs::ONLY;

/// How the PEs are started, and what they run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Start {
    /// By oxshmem's launcher.
    Launcher(&'static str),
    /// Each by itself, with torchrun's variables.
    Torchrun(&'static str),
}

/// The lines that a job's PEs printed, and the failure, if the job failed.
struct Report {
    said: Vec<String>,
    failure: Option<String>,
}

type Reports = Mutex<HashMap<(Start, usize), Arc<OnceLock<Report>>>>;

fn report(start: Start, n: usize) -> Arc<OnceLock<Report>> {
    static REPORTS: OnceLock<Reports> = OnceLock::new();
    let reports = REPORTS.get_or_init(Reports::default);
    let report = Arc::clone(reports.lock().unwrap().entry((start, n)).or_default());
    report.get_or_init(|| match start {
        Start::Launcher(program) => {
            let program = format!("{program}:{n}");
            judge(vec![Process::start(this_program(
                "programs::launcher",
                &program,
            ))])
        }
        Start::Torchrun(program) => judge(Job::new(n, program).start()),
    });
    report
}

fn judge(processes: Vec<Process>) -> Report {
    let mut report = Report {
        said: Vec::new(),
        failure: None,
    };
    for process in processes {
        let (status, said, errors) = process.end();
        report.said.extend(said);
        if !status.success() {
            let failure = report.failure.get_or_insert_default();
            failure.push_str(&format!("{status}\n{errors}\n"));
        }
    }
    report
}

/// Fails unless every PE has said that the case holds, in this job.
pub fn look_up(start: Start, n: usize, case: &str) {
    let report = report(start, n);
    let report = report.get().expect("made above");
    for pe in 0..n {
        let line = format!("{pe} {case}");
        assert!(
            report.said.contains(&line),
            "{case} did not hold on PE {pe} of {n} ({start:?}); the job: {}",
            report.failure.as_deref().unwrap_or("ended well")
        );
    }
}

/// Fails unless the job ended well once its cases were done.
pub fn look_up_end(start: Start, n: usize) {
    let report = report(start, n);
    let failure = report.get().and_then(|r| r.failure.as_deref());
    assert_eq!(failure, None);
}

#[test]
fn a_process_can_join_its_job_once() {
    end_well(Job::new(2, "join-twice").start());
}

#[test]
fn torchrun_style_variables_start_a_job() {
    for n in [1, 2, 5] {
        for (rank, said) in end_well(Job::new(n, "join").start())
            .into_iter()
            .enumerate()
        {
            assert_eq!(said, [format!("joined as {rank} of {n}")]);
        }
    }
}

#[test]
fn without_a_launcher_a_program_is_a_world_of_one() {
    let mut command = this_program("programs::pe", "join");
    for name in [
        "RANK",
        "WORLD_SIZE",
        "LOCAL_RANK",
        "MASTER_ADDR",
        "MASTER_PORT",
    ] {
        command.env_remove(name);
    }
    let said = end_well(vec![Process::start(command)]);
    assert_eq!(said, [["joined as 0 of 1"]]);
}

#[test]
fn m13_a_pe_that_gets_no_memory_fails_the_allocation_on_all_and_rolls_back() {
    end_well(Job::new(3, "cannot-commit").start());
}

/// As many processes as share a large host, whose turns on a few CPUs come late. Each says a line.
fn do_64(program: &str, only: &str, line: &str) {
    let mut launcher = this_program("programs::launcher", &format!("{program}:64"));
    launcher.env(ONLY, only);
    let report = judge(vec![Process::start(launcher)]);
    assert_eq!(report.failure, None);
    let done = report.said.iter().filter(|said| said.ends_with(line));
    assert_eq!(done.count(), 64, "{:?}", report.said);
}

#[test]
fn random_calls_among_64_processes_equal_a_serial_reference() {
    let only = "sequences::,teams::rows,teams::a_listed,locks::a_lock_is_held";
    do_64("cases", only, "all 4 cases");
}

#[test]
fn every_kind_of_call_among_64_processes_equals_a_serial_reference() {
    do_64("crowd", "", "every kind");
}
