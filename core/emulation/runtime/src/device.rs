//! Devices.

use std::ffi::{c_char, c_void};

use crate::driver;
use crate::error::{Error, Outcome, get, set};
use crate::primary;
use crate::register;

/// The version of the API, 12.8.
const VERSION: i32 = 12080;
/// Bytes of a stack, of the buffer for `printf` and of the heap, as a device has them at first.
const LIMITS: [usize; 3] = [1024, 1 << 20, 8 << 20];

/// `cudaDeviceProp` of CUDA 12.
#[repr(C)]
pub(crate) struct Properties {
    name: [u8; 256],
    uuid: [u8; 16],
    luid: [u8; 8],
    luid_device_node_mask: u32,
    total_global_mem: usize,
    shared_mem_per_block: usize,
    regs_per_block: i32,
    warp_size: i32,
    mem_pitch: usize,
    max_threads_per_block: i32,
    max_threads_dim: [i32; 3],
    max_grid_size: [i32; 3],
    clock_rate: i32,
    total_const_mem: usize,
    major: i32,
    minor: i32,
    texture_alignment: usize,
    texture_pitch_alignment: usize,
    device_overlap: i32,
    multi_processor_count: i32,
    kernel_exec_timeout_enabled: i32,
    integrated: i32,
    can_map_host_memory: i32,
    compute_mode: i32,
    max_texture1_d: i32,
    max_texture1_d_mipmap: i32,
    max_texture1_d_linear: i32,
    max_texture2_d: [i32; 2],
    max_texture2_d_mipmap: [i32; 2],
    max_texture2_d_linear: [i32; 3],
    max_texture2_d_gather: [i32; 2],
    max_texture3_d: [i32; 3],
    max_texture3_d_alt: [i32; 3],
    max_texture_cubemap: i32,
    max_texture1_d_layered: [i32; 2],
    max_texture2_d_layered: [i32; 3],
    max_texture_cubemap_layered: [i32; 2],
    max_surface1_d: i32,
    max_surface2_d: [i32; 2],
    max_surface3_d: [i32; 3],
    max_surface1_d_layered: [i32; 2],
    max_surface2_d_layered: [i32; 3],
    max_surface_cubemap: i32,
    max_surface_cubemap_layered: [i32; 2],
    surface_alignment: usize,
    concurrent_kernels: i32,
    ecc_enabled: i32,
    pci_bus_id: i32,
    pci_device_id: i32,
    pci_domain_id: i32,
    tcc_driver: i32,
    async_engine_count: i32,
    unified_addressing: i32,
    memory_clock_rate: i32,
    memory_bus_width: i32,
    l2_cache_size: i32,
    persisting_l2_cache_max_size: i32,
    max_threads_per_multi_processor: i32,
    stream_priorities_supported: i32,
    global_l1_cache_supported: i32,
    local_l1_cache_supported: i32,
    shared_mem_per_multiprocessor: usize,
    regs_per_multiprocessor: i32,
    managed_memory: i32,
    is_multi_gpu_board: i32,
    multi_gpu_board_group_id: i32,
    host_native_atomic_supported: i32,
    single_to_double_precision_perf_ratio: i32,
    pageable_memory_access: i32,
    concurrent_managed_access: i32,
    compute_preemption_supported: i32,
    can_use_host_pointer_for_registered_mem: i32,
    cooperative_launch: i32,
    cooperative_multi_device_launch: i32,
    shared_mem_per_block_optin: usize,
    pageable_memory_access_uses_host_page_tables: i32,
    direct_managed_mem_access_from_host: i32,
    max_blocks_per_multi_processor: i32,
    access_policy_max_window_size: i32,
    reserved_shared_mem_per_block: usize,
    host_register_supported: i32,
    sparse_cuda_array_supported: i32,
    host_register_read_only_supported: i32,
    timeline_semaphore_interop_supported: i32,
    memory_pools_supported: i32,
    gpu_direct_rdma_supported: i32,
    gpu_direct_rdma_flush_writes_options: u32,
    gpu_direct_rdma_writes_ordering: i32,
    memory_pool_supported_handle_types: u32,
    deferred_mapping_cuda_array_supported: i32,
    ipc_event_supported: i32,
    cluster_launch: i32,
    unified_function_pointers: i32,
    reserved: [i32; 63],
}

const _: () = assert!(size_of::<Properties>() == 1032);

fn properties(device: i32) -> Outcome<Properties> {
    driver::start()?;
    let fact = |number| get(|out| driver::cuDeviceGetAttribute(out, number, device)).unwrap_or(0);
    // SAFETY: plain data, for which zeros are a value.
    let zero = unsafe { std::mem::zeroed::<Properties>() };
    let mut all = Properties {
        regs_per_block: fact(12),
        warp_size: fact(10),
        max_threads_per_block: fact(1),
        clock_rate: fact(13),
        major: fact(75),
        minor: fact(76),
        device_overlap: fact(15),
        multi_processor_count: fact(16),
        integrated: fact(18),
        can_map_host_memory: fact(19),
        concurrent_kernels: fact(31),
        pci_bus_id: fact(33),
        pci_device_id: fact(34),
        pci_domain_id: fact(50),
        async_engine_count: fact(40),
        unified_addressing: fact(41),
        memory_clock_rate: fact(36),
        l2_cache_size: fact(38),
        max_threads_per_multi_processor: fact(39),
        stream_priorities_supported: fact(78),
        regs_per_multiprocessor: fact(82),
        host_native_atomic_supported: fact(86),
        compute_preemption_supported: fact(90),
        can_use_host_pointer_for_registered_mem: fact(91),
        cooperative_launch: fact(95),
        max_blocks_per_multi_processor: fact(106),
        host_register_supported: fact(99),
        memory_pools_supported: fact(115),
        memory_bus_width: fact(37),
        total_global_mem: get(|out| driver::cuDeviceTotalMem_v2(out, device))?,
        shared_mem_per_block: fact(8) as usize,
        shared_mem_per_multiprocessor: fact(81) as usize,
        shared_mem_per_block_optin: fact(97) as usize,
        reserved_shared_mem_per_block: fact(111) as usize,
        total_const_mem: fact(9) as usize,
        mem_pitch: fact(11) as usize,
        texture_alignment: fact(14) as usize,
        max_threads_dim: [fact(2), fact(3), fact(4)],
        max_grid_size: [fact(5), fact(6), fact(7)],
        // Managed memory is the host's.
        managed_memory: 1,
        ..zero
    };
    driver::cuDeviceGetName(all.name.as_mut_ptr().cast::<c_char>(), 256, device)?;
    driver::cuDeviceGetUuid(all.uuid.as_mut_ptr().cast::<c_void>(), device)?;
    Ok(all)
}

/// `CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM`.
const OWN_STREAMS: u64 = 2;

fn entry_point(name: *const c_char, out: *mut usize, flags: u64, status: *mut u32) -> Outcome {
    driver::start()?;
    type Find = unsafe extern "C" fn(*const c_char, *mut usize, i32, u64, *mut u32) -> u32;
    let find = driver::symbol(c"cuGetProcAddress_v2").ok_or(Error::NOT_SUPPORTED)?;
    // SAFETY: the driver's function of that name has this type.
    match unsafe { std::mem::transmute::<usize, Find>(find)(name, out, VERSION, flags, status) } {
        0 => Ok(()),
        code => Err(Error(code)),
    }
}

runtime_calls! {
    /// Would start a profiler, of which there is none.
    fn cudaProfilerStart() {
        Ok(())
    }

    /// Would stop a profiler.
    fn cudaProfilerStop() {
        Ok(())
    }

    /// How many devices there are.
    fn cudaGetDeviceCount(out: *mut i32) {
        driver::start()?;
        set(out, get(driver::cuDeviceGetCount)?)
    }

    /// The thread's device.
    fn cudaGetDevice(out: *mut i32) {
        set(out, primary::device()?)
    }

    /// Makes a device the thread's own.
    fn cudaSetDevice(device: i32) {
        primary::choose(device)
    }

    /// Makes a device ready.
    fn cudaInitDevice(device: i32, _device_flags: u32, _flags: u32) {
        primary::of(device).map(|_| ())
    }

    /// Flags of the device, which have no effect here.
    fn cudaSetDeviceFlags(_flags: u32) {
        driver::start()
    }

    /// Flags of the device: none.
    fn cudaGetDeviceFlags(out: *mut u32) {
        set(out, 0)
    }

    /// All facts about a device.
    fn cudaGetDeviceProperties_v2(out: *mut Properties, device: i32) {
        set(out, properties(device)?)
    }

    /// A fact about a device.
    fn cudaDeviceGetAttribute(out: *mut i32, attribute: u32, device: i32) {
        driver::start()?;
        // Managed memory is the host's.
        let value = match attribute {
            83 => 1,
            _ => get(|out| driver::cuDeviceGetAttribute(out, attribute, device))?,
        };
        set(out, value)
    }

    /// A fact about two devices.
    fn cudaDeviceGetP2PAttribute(out: *mut i32, attribute: u32, from: i32, to: i32) {
        driver::start()?;
        driver::cuDeviceGetP2PAttribute(out, attribute, from, to)
    }

    /// The device with a PCI address.
    fn cudaDeviceGetByPCIBusId(out: *mut i32, id: *const c_char) {
        driver::start()?;
        driver::cuDeviceGetByPCIBusId(out, id)
    }

    /// The PCI address of a device.
    fn cudaDeviceGetPCIBusId(id: *mut c_char, room: i32, device: i32) {
        driver::start()?;
        driver::cuDeviceGetPCIBusId(id, room, device)
    }

    /// Waits for all work of the device.
    fn cudaDeviceSynchronize() {
        primary::ensure()?;
        driver::cuCtxSynchronize()
    }

    /// Waits for all work of the device.
    fn cudaThreadSynchronize() {
        primary::ensure()?;
        driver::cuCtxSynchronize()
    }

    /// Destroys everything of the device.
    fn cudaDeviceReset() {
        if let Some(context) = primary::reset()? {
            register::forget(context);
        }
        Ok(())
    }

    /// Whether a device reaches another's memory.
    fn cudaDeviceCanAccessPeer(out: *mut i32, device: i32, peer: i32) {
        driver::start()?;
        driver::cuDeviceCanAccessPeer(out, device, peer)
    }

    /// Lets the thread's device reach another's memory.
    fn cudaDeviceEnablePeerAccess(peer: i32, flags: u32) {
        primary::ensure()?;
        driver::cuCtxEnablePeerAccess(primary::of(peer)?, flags)
    }

    /// Revokes that.
    fn cudaDeviceDisablePeerAccess(peer: i32) {
        primary::ensure()?;
        driver::cuCtxDisablePeerAccess(primary::of(peer)?)
    }

    /// A limit of the device, which is not enforced here.
    fn cudaDeviceGetLimit(out: *mut usize, limit: u32) {
        set(out, *LIMITS.get(limit as usize).ok_or(Error(215))?)
    }

    /// Sets a limit of the device. A thread's stack is larger here than any program asks for.
    fn cudaDeviceSetLimit(limit: u32, _value: usize) {
        LIMITS.get(limit as usize).map(|_| ()).ok_or(Error(215))
    }

    /// A hint about caches, which has no effect here.
    fn cudaDeviceSetCacheConfig(_config: u32) {
        driver::start()
    }

    /// A hint about shared memory, which has no effect here.
    fn cudaDeviceSetSharedMemConfig(_config: u32) {
        driver::start()
    }

    /// The version of the driver.
    fn cudaDriverGetVersion(out: *mut i32) {
        driver::cuDriverGetVersion(out)
    }

    /// The version of this API.
    fn cudaRuntimeGetVersion(out: *mut i32) {
        set(out, VERSION)
    }

    /// The address of a driver's function.
    fn cudaGetDriverEntryPoint(name: *const c_char, out: *mut usize, _flags: u64, status: *mut u32) {
        entry_point(name, out, 0, status)
    }

    /// The address of a driver's function, in the form for programs in which stream 0 is the thread's own.
    fn cudaGetDriverEntryPoint_ptsz(name: *const c_char, out: *mut usize, _flags: u64, status: *mut u32) {
        entry_point(name, out, OWN_STREAMS, status)
    }
}
