//! The programs to run, built-in ones by name, others from files; and their allowed outcomes.

use std::fs::File;
use std::io::Read;

use oxshmem_litmus::library::library;
use oxshmem_litmus::{MemoryModel, Outcomes, Program, limits, model};

use super::refused::Refused;

/// The programs that are asked for, or all.
pub fn chosen(asked: &[String]) -> Result<Vec<Program>, Refused> {
    if asked.is_empty() {
        let all = library().iter();
        return all.map(|(name, text)| parse(name, text)).collect();
    }
    asked.iter().map(|asked| one(asked)).collect()
}

/// The outcomes that the contract allows for a program.
pub fn outcomes(program: &Program, model: MemoryModel) -> Result<Outcomes<'_>, Refused> {
    model::outcomes(program, model).map_err(|error| Refused(error.to_string()))
}

fn one(asked: &str) -> Result<Program, Refused> {
    if asked.contains('/') || asked.ends_with(".litmus") {
        return parse(asked, &text(asked)?);
    }
    if let Some((name, text)) = library().iter().find(|(name, _)| *name == asked) {
        return parse(name, text);
    }
    let near = |name: &str| strsim::jaro_winkler(asked, name);
    let names = library().iter().map(|(name, _)| *name);
    let nearest = names.max_by(|a, b| near(a).total_cmp(&near(b)));
    Err(Refused(format!(
        "there is no program {asked:?}; did you mean {}? `oxshmem litmus --list` lists them all, and \
         a file's name ends in .litmus",
        nearest.unwrap_or_default()
    )))
}

fn parse(name: &str, text: &str) -> Result<Program, Refused> {
    Program::parse(text).map_err(|error| Refused(format!("{name}: {error}")))
}

fn text(path: &str) -> Result<String, Refused> {
    let refuse = |why: String| Refused(format!("cannot read {path}: {why}"));
    let mut text = String::new();
    // Reads one byte beyond the limit, so that the parser sees that the file is too long.
    let read = File::open(path)
        .and_then(|file| file.take(limits::TEXT as u64 + 1).read_to_string(&mut text));
    match read {
        Ok(_) => Ok(text),
        Err(error) => Err(refuse(format!(
            "{error}; name a text file of a litmus program"
        ))),
    }
}
