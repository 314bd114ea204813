//! The reasons that other PEs gave for their loss, and the words for a lost PE.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A reason, by a PE's own report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LossReason {
    /// It left without finalize.
    NoFinalize,
    /// It takes part in no collective call any more, for this reason.
    GaveUp(String),
}

/// The reports about the job that this process joined last, in the order of their arrival.
static REPORTED: Mutex<Vec<(u32, LossReason)>> = Mutex::new(Vec::new());

fn reported() -> MutexGuard<'static, Vec<(u32, LossReason)>> {
    REPORTED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Drops the reports of an earlier job: this process joins another.
pub fn clear() {
    reported().clear();
}

/// Records a PE's report. The first one of a kind stays: later failures follow from it.
pub fn record(pe: u32, reason: LossReason) {
    let mut reported = reported();
    let is_same = |(known, old): &(u32, LossReason)| {
        *known == pe && std::mem::discriminant(old) == std::mem::discriminant(&reason)
    };
    if !reported.iter().any(is_same) {
        reported.push((pe, reason));
    }
}

/// Whether a PE has reported that it left without finalize.
#[must_use]
pub fn left_without_finalize(pe: usize) -> bool {
    let reason = (pe as u32, LossReason::NoFinalize);
    reported().contains(&reason)
}

/// A lost PE, in words.
#[must_use]
pub fn describe_lost(pe: usize) -> String {
    if left_without_finalize(pe) {
        return format!(
            "PE {pe} left without finalize; have its program call World::finalize, in C shmem_finalize, before it ends"
        );
    }
    let failed = reported().iter().find_map(|(whom, reason)| match reason {
        LossReason::GaveUp(why) if *whom as usize == pe => Some(why.clone()),
        _ => None,
    });
    let how = match failed {
        Some(why) => format!("it takes part in no collective call any more: {why}"),
        None => "it died, or left the job".into(),
    };
    format!(
        "PE {pe} is lost ({how}); after World::acknowledge_lost the others can go on with calls that do not need it (no \
         collective ones)"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_pe_is_described_by_its_own_first_report() {
        // Numbers of PEs that no other test of this process reports about.
        let (silent, failed, forgot) = (7_000_001, 7_000_002, 7_000_003);
        assert!(describe_lost(silent).contains("is lost (it died, or left the job)"));

        record(failed as u32, LossReason::GaveUp("no connection".into()));
        record(failed as u32, LossReason::GaveUp("a later one".into()));
        let words = describe_lost(failed);
        assert!(
            words.contains(
                "PE 7000002 is lost (it takes part in no collective call any more: no connection)"
            ),
            "{words}"
        );

        record(forgot as u32, LossReason::GaveUp("no connection".into()));
        record(forgot as u32, LossReason::NoFinalize);
        assert!(left_without_finalize(forgot) && !left_without_finalize(failed));
        let words = describe_lost(forgot);
        assert!(words.contains("left without finalize"), "{words}");
    }
}
