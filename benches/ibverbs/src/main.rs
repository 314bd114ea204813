//! A two-sided baseline: round trips of SEND and RECV by the `ibverbs` crate, which oxshmem does not use.
//!
//! It is a package of its own without any of oxshmem's packages: oxshmem's interface to verbs is a
//! static library with the same name and symbols as libibverbs, and would silently replace it.
//!
//!     ibverbs-baseline                      waits for a client, and serves it
//!     ibverbs-baseline HOST [--bytes N]     measures half of a round trip

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use clap::Parser;
use ibverbs::{CompletionQueue, MemoryRegion, QueuePair, QueuePairEndpoint, ibv_wc};
use serde::{Deserialize, Serialize};

/// Two-sided messages there and back, over the first RDMA device's first port.
#[derive(Parser)]
struct Args {
    /// The server's host; without one, this is the server.
    host: Option<String>,
    /// The TCP port on which both meet.
    #[arg(long, default_value_t = 18600)]
    tcp: u16,
    /// Bytes of a message.
    #[arg(long, default_value_t = 8)]
    bytes: usize,
    /// Round trips measured.
    #[arg(long, default_value_t = 1000)]
    count: usize,
    /// The entry of the GID table; InfiniBand within a subnet needs none.
    #[arg(long)]
    gid_index: Option<u32>,
}

/// The connection data that each side needs of the other.
#[derive(Serialize, Deserialize)]
struct Hello {
    endpoint: QueuePairEndpoint,
    bytes: usize,
    count: usize,
}

/// Round trips before the first measured one.
const WARM: usize = 100;
/// The deadline of a message, far longer than any takes.
const DEADLINE: Duration = Duration::from_secs(30);
const SENT: u64 = 1;
const RECEIVED: u64 = 2;

fn main() -> Result<()> {
    let args = Args::parse();
    let mut peer = match &args.host {
        Some(host) => TcpStream::connect((host.as_str(), args.tcp))
            .with_context(|| format!("no server at {host}, TCP port {}", args.tcp))?,
        None => TcpListener::bind(("::", args.tcp))?.accept()?.0,
    };
    peer.set_read_timeout(Some(DEADLINE))?;
    let devices = ibverbs::devices()?;
    let device = devices.iter().next().context("no RDMA device")?;
    let context = device.open()?;
    let queue = context.create_cq(16, 0)?;
    let domain = context.alloc_pd()?;
    let mut builder = domain.create_qp(&queue, &queue, ibverbs::ibv_qp_type::IBV_QPT_RC);
    if let Some(index) = args.gid_index {
        builder.set_gid_index(index);
    }
    let prepared = builder.build()?;
    let mine = Hello {
        endpoint: prepared.endpoint(),
        bytes: args.bytes,
        count: args.count,
    };
    writeln!(peer, "{}", serde_json::to_string(&mine)?)?;
    let mut lines = BufReader::new(peer.try_clone()?).lines();
    let mut hear = || {
        lines
            .next()
            .context("the other side is gone")?
            .map_err(anyhow::Error::from)
    };
    let theirs: Hello = serde_json::from_str(&hear()?)?;
    // The client's settings apply.
    let of = if args.host.is_some() { &mine } else { &theirs };
    let (bytes, count) = (of.bytes, of.count);
    ensure!(
        (1..=1 << 30).contains(&bytes),
        "{bytes} bytes make no message"
    );
    let mut end = End {
        memory: domain.allocate::<u8>(2 * bytes)?,
        pair: prepared.handshake(theirs.endpoint)?,
        queue: &queue,
        bytes,
        outstanding: [false; 2],
    };
    end.receive()?;
    // Both can receive before either sends.
    writeln!(peer, "ready")?;
    hear()?;
    let mut times = Vec::with_capacity(count);
    for trip in 0..WARM + count {
        let start = Instant::now();
        if args.host.is_some() {
            end.send()?;
        }
        end.wait(RECEIVED)?;
        end.receive()?;
        if args.host.is_none() {
            end.send()?;
        }
        end.wait(SENT)?;
        if trip >= WARM {
            times.push(start.elapsed().as_nanos() as f64 / 2e3);
        }
    }
    times.sort_by(f64::total_cmp);
    if args.host.is_some()
        && let Some(median) = times.get(times.len() / 2)
    {
        println!("send and receive of {bytes} B: {median:.2} µs, half of a round trip");
    }
    // The receive that was posted last has no partner: the other side's queue pair is gone.
    writeln!(peer, "done")?;
    hear().map(drop)
}

/// One side of the connection.
struct End<'a> {
    pair: QueuePair<'a>,
    /// The received message, then the one to send.
    memory: MemoryRegion<u8>,
    queue: &'a CompletionQueue<'a>,
    bytes: usize,
    /// Completions of `SENT` and `RECEIVED` that were polled before they were waited for.
    outstanding: [bool; 2],
}

impl End<'_> {
    fn receive(&mut self) -> Result<()> {
        // SAFETY: the memory lives as long as the queue pair, and is not accessed meanwhile.
        unsafe {
            self.pair
                .post_receive(&mut self.memory, ..self.bytes, RECEIVED)?
        };
        Ok(())
    }

    fn send(&mut self) -> Result<()> {
        // SAFETY: the memory lives as long as the queue pair, and is not changed.
        unsafe { self.pair.post_send(&mut self.memory, self.bytes.., SENT)? };
        Ok(())
    }

    /// Waits for a completion by continuous polling, as perftest does.
    fn wait(&mut self, wanted: u64) -> Result<()> {
        let since = Instant::now();
        let mut taken = [ibv_wc::default(); 4];
        loop {
            for (kind, came) in [SENT, RECEIVED].iter().zip(&mut self.outstanding) {
                if *kind == wanted && std::mem::take(came) {
                    return Ok(());
                }
            }
            let completions = self.queue.poll(&mut taken);
            let Ok(completions) = completions else {
                bail!("the completion queue cannot be polled");
            };
            if completions.is_empty() && since.elapsed() > DEADLINE {
                bail!("no completion within {} s", DEADLINE.as_secs());
            }
            for completion in completions {
                if let Some((status, vendor)) = completion.error() {
                    bail!("a request failed: {status:?}, vendor error {vendor}");
                }
                let at = usize::from(completion.wr_id() == RECEIVED);
                self.outstanding[at] = true;
            }
        }
    }
}
