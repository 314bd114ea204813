//! Teams, by their numbers.

use oxshmem::bindings;
use pyo3::prelude::*;

use crate::job::Job;

/// A team's PEs by their numbers in the world, in the team's order.
#[pyfunction]
pub(crate) fn team_members(py: Python<'_>, job: &Job, team: u64) -> PyResult<Vec<usize>> {
    job.run(py, |live| {
        live.with_team(team, |team| Ok(team.world_pes().collect()))
    })
}

/// Splits a team off, and gives its number to its members.
#[pyfunction]
pub(crate) fn team_split_strided(
    py: Python<'_>,
    job: &Job,
    team: u64,
    start: usize,
    stride: isize,
    size: usize,
) -> PyResult<Option<u64>> {
    job.run(py, |live| {
        live.with_team(team, |team| {
            let new = team.split_strided(start, stride, size)?;
            Ok(new.map(|new| live.add_team(new)))
        })
    })
}

/// The same of a list of its PEs.
#[pyfunction]
pub(crate) fn team_split_list(
    py: Python<'_>,
    job: &Job,
    team: u64,
    pes: Vec<usize>,
) -> PyResult<Option<u64>> {
    job.run(py, |live| {
        live.with_team(team, |team| {
            let new = team.split_list(&pes)?;
            Ok(new.map(|new| live.add_team(new)))
        })
    })
}

/// Splits a team into one for each colour.
#[pyfunction]
pub(crate) fn team_split_colors(
    py: Python<'_>,
    job: &Job,
    team: u64,
    colors: Vec<usize>,
) -> PyResult<u64> {
    job.run(py, |live| {
        live.with_team(team, |team| Ok(live.add_team(team.split_colors(&colors)?)))
    })
}

/// Splits a team into rows and columns.
#[pyfunction]
pub(crate) fn team_split_2d(
    py: Python<'_>,
    job: &Job,
    team: u64,
    xrange: usize,
) -> PyResult<(u64, u64)> {
    job.run(py, |live| {
        live.with_team(team, |team| {
            let (x, y) = team.split_2d(xrange)?;
            Ok((live.add_team(x), live.add_team(y)))
        })
    })
}

/// Ends a team. Collective over it.
#[pyfunction]
pub(crate) fn team_destroy(py: Python<'_>, job: &Job, team: u64) -> PyResult<()> {
    job.run(py, |live| live.remove_team(team))
}

/// Leaves a team, whose other members then do not wait for this PE.
#[pyfunction]
pub(crate) fn team_leave(py: Python<'_>, job: &Job, team: u64) -> PyResult<()> {
    job.run(py, |live| live.leave_team(team))
}

/// Makes a team known to the device library, and gives its number there. Collective over it.
#[pyfunction]
pub(crate) fn team_device_number(py: Python<'_>, job: &Job, team: u64) -> PyResult<i32> {
    job.run(py, |live| {
        live.with_team_and_world(team, |team, world| {
            let library = bindings::device_library(world)?;
            Ok(library.add_team(team)?)
        })
    })
}
