//! The roles of this program when it is not the one that tests.

use std::io::{BufRead, Read, Write};
use std::process::{Command, exit};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use oxshmem_bootstrap::{Awaited, Bootstrap, Hosts, Launch, Waiting, join, self_with, serve_agent};

const DEADLINE: Duration = Duration::from_secs(30);

/// `launch PES [--timeout MS] [--tag] [--cpus A,B] [--hosts A:1,B:2 …] -- ROLE…`: runs that job.
/// Hosts are reached as OXSHMEM_RSH says.
pub fn launch(args: &[String]) -> ! {
    let split = args.iter().position(|arg| arg == "--").unwrap();
    let (options, role) = (&args[1..split], &args[split + 1..]);
    let program = std::env::current_exe().unwrap();
    let mut launch = Launch::new(program, args[0].parse().unwrap());
    launch.args = ["pe".into()]
        .into_iter()
        .chain(role.iter().map(Into::into))
        .collect();
    let mut options = options.iter();
    while let Some(option) = options.next() {
        match option.as_str() {
            "--timeout" => {
                let limit = options.next().unwrap().parse().unwrap();
                launch.timeout = Some(Duration::from_millis(limit));
            }
            "--tag" => launch.tag_output = true,
            "--cpus" => {
                let cpus = options.next().unwrap().split(',');
                launch.cpu_sets = cpus.map(|cpu| vec![cpu.parse().unwrap()]).collect();
            }
            "--hosts" => {
                let program = std::env::current_exe().unwrap();
                let list = Hosts::parse_list(options.next().unwrap()).unwrap();
                let mut hosts = Hosts::new(list, vec![program.into(), "agent".into()]);
                hosts.rsh = std::env::var("OXSHMEM_RSH").unwrap();
                launch.hosts = Some(hosts);
            }
            "--hub" => {
                let hosts = launch.hosts.as_mut().unwrap();
                hosts.hub_address = options.next().cloned();
            }
            "--bind" => {
                let hosts = launch.hosts.as_mut().unwrap();
                hosts.bind = options.next().unwrap().clone();
            }
            "--deadline" => {
                let limit = options.next().unwrap().parse().unwrap();
                launch.hosts.as_mut().unwrap().deadline = Duration::from_millis(limit);
            }
            "--env" => {
                let (name, value) = options.next().unwrap().split_once('=').unwrap();
                launch.env.push((name.into(), value.into()));
            }
            "--program" => {
                launch.program = options.next().unwrap().into();
                launch.args = role.iter().map(Into::into).collect();
            }
            other => panic!("option {other}"),
        }
    }
    match launch.run() {
        Ok(outcome) => exit(outcome.status),
        Err(error) => {
            eprintln!("{error}");
            exit(99)
        }
    }
}

/// `agent`: serves a launcher. The PEs of a host are bound to the CPU that `--bind` gives.
pub fn agent() -> ! {
    exit(serve_agent(&|bind, pes| match bind {
        "" => Ok(Vec::new()),
        "nowhere" => Err("this host has no CPU for that".into()),
        cpu => Ok(vec![vec![cpu.parse().unwrap()]; pes.try_into().unwrap()]),
    }))
}

/// `self-launch PES`: a program that launches itself.
pub fn launch_self(args: &[String]) -> ! {
    if let Err(error) = self_with(args[0].parse().unwrap()) {
        eprintln!("{error}");
        exit(101)
    }
    let job = joined();
    job.barrier().unwrap();
    println!("rank {} of {} after the barrier", job.rank(), job.size());
    job.leave();
    exit(0)
}

fn joined() -> std::sync::Arc<dyn Bootstrap> {
    join(&|name| std::env::var(name).ok(), DEADLINE).unwrap()
}

fn rank() -> u32 {
    let launched = std::env::var("OXSHMEM_RANK");
    launched
        .or_else(|_| std::env::var("RANK"))
        .unwrap()
        .parse()
        .unwrap()
}

fn wait_forever() -> ! {
    loop {
        std::thread::park();
    }
}

fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).unwrap();
    out.flush().unwrap();
}

/// Whether a process has neither ended nor been reaped.
fn runs(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_ok_and(|stat| {
        stat.rsplit(") ")
            .next()
            .is_some_and(|rest| !rest.starts_with('Z'))
    })
}

/// `pe ROLE ARGS…`.
pub fn pe(args: &[String]) -> ! {
    let number = |index: usize| args[index].parse::<i32>().unwrap();
    let is_rank = |index: usize| rank() == args[index].parse::<u32>().unwrap();
    match args[0].as_str() {
        "empty" => {
            let job = joined();
            job.barrier().unwrap();
            job.leave();
        }
        "variables" => {
            for name in ["RANK", "SIZE", "LOCAL_RANK"] {
                let value = std::env::var(format!("OXSHMEM_{name}")).unwrap();
                say(&format!("{name}={value}\n"));
            }
        }
        // environment NAME…: the variables' values.
        "environment" => {
            for name in &args[1..] {
                let value = std::env::var(name).unwrap_or_else(|_| "unset".into());
                say(&format!("{name}={value}\n"));
            }
        }
        // folder: the working directory.
        "folder" => say(&format!("{}\n", std::env::current_dir().unwrap().display())),
        // exit RANK STATUS: that rank exits so, while the others wait for ever.
        "exit" => {
            let job = joined();
            job.barrier().unwrap();
            if is_rank(1) {
                exit(number(2));
            }
            wait_forever();
        }
        // kill RANK SIGNAL
        "kill" => {
            let job = joined();
            job.barrier().unwrap();
            if is_rank(1) {
                // SAFETY: raising a signal in one's own process has no precondition.
                unsafe { libc::raise(number(2)) };
            }
            wait_forever();
        }
        // absent RANK: that rank exits with 0 and never joins; the others say what they hear.
        "absent" => {
            if !is_rank(1) {
                let error = joined().barrier().unwrap_err();
                say(&format!("{error}\n"));
            }
        }
        // rude RANK: that rank joins and exits with 0 without a goodbye.
        "rude" => {
            let job = joined();
            job.barrier().unwrap();
            if !is_rank(1) {
                let error = job.barrier().unwrap_err();
                say(&format!("{error}\n"));
            }
        }
        // first RANK STATUS: that rank's connection ends; the others exit with 1 when they hear of
        // it, and only when one has does that rank's process end too.
        "first" => {
            let job = joined();
            let pids = job.allgather(&std::process::id().to_ne_bytes()).unwrap();
            if is_rank(1) {
                drop(job);
                let other = u32::from_ne_bytes(pids[0].as_slice().try_into().unwrap());
                crate::job::until("rank 0 has ended", || !runs(other));
                exit(number(2));
            }
            job.barrier().unwrap_err();
            exit(1);
        }
        // fails RANK STATUS: that rank's connection ends; rank 0 hears of it and aborts with 1, as a call in C that
        // fails does; and only when it has ended does that rank's process end too.
        "fails" => {
            let job = joined();
            let pids = job.allgather(&std::process::id().to_ne_bytes()).unwrap();
            if is_rank(1) {
                drop(job);
                let other = u32::from_ne_bytes(pids[0].as_slice().try_into().unwrap());
                crate::job::until("rank 0 has ended", || !runs(other));
                exit(number(2));
            }
            job.barrier().unwrap_err();
            if rank() == 0 {
                job.abort(1, "a call failed");
            }
            wait_forever();
        }
        // crash RANK SIGNAL: that rank is killed so, and the others exit with 1 when they hear.
        "crash" => {
            let job = joined();
            job.barrier().unwrap();
            if is_rank(1) {
                // SAFETY: raising a signal in one's own process has no precondition.
                unsafe { libc::raise(number(2)) };
            }
            job.barrier().unwrap_err();
            exit(1);
        }
        // quit: exits with 5 when told to end.
        "quit" => {
            // SAFETY: `_exit` may be called in a signal handler.
            unsafe {
                extern "C" fn quit(_: i32) {
                    // SAFETY: as above.
                    unsafe { libc::_exit(5) }
                }
                libc::signal(libc::SIGTERM, quit as extern "C" fn(i32) as usize);
            }
            joined().barrier().unwrap();
            say("ready\n");
            wait_forever();
        }
        // abort RANK STATUS
        "abort" => {
            let job = joined();
            job.barrier().unwrap();
            if is_rank(1) {
                job.abort(number(2), "told so by the test");
                say("abort returned\n");
            }
            wait_forever();
        }
        // hang: with a child of one's own, ready when all are.
        "hang" => {
            let job = joined();
            let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
            job.barrier().unwrap();
            say("ready\n");
            child.wait().unwrap();
            wait_forever();
        }
        // handle RANK: that rank has a handler for SIGUSR1, and says when it has come.
        "handle" => {
            static CAME: AtomicBool = AtomicBool::new(false);
            extern "C" fn note(_signal: i32) {
                CAME.store(true, Ordering::Relaxed);
            }
            if rank() == number(1) as u32 {
                // SAFETY: the handler stores to an atomic only.
                unsafe { libc::signal(libc::SIGUSR1, note as *const () as usize) };
            }
            joined().barrier().unwrap();
            say("ready\n");
            while !CAME.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(1));
            }
            say("caught\n");
            wait_forever();
        }
        // wait WHOM…: tells for which rank each rank waits, if not `busy`; hangs WHOM…: the same, and that it lasts.
        name @ ("wait" | "hangs") => {
            let job = joined();
            let whom = args[1 + rank() as usize].parse().ok();
            let wait = whom.map(|whom| Waiting {
                call: "barrier_all".into(),
                whom: Awaited::Rank(whom),
                what: "its word".into(),
                lasted: Duration::from_secs(60),
            });
            job.on_ask(Box::new(move || wait.iter().cloned().collect()))
                .unwrap();
            job.barrier().unwrap();
            say("ready\n");
            if name == "hangs" {
                job.hangs();
            }
            wait_forever();
        }
        // stubborn: heeds no signal that can be ignored.
        "stubborn" => {
            // SAFETY: ignoring a signal has no precondition.
            unsafe {
                libc::signal(libc::SIGTERM, libc::SIG_IGN);
                libc::signal(libc::SIGINT, libc::SIG_IGN);
            }
            joined().barrier().unwrap();
            say("ready\n");
            wait_forever();
        }
        // catch SIGNAL…: says which comes, and exits with 0.
        "catch" => {
            // SAFETY: the set is initialised by `sigemptyset` before it is used.
            let caught = unsafe {
                let mut set = std::mem::zeroed();
                libc::sigemptyset(&raw mut set);
                for index in 1..args.len() {
                    libc::sigaddset(&raw mut set, number(index));
                }
                libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
                joined().barrier().unwrap();
                say("ready\n");
                let mut caught = 0;
                libc::sigwait(&raw const set, &raw mut caught);
                caught
            };
            say(&format!("rank {} caught {caught}\n", rank()));
        }
        // cat: what comes in, from whichever rank it does.
        "cat" => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).unwrap();
            say(&format!("rank {} read {:?}\n", rank(), text));
        }
        // echo: line by line.
        "echo" => {
            for line in std::io::stdin().lock().lines() {
                say(&format!("{}\n", line.unwrap()));
            }
        }
        // lines COUNT LENGTH: written in pieces that do not end where lines do.
        "lines" => {
            let letter = char::from(b'a' + u8::try_from(rank()).unwrap());
            let line = letter
                .to_string()
                .repeat(usize::try_from(number(2)).unwrap())
                + "\n";
            let text = line.repeat(usize::try_from(number(1)).unwrap());
            for piece in text.as_bytes().chunks(1000) {
                std::io::stdout().write_all(piece).unwrap();
                std::io::stdout().flush().unwrap();
            }
        }
        // both COUNT LENGTH: lines to stdout and stderr in turns, in one piece.
        "both" => {
            let letter = char::from(b'a' + u8::try_from(rank()).unwrap());
            let line = letter
                .to_string()
                .repeat(usize::try_from(number(2)).unwrap())
                + "\n";
            for _ in 0..number(1) {
                say(&line);
                std::io::stderr().write_all(line.as_bytes()).unwrap();
            }
        }
        // stray: leaves a process that writes until nobody reads, in no group of the job.
        "stray" => {
            use std::os::unix::process::CommandExt;
            let mut command = Command::new("yes");
            // SAFETY: `setsid` is a system call that needs nothing of this process.
            unsafe {
                command.pre_exec(|| {
                    libc::setsid();
                    Ok(())
                });
            }
            let mut child = command.spawn().unwrap();
            assert_eq!(child.try_wait().unwrap(), None);
        }
        // text TEXT: as it is, without a line's end.
        "text" => say(&args[1]),
        // endless: until nobody reads.
        "endless" => {
            let text = "y\n".repeat(4096);
            loop {
                say(&text);
            }
        }
        // cpus: those that this process may use.
        "cpus" => {
            let status = std::fs::read_to_string("/proc/self/status").unwrap();
            let allowed = status
                .lines()
                .find(|line| line.starts_with("Cpus_allowed_list"))
                .unwrap();
            say(&format!("rank {} {allowed}\n", rank()));
        }
        // descriptors COUNT: with the standard streams closed, shares pipes with all.
        "descriptors" => descriptors(),
        other => panic!("role {other}"),
    }
    exit(0)
}

/// Passes one memory file per rank around while the standard streams are closed; exits with 3 if
/// one is not whose it should be.
fn descriptors() {
    let job = joined();
    // SAFETY: nothing in this process uses these descriptors' numbers from here on.
    unsafe {
        for descriptor in 0..3 {
            libc::close(descriptor);
        }
    }
    let name = format!("memory of {}", job.rank());
    let mut mine = rustix::fs::memfd_create(&name, rustix::fs::MemfdFlags::CLOEXEC).unwrap();
    std::fs::File::from(mine.try_clone().unwrap())
        .write_all(name.as_bytes())
        .unwrap();
    let among: Vec<u32> = (0..job.size()).collect();
    let shared = {
        use std::os::fd::AsFd;
        job.share_descriptors(&among, &[mine.as_fd()], DEADLINE)
            .unwrap()
    };
    for (from, theirs) in among.iter().zip(shared) {
        for descriptor in theirs {
            mine = descriptor;
            let mut text = [0; 64];
            let count = rustix::io::pread(&mine, &mut text, 0).unwrap();
            if text[..count] != *format!("memory of {from}").as_bytes() {
                exit(3);
            }
        }
    }
    job.barrier().unwrap();
    job.leave();
}
