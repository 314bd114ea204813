//! Small programs for a machine, and all that they can end with.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use oxshmem_transport::{AtomicOp, AtomicRequest, MemoryKind, Pe, Width};
use oxshmem_weak::{Choices, Environment, Machine, Mode, Storage};

/// A variable: a word of its own.
#[derive(Clone, Copy, Debug)]
pub enum Var {
    /// In host memory of PE 0.
    Host(u64),
    /// In GPU memory of PE 1.
    Gpu(u64),
}

#[derive(Clone, Copy, Debug)]
pub enum Do {
    Store(Var, u64, Ordering),
    /// Into a register of the program.
    Load(usize, Var, Ordering),
    Fence(Ordering),
    /// The old value into a register.
    Update(usize, Var, AtomicOp, u64, Ordering),
    /// Tells this PE's NIC to write; it does later.
    NicPut(Var, u64),
    /// Tells this PE's NIC to copy the second to the first.
    NicCopy(Var, Var),
    /// This PE's NIC reads into a register, now.
    NicGet(usize, Var),
    /// This PE's GPU sees what NICs wrote.
    MakeVisible,
}

/// The decisions of one run: those given, then 0.
#[derive(Debug, Default)]
struct Script {
    given: Vec<usize>,
    taken: Mutex<Vec<(usize, usize)>>,
}

impl Choices for Script {
    fn choose(&self, n: usize) -> usize {
        let mut taken = self.taken.lock().unwrap();
        let chosen = self.given.get(taken.len()).copied().unwrap_or(0);
        assert!(chosen < n, "a replay went another way");
        taken.push((chosen, n));
        chosen
    }

    fn mode(&self, _: Pe) -> Mode {
        Mode::Directed
    }
}

/// The final values of the registers, then of the observed variables.
pub type Outcome = Vec<u64>;

/// Every outcome of the programs, one for each PE, by every sequence of choices.
pub fn outcomes(programs: &[&[Do]], registers: usize, observed: &[Var]) -> BTreeSet<Outcome> {
    let mut found = BTreeSet::new();
    let mut given = Vec::new();
    for _ in 0..3_000_000 {
        let script = Arc::new(Script {
            given: std::mem::take(&mut given),
            ..Script::default()
        });
        found.insert(run(&script, programs, registers, observed));
        let mut taken = script.taken.lock().unwrap();
        while let Some((chosen, of)) = taken.pop() {
            if chosen + 1 < of {
                given = taken.iter().map(|(chosen, _)| *chosen).collect();
                given.push(chosen + 1);
                break;
            }
        }
        if given.is_empty() {
            return found;
        }
    }
    panic!("too many runs for these programs");
}

struct World {
    machine: Arc<Machine>,
    host: Arc<Storage>,
    gpu: Arc<Storage>,
    registers: Vec<u64>,
    /// Requests to NICs: the PE, its doorbell, the request.
    told: Vec<(Pe, u64, Do)>,
}

impl World {
    fn place(&self, var: Var) -> (Arc<Storage>, u64) {
        match var {
            Var::Host(word) => (self.host.clone(), 8 * word),
            Var::Gpu(word) => (self.gpu.clone(), 8 * word),
        }
    }

    fn nic_read(&self, nic: Pe, var: Var) -> u64 {
        let (storage, at) = self.place(var);
        let mut bytes = [0; 8];
        self.machine.nic_read(nic, &storage, at, &mut bytes);
        u64::from_le_bytes(bytes)
    }

    fn issue(&mut self, pe: Pe, what: Do) {
        let machine = self.machine.clone();
        match what {
            Do::Store(var, value, order) => {
                let (storage, at) = self.place(var);
                machine.store_word(pe, &storage, at, Width::W64, value, order);
            }
            Do::Load(register, var, order) => {
                let (storage, at) = self.place(var);
                self.registers[register] = machine.load_word(pe, &storage, at, Width::W64, order);
            }
            Do::Fence(order) => machine.fence(pe, order),
            Do::Update(register, var, op, operand, order) => {
                let (storage, at) = self.place(var);
                let request = AtomicRequest::wide(op, operand, 0);
                self.registers[register] = machine.update(pe, &storage, at, request, order);
            }
            Do::NicGet(register, var) => self.registers[register] = self.nic_read(pe, var),
            Do::MakeVisible => machine.make_visible(pe),
            Do::NicPut(..) | Do::NicCopy(..) => self.told.push((pe, machine.doorbell(pe), what)),
        }
    }

    fn perform(&mut self, number: usize) {
        let (nic, _, what) = self.told.remove(number);
        let (to, value) = match what {
            Do::NicPut(to, value) => (to, value),
            Do::NicCopy(to, from) => (to, self.nic_read(nic, from)),
            other => panic!("{other:?} is no NIC's"),
        };
        let (storage, at) = self.place(to);
        self.machine
            .nic_write(nic, &storage, at, &value.to_le_bytes());
    }
}

fn run(script: &Arc<Script>, programs: &[&[Do]], registers: usize, observed: &[Var]) -> Outcome {
    let machine = Machine::new(programs.len() as u32, script.clone());
    let mut world = World {
        host: machine.storage(Pe(0), MemoryKind::Host, 4096),
        gpu: machine.storage(Pe(1), MemoryKind::Cuda, 4096),
        machine,
        registers: vec![0; registers],
        told: Vec::new(),
    };
    let mut next = vec![0; programs.len()];
    loop {
        let going: Vec<usize> = (0..programs.len())
            .filter(|&pe| next[pe] < programs[pe].len())
            .collect();
        let ready: Vec<usize> = (0..world.told.len())
            .filter(|&number| {
                let (nic, doorbell, _) = world.told[number];
                world.machine.ready(nic, doorbell)
            })
            .collect();
        let steps = world.machine.steps();
        let all = going.len() + ready.len() + steps;
        let chosen = match all {
            0 => break,
            1 => 0,
            _ => script.choose(all),
        };
        if let Some(&pe) = going.get(chosen) {
            world.issue(Pe(pe as u32), programs[pe][next[pe]]);
            next[pe] += 1;
        } else if let Some(&number) = ready.get(chosen - going.len()) {
            world.perform(number);
        } else {
            let _said = world.machine.step(chosen - going.len() - ready.len());
        }
    }
    assert!(
        world.told.is_empty(),
        "a NIC waits for stores that have all drained"
    );
    world.machine.quiesce();
    let memory = observed.iter().map(|&var| world.nic_read(Pe(0), var));
    let memory: Vec<u64> = memory.collect();
    world.registers.iter().copied().chain(memory).collect()
}
