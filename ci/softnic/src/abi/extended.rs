//! Types behind libibverbs' extended operations, as infiniband/verbs.h declares them.

use std::ffi::{c_int, c_void};

use super::sys::{ibv_context, ibv_device_attr, ibv_port_attr, ibv_qp, ibv_qp_init_attr_ex};

/// An operation that this library does not have.
pub(crate) type Absent = *const c_void;

type QueryPort = unsafe extern "C" fn(*mut ibv_context, u8, *mut ibv_port_attr, usize) -> c_int;
type QueryDevice =
    unsafe extern "C" fn(*mut ibv_context, *const c_void, *mut DeviceAttrEx, usize) -> c_int;

type CreatePair = unsafe extern "C" fn(*mut ibv_context, *mut ibv_qp_init_attr_ex) -> *mut ibv_qp;

/// `verbs_context`: the extended operations, in front of the context that programs hold.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct VerbsContext {
    pub(crate) query_port: Option<QueryPort>,
    /// From `advise_mr` to `create_cq_ex`.
    pub(crate) absent: [Absent; 25],
    pub(crate) private: *mut c_void,
    pub(crate) query_device_ex: Option<QueryDevice>,
    /// Flows and `open_qp`.
    pub(crate) absent_too: [Absent; 5],
    pub(crate) create_qp_ex: Option<CreatePair>,
    /// `get_srq_num`, `create_srq_ex` and XRC domains.
    pub(crate) absent_at_last: [Absent; 4],
    pub(crate) placeholder: u64,
    pub(crate) size: usize,
    pub(crate) context: Context,
}

/// The context, without the derived traits that its type lacks.
#[repr(transparent)]
pub(crate) struct Context(pub(crate) ibv_context);

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ibv_context")
    }
}

/// `ibv_device_attr_ex`; its fields that this library leaves zero are words.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct DeviceAttrEx {
    pub(crate) original: ibv_device_attr,
    pub(crate) comp_mask: u32,
    pub(crate) on_demand_paging: [u64; 3],
    pub(crate) completion_timestamp_mask: u64,
    pub(crate) core_clock: u64,
    pub(crate) device_cap_flags_ex: u64,
    pub(crate) segmentation: [u32; 2],
    pub(crate) receive_side_scaling: [u64; 4],
    pub(crate) max_wq_type_rq: u32,
    pub(crate) pacing: [u32; 3],
    pub(crate) raw_packets: u32,
    pub(crate) tag_matching: [u32; 5],
    pub(crate) completion_moderation: [u16; 2],
    pub(crate) max_device_memory: u64,
    /// Sizes of PCIe atomics: fetch-and-add, swap, compare-and-swap. Bit N is for 4 << N bytes.
    pub(crate) pci_atomics: [u16; 3],
    pub(crate) xrc_odp_caps: u32,
    pub(crate) phys_port_cnt_ex: u32,
}

/// `ibv_ece`: options of a connection that the two ends agree on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Ece {
    pub(crate) vendor: u32,
    pub(crate) options: u32,
    pub(crate) comp_mask: u32,
}

/// `__VERBS_ABI_IS_EXTENDED`.
pub(crate) const EXTENDED: *mut c_void = std::ptr::without_provenance_mut(usize::MAX);
