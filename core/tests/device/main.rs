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

mod collectives;
#[path = "../contract/job.rs"]
#[allow(dead_code, reason = "the contract's tests use more of it")]
mod job;
mod kernels;
#[path = "../on_gpu/mod.rs"]
mod on_gpu;
mod on_streams;
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

/// The settings of the paths between PEs: all mapped; all by the host, in its memory; PE 1 alone so; all by the host and a NIC;
/// all by the host and libfabric.
const PATHS: [&[(&str, &str)]; 5] = [
    &[],
    &[("OXSHMEM_TRANSPORT", "loopback")],
    &[("OXSHMEM_ROUTE", "1=^nvlink")],
    &[("OXSHMEM_TRANSPORT", "verbs")],
    &[
        ("OXSHMEM_TRANSPORT", "ofi"),
        ("OXSHMEM_OFI_INTERFACE", "lo"),
    ],
];

fn on_path(job: Job, path: usize) -> Job {
    PATHS[path]
        .iter()
        .fold(job, |job, (name, value)| job.with(name, value))
}

fn passes(program: &'static str, pes: &[usize], path: usize) {
    for &n in pes.iter().filter(|n| path == 0 || **n > 1) {
        if let Some(job) = job(n, program) {
            end_well(on_path(job, path).start());
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
            #[test]
            #[ignore = "needs a NIC; ci/test-softnic has one"]
            fn by_verbs() {
                super::passes($program, &$pes, 3);
            }
            #[test]
            #[ignore = "needs libfabric; run by ci/test-gpu --soak"]
            fn by_ofi() {
                super::passes($program, &$pes, 4);
            }
        }
    )*};
}
programs! {
    m15_m16_g1_puts_and_gets_of_every_scope_move_the_data_and_no_more: "move", [1, 2];
    m15_m16_values_of_every_width: "values", [2];
    m22_whoever_sees_a_signal_sees_its_data: "signals", [1, 3];
    m17_g3_a_fence_orders_nonblocking_puts_before_a_flag: "fences", [2, 3];
    g3_a_flush_lets_the_source_be_overwritten: "flushes", [1, 2];
    m19_g4_the_hosts_quiet_completes_what_kernels_left: "left-behind", [2, 3];
    m19_g2_one_threads_quiet_completes_a_grids_puts: "one-quiet", [2];
    m28_g5_atomics_of_kernels_and_hosts_lose_no_update: "count", [3];
    m16_m28_lanes_of_a_warp_call_at_once: "lanes", [1, 2];
    m28_every_atomic_gives_the_old_value: "every-atomic", [2];
    m23_waits_for_several_words: "several", [2];
    m24_collective_calls_of_the_world: "collectives", [1, 3];
    m36_calls_one_behind_the_other_do_not_disturb_each_other: "sequence", [2, 4];
    m7_teams_are_known_in_kernels: "teams", [4];
    m8_numbers_and_addresses: "queries", [3];
    m15_m16_m22_m23_transfers_on_streams: "transfers-on-streams", [1, 2, 3];
    m24_m25_collective_calls_on_streams: "collectives-on-streams", [2, 4];
    m24_folds_on_streams: "folds-on-streams", [3];
    a_graph_of_calls_on_streams_is_launched_again: "graph", [2];
    m35_m38_a_bad_call_is_told_with_its_thread: "bad", [2];
    a_wait_that_takes_longer_than_it_may_ends: "deadline", [1];
    a_module_that_has_no_state_is_refused_by_name: "no-state", [1];
}

/// The names that a cell of the table of calls has, in backquotes: `a_{b,c}` are two, of which each may have a group again.
fn names(cell: &str) -> Vec<String> {
    let mut names = Vec::new();
    for word in cell.split('`').skip(1).step_by(2) {
        let mut all = vec![String::new()];
        let mut rest = word.split_once(['(', '<']).map_or(word, |(name, _)| name);
        while let Some((head, group)) = rest.split_once('{') {
            let (group, tail) = group.split_once('}').unwrap();
            let ends = |name: &String| {
                let name = format!("{name}{head}");
                group
                    .split(',')
                    .map(move |end| format!("{name}{end}"))
                    .collect::<Vec<_>>()
            };
            all = all.iter().flat_map(ends).collect();
            rest = tail;
        }
        names.extend(
            all.iter()
                .map(|name| format!("{name}{rest}").trim().to_owned()),
        );
    }
    names.retain(|name| !name.is_empty() && name.starts_with(|c: char| c.is_ascii_lowercase()));
    names
}

#[test]
fn every_call_that_the_readme_names_has_a_kernel() {
    let readme = include_str!("../../device/README.md");
    let kernels = include_str!("kernels.cu");
    let table = readme
        .lines()
        .skip_while(|line| !line.starts_with("| call |"));
    let rows = table.skip(2).take_while(|line| line.starts_with('|'));
    let all: Vec<String> = rows
        .flat_map(|row| names(row.split('|').nth(1).unwrap()))
        .collect();
    assert!(all.len() > 60, "{all:?}");
    let is_called = |name: &String| {
        let after = |end: char| kernels.contains(&format!(" {name}{end}"));
        after('(') || after('<') || kernels.contains(&format!("({name}("))
    };
    let missing: Vec<&String> = all.iter().filter(|name| !is_called(name)).collect();
    assert!(missing.is_empty(), "no kernel calls {missing:?}");
}

/// With a seed, lanes on the software driver gather by chance, and so make requests together.
#[test]
fn m16_m28_lanes_that_gather_make_requests_together() {
    for seed in ["1", "2", "3"] {
        let Some(job) = job(2, "lanes-together") else {
            return;
        };
        let job = job.with("OXSHMEM_TRANSPORT", "loopback");
        end_well(job.with("SOFTCUDA_SEED", seed).start());
    }
}

#[test]
fn memory_for_more_teams_is_allocated_when_it_is_asked_for() {
    let Some(job) = job(2, "many-teams") else {
        return;
    };
    end_well(job.with("OXSHMEM_TEAMS", "1000").start());
}

#[test]
fn g6_waits_of_kernels_end_when_a_pe_is_lost() {
    loses_a_pe("lost", 0);
}

#[test]
fn barriers_on_streams_end_when_a_pe_is_lost() {
    for path in [0, 1] {
        loses_a_pe("lost-on-streams", path);
    }
}

/// PE 2 is killed while the others wait for it.
fn loses_a_pe(program: &'static str, path: usize) {
    let Some(job) = job(3, program) else { return };
    let job = on_path(job, path);
    let mut pes = job.start();
    pes.iter_mut().for_each(|pe| pe.expect("ready"));
    pes[2].kill();
    let mut victim = pes.remove(2);
    victim.release();
    drop(victim);
    pes.iter_mut().for_each(|pe| pe.expect("told"));
    end_well(pes);
}
