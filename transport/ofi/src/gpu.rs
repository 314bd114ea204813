//! Memory of the PE's GPU, which a provider with `FI_HMEM` registers: whether it is used, and how a NIC's writes become visible
//! to the GPU (M27).

use std::sync::Arc;

use oxshmem_gpudirect::{Gpu, GpuProperties, may_write};
use oxshmem_transport::{Completion, GpuFlush, Guarantees};

use crate::facts::{Facts, bits};
use crate::plan::{Plan, PutPath};
use crate::settings::Hmem;

/// A GPU whose memory the provider registers.
#[derive(Debug)]
pub(crate) struct Direct {
    pub gpu: Arc<dyn Gpu>,
    /// Its number.
    pub ordinal: i32,
    /// Whether writes of NICs need a flush.
    pub flush: bool,
}

/// The domain's access to GPU memory, or the reason why it has none.
pub(crate) type DomainGpu = Result<Direct, String>;

/// The bytes by which addresses tell of it.
pub(crate) fn support(gpu: &DomainGpu) -> u8 {
    match gpu {
        Err(_) => 0,
        Ok(direct) => 1 + u8::from(direct.flush),
    }
}

/// Why a PE's GPU memory is not reached; none if it is. `theirs`: the support that its address tells of.
pub(crate) fn unreachable(ours: &DomainGpu, theirs: u8) -> Option<String> {
    let direct = match ours {
        Err(why) => return Some(why.clone()),
        Ok(direct) => direct,
    };
    match theirs {
        1 | 2 => may_write(direct.flush, theirs == 2).err(),
        _ => Some(
            "libfabric does not register GPU memory at that PE; `oxshmem info --explain` there says why".into(),
        ),
    }
}

/// The reason against GPU memory by libfabric, before a registration is tried; none if there is none.
pub(crate) fn refusal(
    wanted: Hmem,
    facts: &Facts,
    plan: &Plan,
    gpu: &GpuProperties,
) -> Option<String> {
    let name = &gpu.name;
    if wanted == Hmem::Off {
        return Some("OXSHMEM_OFI_HMEM=off".into());
    }
    if plan.puts == PutPath::Messages {
        return Some(
            "puts are messages, which the CPU copies, and it reaches no GPU memory".into(),
        );
    }
    if facts.caps & bits::HMEM == 0 {
        return Some(format!(
            "libfabric's provider {} registers no GPU memory (FI_HMEM): libfabric may be built without CUDA",
            facts.provider
        ));
    }
    if !gpu.rdma {
        return Some(format!(
            "NICs cannot reach the memory of {name} (no GPUDirect RDMA)"
        ));
    }
    if !gpu.ordered && !gpu.flushes {
        return Some(format!(
            "{name} cannot be made to see what NICs write: its driver has no flush"
        ));
    }
    None
}

/// The promises towards GPU memory. A completed write is on its way to the GPU's memory, which no kernel need see before the
/// target's flush (M27). No order is promised: libfabric speaks of the memory of processes only.
pub(crate) fn guarantees(direct: &Direct) -> Guarantees {
    Guarantees {
        completion: Completion::Accepted,
        gpu_flush: match direct.flush {
            true => GpuFlush::Target,
            false => GpuFlush::None,
        },
        ..Guarantees::NONE
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;

    use oxshmem_transport::{Memory, MemoryKind};

    use super::*;
    use crate::facts::tests::of_dump;
    use crate::plan::plan;
    use crate::settings::{Atomics, Puts};

    fn cxi() -> Facts {
        of_dump(include_str!("../tests/fixtures/cxi-2.0.txt"))
    }

    fn gpu() -> GpuProperties {
        GpuProperties {
            name: "GPU 0 (NVIDIA X)".into(),
            ordinal: 0,
            rdma: true,
            ordered: false,
            flushes: true,
        }
    }

    fn judge(wanted: Hmem, facts: &Facts, puts: Puts, gpu: &GpuProperties) -> Option<String> {
        let plan = plan(facts, puts, Atomics::Auto).unwrap();
        refusal(wanted, facts, &plan, gpu)
    }

    #[test]
    fn gpu_memory_is_registered_where_a_nic_places_writes_and_the_gpu_can_be_flushed() {
        assert_eq!(judge(Hmem::Auto, &cxi(), Puts::Auto, &gpu()), None);
        let efa = of_dump(include_str!("../tests/fixtures/efa-2.0.txt"));
        let without = Facts {
            caps: cxi().caps & !bits::HMEM,
            ..cxi()
        };
        let blind = GpuProperties {
            flushes: false,
            ..gpu()
        };
        let far = GpuProperties {
            rdma: false,
            ..gpu()
        };
        for (wanted, facts, puts, gpu, words) in [
            (Hmem::Off, cxi(), Puts::Auto, gpu(), "OXSHMEM_OFI_HMEM=off"),
            (Hmem::Auto, efa, Puts::Auto, gpu(), "puts are messages"),
            (
                Hmem::Auto,
                cxi(),
                Puts::Messages,
                gpu(),
                "puts are messages",
            ),
            (Hmem::Auto, without, Puts::Auto, gpu(), "FI_HMEM"),
            (Hmem::Auto, cxi(), Puts::Auto, far, "GPUDirect"),
            (Hmem::Auto, cxi(), Puts::Auto, blind, "no flush"),
        ] {
            let why = judge(wanted, &facts, puts, &gpu).unwrap();
            assert!(why.contains(words), "{why}");
        }
        let ordered = GpuProperties {
            ordered: true,
            flushes: false,
            ..gpu()
        };
        assert_eq!(judge(Hmem::Auto, &cxi(), Puts::Auto, &ordered), None);
    }

    /// A GPU without memory.
    #[derive(Debug)]
    struct NoGpu;

    impl Gpu for NoGpu {
        fn properties(&self) -> GpuProperties {
            gpu()
        }

        fn trial_memory(&self) -> Result<Memory, String> {
            Err("none".into())
        }

        fn export(&self, _: *const u8, _: usize) -> Result<(OwnedFd, u64), String> {
            Err("none".into())
        }

        fn synchronize_copies(&self, _: *const u8) {}

        fn kind_of(&self, _: *const u8) -> MemoryKind {
            MemoryKind::Host
        }

        fn flush(&self) -> Result<(), String> {
            Ok(())
        }
    }

    fn direct(flush: bool) -> Direct {
        Direct {
            gpu: Arc::new(NoGpu),
            ordinal: 0,
            flush,
        }
    }

    #[test]
    fn m27_a_gpu_that_needs_a_flush_is_reached_by_those_that_ask_for_one() {
        let none: DomainGpu = Err("no GPU".into());
        let (flushed, ordered): (DomainGpu, DomainGpu) = (Ok(direct(true)), Ok(direct(false)));
        assert_eq!([&none, &ordered, &flushed].map(support), [0, 1, 2]);
        assert_eq!(unreachable(&none, 2).unwrap(), "no GPU");
        assert_eq!(unreachable(&flushed, 2), None);
        assert_eq!(unreachable(&flushed, 1), None);
        assert_eq!(unreachable(&ordered, 1), None);
        assert!(unreachable(&ordered, 2).unwrap().contains("flush"));
        assert!(unreachable(&flushed, 0).unwrap().contains("at that PE"));
        assert!(unreachable(&flushed, 77).unwrap().contains("at that PE"));
    }

    #[test]
    fn m27_a_completed_write_to_gpu_memory_is_not_said_to_be_seen() {
        let promised = guarantees(&direct(true));
        assert_eq!(promised.completion, Completion::Accepted);
        assert_eq!(promised.gpu_flush, GpuFlush::Target);
        assert!(!promised.put_put && !promised.put_get && !promised.put_message);
        assert_eq!(guarantees(&direct(false)).gpu_flush, GpuFlush::None);
    }
}
