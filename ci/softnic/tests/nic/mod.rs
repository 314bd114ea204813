//! The library, loaded as programs load it, and its objects in the form that tests need.
//!
//! Raw pointers and no `Drop`: a test ends by what it asks for, and the process's end frees the rest.

#![allow(dead_code, reason = "not every test program uses all")]

use std::ffi::{CString, c_char, c_int, c_void};
use std::mem::ManuallyDrop;
use std::path::PathBuf;
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

pub use softnic::abi::types::*;

/// The longest that a test waits: a call that hangs must not hang the tests.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub struct Nic {
    pub ibv: Functions,
    extra: libloading::os::unix::Library,
}

/// The software NIC, which cargo puts beside the tests, or the library that `SOFTNIC_LIBRARY` names.
pub fn library() -> PathBuf {
    if let Some(other) = std::env::var_os("SOFTNIC_LIBRARY") {
        return other.into();
    }
    let test = std::env::current_exe().expect("a test knows its own path");
    let found = test
        .ancestors()
        .skip(1)
        .take(2)
        .map(|folder| folder.join("libsoftnic.so"))
        .find(|path| path.exists());
    found.expect("cargo builds libsoftnic.so with the tests")
}

/// Loads the library, once, with these devices; the first caller's are those of the process.
pub fn nic(devices: &str) -> &'static Nic {
    static NIC: OnceLock<Nic> = OnceLock::new();
    NIC.get_or_init(|| {
        // SAFETY: under the lock of `get_or_init`, in which every test of the process waits; nobody reads the
        // environment meanwhile but the library, which is not loaded yet.
        unsafe {
            std::env::set_var("OXSHMEM_SOFTNIC", devices);
            std::env::set_var("OXSHMEM_SOFTNIC_TIME_SCALE", "0.2");
        }
        // SAFETY: the library's initializers have no precondition; its types are those declared.
        unsafe {
            Nic {
                ibv: Functions::new(library()).expect("libsoftnic.so has all calls"),
                extra: libloading::os::unix::Library::new(library()).expect("it was just opened"),
            }
        }
    })
}

impl Nic {
    /// A call of the library by its name.
    ///
    /// # Safety
    ///
    /// It has the type.
    pub unsafe fn call<T: Copy>(&self, name: &str) -> T {
        // SAFETY: the caller's promise.
        *unsafe { self.extra.get::<T>(name.as_bytes()) }.unwrap_or_else(|error| panic!("{error}"))
    }

    pub fn control(&self, command: &str) -> c_int {
        let command = CString::new(command).expect("no zero");
        // SAFETY: declared so; a C string.
        unsafe {
            self.call::<unsafe extern "C" fn(*const c_char) -> c_int>("softnic_control")(
                command.as_ptr(),
            )
        }
    }

    pub fn counter(&self, name: &str) -> u64 {
        let name = CString::new(name).expect("no zero");
        // SAFETY: declared so; a C string.
        unsafe {
            self.call::<unsafe extern "C" fn(*const c_char) -> u64>("softnic_counter")(
                name.as_ptr(),
            )
        }
    }

    /// Opens the first device whose name begins so.
    pub fn open(&self, name: &str) -> *mut ibv_context {
        let mut count = 0;
        // SAFETY: the list has `count` entries, whose names are C strings.
        unsafe {
            let list = self.ibv.ibv_get_device_list(&raw mut count);
            assert!(!list.is_null(), "{}", std::io::Error::last_os_error());
            let found = (0..count as usize).map(|at| *list.add(at)).find(|device| {
                let own = std::ffi::CStr::from_ptr(self.ibv.ibv_get_device_name(*device));
                own.to_string_lossy().starts_with(name)
            });
            let context = self
                .ibv
                .ibv_open_device(found.unwrap_or_else(|| panic!("no device {name}")));
            self.ibv.ibv_free_device_list(list);
            assert!(!context.is_null());
            context
        }
    }
}

/// One end: a context with a domain, a queue pair with queues of its own, and memory.
pub struct End {
    pub nic: &'static Nic,
    pub context: *mut ibv_context,
    pub domain: *mut ibv_pd,
    pub queue: *mut ibv_cq,
    pub pair: *mut ibv_qp,
    /// Never freed: NICs may write it after the test.
    pub memory: ManuallyDrop<Vec<u64>>,
    pub region: *mut ibv_mr,
    /// The same memory by a key with relaxed ordering, or null.
    pub relaxed: *mut ibv_mr,
}

/// The accesses of an end's memory.
pub const ALL: u32 = 15;
pub const RELAXED: u32 = 1 << 20;

#[derive(Clone, Copy)]
pub struct Shape {
    pub depth: u32,
    pub entries: c_int,
    pub inline: u32,
    pub access: u32,
    pub words: usize,
}

pub const SHAPE: Shape = Shape {
    depth: 64,
    entries: 256,
    inline: 32,
    access: ALL,
    words: 1 << 17,
};

pub fn init_attr(queue: *mut ibv_cq, depth: u32, inline: u32) -> ibv_qp_init_attr {
    ibv_qp_init_attr {
        qp_context: null_mut(),
        send_cq: queue,
        recv_cq: queue,
        srq: null_mut(),
        cap: ibv_qp_cap {
            max_send_wr: depth,
            max_recv_wr: 16,
            max_send_sge: 1,
            max_recv_sge: 1,
            max_inline_data: inline,
        },
        qp_type: ibv_qp_type::IBV_QPT_RC,
        sq_sig_all: 0,
    }
}

impl End {
    pub fn new(nic: &'static Nic, device: &str, shape: Shape) -> End {
        let context = nic.open(device);
        let mut memory = ManuallyDrop::new(vec![0u64; shape.words]);
        let (addr, len) = (memory.as_mut_ptr().cast::<c_void>(), 8 * shape.words);
        // SAFETY: all objects live; the memory stays as long as the process.
        unsafe {
            let domain = nic.ibv.ibv_alloc_pd(context);
            let queue = nic
                .ibv
                .ibv_create_cq(context, shape.entries, null_mut(), null_mut(), 0);
            assert!(!queue.is_null(), "{}", std::io::Error::last_os_error());
            let mut attr = init_attr(queue, shape.depth, shape.inline);
            let pair = nic.ibv.ibv_create_qp(domain, &raw mut attr);
            assert!(!pair.is_null(), "{}", std::io::Error::last_os_error());
            let register = |access| {
                nic.ibv
                    .ibv_reg_mr_iova2(domain, addr, len, addr.addr() as u64, access)
            };
            End {
                nic,
                context,
                domain,
                queue,
                pair,
                region: register(shape.access),
                relaxed: register(shape.access | RELAXED),
                memory,
            }
        }
    }

    pub fn number(&self) -> u32 {
        // SAFETY: the queue pair lives.
        unsafe { (*self.pair).qp_num }
    }

    pub fn rkey(&self) -> u32 {
        // SAFETY: the registration lives.
        unsafe { (*self.region).rkey }
    }

    pub fn relaxed_rkey(&self) -> u32 {
        // SAFETY: the registration lives.
        unsafe { (*self.relaxed).rkey }
    }

    pub fn addr(&self, word: usize) -> u64 {
        assert!(word < self.memory.len());
        (self.memory.as_ptr().addr() + 8 * word) as u64
    }

    pub fn load(&self, word: usize) -> u64 {
        // SAFETY: inside the memory, which NICs write meanwhile.
        unsafe { self.memory.as_ptr().add(word).read_volatile() }
    }

    pub fn store(&mut self, word: usize, value: u64) {
        // SAFETY: inside the memory.
        unsafe { self.memory.as_mut_ptr().add(word).write_volatile(value) };
    }

    /// The index, and the identifier of its first port that RoCE or InfiniBand would take; its LID.
    pub fn address(&self) -> (u8, [u8; 16], u16) {
        // SAFETY: integers only; entries and attributes are written.
        unsafe {
            let mut entries: Vec<ibv_gid_entry> = vec![std::mem::zeroed(); 64];
            let (context, size) = (self.context, size_of::<ibv_gid_entry>());
            let count =
                self.nic
                    .ibv
                    ._ibv_query_gid_table(context, entries.as_mut_ptr(), 64, 0, size);
            let last = entries[..count as usize]
                .iter()
                .rfind(|one| one.port_num == 1);
            let last = last.expect("a port has an address");
            let mut attr: ibv_port_attr = std::mem::zeroed();
            assert_eq!(
                self.nic
                    .ibv
                    .ibv_query_port(context, 1, (&raw mut attr).cast()),
                0
            );
            (last.gid_index as u8, last.gid.raw, attr.lid)
        }
    }

    pub fn modify(&self, change: impl FnOnce(&mut ibv_qp_attr), mask: u32) -> c_int {
        // SAFETY: integers only; the queue pair lives.
        unsafe {
            let mut attr: ibv_qp_attr = std::mem::zeroed();
            change(&mut attr);
            self.nic
                .ibv
                .ibv_modify_qp(self.pair, &raw mut attr, mask as c_int)
        }
    }

    /// Connects with a peer's queue pair; `timeout` and `retries` as verbs number them.
    pub fn connect(&self, to: &End, timeout: u8, retries: u8, receiver_retries: u8) {
        let (index, _, _) = self.address();
        self.connect_from(index, to, timeout, retries, receiver_retries);
    }

    /// The same from the address at this index of the table.
    pub fn connect_from(
        &self,
        index: u8,
        to: &End,
        timeout: u8,
        retries: u8,
        receiver_retries: u8,
    ) {
        let init = |attr: &mut ibv_qp_attr| {
            (attr.qp_state, attr.port_num, attr.qp_access_flags) =
                (ibv_qp_state::IBV_QPS_INIT, 1, 14);
        };
        let (_, gid, lid) = to.address();
        let receive = |attr: &mut ibv_qp_attr| {
            (attr.qp_state, attr.path_mtu) = (ibv_qp_state::IBV_QPS_RTR, 3);
            (attr.dest_qp_num, attr.rq_psn) = (to.number(), 7);
            (attr.max_dest_rd_atomic, attr.min_rnr_timer) = (4, 1);
            (
                attr.ah_attr.port_num,
                attr.ah_attr.dlid,
                attr.ah_attr.is_global,
            ) = (1, lid, 1);
            attr.ah_attr.grh.dgid = ibv_gid { raw: gid };
            (attr.ah_attr.grh.sgid_index, attr.ah_attr.grh.hop_limit) = (index, 64);
        };
        let send = |attr: &mut ibv_qp_attr| {
            (attr.qp_state, attr.sq_psn, attr.timeout) = (ibv_qp_state::IBV_QPS_RTS, 7, timeout);
            (attr.retry_cnt, attr.rnr_retry, attr.max_rd_atomic) = (retries, receiver_retries, 4);
        };
        assert_eq!(self.modify(init, 1 | 8 | 16 | 32), 0);
        assert_eq!(
            self.modify(receive, 1 | 128 | 256 | 4096 | 32768 | 131072 | 1048576),
            0
        );
        assert_eq!(self.modify(send, 1 | 512 | 1024 | 2048 | 8192 | 65536), 0);
    }

    pub fn try_post(&self, requests: &[Post]) -> (c_int, usize) {
        // SAFETY: integers and null pointers only.
        let mut all: Vec<(ibv_send_wr, ibv_sge)> = requests
            .iter()
            .map(|_| unsafe { std::mem::zeroed() })
            .collect();
        for at in (0..all.len()).rev() {
            let next = all
                .get_mut(at + 1)
                .map_or(null_mut(), |(request, _)| &raw mut *request);
            let (request, buffer) = &mut all[at];
            let post = &requests[at];
            // SAFETY: the registration lives.
            let lkey = unsafe { (*self.region).lkey };
            *buffer = ibv_sge {
                addr: self.addr(post.word),
                length: post.len,
                lkey: post.lkey.unwrap_or(lkey),
            };
            (request.wr_id, request.next, request.sg_list) = (post.id, next, &raw mut *buffer);
            (request.num_sge, request.opcode, request.send_flags) = (1, post.opcode, post.flags);
            request.__bindgen_anon_1.imm_data = post.immediate;
            request.wr.rdma.remote_addr = post.remote;
            request.wr.rdma.rkey = post.rkey;
            if matches!(post.opcode, 5 | 6) {
                request.wr.atomic.remote_addr = post.remote;
                request.wr.atomic.rkey = post.rkey;
                (request.wr.atomic.compare_add, request.wr.atomic.swap) =
                    (post.operands[0], post.operands[1]);
            }
        }
        let first = all
            .first_mut()
            .map_or(null_mut(), |(request, _)| &raw mut *request);
        let mut bad = null_mut();
        // SAFETY: the queue pair lives, the list is sound.
        let code =
            unsafe { ((*self.context).ops.post_send.unwrap())(self.pair, first, &raw mut bad) };
        let at = all
            .iter()
            .position(|(request, _)| std::ptr::eq(request, bad))
            .unwrap_or(all.len());
        (code, at)
    }

    pub fn post(&self, requests: &[Post]) {
        assert_eq!(self.try_post(requests), (0, requests.len()));
    }

    pub fn receive(&self, id: u64, word: usize, len: u32) -> c_int {
        // SAFETY: the registration lives; the list is sound.
        unsafe {
            let mut buffer = ibv_sge {
                addr: self.addr(word),
                length: len,
                lkey: (*self.region).lkey,
            };
            let mut request = ibv_recv_wr {
                wr_id: id,
                next: null_mut(),
                sg_list: &raw mut buffer,
                num_sge: 1,
            };
            let mut bad = null_mut();
            ((*self.context).ops.post_recv.unwrap())(self.pair, &raw mut request, &raw mut bad)
        }
    }

    /// The next completion, if there is one.
    pub fn poll(&self) -> Option<ibv_wc> {
        // SAFETY: integers only; one completion is written.
        unsafe {
            let mut wc: ibv_wc = std::mem::zeroed();
            let count = ((*self.context).ops.poll_cq.unwrap())(self.queue, 1, &raw mut wc);
            assert!(count >= 0, "the queue has overrun");
            (count == 1).then_some(wc)
        }
    }

    pub fn wait(&self) -> ibv_wc {
        let since = Instant::now();
        loop {
            if let Some(wc) = self.poll() {
                return wc;
            }
            assert!(since.elapsed() < PATIENCE, "no completion came");
            std::thread::yield_now();
        }
    }

    /// Waits for a completion that says success.
    pub fn succeed(&self, id: u64) -> ibv_wc {
        let wc = self.wait();
        assert_eq!((wc.wr_id, wc.status), (id, 0));
        wc
    }

    /// Waits for a completion that says this.
    pub fn fail(&self, id: u64, status: ibv_wc_status::Type) {
        let wc = self.wait();
        assert_eq!((wc.wr_id, wc.status), (id, status));
    }
}

/// A request of a test.
#[derive(Clone, Copy)]
pub struct Post {
    pub id: u64,
    pub opcode: u32,
    pub flags: u32,
    pub word: usize,
    pub len: u32,
    pub remote: u64,
    pub rkey: u32,
    pub operands: [u64; 2],
    pub immediate: u32,
    pub lkey: Option<u32>,
}

pub const SIGNALED: u32 = 2;

/// A signaled request of `len` bytes from or to word 0.
pub fn request(opcode: u32, to: &End, word: usize, len: u32) -> Post {
    Post {
        id: 1,
        opcode,
        flags: SIGNALED,
        word: 0,
        len,
        remote: to.addr(word),
        rkey: to.rkey(),
        operands: [0; 2],
        immediate: 0,
        lkey: None,
    }
}

pub const WRITE: u32 = 0;
pub const WRITE_IMM: u32 = 1;
pub const SEND: u32 = 2;
pub const SEND_IMM: u32 = 3;
pub const READ: u32 = 4;
pub const CAS: u32 = 5;
pub const ADD: u32 = 6;

/// Two connected ends on devices of these names.
pub fn pair(nic: &'static Nic, names: [&str; 2], shape: Shape) -> [End; 2] {
    let ends = names.map(|name| End::new(nic, name, shape));
    ends[0].connect(&ends[1], 10, 3, 3);
    ends[1].connect(&ends[0], 10, 3, 3);
    ends
}

/// Has keys refuse requests that they do not allow, each between new ends. The sender learns of it, and its next request is
/// flushed. `then` goes on with the ends and that next request.
pub fn refuse(ends: impl Fn() -> [End; 2], then: impl Fn(&End, &End, Post)) {
    for (opcode, word, len, spoil) in [
        (WRITE, 0, 8, 1),
        (READ, SHAPE.words - 1, 16, 0),
        (ADD, 0, 8, 1),
        (WRITE, SHAPE.words - 500, 8_000, 0),
    ] {
        let [one, other] = ends();
        let mut bad = request(opcode, &other, word, len);
        bad.rkey ^= spoil;
        let mut after = request(WRITE, &other, 0, 8);
        after.id = 2;
        one.post(&[bad, after]);
        one.fail(1, ibv_wc_status::IBV_WC_REM_ACCESS_ERR);
        one.fail(2, ibv_wc_status::IBV_WC_WR_FLUSH_ERR);
        then(&one, &other, after);
        assert_eq!(other.load(0), 0);
    }
}
