//! The error of a failed registration, with the limit that may be the reason.

use oxshmem_transport::{Error, MemoryKind};

use crate::limits::NAME;

/// The error for memory that could not be registered, with the limit that may be the reason. `most`: the bytes that the
/// device registers at once.
pub(crate) fn refused(kind: MemoryKind, len: usize, most: u64, error: &Error) -> Error {
    let mut why = error.to_string();
    if let Error::Os { source, .. } = error {
        why = match source.raw_os_error() {
            _ if len as u64 > most => format!(
                "{len} bytes are more than the device registers at once, which is {most} \
                 (max_mr_size): {source}. Use a smaller heap (OXSHMEM_SYMMETRIC_SIZE)"
            ),
            Some(libc::ENOMEM | libc::EPERM | libc::EAGAIN) => format!(
                "{len} bytes could not be locked: {source}. {}",
                lockable(locked_memory_limit())
            ),
            Some(libc::EFAULT) => format!(
                "{len} bytes are not mapped, or not writable: {source}. Read-only memory can only \
                 be a source"
            ),
            _ => why,
        };
    }
    Error::Memory {
        transport: NAME,
        kind,
        why,
    }
}

fn lockable(limit: Option<u64>) -> String {
    match limit {
        Some(limit) => format!(
            "`ulimit -l` is {} KiB: raise it (`ulimit -l unlimited`, /etc/security/limits.conf, \
             LimitMEMLOCK=infinity, docker --ulimit memlock=-1)",
            limit >> 10
        ),
        None => "`ulimit -l` sets no limit, so the machine or the control group has too little \
                 memory: use a smaller heap (OXSHMEM_SYMMETRIC_SIZE)"
            .into(),
    }
}

/// In bytes; none if there is none.
fn locked_memory_limit() -> Option<u64> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: writes the structure.
    let code = unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, &raw mut limit) };
    (code == 0 && limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lack_of_lockable_memory_names_limit_and_mend() {
        let error = Error::Os {
            transport: NAME,
            call: "ibv_reg_mr".into(),
            source: std::io::Error::from_raw_os_error(libc::ENOMEM),
        };
        let told = refused(MemoryKind::Host, 4096, u64::MAX, &error).to_string();
        assert!(
            told.contains("ulimit -l") && told.contains("4096 bytes"),
            "{told}"
        );
        assert!(lockable(Some(64 << 10)).contains("is 64 KiB"));
        assert!(lockable(None).contains("OXSHMEM_SYMMETRIC_SIZE"));
    }

    #[test]
    fn more_than_the_device_registers_is_told_with_its_limit() {
        for code in [libc::EINVAL, libc::ENOMEM] {
            let error = Error::Os {
                transport: NAME,
                call: "ibv_reg_mr".into(),
                source: std::io::Error::from_raw_os_error(code),
            };
            let told = refused(MemoryKind::Host, 4097, 4096, &error).to_string();
            for word in ["4097", "4096", "max_mr_size", "OXSHMEM_SYMMETRIC_SIZE"] {
                assert!(told.contains(word), "{told}");
            }
            assert!(!told.contains("ulimit"), "{told}");
        }
    }

    #[test]
    fn memory_that_is_not_writable_is_told_as_that() {
        let error = Error::Os {
            transport: NAME,
            call: "ibv_reg_mr".into(),
            source: std::io::Error::from_raw_os_error(libc::EFAULT),
        };
        let told = refused(MemoryKind::Host, 4096, u64::MAX, &error).to_string();
        assert!(told.contains("not writable"), "{told}");
    }
}
