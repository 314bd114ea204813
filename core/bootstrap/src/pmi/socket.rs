//! The connection to the process manager.

use std::os::fd::{FromRawFd, OwnedFd};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::version::unexpected;
use crate::error::{Error, Result};

/// Bytes of a message, at most: no answer has so many.
const MAX_BYTES: usize = 128 << 10;

/// A stream whose every wait ends at the same time.
#[derive(Debug)]
pub(super) struct Socket {
    socket: OwnedFd,
    pub(super) interface: &'static str,
    end: Instant,
    begun: Instant,
    /// Bytes that are read, and that no call has asked for yet.
    pending: Vec<u8>,
}

impl Socket {
    /// The socket that this process inherited under this number, which stays open beside it.
    pub(super) fn inherited(
        descriptor: i32,
        interface: &'static str,
        end: Instant,
    ) -> Result<Socket> {
        let bad = |why: String| Error::Variable {
            name: "PMI_FD",
            value: descriptor.to_string(),
            problem: format!(
                "is no connection to a process manager ({why}): this process was not started by \
                 one directly, or something closed it, as MPICH's MPI_Finalize does: initialize \
                 oxshmem before it; start the program itself by mpiexec or srun, or set \
                 OXSHMEM_BOOTSTRAP=single for a world of one"
            ),
        };
        // SAFETY: fcntl takes any number; one that is no open descriptor is an error.
        let copy = unsafe { libc::fcntl(descriptor, libc::F_DUPFD_CLOEXEC, 3) };
        if copy < 0 {
            return Err(bad(std::io::Error::last_os_error().to_string()));
        }
        // SAFETY: fcntl has just made this descriptor, and nothing else knows of it.
        let socket = unsafe { OwnedFd::from_raw_fd(copy) };
        if let Err(error) = rustix::net::sockopt::socket_type(&socket) {
            return Err(bad(error.to_string()));
        }
        Ok(Socket::new(socket, interface, end))
    }

    pub(super) fn new(socket: OwnedFd, interface: &'static str, end: Instant) -> Socket {
        Socket {
            socket,
            interface,
            end,
            begun: Instant::now(),
            pending: Vec::new(),
        }
    }

    /// Bounds every wait from now on.
    pub(super) fn wait_until(&mut self, end: Instant) {
        self.begun = Instant::now();
        self.end = end;
    }

    /// Sends all of it.
    pub(super) fn send(&mut self, step: &'static str, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            match send(
                &self.socket,
                bytes,
                SendFlags::NOSIGNAL | SendFlags::DONTWAIT,
            ) {
                Ok(sent) => bytes = bytes.get(sent..).unwrap_or_default(),
                Err(Errno::AGAIN) => self.wait(step, PollFlags::OUT)?,
                Err(Errno::INTR) => {}
                Err(error) => return Err(self.lost(step, error.to_string())),
            }
        }
        Ok(())
    }

    /// The next line, without its end.
    pub(super) fn line(&mut self, step: &'static str) -> Result<Vec<u8>> {
        loop {
            if let Some(length) = self.pending.iter().position(|byte| *byte == b'\n') {
                let mut line: Vec<u8> = self.pending.drain(..=length).collect();
                line.pop();
                return Ok(line);
            }
            self.receive(step)?;
        }
    }

    /// The next `count` bytes.
    pub(super) fn exactly(&mut self, step: &'static str, count: usize) -> Result<Vec<u8>> {
        while self.pending.len() < count {
            self.receive(step)?;
        }
        Ok(self.pending.drain(..count).collect())
    }

    fn receive(&mut self, step: &'static str) -> Result<()> {
        if self.pending.len() > MAX_BYTES {
            let what = format!("more than {MAX_BYTES} bytes and no end of the message");
            return Err(unexpected(self.interface, step, what));
        }
        let mut bytes = [0; 4096];
        match recv(&self.socket, bytes.as_mut_slice(), RecvFlags::DONTWAIT) {
            Ok((_, 0)) => Err(self.lost(step, "it closed the connection".to_owned())),
            Ok((_, count)) => {
                self.pending.extend(bytes.iter().take(count));
                Ok(())
            }
            Err(Errno::AGAIN) => self.wait(step, PollFlags::IN),
            Err(Errno::INTR) => Ok(()),
            Err(error) => Err(self.lost(step, error.to_string())),
        }
    }

    fn wait(&self, step: &'static str, what: PollFlags) -> Result<()> {
        let left = self.end.saturating_duration_since(Instant::now());
        let limit = Timespec::try_from(left).ok();
        let mut waits = [PollFd::new(&self.socket, what)];
        match poll(&mut waits, limit.as_ref()) {
            Ok(0) => Err(Error::ProcessManager {
                interface: self.interface,
                step,
                why: format!("no answer within {:.1?}", self.begun.elapsed()),
                hint: "see whether every PE runs and initializes oxshmem; \
                       OXSHMEM_BOOTSTRAP_TIMEOUT sets how long to wait",
            }),
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(self.lost(step, error.to_string())),
        }
    }

    fn lost(&self, step: &'static str, why: String) -> Error {
        Error::ProcessManager {
            interface: self.interface,
            step,
            why: format!("the connection to the process manager is lost: {why}"),
            hint: "the process manager has ended, or another library of this process has taken \
                   leave of it, as MPI_Finalize does: see what mpiexec or srun printed",
        }
    }
}
