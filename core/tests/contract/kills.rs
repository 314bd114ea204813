//! Processes that die, don't come, or come with the wrong key or settings. No launcher watches
//! these jobs: what the survivors see is the library's own doing.

use crate::job::{Job, Process, SHORT, end_well};

/// Kills one PE of several once all are ready; the others must see it, say so, and end well.
pub fn kill_one(program: &'static str, n: usize) {
    let victim = if program.ends_with("first") { 0 } else { n - 1 };
    let mut pes = Job::new(n, program).start();
    pes.iter_mut().for_each(|pe| pe.expect("ready"));
    pes[victim].kill();
    let mut victim = pes.remove(victim);
    pes.iter_mut().for_each(|pe| pe.expect("survived"));
    victim.release();
    drop(victim);
    end_well(pes);
}

macro_rules! kills {
    ($($name:ident: $program:literal;)*) => {$(
        #[test]
        fn $name() {
            for n in [2, 4] {
                kill_one($program, n);
            }
        }
    )*};
}

kills! {
    a_killed_pe_ends_the_others_barrier: "barrier/last";
    a_killed_pe_ends_the_others_sync: "sync/last";
    a_killed_pe_ends_the_others_allocation: "alloc/last";
    a_killed_pe_ends_the_others_broadcast: "broadcast/last";
    a_killed_pe_ends_broadcasts_to_it: "broadcasts/last";
    a_killed_pe_ends_the_others_sum: "sum/last";
    a_killed_pe_ends_the_others_wait: "wait/last";
    a_killed_pe_ends_the_others_wait_for_any: "wait-any/last";
    a_killed_pe_ends_the_others_wait_for_all: "wait-all/last";
    a_killed_pe_ends_the_others_signal_wait: "signal/last";
    a_killed_pe_ends_puts_to_it: "put/last";
    a_killed_pe_ends_atomics_on_it: "fetch/last";
    the_death_of_the_rendezvous_ends_the_others_barrier: "barrier/first";
    the_death_of_the_rendezvous_ends_the_others_wait: "wait/first";
    the_death_of_the_rendezvous_ends_puts: "put/first";
}

/// The error of a PE that must fail.
fn complaint(process: Process) -> String {
    let (status, said, errors) = process.end();
    assert!(!status.success(), "it ended well; it said {said:?}");
    let complaint = said.iter().find_map(|line| line.strip_prefix("error "));
    complaint
        .unwrap_or_else(|| panic!("no error among {said:?}; {errors}"))
        .to_owned()
}

fn impatient(n: usize, program: &'static str) -> Job {
    Job::new(n, program).with(
        "OXSHMEM_BOOTSTRAP_TIMEOUT",
        &format!("{}ms", SHORT.as_millis()),
    )
}

#[test]
fn pes_that_do_not_come_are_named() {
    let job = impatient(4, "join");
    let come: Vec<Process> = [0, 2].map(|rank| Process::start(job.command(rank))).into();
    for pe in come {
        let complaint = complaint(pe);
        assert!(
            complaint.contains('1') && complaint.contains('3'),
            "{complaint}"
        );
    }
}

#[test]
fn a_pe_with_the_wrong_key_is_refused_and_told_how_to_mend_it() {
    let job = impatient(2, "join");
    let first = Process::start(job.command(0));
    let mut other = job.command(1);
    other.env("OXSHMEM_JOB_KEY", "f".repeat(64));
    let refused = complaint(Process::start(other));
    assert!(refused.contains("OXSHMEM_JOB_KEY"), "{refused}");
    assert!(
        complaint(first).contains('1'),
        "the first PE names the one that never came"
    );
}

#[test]
fn a_job_without_a_key_says_how_to_make_one() {
    let mut command = impatient(2, "join").command(1);
    command.env_remove("OXSHMEM_JOB_KEY");
    let refused = complaint(Process::start(command));
    assert!(
        refused.contains("OXSHMEM_JOB_KEY") && refused.contains("rand"),
        "{refused}"
    );
}

#[test]
fn half_a_description_of_a_job_is_refused() {
    let mut command = impatient(2, "join").command(1);
    command.env_remove("MASTER_PORT");
    let refused = complaint(Process::start(command));
    assert!(refused.contains("MASTER_PORT"), "{refused}");
    let mut command = impatient(2, "join").command(1);
    command.env("RANK", "2");
    let refused = complaint(Process::start(command));
    assert!(
        refused.contains("RANK") && refused.contains('2'),
        "{refused}"
    );
}

#[test]
fn m14_a_size_that_makes_no_sense_names_variable_and_value() {
    for value in ["lots", "-1", "12Q", ""] {
        let job = impatient(1, "join").with("OXSHMEM_SYMMETRIC_SIZE", value);
        let refused = complaint(Process::start(job.command(0)));
        assert!(refused.contains("OXSHMEM_SYMMETRIC_SIZE"), "{refused}");
        assert!(refused.contains(value), "{refused}");
    }
}

fn limits(job: &Job) -> Vec<u64> {
    let said = end_well(job.start());
    said.iter()
        .map(|lines| lines[0].parse().expect("a number of bytes"))
        .collect()
}

#[test]
fn m14_the_limit_comes_from_the_first_of_three_names_and_is_never_less() {
    let page = 4096_u64;
    let rounded = |bytes: u64| bytes.next_multiple_of(page);
    let job = || Job::new(1, "limit");
    assert_eq!(limits(&job().with("SMA_SYMMETRIC_SIZE", "5m")), [5 << 20]);
    let job = job()
        .with("SMA_SYMMETRIC_SIZE", "5m")
        .with("SHMEM_SYMMETRIC_SIZE", "3.1M");
    assert_eq!(limits(&job), [rounded(3_250_586)]);
    let job = job.with("OXSHMEM_SYMMETRIC_SIZE", "2097153");
    assert_eq!(limits(&job), [rounded(2_097_153)]);
}

#[test]
fn m14_the_pes_agree_on_the_smallest_limit() {
    let job = Job::new(3, "limit");
    let start = |rank: usize| {
        let mut command = job.command(rank);
        command.env("OXSHMEM_SYMMETRIC_SIZE", ["8M", "4M", "16M"][rank]);
        Process::start(command)
    };
    for said in end_well((0..3).map(start).collect()) {
        assert_eq!(said, [(4 << 20).to_string()]);
    }
}

#[test]
fn pes_with_different_settings_refuse_to_go_on() {
    for (name, value) in [("OXSHMEM_MEMORY_MODEL", "relaxed"), ("OXSHMEM_CHECK", "1")] {
        let job = impatient(2, "join");
        let mut other = job.command(1);
        other.env(name, value);
        let pes = [Process::start(job.command(0)), Process::start(other)];
        for refused in pes.map(complaint) {
            assert!(refused.contains(name), "{refused}");
        }
    }
}
