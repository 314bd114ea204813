//! Strided and block-strided transfers.

use oxshmem::{Error, Result};
use proptest::prelude::*;

use crate::setting::{Pe, patterns, runner};

#[derive(Clone, Copy, Debug)]
struct Shape {
    far: usize,
    near: usize,
    block: usize,
    blocks: usize,
    start: usize,
}

fn shapes(most: usize) -> impl Strategy<Value = Shape> {
    (1..=most, 0_usize..12, 0_usize..5).prop_flat_map(|(block, blocks, start)| {
        (block..block + 6, block..block + 6).prop_map(move |(far, near)| Shape {
            far,
            near,
            block,
            blocks,
            start,
        })
    })
}

/// Where element `j` of block `i` lies, for a stride.
fn places(shape: Shape, stride: usize) -> impl Iterator<Item = usize> {
    (0..shape.blocks).flat_map(move |i| (0..shape.block).map(move |j| i * stride + j))
}

const LEN: usize = 12 * 40;

/// A put by strides against a reference, then a get by them; nothing between changes.
fn equals_reference(pe: &Pe<'_>, most: usize, block_forms: bool) -> Result<()> {
    let x = pe.alloc::<u32>(LEN)?;
    let source: Vec<u32> = patterns(pe.me(), LEN).iter().map(|v| *v as u32).collect();
    let cases = if pe.has_addresses() { 60 } else { 12 };
    let checked = runner(cases).run(&shapes(most), |shape| {
        let Shape {
            far,
            near,
            block,
            blocks,
            start,
        } = shape;
        pe.write(x, &[u32::MAX; LEN]).unwrap();
        pe.barrier_all().unwrap();
        let target = x.range(start..).unwrap();
        if block_forms {
            pe.ibput(target, &source, far, near, block, blocks, pe.right())
                .unwrap();
        } else {
            pe.iput(target, &source, far, near, blocks, pe.right())
                .unwrap();
        }
        pe.barrier_all().unwrap();
        let mut expected = vec![u32::MAX; LEN];
        for (to, from) in places(shape, far).zip(places(shape, near)) {
            expected[start + to] = source[from];
        }
        prop_assert!(
            pe.copy_at(x, pe.right()).unwrap() == expected,
            "put {:?}",
            shape
        );
        let mut back = vec![7_u32; LEN];
        if block_forms {
            pe.ibget(&mut back, target, near, far, block, blocks, pe.right())
                .unwrap();
        } else {
            pe.iget(&mut back, target, near, far, blocks, pe.right())
                .unwrap();
        }
        let mut expected = vec![7; LEN];
        for i in places(shape, near) {
            expected[i] = source[i];
        }
        prop_assert!(back == expected, "get {:?}", shape);
        pe.barrier_all().unwrap();
        Ok(())
    });
    checked.unwrap_or_else(|e| panic!("{e}"));
    pe.free(x)
}

pub fn strided_transfers_equal_a_reference(pe: &Pe<'_>) -> Result<()> {
    equals_reference(pe, 1, false)
}

pub fn block_strided_transfers_equal_a_reference(pe: &Pe<'_>) -> Result<()> {
    equals_reference(pe, 30, true)
}

pub fn m35_strides_that_make_no_sense_or_leave_an_object_are_refused(pe: &Pe<'_>) -> Result<()> {
    let x = pe.alloc_zeroed::<u64>(10)?;
    let (source, mut back) = ([1; 10], [0; 10]);
    let argument = |r: Result<()>| assert!(matches!(r, Err(Error::Argument { .. })), "{r:?}");
    let outside = |r: Result<()>| assert!(matches!(r, Err(Error::OutOfRange { .. })), "{r:?}");
    let short = |r: Result<()>| assert!(matches!(r, Err(Error::BufferTooSmall { .. })), "{r:?}");
    let at = pe.right();
    argument(pe.iput(x, &source, 0, 1, 3, at));
    argument(pe.iput(x, &source, 1, 0, 3, at));
    argument(pe.iget(&mut back, x, 0, 1, 3, at));
    argument(pe.ibput(x, &source, 2, 3, 3, 2, at));
    argument(pe.ibget(&mut back, x, 3, 2, 3, 2, at));
    outside(pe.iput(x, &source, 3, 1, 5, at));
    outside(pe.iget(&mut back, x, 1, 3, 5, at));
    outside(pe.ibput(x, &source, 4, 3, 3, 3, at));
    outside(pe.iput(x, &source, usize::MAX, 1, 3, at));
    outside(pe.iput(x, &source, usize::MAX / 2 + 1, 1, 3, at));
    outside(pe.ibput(x, &source, usize::MAX, 1, 1, usize::MAX, at));
    short(pe.iput(x, &source, 1, 3, 5, at));
    short(pe.iget(&mut back, x, usize::MAX, 1, 2, at));
    short(pe.ibget(&mut back, x, 6, 3, 3, 3, at));
    pe.barrier_all()?;
    assert_eq!(pe.own(x)?, [0; 10], "a refused transfer moves nothing");
    pe.barrier_all()?;
    // The last element may be the object's last, and nothing may be asked for.
    pe.iput(x, &source, 3, 3, 4, at)?;
    pe.iput(x, &source, 1, 1, 0, at)?;
    pe.ibput(x, &source, 5, 5, 5, 2, at)?;
    pe.ibput(x, &[], 5, 5, 5, 0, at)?;
    pe.ibput(x, &[], 1, 1, 0, 7, at)?;
    pe.iget(&mut [], x, 1, 1, 0, at)?;
    pe.barrier_all()?;
    assert_eq!(pe.own(x)?, [1; 10]);
    pe.free(x)
}
