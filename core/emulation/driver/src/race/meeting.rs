//! The processes of a job find each other's notes: the first of them makes the arena, and tells the others where it is.
//!
//! The first one listens at an address that is no file, so that nothing is left behind. It tells its own number and that of the
//! arena's descriptor; the others open it through `/proc`, which the kernel allows to processes of the same user.

use std::fs::{File, OpenOptions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::{Duration, Instant};

use super::arena::Arena;

/// The time in which the first process is found, or answers.
const PATIENCE: Duration = Duration::from_secs(10);
/// The time between two looks for it: another process may be about to be the first.
const PAUSE: Duration = Duration::from_millis(10);

/// The name of the job that this process belongs to; none if it is alone, or shall be.
pub(super) fn job() -> Option<String> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    match variable("SOFTCUDA_RACES").as_deref() {
        Some("process") => None,
        Some(name) => Some(format!("name {name}")),
        // Unless it says when its hosts tell each other of something, each would know too little of the others.
        None if !says_its_calls() => None,
        // By oxshmem's launcher, and by others.
        None => ["OXSHMEM_RENDEZVOUS", "PMIX_NAMESPACE", "SLURM_STEP_ID"]
            .into_iter()
            .find_map(|name| {
                let value = variable(name)?;
                let job = variable("SLURM_JOB_ID").unwrap_or_default();
                Some(format!("{name} {value} {job}"))
            }),
    }
}

/// Whether the program tells of its hosts' calls: its linker has put functions for that into it.
fn says_its_calls() -> bool {
    // SAFETY: a string that ends.
    let mark = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"oxshmem_meetings".as_ptr()) };
    !mark.is_null()
}

fn address(job: &str) -> io::Result<SocketAddr> {
    let mut hash = DefaultHasher::new();
    job.hash(&mut hash);
    // SAFETY: no precondition.
    let user = unsafe { libc::getuid() };
    SocketAddr::from_abstract_name(format!("softcuda-races-{user}-{:016x}", hash.finish()))
}

/// The arena of a job. `notes` makes the notes of a new one.
pub(super) fn meet<N>(job: &str, notes: fn() -> N) -> io::Result<Arena> {
    let address = address(job)?;
    let since = Instant::now();
    loop {
        let last = match UnixStream::connect_addr(&address) {
            Ok(stream) => match told(stream) {
                Ok(file) => return Arena::map::<N>(&file, None),
                Err(error) => error,
            },
            Err(_) => {
                let file = Arena::file()?;
                let arena = Arena::map(&file, Some(notes))?;
                match UnixListener::bind_addr(&address) {
                    Ok(listener) => {
                        tell(listener, file)?;
                        return Ok(arena);
                    }
                    Err(error) => {
                        arena.unmap();
                        error
                    }
                }
            }
        };
        if since.elapsed() > PATIENCE {
            return Err(last);
        }
        std::thread::sleep(PAUSE);
    }
}

/// Words of an answer: the process, its descriptor, and the device, number and length of the file.
type Answer = [u64; 5];

/// Tells every process that asks, as long as this one lives.
fn tell(listener: UnixListener, file: File) -> io::Result<()> {
    let about = file.metadata()?;
    let answer: Answer = [
        u64::from(std::process::id()),
        file.as_raw_fd() as u64,
        about.dev(),
        about.ino(),
        about.len(),
    ];
    let serve = move || {
        let _open = file;
        for asked in listener.incoming() {
            match asked {
                // A process that does not get it asks again.
                Ok(mut stream) => drop(stream.write_all(&answer.map(u64::to_ne_bytes).concat())),
                Err(_) => std::thread::sleep(PAUSE),
            }
        }
    };
    let thread = std::thread::Builder::new().name("softcuda-races".into());
    thread.spawn(serve).map(drop)
}

/// The file that another process tells of.
fn told(mut stream: UnixStream) -> io::Result<File> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut answer = Answer::default();
    for word in &mut answer {
        let mut bytes = [0; 8];
        stream.read_exact(&mut bytes)?;
        *word = u64::from_ne_bytes(bytes);
    }
    let [process, descriptor, about @ ..] = answer;
    let path = format!("/proc/{process}/fd/{descriptor}");
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    // By the same numbers another file is found where processes are numbered apart: in containers.
    let found = file.metadata()?;
    match [found.dev(), found.ino(), found.len()] == about {
        true => Ok(file),
        false => Err(io::Error::other(
            "the job's processes do not see each other in /proc",
        )),
    }
}
