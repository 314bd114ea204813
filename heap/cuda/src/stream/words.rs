//! Words in memory that a stream writes and awaits.

use std::ffi::c_uint;

use cudarc::driver::sys::CUstreamWaitValue_flags as Wait;

use super::Stream;
use crate::error::{Error, Result};
use crate::pointer::DevicePtr;
use crate::table::call_optional;

/// The condition on a word in memory for which a stream waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compare {
    /// `word - value`, as a signed number, is not negative: the order of counters that may wrap.
    Geq,
    /// `word == value`.
    Eq,
    /// `word & value != 0`.
    And,
    /// `!(word | value) != 0`; where the GPU has it ([`Device::has_wait_nor`]).
    ///
    /// [`Device::has_wait_nor`]: crate::Device::has_wait_nor
    Nor,
}

impl Compare {
    fn flags(self, flush: bool) -> c_uint {
        let compare = match self {
            Compare::Geq => Wait::CU_STREAM_WAIT_VALUE_GEQ,
            Compare::Eq => Wait::CU_STREAM_WAIT_VALUE_EQ,
            Compare::And => Wait::CU_STREAM_WAIT_VALUE_AND,
            Compare::Nor => Wait::CU_STREAM_WAIT_VALUE_NOR,
        };
        let flush = if flush {
            Wait::CU_STREAM_WAIT_VALUE_FLUSH as c_uint
        } else {
            0
        };
        compare as c_uint | flush
    }
}

impl Stream {
    /// Writes a word once all earlier work of the stream is done and visible to whoever sees the
    /// word, host, peers and NICs included.
    ///
    /// # Safety
    ///
    /// Until it is done the word stays allocated and mapped for the GPU; others access it by whole
    /// 64-bit words only.
    #[doc(alias = "cuStreamWriteValue64")]
    pub unsafe fn write_value64(&self, at: DevicePtr, value: u64) -> Result<()> {
        self.check_word(at, 8)?;
        let _current = self.context.enter()?;
        // SAFETY: the caller answers for the word.
        unsafe {
            call_optional!(
                self,
                cuStreamWriteValue64_v2(self.raw, at.as_raw(), value, 0)
            )
        }
    }

    /// As [`write_value64`](Self::write_value64), with a word of 32 bits.
    ///
    /// # Safety
    ///
    /// As there.
    #[doc(alias = "cuStreamWriteValue32")]
    pub unsafe fn write_value32(&self, at: DevicePtr, value: u32) -> Result<()> {
        self.check_word(at, 4)?;
        let _current = self.context.enter()?;
        // SAFETY: the caller answers for the word.
        unsafe {
            call_optional!(
                self,
                cuStreamWriteValue32_v2(self.raw, at.as_raw(), value, 0)
            )
        }
    }

    /// Lets no later work of the stream begin before a word is as wanted. With `flush` what a NIC
    /// wrote before the word is visible to that work too; where the GPU can't
    /// ([`Device::flush_options`](crate::Device::flush_options)) that is an error.
    ///
    /// # Safety
    ///
    /// Until it is done the word stays allocated and mapped for the GPU; others write it by whole
    /// 64-bit words only.
    #[doc(alias = "cuStreamWaitValue64")]
    pub unsafe fn wait_value64(
        &self,
        at: DevicePtr,
        compare: Compare,
        value: u64,
        flush: bool,
    ) -> Result<()> {
        self.check_word(at, 8)?;
        let flags = self.wait_flags(compare, flush)?;
        let _current = self.context.enter()?;
        // SAFETY: the caller answers for the word.
        unsafe {
            call_optional!(
                self,
                cuStreamWaitValue64_v2(self.raw, at.as_raw(), value, flags)
            )
        }
    }

    /// As [`wait_value64`](Self::wait_value64), with a word of 32 bits.
    ///
    /// # Safety
    ///
    /// As there.
    #[doc(alias = "cuStreamWaitValue32")]
    pub unsafe fn wait_value32(
        &self,
        at: DevicePtr,
        compare: Compare,
        value: u32,
        flush: bool,
    ) -> Result<()> {
        self.check_word(at, 4)?;
        let flags = self.wait_flags(compare, flush)?;
        let _current = self.context.enter()?;
        // SAFETY: the caller answers for the word.
        unsafe {
            call_optional!(
                self,
                cuStreamWaitValue32_v2(self.raw, at.as_raw(), value, flags)
            )
        }
    }

    fn check_word(&self, at: DevicePtr, bytes: u64) -> Result<()> {
        if !self.memops {
            return Err(Error::Unsupported {
                device: self.ordinal(),
                what: "writing and awaiting words on a stream",
                mend: "a kernel must do it; or allow it (NVreg_EnableStreamMemOPs=1)",
            });
        }
        if !at.is_aligned_to(bytes) {
            return Err(Error::Invalid {
                what: "a word on a stream",
                why: format!("{at:?} is not aligned to {bytes} bytes"),
            });
        }
        Ok(())
    }

    fn wait_flags(&self, compare: Compare, flush: bool) -> Result<c_uint> {
        if flush && !self.flush {
            return Err(Error::Unsupported {
                device: self.ordinal(),
                what: "flushing a NIC's writes on a stream",
                mend: "flush from the host, or by a read over the NIC",
            });
        }
        Ok(compare.flags(flush))
    }
}
