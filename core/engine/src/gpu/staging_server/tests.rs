//! The staging server, with requests in any order and PEs that are lost meanwhile.

use std::sync::mpsc;
use std::time::Duration;

use oxshmem_bootstrap::InProcess;
use oxshmem_heap::{Segment, SegmentOptions};
use oxshmem_transport::{AtomicOp, AtomicRequest, Width};
use proptest::prelude::*;

use super::*;

const SLOTS_AT: Slots = Slots {
    // SAFETY: nothing is accessed at this place.
    area: unsafe { Target::new(2, 4096, SLOTS * 4096) },
    bytes: 4096,
};
const HEAP: usize = 64 << 10;
const GPU: usize = 1000;

/// A stand-in for a GPU's memory. A test that locks `copy_lock` holds up its copies once they have begun,
/// and is notified of that.
#[derive(Debug)]
struct Bytes {
    bytes: Mutex<Vec<u8>>,
    begun: mpsc::Sender<()>,
    copy_lock: Arc<Mutex<()>>,
}

impl Bytes {
    fn pass(&self) {
        let _ = self.begun.send(());
        drop(self.copy_lock.lock().unwrap());
    }

    fn part<R>(
        &self,
        offset: u64,
        len: usize,
        run: impl FnOnce(&mut [u8]) -> R,
    ) -> Result<R, String> {
        let mut bytes = self.bytes.lock().unwrap();
        let end = (offset as usize).checked_add(len);
        let part = end.and_then(|end| bytes.get_mut(offset as usize..end));
        part.map(run).ok_or_else(|| "outside".into())
    }
}

impl GpuAccess for Bytes {
    unsafe fn write(&self, offset: u64, source: *const u8, len: usize) -> Result<(), String> {
        self.pass();
        // SAFETY: the caller's promise.
        self.part(offset, len, |part| unsafe {
            oxshmem_heap::copy::copy(part.as_mut_ptr(), source, len);
        })
    }

    unsafe fn read(&self, offset: u64, destination: *mut u8, len: usize) -> Result<(), String> {
        self.pass();
        // SAFETY: the caller's promise.
        self.part(offset, len, |part| unsafe {
            oxshmem_heap::copy::copy(destination, part.as_ptr(), len);
        })
    }

    fn atomic(&self, offset: u64, request: AtomicRequest) -> Result<u64, String> {
        self.part(offset, request.width.bytes(), |part| {
            let old = part[0];
            part[0] += request.operand as u8;
            old.into()
        })
    }
}

/// A program's access that panics.
#[derive(Debug)]
struct Faulty;

impl GpuAccess for Faulty {
    unsafe fn write(&self, offset: u64, _: *const u8, _: usize) -> Result<(), String> {
        panic!("nothing is written at {offset}")
    }

    unsafe fn read(&self, _: u64, _: *mut u8, _: usize) -> Result<(), String> {
        panic!("nothing is read")
    }

    fn atomic(&self, _: u64, _: AtomicRequest) -> Result<u64, String> {
        std::panic::panic_any(7)
    }
}

/// One request of a PE, as the server takes it from its queue.
fn serve(stage: &StagingServer, from: u32, number: u64, request: StageRequest) {
    stage.serve(Queued {
        from,
        number,
        request,
    });
}

/// The staging server of PE 0, the others' inboxes, and the server's host memory.
struct Rig {
    stage: Arc<StagingServer>,
    mapping: Arc<Mapping>,
    heard: Vec<mpsc::Receiver<Message>>,
    begun: mpsc::Receiver<()>,
    copy_lock: Arc<Mutex<()>>,
    _group: Vec<Arc<dyn Bootstrap>>,
}

impl Rig {
    fn new(pes: u32) -> Rig {
        let group = InProcess::group(pes);
        let group: Vec<Arc<dyn Bootstrap>> = group.into_iter().map(|b| b as Arc<_>).collect();
        let heard = group[1..].iter().map(|bootstrap| {
            let (say, heard) = mpsc::channel();
            let hear = move |_, bytes: &[u8]| {
                let _ = say.send(Message::of_bytes(bytes).unwrap());
            };
            bootstrap.on_message(Box::new(hear)).unwrap();
            heard
        });
        let heard = heard.collect();
        let mut segment = Segment::create(HEAP, &SegmentOptions::default()).unwrap();
        segment.commit(HEAP).unwrap();
        let mapping = Arc::clone(segment.mapping());
        let (begin, begun) = mpsc::channel();
        let copy_lock = Arc::default();
        let access = Bytes {
            bytes: Mutex::new(vec![0; GPU]),
            begun: begin,
            copy_lock: Arc::clone(&copy_lock),
        };
        let access = Some(Arc::new(access) as Arc<dyn GpuAccess>);
        let stage = StagingServer::new(access, &mapping, &GpuFlushes::default(), &group[0]);
        Rig {
            stage: Arc::new(stage),
            mapping,
            heard,
            begun,
            copy_lock,
            _group: group,
        }
    }

    fn opened(pes: u32) -> Rig {
        let rig = Rig::new(pes);
        rig.stage.open(SLOTS_AT);
        rig
    }

    fn slot(&self, slot: u8) -> *mut u8 {
        let at = SLOTS_AT.at(slot) as usize;
        self.mapping.base().as_ptr().wrapping_add(at)
    }

    /// The next message to a PE; an error where there is none.
    fn told(&self, pe: u32) -> Result<Message, mpsc::RecvTimeoutError> {
        self.heard[pe as usize - 1].recv_timeout(Duration::from_secs(10))
    }

    /// The slots that a PE has been lent, by the reply to this request.
    fn lent(&self, pe: u32, number: u64) -> Vec<u8> {
        match self.told(pe).unwrap() {
            Message::Reply(to, Ok(slots)) if to == number => slots,
            other => panic!("{other:?}"),
        }
    }

    fn hears_nothing(&self, pe: u32) -> bool {
        self.heard[pe as usize - 1].try_recv().is_err()
    }
}

fn piece(slot: u8, offset: u64, len: u32) -> StagePiece {
    StagePiece { slot, len, offset }
}

fn all_requests() -> Vec<StageRequest> {
    let mut all = vec![
        StageRequest::Take(2),
        StageRequest::In(piece(1, 1 << 40, 77)),
        StageRequest::Out(piece(255, u64::MAX, u32::MAX)),
        StageRequest::Done,
    ];
    for op in AtomicOp::ALL {
        all.extend(Width::ALL.map(|width| StageRequest::Atomic {
            op,
            width,
            offset: 8,
            operand: u64::MAX,
            compare: 3,
        }));
    }
    all
}

#[test]
fn requests_come_back_as_they_were_sent_and_cut_off_are_none() {
    for request in all_requests() {
        let bytes = request.to_bytes();
        assert_eq!(StageRequest::of_bytes(&bytes), Some(request));
        for cut in 0..bytes.len() {
            assert_eq!(StageRequest::of_bytes(&bytes[..cut]), None, "{request:?}");
        }
    }
}

proptest! {
    #[test]
    fn any_bytes_are_a_request_or_none(bytes in proptest::collection::vec(0_u8..9, 0..32)) {
        if let Some(request) = StageRequest::of_bytes(&bytes) {
            prop_assert_eq!(request.to_bytes(), bytes);
        }
    }
}

#[test]
fn slots_take_a_small_part_of_a_heap_and_hold_whole_words() {
    assert_eq!(Slots::size(1 << 40), LARGEST);
    assert_eq!(Slots::size(16 << 20), 256 << 10);
    assert_eq!(Slots::size(4 << 20), 64 << 10);
    assert_eq!(Slots::size(1), SMALLEST);
    for limit in (0..1 << 24).step_by(99_991) {
        let bytes = Slots::size(limit);
        assert!(bytes.is_power_of_two() && (SMALLEST..=LARGEST).contains(&bytes));
    }
}

#[test]
fn slots_are_lent_in_the_order_asked_and_again_when_given_back() {
    let rig = Rig::opened(7);
    for pe in 1..=4 {
        serve(&rig.stage, pe, u64::from(pe), StageRequest::Take(2));
        let first = 2 * (pe as u8 - 1);
        assert_eq!(rig.lent(pe, pe.into()), [first, first + 1]);
    }
    // All are lent.
    serve(&rig.stage, 5, 50, StageRequest::Take(2));
    serve(&rig.stage, 6, 60, StageRequest::Take(1));
    assert!(rig.hears_nothing(5) && rig.hears_nothing(6));
    serve(&rig.stage, 2, 0, StageRequest::Done);
    assert_eq!(rig.lent(5, 50), [2, 3]);
    assert!(rig.hears_nothing(6));
    // The slots of a lost PE are free again.
    rig.stage.lost(1);
    assert_eq!(rig.lent(6, 60), [0]);
    assert!(rig.hears_nothing(2), "who gives back is told nothing");
}

#[test]
fn who_waits_no_more_is_lent_nothing() {
    let rig = Rig::opened(8);
    for pe in 1..=4 {
        serve(&rig.stage, pe, 1, StageRequest::Take(2));
        rig.lent(pe, 1);
    }
    for pe in 5..=7 {
        serve(&rig.stage, pe, 2, StageRequest::Take(2));
    }
    // One cancels its request, the next dies.
    serve(&rig.stage, 5, 0, StageRequest::Done);
    rig.stage.lost(6);
    serve(&rig.stage, 1, 0, StageRequest::Done);
    assert_eq!(rig.lent(7, 2), [0, 1]);
    assert!(rig.hears_nothing(5) && rig.hears_nothing(6));
}

#[test]
fn who_asks_before_there_are_slots_waits_for_them() {
    let rig = Rig::new(2);
    serve(&rig.stage, 1, 9, StageRequest::Take(1));
    assert!(rig.hears_nothing(1));
    rig.stage.open(SLOTS_AT);
    assert_eq!(rig.lent(1, 9), [0]);
}

#[test]
fn data_go_between_slot_and_gpu_both_ways() {
    let rig = Rig::opened(2);
    serve(&rig.stage, 1, 1, StageRequest::Take(2));
    assert_eq!(rig.lent(1, 1), [0, 1]);
    let data: Vec<u8> = (0..100).collect();
    // SAFETY: the slot is mapped, and as long.
    unsafe { oxshmem_heap::copy::copy(rig.slot(0), data.as_ptr(), data.len()) };
    serve(&rig.stage, 1, 2, StageRequest::In(piece(0, 900, 100)));
    assert_eq!(rig.told(1), Ok(Message::Reply(2, Ok(Vec::new()))));
    serve(&rig.stage, 1, 3, StageRequest::Out(piece(1, 950, 50)));
    assert_eq!(rig.told(1), Ok(Message::Reply(3, Ok(Vec::new()))));
    let mut seen = vec![0; 50];
    // SAFETY: as above.
    unsafe { oxshmem_heap::copy::copy(seen.as_mut_ptr(), rig.slot(1), seen.len()) };
    assert_eq!(seen, data[50..]);
}

#[test]
fn a_slot_is_lent_again_only_when_what_was_copied_for_a_lost_pe_has_ended() {
    for make in [StageRequest::In, StageRequest::Out] {
        let rig = Rig::opened(7);
        serve(&rig.stage, 1, 1, StageRequest::Take(2));
        assert_eq!(rig.lent(1, 1), [0, 1]);
        std::thread::scope(|threads| {
            let held = rig.copy_lock.lock().unwrap();
            threads.spawn(|| serve(&rig.stage, 1, 2, make(piece(0, 0, 100))));
            rig.begun.recv_timeout(Duration::from_secs(10)).unwrap();
            // Found by a lane, on another thread.
            rig.stage.lost(1);
            for (pe, slots) in [(2, &[1, 2][..]), (3, &[3, 4]), (4, &[5, 6]), (5, &[7])] {
                serve(&rig.stage, pe, 3, StageRequest::Take(2));
                assert_eq!(rig.lent(pe, 3), slots);
            }
            serve(&rig.stage, 6, 4, StageRequest::Take(2));
            assert!(rig.hears_nothing(6), "the copy is under way");
            drop(held);
            assert_eq!(rig.lent(6, 4), [0]);
        });
    }
}

#[test]
fn a_gpu_that_is_held_holds_up_nobody_who_asks_and_what_was_asked_is_done_in_order() {
    let rig = Rig::opened(3);
    rig.stage.asked(1, 1, StageRequest::Take(1));
    assert_eq!(rig.lent(1, 1), [0]);
    let held = rig.copy_lock.lock().unwrap();
    let (stage, (done, returned)) = (Arc::clone(&rig.stage), mpsc::channel());
    std::thread::spawn(move || {
        stage.asked(1, 2, StageRequest::In(piece(0, 0, 100)));
        // Queued behind the copy, which has the slot.
        stage.asked(1, 0, StageRequest::Done);
        stage.asked(2, 3, StageRequest::Take(2));
        let _ = done.send(());
    });
    let patience = Duration::from_secs(10);
    rig.begun.recv_timeout(patience).unwrap();
    returned.recv_timeout(patience).unwrap();
    assert!(
        rig.hears_nothing(1) && rig.hears_nothing(2),
        "the copy is under way"
    );
    drop(held);
    match rig.told(1).unwrap() {
        Message::Reply(2, Ok(none)) => assert!(none.is_empty()),
        other => panic!("{other:?}"),
    }
    assert_eq!(rig.lent(2, 3), [0, 1]);
}

#[test]
fn who_was_lost_before_it_was_served_is_lent_nothing() {
    let rig = Rig::opened(6);
    rig.stage.asked(1, 1, StageRequest::Take(1));
    assert_eq!(rig.lent(1, 1), [0]);
    let held = rig.copy_lock.lock().unwrap();
    rig.stage.asked(1, 2, StageRequest::In(piece(0, 0, 100)));
    rig.begun.recv_timeout(Duration::from_secs(10)).unwrap();
    // Queued behind the copy; then its loss is reported, on another thread than the one that copies.
    rig.stage.asked(2, 3, StageRequest::Take(2));
    rig.stage.lost(2);
    drop(held);
    assert_eq!(rig.told(1), Ok(Message::Reply(2, Ok(Vec::new()))));
    rig.stage.asked(1, 0, StageRequest::Done);
    for (pe, slots) in [(3, [0, 1]), (4, [2, 3]), (5, [4, 5]), (1, [6, 7])] {
        rig.stage.asked(pe, 4, StageRequest::Take(2));
        assert_eq!(rig.lent(pe, 4), slots);
    }
    assert!(rig.hears_nothing(2));
}

#[test]
fn who_asks_of_an_access_that_panics_is_told_and_those_behind_are_served() {
    let rig = Rig::opened(6);
    let faulty = StagingServer::new(
        Some(Arc::new(Faulty)),
        &rig.mapping,
        &GpuFlushes::default(),
        &rig._group[0],
    );
    let stage = Arc::new(faulty);
    stage.open(SLOTS_AT);
    stage.asked(1, 1, StageRequest::Take(1));
    assert_eq!(rig.lent(1, 1), [0]);
    let atomic = StageRequest::Atomic {
        op: AtomicOp::Add,
        width: Width::W64,
        offset: 8,
        operand: 5,
        compare: 0,
    };
    for (request, words) in [
        (
            StageRequest::In(piece(0, 40, 1)),
            "panicked: nothing is written at 40",
        ),
        (
            StageRequest::Out(piece(0, 40, 1)),
            "panicked: nothing is read",
        ),
        (atomic, "panicked: without a word"),
    ] {
        stage.asked(1, 2, request);
        match rig.told(1).unwrap() {
            Message::Reply(2, Err(why)) => assert!(why.ends_with(words), "{why}"),
            other => panic!("{other:?}"),
        }
    }
    // No slot stays lent to a transfer that was not ended.
    stage.asked(1, 0, StageRequest::Done);
    for (pe, slots) in [(2, [0, 1]), (3, [2, 3]), (4, [4, 5]), (5, [6, 7])] {
        stage.asked(pe, 3, StageRequest::Take(2));
        assert_eq!(rig.lent(pe, 3), slots);
    }
}

#[test]
fn m35_what_was_not_lent_or_leaves_the_heap_is_refused_and_touches_nothing() {
    let rig = Rig::opened(3);
    let refused = |from, request| rig.stage.perform(from, request).unwrap_err();
    for pe in 1..=2 {
        serve(&rig.stage, pe, 1, StageRequest::Take(1));
        assert_eq!(rig.lent(pe, 1), [pe as u8 - 1]);
    }
    // SAFETY: the slot is mapped.
    unsafe { oxshmem_heap::copy::store(rig.slot(1), 7_u8) };
    for make in [StageRequest::In, StageRequest::Out] {
        // Another PE's, a free one, one that does not exist; too long.
        for (slot, len) in [(1, 1), (2, 1), (8, 1), (255, 1), (0, 4097)] {
            let why = refused(1, make(piece(slot, 0, len)));
            assert!(why.contains("was not lent"), "{why}");
        }
        assert_eq!(refused(1, make(piece(0, 990, 11))), "outside");
        assert_eq!(refused(1, make(piece(0, u64::MAX, 2))), "outside");
    }
    let held = rig.stage.access.as_ref().unwrap();
    let mut first = [1_u8];
    // SAFETY: one writable byte.
    unsafe { held.read(0, first.as_mut_ptr(), 1).unwrap() };
    assert_eq!(first, [0]);
    // SAFETY: the slot is mapped.
    assert_eq!(unsafe { oxshmem_heap::copy::load(rig.slot(1)) }, 7_u8);
    // Given back, it is free.
    serve(&rig.stage, 1, 0, StageRequest::Done);
    assert!(refused(1, StageRequest::In(piece(0, 0, 1))).contains("was not lent"));
}

#[test]
fn m38_an_atomic_on_no_aligned_word_is_refused() {
    let rig = Rig::opened(2);
    let atomic = |width, offset| StageRequest::Atomic {
        op: AtomicOp::Add,
        width,
        offset,
        operand: 5,
        compare: 0,
    };
    for (width, offset) in [
        (Width::W32, 2),
        (Width::W64, 4),
        (Width::W64, 1000),
        (Width::W32, u64::MAX - 3),
    ] {
        assert!(rig.stage.perform(1, atomic(width, offset)).is_err());
    }
    for old in [0_u64, 5, 10] {
        let reply = rig.stage.perform(1, atomic(Width::W64, 992)).unwrap();
        assert_eq!(reply, old.to_le_bytes());
    }
}

#[test]
fn without_gpu_memory_everything_is_refused_in_words() {
    let rig = Rig::opened(2);
    let bootstrap = &rig._group[0];
    let none = StagingServer::new(None, &rig.mapping, &GpuFlushes::default(), bootstrap);
    let why = none
        .perform(1, StageRequest::In(piece(0, 0, 1)))
        .unwrap_err();
    assert!(why.contains("no GPU memory"), "{why}");
}
