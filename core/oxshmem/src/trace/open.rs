//! The start of a trace by the PEs of a job.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use oxshmem_bootstrap::{Bootstrap, exchange};
use oxshmem_engine::trace::clock::now;
use oxshmem_engine::trace::json::{Quoted, about};
use oxshmem_engine::trace::log::Log;
use oxshmem_engine::trace::timeline::Trace;

use crate::agreement::{exchange_failures, none_failed};
use crate::error::{Error, Result};

/// Begins the trace that the user wants, if any; `hosts` gives the host of each PE. Collective. A
/// host's first PE makes its file anew; if one cannot, none goes on.
pub(crate) fn open(
    bootstrap: &dyn Bootstrap,
    wanted: Option<&Path>,
    hosts: &[&str],
) -> Result<Option<Arc<Trace>>> {
    let Some(wanted) = wanted else {
        return Ok(None);
    };
    let me = bootstrap.rank() as usize;
    let here = hosts.get(me);
    let first = |host| hosts.iter().position(|other| Some(other) == host);
    let leads = first(here) == Some(me);
    let firsts = (0..hosts.len()).filter(|&pe| first(hosts.get(pe)) == Some(pe));
    let firsts: Vec<usize> = firsts.collect();
    let number = firsts.iter().position(|pe| Some(*pe) == first(here));
    let path = of_host(wanted, number.unwrap_or(0), firsts.len());
    // The first PE's process may have had other worlds, which other PEs' may not.
    let before: Vec<u32> = exchange(bootstrap, &if leads { times_used(&path) } else { 0 })?;
    let before = first(here).and_then(|pe| before.get(pe).copied());
    let path = after_others(path, before.unwrap_or(0));

    let all_here = (0..hosts.len()).filter(|&pe| hosts.get(pe) == here);
    let made = if leads {
        create(&path, all_here).map_err(|error| error.to_string())
    } else {
        Ok(())
    };
    agree(bootstrap, &path, made)?;
    // All PEs leave that exchange at about the same time, which is the beginning on every host.
    let began = now();
    let append = open_to_write(&path, File::options().append(true));
    let (file, opened) = match append {
        Ok(file) => (Some(file), Ok(())),
        Err(error) => (None, Err(error.to_string())),
    };
    agree(bootstrap, &path, opened)?;
    let clocks: Vec<u64> = exchange(bootstrap, &began)?;
    let on_this = clocks
        .iter()
        .zip(hosts)
        .filter(|(_, host)| Some(*host) == here);
    let zero = on_this.map(|(clock, _)| *clock).min().unwrap_or(began);
    Ok(file.map(|file| Arc::new(Trace::new(me, zero, Log::new(path, file), leads))))
}

/// The number of times that this process has begun this file before.
fn times_used(path: &Path) -> u32 {
    static USED: Mutex<BTreeMap<PathBuf, u32>> = Mutex::new(BTreeMap::new());
    let mut used = USED.lock().unwrap_or_else(PoisonError::into_inner);
    let times = used.entry(path.to_owned()).or_default();
    let before = *times;
    *times += 1;
    before
}

/// The file of a world that comes after so many others of a process.
fn after_others(path: PathBuf, others: u32) -> PathBuf {
    match others {
        0 => path,
        others => with_suffix(&path, &format!("{}", others + 1)),
    }
}

/// A file's name with more before its extension, which is `json` if it has none.
fn with_suffix(path: &Path, more: &str) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let extension = path.extension().unwrap_or("json".as_ref());
    path.with_file_name(format!("{stem}.{more}.{}", extension.to_string_lossy()))
}

/// Begins a file anew, with the names of the host's PEs.
fn create(path: &Path, pes: impl Iterator<Item = usize>) -> io::Result<()> {
    let mut options = File::options();
    let mut file = open_to_write(path, options.write(true).create(true).truncate(true))?;
    let host = oxshmem_topo::hostname();
    let names: Vec<String> = pes
        .map(|pe| {
            about(
                pe,
                pe as u64,
                "process_name",
                format_args!("\"name\":{}", Quoted(format_args!("PE {pe} on {host}"))),
            )
        })
        .collect();
    write!(file, "[\n{}", names.join(",\n"))
}

/// Opens a file to write, at once: a FIFO that nobody reads is an error.
fn open_to_write(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    use rustix::fs::OFlags;
    let at_once = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or(0);
    let opened = options.custom_flags(at_once).open(path);
    let file = opened.map_err(|error| match rustix::io::Errno::from_io_error(&error) {
        Some(rustix::io::Errno::NXIO) => io::Error::other("it is a FIFO that nobody reads"),
        _ => error,
    })?;
    // From here on writes wait as usual.
    let flags = rustix::fs::fcntl_getfl(&file)?;
    rustix::fs::fcntl_setfl(&file, flags - OFlags::NONBLOCK)?;
    Ok(file)
}

/// One PE's failure is every PE's. Collective.
fn agree(bootstrap: &dyn Bootstrap, path: &Path, mine: Result<(), String>) -> Result<()> {
    let bad = |why: String| Error::Config {
        name: "OXSHMEM_TRACE".into(),
        value: path.display().to_string(),
        why: format!("{why}; name a file in a directory that every PE may write to"),
    };
    let failures = exchange_failures(bootstrap, &mine)?;
    mine.map_err(bad)?;
    let failures = failures.into_iter();
    none_failed(failures.map(|why| why.map(|why| bad(why).to_string())))
}

/// The file of one host: `%h` in the name stands for its number. Where there are several and the name has
/// no such place, it comes before the name's extension.
fn of_host(wanted: &Path, number: usize, hosts: usize) -> PathBuf {
    let name = wanted.to_string_lossy();
    if name.contains("%h") {
        return name.replace("%h", &number.to_string()).into();
    }
    if hosts == 1 {
        return wanted.to_owned();
    }
    with_suffix(wanted, &format!("host{number}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fifo_is_not_waited_for_and_takes_what_is_written_where_it_is_read() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        let name = format!("oxshmem-trace-fifo-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        mknodat(CWD, &path, FileType::Fifo, Mode::RWXU, 0).unwrap();
        let (sender, receiver) = std::sync::mpsc::channel();
        let of = path.clone();
        std::thread::spawn(move || sender.send(create(&of, 0..1)));
        let error = receiver.recv_timeout(std::time::Duration::from_secs(30));
        let error = error.expect("it does not wait").unwrap_err().to_string();
        assert!(error.contains("FIFO that nobody reads"), "{error}");

        // Open for both, so that opening it waits for nobody.
        let reader = File::options().read(true).write(true).open(&path).unwrap();
        create(&path, 0..1).unwrap();
        let mut begun = [0; 2];
        io::Read::read_exact(&mut &reader, &mut begun).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(&begun, b"[\n");
    }

    #[test]
    fn each_world_of_a_process_has_a_file() {
        let path = Path::new("/nowhere/each-world.json");
        let names = [0, 1, 2].map(|before| {
            assert_eq!(times_used(path), before);
            after_others(path.to_owned(), before)
        });
        let expected = ["each-world", "each-world.2", "each-world.3"];
        assert_eq!(
            names,
            expected.map(|name| PathBuf::from(format!("/nowhere/{name}.json")))
        );
    }

    #[test]
    fn each_of_several_hosts_has_a_file() {
        let of = |wanted: &str, number, hosts| {
            let path = of_host(Path::new(wanted), number, hosts);
            path.to_str().unwrap().to_owned()
        };
        assert_eq!(of("/tmp/t.json", 0, 1), "/tmp/t.json");
        assert_eq!(of("/tmp/t.json", 1, 2), "/tmp/t.host1.json");
        assert_eq!(of("trace", 0, 2), "trace.host0.json");
        assert_eq!(of("/tmp/%h/t%h.json", 3, 4), "/tmp/3/t3.json");
        assert_eq!(of("t%h.json", 0, 1), "t0.json");
    }
}
