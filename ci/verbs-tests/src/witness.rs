//! The local side of the witness: oxshmem's verbs transport as PE 0 of a job whose PE 1 is no oxshmem
//! but `witness.c`, a plain verbs program. All that the two tell each other is what any verbs
//! program needs: queue pair numbers, sequence numbers, GIDs, addresses and keys, in lines over TCP.
//! The bytes that the transport exchanges with peers are unpacked and packed here, in [`packed`].
//!
//! Each side reads what the other wrote, by RDMA and in its own memory, and both add to one word.

mod packed;

use std::fmt::{Debug, Display};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use oxshmem_transport::conformance::host_memory;
use oxshmem_transport::{
    AtomicOp, Domain, HostId, Job, Lane, Local, Memory, Op, Pe, Peer, RegionId, Remote, SignalOp,
    Status, Transport, Width,
};
use oxshmem_verbs::Verbs;

use crate::outcome::{Outcome, ensure};
use packed::Gid;

const ME: Pe = Pe(0);
const WITNESS: Pe = Pe(1);
const REGION: RegionId = RegionId(0);

/// Both sides' memory in bytes, and where in it is what. `witness.c` has the same numbers.
const LEN: usize = 1 << 20;
const WRITTEN_BY_OXSHMEM: usize = 0;
const WRITTEN_BY_WITNESS: usize = 300_000;
/// Long and at no word's start.
const BYTES: usize = 200_001;
const WORD: usize = 600_000;
const SIGNAL: usize = 600_008;
/// Short, at an odd place.
const SHORT: (usize, usize) = (700_001, 13);

/// The number of a connection's first queue pair: a multiple of 16.
const FIRST_NONCE: u64 = 16;

/// For every wait.
const DEADLINE: Duration = Duration::from_secs(60);

fn pattern(seed: u8, i: usize) -> u8 {
    (i as u32).wrapping_mul(2_654_435_761).to_le_bytes()[3] ^ seed
}

fn patterns(seed: u8, len: usize) -> Vec<u8> {
    (0..len).map(|i| pattern(seed, i)).collect()
}

/// Listens at `at` for one witness.
pub fn main(at: &str) -> Outcome {
    let memory = host_memory(LEN)?;
    let verbs = Verbs::new();
    let devices = verbs.probe()?;
    let device = devices.first().ok_or("there is no device")?;
    let host = HostId("witnessed".into());
    let domain = verbs.open(
        device,
        &Job {
            me: ME,
            size: 2,
            host_rank: 0,
            host: host.clone(),
        },
    )?;
    let region = domain.register(REGION, &memory)?;

    let listener = TcpListener::bind(at).map_err(|error| format!("{at}: {error}"))?;
    println!("listening");
    let mut witness = Link::new(listener.accept()?.0)?;
    let mut lane = Towards {
        lane: domain.lane()?,
        domain: &*domain,
    };
    lane.meet_itself()?;
    import(&*domain, &host, ME, region.key())?;
    let (gid, key) = be_target(&mut witness, &mut lane, &Own(&memory), region.key())?;
    be_origin(&mut witness, &mut lane, &host, gid, &key)?;
    println!("witness and oxshmem read what the other wrote");
    Ok(())
}

/// Lets the witness read and write this side's memory, by a responder queue pair. Returns the witness's
/// GID and the key of its memory.
fn be_target(
    witness: &mut Link,
    lane: &mut Towards<'_>,
    own: &Own<'_>,
    key: &[u8],
) -> Outcome<(Gid, packed::Key)> {
    let key = packed::key(key)?;
    let [queue_pair, sequence, gid, address, remote_key] = witness.receive("witness")?;
    let gid: Gid = gid.parse()?;
    let theirs = packed::Endpoint {
        from: WITNESS.0,
        to: ME.0,
        nonce: FIRST_NONCE,
        queue_pair: number(&queue_pair)?,
        sequence: number(&sequence)?,
        gid,
    };
    let answer = packed::answer(&lane.domain.accept(WITNESS, &theirs.to_bytes())?)?;
    // By the device, not by the CPU.
    lane.put(ME, &patterns(1, BYTES), WRITTEN_BY_OXSHMEM)?;
    own.store(WORD, 1000);
    let packed::Answer {
        queue_pair,
        sequence,
        ours,
    } = answer;
    let (base, strict) = (key.base, key.strict);
    witness.send_line(format_args!(
        "oxshmem {queue_pair} {sequence} {ours} {base} {strict}"
    ))?;
    witness.expect("read and written")?;
    own.holds(
        WRITTEN_BY_WITNESS,
        &patterns(2, BYTES),
        "what the witness wrote",
    )?;
    ensure(own.load(WORD) == 1017, || {
        format!("the word is {}, not 1017", own.load(WORD))
    })?;
    let key = packed::Key {
        base: number(&address)?,
        strict: number(&remote_key)?,
    };
    Ok((gid, key))
}

/// Reads and writes the witness's memory by a lane, towards a queue pair that the witness creates for it.
fn be_origin(
    witness: &mut Link,
    lane: &mut Towards<'_>,
    host: &HostId,
    gid: Gid,
    key: &packed::Key,
) -> Outcome {
    let endpoint = packed::endpoint(&lane.lane.endpoint(WITNESS)?)?;
    let (queue_pair, sequence) = (endpoint.queue_pair, endpoint.sequence);
    witness.send_line(format_args!(
        "lane {queue_pair} {sequence} {}",
        endpoint.gid
    ))?;
    let [queue_pair, sequence] = witness.receive("passive")?;
    let answer = packed::answer_to(&endpoint, number(&queue_pair)?, number(&sequence)?, gid);
    lane.lane.connect(WITNESS, &answer)?;
    let key = key.to_bytes(WITNESS.0, REGION.0, LEN as u64);
    import(lane.domain, host, WITNESS, &key)?;
    let mut read = vec![0; BYTES];
    lane.get(WITNESS, &mut read, WRITTEN_BY_WITNESS)?;
    ensure(read == patterns(3, BYTES), || {
        "what the witness stored is not what was got".into()
    })?;
    lane.put(WITNESS, &patterns(4, BYTES), WRITTEN_BY_OXSHMEM)?;
    lane.put(WITNESS, &patterns(5, SHORT.1), SHORT.0)?;
    lane.atomics(WITNESS)?;
    lane.signal(WITNESS)?;
    witness.send_line("written")?;
    witness.expect("seen")
}

fn import(domain: &dyn Domain, host: &HostId, pe: Pe, key: &[u8]) -> Outcome {
    let peer = Peer {
        pe,
        host: host.clone(),
        address: None,
    };
    domain.import(&peer, REGION, key, None)?;
    Ok(())
}

fn number<T: std::str::FromStr<Err: Display>>(text: &str) -> Outcome<T> {
    text.parse()
        .map_err(|error| format!("{text:?} is no number: {error}").into())
}

/// Lines to and from the witness.
struct Link {
    read: BufReader<TcpStream>,
    write: TcpStream,
}

impl Link {
    fn new(stream: TcpStream) -> Outcome<Link> {
        stream.set_read_timeout(Some(DEADLINE))?;
        Ok(Link {
            read: BufReader::new(stream.try_clone()?),
            write: stream,
        })
    }

    fn send_line(&mut self, line: impl Display) -> Outcome {
        Ok(self.write.write_all(format!("{line}\n").as_bytes())?)
    }

    fn line(&mut self) -> Outcome<String> {
        let mut line = String::new();
        self.read
            .read_line(&mut line)
            .map_err(|error| format!("from the witness: {error}"))?;
        Ok(line.trim_end().to_owned())
    }

    fn expect(&mut self, wanted: &str) -> Outcome {
        let line = self.line()?;
        ensure(line == wanted, || {
            format!("the witness said {line:?}, not {wanted:?}")
        })
    }

    /// The words of the next line, which must begin with `first`.
    fn receive<const N: usize>(&mut self, first: &str) -> Outcome<[String; N]> {
        let line = self.line()?;
        let mut words = line.split(' ').map(str::to_owned);
        let odd = || format!("the witness said {line:?}, not {first:?} and {N} words");
        ensure(words.next().as_deref() == Some(first), odd)?;
        let words: Vec<String> = words.collect();
        words.try_into().map_err(|_| odd().into())
    }
}

/// This side's memory. Devices write it, so each access is atomic.
struct Own<'m>(&'m Memory);

impl Own<'_> {
    fn word(&self, at: usize) -> &AtomicU64 {
        assert!(at.is_multiple_of(8) && at + 8 <= LEN);
        // SAFETY: within the memory and aligned, since its base is page-aligned; it lives as long as
        // `self`, and all access to it is atomic or a device's.
        unsafe { &*self.0.base().as_ptr().add(at).cast::<AtomicU64>() }
    }

    fn store(&self, at: usize, value: u64) {
        self.word(at).store(value, Ordering::SeqCst);
    }

    fn load(&self, at: usize) -> u64 {
        self.word(at).load(Ordering::SeqCst)
    }

    fn holds(&self, at: usize, wanted: &[u8], what: &str) -> Outcome {
        assert!(at + wanted.len() <= LEN);
        let first = wanted.iter().enumerate().find(|(i, wanted)| {
            // SAFETY: within the memory, as asserted; else as in `word`.
            let byte = unsafe { &*self.0.base().as_ptr().add(at + i).cast::<AtomicU8>() };
            byte.load(Ordering::SeqCst) != **wanted
        });
        ensure(first.is_none(), || {
            format!("{what} is wrong at (byte, wanted) {first:?}")
        })
    }
}

struct Towards<'d> {
    lane: Box<dyn Lane>,
    domain: &'d dyn Domain,
}

impl Towards<'_> {
    /// Connects with this PE's own domain.
    fn meet_itself(&mut self) -> Outcome {
        let endpoint = self.lane.endpoint(ME)?;
        let answer = self.domain.accept(ME, &endpoint)?;
        Ok(self.lane.connect(ME, &answer)?)
    }

    /// Does one operation whole.
    fn run(&mut self, pe: Pe, op: Op) -> Outcome {
        let end = Instant::now() + DEADLINE;
        let in_time = |what: &dyn Debug| {
            ensure(Instant::now() < end, || {
                format!("not within {DEADLINE:?}: {what:?}")
            })
        };
        loop {
            // SAFETY: the local buffer outlives this call, which ends when the operation is complete, or
            // by an error that ends this process.
            let posted = unsafe { self.lane.post(pe, &[op, Op::Flush]) };
            match posted.status {
                Status::All => break,
                Status::Refused(error) => return Err(error.into()),
                Status::Full => in_time(&op)?,
            }
            ensure(posted.accepted == 0, || {
                "there is no room for two operations".into()
            })?;
            self.lane.progress()?;
        }
        loop {
            let counters = self.lane.counters(pe);
            if counters.posted == counters.completed {
                return Ok(());
            }
            in_time(&counters)?;
            self.lane.progress()?;
            std::thread::yield_now();
        }
    }

    fn put(&mut self, pe: Pe, from: &[u8], to: usize) -> Outcome {
        let (mut addr, mut left, mut to) = (from.as_ptr(), from.len(), to as u64);
        // Unregistered memory goes in parts.
        while left > 0 {
            let len = left.min(oxshmem_verbs::UNREGISTERED);
            let local = Local {
                addr: addr.cast_mut(),
                len,
                key: None,
            };
            self.run(
                pe,
                Op::Put {
                    from: local,
                    to: Remote {
                        region: REGION,
                        offset: to,
                    },
                },
            )?;
            (addr, left, to) = (addr.wrapping_add(len), left - len, to + len as u64);
        }
        Ok(())
    }

    fn get(&mut self, pe: Pe, into: &mut [u8], from: usize) -> Outcome {
        let len = into.len();
        // SAFETY: the buffer stays where it is until the registration is dropped, below.
        let local = unsafe { self.domain.register_local(into.as_mut_ptr(), len, true)? };
        let into = Local {
            addr: into.as_mut_ptr(),
            len,
            key: Some(local.key()),
        };
        let from = Remote {
            region: REGION,
            offset: from as u64,
        };
        self.run(pe, Op::Get { into, from })
    }

    /// The witness's word is 50: 57 when this ends, and every old value is right.
    fn atomics(&mut self, pe: Pe) -> Outcome {
        let on = Remote {
            region: REGION,
            offset: WORD as u64,
        };
        let steps = [
            (AtomicOp::Add, 5, 0, 50),
            (AtomicOp::CompareSwap, 90, 54, 55),
            (AtomicOp::CompareSwap, 57, 55, 55),
        ];
        for (op, operand, compare, wanted) in steps {
            let old = AtomicU64::new(u64::MAX);
            let fetch = Some(Local {
                addr: old.as_ptr().cast(),
                len: 8,
                key: None,
            });
            self.run(
                pe,
                Op::Atomic {
                    op,
                    width: Width::W64,
                    on,
                    operand,
                    compare,
                    fetch,
                },
            )?;
            let old = old.load(Ordering::SeqCst);
            ensure(old == wanted, || {
                format!("{op} at the witness found {old}, not {wanted}")
            })?;
        }
        Ok(())
    }

    fn signal(&mut self, pe: Pe) -> Outcome {
        let from = Local {
            addr: std::ptr::null_mut(),
            len: 0,
            key: None,
        };
        let at = |offset: usize| Remote {
            region: REGION,
            offset: offset as u64,
        };
        let (to, signal) = (at(WORD), at(SIGNAL));
        self.run(
            pe,
            Op::PutSignal {
                from,
                to,
                signal,
                op: SignalOp::Set,
                value: 77,
            },
        )
    }
}
