//! The list of a source's headers that is written beside its object, for make.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A list of the headers of a source, for make.
#[derive(Debug, Default)]
pub(crate) struct Dependencies {
    /// `-MD`, or `-MMD` without those of the system.
    pub(crate) wanted: Option<&'static str>,
    /// Its file (`-MF`); else it is named after the object.
    pub(crate) file: Option<PathBuf>,
    /// Words that name its target: `-MT`, `-MQ`, `-MP`.
    pub(crate) words: Vec<OsString>,
}

/// An option about lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListOption {
    /// `-MD`, `-MMD`.
    Wanted(&'static str),
    File,
    /// `-MT`, `-MQ`.
    Target(&'static str),
    /// `-MP`.
    EmptyRules,
}

impl ListOption {
    pub(crate) fn of(word: &str) -> Option<ListOption> {
        Some(match word {
            "-MD" | "--generate-dependencies-with-compile" => ListOption::Wanted("-MD"),
            "-MMD" | "--generate-nonsystem-dependencies-with-compile" => ListOption::Wanted("-MMD"),
            "-MF" | "--dependency-output" => ListOption::File,
            "-MT" | "--dependency-target-name" => ListOption::Target("-MT"),
            "-MQ" => ListOption::Target("-MQ"),
            "-MP" | "--generate-dependency-targets" => ListOption::EmptyRules,
            _ => return None,
        })
    }

    pub(crate) fn has_value(self) -> bool {
        matches!(self, ListOption::File | ListOption::Target(_))
    }
}

impl Dependencies {
    /// Heeds an option, with its value if it has one.
    pub(crate) fn take(&mut self, option: ListOption, value: String) {
        match option {
            ListOption::Wanted(wanted) => self.wanted = Some(wanted),
            ListOption::File => self.file = Some(value.into()),
            ListOption::Target(name) => self.words.extend([name.into(), value.into()]),
            ListOption::EmptyRules => self.words.push("-MP".into()),
        }
    }

    /// The compiler's words for a list alone (`-M`, `-MM`), which goes to standard output or to its file.
    pub(crate) fn words_of_list(&self, option: &str) -> Vec<OsString> {
        if option == "-E" {
            return Vec::new();
        }
        let file = self.file.iter();
        let file = file.flat_map(|file| ["-MF".into(), file.clone().into_os_string()]);
        file.chain(self.words.iter().cloned()).collect()
    }

    /// The compiler's words for the list of a source. It is named after the object, if that lasts; else after the program `out`, if
    /// that is of this source alone; else after the source.
    pub(crate) fn words_of(
        &self,
        source: &Path,
        object: Option<&Path>,
        out: Option<&Path>,
    ) -> Vec<OsString> {
        let Some(wanted) = self.wanted else {
            return Vec::new();
        };
        let name = Path::new(source.file_name().unwrap_or_default());
        let target = object
            .or(out)
            .map_or_else(|| name.with_extension("o"), Path::to_owned);
        let file = self
            .file
            .clone()
            .unwrap_or_else(|| target.with_extension("d"));
        let mut words = vec![wanted.into(), "-MF".into(), file.into()];
        words.extend(self.words.iter().cloned());
        if !self.words.iter().any(|word| word == "-MT" || word == "-MQ") {
            words.extend(["-MT".into(), target.into()]);
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_headers_is_written_beside_the_result_and_names_it() {
        let mut list = Dependencies::default();
        let words = |list: &Dependencies, object: Option<&str>, out: Option<&str>| {
            let words = list.words_of(
                Path::new("d/a.cu"),
                object.map(Path::new),
                out.map(Path::new),
            );
            words.join(std::ffi::OsStr::new(" ")).into_string().unwrap()
        };
        assert_eq!(words(&list, Some("a.o"), None), "");
        list.wanted = Some("-MD");
        assert_eq!(
            words(&list, Some("x/b.o"), Some("x/b.o")),
            "-MD -MF x/b.d -MT x/b.o"
        );
        assert_eq!(words(&list, None, Some("prog")), "-MD -MF prog.d -MT prog");
        assert_eq!(words(&list, None, None), "-MD -MF a.d -MT a.o");
        list.file = Some("list".into());
        list.words = ["-MP", "-MT", "all"].map(OsString::from).into();
        assert_eq!(words(&list, Some("a.o"), None), "-MD -MF list -MP -MT all");
        assert_eq!(
            list.words_of_list("-MM"),
            ["-MF", "list", "-MP", "-MT", "all"]
        );
        assert!(list.words_of_list("-E").is_empty());
    }
}
