//! The number of system calls that operations take, by strace.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

/// Operations that are counted.
const COUNTED: u64 = 200;
/// The deadline for strace to attach.
const DEADLINE: Duration = Duration::from_secs(30);

/// Prints `calls_ROW`, the calls of all threads of this process for an operation. Nothing where there is no strace.
pub fn report(
    row: &str,
    mut operations: impl FnMut(u64) -> oxshmem::Result<()>,
) -> anyhow::Result<()> {
    let file = format!("oxshmem-calls-{}", std::process::id());
    let file = std::env::temp_dir().join(file);
    let Some(tracer) = Tracer::attach(file)? else {
        return Ok(());
    };
    let done = operations(COUNTED);
    let calls = tracer.finish()?;
    done?;
    println!("calls_{row} {:.4}", calls as f64 / COUNTED as f64);
    Ok(())
}

/// strace, attached to this process.
struct Tracer {
    strace: Child,
    file: PathBuf,
}

impl Tracer {
    /// Starts to count; `None` without strace.
    fn attach(file: PathBuf) -> anyhow::Result<Option<Tracer>> {
        let me = std::process::id().to_string();
        let mut command = Command::new("strace");
        command.args(["-f", "-c", "-p", &me, "-o"]).arg(&file);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let Ok(mut strace) = command.spawn() else {
            return Ok(None);
        };
        // SAFETY: this call only tells the kernel which process may trace this one; a kernel without such a rule refuses it.
        unsafe { libc::prctl(libc::PR_SET_PTRACER, libc::c_ulong::from(strace.id())) };
        let since = Instant::now();
        while !all_traced()? {
            if strace.try_wait()?.is_some() || since.elapsed() > DEADLINE {
                // An error means that it has ended.
                let _ = strace.kill();
                strace.wait()?;
                anyhow::bail!("strace cannot attach to this process");
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(Some(Tracer { strace, file }))
    }

    /// Ends the count and gives the total.
    fn finish(mut self) -> anyhow::Result<u64> {
        let pid = libc::pid_t::try_from(self.strace.id())?;
        // SAFETY: the process is a child that nobody has waited for, so the number is its own.
        let sent = unsafe { libc::kill(pid, libc::SIGINT) };
        ensure!(sent == 0, "strace: {}", std::io::Error::last_os_error());
        // It detaches before it writes.
        self.strace.wait()?;
        let text = std::fs::read_to_string(&self.file).context("reading what strace wrote")?;
        std::fs::remove_file(&self.file)?;
        let total = text.lines().find(|line| line.ends_with(" total"));
        // The columns: share, seconds, µs per call, calls. Without any call there is no table.
        match total {
            None if text.trim().is_empty() => Ok(0),
            None => anyhow::bail!("strace wrote no total: {text}"),
            Some(line) => {
                let calls = line.split_whitespace().nth(3);
                calls.context("a total")?.parse().context("a total")
            }
        }
    }
}

/// Whether each thread of this process is traced.
fn all_traced() -> anyhow::Result<bool> {
    for thread in std::fs::read_dir("/proc/self/task")? {
        // A thread may have ended meanwhile.
        let Ok(text) = std::fs::read_to_string(thread?.path().join("status")) else {
            continue;
        };
        if text.lines().any(|line| line == "TracerPid:\t0") {
            return Ok(false);
        }
    }
    Ok(true)
}
