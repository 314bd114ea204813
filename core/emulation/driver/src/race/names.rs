//! Names of memory and of code that all processes of a job have in common.
//!
//! An address means something in one process alone. Bytes of a file that is mapped and shared, as a device's memory is, are named by the file
//! and the offset; other bytes by the process and the address; code by its image and the offset in it.

use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};

use super::objects;

/// Bits of an address, and of an offset in a file.
const ADDRESS: u32 = 47;
const OFFSET: u32 = 40;
/// The mark of a name by file.
const OF_FILE: usize = 1 << 63;
/// Bits of an offset in an image. The mark keeps names of code apart from the codes of places in none.
const IN_IMAGE: u32 = 32;
const IMAGE: usize = 1 << 62;

/// The device and inode number of a file.
pub(crate) type FileId = (u64, u64);

/// A part of a file that is mapped in this process.
#[derive(Clone, Copy, Debug)]
struct Part {
    length: usize,
    file: FileId,
    offset: usize,
}

/// Code that is loaded in this process.
#[derive(Clone, Copy, Debug)]
struct Code {
    length: usize,
    /// A hash of its bytes.
    content: u64,
}

static FILES: RwLock<BTreeMap<usize, Part>> = RwLock::new(BTreeMap::new());
static CODES: RwLock<BTreeMap<usize, Code>> = RwLock::new(BTreeMap::new());

fn below<T: Copy>(
    map: &RwLock<BTreeMap<usize, T>>,
    at: usize,
    length: impl Fn(&T) -> usize,
) -> Option<(usize, T)> {
    let map = map.read().unwrap_or_else(PoisonError::into_inner);
    let (start, found) = map.range(..=at).next_back()?;
    (at - start < length(found)).then_some((*start, *found))
}

/// The bytes from an address on, of so many, that lie before the next mapping.
fn next_mapped(at: usize, length: usize) -> usize {
    let files = FILES.read().unwrap_or_else(PoisonError::into_inner);
    let next = files.range(at..at.saturating_add(length)).next();
    next.map_or(length, |(start, _)| start - at)
}

/// Bytes of a file are mapped at an address.
pub(crate) fn mapped(at: usize, length: usize, file: FileId, offset: usize) {
    let part = Part {
        length,
        file,
        offset,
    };
    let mut files = FILES.write().unwrap_or_else(PoisonError::into_inner);
    files.insert(at, part);
}

/// They are mapped no more.
pub(crate) fn unmapped(at: usize) {
    let mut files = FILES.write().unwrap_or_else(PoisonError::into_inner);
    files.remove(&at);
}

/// The file that the program has mapped at an address, with its offset there, if others may share it.
pub(crate) fn shared_file(at: usize) -> Option<(FileId, usize)> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    maps.lines().find_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let hex = |text: &str| usize::from_str_radix(text, 16).ok();
        let (start, end) = (hex(start)?, hex(end)?);
        let is_shared = words.next()?.ends_with('s');
        let offset = hex(words.next()?)?;
        let (major, minor) = words.next()?.split_once(':')?;
        let device = libc::makedev(hex(major)? as u32, hex(minor)? as u32);
        let inode = words.next()?.parse().ok()?;
        let inside = (start..end).contains(&at) && is_shared;
        inside.then(|| ((device, inode), offset + (at - start)))
    })
}

/// An image's code is loaded.
pub(super) fn loaded(at: usize, length: usize, content: u64) {
    let mut codes = CODES.write().unwrap_or_else(PoisonError::into_inner);
    codes.insert(at, Code { length, content });
}

/// Has code of the program's own named as images' is.
pub(super) fn know_code(pc: usize) {
    if below(&CODES, pc, |code| code.length).is_none() {
        let (at, length) = objects::extent(pc);
        loaded(at, length, objects::content(pc));
    }
}

/// It is loaded no more.
pub(super) fn unloaded(at: usize) {
    let mut codes = CODES.write().unwrap_or_else(PoisonError::into_inner);
    codes.remove(&at);
}

/// Numbers of files and images in a job.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    /// None for one that has ended.
    files: Vec<Option<FileId>>,
    images: Vec<u64>,
}

fn number<T: PartialEq>(list: &mut Vec<T>, of: T) -> usize {
    let found = list.iter().position(|known| *known == of);
    found.unwrap_or_else(|| {
        list.push(of);
        list.len() - 1
    })
}

impl Numbers {
    fn file(&mut self, file: FileId) -> usize {
        if let Some(number) = self.files.iter().position(|known| *known == Some(file)) {
            return number;
        }
        let number = number(&mut self.files, None);
        self.files[number] = Some(file);
        number
    }

    /// A file has ended. Gives the name of its first byte, if it has one. The number is another file's later.
    pub(super) fn end(&mut self, file: FileId) -> Option<usize> {
        let number = self.files.iter().position(|known| *known == Some(file))?;
        self.files[number] = None;
        Some(OF_FILE | number << OFFSET)
    }

    /// The name of the first of some bytes in a process, and how many of them have names that follow it: a long copy may be of several
    /// mappings.
    pub(super) fn bytes(&mut self, process: usize, at: usize, length: usize) -> (usize, usize) {
        match below(&FILES, at, |part| part.length) {
            None => {
                let next = next_mapped(at, length);
                ((process + 1) << ADDRESS | at, next)
            }
            Some((start, part)) => {
                let file = self.file(part.file);
                let inside = at - start;
                let name = OF_FILE | file << OFFSET | (part.offset + inside);
                (name, length.min(part.length - inside))
            }
        }
    }

    /// The name of a place in code.
    pub(super) fn code(&mut self, pc: usize) -> usize {
        match below(&CODES, pc, |code| code.length) {
            None => pc,
            Some((start, code)) => {
                IMAGE | number(&mut self.images, code.content) << IN_IMAGE | (pc - start)
            }
        }
    }

    /// The address of a named place in this process's copy of the image, if it has one.
    pub(super) fn place(&self, name: usize) -> Option<usize> {
        if name & IMAGE == 0 {
            return Some(name);
        }
        let content = *self.images.get((name & !IMAGE) >> IN_IMAGE)?;
        let codes = CODES.read().unwrap_or_else(PoisonError::into_inner);
        let (start, _) = codes.iter().find(|(_, code)| code.content == content)?;
        Some(start + (name & ((1 << IN_IMAGE) - 1)))
    }
}

/// Whether bytes of a file are mapped at an address.
pub(super) fn is_mapped(at: usize) -> bool {
    below(&FILES, at, |part| part.length).is_some()
}

/// Whether a byte has a name by its file.
pub(super) fn is_of_file(name: usize) -> bool {
    name & OF_FILE != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_one_file_have_one_name_wherever_they_are_mapped() {
        let mut numbers = Numbers::default();
        let file = (7, 4711);
        mapped(0x10_0000, 0x2000, file, 0);
        mapped(0x20_0000, 0x1000, file, 0x1000);
        let name = numbers.bytes(0, 0x10_1008, 1).0;
        assert_eq!(numbers.bytes(3, 0x20_0008, 1).0, name);
        assert!(is_of_file(name));
        assert_ne!(numbers.bytes(0, 0x10_0008, 1).0, name);
        unmapped(0x20_0000);
        let own = [0, 1].map(|process| numbers.bytes(process, 0x20_0008, 1).0);
        assert!(own[0] != own[1] && !own.map(is_of_file).contains(&true));
    }

    #[test]
    fn bytes_of_several_mappings_have_the_names_of_each() {
        let mut numbers = Numbers::default();
        mapped(0x40_0000, 0x1000, (9, 1), 0);
        mapped(0x40_1000, 0x1000, (9, 2), 0);
        let mut lengths = Vec::new();
        let mut at = 0x40_0000 - 16;
        while at < 0x40_2000 + 16 {
            let (name, length) = numbers.bytes(0, at, 0x40_2000 + 16 - at);
            assert_eq!(numbers.bytes(0, at + length - 1, 1).0, name + length - 1);
            lengths.push(length);
            at += length;
        }
        assert_eq!(lengths, [16, 0x1000, 0x1000, 16]);
    }

    #[test]
    fn a_file_that_has_ended_gives_its_number_to_another() {
        let mut numbers = Numbers::default();
        mapped(0x30_0000, 0x1000, (8, 1), 0);
        let first = numbers.bytes(0, 0x30_0000, 1).0;
        assert_eq!(numbers.end((8, 1)), Some(first));
        assert_eq!(numbers.end((8, 1)), None);
        mapped(0x30_0000, 0x1000, (8, 2), 0);
        assert_eq!(numbers.bytes(0, 0x30_0000, 1).0, first);
    }

    #[test]
    fn memory_of_the_programs_own_is_named_where_others_can_have_it() {
        let own = 5_u64;
        assert_eq!(shared_file((&raw const own).addr()), None);
        let file = super::super::arena::Arena::file().unwrap();
        // SAFETY: a new mapping of a file that is longer.
        let at = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                8192,
                libc::PROT_READ,
                libc::MAP_SHARED,
                std::os::fd::AsRawFd::as_raw_fd(&file),
                4096,
            )
        };
        use std::os::unix::fs::MetadataExt;
        let inode = file.metadata().unwrap().ino();
        let (found, offset) = shared_file(at.addr() + 4100).unwrap();
        assert_eq!((found.1, offset), (inode, 4096 + 4100));
    }
}
