//! `oxshmem perf`: its rows, the PEs that it measures between, and its refusals.

use serde_json::Value;

use crate::process::{BINARY, command, json_of, outcome, program, run, stdout_of};

/// Checks that all rows of a JSON result have sensible numbers; returns metric, operation and bytes
/// of each.
pub fn checked_rows(results: &Value) -> Vec<(String, String, u64)> {
    let rows = results["rows"].as_array().unwrap();
    for row in rows {
        let of = |name: &str| row["time_ns"][name].as_f64().unwrap_or(f64::NAN);
        assert!(
            0.0 < of("min") && of("min") <= of("median") && of("median").is_finite(),
            "{row}"
        );
        assert!(
            of("median") <= of("p99") && of("p99") <= of("p99_9") && of("p99_9").is_finite(),
            "{row}"
        );
        for name in ["batches", "repetitions", "checks", "window"] {
            assert!(row[name].as_u64().unwrap() > 0, "{row}");
        }
        assert!(row["rate"].as_f64().unwrap() > 0.0, "{row}");
        if let Some(bandwidth) = row["bandwidth"].as_f64() {
            assert!(bandwidth > 0.0 && bandwidth.is_finite(), "{row}");
        }
    }
    let named = |row: &Value| {
        (
            row["metric"].as_str().unwrap().into(),
            row["op"].as_str().unwrap().into(),
            row["bytes"].as_u64().unwrap(),
        )
    };
    rows.iter().map(named).collect()
}

/// The rows of one metric, without its name.
fn of_metric(rows: &[(String, String, u64)], metric: &str) -> Vec<(String, u64)> {
    let of = rows.iter().filter(|row| row.0 == metric);
    of.map(|(_, op, bytes)| (op.clone(), *bytes)).collect()
}

/// The operations, each at these sizes.
fn each<'a>(ops: &[&'a str], sizes: &[u64]) -> Vec<(&'a str, u64)> {
    let at = |op: &&'a str| {
        let op = *op;
        sizes
            .iter()
            .map(move |size| (op, *size))
            .collect::<Vec<_>>()
    };
    ops.iter().flat_map(at).collect()
}

fn sorted(rows: Vec<(&str, u64)>) -> Vec<(String, u64)> {
    let mut rows: Vec<_> = rows
        .into_iter()
        .map(|(op, bytes)| (op.to_owned(), bytes))
        .collect();
    rows.sort();
    rows
}

#[test]
fn perf_measures_between_the_pes_that_are_asked_for() {
    let measure = ["perf", "--pes", "4", "--iterations", "5", "--sizes", "8"];
    let pair = ["--from", "3", "--to", "1"];
    let results = json_of(&[&measure[..], &pair, &["--json", "-"]].concat());
    // All operations: each checks the right PE's memory.
    assert!(checked_rows(&results).len() > 80);
    let parameters = &results["parameters"];
    assert_eq!(
        (&parameters["from"], &parameters["to"]),
        (&3.into(), &1.into())
    );
    assert_eq!(parameters["from_host"], parameters["to_host"]);

    let table = stdout_of(&[&measure[..], &pair, &["put"]].concat());
    assert!(
        table.contains("route    PE 3 to PE 1 on ") && table.contains(" by loopback (memory), "),
        "{table}"
    );
    for (args, reason) in [
        (
            &["--to", "4", "put"][..],
            "no PE 4 for --to; this job's PEs are 0 to 3",
        ),
        (&["--from", "2", "--to", "2", "put"], "name the same PE"),
        (
            &["--from", "3", "--team", "half", "reduce"],
            "does not have PE 3",
        ),
    ] {
        let (status, stdout, stderr) = run(&[&measure[..], args].concat());
        assert_eq!((status, stdout.as_str()), (Some(2), ""), "{stderr}");
        assert!(stderr.contains(reason), "{stderr}");
    }
}

#[test]
fn perf_measures_every_operation_between_two_pes() {
    let results = json_of(&[
        "perf",
        "--iterations",
        "5",
        "--sizes",
        "8..200",
        "--json",
        "-",
    ]);
    let rows = checked_rows(&results);
    let mut latency = of_metric(&rows, "latency");
    latency.sort();
    let atomics = [
        "add",
        "inc",
        "set",
        "and",
        "or",
        "xor",
        "fetch",
        "fetch-add",
        "fetch-inc",
        "fetch-and",
        "fetch-or",
        "fetch-xor",
        "swap",
        "compare-swap",
    ];
    let words = [
        "p-fence",
        "p-quiet",
        "wait-until",
        "test",
        "signal-fetch",
        "ping-pong",
        "signal-set",
        "signal-add",
        "p-pe-quiet",
        "bare-ping-pong",
    ];
    let several = [
        "wait-until-all",
        "wait-until-any",
        "wait-until-some",
        "test-all",
        "test-any",
        "test-some",
        "wait-until-all-vector",
        "wait-until-any-vector",
        "wait-until-some-vector",
        "test-all-vector",
        "test-any-vector",
        "test-some-vector",
    ];
    let plain = [
        "fence",
        "quiet",
        "pe-quiet",
        "barrier",
        "sync",
        "lock",
        "test-lock",
        "lock-all",
        "context",
        "team-split",
    ];
    let expected = [
        each(&["p", "g"], &[1, 2, 4, 8]),
        each(&atomics, &[4, 8]),
        each(&plain, &[0]),
        each(&words, &[8]),
        each(&several, &[512]),
        // Only whole blocks.
        each(&["ibput", "ibget"], &[64, 128, 256]),
        each(
            &[
                "put",
                "get",
                "iput",
                "iget",
                "put-signal",
                "put-counted",
                "put-from",
                "get-into",
                "alloc",
                "broadcast",
                "collect",
                "fcollect",
                "alltoall",
                "alltoalls",
                "reduce",
                "reduce-scatter",
                "inscan",
                "exscan",
            ],
            &[8, 32, 128, 200],
        ),
    ];
    assert_eq!(latency, sorted(expected.concat()));
    let mut bandwidth = of_metric(&rows, "bandwidth");
    bandwidth.sort();
    let blocks = [
        "put-nbi",
        "get-nbi",
        "put-from-nbi",
        "get-into-nbi",
        "put-signal-nbi",
        "memcpy",
    ];
    assert_eq!(bandwidth, sorted(each(&blocks, &[8, 32, 128, 200])));
    let mut rate = of_metric(&rows, "rate");
    rate.sort();
    let atomics = [
        "fetch-nbi",
        "fetch-add-nbi",
        "fetch-inc-nbi",
        "fetch-and-nbi",
        "fetch-or-nbi",
        "fetch-xor-nbi",
        "swap-nbi",
        "compare-swap-nbi",
    ];
    assert_eq!(rate, sorted(each(&atomics, &[4, 8])));
    assert_eq!(rows.len(), latency.len() + bandwidth.len() + rate.len());
    let parameters = &results["parameters"];
    assert_eq!(
        (&parameters["pes"], &parameters["bind"]),
        (&2.into(), &"core".into())
    );
    assert_eq!(parameters["cpus"].as_array().unwrap().len(), 2);
    assert_eq!(parameters["transport"], "loopback");
}

#[test]
fn perf_answers_each_metric_for_the_operations_that_have_it() {
    let results = json_of(&[
        "perf",
        "--metric",
        "bandwidth,bidirectional,rate,overlap",
        "--sizes",
        "256K..1M",
        "--window",
        "100",
        "--iterations",
        "100",
        "--json",
        "-",
        "put",
        "get-nbi",
    ]);
    let rows = checked_rows(&results);
    let sizes = [256 << 10, 1 << 20];
    for metric in ["bidirectional", "rate", "overlap"] {
        let mut found = of_metric(&rows, metric);
        found.sort();
        assert_eq!(found, sorted(each(&["put", "get-nbi"], &sizes)), "{metric}");
    }
    let bandwidth = of_metric(&rows, "bandwidth");
    assert_eq!(bandwidth.len(), 3 * sizes.len(), "memcpy is measured, too");
    for row in results["rows"].as_array().unwrap() {
        let is = |metric| row["metric"] == metric;
        let memcpy = row["of_memcpy"].as_f64();
        let beside = is("bandwidth") && row["op"] != "memcpy";
        assert_eq!(memcpy.is_some_and(|share| share > 0.0), beside, "{row}");
        let overlap = row["overlap"].as_f64();
        let sensible = overlap.is_some_and(|percent| (0.0..=100.0).contains(&percent));
        assert_eq!(sensible, is("overlap"), "{row}");
        // A window has fewer large operations.
        let window = match row["bytes"].as_u64().unwrap() {
            _ if is("overlap") => 1,
            0x0010_0000 => 64,
            _ => 100,
        };
        assert_eq!(row["window"], window, "{row}");
    }
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
    let rows = of_metric(&checked_rows(&results), "latency");
    // In the order of the table.
    assert_eq!(rows, [("quiet".into(), 0), ("barrier".into(), 0)]);
    let table: Vec<&str> = text
        .lines()
        .skip_while(|line| !line.starts_with("---"))
        .collect();
    assert_eq!(table.len(), 5, "{text}");
    assert!(
        table[1].starts_with("quiet") && table[2].starts_with("barrier"),
        "{text}"
    );
    assert_eq!(table[4], "data right in all 2 rows (2 checks)");
    // Parameters come before results.
    let parameters = text.split("---").next().unwrap();
    for parameter in ["PEs      3", "20ms a row", "data of each row is checked"] {
        assert!(parameters.contains(parameter), "{text}");
    }
}

#[test]
fn perf_checks_the_data_of_every_batch_where_that_is_asked() {
    let args = [
        "--validate",
        "--session",
        "--iterations",
        "50",
        "--json",
        "-",
        "add",
        "put",
        "--sizes",
        "64",
    ];
    let results = json_of(&[&["perf"], &args[..]].concat());
    let parameters = &results["parameters"];
    assert_eq!(parameters["effort"]["validate"], true);
    assert_eq!(parameters["session"], true);
    assert_eq!(checked_rows(&results).len(), 3);
    for row in results["rows"].as_array().unwrap() {
        assert!(row["checks"].as_u64() > row["batches"].as_u64(), "{row}");
    }
}

#[test]
fn perf_measures_collectives_of_the_team_that_is_asked_for() {
    for (team, pes, members) in [("half", "5", 3), ("rows", "4", 2), ("shared", "2", 2)] {
        let options = ["perf", "--team", team, "--pes", pes, "--sizes", "64"];
        let ops = [
            "--validate",
            "--iterations",
            "30",
            "--json",
            "-",
            "barrier",
            "alltoall",
        ];
        let results = json_of(&[&options[..], &ops, &["put"]].concat());
        let parameters = &results["parameters"];
        assert_eq!(
            (&parameters["team"], &parameters["team_pes"]),
            (&team.into(), &members.into())
        );
        assert_eq!(checked_rows(&results).len(), 3);
    }
}

#[test]
fn perf_folds_what_is_asked_for() {
    for (fold, of, sizes) in [("max", "bf16", "8"), ("xor", "i32", "8..200")] {
        let options = ["perf", "--pes", "3", "--fold", fold, "--type", of];
        let folds = ["--validate", "--iterations", "20", "--sizes", sizes];
        let ops = ["--json", "-", "reduce", "exscan"];
        let results = json_of(&[&options[..], &folds, &ops].concat());
        let parameters = &results["parameters"];
        let expected = (&fold.into(), &of.into());
        assert_eq!((&parameters["fold"], &parameters["type"]), expected);
        let rows = if sizes == "8" { 2 } else { 8 };
        assert_eq!(checked_rows(&results).len(), rows);
    }
}

#[test]
fn perf_measures_as_many_operations_as_are_asked_for() {
    for wanted in [1_u64, 1000] {
        let given = wanted.to_string();
        let args = ["perf", "--iterations", &given, "--json", "-", "barrier"];
        let results = json_of(&args);
        let row = &results["rows"][0];
        let done = row["batches"].as_u64().unwrap() * row["repetitions"].as_u64().unwrap();
        assert!((wanted..2 * wanted).contains(&done), "{row}");
    }
}

#[test]
fn perf_uses_the_job_it_is_in() {
    let results = json_of(&[
        "run",
        "-n",
        "3",
        BINARY,
        "perf",
        "--seconds",
        "10ms",
        "--json",
        "-",
        "p",
    ]);
    assert_eq!(results["parameters"]["pes"], 3);
    assert_eq!(results["parameters"]["bind"], Value::Null);
    assert_eq!(checked_rows(&results).len(), 4);
}

#[test]
fn perf_measures_several_threads_at_once() {
    let results = json_of(&[
        "perf",
        "--threads",
        "2",
        "--metric",
        "rate,bandwidth",
        "--sizes",
        "64",
        "--iterations",
        "2000",
        "--json",
        "-",
        "put",
        "get-nbi",
    ]);
    let parameters = &results["parameters"];
    assert_eq!(
        (&parameters["threads"], &parameters["bind"]),
        (&2.into(), &"none".into())
    );
    assert_eq!(checked_rows(&results).len(), 5);
    for row in results["rows"].as_array().unwrap() {
        // The limit also runs on two threads.
        assert_eq!(row["threads"], 2, "{row}");
    }
}

#[test]
fn perf_measures_a_job_of_any_launcher() {
    let launchers = [
        ("mpirun", &["--allow-run-as-root", "--oversubscribe"][..]),
        ("mpiexec.hydra", &[]),
    ];
    for (launcher, options) in launchers {
        if program(launcher, &["--version"]).output().is_err() {
            eprintln!("SKIPPED: {launcher} is not installed");
            continue;
        }
        let perf = [
            "-n",
            "2",
            BINARY,
            "perf",
            "--iterations",
            "20",
            "--json",
            "-",
            "p",
        ];
        let args = [options, &perf].concat();
        let (status, stdout, stderr) = outcome(&mut program(launcher, &args));
        assert_eq!(status, Some(0), "{launcher}: {stdout}{stderr}");
        // PE 0 alone writes.
        let results: Value = serde_json::from_str(&stdout).unwrap();
        assert_eq!(results["parameters"]["pes"], 2);
        assert_eq!(checked_rows(&results).len(), 4);
    }
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
    let rows = of_metric(&checked_rows(&results), "latency");
    assert!(rows.contains(&("put".into(), 64)), "{rows:?}");
    for op in ["ping-pong", "bare-ping-pong", "barrier"] {
        assert!(!rows.iter().any(|row| row.0 == op), "{rows:?}");
    }
}

#[test]
fn perf_measures_by_lanes_where_no_pe_is_mapped() {
    let picture = std::env::temp_dir().join(format!("oxshmem-perf-{}.svg", std::process::id()));
    let plot = ["--plot", picture.to_str().unwrap()];
    let args = [
        "perf",
        "--iterations",
        "10",
        "--validate",
        "--sizes",
        "64..256",
        "--json",
        "-",
    ];
    let ops = ["put", "get-nbi", "p", "fetch-add", "ping-pong", "barrier"];
    let checked = &mut command(&[&args[..], &plot, &ops].concat());
    let (status, stdout, stderr) = outcome(checked.env("OXSHMEM_CHECK", "1"));
    assert_eq!(status, Some(0), "{stderr}");
    std::fs::remove_file(&picture).unwrap();
    let results: Value = serde_json::from_str(&stdout).unwrap();
    let rows = of_metric(&checked_rows(&results), "latency");
    assert!(rows.contains(&("put".into(), 64)), "{rows:?}");
    // The limit does not exist here.
    assert!(
        !rows.iter().any(|row| row.0 == "bare-ping-pong"),
        "{rows:?}"
    );
    let asked = command(&["perf", "bare-ping-pong"])
        .env("OXSHMEM_CHECK", "1")
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&asked.stderr);
    assert!(
        !asked.status.success() && stderr.contains("is not mapped"),
        "{stderr}"
    );
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
            &["perf", "--pes", "1", "--metric", "bidirectional"],
            "--pes",
        ),
        (&["perf", "--plot", "/tmp/x.svg", "barrier"], "--sizes"),
        (&["perf", "--json", "-", "--csv", "-"], "the same file"),
        (&["perf", "--transport", "pigeon", "p"], "this build has"),
        (&["perf", "--rounds", "0"], "1..=1000"),
        (&["perf", "--metric", "speed"], "possible values"),
        (&["perf", "--metric", "rate", "quiet"], "quiet has no rate"),
        (&["perf", "--team", "odd", "sync"], "possible values"),
        (&["perf", "--team", "half", "put"], "a collective"),
        (&["perf", "--team", "half", "sync"], "PE 0 alone"),
        (&["perf", "--fold", "mean", "reduce"], "sum, prod"),
        (
            &["perf", "--fold", "and", "--type", "f32"],
            "integers have each",
        ),
        (&["perf", "--type", "f32", "alltoall"], "name reduce"),
        (&["perf", "--memory", "cuda", "put"], "--memory cuda"),
        (&["perf", "--window", "0"], "1..=65536"),
        (&["perf", "--threads", "0"], "1..=256"),
        (&["perf", "--threads", "2", "barrier"], "--metric rate"),
        (&["perf", "--iterations", "0"], "1..="),
        (&["perf", "--seconds", "0"], "such as 90s"),
        (
            &["perf", "--seconds", "1", "--iterations", "1"],
            "cannot be used with",
        ),
        (&["perf", "--fail-if-slower", "5"], "--compare"),
        (&["perf", "--with", "x"], "--compare"),
        (
            &["perf", "--compare", "x", "--fail-if-slower=-5"],
            "percent",
        ),
    ] {
        refused(args, 2, remedy);
    }
}

#[test]
fn perf_says_what_stands_in_its_way() {
    for (args, said) in [
        (
            &["perf", "--json", "/no/such/folder/x.json", "p"][..],
            "/no/such/folder/x.json",
        ),
        (&["perf", "--csv", "/no/such/x.csv", "p"], "/no/such/x.csv"),
        (
            &["perf", "--plot", "/no/such/x.svg", "put"],
            "/no/such/x.svg",
        ),
        (&["perf", "--sizes", "1G", "put"], "OXSHMEM_SYMMETRIC_SIZE"),
    ] {
        refused(args, 1, said);
    }
}

fn refused(args: &[&str], expected: i32, said: &str) {
    let (status, stdout, stderr) = run(args);
    assert_eq!(status, Some(expected), "{args:?}: {stdout}{stderr}");
    assert!(stderr.contains(said), "{args:?}: {stderr}");
}
