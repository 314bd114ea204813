//! Functions of the program that a stream calls.

use std::ffi::c_void;
use std::sync::Arc;

use crate::call::Outcome;
use crate::code::Code;
use crate::context::current;
use crate::driver::IN_HOST_FUNCTION;
use crate::race;
use crate::stream::{Work, stream};

/// The program's pointer, handed back to it.
#[derive(Clone, Copy)]
struct Parcel(*mut c_void);

// SAFETY: never dereferenced here; the caller of the driver guarantees that its function may get it
// on another thread.
unsafe impl Send for Parcel {}
// SAFETY: as above.
unsafe impl Sync for Parcel {}

impl Parcel {
    fn open(&self) -> *mut c_void {
        self.0
    }
}

fn call(function: impl FnOnce()) {
    race::host_waited(&race::piece_clock());
    IN_HOST_FUNCTION.set(true);
    function();
    IN_HOST_FUNCTION.set(false);
    race::piece_waited(&race::host());
}

/// `CUDA_HOST_NODE_PARAMS`: a function of the program that a graph calls.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct HostNode {
    function: Option<unsafe extern "C" fn(*mut c_void)>,
    data: *mut c_void,
}

impl HostNode {
    /// The call as work of a graph, or of a stream.
    pub(crate) fn work(self) -> Outcome<Work> {
        let function = self.function.ok_or(Code::INVALID_VALUE)?;
        let data = Parcel(self.data);
        Ok(Arc::new(move |_| {
            // SAFETY: the caller of the driver vouches for the function and its data.
            call(|| unsafe { function(data.open()) });
            Ok(())
        }))
    }
}

driver_calls! {
    /// A stream calls a function, which must not call the driver.
    fn cuLaunchHostFunc(
        handle: u64,
        function: Option<unsafe extern "C" fn(*mut c_void)>,
        data: *mut c_void,
    ) {
        current()?;
        let work = HostNode { function, data }.work()?;
        stream(handle)?.give(work)?;
        Ok(())
    }

    /// The older form, which also passes the stream's status to the function.
    fn cuStreamAddCallback(
        handle: u64,
        function: Option<unsafe extern "C" fn(u64, Code, *mut c_void)>,
        data: *mut c_void,
        flags: u32,
    ) {
        current()?;
        let function = function.ok_or(Code::INVALID_VALUE)?;
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let data = Parcel(data);
        let stream = stream(handle)?;
        // The older form cannot be captured.
        stream.refuse_while_capturing()?;
        stream.give(Arc::new(move |_| {
            // SAFETY: as in `cuLaunchHostFunc`.
            call(|| unsafe { function(handle, Code::SUCCESS, data.open()) });
            Ok(())
        }))?;
        Ok(())
    }
}
