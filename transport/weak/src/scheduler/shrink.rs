//! The smallest decisions that still fail.

/// Makes failing decisions smaller while they fail: fewer, more of them tame, lower. `fails` makes a
/// run of them; the result fails, and no single change of the kinds tried makes it smaller.
pub fn shrink(decisions: Vec<u32>, mut fails: impl FnMut(&[u32]) -> bool) -> Vec<u32> {
    let mut best = trimmed(decisions);
    loop {
        let before = best.clone();
        // Cut pieces out, long ones first; or make them tame, all or but one of them cut out.
        let mut piece = best.len();
        while piece > 0 {
            let mut at = 0;
            while at < best.len() {
                let end = (at + piece).min(best.len());
                let shorter = [0, 1, end - at].into_iter().any(|tame| {
                    let mut candidate = best.clone();
                    candidate.splice(at..end, std::iter::repeat_n(0, tame));
                    take(&mut best, candidate, &mut fails)
                });
                if !shorter {
                    at += piece.div_ceil(2);
                }
            }
            piece /= 2;
        }
        // Lower single decisions.
        for at in 0..best.len() {
            let Some(&value) = best.get(at) else { break };
            for lower in [value / 2, value.saturating_sub(1)] {
                let mut candidate = best.clone();
                if let Some(decision) = candidate.get_mut(at).filter(|d| lower < **d) {
                    *decision = lower;
                    if take(&mut best, candidate, &mut fails) {
                        break;
                    }
                }
            }
        }
        if best == before {
            return best;
        }
    }
}

fn take(best: &mut Vec<u32>, candidate: Vec<u32>, fails: &mut impl FnMut(&[u32]) -> bool) -> bool {
    let candidate = trimmed(candidate);
    let smaller = size(&candidate) < size(best);
    let taken = smaller && fails(&candidate);
    if taken {
        *best = candidate;
    }
    taken
}

/// The size of a run for a reader: its decisions that are not tame, then all, then their sum.
fn size(decisions: &[u32]) -> (usize, usize, u64) {
    let wild = decisions.iter().filter(|d| **d != 0).count();
    let sum = decisions.iter().map(|d| u64::from(*d)).sum();
    (wild, decisions.len(), sum)
}

/// Tame decisions at the end are the same as none.
fn trimmed(mut decisions: Vec<u32>) -> Vec<u32> {
    while decisions.last() == Some(&0) {
        decisions.pop();
    }
    decisions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_failing_decisions_are_found() {
        // Fails if some decision is at least 3 and a later one is not 0.
        let fails = |d: &[u32]| {
            let first = d.iter().position(|v| *v >= 3);
            first.is_some_and(|at| d.iter().skip(at + 1).any(|v| *v != 0))
        };
        let long: Vec<u32> = (0..100).map(|i| i % 7).collect();
        assert_eq!(shrink(long, fails), [3, 1]);
    }

    #[test]
    fn what_always_fails_shrinks_to_the_tame_run() {
        assert_eq!(shrink(vec![5; 40], |_| true), Vec::<u32>::new());
    }
}
