//! The wire between processes of one host: a datagram socket for each process, by which its number is claimed.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::fd::AsRawFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use crate::random::Random;
use crate::settings::Settings;
use crate::sync::lock;
use crate::wire::Packet;
use crate::world::PAIR_BITS;

/// Processes of a network: their numbers are the first bits of queue pairs' numbers.
const PROCESSES: u32 = 1 << (24 - PAIR_BITS);
/// Bytes of the longest packet.
const LONGEST: usize = 128 << 10;
/// The time after which a peer whose socket was full is tried again.
const AGAIN: Duration = Duration::from_micros(100);
/// Packets taken from the socket in one step.
const MOST: usize = 64;

#[derive(Debug)]
struct Peers {
    sockets: HashMap<u32, Option<UnixDatagram>>,
    buffer: Vec<u8>,
    blocked: bool,
}

/// This process's place in the network.
#[derive(Debug)]
pub(crate) struct Network {
    socket: UnixDatagram,
    process: u32,
    folder: Option<PathBuf>,
    path: Option<PathBuf>,
    peers: Mutex<Peers>,
}

fn address(folder: Option<&PathBuf>, process: u32) -> io::Result<SocketAddr> {
    match folder {
        Some(folder) => SocketAddr::from_pathname(folder.join(format!("softnic-{process}"))),
        None => {
            // SAFETY: no precondition.
            let user = unsafe { libc::getuid() };
            SocketAddr::from_abstract_name(format!("oxshmem-softnic-{user}-{process}"))
        }
    }
}

/// Claims a number: the name of its socket. A file that a process left behind is taken over.
fn claim(folder: Option<&PathBuf>, process: u32) -> io::Result<UnixDatagram> {
    let name = address(folder, process)?;
    match UnixDatagram::bind_addr(&name) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            let Some(path) = name.as_pathname() else {
                return Err(error);
            };
            let asked = UnixDatagram::unbound()?.connect_addr(&name);
            if asked.is_err_and(|refused| refused.kind() == io::ErrorKind::ConnectionRefused) {
                std::fs::remove_file(path)?;
                return UnixDatagram::bind_addr(&name);
            }
            Err(error)
        }
        other => other,
    }
}

impl Network {
    /// Claims a number that no living process has.
    pub(crate) fn join(settings: &Settings) -> Result<Network, String> {
        let folder = settings.folder.clone();
        let mut random = Random::new(u64::from(std::process::id()) << 32 ^ clock());
        let mut last = None;
        for _ in 0..4 * PROCESSES {
            let process = random.below(PROCESSES.into()) as u32;
            match claim(folder.as_ref(), process) {
                Ok(socket) => {
                    socket
                        .set_nonblocking(true)
                        .map_err(|error| error.to_string())?;
                    let path = folder
                        .as_ref()
                        .map(|folder| folder.join(format!("softnic-{process}")));
                    let peers = Peers {
                        sockets: HashMap::new(),
                        buffer: vec![0; LONGEST],
                        blocked: false,
                    };
                    return Ok(Network {
                        socket,
                        process,
                        folder,
                        path,
                        peers: Mutex::new(peers),
                    });
                }
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => last = Some(error),
                Err(error) => return Err(format!("the socket of process {process}: {error}")),
            }
        }
        let last = last.map(|error| error.to_string()).unwrap_or_default();
        Err(format!(
            "no number is free for this process's NICs ({last})"
        ))
    }

    pub(crate) fn process(&self) -> u32 {
        self.process
    }

    /// The packets that have come.
    pub(crate) fn receive(&self) -> Vec<Packet> {
        let mut peers = lock(&self.peers);
        let mut packets = Vec::new();
        while packets.len() < MOST
            && let Ok(len) = self.socket.recv(&mut peers.buffer)
        {
            packets.extend(Packet::from_bytes(&peers.buffer[..len]));
        }
        packets
    }

    /// Sends packets; those whose receiver's socket is full stay, in order. True if one left.
    pub(crate) fn send(&self, packets: &mut VecDeque<Packet>) -> bool {
        let mut peers = lock(&self.peers);
        peers.blocked = false;
        if packets.is_empty() {
            return false;
        }
        let (sent, full) = (Cell::new(false), RefCell::new(Vec::new()));
        packets.retain(|packet| {
            let process = packet.to >> PAIR_BITS;
            if full.borrow().contains(&process) {
                return true;
            }
            let socket = peers
                .sockets
                .entry(process)
                .or_insert_with(|| self.connect(process));
            let Some(to) = socket else {
                *socket = self.connect(process);
                return false;
            };
            match to.send(&packet.to_bytes()) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    full.borrow_mut().push(process);
                    return true;
                }
                // The process ended; another may get its number.
                Err(_) => *socket = None,
                Ok(_) => sent.set(true),
            }
            false
        });
        peers.blocked = !full.borrow().is_empty();
        sent.get()
    }

    fn connect(&self, process: u32) -> Option<UnixDatagram> {
        let socket = UnixDatagram::unbound().ok()?;
        socket
            .connect_addr(&address(self.folder.as_ref(), process).ok()?)
            .ok()?;
        socket.set_nonblocking(true).ok()?;
        Some(socket)
    }

    /// The time until packets that stayed are tried again.
    pub(crate) fn retry(&self) -> Option<Duration> {
        lock(&self.peers).blocked.then_some(AGAIN)
    }

    /// Sleeps until a packet comes, `wake` is readable, or the time is over.
    pub(crate) fn wait(&self, wake: std::ffi::c_int, time: Option<Duration>) {
        let readable = |fd| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        };
        let mut files = [readable(wake), readable(self.socket.as_raw_fd())];
        let time = time.map(|time| libc::timespec {
            tv_sec: time.as_secs() as libc::time_t,
            tv_nsec: time.subsec_nanos().into(),
        });
        let time = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: two descriptors are watched; the time is null or lives as long as the call.
        unsafe { libc::ppoll(files.as_mut_ptr(), 2, time, std::ptr::null()) };
    }

    /// Takes the socket's file away, if it has one: a process that ends leaves nothing behind.
    pub(crate) fn leave(&self) {
        if let Some(path) = &self.path {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Nanoseconds of a clock, for numbers that differ.
fn clock() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as u64)
}
