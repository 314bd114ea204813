//! What a failed completion means.

use oxshmem_transport::{Error, Pe};
use rdma_sys::ibv_wc_status as status;

use crate::NAME;
use crate::ibv::Completion;

/// Why a connection does no more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Its PE does not answer, or is known to be lost.
    Lost,
    /// Something else, in words.
    Failed(String),
}

impl Cause {
    /// What operations towards `pe` are refused with.
    pub(crate) fn error(&self, pe: Pe) -> Error {
        match self {
            Cause::Lost => Error::PeerLost {
                transport: NAME,
                pe,
            },
            Cause::Failed(why) => Error::Connection {
                transport: NAME,
                pe,
                why: why.clone(),
            },
        }
    }

    /// Of a completion that did not succeed. Only its number, status, queue pair and vendor's code
    /// mean anything.
    pub(crate) fn of(completion: &Completion, port: &str) -> Cause {
        let vendor = completion.vendor_code();
        let why = match completion.status() {
            status::IBV_WC_RETRY_EXC_ERR
            | status::IBV_WC_RNR_RETRY_EXC_ERR
            | status::IBV_WC_RESP_TIMEOUT_ERR
            | status::IBV_WC_REM_ABORT_ERR => return Cause::Lost,
            status::IBV_WC_REM_ACCESS_ERR => {
                "the target refused access (IBV_WC_REM_ACCESS_ERR): the memory is no longer \
                 registered there, or the key is of another registration"
            }
            status::IBV_WC_REM_OP_ERR | status::IBV_WC_REM_INV_REQ_ERR => {
                "the target could not do it (IBV_WC_REM_OP_ERR or _REM_INV_REQ_ERR): its device \
                 reports an error; see its kernel log"
            }
            status::IBV_WC_LOC_PROT_ERR => {
                "the local memory is not registered (IBV_WC_LOC_PROT_ERR): it was freed or its \
                 registration dropped before the operation was complete"
            }
            status::IBV_WC_LOC_QP_OP_ERR => {
                "this side's queue pair failed (IBV_WC_LOC_QP_OP_ERR): most likely its port went \
                 down; see `rdma link`"
            }
            status::IBV_WC_WR_FLUSH_ERR => {
                "its queue pair was put into the error state (IBV_WC_WR_FLUSH_ERR)"
            }
            status::IBV_WC_FATAL_ERR => "the device failed (IBV_WC_FATAL_ERR); see the kernel log",
            other => {
                return Cause::Failed(format!(
                    "completion status {other} on {port} (vendor code {vendor:#x})"
                ));
            }
        };
        Cause::Failed(format!("{why} (on {port}, vendor code {vendor:#x})"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cause(status: status::Type) -> Cause {
        Cause::of(&Completion::failed(status, 0x17), "mlx5_0:1")
    }

    #[test]
    fn silence_is_a_lost_peer() {
        for silent in [
            status::IBV_WC_RETRY_EXC_ERR,
            status::IBV_WC_RNR_RETRY_EXC_ERR,
            status::IBV_WC_RESP_TIMEOUT_ERR,
        ] {
            assert_eq!(cause(silent), Cause::Lost);
            let error = cause(silent).error(Pe(3));
            assert!(matches!(error, Error::PeerLost { pe: Pe(3), .. }));
        }
    }

    #[test]
    fn other_failures_name_status_port_and_vendor_code() {
        for (failed, word) in [
            (status::IBV_WC_REM_ACCESS_ERR, "REM_ACCESS"),
            (status::IBV_WC_LOC_PROT_ERR, "LOC_PROT"),
            (status::IBV_WC_LOC_QP_OP_ERR, "rdma link"),
            (status::IBV_WC_WR_FLUSH_ERR, "WR_FLUSH"),
            (99, "status 99"),
        ] {
            let told = cause(failed).error(Pe(3)).to_string();
            for part in [word, "mlx5_0:1", "0x17", "PE 3"] {
                assert!(told.contains(part), "{told}");
            }
        }
    }
}
