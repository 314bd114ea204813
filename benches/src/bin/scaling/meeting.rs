//! The rendezvous alone: connections, exchanges, and forwarded messages, all over this host's TCP.

use std::net::TcpListener;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use oxshmem_bootstrap::{Bootstrap, DEFAULT_DEADLINE, MessageHandler};
use oxshmem_examples::splitmix;

use crate::rows::Meeting;

/// Bytes of each rank's contribution.
const BYTES: usize = 1024;
const ROUNDS: usize = 5;
/// Questions of each rank, one after the other.
const QUESTIONS: usize = 20;
/// The size of a queue pair's endpoint, about.
const QUESTION_BYTES: usize = 128;
/// The first byte of a question.
const ASKED: u8 = 0;
const ANSWERED: u8 = 1;

pub fn measure(pes: usize) -> anyhow::Result<Meeting> {
    raise_descriptor_limit();
    // The port is free again, and no other program is likely to take it.
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let start = Instant::now();
    let rows = std::thread::scope(|scope| {
        let spawned: Vec<_> = (0..pes)
            .map(|rank| scope.spawn(move || meet(rank, pes, port, start)))
            .collect();
        let rows = spawned.into_iter().map(|thread| match thread.join() {
            Ok(row) => row,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        rows.collect::<anyhow::Result<Vec<_>>>()
    })?;
    rows.into_iter().next().context("nobody met")
}

fn meet(rank: usize, pes: usize, port: u16, start: Instant) -> anyhow::Result<Meeting> {
    let variables = |name: &str| match name {
        "OXSHMEM_BOOTSTRAP" => Some("torchrun".into()),
        "RANK" | "LOCAL_RANK" => Some(rank.to_string()),
        "WORLD_SIZE" => Some(pes.to_string()),
        "MASTER_ADDR" => Some("127.0.0.1".into()),
        "MASTER_PORT" => Some(port.to_string()),
        "OXSHMEM_JOB_KEY" => Some("5c".repeat(32)),
        _ => None,
    };
    let bootstrap = oxshmem_bootstrap::join(&variables, DEFAULT_DEADLINE)?;
    bootstrap.barrier()?;
    let connect_s = start.elapsed().as_secs_f64();
    let barrier_s = median(|| Ok(bootstrap.barrier()?))?;
    let mine = unlike(rank);
    let gather_s = median(|| Ok(bootstrap.allgather(&mine).map(drop)?))?;

    let (told, answers) = channel();
    bootstrap.on_message(answering(Arc::downgrade(&bootstrap), told))?;
    bootstrap.barrier()?;
    let asked = Instant::now();
    let question = [ASKED; QUESTION_BYTES];
    let to = (rank + pes / 2) % pes;
    for _ in 0..QUESTIONS {
        bootstrap.send(to as u32, &question)?;
        answers
            .recv_timeout(DEFAULT_DEADLINE)
            .context("no answer came")?;
    }
    bootstrap.barrier()?;
    let asked = asked.elapsed().as_secs_f64();
    bootstrap.leave();
    Ok(Meeting {
        pes,
        connect_s,
        barrier_s,
        gather_s,
        gather_bytes: BYTES,
        question_s: asked / (pes * QUESTIONS) as f64,
    })
}

/// A rank's contribution: no part repeats, so that packing (which the rendezvous does to long
/// results) does not shorten it.
fn unlike(rank: usize) -> Vec<u8> {
    let words = (BYTES / size_of::<u64>()) as u64;
    let word = |place| splitmix::at(rank as u64, place);
    (0..words).map(word).flat_map(u64::to_le_bytes).collect()
}

fn answering(by: Weak<dyn Bootstrap>, told: Sender<()>) -> MessageHandler {
    // Threads share a handler, but cannot share a sender.
    let told = std::sync::Mutex::new(told);
    Box::new(move |from, bytes| match (bytes.first(), by.upgrade()) {
        (Some(&ASKED), Some(by)) => {
            let _ = by.send(from, &[ANSWERED; QUESTION_BYTES]);
        }
        _ => {
            let told = told
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            let _ = told.send(());
        }
    })
}

/// The median of some rounds, in seconds.
fn median(mut call: impl FnMut() -> anyhow::Result<()>) -> anyhow::Result<f64> {
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let start = Instant::now();
        call()?;
        times.push(start.elapsed());
    }
    times.sort();
    Ok(times.get(ROUNDS / 2).map_or(0.0, Duration::as_secs_f64))
}

/// Both ends of all connections are in this process, so it needs many descriptors.
fn raise_descriptor_limit() {
    // SAFETY: both calls get a whole struct, for which all-zero bytes are valid.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) == 0 {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::DeflateEncoder;

    use super::*;

    /// More ranks than those whose result is sent unpacked.
    #[test]
    fn what_ranks_give_is_as_long_when_it_is_packed() {
        let all: Vec<u8> = (0..2000).flat_map(unlike).collect();
        assert_eq!(all.len(), 2000 * BYTES);
        let mut packer = DeflateEncoder::new(Vec::new(), Compression::fast());
        packer.write_all(&all).unwrap();
        assert!(packer.finish().unwrap().len() >= all.len());
    }
}
