//! The hosts of the job's PEs.

/// The place of each PE: the number of its host, and its own number there.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    pub(crate) hosts: Vec<usize>,
    pub(crate) on_host: Vec<usize>,
}

impl Places {
    /// By the hosts' names, in the order of PEs.
    pub(crate) fn of(names: &[Vec<u8>]) -> Places {
        let mut known: Vec<(&[u8], usize)> = Vec::new();
        let (mut hosts, mut on_host) = (Vec::new(), Vec::new());
        for name in names {
            let at = known.iter().position(|(other, _)| other == name);
            let at = at.unwrap_or_else(|| {
                known.push((name, 0));
                known.len() - 1
            });
            hosts.push(at);
            on_host.push(known[at].1);
            known[at].1 += 1;
        }
        Places { hosts, on_host }
    }
}
