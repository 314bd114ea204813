//! Packets that carry descriptors over a Unix socket: their bytes, and how they are sent and received.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

use crate::error::{Error, Result, io};
use crate::job_key::JobKey;

/// Descriptors that the kernel takes in one packet (its SCM_MAX_FD).
const MAX_DESCRIPTORS: usize = 253;
/// The longest packet: the answer's count for each rank.
const MAX_PACKET: usize = 64 << 10;
/// Pause when too many descriptors of this user are in flight between processes.
const IN_FLIGHT_PAUSE: Duration = Duration::from_millis(2);

/// A follower's first packet.
pub(super) struct HelloPacket {
    pub(super) rank: u32,
    pub(super) total: usize,
}

pub(super) fn hello(key: &JobKey, rank: u32, total: usize) -> Vec<u8> {
    let mut packet = key.bytes().to_vec();
    packet.extend(rank.to_le_bytes());
    packet.extend(u32::try_from(total).unwrap_or(u32::MAX).to_le_bytes());
    packet
}

/// The hello in a packet, if its key is right.
pub(super) fn read_hello(packet: &[u8], key: &JobKey) -> Option<HelloPacket> {
    let (theirs, rest) = packet.split_first_chunk()?;
    let (rank, rest) = rest.split_first_chunk()?;
    let total = u32::from_le_bytes(*rest.first_chunk()?);
    if rest.len() != 4 || !JobKey::from_bytes(*theirs).matches(key) {
        return None;
    }
    Some(HelloPacket {
        rank: u32::from_le_bytes(*rank),
        total: total as usize,
    })
}

/// The leader's answer: the number of each rank's descriptors.
pub(super) fn success(counts: &[usize]) -> Vec<u8> {
    let mut packet = vec![0];
    for count in counts {
        packet.extend(u32::try_from(*count).unwrap_or(u32::MAX).to_le_bytes());
    }
    packet
}

/// The leader's answer when it has failed.
pub(super) fn failure(why: &str) -> Vec<u8> {
    let mut packet = vec![1];
    packet.extend(why.as_bytes().iter().take(MAX_PACKET - 1));
    packet
}

/// The number of descriptors of each of `ranks` ranks, from the leader's answer.
pub(super) fn read_answer(packet: &[u8], ranks: usize) -> Result<Vec<usize>> {
    match packet.split_first() {
        Some((0, rest)) if rest.len() == 4 * ranks => {
            let (counts, _) = rest.as_chunks::<4>();
            Ok(counts
                .iter()
                .map(|count| u32::from_le_bytes(*count) as usize)
                .collect())
        }
        Some((1, why)) => {
            let what = format!("the first rank gave up: {}", String::from_utf8_lossy(why));
            Err(Error::Descriptors { what })
        }
        _ => Err(Error::Descriptors {
            what: "the first rank's answer is malformed; all PEs must run the same version of \
                   oxshmem"
                .into(),
        }),
    }
}

/// The outcome of one receive.
pub(super) enum Received {
    Packet(Vec<u8>, Vec<OwnedFd>),
    Nothing,
    End,
}

/// Receives one packet, if there is one.
pub(super) fn receive(socket: &OwnedFd) -> Result<Received> {
    let mut data = vec![0; MAX_PACKET];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    let message = match recvmsg(
        socket,
        &mut [IoSliceMut::new(&mut data)],
        &mut control,
        flags,
    ) {
        Ok(message) => message,
        Err(Errno::AGAIN | Errno::INTR) => return Ok(Received::Nothing),
        Err(Errno::CONNRESET) => return Ok(Received::End),
        Err(error) => return Err(io("receiving descriptors")(error)),
    };
    let mut descriptors = Vec::new();
    for part in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = part {
            descriptors.extend(rights);
        }
    }
    if message.flags.contains(ReturnFlags::CTRUNC) {
        let what = "this process may have no more open descriptors; raise its limit (ulimit -n)";
        return Err(Error::Descriptors { what: what.into() });
    }
    // Every packet has data, so an empty one is the connection's end.
    if message.bytes == 0 {
        return Ok(Received::End);
    }
    data.truncate(message.bytes);
    Ok(Received::Packet(data, descriptors))
}

/// Sends one packet, without waiting.
pub(super) fn send(
    socket: &OwnedFd,
    data: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> rustix::io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(Errno::INVAL);
    }
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    sendmsg(socket, &[IoSlice::new(data)], &mut control, flags).map(drop)
}

/// Sends `head` and all descriptors, in as many packets as they need, waiting by `wait` while the
/// socket takes none.
pub(super) fn send_blocking(
    socket: &OwnedFd,
    head: &[u8],
    descriptors: &[BorrowedFd<'_>],
    wait: impl Fn(&mut [PollFd<'_>]) -> Result<bool>,
    end: Instant,
) -> Result<()> {
    let mut rest = descriptors;
    let mut data = head;
    loop {
        let (now, later) = rest.split_at(rest.len().min(MAX_DESCRIPTORS));
        match send(socket, data, now) {
            Ok(()) if later.is_empty() => return Ok(()),
            Ok(()) => (rest, data) = (later, &[0]),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                if !wait(&mut [PollFd::new(socket, PollFlags::OUT)])? {
                    return Err(io("sending descriptors")(Errno::TIMEDOUT));
                }
            }
            // Nothing tells when other processes have taken theirs.
            Err(Errno::TOOMANYREFS) if Instant::now() < end => std::thread::sleep(IN_FLIGHT_PAUSE),
            Err(error) => return Err(io("sending descriptors")(error)),
        }
    }
}
