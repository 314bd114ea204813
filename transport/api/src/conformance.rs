//! The suite that holds a transport to what it declares.
//!
//! A transport's tests implement [`Harness`] and call [`run`]; every entry of
//! [`Capabilities`](crate::Capabilities) and [`Guarantees`](crate::Guarantees) is then tried, and
//! what is not declared must be refused. All PEs of a check live in this process, each with its
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
//!   alone is checked. Memory that was not registered is always host memory; memory registered for the near
//!   side alone is of both kinds.
//! - A limit above [`Harness::largest`] is tried at that size instead, and one more than it not at
//!   all: an operation that long would need memory that long.
//! - Where a declaration leaves a transport free, the checks of it are reported as not applicable.
//! - Orders that only another processor can see are looked for by a concurrent reader: a broken
//!   promise there is found very probably, not surely.
//! - Each wait has a deadline. A *call* that never returns hangs the suite, and a transport that
//!   panics fails the check in which it did.

mod area;
mod atomics;
mod failure;
mod flow;
mod lanes;
mod messages;
mod order;
mod setup;
mod signals;
mod transfers;
mod world;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use crate::{Device, HostId, Memory, MemoryKind, Pe, Transport};

pub use area::{Contents, host_memory, pages};

/// What the suite needs to know of the transport it tries.
pub trait Harness: Sync {
    /// The transport. Every PE is opened on it.
    fn transport(&self) -> &dyn Transport;

    /// Which of the probed devices (never none) this PE is opened on.
    fn device<'d>(&self, _pe: Pe, devices: &'d [Device]) -> &'d Device {
        &devices[0]
    }

    /// The host this PE claims.
    fn host(&self, _pe: Pe) -> HostId {
        HostId("conformance".into())
    }

    /// The kind of memory that the checks move data between.
    fn kind(&self) -> MemoryKind {
        MemoryKind::Host
    }

    /// Zeroed memory of `kind` and at least `len` bytes for a PE to register. Host memory must be
    /// loadable and storable at [`Memory::base`]. The default knows host memory, without a
    /// descriptor.
    fn memory(&self, _pe: Pe, kind: MemoryKind, len: usize) -> Result<Memory, String> {
        match kind {
            MemoryKind::Host => host_memory(len),
            other => Err(format!("this harness has no {other} memory")),
        }
    }

    /// How the suite looks into memory of that PE that is not host memory.
    fn contents(&self, _pe: Pe, memory: &Memory) -> Result<Arc<dyn Contents>, String> {
        Err(format!(
            "this harness cannot look into {} memory",
            memory.kind()
        ))
    }

    /// Makes a PE's death happen as this transport would see it by itself, where it sees any: a
    /// cut link, a queue pair in error. The domains are told by
    /// [`peer_lost`](crate::Domain::peer_lost) right after.
    fn lose(&self, _pe: Pe) {}

    /// How long any one wait may last before it counts as a failure.
    fn deadline(&self) -> Duration {
        Duration::from_secs(20)
    }

    /// The largest single transfer tried, in bytes.
    fn largest(&self) -> u64 {
        (1 << 20) + 13
    }
}

/// What a check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The transport kept what it declares.
    Passed,
    /// The transport declares nothing that this check could try; which declaration, in words.
    NotApplicable(String),
    /// It broke a declaration; how, in words.
    Failed(String),
}

/// The verdicts of a run.
#[derive(Clone, Debug)]
#[must_use]
pub struct Report {
    /// The transport's name.
    pub transport: &'static str,
    /// Each check's name and verdict, in the order run.
    pub checks: Vec<(&'static str, Verdict)>,
}

impl Report {
    /// Whether at least one check ran and none failed.
    #[must_use]
    pub fn passed(&self) -> bool {
        !self.checks.is_empty()
            && !self
                .checks
                .iter()
                .any(|(_, verdict)| matches!(verdict, Verdict::Failed(_)))
    }

    /// What a check found; none if no check of that name ran.
    #[must_use]
    pub fn verdict(&self, check: &str) -> Option<&Verdict> {
        self.checks
            .iter()
            .find(|(name, _)| *name == check)
            .map(|(_, verdict)| verdict)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "conformance of {}:", self.transport)?;
        for (name, verdict) in &self.checks {
            match verdict {
                Verdict::Passed => writeln!(f, "  passed  {name}")?,
                Verdict::NotApplicable(why) => writeln!(f, "  n/a     {name}: {why}")?,
                Verdict::Failed(how) => writeln!(f, "  FAILED  {name}: {how}")?,
            }
        }
        Ok(())
    }
}

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

/// How a check ended that found nothing wrong.
enum Done {
    Tried,
    /// Nothing was declared that could have been tried.
    Free(&'static str),
}

/// A check's end; the error says what was broken.
type Found<T = Done> = Result<T, String>;

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
        "memory_registered_for_the_near_side_alone",
        transfers::registered,
    ),
    ("inline_sources_are_reusable_at_once", transfers::inline),
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
    ("put_then_atomic_in_order", order::put_atomic),
    ("atomic_then_put_in_order", order::atomic_put),
    ("atomic_then_atomic_in_order", order::atomic_atomic),
    ("put_then_get_in_order", order::put_get),
    ("get_then_get_in_order", order::get_get),
    ("order_holds_across_lanes", order::across_lanes),
    (
        "messages_are_refused_where_they_must_be",
        messages::refusals,
    ),
    (
        "messages_arrive_once_in_order_and_unhelped",
        messages::arrive,
    ),
    (
        "an_answers_value_comes_before_its_number",
        messages::answers,
    ),
    (
        "answers_wait_for_room_and_all_arrive",
        messages::many_answers,
    ),
    ("the_inbox_is_one_and_its_sleep_ends", messages::inbox_life),
    ("a_lost_sender_is_not_answered", messages::lost_sender),
    ("no_answer_comes_to_who_gave_up", messages::late_answers),
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
