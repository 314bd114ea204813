//! GPU memory where no descriptor of it can be passed.

use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use oxshmem::Result;
use oxshmem_bootstrap::{Bootstrap, ExitHandler, InProcess, MessageHandler};

use crate::on_gpu::{CUDA, MIB, context, on};

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
        assert!(told("descriptor"), "{route:?}");
        world.barrier_all()?;
        world.free(y)?;
        world.free(x)?;
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
