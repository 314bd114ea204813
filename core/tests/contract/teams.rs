//! Teams: who is in them, who hears of what, and how many there may be.

use oxshmem::{Context, ContextOptions, Error, Result, Team, TeamConfig, World};

use crate::setting::{Pe, pattern};

/// Fails unless the team has these PEs of the world, in this order.
fn has(pe: &Pe<'_>, team: &Team<'_>, pes: &[usize]) {
    assert_eq!(team.world_pes().collect::<Vec<_>>(), pes);
    assert_eq!(team.n_pes(), pes.len());
    assert_eq!(pes[team.my_pe()], pe.me());
    let world = pe.team();
    for at in 0..=pe.n_pes() {
        let place = pes.iter().position(|p| *p == at);
        assert_eq!(world.translate(at, team), place);
        assert_eq!(team.translate(at, &world), pes.get(at).copied());
    }
}

/// Destroys what there is.
fn end(team: Option<Team<'_>>) -> Result<()> {
    team.map_or(Ok(()), Team::destroy)
}

pub fn the_worlds_team_has_all_pes_and_the_shared_one_those_that_map_each_other(
    pe: &Pe<'_>,
) -> Result<()> {
    let all: Vec<usize> = (0..pe.n_pes()).collect();
    has(pe, &pe.team(), &all);
    assert!(pe.team() == pe.team() && pe.team() != pe.shared_team());
    let shared = pe.shared_team();
    let members: Vec<usize> = shared.world_pes().collect();
    assert!(members.contains(&pe.me()));
    has(pe, &shared, &members);
    let x = pe.alloc_zeroed::<u64>(pe.n_pes())?;
    for &at in members.iter().filter(|_| pe.has_addresses()) {
        assert!(pe.ptr(x, at).is_some());
    }
    // Each tells all who its members are: those say the same.
    let mask = members.iter().fold(0_u64, |mask, at| mask | 1 << at);
    for at in 0..pe.n_pes() {
        pe.p(x.at(pe.me())?, mask, at)?;
    }
    pe.barrier_all()?;
    let masks = pe.own(x)?;
    assert!(members.iter().all(|at| masks[*at] == mask), "{masks:?}");
    shared.sync()?;
    assert!(pe.team().destroy().is_err() && pe.shared_team().destroy().is_err());
    pe.barrier_all()?;
    pe.free(x)
}

pub fn a_split_has_the_pes_that_start_stride_and_size_name(pe: &Pe<'_>) -> Result<()> {
    let n = pe.n_pes();
    for (start, stride, size) in [
        (0, 1, n),
        (0, 2, n.div_ceil(2)),
        (n - 1, -1, n),
        (n - 1, -2, n.div_ceil(2)),
        (n / 2, 1, n - n / 2),
        (n / 2, 0, 1),
        (0, n as isize, 1),
    ] {
        let pes: Vec<usize> = (0..size)
            .map(|i| start.wrapping_add_signed(i as isize * stride))
            .collect();
        let team = pe.team().split_strided(start, stride, size)?;
        assert_eq!(team.is_some(), pes.contains(&pe.me()));
        if let Some(team) = &team {
            has(pe, team, &pes);
            assert!(*team != pe.team() && *team != pe.shared_team());
            team.sync()?;
            team.barrier()?;
        }
        end(team)?;
    }
    Ok(())
}

pub fn rows_and_columns_number_their_pes_by_each_other(pe: &Pe<'_>) -> Result<()> {
    let n = pe.n_pes();
    for xrange in [1, 2, 3, n, n + 5, usize::MAX] {
        let (x, y) = pe.team().split_2d(xrange)?;
        let wide = xrange.min(n);
        let (row, column) = (pe.me() / wide, pe.me() % wide);
        let in_row: Vec<usize> = (0..n).filter(|at| at / wide == row).collect();
        let in_column: Vec<usize> = (0..n).filter(|at| at % wide == column).collect();
        has(pe, &x, &in_row);
        has(pe, &y, &in_column);
        assert_eq!((x.my_pe(), y.my_pe()), (column, row));
        // Both are used between each other.
        for _ in 0..3 {
            x.sync()?;
            y.sync()?;
        }
        y.destroy()?;
        x.destroy()?;
    }
    Ok(())
}

/// Each PE's own, and that of the one handle.
pub fn what_a_pe_says_of_a_team_stays_with_it(pe: &Pe<'_>) -> Result<()> {
    let mut config = TeamConfig::default();
    config.num_contexts = 3 + pe.me();
    let team = pe.team().split_strided(0, 1, pe.n_pes())?.unwrap();
    assert_eq!(team.config(), TeamConfig::default());
    let team = team.with_config(config);
    assert_eq!(team.config(), config);
    assert_eq!(pe.team().config().num_contexts, 0);
    let detached = team.detach();
    assert_eq!(detached.attach(pe.world)?.config(), config);
    let team = detached.into_team(pe.world)?;
    assert_eq!(team.config(), config);
    // A hint, which refuses none beyond; and none of the team that is split off it.
    let contexts: Vec<_> = (0..5 + pe.me())
        .map(|_| team.create_context(ContextOptions::NONE))
        .collect::<Result<_>>()?;
    contexts.into_iter().try_for_each(Context::destroy)?;
    let (x, y) = team.split_2d(1)?;
    assert_eq!([x.config(), y.config()], [TeamConfig::default(); 2]);
    x.destroy()?;
    y.destroy()?;
    team.destroy()
}

pub fn a_listed_team_keeps_the_order_of_its_list(pe: &Pe<'_>) -> Result<()> {
    let n = pe.n_pes();
    let mut list: Vec<usize> = (0..n).collect();
    for round in 0..4 {
        list.sort_unstable_by_key(|at| pattern(round, *at));
        let list = &list[..n.div_ceil(1 + round % 2)];
        let team = pe.team().split_list(list)?;
        assert_eq!(team.is_some(), list.contains(&pe.me()));
        if let Some(team) = &team {
            has(pe, team, list);
            // A team of that team, backwards.
            let last = team.n_pes() - 1;
            let back = team.split_strided(last, -1, last + 1)?.unwrap();
            let backwards: Vec<usize> = list.iter().rev().copied().collect();
            has(pe, &back, &backwards);
            back.sync()?;
            back.destroy()?;
            team.sync()?;
        }
        end(team)?;
    }
    Ok(())
}

pub fn a_team_that_would_leave_its_parent_is_refused_on_every_pe(pe: &Pe<'_>) -> Result<()> {
    let n = pe.n_pes();
    let refused = |made: Result<Option<Team<'_>>>| match made {
        Err(Error::Argument { .. }) => {}
        other => panic!("{other:?}"),
    };
    let world = pe.team();
    refused(world.split_strided(0, 1, n + 1));
    refused(world.split_strided(n, 1, 1));
    refused(world.split_strided(0, -1, 2));
    refused(world.split_strided(0, 1, 0));
    refused(world.split_strided(0, 0, 2));
    refused(world.split_strided(0, isize::MAX, 3));
    refused(world.split_strided(usize::MAX, 1, 2));
    refused(world.split_list(&[]));
    refused(world.split_list(&[n]));
    refused(world.split_list(&[0, 0]));
    refused(world.split_2d(0).map(|(x, _)| Some(x)));
    // The world is as before, and so are its slots.
    pe.barrier_all()?;
    end(world.split_strided(0, 1, n)?)
}

pub fn m36_pes_that_split_otherwise_are_told_so(pe: &Pe<'_>) -> Result<()> {
    let (n, odd) = (pe.n_pes(), pe.me() == pe.n_pes() - 1);
    if n == 1 {
        return Ok(());
    }
    let differ = |made: Result<Option<Team<'_>>>, words: &str| match made {
        Err(Error::CollectiveMismatch { detail, .. }) => {
            assert!(detail.contains(words), "{detail}");
        }
        other => panic!("{other:?}"),
    };
    let world = pe.team();
    differ(
        world.split_strided(usize::from(odd), 1, 1),
        "start 1, stride 1",
    );
    differ(world.split_list(&[usize::from(odd)]), "split_list([1])");
    match odd {
        true => differ(world.split_2d(1).map(|_| None), "split_2d(1)"),
        false => differ(world.split_strided(0, 1, n), "split_2d(1)"),
    }
    // Nothing that one calls can make sense, and what the other calls cannot.
    let made = world.split_strided(0, 1, if odd { n + 1 } else { n });
    differ(made, &format!("size {}", n + 1));
    // A team's own calls, whose words are longer than its scratch memory.
    let team = world.split_strided(0, 1, n)?.unwrap();
    let list: Vec<usize> = (0..n).collect();
    match odd {
        true => differ(team.sync().map(|()| None), "team sync()"),
        false => differ(team.split_list(&list), "team sync()"),
    }
    team.sync()?;
    pe.barrier_all()?;
    team.destroy()
}

/// Calls of a team and of the world, and of teams that overlap in part, need nothing between them.
pub fn teams_that_overlap_do_not_disturb_each_other(pe: &Pe<'_>) -> Result<()> {
    let n = pe.n_pes();
    let world = pe.team();
    let lower = world.split_strided(0, 1, n.div_ceil(2) + n / 4)?;
    let upper = world.split_strided(n / 4, 1, n - n / 4)?;
    let back = world.split_strided(n - 1, -1, n)?;
    let entered = pe.alloc_zeroed::<u64>(3)?;
    let teams = [&lower, &upper, &back];
    for round in 1..=pe.rounds(1000) as u64 {
        for (i, team) in teams.iter().enumerate() {
            let Some(team) = team else { continue };
            let first = team.world_pes().next().unwrap();
            pe.inc(entered.at(i)?, first)?;
            team.barrier()?;
            let there = pe.fetch(entered.at(i)?, first)?;
            let all = team.n_pes() as u64;
            assert!(
                (round * all..(round + 1) * all + 1).contains(&there),
                "{there}"
            );
        }
        if round % 16 == 0 {
            pe.sync_all()?;
        }
    }
    end(back)?;
    end(upper)?;
    end(lower)?;
    pe.barrier_all()?;
    pe.free(entered)
}

/// Stores of a member are visible to all after the team's sync (M24), and so are its completed puts (M25).
pub fn m24_a_teams_sync_makes_earlier_stores_visible(pe: &Pe<'_>) -> Result<()> {
    let n = pe.n_pes();
    let x = pe.alloc_zeroed::<u64>(4)?;
    let back = pe.team().split_strided(n - 1, -1, n)?.unwrap();
    for round in 1..=pe.rounds(300) as u64 {
        pe.write(x, &[round; 4])?;
        if !pe.is_mapped() {
            pe.quiet()?;
        }
        back.sync()?;
        assert_eq!(pe.copy_at(x, pe.right())?, [round; 4]);
        back.sync()?;
    }
    back.destroy()?;
    pe.free(x)
}

/// A team's context numbers PEs as the team does.
pub fn a_teams_context_counts_by_the_team(pe: &Pe<'_>) -> Result<()> {
    let n = pe.n_pes();
    let x = pe.alloc_zeroed::<u64>(n)?;
    let back = pe.team().split_strided(n - 1, -1, n)?.unwrap();
    let context = back.create_context(ContextOptions::NONE)?;
    assert_eq!((context.my_pe(), context.n_pes()), (back.my_pe(), n));
    for to in 0..n {
        context.p(x.at(back.my_pe())?, to as u64 + 1, to)?;
    }
    context.quiet()?;
    back.sync()?;
    assert_eq!(pe.own(x)?, vec![back.my_pe() as u64 + 1; n]);
    let refused = context.p(x, 1, n);
    assert!(
        matches!(refused, Err(Error::NoSuchPe { .. })),
        "{refused:?}"
    );
    context.destroy()?;
    back.destroy()?;
    pe.barrier_all()?;
    pe.free(x)
}

/// A slot is lent again, and no word of an old team is taken for the new one's.
pub fn a_destroyed_teams_room_is_used_again(pe: &Pe<'_>) -> Result<()> {
    let n = pe.n_pes();
    for round in 0..pe.rounds(400) {
        let start = pattern(7, round) as usize % n;
        let team = pe.team().split_strided(start, 1, n - start)?;
        if let Some(team) = &team {
            for _ in 0..round % 5 {
                team.sync()?;
            }
        }
        end(team)?;
    }
    Ok(())
}

/// Hundreds at a time, and one too many; then all again.
pub fn hundreds_of_teams_are_alive_at_once(pe: &Pe<'_>) -> Result<()> {
    let (n, most) = (pe.n_pes(), pe.longest(300));
    let all = |world: &World| -> Result<usize> {
        let mut teams = Vec::new();
        while teams.len() < most {
            // The PEs' own numbers differ, so that they do not run out at the same time.
            let team = match teams.len() % 3 {
                0 => world.team().split_strided(0, 1, n),
                1 => world.team().split_strided(0, 1, n.div_ceil(2)),
                _ => world.team().split_strided(n - 1, -1, n),
            };
            if let Err(Error::TooManyTeams { limit, .. }) = team {
                assert_eq!(limit, 256);
                break;
            }
            teams.push(team?);
            if let Some(Some(team)) = teams.last() {
                team.sync()?;
            }
        }
        for team in teams.iter().flatten() {
            team.sync()?;
        }
        // Members' own have room of their own.
        let among = world.active_set_team((0, 1, n))?;
        among.sync()?;
        assert!(!among.is_for_one_call());
        among.destroy()?;
        let count = teams.len();
        // In another order than they were made in.
        while !teams.is_empty() {
            end(teams.swap_remove(teams.len() / 3))?;
        }
        Ok(count)
    };
    let first = all(pe.world)?;
    assert_eq!(first, most.min(256));
    assert_eq!(all(pe.world)?, first);
    Ok(())
}

/// By pairs at the same time, and by more that overlap, while the others know nothing.
pub fn members_make_a_team_among_themselves(pe: &Pe<'_>) -> Result<()> {
    let n = pe.n_pes();
    let sum = pe.alloc_zeroed::<u64>(1)?;
    let mut made = Vec::new();
    let pairs = (0..n - 1).map(|start| (start, 1, 2));
    let sets = pairs.chain([(0, 2, n.div_ceil(2)), (0, 1, n), (n - 1, 1, 1)]);
    for (start, stride, size) in sets {
        let pes: Vec<usize> = (0..size).map(|i| start + i * stride).collect();
        if !pes.contains(&pe.me()) {
            continue;
        }
        let team = pe.active_set_team((start, stride as isize, size))?;
        has(pe, &team, &pes);
        pe.write(sum, &[pe.me() as u64 + 1])?;
        team.reduce(sum, sum, oxshmem::Fold::Sum)?;
        let all: usize = pes.iter().map(|pe| pe + 1).sum();
        assert_eq!(pe.own(sum)?, [all as u64]);
        made.push(team);
    }
    assert!(pe.active_set_team((0, 1, n + 1)).is_err());
    pe.barrier_all()?;
    made.into_iter().try_for_each(Team::destroy)?;
    pe.barrier_all()?;
    pe.free(sum)
}

pub fn a_broadcast_to_others_leaves_the_roots_own(pe: &Pe<'_>) -> Result<()> {
    for len in [1, 40_000] {
        let (dst, src) = (pe.alloc::<u64>(len)?, pe.alloc::<u64>(len)?);
        for root in 0..pe.n_pes() {
            pe.write(dst, &vec![9; len])?;
            let data = |of: usize| {
                (0..len as u64)
                    .map(|i| i << 8 | of as u64)
                    .collect::<Vec<_>>()
            };
            pe.write(src, &data(pe.me()))?;
            pe.team().broadcast_to_others(dst, src, root)?;
            let expected = if pe.me() == root {
                vec![9; len]
            } else {
                data(root)
            };
            assert!(pe.own(dst)? == expected, "{len} elements from PE {root}");
            pe.barrier_all()?;
        }
        pe.free(src)?;
        pe.free(dst)?;
    }
    Ok(())
}
