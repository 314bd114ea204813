//! Addresses, tables and pointers that calls hand out.

use oxshmem::bindings::{self, Addresses};
use oxshmem::{Context, Pod, Sym};

use crate::random::Random;
use crate::{Player, call, value};

pub fn calls(player: &mut Player<'_>) {
    let world = player.world;
    let addresses = value!(bindings::addresses, bindings::addresses(world));
    let (base, len) = value!(Addresses::heap, addresses.heap());
    assert_eq!(value!(Addresses::program, addresses.program()), (0, 0));
    let objects = player.objects;
    let pe = player.own.pe(world.n_pes());
    let of = &mut player.own;
    let of = (of, &addresses, pe);
    let (r, addresses, pe) = of;
    around(r, world, addresses, (objects.bytes, pe));
    around(r, world, addresses, (objects.words, pe));
    around(r, world, addresses, (objects.triples, pe));
    around(r, world, addresses, (objects.nothing, pe));
    around(r, world, addresses, (objects.long, pe));
    around(r, world, addresses, (player.foreign.words, pe));
    let mut places = vec![0, 1, usize::MAX, usize::MAX - 7, base.wrapping_sub(8)];
    places.extend(
        [
            0,
            1,
            8,
            len / 2,
            len.wrapping_sub(8),
            len.wrapping_sub(1),
            len,
        ]
        .map(|at| base.wrapping_add(at)),
    );
    places.extend((0..8).map(|_| base.wrapping_add(r.below(len.max(1)))));
    for place in places {
        at(
            r,
            world,
            addresses,
            std::ptr::without_provenance::<u64>(place),
        );
        at(
            r,
            world,
            addresses,
            std::ptr::without_provenance::<[u8; 3]>(place),
        );
        at(
            r,
            world,
            addresses,
            std::ptr::without_provenance::<()>(place),
        );
        at(
            r,
            world,
            addresses,
            std::ptr::without_provenance::<crate::Long>(place),
        );
        call!(
            bindings::block_at,
            bindings::block_at(world, "a test", std::ptr::without_provenance(place))
        );
        let _: bool = value!(
            bindings::is_in_gpu_heap,
            bindings::is_in_gpu_heap(world, place)
        );
    }
    pointers(player);
    tables(player);
    told(player);
}

/// Checks that an object found by its address lies in the heap, and reads all of it.
fn at<T: Pod>(r: &mut Random, world: &oxshmem::World, addresses: &Addresses, place: *const T) {
    let limit = addresses.heap().1.max(world.heap_limit() * 2) as u64;
    for len in [0, 1, 2, r.odd(500), r.odd(1 << 16)] {
        let found = [
            value!(Addresses::object, addresses.object(place, len)),
            value!(Addresses::word, addresses.word(place)),
            call!(
                bindings::object_at,
                bindings::object_at(world, "a test", place, len)
            ),
            value!(
                bindings::cached_object,
                bindings::cached_object(world, place, len)
            ),
            call!(bindings::rest_at, bindings::rest_at(world, "a test", place)),
        ];
        for object in found.into_iter().flatten() {
            let end = object.offset() + object.to_bytes().len() as u64;
            assert!(
                end <= limit,
                "{object:?} at {place:p} of {:?}",
                addresses.heap()
            );
            read(world, object);
        }
    }
}

fn read<T: Pod>(context: &Context<'_>, object: Sym<T>) {
    let bytes = object.to_bytes();
    let me = context.my_pe();
    for i in [0, bytes.len() / 2, bytes.len().wrapping_sub(1)] {
        let one = bytes.at(i);
        if let Ok(one) = one {
            call!(Context::g, context.g(one, me));
        }
    }
    // The first and the last element.
    if let (false, Ok(last)) = (object.is_empty(), object.at(object.len().wrapping_sub(1))) {
        call!(Context::g, context.g(object, me));
        call!(Context::g, context.g(last, me));
    }
}

fn around<T: Pod>(
    r: &mut Random,
    world: &oxshmem::World,
    addresses: &Addresses,
    (object, pe): (Sym<T>, usize),
) {
    let Some(address) = value!(bindings::address_of, bindings::address_of(world, object)) else {
        return;
    };
    for off in [
        0,
        1,
        0_usize.wrapping_sub(64),
        r.odd(object.len()),
        object.to_bytes().len(),
    ] {
        at(
            r,
            world,
            addresses,
            address.cast_const().wrapping_byte_add(off),
        );
    }
    let _ = call!(Context::put_from, world.put_from(object, object, pe));
}

fn pointers(player: &mut Player<'_>) {
    let (world, objects) = (player.world, player.objects);
    let pe = player.own.pe(world.n_pes());
    let words = player.some_words();
    through(&mut player.own, world, words, pe, 5);
    through(&mut player.own, world, objects.triples, pe, [1; 3]);
    through(&mut player.own, world, objects.nothing, pe, ());
    through(&mut player.own, world, objects.endless, pe, ());
    through(
        &mut player.own,
        world,
        objects.long,
        pe,
        bytemuck::Zeroable::zeroed(),
    );
    let _ = value!(Context::pe_accessible, world.pe_accessible(pe));
    let _ = value!(Context::addr_accessible, world.addr_accessible(words, pe));
}

fn through<T: Pod>(r: &mut Random, context: &Context<'_>, object: Sym<T>, pe: usize, value: T) {
    let Some(peer) = value!(Context::ptr, context.ptr(object, pe)) else {
        return;
    };
    let len = value!(PeerPtr::len, peer.len());
    assert_eq!(value!(PeerPtr::is_empty, peer.is_empty()), len == 0);
    let _ = value!(PeerPtr::as_ptr, peer.as_ptr());
    for index in [0, len.wrapping_sub(1), len, r.odd(len)] {
        call!(PeerPtr::load, peer.load(index));
        call!(PeerPtr::store, peer.store(index, value));
    }
}

fn tables(player: &mut Player<'_>) {
    let world = player.world;
    let peers = value!(bindings::peer_table, bindings::peer_table(world));
    assert_eq!(peers.len(), world.n_pes());
    assert!(peers.iter().all(|peer| !format!("{peer:?}").is_empty()));
    if let Some(words) = value!(bindings::word_table, bindings::word_table(world)) {
        assert_eq!(words.len(), world.n_pes());
        assert!(words.iter().all(|word| !format!("{word:?}").is_empty()));
    }
}

fn told(player: &mut Player<'_>) {
    let world = player.world;
    let n = world.n_pes();
    assert_eq!(value!(World::hosts, world.hosts()).len(), n);
    assert!(!value!(World::bootstrap, world.bootstrap()).is_empty());
    assert_eq!(value!(World::routes, world.routes()).len(), n);
    assert!(!value!(World::devices, world.devices()).is_empty());
    assert!(!value!(World::collective_choices, world.collective_choices()).is_empty());
    assert!(value!(World::acknowledge_lost, world.acknowledge_lost()).is_empty());
    let _ = value!(World::model, world.model());
    let _ = value!(bindings::is_checked, bindings::is_checked(world));
    let _ = value!(bindings::uses_lanes, bindings::uses_lanes(world));
    assert!(value!(bindings::team_room, bindings::team_room(world)) > 0);
    assert!(!value!(bindings::host_id, bindings::host_id()).is_empty());
    assert!(call!(bindings::bootstrap_deadline, bindings::bootstrap_deadline()).is_some());
    for name in ["", "\0", "="] {
        assert!(value!(bindings::variable, bindings::variable(name)).is_none());
    }
    let pe = player.own.odd(n);
    assert_eq!(call!(World::explain, world.explain(pe)).is_some(), pe < n);
    player.statics();
}

oxshmem::symmetric! {
    static ONE: u64 = 1;
    static THREE: [u8; 3] = [1, 2, 3];
}

impl Player<'_> {
    fn statics(&mut self) {
        let world = self.world;
        let one = call!(Static::get, ONE.get(world)).unwrap();
        let three = call!(Static::get, THREE.get(world)).unwrap();
        read(world, one);
        read(world, three);
        assert_eq!(world.g(three, world.my_pe()).unwrap(), [1, 2, 3]);
    }
}
