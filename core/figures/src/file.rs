//! Files of results.

use std::fs::File;
use std::path::Path;

use crate::error::Error;

/// Writes a picture to a file.
pub fn write(path: &Path, svg: &str) -> Result<(), Error> {
    std::fs::write(path, svg).map_err(|error| Error::writing(path, error))
}

/// Checks before the work that a file can be written. Leaves it as it is.
pub fn check_writable(path: &Path) -> Result<(), Error> {
    let is_new = !path.exists();
    let opened = File::options().create(true).append(true).open(path);
    opened.map_err(|error| Error::writing(path, error))?;
    // An empty file would look like a result. If the path is a link, the link stays.
    if is_new && let Ok(made) = path.canonicalize() {
        let _ = std::fs::remove_file(made);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_written_is_named() {
        let path = Path::new("/no-such-folder/picture.svg");
        let errors = [write(path, "<svg/>"), check_writable(path)];
        for error in errors.map(Result::unwrap_err) {
            let told = error.to_string();
            assert!(told.contains("/no-such-folder/picture.svg"), "{told}");
            assert!(told.contains("name a file in a folder that"), "{told}");
        }
    }

    #[test]
    fn a_file_that_can_be_written_is_left_as_it_is() {
        let path = std::env::temp_dir().join(format!("oxshmem-figures-{}", std::process::id()));
        check_writable(&path).unwrap();
        assert!(!path.exists());
        write(&path, "before").unwrap();
        check_writable(&path).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "before");
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_link_to_what_is_not_there_yet_is_left_as_it_is() {
        let link =
            std::env::temp_dir().join(format!("oxshmem-figures-link-{}", std::process::id()));
        let target = link.with_extension("svg");
        std::os::unix::fs::symlink(&target, &link).unwrap();
        check_writable(&link).unwrap();
        assert!(!target.exists(), "an empty file is left behind");
        assert_eq!(link.read_link().unwrap(), target);
        std::fs::remove_file(link).unwrap();
    }
}
