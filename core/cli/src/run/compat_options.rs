//! Options of other launchers, translated for `oxshmem run`.

use std::ffi::OsString;

use clap::Command;

/// The equivalent of another launcher's option.
#[derive(Clone, Copy)]
enum Equivalent {
    /// This option of `oxshmem run`.
    Named(&'static str),
    /// `--bind`; the value may need another name, too.
    Bind,
    /// A placement of PEs; the value decides.
    Places,
    /// The default behaviour: the option is dropped.
    Anyway,
    /// No equivalent; the option and so many following words are left out and reported.
    Nothing(usize),
}

/// The names without their dashes. A name of several letters may have one or two.
const OPTIONS: [(&str, Equivalent); 21] = [
    ("np", Equivalent::Named("--np")),
    ("c", Equivalent::Named("--np")),
    ("host", Equivalent::Named("--hosts")),
    ("H", Equivalent::Named("--hosts")),
    ("hostfile", Equivalent::Named("--hostfile")),
    ("machinefile", Equivalent::Named("--hostfile")),
    ("l", Equivalent::Named("--tag-output")),
    ("tag-output", Equivalent::Named("--tag-output")),
    ("timeout", Equivalent::Named("--timeout")),
    ("bind-to", Equivalent::Bind),
    ("map-by", Equivalent::Places),
    ("rank-by", Equivalent::Places),
    ("oversubscribe", Equivalent::Anyway),
    ("allow-run-as-root", Equivalent::Anyway),
    ("quiet", Equivalent::Anyway),
    ("q", Equivalent::Anyway),
    ("mca", Equivalent::Nothing(2)),
    ("gmca", Equivalent::Nothing(2)),
    ("report-bindings", Equivalent::Nothing(0)),
    ("display-map", Equivalent::Nothing(0)),
    ("display-allocation", Equivalent::Nothing(0)),
];

/// A command line in the form that the parser of options knows.
pub struct CommandLine {
    pub taken: Vec<OsString>,
    /// The options without an equivalent.
    pub left_out: Vec<String>,
}

/// Translates options of other launchers, wherever they stand before the program. The parser itself
/// takes one dash only for options of one letter.
pub fn options(all: Vec<OsString>, command: &Command) -> CommandLine {
    let mut words = CommandLine {
        taken: Vec::new(),
        left_out: Vec::new(),
    };
    let named = all.get(1).and_then(|name| name.to_str());
    let Some(run) = named
        .filter(|name| *name == "run")
        .and_then(|name| command.find_subcommand(name))
    else {
        words.taken = all;
        return words;
    };
    let mut all = all.into_iter();
    words.taken.extend(all.by_ref().take(2));
    while let Some(word) = all.next() {
        let is_option = |text: &&str| text.starts_with('-') && *text != "--";
        let Some(option) = word.to_str().filter(is_option).map(str::to_owned) else {
            words.taken.push(word);
            break;
        };
        words.option(word, &option, run, &mut all);
    }
    words.taken.extend(all);
    words
}

impl CommandLine {
    /// Translates one option, and takes its value from `rest`.
    fn option(
        &mut self,
        word: OsString,
        option: &str,
        run: &Command,
        rest: &mut impl Iterator<Item = OsString>,
    ) {
        match elsewhere(option) {
            None => {
                self.taken.push(word);
                self.value(option, run, rest);
            }
            Some(Equivalent::Named(here)) => {
                self.taken.push(here.into());
                self.value(here, run, rest);
            }
            Some(Equivalent::Bind) => {
                self.taken.push("--bind".into());
                self.taken.extend(rest.next().map(policy));
            }
            Some(Equivalent::Places) => {
                let value = rest.next();
                match value.as_ref().and_then(|value| value.to_str()).map(kind) {
                    // The default order of PEs over the hosts.
                    Some("slot") => {}
                    // This value also sets the number of PEs, so the parser refuses it.
                    None | Some("ppr") => {
                        self.taken.push("--map-by".into());
                        self.taken.extend(value);
                    }
                    Some(_) => self.leave_out(option, value),
                }
            }
            Some(Equivalent::Anyway) => {}
            Some(Equivalent::Nothing(values)) => self.leave_out(option, rest.take(values)),
        }
    }

    fn value(&mut self, option: &str, run: &Command, rest: &mut impl Iterator<Item = OsString>) {
        if is_followed_by_its_value(run, option) {
            self.taken.extend(rest.next());
        }
    }

    fn leave_out(&mut self, option: &str, values: impl IntoIterator<Item = OsString>) {
        let mut text = option.to_owned();
        for value in values {
            text.push(' ');
            text.push_str(&value.to_string_lossy());
        }
        self.left_out.push(text);
    }
}

/// The equivalent of an option, if another launcher has it.
fn elsewhere(option: &str) -> Option<Equivalent> {
    let long = option.strip_prefix("--").filter(|name| name.len() > 1);
    let name = long.or_else(|| option.strip_prefix('-'))?;
    let found = OPTIONS.iter().find(|(elsewhere, _)| *elsewhere == name);
    found.map(|(_, here)| *here)
}

/// A value without its modifiers, as `core` of `core:overload-allowed`.
fn kind(value: &str) -> &str {
    value.split_once(':').map_or(value, |(kind, _)| kind)
}

/// The nearest policy.
fn policy(value: OsString) -> OsString {
    match value.to_str().map(kind) {
        Some("hwthread") => "core".into(),
        Some("socket") => "numa".into(),
        Some(same) => same.into(),
        None => value,
    }
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

    fn of(words: &str) -> CommandLine {
        let words = format!("oxshmem {words}");
        let words = words.split_whitespace().map(OsString::from).collect();
        options(words, &crate::Cli::command())
    }

    fn parsed(words: &str) -> bool {
        crate::Cli::try_parse_from(of(words).taken).is_ok()
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
            ("run -machinefile f a", "run --hostfile f a"),
            ("run -host a --host b c", "run --hosts a --hosts b c"),
            (
                "run -c 2 -tag-output -timeout 3 a -c 1",
                "run --np 2 --tag-output --timeout 3 a -c 1",
            ),
            ("run a -np 4", "run a -np 4"),
            ("run", "run"),
            ("info -np --quiet", "info -np --quiet"),
        ] {
            assert_taken(given, taken, &[]);
        }
        assert!(parsed("run --bind none -np 2 a"));
        assert!(!parsed("run -np a"));
    }

    #[test]
    fn what_happens_anyway_is_left_out_and_what_means_nothing_told() {
        for (given, taken, left_out) in [
            (
                "run --oversubscribe -np 2 --allow-run-as-root -q a --quiet",
                "run --np 2 a --quiet",
                &[][..],
            ),
            (
                "run --mca btl ^openib -mca -np 3 -np 4 -report-bindings a --mca b c",
                "run --np 4 a --mca b c",
                &["--mca btl ^openib", "-mca -np 3", "-report-bindings"],
            ),
            (
                "run --map-by slot:oversubscribe --map-by core -rank-by node a",
                "run a",
                &["--map-by core", "-rank-by node"],
            ),
        ] {
            assert_taken(given, taken, left_out);
        }
        for unknown in ["--map-by ppr:2:node", "-N 2", "--wdir /", "--q"] {
            let words = format!("run {unknown} a");
            assert_taken(&words, &words, &[]);
            assert!(!parsed(&words), "{words}");
        }
    }

    #[test]
    fn places_to_bind_to_have_the_nearest_policy() {
        for (elsewhere, here) in [
            ("none", "none"),
            ("core", "core"),
            ("core:overload-allowed", "core"),
            ("hwthread", "core"),
            ("numa", "numa"),
            ("socket", "numa"),
        ] {
            let given = format!("run -np 2 --bind-to {elsewhere} a");
            assert_taken(&given, &format!("run --np 2 --bind {here} a"), &[]);
            assert!(parsed(&given));
        }
        assert!(!parsed("run --bind-to board a") && !parsed("run -bind-to"));
    }

    fn assert_taken(given: &str, taken: &str, left_out: &[&str]) {
        let expected: Vec<OsString> = taken.split_whitespace().map(OsString::from).collect();
        let words = of(given);
        assert_eq!(words.taken.get(1..), Some(&*expected), "{given}");
        assert_eq!(words.left_out, left_out, "{given}");
    }
}
