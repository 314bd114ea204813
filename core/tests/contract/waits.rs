//! Waiting and testing, in all their forms.

use std::fmt::Debug;

use oxshmem::{Cmp, Error, Result, Sym, Waitable};

use crate::order::poll;
use crate::setting::Pe;

const ALL: [Cmp; 6] = [Cmp::Eq, Cmp::Ne, Cmp::Gt, Cmp::Ge, Cmp::Lt, Cmp::Le];

fn compares<T: Waitable + Debug>(pe: &Pe<'_>, values: &[T]) -> Result<()> {
    let x: Sym<T> = pe.alloc_zeroed(1)?;
    for word in values {
        pe.p(x, *word, pe.right())?;
        pe.barrier_all()?;
        for value in values {
            let expected = [
                word == value,
                word != value,
                word > value,
                word >= value,
                word < value,
                word <= value,
            ];
            for (cmp, expected) in ALL.into_iter().zip(expected) {
                assert_eq!(
                    pe.test(x, cmp, *value)?,
                    expected,
                    "{word:?} {cmp:?} {value:?}"
                );
                assert_eq!(cmp.holds(*word, *value), expected);
                if expected {
                    pe.wait_until(x, cmp, *value)?;
                }
            }
        }
        pe.barrier_all()?;
    }
    pe.free(x)
}

pub fn comparisons_follow_the_type_and_its_sign(pe: &Pe<'_>) -> Result<()> {
    compares::<i32>(pe, &[0, 1, -1, i32::MIN, i32::MAX])?;
    compares::<u32>(pe, &[0, 1, 1 << 31, u32::MAX])?;
    compares::<i64>(pe, &[0, 1, -1, i64::MIN, i64::MAX])?;
    compares::<u64>(pe, &[0, 1, 1 << 63, u64::MAX, 1 << 32])?;
    compares::<isize>(pe, &[0, -1, isize::MIN])?;
    compares::<usize>(pe, &[0, 1, usize::MAX])
}

pub fn a_set_without_words_is_satisfied_at_once(pe: &Pe<'_>) -> Result<()> {
    const NONE: [usize; 0] = [];
    let x = pe.alloc_zeroed::<i64>(3)?;
    let none = x.range(..0)?;
    let masked = [true; 3];
    for (words, skip) in [
        (none, None),
        (none, Some(&masked[..])),
        (x, Some(&masked[..])),
    ] {
        pe.wait_until_all(words, skip, Cmp::Eq, 1)?;
        pe.wait_until_all_vector(words, skip, Cmp::Eq, &[1; 3])?;
        assert_eq!(pe.wait_until_any(words, skip, Cmp::Eq, 1)?, None);
        assert_eq!(
            pe.wait_until_any_vector(words, skip, Cmp::Eq, &[1; 3])?,
            None
        );
        assert_eq!(pe.wait_until_some(words, skip, Cmp::Eq, 1)?, NONE);
        assert_eq!(
            pe.wait_until_some_vector(words, skip, Cmp::Eq, &[1; 3])?,
            NONE
        );
        assert!(pe.test_all(words, skip, Cmp::Eq, 1)?);
        assert!(pe.test_all_vector(words, skip, Cmp::Eq, &[1; 3])?);
        assert_eq!(pe.test_any(words, skip, Cmp::Eq, 0)?, None);
        assert_eq!(pe.test_any_vector(words, skip, Cmp::Eq, &[0; 3])?, None);
        assert_eq!(pe.test_some(words, skip, Cmp::Eq, 0)?, NONE);
        assert_eq!(pe.test_some_vector(words, skip, Cmp::Eq, &[0; 3])?, NONE);
    }
    pe.free(x)
}

pub fn tests_look_at_the_words_that_are_not_skipped(pe: &Pe<'_>) -> Result<()> {
    let x = pe.alloc::<i32>(5)?;
    pe.write(x, &[1, -2, 3, -4, 5])?;
    assert!(!pe.test_all(x, None, Cmp::Gt, 0)?);
    let negative = [false, true, false, true, false];
    assert!(pe.test_all(x, Some(&negative), Cmp::Gt, 0)?);
    assert_eq!(pe.test_some(x, None, Cmp::Gt, 0)?, [0, 2, 4]);
    assert_eq!(
        pe.test_some(x, Some(&[true, false, false, false, true]), Cmp::Gt, 0)?,
        [2]
    );
    assert_eq!(pe.test_any(x, Some(&negative), Cmp::Lt, 0)?, None);
    assert_eq!(pe.test_any(x, None, Cmp::Lt, -3)?, Some(3));
    assert!(pe.test_all_vector(x, None, Cmp::Eq, &[1, -2, 3, -4, 5])?);
    assert!(!pe.test_all_vector(x, None, Cmp::Eq, &[1, -2, 3, -4, 6])?);
    assert_eq!(
        pe.test_some_vector(x, None, Cmp::Ne, &[1, 0, 3, 0, 5])?,
        [1, 3]
    );
    assert_eq!(
        pe.test_any_vector(x, Some(&negative), Cmp::Ne, &[1, 0, 3, 0, 9])?,
        Some(4)
    );
    pe.wait_until_all(x, Some(&negative), Cmp::Gt, 0)?;
    pe.wait_until_all_vector(x, None, Cmp::Eq, &[1, -2, 3, -4, 5])?;
    assert_eq!(pe.wait_until_some(x, None, Cmp::Lt, 0)?, [1, 3]);
    assert_eq!(
        pe.wait_until_some_vector(x, None, Cmp::Ge, &[2, -2, 4, -4, 6])?,
        [1, 3]
    );
    assert_eq!(pe.wait_until_any(x, None, Cmp::Eq, -4)?, Some(3));
    assert_eq!(
        pe.wait_until_any_vector(x, None, Cmp::Eq, &[0, 0, 0, 0, 5])?,
        Some(4)
    );
    pe.free(x)
}

/// Every PE owns one word of each peer's set; each form ends when its words have come.
pub fn waits_end_when_their_words_come(pe: &Pe<'_>) -> Result<()> {
    let n = pe.n_pes();
    let x = pe.alloc_zeroed::<u64>(n)?;
    let mine = x.at(pe.me())?;
    let tell = |value: u64| (0..n).try_for_each(|to| pe.p(mine, value, to));
    let mut value = 0;
    for _ in 0..pe.rounds(100) {
        value += 1;
        tell(value)?;
        pe.wait_until_all(x, None, Cmp::Ge, value)?;
        assert!(pe.own(x)?.iter().all(|v| *v >= value));
        pe.barrier_all()?;

        value += 1;
        tell(value)?;
        pe.wait_until_all_vector(x, None, Cmp::Eq, &vec![value; n])?;
        pe.barrier_all()?;

        // One by one, each index once.
        value += 1;
        tell(value)?;
        let mut done = vec![false; n];
        for _ in 0..n {
            let Some(i) = pe.wait_until_any(x, Some(&done), Cmp::Eq, value)? else {
                panic!("none of {done:?}")
            };
            assert!(!std::mem::replace(&mut done[i], true), "{i} twice");
        }
        assert_eq!(pe.wait_until_any(x, Some(&done), Cmp::Eq, value)?, None);
        pe.barrier_all()?;

        // Some at a time.
        value += 1;
        tell(value)?;
        let mut done = vec![false; n];
        while done.contains(&false) {
            let some = pe.wait_until_some(x, Some(&done), Cmp::Eq, value)?;
            assert!(!some.is_empty());
            for i in some {
                assert!(!std::mem::replace(&mut done[i], true), "{i} twice");
            }
        }
        pe.barrier_all()?;
    }
    pe.free(x)
}

pub fn any_takes_turns(pe: &Pe<'_>) -> Result<()> {
    let x = pe.alloc::<u64>(6)?;
    let y = pe.alloc::<u64>(2)?;
    pe.write(x, &[1, 1, 0, 1, 1, 1])?;
    pe.write(y, &[1, 1])?;
    for test in [true, false] {
        let (mut in_x, mut in_y) = ([0; 6], [0; 2]);
        // Two sets by turns: neither's choice may starve a word of the other's. At random, a word
        // has at least one chance in six each time: 300 times without it happen once in 10^23.
        for _ in 0..300 {
            for (words, seen) in [(x, &mut in_x[..]), (y, &mut in_y[..])] {
                let found = if test {
                    pe.test_any(words, None, Cmp::Eq, 1)?
                } else {
                    pe.wait_until_any(words, None, Cmp::Eq, 1)?
                };
                seen[found.expect("a word holds")] += 1;
            }
        }
        for (word, seen) in in_x.iter().chain(&in_y).enumerate() {
            assert_eq!(*seen > 0, word != 2, "word {word}: {in_x:?} {in_y:?}");
        }
    }
    pe.free(y)?;
    pe.free(x)
}

pub fn a_mask_or_vector_that_is_too_short_is_refused(pe: &Pe<'_>) -> Result<()> {
    let x = pe.alloc_zeroed::<u32>(4)?;
    let short = |result: Result<()>| {
        assert!(
            matches!(
                result,
                Err(Error::BufferTooSmall {
                    len: 3,
                    needed: 4,
                    ..
                })
            ),
            "{result:?}"
        );
    };
    short(pe.wait_until_all(x, Some(&[false; 3]), Cmp::Eq, 0));
    short(
        pe.wait_until_any(x, Some(&[false; 3]), Cmp::Eq, 0)
            .map(drop),
    );
    short(pe.test_some(x, Some(&[false; 3]), Cmp::Eq, 0).map(drop));
    short(pe.wait_until_all_vector(x, None, Cmp::Eq, &[0; 3]));
    short(pe.test_any_vector(x, None, Cmp::Eq, &[0; 3]).map(drop));
    short(
        pe.test_all_vector(x, Some(&[false; 4]), Cmp::Eq, &[0; 3])
            .map(drop),
    );
    assert!(matches!(
        pe.wait_until(x.range(..0)?, Cmp::Eq, 0),
        Err(Error::OutOfRange { .. })
    ));
    assert!(matches!(
        pe.test(x.range(..0)?, Cmp::Eq, 0),
        Err(Error::OutOfRange { .. })
    ));
    pe.free(x)
}

/// Words of 32 bits, set by plain puts of single elements.
pub fn a_put_wakes_a_wait_for_a_narrow_word(pe: &Pe<'_>) -> Result<()> {
    let x = pe.alloc_zeroed::<i32>(2)?;
    for round in 1..=pe.rounds(1000) as i32 {
        pe.p(x.at(0)?, -round, pe.right())?;
        pe.wait_until(x.at(0)?, Cmp::Le, -round)?;
        pe.put(x.at(1)?, &[round], pe.left())?;
        pe.quiet()?;
        poll(|| pe.test(x.at(1)?, Cmp::Eq, round))?;
        pe.barrier_all()?;
    }
    pe.free(x)
}
