//! By which of several sets of variables the job is described.

use super::{Lookup, RANK, RENDEZVOUS, SIZE};
use crate::pmi::Version;
use crate::{Error, Result};

const BOOTSTRAP: &str = "OXSHMEM_BOOTSTRAP";

/// How this PE finds the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Single,
    Launcher,
    Torchrun,
    Pmi(Version),
    Pmix,
}

/// The way to go, and the variable that says so.
pub(super) fn choose(lookup: Lookup<'_>) -> Result<(Way, &'static str)> {
    let chosen = lookup(BOOTSTRAP);
    let way = match chosen.as_deref().map(str::trim) {
        None | Some("auto") => return detect(lookup),
        Some("single") => Way::Single,
        Some("launcher") => Way::Launcher,
        Some("torchrun") => Way::Torchrun,
        Some("pmi1") => Way::Pmi(Version::One),
        Some("pmi2") => Way::Pmi(Version::Two),
        Some("pmix") => Way::Pmix,
        Some(other) => {
            return Err(Error::Variable {
                name: BOOTSTRAP,
                value: other.to_owned(),
                problem: "is no way to find the other PEs; give auto, launcher, torchrun, pmi1, \
                          pmi2, pmix or single"
                    .to_owned(),
            });
        }
    };
    Ok((way, BOOTSTRAP))
}

fn detect(lookup: Lookup<'_>) -> Result<(Way, &'static str)> {
    let set = |names: &[&'static str]| names.iter().copied().find(|name| lookup(name).is_some());
    if let Some(present) = set(&[RANK, SIZE, RENDEZVOUS]) {
        return Ok((Way::Launcher, present));
    }
    let torchrun = set(&["RANK", "WORLD_SIZE"]);
    // Where a process manager has started torchrun, its variables are torchrun's own, not the PE's.
    if let (Some(present), Some(_)) = (torchrun, lookup("TORCHELASTIC_RUN_ID")) {
        return Ok((Way::Torchrun, present));
    }
    let pmix = set(&["PMIX_NAMESPACE", "PMIX_RANK"]);
    match (set(&["PMI_FD"]), pmix) {
        (Some(name), Some(other)) => {
            return Err(Error::Variable {
                name,
                value: lookup(name).unwrap_or_default(),
                problem: format!(
                    "is set and so is {other}: one process manager was started under another; set \
                     OXSHMEM_BOOTSTRAP to what the one that started this program serves: pmi1 \
                     (mpiexec), pmi2 or pmix (mpirun)"
                ),
            });
        }
        (Some(present), None) => return Ok((Way::Pmi(Version::One), present)),
        (None, Some(present)) => return Ok((Way::Pmix, present)),
        (None, None) => {}
    }
    if let Some(present) = torchrun {
        return Ok((Way::Torchrun, present));
    }
    if let Some(present) = set(&["PMI_RANK", "PMI_SIZE"]) {
        return Ok((Way::Pmi(Version::One), present));
    }
    warn_of_slurm(lookup);
    Ok((Way::Single, ""))
}

/// Several processes that Slurm has started without a way to each other are most likely meant as
/// one job.
fn warn_of_slurm(lookup: Lookup<'_>) {
    if let Some(tasks) = slurm_tasks(lookup) {
        crate::report::warn(&format!(
            "this is one of {tasks} tasks of a Slurm step, and a world of its own: for one world \
             {BY_SLURM}, or set OXSHMEM_BOOTSTRAP=single"
        ));
    }
}

/// How Slurm starts one world.
pub(crate) const BY_SLURM: &str = "start them by srun --mpi=pmi2 or srun --mpi=pmix (srun --mpi=list shows which this \
                                   Slurm has)";

/// How many tasks the Slurm step has that started this process, if it has several.
pub(crate) fn slurm_tasks(lookup: Lookup<'_>) -> Option<u32> {
    lookup("SLURM_STEP_ID")?;
    let tasks = lookup("SLURM_STEP_NUM_TASKS")?.trim().parse().ok()?;
    (tasks > 1).then_some(tasks)
}

/// Whether this process is to be a world of one, whatever started it.
pub(crate) fn is_to_be_alone(lookup: Lookup<'_>) -> bool {
    lookup(BOOTSTRAP).is_some_and(|way| way.trim() == "single")
}

/// Whether `lookup`'s variables describe a job, well or badly: whether something launched this
/// process as a PE.
pub fn describes_job(lookup: &dyn Fn(&str) -> Option<String>) -> bool {
    let alone = || lookup("PMI_SIZE").is_some_and(|size| size.trim() == "1");
    match choose_quietly(lookup) {
        Ok((Way::Single, _)) => false,
        Ok((Way::Torchrun, _)) => lookup("RANK").is_some() && lookup("WORLD_SIZE").is_some(),
        Ok((Way::Launcher, _)) => lookup(RANK).is_some(),
        Ok((Way::Pmi(_), _)) => !alone(),
        Ok((Way::Pmix, _)) | Err(_) => true,
    }
}

/// The rank that `lookup`'s variables give this process, whether or not the job can be joined.
pub fn described_rank(lookup: &dyn Fn(&str) -> Option<String>) -> Option<u32> {
    let name = match choose_quietly(lookup).ok()?.0 {
        Way::Single => return None,
        Way::Launcher => RANK,
        Way::Torchrun => "RANK",
        Way::Pmi(_) => "PMI_RANK",
        Way::Pmix => "PMIX_RANK",
    };
    lookup(name)?.trim().parse().ok()
}

/// As [`choose`], without its warning: that is for who joins.
fn choose_quietly(lookup: Lookup<'_>) -> Result<(Way, &'static str)> {
    choose(&|name| lookup(name).filter(|_| !name.starts_with("SLURM_")))
}
