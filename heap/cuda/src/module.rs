//! Modules and kernels, and their launches.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fmt;
use std::ptr;
use std::sync::Arc;

use cudarc::driver::sys::{CUfunction_attribute, CUjit_option as Option_};

use crate::context::Context;
use crate::driver::{Driver, Feature};
use crate::error::{Error, Result, mend};
use crate::pointer::DevicePtr;
use crate::stream::Stream;
use crate::table::{Code, Raw, RawPtr, call, call_optional};

/// Bytes kept of the compiler's log.
const LOG: usize = 8 << 10;

/// Kernels and variables that were loaded onto a GPU. A clone is the same module; it is unloaded with
/// the last one and the last [`Function`] of it, when no kernel of it runs any more.
///
/// Loading may wait until the GPU is idle: load before kernels that wait for others are launched.
#[derive(Clone, Debug)]
pub struct Module(Arc<Inner>);

struct Inner {
    context: Context,
    raw: Raw,
}

// SAFETY: a CUmodule may be used from any thread, also from several at once (CUDA's manual).
unsafe impl Send for Inner {}
// SAFETY: as above.
unsafe impl Sync for Inner {}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Module")
            .field("context", &self.context)
            .finish_non_exhaustive()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // SAFETY: it was loaded once and is unloaded once.
        let answer = self
            .context
            .enter()
            .and_then(|_current| unsafe { call!(self.context, cuModuleUnload(self.raw)) });
        if let Err(error) = answer {
            tracing::debug!(%error, "a module was not unloaded");
        }
    }
}

impl Module {
    /// Compiles PTX for the context's GPU and loads it. What the compiler complains of is in the
    /// error.
    #[doc(alias = "cuModuleLoadDataEx")]
    pub fn from_ptx(context: &Context, ptx: &str) -> Result<Self> {
        let text = CString::new(ptx).map_err(|_| Error::Invalid {
            what: "loading PTX",
            why: "there is a NUL character in it".into(),
        })?;
        // SAFETY: it is text that ends with NUL.
        unsafe { Self::load(context, text.as_ptr().cast()) }
    }

    /// Loads a cubin or fatbin, as a compiler made it.
    ///
    /// # Safety
    ///
    /// The bytes are a whole image: the driver trusts the lengths in it.
    pub unsafe fn from_image(context: &Context, image: &[u8]) -> Result<Self> {
        // SAFETY: the caller answers for the image.
        unsafe { Self::load(context, image.as_ptr().cast()) }
    }

    /// # Safety
    ///
    /// It points to PTX that ends with NUL, or to a whole image.
    unsafe fn load(context: &Context, image: *const c_void) -> Result<Self> {
        let _current = context.enter()?;
        let mut log = vec![0_u8; LOG];
        let mut keys = [
            Option_::CU_JIT_ERROR_LOG_BUFFER as c_int,
            Option_::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES as c_int,
        ];
        // The size travels in the place of a pointer; a byte is left for the end.
        let mut values = [
            log.as_mut_ptr().cast::<c_void>(),
            ptr::without_provenance_mut(LOG - 1),
        ];
        let mut raw: Raw = ptr::null_mut();
        // SAFETY: the caller answers for the image; the options' arrays are as long as it is said,
        // and they and the log live during the call.
        let answer = unsafe {
            call!(
                context,
                cuModuleLoadDataEx(
                    &raw mut raw,
                    image,
                    keys.len() as u32,
                    keys.as_mut_ptr(),
                    values.as_mut_ptr(),
                )
            )
        };
        match answer {
            Ok(()) => Ok(Module(Arc::new(Inner {
                context: context.clone(),
                raw,
            }))),
            Err(Error::Call { code, name, .. }) => {
                let end = log.iter().position(|byte| *byte == 0).unwrap_or(LOG);
                Err(Error::Compile {
                    code,
                    name,
                    mend: mend("cuModuleLoadDataEx", Code(code)),
                    log: String::from_utf8_lossy(&log[..end]).trim_end().to_owned(),
                })
            }
            Err(error) => Err(error),
        }
    }

    /// The kernel of that name, loaded so that its first launch doesn't wait for the GPU to be idle.
    #[doc(alias = "cuModuleGetFunction")]
    pub fn function(&self, name: &CStr) -> Result<Function> {
        let context = &self.0.context;
        let _current = context.enter()?;
        let mut raw: Raw = ptr::null_mut();
        // SAFETY: the pointer is to a live pointer, the name ends with NUL.
        unsafe {
            call!(
                context,
                cuModuleGetFunction(&raw mut raw, self.0.raw, name.as_ptr())
            )
        }
        .map_err(|error| not_found("a kernel", name, error))?;
        if context.driver().has(Feature::Preload) {
            // SAFETY: the function is this module's, alive.
            unsafe { call_optional!(context, cuFuncLoad(raw)) }?;
        }
        let attribute = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK as c_int;
        let mut threads = 0;
        // SAFETY: the pointer is to a live integer. (Asking loads a function on older drivers.)
        unsafe {
            call!(
                context,
                cuFuncGetAttribute(&raw mut threads, attribute, raw)
            )
        }?;
        Ok(Function {
            parameters: parameters(context, raw),
            threads: u32::try_from(threads).unwrap_or(0),
            module: self.clone(),
            raw,
        })
    }

    /// The address and length in bytes of a variable in GPU memory. It lives as long as the module.
    #[doc(alias = "cuModuleGetGlobal")]
    pub fn global(&self, name: &CStr) -> Result<(DevicePtr, usize)> {
        let context = &self.0.context;
        let _current = context.enter()?;
        let (mut address, mut len): (RawPtr, usize) = (0, 0);
        let name_ptr: *const c_char = name.as_ptr();
        // SAFETY: both pointers are to live integers, the name ends with NUL.
        unsafe {
            call!(
                context,
                cuModuleGetGlobal_v2(&raw mut address, &raw mut len, self.0.raw, name_ptr)
            )
        }
        .map_err(|error| not_found("a variable", name, error))?;
        Ok((DevicePtr::from_raw(address), len))
    }

    /// Its context.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.0.context
    }
}

fn not_found(what: &'static str, name: &CStr, error: Error) -> Error {
    match error.code() {
        Some(500) => Error::Invalid {
            what: "looking into a kernel module",
            why: format!("it has not {what} named {}", name.to_string_lossy()),
        },
        _ => error,
    }
}

/// The sizes of a kernel's parameters; none where the driver doesn't tell. The context is current.
fn parameters(context: &Context, function: Raw) -> Option<Vec<usize>> {
    if !context.driver().has(Feature::ParameterInfo) {
        return None;
    }
    let mut sizes = Vec::new();
    loop {
        let (mut offset, mut size) = (0, 0);
        // SAFETY: the function is alive, both pointers are to live integers.
        let answer = unsafe {
            call_optional!(
                context,
                cuFuncGetParamInfo(function, sizes.len(), &raw mut offset, &raw mut size)
            )
        };
        match answer {
            Ok(()) if sizes.len() < 4096 => sizes.push(size),
            Err(error) if error.is(Code::INVALID_VALUE) => return Some(sizes),
            _ => return None,
        }
    }
}

/// How a kernel is launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Blocks in x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block in x, y and z.
    pub block: [u32; 3],
    /// Bytes of shared memory beyond what the kernel declares.
    pub shared_bytes: u32,
    /// Whether all blocks must run at once; an error if they don't fit.
    pub cooperative: bool,
}

impl Launch {
    /// So many blocks of so many threads, in x.
    #[must_use]
    pub const fn linear(blocks: u32, threads: u32) -> Self {
        Launch {
            grid: [blocks, 1, 1],
            block: [threads, 1, 1],
            shared_bytes: 0,
            cooperative: false,
        }
    }
}

/// A value that a kernel takes: a number or an address.
pub trait KernelArg: sealed::Bits {}

mod sealed {
    pub trait Bits: Copy {
        /// Its bytes at the low end of eight.
        fn bits(self) -> u64;
    }
}

macro_rules! kernel_arg {
    ($($type:ty: $value:ident => $bits:expr;)*) => { $(
        impl sealed::Bits for $type {
            fn bits(self) -> u64 {
                let $value = self;
                $bits
            }
        }
        impl KernelArg for $type {}
    )* };
}

kernel_arg! {
    u8: value => u64::from(value);
    u16: value => u64::from(value);
    u32: value => u64::from(value);
    u64: value => value;
    usize: value => value as u64;
    i8: value => u64::from(value.cast_unsigned());
    i16: value => u64::from(value.cast_unsigned());
    i32: value => u64::from(value.cast_unsigned());
    i64: value => value.cast_unsigned();
    f32: value => u64::from(value.to_bits());
    f64: value => value.to_bits();
    DevicePtr: value => value.as_raw();
}

/// The arguments of a launch, in order. They need no heap memory and are read during the launch.
#[derive(Clone, Copy, Debug)]
pub struct Args {
    values: [u64; Args::MOST],
    sizes: [u8; Args::MOST],
    count: usize,
}

impl Args {
    /// No launch takes more arguments than this.
    pub const MOST: usize = 24;

    /// None yet.
    #[must_use]
    pub const fn new() -> Self {
        Args {
            values: [0; Args::MOST],
            sizes: [0; Args::MOST],
            count: 0,
        }
    }

    /// One more. A kernel's parameter has exactly this type: write `1_u64` where it takes 64 bits.
    #[must_use]
    pub fn with<T: KernelArg>(mut self, value: T) -> Self {
        // An argument too many is counted, and refused by the launch.
        if let (Some(slot), Some(size)) = (
            self.values.get_mut(self.count),
            self.sizes.get_mut(self.count),
        ) {
            // CUDA knows little-endian hosts only, where a value's bytes come first in the slot.
            *slot = value.bits();
            *size = size_of::<T>() as u8;
        }
        self.count += 1;
        self
    }
}

impl Default for Args {
    fn default() -> Self {
        Args::new()
    }
}

/// A kernel, ready to be launched.
pub struct Function {
    module: Module,
    raw: Raw,
    threads: u32,
    parameters: Option<Vec<usize>>,
}

// SAFETY: a CUfunction may be used from any thread, also from several at once (CUDA's manual).
unsafe impl Send for Function {}
// SAFETY: as above.
unsafe impl Sync for Function {}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Function")
            .field("module", &self.module)
            .field("threads", &self.threads)
            .finish_non_exhaustive()
    }
}

impl Function {
    /// The most threads that a block of it may have on this GPU.
    #[must_use]
    pub fn max_threads(&self) -> u32 {
        self.threads
    }

    /// Queues the kernel on a stream. Where the driver tells the parameters' number and sizes, other
    /// arguments are refused.
    ///
    /// # Safety
    ///
    /// The arguments are those that the kernel declares; whatever memory it touches stays allocated
    /// and mapped for the GPU until it is done, and nothing else accesses that memory in a way that
    /// races with it.
    #[doc(alias = "cuLaunchKernel")]
    pub unsafe fn launch(&self, stream: &Stream, shape: &Launch, arguments: &Args) -> Result<()> {
        self.check(stream, arguments)?;
        let mut values = arguments.values;
        let mut pointers = [ptr::null_mut::<c_void>(); Args::MOST];
        for (pointer, value) in pointers.iter_mut().zip(&mut values) {
            *pointer = (&raw mut *value).cast();
        }
        let pointers = pointers.as_mut_ptr();
        let ([gx, gy, gz], [bx, by, bz]) = (shape.grid, shape.block);
        let (shared, on) = (shape.shared_bytes, stream.as_raw());
        let _current = self.module.0.context.enter()?;
        if shape.cooperative {
            // SAFETY: function and stream are alive; the arguments live during the call, and the
            // caller answers for them and for what the kernel does.
            unsafe {
                call_optional!(
                    self,
                    cuLaunchCooperativeKernel(
                        self.raw, gx, gy, gz, bx, by, bz, shared, on, pointers
                    )
                )
            }
        } else {
            let none = ptr::null_mut();
            // SAFETY: as above.
            unsafe {
                call!(
                    self,
                    cuLaunchKernel(self.raw, gx, gy, gz, bx, by, bz, shared, on, pointers, none)
                )
            }
        }
    }

    fn check(&self, stream: &Stream, arguments: &Args) -> Result<()> {
        if stream.context() != &self.module.0.context {
            return Err(bad_launch("the stream is of another context".into()));
        }
        let count = arguments.count;
        let Some(sizes) = arguments.sizes.get(..count) else {
            return Err(bad_launch(format!(
                "{count} arguments, {} at the most",
                Args::MOST
            )));
        };
        if let Some(wanted) = &self.parameters
            && !sizes
                .iter()
                .map(|size| usize::from(*size))
                .eq(wanted.iter().copied())
        {
            return Err(bad_launch(format!(
                "the arguments have {sizes:?} bytes, the kernel's parameters {wanted:?}"
            )));
        }
        Ok(())
    }

    fn driver(&self) -> &'static Driver {
        self.module.0.context.driver()
    }

    fn ordinal(&self) -> usize {
        self.module.0.context.ordinal()
    }
}

fn bad_launch(why: String) -> Error {
    Error::Invalid {
        what: "launching a kernel",
        why,
    }
}
