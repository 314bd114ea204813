//! Memory of the PE's GPU (GPUDirect RDMA): whether the NIC reaches it, by which registration method, and how
//! a NIC's writes become visible to the GPU (M27). A domain finds this out by trying, when it is opened.

mod choose;
mod read_back;

use std::fmt::Debug;
use std::os::fd::AsFd;
use std::sync::Arc;

use oxshmem_gpudirect::{Gpu, may_write};
use oxshmem_transport::{Error, MemoryKind, Result};

pub(crate) use self::choose::RegistrationMethod;
use self::read_back::ReadBack;
use crate::ibv::{Access, MemoryRegion, ProtectionDomain};
use crate::limits::NAME;
use crate::port_state::PortState;
use crate::wire::GpuSupport;

/// The means by which a NIC's writes become visible to the GPU.
#[derive(Debug)]
enum Visibility {
    /// None is needed.
    Always,
    ByDriver,
    ByReading(Box<ReadBack>),
}

/// A GPU whose memory this domain's device accesses directly.
#[derive(Debug)]
pub(crate) struct Direct {
    gpu: Arc<dyn Gpu>,
    method: RegistrationMethod,
    visible: Visibility,
}

/// The domain's access to GPU memory.
#[derive(Debug)]
pub(crate) enum DomainGpu {
    /// No GPU was given.
    None,
    /// The device does not reach it, for this reason.
    Refused(String),
    Direct(Box<Direct>),
}

impl DomainGpu {
    /// Tries the registration methods on the opened device.
    pub(crate) fn of(gpu: Option<&Arc<dyn Gpu>>, port_state: &PortState) -> DomainGpu {
        let Some(gpu) = gpu else {
            return DomainGpu::None;
        };
        match Direct::try_on(gpu, port_state) {
            Ok(direct) => {
                let method = direct.method;
                tracing::info!(port = %port_state.port.name(), %method, "GPU memory by the NIC");
                DomainGpu::Direct(Box::new(direct))
            }
            Err(why) => {
                tracing::info!(port = %port_state.port.name(), %why, "no GPU memory by the NIC");
                DomainGpu::Refused(why)
            }
        }
    }

    /// The GPU, or the reason why this domain has none.
    pub(crate) fn direct(&self) -> Result<&Direct, &str> {
        match self {
            DomainGpu::None => Err("no GPU was given to this PE's NIC"),
            DomainGpu::Refused(why) => Err(why),
            DomainGpu::Direct(direct) => Ok(direct),
        }
    }

    /// The support that the address announces to peers.
    pub(crate) fn support(&self) -> GpuSupport {
        match self {
            DomainGpu::None => GpuSupport::None,
            DomainGpu::Refused(why) => GpuSupport::Refused(why.clone()),
            DomainGpu::Direct(direct) => GpuSupport::Direct {
                flush: direct.needs_flush(),
            },
        }
    }

    /// Whether this side reaches the GPU of a PE with the support `theirs`; else the reason.
    pub(crate) fn reaches(&self, theirs: &GpuSupport) -> Result<(), String> {
        let direct = self.direct()?;
        match theirs {
            GpuSupport::Direct { flush } => may_write(direct.needs_flush(), *flush),
            GpuSupport::Refused(why) => Err(format!("at that PE: {why}")),
            GpuSupport::None => Err("no GPU was given to that PE's NIC".into()),
        }
    }

    /// The kind of memory at an address, as far as the driver can be asked.
    pub(crate) fn kind_of(&self, address: *const u8) -> MemoryKind {
        match self {
            DomainGpu::Direct(direct) => direct.gpu.kind_of(address),
            _ => MemoryKind::Host,
        }
    }
}

impl Direct {
    fn try_on(gpu: &Arc<dyn Gpu>, port_state: &PortState) -> Result<Direct, String> {
        let properties = gpu.properties();
        let mut trial = None;
        let method = choose::choose(port_state.settings.gpudirect, &properties, |method| {
            let memory = match trial.take() {
                Some((memory, _)) => memory,
                None => gpu.trial_memory()?,
            };
            let (base, len) = (memory.base().as_ptr(), memory.len());
            let domain = &port_state.protection_domain;
            // SAFETY: the trial's memory, which is kept with its registration and which nothing else uses.
            let tried =
                unsafe { register(gpu.as_ref(), method, domain, base, len, Access::Remote) };
            let (region, outcome) = match tried {
                Ok(region) => (Some(region), Ok(())),
                Err(why) => (None, Err(why)),
            };
            trial = Some((memory, region));
            outcome
        })?;
        let visible = match (properties.ordered, properties.flushes, trial) {
            (true, ..) => Visibility::Always,
            (false, true, _) => Visibility::ByDriver,
            (false, false, Some((memory, Some(region)))) => {
                let read = ReadBack::new(port_state, region, memory);
                let why = |why| {
                    format!(
                        "{} cannot be made to see what NICs write: the driver has no flush, and a \
                         read by the NIC cannot be set up: {why}",
                        properties.name
                    )
                };
                Visibility::ByReading(Box::new(read.map_err(|error| why(error.to_string()))?))
            }
            (false, false, _) => return Err("nothing was registered".into()),
        };
        Ok(Direct {
            gpu: Arc::clone(gpu),
            method,
            visible,
        })
    }

    /// Whether NICs' writes need a flush at the target before its GPU sees them.
    pub(crate) fn needs_flush(&self) -> bool {
        !matches!(self.visible, Visibility::Always)
    }

    /// Whether a read by this NIC is what makes its writes visible.
    pub(crate) fn flushes_by_reading(&self) -> bool {
        matches!(self.visible, Visibility::ByReading(_))
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
        // SAFETY: the bytes stay, as this function's caller promises.
        let region = unsafe { register(self.gpu.as_ref(), self.method, domain, base, len, access) };
        region.map_err(|why| refused(format!("{}: {why}", self.method)))
    }

    /// Makes NICs' writes before this call visible to every GPU.
    pub(crate) fn make_visible(&self) -> Result<()> {
        let flushed = match &self.visible {
            Visibility::Always => Ok(()),
            Visibility::ByDriver => self.gpu.flush(),
            Visibility::ByReading(read) => read.read(),
        };
        flushed.map_err(|why| Error::Os {
            transport: NAME,
            call: "flushing what NICs wrote to GPU memory".into(),
            source: std::io::Error::other(why),
        })
    }
}

/// The error for GPU memory that is not registered.
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
    method: RegistrationMethod,
    domain: &Arc<ProtectionDomain>,
    base: *mut u8,
    len: usize,
    access: Access,
) -> Result<MemoryRegion, String> {
    gpu.synchronize_copies(base);
    let region = match method {
        RegistrationMethod::DmaBuf => {
            let (buffer, offset) = gpu.export(base, len)?;
            let (buffer, at) = (buffer.as_fd(), base.addr() as u64);
            // SAFETY: the bytes stay, as this function's caller promises; the buffer is that range.
            unsafe { MemoryRegion::register_dma_buf(domain, buffer, offset, at, len, access) }
        }
        // SAFETY: the bytes stay, as this function's caller promises.
        RegistrationMethod::PeerMemory => unsafe {
            MemoryRegion::register(domain, base, len, access)
        },
    };
    region.map_err(|error| choose::failure(method, &error))
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;

    use oxshmem_gpudirect::GpuProperties;
    use oxshmem_transport::Memory;

    use super::*;

    #[derive(Debug)]
    struct Card;

    impl Gpu for Card {
        fn properties(&self) -> GpuProperties {
            GpuProperties {
                name: "GPU 0".into(),
                ordinal: 0,
                rdma: true,
                ordered: false,
                flushes: false,
            }
        }

        fn trial_memory(&self) -> Result<Memory, String> {
            Err("no memory".into())
        }

        fn export(&self, _: *const u8, _: usize) -> Result<(OwnedFd, u64), String> {
            Err("no dma-buf".into())
        }

        fn synchronize_copies(&self, _: *const u8) {}

        fn kind_of(&self, _: *const u8) -> MemoryKind {
            MemoryKind::Cuda
        }

        fn flush(&self) -> Result<(), String> {
            Err("the GPU is gone".into())
        }
    }

    fn direct(visible: Visibility) -> DomainGpu {
        DomainGpu::Direct(Box::new(Direct {
            gpu: Arc::new(Card),
            method: RegistrationMethod::DmaBuf,
            visible,
        }))
    }

    #[test]
    fn a_pe_whose_gpu_is_not_reached_tells_its_peers_why_and_neither_writes_to_the_other() {
        let without = DomainGpu::Refused("the NIC does not reach GPU 0: no dma-buf".into());
        let with = direct(Visibility::ByDriver);
        assert_eq!(with.reaches(&with.support()), Ok(()));
        let why = with.reaches(&without.support()).unwrap_err();
        assert!(
            why.contains("at that PE") && why.contains("no dma-buf"),
            "{why}"
        );
        let why = without.reaches(&with.support()).unwrap_err();
        assert!(why.starts_with("the NIC does not reach GPU 0"), "{why}");
        let none = with.reaches(&DomainGpu::None.support()).unwrap_err();
        assert!(none.contains("that PE's NIC"), "{none}");
        let none = DomainGpu::None.reaches(&with.support()).unwrap_err();
        assert!(none.contains("this PE's NIC"), "{none}");
    }

    #[test]
    fn m27_a_gpu_that_needs_a_flush_is_not_written_by_a_pe_that_would_not_ask_for_it() {
        let (ordered, flushed) = (direct(Visibility::Always), direct(Visibility::ByDriver));
        assert_eq!(ordered.reaches(&ordered.support()), Ok(()));
        // A flush that is not needed does no harm.
        assert_eq!(flushed.reaches(&ordered.support()), Ok(()));
        let why = ordered.reaches(&flushed.support()).unwrap_err();
        assert!(why.contains("flush"), "{why}");
    }

    #[test]
    fn m27_a_flush_that_fails_is_an_error_in_the_drivers_words() {
        let failing = direct(Visibility::ByDriver);
        let error = failing.direct().unwrap().make_visible().unwrap_err();
        assert!(error.to_string().contains("the GPU is gone"), "{error}");
        let ordered = direct(Visibility::Always);
        assert!(ordered.direct().unwrap().make_visible().is_ok());
    }

    #[test]
    fn only_a_domain_with_a_gpu_asks_whose_memory_an_address_is() {
        let place = std::ptr::dangling::<u8>();
        assert_eq!(direct(Visibility::Always).kind_of(place), MemoryKind::Cuda);
        assert_eq!(DomainGpu::None.kind_of(place), MemoryKind::Host);
    }
}
