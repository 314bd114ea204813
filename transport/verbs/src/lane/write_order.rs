//! The requests that keep operations behind the writes before them, by the target's order of writes: pure
//! decisions.
//!
//! Two things may break that order. The target's device may place writes in any order; it performs an atomic after all
//! writes before it. So a *barrier* is an atomic on the target's flush word that changes nothing. Or it has relaxed keys only,
//! so that its writes pass each other on the bus; a read passes none of them there. So the *read-back* of a byte comes
//! after them. A request with a fence waits at this side's NIC until both have completed.

use crate::wire::TargetOrder;

/// The requests of a flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlushPlan {
    /// Reads of the memory that was written.
    Read,
    /// A barrier.
    Barrier,
    /// A barrier, and fenced reads.
    BarrierThenRead,
    /// None until all requests before it have completed.
    Wait,
}

/// The plan of a flush. `in_flight`: whether requests are in flight; `gpu_written`: whether GPU memory was written since the
/// last flush; `has_fences`: whether this side's NIC holds requests back.
#[inline]
pub(crate) fn flush_plan(
    order: TargetOrder,
    in_flight: bool,
    gpu_written: bool,
    has_fences: bool,
) -> FlushPlan {
    if order.in_order || !in_flight {
        return FlushPlan::Read;
    }
    match order.flush_word {
        // The atomic itself reads host memory in order.
        Some(_) if !gpu_written && order.has_strict_keys => FlushPlan::Barrier,
        Some(_) if has_fences => FlushPlan::BarrierThenRead,
        _ => FlushPlan::Wait,
    }
}

/// The requests between writes and a request that must follow them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hold {
    pub(crate) barrier: bool,
    /// A read of the memory that was written, fenced if there is a barrier.
    pub(crate) read_back: bool,
}

impl Hold {
    /// Whether the request that follows is fenced.
    #[inline]
    pub(crate) fn is_fenced(self) -> bool {
        self.barrier || self.read_back
    }
}

/// The hold of a signal behind its data; none if the two ends cannot do it. `is_write`: whether the signal is set,
/// by a write; `across`: whether data and signal lie in the memory of two devices.
#[inline]
pub(crate) fn signal_hold(
    order: TargetOrder,
    is_write: bool,
    across: bool,
    has_fences: bool,
) -> Option<Hold> {
    // The bus keeps no order between two devices' memory: the data is there when a byte of it was read.
    // A software device stores all itself.
    let read_back = (across || !order.has_strict_keys) && has_fences;
    let barrier = !order.in_order && (is_write || read_back);
    if !has_fences && (barrier || !order.has_strict_keys) || barrier && order.flush_word.is_none() {
        return None;
    }
    Some(Hold { barrier, read_back })
}

/// The hold of the write or the read of one word behind the writes before it; none if it has to wait until all requests
/// before it have completed. `in_flight`: whether there are any.
#[inline]
pub(crate) fn word_hold(
    order: TargetOrder,
    is_write: bool,
    in_flight: bool,
    has_fences: bool,
) -> Option<Hold> {
    // Completed writes may still be on the bus, where no read passes them.
    let read_back = is_write && !order.has_strict_keys;
    let barrier = !order.in_order && in_flight;
    if barrier && (order.flush_word.is_none() || !has_fences) {
        return None;
    }
    Some(Hold { barrier, read_back })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::FlushWord;

    const WITHOUT_WORD: TargetOrder = TargetOrder {
        in_order: false,
        ..TargetOrder::KEPT
    };
    const WITH_WORD: TargetOrder = TargetOrder {
        flush_word: Some(FlushWord {
            addr: 0x1000,
            rkey: 7,
        }),
        ..WITHOUT_WORD
    };
    /// In order on the wire, but not on the bus.
    const RELAXED: TargetOrder = TargetOrder {
        has_strict_keys: false,
        ..TargetOrder::KEPT
    };
    const NEITHER: TargetOrder = TargetOrder {
        has_strict_keys: false,
        ..WITH_WORD
    };
    const NOTHING: Hold = Hold {
        barrier: false,
        read_back: false,
    };
    const BARRIER: Hold = Hold {
        barrier: true,
        ..NOTHING
    };
    const READ_BACK: Hold = Hold {
        read_back: true,
        ..NOTHING
    };
    const BOTH: Hold = Hold {
        barrier: true,
        read_back: true,
    };

    #[test]
    fn m27_no_read_flushes_writes_that_it_may_overtake() {
        for gpu_written in [false, true] {
            for has_fences in [false, true] {
                let plan = |order, in_flight| flush_plan(order, in_flight, gpu_written, has_fences);
                assert_eq!(plan(TargetOrder::KEPT, true), FlushPlan::Read);
                // On the bus no read passes a write, relaxed or not.
                assert_eq!(plan(RELAXED, true), FlushPlan::Read);
                // Completed writes are accepted.
                assert_eq!(plan(WITH_WORD, false), FlushPlan::Read);
                assert_eq!(plan(WITHOUT_WORD, false), FlushPlan::Read);
                assert_ne!(plan(WITH_WORD, true), FlushPlan::Read);
                assert_eq!(plan(WITHOUT_WORD, true), FlushPlan::Wait);
            }
        }
        let plan =
            |order, gpu_written, has_fences| flush_plan(order, true, gpu_written, has_fences);
        assert_eq!(plan(WITH_WORD, false, false), FlushPlan::Barrier);
        assert_eq!(plan(WITH_WORD, true, true), FlushPlan::BarrierThenRead);
        assert_eq!(plan(NEITHER, false, true), FlushPlan::BarrierThenRead);
        assert_eq!(plan(WITH_WORD, true, false), FlushPlan::Wait);
    }

    #[test]
    fn m22_a_signal_by_a_write_waits_for_data_that_is_placed_in_any_order() {
        let hold = |order, is_write| signal_hold(order, is_write, false, true);
        assert_eq!(hold(TargetOrder::KEPT, true), Some(NOTHING));
        assert_eq!(hold(WITH_WORD, true), Some(BARRIER));
        // The target holds an atomic itself.
        assert_eq!(hold(WITH_WORD, false), Some(NOTHING));
        assert_eq!(hold(WITHOUT_WORD, false), Some(NOTHING));
        // Nothing holds it: such an end offers no put-with-signal.
        assert_eq!(hold(WITHOUT_WORD, true), None);
        assert_eq!(signal_hold(WITH_WORD, true, false, false), None);
    }

    #[test]
    fn m22_a_signal_waits_until_its_data_was_read_where_writes_pass_each_other_on_the_bus() {
        for is_write in [false, true] {
            let hold = |order| signal_hold(order, is_write, false, true);
            assert_eq!(hold(RELAXED), Some(READ_BACK));
            assert_eq!(hold(NEITHER), Some(BOTH));
            assert_eq!(signal_hold(RELAXED, is_write, false, false), None);
        }
    }

    #[test]
    fn m22_between_two_devices_memory_the_data_is_read_before_the_signal() {
        for is_write in [false, true] {
            let hold = |order| signal_hold(order, is_write, true, true);
            assert_eq!(hold(TargetOrder::KEPT), Some(READ_BACK));
            assert_eq!(hold(WITH_WORD), Some(BOTH));
        }
    }

    #[test]
    fn m20_words_are_read_and_written_after_the_writes_before_them() {
        let hold = |order, is_write, in_flight| word_hold(order, is_write, in_flight, true);
        for is_write in [false, true] {
            assert_eq!(hold(TargetOrder::KEPT, is_write, true), Some(NOTHING));
            assert_eq!(hold(WITH_WORD, is_write, false), Some(NOTHING));
            assert_eq!(hold(WITH_WORD, is_write, true), Some(BARRIER));
            assert_eq!(hold(WITHOUT_WORD, is_write, true), None);
            assert_eq!(word_hold(WITH_WORD, is_write, true, false), None);
        }
        // Even completed writes may be passed by a write, and never by a read.
        for in_flight in [false, true] {
            assert_eq!(hold(RELAXED, true, in_flight), Some(READ_BACK));
            assert_eq!(hold(RELAXED, false, in_flight), Some(NOTHING));
        }
    }
}
