//! `oxshmem manual`: manual pages, made from the command's own definition and the table of
//! variables.

use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::Command;

/// Write the manual pages of the command and of the variables: `make install` does.
#[derive(clap::Args)]
#[command(hide = true)]
pub struct Args {
    /// Folder for the pages, which is made if it is not there.
    folder: PathBuf,
}

/// `command` is the definition of the whole command.
pub fn main(args: &Args, command: Command) -> anyhow::Result<ExitCode> {
    let folder = &args.folder;
    let written = move || -> std::io::Result<()> {
        std::fs::create_dir_all(folder)?;
        clap_mangen::generate_to(command, folder)?;
        std::fs::write(folder.join("oxshmem-environment.7"), environment())?;
        for page in std::fs::read_dir(folder)? {
            let page = page?.path();
            let text = std::fs::read_to_string(&page)?;
            std::fs::write(page, in_ascii(&text))?;
        }
        Ok(())
    };
    written().with_context(|| format!("writing pages to {}", folder.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// The page of all environment variables.
fn environment() -> String {
    let mut page = String::from(
        ".TH oxshmem\\-environment 7 \"\" oxshmem \"OpenSHMEM\"\n\
         .SH NAME\noxshmem\\-environment \\- environment variables that oxshmem reads\n\
         .SH DESCRIPTION\n\
         Every program of oxshmem reads these when it starts, in C, C++, Python or Rust.\n\
         A value that makes no sense ends the program with a message that names the variable.\n\
         After each name is what holds where it is not set.\n",
    );
    for variable in oxshmem::variables() {
        let (name, default) = (escaped(variable.name), escaped(variable.default));
        let meaning = escaped(variable.meaning);
        // Writing to a `String` does not fail.
        let _ = write!(page, ".TP\n.BR \"{name}\" \" [{default}]\"\n{meaning}\n");
    }
    page.push_str(
        ".SH SEE ALSO\n\
         .BR oxshmem (1),\n.BR oshrun (1),\n.BR oxshmem\\-memory\\-model (7)\n",
    );
    page
}

/// Writes characters beyond ASCII as code points, which every formatter reads in any locale.
fn in_ascii(text: &str) -> String {
    let named = |letter: char| {
        if letter.is_ascii() {
            letter.to_string()
        } else {
            format!("\\[u{:04X}]", u32::from(letter))
        }
    };
    text.chars().map(named).collect()
}

/// Escapes a line of text: backslashes, dashes (else hyphens), quotes (else the end of an
/// argument), and a dot or an apostrophe at the start (else a request).
fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    let text = text.replace('"', "\\(dq").replace('\n', " ");
    if text.starts_with(['.', '\'']) {
        format!("\\&{text}")
    } else {
        text
    }
}
