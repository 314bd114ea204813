//! The reductions of `reduce.ptx`, each loaded when it is first wanted.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::sync::{Arc, Mutex, PoisonError};

use oxshmem_cuda::{Args, Context, DevicePtr, Function, Module, Result, Stream};

use super::spread;

const PTX: &str = include_str!("../reduce.ptx");

/// What a reduction does with two elements. Integers wrap; `And`, `Or` and `Xor` are of integers only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fold {
    /// Adds.
    Sum,
    /// Multiplies.
    Prod,
    /// Takes the smaller.
    Min,
    /// Takes the larger.
    Max,
    /// Bits of both.
    And,
    /// Bits of either.
    Or,
    /// Bits of one of them.
    Xor,
}

impl Fold {
    fn name(self) -> &'static str {
        match self {
            Fold::Sum => "sum",
            Fold::Prod => "prod",
            Fold::Min => "min",
            Fold::Max => "max",
            Fold::And => "and",
            Fold::Or => "or",
            Fold::Xor => "xor",
        }
    }
}

/// The reductions, loaded.
#[derive(Debug)]
pub struct Reductions {
    module: Module,
    found: Mutex<BTreeMap<(Fold, &'static str), Arc<Function>>>,
}

impl Reductions {
    /// Loads their module. Before any kernel of the process can be waiting: loading may wait for running
    /// ones.
    pub fn load(context: &Context) -> Result<Reductions> {
        Ok(Reductions {
            module: Module::from_ptx(context, PTX)?,
            found: Mutex::default(),
        })
    }

    fn function(&self, fold: Fold, of: &'static str) -> Result<Arc<Function>> {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(function) = found.get(&(fold, of)) {
            return Ok(Arc::clone(function));
        }
        let name = format!("oxshmem_reduce_{}_{of}", fold.name());
        let function = self
            .module
            .function(&CString::new(name).unwrap_or_default())?;
        let function = Arc::new(function);
        found.insert((fold, of), Arc::clone(&function));
        Ok(function)
    }

    /// Queues `out[i] = bases[0][offset..][i] fold bases[1][offset..][i] …` for `elements` of the type
    /// `of`, such as `"i32"` or `"bf16"`. `bases` is a table of `sources` addresses, `offset` bytes.
    ///
    /// # Safety
    ///
    /// The table and all elements are mapped for the GPU and aligned until the kernel is done; `out` is
    /// one of the sources or overlaps none.
    pub unsafe fn reduce(
        &self,
        stream: &Stream,
        (fold, of): (Fold, &'static str),
        out: DevicePtr,
        (bases, sources, offset): (DevicePtr, u32, u64),
        elements: u64,
    ) -> Result<()> {
        let args = Args::new().with(out).with(bases).with(sources);
        let args = args.with(offset).with(elements);
        let function = self.function(fold, of)?;
        // SAFETY: the arguments are the kernel's (reduce.cu); the memory is the caller's promise.
        unsafe { function.launch(stream, &spread(elements.div_ceil(4)), &args) }
    }
}
