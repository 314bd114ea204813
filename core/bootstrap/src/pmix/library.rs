//! The functions and structures of libpmix that are used here, and the only unsafe code of PMIx.
//!
//! The layouts are those of the PMIx standard, versions 3 to 5, which share the library's name
//! `libpmix.so.2`.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::{offset_of, size_of};
use std::ptr;

use crate::log;
use crate::process::exit_now;

/// `PMIX_RANK_WILDCARD`: all of a job.
const WILDCARD: u32 = u32::MAX - 1;
/// `PMIX_GLOBAL`: for PEs of this host and of others.
const GLOBAL: u8 = 3;
/// Codes of `pmix_data_type_t`.
const BOOL: u16 = 1;
const STRING: u16 = 3;
const UINT32: u16 = 14;
/// `PMIX_JOB_SIZE`.
const JOB_SIZE: &CStr = c"pmix.job.size";
/// `PMIX_LOCAL_SIZE`: how many of the job's PEs are on this host.
const LOCAL_SIZE: &CStr = c"pmix.local.size";
/// `PMIX_OPTIONAL`: nothing is asked of others that is not known here.
const OPTIONAL: &[u8] = b"pmix.optional";
/// `PMIX_COLLECT_DATA`: a fence brings along what was put.
const COLLECT_DATA: &[u8] = b"pmix.collect";

/// `PMIX_ERR_LOST_CONNECTION` and, before version 4, `PMIX_ERR_LOST_CONNECTION_TO_SERVER`.
static LOST_CONNECTION: [c_int; 2] = [-61, -101];

/// `pmix_proc_t`
#[repr(C)]
#[derive(Clone, Copy)]
struct Process {
    namespace: [c_char; 256],
    rank: u32,
}

/// The members of `pmix_value_t`'s union that are used here.
#[repr(C)]
#[derive(Clone, Copy)]
union Data {
    flag: bool,
    number: u32,
    string: *mut c_char,
    whole: [u64; 3],
}

/// `pmix_value_t`
#[repr(C)]
#[derive(Clone, Copy)]
struct Value {
    kind: u16,
    data: Data,
}

/// `pmix_info_t`
#[repr(C)]
struct Info {
    key: [u8; 512],
    flags: u32,
    value: Value,
}

impl Info {
    /// A switch that is on.
    fn set(name: &[u8]) -> Info {
        let mut key = [0; 512];
        for (to, from) in key.iter_mut().zip(name) {
            *to = *from;
        }
        let mut data = Data { whole: [0; 3] };
        data.flag = true;
        Info {
            key,
            flags: 0,
            value: Value { kind: BOOL, data },
        }
    }
}

const _: () = {
    assert!(size_of::<Process>() == 260 && offset_of!(Process, rank) == 256);
    assert!(size_of::<Value>() == 32 && offset_of!(Value, data) == 8);
    assert!(size_of::<Info>() == 552 && offset_of!(Info, flags) == 512);
    assert!(offset_of!(Info, value) == 520);
};

type Init = unsafe extern "C" fn(*mut Process, *const Info, usize) -> c_int;
type Get = unsafe extern "C" fn(
    *const Process,
    *const c_char,
    *const Info,
    usize,
    *mut *mut Value,
) -> c_int;
type Put = unsafe extern "C" fn(u8, *const c_char, *mut Value) -> c_int;
type Commit = unsafe extern "C" fn() -> c_int;
type Fence = unsafe extern "C" fn(*const Process, usize, *const Info, usize) -> c_int;
type RegisterHandler = unsafe extern "C" fn(
    *const c_int,
    usize,
    *const Info,
    usize,
    Handler,
    Registered,
    *mut c_void,
) -> c_int;
/// `pmix_notification_fn_t`
type Handler = extern "C" fn(
    usize,
    c_int,
    *const Process,
    *const Info,
    usize,
    *const Info,
    usize,
    *const c_void,
    *mut c_void,
);
/// `pmix_hdlr_reg_cbfunc_t`
type Registered = extern "C" fn(c_int, usize, *mut c_void);
type Finalize = unsafe extern "C" fn(*const Info, usize) -> c_int;
type ErrorString = unsafe extern "C" fn(c_int) -> *const c_char;

/// The failure of a call: its name and the library's words.
#[derive(Debug)]
pub(super) struct Failure(String);

impl Failure {
    pub(super) fn new(words: &str) -> Failure {
        Failure(words.to_owned())
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

type Result<T> = std::result::Result<T, Failure>;

/// libpmix, loaded for as long as the process lives: its own threads may outlast any use.
#[derive(Debug)]
pub(super) struct Library {
    init: Init,
    get: Get,
    put: Put,
    commit: Commit,
    fence: Fence,
    register_handler: RegisterHandler,
    finalize: Finalize,
    error_string: ErrorString,
}

impl Library {
    pub(super) fn load() -> Result<Library> {
        let mut why = String::new();
        for name in [c"libpmix.so.2", c"libpmix.so"] {
            // SAFETY: the name is a C string. Loading runs the library's initializers, which is
            // intended.
            let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
            if !handle.is_null() {
                return Library::of(handle);
            }
            if why.is_empty() {
                why = last_error();
            }
        }
        Err(Failure(why))
    }

    fn of(handle: *mut c_void) -> Result<Library> {
        // SAFETY: each of these has, in every libpmix of this name, the type that its field has.
        unsafe {
            Ok(Library {
                init: function(handle, c"PMIx_Init")?,
                get: function(handle, c"PMIx_Get")?,
                put: function(handle, c"PMIx_Put")?,
                commit: function(handle, c"PMIx_Commit")?,
                fence: function(handle, c"PMIx_Fence")?,
                register_handler: function(handle, c"PMIx_Register_event_handler")?,
                finalize: function(handle, c"PMIx_Finalize")?,
                error_string: function(handle, c"PMIx_Error_string")?,
            })
        }
    }

    fn check(&self, call: &str, status: c_int) -> Result<()> {
        if status == 0 {
            return Ok(());
        }
        // SAFETY: takes any status and gives null or a C string that is never freed.
        let words = unsafe {
            let words = (self.error_string)(status);
            if words.is_null() {
                c"?"
            } else {
                CStr::from_ptr(words)
            }
        };
        let words = words.to_string_lossy();
        Err(Failure(format!("{call} gave {words} ({status})")))
    }
}

/// A function of the library.
///
/// # Safety
/// `handle` is a loaded library's, and `F` is the type of the C function of this name.
unsafe fn function<F: Copy>(handle: *mut c_void, name: &CStr) -> Result<F> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    // SAFETY: the caller's handle, and a C string.
    let symbol = unsafe { libc::dlsym(handle, name.as_ptr()) };
    if symbol.is_null() {
        return Err(Failure(last_error()));
    }
    // SAFETY: not null, and by the caller's word the function is of type `F`, a pointer's size.
    Ok(unsafe { std::mem::transmute_copy(&symbol) })
}

fn last_error() -> String {
    // SAFETY: gives null or a C string that holds until this thread's next dl call.
    unsafe {
        let words = libc::dlerror();
        if words.is_null() {
            "the loader gave no reason".to_owned()
        } else {
            CStr::from_ptr(words).to_string_lossy().into_owned()
        }
    }
}

/// An initialized client, finalized when dropped.
#[derive(Debug)]
pub(super) struct Client {
    library: Library,
    namespace: [c_char; 256],
    rank: u32,
}

impl Client {
    pub(super) fn init(library: Library) -> Result<Client> {
        let mut me = Process {
            namespace: [0; 256],
            rank: 0,
        };
        // SAFETY: `me` is writable and of the library's layout (checked above); no info is given.
        let status = unsafe { (library.init)(&raw mut me, ptr::null(), 0) };
        library.check("PMIx_Init", status)?;
        Ok(Client {
            library,
            namespace: me.namespace,
            rank: me.rank,
        })
    }

    /// Has this process end when the process manager is gone: nobody else ends it then.
    pub(super) fn end_with_manager(&self) {
        // SAFETY: the codes are read, at the latest before `registered` is called, and are static; no info is given. The
        // handlers have the library's types, and the first never returns. Before version 4 the function returns nothing, and
        // its result is not read. If the library refuses, the process ends as it did before.
        unsafe {
            (self.library.register_handler)(
                LOST_CONNECTION.as_ptr(),
                LOST_CONNECTION.len(),
                ptr::null(),
                0,
                lost,
                registered,
                ptr::null_mut(),
            );
        }
    }

    pub(super) fn rank(&self) -> u32 {
        self.rank
    }

    pub(super) fn job_size(&self) -> Result<u32> {
        let value = self.value(WILDCARD, JOB_SIZE, &[])?;
        if value.kind != UINT32 {
            return Err(Failure(format!("the job's size has type {}", value.kind)));
        }
        // SAFETY: the type says that this member is the one written.
        Ok(unsafe { value.data.number })
    }

    /// The number of the job's PEs on this host, if the process manager has told.
    pub(super) fn local_size(&self) -> Option<u32> {
        let value = self.value(WILDCARD, LOCAL_SIZE, &[Info::set(OPTIONAL)]);
        let value = value.ok().filter(|value| value.kind == UINT32)?;
        // SAFETY: the type says that this member is the one written.
        Some(unsafe { value.data.number })
    }

    /// Publishes a value of this rank. Others see it after a fence.
    pub(super) fn put(&self, key: &CStr, text: &CStr) -> Result<()> {
        let mut data = Data { whole: [0; 3] };
        data.string = text.as_ptr().cast_mut();
        let mut value = Value { kind: STRING, data };
        // SAFETY: key and value are valid C strings; the library copies both during the call and
        // writes to neither.
        let status = unsafe { (self.library.put)(GLOBAL, key.as_ptr(), &raw mut value) };
        self.library.check("PMIx_Put", status)?;
        // SAFETY: the client is initialized.
        let status = unsafe { (self.library.commit)() };
        self.library.check("PMIx_Commit", status)
    }

    /// Collective over the whole job.
    pub(super) fn fence(&self) -> Result<()> {
        let collect = Info::set(COLLECT_DATA);
        let all = self.process(WILDCARD);
        // SAFETY: one process and one info, both of the library's layout, read during the call.
        let status = unsafe { (self.library.fence)(&raw const all, 1, &raw const collect, 1) };
        self.library.check("PMIx_Fence", status)
    }

    /// The value that `rank` has put.
    pub(super) fn get(&self, rank: u32, key: &CStr) -> Result<String> {
        let value = self.value(rank, key, &[])?;
        if value.kind != STRING {
            return Err(Failure(format!("the value has type {}", value.kind)));
        }
        // SAFETY: the type says that this member is the one written.
        let text = unsafe { value.data.string };
        if text.is_null() {
            return Err(Failure::new("the value is no text"));
        }
        // SAFETY: a C string of the library's that is never freed.
        let text = unsafe { CStr::from_ptr(text) };
        Ok(text.to_string_lossy().into_owned())
    }

    /// A value, of which the library's copy is left to it for good: some bytes, twice a session,
    /// and how to free them differs between its versions.
    fn value(&self, rank: u32, key: &CStr, how: &[Info]) -> Result<Value> {
        let of = self.process(rank);
        let mut found: *mut Value = ptr::null_mut();
        let (info, count) = (how.as_ptr(), how.len());
        // SAFETY: process, key and so many infos are read during the call; `found` is writable.
        let status =
            unsafe { (self.library.get)(&raw const of, key.as_ptr(), info, count, &raw mut found) };
        self.library.check("PMIx_Get", status)?;
        // SAFETY: after success null or a value that is now this process's.
        let value = unsafe { found.as_ref() };
        value
            .copied()
            .ok_or_else(|| Failure::new("PMIx_Get gave no value"))
    }

    fn process(&self, rank: u32) -> Process {
        let namespace = self.namespace;
        Process { namespace, rank }
    }
}

extern "C" fn registered(_: c_int, _: usize, _: *mut c_void) {}

/// Ends the process, whose process manager is gone without this process's word: with mpirun the job has ended. Called by the
/// library's own thread.
extern "C" fn lost(
    _: usize,
    _: c_int,
    _: *const Process,
    _: *const Info,
    _: usize,
    _: *const Info,
    _: usize,
    _: *const c_void,
    _: *mut c_void,
) {
    log::say_at_once("the process manager (mpirun, srun) has ended; so does this PE");
    exit_now(1)
}

impl Drop for Client {
    fn drop(&mut self) {
        // SAFETY: initialized, and this is its only end. Of a failure nobody is left to hear.
        unsafe { (self.library.finalize)(ptr::null(), 0) };
    }
}
