//! Sessions against process managers that this process plays itself.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use super::*;

const PATIENCE: Duration = Duration::from_secs(20);

fn settings(version: Version) -> Settings {
    Settings {
        version,
        descriptor: -1,
        rank: 0,
        size: 2,
        job: None,
    }
}

/// The client's end of a session whose other end `manager` serves on a thread.
fn session(
    version: Version,
    limit: Duration,
    manager: impl FnOnce(UnixStream) + Send + 'static,
) -> Result<Box<dyn ProcessManager>> {
    let (ours, theirs) = UnixStream::pair().unwrap();
    std::thread::spawn(move || manager(theirs));
    let socket = Socket::new(ours.into(), version.name(), Instant::now() + limit);
    Session::over(socket, settings(version))
}

/// Answers line by line, each answer given by the question; hangs up when there is none.
fn by_lines(stream: UnixStream, mut answer: impl FnMut(&str) -> Option<String>) {
    for line in BufReader::new(stream.try_clone().unwrap()).lines() {
        let Some(answer) = line.ok().and_then(|line| answer(&line)) else {
            return;
        };
        if (&stream).write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

const ACCEPTED: &str = "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n";

#[test]
fn pmi_1_refusals_are_told_with_their_step() {
    let manager = |stream| {
        by_lines(stream, |line| {
            Some(if line.starts_with("cmd=init") {
                ACCEPTED.to_owned()
            } else if line.starts_with("cmd=get_my") {
                "cmd=my_kvsname kvsname=k\n".to_owned()
            } else {
                "cmd=put_result rc=-1 msg=no room here\n".to_owned()
            })
        })
    };
    let error = session(Version::One, PATIENCE, manager)
        .unwrap()
        .exchange(Some("v"))
        .unwrap_err();
    let words = error.to_string();
    assert!(
        words.contains("publishing") && words.contains("no room here"),
        "{words}"
    );
}

#[test]
fn a_session_lasts_until_the_process_ends() {
    let (tell, told) = std::sync::mpsc::channel();
    let mut values = std::collections::HashMap::new();
    let manager = |stream| {
        by_lines(stream, move |line| {
            let words: Vec<_> = line.split(' ').map(str::to_owned).collect();
            tell.send(words[0].clone()).unwrap();
            let of = |at: usize| words[at].split_once('=').unwrap().1.to_owned();
            Some(match words[0].as_str() {
                "cmd=init" => ACCEPTED.to_owned(),
                "cmd=get_my_kvsname" => "cmd=my_kvsname kvsname=k\n".to_owned(),
                // A key is taken once.
                "cmd=put" => match values.insert(of(2), of(3)) {
                    None => "cmd=put_result rc=0\n".to_owned(),
                    Some(_) => "cmd=put_result rc=-1 msg=duplicate_key\n".to_owned(),
                },
                "cmd=barrier_in" => "cmd=barrier_out\n".to_owned(),
                "cmd=get" => format!("cmd=get_result rc=0 value={}\n", values[&of(2)]),
                _ => "cmd=finalize_ack\n".to_owned(),
            })
        })
    };
    let first = session(Version::One, PATIENCE, manager).unwrap();
    assert_eq!(first.exchange(Some("first")).unwrap(), "first");
    let second = open(settings(Version::One), Instant::now() + PATIENCE).unwrap();
    assert_eq!(second.exchange(Some("second")).unwrap(), "second");
    let asked: Vec<_> = told.try_iter().collect();
    let count = |what: &str| asked.iter().filter(|command| *command == what).count();
    assert_eq!(
        (count("cmd=init"), count("cmd=put"), count("cmd=finalize")),
        (1, 2, 0)
    );
    end(0);
    assert_eq!(told.try_iter().collect::<Vec<_>>(), ["cmd=finalize"]);
    end(0);
    assert_eq!(told.try_iter().count(), 0);
}

#[test]
fn a_process_manager_that_ends_is_lost_and_not_waited_for() {
    let manager = |stream| {
        by_lines(stream, |line| {
            line.starts_with("cmd=init").then(|| ACCEPTED.to_owned())
        })
    };
    let error = session(Version::One, PATIENCE, manager)
        .unwrap()
        .exchange(None)
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("connection to the process manager is lost"),
        "{error}"
    );
}

#[test]
fn silence_ends_at_the_deadline() {
    for version in [Version::One, Version::Two] {
        let (hold, held) = std::sync::mpsc::channel::<()>();
        let manager = move |stream: UnixStream| {
            // Until the test is over, or has failed.
            let _ = held.recv();
            drop(stream);
        };
        let Err(error) = session(version, Duration::from_millis(50), manager) else {
            panic!("nobody answered")
        };
        assert!(error.to_string().contains("no answer within"), "{error}");
        drop(hold);
    }
}

#[test]
fn endless_and_foreign_answers_are_refused() {
    let flood = |mut stream: UnixStream| while stream.write_all(&[b'x'; 4096]).is_ok() {};
    for version in [Version::One, Version::Two] {
        assert!(session(version, PATIENCE, flood).is_err());
    }
    let foreign = |stream| by_lines(stream, |_| Some("HTTP/1.1 400 Bad Request\n".to_owned()));
    let Err(error) = session(Version::One, PATIENCE, foreign) else {
        panic!("taken for a process manager")
    };
    assert!(error.to_string().contains("OXSHMEM_BOOTSTRAP"), "{error}");
}

#[test]
fn pmi_2_with_another_place_than_the_environments_is_refused() {
    let manager = |mut stream: UnixStream| {
        let accepted = b"cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0\n";
        let place = fields::message(&[("cmd", "fullinit-response"), ("rank", "1"), ("size", "2")]);
        let _ = stream.write_all(&[&accepted[..], &place].concat());
        let _ = stream.read_to_end(&mut Vec::new());
    };
    let Err(error) = session(Version::Two, PATIENCE, manager) else {
        panic!("taken for rank 0")
    };
    assert!(
        error.to_string().contains("says rank 1, the environment 0"),
        "{error}"
    );
}

#[test]
fn a_descriptor_that_is_closed_or_no_socket_is_named() {
    let open = |descriptor| {
        let settings = Settings {
            descriptor,
            ..settings(Version::One)
        };
        let Err(error) = super::open(settings, Instant::now() + PATIENCE) else {
            panic!("{descriptor} is no process manager")
        };
        error.to_string()
    };
    let words = open(65_000);
    assert!(
        words.contains("PMI_FD=\"65000\"") && words.contains("single"),
        "{words}"
    );
    let file = std::fs::File::open("/dev/null").unwrap();
    let words = open(std::os::fd::AsRawFd::as_raw_fd(&file));
    assert!(words.contains("is no connection"), "{words}");
}
