//! A process manager of this test's own, after the protocols' descriptions: what hydra and Slurm
//! do, for PEs that are threads.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Barrier, Mutex};
use std::thread::JoinHandle;

/// The values that the PEs have put.
type Space = Arc<Mutex<HashMap<String, String>>>;

/// One process manager of `size` PEs, each with a socket of its own.
pub struct ProcessManager {
    space: Space,
    ours: Vec<UnixStream>,
    served: Vec<JoinHandle<bool>>,
}

impl ProcessManager {
    pub fn new(size: u32) -> ProcessManager {
        let space = Space::default();
        let all = Arc::new(Barrier::new(size as usize));
        let mut manager = ProcessManager {
            space: Arc::clone(&space),
            ours: Vec::new(),
            served: Vec::new(),
        };
        for rank in 0..size {
            let (ours, theirs) = UnixStream::pair().unwrap();
            let client = Client {
                lines: BufReader::new(theirs.try_clone().unwrap()),
                stream: theirs,
                space: Arc::clone(&space),
                all: Arc::clone(&all),
                place: (rank, size),
            };
            manager.ours.push(ours);
            manager
                .served
                .push(std::thread::spawn(move || client.serve()));
        }
        manager
    }

    /// Has it tell which PEs are on which host.
    pub fn map(&self, mapping: &str) {
        let name = "PMI_process_mapping".to_owned();
        self.space.lock().unwrap().insert(name, mapping.to_owned());
    }

    /// The number that `PMI_FD` has for a rank.
    pub fn descriptor(&self, rank: u32) -> String {
        self.ours[rank as usize].as_raw_fd().to_string()
    }

    /// A rank's end of its connection.
    pub fn take(&self, rank: u32) -> OwnedFd {
        self.ours[rank as usize].try_clone().unwrap().into()
    }

    /// The ranks that have finalized before they hung up, or before this ends the connections of those
    /// that are this process's threads.
    pub fn finalized(self, are_threads: bool) -> Vec<bool> {
        for ours in self.ours {
            if are_threads {
                ours.shutdown(Shutdown::Both).unwrap();
                // This process's sessions are known by this number until it ends.
                std::mem::forget(ours);
            }
        }
        let served = self.served.into_iter();
        served.map(|client| client.join().unwrap()).collect()
    }
}

struct Client {
    lines: BufReader<UnixStream>,
    stream: UnixStream,
    space: Space,
    all: Arc<Barrier>,
    place: (u32, u32),
}

/// Value of `name` in "…name=value" with this between pairs.
fn field(text: &str, between: char, name: &str) -> String {
    let mut pairs = text.split(between).filter_map(|pair| pair.split_once('='));
    let found = pairs.find(|(found, _)| *found == name);
    found.map(|(_, value)| value.to_owned()).unwrap_or_default()
}

impl Client {
    fn serve(mut self) -> bool {
        let first = self.line();
        let version = field(&first, ' ', "pmi_version");
        assert_eq!(field(&first, ' ', "cmd"), "init");
        let accepted =
            format!("cmd=response_to_init pmi_version={version} pmi_subversion=0 rc=0\n");
        self.say(accepted.as_bytes());
        if version == "1" {
            self.one()
        } else {
            self.two()
        }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line.trim_end_matches('\n').to_owned()
    }

    fn say(&self, bytes: &[u8]) {
        (&self.stream).write_all(bytes).unwrap();
    }

    fn one(mut self) -> bool {
        loop {
            let line = self.line();
            let of = |name| field(&line, ' ', name);
            let answer = match of("cmd").as_str() {
                "get_my_kvsname" => "cmd=my_kvsname kvsname=kvs_7_0".to_owned(),
                "put" => {
                    assert_eq!(of("kvsname"), "kvs_7_0");
                    self.space.lock().unwrap().insert(of("key"), of("value"));
                    "cmd=put_result rc=0 msg=success".to_owned()
                }
                "barrier_in" => {
                    self.all.wait();
                    "cmd=barrier_out".to_owned()
                }
                "get" => match self.space.lock().unwrap().get(&of("key")) {
                    Some(value) => format!("cmd=get_result rc=0 msg=success value={value}"),
                    None => "cmd=get_result rc=-1 msg=key_not_found value=unknown".to_owned(),
                },
                "finalize" => {
                    self.say(b"cmd=finalize_ack\n");
                    return true;
                }
                _ => return false,
            };
            self.say(format!("{answer}\n").as_bytes());
        }
    }

    fn two(mut self) -> bool {
        loop {
            let mut header = [0; 6];
            if self.lines.read_exact(&mut header).is_err() {
                return false;
            }
            let length = std::str::from_utf8(&header)
                .unwrap()
                .trim()
                .parse()
                .unwrap();
            let mut body = vec![0; length];
            self.lines.read_exact(&mut body).unwrap();
            let body = String::from_utf8(body).unwrap();
            let of = |name| field(&body, ';', name);
            let command = of("cmd");
            let rest = match command.as_str() {
                "fullinit" => {
                    let (rank, size) = self.place;
                    assert_eq!(
                        (of("pmijobid"), of("pmirank")),
                        ("7.0".into(), rank.to_string())
                    );
                    format!("pmi-version=2;rank={rank};size={size};appnum=0;")
                }
                "kvs-put" => {
                    self.space.lock().unwrap().insert(of("key"), of("value"));
                    String::new()
                }
                "kvs-fence" => {
                    self.all.wait();
                    String::new()
                }
                "kvs-get" | "info-getjobattr" => match self.space.lock().unwrap().get(&of("key")) {
                    Some(value) => format!("found=TRUE;value={value};"),
                    None => "found=FALSE;".to_owned(),
                },
                "finalize" => String::new(),
                other => panic!("command {other}"),
            };
            let answer = format!("cmd={command}-response;{rest}rc=0;");
            self.say(format!("{:>6}{answer}", answer.len()).as_bytes());
            if command == "finalize" {
                return true;
            }
        }
    }
}
