//! The count of system calls, by strace.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

/// The deadline for strace to attach.
const DEADLINE: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// strace, attached to this process.
#[derive(Debug)]
pub struct Tracer {
    strace: Child,
    file: PathBuf,
}

impl Tracer {
    /// Starts to count all system calls of this process.
    pub fn attach(file: PathBuf) -> anyhow::Result<Tracer> {
        let me = std::process::id().to_string();
        let mut strace = Command::new("strace")
            .args(["-f", "-c", "-p", &me, "-o"])
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start strace")?;
        // SAFETY: this call only tells the kernel which process may trace this one. Where the
        // kernel has no such rule it fails, and is not needed.
        unsafe { libc::prctl(libc::PR_SET_PTRACER, libc::c_ulong::from(strace.id())) };
        let since = Instant::now();
        while !all_traced()? {
            let ended = strace.try_wait()?;
            if ended.is_some() || since.elapsed() > DEADLINE {
                strace.kill()?;
                strace.wait()?;
                anyhow::bail!("strace cannot attach to this process");
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        Ok(Tracer { strace, file })
    }

    /// Ends the count and returns it.
    pub fn finish(mut self) -> anyhow::Result<u64> {
        let pid = libc::pid_t::try_from(self.strace.id())?;
        // SAFETY: the process is a child that nobody has waited for, so the number is its own.
        let sent = unsafe { libc::kill(pid, libc::SIGINT) };
        ensure!(sent == 0, "strace: {}", std::io::Error::last_os_error());
        // strace detaches before it writes.
        self.strace.wait()?;
        total(&self.file)
    }
}

/// Whether each thread of this process is traced.
fn all_traced() -> anyhow::Result<bool> {
    for thread in std::fs::read_dir("/proc/self/task")? {
        let status = thread?.path().join("status");
        // A thread may have ended meanwhile.
        let Ok(text) = std::fs::read_to_string(status) else {
            continue;
        };
        if text.lines().any(|line| line == "TracerPid:\t0") {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The total number of calls in a summary of strace.
pub fn total(file: &Path) -> anyhow::Result<u64> {
    let text = std::fs::read_to_string(file);
    let text = text.with_context(|| format!("cannot read {}", file.display()))?;
    // Best effort: the file lies in a folder for temporary files.
    let _ = std::fs::remove_file(file);
    // strace writes nothing at all if there was no call.
    if text.trim().is_empty() {
        return Ok(0);
    }
    let line = text.lines().find(|line| line.ends_with(" total"));
    // The columns: share, seconds, µs per call, calls.
    let calls = line.and_then(|line| line.split_whitespace().nth(3)?.parse().ok());
    calls.with_context(|| format!("strace wrote no total:\n{text}"))
}

/// A path for a summary.
pub fn file(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("oxshmem-perf-{}-{name}", std::process::id()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_is_read() {
        let text = "\
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 60.34    1.025525         249      4112      2045 ioctl
  7.56    0.128478         614       209           write
------ ----------- ----------- --------- --------- ----------------
100.00    1.699529         349      4868      2050 total
";
        for (text, calls) in [(text, Some(4868)), ("", Some(0)), ("strace: no", None)] {
            let file = file("total-test");
            std::fs::write(&file, text).unwrap();
            assert_eq!(total(&file).ok(), calls);
            assert!(!file.exists());
        }
    }
}
