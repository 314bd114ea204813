//! The reductions of `reduce.ptx`.

use std::collections::BTreeMap;
use std::ffi::CString;

use oxshmem_cuda::{Args, Context, DevicePtr, Error, Function, Module, Result, Stream};
use oxshmem_transport::Fold;

use crate::grid::grid_for;

const PTX: &str = include_str!("../reduce.ptx");

const INTEGERS: [&str; 8] = ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"];
const FLOATS: [&str; 4] = ["f16", "bf16", "f32", "f64"];

/// The reductions, loaded.
#[derive(Debug)]
pub struct Reductions(BTreeMap<(Fold, &'static str), Function>);

impl Reductions {
    /// Loads all of them. Before any kernel of the process can be waiting: loading may wait for running
    /// ones.
    pub fn load(context: &Context) -> Result<Reductions> {
        let module = Module::from_ptx(context, PTX)?;
        let mut functions = BTreeMap::new();
        for fold in Fold::ALL {
            let word = fold.name();
            let floats = FLOATS.iter().filter(|_| !fold.is_bitwise());
            for of in INTEGERS.iter().chain(floats) {
                let name = CString::new(format!("oxshmem_reduce_{word}_{of}"));
                let function = module.function(&name.unwrap_or_default())?;
                functions.insert((fold, *of), function);
            }
        }
        Ok(Reductions(functions))
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
        let Some(function) = self.0.get(&(fold, of)) else {
            return Err(Error::Invalid {
                what: "a reduction on a stream",
                why: format!("there is no {fold:?} of {of}"),
            });
        };
        // SAFETY: the arguments are the kernel's (reduce.cu); the memory is valid, as this function's caller promises.
        unsafe { function.launch(stream, &grid_for(elements.div_ceil(4)), &args) }
    }
}
