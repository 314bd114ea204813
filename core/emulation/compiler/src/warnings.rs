//! Warnings that are errors: `-Werror` of clang, and of nvcc, where kinds of warnings follow.

use std::ffi::OsString;

/// nvcc's kinds of warnings that clang has not.
const OF_NVCC: &[&str] = &[
    "cross-execution-space-call",
    "default-stream-launch",
    "ext-lambda-captures-this",
    "missing-launch-bounds",
];
/// Those that clang has, too, by the same name.
const OF_BOTH: &[&str] = &["deprecated-declarations", "reorder"];
const ALL: &str = "all-warnings";

/// The meaning of `-Werror`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct WarningsAsErrors {
    /// Whether the next word of the line has the kinds.
    pub(crate) takes_next: bool,
    /// The words for clang.
    pub(crate) words: Vec<OsString>,
}

impl WarningsAsErrors {
    /// `word` is `-Werror` or `--Werror`, with kinds behind `=` or in the next word, or with none.
    pub(crate) fn of(word: &str, next: Option<&str>) -> Self {
        let is_kind =
            |kind: &str| kind == ALL || OF_NVCC.contains(&kind) || OF_BOTH.contains(&kind);
        let are_kinds = |words: &&str| words.split(',').all(is_kind);
        let joined = word.split_once('=').map(|(_, kinds)| kinds);
        let next = next.filter(|_| joined.is_none()).filter(are_kinds);
        let Some(kinds) = joined.or(next) else {
            return WarningsAsErrors {
                takes_next: false,
                words: vec!["-Werror".into()],
            };
        };
        // A kind that is not known may be one of clang's own.
        let words = kinds.split(',').filter(|kind| !OF_NVCC.contains(kind));
        let words = words.map(|kind| match kind {
            ALL => "-Werror".into(),
            kind => format!("-Werror={kind}").into(),
        });
        WarningsAsErrors {
            takes_next: next.is_some(),
            words: words.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kinds_that_clang_has_are_its_errors_and_nvccs_own_are_none() {
        for (word, next, takes_next, words) in [
            ("-Werror", None, false, "-Werror"),
            ("--Werror", Some("a.cu"), false, "-Werror"),
            ("-Werror", Some("all-warnings"), true, "-Werror"),
            ("--Werror", Some("reorder"), true, "-Werror=reorder"),
            ("-Werror", Some("cross-execution-space-call"), true, ""),
            (
                "-Werror=reorder,missing-launch-bounds,deprecated-declarations",
                Some("reorder"),
                false,
                "-Werror=reorder -Werror=deprecated-declarations",
            ),
            ("-Werror=unused", None, false, "-Werror=unused"),
        ] {
            let errors = WarningsAsErrors::of(word, next);
            let told = errors.words.join(std::ffi::OsStr::new(" "));
            assert_eq!(
                (errors.takes_next, told.to_str()),
                (takes_next, Some(words)),
                "{word}"
            );
        }
    }
}
