//! Work in order: copies, words, events, functions of the host, graphs.
#![cfg(feature = "cuda")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod gpu;

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use gpu::{PATIENCE, download, pattern, stream, upload};
use oxshmem_cuda::{
    Capture, Compare, Context, Copy2d, DevicePtr, Driver, Error, Event, Feature, Graph, Import,
    Imported, Pinned, PinnedOptions, Registered, Segment, Stream, StreamOptions, pointer,
};

fn segment(context: &Context) -> Segment {
    let mut segment = Segment::new(context, 4 << 20).unwrap();
    segment.grow_to(4 << 20).unwrap();
    segment
}

fn words(context: &Context) -> Pinned {
    Pinned::new(context, 4096, &PinnedOptions::default()).unwrap()
}

/// A word of page-locked memory.
fn word(memory: &Pinned, place: usize) -> &AtomicU64 {
    assert!(place < memory.len() / 8);
    // SAFETY: it is aligned, within the memory, zeroed at first, and lives as long as it.
    unsafe { AtomicU64::from_ptr(memory.as_ptr().cast::<u64>().add(place)) }
}

#[test]
fn copies_go_between_all_kinds_of_memory() {
    let Some(context) = gpu::context() else {
        return;
    };
    let (stream, segment) = (stream(&context), segment(&context));
    let pinned = Pinned::new(&context, 1 << 20, &PinnedOptions::default()).unwrap();
    let bytes = pattern(1 << 20, 4);
    upload(&stream, segment.base().add(8), &bytes);
    // SAFETY: every range is mapped, and the wait is over before any is dropped.
    unsafe {
        stream
            .copy(
                segment.base().add(2 << 20),
                segment.base().add(8),
                bytes.len(),
            )
            .unwrap();
        stream
            .copy(
                pinned.device_ptr(),
                segment.base().add(2 << 20),
                bytes.len(),
            )
            .unwrap();
        stream
            .copy(DevicePtr::from_raw(0), DevicePtr::from_raw(0), 0)
            .unwrap();
    }
    stream.synchronize_within(PATIENCE).unwrap();
    // SAFETY: the memory is as long, and nothing writes it any more.
    let copied = unsafe { std::slice::from_raw_parts(pinned.as_ptr(), bytes.len()) };
    assert!(copied == bytes);
}

#[test]
fn strided_copies_take_rows_only() {
    let Some(context) = gpu::context() else {
        return;
    };
    let (stream, segment) = (stream(&context), segment(&context));
    let (rows, width, pitch) = (17, 12, 64);
    let bytes = pattern(rows * pitch, 8);
    upload(&stream, segment.base(), &bytes);
    upload(&stream, segment.base().add(65536), &vec![0xEE; rows * 40]);
    let copy = Copy2d {
        dst: segment.base().add(65536),
        dst_pitch: 40,
        src: segment.base(),
        src_pitch: pitch,
        width,
        rows,
    };
    // SAFETY: both ranges are mapped and nobody else's.
    unsafe { stream.copy_2d(&copy) }.unwrap();
    let copied = download(&stream, segment.base().add(65536), rows * 40);
    for row in 0..rows {
        let got = &copied[row * 40..][..40];
        assert_eq!(got[..width], bytes[row * pitch..][..width], "row {row}");
        assert!(got[width..].iter().all(|byte| *byte == 0xEE), "row {row}");
    }
}

#[test]
fn fills_stay_within_their_range() {
    let Some(context) = gpu::context() else {
        return;
    };
    let (stream, segment) = (stream(&context), segment(&context));
    upload(&stream, segment.base(), &[1; 64]);
    // SAFETY: the range is mapped and nobody else's.
    unsafe { stream.fill(segment.base().add(3), 0xA5, 41) }.unwrap();
    let bytes = download(&stream, segment.base(), 64);
    assert!(bytes[..3].iter().chain(&bytes[44..]).all(|byte| *byte == 1));
    assert!(bytes[3..44].iter().all(|byte| *byte == 0xA5));
}

#[test]
fn m22_a_word_written_after_a_copy_is_not_seen_before_it() {
    let Some(context) = gpu::context() else {
        return;
    };
    if !context.device().has_stream_memops_64() {
        return println!("no words on streams: not run");
    }
    let segment = segment(&context);
    let (writer, reader) = (stream(&context), stream(&context));
    let (flag, data) = (segment.base(), segment.base().add(4096));
    let copy = segment.base().add(2 << 20);
    upload(&writer, flag, &[0; 8]);
    for round in 1..=20_u64 {
        let bytes = pattern(1 << 18, round as u8);
        // SAFETY: all ranges are mapped; the reader waits for the writer's word, and the next round
        // begins when the reader is done.
        unsafe {
            reader
                .wait_value64(flag, Compare::Geq, round, false)
                .unwrap();
            reader.copy(copy, data, bytes.len()).unwrap();
            writer
                .copy(data, DevicePtr::from_host(bytes.as_ptr()), bytes.len())
                .unwrap();
            writer.write_value64(flag, round).unwrap();
        }
        reader.synchronize_within(PATIENCE).unwrap();
        assert!(
            download(&reader, copy, bytes.len()) == bytes,
            "round {round}"
        );
        writer.synchronize_within(PATIENCE).unwrap();
    }
}

#[test]
fn a_stream_waits_for_a_word_of_the_host_s_by_every_comparison() {
    let Some(context) = gpu::context() else {
        return;
    };
    if !context.device().has_stream_memops_64() {
        return println!("no words on streams: not run");
    }
    let memory = words(&context);
    let stream = stream(&context);
    let flag = word(&memory, 0);
    let cases = [
        (Compare::Geq, 5, 4, 6),
        // A counter that wraps: 2 is after MAX.
        (Compare::Geq, u64::MAX, u64::MAX - 1, 2),
        (Compare::Eq, 7, 8, 7),
        (Compare::And, 6, 9, 2),
        // Bit 0 is clear in neither, then in both.
        (Compare::Nor, !1, 1, 0),
    ];
    for (compare, value, not_yet, then) in cases {
        if compare == Compare::Nor && !context.device().has_wait_nor() {
            continue;
        }
        flag.store(not_yet, Ordering::Release);
        // SAFETY: the word lives until the wait is over and is written whole.
        unsafe { stream.wait_value64(memory.device_ptr(), compare, value, false) }.unwrap();
        assert!(!stream.is_idle().unwrap(), "{compare:?}");
        let short = Duration::from_millis(5);
        let error = stream.synchronize_within(short).unwrap_err();
        assert!(matches!(error, Error::Deadline { .. }), "{error}");
        flag.store(then, Ordering::Release);
        stream.synchronize_within(PATIENCE).unwrap();
    }
    // SAFETY: as above, the words are aligned.
    unsafe {
        stream
            .write_value32(memory.device_ptr().add(64), 9)
            .unwrap();
        stream
            .wait_value32(memory.device_ptr().add(64), Compare::Eq, 9, false)
            .unwrap();
        stream
            .write_value64(memory.device_ptr().add(72), 1 << 40)
            .unwrap();
    }
    stream.synchronize_within(PATIENCE).unwrap();
    assert_eq!(word(&memory, 8).load(Ordering::Acquire), 9);
    assert_eq!(word(&memory, 9).load(Ordering::Acquire), 1 << 40);
    // SAFETY: refused.
    let odd = unsafe { stream.write_value64(memory.device_ptr().add(4), 1) };
    assert!(matches!(odd.unwrap_err(), Error::Invalid { .. }));
}

#[test]
fn a_flush_is_granted_only_where_the_gpu_can() {
    let Some(context) = gpu::context() else {
        return;
    };
    if !context.device().has_stream_memops_64() {
        return println!("no words on streams: not run");
    }
    let memory = words(&context);
    let stream = stream(&context);
    // SAFETY: the word is as wanted already.
    let answer = unsafe { stream.wait_value64(memory.device_ptr(), Compare::Eq, 0, true) };
    if context.device().flush_options().stream {
        answer.unwrap();
    } else {
        assert!(answer.unwrap_err().is_unsupported());
    }
    stream.synchronize_within(PATIENCE).unwrap();
    let answer = context.flush_rdma_writes(oxshmem_cuda::FlushScope::Owner);
    assert_eq!(
        answer.is_ok(),
        context.device().flush_options().host,
        "{answer:?}"
    );
}

#[test]
fn an_event_happens_after_what_came_before_it() {
    let Some(context) = gpu::context() else {
        return;
    };
    let (first, second) = (stream(&context), stream(&context));
    let event = Event::new(&context).unwrap();
    assert!(event.has_happened().unwrap(), "never recorded");
    let (sender, receiver) = mpsc::channel::<()>();
    let seen = Arc::new(AtomicU64::new(0));
    let order = Arc::clone(&seen);
    first
        .host_func(move || {
            _ = receiver.recv_timeout(PATIENCE);
            order.store(1, Ordering::Release);
        })
        .unwrap();
    first.record(&event).unwrap();
    second.wait(&event).unwrap();
    let order = Arc::clone(&seen);
    second
        .host_func(move || {
            _ = order.compare_exchange(1, 2, Ordering::AcqRel, Ordering::Relaxed);
        })
        .unwrap();
    assert!(!event.has_happened().unwrap());
    let error = event
        .synchronize_within(Duration::from_millis(3))
        .unwrap_err();
    assert!(matches!(error, Error::Deadline { .. }), "{error}");
    sender.send(()).unwrap();
    second.synchronize_within(PATIENCE).unwrap();
    event.synchronize_within(PATIENCE).unwrap();
    assert_eq!(seen.load(Ordering::Acquire), 2);
}

#[test]
fn timed_events_tell_the_time_between_them() {
    let Some(context) = gpu::context() else {
        return;
    };
    let stream = stream(&context);
    let (start, end) = (
        Event::timed(&context).unwrap(),
        Event::timed(&context).unwrap(),
    );
    stream.record(&start).unwrap();
    stream
        .host_func(|| std::thread::sleep(Duration::from_millis(20)))
        .unwrap();
    stream.record(&end).unwrap();
    stream.synchronize_within(PATIENCE).unwrap();
    assert!(end.since(&start).unwrap() >= Duration::from_millis(10));
    let untimed = Event::new(&context).unwrap();
    stream.record(&untimed).unwrap();
    stream.synchronize_within(PATIENCE).unwrap();
    assert!(untimed.since(&start).is_err());
}

#[test]
fn a_panic_in_a_function_stays_there() {
    let Some(context) = gpu::context() else {
        return;
    };
    let stream = stream(&context);
    let (sender, receiver) = mpsc::channel();
    // Without the hook's message, which would look like a failure.
    stream
        .host_func(|| std::panic::resume_unwind(Box::new("on purpose")))
        .unwrap();
    stream
        .host_func(move || sender.send(()).unwrap_or(()))
        .unwrap();
    stream.synchronize_within(PATIENCE).unwrap();
    receiver.recv_timeout(PATIENCE).unwrap();
}

#[test]
fn dropping_a_stream_neither_waits_nor_loses_work() {
    let Some(context) = gpu::context() else {
        return;
    };
    let (sender, receiver) = mpsc::channel();
    let (go, going) = mpsc::channel::<()>();
    let urgent = Stream::new(&context, &StreamOptions { urgent: true }).unwrap();
    urgent
        .host_func(move || {
            _ = going.recv_timeout(PATIENCE);
            _ = sender.send(());
        })
        .unwrap();
    drop(urgent);
    go.send(()).unwrap();
    receiver.recv_timeout(PATIENCE).unwrap();
}

#[test]
fn a_borrowed_stream_outlives_its_borrower() {
    let Some(context) = gpu::context() else {
        return;
    };
    let own = stream(&context);
    for raw in [own.as_raw(), std::ptr::null_mut()] {
        // SAFETY: the stream lives on, and the default stream always does.
        let borrowed = unsafe { Stream::borrow(&context, raw) }.unwrap();
        assert_eq!(borrowed.as_raw(), raw);
        borrowed.synchronize_within(PATIENCE).unwrap();
        drop(borrowed);
    }
    assert!(own.is_idle().unwrap());
}

#[test]
fn another_gpu_s_stream_is_refused() {
    let Some([first, second]) = gpu::two_contexts() else {
        return;
    };
    if !Driver::get().unwrap().has(Feature::StreamContext) {
        return println!("streams don't tell their context: not run");
    }
    let own = stream(&second);
    // SAFETY: the stream lives on.
    let error = unsafe { Stream::borrow(&first, own.as_raw()) }.unwrap_err();
    assert!(matches!(error, Error::Invalid { .. }), "{error}");
}

#[test]
fn copies_reach_another_gpu_that_maps_the_memory() {
    let Some([first, second]) = gpu::two_contexts() else {
        return;
    };
    let can = second.device().can_access(first.device()).unwrap();
    let (here, there) = (segment(&first), segment(&second));
    if let (true, Some(descriptor)) = (can, &here.extents()[0].handles.fd) {
        let mut view = Imported::new(&second, here.limit()).unwrap();
        let len = here.extents()[0].len;
        let seen = view.add(0, len, Import::Fd(descriptor.as_fd())).unwrap();
        let bytes = pattern(1 << 16, 6);
        upload(&stream(&first), here.base(), &bytes);
        let stream = stream(&second);
        // SAFETY: both ranges are mapped and nobody else's.
        unsafe { stream.copy(there.base(), seen, bytes.len()) }.unwrap();
        assert!(download(&stream, there.base(), bytes.len()) == bytes);
    }
    assert_eq!(second.enable_peer_access(&first).is_ok(), can);
    assert_eq!(
        second.enable_peer_access(&first).is_ok(),
        can,
        "twice is nothing"
    );
    first.enable_peer_access(&first).unwrap();
}

#[test]
fn host_memory_can_be_registered_once_and_again_later() {
    let Some(context) = gpu::context() else {
        return;
    };
    let mut memory = vec![0_u64; 4096];
    let start = memory.as_mut_ptr().cast::<u8>();
    let told = |at| {
        pointer::attributes(&context, DevicePtr::from_host::<u8>(at))
            .unwrap()
            .memory
    };
    // SAFETY: the memory outlives the registrations.
    let registered = unsafe { Registered::new(&context, start, 32768) }.unwrap();
    assert_eq!(told(start), pointer::Memory::Host);
    // SAFETY: as above; it is refused.
    assert!(unsafe { Registered::new(&context, start, 32768) }.is_err());
    let stream = stream(&context);
    // SAFETY: the memory lives until the wait is over.
    unsafe { stream.fill(registered.device_ptr(), 0xFF, 32768) }.unwrap();
    stream.synchronize_within(PATIENCE).unwrap();
    drop(registered);
    assert!(memory.iter().all(|word| *word == u64::MAX));
    assert_eq!(told(start), pointer::Memory::Unregistered);
    // SAFETY: as above.
    drop(unsafe { Registered::new(&context, start, 32768) }.unwrap());
    // SAFETY: it is refused.
    assert!(unsafe { Registered::new(&context, std::ptr::null_mut(), 8) }.is_err());
}

#[test]
fn pinned_memory_is_the_driver_s_and_zeroed() {
    let Some(context) = gpu::context() else {
        return;
    };
    let memory = words(&context);
    assert!((0..512).all(|place| word(&memory, place).load(Ordering::Relaxed) == 0));
    let told = pointer::attributes(&context, DevicePtr::from_host(memory.as_ptr())).unwrap();
    assert_eq!(told.memory, pointer::Memory::Host);
    assert!(Pinned::new(&context, 0, &PinnedOptions::default()).is_err());
}

#[test]
fn a_graph_does_its_work_each_time_and_not_before() {
    let Some(context) = gpu::context() else {
        return;
    };
    if !Driver::get().unwrap().has(Feature::Graphs) {
        return println!("no graphs: not run");
    }
    let (stream, segment) = (stream(&context), segment(&context));
    let (from, to) = (segment.base(), segment.base().add(1 << 20));
    upload(&stream, to, &[0; 4096]);
    assert_eq!(stream.capture_status().unwrap(), Capture::None);
    let mut graph = Graph::capture(&stream, |stream| {
        assert_eq!(stream.capture_status()?, Capture::Active);
        assert!(stream.host_func(|| ()).is_err(), "it could run twice");
        // SAFETY: both ranges are mapped whenever the graph runs below.
        unsafe { stream.copy(to, from, 4096) }
    })
    .unwrap();
    assert!(!stream.is_capturing().unwrap());
    assert!(download(&stream, to, 4096) == [0; 4096]);
    for seed in 1..4 {
        let bytes = pattern(4096, seed);
        upload(&stream, from, &bytes);
        // SAFETY: both ranges are mapped and nobody else's.
        unsafe { graph.launch(&stream) }.unwrap();
        assert!(download(&stream, to, 4096) == bytes, "seed {seed}");
    }
}

#[test]
fn a_capture_that_fails_leaves_the_stream_usable() {
    let Some(context) = gpu::context() else {
        return;
    };
    if !Driver::get().unwrap().has(Feature::Graphs) {
        return println!("no graphs: not run");
    }
    let stream = stream(&context);
    let error = Graph::capture(&stream, |stream| stream.synchronize()).unwrap_err();
    assert!(error.to_string().contains("captured"), "{error}");
    assert!(!stream.is_capturing().unwrap());
    stream.synchronize_within(PATIENCE).unwrap();
}

#[test]
fn a_thread_beside_a_capture_can_work() {
    let Some(context) = gpu::context() else {
        return;
    };
    let answer = context.beside_captures(|| context.memory());
    assert!(answer.unwrap().total > 0);
}
