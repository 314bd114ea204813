//! The machine that routes are chosen by, and the devices that were chosen.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use oxshmem_topo::Topology;

use crate::{Error, Result, World, config};

const VARIABLE: &str = "OXSHMEM_TOPOLOGY";

/// More than a description of any host.
const LARGEST_XML: u64 = 64 << 20;

/// The machine that `OXSHMEM_TOPOLOGY` describes; none where it is not set, and the running machine
/// counts.
///
/// # Errors
///
/// [`Error::Config`] if the file cannot be read or is no description of a machine.
pub fn described_topology() -> Result<Option<Topology>> {
    let file = config::environment(VARIABLE);
    file.map(|file| read(Path::new(&file))).transpose()
}

/// The machine that this file of hwloc's XML describes.
pub(crate) fn read(file: &Path) -> Result<Topology> {
    let refuse = |why: String| Error::Config {
        name: VARIABLE.into(),
        value: file.display().to_string(),
        why,
    };
    let mut text = String::new();
    let read =
        File::open(file).and_then(|file| file.take(LARGEST_XML + 1).read_to_string(&mut text));
    match read {
        Err(error) => Err(refuse(format!(
            "{error}; name a file that lstopo has written"
        ))),
        Ok(length) if length as u64 > LARGEST_XML => Err(refuse(format!(
            "longer than {LARGEST_XML} bytes; name a file that lstopo has written"
        ))),
        Ok(_) => Topology::from_xml(&text).map_err(|error| refuse(error.to_string())),
    }
}

/// A device on which this PE has opened a transport.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenDevice {
    /// The transport.
    pub transport: &'static str,
    /// The device, such as `mlx5_0:1`.
    pub device: String,
    /// Why it is that one, where there were several.
    pub choice: Option<String>,
}

impl World {
    /// The device of each transport that this PE has open, whether or not a route takes it.
    #[must_use]
    pub fn devices(&self) -> Vec<OpenDevice> {
        let opened = self.inner.routes.opened.iter();
        opened
            .map(|named| OpenDevice {
                transport: named.name,
                device: named.device.to_string(),
                choice: named.choice.as_deref().map(str::to_owned),
            })
            .collect()
    }
}
