//! Two processes: memory passed on as descriptors and by legacy IPC, words across, and a peer's death.
#![cfg(feature = "cuda")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod gpu;

use std::io::{IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

use gpu::{PATIENCE, Part, download, parent_socket, pattern, stream, upload};
use oxshmem_cuda::{
    Compare, Context, DevicePtr, HANDLE_BYTES, Import, Imported, Segment, SegmentKind,
    SegmentOptions, Stream, devices,
};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

const MIB: usize = 1 << 20;

/// Sends an extent: offset, length, and its descriptor or legacy handle.
fn send_extents(socket: &UnixStream, segment: &Segment) {
    let extents = segment.extents();
    (&*socket).write_all(&[extents.len() as u8]).unwrap();
    for extent in extents {
        let mut header = [0_u8; 16];
        header[..8].copy_from_slice(&(extent.offset as u64).to_ne_bytes());
        header[8..].copy_from_slice(&(extent.len as u64).to_ne_bytes());
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let descriptors: Vec<_> = extent.handles.fd.iter().map(AsFd::as_fd).collect();
        if !descriptors.is_empty() {
            assert!(control.push(SendAncillaryMessage::ScmRights(&descriptors)));
        }
        let sent = sendmsg(
            socket,
            &[IoSlice::new(&header)],
            &mut control,
            SendFlags::empty(),
        );
        assert_eq!(sent.unwrap(), header.len());
        (&*socket)
            .write_all(&extent.handles.ipc.unwrap_or([0; HANDLE_BYTES]))
            .unwrap();
    }
}

fn receive_extents(socket: &UnixStream, view: &mut Imported) {
    let number = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().unwrap()) as usize;
    for _ in 0..hear(socket) {
        let mut header = [0_u8; 16];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut parts = [IoSliceMut::new(&mut header)];
        let got = recvmsg(socket, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC).unwrap();
        assert_eq!(got.bytes, 16);
        let descriptor: Option<OwnedFd> = control.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
            _ => None,
        });
        let mut ipc = [0; HANDLE_BYTES];
        (&*socket).read_exact(&mut ipc).unwrap();
        let import = match &descriptor {
            Some(descriptor) => Import::Fd(descriptor.as_fd()),
            None => Import::Ipc(&ipc),
        };
        view.add(number(&header[..8]), number(&header[8..]), import)
            .unwrap();
    }
}

fn say(socket: &UnixStream, word: u8) {
    (&*socket).write_all(&[word]).unwrap();
}

fn hear(socket: &UnixStream) -> u8 {
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut word = [0];
    (&*socket).read_exact(&mut word).unwrap();
    word[0]
}

/// The GPU of a part: each its own, where there are several that reach each other.
fn context_of(part: usize) -> Option<Context> {
    let first = gpu::context()?;
    let found = devices().unwrap();
    match found.get(1) {
        Some(second) if part == 1 && second.can_access(first.device()).unwrap() => {
            Some(Context::new(second).unwrap())
        }
        _ => Some(first),
    }
}

/// One of two processes that do the same.
struct Pe {
    me: u8,
    socket: UnixStream,
    // Before the segment: as a program unmaps peers before its own memory goes.
    peer: Imported,
    segment: Segment,
    stream: Stream,
    child: Option<Part>,
}

impl Pe {
    /// Starts or joins the other process and maps its memory. None where there is no driver.
    fn join(test: &str, kind: Option<SegmentKind>) -> Option<Self> {
        let me = usize::from(gpu::part().is_some());
        let context = context_of(me)?;
        let (child, socket) = if me == 1 {
            (None, parent_socket())
        } else {
            let (mine, theirs) = UnixStream::pair().unwrap();
            (Some(Part::start(test, "peer", &[], Some(&theirs))), mine)
        };
        let options = SegmentOptions {
            kind,
            ..SegmentOptions::default()
        };
        let mut segment = Segment::with_options(&context, 8 * MIB, &options).unwrap();
        segment.grow_to(1).unwrap();
        segment.grow_to(4 * MIB).unwrap();
        let stream = stream(&context);
        // SAFETY: the range is mapped, and its address not yet known to others.
        unsafe { stream.fill(segment.base(), 0, segment.committed()) }.unwrap();
        stream.synchronize_within(PATIENCE).unwrap();
        let mut peer = Imported::new(&context, segment.limit()).unwrap();
        send_extents(&socket, &segment);
        receive_extents(&socket, &mut peer);
        Some(Pe {
            me: me as u8,
            socket,
            peer,
            segment,
            stream,
            child,
        })
    }

    /// Where an offset is in the other's memory.
    fn there(&self, offset: usize, len: usize) -> DevicePtr {
        self.peer.address(offset, len).unwrap()
    }

    fn barrier(&self) {
        say(&self.socket, 1);
        assert_eq!(hear(&self.socket), 1);
    }

    /// Ends both, each unmapping the other before either's memory goes; the child's failure is the
    /// test's.
    fn leave(mut self) {
        self.peer.truncate(0);
        self.barrier();
        if let Some(child) = &mut self.child {
            assert!(child.wait(PATIENCE).success());
        }
    }
}

/// Each copies into the other's memory, and both find what the other put.
fn exchange(pe: &Pe, len: usize) {
    let bytes = pattern(len, pe.me);
    let at = pe.there(4096, len);
    upload(&pe.stream, at, &bytes);
    pe.barrier();
    let got = download(&pe.stream, pe.segment.base().add(4096), len);
    assert!(got == pattern(len, 1 - pe.me));
    pe.barrier();
}

#[test]
fn m4_memory_passed_as_descriptors_is_the_same_memory() {
    let name = "m4_memory_passed_as_descriptors_is_the_same_memory";
    let Some(pe) = Pe::join(name, None) else {
        return;
    };
    // Across the two extents too.
    exchange(&pe, 3 * MIB);
    pe.leave();
}

#[test]
fn m4_memory_passed_by_legacy_ipc_is_the_same_memory() {
    let name = "m4_memory_passed_by_legacy_ipc_is_the_same_memory";
    let Some(pe) = Pe::join(name, Some(SegmentKind::Legacy)) else {
        return;
    };
    exchange(&pe, 3 * MIB);
    pe.leave();
}

#[test]
fn m22_a_put_with_a_word_after_it_is_seen_whole_by_the_peer() {
    let name = "m22_a_put_with_a_word_after_it_is_seen_whole_by_the_peer";
    let Some(pe) = Pe::join(name, None) else {
        return;
    };
    if pe.segment.context().device().has_stream_memops_64() {
        let (len, landing) = (1 << 16, 3 * MIB);
        let copies = pe.segment.base().add(MIB);
        for round in 1..=10_u8 {
            let bytes = pattern(len, round ^ pe.me);
            // SAFETY: all ranges are mapped on both sides, the other's till it has left; no round
            // begins before both have looked.
            unsafe {
                let from = DevicePtr::from_host(bytes.as_ptr());
                pe.stream.copy(pe.there(landing, len), from, len).unwrap();
                pe.stream
                    .write_value64(pe.there(0, 8), u64::from(round))
                    .unwrap();
                let flag = pe.segment.base();
                pe.stream
                    .wait_value64(flag, Compare::Geq, u64::from(round), false)
                    .unwrap();
                pe.stream
                    .copy(copies, pe.segment.base().add(landing), len)
                    .unwrap();
            }
            pe.stream.synchronize_within(PATIENCE).unwrap();
            let got = download(&pe.stream, copies, len);
            assert!(got == pattern(len, round ^ (1 - pe.me)), "round {round}");
            pe.barrier();
        }
    } else {
        println!("no words on streams: not run");
    }
    pe.leave();
}

#[test]
fn a_peer_s_memory_stays_when_the_peer_is_killed() {
    let name = "a_peer_s_memory_stays_when_the_peer_is_killed";
    let Some(mut pe) = Pe::join(name, None) else {
        return;
    };
    if pe.segment.kind() == SegmentKind::Legacy {
        println!("no descriptors: not run");
        return pe.leave();
    }
    let bytes = pattern(MIB, 0x5A);
    let Some(child) = &mut pe.child else {
        upload(&pe.stream, pe.segment.base(), &bytes);
        say(&pe.socket, 2);
        // Until it is killed.
        std::thread::sleep(PATIENCE);
        panic!("nobody killed this process");
    };
    assert_eq!(hear(&pe.socket), 2);
    child.kill();
    let there = pe.there(0, MIB);
    assert!(download(&pe.stream, there, MIB) == bytes);
    upload(&pe.stream, there, &pattern(MIB, 1));
    // The rest of it is dropped without an error, and the GPU still works.
    drop(pe.peer);
    upload(&pe.stream, pe.segment.base(), &bytes);
    assert!(download(&pe.stream, pe.segment.base(), MIB) == bytes);
}
