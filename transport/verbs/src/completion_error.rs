//! The meaning of a completion that failed, as an error of the connection.

use oxshmem_transport::{Error, Pe};

use crate::ibv::Completion;
use crate::ibv::sys::ibv_wc_status as status;
use crate::limits::NAME;

/// The local facts about a connection that failed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LocalPort<'a> {
    /// The port's name.
    pub(crate) name: &'a str,
    /// The route of its packets, in words.
    pub(crate) route: &'a str,
    /// Whether any request was ever completed.
    pub(crate) ever_acked: bool,
    /// Whether the port is down.
    pub(crate) is_down: bool,
}

/// The reason why a connection failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CompletionError {
    /// Its PE does not respond any more, or is known to be lost.
    Lost,
    /// Another reason, in words.
    Failed(String),
}

impl CompletionError {
    /// The error that refuses operations towards `pe`.
    pub(crate) fn error(&self, pe: Pe) -> Error {
        match self {
            CompletionError::Lost => Error::PeerLost {
                transport: NAME,
                pe,
            },
            CompletionError::Failed(why) => Error::Connection {
                transport: NAME,
                pe,
                why: why.clone(),
            },
        }
    }

    /// The meaning of a completion that did not succeed. Only its number, status, queue pair and vendor's
    /// code are defined.
    pub(crate) fn of(completion: &Completion, local: &LocalPort<'_>) -> CompletionError {
        let (vendor, port) = (completion.vendor_code(), local.name);
        let why = match completion.status() {
            status::IBV_WC_RETRY_EXC_ERR
            | status::IBV_WC_RESP_TIMEOUT_ERR
            | status::IBV_WC_REM_ABORT_ERR => {
                if local.is_down {
                    return CompletionError::Failed(format!(
                        "this side's port {port} went down (IBV_EVENT_PORT_ERR) and did not come \
                         back within the retries; see `rdma link` and the cable"
                    ));
                }
                if local.ever_acked {
                    return CompletionError::Lost;
                }
                return CompletionError::Failed(format!(
                    "no packet was ever answered ({}): the PE may be gone; if it lives, see that \
                     both hosts let UDP port 4791 through (RoCE), that VLAN, P_Key, MTU and subnet are \
                     the same, and that both ports are cabled to one fabric: InfiniBand fabrics to \
                     which nobody gave a prefix all have fe80::/64; give each its own, or choose \
                     ports of one by OXSHMEM_NIC",
                    local.route
                ));
            }
            status::IBV_WC_RNR_RETRY_EXC_ERR => {
                "its PE did not take messages for too long (IBV_WC_RNR_RETRY_EXC_ERR): it does not \
                 serve them; OXSHMEM_VERBS_RNR_RETRY=7 has this side wait without end"
            }
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
                return CompletionError::Failed(format!(
                    "completion status {other} on {port} (vendor code {vendor:#x})"
                ));
            }
        };
        CompletionError::Failed(format!("{why} (on {port}, vendor code {vendor:#x})"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCAL: LocalPort<'static> = LocalPort {
        name: "mlx5_0:1",
        route: "from 10.0.0.1 to 10.0.0.2, P_Key 0xffff",
        ever_acked: true,
        is_down: false,
    };

    fn cause(status: status::Type) -> CompletionError {
        CompletionError::of(&Completion::failed(status, 0x17), &LOCAL)
    }

    const SILENT: [status::Type; 2] = [
        status::IBV_WC_RETRY_EXC_ERR,
        status::IBV_WC_RESP_TIMEOUT_ERR,
    ];

    #[test]
    fn silence_after_answers_is_a_lost_peer() {
        for silent in SILENT {
            assert_eq!(cause(silent), CompletionError::Lost);
            let error = cause(silent).error(Pe(3));
            assert!(matches!(error, Error::PeerLost { pe: Pe(3), .. }));
        }
    }

    #[test]
    fn silence_from_the_start_names_both_ends_and_what_to_check() {
        let local = LocalPort {
            ever_acked: false,
            ..LOCAL
        };
        for silent in SILENT {
            let told = CompletionError::of(&Completion::failed(silent, 0), &local).error(Pe(3));
            assert!(matches!(told, Error::Connection { pe: Pe(3), .. }));
            let told = told.to_string();
            for part in [
                "10.0.0.1",
                "10.0.0.2",
                "0xffff",
                "4791",
                "VLAN",
                "fe80::/64",
                "OXSHMEM_NIC",
            ] {
                assert!(told.contains(part), "{told}");
            }
        }
    }

    #[test]
    fn silence_while_the_own_port_is_down_blames_the_port() {
        let local = LocalPort {
            is_down: true,
            ..LOCAL
        };
        for silent in SILENT {
            let told = CompletionError::of(&Completion::failed(silent, 0), &local).error(Pe(3));
            assert!(matches!(told, Error::Connection { .. }));
            assert!(told.to_string().contains("IBV_EVENT_PORT_ERR"), "{told}");
        }
    }

    #[test]
    fn other_failures_name_status_port_and_vendor_code() {
        for (failed, word) in [
            (status::IBV_WC_REM_ACCESS_ERR, "REM_ACCESS"),
            (status::IBV_WC_RNR_RETRY_EXC_ERR, "OXSHMEM_VERBS_RNR_RETRY"),
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
