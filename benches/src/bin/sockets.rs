//! Bare sockets between two hosts, for the rows of `peers --only tcp` that libraries are compared with: a line `ROW NANOSECONDS`
//! for each.
//!
//!     sockets serve PORT    waits for the other end, and serves it until it leaves
//!     sockets HOST PORT     measures
//!
//! Small messages are waited for without sleeping, which is the fastest way.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv6Addr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use oxshmem_benches::batches::{measure, row, row_of};
use oxshmem_benches::sizes::{LARGEST_TCP_BLOCK, TCP_BLOCKS};

/// The time limit for the other end to listen.
const START: Duration = Duration::from_secs(20);

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [end, port] = arguments.as_slice() else {
        bail!("usage: sockets serve PORT | sockets HOST PORT");
    };
    let port = port.parse().with_context(|| format!("{port} is no port"))?;
    if end == "serve" {
        serve(port)
    } else {
        measure_all(connect(end, port)?)
    }
}

/// Takes requests until the other end leaves.
fn serve(port: u16) -> anyhow::Result<()> {
    let listener = TcpListener::bind((Ipv6Addr::UNSPECIFIED, port))?;
    let (mut stream, _) = listener.accept()?;
    prepare(&stream)?;
    let mut block = vec![0; LARGEST_TCP_BLOCK];
    let mut request = [0; 8];
    while receive(&mut stream, &mut request)? {
        let [comes, goes] = lengths(request);
        let block = block.get_mut(..comes.max(goes)).context("a request")?;
        receive(&mut stream, &mut block[..comes])?;
        send(&mut stream, &block[..goes])?;
    }
    Ok(())
}

fn connect(host: &str, port: u16) -> anyhow::Result<TcpStream> {
    let since = Instant::now();
    loop {
        match TcpStream::connect((host, port)) {
            Ok(stream) => {
                prepare(&stream)?;
                return Ok(stream);
            }
            Err(error)
                if error.kind() == ErrorKind::ConnectionRefused && since.elapsed() < START =>
            {
                std::thread::sleep(Duration::from_millis(20));
            }
            Err(error) => return Err(error).with_context(|| format!("{host}:{port}")),
        }
    }
}

fn prepare(stream: &TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_nonblocking(true)
}

/// A request: so many bytes follow, and so many are to come back.
fn request(comes: usize, goes: usize) -> [u8; 8] {
    (comes as u64 | (goes as u64) << 32).to_le_bytes()
}

fn lengths(request: [u8; 8]) -> [usize; 2] {
    let both = u64::from_le_bytes(request);
    [both & 0xffff_ffff, both >> 32].map(|length| length as usize)
}

/// Fills `bytes`; false if the other end has left before the first.
fn receive(stream: &mut TcpStream, bytes: &mut [u8]) -> std::io::Result<bool> {
    let mut filled = 0;
    while filled < bytes.len() {
        match stream.read(&mut bytes[filled..]) {
            Ok(0) if filled == 0 => return Ok(false),
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => filled += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

fn send(stream: &mut TcpStream, mut bytes: &[u8]) -> std::io::Result<()> {
    while !bytes.is_empty() {
        match stream.write(bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn measure_all(mut stream: TcpStream) -> anyhow::Result<()> {
    let mut block = vec![1; LARGEST_TCP_BLOCK];
    let mut word = [0; 8];
    measure(vec![row_of("ping_pong", 2, |n| {
        for _ in 0..n {
            send(&mut stream, &request(0, 8))?;
            receive(&mut stream, &mut word)?;
        }
        Ok::<(), std::io::Error>(())
    })])?;
    for size in TCP_BLOCKS {
        let block = &mut block[..size];
        // Many blocks one way; a word comes back when the last is there.
        measure(vec![row(format!("put_{size}"), |n| {
            for i in 1..=n {
                let answer = if i == n { 8 } else { 0 };
                send(&mut stream, &request(size, answer))?;
                send(&mut stream, block)?;
            }
            receive(&mut stream, &mut word)?;
            Ok::<(), std::io::Error>(())
        })])?;
        measure(vec![row(format!("get_{size}"), |n| {
            for _ in 0..n {
                send(&mut stream, &request(0, size))?;
                receive(&mut stream, block)?;
            }
            Ok::<(), std::io::Error>(())
        })])?;
        measure(vec![row_of(format!("put_latency_{size}"), 2, |n| {
            for _ in 0..n {
                send(&mut stream, &request(size, size))?;
                send(&mut stream, block)?;
                receive(&mut stream, block)?;
            }
            Ok::<(), std::io::Error>(())
        })])?;
    }
    Ok(())
}
