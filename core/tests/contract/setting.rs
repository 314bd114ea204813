//! The setting of a case: how PEs reach their peers, the memory model, the number of PEs.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use oxshmem::testing::spmd_with;
use oxshmem::{Atomics, Builder, MemoryModel, Pod, Result, Sym, World, registry};
use oxshmem_bootstrap::InProcess;
use oxshmem_example_tiny_transport::Tiny;
use oxshmem_loopback::Loopback;
use oxshmem_transport::Transport;
use oxshmem_weak::{Machine, Seeded, Settings, Simulator, Weak};
use proptest::prelude::any;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

/// A part of the contract, tried by every PE of a world. It frees what it allocates.
pub type Case = fn(&Pe<'_>) -> Result<()>;

/// After this long every wait in a test is an error.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// Each PE's heap in bytes.
pub const HEAP: usize = 32 << 20;

/// The seed of all random choices: those of weak transports, the sequences of calls, the inputs of properties.
/// `CONTRACT_SEED` sets it; otherwise it is the same in each run.
pub fn seed() -> u64 {
    let named = std::env::var("CONTRACT_SEED");
    named.map_or(7, |seed| seed.parse().expect("CONTRACT_SEED is a number"))
}

/// CPUs of a simulated machine: at least as many as PEs.
const MOST: u32 = 9;

/// How the PEs reach each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// By loads and stores.
    Mapped,
    /// By loads and stores, which checked mode forgoes: every operation takes a lane.
    Checked,
    /// By the lanes of the example transport: a short queue, no mapping, few atomics.
    Tiny,
    /// By lanes that promise nothing and keep no more.
    Weak,
    /// By lanes whose longer operations keep no order, as of several queue pairs.
    Queues,
    /// By those that `OXSHMEM_TRANSPORT` and `OXSHMEM_SEED` name: weak ones.
    Named,
    /// By loads and stores of a simulated machine, which may do as a weak processor does.
    Simulator,
    /// By the transport between GPUs: the objects lie in their memory. The GPUs are those of the driver
    /// that is found, shared by turns; without one nothing is run.
    Gpu,
    /// By what this build has, as the environment chooses: PEs of one host by loads and stores, others
    /// by a network's lanes.
    Hosts,
}

/// The example transport's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// Its atomics are the CPU's.
    Plain,
    /// Its atomics are NICs': others are asked of the CPU that has the word, by messages.
    Nics {
        atomics: Atomics,
        /// Whether each PE claims a host of its own, or all the same.
        apart: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    pub path: Path,
    pub model: MemoryModel,
    pub table: Table,
}

impl Setting {
    pub const fn new(path: Path) -> Self {
        Setting {
            path,
            model: MemoryModel::Ordered,
            table: Table::Plain,
        }
    }

    pub const fn relaxed(path: Path) -> Self {
        Setting {
            path,
            model: MemoryModel::Relaxed,
            table: Table::Plain,
        }
    }

    /// The example transport with NICs.
    pub const fn nics(model: MemoryModel, atomics: Atomics, apart: bool) -> Self {
        Setting {
            path: Path::Tiny,
            model,
            table: Table::Nics { atomics, apart },
        }
    }

    pub fn builder(self) -> Builder {
        let loopback = || Arc::new(Loopback::new());
        let transports: Vec<Arc<dyn Transport>> = match self.path {
            Path::Tiny => vec![self.tiny()],
            Path::Mapped | Path::Checked | Path::Named | Path::Gpu => vec![loopback()],
            Path::Weak => vec![Arc::new(Weak::over(loopback(), Settings::worst(seed())))],
            Path::Queues => {
                let settings = Settings::several_queue_pairs(seed(), 64);
                vec![Arc::new(Weak::over(loopback(), settings))]
            }
            Path::Simulator => {
                let machine = Machine::new(MOST, Arc::new(Seeded::new(seed())));
                vec![Arc::new(Simulator::new(machine))]
            }
            Path::Hosts => registry::built_in(),
        };
        let builder = match self.table {
            Table::Plain => World::builder(),
            Table::Nics { atomics, .. } => World::builder().atomics(atomics),
        };
        builder
            .transports(transports)
            .check(self.path == Path::Checked)
            .model(self.model)
            .timeout(DEADLINE)
            .active_sets()
            .heap_limit(HEAP)
    }

    /// The builders of so many PEs.
    pub fn builders(self, n: usize) -> Vec<Builder> {
        let builder = self.builder();
        let host = |pe| match self.apart() {
            true => builder.clone().host_id(format!("host-{pe}")),
            false => builder.clone(),
        };
        (0..n).map(host).collect()
    }

    fn tiny(self) -> Arc<dyn Transport> {
        Arc::new(match self.table {
            Table::Plain => Tiny::default(),
            Table::Nics { .. } => Tiny::nic(),
        })
    }

    /// Whether each PE claims a host of its own.
    fn apart(self) -> bool {
        matches!(self.table, Table::Nics { apart: true, .. })
    }
}

/// Runs a case on `n` thread PEs.
pub fn run(setting: Setting, n: usize, case: Case) {
    let case = |world: &World| case(&Pe { world, setting });
    if setting.path == Path::Gpu {
        if let Some(builders) = gpus::builders(setting, n) {
            on_each(builders, case);
        }
        return;
    }
    if setting.apart() {
        return on_each(setting.builders(n), case);
    }
    let done = spmd_with(setting.builder(), n, case);
    if let Err(error) = done {
        panic!("{n} PEs, {setting:?}: {error}");
    }
}

/// Worlds with GPU memory.
mod gpus {
    use oxshmem::Builder;

    use super::Setting;

    /// Each PE's way to join: a GPU each, as far as there are enough. None where there is no driver.
    #[cfg(feature = "cuda")]
    pub fn builders(setting: Setting, n: usize) -> Option<Vec<Builder>> {
        use oxshmem::cuda::testing::present;
        use oxshmem::cuda::{Context, devices};

        let devices = present(devices())?;
        let contexts = devices.iter().map(Context::new);
        let contexts: Vec<Context> = contexts.collect::<Result<_, _>>().unwrap();
        let contexts = contexts.iter().cycle().take(n).cloned();
        let builder = |context| setting.builder().gpu(context, super::HEAP);
        Some(contexts.map(builder).collect())
    }

    #[cfg(not(feature = "cuda"))]
    pub fn builders(_: Setting, _: usize) -> Option<Vec<Builder>> {
        None
    }
}

/// Thread PEs whose builders differ; each must end well.
pub fn on_each(builders: Vec<Builder>, case: impl Fn(&World) -> Result<()> + Sync) {
    let errors = ends(builders, case);
    assert!(errors.is_empty(), "{errors:#?}");
}

/// The same; gives the errors.
pub fn ends(builders: Vec<Builder>, case: impl Fn(&World) -> Result<()> + Sync) -> Vec<String> {
    let run = |builder: Builder| {
        let world = builder.join()?;
        case(&world)?;
        world.finalize()
    };
    let group = InProcess::group(builders.len() as u32);
    let ends: Vec<_> = std::thread::scope(|threads| {
        let pes = group.into_iter().zip(builders);
        let spawned: Vec<_> = pes
            .map(|(bootstrap, builder)| {
                let run = &run;
                threads.spawn(move || run(builder.bootstrap(bootstrap as Arc<_>)))
            })
            .collect();
        spawned.into_iter().map(|thread| thread.join()).collect()
    });
    let mut errors = Vec::new();
    for (pe, end) in ends.into_iter().enumerate() {
        match end {
            Ok(Ok(())) => {}
            Ok(Err(error)) => errors.push(format!("PE {pe}: {error}")),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
    errors
}

/// One PE, for a case.
pub struct Pe<'w> {
    pub world: &'w World,
    pub setting: Setting,
}

impl Deref for Pe<'_> {
    type Target = World;
    fn deref(&self) -> &World {
        self.world
    }
}

impl Pe<'_> {
    pub fn me(&self) -> usize {
        self.my_pe()
    }

    pub fn right(&self) -> usize {
        (self.my_pe() + 1) % self.n_pes()
    }

    pub fn left(&self) -> usize {
        (self.my_pe() + self.n_pes() - 1) % self.n_pes()
    }

    /// Whether all peers' memory is loaded and stored.
    pub fn is_mapped(&self) -> bool {
        matches!(self.setting.path, Path::Mapped | Path::Simulator)
    }

    /// Whether all peers' memory has addresses here.
    pub fn has_addresses(&self) -> bool {
        self.setting.path == Path::Mapped
    }

    /// Whether that PE's memory has addresses here.
    pub fn has_address_of(&self, pe: usize) -> bool {
        let own = pe == self.me() && !self.is_on_gpu();
        self.has_addresses() || own || self.is_a_near_one(pe)
    }

    /// Whether hosts are told apart, that PE is on this one, and PEs of one host share memory.
    pub fn is_a_near_one(&self, pe: usize) -> bool {
        let hosts = self.hosts();
        self.setting.path == Path::Hosts && by_loopback() && hosts[pe] == hosts[self.me()]
    }

    /// Whether there are 32-bit atomics on a PE's memory: the plain example transport has none,
    /// the CPU has them on its own PE's.
    pub fn has_atomics_of_32_bits_at(&self, pe: usize) -> bool {
        self.setting.path != Path::Tiny || self.setting.table != Table::Plain || pe == self.my_pe()
    }

    /// Whether there are locks, which are in host memory wherever else a setting has its objects.
    pub fn has_locks(&self) -> Result<bool> {
        let at = |pe: usize| match self.setting.path {
            Path::Gpu => Ok(self.explain(pe)?.host_atomics.transport != Some("tiny")),
            _ => Ok(self.has_atomics_of_32_bits_at(pe)),
        };
        let all: Vec<bool> = (0..self.n_pes()).map(at).collect::<Result<_>>()?;
        Ok(!all.contains(&false))
    }

    /// How often to repeat something: fewer times where PEs take turns on few CPUs, or on lanes, or
    /// where checked mode enters every word in its tables.
    pub fn rounds(&self, most: usize) -> usize {
        let crowd = if self.n_pes() > 2 { 3 } else { 1 };
        let lanes = match self.setting.path {
            Path::Mapped => 1,
            Path::Tiny if self.setting.table != Table::Plain => 24,
            Path::Tiny => 2,
            Path::Checked | Path::Weak | Path::Queues | Path::Named => 24,
            Path::Gpu => 50,
            Path::Hosts => 100,
            Path::Simulator => 250,
        };
        (most / crowd / lanes).max(8)
    }

    /// How long to make something long: a simulated machine goes byte by byte.
    pub fn longest(&self, most: usize) -> usize {
        match self.setting.path {
            Path::Simulator => most.min(500),
            _ => most,
        }
    }

    /// This PE's own copy.
    pub fn own<T: Pod>(&self, object: Sym<T>) -> Result<Vec<T>> {
        self.copy_at(object, self.my_pe())
    }

    /// The copy at a PE.
    pub fn copy_at<T: Pod>(&self, object: Sym<T>, pe: usize) -> Result<Vec<T>> {
        let mut copy = vec![T::zeroed(); object.len()];
        self.get(&mut copy, object, pe)?;
        Ok(copy)
    }
}

/// Whether the environment lets PEs of one host share memory.
pub fn by_loopback() -> bool {
    match std::env::var("OXSHMEM_TRANSPORT") {
        Ok(listed) => listed.split(',').any(|name| name.trim() == "loopback"),
        Err(_) => true,
    }
}

/// The transport by which PEs of different hosts reach each other: `ofi` where an interface is named to it. The machines
/// of these tests have NICs for one of the two.
pub fn network() -> &'static str {
    match std::env::var_os("OXSHMEM_OFI_INTERFACE") {
        Some(_) => "ofi",
        None => "verbs",
    }
}

/// Element `i` of a sequence that `seed` names: equal for equal arguments, else unalike.
pub fn pattern(seed: usize, i: usize) -> u64 {
    let mut x = (seed as u64) << 32 ^ i as u64 ^ 0x9e37_79b9_7f4a_7c15;
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// The first `len` elements of such a sequence.
pub fn patterns(seed: usize, len: usize) -> Vec<u64> {
    (0..len).map(|i| pattern(seed, i)).collect()
}

/// The random numbers that a seed names.
pub fn numbers(seed: u64) -> TestRng {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    TestRng::from_seed(RngAlgorithm::ChaCha, &bytes)
}

/// A property runner that tries the same values on every PE, by [`seed`], so that properties may call
/// collectives; it does not shrink, since the PEs would do so each for itself.
pub fn runner(cases: u32) -> TestRunner {
    runner_by(seed(), cases)
}

fn runner_by(seed: u64, cases: u32) -> TestRunner {
    let config = Config {
        cases,
        max_shrink_iters: 0,
        failure_persistence: None,
        ..Config::default()
    };
    TestRunner::new_with_rng(config, numbers(seed))
}

#[test]
fn a_seed_names_what_is_tried() {
    let drawn = |seed| {
        let tree = any::<u64>().new_tree(&mut runner_by(seed, 1));
        tree.unwrap().current()
    };
    assert_eq!(drawn(7), drawn(7));
    assert_ne!(drawn(7), drawn(8));
}
