//! Waits for words of this PE, and tests of them.

use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use oxshmem::{Cmp, bindings};
use pyo3::prelude::*;

use crate::block::Block;
use crate::errors::{Done, Failure};
use crate::job::Job;

/// The time between two looks at Python's signals, such as that of Ctrl-C.
const SIGNALS: Duration = Duration::from_millis(100);

/// Words of this PE, and the values to compare them with.
struct Words {
    address: usize,
    count: usize,
    width: usize,
    is_signed: bool,
    cmp: Cmp,
    /// One for all, or one for each.
    values: Vec<u64>,
    /// Words that do not count; none where all do.
    skip: Option<Vec<bool>>,
}

/// A comparison by its name.
pub(crate) fn comparison(call: &'static str, name: &str) -> Done<Cmp> {
    Ok(match name {
        "==" => Cmp::Eq,
        "!=" => Cmp::Ne,
        ">" => Cmp::Gt,
        ">=" => Cmp::Ge,
        "<" => Cmp::Lt,
        "<=" => Cmp::Le,
        _ => {
            let what = format!("{name:?} is no comparison; give one of ==, !=, >, >=, < and <=");
            return Err(Failure::Argument(call, what));
        }
    })
}

impl Words {
    /// A word's bits.
    fn load(&self, index: usize) -> u64 {
        let at = self.address + index * self.width;
        macro_rules! load {
            ($atomic:ty, $type:ty) => {{
                let at = std::ptr::with_exposed_provenance_mut::<$type>(at);
                // SAFETY: an aligned word of a block's host memory, which `wait` has checked and the block keeps mapped; others
                // write it whole. Acquire: stores that its writer ordered before it are seen.
                u64::from(unsafe { <$atomic>::from_ptr(at) }.load(Ordering::Acquire))
            }};
        }
        match self.width {
            2 => load!(AtomicU16, u16),
            4 => load!(AtomicU32, u32),
            _ => load!(AtomicU64, u64),
        }
    }

    fn signed(&self, bits: u64) -> i64 {
        let unused = 64 - 8 * self.width as u32;
        ((bits << unused) as i64) >> unused
    }

    fn value(&self, index: usize) -> u64 {
        let each = self.values.get(index);
        each.or(self.values.first()).copied().unwrap_or_default()
    }

    fn counts(&self, index: usize) -> bool {
        let skip = self.skip.as_ref().and_then(|skip| skip.get(index));
        !skip.copied().unwrap_or_default()
    }

    fn holds(&self, index: usize) -> bool {
        let (word, value) = (self.load(index), self.value(index));
        match self.is_signed {
            true => self.cmp.holds(self.signed(word), self.signed(value)),
            false => self.cmp.holds(word, value),
        }
    }

    fn members(&self) -> impl Iterator<Item = usize> {
        (0..self.count).filter(|index| self.counts(*index))
    }

    /// The words that hold, if they are what the mode asks for: of all, all; of any and some, those that hold.
    fn found(&self, mode: Mode) -> Option<Vec<usize>> {
        match mode {
            Mode::All => self.members().all(|index| self.holds(index)).then(Vec::new),
            Mode::Some => {
                let some: Vec<_> = self.members().filter(|index| self.holds(*index)).collect();
                (!some.is_empty()).then_some(some)
            }
        }
    }
}

/// The number of words that are to hold.
#[derive(Clone, Copy)]
enum Mode {
    All,
    Some,
}

/// Waits until words of this PE compare as asked, or tests whether they do. Gives the indices of `some`; nothing where a test fails.
#[pyfunction]
pub(crate) fn wait(
    py: Python<'_>,
    job: &Job,
    context: u64,
    block: &Block,
    offset: usize,
    words: (usize, usize, bool),
    cmp: &str,
    values: Vec<u64>,
    skip: Option<Vec<bool>>,
    mode: (bool, bool),
) -> PyResult<Option<Vec<usize>>> {
    let (count, width, is_signed) = words;
    let (of_all, is_test) = mode;
    let call = if is_test { "test" } else { "wait_until" };
    job.run(py, |live| {
        if !matches!(width, 2 | 4 | 8) {
            let what = "words are of 2, 4 or 8 bytes; use int16 to int64, or uint16 to uint64";
            return Err(Failure::Argument(call, what.into()));
        }
        let address = block.own_address(call, offset, count.saturating_mul(width))?;
        if !address.is_multiple_of(width) {
            let offset = block.offset_of(offset);
            return Err(oxshmem::Error::Misaligned {
                call,
                offset,
                align: width,
            }
            .into());
        }
        let words = Words {
            address,
            count,
            width,
            is_signed,
            cmp: comparison(call, cmp)?,
            values,
            skip,
        };
        let mode = if of_all { Mode::All } else { Mode::Some };
        let entry = live.context(context)?;
        if is_test {
            return Ok(bindings::poll_once(&entry.context, || words.found(mode))?);
        }
        if words.members().next().is_none() {
            return Ok(Some(Vec::new()));
        }
        let what = || match count {
            1 => format!(
                "the word at offset {} ({}) to be {cmp} {}",
                block.offset_of(offset),
                words.load(0),
                words.value(0)
            ),
            _ => format!("{count} words at offset {}", block.offset_of(offset)),
        };
        let mut looked = Instant::now();
        let poll = || -> Option<Done<Vec<usize>>> {
            if let Some(found) = words.found(mode) {
                return Some(Ok(found));
            }
            if looked.elapsed() < SIGNALS {
                return None;
            }
            looked = Instant::now();
            let raised = Python::attach(|py| py.check_signals());
            raised.err().map(|raised| Err(raised.into()))
        };
        bindings::wait_for(&entry.context, call, &what, poll)?.map(Some)
    })
}
