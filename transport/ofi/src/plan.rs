//! The plan for a provider: whether it is used, how puts travel, and the guarantees that follow. Pure functions of its
//! [facts](Facts) and of the settings.

use oxshmem_transport::{
    AtomicLevel, AtomicTable, Capabilities, Completion, GpuFlush, Guarantees, Limits, MemoryKind,
    SignalSupport, WireUp,
};

use crate::facts::{Facts, bits};
use crate::limits::{BATCH, DEPTH, INLINE, LONGEST, MESSAGE, SAFE_MESSAGE, UNREGISTERED};
use crate::settings::{Atomics, Puts};

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
    | bits::MR_ENDPOINT
    | bits::MR_HMEM;

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

/// The path of atomics of 64 bits on words of the NICs' atomic domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AtomicPath {
    /// Atomics of the provider.
    Provider,
    /// None: there is no such domain, and the target's CPU performs all atomics.
    Messages,
}

/// How a provider is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub puts: PutPath,
    /// The reason for the path of puts, in words.
    pub why: &'static str,
    pub atomics: AtomicPath,
    /// The reason for the path of atomics, in words.
    pub why_atomics: &'static str,
    /// The promises towards host memory.
    pub guarantees: Guarantees,
}

/// The plan for a provider, or the reason why it is not used.
pub(crate) fn plan(facts: &Facts, puts: Puts, atomics: Atomics) -> Result<Plan, String> {
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
    // Its longest operation is a write.
    if facts.fabric == "efa-direct" {
        return Err(format!(
            "a message of its fabric efa-direct is one packet, and this transport needs {SAFE_MESSAGE} bytes"
        ));
    }
    if facts.prefix != 0 {
        return Err("it wants a prefix before each message, which this transport has not".into());
    }
    if facts.longest < SAFE_MESSAGE as u64 {
        return Err(format!(
            "its longest message has {} bytes, and this transport needs {SAFE_MESSAGE}",
            facts.longest
        ));
    }
    if let (Puts::Rma, Some(why)) = (&puts, facts.splits_words()) {
        return Err(format!(
            "OXSHMEM_OFI_PUTS=rma: {why}, so a PE that waits for a word may see a part of it; leave it at auto"
        ));
    }
    let (puts, why) = match puts {
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
    let (atomics, why_atomics) = path_of_atomics(facts, atomics)?;
    let guarantees = match puts {
        PutPath::Messages => by_messages(facts),
        PutPath::Rma => by_rma(facts),
    };
    let guarantees = match atomics {
        AtomicPath::Provider => beside_atomics(facts, guarantees),
        AtomicPath::Messages => guarantees,
    };
    Ok(Plan {
        puts,
        why,
        atomics,
        why_atomics,
        guarantees,
    })
}

/// The path of atomics, with its reason, or why the setting cannot be met.
fn path_of_atomics(facts: &Facts, wanted: Atomics) -> Result<(AtomicPath, &'static str), String> {
    let lacks = if facts.caps & bits::ATOMIC == 0 {
        Some("the provider has no atomics (FI_ATOMIC)")
    } else if !facts.delivers {
        Some(
            "the provider does not say when an atomic is visible at its target (FI_DELIVERY_COMPLETE)",
        )
    } else {
        None
    };
    match (wanted, lacks) {
        (Atomics::Messages, _) => Ok((AtomicPath::Messages, "OXSHMEM_OFI_ATOMICS says so")),
        (Atomics::Provider, Some(why)) => Err(format!(
            "OXSHMEM_OFI_ATOMICS=provider: {why}; leave it at auto"
        )),
        (Atomics::Provider, None) => Ok((AtomicPath::Provider, "OXSHMEM_OFI_ATOMICS says so")),
        (Atomics::Auto, _) if !facts.has_atomics_of_nic() => Ok((
            AtomicPath::Messages,
            "no NIC performs the provider's, and they exclude each other alone",
        )),
        (Atomics::Auto, Some(why)) => Ok((AtomicPath::Messages, why)),
        (Atomics::Auto, None) => Ok((AtomicPath::Provider, "a NIC performs them")),
    }
}

/// The same guarantees where atomics of the provider are beside puts, messages and gets. They have no order with messages,
/// which other calls of the target serve, and signals are messages, too. Reads and writes pass them, unless reads of all
/// kinds are kept in order.
fn beside_atomics(facts: &Facts, guarantees: Guarantees) -> Guarantees {
    Guarantees {
        put_atomic: false,
        atomic_put: false,
        atomic_atomic: false,
        get_get: facts.order & bits::ORDER_RAR != 0,
        ..guarantees
    }
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

/// The capabilities of a domain with this plan, whose endpoint has these atomics.
pub(crate) fn capabilities(
    facts: &Facts,
    plan: &Plan,
    atomics: AtomicTable,
    gpu: bool,
) -> Capabilities {
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
        atomics,
        memory: match gpu {
            true => &MemoryKind::ALL,
            false => &[MemoryKind::Host],
        },
        depth: Some(DEPTH as u32),
        wire_up: WireUp::None,
        pins: gpu || facts.mr_mode & bits::MR_ALLOCATED != 0,
        batch: match plan.puts {
            PutPath::Messages => BATCH,
            PutPath::Rma => 1,
        },
        message: MESSAGE as u32,
        passive_target: true,
        moves_in_calls: facts.moves_in_calls(),
        acknowledges: true,
    }
}

/// The plan in words, for `oxshmem info`.
pub(crate) fn explain(facts: &Facts, plan: &Plan, has_atomics: bool) -> String {
    let puts = match plan.puts {
        PutPath::Rma => "puts are its writes",
        PutPath::Messages => "puts are messages, which the target's CPU copies",
    };
    let (atomics, why) = match plan.atomics {
        AtomicPath::Provider if !has_atomics => (
            "atomics are messages, which the target's CPU performs",
            "one of the two providers has no sum or compare-and-swap of 64 bits",
        ),
        AtomicPath::Provider => ("its atomics of 64 bits are as a NIC's", plan.why_atomics),
        AtomicPath::Messages => (
            "atomics are messages, which the target's CPU performs",
            plan.why_atomics,
        ),
    };
    let progress = match facts.moves_in_calls() {
        true => "data moves by this process's own thread",
        false => "the provider moves data by itself",
    };
    format!(
        "{} on {}: {puts} ({}); {atomics} ({why}); {progress}",
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

    const NO_ATOMICS: AtomicTable = AtomicTable::uniform(AtomicLevel::None);

    fn judge(facts: &Facts, puts: Puts) -> Result<Plan, String> {
        plan(facts, puts, Atomics::Auto)
    }

    fn tcp_with_atomics() -> Facts {
        of_dump(include_str!("../tests/fixtures/tcp-rxm-atomic-1.17.txt"))
    }

    fn cxi() -> Facts {
        of_dump(include_str!("../tests/fixtures/cxi-2.0.txt"))
    }

    fn efa() -> Facts {
        of_dump(include_str!("../tests/fixtures/efa-2.0.txt"))
    }

    fn opx() -> Facts {
        of_dump(include_str!("../tests/fixtures/opx-1.20.txt"))
    }

    fn psm3() -> Facts {
        of_dump(include_str!("../tests/fixtures/psm3-1.20.txt"))
    }

    #[test]
    fn m17_messages_keep_every_order_but_that_of_gets_whatever_the_provider_keeps() {
        for facts in [tcp(), efa()] {
            let plan = judge(&facts, Puts::Auto).unwrap();
            assert_eq!(plan.puts, PutPath::Messages, "{facts:?}");
            let promised = plan.guarantees;
            assert!(promised.put_put && promised.put_message && promised.put_atomic);
            assert!(!promised.put_get && !promised.across_lanes);
            assert_eq!(promised.completion, Completion::Placed);
        }
        assert!(judge(&tcp(), Puts::Auto).unwrap().guarantees.get_get);
        assert!(!judge(&efa(), Puts::Auto).unwrap().guarantees.get_get);
    }

    #[test]
    fn m17_writes_have_only_the_order_that_holds_for_data_of_every_size() {
        let rma = |facts: &Facts| judge(facts, Puts::SplitRma).unwrap().guarantees;
        assert!(rma(&tcp()).put_put && rma(&tcp()).put_get);
        // It keeps the order that is asked for, and none is; nor is a read kept behind a write then.
        assert!(!rma(&cxi()).put_put);
        let ordered = of_dump(include_str!("../tests/fixtures/cxi-ordered-2.0.txt"));
        assert!(rma(&ordered).put_put && !rma(&ordered).put_get);
        // It keeps the order of reads and that of atomics, and none between the two.
        let without = plan(&ordered, Puts::Auto, Atomics::Messages).unwrap();
        assert!(without.guarantees.get_get && !rma(&ordered).get_get);
        // Its order holds for short writes alone.
        assert!(!rma(&psm3()).put_put && !rma(&psm3()).put_get);
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
        let path = |facts: &Facts| judge(facts, Puts::Auto).unwrap().puts;
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
            let why = judge(&facts, Puts::Rma).unwrap_err();
            let named = why.contains("OXSHMEM_OFI_PUTS=rma") && why.contains("auto");
            assert!(named && why.contains(facts.core_provider()), "{why}");
        }
        for facts in [cxi(), efa()] {
            assert_eq!(judge(&facts, Puts::Rma).unwrap().puts, PutPath::Rma);
        }
    }

    #[test]
    fn m19_without_an_end_at_delivery_puts_are_messages() {
        let silent = Facts {
            delivers: false,
            ..cxi()
        };
        assert_eq!(judge(&silent, Puts::Auto).unwrap().puts, PutPath::Messages);
        let why = judge(&silent, Puts::Rma).unwrap_err();
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
            let plan = judge(&facts, Puts::Auto).unwrap();
            let capabilities = capabilities(&facts, &plan, NO_ATOMICS, false);
            assert_eq!(capabilities.get.unregistered, capabilities.get.max);
            assert!(!capabilities.pins);
        }
    }

    #[test]
    fn a_provider_that_wants_keys_for_local_memory_has_a_limit_without_one() {
        let facts = Facts {
            mr_mode: efa().mr_mode | bits::MR_LOCAL,
            ..efa()
        };
        let plan = judge(&facts, Puts::Auto).unwrap();
        let capabilities = capabilities(&facts, &plan, NO_ATOMICS, false);
        assert_eq!(capabilities.get.unregistered, UNREGISTERED as u64);
        // The sources of messages are copied.
        assert_eq!(capabilities.put.unregistered, capabilities.put.max);
        assert!(capabilities.pins);
    }

    #[test]
    fn each_fabric_has_a_plan_by_its_documented_limits() {
        use AtomicPath::{Messages as ByMessages, Provider};
        // Provider, puts, atomics, the longest put and get, gets without a key, pinning, calls that move data.
        let one = |facts: Facts| {
            let plan = judge(&facts, Puts::Auto).unwrap();
            let limits = capabilities(&facts, &plan, NO_ATOMICS, false);
            let keys = limits.get.unregistered < limits.get.max;
            let moves = limits.moves_in_calls;
            (
                plan.puts,
                plan.atomics,
                limits.get.max,
                keys,
                limits.pins,
                moves,
            )
        };
        let messages = PutPath::Messages;
        let gib = 1 << 30;
        assert_eq!(one(cxi()), (PutPath::Rma, Provider, gib, false, true, true));
        assert_eq!(one(efa()), (messages, ByMessages, gib, false, true, true));
        assert_eq!(one(opx()), (messages, ByMessages, gib, false, false, true));
        assert_eq!(
            one(psm3()),
            (messages, ByMessages, gib, false, false, false)
        );
    }

    #[test]
    fn efas_fabric_of_short_messages_is_refused_by_name() {
        let direct = of_dump(include_str!("../tests/fixtures/efa-direct-2.1.txt"));
        let why = judge(&direct, Puts::Auto).unwrap_err();
        assert!(why.contains("efa-direct") && why.contains("16384"), "{why}");
    }

    #[test]
    fn m29_atomics_of_a_provider_are_used_where_a_nic_performs_them_or_the_user_says_so() {
        let path = |facts: &Facts, wanted| {
            let plan = plan(facts, Puts::Auto, wanted);
            plan.map(|plan| plan.atomics)
        };
        for facts in [efa(), opx(), psm3(), tcp_with_atomics()] {
            assert_eq!(path(&facts, Atomics::Auto), Ok(AtomicPath::Messages));
            assert_eq!(path(&facts, Atomics::Provider), Ok(AtomicPath::Provider));
        }
        assert_eq!(path(&cxi(), Atomics::Auto), Ok(AtomicPath::Provider));
        assert_eq!(path(&cxi(), Atomics::Messages), Ok(AtomicPath::Messages));
        let silent = Facts {
            delivers: false,
            ..cxi()
        };
        assert_eq!(path(&silent, Atomics::Auto), Ok(AtomicPath::Messages));
        for (facts, word) in [(tcp(), "FI_ATOMIC"), (silent, "FI_DELIVERY_COMPLETE")] {
            let why = path(&facts, Atomics::Provider).unwrap_err();
            let named = why.contains("OXSHMEM_OFI_ATOMICS=provider") && why.contains(word);
            assert!(named, "{why}");
        }
    }

    #[test]
    fn m17_atomics_of_a_provider_have_no_order_with_messages_and_writes() {
        for (facts, puts) in [
            (tcp_with_atomics(), Puts::Auto),
            (tcp_with_atomics(), Puts::SplitRma),
            (cxi(), Puts::Auto),
        ] {
            let promised = plan(&facts, puts, Atomics::Provider).unwrap().guarantees;
            assert!(!promised.put_atomic && !promised.atomic_put && !promised.atomic_atomic);
            assert!(!promised.get_get);
        }
    }

    #[test]
    fn m29_the_explanation_says_who_performs_atomics_and_why() {
        let told = |facts: &Facts, has| explain(facts, &judge(facts, Puts::Auto).unwrap(), has);
        let tcp = told(&tcp(), false);
        assert!(
            tcp.contains("atomics are messages") && tcp.contains("no NIC"),
            "{tcp}"
        );
        assert!(told(&cxi(), true).contains("as a NIC's (a NIC performs them)"));
        assert!(told(&cxi(), false).contains("one of the two providers"));
    }

    #[test]
    fn what_the_transport_cannot_meet_is_refused_with_the_reason() {
        let refused = |facts: Facts| judge(&facts, Puts::Auto).unwrap_err();
        let caps = bits::MSG;
        assert!(refused(Facts { caps, ..tcp() }).contains("no messages, reads or writes"));
        assert!(
            refused(Facts {
                mode: crate::fabric::sys::FI_ASYNC_IOV,
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
        let longest = SAFE_MESSAGE as u64 - 1;
        let why = refused(Facts { longest, ..tcp() });
        assert!(
            why.contains("has 16383 bytes, and this transport needs 16384"),
            "{why}"
        );
    }
}
