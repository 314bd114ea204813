//! Jobs over real ssh: to this host, by a server of the test's own. Not run, and saying so, where
//! there is no sshd.

use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Test;
use crate::job::{Job, kill};

pub const TESTS: &[Test] = &[("a_job_runs_over_ssh", a_job_runs_over_ssh)];

const SSHD: &str = "/usr/sbin/sshd";

/// A server with keys of its own. The port is the test's from first to last: no other program can take it
/// before an sshd would. Each connection has its own sshd.
struct Server {
    port: u16,
    folder: PathBuf,
}

impl Server {
    fn start() -> Server {
        let folder = std::env::temp_dir().join(format!("oxshmem-ssh-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for name in ["host", "user"] {
            let status = Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-f"])
                .arg(folder.join(name))
                .status();
            assert!(status.unwrap().success());
        }
        // sshd needs this if it runs as root, and only then.
        let _ = std::fs::create_dir_all("/run/sshd");
        let shown = folder.display();
        let config = format!(
            "HostKey {shown}/host\nAuthorizedKeysFile {shown}/user.pub\nStrictModes no\nUsePAM \
             no\nPidFile none\nPermitRootLogin yes\nPasswordAuthentication no\n"
        );
        std::fs::write(folder.join("config"), config).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let served = folder.clone();
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                serve(&served, connection.unwrap());
            }
        });
        Server { port, folder }
    }

    /// A job whose processes on either side bear the mark.
    fn job(&self, args: &str) -> Job {
        let (mut command, mark) = Job::command(args);
        let rsh = format!(
            "ssh -F none -o BatchMode=yes -o StrictHostKeyChecking=no -o \
             UserKnownHostsFile=/dev/null -o LogLevel=ERROR -i {}/user -p {} {{host}} env \
             LAUNCHER_TEST_MARK={mark} AT={{host}}",
            self.folder.display(),
            self.port
        );
        command.env("OXSHMEM_RSH", rsh).stdin(Stdio::null());
        Job::of((command, mark))
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }
}

/// An sshd for one connection. It ends with the connection.
fn serve(folder: &Path, connection: TcpStream) {
    let log = std::fs::File::options()
        .create(true)
        .append(true)
        .open(folder.join("log"));
    // `-i`: the connection is the server's standard input and output.
    let mut server = Command::new(SSHD)
        .args(["-i", "-e", "-f"])
        .arg(folder.join("config"))
        .stdin(OwnedFd::from(connection.try_clone().unwrap()))
        .stdout(OwnedFd::from(connection))
        .stderr(log.unwrap())
        .spawn()
        .unwrap();
    std::thread::spawn(move || server.wait());
}

impl Drop for Server {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("the log of sshd:\n{}", self.log());
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn a_job_runs_over_ssh() {
    if !Path::new(SSHD).exists() {
        println!("NOT RUN: there is no {SSHD}; install openssh-server to test over ssh");
        return;
    }
    let server = Server::start();
    let hosts = "--hosts 127.0.0.1:2,localhost:1";
    let finished = server.job(&format!("launch 3 {hosts} -- empty")).finish();
    assert_eq!(finished.status.code(), Some(0), "{finished:?}");

    let finished = server
        .job(&format!(
            "launch 3 {hosts} -- environment AT SSH_CONNECTION"
        ))
        .finish();
    for host in ["127.0.0.1", "localhost"] {
        assert!(
            finished.stdout.contains(&format!("AT={host}\n")),
            "{finished:?}"
        );
    }

    let finished = server
        .job(&format!("launch 3 {hosts} -- exit 2 7"))
        .finish();
    assert_eq!(finished.status.code(), Some(7), "{finished:?}");
    assert!(finished.stderr.contains(" on localhost)"), "{finished:?}");

    // A key that the server does not know.
    let strange = "--hosts nobody-here@127.0.0.1:1";
    let finished = server.job(&format!("launch 1 {strange} -- empty")).finish();
    assert_eq!(finished.status.code(), Some(125), "{finished:?}");
    let part = "exited with status 255 before oxshmem answered there";
    assert!(finished.stderr.contains(part), "{finished:?}");

    let mut job = server.job(&format!("launch 3 {hosts} -- hang"));
    let _output = job.wait_ready(3);
    job.signal(libc::SIGKILL);
    job.wait();
    job.expect_nothing_left();

    // The client's connection to the second host goes.
    let mut job = server.job(&format!("launch 3 {hosts} -- hang"));
    let mut output = job.wait_ready(3);
    let clients = job.processes().into_iter();
    let client = clients
        .filter(|(_, args)| args.starts_with("ssh ") && args.contains("AT=localhost"))
        .map(|(pid, _)| pid)
        .next()
        .unwrap();
    kill(client, libc::SIGKILL);
    output.read_to_string(&mut String::new()).unwrap();
    let finished = job.finish();
    assert_eq!(finished.status.code(), Some(125), "{finished:?}");
    assert!(finished.stderr.contains("host localhost: "), "{finished:?}");
}
