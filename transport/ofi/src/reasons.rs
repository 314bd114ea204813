//! The reasons for the guarantees of order, in words, for `oxshmem info`.

use crate::facts::{Facts, bits};
use crate::limits::LONGEST;
use crate::plan::{AtomicPath, Plan, PutPath};

/// The orders of a plan, each with the fact that it follows from.
pub(crate) fn orders(facts: &Facts, plan: &Plan) -> String {
    let promised = &plan.guarantees;
    let gets = match promised.get_get {
        true => "gets keep their order (FI_ORDER_RAR)",
        false => "gets have no order (no FI_ORDER_RAR)",
    };
    let atomics = match plan.atomics {
        AtomicPath::Provider => "; its atomics have no order with anything else",
        AtomicPath::Messages => "",
    };
    match plan.puts {
        PutPath::Messages => format!(
            "puts keep their order, by the numbers of their messages; a get may pass them, for it is a read of the provider; {gets}{atomics}"
        ),
        PutPath::Rma => {
            let has = |any, of_rma| facts.has_order(any, of_rma);
            let puts = match promised.put_put {
                true => "keep their order",
                false => "have no order",
            };
            let sees = match promised.put_get {
                true => "sees earlier puts",
                false => "may pass puts",
            };
            let writes = has(bits::ORDER_WAW, bits::ORDER_RMA_WAW);
            let reads = has(bits::ORDER_RAW, bits::ORDER_RMA_RAW);
            format!(
                "puts {puts} ({}); messages pass them; a get {sees} ({}); {gets}{atomics}",
                declared("FI_ORDER_WAW", writes, facts.write_after_write),
                declared("FI_ORDER_RAW", reads, facts.read_after_write)
            )
        }
    }
}

/// An order as the provider declares it: at all, and up to a size.
fn declared(name: &str, is_kept: bool, size: u64) -> String {
    match (is_kept, size) {
        (false, _) => format!("no {name}"),
        (true, LONGEST..) => name.to_owned(),
        (true, size) => format!("{name} holds for at most {size} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::tests::of_dump;
    use crate::plan::plan;
    use crate::settings::{Atomics, Puts};

    fn tcp() -> Facts {
        of_dump(include_str!("../tests/fixtures/tcp-rxm-1.17.txt"))
    }

    fn said(facts: &Facts, puts: Puts) -> String {
        orders(facts, &plan(facts, puts, Atomics::Auto).unwrap())
    }

    #[test]
    fn m17_the_reason_for_each_order_is_the_providers_word() {
        let text = said(&tcp(), Puts::Messages);
        for words in [
            "by the numbers of their messages",
            "a get may pass them",
            "gets keep their order (FI_ORDER_RAR)",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
        let text = said(&tcp(), Puts::SplitRma);
        for words in [
            "puts keep their order (FI_ORDER_WAW)",
            "a get sees earlier puts (FI_ORDER_RAW)",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
    }

    #[test]
    fn m17_atomics_of_a_provider_are_said_to_have_no_order() {
        let cxi = of_dump(include_str!("../tests/fixtures/cxi-2.0.txt"));
        let words = "its atomics have no order";
        assert!(said(&cxi, Puts::Auto).contains(words));
        assert!(!said(&tcp(), Puts::Auto).contains(words));
    }

    #[test]
    fn m17_a_missing_order_and_one_for_short_data_are_said() {
        let short = Facts {
            write_after_write: 4096,
            ..tcp()
        };
        let text = said(&short, Puts::SplitRma);
        let words = "puts have no order (FI_ORDER_WAW holds for at most 4096 bytes)";
        assert!(text.contains(words), "{text}");
        let none = Facts { order: 0, ..tcp() };
        let text = said(&none, Puts::SplitRma);
        for words in [
            "puts have no order (no FI_ORDER_WAW)",
            "a get may pass puts (no FI_ORDER_RAW)",
            "gets have no order (no FI_ORDER_RAR)",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
        assert!(said(&none, Puts::Messages).contains("gets have no order (no FI_ORDER_RAR)"));
    }
}
