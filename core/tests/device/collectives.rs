//! Programs of collective calls in kernels: of the world, of teams, one after another.

use oxshmem::Result;
use oxshmem::cuda::Args;

use crate::kernels::{Kernels, SCOPES, filled, none_wrong};
use crate::on_gpu::{read, zeroed};

/// The value of element `at` of PE `pe`'s source.
fn element(pe: usize, at: usize) -> i64 {
    (pe * pe * 1000) as i64 + (at * 3) as i64 - 7 * pe as i64
}

/// The result of a call for member `me` of `pes`, of `n` elements.
fn wanted(call: u32, pes: &[usize], me: usize, n: usize, root: usize) -> Vec<i64> {
    let folded = |members: &[usize], at: usize, fold: fn(i64, i64) -> i64| {
        members
            .iter()
            .map(|&pe| element(pe, at))
            .reduce(fold)
            .unwrap_or(0)
    };
    let add: fn(i64, i64) -> i64 = |a, b| a + b;
    match call {
        0 => (0..n).map(|at| element(pes[root], at)).collect(),
        1 => pes
            .iter()
            .flat_map(|&pe| (0..n).map(move |at| element(pe, at)))
            .collect(),
        2 => pes
            .iter()
            .flat_map(|&pe| (0..n).map(move |at| element(pe, me * n + at)))
            .collect(),
        3 => (0..n).map(|at| folded(pes, at, add)).collect(),
        4 => (0..n).map(|at| folded(pes, at, i64::min)).collect(),
        5 => (0..n).map(|at| folded(pes, at, |a, b| a ^ b)).collect(),
        6 => (0..n).map(|at| folded(pes, me * n + at, add)).collect(),
        7 => (0..n).map(|at| folded(&pes[..=me], at, add)).collect(),
        8 => (0..n).map(|at| folded(&pes[..me], at, add)).collect(),
        11 => (0..n).map(|at| folded(pes, at, i64::max)).collect(),
        12 => (0..n)
            .map(|at| folded(pes, at, i64::wrapping_mul))
            .collect(),
        13 => (0..n).map(|at| folded(pes, at, |a, b| a & b)).collect(),
        14 => (0..n).map(|at| folded(pes, at, |a, b| a | b)).collect(),
        _ => Vec::new(),
    }
}

/// Every collective call of a team, by each scope, of one element and of more than the scratch memory holds at once.
fn all_calls(kernels: &Kernels<'_>, team: i32, pes: &[usize], lengths: &[usize]) -> Result<()> {
    const ROOM: usize = 16_000;
    let world = kernels.world;
    let Some(me) = pes.iter().position(|&pe| pe == world.my_pe()) else {
        return Ok(());
    };
    let source: Vec<i64> = (0..ROOM).map(|at| element(world.my_pe(), at)).collect();
    let (dest, source) = (filled(world, &vec![-1_i64; ROOM])?, filled(world, &source)?);
    for (scope, threads) in SCOPES {
        for call in 0..=14_u32 {
            for &n in lengths {
                let root = n % pes.len();
                for times in [1_u64, 3] {
                    let args = Args::new()
                        .with(call)
                        .with(scope)
                        .with(team)
                        .with(kernels.at(dest))
                        .with(kernels.at(source))
                        .with(n as u64)
                        .with(root as i32)
                        .with(times);
                    kernels.run(c"collective", 1, threads, args)?;
                    // A broadcast's root does not wait for others.
                    kernels.run(c"collective", 1, threads, sync_of(team))?;
                    let wanted = wanted(call, pes, me, n, root);
                    let seen = read(world, dest)?;
                    assert_eq!(
                        seen[..wanted.len()],
                        wanted,
                        "call {call}, scope {scope}, {n} elements"
                    );
                    assert!(seen[wanted.len()..].iter().all(|&value| value == -1));
                    world.put(dest, &vec![-1_i64; ROOM], world.my_pe())?;
                    world.quiet()?;
                    kernels.run(c"collective", 1, threads, sync_of(team))?;
                }
            }
        }
    }
    Ok(())
}

fn sync_of(team: i32) -> Args {
    let none = oxshmem_cuda::DevicePtr::from_raw(0);
    Args::new()
        .with(10_u32)
        .with(2_u32)
        .with(team)
        .with(none)
        .with(none)
        .with(0_u64)
        .with(0_i32)
        .with(1_u64)
}

pub fn collectives(kernels: &Kernels<'_>) -> Result<()> {
    let pes: Vec<usize> = (0..kernels.world.n_pes()).collect();
    // 4 KiB are 512 elements.
    all_calls(kernels, 0, &pes, &[1, 7, 512, 513, 3000])
}

pub fn sequence(kernels: &Kernels<'_>) -> Result<()> {
    let world = kernels.world;
    let (dest, source) = (zeroed::<i64>(world, 24)?, zeroed::<i64>(world, 1)?);
    let wrong = zeroed::<u64>(world, 1)?;
    let args = Args::new()
        .with(kernels.at(dest))
        .with(kernels.at(source))
        .with(60_u64)
        .with(kernels.at(wrong));
    kernels.run(c"sequence", 1, 3, args)?;
    none_wrong(world, wrong)
}

/// Teams that are split off, one of PEs with no common distance.
pub fn teams(kernels: &Kernels<'_>) -> Result<()> {
    let world = kernels.world;
    for round in 0..3 {
        let odds = world.team().split_strided(1, 2, 2)?;
        let number = odds
            .as_ref()
            .map_or(Ok(-1), |team| kernels.library.add_team(team))?;
        assert_eq!(number >= 2, world.my_pe() % 2 == 1);
        let numbers: Vec<i32> = {
            let all = world.alloc::<i32>(4)?;
            world.put(all.at(world.my_pe())?, &[number], 0)?;
            world.barrier_all()?;
            let mut seen = vec![0; 4];
            world.get(&mut seen, all, 0)?;
            world.barrier_all()?;
            world.free(all)?;
            seen
        };
        assert_eq!(numbers[1], numbers[3]);
        if round == 0 {
            // Objects are allocated by all PEs.
            let size = 16_000;
            if odds.is_none() {
                filled(world, &vec![-1_i64; size])?;
                filled(world, &vec![0_i64; size])?;
            } else {
                all_calls(kernels, number, &[1, 3], &[1, 32, 33, 500])?;
            }
        }
        let (own, seen) = (zeroed::<u64>(world, 1)?, zeroed::<u64>(world, 8)?);
        let args = Args::new()
            .with(kernels.at(own))
            .with(kernels.at(seen))
            .with(number);
        kernels.run(c"queries", 1, 1, args)?;
        world.barrier_all()?;
        let me = world.my_pe() as u64;
        let of_odds = if me % 2 == 1 {
            [2, me, u64::MAX]
        } else {
            [0, 0, 0]
        };
        assert_eq!(read(world, seen)?[5..], of_odds);
        if let Some(odds) = odds {
            odds.destroy()?;
        }
        world.barrier_all()?;
    }
    Ok(())
}

/// More teams than there is memory for at first, of two PEs.
pub fn many_teams(kernels: &Kernels<'_>) -> Result<()> {
    let (world, library) = (kernels.world, &kernels.library);
    let split = |_| Ok(world.team().split_strided(0, 1, 2)?.unwrap());
    let teams: Vec<_> = (0..930).map(split).collect::<Result<_>>()?;
    let first = library.add_team(&teams[0])?;
    let told = library.add_team(&teams[929]).unwrap_err().to_string();
    assert!(
        told.contains("team number 930 is beyond the") && told.contains("reserve_teams"),
        "{told}"
    );
    let told = library.reserve_teams(1001).unwrap_err().to_string();
    assert!(told.contains("OXSHMEM_TEAMS"), "{told}");
    library.reserve_teams(1000)?;
    library.reserve_teams(10)?;
    let last = library.add_team(&teams[929])?;
    assert!(last > first + 900, "{first} {last}");
    for number in [first, last, 0] {
        all_calls(kernels, number, &[0, 1], &[1, 33])?;
    }
    Ok(())
}
