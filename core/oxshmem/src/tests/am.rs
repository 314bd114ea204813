//! Messages that get no reply any more.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use oxshmem_example_tiny_transport::Tiny;
use oxshmem_transport::{
    Device, Domain, Inbox, Job, Lane, MemoryKind, Op, Pe, Peer, Posted, Reply, Transport, forward,
};

use crate::context::Context;
use crate::context::options::ContextOptions;
use crate::error::{Error, Result};
use crate::sym::Sym;
use crate::testing::spmd_with;
use crate::tests::lanes::{Fate, LIMIT, beside_living_pes, is_loss_of, watched};
use crate::world::World;
use oxshmem_engine::am::pending_replies::{ReplyReader, SLOTS};
use oxshmem_engine::lane::endpoint::Endpoint;
use oxshmem_engine::lane::in_flight::Effect;
use oxshmem_engine::lane::remote::LanePeer;
use oxshmem_engine::ops::access_path::AccessPath;
use oxshmem_engine::order::op_set::{OpKind, OpSet};

const LOST: usize = 2;

fn is_lost<T: std::fmt::Debug>(result: Result<T>) {
    is_loss_of(LOST, result);
}

/// The lane by which a context asks for a narrow atomic.
pub(super) fn lane<'c>(context: &'c Context<'_>, x: Sym<u32>, pe: usize) -> &'c Endpoint {
    match context
        .worker
        .in_call("test")
        .access_path(OpKind::Atomic, x, pe)
    {
        Ok(AccessPath::Lane(endpoint, _)) => endpoint,
        _ => panic!("a narrow atomic takes no lane"),
    }
}

/// As many messages as may be pending, to a PE that replies to none of them.
fn send_unanswered(context: &Context<'_>, x: Sym<u32>) -> Result<()> {
    let peer = LanePeer {
        endpoint: lane(context, x, LOST),
        pe: LOST,
    };
    for _ in 0..SLOTS {
        context.worker.claim_slot(peer, ReplyReader::Nobody)?;
    }
    let message = OpSet::of(OpKind::Message, MemoryKind::Host);
    context.worker.note_effect(peer, Effect::Write(message));
    context.worker.state.lanes.set_busy();
    Ok(())
}

/// PE 0 of three, where PE 2 owes every reply that may be pending; it is disconnected, and lives.
fn beside_one_that_owes_all(first: impl Fn(&World, Sym<u32>) -> Result<()> + Sync) {
    let builder = World::builder().transports(vec![Arc::new(Tiny::nic())]);
    beside_living_pes(builder, (3, 1), |world, x| {
        // The lanes are connected.
        world.inc(x, 1)?;
        world.inc(x, LOST)?;
        world.quiet()?;
        first(world, x)
    });
}

fn lose(world: &World) {
    (world.worker.engine.report_lost)(LOST as u32);
}

/// Neither the sender nor another PE waits for replies that cannot arrive, and all go on.
#[test]
fn messages_that_a_lost_pe_owes_hold_up_no_context() {
    beside_one_that_owes_all(|world, x| {
        let other = world.create_context(ContextOptions::NONE)?;
        send_unanswered(world, x)?;
        lose(world);
        // The sender has yet to find the loss.
        is_lost(other.inc(x, 1));
        is_lost(world.quiet());
        other.inc(x, 1)?;
        other.quiet()?;
        // Until the loss is acknowledged a quiet reports that some operations were not done.
        is_lost(world.quiet());
        assert_eq!(world.acknowledge_lost(), [LOST]);
        world.quiet()?;
        for _ in 0..2 * SLOTS {
            world.inc(x, 1)?;
        }
        world.quiet()?;
        assert_eq!(world.fetch(x, 1)?, 2 + 2 * SLOTS as u32);
        other.destroy()
    });
}

/// A context that sends on without a quiet in between has free slots at once; the quiet reports the loss.
#[test]
fn a_context_gives_up_its_own_messages_to_a_lost_pe_when_it_needs_room() {
    beside_one_that_owes_all(|world, x| {
        let context = world.create_context(ContextOptions::NONE)?;
        send_unanswered(&context, x)?;
        lose(world);
        context.inc(x, 1)?;
        assert_eq!(context.fetch(x, 1)?, 2);
        is_lost(context.quiet());
        assert_eq!(world.acknowledge_lost(), [LOST]);
        context.quiet()?;
        context.destroy()
    });
}

/// Messages without replies of a failed context keep no other from sending.
#[test]
fn a_context_that_ends_gives_up_its_messages() {
    beside_one_that_owes_all(|world, x| {
        let context = world.create_context(ContextOptions::NONE)?;
        send_unanswered(&context, x)?;
        // The PE lives, and its connection fails.
        let why = Error::Argument {
            call: "test",
            what: "the way's failure".into(),
        };
        lane(&context, x, LOST).fail(&why);
        drop(context);
        world.inc(x, 1)?;
        world.quiet()?;
        lose(world);
        Ok(())
    });
}

/// An acknowledged loss is no reason to fail a call to another PE: the error names the cause.
#[test]
fn room_that_contexts_keep_for_acknowledged_losses_is_told() {
    beside_one_that_owes_all(|world, x| {
        let idle = world.create_context(ContextOptions::NONE)?;
        send_unanswered(&idle, x)?;
        lose(world);
        assert_eq!(world.acknowledge_lost(), [LOST]);
        let error = world.inc(x, 1).unwrap_err();
        let message = error.to_string();
        assert!(
            message.contains("quiet") && message.contains("lost"),
            "{message}"
        );
        // Its own acknowledgement makes that quiet a good one.
        idle.quiet()?;
        world.inc(x, 1)?;
        world.quiet()
    });
}

/// Puts that were posted with messages whose replies cannot be awaited may still read the memory that they were lent.
#[test]
fn m19_a_quiet_that_cannot_wait_for_answers_leaves_no_put_under_way() {
    beside_one_that_owes_all(|world, x| {
        let context = world.create_context(ContextOptions::NONE)?;
        context.inc(x, LOST)?;
        context.quiet()?;
        send_unanswered(&context, x)?;
        context.p(x, 7, LOST)?;
        watched(&context).decide(|_, op| match op {
            Op::Flush => Fate::Refuse,
            _ => Fate::Perform,
        });
        let ended = context.quiet();
        assert!(matches!(ended, Err(Error::Transport(_))), "{ended:?}");
        let gone = lane(&context, x, LOST).lane_failure();
        assert!(gone.is_some(), "the lane is kept, and what it may still do");
        lose(world);
        Ok(())
    });
}

/// Messages of each PE that the inbox of another has room for.
const WINDOW: usize = 2;

/// A transport that tells such a window, and counts the messages to PE 1 that have no reply.
#[derive(Clone, Debug)]
struct Narrow {
    inner: Tiny,
    /// By their sender.
    unanswered: Arc<[Unanswered; 3]>,
}

#[derive(Debug, Default)]
struct Unanswered {
    now: AtomicUsize,
    most: AtomicUsize,
}

#[derive(Debug)]
struct NarrowDomain {
    narrow: Narrow,
    me: Pe,
    inner: Arc<dyn Domain>,
}

#[derive(Debug)]
struct NarrowLane {
    narrow: Narrow,
    me: Pe,
    inner: Box<dyn Lane>,
}

#[derive(Debug)]
struct SlowInbox {
    narrow: Narrow,
    me: Pe,
    inner: Box<dyn Inbox>,
}

// SAFETY: every call is forwarded as it is to a transport that keeps the promises.
unsafe impl Transport for Narrow {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn probe(&self) -> oxshmem_transport::Result<Vec<Device>> {
        self.inner.probe()
    }

    fn open(&self, device: &Device, job: &Job) -> oxshmem_transport::Result<Arc<dyn Domain>> {
        Ok(Arc::new(NarrowDomain {
            narrow: self.clone(),
            me: job.me,
            inner: self.inner.open(device, job)?,
        }))
    }
}

impl Domain for NarrowDomain {
    forward!(accept, address, capabilities, guarantees, import, peer_lost, reach, register, shutdown => inner);

    fn message_window(&self, _: &Peer) -> Option<u32> {
        Some(WINDOW as u32)
    }

    fn lane(&self) -> oxshmem_transport::Result<Box<dyn Lane>> {
        Ok(Box::new(NarrowLane {
            narrow: self.narrow.clone(),
            me: self.me,
            inner: self.inner.lane()?,
        }))
    }

    fn inbox(&self) -> oxshmem_transport::Result<Box<dyn Inbox>> {
        Ok(Box::new(SlowInbox {
            narrow: self.narrow.clone(),
            me: self.me,
            inner: self.inner.inbox()?,
        }))
    }
}

impl Lane for NarrowLane {
    forward!(connect, counters, endpoint, fence, progress => inner);

    unsafe fn post(&mut self, pe: Pe, ops: &[Op]) -> Posted {
        let messages = |ops: &[Op]| {
            let mut messages = 0;
            for op in ops {
                messages += usize::from(pe == Pe(1) && matches!(op, Op::Message { .. }));
            }
            messages
        };
        // Before a reply can come.
        let unanswered = &self.narrow.unanswered[self.me.index()];
        let now = unanswered.now.fetch_add(messages(ops), Ordering::SeqCst) + messages(ops);
        // SAFETY: the caller's promise.
        let posted = unsafe { self.inner.post(pe, ops) };
        let refused = messages(&ops[posted.accepted..]);
        unanswered.now.fetch_sub(refused, Ordering::SeqCst);
        unanswered.most.fetch_max(now - refused, Ordering::SeqCst);
        posted
    }
}

impl Inbox for SlowInbox {
    fn drain(
        &mut self,
        handler: &mut dyn FnMut(Pe, &[u8]) -> Option<Reply>,
    ) -> oxshmem_transport::Result<usize> {
        // Senders that do not wait send more meanwhile.
        (0..100).for_each(|_| std::thread::yield_now());
        let Self { narrow, me, inner } = self;
        inner.drain(&mut |pe, bytes| {
            let reply = handler(pe, bytes);
            if *me == Pe(1) {
                let unanswered = &narrow.unanswered[pe.index()];
                unanswered.now.fetch_sub(1, Ordering::SeqCst);
            }
            reply
        })
    }

    fn wait(&mut self, timeout: Duration) -> oxshmem_transport::Result<()> {
        self.inner.wait(timeout)
    }
}

/// Of all contexts of a PE together, one of which waits for replies to the other's messages.
#[test]
fn a_pe_gets_no_more_messages_without_a_reply_than_it_has_room_for() {
    const EACH: u32 = 200;
    let narrow = Narrow {
        inner: Tiny::nic(),
        unanswered: Arc::default(),
    };
    let transports: Vec<Arc<dyn Transport>> = vec![Arc::new(narrow.clone())];
    let builder = World::builder().transports(transports).timeout(LIMIT);
    spmd_with(builder, 3, |world| {
        let x = world.alloc_zeroed::<u32>(1)?;
        let other = world.create_context(ContextOptions::NONE)?;
        for _ in 0..EACH {
            world.inc(x, 1)?;
            other.inc(x, 1)?;
        }
        other.destroy()?;
        world.barrier_all()?;
        assert_eq!(world.fetch(x, 1)?, 6 * EACH);
        world.barrier_all()?;
        world.free(x)
    })
    .unwrap();
    let most = |pe: usize| narrow.unanswered[pe].most.load(Ordering::SeqCst);
    assert_eq!([most(0), most(2)], [WINDOW, WINDOW]);
    assert!(most(1) <= WINDOW, "{}", most(1));
}
