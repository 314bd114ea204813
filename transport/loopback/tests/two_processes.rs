//! Two processes over descriptors: this program starts itself once more, and the two exchange
//! addresses, keys and memfds over a socket pair, as a bootstrap would.

use std::error::Error;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use oxshmem_heap::Mapping;
use oxshmem_loopback::Loopback;
use oxshmem_transport::{
    AtomicOp, Domain, Error as TransportError, HostId, Job, Lane, Local, Memory, MemoryKind, Op,
    Pe, Peer, Reach, RegionId, Remote, RemoteRegion, SignalOp, Status, Transport, Width,
};
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};

type Result<T = (), E = Box<dyn Error>> = std::result::Result<T, E>;

const CHILD: &str = "OXSHMEM_LOOPBACK_TEST_CHILD";
const DEADLINE: Duration = Duration::from_secs(30);
const BYTES: usize = 1 << 20;

/// Where the two PEs keep what, in each one's region 0.
const DATA: u64 = 4096;
const SIGNAL: u64 = 0;
const COUNT: u64 = 64;
const DONE: u64 = 128;
const ADDS: u64 = 20_000;
const LONG: usize = 300_001;

fn main() -> ExitCode {
    let (who, ended) = match std::env::var_os(CHILD) {
        Some(_) => ("child", child()),
        None => ("parent", parent()),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("two_processes, {who}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn parent() -> Result {
    let (ours, theirs) = UnixStream::pair()?;
    let mut child = Command::new(std::env::current_exe()?)
        .env(CHILD, "1")
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .spawn()?;
    let ended = play(Pe(0), &ours);
    drop(ours);
    if ended.is_err() {
        child.kill()?;
    }
    let status = child.wait()?;
    ended?;
    if status.success() {
        println!("two processes reach each other by descriptor: ok");
        Ok(())
    } else {
        Err(format!("the child ended with {status}").into())
    }
}

fn child() -> Result {
    let socket = std::io::stdin().as_fd().try_clone_to_owned()?;
    play(Pe(1), &UnixStream::from(socket))
}

fn sealed_file(bytes: usize, seals: SealFlags) -> Result<OwnedFd> {
    let file = rustix::fs::memfd_create(
        "loopback-test",
        MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING,
    )?;
    rustix::fs::ftruncate(&file, bytes as u64)?;
    rustix::fs::fcntl_add_seals(&file, seals)?;
    Ok(file)
}

fn memory() -> Result<Memory> {
    let file = Arc::new(sealed_file(BYTES, SealFlags::SHRINK | SealFlags::GROW)?);
    let mapping = Arc::new(Mapping::of_descriptor(file.as_fd(), BYTES)?);
    let (base, len) = (mapping.base(), mapping.len());
    // SAFETY: the mapping keeps the bytes mapped, and its own methods don't touch them.
    Ok(unsafe { Memory::new(base, len, MemoryKind::Host, Some(file), mapping) })
}

/// The program of each PE, with the other at the end of `socket`.
fn play(me: Pe, socket: &UnixStream) -> Result {
    socket.set_read_timeout(Some(DEADLINE))?;
    let host = HostId("one host".into());
    let loopback = Loopback::new();
    let job = Job {
        me,
        size: 2,
        host_rank: 0,
        host: host.clone(),
    };
    let domain = loopback.open(&loopback.probe()?[0], &job)?;
    let memory = memory()?;
    let region = domain.register(RegionId(0), &memory)?;
    let descriptor = region.descriptor().ok_or("the region has no descriptor")?;

    send(socket, &domain.address(), descriptor)?;
    let (address, _) = receive(socket)?;
    let peer = Peer {
        pe: Pe(1 - me.0),
        host,
        address: Some(address),
    };
    match domain.reach(&peer, MemoryKind::Host) {
        Reach::Mapped { descriptor: true } => {}
        other => return Err(format!("another process is reached by {other:?}").into()),
    }
    send(socket, region.key(), descriptor)?;
    let (key, descriptor) = receive(socket)?;
    refuses_wrong_descriptors(&*domain, &peer, &key)?;
    let imported = domain.import(&peer, RegionId(0), &key, Some(descriptor))?;
    if imported.len() != BYTES || imported.mapped().is_none() {
        return Err("the import is not the whole region, mapped".into());
    }
    use_it(&*domain, &peer, &memory, &*imported, socket)
}

/// No descriptor, one of too short a file, and one that could shrink under its users are refused.
fn refuses_wrong_descriptors(domain: &dyn Domain, peer: &Peer, key: &[u8]) -> Result {
    let wrong = [
        None,
        Some(sealed_file(BYTES - 4096, SealFlags::SHRINK)?),
        Some(sealed_file(BYTES, SealFlags::GROW)?),
    ];
    for descriptor in wrong {
        let told = format!("{descriptor:?}");
        match domain.import(peer, RegionId(0), key, descriptor) {
            Err(TransportError::BadPeerData { .. }) => {}
            other => return Err(format!("descriptor {told}: {other:?}").into()),
        }
    }
    Ok(())
}

fn word(memory: &Memory, offset: u64) -> &AtomicU64 {
    // SAFETY: the test's offsets are aligned and inside its memory, which both processes access
    // atomically at these words.
    unsafe { AtomicU64::from_ptr(memory.base().as_ptr().add(offset as usize).cast()) }
}

fn wait_for(memory: &Memory, offset: u64, value: u64) -> Result {
    let since = Instant::now();
    while word(memory, offset).load(Ordering::Acquire) != value {
        if since.elapsed() > DEADLINE {
            let found = word(memory, offset).load(Ordering::Acquire);
            return Err(format!("the word at {offset} is still {found}, not {value}").into());
        }
        std::thread::yield_now();
    }
    Ok(())
}

fn at(offset: u64) -> Remote {
    Remote {
        region: RegionId(0),
        offset,
    }
}

fn post(lane: &mut dyn Lane, pe: Pe, op: Op) -> Result {
    // SAFETY: loopback performs operations in `post`, during which the caller borrows their local
    // side.
    let posted = unsafe { lane.post(pe, &[op]) };
    match posted.status {
        Status::All => Ok(()),
        other => Err(format!("{op:?} was answered {other:?}").into()),
    }
}

fn use_it(
    domain: &dyn Domain,
    peer: &Peer,
    memory: &Memory,
    imported: &dyn RemoteRegion,
    socket: &UnixStream,
) -> Result {
    let mut lane = domain.lane()?;
    // Data and a signal each way: neither side's seed is the other's.
    let mut source: Vec<u8> = (0..LONG)
        .map(|k| (k as u32 * 7 + peer.pe.0) as u8)
        .collect();
    let from = Local {
        addr: source.as_mut_ptr(),
        len: source.len(),
        key: None,
    };
    let (to, signal) = (at(DATA), at(SIGNAL));
    post(
        &mut *lane,
        peer.pe,
        Op::PutSignal {
            from,
            to,
            signal,
            op: SignalOp::Add,
            value: 3,
        },
    )?;
    wait_for(memory, SIGNAL, 3)?;
    let mut arrived = vec![0; LONG];
    let into = Local {
        addr: arrived.as_mut_ptr(),
        len: LONG,
        key: None,
    };
    // The data here differs from the data put there in the seed alone: read the peer's copy back.
    post(
        &mut *lane,
        peer.pe,
        Op::Get {
            into,
            from: at(DATA),
        },
    )?;
    if arrived != source {
        return Err("the peer's memory does not hold what was put there".into());
    }
    let me = 1 - peer.pe.0;
    for k in (0..LONG).step_by(8).take(LONG / 8 - 1) {
        let bytes = word(memory, DATA + k as u64)
            .load(Ordering::Relaxed)
            .to_le_bytes();
        let want: [u8; 8] = std::array::from_fn(|n| ((k + n) as u32 * 7 + me) as u8);
        if bytes != want {
            return Err(format!("{bytes:?} arrived at {k}, not {want:?}").into());
        }
    }
    // Both count on PE 0's word: one by its lane, the other by its own instructions.
    let mut old = 0u64;
    for _ in 0..ADDS {
        if me == 0 {
            word(memory, COUNT).fetch_add(1, Ordering::SeqCst);
            continue;
        }
        let fetch = Some(Local {
            addr: (&raw mut old).cast(),
            len: 8,
            key: None,
        });
        let (op, width) = (AtomicOp::Add, Width::W64);
        let on = at(COUNT);
        post(
            &mut *lane,
            Pe(0),
            Op::Atomic {
                op,
                width,
                on,
                operand: 1,
                compare: 0,
                fetch,
            },
        )?;
    }
    if me == 0 {
        wait_for(memory, COUNT, 2 * ADDS)?;
    }
    // A plain mapped store each way ends it.
    let base = imported.mapped().ok_or("not mapped")?;
    // SAFETY: the import is mapped with `BYTES` bytes, and the word is accessed atomically.
    let done = unsafe { AtomicU64::from_ptr(base.as_ptr().add(DONE as usize).cast()) };
    done.store(1, Ordering::Release);
    wait_for(memory, DONE, 1)?;
    // Neither leaves while the other may still look.
    send(socket, b"bye", socket.as_fd())?;
    receive(socket).map(drop)
}

fn send(socket: &UnixStream, bytes: &[u8], descriptor: BorrowedFd<'_>) -> Result {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let descriptors = [descriptor];
    if !control.push(SendAncillaryMessage::ScmRights(&descriptors)) {
        return Err("no room for a descriptor".into());
    }
    let head = (bytes.len() as u32).to_le_bytes();
    let message = [&head[..], bytes].concat();
    let sent = rustix::net::sendmsg(
        socket,
        &[IoSlice::new(&message)],
        &mut control,
        SendFlags::empty(),
    )?;
    if sent == message.len() {
        Ok(())
    } else {
        Err("a short message was sent in pieces".into())
    }
}

fn receive(mut socket: &UnixStream) -> Result<(Vec<u8>, OwnedFd)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut head = [0; 4];
    let mut parts = [IoSliceMut::new(&mut head)];
    let read = rustix::net::recvmsg(socket, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    if read.bytes != 4 {
        return Err(format!("{} bytes of a message's head", read.bytes).into());
    }
    let descriptor = control
        .drain()
        .find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
            _ => None,
        })
        .ok_or("a message came without its descriptor")?;
    let mut bytes = vec![0; u32::from_le_bytes(head) as usize];
    std::io::Read::read_exact(&mut socket, &mut bytes)?;
    Ok((bytes, descriptor))
}
