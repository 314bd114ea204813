//! The signature of a collective call: a hash of its name and arguments.
//!
//! All members of a team must come to the same one (M36). Members compare signatures whenever they meet.

use bytemuck::Pod;

use crate::elements::Elements;

/// A hash of a collective call and its arguments, or of a history of such calls.
#[derive(Clone, Copy, Debug)]
pub struct CallSignature(u64);

impl CallSignature {
    /// The signature of a call's name.
    pub const fn of(name: &str) -> Self {
        let bytes = name.as_bytes();
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        let mut i = 0;
        while i < bytes.len() {
            hash = (hash ^ bytes[i] as u64).wrapping_mul(0x0100_0000_01b3);
            i += 1;
        }
        CallSignature(hash)
    }

    /// The running hash of earlier calls, to which the next one is added.
    pub(crate) const fn of_history(history: u64) -> Self {
        CallSignature(history)
    }

    /// The hash.
    pub const fn value(self) -> u64 {
        self.0
    }

    /// Adds an argument.
    #[inline(always)]
    pub const fn and(self, argument: u64) -> Self {
        let mixed = (self.0 ^ argument).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        CallSignature(mixed ^ (mixed >> 29))
    }

    /// Adds objects, whose offsets, lengths, allocations and kinds of memory are the same on all members.
    #[inline]
    pub fn and_objects<T: Pod, const N: usize>(self, objects: [Elements<T>; N]) -> Self {
        objects.into_iter().fold(self, |signature, sym| {
            let allocation = u64::from(sym.is_on_gpu()) << 32 | u64::from(sym.generation());
            signature
                .and(sym.offset())
                .and(sym.bytes() as u64)
                .and(allocation)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dissemination::SIGNATURE;

    #[test]
    fn a_digest_tells_calls_and_arguments_apart() {
        let a = CallSignature::of("malloc").and(8).and(16);
        let b = CallSignature::of("malloc").and(16).and(8);
        let c = CallSignature::of("align").and(8).and(16);
        assert!(a.0 & SIGNATURE != b.0 & SIGNATURE && a.0 & SIGNATURE != c.0 & SIGNATURE);
    }
}
