//! A list of the GPUs that a comparison would run on, with the properties that matter to oxshmem.
//! Exits with 3 if there is none.

use std::process::ExitCode;

use oxshmem::cuda::{Device, devices, probe};
use oxshmem_benches::gpu::NO_GPU;

fn main() -> ExitCode {
    println!("driver: {}", probe());
    let found = devices().unwrap_or_default();
    for device in &found {
        println!("{}", described(device));
    }
    if found.is_empty() {
        return ExitCode::from(NO_GPU);
    }
    ExitCode::SUCCESS
}

fn described(device: &Device) -> String {
    let (major, minor) = device.compute_capability();
    let features = [
        (device.has_vmm(), "VMM"),
        (device.has_posix_fd(), "descriptors"),
        (device.has_fabric(), "fabric handles"),
        (
            device.has_stream_memops_64(),
            "64-bit stream memory operations",
        ),
        (device.has_dma_buf(), "dma-buf"),
        (
            device.has_gpudirect_rdma_with_vmm(),
            "GPUDirect RDMA of VMM memory",
        ),
        (device.has_pageable_access(), "pageable memory access"),
        (device.under_mps(), "under MPS"),
    ];
    let features: Vec<&str> = features
        .into_iter()
        .filter_map(|(has, name)| has.then_some(name))
        .collect();
    format!(
        "GPU {}: {}, {}, compute capability {major}.{minor}, {} MiB; {}",
        device.ordinal(),
        device.name(),
        device.pci(),
        device.total_memory() >> 20,
        features.join(", ")
    )
}
