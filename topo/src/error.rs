//! Errors of the description of a machine.

use std::path::PathBuf;

/// The result of a call of this package.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why the machine could not be described. Each says what, where, and what would mend it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file of the system exists but could not be read.
    #[error("cannot read {}: {source}; check that /proc and /sys are mounted and readable", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// A file of the system that nothing can stand in for is not there.
    #[error("{} is missing; mount /proc and /sys in this container or chroot", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// A file of the system holds something that it should not.
    #[error("{}: {why}; the kernel does not write this: is something else mounted there?", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The content found, and the one expected.
        why: String,
    },
    /// A list of CPUs does not parse.
    #[error("{why}; write CPUs as in 0-3,8")]
    CpuList {
        /// The content found.
        why: String,
    },
    /// Text that is not hwloc's XML, or describes no host.
    #[error("the topology's XML makes no sense: {why}; write it with `lstopo file.xml` of hwloc 2")]
    Xml {
        /// The content found, and its line.
        why: String,
    },
    /// A file that was to hold hwloc's XML could not be read, or is no plain file.
    #[error("cannot read {}: {source}; name a file that `lstopo file.xml` has written", path.display())]
    XmlFile {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// hwloc's XML of another version.
    #[error(
        "the topology's XML is of version {found}, and version 2 is understood; write it with `lstopo file.xml` of hwloc 2"
    )]
    XmlVersion {
        /// The version of the file; 1 if it has none.
        found: String,
    },
    /// Text that is no PCI address.
    #[error("{found} is no PCI address; write it as in 0000:3b:00.0")]
    PciAddress {
        /// The content found.
        found: String,
    },
    /// The system names no CPU that is online.
    #[error("{} names no CPU that is online", path.display())]
    NoCpus {
        /// The file.
        path: PathBuf,
    },
    /// The set of CPUs that the calling thread may run on could not be had.
    #[error("cannot ask which CPUs this thread may run on: {source}")]
    Affinity {
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// hwloc failed, or describes another machine.
    #[error("hwloc: {why}; without the feature `hwloc`, or by Machine::from_sysfs, sysfs is read")]
    Hwloc {
        /// The reason, in words.
        why: String,
    },
}

/// `text` in quotes, cut to a length that fits a message.
pub(crate) fn quoted(text: &str) -> String {
    const LONGEST: usize = 48;
    let mut start: String = text.chars().take(LONGEST).collect();
    if start.len() < text.len() {
        start.push('…');
    }
    format!("{start:?}")
}
