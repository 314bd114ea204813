//! An exchange of descriptors between the processes of one host.
//!
//! The first rank of the list, the leader, listens on an abstract Unix socket of random name, which nothing in a
//! file system knows. It sends that name and a random key to the others, the followers, through the bootstrap. It
//! checks each connection's user (by the kernel's word) and key, gathers all descriptors, and sends
//! every rank all of them: one connection and a few packets per PE.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, connect, listen,
    socket_with,
};

use crate::bootstrap::PeerExit;
use crate::error::{Error, Result, io};
use crate::job_key::JobKey;

#[cfg(any(fuzzing, test))]
pub(crate) mod fuzzing;
pub(crate) mod invitation;
mod packet;
#[cfg(test)]
mod tests;

use invitation::{CallId, Invitation, OPERATION};
use packet::{Received, receive, send, send_blocking};

/// Longest time between checks for dead ranks.
const SLICE: Duration = Duration::from_millis(100);
/// Time limit for word of a PE's death once its connection has ended.
const LAST_WORD: Duration = Duration::from_millis(500);
/// Pause while the leader's queue of connections is full: nothing tells when it has a free place.
const QUEUE_PAUSE: Duration = Duration::from_millis(2);
/// Connections that may wait for the leader, unless the kernel's limit (somaxconn) is lower.
const BACKLOG: i32 = 4096;
/// The user that the kernel names where a user namespace has no number for one (its `overflowuid`).
const UNMAPPED_USER: u32 = 65534;

/// Fails unless `among` is a list of different ranks of the job, `me` included.
pub(crate) fn check_list(among: &[u32], me: u32, size: u32) -> Result<()> {
    if let Some(rank) = among.iter().find(|rank| **rank >= size) {
        return Err(Error::NoSuchRank { rank: *rank, size });
    }
    let mut sorted = among.to_vec();
    sorted.sort_unstable();
    let problem = if !sorted.contains(&me) {
        format!("rank {me} is not in its own list {among:?}")
    } else if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
        format!("the list {among:?} names a rank twice")
    } else {
        return Ok(());
    };
    Err(Error::Descriptors {
        what: format!("{problem}; list each rank once, the caller too"),
    })
}

/// The exchange's way to the other ranks beside its sockets.
pub(crate) trait Peers {
    fn rank(&self) -> u32;
    /// Sends an invitation.
    fn send_invitation(&self, to: u32, message: &[u8]) -> Result<()>;
    /// Waits for an invitation.
    fn await_invitation(&self, from: u32, call: &CallId, end: Instant) -> Result<Invitation>;
    /// One of these ranks that has left or died.
    fn gone(&self, among: &[u32]) -> Option<PeerExit>;
}

/// One call of `share_descriptors`.
pub(crate) struct Exchange<'a, P> {
    pub(crate) peers: &'a P,
    pub(crate) among: &'a [u32],
    pub(crate) call: CallId,
    pub(crate) end: Instant,
}

/// A follower's connection, as the leader sees it.
struct Follower {
    socket: OwnedFd,
    /// Whether it is this PE's own user's, by number.
    is_own: bool,
    /// Its place in the list and the number of its descriptors, once it has said so.
    announced: Option<(usize, usize)>,
    descriptors: Vec<OwnedFd>,
}

impl Follower {
    fn complete(&self) -> bool {
        self.announced
            .is_some_and(|(_, total)| self.descriptors.len() == total)
    }
}

impl<P: Peers> Exchange<'_, P> {
    /// Gives `mine` to the others and returns theirs.
    pub(crate) fn run(&self, mine: &[BorrowedFd<'_>]) -> Result<Vec<Vec<OwnedFd>>> {
        match self.among.split_first() {
            None | Some((_, [])) => Ok(self.among.iter().map(|_| Vec::new()).collect()),
            Some((first, others)) if *first == self.peers.rank() => self.lead(others, mine),
            Some((first, _)) => self.follow(*first, mine),
        }
    }

    fn lead(&self, others: &[u32], mine: &[BorrowedFd<'_>]) -> Result<Vec<Vec<OwnedFd>>> {
        let (name, key) = (*JobKey::random()?.bytes(), JobKey::random()?);
        let listener = new_socket()?;
        let address = abstract_address(&name)?;
        bind(&listener, &address).map_err(io("binding an abstract Unix socket"))?;
        listen(&listener, BACKLOG).map_err(io("listening on an abstract Unix socket"))?;

        let invitation = Invitation {
            call: self.call.clone(),
            name,
            key,
        };
        let message = invitation.encode();
        for rank in others {
            self.peers.send_invitation(*rank, &message)?;
        }
        let mut followers = Vec::new();
        if let Err(error) = self.gather(&listener, &key, others.len(), &mut followers) {
            for follower in followers
                .iter()
                .filter(|follower| follower.announced.is_some())
            {
                // A follower that cannot be told finds out by the end of the connection.
                let _ = send(&follower.socket, &packet::failure(&error.to_string()), &[]);
            }
            return Err(error);
        }
        self.distribute(&followers, mine)?;
        let mut given: Vec<Vec<OwnedFd>> = self.among.iter().map(|_| Vec::new()).collect();
        for follower in followers {
            let place = follower.announced.map_or(0, |(place, _)| place);
            given[place] = follower.descriptors;
        }
        Ok(given)
    }

    /// Receives every follower's descriptors.
    fn gather(
        &self,
        listener: &OwnedFd,
        key: &JobKey,
        expected: usize,
        followers: &mut Vec<Follower>,
    ) -> Result<()> {
        let start = Instant::now();
        while followers
            .iter()
            .filter(|follower| follower.complete())
            .count()
            < expected
        {
            let mut waits = vec![PollFd::new(listener, PollFlags::IN)];
            let waiting = followers.iter().filter(|follower| !follower.complete());
            waits.extend(waiting.map(|follower| PollFd::new(&follower.socket, PollFlags::IN)));
            if !self.wait(&mut waits)? {
                let is_complete = |rank: &u32| {
                    let place = self.among.iter().position(|other| other == rank);
                    followers
                        .iter()
                        .any(|g| g.complete() && g.announced.map(|(at, _)| at) == place)
                };
                let ranks = self.among[1..]
                    .iter()
                    .filter(|rank| !is_complete(rank))
                    .copied()
                    .collect();
                let waited = start.elapsed();
                return Err(Error::MissingRanks {
                    operation: OPERATION,
                    ranks,
                    waited,
                });
            }
            drop(waits);
            self.accept(listener, followers)?;
            let mut index = 0;
            while index < followers.len() {
                if followers[index].complete() || self.listen(index, followers, key)? {
                    index += 1;
                } else {
                    followers.remove(index);
                }
            }
        }
        // Drops connections that never gave a rank.
        followers.retain(Follower::complete);
        Ok(())
    }

    fn accept(&self, listener: &OwnedFd, followers: &mut Vec<Follower>) -> Result<()> {
        loop {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            match accept_with(listener, flags) {
                Ok(socket) => {
                    let user = peer_user(&socket).map_err(io("asking who connected"))?;
                    // A PE of another user namespace may have no number here. The key tells that it is this job's.
                    let is_own = user == rustix::process::geteuid().as_raw();
                    if is_own || user == UNMAPPED_USER {
                        followers.push(Follower {
                            socket,
                            is_own,
                            announced: None,
                            descriptors: Vec::new(),
                        });
                    } else {
                        tracing::warn!(
                            "refused another user's connection to the descriptor exchange"
                        );
                    }
                }
                Err(rustix::io::Errno::AGAIN) => return Ok(()),
                Err(rustix::io::Errno::INTR | rustix::io::Errno::CONNABORTED) => {}
                Err(error) => return Err(no_socket("accepting a PE's connection", error)),
            }
        }
    }

    /// Reads packets of follower `index`; false if it is to be dropped.
    fn listen(&self, index: usize, followers: &mut [Follower], key: &JobKey) -> Result<bool> {
        loop {
            let (data, descriptors) = match receive(&followers[index].socket)? {
                Received::Packet(data, descriptors) => (data, descriptors),
                Received::Nothing => return Ok(true),
                Received::End if followers[index].complete() => return Ok(true),
                // Perhaps another program: names of sockets are no secret.
                Received::End
                    if !followers[index].is_own && followers[index].announced.is_none() =>
                {
                    return Ok(false);
                }
                // The bootstrap tells in a moment if this PE has died.
                Received::End => {
                    let until = self.end.min(Instant::now() + LAST_WORD);
                    while Instant::now() < until {
                        self.check_gone()?;
                        std::thread::sleep(QUEUE_PAUSE);
                    }
                    let who = match followers[index].announced {
                        Some((place, _)) => format!("PE {}", self.among[place]),
                        None => "a PE of this host".to_owned(),
                    };
                    return Err(Error::Descriptors {
                        what: format!(
                            "{who} closed its connection before all of its heap's descriptors had come; its \
                             own error, on its standard error, says why"
                        ),
                    });
                }
            };
            if followers[index].announced.is_none() {
                let Some(hello) = packet::read_hello(&data, key) else {
                    tracing::warn!(
                        "refused a connection with a wrong key to the descriptor exchange"
                    );
                    return Ok(false);
                };
                let place = self.among.iter().position(|rank| *rank == hello.rank);
                let taken = followers
                    .iter()
                    .any(|g| g.announced.map(|(at, _)| at) == place);
                match place {
                    Some(place) if place > 0 && !taken => {
                        followers[index].announced = Some((place, hello.total));
                    }
                    _ => return Ok(false),
                }
            }
            let follower = &mut followers[index];
            follower.descriptors.extend(descriptors);
            if follower
                .announced
                .is_some_and(|(_, total)| follower.descriptors.len() > total)
            {
                return Ok(false);
            }
            if follower.complete() {
                return Ok(true);
            }
        }
    }

    /// Sends every follower all other ranks' descriptors.
    fn distribute(&self, followers: &[Follower], mine: &[BorrowedFd<'_>]) -> Result<()> {
        let mut counts = vec![0; self.among.len()];
        let mut all: Vec<(usize, BorrowedFd<'_>)> = mine.iter().map(|fd| (0, *fd)).collect();
        counts[0] = mine.len();
        for follower in followers {
            let (place, total) = follower.announced.unwrap_or_default();
            counts[place] = total;
            all.extend(follower.descriptors.iter().map(|fd| (place, fd.as_fd())));
        }
        all.sort_by_key(|(place, _)| *place);
        let head = packet::success(&counts);
        for follower in followers {
            let place = follower.announced.unwrap_or_default().0;
            let theirs: Vec<BorrowedFd<'_>> = all
                .iter()
                .filter(|(owner, _)| *owner != place)
                .map(|(_, fd)| *fd)
                .collect();
            // In turn: each follower takes its packets as they come, so none waits for long.
            send_blocking(
                &follower.socket,
                &head,
                &theirs,
                |waits| self.wait(waits),
                self.end,
            )?;
        }
        Ok(())
    }

    fn follow(&self, first: u32, mine: &[BorrowedFd<'_>]) -> Result<Vec<Vec<OwnedFd>>> {
        let invitation = self.peers.await_invitation(first, &self.call, self.end)?;
        let socket = self.connect(first, &invitation)?;
        let hello = packet::hello(&invitation.key, self.peers.rank(), mine.len());
        send_blocking(&socket, &hello, mine, |waits| self.wait(waits), self.end)?;

        let start = Instant::now();
        let mut descriptors = Vec::new();
        let mut counts: Option<Vec<usize>> = None;
        let own = self
            .among
            .iter()
            .position(|rank| *rank == self.peers.rank())
            .unwrap_or(0);
        loop {
            if let Some(counts) = &mut counts
                && descriptors.len() == counts.iter().sum::<usize>()
            {
                let mut rest = descriptors.into_iter();
                return Ok(counts
                    .iter()
                    .map(|count| rest.by_ref().take(*count).collect())
                    .collect());
            }
            match receive(&socket)? {
                Received::Packet(data, more) => {
                    if counts.is_none() {
                        let mut announced = packet::read_answer(&data, self.among.len())?;
                        announced[own] = 0;
                        counts = Some(announced);
                    }
                    descriptors.extend(more);
                }
                Received::Nothing => {
                    if !self.wait(&mut [PollFd::new(&socket, PollFlags::IN)])? {
                        let (ranks, waited) = (vec![first], start.elapsed());
                        return Err(Error::MissingRanks {
                            operation: OPERATION,
                            ranks,
                            waited,
                        });
                    }
                }
                Received::End => {
                    self.check_gone()?;
                    let what = format!(
                        "rank {first}, which passes them on, hung up; its own error says why"
                    );
                    return Err(Error::Descriptors { what });
                }
            }
        }
    }

    /// Connects to the leader.
    fn connect(&self, first: u32, invitation: &Invitation) -> Result<OwnedFd> {
        let start = Instant::now();
        let socket = new_socket()?;
        let address = abstract_address(&invitation.name)?;
        loop {
            match connect(&socket, &address) {
                Ok(()) => return Ok(socket),
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::CONNREFUSED) => {
                    self.check_gone()?;
                    let what = format!(
                        "rank {first}, which passes them on, gave up before this rank came; its \
                         own error says why"
                    );
                    return Err(Error::Descriptors { what });
                }
                Err(rustix::io::Errno::AGAIN) => {
                    self.check_gone()?;
                    if Instant::now() >= self.end {
                        return Err(Error::MissingRanks {
                            operation: OPERATION,
                            ranks: vec![first],
                            waited: start.elapsed(),
                        });
                    }
                    std::thread::sleep(QUEUE_PAUSE);
                }
                Err(error) => return Err(io("connecting to an abstract Unix socket")(error)),
            }
        }
    }

    /// Waits until something is ready (true) or the call's time is over (false); fails when a rank
    /// of the list has gone.
    fn wait(&self, waits: &mut [PollFd<'_>]) -> Result<bool> {
        loop {
            let Some(left) = self.end.checked_duration_since(Instant::now()) else {
                return Ok(false);
            };
            let slice = Timespec::try_from(left.min(SLICE)).ok();
            match poll(waits, slice.as_ref()) {
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Ok(_) => return Ok(true),
                Err(error) => return Err(io("waiting for descriptors")(error)),
            }
            self.check_gone()?;
        }
    }

    fn check_gone(&self) -> Result<()> {
        match self.peers.gone(self.among) {
            Some(PeerExit { rank, orderly }) => Err(Error::PeerGone {
                operation: OPERATION,
                rank,
                orderly,
            }),
            None => Ok(()),
        }
    }
}

fn new_socket() -> Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
        .map_err(|error| no_socket("making a Unix socket", error))
}

/// The user at the other end. (rustix asks for the process too, which has no number here where it is
/// of another PID namespace, as in another container.)
fn peer_user(socket: &OwnedFd) -> std::io::Result<u32> {
    let mut credentials = libc::ucred {
        pid: 0,
        uid: UNMAPPED_USER,
        gid: 0,
    };
    let mut size = size_of_val(&credentials) as libc::socklen_t;
    // SAFETY: the place is a `ucred` and as large as said; the descriptor is open.
    let code = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut credentials).cast(),
            &raw mut size,
        )
    };
    match code {
        0 => Ok(credentials.uid),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// The error of a socket that could not be made, with its remedy.
fn no_socket(action: &'static str, error: rustix::io::Errno) -> Error {
    let hint = match error {
        rustix::io::Errno::MFILE => {
            "this process may have no more open descriptors; raise its limit (ulimit -n), or start \
             fewer PEs per host"
        }
        rustix::io::Errno::NFILE => "this host may have no more open files; raise fs.file-max",
        _ => return io(action)(error),
    };
    Error::Descriptors {
        what: format!("{action}: {error}; {hint}"),
    }
}

fn abstract_address(name: &[u8; JobKey::LENGTH]) -> Result<SocketAddrUnix> {
    let mut full = b"oxshmem-".to_vec();
    full.extend(name);
    SocketAddrUnix::new_abstract_name(&full).map_err(io("naming an abstract Unix socket"))
}
