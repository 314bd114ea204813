//! The PTX instructions of the header, as the simulated memory performs them.

use std::collections::HashMap;

use oxshmem_weak::{Access, Agent, Scope};

use crate::memory::Memory;

/// One instruction.
#[derive(Clone, Debug)]
pub struct Instruction {
    name: String,
    access: Access,
    scope: Option<Scope>,
    is_sequential: bool,
    operation: String,
    bytes: usize,
    is_lanes_before: bool,
}

impl Instruction {
    /// Reads the text of an instruction, as `ld.acquire.sys.u64 %0, [%1];`. A `!` before it narrows its scope to the GPU.
    pub fn of(text: &str) -> Instruction {
        let (text, is_narrow) = text
            .strip_prefix('!')
            .map_or((text, false), |text| (text, true));
        let first = text.split([' ', ';']).next().unwrap_or_default();
        let is_lanes_before = text.contains("%%lanemask_lt");
        let mut parts = first.split('.');
        let name = parts.next().unwrap_or_default().to_string();
        let mut access = Access::WEAK;
        let (mut scope, mut is_sequential, mut bytes) = (None, false, 8);
        let (mut acquires, mut releases) = (false, false);
        let mut operation = String::new();
        for part in parts {
            match part {
                "relaxed" | "weak" | "volatile" | "v2" => {}
                "acquire" => acquires = true,
                "release" => releases = true,
                "acq_rel" => (acquires, releases) = (true, true),
                "sc" => is_sequential = true,
                "cta" => scope = Some(Scope::Block),
                "gpu" => scope = Some(Scope::Gpu),
                "sys" => scope = Some(Scope::System),
                "u8" => bytes = 1,
                "u16" => bytes = 2,
                "u32" | "b32" => bytes = 4,
                "u64" | "b64" => bytes = 8,
                "add" | "and" | "or" | "xor" | "exch" | "cas" => operation = part.into(),
                other => panic!("`{text}`: `{other}` is not known"),
            }
        }
        if is_narrow && scope == Some(Scope::System) {
            scope = Some(Scope::Gpu);
        }
        if let Some(scope) = scope {
            access = Access::relaxed(scope);
        }
        if acquires {
            access = access.acquire();
        }
        if releases {
            access = access.release();
        }
        Instruction {
            name,
            access,
            scope,
            is_sequential,
            operation,
            bytes,
            is_lanes_before,
        }
    }

    /// Whether it is a load.
    pub fn is_load(&self) -> bool {
        self.name == "ld"
    }

    /// Whether it changes a word by what it finds there.
    pub fn is_atomic(&self) -> bool {
        self.name == "atom" || self.name == "red"
    }

    /// Whether it gives the lanes of the warp before its thread's.
    pub fn is_lanes_before(&self) -> bool {
        self.is_lanes_before
    }

    /// Performs it; gives its value.
    pub fn perform(&self, memory: &mut Memory, agent: Agent, at: usize, a: u64, b: u64) -> u64 {
        let bytes = self.bytes;
        let bits = |value: u64| match bytes {
            8 => value,
            _ => value & ((1 << (8 * bytes)) - 1),
        };
        match self.name.as_str() {
            "mov" => 0,
            "fence" if self.is_sequential => {
                let scope = self.scope.expect("a fence has a scope");
                memory.machine.sequential_fence(agent, scope);
                0
            }
            "fence" => {
                let scope = self.scope.expect("a fence has a scope");
                memory.machine.fence(agent, scope);
                0
            }
            "ld" => memory.load(agent, at, bytes, self.access),
            "st" => {
                memory.store(agent, at, bytes, bits(a), self.access);
                0
            }
            "red" | "atom" => memory.update(agent, at, bytes, self.access, |old| {
                Some(bits(match self.operation.as_str() {
                    "add" => old.wrapping_add(a),
                    "and" => old & a,
                    "or" => old | a,
                    "xor" => old ^ a,
                    "exch" => a,
                    "cas" if old == bits(b) => a,
                    "cas" => return None,
                    other => panic!("an atomic `{other}`"),
                }))
            }),
            other => panic!("an instruction `{other}`"),
        }
    }
}

/// The instructions by the addresses of their texts, which live as long as the compiled code.
#[derive(Default)]
pub struct Instructions(HashMap<usize, Instruction>);

impl Instructions {
    /// The instruction at this address, which `text` reads where it is new.
    pub fn at(&mut self, address: usize, text: impl FnOnce() -> String) -> Instruction {
        self.0
            .entry(address)
            .or_insert_with(|| Instruction::of(&text()))
            .clone()
    }
}
