//! Calls that put the members' objects one behind the other: collect and fcollect.

use bytemuck::Pod;

use super::choose::{Kind, Way, choose};
use super::{check_apart, digest_of, place};
use crate::mapped::Bytes;
use crate::sync::Digest;
use crate::team::{Team, Turn};
use crate::{Error, Result, Sym};

/// What a member tells of its part, before the part itself: its elements, and where they are.
const HEAD: usize = 2 * size_of::<u64>();

impl Team<'_> {
    /// Puts every member's `src`, one behind the other in the team's order, into `dst` of every member,
    /// which is as many times as long. They do not overlap.
    ///
    /// # Errors
    ///
    /// As [`broadcast`](Self::broadcast).
    #[doc(alias = "shmem_fcollectmem")]
    pub fn fcollect<T: Pod>(&self, dst: Sym<T>, src: Sym<T>) -> Result<()> {
        const CALL: &str = "fcollect";
        let (world, core) = (self.world, self.core());
        let words = || format!("fcollect({}, {})", place(dst), place(src));
        let digest = digest_of(digest_of(const { Digest::of(CALL) }, dst), src);
        let valid = self
            .check_objects(CALL, [dst, src])
            .and_then(|()| self.check_blocks(CALL, dst, src.len()))
            .and_then(|()| check_apart(CALL, dst, src));
        let mut turn = self.turn(CALL, digest, &words);
        let (way, given) = self.give(&mut turn, Kind::Fcollect, src, valid)?;
        let (me, block) = (self.my_pe(), src.bytes());
        let into: Sym<u8> = dst.cast()?;
        let place_of = |from: usize| into.range(from * block..(from + 1) * block);
        // What another host has comes once to this one, by one of its members.
        let hosts = core.hosts.as_ref().filter(|_| way == Way::Direct);
        let fetcher = |from: usize| match hosts {
            Some(hosts) if !hosts.is_near(from) => hosts.fetcher(from),
            _ => me,
        };
        let mut copied = self
            .around()
            .filter(|from| fetcher(*from) == me)
            .try_for_each(|from| world.copy_between(CALL, place_of(from)?, given, turn.pe(from)));
        if hosts.is_some() {
            turn.arrive(copied)?;
            copied = self
                .around()
                .filter(|from| fetcher(*from) != me)
                .try_for_each(|from| {
                    let part = place_of(from)?;
                    world.copy_between(CALL, part, part, turn.pe(fetcher(from)))
                });
        }
        Self::end(&mut turn, way, copied)
    }

    /// As [`fcollect`](Self::fcollect) of objects whose lengths may differ, 0 included, and which may be at
    /// different places. Gives how many elements of `dst`, which has room for them, there are now.
    ///
    /// # Errors
    ///
    /// As [`broadcast`](Self::broadcast); where there are more elements than `dst` has room for.
    #[doc(alias = "shmem_collectmem")]
    pub fn collect<T: Pod>(&self, dst: Sym<T>, src: Sym<T>) -> Result<usize> {
        const CALL: &str = "collect";
        let (world, core) = (self.world, self.core());
        // What is given may differ, what it is put into may not.
        let words = || format!("collect({}, {} elements)", place(dst), src.len());
        let digest = digest_of(const { Digest::of(CALL) }, dst).and(size_of::<T>() as u64);
        let valid = self
            .check_objects(CALL, [dst, src])
            .and_then(|()| check_apart(CALL, dst, src));
        let mut turn = self.turn(CALL, digest, &words);
        let scratch = turn.scratch()?;
        // The first arrival is needed for the lengths anyway: what fits goes with them.
        let fits = |bytes: usize| {
            let way = choose(
                world.shared.config.collectives,
                Kind::Collect,
                core,
                HEAD + bytes,
            );
            way == Way::Scratch
        };
        if valid.is_ok() {
            let own = world.own(scratch);
            own.copy_from(&(src.len() as u64).to_ne_bytes());
            own.part(8, 8).copy_from(&src.offset().to_ne_bytes());
            if fits(src.bytes()) {
                own.part(HEAD, src.bytes())
                    .copy_from_place(world.own(src), src.bytes());
            }
        }
        turn.arrive(valid)?;
        let parts = self.parts(CALL, &turn, src, scratch);
        let direct = |part: &Sym<T>| !fits(part.bytes());
        // Who could not read what another told does not know whether there is another arrival.
        let parts = parts.inspect_err(|error| turn.abandon(error))?;
        let all: usize = parts.iter().map(Sym::len).sum();
        let room = match all <= dst.len() {
            true => Ok(()),
            // The same on every member.
            false => Err(Error::OutOfRange {
                call: CALL,
                start: 0,
                end: all,
                len: dst.len(),
            }),
        };
        room?;
        let mut end = 0;
        let copied = parts.iter().enumerate().try_for_each(|(from, part)| {
            let start = end;
            end += part.len();
            let into = dst.range(start..end)?;
            match direct(part) && !part.is_empty() {
                true => world.copy_between(CALL, into, *part, turn.pe(from)),
                false => {
                    let given = scratch.range(HEAD..HEAD + part.bytes())?;
                    world.copy_between(CALL, into.cast()?, given, turn.pe(from))
                }
            }
        });
        match parts.iter().any(|part| direct(part) && !part.is_empty()) {
            true => turn.arrive(copied)?,
            false => copied?,
        }
        Ok(all)
    }

    /// What each member gives to a collect: its elements and their place, as it told.
    fn parts<T: Pod>(
        &self,
        call: &'static str,
        turn: &Turn<'_>,
        src: Sym<T>,
        scratch: Sym<u8>,
    ) -> Result<Vec<Sym<T>>> {
        let world = self.world;
        let head = scratch.range(..HEAD)?;
        let limit = world.heap_limit() as u64;
        (0..self.n_pes())
            .map(|from| {
                if from == self.my_pe() {
                    return Ok(src);
                }
                let pe = turn.pe(from);
                let mut told = [0_u8; HEAD];
                world.pull(call, &mut told, head, pe)?;
                let (words, _) = told.as_chunks::<8>();
                let [len, offset] =
                    [0, 1].map(|i| words.get(i).map_or(0, |w| u64::from_ne_bytes(*w)));
                let bytes = len.checked_mul(size_of::<T>() as u64);
                let end = bytes.and_then(|bytes| bytes.checked_add(offset));
                let aligned = offset.is_multiple_of(align_of::<T>() as u64);
                match end.is_some_and(|end| end <= limit && aligned) {
                    true => Ok(Sym::new(world.tag, src.generation(), offset, len as usize)),
                    false => Err(Error::FailedElsewhere {
                        call,
                        pe,
                        why: format!("it tells of {len} elements at {offset}, which cannot be"),
                    }),
                }
            })
            .collect()
    }
}
