//! The handles that travel as bytes.

use crate::segment::Handles;
use crate::vmm::HANDLE_BYTES;

/// In front: which handles follow.
const FABRIC: u8 = 1;
const IPC: u8 = 2;
/// Behind them, to the end: why there is none.
const REFUSED: u8 = 4;

/// By what another process maps an extent when no descriptor can be passed to it: those of its
/// [`Handles`] that are plain bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// For a process of any host of the NVLink domain.
    pub fabric: Option<[u8; HANDLE_BYTES]>,
    /// For another process of this host (not for this one), legacy IPC.
    pub ipc: Option<[u8; HANDLE_BYTES]>,
    /// Why there is neither of them, nor a descriptor: [`Handles::refused`].
    pub refused: Option<String>,
}

impl Names {
    /// Those of an extent.
    #[must_use]
    pub fn of(handles: &Handles) -> Names {
        Names {
            fabric: handles.fabric,
            ipc: handles.ipc,
            refused: handles.refused.clone(),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.fabric.is_none() && self.ipc.is_none()
    }

    /// As bytes, for [`from_bytes`](Self::from_bytes).
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0];
        for (flag, handle) in [(FABRIC, &self.fabric), (IPC, &self.ipc)] {
            if let Some(handle) = handle {
                bytes[0] |= flag;
                bytes.extend(handle);
            }
        }
        if let Some(why) = &self.refused {
            bytes[0] |= REFUSED;
            bytes.extend(why.as_bytes());
        }
        bytes
    }

    /// Reads the bytes of [`to_bytes`](Self::to_bytes); none for any others.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Names> {
        let (&flags, mut rest) = bytes.split_first()?;
        if flags & !(FABRIC | IPC | REFUSED) != 0 {
            return None;
        }
        let mut names = Names::default();
        for (flag, handle) in [(FABRIC, &mut names.fabric), (IPC, &mut names.ipc)] {
            if flags & flag != 0 {
                let (first, others) = rest.split_first_chunk()?;
                (*handle, rest) = (Some(*first), others);
            }
        }
        if flags & REFUSED != 0 {
            names.refused = Some(std::str::from_utf8(rest).ok()?.to_owned());
            return Some(names);
        }
        rest.is_empty().then_some(names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_nothing_else() {
        let (one, two) = ([1; HANDLE_BYTES], [2; HANDLE_BYTES]);
        for fabric in [None, Some(one)] {
            for ipc in [None, Some(two)] {
                let names = Names {
                    fabric,
                    ipc,
                    refused: None,
                };
                let bytes = names.to_bytes();
                assert_eq!(names.is_empty(), bytes.len() == 1);
                assert_eq!(Names::from_bytes(&bytes), Some(names));
                for cut in 0..bytes.len() {
                    assert_eq!(Names::from_bytes(&bytes[..cut]), None);
                }
                assert_eq!(Names::from_bytes(&[&bytes[..], &[0]].concat()), None);
            }
        }
        assert_eq!(Names::from_bytes(&[8]), None);
    }

    #[test]
    fn why_there_are_none_is_read_as_it_was_written() {
        let names = Names {
            refused: Some("the driver says no".into()),
            ..Names::default()
        };
        assert!(names.is_empty());
        let bytes = names.to_bytes();
        assert_eq!(Names::from_bytes(&bytes), Some(names));
        assert_eq!(Names::from_bytes(&[REFUSED, 0xff]), None);
    }
}
