//! The files and settings of the system that is checked: this machine, or a folder in its place.

use std::path::{Path, PathBuf};

/// The system that is checked. Files that are missing or unreadable are `None`.
#[derive(Debug)]
pub struct System {
    /// The folder in place of this machine.
    root: Option<PathBuf>,
}

impl System {
    /// This machine, or the files below `root` in its place.
    pub fn new(root: Option<&Path>) -> Self {
        Self {
            root: root.map(Path::to_owned),
        }
    }

    /// Whether it is this machine, so that the kernel can be asked, too.
    pub fn is_live(&self) -> bool {
        self.root.is_none()
    }

    /// The path of a file, given without the first slash.
    pub fn path(&self, file: &str) -> PathBuf {
        self.root.as_deref().unwrap_or(Path::new("/")).join(file)
    }

    pub fn bytes(&self, file: &str) -> Option<Vec<u8>> {
        std::fs::read(self.path(file)).ok()
    }

    /// The text of a file, without white space around it.
    pub fn text(&self, file: &str) -> Option<String> {
        let bytes = self.bytes(file)?;
        Some(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    /// The whole number that a file begins with.
    pub fn number(&self, file: &str) -> Option<i64> {
        self.text(file)?.split_whitespace().next()?.parse().ok()
    }

    pub fn exists(&self, file: &str) -> bool {
        self.path(file).exists()
    }

    /// The names in a folder, in the order of their letters; numbers at the end go by value.
    pub fn names(&self, folder: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.path(folder)).into_iter().flatten();
        let mut names: Vec<String> = entries
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .collect();
        names.sort_by_cached_key(|name| {
            let stem = name.trim_end_matches(|letter: char| letter.is_ascii_digit());
            let number: u64 = name[stem.len()..].parse().unwrap_or(0);
            (stem.to_owned(), number, name.clone())
        });
        names
    }

    /// An environment variable of this process. A folder has none.
    pub fn variable(&self, name: &str) -> Option<String> {
        if !self.is_live() {
            return None;
        }
        std::env::var(name).ok().filter(|value| !value.is_empty())
    }

    /// Whether a program is found: on the `PATH`, or in the folder's usual places.
    pub fn has_program(&self, name: &str) -> bool {
        let is_file = |path: PathBuf| path.is_file();
        if name.contains('/') {
            return is_file(self.path(name.trim_start_matches('/')));
        }
        match self.variable("PATH") {
            Some(path) => std::env::split_paths(&path).any(|folder| is_file(folder.join(name))),
            None => ["usr/local/bin", "usr/bin", "bin"]
                .iter()
                .any(|folder| is_file(self.path(folder).join(name))),
        }
    }
}
