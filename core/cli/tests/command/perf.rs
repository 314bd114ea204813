//! `oxshmem perf`.

use serde_json::Value;

use crate::process::{BINARY, json_of, run, stdout_of};

/// All rows of a JSON result have sensible numbers; gives (operation, bytes) of each.
fn checked_rows(results: &Value) -> Vec<(String, u64)> {
    let rows = results["rows"].as_array().unwrap();
    for row in rows {
        let latency = ["min", "median", "p99"].map(|name| row["latency_ns"][name].as_f64());
        let [min, median, p99] = latency.map(|number| number.unwrap_or(f64::NAN));
        assert!(
            0.0 < min && min <= median && median <= p99 && p99.is_finite(),
            "{row}"
        );
        assert!(row["batches"].as_u64().unwrap() > 0, "{row}");
        assert!(row["repetitions"].as_u64().unwrap() > 0, "{row}");
        if let Some(bandwidth) = row["bandwidth"].as_f64() {
            assert!(bandwidth > 0.0 && bandwidth.is_finite(), "{row}");
        }
    }
    let named = |row: &Value| {
        (
            row["op"].as_str().unwrap().into(),
            row["bytes"].as_u64().unwrap(),
        )
    };
    rows.iter().map(named).collect()
}

#[test]
fn perf_measures_every_operation_between_two_pes() {
    let results = json_of(&["perf", "--quick", "--sizes", "8..200", "--json", "-"]);
    let mut rows = checked_rows(&results);
    rows.sort();
    let mut expected: Vec<(String, u64)> = Vec::new();
    for (op, sizes) in [
        ("p", &[1, 2, 4, 8][..]),
        ("g", &[1, 2, 4, 8]),
        ("fetch-add", &[4, 8]),
        ("quiet", &[0]),
        ("p-quiet", &[8]),
        ("ping-pong", &[8]),
        ("barrier", &[0]),
        ("put", &[8, 32, 128, 200]),
        ("get", &[8, 32, 128, 200]),
        ("put-signal", &[8, 32, 128, 200]),
    ] {
        expected.extend(sizes.iter().map(|&bytes| (op.to_owned(), bytes)));
    }
    expected.sort();
    assert_eq!(rows, expected);
    let parameters = &results["parameters"];
    assert_eq!(
        (&parameters["pes"], &parameters["bind"]),
        (&2.into(), &"core".into())
    );
    assert_eq!(parameters["cpus"].as_array().unwrap().len(), 2);
    assert_eq!(parameters["transport"], "loopback");
}

#[test]
fn perf_prints_a_table_and_writes_json_to_a_file() {
    let file = std::env::temp_dir().join(format!("oxshmem-perf-{}.json", std::process::id()));
    let path = file.to_str().unwrap();
    let text = stdout_of(&[
        "perf", "--quick", "--pes", "3", "--json", path, "barrier", "quiet",
    ]);
    let results = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    std::fs::remove_file(&file).unwrap();
    let rows = checked_rows(&results);
    assert_eq!(rows, [("barrier".into(), 0), ("quiet".into(), 0)]);
    let table: Vec<&str> = text
        .lines()
        .skip_while(|line| !line.starts_with("---"))
        .collect();
    assert_eq!(table.len(), 3, "{text}");
    assert!(
        table[1].starts_with("barrier") && table[2].starts_with("quiet"),
        "{text}"
    );
    assert!(text.contains("PEs      3"), "{text}");
}

#[test]
fn perf_uses_the_job_it_is_in() {
    let results = json_of(&[
        "run", "-n", "3", BINARY, "perf", "--quick", "--json", "-", "p",
    ]);
    assert_eq!(results["parameters"]["pes"], 3);
    assert_eq!(results["parameters"]["bind"], Value::Null);
    assert_eq!(checked_rows(&results).len(), 4);
}

#[test]
fn perf_measures_over_the_transport_that_is_named() {
    let named = ["--transport", "loopback", "--quick", "--json", "-", "p"];
    let results = json_of(&[&["perf"], &named[..]].concat());
    assert_eq!(results["parameters"]["transport"], "loopback");
    assert_eq!(checked_rows(&results).len(), 4);
}

#[test]
fn perf_alone_measures_what_needs_no_second_pe() {
    let results = json_of(&[
        "perf", "--pes", "1", "--quick", "--sizes", "64", "--json", "-",
    ]);
    let rows = checked_rows(&results);
    assert!(rows.contains(&("put".into(), 64)), "{rows:?}");
    assert!(!rows.iter().any(|(op, _)| op == "ping-pong"), "{rows:?}");
}

#[test]
fn perf_refuses_what_it_cannot_measure_with_a_remedy() {
    for (args, remedy) in [
        (&["perf", "--sizes", "8..4"][..], "such as 8..64K"),
        (&["perf", "--sizes", "1..4T"], "such as 8..64K"),
        (&["perf", "--pes", "0"], "1 to 4096"),
        (&["perf", "scatter"], "possible values"),
        (&["perf", "--pes", "1", "barrier"], "--pes"),
        (
            &["perf", "--json", "/no/such/folder/x.json", "p"],
            "/no/such/folder/x.json",
        ),
        (&["perf", "--sizes", "1G", "put"], "--sizes"),
        (&["perf", "--transport", "pigeon", "p"], "this build has"),
        (&["perf", "--rounds", "0"], "1..=1000"),
    ] {
        let (status, stdout, stderr) = run(args);
        assert!(
            matches!(status, Some(1 | 2)),
            "{args:?}: {status:?} {stdout}{stderr}"
        );
        assert!(stderr.contains(remedy), "{args:?}: {stderr}");
    }
}
