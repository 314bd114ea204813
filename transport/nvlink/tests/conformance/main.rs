//! The conformance suite over GPU memory: on the software driver that `ci/test-gpu` gives, or on GPUs.
//! Its PEs take the GPUs there are in turn. Without a driver nothing is run; with
//! `OXSHMEM_TEST_CUDA=1` that is a failure.
#![cfg(feature = "cuda")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests"
)]

mod broken;

mod memory;
mod one_pe;

use std::sync::Arc;

use oxshmem_cuda::testing::present;
use oxshmem_cuda::{Context, devices};
use oxshmem_nvlink::Nvlink;
use oxshmem_transport::conformance::{self, Contents, Harness, Report, Verdict};
use oxshmem_transport::{Device, Memory, MemoryKind, Pe, Transport};

use broken::{Broken, Fault};
use memory::Gpu;

/// PEs on all GPUs.
struct OnGpus<T> {
    transport: T,
    contexts: Vec<Context>,
}

impl<T: Transport> OnGpus<T> {
    /// None without a driver, said in one line; or a failure, where the environment says that there must
    /// be one.
    fn new(transport: T) -> Option<Self> {
        let all = present(devices())?;
        Some(OnGpus {
            transport,
            contexts: all.iter().map(|gpu| Context::new(gpu).unwrap()).collect(),
        })
    }

    fn context(&self, pe: Pe) -> &Context {
        &self.contexts[pe.index() % self.contexts.len()]
    }
}

impl<T: Transport> Harness for OnGpus<T> {
    fn transport(&self) -> &dyn Transport {
        &self.transport
    }

    fn device<'d>(&self, pe: Pe, found: &'d [Device]) -> &'d Device {
        &found[pe.index() % self.contexts.len()]
    }

    fn kind(&self) -> MemoryKind {
        MemoryKind::Cuda
    }

    fn memory(&self, pe: Pe, kind: MemoryKind, len: usize) -> Result<Memory, String> {
        match kind {
            MemoryKind::Cuda => memory::zeroed(self.context(pe), len).map_err(|e| e.to_string()),
            _ => conformance::host_memory(len),
        }
    }

    fn contents(&self, pe: Pe, memory: &Memory) -> Result<Arc<dyn Contents>, String> {
        let gpu = Gpu::new(self.context(pe), memory).map_err(|error| error.to_string())?;
        Ok(Arc::new(gpu))
    }
}

/// Runs the checks whose names have `wanted` in theirs.
fn run<T: Transport>(transport: T, wanted: &str) -> Option<Report> {
    let harness = OnGpus::new(transport)?;
    let report = conformance::run_where(&harness, |name| name.contains(wanted));
    println!("{} GPUs: {report}", harness.contexts.len());
    Some(report)
}

#[test]
fn gpu_memory_passes_the_conformance_suite() {
    let only = std::env::var("ONLY").unwrap_or_default();
    if let Some(report) = run(Nvlink::new(), &only) {
        assert!(report.passed(), "{report}");
    }
}

/// The suite sees on GPU memory what it sees on the host's.
#[test]
fn the_suite_catches_a_lane_that_breaks_its_promises_on_gpu_memory() {
    for (fault, check) in [
        (Fault::DropsLastByte, "put_at_every_size_and_alignment"),
        (
            Fault::DropsLastByte,
            "memory_registered_for_the_local_side_alone",
        ),
        (
            Fault::SignalsFirst,
            "m22_signal_is_not_seen_before_its_data",
        ),
        (Fault::SkipsAtomics, "atomics_are_exclusive"),
        (
            Fault::TakesAnyRange,
            "ranges_outside_the_region_are_refused",
        ),
    ] {
        let Some(report) = run(Broken::new(fault), check) else {
            return;
        };
        let verdict = report.verdict(check);
        assert!(
            matches!(verdict, Some(Verdict::Failed(_))),
            "{fault:?} was not seen: {verdict:?}"
        );
    }
}
