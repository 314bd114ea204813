//! The bounds of a program. They keep hostile texts and the model's work small.

/// Bytes of a text.
pub const TEXT: usize = 64 * 1024;
/// Characters of a name, a variable or a line of `about`.
pub const NAME: usize = 100;
/// Lines of `about`, rules, and expectations, each.
pub const HEADER: usize = 32;
/// PEs.
pub const PES: usize = 8;
/// Variables.
pub const VARIABLES: usize = 16;
/// Words of one variable.
pub const WORDS: usize = 8;
/// Registers.
pub const REGISTERS: usize = 64;
/// Contexts, the default one included.
pub const CONTEXTS: usize = 4;
/// Statements of all PEs together.
pub const STATEMENTS: usize = 64;
/// Steps of the model: one for each word that a statement reads or writes, and for each
/// collective.
pub const STEPS: usize = 128;
/// Blocks of one PE, in programs of kernels.
pub const BLOCKS: usize = 4;
/// Threads of one block.
pub const LANES: usize = 8;
