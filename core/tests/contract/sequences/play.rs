//! One PE's part of a script, its memory compared after each step.

use oxshmem::{ContextOptions, Error, Fold, MemoryKind, Result, SignalOp, Sym, Team, World};

use super::plan::{By, Kind};
use super::script::{Deed, Moment, Script, Settled, Split, put, with_number};
use crate::numbers::Number;
use crate::refusals::broadcast;
use crate::setting::pattern;

/// The symmetric objects of a sequence.
struct Objects {
    memory: Sym<u8>,
    counter: Sym<u64>,
    signal: Sym<u64>,
    lock: Sym<u64>,
    count: Sym<u64>,
    /// The block that was allocated last.
    block: Option<Sym<u64>>,
}

fn wrong(what: String) -> Error {
    Error::Argument {
        call: "sequence",
        what,
    }
}

/// Plays this PE's part, with its memory of this kind. Without `locks`, nothing is counted up.
pub fn play(world: &World, kind: MemoryKind, script: &Script, locks: bool) -> Result<()> {
    let me = world.my_pe();
    let words = world.alloc_zeroed::<u64>(4)?;
    let mut objects = Objects {
        memory: world.alloc_on(kind, script.bytes)?,
        counter: words.at(0)?,
        signal: words.at(1)?,
        lock: words.at(2)?,
        count: words.at(3)?,
        block: None,
    };
    world.write(objects.memory, &script.before[me])?;
    // Before all have done that, nobody may put.
    world.barrier_all()?;
    let mut teams = vec![Some(world.team())];
    let mut found = vec![0; script.bytes];
    for (at, moment) in script.moments.iter().enumerate() {
        // PEs come apart.
        for _ in 0..pattern(at, me) % 4 {
            std::thread::yield_now();
        }
        let told = |what: String| wrong(format!("step {at}, {:?}: {what}", moment.deed));
        step(world, &mut teams, &mut objects, (at, moment), locks)
            .map_err(|error| told(error.to_string()))?;
        world.read(&mut found, objects.memory)?;
        let expected = &moment.after[me];
        if let Some(byte) = (0..found.len()).find(|byte| found[*byte] != expected[*byte]) {
            let (found, expected) = (found[byte], expected[byte]);
            return Err(told(format!(
                "PE {me}: byte {byte} is {found:#x}, not {expected:#x}"
            )));
        }
    }
    world.barrier_all()?;
    let counted = world.g(objects.count, 0)?;
    if locks && counted != script.counted {
        let all = script.counted;
        return Err(wrong(format!(
            "{counted} counted under the lock, not {all}"
        )));
    }
    teams
        .into_iter()
        .skip(1)
        .flatten()
        .try_for_each(Team::destroy)?;
    if let Some(block) = objects.block {
        world.free(block)?;
    }
    world.free(objects.memory)?;
    world.free(words)
}

fn step<'w>(
    world: &'w World,
    teams: &mut Vec<Option<Team<'w>>>,
    objects: &mut Objects,
    (at, moment): (usize, &Moment),
    locks: bool,
) -> Result<()> {
    let is_member = moment.members.contains(&world.my_pe());
    if let Deed::Split {
        team,
        by,
        first,
        made,
    } = &moment.deed
    {
        assert_eq!(teams.len(), *first);
        let mut mine = match &teams[*team] {
            Some(team) => split(team, by)?,
            None => Vec::new(),
        };
        for members in made {
            let has_me = members.contains(&world.my_pe());
            let is_it = |team: &Team<'_>| team.world_pes().eq(members.iter().copied());
            let place = mine.iter().position(is_it).filter(|_| has_me);
            if has_me != place.is_some() {
                return Err(wrong(format!("no team of {members:?} was made")));
            }
            teams.push(place.map(|place| mine.swap_remove(place)));
        }
        return match mine.is_empty() {
            true => Ok(()),
            false => Err(wrong(format!("also made: {mine:?}"))),
        };
    }
    let team = |team: usize| teams[team].as_ref().filter(|_| is_member);
    match &moment.deed {
        Deed::Split { .. } => {}
        Deed::Destroy { team } => match (*team, is_member) {
            (0, _) | (_, false) => {}
            (team, true) => teams[team].take().map_or(Ok(()), Team::destroy)?,
        },
        Deed::Call { team: which, call } => {
            if let Some(team) = team(*which) {
                with_number!(call.number, perform(world, team, objects.memory, call))?;
            }
        }
        Deed::Wrong { team: which, how } => {
            if let Some(team) = team(*which) {
                refused(team, objects.memory.cast()?, *how)?;
            }
        }
        Deed::Exchange {
            team: which,
            by,
            shift,
            into,
            seed,
        } => {
            if let Some(team) = team(*which) {
                let data = put(world.my_pe(), *seed, into.len());
                let into = objects.memory.range(into.clone())?;
                exchange(world, team, objects, (*by, *shift, at), into, &data)?;
            }
        }
        Deed::Count { team: which } => {
            if team(*which).is_some() && locks {
                world.set_lock(objects.lock)?;
                let count = world.g(objects.count, 0)?;
                world.p(objects.count, count + 1, 0)?;
                world.clear_lock(objects.lock)?;
            }
        }
        Deed::Allocate { words } => {
            let block = world.alloc_zeroed::<u64>(*words)?;
            let mut copy = vec![1; *words];
            world.read(&mut copy, block)?;
            if copy.iter().any(|word| *word != 0) {
                return Err(wrong("a new block is not zero".into()));
            }
            world.write(block, &vec![u64::MAX; *words])?;
            if let Some(before) = objects.block.replace(block) {
                world.free(before)?;
            }
        }
    }
    Ok(())
}

fn split<'w>(team: &Team<'w>, by: &Split) -> Result<Vec<Team<'w>>> {
    Ok(match by {
        Split::Strided(start, stride, size) => team
            .split_strided(*start, *stride, *size)?
            .into_iter()
            .collect(),
        Split::Listed(list) => team.split_list(list)?.into_iter().collect(),
        Split::Grid(xrange) => {
            let (row, column) = team.split_2d(*xrange)?;
            vec![row, column]
        }
    })
}

fn perform<T: Number>(
    world: &World,
    team: &Team<'_>,
    memory: Sym<u8>,
    call: &Settled,
) -> Result<()> {
    let memory: Sym<T> = memory.cast()?;
    let (dst, src) = (
        memory.range(call.destination(team.my_pe()))?,
        memory.range(call.src.clone())?,
    );
    if call.fresh {
        world.write(src, &call.given(team.my_pe()))?;
    }
    match call.kind {
        Kind::Sync => team.sync(),
        Kind::Barrier => team.barrier(),
        Kind::Broadcast => team.broadcast(dst, src, call.root),
        Kind::Fcollect => team.fcollect(dst, src),
        Kind::Collect => {
            let got = team.collect(dst, memory.range(call.part(team.my_pe()))?)?;
            let all: usize = (0..team.n_pes())
                .map(|member| call.part(member).len())
                .sum();
            match got == all {
                true => Ok(()),
                false => Err(wrong(format!("{got} elements, not {all}"))),
            }
        }
        Kind::Alltoall => team.alltoall(dst, src),
        Kind::Alltoalls => {
            let (ds, ss) = call.strides;
            team.alltoalls(dst, src, ds, ss, call.len)
        }
        Kind::Reduce => team.reduce(dst, src, call.fold),
        Kind::ReduceScatter => team.reduce_scatter(dst, src, call.fold),
        Kind::Inscan => team.inscan(dst, src, call.fold),
        Kind::Exscan => team.exscan(dst, src, call.fold),
    }?;
    match call.reused {
        true => world.write(src, &call.next(team.my_pe())),
        false => Ok(()),
    }
}

/// Nobody puts before all are here, so that nobody's memory changes in an earlier step.
fn exchange(
    world: &World,
    team: &Team<'_>,
    objects: &Objects,
    (by, shift, at): (By, usize, usize),
    into: Sym<u8>,
    data: &[u8],
) -> Result<()> {
    let place = (team.my_pe() + shift) % team.n_pes();
    let pe = team
        .translate(place, &world.team())
        .ok_or_else(|| wrong(format!("the world has no member {place}")))?;
    team.sync()?;
    match by {
        By::Counter => {
            world.put_counted(into, data, objects.counter, pe)?;
            world.wait_counted(objects.counter, 1)?;
            match world.test_counted(objects.counter, 1)? {
                true => Err(wrong("counted twice".into())),
                false => Ok(()),
            }
        }
        By::Signal => {
            let value = at as u64 + 1;
            world.put_signal(into, data, objects.signal, value, SignalOp::Set, pe)?;
            world
                .signal_wait_until(objects.signal, oxshmem::Cmp::Eq, value)
                .map(drop)
        }
        By::Context => {
            let context = team.create_context(ContextOptions::NONE)?;
            context.put(into, data, place)?;
            context.destroy()?;
            team.sync()
        }
        By::Barrier => {
            world.put(into, data, pe)?;
            team.barrier()
        }
    }
}

/// Whether an error is of the right kind.
type Is = fn(&Result<()>) -> bool;

/// A call that no member may make, or not all as they do: each gets an error of its kind.
fn refused(team: &Team<'_>, x: Sym<u64>, how: usize) -> Result<()> {
    let (n, is_last) = (team.n_pes(), team.my_pe() == team.n_pes() - 1);
    let (a, b) = (x.range(..n)?, x.range(n..2 * n)?);
    let outside: Is = |result| {
        matches!(
            result,
            Err(Error::Argument { .. } | Error::OutOfRange { .. } | Error::NoSuchPe { .. })
        )
    };
    let differ: Is = |result| matches!(result, Err(Error::CollectiveMismatch { .. }));
    let ways = if n > 1 { 13 } else { 8 };
    let (result, is_right) = match how % ways {
        0 => (team.broadcast(a, b, n), outside),
        1 => (team.reduce(a, x.range(n..2 * n + 1)?, Fold::Sum), outside),
        2 => (team.alltoall(a, a), outside),
        3 => (team.alltoalls(a, b, 0, 1, 1), outside),
        4 => (team.collect(x.range(..0)?, b).map(drop), outside),
        5 => (team.split_strided(0, 1, n + 1).map(drop), outside),
        6 => (team.split_list(&[0, 0]).map(drop), outside),
        7 => (team.split_2d(0).map(drop), outside),
        8 => {
            let fold = if is_last { Fold::Max } else { Fold::Sum };
            (team.reduce(a, b, fold), differ)
        }
        9 if is_last => (team.sync(), differ),
        9 => (team.barrier(), differ),
        // Without data: those that agree have some already when they hear of it.
        10 => {
            let none = a.range(..0)?;
            (broadcast(team, none, none, usize::from(is_last)), differ)
        }
        11 if is_last => (team.split_2d(1).map(drop), differ),
        11 => {
            let none = a.range(..0)?;
            (team.fcollect(none, none), differ)
        }
        _ => {
            let start = usize::from(is_last);
            (team.split_strided(start, 1, 1).map(drop), differ)
        }
    };
    match is_right(&result) {
        true => Ok(()),
        false => Err(wrong(format!("not refused: {result:?}"))),
    }
}
