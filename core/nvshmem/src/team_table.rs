//! The teams of this PE by their handles, and those that are always there.

use oxshmem::{DetachedTeam, DeviceLibrary, World, bindings};

use crate::environment;
use crate::failure::{Done, Failure};
use crate::places::Places;

/// Handles of the teams that are always there.
pub(crate) const WORLD: i32 = 0;
pub(crate) const SHARED: i32 = 1;
pub(crate) const NODE: i32 = 2;
pub(crate) const SAME_MYPE_NODE: i32 = 3;
/// A team of the program's.
pub(crate) struct TeamEntry {
    pub(crate) team: DetachedTeam,
    pub(crate) num_contexts: i32,
}

/// The GPU memory that kernels' teams may take at the start, where the environment says nothing, and about what one takes for each PE, in
/// bytes.
const ROOM: usize = 16 << 20;
const ROOM_OF_ONE: usize = 600;

pub(crate) fn entry(team: DetachedTeam, num_contexts: i32) -> Option<TeamEntry> {
    Some(TeamEntry { team, num_contexts })
}

/// Teams for which kernels get memory at the start.
pub(crate) fn room(world: &World) -> usize {
    let most = bindings::team_room(world);
    environment::teams().unwrap_or_else(|| most.min(ROOM / (ROOM_OF_ONE * world.n_pes())))
}

/// The teams that are always there, by their handles. Collective.
pub(crate) fn predefined(
    world: &World,
    library: &DeviceLibrary<'_>,
    places: &Places,
) -> Done<Vec<Option<TeamEntry>>> {
    let mut teams = vec![
        entry(world.team().detach(), 0),
        entry(world.shared_team().detach(), 0),
    ];
    for (handle, colors) in [(NODE, &places.hosts), (SAME_MYPE_NODE, &places.on_host)] {
        let team = world.team().split_colors(colors)?;
        let number = library.add_team(&team)?;
        if number != handle {
            return Err(Failure::Start(format!(
                "the team {handle} has number {number} in kernels; call the first init before other teams are made"
            )));
        }
        teams.push(entry(team.detach(), 0));
    }
    Ok(teams)
}
