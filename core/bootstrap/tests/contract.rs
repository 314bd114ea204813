//! The promises of every bootstrap, checked on each back-end: threads, and processes' TCP client
//! against a rendezvous (here within one process, which the client does not notice).

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use oxshmem_bootstrap::{Bootstrap, Error, InProcess, JobKey, PeerExit, TcpBootstrap, join};
use sha2::Sha256;

const PATIENCE: Duration = Duration::from_secs(30);

/// A port that nothing listens on.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port()
}

fn torchrun(rank: u32, size: u32, port: u16, key: &str) -> impl Fn(&str) -> Option<String> {
    let values = [
        ("RANK", rank.to_string()),
        ("WORLD_SIZE", size.to_string()),
        ("MASTER_ADDR", "127.0.0.1".to_owned()),
        ("MASTER_PORT", port.to_string()),
        ("OXSHMEM_JOB_KEY", key.to_owned()),
    ];
    move |name| {
        values
            .iter()
            .find(|(set, _)| *set == name)
            .map(|(_, value)| value.clone())
    }
}

type Pe = Arc<dyn Bootstrap>;

/// Joins ranks `ranks` of a torchrun-style job, each on a thread.
fn tcp_ranks(ranks: &[u32], size: u32, port: u16, key: &str, deadline: Duration) -> Vec<Pe> {
    try_tcp_ranks(ranks, size, port, key, deadline).unwrap()
}

fn try_tcp_ranks(
    ranks: &[u32],
    size: u32,
    port: u16,
    key: &str,
    deadline: Duration,
) -> Result<Vec<Pe>, Error> {
    std::thread::scope(|scope| {
        let join = |rank: &u32| {
            let lookup = torchrun(*rank, size, port, key);
            scope.spawn(move || join(&lookup, deadline))
        };
        let joins: Vec<_> = ranks.iter().map(join).collect();
        joins.into_iter().map(|pe| pe.join().unwrap()).collect()
    })
}

fn tcp_group(size: u32, deadline: Duration) -> Result<Vec<Pe>, Error> {
    let ranks: Vec<u32> = (0..size).collect();
    let key = JobKey::random().unwrap().to_hex();
    try_tcp_ranks(&ranks, size, free_port(), &key, deadline)
}

fn thread_group(size: u32, deadline: Duration) -> Vec<Pe> {
    InProcess::group_with_deadline(size, deadline)
        .into_iter()
        .map(|pe| pe as Pe)
        .collect()
}

/// Runs a check on a group of each back-end.
fn on_each(size: u32, deadline: Duration, check: impl Fn(&mut Vec<Pe>)) {
    for mut pes in [
        thread_group(size, deadline),
        tcp_group(size, deadline).unwrap(),
    ] {
        check(&mut pes);
        // Rank 0 last: it hosts the rendezvous, and waits for the others.
        while pes.pop().is_some() {}
    }
}

/// Runs `body` for each PE on a thread of its own.
fn each<T: Send>(pes: &[Pe], body: impl Fn(&Pe) -> T + Sync) -> Vec<T> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = pes.iter().map(|pe| scope.spawn(|| body(pe))).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    })
}

/// Repeats a check of a time limit with twice the limit while it fails: on a busy host a short limit may pass before the
/// ranks that do come have come.
fn with_growing_limit(check: impl Fn(Duration) -> Result<(), String>) {
    let mut limit = Duration::from_millis(200);
    while let Err(why) = check(limit) {
        limit *= 2;
        assert!(limit < PATIENCE, "{why}");
    }
}

/// Fails unless the error is that exactly these ranks are missing.
fn names_missing(error: &Error, expected: &[u32]) -> Result<(), String> {
    match error {
        Error::MissingRanks { ranks, .. } if ranks == expected => Ok(()),
        other => Err(other.to_string()),
    }
}

fn exits_of(pe: &Pe) -> Receiver<PeerExit> {
    let (seen, exits) = mpsc::channel();
    pe.on_exit(Box::new(move |exit| seen.send(exit).unwrap_or(())))
        .unwrap();
    exits
}

#[test]
fn allgather_gives_every_ranks_bytes_in_rank_order() {
    for size in [1, 2, 3, 7] {
        on_each(size, PATIENCE, |pes| {
            each(pes, |pe| {
                for round in 0..20u8 {
                    let mine = vec![round; pe.rank() as usize];
                    let all = pe.allgather(&mine).unwrap();
                    assert_eq!(all.len(), size as usize);
                    for (rank, bytes) in all.iter().enumerate() {
                        assert_eq!(bytes, &vec![round; rank]);
                    }
                    pe.barrier().unwrap();
                }
            });
        });
    }
}

#[test]
fn allgather_takes_megabytes_and_refuses_more_than_its_limit() {
    on_each(2, PATIENCE, |pes| {
        each(pes, |pe| {
            let error = pe.allgather(&vec![0; (32 << 20) + 1]).unwrap_err();
            assert!(matches!(error, Error::TooLarge { limit, .. } if limit == 32 << 20));
            let all = pe.allgather(&vec![1; 8 << 20]).unwrap();
            assert!(
                all.iter()
                    .all(|bytes| bytes.len() == 8 << 20 && bytes.iter().all(|b| *b == 1))
            );
        });
    });
}

#[test]
fn messages_arrive_in_order_and_wait_for_a_late_handler() {
    on_each(3, PATIENCE, |pes| {
        for count in 0..100u8 {
            for pe in &*pes {
                pe.send(2, &[count]).unwrap();
            }
        }
        each(pes, |pe| pe.barrier().unwrap());
        let (seen, messages) = mpsc::channel();
        pes[2]
            .on_message(Box::new(move |from, bytes| {
                seen.send((from, bytes.to_vec())).unwrap_or(())
            }))
            .unwrap();
        let mut next = [0; 3];
        for _ in 0..300 {
            let (from, bytes) = messages.recv_timeout(PATIENCE).unwrap();
            assert_eq!(bytes, [next[from as usize]]);
            next[from as usize] += 1;
        }
        let error = pes[2].on_message(Box::new(|_, _| {})).unwrap_err();
        assert!(matches!(error, Error::HandlerSet { .. }));
        assert!(matches!(
            pes[0].send(3, &[]),
            Err(Error::NoSuchRank { rank: 3, size: 3 })
        ));
    });
}

#[test]
fn a_flood_of_messages_arrives_whole_at_a_slow_handler() {
    on_each(2, PATIENCE, |pes| {
        let (seen, messages) = mpsc::sync_channel(0);
        pes[1]
            .on_message(Box::new(move |_, bytes| {
                seen.send((bytes.len(), bytes[0])).unwrap_or(())
            }))
            .unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for count in 0..40 {
                    pes[0].send(1, &vec![count; 1 << 20]).unwrap();
                }
                pes[0].leave();
            });
            for count in 0..40 {
                assert_eq!(messages.recv_timeout(PATIENCE).unwrap(), (1 << 20, count));
            }
        });
    });
}

#[test]
fn more_messages_than_may_wait_for_a_handler_arrive_once_it_is_set() {
    on_each(2, PATIENCE, |pes| {
        let (sent, progress) = mpsc::channel();
        let (seen, messages) = mpsc::channel();
        std::thread::scope(|scope| {
            let pes = &*pes;
            scope.spawn(move || {
                for count in 0..100u8 {
                    pes[0].send(1, &vec![count; 1 << 20]).unwrap();
                    sent.send(()).unwrap();
                }
            });
            for _ in 0..64 {
                progress.recv_timeout(PATIENCE).unwrap();
            }
            pes[1]
                .on_message(Box::new(move |_, bytes| {
                    seen.send((bytes.len(), bytes[0])).unwrap_or(())
                }))
                .unwrap();
            for count in 0..100u8 {
                assert_eq!(messages.recv_timeout(PATIENCE).unwrap(), (1 << 20, count));
            }
        });
    });
}

#[test]
fn a_sender_that_nobody_will_hear_gets_an_error() {
    let pes = thread_group(2, Duration::from_millis(300));
    let error = (0..100)
        .find_map(|_| pes[0].send(1, &vec![0; 1 << 20]).err())
        .unwrap();
    assert!(matches!(error, Error::Unheard { rank: 1, .. }), "{error}");
}

#[test]
fn handlers_may_send() {
    on_each(2, PATIENCE, |pes| {
        let echo = Arc::downgrade(&pes[1]);
        pes[1]
            .on_message(Box::new(move |from, bytes| {
                echo.upgrade().unwrap().send(from, bytes).unwrap();
            }))
            .unwrap();
        let (seen, messages) = mpsc::channel();
        pes[0]
            .on_message(Box::new(move |_, bytes| {
                seen.send(bytes.to_vec()).unwrap_or(())
            }))
            .unwrap();
        pes[0].send(1, b"there and back").unwrap();
        assert_eq!(messages.recv_timeout(PATIENCE).unwrap(), b"there and back");
        // The echoing handler may still hold its reference; the barrier comes after it.
        each(pes, |pe| pe.barrier().unwrap());
    });
}

#[test]
fn an_orderly_exit_and_a_death_are_told_apart_by_all() {
    on_each(4, PATIENCE, |pes| {
        let early = exits_of(&pes[0]);
        let dead = pes.pop().unwrap();
        pes[2].leave();
        pes[2].leave();
        drop(dead);
        let late = exits_of(&pes[1]);
        for exits in [early, late] {
            let mut seen = [exits.recv_timeout(PATIENCE), exits.recv_timeout(PATIENCE)]
                .map(|exit| exit.unwrap())
                .map(|exit| (exit.rank, exit.orderly));
            seen.sort_unstable();
            assert_eq!(seen, [(2, true), (3, false)]);
        }
        let error = pes[0].send(3, &[]).unwrap_err();
        assert!(matches!(
            error,
            Error::PeerGone {
                rank: 3,
                orderly: false,
                ..
            }
        ));
        assert!(matches!(pes[2].send(0, &[]), Err(Error::Left { .. })));
        assert!(matches!(pes[2].barrier(), Err(Error::Left { .. })));
    });
}

#[test]
fn who_may_end_ends_in_order_unless_it_goes_on() {
    on_each(3, PATIENCE, |pes| {
        let exits = exits_of(&pes[0]);
        pes[1].rest(true);
        pes[2].rest(true);
        pes[2].rest(false);
        pes.truncate(1);
        let mut seen = [exits.recv_timeout(PATIENCE), exits.recv_timeout(PATIENCE)]
            .map(|exit| exit.unwrap())
            .map(|exit| (exit.rank, exit.orderly));
        seen.sort_unstable();
        assert_eq!(seen, [(1, true), (2, false)]);
    });
}

#[test]
fn a_death_fails_a_waiting_collective_call() {
    on_each(3, PATIENCE, |pes| {
        let dead = pes.remove(1);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| pes[0].barrier());
            drop(dead);
            let error = waiting.join().unwrap().unwrap_err();
            assert!(matches!(error, Error::PeerGone { rank: 1, .. }), "{error}");
        });
        let error = pes[1].allgather(&[]).unwrap_err();
        assert!(matches!(error, Error::PeerGone { rank: 1, .. }), "{error}");
    });
}

#[test]
fn leaving_right_after_a_barrier_spoils_it_for_nobody() {
    on_each(4, PATIENCE, |pes| {
        each(pes, |pe| {
            pe.barrier().unwrap();
            pe.leave();
        });
    });
}

#[test]
fn missing_ranks_are_named_at_the_deadline() {
    with_growing_limit(|limit| {
        for group in [Ok(thread_group(4, limit)), tcp_group(4, limit)] {
            let mut pes = group.map_err(|error| error.to_string())?;
            for error in each(&pes[..2], |pe| pe.barrier().unwrap_err()) {
                names_missing(&error, &[2, 3])?;
                assert!(
                    error.to_string().contains("ranks 2 and 3 did not arrive"),
                    "{error}"
                );
            }
            let error = pes[3].barrier().unwrap_err();
            assert!(matches!(error, Error::MissingRanks { .. }), "{error}");
            while pes.pop().is_some() {}
        }
        Ok(())
    });
}

#[test]
fn ranks_that_never_connect_are_missing_too() {
    let key = JobKey::random().unwrap().to_hex();
    with_growing_limit(|limit| {
        let pes = try_tcp_ranks(&[0, 2], 4, free_port(), &key, limit);
        let pes = pes.map_err(|error| error.to_string())?;
        for error in each(&pes, |pe| pe.allgather(&[1]).unwrap_err()) {
            names_missing(&error, &[1, 3])?;
        }
        Ok(())
    });
}

#[test]
fn different_collective_calls_fail_for_all() {
    on_each(3, PATIENCE, |pes| {
        let errors = each(pes, |pe| {
            if pe.rank() == 1 {
                pe.allgather(&[]).map(drop)
            } else {
                pe.barrier()
            }
        });
        for error in errors {
            assert!(matches!(error, Err(Error::Mismatch { .. })), "{error:?}");
        }
    });
}

#[test]
fn an_aborted_group_of_threads_fails_every_call() {
    let pes = thread_group(3, PATIENCE);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| pes[0].barrier());
        pes[1].abort(7, "tried enough");
        let error = waiting.join().unwrap().unwrap_err();
        assert!(
            matches!(
                error,
                Error::Aborted {
                    by: 1,
                    status: 7,
                    ..
                }
            ),
            "{error}"
        );
    });
    assert!(matches!(pes[2].send(0, &[]), Err(Error::Aborted { .. })));
}

/// A pipe with a text waiting in it.
fn pipe_with(text: &str) -> OwnedFd {
    let (reader, mut writer) = std::io::pipe().unwrap();
    writer.write_all(text.as_bytes()).unwrap();
    reader.into()
}

fn text_in(pipe: OwnedFd) -> String {
    let mut text = String::new();
    std::fs::File::from(pipe).read_to_string(&mut text).unwrap();
    text
}

#[test]
fn descriptors_reach_every_rank_of_the_list() {
    for size in [1, 2, 3, 7] {
        on_each(size, PATIENCE, |pes| {
            let started = Barrier::new(pes.len());
            each(pes, |pe| {
                // Not in rank order, and rank 0 not always first.
                let among: Vec<u32> = (0..size).rev().collect();
                for round in 0..3 {
                    // One descriptor for each other rank, named by giver, taker and round.
                    let text = |from, to| format!("{from} to {to} in {round}");
                    let pipes: Vec<_> = among
                        .iter()
                        .map(|to| pipe_with(&text(pe.rank(), *to)))
                        .collect();
                    let mine: Vec<_> = pipes.iter().map(AsFd::as_fd).collect();
                    let all = pe.share_descriptors(&among, &mine, PATIENCE).unwrap();
                    started.wait();
                    drop(pipes);
                    assert_eq!(all.len(), among.len());
                    let place = among.iter().position(|rank| *rank == pe.rank()).unwrap();
                    for (from, theirs) in among.iter().zip(all) {
                        if *from == pe.rank() {
                            assert!(theirs.is_empty());
                        } else {
                            assert_eq!(theirs.len(), among.len());
                            let pipe = theirs.into_iter().nth(place).unwrap();
                            assert_eq!(text_in(pipe), text(*from, pe.rank()));
                        }
                    }
                }
            });
        });
    }
}

#[test]
fn more_descriptors_than_one_message_holds_are_passed() {
    on_each(2, PATIENCE, |pes| {
        each(pes, |pe| {
            let zero = std::fs::File::open("/dev/zero").unwrap();
            let count = 200 + 100 * pe.rank() as usize;
            let all = pe
                .share_descriptors(&[0, 1], &vec![zero.as_fd(); count], PATIENCE)
                .unwrap();
            let theirs = 200 + 100 * (1 - pe.rank() as usize);
            assert_eq!(all[1 - pe.rank() as usize].len(), theirs);
        });
    });
}

#[test]
fn sharing_descriptors_names_who_did_not_come() {
    on_each(3, PATIENCE, |pes| {
        with_growing_limit(|limit| {
            let errors = each(&pes[..2], |pe| {
                pe.share_descriptors(&[0, 1, 2], &[], limit).unwrap_err()
            });
            names_missing(&errors[0], &[2])
        });
    });
}

#[test]
fn sharing_descriptors_with_a_dead_rank_fails() {
    on_each(3, PATIENCE, |pes| {
        drop(pes.pop());
        for error in each(pes, |pe| {
            pe.share_descriptors(&[0, 1, 2], &[], PATIENCE).unwrap_err()
        }) {
            let told = matches!(
                error,
                Error::PeerGone { rank: 2, .. } | Error::Descriptors { .. }
            );
            assert!(told, "{error}");
        }
    });
}

#[test]
fn lists_that_make_no_sense_are_refused() {
    on_each(2, PATIENCE, |pes| {
        for (list, why) in [
            (&[0u32, 5][..], "outside"),
            (&[1], "own list"),
            (&[0, 0], "twice"),
        ] {
            let error = pes[0].share_descriptors(list, &[], PATIENCE).unwrap_err();
            assert!(error.to_string().contains(why), "{error}");
        }
    });
}

#[test]
fn strangers_and_wrong_hellos_do_not_disturb_the_job() {
    let (port, key) = (free_port(), JobKey::random().unwrap());
    let hex = key.to_hex();
    let pes = tcp_ranks(&[0, 1], 3, port, &hex, PATIENCE);
    let address = format!("127.0.0.1:{port}");

    let silent = TcpStream::connect(&address).unwrap();
    let mut loud = TcpStream::connect(&address).unwrap();
    loud.write_all(b"GET / HTTP/1.1\r\nHost: example\r\n\r\n")
        .unwrap();
    loud.set_read_timeout(Some(PATIENCE)).unwrap();
    // Hung up on, without a word: an end or a reset.
    assert!(!matches!(loud.read(&mut [0; 16]), Ok(1..)));
    let other = JobKey::random().unwrap();
    let unproven = TcpBootstrap::connect(&address, 2, 3, other, PATIENCE).unwrap_err();
    assert!(unproven.to_string().contains("same OXSHMEM_JOB_KEY"));
    let refusal = |rank, size, key| {
        let error = TcpBootstrap::connect(&address, rank, size, key, PATIENCE).unwrap_err();
        let Error::Refused { reason, .. } = error else {
            panic!("{error}")
        };
        reason
    };
    assert!(refusal(2, 4, key).contains("has 4 PEs, but the rendezvous was told 3"));
    assert!(refusal(1, 3, key).contains("rank 1 of this job already"));
    assert!(refusal(9, 3, key).contains("ranks 0 to 2"));
    let last = TcpBootstrap::connect(&address, 2, 3, key, PATIENCE).unwrap();
    let mut pes = pes;
    pes.push(Arc::new(last));
    each(&pes, |pe| pe.barrier().unwrap());
    drop(silent);
    let exits = exits_of(&pes[2]);
    drop(pes.remove(1));
    let first = exits.recv_timeout(PATIENCE).unwrap();
    assert_eq!((first.rank, first.orderly), (1, false));
    while pes.pop().is_some() {}
}

/// The first bytes of rank `rank` of `size`, as the protocol has them.
fn hello(rank: u32, size: u32) -> Vec<u8> {
    let mut bytes = b"\x89OXSHMEM".to_vec();
    bytes.extend([4u32, rank, size].map(u32::to_le_bytes).concat());
    // No nonce that anybody else would take, as it should be.
    bytes.extend([rank as u8; 32]);
    bytes
}

/// Proves on a connection that has said this hello that it knows the key, as the protocol has it.
fn prove(stream: &mut TcpStream, hello: &[u8], key: &str) {
    let digits = |at: usize| u8::from_str_radix(&key[2 * at..2 * at + 2], 16).unwrap();
    let key: Vec<u8> = (0..32).map(digits).collect();
    let mac = |role: &[u8; 18], nonce: &[u8]| {
        let mac = Hmac::<Sha256>::new_from_slice(&key).unwrap();
        mac.chain_update([role, hello, nonce].concat()).finalize()
    };
    let mut challenge = [0; 5 + 32 + 32];
    stream.read_exact(&mut challenge).unwrap();
    let nonce = &challenge[5..37];
    assert_eq!(challenge[..5], [64, 0, 0, 0, 12]);
    assert_eq!(
        challenge[37..],
        *mac(b"oxshmem rendezvous", nonce).into_bytes()
    );
    let proof = mac(b"oxshmem pe        ", nonce).into_bytes();
    stream.write_all(&proof).unwrap();
}

#[test]
fn garbage_on_the_port_harms_nobody_but_its_sender() {
    let (port, key) = (free_port(), JobKey::random().unwrap().to_hex());
    let mut pes = tcp_ranks(&[0, 1], 3, port, &key, PATIENCE);
    let exits = exits_of(&pes[0]);
    let address = format!("127.0.0.1:{port}");
    // A fixed sequence of arbitrary bytes (Marsaglia's xorshift).
    let mut word = 0x9e37_79b9_u32;
    let mut garbage = |length: usize| -> Vec<u8> {
        let mut next = || {
            word ^= word << 13;
            word ^= word >> 17;
            word ^= word << 5;
            word.to_le_bytes()[0]
        };
        (0..length).map(|_| next()).collect()
    };
    // From strangers, with and without a right beginning, whole and cut off, also oversized.
    for round in 0..300 {
        let mut stream = TcpStream::connect(&address).unwrap();
        let right = round * 7 % 52;
        let mut bytes = hello(2, 3)[..right].to_vec();
        bytes.extend(garbage(round * 37 % 5000));
        // The other end may hang up at any byte.
        stream.write_all(&bytes).unwrap_or(());
    }
    // From one that knows the key: a frame that announces more than there may be.
    let mut stream = TcpStream::connect(&address).unwrap();
    let hello = hello(2, 3);
    stream.write_all(&hello).unwrap();
    prove(&mut stream, &hello, &key);
    stream.write_all(&[0xff, 0xff, 0xff, 0xff, 3]).unwrap();
    let died = exits.recv_timeout(PATIENCE).unwrap();
    assert_eq!((died.rank, died.orderly), (2, false));
    // The others still reach each other.
    let (seen, messages) = mpsc::channel();
    pes[1]
        .on_message(Box::new(move |_, bytes| {
            seen.send(bytes.to_vec()).unwrap_or(())
        }))
        .unwrap();
    pes[0].send(1, b"still here").unwrap();
    assert_eq!(messages.recv_timeout(PATIENCE).unwrap(), b"still here");
    while pes.pop().is_some() {}
}

#[test]
fn a_rendezvous_that_does_not_exist_is_named_at_the_deadline() {
    let address = format!("127.0.0.1:{}", free_port());
    let key = JobKey::random().unwrap();
    let error = TcpBootstrap::connect(&address, 1, 2, key, Duration::from_millis(100)).unwrap_err();
    assert!(matches!(error, Error::Connect { rank: 1, .. }), "{error}");
    assert!(error.to_string().contains(&address), "{error}");
}

#[test]
fn an_occupied_port_gets_advice() {
    let occupied = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = occupied.local_addr().unwrap().port();
    let key = JobKey::random().unwrap().to_hex();
    let error = join(&torchrun(0, 2, port, &key), PATIENCE).unwrap_err();
    assert!(error.to_string().contains("OXSHMEM_MASTER_PORT"), "{error}");
}

#[test]
fn a_world_of_one_needs_nobody() {
    let pe = join(&|_| None, PATIENCE).unwrap();
    assert_eq!((pe.rank(), pe.size()), (0, 1));
    pe.barrier().unwrap();
    assert_eq!(pe.allgather(b"me").unwrap(), [b"me"]);
    let (seen, messages) = mpsc::channel();
    pe.send(0, b"to myself").unwrap();
    pe.on_message(Box::new(move |from, bytes| {
        seen.send((from, bytes.to_vec())).unwrap_or(())
    }))
    .unwrap();
    assert_eq!(
        messages.recv_timeout(PATIENCE).unwrap(),
        (0, b"to myself".to_vec())
    );
    assert!(pe.share_descriptors(&[0], &[], PATIENCE).unwrap()[0].is_empty());
    pe.leave();
}
