//! Local buffers in memory of all sorts.

use std::ptr::null_mut;

use oxshmem_transport::{Error, Local, Op};
use oxshmem_verbs::{Settings, UNREGISTERED};

use super::pair::{PE1, pair, remote};

fn put(addr: *const u8, len: usize, key: Option<oxshmem_transport::LocalKey>) -> Op {
    let from = Local {
        addr: addr.cast_mut(),
        len,
        key,
    };
    Op::Put {
        from,
        to: remote(0),
    }
}

/// A page of its own, filled with one byte.
struct Page {
    base: *mut u8,
    len: usize,
}

impl Page {
    fn new(len: usize, byte: u8) -> Page {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping, which replaces none.
        let base = unsafe { libc::mmap(null_mut(), len, access, kind, -1, 0) };
        assert_ne!(base, libc::MAP_FAILED);
        // SAFETY: `len` bytes that were just mapped.
        unsafe { base.cast::<u8>().write_bytes(byte, len) };
        Page {
            base: base.cast(),
            len,
        }
    }

    fn make_read_only(&self) {
        // SAFETY: the mapping is this page's own, and nobody writes it from here on.
        let code = unsafe { libc::mprotect(self.base.cast(), self.len, libc::PROT_READ) };
        assert_eq!(code, 0);
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // SAFETY: unmapped once; what was registered of it is gone.
        unsafe { libc::munmap(self.base.cast(), self.len) };
    }
}

fn word_of(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; 8])
}

#[test]
#[ignore = "needs an RDMA device; run in ci/softroce"]
fn read_only_pages_are_sources_of_every_size() {
    let [mut local, remote] = pair(Settings::default(), 1 << 20);
    let page = Page::new(1 << 20, 0x5a);
    page.make_read_only();
    for len in [8, 200, 4096, UNREGISTERED] {
        remote.store(len - 8, 0);
        // SAFETY: the page is readable and outlives the operation.
        unsafe { local.perform(PE1, &[put(page.base, len, None)]) }.unwrap();
        assert_eq!(
            remote.load(len - 8),
            word_of(0x5a),
            "{len} bytes, unregistered"
        );
    }
    // SAFETY: the page outlives the registration, which is dropped first.
    let registered = unsafe { local.domain.register_local(page.base, page.len, false) }.unwrap();
    remote.store(page.len - 8, 0);
    // SAFETY: as above.
    unsafe { local.perform(PE1, &[put(page.base, page.len, Some(registered.key()))]) }.unwrap();
    assert_eq!(remote.load(page.len - 8), word_of(0x5a), "in place");
    // SAFETY: nothing is registered: the pages cannot be written.
    let written = unsafe { local.domain.register_local(page.base, page.len, true) };
    let told = written.unwrap_err().to_string();
    assert!(told.contains("not writable"), "{told}");
}

#[test]
#[ignore = "needs an RDMA device; run in ci/softroce"]
fn stack_and_constants_are_sources_and_the_stack_a_destination() {
    static CONSTANT: [u64; 2048] = [0x1234_5678_9abc_def0; 2048];
    let [mut local, remote] = pair(Settings::default(), 1 << 20);
    let stack = [7u64; 2048];
    for (source, want) in [(&stack, 7), (&CONSTANT, CONSTANT[0])] {
        let source = std::hint::black_box(source);
        remote.store(16376, 0);
        // SAFETY: a source of 16 KiB, which is copied by the call.
        unsafe { local.perform(PE1, &[put(source.as_ptr().cast(), 16384, None)]) }.unwrap();
        assert_eq!(remote.load(16376), want);
    }
    let mut back = [0u64; 2048];
    let into = Local {
        addr: back.as_mut_ptr().cast(),
        len: 16384,
        key: None,
    };
    let from = super::pair::remote(0);
    // SAFETY: a destination of 16 KiB that outlives the operation, and is looked at after it.
    unsafe { local.perform(PE1, &[Op::Get { into, from }]) }.unwrap();
    assert_eq!(std::hint::black_box(back), CONSTANT);
    let mut large = vec![0u64; 1 << 16];
    let (addr, len) = (large.as_mut_ptr().cast::<u8>(), 8 * large.len());
    remote.store(len - 8, 99);
    // SAFETY: the vector outlives the registration and is left alone meanwhile.
    let registered = unsafe { local.domain.register_local(addr, len, true) }.unwrap();
    let into = Local {
        addr,
        len,
        key: Some(registered.key()),
    };
    // SAFETY: as above.
    unsafe { local.perform(PE1, &[Op::Get { into, from }]) }.unwrap();
    drop(registered);
    assert_eq!(large[large.len() - 1], 99);
}

/// A child gets copies: what it writes there is not sent, and it can read all of its memory.
#[test]
#[ignore = "needs an RDMA device; run in ci/softroce"]
fn a_fork_between_put_and_completion_changes_neither_side() {
    let [mut local, remote] = pair(Settings::default(), 4 << 20);
    let len = 4 << 20;
    for round in 1..=8u64 {
        (0..len).step_by(8).for_each(|at| local.store(at, round));
        let stack = [round; 512];
        let (source, small) = (local.local(0, len), std::hint::black_box(&stack));
        let ops = [
            Op::Put {
                from: source,
                to: super::pair::remote(0),
            },
            put(small.as_ptr().cast(), 4096, None),
        ];
        // SAFETY: the source is the side's memory, left alone until completion; the other is copied.
        unsafe { local.post(PE1, &ops) }.unwrap();
        // SAFETY: the child only touches memory, and leaves by `_exit`.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let mut sound = stack[511] == round;
            for at in (0..len).step_by(8) {
                sound &= local.load(at) == round;
                local.store(at, u64::MAX);
            }
            // SAFETY: ends the child at once.
            unsafe { libc::_exit(i32::from(!sound)) };
        }
        assert!(child > 0);
        // SAFETY: a flush has no local buffer.
        unsafe { local.post(PE1, &[Op::Flush]) }.unwrap();
        local.complete(PE1).unwrap();
        let mut status = 0;
        // SAFETY: waits for the child, writes one int.
        unsafe { libc::waitpid(child, &raw mut status, 0) };
        assert_eq!(status, 0, "the child found its memory changed or missing");
        for at in (0..len).step_by(8) {
            assert_eq!(remote.load(at), round, "word at {at} in round {round}");
        }
        // Bytes sent after the fork are the parent's memory too.
        local.store(0, 1000 + round);
        let again = Op::Put {
            from: local.local(0, 32 << 10),
            to: super::pair::remote(0),
        };
        // SAFETY: as above.
        unsafe { local.perform(PE1, &[again]) }.unwrap();
        assert_eq!(remote.load(0), 1000 + round);
    }
}

#[test]
#[ignore = "needs an RDMA device; run in ci/softroce"]
fn the_largest_transfer_is_done_and_a_larger_one_refused() {
    let probe = pair(Settings::default(), 4096);
    let max = probe[0].domain.capabilities().put.max as usize;
    drop(probe);
    let [mut local, remote] = pair(Settings::default(), max + 4096);
    local.store(max - 8, 17);
    let op = |len| Op::Put {
        from: local.local(0, len),
        to: super::pair::remote(0),
    };
    let (largest, larger) = (op(max), op(max + 1));
    // SAFETY: the side's memory, which is left alone.
    unsafe { local.perform(PE1, &[largest]) }.unwrap();
    assert_eq!(remote.load(max - 8), 17);
    // SAFETY: as above.
    let refused = unsafe { local.perform(PE1, &[larger]) };
    assert!(
        matches!(refused, Err(Error::Unsupported { .. })),
        "{refused:?}"
    );
}
