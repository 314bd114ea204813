//! The conformance suite: it holds a transport to its declarations.
//!
//! A transport's tests implement [`Harness`] and call [`run`]; every entry of
//! [`Capabilities`](crate::Capabilities) and [`Guarantees`](crate::Guarantees) is then tried, and an
//! operation that is not declared must be refused. All PEs of a check live in this process, each with its
//! own domain and lanes. The [`Report`] names each check with its verdict.
//!
//! ```no_run
//! use oxshmem_transport::{Transport, conformance};
//!
//! #[derive(Debug)]
//! struct Mine(Box<dyn Transport>);
//!
//! impl conformance::Harness for Mine {
//!     fn transport(&self) -> &dyn Transport {
//!         &*self.0
//!     }
//! }
//!
//! # fn check(mine: Mine) {
//! let report = conformance::run(&mine);
//! assert!(report.passed(), "{report}");
//! # }
//! ```
//!
//! # Reach
//!
//! - Data moves between memory of one kind, [`Harness::kind`]; of another advertised kind registration
//!   alone is checked. Memory that was not registered is always host memory; memory registered for the local
//!   side alone is of both kinds.
//! - A limit above [`Harness::largest`] is tried at that size instead, and one more than it not at
//!   all: an operation that long would need memory that long.
//! - A check is reported as not applicable if a declaration leaves the transport free.
//! - Orders that only another processor can see are checked by a concurrent reader, which finds a broken
//!   promise with high probability, not with certainty.
//! - Each wait has a deadline. A *call* that never returns hangs the suite, and a transport that
//!   panics fails the check in which it did.

mod area;
mod atomics;
mod failure;
mod flow;
mod harness;
mod lanes;
mod messages;
mod order;
mod report;
mod setup;
mod signals;
mod transfers;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};

pub use self::area::{Contents, host_memory, pages};
pub use self::harness::Harness;
use self::report::{Done, Found};
pub use self::report::{Report, Verdict};

/// Runs every check.
pub fn run(harness: &dyn Harness) -> Report {
    run_where(harness, |_| true)
}

/// Runs the checks whose names `wanted` accepts: for work on one failure.
pub fn run_where(harness: &dyn Harness, wanted: impl Fn(&str) -> bool) -> Report {
    let checks = CHECKS
        .iter()
        .filter(|(name, _)| wanted(name))
        .map(|&(name, check)| {
            let found = catch_unwind(AssertUnwindSafe(|| check(harness)));
            let verdict = match found {
                Ok(Ok(Done::Tried)) => Verdict::Passed,
                Ok(Ok(Done::Free(why))) => Verdict::NotApplicable(why.into()),
                Ok(Err(how)) => Verdict::Failed(how),
                Err(_) => Verdict::Failed("a call panicked; none may".into()),
            };
            (name, verdict)
        })
        .collect();
    Report {
        transport: harness.transport().name(),
        checks,
    }
}

type Check = fn(&dyn Harness) -> Found;

/// Every check, cheapest first.
const CHECKS: &[(&str, Check)] = &[
    ("declarations_agree_with_each_other", setup::declarations),
    ("regions_are_numbered_in_order", setup::numbering),
    ("memory_of_other_kinds_is_refused", setup::other_kinds),
    ("reach_needs_a_sound_address", setup::addresses),
    ("import_needs_a_sound_key", setup::keys),
    ("mapped_regions_are_the_peers_memory", setup::mapped),
    ("lanes_are_wired_as_declared", setup::wiring),
    ("every_pair_of_pes_is_connected", transfers::pairs),
    ("put_at_every_size_and_alignment", transfers::put),
    ("get_at_every_size_and_alignment", transfers::get),
    (
        "unregistered_memory_up_to_the_limit",
        transfers::unregistered,
    ),
    (
        "memory_registered_for_the_local_side_alone",
        transfers::registered,
    ),
    ("inline_sources_are_reusable_at_once", transfers::inline),
    (
        "memory_counted_as_reusable_is_accessed_no_more",
        transfers::reusable,
    ),
    ("sizes_above_the_limit_are_refused", transfers::too_long),
    (
        "ranges_outside_the_region_are_refused",
        transfers::out_of_range,
    ),
    ("unknown_regions_and_pes_are_refused", transfers::unknown),
    ("aligned_words_land_whole", transfers::whole_words),
    ("atomics_compute_what_they_say", atomics::semantics),
    ("undeclared_atomics_are_refused", atomics::undeclared),
    ("misplaced_atomics_are_refused", atomics::misplaced),
    ("atomics_are_exclusive", atomics::exclusive),
    ("put_signal_updates_data_and_signal", signals::semantics),
    ("put_signal_is_refused_where_it_must_be", signals::refusals),
    ("m22_signal_is_not_seen_before_its_data", signals::order),
    ("counters_count", flow::counters),
    (
        "a_refusal_keeps_the_operations_before_it",
        flow::refusal_in_batch,
    ),
    ("full_loses_and_repeats_nothing", flow::full),
    ("flush_places_what_came_before", flow::flush),
    ("put_then_put_in_order", order::put_put),
    ("put_then_fence_then_put_in_order", order::put_fence_put),
    ("put_then_atomic_in_order", order::put_atomic),
    ("atomic_then_put_in_order", order::atomic_put),
    ("atomic_then_atomic_in_order", order::atomic_atomic),
    ("put_then_get_in_order", order::put_get),
    ("get_then_get_in_order", order::get_get),
    ("order_holds_across_lanes", order::across_lanes),
    (
        "long_operations_are_flushed",
        order::long_operations_are_flushed,
    ),
    (
        "messages_are_refused_where_they_must_be",
        messages::refusals,
    ),
    (
        "messages_arrive_once_in_order_and_unhelped",
        messages::arrive,
    ),
    (
        "the_value_of_a_reply_comes_before_its_number",
        messages::replies,
    ),
    (
        "replies_wait_for_credits_and_all_arrive",
        messages::many_replies,
    ),
    ("messages_of_a_window_hold_up_no_lane", messages::window),
    ("the_inbox_is_one_and_its_sleep_ends", messages::inbox_life),
    ("a_lost_sender_gets_no_reply", messages::lost_sender),
    (
        "no_reply_arrives_after_a_loss_or_a_drop",
        messages::late_replies,
    ),
    (
        "a_lost_peer_is_refused_and_the_others_go_on",
        failure::lost_peer,
    ),
    (
        "gets_from_a_lost_peer_write_nothing_more",
        failure::gets_from_lost_peer,
    ),
    ("shutdown_closes_every_lane", failure::shutdown),
    (
        "lanes_may_be_dropped_with_work_outstanding",
        failure::dropped_lane,
    ),
];
