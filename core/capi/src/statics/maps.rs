//! The mappings at the addresses of the program's data: those of the loader, or those that the program has made since.

use std::ffi::c_int;

use super::program::Segment;

/// A line of `/proc/self/maps`.
#[derive(Clone, Copy, Debug)]
struct Mapping<'a> {
    start: usize,
    end: usize,
    /// As `rw-p`.
    access: &'a str,
    /// The file's device and number; none of memory without one.
    file: Option<(&'a str, &'a str)>,
}

impl<'a> Mapping<'a> {
    fn of(line: &'a str) -> Option<Self> {
        let mut words = line.split_ascii_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let address = |text| usize::from_str_radix(text, 16).ok();
        let access = words.next()?;
        // Behind the offset in the file.
        let (device, number) = (words.nth(1)?, words.next()?);
        Some(Mapping {
            start: address(start)?,
            end: address(end)?,
            access,
            file: (number != "0").then_some((device, number)),
        })
    }

    /// As `mmap` takes it, if it is private memory to read and write.
    fn protection(&self) -> Option<c_int> {
        match self.access {
            "rw-p" => Some(libc::PROT_READ | libc::PROT_WRITE),
            "rwxp" => Some(libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC),
            _ => None,
        }
    }
}

/// Finds out how each segment may be accessed. The error is the first page that is not private memory of the program's file, or
/// of no file, or not accessed as the rest of its segment. The program's file is the one that is mapped at the address
/// `headers`.
pub(super) fn find_protections(
    maps: &str,
    headers: usize,
    segments: &mut [Segment],
) -> Result<(), usize> {
    let mappings: Vec<_> = maps.lines().filter_map(Mapping::of).collect();
    let at = |address: usize| {
        let has = |mapping: &&Mapping| (mapping.start..mapping.end).contains(&address);
        mappings.iter().find(has)
    };
    let program = at(headers).and_then(|mapping| mapping.file);
    for segment in segments {
        let access = at(segment.start).map(|mapping| mapping.access);
        let mut address = segment.start;
        while address < segment.end {
            let as_linked = |mapping: &&Mapping| {
                let its_own = mapping.file.is_none() || mapping.file == program;
                its_own && Some(mapping.access) == access
            };
            let mapping = at(address).filter(as_linked).ok_or(address)?;
            segment.protection = mapping.protection().ok_or(address)?;
            address = mapping.end;
        }
    }
    Ok(())
}
