//! A PE's bootstrap where PEs are processes: a client of the job's rendezvous, over TCP.

use std::net::Shutdown;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::bootstrap::{AskHandler, Bootstrap, ExitHandler, MessageHandler};
use crate::delivery::{SERVICE_STACK, join_service};
use crate::descriptors::{Exchange, check_list};
use crate::error::{Error, Result, check_bytes, io};
use crate::hub::Hub;
use crate::job_key::JobKey;
use crate::limits::gathered_share;
use crate::protocol::frame::{Channel, Frame, Kind};
use crate::protocol::hello::Hello;

pub(crate) mod connect;
mod connection;
#[cfg(test)]
mod tests;

use connect::{Listens, connect};
use connection::Connection;

/// Time limit of an abort, within which the rendezvous ends this process.
const ABORT_LIMIT: Duration = Duration::from_secs(5);

/// A PE of a job whose PEs are processes, connected to the job's rendezvous over TCP.
///
/// A thread of its own, the receive service, reads incoming frames. Dropping it without
/// [`leave`](Bootstrap::leave) counts as dying. If this process hosts the rendezvous (rank 0 of
/// a job that something other than oxshmem's launcher started), dropping it waits until the other
/// ranks have left or died, at most the deadline it was made with.
#[derive(Debug)]
pub struct TcpBootstrap {
    address: String,
    deadline: Duration,
    connection: Arc<Connection>,
    service: Option<JoinHandle<()>>,
    hub: Option<Arc<Hub>>,
    /// The interface through which it learnt of the rendezvous, if not from variables.
    found_by: Option<&'static str>,
}

impl TcpBootstrap {
    /// Connects rank `rank` of `size` to the rendezvous at `address` ("host:port"), retrying until
    /// `deadline` because the rendezvous may start later. `deadline` also bounds each collective
    /// call.
    pub fn connect(
        address: &str,
        rank: u32,
        size: u32,
        key: JobKey,
        deadline: Duration,
    ) -> Result<TcpBootstrap> {
        let hello = Hello { rank, size, key };
        Self::new(address, hello, deadline, Listens::Later, None)
    }

    /// As [`connect`](Self::connect); `hub`, if any, is the rendezvous, in this process. There may
    /// be several addresses, between commas, to be tried in this order.
    pub(crate) fn new(
        address: &str,
        hello: Hello,
        deadline: Duration,
        listens: Listens,
        hub: Option<Hub>,
    ) -> Result<TcpBootstrap> {
        let Hello { rank, size, .. } = hello;
        let stream = connect(address, hello, deadline, listens)?;
        let connection = Arc::new(Connection::new(rank, size, stream)?);
        let hub = hub.map(Arc::new);
        let service = {
            let (connection, hub) = (Arc::clone(&connection), hub.clone());
            std::thread::Builder::new()
                .name("oxshmem-receive".into())
                .stack_size(SERVICE_STACK)
                .spawn(move || connection.serve(hub.as_deref()))
                .map_err(io("starting the receive service's thread"))?
        };
        let service = Some(service);
        Ok(TcpBootstrap {
            address: address.to_owned(),
            deadline,
            connection,
            service,
            hub,
            found_by: None,
        })
    }

    /// The same bootstrap, which learnt of its rendezvous through `found_by` and gives its collective calls this deadline
    /// from now on.
    pub(crate) fn found_by(mut self, found_by: &'static str, deadline: Duration) -> TcpBootstrap {
        self.found_by = Some(found_by);
        self.deadline = deadline;
        self
    }
}

impl Bootstrap for TcpBootstrap {
    fn rank(&self) -> u32 {
        self.connection.rank
    }

    fn size(&self) -> u32 {
        self.connection.size
    }

    fn describe(&self) -> String {
        let Connection { rank, size, .. } = *self.connection;
        let host = if self.hub.is_some() {
            " (hosted here)"
        } else {
            ""
        };
        let found = match self.found_by {
            Some(name) => format!(", found by {name}"),
            None => String::new(),
        };
        format!(
            "tcp: rank {rank} of {size}, rendezvous at {}{host}{found}",
            self.address
        )
    }

    fn allgather(&self, mine: &[u8]) -> Result<Vec<Vec<u8>>> {
        let limit = gathered_share(self.connection.size as usize);
        check_bytes("allgather", mine.len(), limit)?;
        let parts = self
            .connection
            .collect(Kind::Allgather, mine.to_vec(), self.deadline)?;
        if parts.len() == self.connection.size as usize {
            return Ok(parts);
        }
        let what = format!(
            "an allgather with {} parts for {} ranks",
            parts.len(),
            self.connection.size
        );
        Err(Error::Protocol { what })
    }

    fn barrier(&self) -> Result<()> {
        self.connection
            .collect(Kind::Barrier, Vec::new(), self.deadline)
            .map(drop)
    }

    fn send(&self, to: u32, message: &[u8]) -> Result<()> {
        self.connection.send("send", to, Channel::User, message)
    }

    fn on_message(&self, handler: MessageHandler) -> Result<()> {
        self.connection.delivery.set_on_message(handler)?;
        self.connection.wake.signal();
        Ok(())
    }

    fn on_ask(&self, handler: AskHandler) -> Result<()> {
        self.connection.set_on_ask(handler)
    }

    fn hangs(&self) {
        // The loss of the rendezvous is told elsewhere.
        let _ = self.connection.write("hangs", &Frame::Hangs);
    }

    fn on_exit(&self, handler: ExitHandler) -> Result<()> {
        self.connection.delivery.set_on_exit(handler)?;
        self.connection.wake.signal();
        Ok(())
    }

    fn share_descriptors(
        &self,
        among: &[u32],
        mine: &[BorrowedFd<'_>],
        deadline: Duration,
    ) -> Result<Vec<Vec<OwnedFd>>> {
        check_list(among, self.connection.rank, self.connection.size)?;
        let call = self
            .connection
            .check("share_descriptors")?
            .descriptors
            .begin(among);
        Exchange {
            peers: &*self.connection,
            among,
            call,
            end: Instant::now() + deadline,
        }
        .run(mine)
    }

    fn abort(&self, status: i32, why: &str) {
        let by = self.connection.rank;
        let frame = Frame::Abort {
            by,
            status,
            why: why.to_owned(),
        };
        if self.connection.write("abort", &frame).is_err() {
            return;
        }
        // The receive service ends this process when the abort comes back.
        self.connection.wait_for_fault(ABORT_LIMIT);
    }

    fn leave(&self) {
        if !std::mem::replace(&mut self.connection.lock().left, true) {
            // If it cannot be said, there is nobody left to say it to.
            let _ = self.connection.write("leave", &Frame::Leave);
        }
    }

    fn outlast(&self) {
        if let Some(hub) = &self.hub {
            hub.wait_until_deserted(self.deadline);
        }
    }

    fn rest(&self, may_end: bool) {
        // As in `leave`.
        let _ = self.connection.write("rest", &Frame::Rest { may_end });
    }
}

impl Drop for TcpBootstrap {
    fn drop(&mut self) {
        self.connection.lock().closing = true;
        // The rendezvous sees this PE's end after all its frames, and closes the connection.
        let _ = self.connection.stream.shutdown(Shutdown::Write);
        self.connection.wake.signal();
        self.connection.delivery.close();
        if let Some(service) = self.service.take() {
            join_service(service);
        }
        self.outlast();
    }
}
