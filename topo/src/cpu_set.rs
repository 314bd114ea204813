//! Sets of CPUs.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result, quoted};

/// A set of CPUs by the kernel's numbers, in ascending order.
///
/// Parses from and prints as the kernel's list form: `0-3,8`. An empty list is an empty set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct CpuSet(Vec<usize>);

impl CpuSet {
    /// One more than the largest number a set takes. Far above what Linux can be built for (8192),
    /// and small enough that a hostile `0-4294967295` costs nothing.
    pub const LIMIT: usize = 65_536;

    /// Number of CPUs in the set.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the set has no CPU.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The lowest CPU, if there is one.
    pub fn first(&self) -> Option<usize> {
        self.0.first().copied()
    }

    /// Whether `cpu` is in the set.
    pub fn contains(&self, cpu: usize) -> bool {
        self.0.binary_search(&cpu).is_ok()
    }

    /// The CPUs in ascending order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = usize> + '_ {
        self.0.iter().copied()
    }

    /// Whether each CPU of this set is in `other` too.
    pub fn is_subset(&self, other: &Self) -> bool {
        self.len() <= other.len() && self.iter().all(|cpu| other.contains(cpu))
    }

    /// The CPUs in both sets.
    pub fn intersection(&self, other: &Self) -> Self {
        Self(self.iter().filter(|&cpu| other.contains(cpu)).collect())
    }

    /// The CPUs in ascending order, as launchers take them.
    pub fn to_vec(&self) -> Vec<usize> {
        self.0.clone()
    }

    /// Parses the list form; the error says in words what is wrong.
    pub(crate) fn parse(text: &str) -> std::result::Result<Self, String> {
        let text = text.trim();
        if text.is_empty() {
            return Ok(Self::default());
        }
        let number = |digits: &str| {
            let digits = digits.trim();
            match digits.parse::<usize>() {
                Ok(cpu) if cpu < Self::LIMIT => Ok(cpu),
                Ok(cpu) => Err(format!("CPU {cpu} is not below {}", Self::LIMIT)),
                Err(_) => Err(format!("{} is not a CPU number", quoted(digits))),
            }
        };
        let mut ranges = Vec::new();
        for item in text.split(',') {
            let (first, last) = item.split_once('-').unwrap_or((item, item));
            let (first, last) = (number(first)?, number(last)?);
            if first > last {
                return Err(format!("the range {} runs backwards", quoted(item)));
            }
            ranges.push((first, last));
        }
        // In order, so that ranges that overlap, however many, add each CPU once.
        ranges.sort_unstable();
        let mut cpus = Vec::new();
        let mut next = 0;
        for (first, last) in ranges {
            cpus.extend(first.max(next)..=last);
            next = next.max(last + 1);
        }
        Ok(Self(cpus))
    }
}

impl FromIterator<usize> for CpuSet {
    /// Numbers from [`CpuSet::LIMIT`] on are left out.
    fn from_iter<I: IntoIterator<Item = usize>>(cpus: I) -> Self {
        let mut cpus: Vec<usize> = cpus.into_iter().filter(|&cpu| cpu < Self::LIMIT).collect();
        cpus.sort_unstable();
        cpus.dedup();
        Self(cpus)
    }
}

impl FromStr for CpuSet {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::parse(text).map_err(|why| Error::CpuList { why })
    }
}

impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut list = String::new();
        let mut rest = self.0.as_slice();
        while let Some(&first) = rest.first() {
            let run = rest
                .iter()
                .zip(first..)
                .take_while(|&(&cpu, next)| cpu == next)
                .count();
            if !list.is_empty() {
                list.push(',');
            }
            list.push_str(&first.to_string());
            if run > 1 {
                list.push('-');
                list.push_str(&(first + run - 1).to_string());
            }
            rest = &rest[run..];
        }
        f.pad(&list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_printed_set_parses_to_itself(cpus in proptest::collection::vec(0..300usize, 0..60)) {
            let set: CpuSet = cpus.iter().copied().collect();
            prop_assert!(cpus.iter().all(|&cpu| set.contains(cpu)));
            prop_assert_eq!(set.to_string().parse::<CpuSet>().unwrap(), set);
        }

        #[test]
        fn any_text_gives_a_set_or_an_error(text in "[-0-9, \n:a]{0,24}|\\PC{0,24}") {
            if let Ok(set) = text.parse::<CpuSet>() {
                prop_assert!(set.iter().all(|cpu| cpu < CpuSet::LIMIT));
            }
        }
    }

    #[test]
    fn a_list_is_read_as_the_kernel_writes_it() {
        let set: CpuSet = "0-3,8,10-11\n".parse().unwrap();
        assert_eq!(set.to_vec(), [0, 1, 2, 3, 8, 10, 11]);
        assert_eq!(set.to_string(), "0-3,8,10-11");
        assert!("\n".parse::<CpuSet>().unwrap().is_empty());
    }

    #[test]
    fn a_list_that_does_not_parse_says_which_part() {
        for (text, part) in [
            ("0-3,x", "\"x\""),
            ("3-1", "\"3-1\""),
            ("0-4294967295", "4294967295"),
            ("1,,2", "\"\""),
            ("-1", "\"\""),
            ("99999999999999999999999", "99999999999999999999999"),
        ] {
            let message = text.parse::<CpuSet>().unwrap_err().to_string();
            assert!(message.contains(part), "{text}: {message}");
        }
    }

    #[test]
    fn ranges_that_repeat_cost_no_more_than_the_set() {
        let text = vec!["0-65535"; 500].join(",");
        assert_eq!(text.parse::<CpuSet>().unwrap().len(), CpuSet::LIMIT);
    }
}
