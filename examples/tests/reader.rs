//! The graph reader: accepted files, and the errors of all others.
#![expect(clippy::unwrap_used, reason = "a test's helpers may panic as tests do")]

use std::collections::BTreeSet;
use std::error::Error;
use std::io::Write;

use flate2::{Compression, write::GzEncoder};
use oxshmem_examples::graph::Graph;
use oxshmem_examples::read::{graph, parse};
use proptest::prelude::*;

fn edges(graph: &Graph) -> BTreeSet<(String, String)> {
    let names = graph.names();
    let pairs = graph
        .whole()
        .sources()
        .enumerate()
        .flat_map(|(to, sources)| {
            sources
                .iter()
                .map(move |from| (names[*from as usize].to_string(), names[to].to_string()))
        });
    pairs.collect()
}

fn read(text: &str) -> BTreeSet<(String, String)> {
    edges(&parse("t", text.as_bytes()).unwrap())
}

fn pairs(of: &[(&str, &str)]) -> BTreeSet<(String, String)> {
    of.iter()
        .map(|(a, b)| (a.to_string(), b.to_string()))
        .collect()
}

fn refusal(text: &[u8]) -> String {
    parse("t", text).unwrap_err().to_string()
}

#[test]
fn edge_lists_of_any_separator_and_name() {
    let expected = pairs(&[("1", "2"), ("libc6", "gcc-12-base"), ("two words", "ß")]);
    let text = "\u{feff}# c\r\n% c\n\n 1\t2 0.5\r\nlibc6  gcc-12-base\ntwo words , ß,3\n1 2";
    assert_eq!(read(text), expected);
}

#[test]
fn huge_ids_are_names_like_any_other() {
    let id = "18446744073709551615000";
    assert_eq!(
        read(&format!("{id} 4294967296\n")),
        pairs(&[(id, "4294967296")])
    );
    let order = u64::MAX;
    let text =
        format!("%%MatrixMarket matrix coordinate pattern general\n{order} {order} 1\n{order} 1\n");
    assert_eq!(read(&text), pairs(&[("18446744073709551615", "1")]));
}

#[test]
fn matrix_market_general_and_symmetric() {
    let body = "% note\n3 3 3\n1 2 1.5\n3 3 -2e3\n2 3 0\n";
    let general = read(&format!(
        "%%MatrixMarket matrix coordinate real general\n{body}"
    ));
    assert_eq!(general, pairs(&[("1", "2"), ("3", "3"), ("2", "3")]));
    let symmetric = read(&format!(
        "%%matrixmarket MATRIX Coordinate integer SYMMETRIC\n{body}"
    ));
    assert_eq!(
        symmetric,
        pairs(&[("1", "2"), ("2", "1"), ("3", "3"), ("2", "3"), ("3", "2")])
    );
}

#[test]
fn refusals_tell_file_line_reason_and_remedy() {
    let banner = "%%MatrixMarket matrix coordinate pattern general\n";
    for (text, expected) in [
        (
            "1 2\n3\n".into(),
            "t:2: one field, `3`; expected two vertices",
        ),
        (
            "1 2 x".into(),
            "t:1: the third field, `x`, is not a number; expected",
        ),
        ("a b c d".into(), "t:1: 4 fields; expected"),
        ("1,\n".into(), "t:1: a vertex has no name; expected"),
        (
            "# only\n".into(),
            "t: no edge in 1 lines; expected an edge list",
        ),
        (String::new(), "t: no edge in 0 lines"),
        (
            format!("1 2\n{banner}"),
            "t:2: a Matrix Market banner after other lines; it must be",
        ),
        (
            "%%MatrixMarket matrix array real general\n".into(),
            "t:1: `matrix array` is not a graph",
        ),
        (
            banner.replace("pattern", "complex"),
            "t:1: field `complex` is not supported; expected",
        ),
        (
            banner.replace("general", "hermitian"),
            "t:1: symmetry `hermitian` is not supported",
        ),
        (
            "%%MatrixMarket\n".into(),
            "t:1: a Matrix Market banner of 1 words; expected",
        ),
        (
            banner.into(),
            "t:1: the file ends before its sizes; expected `rows columns entries`",
        ),
        (format!("{banner}2 3 1\n1 1\n"), "t:2: 2 rows but 3 columns"),
        (
            format!("{banner}2 2 -1\n"),
            "t:2: `2 2 -1` does not tell sizes",
        ),
        (
            format!("{banner}2 2 1\n0 1\n"),
            "t:3: index 0 is not within 1 to 2; expected",
        ),
        (
            format!("{banner}2 2 1\n1 3\n"),
            "t:3: index 3 is not within 1 to 2; expected",
        ),
        (
            format!("{banner}2 2 1\n1 1 5\n"),
            "t:3: the banner promises no value with each entry",
        ),
        (
            format!("{banner}2 2 2\n1 1\n"),
            "t:3: the file ends after 1 of 2 entries; it may",
        ),
        (
            format!("{banner}2 2 1\n1 1\n1 2\n"),
            "t:4: more entries than the 1 promised; mend",
        ),
        (
            format!("{banner}2 2 99999999999999999999\n"),
            "t:2: `2 2 999999",
        ),
    ] {
        let message = refusal(text.as_bytes());
        assert!(
            message.starts_with(expected),
            "{text:?}: {message:?} is not {expected:?}"
        );
    }
    assert!(refusal(b"1 2\n\xff\xfe 3\n").starts_with("t:2: bytes that are not UTF-8"));
    assert!(refusal(&[b'x'; 100_000]).starts_with("t:1: a line of more than 65536 bytes"));
}

#[test]
fn the_shipped_graph_is_read_and_a_cut_one_refused() {
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/data/debian-bookworm.edges.gz");
    let whole = graph(data.as_ref()).unwrap();
    assert!(whole.edges() > 100_000, "{}", whole.edges());
    assert!(edges(&whole).contains(&("bash".into(), "libc6".into())));

    let mut file = tempfile();
    file.1
        .write_all(&std::fs::read(data).unwrap()[..100_000])
        .unwrap();
    let message = graph(&file.0).unwrap_err().to_string();
    std::fs::remove_file(&file.0).unwrap();
    assert!(message.contains("after line "), "{message}");
}

fn tempfile() -> (std::path::PathBuf, std::fs::File) {
    let path = std::env::temp_dir().join(format!("oxshmem-reader-{}", std::process::id()));
    let file = std::fs::File::create(&path).unwrap();
    (path, file)
}

#[test]
fn a_missing_file_is_named() {
    let error = graph("/nonexistent/graph".as_ref()).unwrap_err();
    let message = error.to_string();
    assert!(message.starts_with("/nonexistent/graph: "), "{message}");
    // Programs print an error with its causes; this error already contains its cause.
    assert!(error.source().is_none(), "{message}");
}

proptest! {
    #[test]
    fn what_was_written_is_read(
        list in prop::collection::vec(("[a-z0-9.+-]{1,9}", "[a-z0-9.+-]{1,9}"), 1..60),
        comma in any::<bool>(),
        gzip in any::<bool>(),
    ) {
        let between = if comma { " , " } else { "\t" };
        let text: String = list.iter().map(|(a, b)| format!("{a}{between}{b}\n#\n")).collect();
        let read = if gzip {
            let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
            packed.write_all(text.as_bytes()).unwrap();
            let bytes = packed.finish().unwrap();
            let decoder = flate2::bufread::MultiGzDecoder::new(&bytes[..]);
            parse("t", std::io::BufReader::new(decoder)).unwrap()
        } else {
            parse("t", text.as_bytes()).unwrap()
        };
        prop_assert_eq!(edges(&read), list.into_iter().collect());
    }

    #[test]
    fn matrices_are_read_as_written(
        list in prop::collection::btree_set((1u64..1000, 1u64..1000), 1..60),
    ) {
        let mut text = format!(
            "%%MatrixMarket matrix coordinate pattern general\n1000 1000 {}\n", list.len());
        list.iter().for_each(|(i, j)| text += &format!("{i} {j}\n"));
        let expected = list.iter().map(|(i, j)| (i.to_string(), j.to_string())).collect();
        prop_assert_eq!(read(&text), expected);
    }

    #[test]
    fn no_input_panics_and_each_refusal_names_the_file(
        input in prop_oneof![
            prop::collection::vec(any::<u8>(), 0..400),
            "(%%MatrixMarket matrix coordinate (real|pattern) (general|symmetric)\n)?\
             ([0-9]{1,20}[ ,]{0,2}){0,9}\n([0-9a-z,. -]{0,9}\n){0,9}".prop_map(String::into_bytes),
        ],
    ) {
        if let Err(error) = parse("t", &input[..]) {
            prop_assert!(error.to_string().starts_with("t:"), "{}", error);
        }
    }
}
