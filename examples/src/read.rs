//! Reads a graph from a file: an edge list or a Matrix Market coordinate file, either of them
//! gzip-compressed or not. The content decides, not the file's name.
//!
//! **Edge list**: an edge a line, two vertices separated by blanks, or by a comma where the line
//! has one. Vertices are any words or numbers, and the same spelling is the same vertex. A third
//! field, if a number, is a weight and is not used. Lines that begin with `#` or `%` are comments.
//!
//! **Matrix Market**: an entry in row i and column j is an edge from i to j, in a symmetric matrix
//! also one from j to i; values are not used.
//!
//! Repeated edges count once, and vertices without any edge do not exist. Memory grows with the
//! lines read, never with the numbers in them.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

use crate::graph::{Builder, Graph};

/// The longest line taken, in bytes.
const LONGEST_LINE: u64 = 64 * 1024;

/// The reason why a file is not a graph.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The file cannot be read.
    #[error("{file}: {after}{error}")]
    Io {
        /// The file.
        file: String,
        /// "after line N: ", or nothing.
        after: String,
        /// The error of the system or of the decompressor.
        error: io::Error,
    },
    /// A line cannot be understood.
    #[error("{file}:{line}: {what}; {mend}")]
    Malformed {
        /// The file.
        file: String,
        /// The number of the line, from 1.
        line: u64,
        /// The problem.
        what: String,
        /// The remedy.
        mend: &'static str,
    },
    /// The text is valid, but has no edge.
    #[error("{file}: no edge in {lines} lines; expected an edge list or a Matrix Market file")]
    Empty {
        /// The file.
        file: String,
        /// The number of lines read.
        lines: u64,
    },
}

/// Reads a graph file.
pub fn graph(path: &Path) -> Result<Graph, ReadError> {
    let file = path.display().to_string();
    let failed = |error| ReadError::Io {
        file: file.clone(),
        after: String::new(),
        error,
    };
    let mut input = BufReader::new(File::open(path).map_err(failed)?);
    if input.fill_buf().map_err(failed)?.starts_with(&[0x1f, 0x8b]) {
        parse(&file, BufReader::new(MultiGzDecoder::new(input)))
    } else {
        parse(&file, input)
    }
}

/// Reads a graph from uncompressed text; errors call it `file`.
pub fn parse(file: &str, input: impl BufRead) -> Result<Graph, ReadError> {
    let mut lines = Lines {
        file,
        input,
        number: 0,
    };
    let mut builder = Builder::default();
    let mut edges = 0_u64;
    let mut line = String::new();
    while lines.next(&mut line)? {
        let line = line.trim();
        if line.starts_with("%%") && line.to_ascii_lowercase().starts_with("%%matrixmarket") {
            if lines.number > 1 {
                return Err(lines.malformed(
                    "a Matrix Market banner after other lines".into(),
                    "it must be the file's first line",
                ));
            }
            let header = banner(line).map_err(|(what, mend)| lines.malformed(what, mend))?;
            edges = matrix(&mut lines, &mut builder, header)?;
            break;
        }
        if line.is_empty() || line.starts_with(['#', '%']) {
            continue;
        }
        let (from, to) = edge(line).map_err(|what| lines.malformed(what, EDGE))?;
        builder.edge(from, to).map_err(|_| lines.too_many())?;
        edges += 1;
    }
    if edges == 0 {
        return Err(ReadError::Empty {
            file: file.into(),
            lines: lines.number,
        });
    }
    Ok(builder.build())
}

const EDGE: &str = "expected two vertices separated by blanks or a comma, such as `4 17` or `a,b`, \
                    with at most a numeric weight after them";
const ENTRY: &str = "expected `row column` or `row column value`, counted from 1";
const BANNER: &str = "expected `%%MatrixMarket matrix coordinate FIELD SYMMETRY` with FIELD one of \
                      pattern, real, integer and SYMMETRY one of general, symmetric";

/// The two vertices of an edge list's line.
fn edge(line: &str) -> Result<(&str, &str), String> {
    let mut fields = [""; 3];
    let mut count = 0;
    let mut keep = |field| {
        if let Some(slot) = fields.get_mut(count) {
            *slot = field;
        }
        count += 1;
    };
    if line.contains(',') {
        line.split(',').map(str::trim).for_each(&mut keep);
    } else {
        line.split_whitespace().for_each(&mut keep);
    }
    let [from, to, weight] = fields;
    match count {
        0 | 1 => Err(format!("one field, `{}`", shortened(line))),
        2 | 3 if from.is_empty() || to.is_empty() => Err("a vertex has no name".into()),
        2 => Ok((from, to)),
        3 if weight.parse::<f64>().is_ok() => Ok((from, to)),
        3 => Err(format!(
            "the third field, `{}`, is not a number",
            shortened(weight)
        )),
        more => Err(format!("{more} fields")),
    }
}

/// The declarations of a Matrix Market banner.
#[derive(Clone, Copy)]
struct Header {
    values: bool,
    symmetric: bool,
}

fn banner(line: &str) -> Result<Header, (String, &'static str)> {
    let line = line.to_ascii_lowercase();
    let words: Vec<&str> = line.split_whitespace().collect();
    let refuse = |what: String| Err((what, BANNER));
    let ["%%matrixmarket", object, format, field, symmetry] = words[..] else {
        return refuse(format!("a Matrix Market banner of {} words", words.len()));
    };
    if (object, format) != ("matrix", "coordinate") {
        return refuse(format!("`{object} {format}` is not a graph"));
    }
    let values = match field {
        "pattern" => false,
        "real" | "integer" => true,
        other => return refuse(format!("field `{}` is not supported", shortened(other))),
    };
    let symmetric = match symmetry {
        "general" => false,
        "symmetric" => true,
        other => return refuse(format!("symmetry `{}` is not supported", shortened(other))),
    };
    Ok(Header { values, symmetric })
}

/// Reads the sizes and the entries after the banner. Returns the number of entries.
fn matrix(
    lines: &mut Lines<'_, impl BufRead>,
    builder: &mut Builder,
    header: Header,
) -> Result<u64, ReadError> {
    const SIZES: &str = "expected `rows columns entries`, with as many rows as columns";
    let mut sizes: Option<(u64, u64)> = None;
    let mut seen = 0;
    let mut line = String::new();
    while lines.next(&mut line)? {
        let line = line.trim();
        if line.is_empty() || line.starts_with('%') {
            continue;
        }
        let mut fields = line.split_whitespace();
        let mut number = || fields.next().and_then(|field| field.parse::<u64>().ok());
        let Some((order, entries)) = sizes else {
            sizes = Some(match (number(), number(), number(), fields.next()) {
                (Some(rows), Some(columns), Some(entries), None) if rows == columns => {
                    (rows, entries)
                }
                (Some(rows), Some(columns), Some(_), None) => {
                    let what = format!("{rows} rows but {columns} columns: not a graph's matrix");
                    return Err(lines.malformed(what, SIZES));
                }
                _ => {
                    let what = format!("`{}` does not tell sizes", shortened(line));
                    return Err(lines.malformed(what, SIZES));
                }
            });
            continue;
        };
        let (Some(row), Some(column)) = (number(), number()) else {
            let what = format!("`{}` is not an entry", shortened(line));
            return Err(lines.malformed(what, ENTRY));
        };
        let value = fields.next();
        if value.is_some() != header.values || fields.next().is_some() {
            let banner = if header.values {
                "one value"
            } else {
                "no value"
            };
            let what = format!("the banner promises {banner} with each entry");
            return Err(lines.malformed(what, ENTRY));
        }
        if let Some(value) = value.filter(|value| value.parse::<f64>().is_err()) {
            let what = format!("the value `{}` is not a number", shortened(value));
            return Err(lines.malformed(what, ENTRY));
        }
        if let Some(index) = [row, column]
            .into_iter()
            .find(|index| !(1..=order).contains(index))
        {
            let what = format!("index {index} is not within 1 to {order}");
            return Err(lines.malformed(what, ENTRY));
        }
        if seen == entries {
            let what = format!("more entries than the {entries} promised");
            return Err(lines.malformed(what, "mend the sizes' line or remove the surplus"));
        }
        seen += 1;
        let (row, column) = (row.to_string(), column.to_string());
        let mut added = builder.edge(&row, &column);
        if header.symmetric {
            added = added.and_then(|()| builder.edge(&column, &row));
        }
        added.map_err(|_| lines.too_many())?;
    }
    match sizes {
        Some((_, entries)) if seen < entries => {
            let what = format!("the file ends after {seen} of {entries} entries");
            Err(lines.malformed(what, "it may have been cut off: fetch it again"))
        }
        Some(_) => Ok(seen),
        None => Err(lines.malformed("the file ends before its sizes".into(), SIZES)),
    }
}

/// The start of a text, for messages.
fn shortened(text: &str) -> String {
    const LONGEST: usize = 40;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into(),
    }
}

/// The lines of a text, counted and bounded in length.
struct Lines<'a, R> {
    file: &'a str,
    input: R,
    number: u64,
}

impl<R: BufRead> Lines<'_, R> {
    /// Reads the next line into `line`; false at the end.
    fn next(&mut self, line: &mut String) -> Result<bool, ReadError> {
        let mut bytes = std::mem::take(line).into_bytes();
        bytes.clear();
        let length = (&mut self.input)
            .take(LONGEST_LINE + 1)
            .read_until(b'\n', &mut bytes)
            .map_err(|error| ReadError::Io {
                file: self.file.into(),
                after: format!("after line {}: ", self.number),
                error,
            })?;
        if length == 0 {
            return Ok(false);
        }
        self.number += 1;
        if length as u64 > LONGEST_LINE {
            let what = format!("a line of more than {LONGEST_LINE} bytes");
            return Err(self.malformed(what, "expected a text file with an edge a line"));
        }
        if self.number == 1 && bytes.starts_with("\u{feff}".as_bytes()) {
            bytes.drain(..'\u{feff}'.len_utf8());
        }
        *line = String::from_utf8(bytes).map_err(|_| {
            self.malformed(
                "bytes that are not UTF-8 text".into(),
                "expected a text file, plain or compressed by gzip",
            )
        })?;
        Ok(true)
    }

    fn malformed(&self, what: String, mend: &'static str) -> ReadError {
        ReadError::Malformed {
            file: self.file.into(),
            line: self.number,
            what,
            mend,
        }
    }

    fn too_many(&self) -> ReadError {
        self.malformed(
            format!("more than {} vertices", u32::MAX),
            "this program numbers vertices with 32 bits: use a smaller graph",
        )
    }
}
