//! The files that `oxshmem perf` writes and compares with.

use std::path::PathBuf;

use serde_json::Value;

use crate::perf::checked_rows;
use crate::process::{run, stdout_of};

/// A folder of one test, removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let name = format!("oxshmem-perf-{test}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().into()
    }

    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.0.join(name)).unwrap()
    }

    fn json(&self, name: &str) -> Value {
        serde_json::from_str(&self.text(name)).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const PUTS: [&str; 7] = [
    "perf",
    "--iterations",
    "200",
    "--sizes",
    "8..512",
    "put",
    "quiet",
];

#[test]
fn perf_writes_the_same_rows_as_json_csv_and_curves() {
    let folder = Folder::new("files");
    let [json, csv, svg] = ["all.json", "all.csv", "all.svg"].map(|name| folder.file(name));
    let outputs = ["--json", &json, "--csv", &csv, "--plot", &svg];
    let table = stdout_of(&[&PUTS[..], &outputs].concat());
    assert!(table.contains("put"), "{table}");
    let results = folder.json("all.json");
    let rows = checked_rows(&results);
    // put and memcpy at 4 sizes, quiet, and the bare ping-pong.
    assert_eq!(rows.len(), 10, "{rows:?}");
    let csv = folder.text("all.csv");
    let lines: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(lines[0][..3], ["metric", "op", "bytes"]);
    for ((metric, op, bytes), line) in rows.iter().zip(&lines[1..]) {
        assert_eq!(line[..3], [metric, op, bytes.to_string().as_str()]);
        assert_eq!(line.len(), lines[0].len());
    }
    assert_eq!(lines.len(), rows.len() + 1);
    let svg = folder.text("all.svg");
    let picture = roxmltree::Document::parse(&svg).unwrap();
    let texts: Vec<&str> = picture
        .descendants()
        .filter(|node| node.has_tag_name("text"))
        .filter_map(|node| node.text().map(str::trim))
        .collect();
    for curve in ["put", "memcpy", "bare-ping-pong"] {
        assert!(texts.contains(&curve), "{texts:?}");
    }
    assert!(!texts.contains(&"quiet"), "{texts:?}");
}

#[test]
fn perf_that_measures_nothing_leaves_files_as_they_were() {
    let folder = Folder::new("nothing");
    let (old, new) = (folder.file("old.json"), folder.file("new.csv"));
    std::fs::write(&old, "a result").unwrap();
    let (status, ..) = run(&[
        "perf", "--sizes", "1G", "--json", &old, "--csv", &new, "put",
    ]);
    assert_eq!(status, Some(1));
    assert_eq!(folder.text("old.json"), "a result");
    assert!(!std::path::Path::new(&new).exists());
}

#[test]
fn perf_writes_csv_to_stdout_in_place_of_the_table() {
    let text = stdout_of(&["perf", "--iterations", "10", "--csv", "-", "quiet"]);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert!(lines[1].starts_with("latency,quiet,0,1,"), "{text}");
}

/// A run's medians, each times a factor that depends on its operation.
fn times(results: &Value, factor: impl Fn(&str) -> f64) -> Value {
    let mut results = results.clone();
    for row in results["rows"].as_array_mut().unwrap() {
        let factor = factor(row["op"].as_str().unwrap());
        let median = &mut row["time_ns"]["median"];
        *median = (median.as_f64().unwrap() * factor).into();
    }
    results
}

#[test]
fn perf_says_what_changed_since_earlier_runs() {
    let folder = Folder::new("compare");
    let measure = [
        "perf",
        "--iterations",
        "100",
        "--sizes",
        "64",
        "put",
        "get",
        "quiet",
    ];
    let (run_file, json) = (folder.file("run.json"), folder.file("new.json"));
    stdout_of(&[&measure[..], &["--json", &run_file]].concat());
    let run_now = folder.json("run.json");
    // As if the earlier machine had been a thousand times faster at put, and as much slower at get.
    let write = |name: String, results: &Value| {
        std::fs::write(folder.file(&name), results.to_string()).unwrap();
        folder.file(&name)
    };
    let earlier: Vec<String> = (0..7)
        .map(|i| {
            let mut results = times(&run_now, |op| match op {
                "put" => 1e-3,
                "get" => 1e3,
                _ => 1.0 + f64::from(i) / 10.0,
            });
            results["parameters"]["hostname"] = "elsewhere".into();
            results["parameters"]["settings"]["OXSHMEM_SPIN"] = "77".into();
            write(format!("old{i}.json"), &results)
        })
        .collect();
    let new: Vec<String> = (0..6)
        .map(|i| {
            write(
                format!("new{i}.json"),
                &times(&run_now, |_| 1.0 + f64::from(i) / 10.0),
            )
        })
        .collect();
    let (earlier, new) = (earlier.join(","), new.join(","));

    let compare = ["--compare", &earlier, "--with", &new, "--json", &json];
    let compare = [&measure[..], &compare].concat();
    let text = stdout_of(&compare);
    let line = |op: &str| {
        let found = text
            .lines()
            .find(|line| line.contains(&format!("latency of {op}, 64 B")));
        found.unwrap_or_else(|| panic!("{text}"))
    };
    assert!(line("put").contains("slower"), "{text}");
    assert!(line("get").contains("faster"), "{text}");
    assert!(text.contains("was \"elsewhere\""), "{text}");
    assert!(text.contains("OXSHMEM_SPIN null, was \"77\""), "{text}");
    assert!(text.contains("of 3 rows changed significantly"), "{text}");
    let changes = folder.json("new.json")["comparison"]["changes"].clone();
    let verdict = |op: &str| {
        let changes = changes.as_array().unwrap().iter();
        changes.clone().find(|change| change["op"] == op).unwrap()["verdict"].clone()
    };
    assert_eq!(
        (verdict("put"), verdict("get")),
        ("worse".into(), "better".into())
    );

    // Only a given bound makes this count.
    let (status, stdout, _) = run(&[&compare[..], &["--fail-if-slower", "50"]].concat());
    assert_eq!(status, Some(1), "{stdout}");
    let fewer = ["perf", "--iterations", "100", "--sizes", "64", "get"];
    let compare = [
        "--compare",
        &earlier,
        "--with",
        &new,
        "--fail-if-slower",
        "50",
    ];
    let (status, stdout, stderr) = run(&[&fewer[..], &compare].concat());
    assert_eq!(status, Some(0), "{stdout}{stderr}");
    assert!(
        stdout.contains("2 were measured only then, 0 only now"),
        "{stdout}"
    );
    for row in ["latency of put: 64 B", "latency of quiet"] {
        let line = format!("measured only then: {row}\n");
        assert!(stdout.contains(&line), "{stdout}");
    }
    // One run proves nothing, whatever its figures.
    let one = ["--compare", earlier.split(',').next().unwrap()];
    let text = stdout_of(&[&fewer[..], &one].concat());
    assert!(
        text.contains("unclear") && text.contains("Too few runs"),
        "{text}"
    );
}

#[test]
fn perf_reads_what_it_compares_with_on_pe_0_alone() {
    let folder = Folder::new("elsewhere");
    let measure = ["perf", "--iterations", "10", "quiet"];
    stdout_of(&[&measure[..], &["--json", &folder.file("old.json")]].concat());
    for (file, status, said) in [("old.json", 0, "Too few runs"), ("new.json", 2, "new.json")] {
        // PE 1 does not find the file, as if it ran on another host.
        let script = format!(
            "[ $OXSHMEM_RANK = 0 ] && cd {} || cd /; exec {} perf --iterations 10 quiet --compare {file}",
            folder.file(""),
            crate::process::BINARY
        );
        let (found, stdout, stderr) = run(&["run", "-n", "2", "sh", "-c", &script]);
        assert_eq!(found, Some(status), "{stdout}{stderr}");
        let text = if status == 0 { &stdout } else { &stderr };
        assert!(text.contains(said), "{stdout}{stderr}");
        assert!(!stderr.contains("PE 1"), "{stderr}");
    }
}

#[test]
fn perf_refuses_to_compare_with_what_it_cannot_and_measures_nothing() {
    let folder = Folder::new("unable");
    let old = folder.file("old.json");
    let measure = ["perf", "--iterations", "10", "quiet"];
    stdout_of(&[&measure[..], &["--json", &old]].concat());
    let broken = folder.file("broken.json");
    std::fs::write(&broken, "no results").unwrap();
    let none = folder.file("none.json");
    for (file, op, reason) in [
        (&old, "fence", "give the same operations"),
        (&broken, "quiet", "is not what oxshmem perf --json writes"),
        (&none, "quiet", "none.json"),
    ] {
        for launcher in [&[][..], &["run", "-n", "2", crate::process::BINARY]] {
            let perf = ["perf", "--iterations", "10", op, "--compare", file];
            let (status, stdout, stderr) = run(&[launcher, &perf].concat());
            assert_eq!(status, Some(2), "{stderr}");
            assert!(stderr.contains(reason), "{stderr}");
            assert!(!stdout.contains("ns"), "{stdout}");
        }
    }
}
