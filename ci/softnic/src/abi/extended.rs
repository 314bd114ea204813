//! The constant of infiniband/verbs.h that marks an extended context.

use std::ffi::c_void;

/// `__VERBS_ABI_IS_EXTENDED`.
pub(crate) const EXTENDED: *mut c_void = std::ptr::without_provenance_mut(usize::MAX);
