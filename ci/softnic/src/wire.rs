//! Packets between queue pairs, and their bytes between processes.

/// The way of a packet: how its sender sees itself and the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) ethernet: bool,
    pub(crate) subnet: u32,
    /// The receiver's LID, where packets carry no global route.
    pub(crate) lid: Option<u16>,
    pub(crate) gid: [u8; 16],
    /// The version of RoCE, which is that of the sender's own identifier: 1 or 2; 0 on InfiniBand.
    pub(crate) version: u8,
    pub(crate) partition: u16,
    /// The sequence number with which the sender began.
    pub(crate) first: u32,
    pub(crate) mtu: u8,
}

/// The position of a segment in its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) offset: u64,
    /// The length of the whole message.
    pub(crate) total: u64,
    pub(crate) last: bool,
    pub(crate) immediate: Option<u32>,
    pub(crate) solicited: bool,
}

/// A peer's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Remote {
    pub(crate) addr: u64,
    pub(crate) key: u32,
}

/// The reason of a refusal, by which the requester's request completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    Invalid,
    Access,
    Operation,
}

/// A packet's contents. Segments of a write and a send are of up to `SEGMENT` bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Body {
    Write(Remote, Position, Vec<u8>),
    Send(Position, Vec<u8>),
    Read(Remote, u32),
    /// Whether it compares; the operands.
    Atomic(Remote, bool, [u64; 2]),
    Done,
    Data(Vec<u8>),
    Refused(Refusal),
    NotReady(u8),
}

/// The bytes of a segment, at most.
pub(crate) const SEGMENT: usize = 64 << 10;

/// A packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Packet {
    pub(crate) to: u32,
    pub(crate) from: u32,
    pub(crate) sequence: u64,
    pub(crate) clock: u64,
    pub(crate) route: Route,
    pub(crate) body: Body,
}

impl Body {
    pub(crate) fn is_request(&self) -> bool {
        matches!(
            self,
            Body::Write(..) | Body::Send(..) | Body::Read(..) | Body::Atomic(..)
        )
    }
}

/// Numbers in order, least significant byte first.
struct Writer(Vec<u8>);

impl Writer {
    fn number(&mut self, value: u64, bytes: usize) {
        self.0.extend(&value.to_le_bytes()[..bytes]);
    }

    fn remote(&mut self, remote: Remote) {
        self.number(remote.addr, 8);
        self.number(remote.key.into(), 4);
    }

    fn position(&mut self, position: &Position) {
        self.number(position.offset, 8);
        self.number(position.total, 8);
        let flags = u64::from(position.last)
            | u64::from(position.solicited) << 1
            | u64::from(position.immediate.is_some()) << 2;
        self.number(flags, 1);
        self.number(position.immediate.unwrap_or(0).into(), 4);
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn number(&mut self, bytes: usize) -> Option<u64> {
        let (now, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        let mut word = [0; 8];
        word[..bytes].copy_from_slice(now);
        Some(u64::from_le_bytes(word))
    }

    fn remote(&mut self) -> Option<Remote> {
        Some(Remote {
            addr: self.number(8)?,
            key: self.number(4)? as u32,
        })
    }

    fn position(&mut self) -> Option<Position> {
        let (offset, total) = (self.number(8)?, self.number(8)?);
        let (flags, immediate) = (self.number(1)?, self.number(4)? as u32);
        Some(Position {
            offset,
            total,
            last: flags & 1 != 0,
            solicited: flags & 2 != 0,
            immediate: (flags & 4 != 0).then_some(immediate),
        })
    }

    fn rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.0).to_vec()
    }
}

impl Packet {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut out = Writer(Vec::with_capacity(160));
        for (value, bytes) in [
            (u64::from(self.to), 4),
            (self.from.into(), 4),
            (self.sequence, 8),
            (self.clock, 8),
            (self.route.ethernet.into(), 1),
            (self.route.subnet.into(), 4),
            (self.route.lid.is_some().into(), 1),
            (self.route.lid.unwrap_or(0).into(), 2),
            (self.route.partition.into(), 2),
            (self.route.first.into(), 4),
            (self.route.mtu.into(), 1),
            (self.route.version.into(), 1),
        ] {
            out.number(value, bytes);
        }
        out.0.extend(self.route.gid);
        let kind = |out: &mut Writer, kind| out.number(kind, 1);
        match &self.body {
            Body::Write(remote, position, data) => {
                kind(&mut out, 0);
                out.remote(*remote);
                out.position(position);
                out.0.extend(data);
            }
            Body::Send(position, data) => {
                kind(&mut out, 1);
                out.position(position);
                out.0.extend(data);
            }
            Body::Read(remote, len) => {
                kind(&mut out, 2);
                out.remote(*remote);
                out.number((*len).into(), 4);
            }
            Body::Atomic(remote, compares, operands) => {
                kind(&mut out, 3);
                out.remote(*remote);
                out.number((*compares).into(), 1);
                operands.iter().for_each(|one| out.number(*one, 8));
            }
            Body::Done => kind(&mut out, 4),
            Body::Data(data) => {
                kind(&mut out, 5);
                out.0.extend(data);
            }
            Body::Refused(why) => {
                kind(&mut out, 6);
                out.number(*why as u64, 1);
            }
            Body::NotReady(timer) => {
                kind(&mut out, 7);
                out.number((*timer).into(), 1);
            }
        }
        out.0
    }

    /// A packet of another process; `None` if it is none.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Packet> {
        let mut from = Reader(bytes);
        let (to, sender) = (from.number(4)? as u32, from.number(4)? as u32);
        let (sequence, clock) = (from.number(8)?, from.number(8)?);
        let (ethernet, subnet) = (from.number(1)? != 0, from.number(4)? as u32);
        let (has_lid, lid) = (from.number(1)? != 0, from.number(2)? as u16);
        let (partition, first) = (from.number(2)? as u16, from.number(4)? as u32);
        let (mtu, version) = (from.number(1)? as u8, from.number(1)? as u8);
        let (gid, rest) = from.0.split_first_chunk::<16>()?;
        let gid = *gid;
        from.0 = rest;
        let route = Route {
            ethernet,
            subnet,
            lid: has_lid.then_some(lid),
            gid,
            version,
            partition,
            first,
            mtu,
        };
        let body = match from.number(1)? {
            0 => Body::Write(from.remote()?, from.position()?, from.rest()),
            1 => Body::Send(from.position()?, from.rest()),
            2 => Body::Read(from.remote()?, from.number(4)? as u32),
            3 => Body::Atomic(
                from.remote()?,
                from.number(1)? != 0,
                [from.number(8)?, from.number(8)?],
            ),
            4 => Body::Done,
            5 => Body::Data(from.rest()),
            6 => Body::Refused(match from.number(1)? {
                0 => Refusal::Invalid,
                1 => Refusal::Access,
                2 => Refusal::Operation,
                _ => return None,
            }),
            7 => Body::NotReady(from.number(1)? as u8),
            _ => return None,
        };
        Some(Packet {
            to,
            from: sender,
            sequence,
            clock,
            route,
            body,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_come_back_from_their_bytes_and_parts_of_them_do_not() {
        let remote = Remote { addr: 77, key: 8 };
        let position = Position {
            offset: 5,
            total: 9,
            last: true,
            immediate: Some(3),
            solicited: true,
        };
        let plain = Position {
            last: false,
            immediate: None,
            solicited: false,
            ..position
        };
        for body in [
            Body::Write(remote, position, vec![1, 2, 3]),
            Body::Send(plain, vec![]),
            Body::Read(remote, 4096),
            Body::Atomic(remote, true, [1, u64::MAX]),
            Body::Done,
            Body::Data(vec![0; 300]),
            Body::Refused(Refusal::Operation),
            Body::NotReady(12),
        ] {
            let packet = Packet {
                to: 1,
                from: 0xff_ffff,
                sequence: 1 << 40,
                clock: 6,
                route: Route {
                    ethernet: true,
                    subnet: 2,
                    lid: Some(9),
                    gid: [7; 16],
                    version: 2,
                    partition: 0x8001,
                    first: 0xabc,
                    mtu: 5,
                },
                body,
            };
            let bytes = packet.to_bytes();
            assert_eq!(Packet::from_bytes(&bytes).unwrap(), packet);
            assert!(Packet::from_bytes(&bytes[..56]).is_none());
        }
    }
}
