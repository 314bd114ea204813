//! By which way GPU memory is registered, and what is said where it is by none.

use std::fmt;

use oxshmem_transport::Error;

use super::Facts;
use crate::settings::GpuDirect;

/// A way to register GPU memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    /// The GPU's driver exports it as a dma-buf, which the NIC's imports.
    DmaBuf,
    /// As host memory is: a kernel module tells the NIC's driver about GPU addresses.
    PeerMemory,
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Method::DmaBuf => "as a dma-buf",
            Method::PeerMemory => "by nvidia-peermem",
        })
    }
}

/// The first of the ways that are wanted that works, tried in this order; else why none does, in words.
pub(super) fn choose(
    wanted: GpuDirect,
    facts: &Facts,
    mut attempt: impl FnMut(Method) -> Result<(), String>,
) -> Result<Method, String> {
    let methods: &[Method] = match wanted {
        GpuDirect::Auto => &[Method::DmaBuf, Method::PeerMemory],
        GpuDirect::DmaBuf => &[Method::DmaBuf],
        GpuDirect::PeerMemory => &[Method::PeerMemory],
        GpuDirect::Off => return Err("OXSHMEM_VERBS_GPUDIRECT=off".into()),
    };
    let mut reasons = Vec::new();
    for method in methods {
        match attempt(*method) {
            Ok(()) => return Ok(*method),
            Err(why) => reasons.push(format!("{method}: {why}")),
        }
    }
    let name = &facts.name;
    let mut why = format!("the NIC does not reach {name}: {}", reasons.join("; "));
    if !facts.rdma {
        why.push_str(
            "; its driver says that NICs cannot reach this GPU's memory (no GPUDirect RDMA)",
        );
    }
    Err(why)
}

/// Why the NIC's driver did not take the memory, with what would mend it.
pub(super) fn words(method: Method, error: &Error) -> String {
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
        (Method::DmaBuf, Some(libc::EBADF | libc::EFAULT)) | (Method::DmaBuf, None) => {
            "NIC and GPU may not reach each other over PCIe: see `nvidia-smi topo -m`, and the \
             kernel log for ACS and IOMMU"
        }
        (Method::DmaBuf, Some(_)) => {
            "it needs Linux 5.12, rdma-core 34, a NIC whose driver takes dma-bufs (mlx5 does), and \
             NVIDIA's open kernel modules from 515 on"
        }
        (Method::PeerMemory, _) => {
            "`modprobe nvidia-peermem` (it comes with NVIDIA's driver from 470 on and needs NVIDIA's \
             or DOCA's RDMA modules, or a kernel with peer memory)"
        }
    };
    format!("{error}; {mend}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(rdma: bool) -> Facts {
        Facts {
            name: "GPU 3 (NVIDIA X)".into(),
            rdma,
            ordered: false,
            flushes: true,
        }
    }

    /// What is tried where only `works` works.
    fn tried(wanted: GpuDirect, works: Option<Method>) -> (Vec<Method>, Result<Method, String>) {
        let mut tried = Vec::new();
        let chosen = choose(wanted, &facts(true), |method| {
            tried.push(method);
            match works == Some(method) {
                true => Ok(()),
                false => Err(format!("no {method:?} here")),
            }
        });
        (tried, chosen)
    }

    #[test]
    fn a_dma_buf_comes_before_peer_memory_and_what_works_ends_the_search() {
        use Method::{DmaBuf, PeerMemory};
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
        let without = choose(GpuDirect::Auto, &facts(false), |_| Err("no".into()));
        assert!(without.unwrap_err().contains("no GPUDirect RDMA"));
    }

    #[test]
    fn what_is_switched_off_is_not_tried_and_says_by_whom() {
        let (attempts, chosen) = tried(GpuDirect::Off, Some(Method::DmaBuf));
        assert!(attempts.is_empty());
        assert_eq!(chosen, Err("OXSHMEM_VERBS_GPUDIRECT=off".into()));
    }

    #[test]
    fn each_failure_names_what_mends_it() {
        let told = |method, code| {
            let source = std::io::Error::from_raw_os_error(code);
            let error = Error::Os {
                transport: crate::NAME,
                call: "ibv_reg_mr of 2097152 bytes".into(),
                source,
            };
            words(method, &error)
        };
        for (method, code, mend) in [
            (Method::PeerMemory, libc::EFAULT, "modprobe nvidia-peermem"),
            (Method::PeerMemory, libc::EINVAL, "modprobe nvidia-peermem"),
            (
                Method::PeerMemory,
                libc::EOPNOTSUPP,
                "modprobe nvidia-peermem",
            ),
            (Method::DmaBuf, libc::EOPNOTSUPP, "Linux 5.12"),
            (Method::DmaBuf, libc::EINVAL, "open kernel modules from 515"),
            (Method::DmaBuf, libc::EPROTONOSUPPORT, "rdma-core 34"),
            (Method::DmaBuf, libc::EFAULT, "topo -m"),
            (Method::DmaBuf, libc::ENOMEM, "BAR1"),
            (Method::PeerMemory, libc::ENOMEM, "ulimit -l"),
            (Method::PeerMemory, libc::EPERM, "ulimit -l"),
        ] {
            let told = told(method, code);
            assert!(told.contains(mend), "{method:?} {code}: {told}");
            assert!(told.contains("ibv_reg_mr of 2097152 bytes"), "{told}");
        }
    }
}
