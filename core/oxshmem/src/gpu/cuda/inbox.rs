//! Atomics on this GPU's words that other PEs ask this process for, once kernels may wait for them.
//!
//! A kernel of the process alone could not perform them: it has no place on a GPU that waiting kernels fill, and those may wait for
//! what the atomic brings. So they go to the inbox, which every wait of the device library serves, too.

use std::ptr::NonNull;
use std::time::{Duration, Instant};

use oxshmem_cuda::{
    Args, Context, DevicePtr, Function, Launch, Module, Pinned, PinnedOptions, Stream,
    StreamOptions,
};
use oxshmem_device_library::inbox::{Errand, HostInbox, Inbox};
use oxshmem_device_library::{SERVE, SERVE_PTX};
use oxshmem_transport::AtomicRequest;

/// Looks for the answer without a pause, before the thread sleeps between them.
const BUSY_LOOKS: u32 = 2000;
const SLEEP: Duration = Duration::from_micros(50);
/// The longest time that an atomic may take: nothing on the GPU serves the inbox.
const LIMIT: Duration = Duration::from_secs(60);

/// The inbox of a process's GPU.
#[derive(Debug)]
pub(crate) struct GpuInbox {
    host: HostInbox,
    memory: Pinned,
    serve: Function,
    stream: Stream,
    /// The inbox as kernels see it.
    address: DevicePtr,
}

impl GpuInbox {
    /// The inbox whose description will lie at `address`. Loads a kernel: before any kernel of the process can be waiting.
    pub(crate) fn new(context: &Context, address: DevicePtr) -> Result<GpuInbox, String> {
        let words = |error: oxshmem_cuda::Error| error.to_string();
        let memory =
            Pinned::new(context, HostInbox::BYTES, &PinnedOptions::default()).map_err(words)?;
        let start = NonNull::new(memory.as_ptr()).ok_or("page-locked memory at no address")?;
        let module = Module::from_ptx(context, SERVE_PTX).map_err(words)?;
        Ok(GpuInbox {
            // SAFETY: the memory is zeroed, aligned to a page, long enough, and kept beside it.
            host: unsafe { HostInbox::new(start) },
            memory,
            serve: module.function(SERVE).map_err(words)?,
            stream: Stream::new(context, &StreamOptions::default()).map_err(words)?,
            address,
        })
    }

    /// The description to be written at its address, whose counter of claims lies at `claimed`.
    pub(crate) fn for_kernels(&self, claimed: DevicePtr) -> Inbox {
        HostInbox::for_kernels(self.memory.device_ptr().as_raw(), claimed.as_raw())
    }

    /// Performs an atomic on a word of this GPU, and gives its old value.
    pub(super) fn perform(
        &mut self,
        word: DevicePtr,
        request: AtomicRequest,
    ) -> Result<u64, String> {
        let number = self.host.post(&Errand {
            word: word.as_raw(),
            operation: request.op as u32,
            width: request.width.bytes() as u32,
            operand: request.operand,
            compare: request.compare,
            old: 0,
            done: 0,
            padding: [0; 2],
        });
        self.launch()?;
        let since = Instant::now();
        let mut looks = 0_u32;
        loop {
            if let Some(old) = self.host.answer(number) {
                return Ok(old);
            }
            looks = looks.saturating_add(1);
            if looks < BUSY_LOOKS {
                std::thread::yield_now();
                continue;
            }
            std::thread::sleep(SLEEP);
            if self.stream.is_idle().map_err(|error| error.to_string())? {
                // A launch of before this errand may have looked too early.
                self.launch()?;
            }
            if since.elapsed() > LIMIT {
                return Err(format!(
                    "the GPU has performed no atomic for {LIMIT:?}: running kernels fill it, and none is in a wait of the \
                     device library; leave room for one more block, or wait by the library's calls"
                ));
            }
        }
    }

    fn launch(&self) -> Result<(), String> {
        let arguments = Args::new().with(self.address);
        // SAFETY: the kernel takes that address, where the inbox is described until the world ends.
        let queued = unsafe {
            self.serve
                .launch(&self.stream, &Launch::linear(1, 1), &arguments)
        };
        queued.map_err(|error| error.to_string())
    }
}
