//! libibverbs, opened at run time by its name, through the loader's search path.

use std::ffi::c_int;
use std::ops::Deref;
use std::sync::OnceLock;

use libloading::os::unix::{Library as Handle, RTLD_LOCAL, RTLD_NOW};
use oxshmem_transport::{Error, Result};

use super::ece::Ece;
use super::sys::{Functions, ibv_fork_status, ibv_mr, ibv_pd, ibv_qp, ibv_wr_opcode};
use crate::limits::NAME;

const FILE: &str = "libibverbs.so.1";

type IsForkInitialized = unsafe extern "C" fn() -> ibv_fork_status::Type;
type RegDmabufMr = unsafe extern "C" fn(*mut ibv_pd, u64, usize, u64, c_int, c_int) -> *mut ibv_mr;

/// `ibv_query_ece` and `ibv_set_ece`.
type AccessEce = unsafe extern "C" fn(*mut ibv_qp, *mut Ece) -> c_int;

type QueryQpDataInOrder = unsafe extern "C" fn(*mut ibv_qp, ibv_wr_opcode::Type, u32) -> c_int;

/// The functions of libibverbs. Each that was found in version `IBVERBS_1.0` too is the newer one,
/// which the loader gives where no version is asked for.
pub(crate) struct Library {
    functions: Functions,
    /// Since rdma-core 35.
    is_fork_initialized: Option<IsForkInitialized>,
    /// Since rdma-core 34.
    pub(super) reg_dmabuf_mr: Option<RegDmabufMr>,
    /// Since rdma-core 41.
    pub(super) query_qp_data_in_order: Option<QueryQpDataInOrder>,
    /// Since rdma-core 30, as is the next.
    pub(super) query_ece: Option<AccessEce>,
    pub(super) set_ece: Option<AccessEce>,
}

impl std::fmt::Debug for Library {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(FILE)
    }
}

impl Deref for Library {
    type Target = Functions;

    fn deref(&self) -> &Functions {
        &self.functions
    }
}

impl Library {
    /// The library, opened at the first call; it stays open as long as the process lives.
    pub(super) fn get() -> Result<&'static Library> {
        static LIBRARY: OnceLock<std::result::Result<Library, String>> = OnceLock::new();
        let library = LIBRARY.get_or_init(|| Library::open(FILE));
        library.as_ref().map_err(|why| Error::Unavailable {
            transport: NAME,
            why: why.clone(),
        })
    }

    fn open(file: &str) -> std::result::Result<Library, String> {
        // SAFETY: the initializers of libibverbs have no precondition.
        let handle = unsafe { Handle::open(Some(file), RTLD_NOW | RTLD_LOCAL) };
        let handle = handle.map_err(|error| {
            format!(
                "{file} cannot be opened ({error}); install rdma-core (Debian: libibverbs1 and \
                 ibverbs-providers)"
            )
        })?;
        // SAFETY: infiniband/verbs.h declares it so.
        let is_fork_initialized = unsafe { handle.get(b"ibv_is_fork_initialized\0") };
        let is_fork_initialized = is_fork_initialized.ok().map(|symbol| *symbol);
        // SAFETY: infiniband/verbs.h declares it so.
        let reg_dmabuf_mr = unsafe { handle.get(b"ibv_reg_dmabuf_mr\0") };
        let reg_dmabuf_mr = reg_dmabuf_mr.ok().map(|symbol| *symbol);
        // SAFETY: infiniband/verbs.h declares it so.
        let query_qp_data_in_order = unsafe { handle.get(b"ibv_query_qp_data_in_order\0") };
        let query_qp_data_in_order = query_qp_data_in_order.ok().map(|symbol| *symbol);
        // SAFETY: infiniband/verbs.h declares it so.
        let query_ece = unsafe { handle.get(b"ibv_query_ece\0") };
        let query_ece = query_ece.ok().map(|symbol| *symbol);
        // SAFETY: infiniband/verbs.h declares it so.
        let set_ece = unsafe { handle.get(b"ibv_set_ece\0") };
        let set_ece = set_ece.ok().map(|symbol| *symbol);
        // SAFETY: the types are generated from infiniband/verbs.h.
        let functions = unsafe { Functions::from_library(handle) }
            .map_err(|error| format!("{error}; install rdma-core 32 or newer"))?;
        Ok(Library {
            functions,
            is_fork_initialized,
            reg_dmabuf_mr,
            query_qp_data_in_order,
            query_ece,
            set_ece,
        })
    }

    /// Whether memory must be kept from children; libraries that do not say so need it.
    pub(super) fn fork_is_harmless(&self) -> bool {
        self.is_fork_initialized.is_some_and(|ask| {
            // SAFETY: no precondition.
            unsafe { ask() == ibv_fork_status::IBV_FORK_UNNEEDED }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_that_is_not_there_is_named_with_its_package() {
        let error = Library::open("libibverbs-of-nobody.so.1").unwrap_err();
        for word in ["libibverbs-of-nobody.so.1", "rdma-core"] {
            assert!(error.contains(word), "{error}");
        }
    }

    #[test]
    fn a_library_without_the_functions_is_refused_by_the_first_of_them() {
        let error = Library::open("libc.so.6").unwrap_err();
        for word in ["libc.so.6", "ibv_get_device_list", "rdma-core 32"] {
            assert!(error.contains(word), "{error}");
        }
    }
}
