//! The matrix of NVLink bandwidths that hwloc has from NVML.

use std::collections::BTreeMap;

use roxmltree::Node;

use super::objects::Found;
use super::{elements, wrong};
use crate::bandwidth::Bandwidth;
use crate::error::{Result, quoted};

/// More GPUs and NVSwitch ports than a host has.
const MOST_OBJECTS: usize = 1024;

pub(super) fn is_matrix(node: Node<'_, '_>) -> bool {
    matches!(node.tag_name().name(), "distances2" | "distances2hetero")
        && node.attribute("name") == Some("NVLinkBandwidth")
}

/// Takes in the pairs of GPUs with links between them, in MB/s. Where GPUs are joined to NVSwitch,
/// whose ports are objects of their own, a pair has what the lesser of the two has to all ports.
pub(super) fn read(matrix: Node<'_, '_>, found: &mut Found<'_>) -> Result<()> {
    let gp_indices = words(matrix, "indexes", |word| {
        // `OSDev:23` where the objects are of several types.
        let digits = word.rsplit_once(':').map_or(word, |(_, digits)| digits);
        digits.parse::<u64>().ok()
    })?;
    let count = gp_indices.len();
    if count > MOST_OBJECTS {
        return Err(wrong(matrix, &format!("over {MOST_OBJECTS} objects")));
    }
    let values = words(matrix, "u64values", |word| word.parse::<u64>().ok())?;
    if values.len() != count * count {
        let found = values.len();
        return Err(wrong(
            matrix,
            &format!("{found} values for {count} objects"),
        ));
    }
    let functions: Vec<Option<usize>> = gp_indices
        .iter()
        .map(|&index| found.function_of(index))
        .collect();
    let gpu = |at: usize| functions[at].filter(|&function| found.is_gpu(function));
    let is_switch = |at: usize| functions[at].is_some() && gpu(at).is_none();
    let value = |from: usize, to: usize| values[from * count + to];
    let to_switches: Vec<u64> = (0..count)
        .map(|from| {
            let ports = (0..count).filter(|&to| is_switch(to));
            ports.fold(0u64, |sum, to| sum.saturating_add(value(from, to)))
        })
        .collect();
    // One GPU may be in the matrix under several names.
    let mut pairs = BTreeMap::<(usize, usize), u64>::new();
    for from in 0..count {
        for to in 0..count {
            if let (Some(one), Some(two)) = (gpu(from), gpu(to))
                && one < two
            {
                let direct = value(from, to).max(value(to, from));
                let switched = to_switches[from].min(to_switches[to]);
                let pair = pairs.entry((one, two)).or_default();
                *pair = (*pair).max(direct).max(switched);
            }
        }
    }
    for ((one, two), bandwidth) in pairs {
        let bandwidth = u32::try_from(bandwidth)
            .map_err(|_| wrong(matrix, &format!("{bandwidth} MB/s is no bandwidth")))?;
        if let Some(bandwidth) = Bandwidth::from_mb_per_s(bandwidth) {
            // Where a pair is in several matrices, the wider counts.
            let known = found.nvlinks.entry((one, two)).or_insert(bandwidth);
            *known = bandwidth.max(*known);
        }
    }
    Ok(())
}

/// The words in all elements called `name` below `matrix`: hwloc spreads long lists over several.
fn words<T>(matrix: Node<'_, '_>, name: &str, parse: impl Fn(&str) -> Option<T>) -> Result<Vec<T>> {
    elements(matrix)
        .filter(|node| node.tag_name().name() == name)
        .flat_map(|node| node.text().unwrap_or_default().split_ascii_whitespace())
        .map(|word| {
            let what = || {
                wrong(
                    matrix,
                    &format!("{} makes no sense in {name}", quoted(word)),
                )
            };
            parse(word).ok_or_else(what)
        })
        .collect()
}
