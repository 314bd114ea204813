//! GPU memory as the NIC has it: on a GPU, or on the software CUDA driver. That one gives no dma-bufs; its
//! memory is the CPU's to touch, and so a software NIC's, only where `SOFTCUDA_KERNELS` is set. Without a
//! driver nothing is run; with `OXSHMEM_TEST_CUDA=1` that is a failure, and with
//! `OXSHMEM_TEST_GPUDIRECT=1` it is one that a GPU's memory is not reached.
#![allow(clippy::print_stdout, reason = "tests")]

use std::ptr::{NonNull, with_exposed_provenance_mut};
use std::sync::Arc;
use std::time::Instant;

use oxshmem_cuda::testing::present;
use oxshmem_cuda::{
    Context, Device, DevicePtr, Driver, Segment, Stream, StreamOptions, WritesOrdering,
};
use oxshmem_transport::{
    Completion, Error, GpuFlush, Local, LocalRegion, Memory, MemoryKind, Op, Reach, Region,
    RegionId, Remote, SignalOp,
};
use oxshmem_verbs::{GpuDirect, Settings, UNREGISTERED, Verbs};

use super::pair::{PATIENCE, PE0, PE1, Side, pair_of, remote};

const CUDA: MemoryKind = MemoryKind::Cuda;
const LEN: usize = 2 << 20;

fn context() -> Option<Context> {
    present(Driver::get())?;
    Some(Context::new(&Device::new(0).unwrap()).unwrap())
}

fn is_software() -> bool {
    Driver::get().is_ok_and(|driver| driver.library().contains("softcuda"))
}

/// Two PEs of one GPU, whose NICs try its memory by this way.
fn sides(context: &Context, gpudirect: GpuDirect) -> [Side; 2] {
    let settings = Settings {
        gpudirect,
        ..Settings::default()
    };
    pair_of(&Verbs::with(settings).with_gpu(context.clone()), 1 << 20)
}

/// Why one of them does not reach the other's GPU; none if it does.
fn unreached(sides: &[Side; 2]) -> Option<String> {
    match sides[0].domain.reach(&sides[1].peer(), CUDA) {
        Reach::None(why) => Some(why),
        Reach::Remote => None,
        other => panic!("{other:?}"),
    }
}

/// A piece of a GPU heap.
fn gpu_memory(context: &Context) -> Memory {
    let mut segment = Segment::new(context, LEN).unwrap();
    segment.grow_to(LEN).unwrap();
    let base = with_exposed_provenance_mut(segment.base().as_raw() as usize);
    let owner = Arc::new(segment);
    // SAFETY: the owner keeps the memory, which the CPU does not touch.
    unsafe { Memory::new(NonNull::new(base).unwrap(), LEN, CUDA, None, owner) }
}

/// A side's GPU memory, registered as its region 1 and imported by the other.
struct Card {
    region: Box<dyn Region>,
    memory: Memory,
    stream: Stream,
}

impl Card {
    fn pair(context: &Context, sides: &[Side; 2]) -> [Card; 2] {
        let cards = [0, 1].map(|at| {
            let memory = gpu_memory(context);
            let region = sides[at].domain.register(RegionId(1), &memory).unwrap();
            let stream = Stream::new(context, &StreamOptions::default()).unwrap();
            Card {
                region,
                memory,
                stream,
            }
        });
        for (here, there) in [(0, 1), (1, 0)] {
            let (peer, key) = (sides[there].peer(), cards[there].region.key());
            let imported = sides[here].domain.import(&peer, RegionId(1), key, None);
            assert_eq!(imported.unwrap().len(), LEN);
        }
        cards
    }

    fn at(&self, offset: usize) -> DevicePtr {
        DevicePtr::from_host(self.memory.base().as_ptr()).add(offset)
    }

    fn local(&self, offset: usize, len: usize) -> Local {
        Local {
            addr: self.memory.base().as_ptr().wrapping_add(offset),
            len,
            key: Some(self.region.local_key()),
        }
    }

    fn write(&self, offset: usize, bytes: &[u8]) {
        let from = DevicePtr::from_host(bytes.as_ptr());
        // SAFETY: the bytes live until the wait below is over.
        unsafe { self.stream.copy(self.at(offset), from, bytes.len()) }.unwrap();
        self.stream.synchronize_within(PATIENCE).unwrap();
    }

    fn read(&self, offset: usize, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        let into = DevicePtr::from_host(bytes.as_mut_ptr());
        // SAFETY: the buffer lives until the wait below is over.
        unsafe { self.stream.copy(into, self.at(offset), len) }.unwrap();
        self.stream.synchronize_within(PATIENCE).unwrap();
        bytes
    }
}

fn on_gpu(offset: usize) -> Remote {
    Remote {
        region: RegionId(1),
        offset: offset as u64,
    }
}

fn bytes(len: usize, seed: u8) -> Vec<u8> {
    (0..len).map(|place| (place % 251) as u8 ^ seed).collect()
}

/// The sides where GPU memory must be reached and is; else prints why it is not.
fn reached() -> Option<(Context, [Side; 2])> {
    let context = context()?;
    let way = Settings::from_environment().unwrap().gpudirect;
    let sides = sides(&context, way);
    let Some(why) = unreached(&sides) else {
        return Some((context, sides));
    };
    let software = is_software() && std::env::var_os("SOFTCUDA_KERNELS").is_some();
    let must = std::env::var("OXSHMEM_TEST_GPUDIRECT").is_ok_and(|value| value == "1");
    assert!(!software && !must, "{why}");
    println!("not run: {why}");
    None
}

#[test]
#[ignore = "needs an RDMA device; run in ci/softroce"]
fn gpu_memory_that_the_nic_does_not_reach_is_refused_in_words_and_host_memory_carried() {
    let Some(context) = context() else { return };
    if !is_software() {
        println!("not run: a GPU's memory may be reached");
        return;
    }
    let ways = [
        (GpuDirect::DmaBuf, "load nvidia-peermem"),
        (GpuDirect::Off, "OXSHMEM_VERBS_GPUDIRECT=off"),
    ];
    let peermem = (GpuDirect::Auto, "modprobe nvidia-peermem");
    let peermem = std::env::var_os("SOFTCUDA_KERNELS")
        .is_none()
        .then_some(peermem);
    for (way, mend) in ways.into_iter().chain(peermem) {
        let mut sides = sides(&context, way);
        let why = unreached(&sides).expect("it is reached");
        assert!(why.contains(mend), "{why}");
        let domain = &sides[0].domain;
        assert_eq!(domain.capabilities().memory, [MemoryKind::Host]);
        assert_eq!(domain.guarantees(CUDA), None);
        let refused = domain
            .register(RegionId(1), &gpu_memory(&context))
            .unwrap_err();
        assert!(
            matches!(
                &refused,
                Error::Memory {
                    kind: MemoryKind::Cuda,
                    ..
                }
            ),
            "{refused}"
        );
        sides[0].store(64, 77);
        let from = sides[0].local(64, 8);
        let put = Op::Put {
            from,
            to: remote(128),
        };
        // SAFETY: the side's memory, which is left alone.
        unsafe { sides[0].perform(PE1, &[put]) }.unwrap();
        assert_eq!(sides[1].load(128), 77);
    }
}

#[test]
#[ignore = "needs an RDMA device; run in ci/softroce"]
fn what_is_put_and_got_between_gpu_and_host_memory_is_there_at_every_length() {
    let Some((context, mut sides)) = reached() else {
        return;
    };
    let domain = &sides[0].domain;
    assert_eq!(domain.capabilities().memory, [MemoryKind::Host, CUDA]);
    let promised = domain.guarantees(CUDA).unwrap();
    assert_eq!(promised.completion, Completion::Accepted);
    assert!(
        !promised.put_put,
        "there is no order between a GPU's memory and the host's"
    );
    let by_itself = context.device().writes_ordering() == WritesOrdering::AllDevices;
    let flush = if by_itself {
        GpuFlush::None
    } else {
        GpuFlush::Target
    };
    assert_eq!(promised.gpu_flush, flush);
    let cards = Card::pair(&context, &sides);
    for (seed, len) in (1u8..).zip([
        1,
        8,
        220,
        221,
        1025,
        UNREGISTERED,
        UNREGISTERED + 1,
        1 << 20,
    ]) {
        cards[0].write(3, &bytes(len, seed));
        let put = Op::Put {
            from: cards[0].local(3, len),
            to: on_gpu(5),
        };
        // SAFETY: the memory is the sides' own, and left alone until the flush is over.
        unsafe { sides[0].perform(PE1, &[put]) }.unwrap();
        sides[1].domain.make_visible(CUDA).unwrap();
        assert_eq!(cards[1].read(5, len), bytes(len, seed), "put of {len}");
        // Back by a get, into the GPU's memory and into the host's.
        let gpu = Op::Get {
            into: cards[0].local(LEN / 2, len),
            from: on_gpu(5),
        };
        let mut host = vec![0; len.min(UNREGISTERED)];
        let into = Local {
            addr: host.as_mut_ptr(),
            len: host.len(),
            key: None,
        };
        let get = Op::Get {
            into,
            from: on_gpu(5),
        };
        // SAFETY: as above; the buffer lives until the gets have completed.
        unsafe { sides[0].perform(PE1, &[gpu, get]) }.unwrap();
        sides[0].domain.make_visible(CUDA).unwrap();
        assert_eq!(
            cards[0].read(LEN / 2, len),
            bytes(len, seed),
            "get of {len}"
        );
        assert_eq!(host, bytes(len, seed)[..host.len()], "get of {len}");
    }
}

#[test]
#[ignore = "needs an RDMA device; run in ci/softroce"]
fn m22_a_signal_in_host_memory_is_seen_after_its_data_in_gpu_memory() {
    let Some((context, mut sides)) = reached() else {
        return;
    };
    let cards = Card::pair(&context, &sides);
    for round in 1..=40u64 {
        // Not at a word's start, so that it goes in two pieces, and then a read and the signal.
        let (len, at) = (5000, 1 + round as usize);
        cards[0].write(0, &bytes(len, round as u8));
        let put_signal = Op::PutSignal {
            from: cards[0].local(0, len),
            to: on_gpu(at),
            signal: remote(512),
            op: SignalOp::Set,
            value: round,
        };
        // SAFETY: the memory is the sides' own, and left alone until the round is over.
        unsafe { sides[0].post(PE1, &[put_signal]) }.unwrap();
        let since = Instant::now();
        while sides[1].load(512) != round {
            sides[0].lane.progress().unwrap();
            assert!(since.elapsed() < PATIENCE, "no signal");
            std::thread::yield_now();
        }
        sides[1].domain.make_visible(CUDA).unwrap();
        assert_eq!(
            cards[1].read(at, len),
            bytes(len, round as u8),
            "round {round}"
        );
        sides[0].complete(PE1).unwrap();
    }
    // As many as fit, of those that take most requests.
    let many = |value| Op::PutSignal {
        from: cards[0].local(0, 5000),
        to: on_gpu(1),
        signal: remote(512),
        op: SignalOp::Set,
        value,
    };
    let many: Vec<Op> = (1000..1400).map(many).collect();
    // SAFETY: as above.
    unsafe { sides[0].perform(PE1, &many) }.unwrap();
    assert_eq!(sides[1].load(512), 1399);
}

#[test]
#[ignore = "needs an RDMA device; run in ci/softroce"]
fn gpu_memory_outside_the_heap_is_a_local_buffer_by_its_own_registration() {
    let Some((context, mut sides)) = reached() else {
        return;
    };
    let cards = Card::pair(&context, &sides);
    let memory = gpu_memory(&context);
    let slice = memory.base().as_ptr();
    // SAFETY: the memory lives longer than its registration.
    let local = unsafe { sides[0].domain.register_local(slice, 4096, true) };
    let local: Box<dyn LocalRegion> = local.unwrap();
    let local = Local {
        addr: slice,
        len: 4096,
        key: Some(local.key()),
    };
    cards[1].write(0, &bytes(4096, 9));
    let (get, put) = (
        Op::Get {
            into: local,
            from: on_gpu(0),
        },
        Op::Put {
            from: local,
            to: on_gpu(8192),
        },
    );
    for op in [get, put] {
        // SAFETY: the memory is the test's own, and left alone until the flush is over.
        unsafe { sides[0].perform(PE1, &[op]) }.unwrap();
    }
    sides[1].domain.make_visible(CUDA).unwrap();
    assert_eq!(cards[1].read(8192, 4096), bytes(4096, 9));
    let message = Op::Message {
        from: Local { len: 8, ..local },
    };
    // SAFETY: as above.
    let refused = unsafe { sides[0].post(PE1, &[message]) }.unwrap_err();
    assert!(refused.to_string().contains("GPU memory"), "{refused}");
    assert_eq!(sides[0].pe, PE0);
}
