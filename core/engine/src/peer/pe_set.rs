//! Sets of PEs: one bit each, or the sorted list of a call.

use std::borrow::Cow;

const BITS: usize = u64::BITS as usize;

/// A set of PEs, one bit for each. It allocates when a PE first lies beyond its last word.
#[derive(Clone, Debug, Default)]
pub(crate) struct PeSet {
    words: Vec<u64>,
    len: usize,
}

impl PeSet {
    /// Makes room for this many PEs.
    pub(crate) fn reserve(&mut self, pes: usize) {
        let words = pes.div_ceil(BITS);
        if self.words.len() < words {
            self.words.resize(words, 0);
        }
    }

    /// Adds a PE.
    #[inline]
    pub(crate) fn insert(&mut self, pe: usize) {
        self.reserve(pe + 1);
        if let Some(word) = self.words.get_mut(pe / BITS) {
            let bit = 1 << (pe % BITS);
            self.len += usize::from(*word & bit == 0);
            *word |= bit;
        }
    }

    /// Removes a PE.
    #[inline]
    pub(crate) fn remove(&mut self, pe: usize) {
        if let Some(word) = self.words.get_mut(pe / BITS) {
            let bit = 1 << (pe % BITS);
            self.len -= usize::from(*word & bit != 0);
            *word &= !bit;
        }
    }

    /// Whether it has no PE.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The first PE of it from `from` on.
    pub(crate) fn next(&self, from: usize) -> Option<usize> {
        if self.is_empty() {
            return None;
        }
        let first = from / BITS;
        let mut below = u64::MAX << (from % BITS);
        for (at, word) in self.words.iter().enumerate().skip(first) {
            let rest = word & below;
            if rest != 0 {
                return Some(at * BITS + rest.trailing_zeros() as usize);
            }
            below = u64::MAX;
        }
        None
    }
}

/// The PEs that a quiet is for.
#[derive(Clone, Debug)]
pub(crate) enum Towards<'a> {
    /// Every PE.
    All,
    /// These, in order.
    Some(Cow<'a, [usize]>),
}

impl<'a> Towards<'a> {
    /// Those of a list, or all. It copies the list only to sort it.
    pub(crate) fn of(only: Option<&'a [usize]>) -> Self {
        match only {
            None => Towards::All,
            Some(list) if list.is_sorted() => Towards::Some(Cow::Borrowed(list)),
            Some(list) => {
                let mut sorted = list.to_vec();
                sorted.sort_unstable();
                Towards::Some(Cow::Owned(sorted))
            }
        }
    }

    /// Whether a PE is one of them.
    #[inline]
    pub(crate) fn has(&self, pe: usize) -> bool {
        match self {
            Towards::All => true,
            Towards::Some(sorted) => sorted.binary_search(&pe).is_ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn all(set: &PeSet) -> Vec<usize> {
        let mut from = 0;
        let next = || {
            let pe = set.next(from)?;
            from = pe + 1;
            Some(pe)
        };
        std::iter::from_fn(next).collect()
    }

    proptest! {
        #[test]
        fn a_set_of_bits_is_a_set(steps: Vec<(bool, u8)>, reserved in 0_usize..300) {
            let (mut set, mut model) = (PeSet::default(), BTreeSet::new());
            set.reserve(reserved);
            for (add, pe) in steps {
                let pe = usize::from(pe);
                if add {
                    set.insert(pe);
                    model.insert(pe);
                } else {
                    set.remove(pe);
                    model.remove(&pe);
                }
                prop_assert_eq!(set.is_empty(), model.is_empty());
                prop_assert_eq!(set.next(pe), model.range(pe..).next().copied());
            }
            prop_assert_eq!(all(&set), Vec::from_iter(model));
        }

        #[test]
        fn a_list_in_any_order_has_its_pes_alone(list: Vec<u8>, pe: u8) {
            let list: Vec<usize> = list.into_iter().map(usize::from).collect();
            let pe = usize::from(pe);
            prop_assert_eq!(Towards::of(Some(&list)).has(pe), list.contains(&pe));
            prop_assert!(Towards::of(None).has(pe));
        }
    }

    #[test]
    fn a_sorted_list_is_not_copied() {
        assert!(matches!(
            Towards::of(Some(&[1, 1, 5])),
            Towards::Some(Cow::Borrowed(_))
        ));
    }
}
