//! The memory-model contract, rule by rule, on one host.
//!
//! A case is a function that every PE of a world runs; its name begins with the rule it proves. One
//! table lists the cases, one matrix the settings: numbers of PEs; threads by load and store, in
//! checked mode (lanes over the loopback transport), over the example transport, plain and with NICs'
//! atomics, over lanes that do the worst (weak), on a simulated machine, in GPU memory; processes; both memory models. Of one setting for
//! each path, each case is a test; of the others, each module is one. So `cargo test -p oxshmem-tests --test contract tiny_3::order`
//! runs what it says. Many PEs, as threads and as processes, are in `crowd`. What ends worlds, or begins them oddly, is in `loss`, `worlds`, `kills`
//! and `launched_kills`; what needs lanes of a certain kind in `mixture`, `growth`, `connecting` and `unregistered`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod atomics;
mod by_host;
mod collectives;
mod connecting;
mod contexts;
mod counters;
mod crowd;
mod errors;
mod goodbye;
mod gpu;
mod gpu_collectives;
#[cfg(feature = "cuda")]
mod gpu_objects;
mod gpu_staged;
mod gpu_staged_losses;
mod growth;
mod heap;
mod job;
mod kills;
mod launched_kills;
mod lock_losses;
mod locks;
mod loss;
mod memory;
mod mixture;
mod nbi;
mod numbers;
mod objects;
mod order;
mod places;
mod processes;
mod programs;
mod refusals;
mod sequences;
mod setting;
mod signals;
mod strided;
mod team_threads;
mod teams;
mod threads;
mod trials;
mod unregistered;
mod waits;
mod worlds;

use std::panic::{AssertUnwindSafe, catch_unwind};

use oxshmem::Atomics;
use oxshmem::MemoryModel::{Ordered as ORDERED, Relaxed as RELAXED};
use processes::Start;
use setting::{Case, Path, Setting};

/// Gives the table of cases to another macro, after its own arguments. Behind the bar: those of calls
/// that load or store an object by the CPU, and so of host memory alone.
macro_rules! with_cases {
    ($then:ident $arguments:tt) => {
        $then! { $arguments
            objects:
                m2_heap_objects_exist_on_every_pe
                m2_statics_exist_on_every_pe_with_their_initial_values
                m2_each_world_has_its_own_statics
                m3_offsets_are_the_same_on_every_pe
                m4_the_bytes_of_every_element_type_arrive
                m4_any_length_at_any_offset_arrives_and_nothing_else_changes
                m5_elements_and_ranges_stay_inside_their_object
                m6_a_handle_means_nothing_to_another_world
                m7_a_cast_keeps_alignment_and_size
                m8_ptr_gives_a_peers_object_where_it_is_mapped
                m8b_accessible_is_an_answer_and_never_an_error
                the_routes_say_how_each_pe_is_reached
                |;
            heap:
                m9_blocks_lie_alike_and_apart_after_any_sequence
                m10_a_block_is_usable_at_every_pe_on_return
                m10_allocation_ends_with_a_barrier_that_quiets
                m10_free_begins_with_a_barrier_that_quiets
                m11_empty_calls_do_nothing_and_wait_for_no_one
                m12_a_block_is_aligned_as_asked
                m12_an_overflowing_size_is_a_failed_allocation
                m13_failed_alloc_leaves_heap_unchanged
                m13_a_full_heap_fails_on_all_and_can_be_used_again
                m14_the_limit_is_the_one_that_was_set
                m35_each_block_is_freed_once_and_whole
                m35_a_bad_handle_on_one_pe_fails_free_on_all
                |
                m10_realloc_keeps_contents_and_makes_old_handles_stale
                m12_an_alignment_that_makes_no_sense_is_refused_everywhere
                m12_zeroed_memory_is_zero_though_it_was_used
                m13_a_failed_realloc_leaves_the_block_as_it_was
                m12_an_overflowing_realloc_fails
                m35_realloc_takes_a_block_of_its_own_world_and_whole
                m4_an_address_names_the_object_at_it
                m35_an_address_outside_of_blocks_names_none
                m10_after_a_rest_every_block_is_free_and_the_heap_can_be_used;
            order:
                m15_a_put_returns_when_its_source_may_be_reused
                m16_a_get_returns_with_the_data
                m17_fence_puts_data_before_the_flag
                m17_fence_orders_puts_and_atomics_to_one_pe
                m17_fence_orders_the_callers_stores
                m17_one_word_is_seen_in_the_order_it_was_written
                m19_quiet_completes_towards_every_pe
                m19_a_barrier_completes_what_came_before
                m20_fetched_values_come_in_order
                m20_m21_set_quiet_set_is_seen_in_order_by_fetches
                m20_m21_put_quiet_put_is_seen_in_order_by_gets
                m24_what_is_completed_is_visible_to_a_third_pe
                m26_visibility_is_a_value_computed_from_the_routes
                |
                m23_waits_and_tests_acquire_what_the_flag_announces;
            atomics:
                m16_nonblocking_fetches_have_arrived_at_the_end_of_their_scope
                m28_no_contended_update_is_lost
                m28_updates_that_nobody_waits_for_all_count
                m28_every_ticket_is_given_once
                m28_contended_bits_do_not_disturb_each_other
                m28_a_lock_made_of_compare_swap_excludes
                m29_an_atomic_touches_its_own_word_only
                m30_fetch_set_and_swap_take_all_types
                m30_arithmetic_takes_the_standard_types_and_wraps
                m30_bitwise_takes_unsigned_and_fixed_signed
                |;
            signals:
                m22_the_signal_comes_after_its_data
                m22_no_small_message_is_overtaken_by_its_signal
                m22_signals_of_all_pes_add_up
                m22_a_signal_wait_gives_the_value_that_satisfied_it
                m22_nonblocking_put_signals_are_complete_after_their_scope
                m19_long_put_signals_from_registered_memory_are_complete_after_their_scope
                |;
            waits:
                |
                comparisons_follow_the_type_and_its_sign
                a_set_without_words_is_satisfied_at_once
                tests_look_at_the_words_that_are_not_skipped
                waits_end_when_their_words_come
                any_takes_turns
                a_mask_or_vector_that_is_too_short_is_refused
                a_put_wakes_a_wait_for_a_narrow_word;
            collectives:
                no_pe_leaves_a_barrier_before_all_have_entered
                sync_makes_own_stores_visible
                broadcast_gives_every_pe_the_roots_data
                broadcasts_by_root_after_root_give_each_its_data
                collectives_may_follow_each_other_at_once
                folds_of_integers_equal_a_serial_reference_and_wrap
                folds_of_the_other_integers_equal_a_serial_reference
                folds_of_floats_have_the_same_bits_on_every_pe
                calls_of_any_team_equal_a_serial_reference
                exclusive_scans_begin_with_the_first_value_itself
                late_pes_do_not_disturb_a_collective
                |
                a_root_of_small_broadcasts_waits_for_nobody;
            refusals:
                m36_a_teams_calls_refuse_what_makes_no_sense
                m35_m36_a_teams_calls_refuse_handles_that_are_not_live
                m36_a_teams_calls_find_every_argument_that_differs
                a_teams_calls_take_objects_that_are_empty
                a_teams_context_refuses_other_pes
                |
                teams_of_other_worlds_have_none_of_this_ones_pes;
            sequences:
                sequences_of_calls_equal_a_serial_reference
                |;
            counters:
                |
                m22_the_data_of_every_counted_put_is_there
                a_wait_takes_what_it_waited_for_and_no_more
                m22_a_thread_waits_for_counted_puts_while_another_sends_on_its_context
                counters_that_make_no_sense_are_refused;
            locks:
                |
                a_lock_is_held_by_one_pe_at_a_time
                a_lock_goes_to_whoever_asked_first
                a_test_of_a_lock_does_not_wait
                what_a_holder_wrote_is_there_for_the_next
                locks_that_a_pe_cannot_set_or_clear_are_refused threads_have_locks_on_contexts;
            contexts:
                m19_quiet_and_the_end_of_a_context_complete_what_it_issued
                a_context_has_every_one_sided_call
                m17_m19_sessions_are_hints
                m35_a_context_refuses_what_the_world_refuses
                |
                m17_a_context_orders_what_it_issued;
            threads:
                m17_m19_threads_with_contexts_of_their_own_equal_a_serial_reference
                m17_m19_threads_on_one_context_equal_a_serial_reference
                m28_every_ticket_is_given_once_to_threads_too
                |
                m17_m19_threads_and_collective_calls_equal_a_serial_reference
                m23_a_wait_on_a_shared_context_does_not_hold_it
                m23_a_wait_on_a_shared_context_does_not_need_it;
            team_threads:
                |
                m36_calls_of_teams_by_threads_at_once_equal_a_serial_reference
                m9_m36_splits_by_threads_at_once_give_teams_of_their_own
                a_split_does_not_wait_for_that_of_another_parent
                m19_a_teams_barrier_completes_the_context_that_it_is_attached_to
                calls_of_one_team_by_two_threads_come_one_after_the_other
                members_make_teams_among_themselves_at_once_and_beside_splits
                m36_a_call_that_one_member_refuses_fails_on_all
                a_context_is_made_while_another_thread_is_in_a_collective
                a_detached_team_is_the_same_team
                m35_a_team_is_attached_to_contexts_of_its_own_world_with_its_numbers;
            teams:
                |
                the_worlds_team_has_all_pes_and_the_shared_one_those_that_map_each_other
                a_split_has_the_pes_that_start_stride_and_size_name
                rows_and_columns_number_their_pes_by_each_other
                what_a_pe_says_of_a_team_stays_with_it
                a_listed_team_keeps_the_order_of_its_list
                a_team_that_would_leave_its_parent_is_refused_on_every_pe
                m36_pes_that_split_otherwise_are_told_so
                teams_that_overlap_do_not_disturb_each_other
                m24_a_teams_sync_makes_earlier_stores_visible
                a_teams_context_counts_by_the_team
                a_destroyed_teams_room_is_used_again
                hundreds_of_teams_are_alive_at_once
                members_make_a_team_among_themselves
                a_broadcast_to_others_leaves_the_roots_own;
            nbi:
                m19_a_scope_completes_all_that_was_issued_in_it
                m19_raw_operations_are_complete_after_a_quiet
                m19_long_nonblocking_transfers_are_complete
                m19_quiet_and_barrier_complete_raw_nonblocking_operations
                m19_a_scope_that_fails_still_completes_what_it_issued
                m37_a_scope_that_panics_gives_its_buffers_back_complete
                a_scope_gives_its_closures_value_and_may_be_empty
                |;
            strided:
                strided_transfers_equal_a_reference
                block_strided_transfers_equal_a_reference
                m35_strides_that_make_no_sense_or_leave_an_object_are_refused
                |;
            errors:
                a_pe_outside_the_job_is_refused_by_every_call
                m35_a_range_that_leaves_its_object_is_refused_and_moves_nothing
                m35_checked_mode_refuses_freed_blocks
                |
                m36_different_collectives_are_an_error_on_all
                m36_different_arguments_are_an_error_on_all
                m36_a_failure_of_one_pe_is_told_to_all
                m9_an_empty_call_that_one_pe_left_out_is_found_by_the_next_barrier
                m36_a_broadcast_that_one_pe_left_out_is_found_when_they_meet
                arguments_that_no_pe_may_give_are_refused_on_all;
        }
    };
}

macro_rules! table {
    (() $($module:ident: $($case:ident)* | $($in_host_memory:ident)*;)*) => {
        /// Every case, by name.
        const CASES: &[(&str, Case)] = &[$($(
            (concat!(stringify!($module), "::", stringify!($case)), $module::$case),
        )* $(
            (concat!(stringify!($module), "::", stringify!($in_host_memory)), $module::$in_host_memory),
        )*)*];
    };
}
with_cases!(table());

/// Does something with each case of a module, and fails with the names of those where that panics.
fn each_of(module: &str, act: impl Fn(&str, Case)) {
    let of_module = |name: &str| {
        name.split_once("::")
            .is_some_and(|(first, _)| first == module)
    };
    let cases = CASES.iter().filter(|(name, _)| of_module(name));
    let failed =
        cases.filter(|(name, case)| catch_unwind(AssertUnwindSafe(|| act(name, *case))).is_err());
    let failed: Vec<&str> = failed.map(|(name, _)| *name).collect();
    assert!(failed.is_empty(), "these do not hold: {failed:?}");
}

macro_rules! tests {
    (($setting:expr, $n:expr) $($module:ident: $($case:ident)* | $($in_host_memory:ident)*;)*) => {$(
        mod $module {
            use super::super::*;
            $(#[test]
            fn $case() {
                setting::run($setting, $n, crate::$module::$case);
            })*
            $(#[test]
            fn $in_host_memory() {
                setting::run($setting, $n, crate::$module::$in_host_memory);
            })*
        }
    )*};
}

macro_rules! matrix {
    ($($name:ident: $setting:expr, $n:expr;)*) => {$(
        mod $name {
            with_cases!(tests ($setting, $n));
        }
    )*};
}

matrix! {
    mapped_3: Setting::new(Path::Mapped), 3;
    checked_3: Setting::new(Path::Checked), 3;
    tiny_3: Setting::new(Path::Tiny), 3;
    nics_3: Setting::nics(ORDERED, Atomics::Auto, true), 3;
    weak_2: Setting::new(Path::Weak), 2;
    queues_2: Setting::new(Path::Queues), 2;
    weak_relaxed_4: Setting::relaxed(Path::Weak), 4;
    simulator_3: Setting::new(Path::Simulator), 3;
}

/// All cases of a module in one test: a test for each takes two minutes to compile. A failure names its case.
macro_rules! module_tests {
    (($act:expr) $($module:ident: $($case:ident)* | $($in_host_memory:ident)*;)*) => {$(
        #[test]
        fn $module() {
            each_of(stringify!($module), $act);
        }
    )*};
}

macro_rules! module_matrix {
    ($($name:ident: $setting:expr, $n:expr;)*) => {$(
        mod $name {
            use super::*;
            with_cases!(module_tests (|_, case| setting::run($setting, $n, case)));
        }
    )*};
}

module_matrix! {
    mapped_1: Setting::new(Path::Mapped), 1;
    mapped_2: Setting::new(Path::Mapped), 2;
    mapped_4: Setting::new(Path::Mapped), 4;
    mapped_7: Setting::new(Path::Mapped), 7;
    mapped_relaxed_3: Setting::relaxed(Path::Mapped), 3;
    checked_1: Setting::new(Path::Checked), 1;
    checked_2: Setting::new(Path::Checked), 2;
    checked_4: Setting::new(Path::Checked), 4;
    checked_7: Setting::new(Path::Checked), 7;
    checked_relaxed_3: Setting::relaxed(Path::Checked), 3;
    tiny_1: Setting::new(Path::Tiny), 1;
    tiny_2: Setting::new(Path::Tiny), 2;
    tiny_4: Setting::new(Path::Tiny), 4;
    tiny_7: Setting::new(Path::Tiny), 7;
    tiny_relaxed_3: Setting::relaxed(Path::Tiny), 3;
    nics_2: Setting::nics(ORDERED, Atomics::Auto, true), 2;
    nics_relaxed_3: Setting::nics(RELAXED, Atomics::Auto, true), 3;
    nics_cpu_2: Setting::nics(ORDERED, Atomics::Cpu, true), 2;
    nics_cpu_3: Setting::nics(ORDERED, Atomics::Cpu, true), 3;
    nics_cpu_relaxed_3: Setting::nics(RELAXED, Atomics::Cpu, true), 3;
    nics_on_one_host_3: Setting::nics(ORDERED, Atomics::Auto, false), 3;
    nics_all_on_one_host_3: Setting::nics(ORDERED, Atomics::Nic, false), 3;
    weak_3: Setting::new(Path::Weak), 3;
    simulator_relaxed_2: Setting::relaxed(Path::Simulator), 2;
}

/// The cases of any memory, in GPU memory.
#[cfg(feature = "cuda")]
macro_rules! gpu_tests {
    (($setting:expr, $n:expr) $($module:ident: $($case:ident)* | $($in_host_memory:ident)*;)*) => {$(
        #[allow(unused_imports, reason = "of some all cases are of host memory")]
        mod $module {
            use super::super::*;
            $(#[test]
            fn $case() {
                setting::run($setting, $n, crate::$module::$case);
            })*
        }
    )*};
}

#[cfg(feature = "cuda")]
macro_rules! gpu_matrix {
    ($($name:ident: $setting:expr, $n:expr;)*) => {$(
        mod $name {
            with_cases!(gpu_tests ($setting, $n));
        }
    )*};
}

#[cfg(feature = "cuda")]
gpu_matrix! {
    gpu_1: Setting::new(Path::Gpu), 1;
    gpu_2: Setting::new(Path::Gpu), 2;
    gpu_3: Setting::new(Path::Gpu), 3;
    gpu_relaxed_3: Setting::relaxed(Path::Gpu), 3;
}

macro_rules! process_matrix {
    ($($name:ident: $start:expr, $n:expr;)*) => {$(
        mod $name {
            use super::*;
            with_cases!(module_tests (|name, _| processes::look_up($start, $n, name)));
            #[test]
            fn the_job_ends_well() {
                processes::look_up_end($start, $n);
            }
        }
    )*};
}

process_matrix! {
    processes_1: Start::Launcher("cases"), 1;
    processes_2: Start::Launcher("cases"), 2;
    processes_3: Start::Launcher("cases"), 3;
    processes_4: Start::Launcher("cases"), 4;
    processes_7: Start::Launcher("cases"), 7;
    processes_checked_3: Start::Launcher("cases-checked"), 3;
    processes_weak_3: Start::Launcher("cases-weak"), 3;
    processes_torchrun_3: Start::Torchrun("cases"), 3;
}
