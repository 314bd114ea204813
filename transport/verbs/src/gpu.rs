//! Memory of the PE's GPU (GPUDirect RDMA): whether the NIC reaches it, by which way, and how its GPU is
//! made to see what a NIC has written (M27). Found out when a domain is opened, by trying.

mod choose;
#[cfg(feature = "cuda")]
mod cuda;
mod read_back;

use std::fmt::Debug;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use oxshmem_transport::{Error, Memory, MemoryKind, Result};

pub(crate) use self::choose::Method;
#[cfg(feature = "cuda")]
pub(crate) use self::cuda::Cuda;
use self::read_back::ReadBack;
use crate::NAME;
use crate::domain::Opened;
use crate::ibv::{Access, MemoryRegion, ProtectionDomain};
use crate::wire::GpuSide;

/// What a GPU's driver says of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    /// Such as "GPU 0 (NVIDIA H200)".
    pub(crate) name: String,
    /// Whether NICs can reach its memory at all.
    pub(crate) rdma: bool,
    /// Whether every GPU sees what NICs write there in order, without a flush.
    pub(crate) ordered: bool,
    /// Whether the driver flushes what they have written.
    pub(crate) flushes: bool,
}

/// What is asked of a GPU's driver. Errors are in words.
pub(crate) trait Gpu: Send + Sync + Debug {
    fn facts(&self) -> Facts;

    /// A little memory, of the sort that heaps are made of, to try with.
    fn trial(&self) -> Result<Memory, String>;

    /// A range as a dma-buf, and where in that it begins.
    fn export(&self, base: *const u8, len: usize) -> Result<(OwnedFd, u64), String>;

    /// Has the driver's copies be done when they return, which NICs rely on.
    fn settle(&self, base: *const u8);

    /// Whose memory it is.
    fn kind_of(&self, address: *const u8) -> MemoryKind;

    /// Makes what NICs have written to its memory visible to every GPU.
    fn flush(&self) -> Result<(), String>;
}

/// How what a NIC has written becomes visible to the GPU.
#[derive(Debug)]
enum Visible {
    /// By itself.
    Always,
    ByDriver,
    ByReading(Box<ReadBack>),
}

/// A GPU whose memory this domain's device reaches.
#[derive(Debug)]
pub(crate) struct Direct {
    gpu: Arc<dyn Gpu>,
    method: Method,
    visible: Visible,
}

/// What the domain does with GPU memory.
#[derive(Debug)]
pub(crate) enum Carries {
    /// No GPU was given.
    Nothing,
    /// The device does not reach it: why.
    Refused(String),
    Directly(Box<Direct>),
}

impl Carries {
    /// Tries what there is on the opened device.
    pub(crate) fn of(gpu: Option<&Arc<dyn Gpu>>, opened: &Opened) -> Carries {
        let Some(gpu) = gpu else {
            return Carries::Nothing;
        };
        match Direct::try_on(gpu, opened) {
            Ok(direct) => {
                let method = direct.method;
                tracing::info!(port = %opened.port.name(), %method, "GPU memory by the NIC");
                Carries::Directly(Box::new(direct))
            }
            Err(why) => {
                tracing::info!(port = %opened.port.name(), %why, "no GPU memory by the NIC");
                Carries::Refused(why)
            }
        }
    }

    /// The GPU, or why there is none for this domain.
    pub(crate) fn direct(&self) -> Result<&Direct, &str> {
        match self {
            Carries::Nothing => Err("no GPU was given to this PE's NIC"),
            Carries::Refused(why) => Err(why),
            Carries::Directly(direct) => Ok(direct),
        }
    }

    /// What peers are told.
    pub(crate) fn told(&self) -> GpuSide {
        match self {
            Carries::Nothing => GpuSide::None,
            Carries::Refused(why) => GpuSide::Refused(why.clone()),
            Carries::Directly(direct) => GpuSide::Carried {
                flush: direct.needs_flush(),
            },
        }
    }

    /// Whether a PE that says `theirs` of its GPU is reached by this side; else why not.
    pub(crate) fn reaches(&self, theirs: &GpuSide) -> Result<(), String> {
        let direct = self.direct()?;
        match theirs {
            GpuSide::Carried { flush } if *flush && !direct.needs_flush() => Err(
                "its GPU needs a flush after what NICs write and this PE's needs none, so that \
                 neither would ask for it: use GPUs of one kind"
                    .into(),
            ),
            GpuSide::Carried { .. } => Ok(()),
            GpuSide::Refused(why) => Err(format!("at that PE: {why}")),
            GpuSide::None => Err("no GPU was given to that PE's NIC".into()),
        }
    }

    /// Whose memory it is, where that can be asked.
    pub(crate) fn kind_of(&self, address: *const u8) -> MemoryKind {
        match self {
            Carries::Directly(direct) => direct.gpu.kind_of(address),
            _ => MemoryKind::Host,
        }
    }
}

impl Direct {
    fn try_on(gpu: &Arc<dyn Gpu>, opened: &Opened) -> Result<Direct, String> {
        let facts = gpu.facts();
        let mut trial = None;
        let method = choose::choose(opened.settings.gpudirect, &facts, |method| {
            let memory = match trial.take() {
                Some((memory, _)) => memory,
                None => gpu.trial()?,
            };
            let (base, len) = (memory.base().as_ptr(), memory.len());
            let domain = &opened.domain;
            // SAFETY: the trial's memory, which is kept with its registration and used by nobody else.
            let tried =
                unsafe { register(gpu.as_ref(), method, domain, base, len, Access::Remote) };
            let (region, outcome) = match tried {
                Ok(region) => (Some(region), Ok(())),
                Err(why) => (None, Err(why)),
            };
            trial = Some((memory, region));
            outcome
        })?;
        let visible = match (facts.ordered, facts.flushes, trial) {
            (true, ..) => Visible::Always,
            (false, true, _) => Visible::ByDriver,
            (false, false, Some((memory, Some(region)))) => {
                let read = ReadBack::new(opened, region, memory);
                let why = |why| {
                    format!(
                        "{} cannot be made to see what NICs write: the driver has no flush, and a \
                         read by the NIC cannot be set up: {why}",
                        facts.name
                    )
                };
                Visible::ByReading(Box::new(read.map_err(|error| why(error.to_string()))?))
            }
            (false, false, _) => return Err("nothing was registered".into()),
        };
        Ok(Direct {
            gpu: Arc::clone(gpu),
            method,
            visible,
        })
    }

    /// Whether what NICs have written needs a flush at the target until its GPU sees it.
    pub(crate) fn needs_flush(&self) -> bool {
        !matches!(self.visible, Visible::Always)
    }

    /// Registers memory of the GPU.
    ///
    /// # Safety
    ///
    /// The bytes stay while the registration lives, and are accessed as memory that a device writes,
    /// if `access` allows it to.
    pub(crate) unsafe fn register(
        &self,
        domain: &Arc<ProtectionDomain>,
        base: *mut u8,
        len: usize,
        access: Access,
    ) -> Result<MemoryRegion> {
        // SAFETY: the caller's promise.
        let region = unsafe { register(self.gpu.as_ref(), self.method, domain, base, len, access) };
        region.map_err(|why| refused(format!("{}: {why}", self.method)))
    }

    /// Makes what NICs have written before this call visible to every GPU.
    pub(crate) fn make_visible(&self) -> Result<()> {
        let flushed = match &self.visible {
            Visible::Always => Ok(()),
            Visible::ByDriver => self.gpu.flush(),
            Visible::ByReading(read) => read.read(),
        };
        flushed.map_err(|why| Error::Os {
            transport: NAME,
            call: "flushing what NICs wrote to GPU memory".into(),
            source: std::io::Error::other(why),
        })
    }
}

/// That memory of the GPU is not registered.
pub(crate) fn refused(why: String) -> Error {
    Error::Memory {
        transport: NAME,
        kind: MemoryKind::Cuda,
        why,
    }
}

/// # Safety
///
/// As for [`Direct::register`].
unsafe fn register(
    gpu: &dyn Gpu,
    method: Method,
    domain: &Arc<ProtectionDomain>,
    base: *mut u8,
    len: usize,
    access: Access,
) -> Result<MemoryRegion, String> {
    gpu.settle(base);
    let region = match method {
        Method::DmaBuf => {
            let (buffer, offset) = gpu.export(base, len)?;
            let (buffer, at) = (buffer.as_fd(), base.addr() as u64);
            // SAFETY: the caller's promise; the buffer is that range.
            unsafe { MemoryRegion::register_dma_buf(domain, buffer, offset, at, len, access) }
        }
        // SAFETY: the caller's promise.
        Method::PeerMemory => unsafe { MemoryRegion::register(domain, base, len, access) },
    };
    region.map_err(|error| choose::words(method, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Card;

    impl Gpu for Card {
        fn facts(&self) -> Facts {
            Facts {
                name: "GPU 0".into(),
                rdma: true,
                ordered: false,
                flushes: false,
            }
        }

        fn trial(&self) -> Result<Memory, String> {
            Err("no memory".into())
        }

        fn export(&self, _: *const u8, _: usize) -> Result<(OwnedFd, u64), String> {
            Err("no dma-buf".into())
        }

        fn settle(&self, _: *const u8) {}

        fn kind_of(&self, _: *const u8) -> MemoryKind {
            MemoryKind::Cuda
        }

        fn flush(&self) -> Result<(), String> {
            Err("the GPU is gone".into())
        }
    }

    fn carries(visible: Visible) -> Carries {
        Carries::Directly(Box::new(Direct {
            gpu: Arc::new(Card),
            method: Method::DmaBuf,
            visible,
        }))
    }

    #[test]
    fn a_pe_whose_gpu_is_not_reached_tells_its_peers_why_and_neither_writes_to_the_other() {
        let without = Carries::Refused("the NIC does not reach GPU 0: no dma-buf".into());
        let with = carries(Visible::ByDriver);
        assert_eq!(with.reaches(&with.told()), Ok(()));
        let why = with.reaches(&without.told()).unwrap_err();
        assert!(
            why.contains("at that PE") && why.contains("no dma-buf"),
            "{why}"
        );
        let why = without.reaches(&with.told()).unwrap_err();
        assert!(why.starts_with("the NIC does not reach GPU 0"), "{why}");
        let none = with.reaches(&Carries::Nothing.told()).unwrap_err();
        assert!(none.contains("that PE's NIC"), "{none}");
        let none = Carries::Nothing.reaches(&with.told()).unwrap_err();
        assert!(none.contains("this PE's NIC"), "{none}");
    }

    #[test]
    fn m27_a_gpu_that_needs_a_flush_is_not_written_by_one_who_would_not_ask_for_it() {
        let (ordered, flushed) = (carries(Visible::Always), carries(Visible::ByDriver));
        assert_eq!(ordered.reaches(&ordered.told()), Ok(()));
        // An answer too many harms nobody.
        assert_eq!(flushed.reaches(&ordered.told()), Ok(()));
        let why = ordered.reaches(&flushed.told()).unwrap_err();
        assert!(why.contains("flush"), "{why}");
    }

    #[test]
    fn m27_a_flush_that_fails_is_an_error_in_the_drivers_words() {
        let failing = carries(Visible::ByDriver);
        let error = failing.direct().unwrap().make_visible().unwrap_err();
        assert!(error.to_string().contains("the GPU is gone"), "{error}");
        let ordered = carries(Visible::Always);
        assert!(ordered.direct().unwrap().make_visible().is_ok());
    }

    #[test]
    fn only_who_has_a_gpu_asks_whose_memory_an_address_is() {
        let place = std::ptr::dangling::<u8>();
        assert_eq!(carries(Visible::Always).kind_of(place), MemoryKind::Cuda);
        assert_eq!(Carries::Nothing.kind_of(place), MemoryKind::Host);
    }
}
