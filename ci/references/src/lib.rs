//! Declarations of system libraries: how they are made from the headers. The tests compare it with other
//! bindings of them. Empty without the feature `references`, whose build takes libraries and tools.

#[cfg(feature = "references")]
mod bindings;
#[cfg(feature = "references")]
mod libfabric;
#[cfg(feature = "references")]
mod verbs;

#[cfg(feature = "references")]
pub use libfabric::{FABRIC_CHECKED_IN, FABRIC_FUNCTIONS, libfabric};
#[cfg(feature = "references")]
pub use verbs::{CHECKED_IN, FUNCTIONS, verbs};
