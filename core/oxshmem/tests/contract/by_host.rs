//! In which order a reduction folds: host by host, where a team spans hosts of which some have several of its
//! members and objects are in host memory; else in the team's order.

use oxshmem::{Fold, Result, World};

use crate::numbers::Number;

/// The host of each PE, hosts in the order of their first PEs: a host's PEs map each other's memory.
pub fn hosts(world: &World) -> Result<Vec<usize>> {
    let first = world.shared_team().world_pes().min();
    let (all, mine) = (world.alloc::<u64>(world.n_pes())?, world.alloc::<u64>(1)?);
    world.write(mine, &[first.unwrap_or(world.my_pe()) as u64])?;
    world.team().fcollect(all, mine)?;
    let mut seen = vec![0; world.n_pes()];
    world.read(&mut seen, all)?;
    world.free(mine)?;
    world.free(all)?;
    Ok(seen.into_iter().map(|first| first as usize).collect())
}

/// The members that are folded together first, by their places in a team of these PEs.
pub fn groups(pes: impl Iterator<Item = usize>, hosts: &[usize]) -> Vec<Vec<usize>> {
    let of: Vec<usize> = pes.map(|pe| hosts[pe]).collect();
    let mut different = of.clone();
    different.sort_unstable();
    different.dedup();
    if different.len() == of.len() {
        return vec![(0..of.len()).collect()];
    }
    let on = |host: usize| (0..of.len()).filter(|place| of[*place] == host).collect();
    different.into_iter().map(on).collect()
}

/// What the values of the members come to.
pub fn folded<T: Number>(fold: Fold, groups: &[Vec<usize>], value: impl Fn(usize) -> T) -> T {
    let group = |group: &Vec<usize>| {
        let mut values = group.iter().map(|place| value(*place));
        T::fold(fold, &mut values).expect("no host is without members")
    };
    let mut of_hosts = groups.iter().map(group);
    T::fold(fold, &mut of_hosts).expect("no team is without members")
}
