//! The structures of `header/state.cuh` that host and kernels share. A test compares their layouts with the header's.

use bytemuck::{Pod, Zeroable};

/// The layout of everything here.
pub const ABI: u32 = 3;

/// The state of an image: the variable that [`STATE`](crate::STATE) names. Addresses are those that the GPU uses.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct State {
    /// [`State::ABI_WORD`].
    pub abi: u32,
    /// The number of this PE.
    pub me: u32,
    /// The number of PEs.
    pub n: u32,
    /// [`FLUSH_AFTER_WAIT`].
    pub flags: u32,
    /// This PE's GPU heap.
    pub heap: u64,
    /// Its length in bytes.
    pub heap_bytes: u64,
    /// A table of the distances from this PE's heap to each PE's as it is mapped for this GPU; [`UNMAPPED`] where it is not.
    pub distances: u64,
    /// A table of the addresses of [`Team`]s.
    pub teams: u64,
    /// The address of a [`Shared`].
    pub shared: u64,
    /// The address of the ring of requests; 0 where every PE is mapped.
    pub ring: u64,
    /// A word of 32 bits in page-locked memory: not 0 once waits have to end.
    pub stop: u64,
    /// The address of a [`Fault`] in page-locked memory.
    pub fault: u64,
    /// The nanoseconds that a wait may take, 0 for ever.
    pub deadline: u64,
    /// The address of an [`Inbox`](crate::inbox::Inbox), or 0.
    pub inbox: u64,
    /// Zero.
    pub reserved: [u64; 2],
}

impl State {
    /// The value of `abi` in a state of this layout.
    pub const ABI_WORD: u32 = ABI << 16 | size_of::<State>() as u32;
}

/// The distance to a heap that is not mapped. No heap lies at an odd one.
pub const UNMAPPED: i64 = 1;

/// A flag of [`State`]: a NIC writes this GPU's memory, so a wait that ends asks the host for a flush (M27).
pub const FLUSH_AFTER_WAIT: u32 = 1;

/// The members of a team, and the words and buffers by which they meet. In the GPU's memory.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Team {
    /// The number of members.
    pub n: u32,
    /// This PE's number among them.
    pub me: u32,
    /// The address of each member's PE, as 32 bits.
    pub members: u64,
    /// The address of `n` symmetric words, zero before the first call: member i alone sets word i.
    pub words: u64,
    /// The address of symmetric scratch memory: two halves of `n` places.
    pub scratch: u64,
    /// The bytes of a place, a multiple of 16.
    pub place: u64,
    /// The number of collective calls that this member has begun.
    pub epoch: u64,
    /// The last of them in which it has heard of all members.
    pub met: u64,
    /// The last that used each half of the scratch memory.
    pub half_used: [u64; 2],
}

/// The words of the GPU's memory that change while kernels run.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Shared {
    /// The entries of the table of teams.
    pub teams: u32,
    /// The count by which `wait_until_any` chooses the first word at which it looks.
    pub turn: u32,
}

/// The value of [`Fault::state`] in a complete record.
pub const COMPLETE: u32 = 2;

/// The first bad call of a kernel that was built with checks. In page-locked memory.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Fault {
    /// 0 if there is none, 1 while it is written, 2 when it is complete.
    pub state: u32,
    /// The call, by its place in [`fault::CALLS`](crate::fault::CALLS).
    pub call: u32,
    /// The kind of its fault, by [`fault::Kind`](crate::fault::Kind).
    pub kind: u32,
    /// Zero.
    pub padding: u32,
    /// The PE that was given; or the team, root or stride, by the kind.
    pub pe: i64,
    /// The address that was given.
    pub address: u64,
    /// The bytes from there on that the call would have used.
    pub bytes: u64,
    /// The block's indices.
    pub block: [u32; 3],
    /// The thread's indices in the block.
    pub thread: [u32; 3],
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;
    use std::process::Command;

    use super::*;
    use crate::inbox::{Errand, Inbox};
    use crate::ring::Ring;

    /// The header compiled as C++ for the host, by the means of ci/softcuda-kernels.
    #[test]
    fn the_header_has_the_same_layouts() {
        let here = concat!(env!("CARGO_MANIFEST_DIR"), "/");
        let shim = format!("{here}../../transport/nvlink/device/host_shim.h");
        let text = |of: &str, size: usize, fields: &[(&str, usize)]| {
            let fields = fields.iter().map(|(field, offset)| {
                format!("static_assert(offsetof(oxshmem::{of}, {field}) == {offset}, \"{of}::{field}\");\n")
            });
            let size = format!("static_assert(sizeof(oxshmem::{of}) == {size}, \"{of}\");\n");
            fields.chain([size]).collect::<String>()
        };
        macro_rules! layout {
            ($type:ident: $($field:ident),*) => {
                text(stringify!($type), size_of::<$type>(), &[$((stringify!($field), offset_of!($type, $field))),*])
            };
        }
        let checks = [
            layout!(State: abi, me, n, flags, heap, heap_bytes, distances, teams, shared, ring, stop, fault, deadline, inbox),
            layout!(Team: n, me, members, words, scratch, place, epoch, met, half_used),
            layout!(Shared: teams, turn),
            layout!(Inbox: errands, claimed, posted, mask),
            layout!(Errand: word, operation, width, operand, compare, old, done),
            layout!(Ring: slots, answers, head, taken, sources_read, done, credit, mask),
            layout!(Fault: state, call, kind, pe, address, bytes, block, thread),
            format!("static_assert(oxshmem::ABI == {ABI}, \"ABI\");\n"),
            format!("static_assert(oxshmem::UNMAPPED == {UNMAPPED}, \"UNMAPPED\");\n"),
        ];
        let source = format!(
            "#include \"{here}include/oxshmem.cuh\"\n{}",
            checks.concat()
        );
        let path = std::env::temp_dir().join(format!("oxshmem-layout-{}.cpp", std::process::id()));
        std::fs::write(&path, source).unwrap();
        let compiler = Command::new("g++")
            .args([
                "-std=c++17",
                "-fsyntax-only",
                "-Wno-invalid-offsetof",
                "-include",
                &shim,
            ])
            .arg(&path)
            .output();
        std::fs::remove_file(&path).unwrap();
        let compiler = compiler.expect("g++ is needed; ci/setup installs it");
        assert!(
            compiler.status.success(),
            "{}",
            String::from_utf8_lossy(&compiler.stderr)
        );
    }
}
