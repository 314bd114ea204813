//! The end of a world whose GPU has work that does not end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use oxshmem::bindings;
use oxshmem::cuda::{Pinned, PinnedOptions};
use oxshmem_bootstrap::InProcess;

use crate::again_only;
use crate::on_gpu::{CUDA, context, on, run, stream};

#[test]
fn a_world_ends_though_a_programs_own_work_on_the_gpu_does_not() {
    // By itself: what it holds up is the whole process's GPU. And both ways to have a GPU heap.
    let test = "endings::again_with_work_that_waits_for_ever";
    std::thread::scope(|threads| {
        for transports in ["nvlink,loopback", "loopback"] {
            threads.spawn(move || again_only(test, "OXSHMEM_TRANSPORT", transports));
        }
    });
}

#[test]
#[ignore = "run by the test above, in a process of its own"]
fn again_with_work_that_waits_for_ever() {
    let Some(context) = context() else { return };
    let mine = Pinned::new(&context, 8, &PinnedOptions::default()).unwrap();
    let job = InProcess::group(1).remove(0);
    let world = on(context).bootstrap(job as Arc<_>).join().unwrap();
    let word = world.alloc_on::<u64>(CUDA, 1).unwrap();
    world.p(word, 5, 0).unwrap();
    world.quiet().unwrap();
    let held = stream(&world);
    let (release, wait) = mpsc::channel::<()>();
    // A stand-in for a kernel that spins on a flag.
    let spin = move || assert!(wait.recv().is_err(), "nothing is sent");
    held.host_func(spin).unwrap();
    if let Some(word) = world.gpu_ptr(word, 0) {
        // SAFETY: a word of the heap, which stays for what was queued; the page-locked one is there longer.
        unsafe { held.copy(mine.device_ptr(), word, 8) }.unwrap();
    }
    let mapped = world.gpu_ptr(word, 0).is_some();
    let (told, ended) = mpsc::channel();
    std::thread::spawn(move || told.send(world.finalize()));
    let ended = ended.recv_timeout(Duration::from_secs(60));
    assert!(!held.is_idle().unwrap());
    drop(release);
    ended
        .expect("the world waits for the program's work")
        .unwrap();
    held.synchronize().unwrap();
    // SAFETY: a word of page-locked memory, which nobody writes any more.
    let seen = unsafe { mine.as_ptr().cast::<u64>().read_volatile() };
    assert_eq!(seen, if mapped { 5 } else { 0 });
}

#[test]
fn m10_a_rest_waits_for_streams_before_it_frees() {
    run(2, |world| {
        let x = world.alloc_on::<u64>(CUDA, 1)?;
        let working = stream(world);
        let rested = Arc::new(AtomicBool::new(false));
        // Work that lasts longer than a rest that does not wait for it.
        let seen = Arc::clone(&rested);
        let work = move || {
            let since = Instant::now();
            while !seen.load(Ordering::SeqCst) && since.elapsed() < Duration::from_millis(500) {
                std::thread::yield_now();
            }
        };
        working.host_func(work).unwrap();
        world.quiet_on_stream(&working)?;
        bindings::quiesce(world)?;
        assert!(working.is_idle().unwrap());
        rested.store(true, Ordering::SeqCst);
        assert!(world.free(x).is_err());
        Ok(())
    });
}
