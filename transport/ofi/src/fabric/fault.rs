//! Error numbers of libfabric, and the meaning of some.

use std::fmt;

use oxshmem_transport::Error;

use super::sys;

/// The error of an operation that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub code: i32,
    /// The provider's own number; 0 if it has none.
    pub of_provider: i32,
}

/// A positive error number with its words: the source of an [`Error::Os`].
#[derive(Debug)]
pub(super) struct Code {
    pub code: i32,
    pub words: String,
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}

impl std::error::Error for Code {}

/// The number of an error that a call of libfabric gave.
pub(crate) fn code_of(error: &Error) -> Option<i32> {
    let Error::Os { source, .. } = error else {
        return None;
    };
    let code = source.get_ref()?.downcast_ref::<Code>()?;
    Some(code.code)
}

/// Whether an error says that a connection has broken, as all connections with a process break when it dies: by itself, or
/// as the end that a provider gives to the operations of a connection that it closes. Every other error may come from a PE
/// that lives: a wrong key, a message that is too long, memory that is short.
pub(crate) fn is_loss(code: i32) -> bool {
    const LOSSES: &[u32] = &[
        libc::EPIPE as u32,
        sys::FI_EIO,
        sys::FI_ECANCELED,
        sys::FI_ENETDOWN,
        sys::FI_ENETUNREACH,
        sys::FI_ECONNABORTED,
        sys::FI_ECONNRESET,
        sys::FI_ENOTCONN,
        sys::FI_ESHUTDOWN,
        sys::FI_ETIMEDOUT,
        sys::FI_ECONNREFUSED,
        sys::FI_EHOSTDOWN,
        sys::FI_EHOSTUNREACH,
    ];
    u32::try_from(code).is_ok_and(|code| LOSSES.contains(&code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_found_again_in_the_error_that_was_made_of_it() {
        let source = std::io::Error::other(Code {
            code: 104,
            words: "reset".into(),
        });
        let error = Error::Os {
            transport: "ofi",
            call: "fi_send".into(),
            source,
        };
        assert_eq!(code_of(&error), Some(104));
        assert!(error.to_string().contains("fi_send: reset"), "{error}");
        assert_eq!(code_of(&Error::Closed { transport: "ofi" }), None);
    }

    #[test]
    fn only_broken_connections_are_signs_of_death() {
        for code in [5, 104, 107, 108, 110, 113, 125] {
            assert!(is_loss(code), "{code}");
        }
        let others = [
            sys::FI_ENOMEM,
            sys::FI_EMSGSIZE,
            sys::FI_EKEYREJECTED,
            sys::FI_EACCES,
            sys::FI_EINVAL,
        ];
        for code in others {
            assert!(!is_loss(code as i32), "{code}");
        }
        assert!(!is_loss(-104));
    }
}
