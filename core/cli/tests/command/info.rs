//! `oxshmem info`, and the parts of it that work without a world.

use std::process::Command;

use serde_json::Value;

use crate::process::{BINARY, command, finish, json_of, outcome, run, stdout_of};

#[test]
fn info_shows_machine_transports_world_and_what_is_set_on_one_screen() {
    let mut command = command(&["run", "-n", "4", BINARY, "info"]);
    let (status, text, stderr) = outcome(command.env("OXSHMEM_SPIN", "17"));
    assert_eq!(status, Some(0), "{stderr}");
    for part in [
        "Machine\n",
        "Transports, best first\n",
        "World\n",
        "memory model  ordered",
        "loopback  memory: ",
        "OXSHMEM_SPIN                17\n",
        "More: --variables",
    ] {
        assert_eq!(text.matches(part).count(), 1, "{part}: {text}");
    }
    // None of the job's own variables, and no line twice.
    assert!(!text.contains("OXSHMEM_RANK"), "{text}");
    let mut lines: Vec<&str> = text.lines().filter(|line| line.contains(' ')).collect();
    assert!(lines.len() < 36, "{text}");
    let all = lines.len();
    lines.sort_unstable();
    lines.dedup();
    assert_eq!(lines.len(), all, "{text}");
    assert!(text.lines().all(|line| line == line.trim_end()), "{text}");
}

#[test]
fn info_shows_every_variable_where_that_is_asked() {
    let mut unset = command(&["info", "--variables"]);
    let (status, text, stderr) = outcome(unset.env_remove("OXSHMEM_SYMMETRIC_SIZE"));
    assert_eq!(status, Some(0), "{stderr}");
    assert!(!text.contains("Machine\n"), "{text}");
    for variable in oxshmem::variables() {
        assert!(
            text.contains(variable.name) && text.contains(variable.default),
            "{text}"
        );
    }
    assert!(text.lines().all(|line| line == line.trim_end()), "{text}");
    // Once for a job, which is not joined for this.
    let text = stdout_of(&["run", "-n", "3", BINARY, "info", "--variables"]);
    assert_eq!(text.matches("OXSHMEM_SPIN ").count(), 1, "{text}");
}

#[test]
fn info_shows_how_collective_calls_go_where_that_is_asked() {
    let text = stdout_of(&["run", "-n", "3", BINARY, "info", "--collectives"]);
    assert_eq!(text.matches("alltoalls ").count(), 1, "{text}");
    assert!(!text.contains("Machine\n"), "{text}");
    let mut odd = command(&["info", "--collectives"]);
    let (status, stdout, stderr) = outcome(odd.env("OXSHMEM_TIMEOUT", "soon"));
    assert_eq!((status, stdout.as_str()), (Some(1), ""));
    assert!(stderr.contains("OXSHMEM_TIMEOUT"), "{stderr}");
}

#[test]
fn info_shows_capabilities_guarantees_and_the_reason_of_each_route() {
    let text = stdout_of(&["info", "--transports"]);
    for part in [
        "loopback: available",
        "guarantees, host memory",
        "put, put in order",
    ] {
        assert!(text.contains(part), "{text}");
    }
    assert!(!text.contains("available: verbs: not available"), "{text}");
    let info = json_of(&["info", "--json"]);
    let device = &info["transports"][0]["devices"][0];
    assert_eq!(
        device["promises"]["guarantees"]["host"]["put, put in order"],
        "yes"
    );
    assert_eq!(info["world"]["pes"], 1);
    assert_eq!(info["world"]["heap_limit"], 64 << 20);
    assert_eq!(info["world"]["by_pe"][0]["routes"][0]["mapped"], true);
}

#[test]
fn info_shows_values_that_are_set_but_no_secret() {
    let secret = "5ec7e7".repeat(11);
    let mut command = command(&["info", "--json"]);
    command
        .env("OXSHMEM_JOB_KEY", &secret)
        .env("OXSHMEM_SPIN", "17");
    let (status, stdout, stderr) = outcome(&mut command);
    assert_eq!(status, Some(0), "{stderr}");
    assert!(!stdout.contains("5ec7e7"), "{stdout}");
    let info: Value = serde_json::from_str(&stdout).unwrap();
    let value = |name: &str| {
        let variables = info["variables"].as_array().unwrap();
        variables
            .iter()
            .find(|variable| variable["name"] == name)
            .unwrap()["value"]
            .clone()
    };
    assert_eq!(value("OXSHMEM_SPIN"), "17");
    assert_eq!(value("OXSHMEM_JOB_KEY"), "(set, not shown)");
    assert_eq!(value("OXSHMEM_TIMEOUT"), Value::Null);
}

#[test]
fn info_shows_the_rest_where_there_is_no_world() {
    let mut command = command(&["info"]);
    let (status, stdout, stderr) = outcome(command.env("OXSHMEM_TIMEOUT", "soon"));
    assert_eq!(status, Some(1));
    assert!(
        stderr.contains("OXSHMEM_TIMEOUT") && stderr.contains("soon"),
        "{stderr}"
    );
    assert!(
        stdout.contains("OXSHMEM_TIMEOUT             soon"),
        "{stdout}"
    );
    assert!(stdout.contains("Machine"), "{stdout}");
}

#[test]
fn info_in_a_job_shows_once_how_all_pes_reach_all() {
    let text = stdout_of(&["run", "-n", "4", BINARY, "info"]);
    assert_eq!(text.matches("Machine\n").count(), 1, "{text}");
    assert!(text.contains("PE 0-3 to PE 0-3:"), "{text}");

    let info = json_of(&["run", "-n", "3", BINARY, "info", "--json"]);
    let by_pe = info["world"]["by_pe"].as_array().unwrap();
    assert_eq!(by_pe.len(), 3);
    for told in by_pe {
        let routes = told["routes"].as_array().unwrap();
        assert_eq!(routes.len(), 3);
        assert!(
            routes.iter().all(|route| route["transport"] == "loopback"),
            "{routes:?}"
        );
    }
    let key = info["variables"].as_array().unwrap().iter();
    let key = key
        .clone()
        .find(|variable| variable["name"] == "OXSHMEM_JOB_KEY")
        .unwrap();
    assert_eq!(key["value"], "(set, not shown)");
}

#[test]
fn info_explains_a_pair_or_all_each_answer_once() {
    let text = stdout_of(&["run", "-n", "3", BINARY, "info", "--explain"]);
    assert!(text.starts_with("PE 0-2 to PE 0-2\n"), "{text}");
    let all = "host memory, puts and gets, atomics: loopback";
    assert_eq!(text.matches(all).count(), 1, "{text}");
    assert!(text.contains("memory: this host's memory"), "{text}");

    let pair = json_of(&[
        "run",
        "-n",
        "3",
        BINARY,
        "info",
        "--json",
        "--explain",
        "2",
        "1",
    ]);
    assert_eq!(pair[0]["from"], serde_json::json!([2]));
    assert_eq!(pair[0]["to"], serde_json::json!([1]));
    assert_eq!(pair[0]["ways"][0]["considered"][0][0], "loopback");
}

#[test]
fn a_wrapped_transport_is_named_with_what_it_goes_around() {
    let mut explain = command(&["run", "-n", "2", BINARY, "info", "--explain"]);
    explain.env("OXSHMEM_TRANSPORT", "weak(loopback)");
    let (status, text, stderr) = outcome(explain.env("OXSHMEM_SEED", "7"));
    assert_eq!(status, Some(0), "{stderr}");
    assert!(
        text.contains("PE 0 to PE 1\n") && text.contains("weak(loopback): chosen: lane"),
        "{text}"
    );
    // A PE uses no lane to its own memory.
    assert!(
        text.contains("PE 0 to PE 0\n") && text.contains("self: chosen: own memory"),
        "{text}"
    );
}

#[test]
fn info_explains_no_pe_that_there_is_not() {
    let (status, stdout, stderr) = run(&["run", "-n", "3", BINARY, "info", "--explain", "1", "3"]);
    assert_eq!(status, Some(1), "{stdout}");
    assert!(
        stderr.contains("there is no PE 3; this job's PEs are 0 to 2"),
        "{stderr}"
    );
}

#[test]
fn what_is_asked_of_routes_and_is_not_there_is_told_with_what_is() {
    for (name, value, words) in [
        (
            "OXSHMEM_NIC",
            "mlx5_0",
            "no device \"mlx5_0\": loopback has memory",
        ),
        (
            "OXSHMEM_ROUTE",
            "0=nvlink",
            "no transport \"nvlink\" among [\"loopback\"",
        ),
        (
            "OXSHMEM_TRANSPORT",
            "odd(loopback)",
            "nothing called \"odd\"",
        ),
        ("OXSHMEM_TOPOLOGY", "/dev/null", "OXSHMEM_TOPOLOGY"),
        ("OXSHMEM_TOPOLOGY", "/dev/zero", "not a plain file"),
    ] {
        let mut explain = command(&["info", "--explain"]);
        let (status, _, stderr) = outcome(explain.env(name, value));
        assert_eq!(status, Some(1), "{stderr}");
        assert!(stderr.contains(words) && stderr.contains(name), "{stderr}");
    }
}

fn fixture(name: &str) -> String {
    format!(
        "{}/../../topo/fixtures/{name}.xml",
        env!("CARGO_MANIFEST_DIR")
    )
}

#[test]
fn info_prints_the_tree_of_this_machine_or_another_once() {
    let text = stdout_of(&["run", "-n", "2", BINARY, "info", "--topology"]);
    assert_eq!(text.matches("NUMA node 0").count(), 1, "{text}");

    let mut other = command(&["info", "--topology"]);
    let (status, text, stderr) = outcome(other.env("OXSHMEM_TOPOLOGY", fixture("dgx-like")));
    assert_eq!(status, Some(0), "{stderr}");
    assert!(text.contains("gpu2") && text.contains("mlx5_2"), "{text}");
}

#[test]
fn info_draws_the_machine_to_a_file_or_stdout() {
    let name = format!("oxshmem-info-{}.svg", std::process::id());
    let file = std::env::temp_dir().join(name);
    let path = file.to_str().unwrap();
    let mut draw = command(&[
        "run",
        "-n",
        "2",
        BINARY,
        "info",
        "--topology",
        "--svg",
        path,
    ]);
    let (status, text, stderr) = outcome(draw.env("OXSHMEM_TOPOLOGY", fixture("nvlink-pairs")));
    assert_eq!(status, Some(0), "{stderr}");
    let drawing = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    assert!(text.contains("gpu3") && drawing.contains("gpu3"), "{text}");
    // The devices that the two PEs would choose there.
    assert!(drawing.starts_with("<svg"), "{drawing}");
    for pe in ["PE 0", "PE 1"] {
        assert_eq!(drawing.matches(&format!(">{pe}<")).count(), 1, "{drawing}");
    }

    assert!(stdout_of(&["info", "--svg", "-"]).ends_with("</svg>\n"));
}

#[test]
fn a_machine_that_cannot_be_shown_says_why() {
    for (args, value, words) in [
        (&["--topology"][..], "/no/such/file.xml", "OXSHMEM_TOPOLOGY"),
        (&["--topology"], "/dev/null", "lstopo"),
        (&["--svg", "-"], "/dev/zero", "not a plain file"),
        (
            &["--svg", "/no/such/folder/x.svg"],
            "",
            "/no/such/folder/x.svg",
        ),
        (&["--svg", "-", "--topology"], "", "give --svg a file"),
    ] {
        let mut show = command(&[&["info"], args].concat());
        if !value.is_empty() {
            show.env("OXSHMEM_TOPOLOGY", value);
        }
        let (status, stdout, stderr) = outcome(&mut show);
        assert_eq!((status, stdout.as_str()), (Some(1), ""), "{stderr}");
        assert!(stderr.contains(words), "{args:?}: {stderr}");
    }
    let (status, _, stderr) = run(&["info", "--json", "--topology"]);
    assert_eq!(status, Some(2), "{stderr}");
}

#[test]
fn a_closed_output_is_no_failure() {
    let script = format!("{BINARY} info | head -n 1; echo ${{PIPESTATUS[0]}}");
    let output = finish(Command::new("bash").args(["-c", &script]));
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(
        stdout.starts_with("oxshmem ") && stdout.ends_with("\n0\n"),
        "{stdout}"
    );
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}

#[test]
fn info_in_a_job_that_fails_is_shown_once() {
    let mut command = command(&["run", "-n", "3", BINARY, "info"]);
    let (status, stdout, stderr) = outcome(command.env("OXSHMEM_TIMEOUT", "soon"));
    assert_eq!(status, Some(1), "{stderr}");
    assert_eq!(stdout.matches("Machine\n").count(), 1, "{stdout}");
    assert!(stderr.contains("OXSHMEM_TIMEOUT"), "{stderr}");
}
