//! The suite itself under test: each of these transports breaks one promise, and the check that
//! is about it must say so. The transports beneath pass the whole suite (their own tests).

mod broken;

use std::time::Duration;

use broken::{Base, Broken, Fault};
use oxshmem_transport::conformance::{self, Harness, Verdict};
use oxshmem_transport::{Pe, Transport};

struct Under {
    transport: Broken,
    deadline: Duration,
}

impl Harness for Under {
    fn transport(&self) -> &dyn Transport {
        &self.transport
    }

    fn lose(&self, _: Pe) {}

    fn deadline(&self) -> Duration {
        self.deadline
    }
}

/// Each fault over a right transport, and the checks that must find it.
const FAULTS: &[(Base, Fault, &[&str])] = &[
    // Declarations that say more than is done.
    (
        Base::Tiny,
        Fault::ClaimsAtomics,
        &["atomics_compute_what_they_say"],
    ),
    (
        Base::Tiny,
        Fault::ClaimsSignal,
        &["put_signal_updates_data_and_signal"],
    ),
    (
        Base::Tiny,
        Fault::ClaimsInline,
        &["inline_sources_are_reusable_at_once"],
    ),
    (
        Base::Tiny,
        Fault::ClaimsUnregistered,
        &["unregistered_memory_up_to_the_limit"],
    ),
    (
        Base::Tiny,
        Fault::ClaimsMax,
        &["put_at_every_size_and_alignment"],
    ),
    (
        Base::Tiny,
        Fault::ClaimsDepth(16),
        &["full_loses_and_repeats_nothing"],
    ),
    (
        Base::Tiny,
        Fault::ClaimsNoDepth,
        &["full_loses_and_repeats_nothing"],
    ),
    (
        Base::Tiny,
        Fault::ClaimsAcrossLanes,
        &["order_holds_across_lanes"],
    ),
    (
        Base::Tiny,
        Fault::ClaimsCuda,
        &["declarations_agree_with_each_other"],
    ),
    (
        Base::Tiny,
        Fault::ClaimsNoWiring,
        &["lanes_are_wired_as_declared"],
    ),
    // Declarations that say less: the surplus must be refused.
    (
        Base::Loopback,
        Fault::HidesAtomics,
        &["undeclared_atomics_are_refused"],
    ),
    (
        Base::Loopback,
        Fault::HidesSignal,
        &["put_signal_is_refused_where_it_must_be"],
    ),
    (
        Base::Tiny,
        Fault::HidesMax,
        &["sizes_above_the_limit_are_refused"],
    ),
    (
        Base::Tiny,
        Fault::HidesUnregistered,
        &["unregistered_memory_up_to_the_limit"],
    ),
    (
        Base::Tiny,
        Fault::ClaimsDepth(4),
        &["full_loses_and_repeats_nothing"],
    ),
    (
        Base::Loopback,
        Fault::HidesMapping,
        &["mapped_regions_are_the_peers_memory"],
    ),
    // Operations.
    (
        Base::Loopback,
        Fault::DropsLastByte,
        &["put_at_every_size_and_alignment"],
    ),
    (
        Base::Loopback,
        Fault::WritesOneByteMore,
        &["put_at_every_size_and_alignment"],
    ),
    (
        Base::Loopback,
        Fault::TearsWords,
        &["aligned_words_land_whole"],
    ),
    (
        Base::Loopback,
        Fault::ComparesNothing,
        &["atomics_compute_what_they_say"],
    ),
    (
        Base::Loopback,
        Fault::AddsInTwoSteps,
        &["atomics_are_exclusive"],
    ),
    (
        Base::Loopback,
        Fault::SetsForAdds,
        &["put_signal_updates_data_and_signal"],
    ),
    (
        Base::Loopback,
        Fault::SignalsFirst,
        &["m22_signal_is_not_seen_before_its_data"],
    ),
    (
        Base::Loopback,
        Fault::ReversesBatches,
        &[
            "put_then_put_in_order",
            "put_then_atomic_in_order",
            "atomic_then_put_in_order",
            "atomic_then_atomic_in_order",
            "put_then_get_in_order",
            "get_then_get_in_order",
        ],
    ),
    // Answers.
    (
        Base::Loopback,
        Fault::HidesOutOfRange,
        &["ranges_outside_the_region_are_refused"],
    ),
    (
        Base::Loopback,
        Fault::HidesUnknown,
        &["unknown_regions_and_pes_are_refused"],
    ),
    (
        Base::Loopback,
        Fault::HidesMisaligned,
        &["misplaced_atomics_are_refused"],
    ),
    (
        Base::Loopback,
        Fault::TakesAfterRefusal,
        &["a_refusal_keeps_the_operations_before_it"],
    ),
    (
        Base::Tiny,
        Fault::IgnoresFull,
        &["full_loses_and_repeats_nothing"],
    ),
    (
        Base::Tiny,
        Fault::FullForAll,
        &["full_loses_and_repeats_nothing"],
    ),
    (
        Base::Loopback,
        Fault::AcceptsLessThanAll,
        &["every_pair_of_pes_is_connected"],
    ),
    (
        Base::Loopback,
        Fault::Panics,
        &["every_pair_of_pes_is_connected"],
    ),
    // Counters.
    (
        Base::Loopback,
        Fault::ForgetsCompletions,
        &["counters_count"],
    ),
    (Base::Loopback, Fault::CountsAnotherPe, &["counters_count"]),
    (
        Base::Tiny,
        Fault::CompletesEarly,
        &[
            "put_at_every_size_and_alignment",
            "flush_places_what_came_before",
        ],
    ),
    (
        Base::Tiny,
        Fault::ReusesEarly,
        &["memory_counted_as_reusable_is_accessed_no_more"],
    ),
    // Messages.
    (
        Base::Loopback,
        Fault::ClaimsMessages,
        &[
            "messages_arrive_once_in_order_and_unhelped",
            "the_inbox_is_one_and_its_sleep_ends",
        ],
    ),
    (
        Base::TinyNics,
        Fault::HidesMessages,
        &["messages_are_refused_where_they_must_be"],
    ),
    (
        Base::TinyNics,
        Fault::ReversesMessages,
        &["messages_arrive_once_in_order_and_unhelped"],
    ),
    (
        Base::TinyNics,
        Fault::RepeatsMessages,
        &["messages_arrive_once_in_order_and_unhelped"],
    ),
    (
        Base::TinyNics,
        Fault::CutsMessages,
        &["messages_arrive_once_in_order_and_unhelped"],
    ),
    (
        Base::TinyNics,
        Fault::AnswersNobody,
        &[
            "the_value_of_a_reply_comes_before_its_number",
            "replies_wait_for_credits_and_all_arrive",
        ],
    ),
    (
        Base::TinyNics,
        Fault::ClaimsWindow(0),
        &["messages_of_a_window_hold_up_no_lane"],
    ),
    (
        Base::TinyNics,
        Fault::ClaimsWindow(4),
        &["messages_of_a_window_hold_up_no_lane"],
    ),
    (
        Base::TinyNics,
        Fault::AnswersTheNumberAlone,
        &["the_value_of_a_reply_comes_before_its_number"],
    ),
    (
        Base::TinyNics,
        Fault::IgnoresShutdown,
        &["the_inbox_is_one_and_its_sleep_ends"],
    ),
    // Bytes from peers, and shutdown.
    (
        Base::Loopback,
        Fault::TrustsAddresses,
        &["reach_needs_a_sound_address"],
    ),
    (
        Base::Loopback,
        Fault::TrustsKeys,
        &["import_needs_a_sound_key"],
    ),
    (
        Base::Tiny,
        Fault::IgnoresLoss,
        &[
            "a_lost_peer_is_refused_and_the_others_go_on",
            "gets_from_a_lost_peer_write_nothing_more",
        ],
    ),
    (
        Base::TinyNics,
        Fault::IgnoresLoss,
        &["no_reply_arrives_after_a_loss_or_a_drop"],
    ),
    (
        Base::TinyNics,
        Fault::WorksAfterDrop,
        &["no_reply_arrives_after_a_loss_or_a_drop"],
    ),
    (
        Base::Tiny,
        Fault::IgnoresShutdown,
        &["shutdown_closes_every_lane"],
    ),
    (
        Base::Tiny,
        Fault::WorksAfterDrop,
        &["lanes_may_be_dropped_with_work_outstanding"],
    ),
];

#[test]
fn each_broken_promise_is_found_by_the_check_that_is_about_it() {
    let mut unseen = Vec::new();
    for &(base, fault, checks) in FAULTS {
        let transport = Broken::new(base, fault);
        let harness = Under {
            transport,
            deadline: Duration::from_millis(500),
        };
        let report = conformance::run_where(&harness, |name| checks.contains(&name));
        assert_eq!(
            report.checks.len(),
            checks.len(),
            "{fault:?} names a check that is not there"
        );
        for check in checks {
            match report.verdict(check) {
                Some(Verdict::Failed(how)) => println!("{fault:?}: {check}: {how}"),
                other => unseen.push((fault, *check, other.cloned())),
            }
        }
    }
    assert!(unseen.is_empty(), "not found: {unseen:#?}");
}

#[test]
fn promising_less_than_is_kept_passes() {
    for base in [Base::Tiny, Base::Loopback] {
        let transport = Broken::new(base, Fault::PromisesLittle);
        let harness = Under {
            transport,
            deadline: Duration::from_secs(20),
        };
        let report = conformance::run(&harness);
        assert!(report.passed(), "{report}");
        let free = report.verdict("put_then_put_in_order");
        assert!(matches!(free, Some(Verdict::NotApplicable(_))), "{report}");
    }
}
