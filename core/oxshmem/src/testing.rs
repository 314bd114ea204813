//! PEs as threads of this process, for tests and documentation.

use std::sync::Arc;

use oxshmem_bootstrap::InProcess;

use crate::builder::Builder;
use crate::error::{Error, Result};
use crate::registry;
use crate::world::World;

/// The heap limit of a PE that is a thread, unless the builder sets one.
const HEAP: usize = 64 << 20;

/// Runs `f` as `n` PEs, each on a thread of its own, and gives their results in the order of the
/// PEs. Each world is finalized when `f` returns.
///
/// If a PE fails, its error is the result (that of the first PE, unless that merely lost another);
/// the others' waits end with [`Error::PeerLost`]. A panic of a PE goes on in the caller.
///
/// ```
/// use oxshmem::{Result, testing::spmd};
///
/// fn main() -> Result<()> {
///     let sums = spmd(4, |world| {
///         let (mine, sum) = (world.alloc::<u64>(1)?, world.alloc::<u64>(1)?);
///         world.write(mine, &[world.my_pe() as u64])?;
///         world.sum_reduce(sum, mine)?;
///         world.g(sum, world.my_pe())
///     })?;
///     assert_eq!(sums, [6, 6, 6, 6]);
///     Ok(())
/// }
/// ```
pub fn spmd<R: Send>(n: usize, f: impl Fn(&World) -> Result<R> + Sync) -> Result<Vec<R>> {
    spmd_with(World::builder(), n, f)
}

/// [`spmd`] with settings.
pub fn spmd_with<R: Send>(
    builder: Builder,
    n: usize,
    f: impl Fn(&World) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let count = u32::try_from(n)
        .ok()
        .filter(|n| *n > 0)
        .ok_or_else(|| Error::Argument {
            call: "spmd",
            what: format!("{n} PEs; give at least 1 and fewer than 2^32"),
        })?;
    let builder = builder
        .or_transports(registry::built_in)
        .or_heap_limit(HEAP);
    let results: Vec<std::thread::Result<Result<R>>> = std::thread::scope(|threads| {
        let spawned: Vec<_> = InProcess::group(count)
            .into_iter()
            .map(|bootstrap| {
                let builder = builder.clone().bootstrap(bootstrap as Arc<_>);
                let f = &f;
                threads.spawn(move || run(builder, f))
            })
            .collect();
        spawned.into_iter().map(|thread| thread.join()).collect()
    });
    let mut done = Vec::new();
    let mut error: Option<Error> = None;
    let mut panic = None;
    for result in results {
        match result {
            Ok(Ok(value)) => done.push(value),
            Ok(Err(e)) => {
                let follows = |e: &Error| {
                    matches!(
                        e,
                        Error::PeerLost { .. }
                            | Error::CollectivesEnded { .. }
                            | Error::Bootstrap(_)
                    )
                };
                if error
                    .as_ref()
                    .is_none_or(|known| follows(known) && !follows(&e))
                {
                    error = Some(e);
                }
            }
            Err(payload) => panic = panic.or(Some(payload)),
        }
    }
    if let Some(payload) = panic {
        std::panic::resume_unwind(payload);
    }
    match error {
        Some(error) => Err(error),
        None => Ok(done),
    }
}

fn run<R>(builder: Builder, f: impl Fn(&World) -> Result<R>) -> Result<R> {
    let world = builder.join()?;
    let value = f(&world)?;
    world.finalize()?;
    Ok(value)
}
