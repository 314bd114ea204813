//! The probe for usable GPUs.

use std::fmt;

/// Whether GPUs can be used here, for `oxshmem info` and for choosing routes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Probe {
    /// The driver is there.
    Ready {
        /// The library that was loaded, as it was named.
        library: String,
        /// The newest CUDA that the driver supports, as "12.8".
        version: String,
        /// How many GPUs this process sees.
        devices: usize,
    },
    /// It is not usable.
    Unavailable {
        /// The reason, and what would mend it.
        why: String,
    },
}

impl fmt::Display for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Probe::Ready {
                library,
                version,
                devices,
            } => write!(f, "CUDA {version} by {library}, GPUs: {devices}"),
            Probe::Unavailable { why } => f.write_str(why),
        }
    }
}

/// Looks for the driver. Cheap after the first call in a process.
#[must_use]
pub fn probe() -> Probe {
    let found = crate::driver::Driver::get()
        .and_then(|driver| Ok((driver, crate::device::devices()?.len())));
    match found {
        Ok((driver, devices)) => Probe::Ready {
            library: driver.library().to_owned(),
            version: driver.version().to_string(),
            devices,
        },
        Err(error) => Probe::Unavailable {
            why: error.to_string(),
        },
    }
}
