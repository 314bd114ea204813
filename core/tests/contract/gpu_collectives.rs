//! Collective calls on objects in GPU memory, over every kind of route to it that needs no CUDA driver: the
//! cases of any memory, and what is otherwise.

use std::sync::Arc;

use oxshmem::{Error, Fold, MemoryModel, Result, Sym, World};
use oxshmem_example_tiny_transport::Tiny;
use oxshmem_loopback::Loopback;
use oxshmem_transport::Pe as Rank;
use oxshmem_weak::{Machine, Seeded, Simulator, simulated_gpu_memory};

use crate::collectives;
use crate::gpu::Growing;
use crate::gpu_staged::{CUDA, MIB, everywhere};
use crate::gpu_staged_losses::join_staged;
use crate::job::{say, stay};
use crate::kills::kill_one;
use crate::setting::{Case, DEADLINE, Path, Pe, Setting, on_each, patterns, seed};

/// A case, with its objects in GPU memory.
fn on_gpu(world: &World, case: Case) -> Result<()> {
    let setting = Setting::new(Path::Gpu);
    case(&Pe { world, setting })
}

macro_rules! over_all_routes {
    ($($module:ident::$case:ident)*) => {$(
        #[test]
        fn $case() {
            everywhere(3, |world| on_gpu(world, crate::$module::$case));
        }
    )*};
}

over_all_routes! {
    collectives::broadcast_gives_every_pe_the_roots_data
    collectives::collectives_may_follow_each_other_at_once
    collectives::calls_of_any_team_equal_a_serial_reference
    refusals::m36_a_teams_calls_refuse_what_makes_no_sense
    sequences::sequences_of_calls_equal_a_serial_reference
}

/// Collectives by host, whose data crosses the network once for each host.
#[test]
fn calls_of_several_hosts_equal_a_serial_reference() {
    let builder = World::builder()
        .transports(vec![Arc::new(Loopback::new()), Arc::new(Tiny::nic())])
        .timeout(DEADLINE)
        .heap_limit(8 * MIB)
        .gpu_memory(|_| Ok(Box::new(Growing::new(32 * MIB, 32 * MIB))));
    let hosts = ["near", "far", "near", "far"];
    let builders = hosts.map(|host| builder.clone().host_id(host)).to_vec();
    on_each(builders, |world| {
        on_gpu(world, collectives::broadcast_gives_every_pe_the_roots_data)?;
        on_gpu(
            world,
            collectives::calls_of_any_team_equal_a_serial_reference,
        )
    });
}

/// GPUs that may see what a NIC has placed in their memory only when they are flushed.
#[test]
fn m27_what_calls_have_placed_is_seen_by_the_gpu() {
    const LEN: usize = 300;
    for model in [MemoryModel::Ordered, MemoryModel::Relaxed] {
        let machine = Machine::new(4, Arc::new(Seeded::new(seed())));
        let gpu = simulated_gpu_memory(MIB).unwrap();
        let gpus = Simulator::nic(Arc::clone(&machine), "gpus", &[CUDA]);
        let builder = World::builder()
            .transports(vec![
                Arc::new(Simulator::new(Arc::clone(&machine))),
                Arc::new(gpus),
            ])
            .model(model)
            .timeout(DEADLINE)
            .heap_limit(MIB)
            .gpu_heap(gpu.clone());
        on_each(vec![builder; 3], |world| {
            let (me, n, team) = (world.my_pe(), world.n_pes(), world.team());
            // Its scratch memory has no room for long objects.
            let part = team.split_strided(0, 1, n)?.unwrap();
            let look = |object: Sym<u64>| {
                let at = gpu.base().addr().get() + object.offset() as usize;
                let (storage, at) = machine.registered(Rank(me as u32), at, 8).unwrap();
                let mut word = [0; 8];
                machine.load(Rank(me as u32), &storage, at, &mut word);
                u64::from_le_bytes(word)
            };
            let seen = |object: Sym<u64>| -> Result<Vec<u64>> {
                (0..object.len()).map(|i| Ok(look(object.at(i)?))).collect()
            };
            let dst = world.alloc_on::<u64>(CUDA, n * LEN)?;
            let sources = [world.alloc_on::<u64>(CUDA, LEN)?, world.alloc(LEN)?];
            for round in 0..6 {
                for (src, team) in sources
                    .into_iter()
                    .flat_map(|src| [(src, &team), (src, &part)])
                {
                    let (one, given) = (dst.range(..LEN)?, |pe| patterns(pe + n * round, LEN));
                    world.write(src, &given(me))?;
                    team.broadcast(one, src, round % n)?;
                    assert_eq!(seen(one)?, given(round % n), "broadcast");
                    team.fcollect(dst, src)?;
                    let all: Vec<u64> = (0..n).flat_map(given).collect();
                    assert_eq!(seen(dst)?, all, "fcollect");
                    let part = LEN / n;
                    team.alltoalls(dst, src, 2, 1, part)?;
                    let each = (0..n * part).map(|i| all[i / part * LEN + me * part + i % part]);
                    let apart = (0..n * part).map(|i| Ok(look(dst.at(2 * i)?)));
                    assert!(apart.collect::<Result<Vec<_>>>()?.into_iter().eq(each));
                    team.reduce(one, src, Fold::Xor)?;
                    let folded = (0..LEN).map(|i| (0..n).fold(0, |x, pe| x ^ all[pe * LEN + i]));
                    assert!(seen(one)?.into_iter().eq(folded), "reduce");
                }
            }
            part.destroy()?;
            for object in [dst, sources[0], sources[1]] {
                world.free(object)?;
            }
            Ok(())
        });
    }
}

/// Longer than what goes through a buffer at a time.
#[test]
fn long_objects_of_either_kind_are_folded_and_gathered_whole() {
    const LEN: usize = 140_001;
    everywhere(3, |world| {
        let (team, me) = (world.team(), world.my_pe());
        let (gpu, all) = (world.alloc_on(CUDA, LEN)?, world.alloc_on(CUDA, 3 * LEN)?);
        let host: Sym<u64> = world.alloc(LEN)?;
        let given = |pe: usize| patterns(pe, LEN);
        let mut seen = vec![0; LEN];
        let sum = |pes: std::ops::Range<usize>| {
            pes.map(given).fold(vec![0_u64; LEN], |mut sum, values| {
                let each = sum.iter_mut().zip(values);
                each.for_each(|(sum, value)| *sum = sum.wrapping_add(value));
                sum
            })
        };
        for (dst, src) in [(gpu, gpu), (host, gpu), (gpu, host)] {
            world.write(src, &given(me))?;
            team.reduce(dst, src, Fold::Sum)?;
            world.read(&mut seen, dst)?;
            assert!(seen == sum(0..3));
            world.write(src, &given(me))?;
            team.inscan(dst, src, Fold::Sum)?;
            world.read(&mut seen, dst)?;
            assert!(seen == sum(0..me + 1));
            world.write(src, &given(me))?;
            team.fcollect(all, src)?;
            for pe in 0..3 {
                world.read(&mut seen, all.range(pe * LEN..(pe + 1) * LEN)?)?;
                assert!(seen == given(pe));
            }
        }
        world.free(host)?;
        world.free(all)?;
        world.free(gpu)
    });
}

#[test]
fn the_kill_of_a_member_ends_calls_on_gpu_objects() {
    kill_one("gpu-collectives", 3);
}

/// The program of each of three PEs: collective calls until the last PE is killed, most probably within a call.
/// The others then go on with a team of their own.
pub fn collect_until_lost() -> Result<()> {
    const LEN: usize = 100_000;
    let world = join_staged()?;
    let (me, team) = (world.my_pe(), world.team());
    let others = team.split_list(&[0, 1])?;
    let x = world.alloc_on::<u64>(CUDA, LEN)?;
    let all = world.alloc_on::<u64>(CUDA, 3 * LEN)?;
    world.write(x, &patterns(me, LEN))?;
    team.fcollect(all, x)?;
    say("ready");
    let lost = loop {
        if let Err(error) = team.fcollect(all, x) {
            break error;
        }
    };
    assert!(matches!(lost, Error::PeerLost { pe: 2, .. }), "{lost}");
    world.acknowledge_lost();
    if let Some(others) = others {
        let both = all.range(..2 * LEN)?;
        world.write(both, &vec![0; both.len()])?;
        others.fcollect(both, x)?;
        let mut seen = vec![0; both.len()];
        world.read(&mut seen, both)?;
        assert!(seen == [patterns(0, LEN), patterns(1, LEN)].concat());
    }
    say("survived");
    stay();
    Ok(())
}
