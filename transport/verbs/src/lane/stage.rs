//! From operations to requests. Everything that can be wrong with an operation is found before its
//! first request is made.

use oxshmem_transport::{AtomicOp, Error, Local, Op, Pe, SignalOp, Width};

use super::batch::{Batch, Do, Near, Request};
use super::pool::{Block, Pool};
use super::ring::{Deliver, Slot};
use super::way::Link;
use crate::region::NearKey;
use crate::shared::{Far, Fault, Imported, fault, find, find_word};
use crate::{MESSAGE, NAME, UNREGISTERED};

/// Why an operation was not taken.
#[derive(Debug)]
pub(crate) enum Stop {
    /// There is no block for it now.
    NoBlock,
    /// It comes after what is under way, and the device does not see to that.
    Behind,
    Refused(Fault),
}

impl From<Fault> for Stop {
    fn from(error: Fault) -> Stop {
        Stop::Refused(error)
    }
}

/// Requests of one operation: the head of a put, the rest, a signal.
pub(crate) const PER_OPERATION: u32 = 3;

/// And of the one that may have another, which is told of at once: a read between a put to one device's
/// memory and a signal in another's.
pub(crate) const LARGEST: usize = PER_OPERATION as usize + 1;

/// What an operation's requests are made with.
#[derive(Debug)]
pub(crate) struct Stage<'a> {
    pub(crate) pe: Pe,
    pub(crate) regions: &'a [Option<Imported>],
    pub(crate) link: &'a mut Link,
    pub(crate) batch: &'a mut Batch,
    pub(crate) pool: &'a mut Pool,
    /// The largest transfer.
    pub(crate) max: u64,
    /// Whether the device adds, compares and swaps.
    pub(crate) changing: bool,
    /// Whether a request may wait at the device for the reads and atomics before it. In rxe (Linux 6.1) such a request that
    /// is sent again waits for ever: it counts itself, and what came after it, among those.
    pub(crate) fences: bool,
    /// Whether somebody waits for what the batch brings: its last request is to be signalled.
    pub(crate) awaited: bool,
}

#[cold]
fn unsupported(what: String) -> Stop {
    Stop::Refused(Box::new(Error::Unsupported {
        transport: NAME,
        what,
    }))
}

#[inline]
fn key(local: &Local) -> Option<NearKey> {
    local.key.map(NearKey::of)
}

/// How the bytes of a source get into a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sent {
    /// The CPU copies them into the request.
    Carried,
    /// The CPU copies them to a block.
    Copied,
    /// The NIC reads them where they are, by this key.
    InPlace(u32),
    /// They would be read in place, and have no key.
    Refused,
}

/// How `len` bytes are sent, where a request carries up to `inline` itself. The CPU touches no GPU's.
#[inline]
fn sent(len: usize, key: Option<NearKey>, inline: u32) -> Sent {
    match key {
        Some(NearKey { lkey, on_gpu: true }) => Sent::InPlace(lkey),
        _ if len <= inline as usize => Sent::Carried,
        _ if len <= UNREGISTERED => Sent::Copied,
        Some(NearKey { lkey, .. }) => Sent::InPlace(lkey),
        None => Sent::Refused,
    }
}

/// The bytes before the first whole word at `to`, the rest, and how many the former are; none where
/// one packet carries all, or packets end between words.
#[inline]
fn split(near: Near, to: u64, packet: u32) -> Option<(Near, Near, u32)> {
    let head = (to.wrapping_neg() % 8) as u32;
    match near {
        Near::Inline(addr, len) if head > 0 && len > packet => Some((
            Near::Inline(addr, head),
            Near::Inline(addr.wrapping_add(head as usize), len - head),
            head,
        )),
        Near::Piece(addr, len, key) if head > 0 && len > packet => Some((
            Near::Piece(addr, head, key),
            Near::Piece(addr.wrapping_add(head as usize), len - head, key),
            head,
        )),
        _ => None,
    }
}

impl Stage<'_> {
    /// Makes an operation's requests, or none. There must be room for [`LARGEST`].
    ///
    /// # Safety
    ///
    /// The operation's near side is valid, as [`oxshmem_transport::Lane::post`] says.
    #[inline]
    pub(crate) unsafe fn operation(&mut self, op: &Op) -> Result<(), Stop> {
        match *op {
            Op::Put { from, to } => {
                let far = find(self.regions, self.pe, to, self.length(&from)?)?;
                // SAFETY: the caller's promise.
                let (near, block) = unsafe { self.source(&from) }?;
                self.write_words(far, near, block, true);
            }
            Op::Get { into, from } => {
                let far = find(self.regions, self.pe, from, self.length(&into)?)?;
                self.get(&into, far)?;
            }
            Op::PutSignal {
                from,
                to,
                signal,
                op,
                value,
            } => {
                if op == SignalOp::Add && !self.changing {
                    return Err(unsupported("a signal that is added to".into()));
                }
                let far = find(self.regions, self.pe, to, self.length(&from)?)?;
                let signal = find_word(self.regions, self.pe, signal, "a signal")?;
                // SAFETY: the caller's promise.
                let (near, block) = unsafe { self.source(&from) }?;
                let word = match op {
                    SignalOp::Set => self.word(value).inspect_err(|_| {
                        if let Some(block) = block {
                            self.pool.give(block);
                        }
                    })?,
                    SignalOp::Add => (Near::Nothing, None),
                };
                let mut fenced = false;
                if from.len > 0 {
                    self.write_words(far, near, block, false);
                    // The bus keeps no order between two devices' memory: the data is there when a
                    // byte of it was read. A software device stores all itself, in order.
                    fenced = far.gpu != signal.gpu && self.fences;
                }
                if fenced {
                    self.awaited = true;
                    let number = self.read_byte(far, false);
                    self.link.read = Some(number);
                }
                self.link.gpu_written |= signal.gpu;
                match op {
                    SignalOp::Set => {
                        let slot = Slot {
                            block: word.1,
                            ..Slot::PLAIN
                        };
                        let what = Do::Write(signal.addr, signal.strict);
                        self.push(what, word.0, fenced, slot);
                    }
                    SignalOp::Add => {
                        let what = Do::Add(signal.addr, signal.strict, value);
                        let near = self.sink();
                        let number = self.push(what, near, fenced, Slot::PLAIN);
                        self.link.atomic = Some(number);
                    }
                }
            }
            Op::Atomic {
                op,
                width,
                on,
                operand,
                compare,
                fetch,
            } => {
                self.declared(op, width, fetch.as_ref())?;
                let far = find_word(self.regions, self.pe, on, "an atomic")?;
                self.atomic(op, far, operand, compare, fetch.as_ref())?;
            }
            Op::Message { from } => {
                if from.len > MESSAGE {
                    return Err(unsupported(format!("a message of {} bytes", from.len)));
                }
                if key(&from).is_some_and(|key| key.on_gpu) {
                    return Err(unsupported("a message from GPU memory".into()));
                }
                // SAFETY: the caller's promise.
                let (near, block) = unsafe { self.source(&from) }?;
                let slot = Slot {
                    block,
                    ..Slot::PLAIN
                };
                self.push(Do::Send, near, false, slot);
            }
            Op::Flush => {
                self.awaited = true;
                let first = |gpu| {
                    let all = self.regions.iter().flatten();
                    all.filter_map(Imported::first).find(|far| far.gpu == gpu)
                };
                // Of each device's memory by itself: the bus keeps no order between two.
                let gpu = first(true).filter(|_| self.link.gpu_written);
                self.link.gpu_written = false;
                match (gpu, first(false)) {
                    (None, Some(host)) => drop(self.read_byte(host, true)),
                    (Some(gpu), None) => drop(self.read_byte(gpu, true)),
                    (Some(gpu), Some(host)) => {
                        self.read_byte(gpu, false);
                        self.read_byte(host, true);
                    }
                    // Nothing can have been written there.
                    (None, None) => self.write(0, 0, Near::Nothing, None, true),
                }
            }
            ref other => return Err(unsupported(format!("{other:?}"))),
        }
        Ok(())
    }

    // What is constant at each call is most of it.
    #[inline(always)]
    fn push(&mut self, what: Do, near: Near, fenced: bool, slot: Slot) -> u32 {
        let number = self.link.ring.push(Slot {
            bytes: near.len(),
            ..slot
        });
        let id = u64::from(self.pe.0) << 32 | u64::from(number);
        self.batch.push(id, Request { what, near, fenced });
        number
    }

    /// Reads the first byte of a place, in the order of what was written: it is in memory then.
    #[inline]
    fn read_byte(&mut self, far: Far, ends: bool) -> u32 {
        let near = Near::Piece(self.pool.sink(), 1, self.pool.lkey());
        let slot = Slot {
            ends,
            ..Slot::PLAIN
        };
        self.push(Do::Read(far.addr, far.strict), near, false, slot)
    }

    #[inline]
    fn write(&mut self, addr: u64, key: u32, near: Near, block: Option<Block>, ends: bool) {
        let slot = Slot {
            block,
            ends,
            ..Slot::PLAIN
        };
        self.push(Do::Write(addr, key), near, false, slot);
    }

    /// A put. Packets end at multiples of their size from its start: if that is inside an aligned word,
    /// so are they, and the word would land in two pieces. Then what lies before the first whole word
    /// goes ahead by itself.
    #[inline]
    fn write_words(&mut self, far: Far, near: Near, block: Option<Block>, ends: bool) {
        self.link.gpu_written |= far.gpu;
        match split(near, far.addr, self.link.packet) {
            None => self.write(far.addr, far.relaxed, near, block, ends),
            Some((head, rest, len)) => {
                self.write(far.addr, far.relaxed, head, None, false);
                self.write(far.addr + u64::from(len), far.relaxed, rest, block, ends);
            }
        }
    }

    /// A transfer's length, if it is one that can be done.
    #[inline]
    fn length(&self, local: &Local) -> Result<u64, Stop> {
        let len = local.len as u64;
        if len > self.max {
            return Err(unsupported(format!("a transfer of {len} bytes")));
        }
        if local.key.is_none() && local.len > UNREGISTERED {
            return Err(unsupported(format!(
                "a transfer of {len} unregistered bytes"
            )));
        }
        Ok(len)
    }

    /// The near side of what is sent: carried, copied or in place.
    ///
    /// # Safety
    ///
    /// The bytes are valid; those in place until the operation has completed.
    #[inline]
    unsafe fn source(&mut self, from: &Local) -> Result<(Near, Option<Block>), Stop> {
        // At most `max`, which is below 4 GiB.
        let len = from.len as u32;
        if len == 0 {
            return Ok((Near::Nothing, None));
        }
        match sent(from.len, key(from), self.link.inline) {
            Sent::Carried => Ok((Near::Inline(from.addr.cast_const(), len), None)),
            Sent::Copied => {
                let block = self.pool.take(from.len).ok_or(Stop::NoBlock)?;
                let at = self.pool.at(block);
                // SAFETY: the source is the caller's promise, and not a GPU's; the block is at least
                // as long, and nobody else's.
                unsafe { oxshmem_heap::copy::copy(at, from.addr, from.len) };
                Ok((Near::Piece(at, len, self.pool.lkey()), Some(block)))
            }
            Sent::InPlace(lkey) => {
                // Its poster may want the source back soon, if it is the only one.
                self.awaited |= !self.link.ring.expects();
                Ok((Near::Piece(from.addr, len, lkey), None))
            }
            Sent::Refused => Err(unsupported(format!(
                "a transfer of {len} unregistered bytes"
            ))),
        }
    }

    /// The near side of a word that is written.
    #[inline]
    fn word(&mut self, value: u64) -> Result<(Near, Option<Block>), Stop> {
        if self.link.inline >= 8 {
            return Ok((Near::Word(value), None));
        }
        let block = self.pool.take(8).ok_or(Stop::NoBlock)?;
        let at = self.pool.at(block);
        // SAFETY: the block is aligned, at least as long, and nobody else's.
        unsafe { at.cast::<u64>().write(value) };
        Ok((Near::Piece(at, 8, self.pool.lkey()), Some(block)))
    }

    /// Where results that nobody wants go.
    #[inline]
    fn sink(&self) -> Near {
        Near::Piece(self.pool.sink(), 8, self.pool.lkey())
    }

    #[inline]
    fn get(&mut self, into: &Local, far: Far) -> Result<(), Stop> {
        let len = into.len as u32;
        if len == 0 {
            self.write(0, 0, Near::Nothing, None, true);
            return Ok(());
        }
        let (near, slot) = match key(into) {
            Some(key) => (Near::Piece(into.addr, len, key.lkey), Slot::PLAIN),
            None => {
                let block = self.pool.take(into.len).ok_or(Stop::NoBlock)?;
                let slot = Slot {
                    deliver: Deliver::Bytes(into.addr, len),
                    block: Some(block),
                    ends: true,
                    ..Slot::PLAIN
                };
                (
                    Near::Piece(self.pool.at(block), len, self.pool.lkey()),
                    slot,
                )
            }
        };
        self.awaited = true;
        let number = self.push(Do::Read(far.addr, far.relaxed), near, false, slot);
        self.link.read = Some(number);
        Ok(())
    }

    /// Whether this atomic is one of those that capabilities list.
    #[inline]
    fn declared(&self, op: AtomicOp, width: Width, fetch: Option<&Local>) -> Result<(), Stop> {
        let known = match op {
            AtomicOp::Fetch => true,
            // A write tells nothing of what was there.
            AtomicOp::Set => fetch.is_none(),
            AtomicOp::Add | AtomicOp::CompareSwap => self.changing,
            _ => false,
        };
        if width != Width::W64 || !known {
            let fetching = if fetch.is_some() { "fetching " } else { "" };
            return Err(unsupported(format!(
                "a {fetching}atomic {op} of {width} bits"
            )));
        }
        if let Some(into) = fetch {
            into.check_fetch(NAME, width).map_err(fault)?;
        }
        Ok(())
    }

    #[inline]
    fn atomic(
        &mut self,
        op: AtomicOp,
        far: Far,
        operand: u64,
        compare: u64,
        fetch: Option<&Local>,
    ) -> Result<(), Stop> {
        let outstanding =
            |number: Option<u32>| number.is_some_and(|number| self.link.ring.contains(number));
        let (reads, atomics) = (outstanding(self.link.read), outstanding(self.link.atomic));
        let fenced = match op {
            AtomicOp::Fetch => false,
            // A write may be performed before a read or atomic that was sent before it.
            AtomicOp::Set => reads || atomics,
            // And so may an atomic before a read.
            _ => reads,
        };
        if fenced && !self.fences {
            return Err(Stop::Behind);
        }
        let Far { addr, strict, .. } = far;
        self.link.gpu_written |= far.gpu && op != AtomicOp::Fetch;
        if op == AtomicOp::Set {
            let (near, block) = self.word(operand)?;
            let slot = Slot {
                block,
                ..Slot::PLAIN
            };
            self.push(Do::Write(addr, strict), near, fenced, slot);
            return Ok(());
        }
        let (near, slot) = match fetch {
            None => (self.sink(), Slot::PLAIN),
            Some(into) => {
                self.awaited = true;
                match key(into) {
                    Some(key) => (Near::Piece(into.addr, 8, key.lkey), Slot::PLAIN),
                    None => {
                        let block = self.pool.take(8).ok_or(Stop::NoBlock)?;
                        let slot = Slot {
                            deliver: Deliver::Word(into.addr.cast()),
                            block: Some(block),
                            ends: true,
                            ..Slot::PLAIN
                        };
                        (Near::Piece(self.pool.at(block), 8, self.pool.lkey()), slot)
                    }
                }
            }
        };
        let what = match op {
            AtomicOp::Fetch => Do::Read(addr, strict),
            AtomicOp::Add => Do::Add(addr, strict, operand),
            _ => Do::CompareSwap(addr, strict, compare, operand),
        };
        let number = self.push(what, near, fenced, slot);
        match op {
            AtomicOp::Fetch => self.link.read = Some(number),
            _ => self.link.atomic = Some(number),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Places and lengths of a put of `len` bytes to `to`, by packets of 1024 bytes.
    fn pieces(to: u64, len: u32) -> Vec<(u64, u32)> {
        let source = std::ptr::null_mut::<u8>();
        let measure = |near| match near {
            Near::Piece(addr, len, 7) => (addr.addr() as u64, len),
            other => panic!("{other:?}"),
        };
        match split(Near::Piece(source, len, 7), to, 1024) {
            None => vec![(0, len)],
            Some((head, rest, _)) => vec![measure(head), measure(rest)],
        }
    }

    #[test]
    fn no_packet_of_a_put_ends_inside_a_word_that_it_writes_whole() {
        for to in 0x1000..0x1010 {
            for len in [1, 8, 1023, 1024, 1025, 1032, 5000] {
                let pieces = pieces(to, len);
                let mut next = 0;
                for (start, len) in &pieces {
                    assert_eq!(*start, next, "bytes are left out or sent twice");
                    next += u64::from(*len);
                    let cuts = (1..*len).filter(|n| n % 1024 == 0);
                    for cut in cuts {
                        assert_eq!((to + start + u64::from(cut)) % 8, 0, "{to:#x} {len} {cut}");
                    }
                }
                assert_eq!(next, u64::from(len));
            }
        }
    }

    #[test]
    fn the_cpu_copies_nothing_out_of_gpu_memory_whatever_its_length() {
        let key = |on_gpu| Some(NearKey { lkey: 7, on_gpu });
        for len in [1, 8, 220, 221, UNREGISTERED, UNREGISTERED + 1, 1 << 30] {
            for inline in [0, 220, 4096] {
                assert_eq!(sent(len, key(true), inline), Sent::InPlace(7), "{len}");
            }
        }
        // What is the CPU's is copied up to where that is cheap.
        for key in [None, key(false)] {
            assert_eq!(sent(220, key, 220), Sent::Carried);
            assert_eq!(sent(221, key, 220), Sent::Copied);
            assert_eq!(sent(UNREGISTERED, key, 0), Sent::Copied);
        }
        assert_eq!(sent(UNREGISTERED + 1, key(false), 220), Sent::InPlace(7));
        assert_eq!(sent(UNREGISTERED + 1, None, 220), Sent::Refused);
    }

    #[test]
    fn only_puts_that_need_it_are_split() {
        assert_eq!(pieces(0x1000, 5000).len(), 1);
        assert_eq!(pieces(0x1001, 1024).len(), 1);
        assert_eq!(pieces(0x1001, 1025), [(0, 7), (7, 1018)]);
    }
}
