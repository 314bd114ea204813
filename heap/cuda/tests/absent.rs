//! No driver, no GPU, the wrong library, an old driver, a driver that lacks things: each is told.
#![cfg(feature = "cuda")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod gpu;

use std::os::fd::AsFd;
use std::path::Path;
use std::process::Command;

use gpu::alone;
use oxshmem_cuda::{
    Compare, Context, Device, Driver, Error, Import, Imported, Probe, Segment, SegmentKind,
    SegmentOptions, devices, probe,
};

/// Runs a test's body on the software driver with these variables, if that is the one in use.
fn on_software(name: &str, environment: &[(&str, &str)], body: impl FnOnce()) {
    let is_child = gpu::part().is_some();
    let Some(_) = (is_child.then_some(())).or_else(|| gpu::context().map(drop)) else {
        return;
    };
    if is_child || gpu::is_software() {
        alone(name, environment, body);
    } else {
        println!("not the software driver: not run");
    }
}

fn context() -> Context {
    Context::new(&Device::new(0).unwrap()).unwrap()
}

#[test]
fn a_missing_library_is_told_and_how_to_mend_it() {
    let environment = [("OXSHMEM_CUDA_LIBRARY", "/nonexistent/libsoftcuda.so")];
    alone(
        "a_missing_library_is_told_and_how_to_mend_it",
        &environment,
        || {
            let error = devices().unwrap_err();
            assert!(
                matches!(error, Error::NoDriver { named: true, .. }),
                "{error:?}"
            );
            let text = error.to_string();
            for words in [
                "/nonexistent/libsoftcuda.so",
                "OXSHMEM_CUDA_LIBRARY",
                "No such file",
            ] {
                assert!(text.contains(words), "{text}");
            }
            // Again, and by another way: the same answer.
            assert_eq!(Driver::get().unwrap_err().to_string(), text);
            assert_eq!(probe(), Probe::Unavailable { why: text });
        },
    );
}

#[test]
fn a_library_s_name_without_a_path_is_refused() {
    let environment = [("OXSHMEM_CUDA_LIBRARY", "libsoftcuda.so")];
    alone(
        "a_library_s_name_without_a_path_is_refused",
        &environment,
        || {
            let text = Driver::get().unwrap_err().to_string();
            assert!(text.contains("no absolute path"), "{text}");
        },
    );
}

#[test]
fn a_library_that_is_no_driver_is_refused() {
    // Any library will do: the C library that this process has mapped.
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let library = maps
        .lines()
        .filter_map(|line| line.split_ascii_whitespace().nth(5))
        .find(|path| path.contains("/libc.so") || path.contains("/libc-"))
        .unwrap();
    let environment = [("OXSHMEM_CUDA_LIBRARY", library)];
    alone(
        "a_library_that_is_no_driver_is_refused",
        &environment,
        || {
            let error = Driver::get().unwrap_err();
            assert!(matches!(error, Error::NotADriver { .. }), "{error}");
        },
    );
}

/// A library with these calls, each of which returns 0, but for the codes named. It says that it is
/// CUDA 12.0.
fn hollow_driver(file: &str, calls: &[&str], codes: &[(&str, u32)]) -> String {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let mut text =
        "int cuDriverGetVersion(int *version) { *version = 12000; return 0; }\n".to_owned();
    for call in calls.iter().filter(|call| **call != "cuDriverGetVersion") {
        let code = codes
            .iter()
            .find(|(name, _)| name == call)
            .map_or(0, |(_, code)| *code);
        text += &format!("unsigned {call}(void) {{ return {code}u; }}\n");
    }
    let (source, library) = (
        folder.join(format!("{file}.c")),
        folder.join(format!("{file}.so")),
    );
    std::fs::write(&source, text).unwrap();
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-w", "-o"])
        .args([&library, &source])
        .status()
        .unwrap();
    assert!(built.success(), "cc: {built}");
    library.to_str().unwrap().to_owned()
}

/// The calls that the door must have, as its table lists them.
fn required_calls() -> Vec<&'static str> {
    let table = include_str!("../src/table.rs");
    let (_, rest) = table.split_once("\n    required {").unwrap();
    let (required, _) = rest.split_once("\n    optional {").unwrap();
    required
        .lines()
        .filter_map(|line| line.trim().strip_prefix("cu")?.split_once('('))
        .map(|(name, _)| {
            let at = table.find(&format!("cu{name}(")).unwrap();
            &table[at..at + 2 + name.len()]
        })
        .collect()
}

#[test]
fn a_driver_that_lacks_a_call_is_refused_by_its_name() {
    let name = "a_driver_that_lacks_a_call_is_refused_by_its_name";
    if gpu::part().is_some() {
        return alone(name, &[], || {
            let error = Driver::get().unwrap_err();
            assert!(
                matches!(
                    error,
                    Error::MissingCall {
                        symbol: "cuMemcpyAsync",
                        ..
                    }
                ),
                "{error}"
            );
            let text = error.to_string();
            assert!(
                text.contains("cuMemcpyAsync") && text.contains("12.0"),
                "{text}"
            );
        });
    }
    let mut calls = required_calls();
    calls.retain(|call| *call != "cuMemcpyAsync");
    let library = hollow_driver("lacks-a-call", &calls, &[]);
    alone(
        name,
        &[("OXSHMEM_CUDA_LIBRARY", &library)],
        || unreachable!(),
    );
}

#[test]
fn a_result_code_that_nobody_knows_is_an_error() {
    let name = "a_result_code_that_nobody_knows_is_an_error";
    if gpu::part().is_some() {
        return alone(name, &[], || {
            let error = Driver::get().unwrap_err();
            assert_eq!(error.code(), Some(4_000_000_000));
            assert!(error.to_string().starts_with("cuInit: "), "{error}");
        });
    }
    let calls = required_calls();
    assert!(calls.len() > 40 && calls.contains(&"cuInit"), "{calls:?}");
    let codes = [
        ("cuInit", 4_000_000_000),
        ("cuGetErrorName", 1),
        ("cuGetErrorString", 1),
    ];
    let library = hollow_driver("odd-code", &calls, &codes);
    alone(
        name,
        &[("OXSHMEM_CUDA_LIBRARY", &library)],
        || unreachable!(),
    );
}

#[test]
fn hidden_gpus_are_told() {
    let name = "hidden_gpus_are_told";
    if gpu::part().is_some() {
        return alone(name, &[], || {
            let error = Driver::get().unwrap_err();
            assert!(matches!(error, Error::NoDevice { .. }), "{error}");
            assert!(
                error.to_string().contains("CUDA_VISIBLE_DEVICES=-1"),
                "{error}"
            );
        });
    }
    let library = hollow_driver("no-gpu", &required_calls(), &[("cuInit", 100)]);
    let environment = [
        ("OXSHMEM_CUDA_LIBRARY", library.as_str()),
        ("CUDA_VISIBLE_DEVICES", "-1"),
    ];
    alone(name, &environment, || unreachable!());
}

#[test]
fn an_old_driver_is_refused_with_both_versions() {
    let environment = [("SOFTCUDA_DRIVER_VERSION", "11040")];
    on_software(
        "an_old_driver_is_refused_with_both_versions",
        &environment,
        || {
            let error = Driver::get().unwrap_err();
            assert!(matches!(error, Error::TooOld { .. }), "{error}");
            let text = error.to_string();
            assert!(text.contains("11.4") && text.contains("12.0"), "{text}");
        },
    );
}

#[test]
fn a_gpu_s_number_beyond_the_last_is_told() {
    let Some(_) = gpu::context() else { return };
    let error = Device::new(4096).unwrap_err();
    assert!(
        matches!(error, Error::BadOrdinal { ordinal: 4096, .. }),
        "{error}"
    );
}

#[test]
fn without_vmm_a_segment_is_legacy_memory() {
    let environment = [("SOFTCUDA_WITHOUT", "vmm")];
    on_software(
        "without_vmm_a_segment_is_legacy_memory",
        &environment,
        || {
            let context = context();
            assert!(!context.device().has_vmm());
            let mut segment = Segment::new(&context, 3 << 20).unwrap();
            assert_eq!(segment.kind(), SegmentKind::Legacy);
            assert_eq!(segment.limit(), 4 << 20);
            assert_eq!(segment.grow_to(1).unwrap(), 0..1);
            assert_eq!(segment.committed(), 4 << 20);
            let handles = &segment.extents()[0].handles;
            assert!(handles.ipc.is_some() && handles.fd.is_none(), "{handles:?}");
            let stream = gpu::stream(&context);
            let bytes = gpu::pattern(1 << 20, 3);
            gpu::upload(&stream, segment.base().add(64), &bytes);
            assert!(gpu::download(&stream, segment.base().add(64), bytes.len()) == bytes);
            let null = std::fs::File::open("/dev/null").unwrap();
            let descriptor = Import::Fd(null.as_fd());
            let error = Imported::new(&context, 2 << 20)
                .unwrap()
                .add(0, 2 << 20, descriptor);
            assert!(error.unwrap_err().is_unsupported());
        },
    );
}

#[test]
fn without_descriptors_a_segment_is_legacy_memory() {
    let environment = [("SOFTCUDA_WITHOUT", "posix-fd")];
    on_software(
        "without_descriptors_a_segment_is_legacy_memory",
        &environment,
        || {
            let context = context();
            let mut segment = Segment::new(&context, 2 << 20).unwrap();
            assert_eq!(segment.kind(), SegmentKind::Legacy);
            segment.grow_to(1).unwrap();
            assert!(segment.extents()[0].handles.ipc.is_some());
        },
    );
}

#[test]
fn memory_that_no_peer_can_map_says_why() {
    let environment = [("SOFTCUDA_WITHOUT", "vmm,ipc")];
    on_software("memory_that_no_peer_can_map_says_why", &environment, || {
        let mut segment = Segment::new(&context(), 2 << 20).unwrap();
        segment.grow_to(1).unwrap();
        let handles = &segment.extents()[0].handles;
        assert!(handles.ipc.is_none() && handles.fd.is_none());
        let why = handles.refused.as_deref().unwrap();
        for words in ["cuIpcGetMemHandle", "GPU 0's memory", "--ipc=host"] {
            assert!(why.contains(words), "{why}");
        }
    });
}

#[test]
fn without_stream_memops_words_are_refused_and_nothing_else() {
    let environment = [("SOFTCUDA_WITHOUT", "memops")];
    let name = "without_stream_memops_words_are_refused_and_nothing_else";
    on_software(name, &environment, || {
        let context = context();
        let stream = gpu::stream(&context);
        let mut segment = Segment::new(&context, 2 << 20).unwrap();
        segment.grow_to(8).unwrap();
        // SAFETY: refused or not, the word is mapped and nobody else's.
        let write = unsafe { stream.write_value64(segment.base(), 1) };
        assert!(write.unwrap_err().is_unsupported());
        // SAFETY: as above.
        let wait = unsafe { stream.wait_value64(segment.base(), Compare::Geq, 0, false) };
        assert!(matches!(wait.unwrap_err(), Error::Unsupported { .. }));
        gpu::upload(&stream, segment.base(), &[1; 8]);
    });
}

#[test]
fn gpus_without_peer_access_refuse_each_other_s_memory() {
    let environment = [("SOFTCUDA_DEVICES", "2"), ("SOFTCUDA_WITHOUT", "p2p")];
    let name = "gpus_without_peer_access_refuse_each_other_s_memory";
    on_software(name, &environment, || {
        let found = devices().unwrap();
        let [first, second] = &found[..] else {
            panic!("{found:?}");
        };
        assert!(!first.can_access(second).unwrap() && first.can_access(first).unwrap());
        assert!(!first.native_atomics_to(second).unwrap());
        let (here, there) = (Context::new(first).unwrap(), Context::new(second).unwrap());
        assert!(
            here.enable_peer_access(&there)
                .unwrap_err()
                .is_unsupported()
        );
        let mut segment = Segment::new(&here, 2 << 20).unwrap();
        segment.grow_to(1).unwrap();
        let descriptor = segment.extents()[0].handles.fd.as_ref().unwrap().as_fd();
        let mut view = Imported::new(&there, 2 << 20).unwrap();
        let before = gpu::open_descriptors();
        let error = view.add(0, 2 << 20, Import::Fd(descriptor)).unwrap_err();
        assert!(error.to_string().contains("GPU 1"), "{error}");
        assert_eq!(view.address(0, 1), None);
        assert_eq!(gpu::open_descriptors(), before);
    });
}

#[test]
fn peer_access_without_atomics_is_told() {
    let environment = [
        ("SOFTCUDA_DEVICES", "2"),
        ("SOFTCUDA_WITHOUT", "p2p-atomics"),
    ];
    on_software("peer_access_without_atomics_is_told", &environment, || {
        let found = devices().unwrap();
        assert!(found[0].can_access(&found[1]).unwrap());
        assert!(!found[0].native_atomics_to(&found[1]).unwrap());
    });
}

#[test]
fn a_lack_of_gpu_memory_says_how_much_there_is() {
    let environment = [("SOFTCUDA_MEMORY", "16777216")];
    on_software(
        "a_lack_of_gpu_memory_says_how_much_there_is",
        &environment,
        || {
            let context = context();
            let mut segment = Segment::new(&context, 64 << 20).unwrap();
            segment.grow_to(4 << 20).unwrap();
            for error in [
                segment.grow_to(64 << 20).unwrap_err(),
                Segment::with_options(
                    &context,
                    64 << 20,
                    &SegmentOptions {
                        kind: Some(SegmentKind::Legacy),
                        ..SegmentOptions::default()
                    },
                )
                .unwrap_err(),
            ] {
                let Error::OutOfMemory {
                    wanted,
                    free,
                    total,
                    ..
                } = error
                else {
                    panic!("{error}");
                };
                assert!(
                    wanted >= 60 << 20 && free <= 12 << 20 && total == 16 << 20,
                    "{error}"
                );
                assert!(
                    error.to_string().contains("OXSHMEM_CUDA_SYMMETRIC_SIZE"),
                    "{error}"
                );
            }
            segment.grow_to(8 << 20).unwrap();
        },
    );
}
