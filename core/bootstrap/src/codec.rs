//! Little-endian fields of frames: the one writer and the one reader of the bootstrap's and the agents' protocols.
//!
//! A reader checks each length before it takes bytes, and its lists grow with the bytes that are there, never with the number
//! that is announced. Its errors are [`Error::Protocol`].

use std::time::Duration;

use crate::error::{Error, Result};
use crate::limits::MAX_WORDS;

/// The longest beginning of a text that has at most `most` bytes and ends between two characters.
pub(crate) fn cut(text: &str, most: usize) -> &str {
    let ends = (0..=most.min(text.len())).rev();
    ends.filter_map(|end| text.get(..end)).next().unwrap_or("")
}

/// Appends little-endian fields to a frame.
pub(crate) struct Writer<'a>(pub(crate) &'a mut Vec<u8>);

impl Writer<'_> {
    pub(crate) fn u8(&mut self, value: u8) -> &mut Self {
        self.0.push(value);
        self
    }

    pub(crate) fn flag(&mut self, value: bool) -> &mut Self {
        self.u8(u8::from(value))
    }

    pub(crate) fn u32(&mut self, value: u32) -> &mut Self {
        self.raw(&value.to_le_bytes())
    }

    pub(crate) fn i32(&mut self, value: i32) -> &mut Self {
        self.raw(&value.to_le_bytes())
    }

    pub(crate) fn u64(&mut self, value: u64) -> &mut Self {
        self.raw(&value.to_le_bytes())
    }

    pub(crate) fn duration(&mut self, value: Duration) -> &mut Self {
        self.u64(u64::try_from(value.as_millis()).unwrap_or(u64::MAX))
    }

    /// Bytes alone, without their number.
    pub(crate) fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend_from_slice(bytes);
        self
    }

    /// Bytes behind their number (u32).
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.u32(u32::try_from(bytes.len()).unwrap_or(u32::MAX))
            .raw(bytes)
    }

    /// Text at the end of a frame, cut at [`MAX_WORDS`].
    pub(crate) fn words(&mut self, text: &str) -> &mut Self {
        self.raw(cut(text, MAX_WORDS).as_bytes())
    }

    /// Items behind their number (u32).
    pub(crate) fn list<T>(
        &mut self,
        items: &[T],
        mut each: impl FnMut(&mut Self, &T),
    ) -> &mut Self {
        self.u32(u32::try_from(items.len()).unwrap_or(u32::MAX));
        items.iter().for_each(|item| each(self, item));
        self
    }
}

/// Takes fields from the front of a body.
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// So many bytes, as [`Writer::raw`] writes them.
    pub(crate) fn raw(&mut self, count: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self
            .0
            .split_at_checked(count)
            .ok_or_else(|| Error::Protocol {
                what: format!("a frame that ends {} bytes too early", count - self.0.len()),
            })?;
        self.0 = rest;
        Ok(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.raw(N)?);
        Ok(array)
    }

    pub(crate) fn u8(&mut self) -> Result<u8> {
        Ok(u8::from_le_bytes(self.array()?))
    }

    pub(crate) fn flag(&mut self) -> Result<bool> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(malformed("flag", other)),
        }
    }

    pub(crate) fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(crate) fn i32(&mut self) -> Result<i32> {
        Ok(i32::from_le_bytes(self.array()?))
    }

    pub(crate) fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    pub(crate) fn duration(&mut self) -> Result<Duration> {
        Ok(Duration::from_millis(self.u64()?))
    }

    /// Bytes behind their number (u32).
    pub(crate) fn bytes(&mut self) -> Result<&'a [u8]> {
        let count = self.u32()?;
        self.raw(count as usize)
    }

    /// Items behind their number (u32).
    pub(crate) fn list<T>(
        &mut self,
        mut each: impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<Vec<T>> {
        let count = self.u32()?;
        (0..count).map(|_| each(self)).collect()
    }

    /// All bytes that are left.
    pub(crate) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    /// Text at the end of a frame.
    pub(crate) fn words(&mut self) -> Result<String> {
        let bytes = self.rest();
        if bytes.len() > MAX_WORDS {
            return Err(Error::Protocol {
                what: format!("a reason of {} bytes", bytes.len()),
            });
        }
        Ok(String::from_utf8_lossy(bytes).into_owned())
    }

    /// Fails unless the whole body has been taken.
    pub(crate) fn end(&self) -> Result<()> {
        if self.0.is_empty() {
            return Ok(());
        }
        Err(Error::Protocol {
            what: format!("a frame with {} bytes too many", self.0.len()),
        })
    }
}

/// A field with a value that it cannot have.
pub(crate) fn malformed(field: &str, value: impl std::fmt::Display) -> Error {
    Error::Protocol {
        what: format!("a {field} of {value}"),
    }
}
