//! The plan for a provider: whether it is used, how puts travel, and the guarantees that follow. Pure functions of its
//! [facts](Facts) and of the settings.

use oxshmem_transport::{
    AtomicLevel, AtomicTable, Capabilities, Completion, GpuFlush, Guarantees, Limits, MemoryKind,
    SignalSupport, WireUp,
};

use crate::fabric::slots::BUFFER;
use crate::facts::{Facts, bits};
use crate::limits::{BATCH, DEPTH, INLINE, LONGEST, MESSAGE, UNREGISTERED};
use crate::settings::Puts;

/// Capabilities without which a provider is of no use.
pub(crate) const NEEDED: u64 = bits::MSG
    | bits::RMA
    | bits::READ
    | bits::WRITE
    | bits::SEND
    | bits::RECV
    | bits::REMOTE_READ
    | bits::REMOTE_WRITE;

/// Kinds of registration that the transport handles, whether a provider wants them or not.
pub(crate) const REGISTRATION: u64 = bits::MR_LOCAL
    | bits::MR_VIRT_ADDR
    | bits::MR_ALLOCATED
    | bits::MR_PROV_KEY
    | bits::MR_ENDPOINT;

/// Demands of a provider on its caller that the transport meets.
pub(crate) const MODES: u64 = bits::CONTEXT | bits::CONTEXT2;

/// The path of a put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PutPath {
    /// Writes of the provider.
    Rma,
    /// Messages, which the target's CPU copies.
    Messages,
}

/// How a provider is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub puts: PutPath,
    /// The reason for the path of puts, in words.
    pub why: &'static str,
    /// The promises towards host memory.
    pub guarantees: Guarantees,
}

/// The plan for a provider, or the reason why it is not used.
pub(crate) fn plan(facts: &Facts, puts: Puts) -> Result<Plan, String> {
    if facts.caps & NEEDED != NEEDED {
        return Err("it has no messages, reads or writes between any two endpoints".into());
    }
    if facts.mode & !MODES != 0 {
        return Err(format!(
            "it demands a mode of its caller that this transport does not know ({:#x})",
            facts.mode & !MODES
        ));
    }
    if facts.mr_mode & !REGISTRATION != 0 {
        return Err(format!(
            "it registers memory in a way that this transport does not know ({:#x})",
            facts.mr_mode & !REGISTRATION
        ));
    }
    if facts.prefix != 0 {
        return Err("it wants a prefix before each message, which this transport has not".into());
    }
    if facts.longest < BUFFER as u64 {
        return Err(format!(
            "its longest message has {} bytes, and this transport needs {BUFFER}",
            facts.longest
        ));
    }
    let (puts, why) = match puts {
        Puts::Rma if let Some(why) = facts.splits_words() => {
            return Err(format!(
                "OXSHMEM_OFI_PUTS=rma: {why}, so a PE that waits for a word may see a part of it; leave it at auto"
            ));
        }
        Puts::Rma | Puts::SplitRma if !facts.delivers => {
            return Err(
                "it does not say when a write is delivered (FI_DELIVERY_COMPLETE), which OXSHMEM_OFI_PUTS=rma needs".into(),
            );
        }
        Puts::Rma | Puts::SplitRma => (PutPath::Rma, "OXSHMEM_OFI_PUTS says so"),
        Puts::Messages => (PutPath::Messages, "OXSHMEM_OFI_PUTS says so"),
        Puts::Auto if facts.is_placed_by_nic() && !facts.delivers => (
            PutPath::Messages,
            "the provider does not say when a write is delivered",
        ),
        Puts::Auto if facts.is_placed_by_nic() => (PutPath::Rma, "a NIC places each word whole"),
        Puts::Auto => (
            PutPath::Messages,
            "the provider copies writes byte by byte, or does not say that it keeps words whole",
        ),
    };
    let guarantees = match puts {
        PutPath::Messages => by_messages(facts),
        PutPath::Rma => by_rma(facts),
    };
    Ok(Plan {
        puts,
        why,
        guarantees,
    })
}

/// Messages are served in the order sent, by their numbers, whatever the provider keeps. Gets are reads of the provider,
/// which do not wait for messages to be served.
fn by_messages(facts: &Facts) -> Guarantees {
    Guarantees {
        put_put: true,
        put_fence_put: true,
        put_atomic: true,
        atomic_put: true,
        atomic_atomic: true,
        put_message: true,
        put_get: false,
        get_get: reads_in_order(facts),
        across_lanes: false,
        completion: Completion::Placed,
        gpu_flush: GpuFlush::None,
    }
}

/// Writes have the order that the provider declares for data of every size. Each is completed when it is delivered.
/// Messages are numbered among themselves, and pass writes.
fn by_rma(facts: &Facts) -> Guarantees {
    let keeps = |any, of_rma, size| facts.has_order(any, of_rma) && size >= LONGEST;
    let put_put = keeps(
        bits::ORDER_WAW,
        bits::ORDER_RMA_WAW,
        facts.write_after_write,
    );
    Guarantees {
        put_put,
        put_fence_put: put_put,
        put_atomic: false,
        atomic_put: false,
        atomic_atomic: false,
        put_message: false,
        put_get: keeps(bits::ORDER_RAW, bits::ORDER_RMA_RAW, facts.read_after_write),
        get_get: reads_in_order(facts),
        across_lanes: false,
        completion: Completion::Placed,
        gpu_flush: GpuFlush::None,
    }
}

fn reads_in_order(facts: &Facts) -> bool {
    facts.has_order(bits::ORDER_RAR, bits::ORDER_RMA_RAR)
}

/// The capabilities of a domain with this plan.
pub(crate) fn capabilities(facts: &Facts, plan: &Plan) -> Capabilities {
    let limits = Limits {
        max: facts.longest.min(LONGEST),
        align: 1,
        unregistered: UNREGISTERED as u64,
        inline: 0,
        ordered: u64::MAX,
    };
    // Without local keys every buffer will do.
    let anywhere = match facts.mr_mode & bits::MR_LOCAL {
        0 => limits.max,
        _ => limits.unregistered,
    };
    let put = match plan.puts {
        PutPath::Messages => limits.max,
        PutPath::Rma => anywhere,
    };
    Capabilities {
        put: Limits {
            unregistered: put,
            inline: INLINE as u64,
            ..limits
        },
        get: Limits {
            unregistered: anywhere,
            ..limits
        },
        put_signal: match plan.puts {
            PutPath::Messages => SignalSupport::Native(AtomicLevel::Cpu),
            PutPath::Rma => SignalSupport::None,
        },
        atomics: AtomicTable::uniform(AtomicLevel::None),
        memory: &[MemoryKind::Host],
        depth: Some(DEPTH as u32),
        wire_up: WireUp::None,
        pins: facts.mr_mode & bits::MR_ALLOCATED != 0,
        batch: match plan.puts {
            PutPath::Messages => BATCH,
            PutPath::Rma => 1,
        },
        message: MESSAGE as u32,
        passive_target: true,
        moves_in_calls: facts.manual_progress,
    }
}

/// The plan in words, for `oxshmem info`.
pub(crate) fn explain(facts: &Facts, plan: &Plan) -> String {
    let puts = match plan.puts {
        PutPath::Rma => "puts are its writes",
        PutPath::Messages => "puts are messages, which the target's CPU copies",
    };
    let progress = match facts.manual_progress {
        true => "data moves by this process's own thread",
        false => "the provider moves data by itself",
    };
    format!(
        "{} on {}: {puts} ({}); {progress}",
        facts.provider, facts.domain, plan.why
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::tests::of_dump;

    fn tcp() -> Facts {
        of_dump(include_str!("../tests/fixtures/tcp-rxm-1.17.txt"))
    }

    /// As fi_cxi(7) of libfabric 1.20 describes it.
    fn cxi() -> Facts {
        Facts {
            provider: "cxi".into(),
            fabric: "cxi".into(),
            domain: "cxi0".into(),
            address: None,
            mr_mode: bits::MR_ENDPOINT | bits::MR_ALLOCATED | bits::MR_PROV_KEY,
            order: bits::ORDER_RMA_WAW,
            write_after_write: 0,
            read_after_write: 0,
            manual_progress: false,
            ..tcp()
        }
    }

    /// As fi_efa(7) of libfabric 1.17 describes it: writes and reads in no order.
    fn efa() -> Facts {
        Facts {
            provider: "efa".into(),
            fabric: "EFA-fe80::1".into(),
            domain: "rdmap0s6-rdm".into(),
            address: None,
            mr_mode: bits::MR_LOCAL | bits::MR_VIRT_ADDR | bits::MR_ALLOCATED | bits::MR_PROV_KEY,
            order: 0,
            write_after_write: 0,
            read_after_write: 0,
            ..tcp()
        }
    }

    #[test]
    fn m17_messages_keep_every_order_but_that_of_gets_whatever_the_provider_keeps() {
        for facts in [tcp(), efa()] {
            let plan = plan(&facts, Puts::Auto).unwrap();
            assert_eq!(plan.puts, PutPath::Messages, "{facts:?}");
            let promised = plan.guarantees;
            assert!(promised.put_put && promised.put_message && promised.put_atomic);
            assert!(!promised.put_get && !promised.across_lanes);
            assert_eq!(promised.completion, Completion::Placed);
        }
        assert!(plan(&tcp(), Puts::Auto).unwrap().guarantees.get_get);
        assert!(!plan(&efa(), Puts::Auto).unwrap().guarantees.get_get);
    }

    #[test]
    fn m17_writes_have_only_the_order_that_holds_for_data_of_every_size() {
        let rma = |facts: &Facts| plan(facts, Puts::SplitRma).unwrap().guarantees;
        assert!(rma(&tcp()).put_put && rma(&tcp()).put_get);
        // Its order holds for writes of no bytes: there is none.
        assert!(!rma(&cxi()).put_put);
        let short = Facts {
            write_after_write: 4096,
            ..tcp()
        };
        assert!(!rma(&short).put_put);
        for facts in [tcp(), cxi(), efa()] {
            let promised = rma(&facts);
            assert!(!promised.put_message && !promised.put_atomic);
        }
    }

    #[test]
    fn a_nic_that_places_data_gets_writes_and_a_provider_that_copies_gets_messages() {
        let path = |facts: &Facts| plan(facts, Puts::Auto).unwrap().puts;
        assert_eq!(path(&cxi()), PutPath::Rma);
        for provider in [
            "tcp;ofi_rxm",
            "net",
            "udp;ofi_rxd",
            "psm3",
            "verbs;ofi_rxm",
            "opx",
            "efa",
            "shm",
            "new",
        ] {
            let facts = Facts {
                provider: provider.into(),
                ..tcp()
            };
            assert_eq!(path(&facts), PutPath::Messages, "{provider}");
        }
    }

    #[test]
    fn m23_writes_are_refused_by_name_where_software_may_split_a_word() {
        for provider in [
            "tcp;ofi_rxm",
            "tcp",
            "net",
            "udp;ofi_rxd",
            "sockets",
            "shm",
            "sm2",
            "verbs;ofi_rxm",
        ] {
            let facts = Facts {
                provider: provider.into(),
                ..tcp()
            };
            let why = plan(&facts, Puts::Rma).unwrap_err();
            let named = why.contains("OXSHMEM_OFI_PUTS=rma") && why.contains("auto");
            assert!(named && why.contains(facts.core_provider()), "{why}");
        }
        for facts in [cxi(), efa()] {
            assert_eq!(plan(&facts, Puts::Rma).unwrap().puts, PutPath::Rma);
        }
    }

    #[test]
    fn m19_without_an_end_at_delivery_puts_are_messages() {
        let silent = Facts {
            delivers: false,
            ..cxi()
        };
        assert_eq!(plan(&silent, Puts::Auto).unwrap().puts, PutPath::Messages);
        let why = plan(&silent, Puts::Rma).unwrap_err();
        assert!(why.contains("FI_DELIVERY_COMPLETE"), "{why}");
    }

    #[test]
    fn the_providers_of_debian_12_are_understood() {
        for dump in [
            include_str!("../tests/fixtures/tcp-rxm-1.17.txt"),
            include_str!("../tests/fixtures/udp-rxd-1.17.txt"),
            include_str!("../tests/fixtures/net-1.17.txt"),
            include_str!("../tests/fixtures/shm-1.17.txt"),
        ] {
            let facts = of_dump(dump);
            let plan = plan(&facts, Puts::Auto).unwrap();
            let capabilities = capabilities(&facts, &plan);
            assert_eq!(capabilities.get.unregistered, capabilities.get.max);
            assert!(!capabilities.pins);
        }
    }

    #[test]
    fn a_provider_that_wants_keys_for_local_memory_has_a_limit_without_one() {
        let facts = efa();
        let plan = plan(&facts, Puts::Auto).unwrap();
        let capabilities = capabilities(&facts, &plan);
        assert_eq!(capabilities.get.unregistered, UNREGISTERED as u64);
        // The sources of messages are copied.
        assert_eq!(capabilities.put.unregistered, capabilities.put.max);
        assert!(capabilities.pins);
    }

    #[test]
    fn what_the_transport_cannot_meet_is_refused_with_the_reason() {
        let refused = |facts: Facts| plan(&facts, Puts::Auto).unwrap_err();
        let caps = bits::MSG;
        assert!(refused(Facts { caps, ..tcp() }).contains("no messages, reads or writes"));
        assert!(
            refused(Facts {
                mode: 1 << 58,
                ..tcp()
            })
            .contains("demands a mode")
        );
        assert!(
            refused(Facts {
                mr_mode: 1 << 3,
                ..tcp()
            })
            .contains("registers memory")
        );
        assert!(
            refused(Facts {
                prefix: 40,
                ..tcp()
            })
            .contains("prefix")
        );
        let longest = BUFFER as u64 - 1;
        let why = refused(Facts { longest, ..tcp() });
        assert!(
            why.contains("has 16383 bytes, and this transport needs 16384"),
            "{why}"
        );
    }
}
