//! The check that a program can be executed, before any PE is started.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

/// The status if a program cannot be executed, as in shells.
pub const NOT_EXECUTABLE: u8 = 126;

/// The reason why a program cannot be started.
#[derive(Debug)]
pub struct Refusal {
    /// The status, as in shells: 126 if it cannot be executed, 127 if it is not found.
    pub status: u8,
    /// The reason, and how to mend it.
    pub why: String,
}

/// Refuses a program that the kernel would not find or execute.
pub fn check(program: &OsStr) -> Result<(), Refusal> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    check_in(program, &folders)
}

fn check_in(program: &OsStr, folders: &[PathBuf]) -> Result<(), Refusal> {
    let shown = program.display();
    let not_found = |why| Err(Refusal { status: 127, why });
    let not_executable = |path: &Path| {
        let why = if path.is_dir() {
            format!("{} is a directory, not a program", path.display())
        } else {
            let path = path.display();
            format!("{path} cannot be executed; `chmod +x {path}` if it is a program")
        };
        Err(Refusal {
            status: NOT_EXECUTABLE,
            why,
        })
    };
    let executable = |path: &Path| path.is_file() && access(path, Access::EXEC_OK).is_ok();

    if program.as_encoded_bytes().contains(&b'/') {
        let path = Path::new(program);
        return match path.exists() {
            false => not_found(format!("{shown} is not found; check the path")),
            true if executable(path) => Ok(()),
            true => not_executable(path),
        };
    }
    let candidates: Vec<PathBuf> = folders.iter().map(|folder| folder.join(program)).collect();
    if candidates.iter().any(|path| executable(path)) {
        return Ok(());
    }
    if let Some(path) = candidates.iter().find(|path| path.is_file()) {
        return not_executable(path);
    }
    let here = Path::new(program);
    if !program.is_empty() && here.is_file() {
        return not_found(format!(
            "{shown} is in no folder of PATH; did you mean ./{shown}?"
        ));
    }
    not_found(format!(
        "{shown:?} is in no folder of PATH; check the name, or give a path to it"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(program: &str) -> u8 {
        let folders = [PathBuf::from("/usr/bin"), PathBuf::from("/bin")];
        check_in(OsStr::new(program), &folders).map_or_else(|refusal| refusal.status, |()| 0)
    }

    #[test]
    fn programs_are_found_by_name_and_by_path() {
        assert_eq!((status("sh"), status("/bin/sh")), (0, 0));
    }

    #[test]
    fn what_is_missing_and_what_is_no_program_are_told_apart() {
        for missing in [
            "",
            "no-such-program",
            "/no/such/program",
            "./no-such-program",
        ] {
            assert_eq!(status(missing), 127, "{missing}");
        }
        for other in ["/etc/passwd", "/usr", "/"] {
            assert_eq!(status(other), 126, "{other}");
        }
    }
}
