//! The requests that keep operations behind the writes before them, by the target's order of writes: pure
//! decisions.
//!
//! A *barrier* is an atomic on the target's flush word that changes nothing. A target performs it after all writes
//! before it, whatever order it places those in. A request with a fence waits at this side's NIC until
//! the barrier has completed.

use crate::wire::TargetOrder;

/// The requests of a flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlushPlan {
    /// Reads of the memory that was written.
    Read,
    /// A barrier.
    Barrier,
    /// A barrier, and a fenced read of the GPU's memory.
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
        Some(_) if !gpu_written => FlushPlan::Barrier,
        Some(_) if has_fences => FlushPlan::BarrierThenRead,
        _ => FlushPlan::Wait,
    }
}

/// The requests between the data and the signal of a put-with-signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SignalPlan {
    pub(crate) barrier: bool,
    /// A read of the data's memory, fenced if there is a barrier.
    pub(crate) read_back: bool,
    /// Whether the signal is fenced.
    pub(crate) is_fenced: bool,
}

/// The plan of a put-with-signal that has data; none if the two ends cannot do it. `is_write`: whether the signal is set,
/// by a write; `across`: whether data and signal lie in the memory of two devices.
#[inline]
pub(crate) fn signal_plan(
    order: TargetOrder,
    is_write: bool,
    across: bool,
    has_fences: bool,
) -> Option<SignalPlan> {
    // The bus keeps no order between two devices' memory: the data is there when a byte of it was read.
    // A software device stores all itself.
    let read_back = across && has_fences;
    let barrier = !order.in_order && (is_write || read_back);
    if barrier && (order.flush_word.is_none() || !has_fences) {
        return None;
    }
    Some(SignalPlan {
        barrier,
        read_back,
        is_fenced: barrier || read_back,
    })
}

/// The way in which a read or a write comes after the writes before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AfterWrites {
    /// By itself.
    Kept,
    /// With a fence, behind a barrier.
    Barrier,
    /// When all requests before it have completed.
    Wait,
}

/// The way of a read or write of one word.
#[inline]
pub(crate) fn after_writes(order: TargetOrder, in_flight: bool, has_fences: bool) -> AfterWrites {
    if order.in_order || !in_flight {
        AfterWrites::Kept
    } else if order.flush_word.is_some() && has_fences {
        AfterWrites::Barrier
    } else {
        AfterWrites::Wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::FlushWord;

    const WITHOUT_WORD: TargetOrder = TargetOrder {
        in_order: false,
        flush_word: None,
    };
    const WITH_WORD: TargetOrder = TargetOrder {
        in_order: false,
        flush_word: Some(FlushWord {
            addr: 0x1000,
            rkey: 7,
        }),
    };

    #[test]
    fn m27_no_read_flushes_writes_that_it_may_overtake() {
        for gpu_written in [false, true] {
            for has_fences in [false, true] {
                let plan = |order, in_flight| flush_plan(order, in_flight, gpu_written, has_fences);
                assert_eq!(plan(TargetOrder::KEPT, true), FlushPlan::Read);
                // Completed writes are accepted, and on the bus no read passes them.
                assert_eq!(plan(WITH_WORD, false), FlushPlan::Read);
                assert_eq!(plan(WITHOUT_WORD, false), FlushPlan::Read);
                assert_ne!(plan(WITH_WORD, true), FlushPlan::Read);
                assert_eq!(plan(WITHOUT_WORD, true), FlushPlan::Wait);
            }
        }
        assert_eq!(
            flush_plan(WITH_WORD, true, false, false),
            FlushPlan::Barrier
        );
        assert_eq!(
            flush_plan(WITH_WORD, true, true, true),
            FlushPlan::BarrierThenRead
        );
        assert_eq!(flush_plan(WITH_WORD, true, true, false), FlushPlan::Wait);
    }

    #[test]
    fn m22_a_signal_by_a_write_waits_for_data_that_is_placed_in_any_order() {
        let plan = |order, is_write| signal_plan(order, is_write, false, true).unwrap();
        assert!(!plan(TargetOrder::KEPT, true).is_fenced);
        let set = plan(WITH_WORD, true);
        assert!(set.barrier && set.is_fenced && !set.read_back);
        // The target holds an atomic itself.
        assert!(!plan(WITH_WORD, false).is_fenced);
        assert!(!plan(WITHOUT_WORD, false).is_fenced);
        // Nothing holds it: such an end offers no put-with-signal.
        assert_eq!(signal_plan(WITHOUT_WORD, true, false, true), None);
        assert_eq!(signal_plan(WITH_WORD, true, false, false), None);
    }

    #[test]
    fn m22_between_two_devices_memory_the_data_is_read_before_the_signal() {
        let kept = signal_plan(TargetOrder::KEPT, true, true, true).unwrap();
        assert!(!kept.barrier && kept.read_back && kept.is_fenced);
        for is_write in [false, true] {
            let plan = signal_plan(WITH_WORD, is_write, true, true).unwrap();
            assert!(plan.barrier && plan.read_back && plan.is_fenced);
        }
    }

    #[test]
    fn m20_words_are_read_and_written_after_the_writes_before_them() {
        assert_eq!(
            after_writes(TargetOrder::KEPT, true, true),
            AfterWrites::Kept
        );
        assert_eq!(after_writes(WITH_WORD, false, true), AfterWrites::Kept);
        assert_eq!(after_writes(WITH_WORD, true, true), AfterWrites::Barrier);
        assert_eq!(after_writes(WITH_WORD, true, false), AfterWrites::Wait);
        assert_eq!(after_writes(WITHOUT_WORD, true, true), AfterWrites::Wait);
    }
}
