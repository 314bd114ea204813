//! The capabilities and guarantees of a domain, and the peers towards which they hold: pure decisions.

use oxshmem_transport::{
    AtomicLevel, AtomicOp, AtomicTable, Capabilities, Completion, GpuFlush, Guarantees, Limits,
    MemoryKind, SignalSupport, Width, WireUp,
};

use crate::ibv::sys::ibv_atomic_cap;
use crate::limits::{BATCH, MESSAGE, UNREGISTERED};
use crate::rails::Rails;
use crate::wire::TargetProperties;

/// The level of atomics that change a word. A device's claim that its atomics are the CPU's, too
/// (`IBV_ATOMIC_GLOB`), is believed if it is `trusted`: of a program, or made by atomics of the bus. Others claim it with
/// various meanings.
pub(super) fn atomic_level(claimed: ibv_atomic_cap::Type, trusted: bool) -> AtomicLevel {
    match claimed {
        ibv_atomic_cap::IBV_ATOMIC_NONE => AtomicLevel::None,
        ibv_atomic_cap::IBV_ATOMIC_GLOB if trusted => AtomicLevel::Cpu,
        _ => AtomicLevel::Nic,
    }
}

/// The belief in a device's claim that its atomics are the CPU's, too, in words; none where it makes no such claim.
/// `gpu`: whether it reaches GPU memory.
pub(super) fn explain_claim(
    claimed: ibv_atomic_cap::Type,
    pci_atomics: bool,
    gpu: bool,
) -> Option<&'static str> {
    (claimed == ibv_atomic_cap::IBV_ATOMIC_GLOB).then_some(match (pci_atomics, gpu) {
        (false, _) => {
            "this PE's NIC claims that its atomics are the CPU's, too (IBV_ATOMIC_GLOB), which is not \
             believed, since it reports no atomics of the PCIe bus"
        }
        (true, true) => {
            "this PE's NIC has atomics of the PCIe bus, which exclude the CPU's and not those of the \
             GPU, whose memory it reaches: they count as the NIC's alone"
        }
        (true, false) => {
            "this PE's NIC has atomics of the PCIe bus, which count as the CPU's (IBV_ATOMIC_GLOB)"
        }
    })
}

/// The capabilities of a device. `gpu`: whether it reaches GPU memory.
pub(super) fn capabilities(rails: &Rails, gpu: bool) -> Capabilities {
    let port_state = &rails.primary;
    let (port, in_order) = (&port_state.port, port_state.placement.in_order());
    let max = u64::from(port.attributes.largest_message).clamp(UNREGISTERED as u64, 1 << 30);
    let cpu = AtomicLevel::Cpu;
    // Exclusive against the CPU's is not exclusive against a GPU's on its own memory (M29).
    let trusted = !gpu && (port.software || port.limits.pci_atomics);
    let changing = atomic_level(port.limits.atomics, trusted);
    let limits = |inline| Limits {
        max,
        align: 1,
        unregistered: UNREGISTERED as u64,
        inline,
        ordered: rails.ordered(),
    };
    Capabilities {
        put: limits(UNREGISTERED as u64),
        get: limits(0),
        put_signal: match changing {
            AtomicLevel::None => SignalSupport::None,
            // Such a device has no fence that holds the signal back.
            _ if port.software && !in_order => SignalSupport::None,
            level => SignalSupport::Native(level),
        },
        // An aligned word is read and written whole, so as a CPU does it.
        atomics: AtomicTable::uniform(AtomicLevel::None)
            .with(AtomicOp::Fetch, Width::W64, cpu)
            .with(AtomicOp::Set, Width::W64, cpu)
            .with(AtomicOp::Add, Width::W64, changing)
            .with(AtomicOp::CompareSwap, Width::W64, changing),
        memory: if gpu {
            &[MemoryKind::Host, MemoryKind::Cuda]
        } else {
            &[MemoryKind::Host]
        },
        depth: Some(port_state.depth),
        wire_up: WireUp::PerLane,
        pins: true,
        batch: BATCH,
        message: MESSAGE as u32,
        passive_target: true,
        moves_in_calls: false,
        acknowledges: false,
    }
}

/// The order that a reliable connection keeps. `relaxed`: puts may pass each other on the way to memory.
pub(super) fn guarantees(relaxed: bool, target: TargetProperties) -> Guarantees {
    let in_order = target.placement.in_order();
    Guarantees {
        put_put: in_order && !relaxed && target.has_strict_keys,
        // By the strict keys from there on.
        put_fence_put: in_order && target.has_strict_keys,
        // An atomic passes no write before it, and the lane itself holds back Set and Fetch, which are a write and a read.
        // By a relaxed key the end of an atomic is one more write, which may pass others.
        put_atomic: target.has_strict_keys,
        // A responder may perform a write before an atomic that was sent before it.
        atomic_put: false,
        // By the fence that the lane sets where the hardware would not keep it.
        atomic_atomic: true,
        put_message: true,
        // A target that places out of order may serve a read before a write.
        put_get: in_order,
        get_get: in_order,
        across_lanes: false,
        completion: Completion::Accepted,
        gpu_flush: GpuFlush::None,
    }
}

/// The guarantees towards GPU memory. The PCIe bus keeps the order of writes to one device only. No order
/// is promised between a write to the GPU and one to host memory, in either direction; a promise for both
/// kinds would mean that to the core. A [flush](oxshmem_transport::Op::Flush) reads both.
pub(super) fn guarantees_on_gpu(flush: bool, in_order: bool) -> Guarantees {
    Guarantees {
        put_get: in_order,
        get_get: in_order,
        completion: Completion::Accepted,
        gpu_flush: if flush {
            GpuFlush::Target
        } else {
            GpuFlush::None
        },
        ..Guarantees::NONE
    }
}

/// The put-with-signal towards targets with these properties, of a device that offers `signals`; `software`: it has no
/// fences, by which hardware holds a signal behind its data. Where there is none, the core flushes between the two.
pub(super) fn signals_towards(
    signals: SignalSupport,
    software: bool,
    target: TargetProperties,
) -> SignalSupport {
    let (in_order, strict) = (target.placement.in_order(), target.has_strict_keys);
    let held = !software || (in_order && strict);
    match held && target.has_atomics {
        true => signals,
        false => SignalSupport::None,
    }
}

/// The atomics of a device that has `own`, towards a target with these properties: a word belongs to the NIC of the PE that
/// has it, so that NIC must perform them (M29).
pub(super) fn atomics_towards(own: AtomicTable, target: TargetProperties) -> AtomicTable {
    if target.has_atomics {
        return own;
    }
    [AtomicOp::Add, AtomicOp::CompareSwap]
        .into_iter()
        .fold(own, |table, op| {
            table.with(op, Width::W64, AtomicLevel::None)
        })
}

/// Whether a device keeps, as a target, all that another one promises.
pub(super) fn promises_no_less(one: TargetProperties, other: TargetProperties) -> bool {
    one.placement.in_order() >= other.placement.in_order()
        && one.has_strict_keys >= other.has_strict_keys
        && one.has_atomics >= other.has_atomics
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::Placement;

    #[test]
    fn m17_only_targets_that_place_writes_in_order_get_the_promises_that_stand_on_it() {
        let of = |placement| {
            let target = TargetProperties {
                placement,
                has_strict_keys: true,
                has_atomics: true,
            };
            guarantees(false, target)
        };
        let (kept, lost) = (of(Placement::DeviceInOrder), of(Placement::NotAnswered));
        assert!(kept.put_put && kept.put_get && kept.get_get);
        assert!(!lost.put_put && !lost.put_get && !lost.get_get && !lost.put_fence_put);
        // An atomic and a message wait for the writes before them.
        assert!(lost.put_atomic && lost.put_message);
        for flush in [false, true] {
            assert!(guarantees_on_gpu(flush, true).put_get);
            assert!(!guarantees_on_gpu(flush, false).put_get);
        }
    }

    #[test]
    fn m29_a_claim_that_atomics_are_the_cpus_needs_a_reason() {
        let glob = ibv_atomic_cap::IBV_ATOMIC_GLOB;
        assert_eq!(atomic_level(glob, false), AtomicLevel::Nic);
        assert_eq!(atomic_level(glob, true), AtomicLevel::Cpu);
        for trusted in [false, true] {
            let level = |claimed| atomic_level(claimed, trusted);
            assert_eq!(level(ibv_atomic_cap::IBV_ATOMIC_HCA), AtomicLevel::Nic);
            assert_eq!(level(ibv_atomic_cap::IBV_ATOMIC_NONE), AtomicLevel::None);
        }
    }

    #[test]
    fn m29_the_belief_in_a_claim_is_told() {
        let glob = ibv_atomic_cap::IBV_ATOMIC_GLOB;
        for (pci_atomics, gpu, word) in [
            (
                false,
                false,
                "not believed, since it reports no atomics of the PCIe bus",
            ),
            (false, true, "not believed"),
            (true, true, "not those of the GPU"),
            (true, false, "count as the CPU's"),
        ] {
            let told = explain_claim(glob, pci_atomics, gpu).unwrap();
            assert!(told.contains(word), "{told}");
            let hca = ibv_atomic_cap::IBV_ATOMIC_HCA;
            assert_eq!(explain_claim(hca, pci_atomics, gpu), None);
        }
    }

    #[test]
    fn m29_no_atomic_goes_to_a_nic_without() {
        let target = |has_atomics| TargetProperties {
            placement: Placement::Known,
            has_strict_keys: true,
            has_atomics,
        };
        let cpu = AtomicLevel::Cpu;
        let own = AtomicTable::uniform(AtomicLevel::None)
            .with(AtomicOp::Fetch, Width::W64, cpu)
            .with(AtomicOp::Set, Width::W64, cpu)
            .with(AtomicOp::Add, Width::W64, AtomicLevel::Nic)
            .with(AtomicOp::CompareSwap, Width::W64, AtomicLevel::Nic);
        assert_eq!(atomics_towards(own, target(true)), own);
        let left = atomics_towards(own, target(false));
        for op in AtomicOp::ALL {
            // A read and a write are no atomics of the NIC.
            let level = match op {
                AtomicOp::Fetch | AtomicOp::Set => cpu,
                _ => AtomicLevel::None,
            };
            assert_eq!(left.level(op, Width::W64), level, "{op}");
        }
        for level in [AtomicLevel::Nic, cpu] {
            let signals = SignalSupport::Native(level);
            assert_eq!(signals_towards(signals, false, target(true)), signals);
            let towards = signals_towards(signals, false, target(false));
            assert_eq!(towards, SignalSupport::None);
        }
    }

    #[test]
    fn m17_a_nic_that_promises_less_takes_no_ones_place() {
        let target = |placement, has_strict_keys, has_atomics| TargetProperties {
            placement,
            has_strict_keys,
            has_atomics,
        };
        let (keeps, reorders) = (Placement::Known, Placement::DeviceOutOfOrder);
        let full = target(keeps, true, true);
        for less in [
            target(reorders, true, true),
            target(keeps, false, true),
            target(keeps, true, false),
        ] {
            assert!(!promises_no_less(less, full), "{less:?}");
            assert!(promises_no_less(full, less) && promises_no_less(less, less));
        }
    }

    #[test]
    fn m17_writes_that_pass_each_other_on_the_bus_are_promised_no_order() {
        let of = |relaxed, has_strict_keys| {
            let target = TargetProperties {
                placement: Placement::Known,
                has_strict_keys,
                has_atomics: true,
            };
            guarantees(relaxed, target)
        };
        assert!(of(false, true).put_put && of(false, true).put_atomic);
        // Atomics have keys of their own.
        assert!(!of(true, true).put_put && of(true, true).put_atomic);
        // And so have puts after a fence.
        assert!(of(true, true).put_fence_put);
        for relaxed in [false, true] {
            let only = of(relaxed, false);
            assert!(!only.put_put && !only.put_atomic && !only.put_fence_put);
            // A read passes no write there, and completions follow what they complete.
            assert!(only.put_get && only.put_message);
        }
    }

    #[test]
    fn m22_signals_are_offered_where_both_ends_hold_them_behind_their_data() {
        let target = |placement, has_strict_keys, has_atomics| TargetProperties {
            placement,
            has_strict_keys,
            has_atomics,
        };
        let native = SignalSupport::Native(AtomicLevel::Nic);
        let (keeps, reorders) = (Placement::Known, Placement::DeviceOutOfOrder);
        for (target, by_software, by_hardware) in [
            (target(keeps, true, true), true, true),
            (target(keeps, false, true), false, true),
            (target(reorders, true, true), false, true),
            // Without atomics there is no word for the barrier.
            (target(reorders, true, false), false, false),
        ] {
            for (software, offered) in [(true, by_software), (false, by_hardware)] {
                let towards = signals_towards(native, software, target);
                assert_eq!(towards == native, offered, "{software} {target:?}");
                let none = signals_towards(SignalSupport::None, software, target);
                assert_eq!(none, SignalSupport::None);
            }
        }
    }
}
