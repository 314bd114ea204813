//! GPU memory where no descriptor of it can be passed, or none names it at all.

use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use oxshmem::testing::spmd_with;
use oxshmem::{Result, World};
use oxshmem_bootstrap::{Bootstrap, ExitHandler, InProcess, MessageHandler};

use crate::again_only;
use crate::on_gpu::{CUDA, MIB, context, on, pattern, read, stream, zeroed};

/// A job whose PEs may pass each other no GPU's descriptors, as in containers that forbid it.
#[derive(Debug)]
struct NoDescriptors(Arc<InProcess>);

impl Bootstrap for NoDescriptors {
    fn rank(&self) -> u32 {
        self.0.rank()
    }

    fn size(&self) -> u32 {
        self.0.size()
    }

    fn describe(&self) -> String {
        self.0.describe()
    }

    fn allgather(&self, mine: &[u8]) -> oxshmem_bootstrap::Result<Vec<Vec<u8>>> {
        self.0.allgather(mine)
    }

    fn barrier(&self) -> oxshmem_bootstrap::Result<()> {
        self.0.barrier()
    }

    fn send(&self, to: u32, message: &[u8]) -> oxshmem_bootstrap::Result<()> {
        self.0.send(to, message)
    }

    fn on_message(&self, handler: MessageHandler) -> oxshmem_bootstrap::Result<()> {
        self.0.on_message(handler)
    }

    fn on_exit(&self, handler: ExitHandler) -> oxshmem_bootstrap::Result<()> {
        self.0.on_exit(handler)
    }

    fn share_descriptors(
        &self,
        among: &[u32],
        mine: &[BorrowedFd<'_>],
        deadline: Duration,
    ) -> oxshmem_bootstrap::Result<Vec<Vec<OwnedFd>>> {
        let name = |fd: &BorrowedFd<'_>| {
            let link = std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd()));
            link.unwrap().display().to_string()
        };
        if mine.iter().all(|fd| name(fd).contains("oxshmem-heap")) {
            return self.0.share_descriptors(among, mine, deadline);
        }
        Err(oxshmem_bootstrap::Error::Protocol {
            what: "a descriptor that the kernel withheld".into(),
        })
    }

    fn abort(&self, status: i32, why: &str) {
        self.0.abort(status, why);
    }

    fn leave(&self) {
        self.0.leave();
    }

    fn rest(&self, may_end: bool) {
        self.0.rest(may_end);
    }
}

/// Each of two PEs reaches its own GPU memory and the other's, the other's by way of host memory, for
/// the reason that the route tells.
fn reaches_by_the_host(world: &World, why: &str) -> Result<()> {
    let (me, there) = (world.my_pe(), 1 - world.my_pe());
    let x = world.alloc_on::<u64>(CUDA, MIB)?;
    // A second piece, of which nobody waits for a descriptor.
    let y = world.alloc_on::<u64>(CUDA, MIB)?;
    for block in [x, y] {
        world.p(block.at(7)?, 7, me)?;
        assert_eq!(world.g(block.at(7)?, me)?, 7);
        world.barrier_all()?;
        world.p(block.at(7)?, 8, there)?;
        assert_eq!(world.g(block.at(7)?, there)?, 8);
    }
    let route = world.explain(there)?.gpu.unwrap();
    assert!(route.staged, "{route:?}");
    let told = |answer: &str| route.considered.iter().any(|c| c.answer.contains(answer));
    assert!(told(why), "{route:?}");
    world.barrier_all()?;
    world.free(y)?;
    world.free(x)
}

#[test]
fn where_no_descriptor_can_be_passed_a_peers_gpu_is_reached_by_the_host_and_told_why() {
    let Some(context) = context() else { return };
    if !context.device().has_posix_fd() {
        println!("its memory is not passed as descriptors: not run");
        return;
    }
    let pe = |job: Arc<InProcess>| -> Result<()> {
        let world = on(context.clone()).bootstrap(Arc::new(NoDescriptors(job)));
        let world = world.join()?;
        reaches_by_the_host(&world, "descriptor")?;
        world.finalize()
    };
    std::thread::scope(|threads| {
        let pes: Vec<_> = InProcess::group(2)
            .into_iter()
            .map(|job| threads.spawn(|| pe(job)))
            .collect();
        for pe in pes {
            pe.join().unwrap().unwrap();
        }
    });
}

/// A GPU whose memory nothing names, if this is one.
fn unnamed() -> Option<oxshmem::cuda::Context> {
    let context = context()?;
    let device = context.device();
    if device.has_posix_fd() || device.has_fabric() {
        println!("its memory can be passed on: not run");
        return None;
    }
    Some(context)
}

#[test]
fn where_no_handle_names_the_memory_a_peers_gpu_is_reached_by_the_host_and_told_why() {
    for without in ["posix-fd,ipc", "vmm,ipc"] {
        let test = "descriptors::again_where_no_handle_names_the_memory";
        again_only(test, "SOFTCUDA_WITHOUT", without);
    }
}

#[test]
#[ignore = "run by the test above, which takes the handles away"]
fn again_where_no_handle_names_the_memory() {
    let Some(context) = unnamed() else { return };
    spmd_with(on(context.clone()), 2, |world| {
        reaches_by_the_host(world, "cannot be passed to other processes")
    })
    .unwrap();
    // Streams reach a PE's own memory; no job of several PEs has collective calls there.
    spmd_with(on(context), 1, |world| {
        let (x, y) = (zeroed::<u64>(world, 100)?, zeroed::<u64>(world, 100)?);
        let stream = stream(world);
        world.put(x, &pattern(3, 100), 0)?;
        world.quiet()?;
        world.put_on_stream(y, x, 0, &stream)?;
        world.barrier_all_on_stream(&stream)?;
        world.synchronize(&stream)?;
        assert_eq!(read(world, y)?, pattern(3, 100));
        world.free(y)?;
        world.free(x)
    })
    .unwrap();
}
