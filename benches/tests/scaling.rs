//! `scaling` measures and models; the tests do not depend on the figures.

#![allow(clippy::unwrap_used)]

use std::process::Command;

use serde_json::Value;

#[test]
fn scaling_measures_each_kind_of_job_and_models_a_larger_one() {
    let file = std::env::temp_dir().join(format!("oxshmem-scaling-{}.json", std::process::id()));
    let sizes = ["--threads", "2,3", "--processes", "2", "--meetings", "4"];
    let done = Command::new(env!("CARGO_BIN_EXE_scaling"))
        .args(sizes)
        .args(["--modelled", "64", "--json"])
        .arg(&file)
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{stderr}");
    let results: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    std::fs::remove_file(&file).unwrap();

    let positive = |value: &Value| assert!(value.as_f64().unwrap() > 0.0, "{results}");
    let jobs = ["threads", "processes"].map(|kind| results[kind].as_array().unwrap());
    assert_eq!(jobs.map(Vec::len), [2, 1]);
    for row in jobs.into_iter().flatten() {
        positive(&row["start_s"]);
        positive(&row["each"]["allocated"]);
        positive(&row["internals"]);
        positive(&row["barrier"]["seconds"]);
        positive(&row["reduce"]["seconds"]);
        assert!(row["exchanges"].as_array().unwrap().len() >= 3);
    }
    positive(&results["processes"][0]["empty_s"]);
    for name in ["connect_s", "barrier_s", "gather_s", "question_s"] {
        positive(&results["meetings"][0][name]);
    }
    // The large job has a table for each peer more than the small one.
    let model = &results["model"];
    assert_eq!((&model["pes"], &model["hosts"]), (&64.into(), &8.into()));
    let each = model["memory"]["each"].as_f64().unwrap();
    assert!((50.0..1000.0).contains(&each), "{each} bytes a peer");
    for arrival in model["barriers"].as_array().unwrap() {
        positive(&arrival["seconds"]);
    }

    let text = String::from_utf8(done.stdout).unwrap();
    let tables = text.lines().filter(|line| line.starts_with("|---"));
    assert!(
        tables.count() == 5 && text.contains("64 PEs on 8 hosts"),
        "{text}"
    );
}

#[test]
fn a_job_that_is_not_of_whole_hosts_is_not_modelled() {
    let done = Command::new(env!("CARGO_BIN_EXE_scaling"))
        .args(["--modelled", "100"])
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&done.stderr);
    assert!(
        !done.status.success() && stderr.contains("multiple of 8"),
        "{stderr}"
    );
}
