//! Round trips of the byte formats, and refusals of damaged bytes.

use std::num::NonZeroU32;

use proptest::prelude::*;

use super::format::{MOST_QUEUES, Read, Tag, Writer};
use super::*;
use crate::ibv::{Ece, Gid};
use crate::limits::MOST_RAILS;
use crate::placement::Placement;

fn port() -> impl Strategy<Value = PortAddress> {
    let gids = prop::collection::vec(any::<[u8; 16]>().prop_map(Gid), 0..=MOST_GIDS);
    (any::<bool>(), 1..=5u8, any::<[u16; 2]>(), gids).prop_map(
        |(ethernet, mtu, [lid, partition], gids)| PortAddress {
            ethernet,
            mtu,
            lid,
            partition,
            gids,
        },
    )
}

fn gpu_side() -> impl Strategy<Value = GpuSupport> {
    prop_oneof![
        Just(GpuSupport::None),
        any::<bool>().prop_map(|flush| GpuSupport::Direct { flush }),
        "[ -~é]{0,300}".prop_map(GpuSupport::Refused),
    ]
}

fn target() -> impl Strategy<Value = TargetProperties> {
    (0..6u8, any::<[bool; 2]>()).prop_map(|(number, [has_strict_keys, has_atomics])| {
        TargetProperties {
            placement: Placement::from_byte(number).unwrap(),
            has_strict_keys,
            has_atomics,
        }
    })
}

fn order() -> impl Strategy<Value = TargetOrder> {
    let word = (0..u64::MAX / 8, any::<u32>());
    let flags = any::<[bool; 3]>();
    let all = (flags, prop::option::of(word));
    all.prop_map(|([in_order, has_strict_keys, flag], word)| TargetOrder {
        in_order,
        has_strict_keys,
        has_atomics: flag || word.is_some(),
        flush_word: word.map(|(word, rkey)| FlushWord {
            addr: word * 8,
            rkey,
        }),
    })
}

fn ece() -> impl Strategy<Value = Option<Ece>> {
    let words = (1..=u32::MAX, any::<u32>(), any::<u32>());
    prop::option::of(words.prop_map(|(vendor, options, comp_mask)| Ece {
        vendor,
        options,
        comp_mask,
    }))
}

fn endpoint() -> impl Strategy<Value = Endpoint> {
    let numbers = (any::<u32>(), any::<u32>(), any::<u64>());
    let pair = (0..1u32 << 24, 0..1u32 << 24, any::<u8>(), ece());
    (numbers, pair, port()).prop_map(
        |((from, to, nonce), (queue_pair, sequence, reads, ece), port)| Endpoint {
            from,
            to,
            nonce,
            queue_pair,
            sequence,
            reads,
            ece,
            rail: reads % MOST_RAILS as u8,
            port,
            networks: vec!["RoCE 10.1.0.0/16".into(); usize::from(reads) % 3],
        },
    )
}

fn rails() -> impl Strategy<Value = Vec<RailAddress>> {
    let networks = prop::collection::vec("[ -~é]{0,30}", 0..=MOST_NETWORKS);
    let rail = ("[a-z0-9_:]{0,20}", port(), networks);
    let rail = rail.prop_map(|(name, port, networks)| RailAddress {
        name,
        port,
        networks,
    });
    prop::collection::vec(rail, 1..=3)
}

/// Checks that any damage to valid bytes is refused.
fn refuses_damage<T: std::fmt::Debug>(bytes: &[u8], read: impl Fn(&[u8]) -> Read<T>, bit: usize) {
    for cut in 0..bytes.len() {
        assert!(read(&bytes[..cut]).is_err(), "cut to {cut}");
    }
    assert!(read(&[bytes, &[0]].concat()).is_err(), "one byte more");
    let mut damaged = bytes.to_vec();
    let bit = bit % (8 * bytes.len());
    damaged[bit / 8] ^= 1 << (bit % 8);
    assert!(read(&damaged).is_err(), "bit {bit}");
}

proptest! {
    #[test]
    fn what_was_written_is_read_and_what_was_damaged_is_not(
        pe: u32, rails in rails(), endpoint in endpoint(), bit: usize, queues in 1..4usize,
        region: u32, base in 0..u64::MAX / 2, len in 0..u64::MAX / 2, relaxed: u32, strict: u32,
        gpu: bool, message_window: NonZeroU32, side in gpu_side(), target in target(), order in order(),
        lid: u16, route in prop::option::of((any::<[u8; 16]>(), any::<[u8; 16]>())),
    ) {
        let address = Address { pe, rails, target, gpu: side, message_window };
        prop_assert_eq!(Address::from_bytes(&address.to_bytes()), Ok(address.clone()));
        refuses_damage(&address.to_bytes(), Address::from_bytes, bit);
        let keys = Some(RailKeys { relaxed, strict });
        let key = Key { pe, region, base, len, rails: [keys, keys.filter(|_| gpu), keys][..queues].into(), gpu };
        prop_assert_eq!(Key::from_bytes(&key.to_bytes()), Ok(key.clone()));
        refuses_damage(&key.to_bytes(), Key::from_bytes, bit);
        let endpoints = Endpoints { primaries: 1 + (bit % queues) as u8, queues: vec![endpoint.clone(); queues] };
        prop_assert_eq!(Endpoints::from_bytes(&endpoints.to_bytes()), Ok(endpoints.clone()));
        refuses_damage(&endpoints.to_bytes(), Endpoints::from_bytes, bit);
        let Endpoint { nonce, rail, queue_pair, sequence, ece, .. } = endpoint;
        let route = route.map(|(theirs, ours)| (Gid(theirs), Gid(ours)));
        let mtu = 5;
        let reply = EndpointReply { nonce, rail, queue_pair, sequence, reads: 16, mtu, lid, route, order, ece };
        let replies = EndpointReplies([Some(reply), None, Some(reply)][..queues].into());
        prop_assert_eq!(EndpointReplies::from_bytes(&replies.to_bytes()), Ok(replies.clone()));
        refuses_damage(&replies.to_bytes(), EndpointReplies::from_bytes, bit);
    }

    #[test]
    fn garbage_is_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(Address::from_bytes(&bytes).is_err());
        prop_assert!(Key::from_bytes(&bytes).is_err());
        prop_assert!(Endpoints::from_bytes(&bytes).is_err());
        prop_assert!(EndpointReplies::from_bytes(&bytes).is_err());
    }
}

#[test]
fn another_version_is_told_as_that_with_both_numbers() {
    let key = Key {
        pe: 0,
        region: 0,
        base: 0,
        len: 0,
        rails: vec![Some(RailKeys {
            relaxed: 0,
            strict: 0,
        })],
        gpu: false,
    };
    let mut bytes = key.to_bytes();
    bytes[4] = 10;
    let why = Key::from_bytes(&bytes).unwrap_err();
    assert!(
        why.contains("another version") && why.contains("10 there") && why.contains("9 here"),
        "{why}"
    );
}

#[test]
fn a_key_whose_range_overflows_is_refused() {
    let key = Key {
        pe: 0,
        region: 0,
        base: u64::MAX,
        len: 2,
        rails: vec![Some(RailKeys {
            relaxed: 0,
            strict: 0,
        })],
        gpu: false,
    };
    assert!(
        Key::from_bytes(&key.to_bytes())
            .unwrap_err()
            .contains("address space")
    );
}

#[test]
fn a_connection_of_no_queue_pair_or_of_too_many_is_refused() {
    for count in [0, MOST_QUEUES + 1] {
        let mut writer = Writer::new(Tag::Endpoint);
        writer.put(&[count as u8]);
        let why = Endpoints::from_bytes(&writer.finish()).unwrap_err();
        assert!(why.contains(&format!("of {count} queue pairs")), "{why}");
    }
}

#[test]
fn a_target_without_atomics_is_told_as_that() {
    for has_atomics in [false, true] {
        let target = TargetProperties {
            placement: Placement::Known,
            has_strict_keys: true,
            has_atomics,
        };
        assert_eq!(target.explain().contains("no atomics"), !has_atomics);
    }
}

#[test]
fn a_connection_or_a_key_without_a_first_nic_is_refused() {
    let replies = EndpointReplies(vec![None]).to_bytes();
    let why = EndpointReplies::from_bytes(&replies).unwrap_err();
    assert!(why.contains("no queue pair"), "{why}");
    let key = Key {
        pe: 0,
        region: 0,
        base: 0,
        len: 0,
        rails: vec![None],
        gpu: false,
    };
    let why = Key::from_bytes(&key.to_bytes()).unwrap_err();
    assert!(why.contains("first NIC"), "{why}");
}

#[test]
fn an_endpoint_says_which_of_its_queue_pairs_are_for_all_operations() {
    let port = PortAddress {
        ethernet: false,
        mtu: 5,
        lid: 1,
        partition: 0xffff,
        gids: Vec::new(),
    };
    let endpoint = Endpoint {
        from: 0,
        to: 1,
        nonce: 16,
        queue_pair: 7,
        sequence: 0,
        reads: 1,
        ece: None,
        rail: 1,
        port,
        networks: Vec::new(),
    };
    for (primaries, is_right) in [(0, false), (1, true), (2, true), (3, false)] {
        let queues = vec![endpoint.clone(); 2];
        let bytes = Endpoints { primaries, queues }.to_bytes();
        assert_eq!(
            Endpoints::from_bytes(&bytes).is_ok(),
            is_right,
            "{primaries}"
        );
    }
}
