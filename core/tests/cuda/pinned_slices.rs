//! Slices over a transport that pins what it is given, and has to be told of it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};

use oxshmem::cuda::{Stream, StreamOptions};
use oxshmem::testing::spmd_with;
use oxshmem::{ContextOptions, Result, World};
use oxshmem_loopback::Loopback;

use crate::again;
use crate::nic::{NAME, Nic, Registers};
use crate::on_gpu::{context, on, pattern, read, zeroed};
use crate::slices::home;

/// So much is registered for a call; half of it is not.
const LEN: usize = (256 << 10) / size_of::<u64>();

#[test]
fn slices_are_copied_over_a_lane_that_pins() {
    let Some(mut command) = again("OXSHMEM_TRANSPORT", &format!("loopback,{NAME}")) else {
        return;
    };
    command.args(["--ignored", "over_a_lane_that_pins::"]);
    let output = command.output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{told}");
    assert!(told.contains(" 6 passed"), "{told}");
}

mod over_a_lane_that_pins {
    use super::*;

    /// A PE alone: no descriptor reaches others of memory that is pinned.
    fn run(case: impl Fn(&World, &Nic) -> Result<()> + Sync) {
        let Some(context) = context() else { return };
        let nic = Nic::on(&context);
        let transports = vec![
            Arc::new(nic.clone()) as Arc<dyn oxshmem_transport::Transport>,
            Arc::new(Loopback::new()),
        ];
        let builder = on(context).transports(transports);
        spmd_with(builder, 1, |world| {
            let route = world.explain(0)?.gpu.unwrap();
            assert_eq!(route.transport, Some(NAME), "{route:?}");
            case(world, &nic)
        })
        .unwrap();
        let seen = nic.seen();
        assert!(seen.strays.is_empty(), "{seen:?}");
        assert!(seen.live.is_empty(), "a registration is left: {seen:?}");
    }

    #[test]
    #[ignore = "run by the test above"]
    fn two_threads_that_put_one_slice_have_each_a_registration() {
        for nonblocking in [false, true] {
            run(|world, nic| {
                let all = zeroed::<u64>(world, 2 * LEN)?;
                let (x, y) = (all.range(..LEN)?, all.range(LEN..)?);
                let slice = home(world).clone_htod(&pattern(5, LEN)).unwrap();
                let context = world.create_context(ContextOptions::NONE)?;
                nic.change(|seen| seen.hold = true);
                std::thread::scope(|threads| {
                    let slice = &slice;
                    let other = threads.spawn(move || context.put_from(x, slice, 0));
                    nic.until(|seen| seen.held);
                    // The other thread's registration lives, but is not this one's.
                    let put = match nonblocking {
                        false => world.put_from(y, slice, 0),
                        true => world.scope(|s| s.put_from_nbi(y, slice, 0)),
                    };
                    nic.change(|seen| seen.held = false);
                    other.join().unwrap().and(put)
                })?;
                let named = nic.seen().named.clone();
                let [first, second] = named[..] else {
                    panic!("{named:?}")
                };
                assert_ne!(first, second);
                world.quiet()?;
                let seen = read(world, all)?;
                assert!(seen.chunks(LEN).all(|half| half == pattern(5, LEN)));
                world.free(all)
            });
        }
    }

    #[test]
    #[ignore = "run by the test above"]
    fn what_is_long_is_registered_for_the_call_and_what_is_short_goes_by_the_host() {
        run(|world, nic| {
            let x = zeroed::<u64>(world, LEN)?;
            let home = home(world);
            for (len, registered) in [(LEN, true), (LEN / 2, false)] {
                nic.change(|seen| seen.named.clear());
                let part = x.range(..len)?;
                let mut slice = home.clone_htod(&pattern(len, len)).unwrap();
                world.put_from(part, &slice, 0)?;
                world.quiet()?;
                assert!(read(world, part)? == pattern(len, len));
                world.put(part, &pattern(7, len), 0)?;
                world.get_into(&mut slice, part, 0)?;
                assert!(home.clone_dtoh(&slice).unwrap() == pattern(7, len));
                assert_eq!(nic.seen().named.len(), if registered { 2 } else { 0 });
            }
            world.free(x)
        });
    }

    #[test]
    #[ignore = "run by the test above"]
    fn m16_m27_what_is_got_into_a_slice_is_flushed() {
        run(|world, nic| {
            let x = zeroed::<u64>(world, LEN)?;
            let home = home(world);
            let mut slice = home.alloc_zeros::<u64>(LEN).unwrap();
            world.get_into(&mut slice, x, 0)?;
            let named = nic.seen().named.len();
            assert_eq!((named, nic.seen().unflushed), (1, 0));
            let mut slice = world.register_gpu(slice)?;
            world.get_into(&mut slice, x, 0)?;
            let named = nic.seen().named.len();
            assert_eq!((named, nic.seen().unflushed), (2, 0));
            world.scope(|s| {
                s.get_into_nbi(&mut slice, x, 0)?;
                assert_eq!(nic.seen().unflushed, 1);
                Ok(())
            })?;
            let named = nic.seen().named.len();
            assert_eq!((named, nic.seen().unflushed), (3, 0));
            drop(slice);
            world.free(x)
        });
    }

    #[test]
    #[ignore = "run by the test above"]
    fn what_a_nic_refuses_goes_by_the_host() {
        run(|world, nic| {
            let x = zeroed::<u64>(world, LEN)?;
            let home = home(world);
            nic.change(|seen| seen.registers = Registers::Nothing);
            let slice = home.clone_htod(&pattern(3, LEN)).unwrap();
            world.put_from(x, &slice, 0)?;
            let mut slice = world.register_gpu(slice)?;
            assert!(read(world, x)? == pattern(3, LEN));
            world.put(x, &pattern(4, LEN), 0)?;
            world.scope(|s| s.get_into_nbi(&mut slice, x, 0))?;
            assert!(home.clone_dtoh(&*slice).unwrap() == pattern(4, LEN));
            assert!(nic.seen().named.is_empty());
            drop(slice);
            world.free(x)
        });
    }

    #[test]
    #[ignore = "run by the test above"]
    fn a_transport_that_has_ended_is_told_when_a_slice_is_registered() {
        run(|world, nic| {
            nic.change(|seen| seen.registers = Registers::NoMore);
            let slice = home(world).alloc_zeros::<u64>(8).unwrap();
            let told = world.register_gpu(slice).unwrap_err().to_string();
            assert!(told.contains("nic: the domain is shut down"), "{told}");
            Ok(())
        });
    }

    #[test]
    #[ignore = "run by the test above"]
    fn a_call_that_fails_gives_a_slice_back_when_the_gpu_is_done() {
        run(|world, nic| {
            let x = zeroed::<u64>(world, LEN)?;
            let slice = home(world).alloc_zeros::<u64>(LEN).unwrap();
            let context = world.create_context(ContextOptions::NONE)?;
            let gpu = world.gpu_context().unwrap();
            let stream = Stream::new(gpu, &StreamOptions::default()).unwrap();
            let (release, held) = mpsc::channel::<()>();
            let done = Arc::new(AtomicBool::new(false));
            let told = Arc::clone(&done);
            // Work that stands for what a lane leaves behind.
            let work = move || {
                assert!(held.recv().is_err(), "nothing is sent");
                (0..1000).for_each(|_| std::thread::yield_now());
                told.store(true, Ordering::Release);
            };
            stream.host_func(work).unwrap();
            nic.change(|seen| seen.fails = true);
            let failed = std::thread::scope(|threads| {
                threads.spawn(move || {
                    nic.until(|seen| seen.ended > 0);
                    drop(release);
                });
                context.put_from(x, &slice, 0)
            });
            let was_done = done.load(Ordering::Acquire);
            nic.change(|seen| seen.fails = false);
            assert!(failed.is_err(), "{failed:?}");
            assert!(was_done, "the call returned before the GPU was done");
            drop(context);
            world.free(x)
        });
    }
}
