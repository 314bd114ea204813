//! The files of `/proc` and `/sys` under a root, as the running system or a fixture has them.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use crate::cpu_set::CpuSet;
use crate::error::{Error, Result, quoted};

/// The files of `/proc` and `/sys` under a root: `/`, or a fixture in a test.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tree<'a> {
    root: &'a Path,
}

impl<'a> Tree<'a> {
    /// More than any file read here needs (mountinfo of a container host is the largest).
    const LONGEST: usize = 4 << 20;

    pub(crate) fn new(root: &'a Path) -> Self {
        Self { root }
    }

    /// The running system's.
    pub(crate) fn live() -> Tree<'static> {
        Tree {
            root: Path::new("/"),
        }
    }

    /// Where `file` lies. A leading slash is taken as the root.
    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.root.join(file.trim_start_matches('/'))
    }

    /// The text of `file`, or none where it does not exist.
    pub(crate) fn text(&self, file: &str) -> Result<Option<String>> {
        let path = self.path(file);
        match plain_text(&path, Self::LONGEST) {
            Ok(Some(text)) => Ok(Some(text)),
            Ok(None) => Err(Error::Malformed {
                path,
                why: format!("over {} bytes", Self::LONGEST),
            }),
            Err(error) if absent(&error) => Ok(None),
            Err(source) => Err(Error::Read { path, source }),
        }
    }

    /// The integer that `file` holds, or none where it does not exist.
    pub(crate) fn integer(&self, file: &str) -> Result<Option<i64>> {
        self.text(file)?
            .map(|text| {
                let text = text.trim();
                text.parse().map_err(|_| {
                    self.malformed(file, format!("{} is not an integer", quoted(text)))
                })
            })
            .transpose()
    }

    /// The list of CPUs (or nodes) that `file` holds, or none where it does not exist.
    pub(crate) fn list(&self, file: &str) -> Result<Option<CpuSet>> {
        self.text(file)?
            .map(|text| CpuSet::parse(&text).map_err(|why| self.malformed(file, why)))
            .transpose()
    }

    /// The names in folder `folder`, sorted; none where it does not exist.
    pub(crate) fn names(&self, folder: &str) -> Result<Vec<String>> {
        let path = self.path(folder);
        let read = std::fs::read_dir(&path).and_then(|entries| {
            entries
                .map(|entry| entry.map(|entry| entry.file_name()))
                .collect::<Result<Vec<_>, _>>()
        });
        match read {
            Ok(names) => {
                let mut names: Vec<String> = names
                    .into_iter()
                    .filter_map(|name| name.into_string().ok())
                    .collect();
                names.sort_unstable();
                Ok(names)
            }
            Err(error) if absent(&error) => Ok(Vec::new()),
            Err(source) => Err(Error::Read { path, source }),
        }
    }

    /// The error for contents of `file` that make no sense.
    pub(crate) fn malformed(&self, file: &str, why: String) -> Error {
        Error::Malformed {
            path: self.path(file),
            why,
        }
    }
}

/// The text of the plain file at `path`; none where it has over `longest` bytes.
pub(crate) fn plain_text(path: &Path, longest: usize) -> std::io::Result<Option<String>> {
    // Asked before opening: to open a FIFO would wait for its writer.
    if !std::fs::metadata(path)?.is_file() {
        return Err(std::io::Error::other("it is not a plain file"));
    }
    let mut text = String::new();
    // One byte more, by which a file that is longer shows.
    let most = longest as u64 + 1;
    let read = File::open(path)?.take(most).read_to_string(&mut text)?;
    Ok((read <= longest).then_some(text))
}

fn absent(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}
