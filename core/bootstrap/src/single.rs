//! The bootstrap of a world of one PE.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::bootstrap::{Bootstrap, ExitHandler, MessageHandler};
use crate::delivery::{Delivery, SERVICE_STACK, join_service};
use crate::descriptors::check_list;
use crate::error::{Error, Result, check_bytes, io};
use crate::limits::{MAX_GATHERED_BYTES, MAX_MESSAGE_BYTES};
use crate::lock::unpoisoned;
use crate::log;
use crate::process::exit_now;

/// The bootstrap of a program that nothing launched: rank 0 of 1.
#[derive(Debug, Default)]
pub struct Single {
    delivery: Arc<Delivery>,
    service: Mutex<Option<JoinHandle<()>>>,
}

impl Single {
    /// A world of one.
    pub fn new() -> Single {
        Single::default()
    }
}

impl Bootstrap for Single {
    fn rank(&self) -> u32 {
        0
    }

    fn size(&self) -> u32 {
        1
    }

    fn describe(&self) -> String {
        "single: no launcher, a world of one PE".to_owned()
    }

    fn allgather(&self, mine: &[u8]) -> Result<Vec<Vec<u8>>> {
        check_bytes("allgather", mine.len(), MAX_GATHERED_BYTES)?;
        Ok(vec![mine.to_vec()])
    }

    fn barrier(&self) -> Result<()> {
        Ok(())
    }

    fn send(&self, to: u32, message: &[u8]) -> Result<()> {
        if to != 0 {
            return Err(Error::NoSuchRank { rank: to, size: 1 });
        }
        check_bytes("send", message.len(), MAX_MESSAGE_BYTES)?;
        if self.delivery.is_full() {
            return Err(Error::Unheard { rank: 0 });
        }
        self.delivery.push_message(0, message.to_vec());
        Ok(())
    }

    fn on_message(&self, handler: MessageHandler) -> Result<()> {
        self.delivery.set_on_message(handler)?;
        let delivery = Arc::clone(&self.delivery);
        let service = std::thread::Builder::new()
            .name("oxshmem-receive".into())
            .stack_size(SERVICE_STACK)
            .spawn(move || delivery.serve())
            .map_err(io("starting the receive service's thread"))?;
        *unpoisoned(self.service.lock()) = Some(service);
        Ok(())
    }

    fn on_exit(&self, handler: ExitHandler) -> Result<()> {
        self.delivery.set_on_exit(handler)
    }

    fn share_descriptors(
        &self,
        among: &[u32],
        _mine: &[BorrowedFd<'_>],
        _deadline: Duration,
    ) -> Result<Vec<Vec<OwnedFd>>> {
        check_list(among, 0, 1)?;
        Ok(vec![Vec::new()])
    }

    fn abort(&self, status: i32, why: &str) {
        if status != 0 {
            log::say(&format!("aborted with status {status}: {why}"));
        }
        exit_now(status)
    }

    fn leave(&self) {}

    fn rest(&self, _may_end: bool) {}
}

impl Drop for Single {
    fn drop(&mut self) {
        self.delivery.close();
        if let Some(service) = unpoisoned(self.service.get_mut()).take() {
            join_service(service);
        }
    }
}
