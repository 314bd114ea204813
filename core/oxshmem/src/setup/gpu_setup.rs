//! Set-up of a PE's GPU heap: its memory, the library's own words in it, its registration and its streams.
//!
//! Where one PE's GPU fails, no PE waits for it: all fail, with the first PE's reason.

use std::cell::Cell;
use std::sync::Arc;

use oxshmem_bootstrap::Bootstrap;
#[cfg(feature = "cuda")]
use oxshmem_bootstrap::exchange;
use oxshmem_engine::gpu::flush::GpuFlushes;
use oxshmem_engine::gpu::memory::{GpuAccess, GpuMemory};
use oxshmem_engine::gpu::staging_server::StagingServer;
use oxshmem_engine::lane::rail::Rail;
use oxshmem_engine::peer::mapped_table::OnGpu;
use oxshmem_engine::route::select::Preference;
use oxshmem_transport::Transport;

use crate::agreement::agree;
#[cfg(feature = "cuda")]
use crate::agreement::first_failure;
#[cfg(feature = "cuda")]
use crate::blocks::OWN;
#[cfg(feature = "cuda")]
use crate::config;
use crate::config::Config;
use crate::error::Result;
#[cfg(feature = "cuda")]
use crate::gpu;
#[cfg(feature = "cuda")]
use crate::gpu::cuda::device::Gpu;
use crate::heap::{Growth, Heap};
use crate::options::Overrides;
use crate::registry;
use crate::setup::card::AgreedGpuHeap;
use crate::setup::membership::Membership;
#[cfg(feature = "cuda")]
use crate::stream::gpu_streams::{GpuStreams, GpuSyncWords};

/// The GPU's part of a world.
pub(crate) struct GpuParts {
    pub heap: Heap,
    pub growth: Growth,
    pub flushes: GpuFlushes,
    #[cfg(feature = "cuda")]
    pub streams: Option<GpuStreams>,
    /// The reason why there is no heap, where there would be one by default.
    #[cfg(feature = "cuda")]
    pub absence: Option<String>,
    pub stage: Arc<StagingServer>,
}

/// Memory for this PE's GPU heap, before the PEs have agreed on it.
pub(super) struct GpuSource {
    /// None if no heap is wanted; or the reason why there is none, which the PE's card carries to all.
    memory: Result<Option<Box<dyn GpuMemory>>, String>,
    /// The GPU, if it is CUDA memory.
    #[cfg(feature = "cuda")]
    cuda: Option<Gpu>,
}

/// This PE's GPU heap, with the limit on which the PEs have agreed.
pub(super) struct GpuHeap {
    pub heap: Heap,
    /// This process's access to the memory, if it has any.
    pub access: Option<Arc<dyn GpuAccess>>,
    /// Whether the job has GPU heaps.
    pub exists: bool,
    /// The library's own words in the heap.
    #[cfg(feature = "cuda")]
    own: Option<GpuSyncWords>,
    #[cfg(feature = "cuda")]
    cuda: Option<Gpu>,
    #[cfg(feature = "cuda")]
    absence: Option<String>,
}

/// This PE's GPU as its streams use it, if its heap is CUDA memory.
pub(super) struct OpenStreams {
    #[cfg(feature = "cuda")]
    streams: Option<GpuStreams>,
}

/// The transports to choose from, the rule of preference among them, and the memory of the GPU heap.
pub(super) struct Sources {
    pub transports: Vec<Arc<dyn Transport>>,
    pub preference: Preference,
    pub gpu: GpuSource,
}

impl Sources {
    /// Selects the transports that the program or the environment names. A GPU heap brings its own transport, and the
    /// built-in transports of NICs reach its memory.
    pub(super) fn new(config: &Config, overrides: &mut Overrides, me: usize) -> Result<Self> {
        // A list of transports, from the program or the environment, states the preference.
        let preference = match (&overrides.transports, &config.transports) {
            (None, None) => Preference::Nearest,
            _ => Preference::AsGiven,
        };
        #[cfg(all(feature = "cuda", any(feature = "ofi", feature = "verbs")))]
        let are_built_in = overrides.transports.is_none();
        let given = overrides.transports.take();
        let mut available = given.unwrap_or_else(registry::built_in);
        let gpu = GpuSource::new(config, overrides, me, &mut available);
        #[cfg(all(feature = "cuda", any(feature = "ofi", feature = "verbs")))]
        if let Some(cuda) = gpu.cuda.as_ref().filter(|_| are_built_in) {
            registry::give_to_nics(&cuda.context, &mut available);
        }
        let transports = registry::select(available, config.transports.as_deref(), config.seed)?;
        Ok(Sources {
            transports,
            preference,
            gpu,
        })
    }
}

impl GpuSource {
    /// Memory from the program, or CUDA memory by its or the environment's limit.
    #[cfg(feature = "cuda")]
    fn new(
        config: &Config,
        overrides: &mut Overrides,
        me: usize,
        available: &mut Vec<Arc<dyn Transport>>,
    ) -> Self {
        if let Some(make) = overrides.gpu_heap.take() {
            let memory = (make.0)(me).map(Some);
            return GpuSource { memory, cuda: None };
        }
        let (memory, cuda) = match cuda_heap(config, overrides.gpu.take(), me, available) {
            None => (Ok(None), None),
            Some(Ok((cuda, memory))) => (Ok(Some(memory)), Some(cuda)),
            Some(Err(why)) => (Err(why), None),
        };
        GpuSource { memory, cuda }
    }

    /// Memory from the program.
    #[cfg(not(feature = "cuda"))]
    fn new(
        config: &Config,
        overrides: &mut Overrides,
        me: usize,
        _: &mut Vec<Arc<dyn Transport>>,
    ) -> Self {
        let memory = match overrides.gpu_heap.take() {
            None if config.gpu_limit > 0 => Err(
                "OXSHMEM_CUDA_SYMMETRIC_SIZE is set, and this build lacks the feature cuda".into(),
            ),
            make => make.map(|make| (make.0)(me)).transpose(),
        };
        GpuSource { memory }
    }

    /// The memory's limit in bytes (0 if there is none, or the reason of a failure), and this process's access to it.
    pub(super) fn access(&mut self) -> (Result<u64, String>, Option<Arc<dyn GpuAccess>>) {
        match &mut self.memory {
            Ok(None) => (Ok(0), None),
            Ok(Some(memory)) => {
                let limit = memory.limit() as u64;
                match memory.access() {
                    Ok(access) => (Ok(limit), access),
                    Err(why) => (Err(why), None),
                }
            }
            Err(why) => (Err(why.clone()), None),
        }
    }

    /// The heap on which the PEs have agreed. A PE's own memory is dropped where there is none.
    pub(super) fn into_heap(
        self,
        agreed: AgreedGpuHeap,
        access: Option<Arc<dyn GpuAccess>>,
    ) -> GpuHeap {
        let exists = agreed.limit > 0;
        let memory = self.memory.ok().flatten().filter(|_| exists);
        GpuHeap {
            heap: Heap::on_gpu(memory, agreed.limit),
            access: access.filter(|_| exists),
            exists,
            #[cfg(feature = "cuda")]
            absence: agreed.absence,
            #[cfg(feature = "cuda")]
            own: None,
            #[cfg(feature = "cuda")]
            cuda: self.cuda.filter(|_| exists),
        }
    }
}

impl GpuHeap {
    /// Places the library's own words and registers the heap. Collective, if the job has GPU heaps.
    pub(super) fn register(
        &mut self,
        membership: &Membership,
        tag: u32,
        rails: &[Arc<Rail>],
    ) -> Result<()> {
        if !self.exists {
            return Ok(());
        }
        let bootstrap = membership.bootstrap.as_ref();
        let placed = self.place_own(bootstrap, tag);
        let ready = placed.and_then(|()| self.heap.register(rails));
        agree(bootstrap, ready)
    }

    #[cfg(feature = "cuda")]
    fn place_own(&mut self, bootstrap: &dyn Bootstrap, tag: u32) -> Result<()> {
        let pes = bootstrap.size() as usize;
        let words = self
            .heap
            .place_permanent(tag | 1, OWN, GpuSyncWords::bytes(pes), 1)?;
        self.own = Some(GpuSyncWords::new(words, pes));
        Ok(())
    }

    #[cfg(not(feature = "cuda"))]
    fn place_own(&mut self, _: &dyn Bootstrap, _: u32) -> Result<()> {
        Ok(())
    }

    /// Prepares the GPU for streams, if the heap is CUDA memory. `heaps` are all PEs' heaps as it reaches them. Collective, if
    /// the job has GPU heaps: when it returns, every PE has written its own words, and all know whether every GPU reaches
    /// every other PE's memory.
    #[cfg(feature = "cuda")]
    pub(super) fn open_streams(
        &mut self,
        bootstrap: &dyn Bootstrap,
        heaps: Vec<Option<OnGpu>>,
    ) -> Result<OpenStreams> {
        let Some(own) = self.own else {
            return Ok(OpenStreams { streams: None });
        };
        let me = bootstrap.rank() as usize;
        let opened = self
            .cuda
            .take()
            .map(|gpu| GpuStreams::new(gpu, own, me, heaps));
        let mut streams = agree(bootstrap, opened.transpose())?;
        let lack = match &streams {
            None => Some("its GPU heap is not CUDA memory".to_owned()),
            Some(streams) => streams
                .unreached()
                .map(|pe| format!("PE {pe}'s memory is not mapped for its GPU")),
        };
        let lacks: Vec<Option<String>> = exchange(bootstrap, &lack)?;
        if let (Some(streams), Some((pe, lack))) = (&mut streams, first_failure(lacks)) {
            streams.collective = Err(format!("PE {pe} says: {lack}"));
        }
        Ok(OpenStreams { streams })
    }

    /// Nothing: there are no streams.
    #[cfg(not(feature = "cuda"))]
    pub(super) fn open_streams(
        &mut self,
        _: &dyn Bootstrap,
        _: Vec<Option<OnGpu>>,
    ) -> Result<OpenStreams> {
        Ok(OpenStreams {})
    }

    pub(super) fn into_parts(
        self,
        streams: OpenStreams,
        flushes: GpuFlushes,
        stage: Arc<StagingServer>,
    ) -> GpuParts {
        #[cfg(not(feature = "cuda"))]
        let OpenStreams {} = streams;
        GpuParts {
            growth: Growth {
                extents: self.heap.extents(),
                published: Cell::new(1),
            },
            heap: self.heap,
            flushes,
            #[cfg(feature = "cuda")]
            streams: streams.streams,
            #[cfg(feature = "cuda")]
            absence: self.absence,
            stage,
        }
    }
}

impl OpenStreams {
    /// A function that ends the waits of this PE's streams.
    pub(super) fn ending(&self) -> Box<dyn Fn() + Send + Sync> {
        #[cfg(feature = "cuda")]
        if let Some(streams) = &self.streams {
            let stop_word = Arc::clone(&streams.stop_word);
            return Box::new(move || stop_word.end());
        }
        Box::new(|| ())
    }
}

/// CUDA memory for a GPU heap, and its GPU.
#[cfg(feature = "cuda")]
type CudaMemory = (Gpu, Box<dyn GpuMemory>);

/// The GPU heap that the program or the environment asks for. Its transport goes in front of the others.
#[cfg(feature = "cuda")]
fn cuda_heap(
    config: &Config,
    given: Option<(oxshmem_cuda::Context, usize)>,
    me: usize,
    transports: &mut Vec<Arc<dyn Transport>>,
) -> Option<Result<CudaMemory, String>> {
    let chosen = match given {
        Some(chosen) => Ok(chosen),
        None if config.gpu_limit == 0 => return None,
        None => {
            let local_rank = config::environment("OXSHMEM_LOCAL_RANK");
            let local_rank = local_rank.and_then(|rank| rank.parse().ok()).unwrap_or(me);
            let limit = usize::try_from(config.gpu_limit).unwrap_or(usize::MAX);
            gpu::cuda::context_for(local_rank, config.gpu).map(|context| (context, limit))
        }
    };
    Some(chosen.and_then(|(context, limit)| {
        let gpu = Gpu::new(context)?;
        let heap = gpu::cuda::CudaHeap::new(&gpu, limit)?;
        transports.insert(0, registry::between_gpus(&gpu));
        Ok((gpu, Box::new(heap) as Box<dyn GpuMemory>))
    }))
}
