//! The team whose collectives are measured.

use anyhow::ensure;
use oxshmem::{Result, Team, World};

/// The PEs that make the collective calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Which {
    /// All PEs
    #[default]
    World,
    /// Those that load and store each other's memory: a host's
    Shared,
    /// The first half of them; the others wait
    Half,
    /// Rows of a square, all at the same time; the row of the PE that measures is timed
    Rows,
}

impl Which {
    /// The name as users write it.
    pub fn name(self) -> &'static str {
        match self {
            Which::World => "world",
            Which::Shared => "shared",
            Which::Half => "half",
            Which::Rows => "rows",
        }
    }

    /// Creates the team that this PE is in, if any. Collective.
    pub fn form(self, world: &World) -> Result<Option<Team<'_>>> {
        let pes = world.n_pes();
        match self {
            Which::World => Ok(Some(world.team())),
            Which::Shared => Ok(Some(world.shared_team())),
            Which::Half => world.team().split_strided(0, 1, pes.div_ceil(2)),
            Which::Rows => {
                let (row, column) = world.team().split_2d(width(pes))?;
                column.destroy()?;
                Ok(Some(row))
            }
        }
    }

    /// Checks on the measuring PE that its team has other members.
    pub fn check(self, world: &World, team: Option<&Team<'_>>) -> anyhow::Result<()> {
        let members = team.map_or(0, Team::n_pes);
        ensure!(
            members > 1 || self == Which::World,
            "the team {} of this job of {} {}; start more PEs (--pes), or choose another --team or --from",
            self.name(),
            world.n_pes(),
            match members {
                0 => format!("does not have PE {}", world.my_pe()),
                _ => format!("has PE {} alone", world.my_pe()),
            }
        );
        Ok(())
    }

    /// Destroys the team. Collective.
    pub fn end(self, team: Option<Team<'_>>) -> Result<()> {
        match (self, team) {
            (Which::Half | Which::Rows, Some(team)) => team.destroy(),
            _ => Ok(()),
        }
    }
}

/// The width of the least square that has space for so many.
fn width(pes: usize) -> usize {
    let root = pes.isqrt();
    root + usize::from(root * root < pes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;
    use oxshmem::testing::spmd;

    #[test]
    fn rows_are_of_the_least_square() {
        let widths: Vec<usize> = (1..=10).map(width).collect();
        assert_eq!(widths, [1, 2, 2, 2, 3, 3, 3, 3, 3, 4]);
    }

    #[test]
    fn a_team_has_the_pes_of_its_name_and_pe_0_among_others() {
        let form = |which: Which, pes| {
            spmd(pes, move |world| {
                let team = which.form(world)?;
                let checked = which.check(world, team.as_ref()).is_ok();
                let members = team.as_ref().map_or(0, Team::n_pes);
                which.end(team)?;
                Ok((members, checked))
            })
            .unwrap()
        };
        let members = |which, pes| {
            form(which, pes)
                .iter()
                .map(|made| made.0)
                .collect::<Vec<_>>()
        };
        assert_eq!(members(Which::World, 3), [3; 3]);
        assert_eq!(members(Which::Half, 5), [3, 3, 3, 0, 0]);
        assert_eq!(members(Which::Rows, 5), [3, 3, 3, 2, 2]);
        assert_eq!(members(Which::Shared, 2), [2; 2]);
        assert!(!form(Which::Half, 2)[0].1 && form(Which::Half, 3)[0].1);
        assert!(!form(Which::Half, 4)[3].1);
        for which in Which::value_variants() {
            assert_eq!(Which::from_str(which.name(), false), Ok(*which));
        }
    }
}
