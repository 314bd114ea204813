//! The byte format of what peers exchange: addresses, keys, endpoints and the replies to them.
//!
//! Each is a tag, the version of this format, the fields in little-endian order, and a checksum over all of
//! these. So bytes that were cut, lengthened, mixed up or damaged are told apart from those of another
//! version of oxshmem. The checksum is against accidents, not against an enemy.

mod address;
mod endpoint;
mod format;
mod key;

pub(crate) use self::address::{
    Address, GpuSupport, MOST_NETWORKS, PortAddress, RailAddress, TargetProperties,
};
pub(crate) use self::endpoint::{
    Endpoint, EndpointReplies, EndpointReply, Endpoints, FlushWord, TargetOrder, first_nonce,
    is_first_nonce, next_nonce, previous_nonce,
};
pub(crate) use self::format::MOST_GIDS;
#[cfg(any(fuzzing, test))]
pub(crate) use self::format::sealed;
pub(crate) use self::key::{Key, RailKeys};

#[cfg(test)]
mod tests;
