//! The device library: kernels that call oxshmem, in processes, on the software driver that `ci/test-gpu` gives or on GPUs.
//! `OXSHMEM_TEST_DEVICE_PTX` names the kernels' PTX. Without it nothing is run; with `OXSHMEM_TEST_CUDA=1` that is a failure.
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
mod kernels;
#[path = "../on_gpu/mod.rs"]
mod on_gpu;
mod programs;

use job::{Job, end_well};
use oxshmem_cuda::Driver;
use oxshmem_cuda::testing::present;

/// The part of the contract's `setting` that its jobs use.
mod setting {
    use std::time::Duration;

    /// After this long every wait in a test is an error.
    pub const DEADLINE: Duration = Duration::from_secs(60);
}

/// A job with a GPU heap whose PEs have kernels; none where there is no driver, or no kernels.
fn job(n: usize, program: &'static str) -> Option<Job> {
    present(Driver::get())?;
    if kernels::path().is_none() {
        assert!(
            std::env::var_os("OXSHMEM_TEST_CUDA").is_none(),
            "OXSHMEM_TEST_DEVICE_PTX is not set; ci/test-gpu sets it"
        );
        println!("no kernels: OXSHMEM_TEST_DEVICE_PTX is not set: not run");
        return None;
    }
    let job = Job::new(n, program)
        .with("OXSHMEM_CUDA_SYMMETRIC_SIZE", "32M")
        .with("OXSHMEM_SYMMETRIC_SIZE", "16M");
    Some(job)
}

/// The paths between PEs: all mapped; all by the host; or PE 1 alone by the host.
const PATHS: [Option<(&str, &str)>; 3] = [
    None,
    Some(("OXSHMEM_TRANSPORT", "loopback")),
    Some(("OXSHMEM_ROUTE", "1=^nvlink")),
];

fn passes(program: &'static str, pes: &[usize], path: usize) {
    for &n in pes.iter().filter(|n| path == 0 || **n > 1) {
        if let Some(job) = job(n, program) {
            let job = match PATHS[path] {
                Some((name, value)) => job.with(name, value),
                None => job,
            };
            end_well(job.start());
        }
    }
}

macro_rules! programs {
    ($($name:ident: $program:literal, $pes:expr;)*) => {$(
        mod $name {
            #[test]
            fn mapped() {
                super::passes($program, &$pes, 0);
            }
            #[test]
            fn by_the_host() {
                super::passes($program, &$pes, 1);
            }
            #[test]
            fn mixed() {
                super::passes($program, &$pes, 2);
            }
        }
    )*};
}
programs! {
    m15_m16_g1_puts_and_gets_of_every_scope_move_the_data_and_no_more: "move", [1, 2];
    m15_m16_values_of_every_width: "values", [2];
    m22_whoever_sees_a_signal_sees_its_data: "signals", [1, 3];
    m17_g3_a_fence_orders_nonblocking_puts_before_a_flag: "fences", [2, 3];
    m19_g2_one_threads_quiet_completes_a_grids_puts: "one-quiet", [2];
    m28_g5_atomics_of_kernels_and_hosts_lose_no_update: "count", [3];
    m28_every_atomic_gives_the_old_value: "every-atomic", [2];
    m23_waits_for_several_words: "several", [2];
    m24_collective_calls_of_the_world: "collectives", [1, 3];
    m36_calls_one_behind_the_other_do_not_disturb_each_other: "sequence", [2, 4];
    m7_teams_are_known_in_kernels: "teams", [4];
    m8_numbers_and_addresses: "queries", [3];
    m35_m38_a_bad_call_is_told_with_its_thread: "bad", [2];
    a_wait_that_takes_longer_than_it_may_ends: "deadline", [1];
    a_module_that_has_no_state_is_refused_by_name: "no-state", [1];
}

#[test]
fn g6_waits_of_kernels_end_when_a_pe_is_lost() {
    let Some(job) = job(3, "lost") else { return };
    let mut pes = job.start();
    pes.iter_mut().for_each(|pe| pe.expect("ready"));
    pes[2].kill();
    let mut victim = pes.remove(2);
    victim.release();
    drop(victim);
    pes.iter_mut().for_each(|pe| pe.expect("told"));
    end_well(pes);
}
