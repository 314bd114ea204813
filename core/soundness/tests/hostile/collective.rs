//! Collective calls: allocation, teams, and the teams' calls. All PEs make them in one order, most
//! often with the same arguments.

use oxshmem::{
    ContextOptions, Fold, Hints, MemoryKind, Pod, Reducible, Sym, Team, TeamConfig, World, bindings,
};

use crate::random::Random;
use crate::{Player, call, value};

const FOLDS: [Fold; 7] = [
    Fold::Sum,
    Fold::Prod,
    Fold::Min,
    Fold::Max,
    Fold::And,
    Fold::Or,
    Fold::Xor,
];

pub fn calls(player: &mut Player<'_>) {
    heap(player);
    let world = player.world;
    let objects = player.objects;
    let r = &mut player.common;
    let all = value!(World::team, world.team());
    let near = value!(World::shared_team, world.shared_team());
    let team = [&all, &near][r.below(2)];
    of_numbers(r, team, objects.more, objects.words);
    #[cfg(target_arch = "x86_64")]
    of_numbers(
        r,
        team,
        objects.more.cast().unwrap(),
        long_doubles(objects.words),
    );
    of_type(r, team, objects.more, objects.words);
    of_type(r, team, objects.triples, objects.triples);
    of_type(r, team, objects.nothing, objects.nothing);
    of_type(r, team, objects.endless, objects.endless);
    of_type(r, team, objects.long, objects.long);
    of_type(r, team, objects.more, player.foreign.words);
    // Only the first PE may refuse; the others hear of it.
    let mine = [player.foreign.words, objects.words][usize::from(world.my_pe() > 0)];
    call!(Team::fcollect, all.fcollect(objects.more, mine));
    // No two PEs have the same length.
    let some = objects.words.range(..world.my_pe()).unwrap();
    call!(
        Team::alltoall,
        all.alltoall(objects.more.range(..some.len()).unwrap(), some)
    );
    call!(World::barrier_all, world.barrier_all());
    call!(World::sync_all, world.sync_all());
    call!(
        bindings::all_say,
        bindings::all_say(world, player.own.below(2) == 0)
    );
    of_world(r, world, objects.more, objects.words);
    teams(player);
}

fn heap(player: &mut Player<'_>) {
    let (world, r, stale) = (player.world, &mut player.common, &mut player.stale);
    let (x, y, q) = (r.odd(500), r.odd(500), r.below(500));
    stale.extend(call!(World::alloc, world.alloc::<u64>(x)));
    stale.extend(call!(World::alloc, world.alloc::<u64>(q)));
    stale.extend(call!(World::alloc_zeroed, world.alloc_zeroed::<u64>(y)));
    stale.extend(call!(
        World::alloc_aligned,
        world.alloc_aligned::<u64>(q, x)
    ));
    stale.extend(call!(
        World::alloc_with_hints,
        world.alloc_with_hints::<u64>(q, Hints::ATOMICS_REMOTE | Hints::SIGNAL_REMOTE)
    ));
    call!(World::alloc_on, world.alloc_on::<u64>(MemoryKind::Cuda, x));
    call!(World::alloc, world.alloc::<crate::Long>(x));
    // Different lengths.
    call!(World::alloc, world.alloc::<u8>(100 + world.my_pe()));
    // Freed blocks, parts of blocks, and handles of no block.
    for _ in 0..stale.len().min(4) {
        let block = r.one_of(stale);
        call!(World::free, world.free(block));
        let again = r.one_of(stale);
        stale.extend(call!(World::realloc, world.realloc(again, y)));
        let part = again.range(again.len() / 2..).unwrap_or(again);
        call!(World::free, world.free(part));
    }
    call!(World::free, world.free(player.foreign.words));
    call!(World::realloc, world.realloc(player.foreign.bytes, q));
    let keep = 40;
    if stale.len() > keep {
        stale
            .drain(..stale.len() - keep)
            .for_each(|block| drop(world.free(block)));
    }
}

/// A random part of `whole`.
fn part<T: Pod>(r: &mut Random, whole: Sym<T>, most: usize) -> Sym<T> {
    whole.range(..r.below(whole.len().min(most) + 1)).unwrap()
}

fn of_type<T: Pod>(r: &mut Random, team: &Team<'_>, dst: Sym<T>, src: Sym<T>) {
    let root = r.pe(team.n_pes());
    let (x, y, z) = (r.odd(src.len()), r.odd(src.len()), r.odd(src.len()));
    let (few, some) = (r.below(4), r.below(src.len().min(100) + 1));
    let same = part(r, dst, 500);
    let mine = src.range(..same.len()).unwrap_or(src);
    for (into, from) in [
        (same, mine),
        (part(r, dst, 500), part(r, src, 500)),
        (dst, src),
    ] {
        call!(Team::fcollect, team.fcollect(into, from));
        call!(Team::collect, team.collect(into, from));
        call!(Team::collect_into_rest, team.collect_into_rest(into, from));
        call!(Team::broadcast, team.broadcast(into, from, root));
        call!(
            Team::broadcast_to_others,
            team.broadcast_to_others(into, from, root)
        );
        call!(Team::alltoall, team.alltoall(into, from));
        call!(Team::alltoalls, team.alltoalls(into, from, x, y, z));
        call!(Team::alltoalls, team.alltoalls(into, from, few, few, some));
    }
}

/// The same calls for the team of all PEs, as methods of `World`.
fn of_world(r: &mut Random, world: &World, dst: Sym<u64>, src: Sym<u64>) {
    let (root, fold) = (r.pe(world.n_pes()), r.one_of(&FOLDS));
    let (x, y, z) = (r.odd(500), r.odd(500), r.odd(500));
    let same = part(r, dst, 500);
    let mine = src.range(..same.len()).unwrap();
    for (into, from) in [(same, mine), (part(r, dst, 500), part(r, src, 500))] {
        call!(World::broadcast, world.broadcast(into, from, root));
        call!(
            World::broadcast_to_others,
            world.broadcast_to_others(into, from, root)
        );
        call!(World::fcollect, world.fcollect(into, from));
        call!(World::collect, world.collect(into, from));
        call!(World::alltoall, world.alltoall(into, from));
        call!(World::alltoalls, world.alltoalls(into, from, x, y, z));
        call!(World::reduce, world.reduce(into, from, fold));
        call!(World::sum_reduce, world.sum_reduce(into, from));
        call!(World::inscan, world.inscan(into, from, fold));
        call!(World::exscan, world.exscan(into, from, fold));
        call!(
            World::reduce_scatter,
            world.reduce_scatter(into, from, fold)
        );
    }
}

fn of_numbers<T: Reducible>(r: &mut Random, team: &Team<'_>, dst: Sym<T>, src: Sym<T>) {
    let fold = r.one_of(&FOLDS);
    let same = part(r, dst, 500);
    let mine = src.range(..same.len()).unwrap();
    for (into, from) in [
        (same, mine),
        (mine, mine),
        (part(r, dst, 500), part(r, src, 500)),
    ] {
        call!(Team::reduce, team.reduce(into, from, fold));
        call!(Team::inscan, team.inscan(into, from, fold));
        call!(Team::exscan, team.exscan(into, from, fold));
        call!(Team::reduce_scatter, team.reduce_scatter(into, from, fold));
    }
    let whole = src
        .range(..same.len() / team.n_pes() * team.n_pes())
        .unwrap();
    let each = dst.range(..whole.len() / team.n_pes()).unwrap();
    call!(Team::reduce_scatter, team.reduce_scatter(each, whole, fold));
}

/// Words as numbers of 80 bits.
#[cfg(target_arch = "x86_64")]
fn long_doubles(words: Sym<u64>) -> Sym<oxshmem::LongDouble> {
    let zero: oxshmem::LongDouble = bytemuck::Zeroable::zeroed();
    assert_eq!(value!(LongDouble::to_f64, zero.to_f64()), 0.0);
    words.cast().unwrap()
}

fn teams(player: &mut Player<'_>) {
    let (world, r, objects) = (player.world, &mut player.common, player.objects);
    let all = world.team();
    let n = world.n_pes();
    let (x, y, u) = (r.odd(n), r.odd(n), r.below(4));
    let lists: [&[usize]; 4] = [&[u, x, 0], &[], &[0, 0], &[usize::MAX; 20]];
    let (strides, list) = (
        [(x, y as isize, u), (0, 1, n), (n - 1, -1, n)],
        r.one_of(&lists),
    );
    for (start, stride, size) in strides {
        let team = call!(Team::split_strided, all.split_strided(start, stride, size));
        end(objects.more, objects.words, team.flatten());
    }
    let team = call!(Team::split_list, all.split_list(list));
    end(objects.more, objects.words, team.flatten());
    for colors in [vec![u; n], vec![x; n], vec![], vec![usize::MAX; n + 1]] {
        let team = call!(Team::split_colors, all.split_colors(&colors));
        end(objects.more, objects.words, team);
    }
    for width in [x, u] {
        if let Some((row, column)) = call!(Team::split_2d, all.split_2d(width)) {
            end(objects.more, objects.words, Some(row));
            end(objects.more, objects.words, Some(column));
        }
    }
    for among in [(x, y as isize, u), (0, 1, n)] {
        let team = call!(Context::active_set_team, world.active_set_team(among));
        end(objects.more, objects.words, team);
    }
    call!(Team::destroy, all.destroy());
    let why = "a test's reason";
    call!(Team::refuse, world.team().refuse("a test", why.into()));
}

fn end(dst: Sym<u64>, src: Sym<u64>, team: Option<Team<'_>>) {
    let Some(team) = team else { return };
    let mut config = TeamConfig::default();
    config.num_contexts = usize::MAX;
    let team = value!(Team::with_config, team.with_config(config));
    assert_eq!(value!(Team::config, team.config()), config);
    let n = value!(Team::n_pes, team.n_pes());
    assert!(value!(Team::my_pe, team.my_pe()) < n);
    for pe in [0, n, usize::MAX] {
        let _ = value!(Team::translate, team.translate(pe, &team));
    }
    assert_eq!(value!(Team::world_pes, team.world_pes()).count(), n);
    let _ = value!(Team::is_for_one_call, team.is_for_one_call());
    let made = team.create_context(ContextOptions::NONE);
    if let Some(context) = call!(Team::create_context, made) {
        for pe in [0, n - 1, n, usize::MAX] {
            call!(Context::put, context.put(src, &[1], pe));
            call!(Context::fetch_inc, context.fetch_inc(src, pe));
        }
        call!(Context::destroy, context.destroy());
    }
    call!(Team::sync, team.sync());
    call!(Team::fcollect, team.fcollect(dst, src.range(..3).unwrap()));
    call!(Team::barrier, team.barrier());
    call!(Team::destroy, team.destroy());
}
