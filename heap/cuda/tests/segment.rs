//! A GPU's symmetric memory in one process.
#![cfg(feature = "cuda")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod gpu;

use std::os::fd::AsFd;

use gpu::{download, pattern, stream, upload};
use oxshmem_cuda::{
    Context, Device, Error, Import, Imported, Segment, SegmentKind, SegmentOptions, devices,
    pointer,
};

const MIB: usize = 1 << 20;

fn legacy() -> SegmentOptions {
    SegmentOptions {
        kind: Some(SegmentKind::Legacy),
        ..SegmentOptions::default()
    }
}

#[test]
fn devices_describe_themselves() {
    let Some(_) = gpu::context() else { return };
    let found = devices().unwrap();
    assert!(!found.is_empty());
    for (ordinal, device) in found.iter().enumerate() {
        assert_eq!(device.ordinal(), ordinal);
        assert!(!device.name().is_empty() && device.total_memory() > 0);
        assert!(device.compute_capability().0 >= 5, "{device:?}");
        assert!(device.can_access(device).unwrap() && device.native_atomics_to(device).unwrap());
        assert_eq!(Device::new(ordinal).unwrap().uuid(), device.uuid());
        let twins = found
            .iter()
            .filter(|other| other.uuid() == device.uuid())
            .count();
        assert_eq!(twins, 1, "{device:?}");
    }
}

#[test]
fn a_context_is_current_within_and_not_after() {
    let Some(context) = gpu::context() else {
        return;
    };
    let again = Context::new(context.device()).unwrap();
    assert_eq!(context, again);
    // A thread of its own has no context before.
    std::thread::spawn(move || {
        let outer = context.enter().unwrap();
        let answer = context.with(|| 7).unwrap();
        assert_eq!(answer, 7);
        drop(outer);
        assert!(context.memory().unwrap().total > 0);
    })
    .join()
    .unwrap();
}

#[test]
fn it_grows_in_place_and_keeps_its_bytes() {
    let Some(context) = gpu::context() else {
        return;
    };
    let stream = stream(&context);
    let mut segment = Segment::new(&context, 16 * MIB).unwrap();
    if segment.kind() == SegmentKind::Legacy {
        return println!("no virtual memory: not run");
    }
    let base = segment.base();
    assert_eq!((segment.committed(), segment.extents().len()), (0, 0));
    assert_eq!(segment.grow_to(1).unwrap(), 0..1);
    let first = segment.committed();
    assert_eq!(first, segment.granule());
    let bytes = pattern(first, 1);
    upload(&stream, base, &bytes);
    assert_eq!(segment.grow_to(first).unwrap(), 1..1, "there is enough");
    assert_eq!(segment.grow_to(first + 1).unwrap(), 1..2);
    assert_eq!(segment.base(), base);
    assert!(download(&stream, base, first) == bytes);
    // One range across both extents.
    let across = pattern(first, 2);
    upload(&stream, base.add(first / 2), &across);
    assert!(download(&stream, base.add(first / 2), first) == across);
    let extents = segment.extents();
    assert_eq!(
        (extents[1].offset, extents[1].len),
        (first, segment.granule())
    );
    for extent in extents {
        assert!(extent.handles.fd.is_some() || extent.handles.refused.is_some());
    }
}

#[test]
fn extents_are_as_large_as_asked_and_end_at_the_limit() {
    let Some(context) = gpu::context() else {
        return;
    };
    let options = SegmentOptions {
        extent: 6 * MIB - 1,
        ..SegmentOptions::default()
    };
    let mut segment = Segment::with_options(&context, 16 * MIB - 5, &options).unwrap();
    if segment.kind() == SegmentKind::Legacy {
        return println!("no virtual memory: not run");
    }
    assert_eq!((segment.limit(), segment.granule()), (16 * MIB, 6 * MIB));
    segment.grow_to(1).unwrap();
    segment.grow_to(7 * MIB).unwrap();
    segment.grow_to(16 * MIB).unwrap();
    let lengths: Vec<_> = segment.extents().iter().map(|extent| extent.len).collect();
    assert_eq!(lengths, [6 * MIB, 6 * MIB, 4 * MIB]);
}

#[test]
fn beyond_its_limit_nothing_changes() {
    let Some(context) = gpu::context() else {
        return;
    };
    for options in [SegmentOptions::default(), legacy()] {
        let mut segment = Segment::with_options(&context, 4 * MIB, &options).unwrap();
        segment.grow_to(1).unwrap();
        let before = segment.committed();
        let error = segment.grow_to(4 * MIB + 1).unwrap_err();
        assert!(matches!(error, Error::BeyondLimit { .. }), "{error}");
        let error = segment.grow_to(usize::MAX).unwrap_err();
        assert!(matches!(error, Error::BeyondLimit { .. }), "{error}");
        assert_eq!((segment.committed(), segment.extents().len()), (before, 1));
    }
    assert!(Segment::new(&context, 0).is_err());
    assert!(Segment::new(&context, usize::MAX).is_err());
}

#[test]
fn m13_a_growth_that_fails_leaves_the_segment_as_it_was() {
    let Some(context) = gpu::context() else {
        return;
    };
    // In a process of its own, where no other test opens descriptors.
    gpu::alone(
        "m13_a_growth_that_fails_leaves_the_segment_as_it_was",
        &[],
        || {
            growth_that_fails(&context);
        },
    );
}

fn growth_that_fails(context: &Context) {
    let total = context.memory().unwrap().total;
    let mut segment = Segment::new(context, 4 * total).unwrap();
    if segment.kind() == SegmentKind::Legacy {
        return println!("no virtual memory: not run");
    }
    segment.grow_to(1).unwrap();
    let (before, descriptors) = (segment.committed(), gpu::open_descriptors());
    let error = segment.grow_to(4 * total).unwrap_err();
    let Error::OutOfMemory {
        wanted,
        total: told,
        ..
    } = error
    else {
        panic!("{error}");
    };
    assert!(wanted > total && told == total, "{error}");
    assert_eq!((segment.committed(), segment.extents().len()), (before, 1));
    assert_eq!(gpu::open_descriptors(), descriptors);
    // It is none the worse for it.
    let stream = stream(context);
    segment.grow_to(before + 1).unwrap();
    let bytes = pattern(segment.committed(), 9);
    upload(&stream, segment.base(), &bytes);
    assert!(download(&stream, segment.base(), bytes.len()) == bytes);
}

#[test]
fn m13_a_growth_can_be_taken_back() {
    let Some(context) = gpu::context() else {
        return;
    };
    let stream = stream(&context);
    let mut segment = Segment::new(&context, 8 * MIB).unwrap();
    segment.grow_to(1).unwrap();
    let before = segment.committed();
    let bytes = pattern(before, 5);
    upload(&stream, segment.base(), &bytes);
    segment.grow_to(segment.limit()).unwrap();
    segment.truncate(1);
    assert_eq!((segment.committed(), segment.extents().len()), (before, 1));
    assert!(download(&stream, segment.base(), before) == bytes);
    segment.grow_to(segment.limit()).unwrap();
    assert_eq!(segment.committed(), segment.limit());
    segment.truncate(0);
    assert_eq!(segment.committed(), 0);
    segment.truncate(7);
    segment.grow_to(1).unwrap();
}

#[test]
fn nothing_is_left_of_segments_that_came_and_went() {
    let Some(context) = gpu::context() else {
        return;
    };
    gpu::alone(
        "nothing_is_left_of_segments_that_came_and_went",
        &[],
        || {
            segments_come_and_go(&context, &SegmentOptions::default());
            segments_come_and_go(&context, &legacy());
        },
    );
}

fn segments_come_and_go(context: &Context, options: &SegmentOptions) {
    let once = || {
        let mut segment = Segment::with_options(context, 8 * MIB, options).unwrap();
        segment.grow_to(1).unwrap();
        segment.grow_to(8 * MIB).unwrap();
        let Some(descriptor) = &segment.extents()[0].handles.fd else {
            return;
        };
        let mut view = Imported::new(context, 8 * MIB).unwrap();
        let len = segment.extents()[0].len;
        view.add(0, len, Import::Fd(descriptor.as_fd())).unwrap();
    };
    once();
    let descriptors = gpu::open_descriptors();
    let total = context.memory().unwrap().total;
    (0..16).for_each(|_| once());
    assert_eq!(gpu::open_descriptors(), descriptors);
    // Other processes use the GPU too, so its free memory tells nothing. That the software one, which
    // has little, could not hold what so many rounds would leave does.
    let rounds = (2 * total / (8 * MIB)).min(512);
    (0..rounds).for_each(|_| once());
}

#[test]
fn an_imported_view_shows_the_segment() {
    let Some(context) = gpu::context() else {
        return;
    };
    let stream = stream(&context);
    let mut segment = Segment::new(&context, 8 * MIB).unwrap();
    segment.grow_to(1).unwrap();
    segment.grow_to(4 * MIB).unwrap();
    if segment.extents()[0].handles.fd.is_none() {
        return println!("no descriptors: not run");
    }
    let mut view = Imported::new(&context, segment.limit()).unwrap();
    assert_eq!(view.base(), None);
    assert_eq!(view.address(0, 0), None);
    // The last first: extents may come in any order.
    for extent in segment.extents().iter().rev() {
        let descriptor = extent.handles.fd.as_ref().unwrap().as_fd();
        let address = view
            .add(extent.offset, extent.len, Import::Fd(descriptor))
            .unwrap();
        assert_eq!(view.address(extent.offset, extent.len), Some(address));
    }
    let base = view.base().unwrap();
    assert_ne!(base, segment.base());
    let committed = segment.committed();
    assert_eq!(view.address(100, committed - 100), Some(base.add(100)));
    assert_eq!(view.address(100, committed), None);
    let bytes = pattern(committed, 7);
    upload(&stream, base, &bytes);
    assert!(download(&stream, segment.base(), committed) == bytes);
    view.truncate(segment.extents()[1].offset);
    assert_eq!(view.address(0, segment.extents()[0].len), Some(base));
    assert_eq!(view.address(0, committed), None);
}

#[test]
fn an_extent_that_does_not_fit_is_refused() {
    let Some(context) = gpu::context() else {
        return;
    };
    let mut segment = Segment::new(&context, 4 * MIB).unwrap();
    segment.grow_to(1).unwrap();
    let Some(descriptor) = &segment.extents()[0].handles.fd else {
        return println!("no descriptors: not run");
    };
    let len = segment.extents()[0].len;
    let mut view = Imported::new(&context, segment.limit()).unwrap();
    let mut add = |offset, len| view.add(offset, len, Import::Fd(descriptor.as_fd()));
    for (offset, len) in [
        (0, 0),
        (1, len),
        (4 * MIB, len),
        (0, 4 * MIB + 1),
        (usize::MAX, 2),
    ] {
        let error = add(offset, len).unwrap_err();
        assert!(
            matches!(error, Error::Invalid { .. }),
            "{offset} {len}: {error}"
        );
    }
    // Longer than what was exported: the driver's refusal.
    assert!(matches!(add(0, 2 * len).unwrap_err(), Error::Call { .. }));
    add(0, len).unwrap();
    assert!(matches!(add(0, len).unwrap_err(), Error::Invalid { .. }));
    // A descriptor of something else.
    let null = std::fs::File::open("/dev/null").unwrap();
    let answer = view.add(2 * MIB, 2 * MIB, Import::Fd(null.as_fd()));
    assert!(matches!(answer.unwrap_err(), Error::Call { .. }));
    assert!(Imported::new(&context, 0).is_err());
}

#[test]
fn m8_the_driver_knows_whose_an_address_is() {
    let Some(context) = gpu::context() else {
        return;
    };
    let mut segment = Segment::new(&context, 4 * MIB).unwrap();
    segment.grow_to(1).unwrap();
    let told = pointer::attributes(&context, segment.base().add(4096)).unwrap();
    assert_eq!(told.memory, pointer::Memory::Device);
    assert_eq!(told.device, Some(context.device().ordinal()));
    assert_eq!(told.reached, Some(segment.base().add(4096)));
    let (start, len) = told.range.unwrap();
    assert!(start <= segment.base() && len > 4096, "{told:?}");
    let local = 5_u64;
    let of_host = oxshmem_cuda::DevicePtr::from_host(&raw const local);
    let told = pointer::attributes(&context, of_host).unwrap();
    assert_eq!(told.memory, pointer::Memory::Unregistered);
    assert_eq!((told.device, told.range, told.reached), (None, None, None));
}
