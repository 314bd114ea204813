//! The transport itself: it probes GPUs and opens a domain on one.

use std::sync::Arc;

use oxshmem_cuda::{Context, Driver, Feature};
use oxshmem_device::Kernels;
use oxshmem_transport::{Device, Domain, Error, Job, Result, Transport};

use crate::domain::NvlinkDomain;
use crate::driver_error::{driver_error, unavailable};
use crate::limits::NAME;

/// The nvlink transport. Give it the context of the GPU whose memory is the PE's heap; without one it uses
/// the device that it is opened on.
#[derive(Clone, Debug, Default)]
pub struct Nvlink {
    context: Option<Context>,
    kernels: Option<Arc<Kernels>>,
}

impl Nvlink {
    /// The transport on the GPU that is chosen when it is opened.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The transport on a context's GPU.
    #[must_use]
    pub fn on(context: Context) -> Self {
        Nvlink {
            context: Some(context),
            kernels: None,
        }
    }

    /// Uses kernels that are loaded in that context already; else it loads its own.
    #[must_use]
    pub fn with_kernels(mut self, kernels: &Arc<Kernels>) -> Self {
        self.kernels = Some(Arc::clone(kernels));
        self
    }
}

fn described(device: &oxshmem_cuda::Device) -> Device {
    Device {
        // The name that topologies use, so that the nearest NIC is found.
        name: device.uuid().to_string(),
        description: format!("CUDA's number {}, {}", device.ordinal(), device.name()),
        megabits: 0,
        networks: Vec::new(),
    }
}

// SAFETY: nothing is mapped for the CPU. Operations touch local memory through the lane alone, which
// delivers before it counts, and waits for its stream when it is dropped.
unsafe impl Transport for Nvlink {
    fn name(&self) -> &'static str {
        NAME
    }

    fn probe(&self) -> Result<Vec<Device>> {
        let ipc = Driver::get().is_ok_and(|driver| driver.has(Feature::Ipc));
        let usable = |gpu: &oxshmem_cuda::Device| gpu.has_posix_fd() || gpu.has_fabric() || ipc;
        let all = match &self.context {
            Some(context) => vec![context.device().clone()],
            None => oxshmem_cuda::devices().map_err(|error| unavailable(&error))?,
        };
        let found: Vec<Device> = all.iter().filter(|d| usable(d)).map(described).collect();
        if found.is_empty() {
            return Err(Error::Unavailable {
                transport: NAME,
                why:
                    "no GPU here can pass its memory on: as descriptors or fabric handles (virtual \
                      memory management), or by legacy IPC"
                        .into(),
            });
        }
        Ok(found)
    }

    fn open(&self, device: &Device, job: &Job) -> Result<Arc<dyn Domain>> {
        let context = match &self.context {
            Some(context) => context.clone(),
            None => {
                let all = oxshmem_cuda::devices().map_err(|error| unavailable(&error))?;
                let named = |gpu: &oxshmem_cuda::Device| gpu.uuid().to_string() == device.name;
                let device = all.into_iter().find(named);
                let device = device.ok_or_else(|| Error::Unavailable {
                    transport: NAME,
                    why: "no GPU of that name is here any more".into(),
                })?;
                Context::new(&device).map_err(|error| driver_error("a GPU's context", &error))?
            }
        };
        let kernels = match &self.kernels {
            Some(kernels) => Arc::clone(kernels),
            // Loaded now, since loading may wait for running kernels.
            None => {
                let loaded = Kernels::load(&context);
                Arc::new(loaded.map_err(|error| driver_error("loading kernels", &error))?)
            }
        };
        Ok(Arc::new(NvlinkDomain::new(context, kernels, job.clone())))
    }
}
