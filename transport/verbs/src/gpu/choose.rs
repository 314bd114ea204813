//! The choice of the method by which GPU memory is registered, and the error where none works.

use std::fmt;

use oxshmem_gpudirect::GpuProperties;
use oxshmem_transport::Error;

use crate::settings::GpuDirect;

/// A method to register GPU memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RegistrationMethod {
    /// The GPU's driver exports it as a dma-buf, which the NIC's imports.
    DmaBuf,
    /// As host memory is: a kernel module tells the NIC's driver about GPU addresses.
    PeerMemory,
}

impl fmt::Display for RegistrationMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            RegistrationMethod::DmaBuf => "as a dma-buf",
            RegistrationMethod::PeerMemory => "by nvidia-peermem",
        })
    }
}

/// The first of the wanted methods that works, tried in this order; else the reasons why none does.
pub(super) fn choose(
    wanted: GpuDirect,
    properties: &GpuProperties,
    mut attempt: impl FnMut(RegistrationMethod) -> Result<(), String>,
) -> Result<RegistrationMethod, String> {
    let methods: &[RegistrationMethod] = match wanted {
        GpuDirect::Auto => &[RegistrationMethod::DmaBuf, RegistrationMethod::PeerMemory],
        GpuDirect::DmaBuf => &[RegistrationMethod::DmaBuf],
        GpuDirect::PeerMemory => &[RegistrationMethod::PeerMemory],
        GpuDirect::Off => return Err("OXSHMEM_VERBS_GPUDIRECT=off".into()),
    };
    let mut reasons = Vec::new();
    for method in methods {
        match attempt(*method) {
            Ok(()) => return Ok(*method),
            Err(why) => reasons.push(format!("{method}: {why}")),
        }
    }
    let name = &properties.name;
    let mut why = format!("the NIC does not reach {name}: {}", reasons.join("; "));
    if !properties.rdma {
        why.push_str(
            "; its driver says that NICs cannot reach this GPU's memory (no GPUDirect RDMA)",
        );
    }
    Err(why)
}

/// The failure of a registration, with the advice that fits it.
pub(super) fn failure(method: RegistrationMethod, error: &Error) -> String {
    let Error::Os { source, .. } = error else {
        return error.to_string();
    };
    let mend = match (method, source.raw_os_error()) {
        (_, Some(libc::ENOMEM | libc::ENOSPC)) => {
            "the GPU's window for other devices is too small (`nvidia-smi -q -d MEMORY` shows BAR1), \
             or the memory lock limit (`ulimit -l unlimited`)"
        }
        (_, Some(libc::EPERM | libc::EACCES)) => {
            "this process may not pin memory: raise `ulimit -l`, and pass /dev/infiniband to \
             containers"
        }
        (RegistrationMethod::DmaBuf, Some(libc::EBADF | libc::EFAULT))
        | (RegistrationMethod::DmaBuf, None) => {
            "NIC and GPU may not reach each other over PCIe: see `nvidia-smi topo -m`, and the \
             kernel log for ACS and IOMMU"
        }
        (RegistrationMethod::DmaBuf, Some(_)) => {
            "it needs Linux 5.12, rdma-core 34, a NIC whose driver takes dma-bufs (mlx5 does), and \
             NVIDIA's open kernel modules from 515 on"
        }
        (RegistrationMethod::PeerMemory, _) => {
            "`modprobe nvidia-peermem` (it comes with NVIDIA's driver from 470 on and needs NVIDIA's \
             or DOCA's RDMA modules, or a kernel with peer memory)"
        }
    };
    format!("{error}; {mend}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn properties(rdma: bool) -> GpuProperties {
        GpuProperties {
            name: "GPU 3 (NVIDIA X)".into(),
            ordinal: 3,
            rdma,
            ordered: false,
            flushes: true,
        }
    }

    /// The methods tried where only `works` works, and the outcome.
    fn tried(
        wanted: GpuDirect,
        works: Option<RegistrationMethod>,
    ) -> (Vec<RegistrationMethod>, Result<RegistrationMethod, String>) {
        let mut tried = Vec::new();
        let chosen = choose(wanted, &properties(true), |method| {
            tried.push(method);
            if works == Some(method) {
                Ok(())
            } else {
                Err(format!("no {method:?} here"))
            }
        });
        (tried, chosen)
    }

    #[test]
    fn a_dma_buf_comes_before_peer_memory_and_what_works_ends_the_search() {
        use RegistrationMethod::{DmaBuf, PeerMemory};
        assert_eq!(
            tried(GpuDirect::Auto, Some(DmaBuf)),
            (vec![DmaBuf], Ok(DmaBuf))
        );
        assert_eq!(
            tried(GpuDirect::Auto, Some(PeerMemory)),
            (vec![DmaBuf, PeerMemory], Ok(PeerMemory))
        );
        assert_eq!(
            tried(GpuDirect::PeerMemory, Some(PeerMemory)),
            (vec![PeerMemory], Ok(PeerMemory))
        );
        let (attempts, chosen) = tried(GpuDirect::DmaBuf, Some(PeerMemory));
        assert_eq!(attempts, [DmaBuf]);
        assert!(chosen.is_err());
    }

    #[test]
    fn where_none_works_the_reasons_of_all_are_told_with_the_gpu() {
        let (_, chosen) = tried(GpuDirect::Auto, None);
        let why = chosen.unwrap_err();
        for part in [
            "GPU 3 (NVIDIA X)",
            "as a dma-buf: no DmaBuf here",
            "by nvidia-peermem: no PeerMemory here",
        ] {
            assert!(why.contains(part), "{why}");
        }
        assert!(!why.contains("GPUDirect"), "{why}");
        let without = choose(GpuDirect::Auto, &properties(false), |_| Err("no".into()));
        assert!(without.unwrap_err().contains("no GPUDirect RDMA"));
    }

    #[test]
    fn what_is_switched_off_is_not_tried_and_says_by_whom() {
        let (attempts, chosen) = tried(GpuDirect::Off, Some(RegistrationMethod::DmaBuf));
        assert!(attempts.is_empty());
        assert_eq!(chosen, Err("OXSHMEM_VERBS_GPUDIRECT=off".into()));
    }

    #[test]
    fn each_failure_names_what_mends_it() {
        let told = |method, code| {
            let source = std::io::Error::from_raw_os_error(code);
            let error = Error::Os {
                transport: crate::limits::NAME,
                call: "ibv_reg_mr of 2097152 bytes".into(),
                source,
            };
            failure(method, &error)
        };
        for (method, code, mend) in [
            (
                RegistrationMethod::PeerMemory,
                libc::EFAULT,
                "modprobe nvidia-peermem",
            ),
            (
                RegistrationMethod::PeerMemory,
                libc::EINVAL,
                "modprobe nvidia-peermem",
            ),
            (
                RegistrationMethod::PeerMemory,
                libc::EOPNOTSUPP,
                "modprobe nvidia-peermem",
            ),
            (RegistrationMethod::DmaBuf, libc::EOPNOTSUPP, "Linux 5.12"),
            (
                RegistrationMethod::DmaBuf,
                libc::EINVAL,
                "open kernel modules from 515",
            ),
            (
                RegistrationMethod::DmaBuf,
                libc::EPROTONOSUPPORT,
                "rdma-core 34",
            ),
            (RegistrationMethod::DmaBuf, libc::EFAULT, "topo -m"),
            (RegistrationMethod::DmaBuf, libc::ENOMEM, "BAR1"),
            (RegistrationMethod::PeerMemory, libc::ENOMEM, "ulimit -l"),
            (RegistrationMethod::PeerMemory, libc::EPERM, "ulimit -l"),
        ] {
            let told = told(method, code);
            assert!(told.contains(mend), "{method:?} {code}: {told}");
            assert!(told.contains("ibv_reg_mr of 2097152 bytes"), "{told}");
        }
    }
}
