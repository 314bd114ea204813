//! The job as this process knows it from its environment, before it joins.

/// Whether the environment describes a job.
pub fn is_described() -> bool {
    oxshmem_bootstrap::describes_job(&|name| std::env::var(name).ok())
}

/// Whether this process is a PE of a job, but not the one that prints.
pub fn shown_by_another() -> bool {
    let lookup = |name: &str| std::env::var(name).ok();
    let rank = lookup("OXSHMEM_RANK").or_else(|| lookup("RANK"));
    is_described() && rank.is_some_and(|rank| rank.trim() != "0")
}

/// The CPUs that this process may use, as a list.
pub fn allowed_cpus() -> String {
    oxshmem_topo::usable_cpus().map_or("not known".into(), |usable| usable.allowed.to_string())
}
