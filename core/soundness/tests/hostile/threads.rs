//! Contexts that many threads share, and teams for them.

use std::panic::{AssertUnwindSafe, catch_unwind};

use oxshmem::testing::spmd;
use oxshmem::{Cmp, ContextOptions, Result, Sym};

use crate::waits::{ALL, all_waits, each_call};
use crate::{Player, call, value};

pub fn calls(player: &mut Player<'_>) {
    let world = player.world;
    let words = player.some_words();
    let Some(context) = call!(
        Context::create_context,
        world.create_context(ContextOptions::NONE)
    ) else {
        return;
    };
    let shared = value!(Context::share, context.share());
    let foreign = player.foreign.words;
    std::thread::scope(|threads| {
        let shared = &shared;
        for pe in [0, usize::MAX] {
            threads.spawn(move || {
                for _ in 0..10 {
                    call!(
                        Context::put,
                        value!(SharedContext::lock, shared.lock()).put(words, &[1, 2], pe)
                    );
                    call!(Context::quiet, shared.lock().quiet());
                    value!(SharedContext::progress, shared.progress());
                    call!(SharedContext::test, shared.test(foreign, ALL[0], 1));
                }
            });
        }
        all_waits!(SharedContext, shared, player, words);
    });
    if let Some(more) = call!(
        SharedContext::create_context,
        shared.create_context(ContextOptions::NOSTORE)
    ) {
        call!(Context::put, more.put(words, &[1], 0));
    }
    // A guard that is never dropped holds the lock.
    match player.own.below(4) {
        0 => std::mem::forget(shared),
        _ => {
            call!(SharedContext::destroy, shared.destroy());
        }
    }
    detached(player);
}

/// Teams without their contexts, on contexts of another world, and on none.
fn detached(player: &mut Player<'_>) {
    let team = value!(Team::detach, player.world.team().detach());
    let foreign = spmd(1, |other| -> Result<()> {
        assert!(call!(DetachedTeam::attach, team.attach(other)).is_none());
        assert!(call!(DetachedTeam::leave, team.leave(other)).is_none());
        let options = ContextOptions::NONE;
        let made = call!(
            DetachedTeam::create_context,
            team.create_context(other, options)
        );
        assert!(made.is_none());
        let again = other.team().detach();
        assert!(call!(DetachedTeam::into_team, again.into_team(other)).is_some());
        Ok(())
    });
    foreign.unwrap();
    let world = player.world;
    if let Some(attached) = call!(DetachedTeam::attach, team.attach(world)) {
        assert_eq!(attached.n_pes(), world.n_pes());
    }
    let made = team.create_context(world, ContextOptions::NONE);
    if let Some(context) = call!(DetachedTeam::create_context, made) {
        // A context with a team's numbers; the team's own cannot be attached there.
        call!(DetachedTeam::attach, team.attach(&context));
    }
    call!(DetachedTeam::into_team, team.into_team(world));
}
