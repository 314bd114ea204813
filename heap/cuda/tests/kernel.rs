//! Kernels: loading, arguments, launches, and what the compiler says.
#![cfg(feature = "cuda")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod gpu;

use std::path::Path;
use std::process::Command;
use std::sync::{OnceLock, mpsc};

use gpu::{PATIENCE, download, stream, upload};
use oxshmem_cuda::{
    Args, Context, Device, DevicePtr, Error, Event, Launch, Module, Pinned, PinnedOptions, Segment,
};

const PTX: &str = include_str!("kernels.ptx");

/// The kernels built for the software driver, once for all tests of this program.
fn host_build() -> &'static str {
    static LIBRARY: OnceLock<String> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let room = Path::new(env!("CARGO_MANIFEST_DIR"));
        let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join("oxshmem-cuda-kernels.so");
        let built = Command::new(room.join("../../ci/softcuda-kernels"))
            .args([library.as_path(), &room.join("tests/kernels.cu")])
            .status()
            .unwrap();
        assert!(built.success(), "ci/softcuda-kernels: {built}");
        library.to_str().unwrap().to_owned()
    })
}

/// Runs a test's body with what it needs to launch: a GPU, or the software driver and a build of the
/// kernels for it.
fn with_kernels(name: &str, body: impl FnOnce(&Context)) {
    let first = || Context::new(&Device::new(0).unwrap()).unwrap();
    if gpu::part().is_some() {
        return gpu::alone(name, &[], || body(&first()));
    }
    let Some(context) = gpu::context() else {
        return;
    };
    if !gpu::is_software() {
        return body(&context);
    }
    gpu::alone(
        name,
        &[("SOFTCUDA_KERNELS", host_build())],
        || unreachable!(),
    );
}

fn segment(context: &Context) -> Segment {
    let mut segment = Segment::new(context, 2 << 20).unwrap();
    segment.grow_to(1).unwrap();
    segment
}

#[test]
fn every_kind_of_argument_arrives() {
    with_kernels("every_kind_of_argument_arrives", |context| {
        let module = Module::from_ptx(context, PTX).unwrap();
        let ramp = module.function(c"ramp").unwrap();
        assert!(ramp.max_threads() >= 32);
        let (stream, segment) = (stream(context), segment(context));
        let (offset, len) = module.global(c"offset").unwrap();
        assert_eq!(len, 8);
        upload(&stream, offset, &1_000_u64.to_ne_bytes());
        upload(&stream, segment.base(), &[0xFF; 8 * 50]);
        let arguments = Args::new()
            .with(segment.base())
            .with(40_u32)
            .with(-7_i64)
            .with(0.5_f32)
            .with(4.0_f64)
            .with(-1_i8);
        // SAFETY: the arguments are those of kernels.cu, and the range is mapped.
        unsafe { ramp.launch(&stream, &Launch::linear(3, 16), &arguments) }.unwrap();
        let bytes = download(&stream, segment.base(), 8 * 50);
        let words: Vec<i64> = bytes
            .chunks_exact(8)
            .map(|word| i64::from_ne_bytes(word.try_into().unwrap()))
            .collect();
        for (place, word) in words.iter().enumerate() {
            let wanted = if place < 40 {
                993 - 2 * place as i64
            } else {
                -1
            };
            assert_eq!(*word, wanted, "place {place}");
        }
    });
}

#[test]
fn a_cooperative_launch_works_where_the_gpu_can() {
    with_kernels("a_cooperative_launch_works_where_the_gpu_can", |context| {
        let nothing = Module::from_ptx(context, PTX)
            .unwrap()
            .function(c"nothing")
            .unwrap();
        let stream = stream(context);
        let shape = Launch {
            cooperative: true,
            ..Launch::linear(1, 8)
        };
        // SAFETY: the kernel touches nothing.
        let answer = unsafe { nothing.launch(&stream, &shape, &Args::new()) };
        assert_eq!(
            answer.is_ok(),
            context.device().has_cooperative_launch(),
            "{answer:?}"
        );
        stream.synchronize_within(PATIENCE).unwrap();
    });
}

#[test]
fn a_name_that_is_not_there_is_told() {
    with_kernels("a_name_that_is_not_there_is_told", |context| {
        let module = Module::from_ptx(context, PTX).unwrap();
        let text = module.function(c"absent").unwrap_err().to_string();
        assert!(text.contains("kernel named absent"), "{text}");
        let text = module.global(c"absent").unwrap_err().to_string();
        assert!(text.contains("variable named absent"), "{text}");
    });
}

#[test]
fn an_impossible_launch_is_refused() {
    with_kernels("an_impossible_launch_is_refused", |context| {
        let nothing = Module::from_ptx(context, PTX)
            .unwrap()
            .function(c"nothing")
            .unwrap();
        let stream = stream(context);
        for shape in [
            Launch::linear(0, 1),
            Launch::linear(1, 0),
            Launch::linear(1, 1 << 20),
        ] {
            // SAFETY: it is refused.
            let answer = unsafe { nothing.launch(&stream, &shape, &Args::new()) };
            assert!(
                matches!(answer, Err(Error::Call { .. })),
                "{shape:?}: {answer:?}"
            );
        }
        let many = (0..=Args::MOST).fold(Args::new(), |arguments, _| arguments.with(0_u64));
        // SAFETY: it is refused.
        let error = unsafe { nothing.launch(&stream, &Launch::linear(1, 1), &many) }.unwrap_err();
        assert!(matches!(error, Error::Invalid { .. }), "{error}");
        stream.synchronize_within(PATIENCE).unwrap();
    });
}

#[test]
fn work_that_touches_what_is_gone_ends_the_context_and_nothing_else() {
    let name = "work_that_touches_what_is_gone_ends_the_context_and_nothing_else";
    if gpu::part().is_none() {
        // In a process of its own: nothing works on that GPU afterwards.
        return with_kernels(name, |_| gpu::alone(name, &[], || unreachable!()));
    }
    gpu::alone(name, &[], || {
        let context = Context::new(&Device::new(0).unwrap()).unwrap();
        let module = Module::from_ptx(&context, PTX).unwrap();
        let (stream, event) = (stream(&context), Event::new(&context).unwrap());
        let pinned = Pinned::new(&context, 4096, &PinnedOptions::default()).unwrap();
        let mut segment = segment(&context);
        if gpu::is_software() {
            // Its kernels would end the process: a copy, whose memory goes before it begins.
            let (go, going) = mpsc::channel::<()>();
            stream
                .host_func(move || _ = going.recv_timeout(PATIENCE))
                .unwrap();
            // SAFETY: it is not; the software driver's answer to that is what is wanted.
            unsafe { stream.copy(segment.base(), pinned.device_ptr(), 64) }.unwrap();
            segment.truncate(0);
            go.send(()).unwrap();
        } else {
            let ramp = module.function(c"ramp").unwrap();
            let arguments = Args::new()
                .with(DevicePtr::from_raw(8))
                .with(1_u32)
                .with(0_i64)
                .with(0_f32)
                .with(0_f64)
                .with(0_i8);
            // SAFETY: it is not; that the GPU says so is what is wanted.
            unsafe { ramp.launch(&stream, &Launch::linear(1, 1), &arguments) }.unwrap();
        }
        let error = stream.synchronize_within(PATIENCE).unwrap_err();
        assert!(error.is_fatal(), "{error}");
        assert!(error.to_string().contains("start it again"), "{error}");
        // All that is left goes without a word.
        _ = segment.grow_to(2 << 20);
        drop((segment, pinned, event, stream, module, context));
    });
}

#[test]
fn what_is_not_ptx_is_an_error_with_words() {
    with_kernels("what_is_not_ptx_is_an_error_with_words", |context| {
        let error = Module::from_ptx(context, "this is no PTX").unwrap_err();
        assert!(matches!(error, Error::Compile { .. }), "{error}");
        let error = Module::from_ptx(context, "a NUL \0 within").unwrap_err();
        assert!(matches!(error, Error::Invalid { .. }), "{error}");
    });
}

#[test]
fn another_gpu_s_stream_is_refused() {
    let Some([first, second]) = gpu::two_contexts() else {
        return;
    };
    if gpu::is_software() {
        return println!("the software driver has no kernels in this process: not run");
    }
    let nothing = Module::from_ptx(&first, PTX)
        .unwrap()
        .function(c"nothing")
        .unwrap();
    let stream = stream(&second);
    // SAFETY: it is refused.
    let answer = unsafe { nothing.launch(&stream, &Launch::linear(1, 1), &Args::new()) };
    assert!(matches!(answer, Err(Error::Invalid { .. })), "{answer:?}");
}
