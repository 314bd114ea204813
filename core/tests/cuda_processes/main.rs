//! A GPU heap whose PEs are processes: on the software driver that `ci/test-gpu` gives, or on GPUs.
//! Without a driver nothing is run; with `OXSHMEM_TEST_CUDA=1` that is a failure.
#![cfg(feature = "cuda")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests"
)]

#[path = "../contract/job.rs"]
#[allow(dead_code, reason = "the contract's tests use more of it")]
mod job;
mod programs;

use job::{Job, Process, end_well};
use oxshmem_cuda::Driver;
use oxshmem_cuda::testing::present;

/// The part of the contract's `setting` that its jobs use.
mod setting {
    use std::time::Duration;

    /// After this long every wait in a test is an error.
    pub const DEADLINE: Duration = Duration::from_secs(30);
}

/// Bytes of each PE's GPU heap.
const LIMIT: &str = "64M";

/// A job with a GPU heap. None without a driver, said in one line; or a failure, where the environment
/// says that there must be one.
fn job(n: usize, program: &'static str) -> Option<Job> {
    present(Driver::get())?;
    let job = Job::new(n, program)
        .with("OXSHMEM_CUDA_SYMMETRIC_SIZE", LIMIT)
        .with("OXSHMEM_SYMMETRIC_SIZE", "16M");
    Some(job)
}

/// As [`job`], for what only the software driver can be told to do.
fn software_job(n: usize, program: &'static str) -> Option<Job> {
    let job = job(n, program)?;
    if Driver::get().is_ok_and(|driver| driver.library().contains("softcuda")) {
        return Some(job);
    }
    println!("not the software driver: not run");
    None
}

/// Starts a job of which one PE has other variables.
fn start_with(job: &Job, odd: usize, variables: &[(&str, &str)]) -> Vec<Process> {
    let command = |rank: usize| {
        let mut command = job.command(rank);
        if rank == odd {
            command.envs(variables.iter().copied());
        }
        Process::start(command)
    };
    (0..job.n).map(command).collect()
}

/// The error of each PE, all of which must fail.
fn complaints(mut pes: Vec<Process>) -> Vec<String> {
    pes.iter_mut().for_each(Process::release);
    let complaint = |pe: Process| {
        let (status, said, errors) = pe.end();
        assert!(!status.success(), "it ended well; it said {said:?}");
        assert!(status.code().is_some(), "a signal ended it: {status}");
        let complaint = said.iter().find_map(|line| line.strip_prefix("error "));
        complaint
            .unwrap_or_else(|| panic!("no error among {said:?}; {errors}"))
            .to_owned()
    };
    pes.into_iter().map(complaint).collect()
}

#[test]
fn processes_reach_each_others_gpu_memory_and_leave_nothing_open() {
    for n in [2, 3] {
        if let Some(job) = job(n, "everything") {
            end_well(job.start());
        }
    }
}

#[test]
fn processes_on_two_gpus_do_as_on_one() {
    if let Some(job) = software_job(3, "everything") {
        end_well(job.with("SOFTCUDA_DEVICES", "2").start());
    }
}

#[test]
fn legacy_gpu_memory_is_reached_as_any_other() {
    for without in ["vmm", "posix-fd"] {
        for gpus in ["1", "2"] {
            if let Some(job) = software_job(3, "everything") {
                let job = job.with("SOFTCUDA_WITHOUT", without);
                end_well(job.with("SOFTCUDA_DEVICES", gpus).start());
            }
        }
    }
}

#[test]
fn gpu_memory_that_nothing_can_pass_on_is_reached_as_any_other() {
    for without in ["posix-fd,ipc", "vmm,ipc"] {
        if let Some(job) = software_job(3, "everything") {
            end_well(job.with("SOFTCUDA_WITHOUT", without).start());
        }
    }
}

#[test]
fn m13_a_process_whose_gpu_has_no_room_for_a_legacy_heap_ends_the_start_of_all() {
    if let Some(job) = software_job(3, "join") {
        let memory = (40 << 20).to_string();
        let job = job.with("SOFTCUDA_WITHOUT", "vmm");
        let said = complaints(start_with(&job, 1, &[("SOFTCUDA_MEMORY", &memory)]));
        for (pe, said) in said.iter().enumerate() {
            assert!(
                said.contains("no memory for 67108864 bytes"),
                "PE {pe}: {said}"
            );
            assert!(pe == 1 || said.contains("PE 1"), "PE {pe}: {said}");
        }
    }
}

/// Kills the last PE of several once all are ready; the others must see it, say so, and end well.
fn kill_one(program: &'static str) {
    for n in [2, 3] {
        let Some(job) = job(n, program) else { return };
        let mut pes = job.start();
        pes.iter_mut().for_each(|pe| pe.expect("ready"));
        pes[n - 1].kill();
        let mut victim = pes.remove(n - 1);
        victim.release();
        drop(victim);
        pes.iter_mut().for_each(|pe| pe.expect("survived"));
        end_well(pes);
    }
}

macro_rules! kills {
    ($($name:ident: $program:literal;)*) => {$(
        #[test]
        fn $name() {
            kill_one($program);
        }
    )*};
}

kills! {
    a_killed_pe_ends_puts_to_its_gpu_memory: "lose/put";
    a_killed_pe_ends_gets_from_its_gpu_memory: "lose/get";
    a_killed_pe_ends_atomics_on_its_gpu_memory: "lose/atomic";
    a_killed_pe_ends_the_others_gpu_allocation: "lose/alloc";
    a_killed_pe_ends_the_others_barrier_while_its_gpu_memory_is_mapped: "lose/barrier";
}

#[test]
fn m13_a_process_whose_gpu_has_no_room_fails_the_allocation_on_all() {
    if let Some(job) = software_job(3, "no-room") {
        let memory = (40 << 20).to_string();
        end_well(start_with(&job, 1, &[("SOFTCUDA_MEMORY", &memory)]));
    }
}

/// The error of PE 1, which has such a driver, and of the others, in a job that cannot begin.
fn refused_driver(variables: &[(&str, &str)], words: &[&str]) {
    let Some(job) = software_job(3, "join") else {
        return;
    };
    let said = complaints(start_with(&job, 1, variables));
    for (pe, said) in said.iter().enumerate() {
        for word in words {
            assert!(said.contains(word), "PE {pe}: no {word:?} in: {said}");
        }
        assert!(pe == 1 || said.contains("PE 1"), "PE {pe}: {said}");
    }
}

#[test]
fn a_process_without_a_driver_is_told_and_so_are_the_others() {
    refused_driver(
        &[("OXSHMEM_CUDA_LIBRARY", "/nonexistent/libcuda.so.1")],
        &["/nonexistent/libcuda.so.1", "OXSHMEM_CUDA_LIBRARY"],
    );
}

#[test]
fn a_process_whose_driver_is_too_old_is_told_and_so_are_the_others() {
    refused_driver(&[("SOFTCUDA_DRIVER_VERSION", "11040")], &["11.4", "525"]);
}

#[test]
fn a_process_without_a_gpu_is_told_and_so_are_the_others() {
    refused_driver(&[("CUDA_VISIBLE_DEVICES", "")], &["CUDA_VISIBLE_DEVICES"]);
}
