//! Joining by a unique id, which one process makes and the program takes to the others by its own ways.
//!
//! The id is a publication: the job's key, and the addresses at which the process that made it listens. That process serves the
//! rendezvous, whatever its rank; it learns the job's size when it joins.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::bootstrap::Bootstrap;
use crate::client::TcpBootstrap;
use crate::client::connect::Listens;
use crate::environment::publication::{listen, parse, publication};
use crate::error::{Error, Result};
use crate::hub::HubListener;
use crate::job_key::JobKey;
use crate::limits::MAX_PES;
use crate::protocol::hello::Hello;
use crate::single::Single;
use crate::variables::Lookup;

/// The name of this way to join, for descriptions.
const NAME: &str = "a unique id";

/// An id that others join by, and the place where they do: in this process.
pub struct Invitation {
    id: String,
    key: JobKey,
    listener: HubListener,
}

impl fmt::Debug for Invitation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The id has the key in it.
        f.debug_struct("Invitation").finish_non_exhaustive()
    }
}

impl Invitation {
    /// Listens on this host's addresses, or at that of `OXSHMEM_HUB_ADDRESS`. The id has `most` bytes at most.
    ///
    /// # Errors
    ///
    /// [`Error::Listen`] where no port is to be had, [`Error::Variable`] for an address that is none.
    pub fn new(lookup: Lookup<'_>, most: usize) -> Result<Invitation> {
        let listener = listen(lookup, false)?;
        let key = JobKey::random()?;
        let id = publication(lookup, &key, listener.address(), most)?;
        Ok(Invitation { id, key, listener })
    }

    /// The id: a word of printable characters. It lets whoever has it join.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Joins as rank `rank` of `size`, and serves the others from here on.
    ///
    /// # Errors
    ///
    /// As [`join_by_id`].
    pub fn join(self, rank: u32, size: u32, deadline: Duration) -> Result<Arc<dyn Bootstrap>> {
        check(rank, size)?;
        if size == 1 {
            return Ok(Arc::new(Single::new()));
        }
        let Invitation { id, key, listener } = self;
        let hub = listener.serve_and_report(size, key)?;
        connect(&id, rank, size, deadline, Some(hub))
    }
}

/// Joins the job of an id as rank `rank` of `size`. The process that made the id may join later.
///
/// # Errors
///
/// [`Error::Protocol`] for what is no id; [`Error::Launch`] for a rank that is not below the size; and those of connecting.
pub fn join_by_id(
    id: &str,
    rank: u32,
    size: u32,
    deadline: Duration,
) -> Result<Arc<dyn Bootstrap>> {
    check(rank, size)?;
    match size {
        1 => Ok(Arc::new(Single::new())),
        _ => connect(id, rank, size, deadline, None),
    }
}

fn check(rank: u32, size: u32) -> Result<()> {
    if (1..=MAX_PES).contains(&size) && rank < size {
        return Ok(());
    }
    let what = format!(
        "rank {rank} of {size}: a job has 1 to {MAX_PES} PEs, and ranks are numbered from 0"
    );
    Err(Error::Launch { what })
}

fn connect(
    id: &str,
    rank: u32,
    size: u32,
    deadline: Duration,
    hub: Option<crate::hub::Hub>,
) -> Result<Arc<dyn Bootstrap>> {
    let (key, addresses) = parse(id)?;
    let hello = Hello { rank, size, key };
    let bootstrap = TcpBootstrap::new(&addresses, hello, deadline, Listens::Later, hub)?;
    Ok(Arc::new(bootstrap.found_by(NAME, deadline)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_secs(20);

    #[test]
    fn processes_meet_by_an_id_whose_maker_is_any_rank() {
        let invitation = Invitation::new(&|_| None, 120).unwrap();
        let id = invitation.id().to_owned();
        assert!(id.len() <= 120, "{id}");
        let others = [0, 2].map(|rank| {
            let id = id.clone();
            std::thread::spawn(move || {
                let bootstrap = join_by_id(&id, rank, 3, SOON).unwrap();
                let all = bootstrap.allgather(&[rank as u8]).unwrap();
                bootstrap.leave();
                all
            })
        });
        let bootstrap = invitation.join(1, 3, SOON).unwrap();
        let expected = vec![vec![0], vec![1], vec![2]];
        assert_eq!(bootstrap.allgather(&[1]).unwrap(), expected);
        bootstrap.leave();
        for other in others {
            assert_eq!(other.join().unwrap(), expected);
        }
    }

    #[test]
    fn a_job_of_one_needs_nobody_and_wrong_ranks_are_refused() {
        let invitation = Invitation::new(&|_| None, 120).unwrap();
        assert_eq!(invitation.join(0, 1, SOON).unwrap().size(), 1);
        for (rank, size) in [(0, 0), (2, 2), (5, 2)] {
            let refused = join_by_id("oxshmem-1/", rank, size, SOON)
                .unwrap_err()
                .to_string();
            assert!(refused.contains("numbered from 0"), "{refused}");
        }
        let refused = join_by_id("not an id", 0, 2, SOON).unwrap_err().to_string();
        assert!(refused.contains("rendezvous"), "{refused}");
    }
}
