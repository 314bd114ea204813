//! Files of `/proc` and `/sys` laid out in a temporary folder, from text such as `fixtures/*.txt`:
//! one `path = contents` a line, `\n` for a new line within, `path -> target` for a symbolic link,
//! `#` for a remark.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::tree::Tree;

pub(crate) const TWO_SOCKETS: &str = include_str!("../fixtures/two-sockets.txt");
pub(crate) const OFFLINE_CPUS: &str = include_str!("../fixtures/offline-cpus.txt");
pub(crate) const DEVICES: &str = include_str!("../fixtures/devices.txt");
pub(crate) const NO_NUMA: &str = include_str!("../fixtures/no-numa.txt");

/// The folder; removed when dropped.
pub(crate) struct Fixture(PathBuf);

impl Fixture {
    pub(crate) fn new(files: &str) -> Self {
        // Relaxed: the number only has to differ from the others of this process.
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("oxshmem-topo-{}-{number}", std::process::id());
        let fixture = Self(std::env::temp_dir().join(name));
        std::fs::create_dir(&fixture.0).unwrap();
        for line in files.lines().filter(|line| !line.starts_with('#')) {
            if let Some((file, target)) = line.split_once(" -> ") {
                fixture.link(file, target);
                continue;
            }
            let (file, contents) = line.split_once(" =").unwrap();
            fixture.write(file, &contents.trim_start().replace("\\n", "\n"));
        }
        fixture
    }

    pub(crate) fn write(&self, file: &str, contents: &str) {
        let path = self.0.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, format!("{contents}\n")).unwrap();
    }

    pub(crate) fn remove(&self, file: &str) {
        std::fs::remove_file(self.0.join(file)).unwrap();
    }

    pub(crate) fn link(&self, file: &str, target: &str) {
        let path = self.0.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(target, path).unwrap();
    }

    pub(crate) fn root(&self) -> &Path {
        &self.0
    }

    pub(crate) fn tree(&self) -> Tree<'_> {
        Tree::new(&self.0)
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        // Best effort: a left-over folder in the temporary place harms nobody.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
