//! The memory that a PE of a large host touches when it leaves a team. PEs are processes here, and this program is its
//! own launcher.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use oxshmem::World;

const PES: usize = 40;

fn main() {
    oxshmem::launch::self_with(PES).unwrap();
    let world = World::init().unwrap();
    let team = world.shared_team().detach();
    let before = page_tables();
    team.leave(&world).unwrap();
    let touched = page_tables() - before;
    // A page of each other member would take a page table of 4 KiB at least.
    assert!(
        touched < 3 * PES as u64,
        "PE {} took {touched} KiB of page tables to leave a team",
        world.my_pe()
    );
    world.finalize().unwrap();
    if std::env::var("OXSHMEM_RANK").as_deref() == Ok("0") {
        println!("test leaving_a_team_touches_few_members_memory ... ok");
    }
}

/// KiB of this process's page tables.
fn page_tables() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmPTE:"));
    line.unwrap().trim_end_matches("kB").trim().parse().unwrap()
}
