//! The common part of the tests: a GPU if there is one, bytes to and from it, and child processes.
#![allow(dead_code, reason = "each test program uses some of it")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use oxshmem_cuda::testing::present;
use oxshmem_cuda::{Context, Device, DevicePtr, Driver, Stream, StreamOptions, devices};

/// As long as anything may take.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Says which part a child process plays.
const PART: &str = "OXSHMEM_CUDA_TEST_PART";
/// The child's end of a socket pair.
const SOCKET: &str = "OXSHMEM_CUDA_TEST_SOCKET";

/// The context of the first GPU. Without a driver none, said in one line; or a failure, where the
/// environment says that there must be one.
pub fn context() -> Option<Context> {
    present(Driver::get())?;
    Some(Context::new(&Device::new(0).unwrap()).unwrap())
}

/// The contexts of two GPUs, if there are as many.
pub fn two_contexts() -> Option<[Context; 2]> {
    let first = context()?;
    let found = devices().unwrap();
    let Some(second) = found.get(1) else {
        println!("one GPU: not run");
        return None;
    };
    Some([first, Context::new(second).unwrap()])
}

/// Whether the driver is the software one.
pub fn is_software() -> bool {
    Driver::get().is_ok_and(|driver| driver.library().contains("softcuda"))
}

pub fn stream(context: &Context) -> Stream {
    Stream::new(context, &StreamOptions::default()).unwrap()
}

/// Copies bytes to the GPU and waits.
pub fn upload(stream: &Stream, to: DevicePtr, bytes: &[u8]) {
    // SAFETY: the bytes live until the wait below is over; the tests give ranges that are mapped.
    unsafe { stream.copy(to, DevicePtr::from_host(bytes.as_ptr()), bytes.len()) }.unwrap();
    stream.synchronize_within(PATIENCE).unwrap();
}

/// Copies bytes from the GPU.
pub fn download(stream: &Stream, from: DevicePtr, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    // SAFETY: the buffer lives until the wait below is over; the tests give ranges that are mapped.
    unsafe { stream.copy(DevicePtr::from_host(bytes.as_mut_ptr()), from, len) }.unwrap();
    stream.synchronize_within(PATIENCE).unwrap();
    bytes
}

/// Bytes that differ from place to place and from seed to seed.
pub fn pattern(len: usize, seed: u8) -> Vec<u8> {
    (0..len).map(|place| (place % 251) as u8 ^ seed).collect()
}

/// How many descriptors this process has open.
pub fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Runs `body` in a process of its own, with these environment variables, and fails as it does. Its
/// name is that of the test which calls this.
pub fn alone(name: &str, environment: &[(&str, &str)], body: impl FnOnce()) {
    if std::env::var(PART).is_ok_and(|part| part == name) {
        return body();
    }
    let mut child = Part::start(name, name, environment, None);
    let status = child.wait(PATIENCE);
    assert!(status.success(), "in a process of its own: {status}");
}

/// The part of a test that this process plays; none for the process that began it.
pub fn part() -> Option<String> {
    std::env::var(PART).ok()
}

/// The child's end of the connection.
pub fn parent_socket() -> UnixStream {
    let number: i32 = std::env::var(SOCKET).unwrap().parse().unwrap();
    // SAFETY: the parent left this descriptor open for this process, which takes it once.
    UnixStream::from(unsafe { OwnedFd::from_raw_fd(number) })
}

/// A child process that runs one test of this program, killed when dropped.
pub struct Part(Child);

impl Part {
    pub fn start(
        test: &str,
        part: &str,
        environment: &[(&str, &str)],
        socket: Option<&UnixStream>,
    ) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", test, "--nocapture", "--test-threads=1"])
            .env(PART, part)
            .envs(environment.iter().copied())
            .stdin(Stdio::null());
        if let Some(socket) = socket {
            let number = socket.as_raw_fd();
            // SAFETY: it is an open descriptor; the call clears its flags, of which there is one.
            assert_eq!(unsafe { libc::fcntl(number, libc::F_SETFD, 0) }, 0);
            command.env(SOCKET, number.to_string());
        }
        Part(command.spawn().unwrap())
    }

    pub fn wait(&mut self, patience: Duration) -> ExitStatus {
        let start = Instant::now();
        loop {
            if let Some(status) = self.0.try_wait().unwrap() {
                return status;
            }
            assert!(start.elapsed() < patience, "a child process does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}
