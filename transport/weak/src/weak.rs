//! A transport over another one, which does the worst that its declared guarantees permit.
//!
//! Operations posted on a lane go into a pool. From there they are *performed*, through the wrapped
//! transport's lane, in any order that the [`Settings`] leave open, puts in several pieces. Completions
//! that promise something are counted late, others early. A lane is full at random.
//!
//! Under a [`Scheduler`] each of these steps is one that the scheduler takes. Elsewhere, between
//! processes or threads that run freely, a seed decides, at each call and by a thread that looks after
//! what a PE has left behind: everything is performed in the end.

mod domain;
mod lane;
mod pieces;
mod pool;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use oxshmem_transport::{
    AtomicLevel, AtomicTable, Completion, Device, Domain, Guarantees, Job, MemoryKind, Pe, Result,
    SignalSupport, Transport,
};

use self::domain::WeakDomain;
use self::pool::Pool;
use crate::choice::{Choices, Environment, Seeded};
use crate::machine::Machine;
use crate::scheduler::Scheduler;

/// The declarations of a weak transport, which bound its behaviour.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Decides where no scheduler does; each PE has a sequence of its own.
    pub seed: u64,
    /// Its guarantees, for every kind of memory (except `gpu_flush`, which is the wrapped transport's).
    pub guarantees: Guarantees,
    /// Up to how many bytes a put or get keeps these guarantees. A longer one, and the signal of a longer put-with-signal,
    /// keeps no order with any other operation, but with a flush behind it. [`u64::MAX`] if all keep them.
    pub ordered: u64,
    /// Up to how many bytes a source may be reused when `post` returns.
    pub inline: u64,
    /// How many operations towards one PE a lane holds for sure. With so many under way, some of them
    /// completed already, it is full or not.
    pub depth: Option<u32>,
    /// Put-with-signal as an operation, or not.
    pub put_signal: SignalSupport,
    /// Whether the signal of a put-with-signal that is longer than `ordered` waits for its data, as it must: a check of
    /// tests has it go by the queue pair of short operations at once.
    pub signals_wait: bool,
    /// The puts that wait for those before a fence, where `put_fence_put` is promised: all that follow it, as they must, unless
    /// a check of tests has it otherwise.
    pub fenced: Fenced,
    /// These atomics, as far as the wrapped transport has them.
    pub atomics: AtomicTable,
    /// Whether it says that operations are counted as completed without a flush or a request.
    pub acknowledges: bool,
    /// Once it has taken this many operations towards a PE, that one is lost.
    pub lose: Option<(Pe, u64)>,
}

/// The puts that wait for those before their lane's fence. On a NIC with relaxed ordering these are the puts that take the
/// key without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fenced {
    /// All puts behind the fence.
    All,
    /// The first one alone: a fault, as later ones pass those before the fence.
    First,
    /// None: a fault, as all of them pass those before the fence.
    None,
}

/// The guarantees of a reliable connection whose target's device places the data of writes in any order, and holds
/// atomics and messages until the writes before them are placed, as NICs with adaptive routing do.
const OUT_OF_ORDER: Guarantees = Guarantees {
    put_atomic: true,
    atomic_atomic: true,
    put_message: true,
    completion: Completion::Accepted,
    ..Guarantees::NONE
};

/// The guarantees of one queue pair to each PE, on a device that places writes in order.
const ONE_QUEUE_PAIR: Guarantees = Guarantees {
    put_put: true,
    put_fence_put: true,
    put_atomic: true,
    atomic_atomic: true,
    put_get: true,
    get_get: true,
    completion: Completion::Accepted,
    ..Guarantees::NONE
};

impl Settings {
    /// Operations of more than `ordered` bytes go by several queue pairs to a PE, and all others by one.
    #[must_use]
    pub const fn several_queue_pairs(seed: u64, ordered: u64) -> Self {
        Settings {
            guarantees: ONE_QUEUE_PAIR,
            ordered,
            ..Settings::worst(seed)
        }
    }

    /// The target's device places writes out of order.
    #[must_use]
    pub const fn out_of_order(seed: u64) -> Self {
        Settings {
            guarantees: OUT_OF_ORDER,
            ..Settings::worst(seed)
        }
    }

    /// Nothing is promised.
    #[must_use]
    pub const fn worst(seed: u64) -> Self {
        Settings {
            seed,
            guarantees: Guarantees::NONE,
            ordered: u64::MAX,
            inline: u64::MAX,
            depth: Some(8),
            put_signal: SignalSupport::Native(AtomicLevel::Cpu),
            signals_wait: true,
            fenced: Fenced::All,
            atomics: AtomicTable::uniform(AtomicLevel::Cpu),
            acknowledges: true,
            lose: None,
        }
    }
}

/// A transport that wraps another. Clones share everything.
#[derive(Clone)]
pub struct Weak {
    inner: Arc<dyn Transport>,
    name: &'static str,
    settings: Settings,
    shared: Arc<Shared>,
}

/// The state that all PEs of this process share.
pub(crate) struct Shared {
    scheduler: Option<Arc<Scheduler>>,
    /// The machine whose simulated memory local buffers may be in.
    machine: Option<Arc<Machine>>,
    pools: Mutex<Pools>,
}

/// By PE, so that they come in the same order in every run; a PE of two worlds has two.
type Pools = BTreeMap<(Pe, u64), std::sync::Weak<Pool>>;

impl fmt::Debug for Weak {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Weak")
            .field("name", &self.name)
            .field("inner", &self.inner)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

impl Weak {
    /// Over a transport, for PEs that run freely.
    #[must_use]
    pub fn over(inner: Arc<dyn Transport>, settings: Settings) -> Weak {
        Self::with(inner, settings, None, None)
    }

    /// Over a transport, for PEs that are threads of this process and run when the scheduler says so.
    #[must_use]
    pub fn scheduled(
        inner: Arc<dyn Transport>,
        settings: Settings,
        scheduler: &Arc<Scheduler>,
    ) -> Weak {
        Self::with(inner, settings, Some(Arc::clone(scheduler)), None)
    }

    /// [`scheduled`](Self::scheduled) over a simulated machine's NIC.
    #[must_use]
    pub fn over_machine(
        nic: crate::simulator::Simulator,
        settings: Settings,
        scheduler: &Arc<Scheduler>,
    ) -> Weak {
        let machine = Arc::clone(nic.machine());
        let scheduler = Some(Arc::clone(scheduler));
        Self::with(Arc::new(nic), settings, scheduler, Some(machine))
    }

    fn with(
        inner: Arc<dyn Transport>,
        settings: Settings,
        scheduler: Option<Arc<Scheduler>>,
        machine: Option<Arc<Machine>>,
    ) -> Weak {
        let name = name_of(inner.name());
        let shared = Arc::new(Shared {
            scheduler: scheduler.clone(),
            machine,
            pools: Mutex::default(),
        });
        match scheduler {
            Some(scheduler) => scheduler.attach(Arc::downgrade(&shared) as _),
            None => look_after(&shared),
        }
        Weak {
            inner,
            name,
            settings,
            shared,
        }
    }
}

/// `weak(loopback)` and the like, made once each.
fn name_of(inner: &'static str) -> &'static str {
    static NAMES: Mutex<BTreeMap<&'static str, &'static str>> = Mutex::new(BTreeMap::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    // There are as many as there are transports.
    names
        .entry(inner)
        .or_insert_with(|| Box::leak(format!("weak({inner})").into_boxed_str()))
}

/// How often what PEs left behind is looked after.
const LOOK_AFTER: Duration = Duration::from_millis(1);

/// Moves what PEs have left in their pools while they make no call.
fn look_after(shared: &Arc<Shared>) {
    let shared = Arc::downgrade(shared);
    let thread = std::thread::Builder::new().name("oxshmem-weak".into());
    // Where no thread can be had, a PE's own calls move its operations.
    let _ = thread.spawn(move || {
        loop {
            std::thread::sleep(LOOK_AFTER);
            let Some(shared) = shared.upgrade() else {
                return;
            };
            shared
                .all()
                .iter()
                .for_each(|pool| pool.take_random_steps());
        }
    });
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Pools> {
        self.pools.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The pools of domains that are open.
    fn all(&self) -> Vec<Arc<Pool>> {
        let mut pools = self.lock();
        pools.retain(|_, pool| pool.strong_count() > 0);
        pools
            .values()
            .filter_map(std::sync::Weak::upgrade)
            .collect()
    }

    fn add(&self, pe: Pe, pool: &Arc<Pool>) {
        let mut pools = self.lock();
        let of_pe = pools.range((pe, 0)..=(pe, u64::MAX));
        let number = of_pe.last().map_or(0, |((_, last), _)| last + 1);
        pools.insert((pe, number), Arc::downgrade(pool));
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("pools", &self.lock().len())
            .finish_non_exhaustive()
    }
}

impl Environment for Shared {
    fn steps(&self) -> usize {
        self.all().iter().map(|pool| pool.steps()).sum()
    }

    fn step(&self, mut number: usize) -> String {
        for pool in self.all() {
            let steps = pool.steps();
            if number < steps {
                return pool.step(number);
            }
            number -= steps;
        }
        "nothing under way".into()
    }

    fn quiesce(&self) {
        self.all().iter().for_each(|pool| pool.drain());
    }
}

// SAFETY: nothing here is mapped. Local memory is touched by the pool alone, for operations it holds:
// it counts one as completed afterwards (or has copied the source), and a lane that is dropped takes
// its operations out first; the wrapped lanes promise the same.
unsafe impl Transport for Weak {
    fn name(&self) -> &'static str {
        self.name
    }

    fn probe(&self) -> Result<Vec<Device>> {
        self.inner.probe()
    }

    fn network_setting(&self) -> Option<&'static str> {
        self.inner.network_setting()
    }

    fn open(&self, device: &Device, job: &Job) -> Result<Arc<dyn Domain>> {
        let inner = self.inner.open(device, job)?;
        let seed = self.settings.seed ^ u64::from(job.me.0 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let choices: Arc<dyn Choices> = match &self.shared.scheduler {
            Some(scheduler) => Arc::clone(scheduler) as _,
            None => Arc::new(Seeded::new(seed)),
        };
        // Copies are not registered, so they must not be longer than such may be.
        let put = inner.capabilities().put;
        let settings = Settings {
            inline: put.unregistered.min(put.max).min(self.settings.inline),
            ..self.settings
        };
        let places = MemoryKind::ALL
            .into_iter()
            .filter_map(|kind| inner.guarantees(kind))
            .all(|guarantees| guarantees.completion == Completion::Placed);
        let pool = Arc::new(Pool::new(
            self.name,
            job.me,
            settings,
            choices,
            self.shared.machine.clone(),
            places,
        ));
        self.shared.add(job.me, &pool);
        let schedule = self.shared.scheduler.as_ref().map(|s| s.schedule(job.me));
        let domain = WeakDomain::new(
            self.name,
            job.clone(),
            settings,
            inner,
            pool,
            Arc::clone(&self.shared),
            schedule,
        );
        Ok(Arc::new(domain))
    }
}
