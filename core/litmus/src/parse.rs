//! The parser of programs. Every refusal names the line, the column and the remedy.

mod kernel_calls;
mod kernels;
mod line;
mod statement;
mod whole;

use crate::error::Error;
use crate::limits;
use crate::program::{
    Expectation, MemoryModel, Pattern, Place, Program, Register, Statement, Variable, Verdict,
    Words,
};
use line::{Line, Token, quote};

/// The state of the parser.
struct Parser {
    program: Program,
    /// The PE of the current section; `None` before the first `PE n:`.
    pe: Option<usize>,
    /// The PEs whose section has been read.
    sections: Vec<usize>,
    /// The highest PE named, with or without statements.
    pes: usize,
    /// The line number of each statement of each PE.
    lines: Vec<Vec<usize>>,
    /// The conditions of expectations, resolved when all registers are known.
    conditions: Vec<Condition>,
    /// The models that expectations name: line, column, model.
    named_models: Vec<(usize, usize, MemoryModel)>,
    registers: Vec<Register>,
    steps: usize,
}

/// One `r0=1` of an expectation.
struct Condition {
    line: usize,
    column: usize,
    label: String,
}

impl Program {
    /// Reads a program from its text; the crate's documentation describes the format.
    ///
    /// # Errors
    ///
    /// [`Error::Syntax`] if it is malformed, beyond [`limits`], or its PEs call different
    /// collectives (M36).
    pub fn parse(text: &str) -> Result<Program, Error> {
        let mut parser = Parser::new(text)?;
        let mut last = 0;
        for (index, text) in text.lines().enumerate() {
            last = index + 1;
            let mut line = Line::of(text, last);
            if !line.is_empty() {
                parser.line(&mut line)?;
            }
        }
        parser.finish(last)
    }
}

impl Parser {
    /// The start of a text within the limits.
    fn new(text: &str) -> Result<Parser, Error> {
        if text.len() > limits::TEXT {
            return Err(Error::Syntax {
                line: 1,
                column: 1,
                problem: format!("the text has {} bytes", text.len()),
                remedy: format!("{} at most", limits::TEXT),
            });
        }
        Ok(Parser {
            program: Program {
                name: String::new(),
                about: Vec::new(),
                rules: Vec::new(),
                models: Vec::new(),
                variables: Vec::new(),
                observed: Vec::new(),
                expectations: Vec::new(),
                statements: Vec::new(),
            },
            pe: None,
            sections: Vec::new(),
            pes: 0,
            lines: Vec::new(),
            conditions: Vec::new(),
            named_models: Vec::new(),
            registers: Vec::new(),
            steps: 0,
        })
    }

    fn line(&mut self, line: &mut Line<'_>) -> Result<(), Error> {
        let first = line.peek().map_or("", |token| token.text);
        if first == "PE" {
            return self.section(line);
        }
        if let Some(pe) = self.pe {
            if HEADER.contains(&first) {
                let problem = format!("`{first}` stands among the statements of PE {pe}");
                return Err(line.here(problem, "put it before the first `PE n:`"));
            }
            return self.statement(line, pe);
        }
        if !HEADER.contains(&first) {
            let problem = format!("{} is no header line", quote(first));
            let words = HEADER.join(", ");
            let remedy =
                format!("begin with one of {words}, or `PE 0:` before the first statement");
            return Err(line.here(problem, remedy));
        }
        let keyword = line.next("a header line")?;
        match keyword.text {
            "name" => self.name(line, keyword)?,
            "about" => self.about(line, keyword)?,
            "rules" => self.rules(line)?,
            "models" => self.models(line, keyword)?,
            "vars" => self.variables(line)?,
            "observe" => self.observe(line)?,
            _ => self.expect(line)?,
        }
        line.end()
    }

    /// `PE 0:`
    fn section(&mut self, line: &mut Line<'_>) -> Result<(), Error> {
        line.next("`PE`")?;
        let token = line.next("a PE's number and a colon, as in `PE 0:`")?;
        let Some(number) = token.text.strip_suffix(':') else {
            let problem = format!("{} has no colon", quote(token.text));
            return Err(line.at(token, problem, "write `PE 0:`"));
        };
        let pe = self.pe_number(line, token, number)?;
        if self.sections.contains(&pe) {
            let problem = format!("PE {pe} had its statements already");
            return Err(line.at(token, problem, "write all of them under one `PE n:`"));
        }
        line.end()?;
        self.sections.push(pe);
        self.pe = Some(pe);
        Ok(())
    }

    fn name(&mut self, line: &mut Line<'_>, keyword: Token<'_>) -> Result<(), Error> {
        if !self.program.name.is_empty() {
            return Err(line.at(keyword, "a second name", "one `name` line is enough"));
        }
        let token = line.next("a name, as in `name mp+fence`")?;
        let fits = |c: char| c.is_ascii_alphanumeric() || "+-_.".contains(c);
        if token.text.len() > limits::NAME || !token.text.chars().all(fits) {
            let problem = format!("{} is no name for a program", quote(token.text));
            let remedy = format!(
                "use up to {} of the letters a-z, A-Z, digits, and `+-_.`",
                limits::NAME
            );
            return Err(line.at(token, problem, remedy));
        }
        self.program.name = token.text.into();
        Ok(())
    }

    fn about(&mut self, line: &mut Line<'_>, keyword: Token<'_>) -> Result<(), Error> {
        let mut words = vec![line.next("what the program shows")?.text];
        while let Some(token) = line.optional() {
            words.push(token.text);
        }
        let text = words.join(" ");
        if text.chars().count() > limits::NAME || self.program.about.len() == limits::HEADER {
            let remedy = format!(
                "{} lines of {} characters at most",
                limits::HEADER,
                limits::NAME
            );
            return Err(line.at(keyword, "this is too long", remedy));
        }
        self.program.about.push(text);
        Ok(())
    }

    fn rules(&mut self, line: &mut Line<'_>) -> Result<(), Error> {
        let mut token = line.next("a rule of the contract, as in `rules M17 M23`")?;
        loop {
            let (number, last) = match token.text.split_at_checked(1) {
                Some(("M", number)) => (number, 38),
                Some(("G", number)) => (number, 6),
                _ => ("", 0),
            };
            let known =
                token.text == "M8b" || number.parse::<u8>().is_ok_and(|n| (1..=last).contains(&n));
            if !known || number.starts_with(['0', '+']) {
                let problem = format!("{} is no rule of the contract", quote(token.text));
                return Err(line.at(token, problem, "they are M1 to M38, M8b, and G1 to G6"));
            }
            let rules = &mut self.program.rules;
            if rules.iter().any(|rule| rule == token.text) {
                let problem = format!("{} is named twice", token.text);
                return Err(line.at(token, problem, "name each rule once"));
            }
            if rules.len() == limits::HEADER {
                let remedy = format!("{} at most", limits::HEADER);
                return Err(line.at(token, "too many rules", remedy));
            }
            rules.push(token.text.into());
            match line.optional() {
                Some(next) => token = next,
                None => return Ok(()),
            }
        }
    }

    fn models(&mut self, line: &mut Line<'_>, keyword: Token<'_>) -> Result<(), Error> {
        if !self.program.models.is_empty() {
            let remedy = "name both in one line";
            return Err(line.at(keyword, "a second `models` line", remedy));
        }
        let mut token = line.next("`ordered`, `relaxed` or both")?;
        loop {
            let Some(model) = model_of(token.text) else {
                let problem = format!("{} is no memory model", quote(token.text));
                return Err(line.at(token, problem, "they are `ordered` and `relaxed`"));
            };
            if self.program.models.contains(&model) {
                let problem = format!("{model} is named twice");
                return Err(line.at(token, problem, "name each model once"));
            }
            self.program.models.push(model);
            match line.optional() {
                Some(next) => token = next,
                None => break,
            }
        }
        self.program.models.sort_unstable();
        Ok(())
    }

    fn variables(&mut self, line: &mut Line<'_>) -> Result<(), Error> {
        let mut token = line.next("a variable, as in `vars x d[2]`")?;
        loop {
            let (name, words) = match index_of(token.text) {
                None => (token.text, 1),
                Some((name, count)) => (name, line.number(token, count, "an array's size")?),
            };
            let words = usize::try_from(words).unwrap_or(usize::MAX);
            let mut letters = name.chars();
            let good = letters.next().is_some_and(|c| c.is_ascii_lowercase())
                && letters.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
                && register_of(name).is_none()
                && name.len() <= limits::NAME;
            if !good {
                let problem = format!("{} is no name for a variable", quote(name));
                let remedy = "use a-z, 0-9 and `_`, a letter first, and not `r0`, a register";
                return Err(line.at(token, problem, remedy));
            }
            if !(1..=limits::WORDS).contains(&words) {
                let problem = format!("an array of {words} words");
                return Err(line.at(token, problem, format!("use 1 to {}", limits::WORDS)));
            }
            let variables = &mut self.program.variables;
            if variables.iter().any(|v| v.name == name) {
                let problem = format!("`{name}` is declared twice");
                return Err(line.at(token, problem, "declare each variable once"));
            }
            if variables.len() == limits::VARIABLES {
                let remedy = format!("{} at most", limits::VARIABLES);
                return Err(line.at(token, "too many variables", remedy));
            }
            let name = name.into();
            variables.push(Variable { name, words });
            match line.optional() {
                Some(next) => token = next,
                None => return Ok(()),
            }
        }
    }

    fn observe(&mut self, line: &mut Line<'_>) -> Result<(), Error> {
        let mut token = line.next("words to look at, as in `observe x@1`")?;
        loop {
            let place = self.place(line, token, token.text)?;
            for words in place.words.each() {
                let one = Place { words, ..place };
                if self.program.observed.contains(&one) {
                    let problem = format!("{} is observed twice", self.program.place_name(one));
                    return Err(line.at(token, problem, "name each word once"));
                }
                self.program.observed.push(one);
            }
            match line.optional() {
                Some(next) => token = next,
                None => return Ok(()),
            }
        }
    }

    fn expect(&mut self, line: &mut Line<'_>) -> Result<(), Error> {
        let mut token = line.next("`allowed` or `forbidden`")?;
        if self.program.expectations.len() == limits::HEADER {
            let remedy = format!("{} at most", limits::HEADER);
            return Err(line.at(token, "too many expectations", remedy));
        }
        let model = model_of(token.text);
        if let Some(model) = model {
            self.named_models.push((line.number, token.column, model));
            token = line.next("`allowed` or `forbidden`")?;
        }
        let verdict = match token.text {
            "allowed" => Verdict::Allowed,
            "forbidden" => Verdict::Forbidden,
            other => {
                let problem = format!("{} is no verdict", quote(other));
                let remedy = "write `allowed` or `forbidden`, a model's name before it at most";
                return Err(line.at(token, problem, remedy));
            }
        };
        let mut token = line.next("values, as in `r0=1 [x@1]=2`, or `deadlock`")?;
        let pattern = if token.text == "deadlock" {
            Pattern::Deadlock
        } else {
            let mut values: Vec<(String, u64)> = Vec::new();
            loop {
                let (label, value) = self.condition(line, token)?;
                if values.iter().any(|(other, _)| *other == label) {
                    let problem = format!("{label} is given twice");
                    return Err(line.at(token, problem, "give each value once"));
                }
                values.push((label, value));
                match line.optional() {
                    Some(next) => token = next,
                    None => break Pattern::Values(values),
                }
            }
        };
        self.program.expectations.push(Expectation {
            model,
            verdict,
            pattern,
        });
        Ok(())
    }

    /// `r0=1` or `[x@1]=2`, with the label as outcomes print it.
    fn condition(&mut self, line: &Line<'_>, token: Token<'_>) -> Result<(String, u64), Error> {
        let Some((left, right)) = token.text.rsplit_once('=') else {
            let problem = format!("{} gives no value", quote(token.text));
            return Err(line.at(token, problem, "write `r0=1` or `[x@1]=1`"));
        };
        let value = line.number(token, right, "a value")?;
        let inner = left.strip_prefix('[').and_then(|l| l.strip_suffix(']'));
        let label = match (register_of(left), inner) {
            (Some(register), _) => register.to_string(),
            (None, Some(inner)) => {
                let place = self.place(line, token, inner)?;
                let name = self.program.place_name(self.one_word(line, token, place)?);
                format!("[{name}]")
            }
            (None, None) => {
                let problem = format!("{} is no register and no word", quote(left));
                return Err(line.at(token, problem, "write `r0=1` or `[x@1]=1`"));
            }
        };
        self.conditions.push(Condition {
            line: line.number,
            column: token.column,
            label: label.clone(),
        });
        Ok((label, value))
    }

    /// `x@1`
    fn place(&mut self, line: &Line<'_>, token: Token<'_>, text: &str) -> Result<Place, Error> {
        let Some((words, pe)) = text.split_once('@') else {
            let problem = format!("{} names no PE", quote(text));
            return Err(line.at(token, problem, "write `x@1` for x on PE 1"));
        };
        let words = self.words(line, token, words)?;
        let pe = self.pe_number(line, token, pe)?;
        Ok(Place { words, pe })
    }

    /// `x`, `d` or `d[1]`
    fn words(&self, line: &Line<'_>, token: Token<'_>, text: &str) -> Result<Words, Error> {
        let (name, index) = match index_of(text) {
            None => (text, None),
            Some((name, index)) => (name, Some(line.number(token, index, "an index")?)),
        };
        let variables = self.program.variables.iter();
        let found = variables.enumerate().find(|(_, v)| v.name == name);
        let Some((variable, declared)) = found else {
            if name.contains('@') {
                let problem = format!("{} names a PE", quote(name));
                return Err(line.at(token, problem, "this call takes this PE's own words: `x`"));
            }
            let problem = format!("{} is no variable", quote(name));
            let remedy = "declare it first, as in `vars x y`";
            return Err(line.at(token, problem, remedy));
        };
        let (first, count) = match index {
            None => (0, declared.words),
            Some(index) if index < declared.words as u64 => (index as usize, 1),
            Some(index) => {
                let problem = format!("{name}[{index}] lies outside of `{name}`");
                let remedy = format!("its last word is {name}[{}]", declared.words - 1);
                return Err(line.at(token, problem, remedy));
            }
        };
        Ok(Words {
            variable,
            first,
            count,
        })
    }

    fn one_word(&self, line: &Line<'_>, token: Token<'_>, place: Place) -> Result<Place, Error> {
        self.single(line, token, place.words).map(|_| place)
    }

    fn single(&self, line: &Line<'_>, token: Token<'_>, words: Words) -> Result<Words, Error> {
        if words.count == 1 {
            return Ok(words);
        }
        let name = self.program.words_name(words);
        let problem = format!("`{name}` has {} words", words.count);
        Err(line.at(token, problem, format!("name one of them: `{name}[0]`")))
    }

    fn pe_number(&mut self, line: &Line<'_>, token: Token<'_>, text: &str) -> Result<usize, Error> {
        let number = line.number(token, text, "a PE's number")?;
        match usize::try_from(number) {
            Ok(pe) if pe < limits::PES => {
                self.pes = self.pes.max(pe + 1);
                Ok(pe)
            }
            _ => {
                let problem = format!("there can be no PE {number}");
                let remedy = format!("PEs are 0 to {}", limits::PES - 1);
                Err(line.at(token, problem, remedy))
            }
        }
    }

    fn push(&mut self, line: &Line<'_>, pe: usize, statement: Statement) {
        let pes = pe + 1;
        if self.program.statements.len() < pes {
            self.program.statements.resize_with(pes, Vec::new);
            self.lines.resize_with(pes, Vec::new);
        }
        self.program.statements[pe].push(statement);
        self.lines[pe].push(line.number);
    }
}

/// The first words of header lines.
const HEADER: [&str; 7] = [
    "name", "about", "rules", "models", "vars", "observe", "expect",
];

fn model_of(text: &str) -> Option<MemoryModel> {
    MemoryModel::ALL.into_iter().find(|m| m.to_string() == text)
}

/// `d[1]` as `d` and `1`.
fn index_of(text: &str) -> Option<(&str, &str)> {
    text.strip_suffix(']')?.split_once('[')
}

/// `r0`, up to the highest register.
fn register_of(text: &str) -> Option<Register> {
    let number = text.strip_prefix('r')?;
    let digits = number.bytes().all(|b| b.is_ascii_digit());
    let canonical = number == "0" || !number.starts_with('0');
    let value = number.parse().ok()?;
    (digits && canonical && value < limits::REGISTERS).then_some(Register(value))
}
