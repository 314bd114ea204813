//! `oxshmem check`: the doctor for one host, and a job whose PEs count as hosts of their own.

use serde_json::Value;

use crate::process::{BINARY, command, outcome, run};

/// A job whose PEs each count as a host of its own, for `check` with these arguments. Each PE runs `script` before.
fn job(pes: &str, script: &str, args: &[&str]) -> (Option<i32>, String, String) {
    let check = [BINARY, "check", "--each-pe", "--quick", "--size", "64K"];
    let script = format!("{script} exec \"$@\"");
    let begin = ["run", "-n", pes, "--", "sh", "-c", &script, "sh"];
    outcome(&mut command(&[&begin[..], &check, args].concat()))
}

fn findings(stdout: &str) -> Vec<Value> {
    let document: Value = serde_json::from_str(stdout).unwrap();
    document["findings"].as_array().unwrap().clone()
}

#[test]
fn a_host_alone_has_its_lines_with_a_mend_for_each_that_is_bad() {
    let (_, text, stderr) = run(&["check", "--host-only"]);
    for topic in [
        "oxshmem ",
        "kernel ",
        "locked memory ",
        "remote shell ",
        "IOMMU ",
        "CPU governor ",
        "/dev/shm ",
    ] {
        let line = text.lines().find(|line| line.contains(topic));
        assert!(line.is_some(), "{topic}: {text}{stderr}");
    }
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let is_bad = line.starts_with("warning ") || line.starts_with("FAULT ");
        let mended = lines
            .peek()
            .is_some_and(|next| next.trim_start().starts_with("mend: "));
        assert_eq!(is_bad, mended, "{line}");
    }
    // Outside of a job, the command says how to come to one.
    let (_, text, _) = run(&["check"]);
    assert!(
        text.contains("oxshmem run --hosts a,b oxshmem check"),
        "{text}"
    );
    let (status, _, stderr) = run(&["check", "--svg", "picture.svg"]);
    assert_eq!(status, Some(1));
    assert!(stderr.contains("there is no job"), "{stderr}");
}

#[test]
fn a_folder_takes_the_place_of_the_machine_for_tests() {
    let (status, text, stderr) = run(&["check", "--host-only", "--sysroot", "/no/such/folder"]);
    assert_eq!(status, Some(0), "{text}{stderr}");
    assert!(
        text.contains("not visible: there is no /proc/self/limits"),
        "{text}"
    );
}

#[test]
fn all_pairs_of_hosts_are_measured_and_shown() {
    let folder = std::env::temp_dir();
    let path = |name: &str| folder.join(format!("oxshmem-check-{}-{name}", std::process::id()));
    let (json, svg) = (path("json"), path("svg"));
    let files = [
        "--json",
        json.to_str().unwrap(),
        "--svg",
        svg.to_str().unwrap(),
    ];
    let (status, text, stderr) = job("4", "", &files);
    assert_eq!(status, Some(0), "{text}{stderr}");
    assert!(text.contains("4 PEs on 4 hosts"), "{text}");
    for part in [
        "bandwidth one way, ",
        "latency of 8 bytes",
        "ring",
        "all to all",
        "bisection",
    ] {
        assert_eq!(text.matches(part).count(), 1, "{part}: {text}");
    }
    let document: Value = serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
    assert_eq!(
        document["links"].as_array().unwrap().len(),
        12,
        "{document}"
    );
    for link in document["links"].as_array().unwrap() {
        assert!(link["bytes_per_second"].as_f64().unwrap() > 0.0, "{link}");
        assert!(link["latency_ns"].as_f64().unwrap() > 0.0, "{link}");
    }
    assert_eq!(document["counts"]["faults"], 0, "{document}");
    let picture = std::fs::read_to_string(&svg).unwrap();
    let picture = roxmltree::Document::parse(&picture).unwrap();
    let cells = picture
        .descendants()
        .filter(|node| node.has_tag_name("rect"))
        .count();
    assert_eq!(cells, 1 + 3 * 12);
    for file in [json, svg] {
        std::fs::remove_file(file).unwrap();
    }
}

#[test]
fn the_host_that_differs_is_named() {
    let limit = "[ $OXSHMEM_RANK != 1 ] || ulimit -n 300;";
    let (status, text, stderr) = job("3", limit, &["--host-only", "--json", "-"]);
    assert_eq!(status, Some(0), "{text}{stderr}");
    let named: Vec<Value> = findings(&text)
        .into_iter()
        .filter(|finding| finding["topic"] == "descriptors")
        .collect();
    assert_eq!(named.len(), 1, "{named:?}");
    assert_eq!(named[0]["level"], "warning");
    assert!(
        named[0]["text"].as_str().unwrap().contains("[PE 1]: 300"),
        "{named:?}"
    );
    let variable = "[ $OXSHMEM_RANK != 2 ] || export OXSHMEM_SPIN=7;";
    let (status, text, stderr) = job("3", variable, &["--host-only", "--json", "-", "--strict"]);
    assert_eq!(status, Some(2), "{text}{stderr}");
    let all = findings(&text);
    let spin = all
        .iter()
        .find(|finding| finding["topic"] == "OXSHMEM_SPIN")
        .unwrap();
    assert!(spin["text"].as_str().unwrap().contains("7 on "), "{spin}");
}

#[test]
fn a_bandwidth_that_no_link_has_is_a_fault() {
    let (status, text, stderr) = job("2", "", &["--fail-below", "100000"]);
    assert_eq!(status, Some(1), "{text}{stderr}");
    assert_eq!(text.matches("(--fail-below)").count(), 2, "{text}");
    assert!(
        text.trim_end()
            .lines()
            .last()
            .unwrap()
            .starts_with("2 faults, "),
        "{text}"
    );
}

#[test]
fn a_job_on_one_host_says_that_there_are_no_links() {
    let (_, text, stderr) = run(&["run", "-n", "2", BINARY, "check"]);
    assert!(text.contains("the job is on one host"), "{text}{stderr}");
    assert_eq!(text.matches("oxshmem check ").count(), 1, "{text}");
}
