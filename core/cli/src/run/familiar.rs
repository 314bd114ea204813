//! Options that users of other launchers are used to.

use std::ffi::OsString;

use clap::Command;

/// Names that options have elsewhere, and here.
const NAMES: [(&str, &str); 6] = [
    ("-np", "--np"),
    ("-host", "--hosts"),
    ("--host", "--hosts"),
    ("-H", "--hosts"),
    ("-hostfile", "--hostfile"),
    ("-l", "--tag-output"),
];

/// Makes such an option of `oxshmem run`, wherever it stands before the program, what the parser of options knows: to it,
/// one dash begins options of one letter.
pub fn options(mut all: Vec<OsString>, command: &Command) -> Vec<OsString> {
    let named = all.get(1).and_then(|name| name.to_str());
    let Some(run) = named
        .filter(|name| *name == "run")
        .and_then(|name| command.find_subcommand(name))
    else {
        return all;
    };
    let mut at = 2;
    while let Some(word) = all.get_mut(at) {
        if let Some((_, here)) = NAMES.iter().find(|(elsewhere, _)| word == elsewhere) {
            *word = here.into();
        }
        match word.to_str() {
            Some(option) if option.starts_with('-') && option != "--" => {
                at += 1 + usize::from(is_followed_by_its_value(run, option));
            }
            _ => break,
        }
    }
    all
}

fn is_followed_by_its_value(run: &Command, option: &str) -> bool {
    let is_meant = |known: &&clap::Arg| match option.strip_prefix("--") {
        Some(name) => known
            .get_long_and_visible_aliases()
            .iter()
            .flatten()
            .any(|long| *long == name),
        None => known
            .get_short()
            .is_some_and(|short| option == format!("-{short}")),
    };
    let known = run.get_arguments().find(is_meant);
    known.is_some_and(|known| known.get_action().takes_values())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{CommandFactory, Parser};

    fn of(words: &str) -> Vec<OsString> {
        let words = format!("oxshmem {words}");
        let words = words.split_whitespace().map(OsString::from).collect();
        options(words, &crate::Cli::command())
    }

    #[test]
    fn options_by_their_names_elsewhere_stand_anywhere_before_the_program() {
        for (given, taken) in [
            ("run -np 4 a -np 5", "run --np 4 a -np 5"),
            (
                "run --timeout 3s --tag-output -np 4 a",
                "run --timeout 3s --tag-output --np 4 a",
            ),
            (
                "run -x A=1 --timeout=3s -np 4 -- -np",
                "run -x A=1 --timeout=3s --np 4 -- -np",
            ),
            (
                "run -l -H a:2 -np 2 b -l",
                "run --tag-output --hosts a:2 --np 2 b -l",
            ),
            ("run -hostfile f -np 2 a", "run --hostfile f --np 2 a"),
            ("run -host a --host b c", "run --hosts a --hosts b c"),
            ("run a -np 4", "run a -np 4"),
            ("info -np", "info -np"),
            ("run", "run"),
        ] {
            let expected: Vec<OsString> = taken.split_whitespace().map(OsString::from).collect();
            let taken = of(given);
            assert_eq!(taken.get(1..), Some(&*expected), "{given}");
        }
        assert!(crate::Cli::try_parse_from(of("run --bind none -np 2 a")).is_ok());
        assert!(crate::Cli::try_parse_from(of("run -np a")).is_err());
    }
}
