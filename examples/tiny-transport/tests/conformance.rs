//! The least that a transport's own tests need.

use oxshmem_example_tiny_transport::Tiny;
use oxshmem_transport::{Memory, MemoryKind, Pe, Transport, conformance};

struct Harness(Tiny);

impl conformance::Harness for Harness {
    fn transport(&self) -> &dyn Transport {
        &self.0
    }

    /// The host's stands for a GPU's, too.
    fn memory(&self, _pe: Pe, kind: MemoryKind, len: usize) -> Result<Memory, String> {
        let memory = conformance::host_memory(len)?;
        let (base, len, owner) = (memory.base(), memory.len(), memory.owner().clone());
        // SAFETY: as the memory says of itself; its name alone differs.
        Ok(unsafe { Memory::new(base, len, kind, None, owner) })
    }
}

#[test]
fn tiny_with_nics_passes_the_conformance_suite() {
    let report = conformance::run(&Harness(Tiny::nic()));
    assert!(report.passed(), "{report}");
}

#[test]
fn tiny_passes_the_conformance_suite() {
    let report = conformance::run(&Harness(Tiny::default()));
    assert!(report.passed(), "{report}");
}
