//! The CUDA driver, opened at run time.

use std::fmt;
use std::sync::OnceLock;

use libloading::os::unix::{Library as Handle, RTLD_GLOBAL, RTLD_LOCAL, RTLD_NOW};

use crate::error::{Error, Result};
use crate::table::{Code, Library, Table};

/// The environment variable that names another library than the machine's driver.
const LIBRARY: &str = "OXSHMEM_CUDA_LIBRARY";

/// A version of CUDA, as the driver tells the newest that it supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// 12 in 12.8.
    pub major: u32,
    /// 8 in 12.8.
    pub minor: u32,
}

impl Version {
    /// The oldest that oxshmem works with.
    pub const NEEDED: Version = Version {
        major: 12,
        minor: 0,
    };

    /// From the driver's number: 12080 is 12.8.
    pub(crate) fn from_driver(number: i32) -> Self {
        let number = u32::try_from(number).unwrap_or(0);
        Version {
            major: number / 1000,
            minor: number % 1000 / 10,
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// Calls that a driver may lack, by what they are for. That the calls are there does not say that a
/// GPU can do it: ask the [`Device`](crate::Device) too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Feature {
    /// Virtual memory: reserve, create, map, export.
    Vmm,
    /// Legacy inter-process handles.
    Ipc,
    /// Writing to and waiting for words in memory on a stream.
    StreamMemops,
    /// Asking a stream for its context.
    StreamContext,
    /// Streams of different priority.
    StreamPriority,
    /// Making a thread's calls indifferent to other threads' captures.
    CaptureMode,
    /// Capturing a stream into a graph, and running it.
    Graphs,
    /// Loading a kernel before its first launch by a call of its own.
    Preload,
    /// Asking a kernel for its parameters.
    ParameterInfo,
    /// Asking a library of kernels for a variable.
    Libraries,
    /// Kernels whose blocks all run at once.
    CooperativeLaunch,
    /// Descriptors of GPU memory for other devices.
    DmaBuf,
    /// Making a NIC's writes to GPU memory visible.
    FlushRdmaWrites,
    /// Making synchronous copies of an allocation synchronous in every case.
    SyncMemops,
}

/// The CUDA driver of this process, loaded and initialised.
pub struct Driver {
    table: Table,
    version: Version,
    library: String,
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver")
            .field("library", &self.library)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

impl Driver {
    /// The driver. The first call loads and initialises it (0.1 to 2 seconds on a machine with many
    /// GPUs); what that gave, an error too, every later call gives.
    #[doc(alias = "cuInit")]
    pub fn get() -> Result<&'static Driver> {
        static DRIVER: OnceLock<Result<Driver>> = OnceLock::new();
        DRIVER
            .get_or_init(Self::load)
            .as_ref()
            .map_err(Clone::clone)
    }

    fn load() -> Result<Self> {
        let library = open()?;
        let version = library.version()?;
        if version < Version::NEEDED {
            return Err(Error::TooOld {
                library: library.name,
                found: version,
                needed: Version::NEEDED,
            });
        }
        let table = Table::load(&library, version)?;
        let Library { handle, name } = library;
        // The driver has threads of its own and can't be unloaded.
        std::mem::forget(handle);
        // SAFETY: the flags must be zero, and are; the library is never unloaded.
        let code = unsafe { (table.cuInit)(0) };
        match code {
            Code::SUCCESS => Ok(Driver {
                table,
                version,
                library: name,
            }),
            Code::NO_DEVICE => Err(Error::NoDevice {
                why: why_no_device(std::env::var("CUDA_VISIBLE_DEVICES").ok().as_deref()),
            }),
            code => Err(Error::call("cuInit", code, Some(&table), None)),
        }
    }

    /// The newest CUDA that the driver supports.
    #[must_use]
    #[doc(alias = "cuDriverGetVersion")]
    pub fn version(&self) -> Version {
        self.version
    }

    /// The library, as it was named to the loader.
    #[must_use]
    pub fn library(&self) -> &str {
        &self.library
    }

    /// Whether the driver has the calls that a feature needs.
    #[must_use]
    pub fn has(&self, feature: Feature) -> bool {
        self.table.has(feature)
    }

    /// The driver's calls.
    pub(crate) fn table(&self) -> &Table {
        &self.table
    }
}

/// Opens the library that the environment names, or else the machine's.
fn open() -> Result<Library> {
    let named = std::env::var(LIBRARY).ok().filter(|name| !name.is_empty());
    let is_named = named.is_some();
    // A named one becomes visible to the loader under its SONAME, so that what users' cudarc opens
    // after it is the same.
    let (name, scope) = match named {
        Some(name) => (name, RTLD_GLOBAL),
        None => ("libcuda.so.1".to_owned(), RTLD_LOCAL),
    };
    if is_named && !name.starts_with('/') {
        return Err(Error::NoDriver {
            library: name,
            why: "that is no absolute path".to_owned(),
            named: true,
        });
    }
    // SAFETY: loading the CUDA driver runs its constructors, which need nothing of this process; a
    // library that the user names is the user's to trust, as LD_LIBRARY_PATH is.
    match unsafe { Handle::open(Some(&name), RTLD_NOW | scope) } {
        Ok(handle) => Ok(Library { handle, name }),
        Err(error) => Err(Error::NoDriver {
            library: name,
            why: words(&error),
            named: is_named,
        }),
    }
}

/// The loader's own words, which are in the source of libloading's error.
fn words(error: &libloading::Error) -> String {
    let mut text = error.to_string();
    if let Some(source) = std::error::Error::source(error) {
        text = source.to_string();
    }
    text
}

/// Why there may be no GPU, given CUDA_VISIBLE_DEVICES.
fn why_no_device(visible: Option<&str>) -> String {
    match visible {
        Some("") => "CUDA_VISIBLE_DEVICES is set and empty, which hides all: unset it".to_owned(),
        Some(list) => format!(
            "CUDA_VISIBLE_DEVICES={list} leaves none: the list ends at the first entry that is no \
             GPU of this machine (numbers from 0, or UUIDs as nvidia-smi -L shows them)"
        ),
        None => "is there one (lspci), does the container pass it through (as --gpus all), and is \
                 /dev/nvidiactl there to open?"
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_driver_s_number_is_a_version() {
        let version = Version::from_driver(12_080);
        assert_eq!((version.major, version.minor), (12, 8));
        assert_eq!(Version::from_driver(11_040).to_string(), "11.4");
        assert!(Version::from_driver(11_080) < Version::NEEDED);
        assert!(Version::from_driver(12_000) >= Version::NEEDED);
        assert!(Version::from_driver(-1) < Version::NEEDED);
    }

    #[test]
    fn a_list_that_hides_every_gpu_is_named() {
        assert!(why_no_device(Some("")).contains("unset"));
        assert!(why_no_device(Some("7,1")).contains("CUDA_VISIBLE_DEVICES=7,1"));
        assert!(why_no_device(None).contains("container"));
    }
}
