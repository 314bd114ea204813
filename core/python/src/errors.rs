//! Exceptions of failures.
//!
//! The classes are those of the Python module `oxshmem.errors`, one for each variant of [`oxshmem::Error`]; an exception's attributes are the
//! variant's fields.

use oxshmem::Error;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// A call that failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The library's error.
    Core(Error),
    /// An exception that Python has raised meanwhile, such as `KeyboardInterrupt`.
    Python(PyErr),
    /// The world has ended, or was left.
    Ended,
    /// A process that a PE has forked.
    Forked,
    /// An argument that makes no sense: the call, and words.
    Argument(&'static str, String),
}

/// The result of a call.
pub(crate) type Done<R = ()> = Result<R, Failure>;

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Core(error)
    }
}

impl From<PyErr> for Failure {
    fn from(error: PyErr) -> Self {
        Failure::Python(error)
    }
}

/// The value of an attribute.
enum Field {
    Number(u64),
    Seconds(f64),
    Text(String),
}

impl From<&u64> for Field {
    fn from(value: &u64) -> Self {
        Field::Number(*value)
    }
}

impl From<&usize> for Field {
    fn from(value: &usize) -> Self {
        Field::Number(*value as u64)
    }
}

impl From<&&str> for Field {
    fn from(value: &&str) -> Self {
        Field::Text((*value).into())
    }
}

impl From<&String> for Field {
    fn from(value: &String) -> Self {
        Field::Text(value.clone())
    }
}

impl From<&std::time::Duration> for Field {
    fn from(value: &std::time::Duration) -> Self {
        Field::Seconds(value.as_secs_f64())
    }
}

/// The class of an error and the attributes.
fn parts(error: &Error) -> (&'static str, Vec<(&'static str, Field)>) {
    macro_rules! parts {
        ($($variant:ident $class:literal { $($field:ident),* };)*) => {
            match error {
                $(Error::$variant { $($field),* } => (
                    $class,
                    vec![$((stringify!($field), Field::from($field))),*],
                ),)*
                Error::AlreadyJoined => ("AlreadyJoined", Vec::new()),
                Error::Bootstrap(_) => ("BootstrapError", Vec::new()),
                Error::Heap(_) => ("HeapError", Vec::new()),
                Error::Transport(_) => ("TransportError", Vec::new()),
                _ => ("Error", Vec::new()),
            }
        };
    }
    parts! {
        NoSuchPe "NoSuchPe" { call, pe, size };
        OutOfRange "OutOfRange" { call, start, end, len };
        BufferTooSmall "BufferTooSmall" { call, len, needed };
        GpuMemory "GpuMemory" { call, offset };
        Gpu "GpuError" { call, why };
        Deadlock "Deadlock" { call, me, whom, what };
        Argument "ArgumentError" { call, what };
        Foreign "Foreign" { call };
        Stale "Stale" { call, offset };
        NotABlock "NotABlock" { call };
        Misaligned "Misaligned" { call, offset, align };
        Conflict "Conflict" { call, what };
        CollectiveMismatch "CollectiveMismatch" { call, detail };
        OutOfMemory "OutOfMemory" { call, bytes, limit, why };
        FailedElsewhere "FailedElsewhere" { call, pe, why };
        TooManyTeams "TooManyTeams" { call, limit };
        CollectivesEnded "CollectivesEnded" { call, why };
        PeerLost "PeerLost" { call, pe };
        Timeout "Timeout" { call, me, whom, what, waited, limit };
        Unreachable "Unreachable" { call, from, pe, why };
        Unsupported "Unsupported" { call, transport, pe, what };
        LaneFailed "LaneFailed" { call, transport, why };
        Config "ConfigError" { name, value, why };
        Disagreement "Disagreement" { a, b, what };
    }
}

/// An exception of a class of `oxshmem.errors`.
fn exception(py: Python<'_>, class: &str, message: &str, fields: Vec<(&str, Field)>) -> PyErr {
    let make = || -> PyResult<PyErr> {
        let given = PyDict::new(py);
        for (name, field) in fields {
            match field {
                Field::Number(value) => given.set_item(name, value)?,
                Field::Seconds(value) => given.set_item(name, value)?,
                Field::Text(value) => given.set_item(name, value)?,
            }
        }
        let class = py.import("oxshmem.errors")?.getattr(class)?;
        Ok(PyErr::from_value(class.call((message,), Some(&given))?))
    };
    // Without its module the message is what is left.
    make().unwrap_or_else(|_| PyRuntimeError::new_err(message.to_owned()))
}

impl Failure {
    /// Its words, for another PE.
    pub(crate) fn words(&self) -> String {
        match self {
            Failure::Core(error) => error.to_string(),
            Failure::Argument(call, what) => format!("{call}: {what}"),
            Failure::Python(error) => error.to_string(),
            Failure::Ended | Failure::Forked => "it has no world".into(),
        }
    }

    /// The exception.
    pub(crate) fn raise(self, py: Python<'_>) -> PyErr {
        match self {
            Failure::Python(error) => error,
            Failure::Core(error) => {
                let (class, fields) = parts(&error);
                exception(py, class, &error.to_string(), fields)
            }
            Failure::Ended => exception(
                py,
                "WorldEnded",
                "the world has ended: make calls before finalize(), or within its `with` block",
                Vec::new(),
            ),
            Failure::Forked => exception(
                py,
                "ForkedProcess",
                "this process was forked by a PE, and is none itself: make the calls in the PE, or start processes by \
                 multiprocessing.set_start_method(\"spawn\")",
                Vec::new(),
            ),
            Failure::Argument(call, what) => exception(
                py,
                "ArgumentError",
                &format!("{call}: {what}"),
                vec![("call", (&call).into()), ("what", (&what).into())],
            ),
        }
    }
}
