//! The state of one PE's GPU that its domain and lanes share.

use std::sync::Arc;

use oxshmem_cuda::Context;
use oxshmem_device::Kernels;
use oxshmem_transport::{Job, Published};

use crate::bounce_pool::PinnedPool;
use crate::domain_state::DomainState;

/// The GPU's context and kernels, the pinned memory for lanes, and the published state of the domain.
#[derive(Debug)]
pub(crate) struct DeviceState {
    pub context: Context,
    pub kernels: Arc<Kernels>,
    pub pinned: PinnedPool,
    pub published: Published<DomainState>,
    pub job: Job,
}
