//! Operations of lanes where PEs are lost, and the outcome of calls where lanes fail.

pub(crate) mod cuts;
pub(crate) mod endings;
mod interruptions;
mod round_trips;

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytemuck::Pod;
use oxshmem_example_tiny_transport::Tiny;
use oxshmem_transport::{Counters, Lane, Op, Pe, Posted, Status, forward};

use crate::builder::Builder;
use crate::context::Context;
use crate::context::options::ContextOptions;
use crate::error::{Error, Result};
use crate::nbi::Scope;
use crate::sym::Sym;
use crate::testing::spmd_with;
use crate::world::World;

/// No test's wait is longer.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// A lane that counts the calls on it, and fails as the test says.
#[derive(Debug)]
struct Watched {
    inner: Box<dyn Lane>,
    asked: Arc<Asked>,
    /// By PE, operations that were accepted and do not complete.
    kept: Vec<u64>,
}

impl Drop for Watched {
    fn drop(&mut self) {
        let then = self.asked.dropped.lock().unwrap().take();
        then.into_iter().for_each(|then| then());
    }
}

type Then = Box<dyn FnOnce() + Send>;

/// The treatment of an operation by a watched lane.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Fate {
    Perform,
    /// Performs it, and never gets its completion.
    Unanswered,
    /// Accepts it, and does no more.
    Keep,
    Refuse,
    /// Refuses it because the connection has failed.
    Cut,
}

type Decide = Box<dyn FnMut(Pe, &Op) -> Fate + Send>;

#[derive(Default)]
pub(crate) struct Asked {
    pub operations: AtomicUsize,
    /// Calls by which it may find a loss.
    calls: AtomicUsize,
    /// The number of operations that it accepts, if limited: then it is full, and performs none of them.
    credits: Mutex<Option<usize>>,
    /// A function to call when it has accepted so many operations.
    then: Mutex<Option<(usize, Then)>>,
    /// The fate of each operation, if not all are performed.
    fate: Mutex<Option<Decide>>,
    /// The next errors of progress.
    failures: Mutex<VecDeque<oxshmem_transport::Error>>,
    /// The PEs whose connections were interrupted and are not made again: it does nothing meanwhile.
    interrupted: Mutex<BTreeSet<u32>>,
    /// Connections that were made again.
    pub connects: AtomicUsize,
    /// A function to call when it is dropped.
    dropped: Mutex<Option<Then>>,
}

impl fmt::Debug for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asked").finish_non_exhaustive()
    }
}

/// The error of a connection that has failed although the PE lives.
pub(super) fn unanswered(pe: Pe) -> oxshmem_transport::Error {
    oxshmem_transport::Error::Connection {
        transport: "watched",
        pe,
        why: "no packet was ever answered".into(),
    }
}

impl Lane for Watched {
    forward!(endpoint, fence, reusable => inner);

    fn connect(&mut self, pe: Pe, endpoint: &[u8]) -> oxshmem_transport::Result<()> {
        let again = self.asked.interrupted.lock().unwrap().remove(&pe.0);
        let count = usize::from(again);
        self.asked.connects.fetch_add(count, Ordering::SeqCst);
        self.inner.connect(pe, endpoint)
    }

    unsafe fn post(&mut self, pe: Pe, ops: &[Op]) -> Posted {
        self.asked.calls.fetch_add(1, Ordering::SeqCst);
        if self.asked.interrupted.lock().unwrap().contains(&pe.0) {
            return Posted::full(0);
        }
        let credits = self.asked.credits().unwrap_or(usize::MAX);
        let some = &ops[..ops.len().min(credits)];
        let mut posted = Posted::all(some.len());
        if some.len() < ops.len() {
            posted.status = Status::Full;
        }
        for (accepted, op) in some.iter().enumerate() {
            let mut decide = self.asked.fate.lock().unwrap();
            let fate = decide
                .as_mut()
                .map_or(Fate::Perform, |decide| decide(pe, op));
            if matches!(fate, Fate::Unanswered | Fate::Keep) {
                self.kept.resize(self.kept.len().max(pe.index() + 1), 0);
                self.kept[pe.index()] += 1;
            }
            let status = match fate {
                Fate::Perform | Fate::Unanswered => {
                    // SAFETY: the caller's promise.
                    unsafe { self.inner.post(pe, &[*op]) }.status
                }
                Fate::Keep => Status::All,
                Fate::Refuse => Status::Refused(oxshmem_transport::Error::Unsupported {
                    transport: "watched",
                    what: "an operation that is to be refused".into(),
                }),
                Fate::Cut => Status::Refused(unanswered(pe)),
            };
            if !matches!(status, Status::All) {
                posted = Posted { accepted, status };
                break;
            }
        }
        self.asked.took(posted.accepted);
        posted
    }

    fn progress(&mut self) -> oxshmem_transport::Result<()> {
        self.asked.calls.fetch_add(1, Ordering::SeqCst);
        let mut interrupted = self.asked.interrupted.lock().unwrap();
        if let Some(error) = self.asked.failures.lock().unwrap().pop_front() {
            if let oxshmem_transport::Error::Interrupted { pe, .. } = &error {
                interrupted.insert(pe.0);
            }
            return Err(error);
        }
        if !interrupted.is_empty() {
            return Ok(());
        }
        match self.asked.credits() {
            None => self.inner.progress(),
            Some(_) => Ok(()),
        }
    }

    fn counters(&self, pe: Pe) -> Counters {
        let mut counters = self.inner.counters(pe);
        counters.posted += self.kept.get(pe.index()).copied().unwrap_or(0);
        counters
    }
}

impl Asked {
    pub(crate) fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    /// The number of operations that it accepts until it is full.
    fn credits(&self) -> Option<usize> {
        let credits = *self.credits.lock().unwrap();
        credits.map(|credits| credits.saturating_sub(self.operations.load(Ordering::SeqCst)))
    }

    /// Makes it full after so many operations, or unlimited again.
    pub(crate) fn fill_after(&self, operations: Option<usize>) {
        *self.credits.lock().unwrap() = operations;
    }

    pub(crate) fn after(&self, operations: usize, then: impl FnOnce() + Send + 'static) {
        *self.then.lock().unwrap() = Some((operations, Box::new(then)));
    }

    fn took(&self, operations: usize) {
        let taken = self.operations.fetch_add(operations, Ordering::SeqCst) + operations;
        let due = self.then.lock().unwrap().take_if(|(at, _)| *at <= taken);
        due.into_iter().for_each(|(_, then)| then());
    }

    pub(crate) fn decide(&self, decide: impl FnMut(Pe, &Op) -> Fate + Send + 'static) {
        *self.fate.lock().unwrap() = Some(Box::new(decide));
    }

    pub(super) fn fail(&self, error: oxshmem_transport::Error) {
        self.failures.lock().unwrap().push_back(error);
    }
}

/// Watches a context's lane.
pub(crate) fn watched(context: &Context<'_>) -> Arc<Asked> {
    let asked = Arc::new(Asked::default());
    for endpoint in &context.worker.state.lanes.endpoints {
        let asked = Arc::clone(&asked);
        endpoint.wrap(|inner| {
            let kept = Vec::new();
            Box::new(Watched { inner, asked, kept })
        });
    }
    asked
}

/// Disconnects PE 1, which lives.
fn cut_off(world: &World) {
    (world.worker.engine.report_lost)(1);
}

/// Asserts that a call failed because PE `lost` is lost.
pub(crate) fn is_loss_of<T: fmt::Debug>(lost: usize, result: Result<T>) {
    assert!(
        matches!(result, Err(Error::PeerLost { pe, .. }) if pe == lost),
        "{result:?}"
    );
}

fn is_lost<T: fmt::Debug>(result: Result<T>) {
    is_loss_of(1, result);
}

/// Runs PE 0 of some, with an object of so many elements; the others live until it has ended. It loses one
/// of them.
pub(super) fn beside_living_pes<T: Pod>(
    builder: Builder,
    (pes, elements): (usize, usize),
    first: impl Fn(&World, Sym<T>) -> Result<()> + Sync,
) {
    beside(builder.timeout(LIMIT), (pes, elements), first);
}

/// The same, where no wait is longer than the builder says.
pub(crate) fn beside<T: Pod>(
    builder: Builder,
    (pes, elements): (usize, usize),
    first: impl Fn(&World, Sym<T>) -> Result<()> + Sync,
) {
    let through = AtomicUsize::new(0);
    let ended = spmd_with(builder, pes, |world| {
        let x = world.alloc_zeroed::<T>(elements)?;
        if world.my_pe() == 0 {
            let done = first(world, x);
            through.fetch_add(1, Ordering::SeqCst);
            assert!(done.is_ok(), "{done:?}");
        }
        let since = Instant::now();
        while through.load(Ordering::SeqCst) == 0 {
            assert!(since.elapsed() < LIMIT, "PE 0 is stuck");
            std::thread::yield_now();
        }
        Ok(())
    });
    // The job cannot end together any more.
    let lost = matches!(ended, Err(Error::PeerLost { .. }));
    assert!(lost, "{ended:?}");
}

/// Runs PE 0 of two, by lanes that do nothing before they are driven.
fn beside_a_living_pe(first: impl Fn(&World, Sym<u64>) -> Result<()> + Sync) {
    let tiny = World::builder().transports(vec![Arc::new(Tiny::default())]);
    beside_living_pes(tiny, (2, 512), first);
}

/// An operation that a scope lends a buffer to.
type Issue =
    for<'scope, 'env> fn(&'scope Scope<'scope, 'env>, &'env mut u64, Sym<u64>) -> Result<()>;

const ISSUES: [Issue; 3] = [
    |scope, into, x| scope.get_nbi(std::slice::from_mut(into), x, 1),
    |scope, into, x| scope.fetch_add_nbi(into, x, 1, 1),
    |scope, into, x| scope.fetch_nbi(into, x, 1),
];

/// On any context, and though nothing is in flight after the loss is acknowledged.
#[test]
fn m19_a_scope_tells_that_what_it_was_to_bring_does_not_come_any_more() {
    for issue in ISSUES {
        for own in [true, false] {
            beside_a_living_pe(|world, x| {
                let other = world.create_context(ContextOptions::NONE)?;
                let context: &Context<'_> = if own { world } else { &other };
                context.p(x.at(1)?, 1, 1)?;
                context.quiet()?;
                let asked = watched(context);
                let mut before = 0;
                let mut came = 77;
                let ended = context.scope(|scope| {
                    issue(scope, &mut came, x)?;
                    cut_off(world);
                    before = asked.calls();
                    assert_eq!(world.acknowledge_lost(), [1]);
                    // A fence reports no failure that a quiet has to report.
                    context.fence()
                });
                is_lost(ended);
                assert_eq!(came, 77);
                let now = asked.calls();
                assert!(now > before, "the lane may still write what was lent");
                context.quiet()
            });
        }
    }
}

/// Data that arrived before the loss was known count.
#[test]
fn m19_a_scope_whose_data_came_before_the_loss_is_complete() {
    beside_a_living_pe(|world, x| {
        let context = world.create_context(ContextOptions::NONE)?;
        let mut came = 77;
        context.scope(|scope| {
            scope.get_nbi(std::slice::from_mut(&mut came), x, 1)?;
            (0..10).for_each(|_| context.progress());
            cut_off(world);
            assert_eq!(world.acknowledge_lost(), [1]);
            Ok(())
        })?;
        assert_eq!(came, 0);
        Ok(())
    });
}

/// A quiet that has failed by a loss has reported the data that did not arrive: once it is acknowledged, quiets are
/// as ever.
#[test]
fn m19_a_loss_that_a_quiet_has_told_is_not_told_again_when_it_is_acknowledged() {
    beside_a_living_pe(|world, x| {
        let context = world.create_context(ContextOptions::NONE)?;
        let mut came = 77;
        let ended = context.scope(|scope| {
            scope.get_nbi(std::slice::from_mut(&mut came), x, 1)?;
            cut_off(world);
            Ok(())
        });
        is_lost(ended);
        is_lost(context.quiet());
        assert_eq!(world.acknowledge_lost(), [1]);
        context.quiet()?;
        context.destroy()
    });
}

/// The blocks before the one that meets the loss were posted, and may be in flight.
#[test]
fn m16_a_strided_get_that_meets_a_loss_has_its_lane_give_up_the_blocks_before() {
    beside_a_living_pe(|world, x| {
        let context = world.create_context(ContextOptions::NONE)?;
        context.p(x, 1, 1)?;
        context.quiet()?;
        let asked = watched(&context);
        let lose = Arc::clone(&world.worker.engine.report_lost);
        asked.after(4, move || lose(1));
        let mut blocks = [77; 16];
        is_lost(context.iget(&mut blocks, x, 2, 2, 8, 1));
        assert_eq!(asked.operations.load(Ordering::SeqCst), 4);
        assert!(asked.calls() > 4, "the lane may still write what was lent");
        assert_eq!(blocks, [77; 16]);
        Ok(())
    });
}

/// A call that lends its buffer until it returns.
type Blocking = fn(&Context<'_>, Sym<u64>) -> Result<()>;

/// A get, of one chunk or of blocks, a put, and a fetching atomic, each of which panics with operations in flight.
#[test]
fn m16_a_call_that_panics_has_its_lane_dropped_before_its_memory_is_the_callers_again() {
    let calls: [Blocking; 4] = [
        |context, x| context.get(&mut [77; 8], x, 1),
        |context, x| context.iget(&mut [77; 16], x, 2, 2, 8, 1),
        |context, x| context.put(x, &[7; 512], 1),
        |context, x| context.fetch_add(x, 1, 1).map(drop),
    ];
    for call in calls {
        beside_a_living_pe(|world, x| {
            let context = world.create_context(ContextOptions::NONE)?;
            context.p(x, 1, 1)?;
            context.quiet()?;
            let asked = watched(&context);
            asked.decide(|_, _| Fate::Keep);
            asked.after(1, || panic!("out of a call"));
            let dropped = Arc::new(AtomicUsize::new(0));
            let is_dropped = Arc::clone(&dropped);
            *asked.dropped.lock().unwrap() = Some(Box::new(move || {
                is_dropped.fetch_add(1, Ordering::SeqCst);
            }));
            let called = catch_unwind(AssertUnwindSafe(|| call(&context, x)));
            assert!(called.is_err(), "{called:?}");
            assert_eq!(
                dropped.load(Ordering::SeqCst),
                1,
                "the lane may write what was lent"
            );
            cut_off(world);
            Ok(())
        });
    }
}

/// The error is not reported twice, either.
#[test]
fn m19_a_context_that_cannot_be_completed_is_not_waited_for_twice() {
    beside_a_living_pe(|world, x| {
        let context = world.create_context(ContextOptions::NONE)?;
        context.p(x, 1, 1)?;
        context.quiet()?;
        context.add(x, 2, 1)?;
        cut_off(world);
        let asked = watched(&context);
        is_lost(context.quiet());
        let once = asked.calls();
        is_lost(context.destroy());
        assert_eq!(asked.calls(), 2 * once, "calls of two quiets");
        Ok(())
    });
}
