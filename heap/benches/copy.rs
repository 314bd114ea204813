//! Speed of the copy primitive against libc's memcpy, between the same two buffers.
//!
//! `cargo bench -p oxshmem-heap --bench copy [-- all]`. As a put does, it copies from memory mapped
//! once into a memfd mapped a second time (the "peer's" view). Rounds alternate between the two
//! contenders; the medians' ratio is printed, above 1 where `copy` is the faster. With `all`, every
//! strategy of this machine gets a column.

use std::hint::black_box;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use oxshmem_heap::copy;
use oxshmem_heap::copy::strategies::{self, Routine};

/// The measured call, inlined into the measuring loop as it would be into a caller.
#[derive(Clone, Copy)]
enum Contender {
    Memcpy,
    Copy,
    Strategy(Routine),
}

/// A memfd of `len` committed bytes; gives the second of its two mappings, never unmapped.
fn shared(len: usize) -> std::io::Result<*mut u8> {
    let fd = rustix::fs::memfd_create(c"bench", rustix::fs::MemfdFlags::CLOEXEC)?;
    rustix::fs::ftruncate(&fd, len as u64)?;
    let mut view = std::ptr::null_mut();
    for _ in 0..2 {
        // SAFETY: a new mapping of a file that we just made, nowhere in particular.
        view = unsafe {
            let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            libc::mmap(
                std::ptr::null_mut(),
                len,
                protection,
                flags,
                fd.as_raw_fd(),
                0,
            )
        };
        if view == libc::MAP_FAILED {
            return Err(std::io::Error::last_os_error());
        }
    }
    Ok(view.cast())
}

/// Nanoseconds per copy.
fn time(who: Contender, dst: *mut u8, src: *const u8, len: usize, repeat: usize) -> f64 {
    fn average(repeat: usize, copy: impl Fn()) -> f64 {
        let start = Instant::now();
        for _ in 0..repeat {
            copy();
        }
        start.elapsed().as_nanos() as f64 / repeat as f64
    }
    // SAFETY (all three): both ranges lie in their mappings, which are distinct memory.
    match who {
        Contender::Memcpy => average(repeat, || {
            // SAFETY: see above.
            unsafe { libc::memcpy(dst.cast(), src.cast(), black_box(len)) };
        }),
        Contender::Copy => average(repeat, || {
            // SAFETY: see above.
            unsafe { copy::copy(dst, src, black_box(len)) };
        }),
        Contender::Strategy(routine) => average(repeat, || {
            // SAFETY: see above.
            unsafe { black_box(routine)(dst, src, black_box(len)) };
        }),
    }
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn main() -> std::io::Result<()> {
    // cargo passes `--bench`; `cargo test --benches` does not, and then one round suffices.
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let measure = arguments.iter().any(|a| a == "--bench");
    let mut contenders = vec![("memcpy", Contender::Memcpy), ("copy", Contender::Copy)];
    if arguments.iter().any(|a| a == "all") {
        contenders.extend(
            strategies::all()
                .into_iter()
                .map(|(name, r)| (name, Contender::Strategy(r))),
        );
    }
    let rounds = if measure { 15 } else { 1 };
    let largest = if measure { 128 << 20 } else { 1 << 20 };
    let (dst, src) = (shared(largest + 4096)?, shared(largest + 4096)?);

    // Let the clock frequency settle.
    let warm = Instant::now();
    while measure && warm.elapsed() < Duration::from_secs(1) {
        time(Contender::Memcpy, dst, src, 4096, 1000);
    }
    for (d, s, what) in [
        (0, 0, "both page-aligned"),
        (64, 0, "destination + 64"),
        (8, 0, "destination + 8"),
        (0, 8, "source + 8"),
        (0, 2048, "source + 2048"),
        (0, 1, "source + 1"),
        (1, 1, "both + 1"),
    ] {
        println!(
            "\n{what}\n{:>10} {:>12}   memcpy's time / time of",
            "bytes", "memcpy ns"
        );
        let mut lengths = vec![8, 16, 32, 48, 64, 100, 128, 192, 256, 384, 512, 768];
        lengths.extend((10..=27).map(|p| 1usize << p).filter(|len| *len <= largest));
        for len in lengths {
            // SAFETY: `d` and `s` are below the 4096 bytes that the mappings have beyond `largest`.
            let (to, from) = unsafe { (dst.add(d), src.add(s)) };
            let once = time(Contender::Memcpy, to, from, len, 2).max(1.0);
            let repeat = if measure {
                (200_000.0 / once) as usize + 1
            } else {
                1
            };
            let mut times = vec![Vec::new(); contenders.len()];
            for round in 0..rounds {
                for turn in 0..contenders.len() {
                    let who = (turn + round) % contenders.len();
                    // One unmeasured call settles caches and branches.
                    time(contenders[who].1, to, from, len, 1);
                    times[who].push(time(contenders[who].1, to, from, len, repeat));
                }
            }
            let medians: Vec<f64> = times.into_iter().map(median).collect();
            print!("{len:>10} {:>12.2}  ", medians[0]);
            for (who, time) in contenders.iter().zip(&medians).skip(1) {
                print!(" {} {:.2}", who.0, medians[0] / time);
            }
            println!();
        }
    }
    Ok(())
}
