//! The bytes by which the verbs transport tells its peers of queue pairs and keys: version 9, little
//! endian, a tag first and a checksum last. Written apart from the transport, so that a change of
//! one of the two is seen.

use std::fmt;
use std::str::FromStr;

use crate::outcome::{Outcome, ensure};

const VERSION: u16 = 9;

/// A list of one queue pair, or of one NIC: no others for long transfers.
const ONE: u8 = 1;

/// The number of the NIC for all operations, which is the only one.
const FIRST_NIC: u8 = 0;

/// A thing that may be missing is there.
const SOME: u8 = 1;

/// An Ethernet port with an MTU of 1024 bytes, and the partition that RoCE has.
const ETHERNET: u8 = 1;
const MTU: u8 = 3;
const PARTITION: u16 = 0xffff;

/// A target that places writes in order, has strict keys and atomics, and needs no word for flushes.
const KEPT: [u8; 4] = [1, 1, 1, 0];

/// No options for connections: soft-RoCE has none.
const NO_OPTIONS: [u8; 12] = [0; 12];

/// A port's identifier; 32 hexadecimal digits as text.
#[derive(Clone, Copy, Debug)]
pub struct Gid([u8; 16]);

impl fmt::Display for Gid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for Gid {
    type Err = String;

    fn from_str(text: &str) -> Result<Gid, String> {
        let value = u128::from_str_radix(text, 16).map_err(|error| format!("{text}: {error}"))?;
        Ok(Gid(value.to_be_bytes()))
    }
}

/// Bytes being made.
struct Packer(Vec<u8>);

impl Packer {
    fn new(tag: &[u8; 4]) -> Packer {
        Packer(tag.to_vec()).with(&VERSION.to_le_bytes())
    }

    fn with(mut self, bytes: &[u8]) -> Packer {
        self.0.extend_from_slice(bytes);
        self
    }

    fn sealed(self) -> Vec<u8> {
        let sum = sum(&self.0);
        self.with(&sum.to_le_bytes()).0
    }
}

/// FNV-1a of 64 bits.
fn sum(bytes: &[u8]) -> u64 {
    let mut sum = 0xcbf2_9ce4_8422_2325_u64;
    for byte in bytes {
        sum = (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    sum
}

/// Bytes being taken apart.
struct Unpacker<'b>(&'b [u8]);

impl<'b> Unpacker<'b> {
    fn new(tag: &[u8; 4], bytes: &'b [u8]) -> Outcome<Unpacker<'b>> {
        let (body, seal) = bytes.split_last_chunk::<8>().ok_or("too short")?;
        ensure(sum(body).to_le_bytes() == *seal, || {
            "the checksum is wrong".into()
        })?;
        let mut rest = Unpacker(body);
        let found = rest.take::<4>()?;
        ensure(found == *tag, || format!("the tag is {found:?}"))?;
        let version = u16::from_le_bytes(rest.take()?);
        ensure(version == VERSION, || {
            format!("the format's version is {version}")
        })?;
        Ok(rest)
    }

    fn take<const N: usize>(&mut self) -> Outcome<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk().ok_or("too short")?;
        self.0 = rest;
        Ok(*taken)
    }

    fn one(&mut self) -> Outcome<()> {
        let [count] = self.take()?;
        ensure(count == ONE, || format!("it is of {count}, not of one"))
    }

    fn first_nic(&mut self) -> Outcome<()> {
        let [rail] = self.take()?;
        ensure(rail == FIRST_NIC, || format!("it is of NIC {rail}"))
    }

    fn some(&mut self) -> Outcome<()> {
        let [is_some] = self.take()?;
        ensure(is_some == SOME, || "it is not there".into())
    }

    fn u32(&mut self) -> Outcome<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Outcome<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn gids(&mut self) -> Outcome<Vec<Gid>> {
        let [count] = self.take()?;
        (0..count).map(|_| self.take().map(Gid)).collect()
    }
}

/// Where a region lies, and its key for accesses in order.
pub struct Key {
    pub base: u64,
    pub strict: u32,
}

/// Unpacks a region's key.
pub fn key(bytes: &[u8]) -> Outcome<Key> {
    let mut from = Unpacker::new(b"OXvk", bytes)?;
    let [_pe, _region] = [from.u32()?, from.u32()?];
    let (base, _len) = (from.u64()?, from.u64()?);
    from.one()?;
    from.some()?;
    let _relaxed = from.u32()?;
    let strict = from.u32()?;
    let [gpu] = from.take()?;
    ensure(gpu == 0, || "it is of no host memory".into())?;
    Ok(Key { base, strict })
}

impl Key {
    pub fn to_bytes(&self, pe: u32, region: u32, len: u64) -> Vec<u8> {
        Packer::new(b"OXvk")
            .with(&pe.to_le_bytes())
            .with(&region.to_le_bytes())
            .with(&self.base.to_le_bytes())
            .with(&len.to_le_bytes())
            .with(&[ONE, SOME])
            .with(&self.strict.to_le_bytes())
            .with(&self.strict.to_le_bytes())
            .with(&[0])
            .sealed()
    }
}

/// A queue pair that will send.
pub struct Endpoint {
    pub from: u32,
    pub to: u32,
    pub nonce: u64,
    pub queue_pair: u32,
    pub sequence: u32,
    pub gid: Gid,
}

impl Endpoint {
    pub fn to_bytes(&self) -> Vec<u8> {
        Packer::new(b"OXve")
            .with(&[ONE])
            .with(&self.from.to_le_bytes())
            .with(&self.to.to_le_bytes())
            .with(&self.nonce.to_le_bytes())
            .with(&self.queue_pair.to_le_bytes())
            .with(&self.sequence.to_le_bytes())
            .with(&[1])
            .with(&NO_OPTIONS)
            .with(&[FIRST_NIC])
            .with(&[ETHERNET, MTU, 0, 0])
            .with(&PARTITION.to_le_bytes())
            .with(&[1])
            .with(&self.gid.0)
            .with(&[0])
            // Of its queue pairs one is for all operations.
            .with(&[ONE])
            .sealed()
    }
}

fn no_options(options: [u8; 12]) -> Outcome<()> {
    ensure(options == NO_OPTIONS, || {
        format!("soft-RoCE has no options for connections, not {options:?}")
    })
}

/// Unpacks what a lane says of its end.
pub fn endpoint(bytes: &[u8]) -> Outcome<Endpoint> {
    let mut rest = Unpacker::new(b"OXve", bytes)?;
    rest.one()?;
    let (from, to, nonce) = (rest.u32()?, rest.u32()?, rest.u64()?);
    let (queue_pair, sequence) = (rest.u32()?, rest.u32()?);
    let [_reads] = rest.take()?;
    no_options(rest.take()?)?;
    rest.first_nic()?;
    let [_ethernet, _mtu, _, _, _, _] = rest.take()?;
    let gid = *rest.gids()?.first().ok_or("it has no GID")?;
    Ok(Endpoint {
        from,
        to,
        nonce,
        queue_pair,
        sequence,
        gid,
    })
}

/// The queue pair that was made to answer.
pub struct Answer {
    pub queue_pair: u32,
    pub sequence: u32,
    pub ours: Gid,
}

/// Unpacks what a domain answers to an endpoint.
pub fn answer(bytes: &[u8]) -> Outcome<Answer> {
    let mut from = Unpacker::new(b"OXvc", bytes)?;
    from.one()?;
    from.some()?;
    let _nonce = from.u64()?;
    from.first_nic()?;
    let (queue_pair, sequence) = (from.u32()?, from.u32()?);
    let [_reads, _mtu, _, _] = from.take()?;
    let gids = from.gids()?;
    let order = from.take()?;
    ensure(order == KEPT, || {
        format!("soft-RoCE keeps every order, not {order:?}")
    })?;
    no_options(from.take()?)?;
    match gids[..] {
        [_theirs, ours] => Ok(Answer {
            queue_pair,
            sequence,
            ours,
        }),
        ref others => Err(format!("{} GIDs are no route", others.len()).into()),
    }
}

/// The reply of the witness to a lane's endpoint, as oxshmem would give it.
pub fn answer_to(endpoint: &Endpoint, queue_pair: u32, sequence: u32, gid: Gid) -> Vec<u8> {
    Packer::new(b"OXvc")
        .with(&[ONE, SOME])
        .with(&endpoint.nonce.to_le_bytes())
        .with(&[FIRST_NIC])
        .with(&queue_pair.to_le_bytes())
        .with(&sequence.to_le_bytes())
        .with(&[1, MTU, 0, 0, 2])
        .with(&endpoint.gid.0)
        .with(&gid.0)
        .with(&KEPT)
        .with(&NO_OPTIONS)
        .sealed()
}
