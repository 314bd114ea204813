//! The commands of the documentation: this command's parser takes each, and the scripts and variables that they name exist.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command as Process;
use std::sync::atomic::{AtomicUsize, Ordering};

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};

use crate::{Cli, Command, run};

/// Definitions for a page's block: nothing is run, and the words of each command are printed, ended by 1f each and 1e all.
const NOTHING_RUNS: &str = r#"
PATH=/nonexistent
command_not_found_handle() { printf '%s\x1f' "$@"; printf '\x1e'; }
kill() { :; }
seq() { local i; for ((i = 1; i <= $1; i++)); do printf '%s\n' $i; done; }
"#;

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The pages below a folder.
fn pages(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            pages(&path, found);
        } else if path.extension().is_some_and(|kind| kind == "md") {
            found.push(path);
        }
    }
}

/// A page's blocks of shell commands.
fn blocks(text: &str) -> Vec<String> {
    let blocks = text.split("```").skip(1).step_by(2);
    let blocks = blocks.filter_map(|block| block.strip_prefix("sh\n"));
    blocks.map(str::to_owned).collect()
}

/// The commands of `oxshmem` in a page's text, which may leave out what follows.
fn mentions(text: &str) -> Vec<String> {
    let text = text.split("```").step_by(2).collect::<String>();
    // The first cells of docs/guide/troubleshooting.md are messages.
    let lines = text.lines().map(|line| match line.strip_prefix('|') {
        Some(row) => row.split_once('|').map_or("", |(_, others)| others),
        None => line,
    });
    let text = lines.collect::<Vec<_>>().join(" ");
    let code = text.split('`').skip(1).step_by(2);
    let commands = code.filter(|code| code.starts_with("oxshmem "));
    // Both stand for words that a reader chooses.
    let commands = commands.filter(|code| !code.contains("...") && !code.contains('<'));
    commands.map(str::to_owned).collect()
}

/// The words of each command of a block.
fn commands(block: &str, folder: &Path) -> Vec<Vec<String>> {
    let block = block.replace("../oxshmem/ci/", "ci/").replace("ci/", "ci_");
    let script = format!("{NOTHING_RUNS}\n{block}");
    let mut bash = Process::new("bash");
    let ran = bash
        .arg("-c")
        .arg(script)
        .current_dir(folder)
        .env_clear()
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&ran.stderr);
    assert!(!errors.contains("syntax error"), "{block}\n{errors}");
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    let commands = said.split_terminator('\u{1e}');
    commands
        .map(|words| {
            words
                .split_terminator('\u{1f}')
                .map(str::to_owned)
                .collect()
        })
        .collect()
}

/// The fault of a command, if it has one. A command that is only mentioned may end early.
fn fault(words: &[String], is_mention: bool) -> Option<String> {
    if let Some(script) = words.first().and_then(|first| first.strip_prefix("ci_")) {
        let exists = top().join("ci").join(script).is_file();
        if !exists {
            return Some(format!("there is no ci/{script}"));
        }
    }
    let begin = words.iter().position(|word| word == "oxshmem")?;
    let all: Vec<OsString> = words[begin..].iter().map(OsString::from).collect();
    match Cli::try_parse_from(run::options(all, &Cli::command()).taken) {
        Ok(Cli {
            command: Command::Run(_),
        }) => fault(&words[begin + 1..], is_mention),
        Ok(_) => None,
        Err(error) => {
            let is_taken = match error.kind() {
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => true,
                ErrorKind::MissingRequiredArgument => is_mention,
                // Without its value.
                ErrorKind::InvalidValue => {
                    is_mention && error.to_string().contains("none was supplied")
                }
                _ => false,
            };
            (!is_taken).then(|| error.to_string())
        }
    }
}

/// The faults of a text, each with its command.
fn faults(text: &str) -> (usize, Vec<String>) {
    static FOLDERS: AtomicUsize = AtomicUsize::new(0);
    let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
    let name = format!("oxshmem-pages-{}-{number}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    fs::create_dir_all(&folder).unwrap();
    let known: BTreeSet<_> = oxshmem::variables().iter().map(|one| one.name).collect();
    let is_name = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    let mut count = 0;
    let mut found = Vec::new();
    let blocks = blocks(text).into_iter().map(|block| (block, false));
    let mentions = mentions(text).into_iter().map(|code| (code, true));
    for (block, is_mention) in blocks.chain(mentions) {
        for words in commands(&block, &folder) {
            count += 1;
            found.extend(
                fault(&words, is_mention).map(|why| format!("`{}`: {why}", words.join(" "))),
            );
        }
        for name in block.split(|c| !is_name(c)) {
            if name.starts_with("OXSHMEM_") && !known.contains(name) {
                found.push(format!("there is no variable {name}: {block}"));
            }
        }
    }
    fs::remove_dir_all(&folder).unwrap();
    (count, found)
}

#[test]
fn commands_of_the_pages_are_taken() {
    let mut all = vec![top().join("README.md"), top().join("CONTRIBUTING.md")];
    all.extend(["SUPPORT.md", "SECURITY.md", "CHANGELOG.md"].map(|page| top().join(page)));
    pages(&top().join("docs"), &mut all);
    let mut checked = 0;
    let mut wrong = Vec::new();
    for page in all {
        let (count, faults) = faults(&fs::read_to_string(&page).unwrap());
        checked += count;
        wrong.extend(
            faults
                .into_iter()
                .map(|why| format!("{}: {why}", page.display())),
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(checked > 200, "only {checked} commands were found");
}

#[test]
fn wrong_commands_are_found() {
    for (text, why) in [
        ("```sh\noxshmem run --nodes 2 ./a\n```", "--nodes"),
        (
            "```sh\nA=1 oxshmem run -n 2 oxshmem check --fast\n```",
            "--fast",
        ),
        ("Type `oxshmem pref` then.", "pref"),
        (
            "```sh\nmpirun -n 2 oxshmem perf --sizes 1K..x put\n```",
            "1K..x",
        ),
        ("```sh\nci/no-such -- x\n```", "no ci/no-such"),
        ("```sh\nOXSHMEM_CHEKC=1 ./a\n```", "OXSHMEM_CHEKC"),
    ] {
        let (_, faults) = faults(text);
        assert!(
            faults.iter().any(|fault| fault.contains(why)),
            "{text}: {faults:?}"
        );
    }
    let right = "```sh\nfor i in $(seq 2); do oxshmem perf --quick put; done\n```";
    assert_eq!(faults(right), (2, Vec::new()));
}

/// The page of the environment variables.
#[cfg(all(feature = "cuda", feature = "ofi", feature = "verbs"))]
fn variables() -> String {
    let mut page = String::from(
        "# Environment variables\n\n\
         All variables that oxshmem reads, with what holds where they are not set. `oxshmem info --variables` lists them with the values of now.\n\
         The launcher `oxshmem run` passes those of a name with `OXSHMEM_`, `SHMEM_`, `SMA_` and `NVSHMEM_` on to other hosts.\n\n\
         | variable | unless set | meaning |\n|---|---|---|\n",
    );
    for one in oxshmem::variables() {
        let cells = [one.default, one.meaning].map(|text| text.replace('|', "\\|"));
        page += &format!("| `{}` | {} | {} |\n", one.name, cells[0], cells[1]);
    }
    page
}

/// `OXSHMEM_TEST_WRITE=1` writes it.
#[cfg(all(feature = "cuda", feature = "ofi", feature = "verbs"))]
#[test]
fn the_page_of_the_variables_is_current() {
    let page = top().join("docs/variables.md");
    if std::env::var_os("OXSHMEM_TEST_WRITE").is_some() {
        fs::write(&page, variables()).unwrap();
    }
    let now = fs::read_to_string(page).unwrap_or_default();
    let test = "OXSHMEM_TEST_WRITE=1 cargo test -p oxshmem-cli pages";
    assert!(now == variables(), "docs/variables.md is another: {test}");
}
