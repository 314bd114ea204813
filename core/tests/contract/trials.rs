//! One collective call of a team, of any kind, against what it is by definition.

use oxshmem::{Fold, Result, Sym, Team};
use proptest::prelude::*;

use crate::numbers::Number;
use crate::sequences::plan::Kind;
use crate::setting::{Pe, pattern};

/// A call with its sizes.
#[derive(Clone, Debug)]
pub struct Trial {
    pub kind: Kind,
    /// Elements: of an object, or of all blocks of one together.
    pub len: usize,
    /// Of the destination and of the source.
    pub strides: (usize, usize),
    pub fold: Fold,
    pub root: usize,
    /// The seed of the members' data.
    pub seed: usize,
}

/// Any call.
pub fn trials() -> impl Strategy<Value = Trial> {
    let len = prop_oneof![3 => 0_usize..12, 2 => 12_usize..300, 1 => 300_usize..3000];
    let kinds = prop::sample::select(&Kind::ALL[..]);
    let folds = prop::sample::select(&Fold::ALL[..]);
    let strides = (1_usize..4, 1_usize..5);
    let all = (kinds, len, strides, folds, 0_usize..64, 0_usize..1000);
    all.prop_map(|(kind, len, strides, fold, root, seed)| Trial {
        kind,
        len,
        strides,
        fold,
        root,
        seed,
    })
}

/// Makes the call; nothing but its result has changed then. Blocks are shorter where the objects have no room for them.
pub fn attempt(pe: &Pe<'_>, team: &Team<'_>, trial: &Trial, x: [Sym<u32>; 2]) -> Result<()> {
    let (n, me) = (team.n_pes(), team.my_pe());
    let (len, fold, root, (ds, ss)) = (trial.len, trial.fold, trial.root % n, trial.strides);
    // Parts of a collect are longer by one, and begin apart.
    let room = x[0].len().saturating_sub(4 * n) / ds.max(ss);
    let each = len.min(room) / n;
    // Element i of member m's source.
    let given = |m: usize, i: usize| u32::make(pattern(m + 1024 * trial.seed, i));
    let mine: Vec<u32> = (0..x[1].len()).map(|i| given(me, i)).collect();
    let before: Vec<u32> = (0..x[0].len()).map(|i| i as u32 ^ 0x5555_5555).collect();
    let mut expected = before.clone();
    let folded = |members: std::ops::Range<usize>, i: usize| {
        let mut values = members.map(|m| given(m, i));
        u32::fold(fold, &mut values).unwrap_or(u32::nothing(fold))
    };
    let [dst, src] = x;
    pe.write(dst, &before)?;
    pe.write(src, &mine)?;
    match trial.kind {
        Kind::Sync => team.sync()?,
        Kind::Barrier => team.barrier()?,
        Kind::Broadcast => {
            team.broadcast(dst.range(..len)?, src.range(..len)?, root)?;
            (0..len).for_each(|i| expected[i] = given(root, i));
        }
        Kind::Fcollect => {
            team.fcollect(dst.range(..n * each)?, src.range(..each)?)?;
            (0..n * each).for_each(|i| expected[i] = given(i / each, i % each));
        }
        Kind::Collect => {
            // Lengths and places that differ.
            let part = |m: usize| (pattern(m, trial.seed) as usize % (each + 2), m * 3);
            let (count, at) = part(me);
            let all: Vec<u32> = (0..n)
                .flat_map(|m| (0..part(m).0).map(move |i| given(m, i + part(m).1)))
                .collect();
            let got = team.collect(dst, src.range(at..at + count)?)?;
            assert_eq!(got, all.len());
            expected[..got].copy_from_slice(&all);
        }
        Kind::Alltoall => {
            let all = each * n;
            team.alltoall(dst.range(..all)?, src.range(..all)?)?;
            (0..all).for_each(|i| expected[i] = given(i / each, me * each + i % each));
        }
        Kind::Alltoalls => {
            team.alltoalls(dst, src, ds, ss, each)?;
            for i in 0..each * n {
                expected[i * ds] = given(i / each, (me * each + i % each) * ss);
            }
        }
        Kind::ReduceScatter => {
            team.reduce_scatter(dst.range(..each)?, src.range(..each * n)?, fold)?;
            (0..each).for_each(|i| expected[i] = folded(0..n, me * each + i));
        }
        Kind::Reduce => {
            team.reduce(dst.range(..len)?, src.range(..len)?, fold)?;
            (0..len).for_each(|i| expected[i] = folded(0..n, i));
        }
        Kind::Inscan => {
            team.inscan(dst.range(..len)?, src.range(..len)?, fold)?;
            (0..len).for_each(|i| expected[i] = folded(0..me + 1, i));
        }
        Kind::Exscan => {
            team.exscan(dst.range(..len)?, src.range(..len)?, fold)?;
            (0..len).for_each(|i| expected[i] = folded(0..me, i));
        }
    }
    let n_pes = pe.n_pes();
    assert!(pe.own(dst)? == expected, "{trial:?} of {n} of {n_pes} PEs");
    assert!(
        pe.own(src)? == mine,
        "{trial:?} of {n} of {n_pes} PEs: the source"
    );
    if trial.kind != Kind::ReduceScatter {
        return Ok(());
    }
    // In place: at the first block, at each member's own, and at either.
    for form in 0..3 {
        let at = match form {
            0 => 0,
            1 => me,
            _ => me * (pattern(trial.seed, me) % 2) as usize,
        };
        let place = at * each..(at + 1) * each;
        pe.write(src, &mine)?;
        team.reduce_scatter(src.range(place.clone())?, src.range(..each * n)?, fold)?;
        let mut found = pe.own(src)?;
        assert!(found[place.clone()] == expected[..each], "{trial:?} {form}");
        found[place.clone()].copy_from_slice(&mine[place]);
        assert!(found == mine, "{trial:?} {form}: other blocks");
    }
    Ok(())
}
