//! A bootstrap around another one that records the exchanged data.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use oxshmem_bootstrap::{Bootstrap, ExitHandler, MessageHandler, Result};

/// Records this PE's part of every allgather.
#[derive(Debug)]
pub struct Counted {
    by: Arc<dyn Bootstrap>,
    gathered: Mutex<Vec<Vec<u8>>>,
}

impl Counted {
    pub fn new(by: Arc<dyn Bootstrap>) -> Arc<Self> {
        let gathered = Mutex::default();
        Arc::new(Counted { by, gathered })
    }

    /// This PE's parts, exchange by exchange.
    pub fn gathered(&self) -> Vec<Vec<u8>> {
        let gathered = self.gathered.lock();
        gathered.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Bootstrap for Counted {
    fn rank(&self) -> u32 {
        self.by.rank()
    }

    fn size(&self) -> u32 {
        self.by.size()
    }

    fn describe(&self) -> String {
        self.by.describe()
    }

    fn allgather(&self, mine: &[u8]) -> Result<Vec<Vec<u8>>> {
        let gathered = self.gathered.lock();
        gathered
            .unwrap_or_else(PoisonError::into_inner)
            .push(mine.to_vec());
        self.by.allgather(mine)
    }

    fn barrier(&self) -> Result<()> {
        self.by.barrier()
    }

    fn send(&self, to: u32, message: &[u8]) -> Result<()> {
        self.by.send(to, message)
    }

    fn on_message(&self, handler: MessageHandler) -> Result<()> {
        self.by.on_message(handler)
    }

    fn on_exit(&self, handler: ExitHandler) -> Result<()> {
        self.by.on_exit(handler)
    }

    fn share_descriptors(
        &self,
        among: &[u32],
        mine: &[BorrowedFd<'_>],
        deadline: Duration,
    ) -> Result<Vec<Vec<OwnedFd>>> {
        self.by.share_descriptors(among, mine, deadline)
    }

    fn abort(&self, status: i32, why: &str) {
        self.by.abort(status, why);
    }

    fn leave(&self) {
        self.by.leave();
    }

    fn rest(&self, may_end: bool) {
        self.by.rest(may_end);
    }
}
