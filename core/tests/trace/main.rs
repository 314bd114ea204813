//! `OXSHMEM_TRACE`: what is in the file, whoever the PEs are and however they end.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests"
)]

mod events;
#[path = "../contract/job.rs"]
#[allow(dead_code, reason = "the contract's tests use more of it")]
mod job;
mod programs;

use std::sync::Arc;
use std::time::{Duration, Instant};

use events::{Events, File};
use job::{Job, Process, this_program};
use oxshmem::testing::spmd_with;
use oxshmem::{Atomics, Builder, Cmp, ContextOptions, World};
use oxshmem_bootstrap::InProcess;
use oxshmem_example_tiny_transport::Tiny;
use oxshmem_loopback::Loopback;
use oxshmem_transport::Transport;
use oxshmem_weak::{Machine, Seeded, Settings, Simulator, Weak};

/// The part of the contract's `setting` that its jobs use.
mod setting {
    use std::time::Duration;

    /// After this long every wait in a test is an error.
    pub const DEADLINE: Duration = Duration::from_secs(60);
}

/// Settings that trace to a file.
fn tracing(file: &File) -> Builder {
    World::builder().timeout(setting::DEADLINE).trace(&file.0)
}

/// That a trace shows [`programs::calls`] on so many PEs.
fn shows_the_calls(events: &Events, pes: u64) {
    events.check();
    assert!(events.ended);
    assert_eq!(events.processes.len() as u64, pes);
    for pe in 0..pes {
        assert!(events.processes[&pe].starts_with(&format!("PE {pe} on ")));
        let track = events.track(pe, "default context");
        for (name, count) in programs::CALLS {
            let spans = events.of(pe, name);
            assert_eq!(spans.len(), count, "{name} on PE {pe}");
            assert!(
                spans
                    .iter()
                    .all(|span| span.track == track && span.kind == "call")
            );
        }
    }
    // One was late: the others waited for it, or for who had waited.
    let barriers = events.of(0, "barrier_all");
    let late = barriers
        .iter()
        .max_by_key(|span| span.to - span.from)
        .unwrap();
    let waits = events.within(late);
    let wait = waits.iter().find(|span| span.kind == "wait").unwrap();
    assert!(wait.name.starts_with("wait for PE "), "{wait:?}");
    assert_eq!(wait.args["in"], "barrier_all");
    let what = wait.args["what"].as_str().unwrap();
    assert_eq!(what, "its arrival in barrier_all()");
}

#[test]
fn threads_show_their_calls_and_whom_they_waited_for() {
    let file = File::new();
    spmd_with(tracing(&file), 3, programs::calls).unwrap();
    shows_the_calls(&Events::read(&file.0), 3);
}

#[test]
fn launched_processes_show_their_calls_in_one_file() {
    let file = File::new();
    let mut command = this_program("programs::launcher", "calls");
    command.env("OXSHMEM_TRACE", file.name());
    let (status, _, errors) = Process::start(command).end();
    assert!(status.success(), "{status}; {errors}");
    shows_the_calls(&Events::read(&file.0), programs::LAUNCHED.into());
}

#[test]
fn every_lane_has_a_track_with_counts_of_what_went_down_it() {
    const PUTS: u64 = 10;
    const ATOMICS: u64 = 100;
    let file = File::new();
    let builder = tracing(&file).atomics(Atomics::Cpu);
    let builder = builder.transports(vec![Arc::new(Tiny::nic())]);
    spmd_with(builder, 2, |world| {
        let words = world.alloc_zeroed::<u64>(8)?;
        let context = world.create_context(ContextOptions::NONE)?;
        if world.my_pe() == 0 {
            for i in 0..PUTS {
                context.put(words, &[i; 4], 1)?;
            }
            for i in 0..ATOMICS {
                context.xor(words.at(7)?, i, 1)?;
            }
        }
        context.destroy()?;
        world.barrier_all()
    })
    .unwrap();
    let events = Events::read(&file.0);
    events.check();
    let counts = &events.counts[&(0, "tiny, context 1".to_owned())];
    assert_eq!(counts["operations"], PUTS + ATOMICS);
    assert!(
        !events
            .counts
            .contains_key(&(1, "tiny, context 1".to_owned()))
    );
    // The collective calls' own words went down the default context's.
    assert!(
        events
            .counts
            .contains_key(&(1, "tiny, context 0".to_owned()))
    );
    let track = events.track(0, "tiny lane of context 1");
    let periods = events.spans.iter().filter(|span| span.kind == "under way");
    let periods: Vec<_> = periods
        .filter(|span| (span.pe, span.track) == (0, track))
        .collect();
    let sum = |kind: &str| -> u64 {
        periods
            .iter()
            .filter_map(|span| span.args[kind].as_u64())
            .sum()
    };
    assert_eq!((sum("puts"), sum("messages")), (PUTS, ATOMICS));
    assert_eq!(counts["bytes"], sum("bytes"));
    // PE 1's progress thread did them.
    let track = events.track(1, "progress thread");
    let served = events.of(1, "serves atomics");
    assert!(served.iter().all(|span| span.track == track));
    let served = served
        .iter()
        .filter_map(|span| span.args["atomics"].as_u64());
    assert_eq!(served.sum::<u64>(), ATOMICS);
}

#[test]
fn threads_that_wait_on_one_context_have_tracks_of_their_own() {
    let file = File::new();
    spmd_with(tracing(&file), 2, |world| {
        let flags = world.alloc_zeroed::<u64>(2)?;
        let context = world.create_context(ContextOptions::NONE)?.share();
        world.barrier_all()?;
        if world.my_pe() == 0 {
            let wait = |i| context.wait_until(flags.at(i)?, Cmp::Eq, 1);
            std::thread::scope(|threads| {
                let waits = [0, 1].map(|i| threads.spawn(move || wait(i)));
                waits.into_iter().try_for_each(|wait| wait.join().unwrap())
            })?;
        } else {
            programs::be_late();
            world.set(flags.at(0)?, 1, 0)?;
            world.set(flags.at(1)?, 1, 0)?;
        }
        context.destroy()?;
        world.barrier_all()
    })
    .unwrap();
    let events = Events::read(&file.0);
    events.check();
    for thread in 0..2 {
        let track = events.track(0, &format!("shared contexts, thread {thread}"));
        let waits: Vec<_> = events
            .spans
            .iter()
            .filter(|span| span.track == track)
            .collect();
        let [wait] = waits[..] else {
            panic!("{waits:?}");
        };
        assert_eq!(wait.args["in"], "wait_until");
    }
}

#[test]
fn scheduled_pes_end_with_their_trace() {
    let machine = Machine::new(4, Arc::new(Seeded::new(7)));
    let simulator: Arc<dyn Transport> = Arc::new(Simulator::new(machine));
    let weak = Weak::over(Arc::new(Loopback::new()), Settings::worst(7));
    for transport in [simulator, Arc::new(weak)] {
        let file = File::new();
        let builder = tracing(&file).transports(vec![transport]);
        spmd_with(builder, 3, programs::calls).unwrap();
        let events = Events::read(&file.0);
        events.check();
        assert!(events.ended);
        assert_eq!(events.of(2, "barrier_all").len(), 5);
    }
}

#[test]
fn m36_a_trace_on_some_pes_only_is_refused_by_all() {
    let file = File::new();
    let job = Job::new(2, "join");
    let mut pes = vec![Process::start(job.command(0))];
    let mut command = job.command(1);
    command.env("OXSHMEM_TRACE", file.name());
    pes.push(Process::start(command));
    for pe in pes {
        let (status, said, _) = pe.end();
        assert!(!status.success());
        assert!(
            said.iter().any(|line| line.contains("OXSHMEM_TRACE")),
            "{said:?}"
        );
    }
    assert!(!file.0.exists());
}

#[test]
fn a_pe_that_is_killed_leaves_a_file_that_loads() {
    let file = File::new();
    let job = Job::new(3, "until-killed").with("OXSHMEM_TRACE", file.name());
    let mut pes = job.start();
    pes[1].expect("at work");
    pes[1].kill();
    for pe in pes {
        let _ = pe.end();
    }
    let events = Events::read(&file.0);
    events.check();
    assert!(!events.ended);
    assert!(!events.of(0, "barrier_all").is_empty());
    // Of the one that was killed there is what it had written by then.
    assert!(events.processes.contains_key(&0) && events.processes.contains_key(&2));
}

#[test]
fn what_led_to_a_hang_is_in_the_file_while_it_hangs() {
    let file = File::new();
    let job = Job::new(2, "for-ever").with("OXSHMEM_TRACE", file.name());
    let pes = job.start();
    let since = Instant::now();
    let written = || file.0.exists() && (0..2).all(|pe| file.shows(pe, "barrier_all"));
    while !written() {
        assert!(since.elapsed() < setting::DEADLINE, "it is not written");
        std::thread::sleep(Duration::from_millis(50));
    }
    Events::read(&file.0).check();
    // They are killed.
    drop(pes);
}

#[test]
fn a_file_that_cannot_be_written_is_an_error_that_says_so_on_every_pe() {
    let job = Job::new(2, "join").with("OXSHMEM_TRACE", "/nonexistent/directory/trace.json");
    for pe in job.start() {
        let (status, said, _) = pe.end();
        assert!(!status.success());
        let error = said.iter().find(|line| line.starts_with("error ")).unwrap();
        for part in [
            "OXSHMEM_TRACE",
            "/nonexistent/directory/trace.json",
            "No such file",
        ] {
            assert!(error.contains(part), "{error}");
        }
    }
}

#[test]
fn each_host_has_a_file_with_its_own_pes() {
    let file = File::new();
    let builder = tracing(&file).atomics(Atomics::Cpu).heap_limit(8 << 20);
    let builder = builder.transports(vec![Arc::new(Tiny::nic())]);
    std::thread::scope(|threads| {
        let start = |(rank, bootstrap): (usize, Arc<InProcess>)| {
            let builder = builder.clone().bootstrap(bootstrap);
            let builder = builder.host_id(format!("host {}", rank % 2));
            threads.spawn(move || {
                let world = builder.join()?;
                programs::calls(&world)?;
                world.finalize()
            })
        };
        let group = InProcess::group(4).into_iter().enumerate();
        let pes: Vec<_> = group.map(start).collect();
        let ends: Vec<_> = pes.into_iter().map(|pe| pe.join().unwrap()).collect();
        assert!(ends.iter().all(Result::is_ok), "{ends:?}");
    });
    for host in 0..2 {
        let file = File(file.0.with_extension(format!("host{host}.json")));
        let events = Events::read(&file.0);
        events.check();
        assert!(events.ended);
        assert!(events.processes.keys().eq(&[host, host + 2]));
    }
    assert!(!file.0.exists());
}

#[test]
fn without_the_variable_there_is_no_file_and_the_names_are_free() {
    let file = File::new();
    let builder = World::builder().timeout(setting::DEADLINE);
    spmd_with(builder, 2, programs::calls).unwrap();
    assert!(!file.0.exists());
}
