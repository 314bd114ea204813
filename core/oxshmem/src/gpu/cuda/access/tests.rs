//! Accesses to a GPU heap, on the software driver of `ci/test-gpu`, or a GPU. Without either nothing is run; with
//! `OXSHMEM_TEST_CUDA=1` that is a failure.
use std::sync::mpsc;
use std::time::Duration;

use oxshmem_cuda::testing::present;
use oxshmem_cuda::{Context, Device};

use oxshmem_transport::{AtomicOp, AtomicRequest};

use super::*;
use crate::gpu::cuda::copy_engine::{HALF, PATIENCE};

const LEN: usize = 2 * HALF + 100;

/// Access to committed memory of the first GPU.
fn access() -> Option<CudaAccess> {
    let context = Context::new(&present(Device::new(0))?).unwrap();
    let mut segment = Segment::new(&context, LEN).unwrap();
    segment.grow_to(LEN).unwrap();
    let gpu = Gpu::new(context).unwrap();
    Some(CudaAccess::new(&Arc::new(Mutex::new(segment)), &gpu))
}

fn write(access: &CudaAccess, data: &[u8]) -> Result<(), String> {
    // SAFETY: the data are as long.
    unsafe { access.write(0, data.as_ptr(), data.len()) }
}

fn read(access: &CudaAccess, len: usize) -> Result<Vec<u8>, String> {
    let mut data = vec![0; len];
    // SAFETY: the data are as long.
    unsafe { access.read(0, data.as_mut_ptr(), len)? };
    Ok(data)
}

fn data(seed: usize, len: usize) -> Vec<u8> {
    (0..len).map(|at| (seed + at) as u8).collect()
}

#[test]
fn a_gpu_that_was_held_for_longer_than_a_call_waits_is_reached_again_when_it_is_free() {
    let Some(access) = access() else { return };
    write(&access, &data(0, LEN)).unwrap();
    let (release, held) = mpsc::channel::<()>();
    {
        let mut engine = access.gpu.engine();
        let hold = move || assert!(held.recv().is_err(), "nothing is sent");
        engine.stream.host_func(hold).unwrap();
        engine.patience = Duration::from_millis(20);
    }
    write(&access, &data(1, 100)).unwrap_err();
    // The cancelled work holds the page-locked memory, which no later call may fill.
    for why in [
        write(&access, &data(2, 100)).unwrap_err(),
        read(&access, 100).unwrap_err(),
        access
            .atomic(0, AtomicRequest::wide(AtomicOp::Add, 1, 0))
            .unwrap_err(),
    ] {
        assert!(why.contains("try again"), "{why}");
    }
    drop(release);
    {
        let mut engine = access.gpu.engine();
        engine.patience = PATIENCE;
        engine.stream.synchronize_within(PATIENCE).unwrap();
    }
    let mut expected = data(0, LEN);
    expected[..100].copy_from_slice(&data(1, 100));
    assert_eq!(read(&access, LEN).unwrap(), expected);
    write(&access, &data(3, LEN)).unwrap();
    assert_eq!(read(&access, LEN).unwrap(), data(3, LEN));
    access
        .atomic(0, AtomicRequest::wide(AtomicOp::Add, 1, 0))
        .unwrap();
}
