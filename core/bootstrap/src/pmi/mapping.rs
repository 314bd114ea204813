//! A process manager's map from processes to hosts: `(vector,(0,2,4),(2,1,1))` is four
//! processes on each of the two hosts from number 0 on, and one on host 2. If the job has more
//! processes, the blocks begin again: hydra gives `(vector,(0,1,1))` for all processes of a single host.

/// Whether `mapping` says that all processes are on one host. It does not if it is malformed.
pub(super) fn is_one_host(mapping: &str) -> bool {
    let blocks = mapping
        .trim()
        .strip_prefix("(vector,(")
        .and_then(|rest| rest.strip_suffix("))"));
    let Some(blocks) = blocks else {
        return false;
    };
    let mut host = None;
    for block in blocks.split("),(") {
        let numbers = block.split(',').map(|number| number.trim().parse::<u32>());
        let numbers: Vec<u32> = numbers.map_while(Result::ok).collect();
        let &[first, 1, 1..=u32::MAX] = numbers.as_slice() else {
            return false;
        };
        if *host.get_or_insert(first) != first {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_host_is_told_from_several_and_from_nonsense() {
        for mapping in [
            "(vector,(0,1,4))",
            "(vector,(0,1,1))",
            "(vector,(3,1,4),(3,1,2))",
            " (vector,(0, 1, 4)) ",
        ] {
            assert!(is_one_host(mapping), "{mapping}");
        }
        for mapping in [
            "(vector,(0,2,2))",
            "(vector,(0,1,2),(1,1,2))",
            "(vector,(0,1,4)",
            "(vector,(0,1,4,9))",
            "(vector,(0,1,x))",
            "(vector,(0,1,0))",
            "(vector,())",
            "(vector)",
            "unknown",
            "",
        ] {
            assert!(!is_one_host(mapping), "{mapping}");
        }
    }
}
