//! Single operations between two PEs, and the machine's own limits for the same work.

use std::cell::Cell;
use std::hint::black_box;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use anyhow::{Context, ensure};
use oxshmem::{Cmp, SignalOp, Sym, World};
use oxshmem_benches::batches::{Row, measure, row, row_of};
use oxshmem_benches::limits;
use oxshmem_benches::sizes::{BLOCKS, LARGEST, SMALL_BLOCKS, WINDOW, WORDS, latency_blocks};

use crate::together::Together;

/// A page; both sides align their buffers to it.
const PAGE: usize = 4096;

pub fn run(world: &World) -> anyhow::Result<()> {
    ensure!(
        world.n_pes() == 2,
        "`peer micro` needs 2 PEs, not {}",
        world.n_pes()
    );
    let objects = Objects::new(world, LARGEST)?;
    let Objects { words, block, .. } = objects;
    let (ping, pong, done) = objects.lines()?;
    let mut local = Buffer::new(LARGEST);
    if world.my_pe() == 0 {
        // First, since every quiet is a full fence once a pointer has been handed out.
        measure(vec![row("quiet_clean", |n| {
            (0..n).try_for_each(|_| black_box(world).quiet())
        })])?;
        let peer = Mapped::of(world, words, block)?;
        small(world, words, peer)?;
        for size in SMALL_BLOCKS.into_iter().chain(BLOCKS) {
            blocks(
                world,
                block.range(..size)?,
                &mut local.bytes()[..size],
                peer,
            )?;
        }
        world.p(done, 1, 1)?;
        world.quiet()?;
    } else {
        // Keeps off the caches, and off any wait that would make progress.
        while world.g(done, 1)? == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    let together = Together::new(world)?;
    let trips = Cell::new(0);
    ping_pong(world, [ping, pong], &trips, &together)?;
    for size in latency_blocks() {
        let (block, local) = (block.range(..size)?, &local.bytes()[..size]);
        let exchanged = put_ping_pong(world, [ping, pong], block, local, &trips);
        together.measure(vec![row_of(format!("put_latency_{size}"), 2, exchanged)])?;
    }
    barrier(world, &together)?;
    together.free()?;
    Ok(objects.free(world)?)
}

/// The objects of the measurements between two PEs.
#[derive(Clone, Copy)]
pub struct Objects {
    pub words: Sym<u64>,
    pub block: Sym<u8>,
    lines: Sym<u64>,
}

impl Objects {
    /// Objects with zeroed words, and a block of so many bytes with those of a [`Buffer`]. All PEs call this together.
    pub fn new(world: &World, largest: usize) -> oxshmem::Result<Self> {
        let objects = Objects {
            words: world.alloc_aligned(WORDS, PAGE)?,
            block: world.alloc_aligned(largest, PAGE)?,
            lines: world.alloc_aligned(PAGE / 8, PAGE)?,
        };
        world.write(objects.words, &[0; WORDS])?;
        world.write(objects.block, Buffer::new(largest).bytes())?;
        world.write(objects.lines, &[0; PAGE / 8])?;
        world.barrier_all()?;
        Ok(objects)
    }

    /// Three words in cache lines of their own: ping, pong, and the end of PE 0's measurements.
    pub fn lines(&self) -> oxshmem::Result<(Sym<u64>, Sym<u64>, Sym<u64>)> {
        Ok((self.lines.at(0)?, self.lines.at(64)?, self.lines.at(128)?))
    }

    pub fn free(self, world: &World) -> oxshmem::Result<()> {
        world.free(self.lines)?;
        world.free(self.block)?;
        world.free(self.words)
    }
}

/// Private memory, on a page boundary as in `peers.c`.
pub struct Buffer {
    bytes: Vec<u8>,
    start: usize,
}

impl Buffer {
    pub fn new(len: usize) -> Self {
        let bytes = vec![1; len + PAGE];
        let start = bytes.as_ptr().align_offset(PAGE);
        Buffer { bytes, start }
    }

    pub fn bytes(&mut self) -> &mut [u8] {
        let end = self.bytes.len() - PAGE + self.start;
        &mut self.bytes[self.start..end]
    }
}

/// PE 1's memory as PE 0 maps it, for the limits.
#[derive(Clone, Copy)]
struct Mapped<'w> {
    words: &'w [AtomicU64],
    block: NonNull<u8>,
}

impl<'w> Mapped<'w> {
    fn of(world: &'w World, words: Sym<u64>, block: Sym<u8>) -> anyhow::Result<Self> {
        let block = address(world, block, 1)?;
        let first: NonNull<AtomicU64> = address(world, words, 1)?.cast();
        // SAFETY: `WORDS` aligned words, mapped while the world lives, and no code here has a plain
        // reference to them.
        let words = unsafe { std::slice::from_raw_parts(first.as_ptr(), words.len()) };
        Ok(Mapped { words, block })
    }
}

/// The address at which an object of a PE is mapped.
fn address<T: bytemuck::Pod>(
    world: &World,
    object: Sym<T>,
    pe: usize,
) -> anyhow::Result<NonNull<T>> {
    let view = world
        .ptr(object, pe)
        .with_context(|| format!("PE {pe}'s memory is not mapped"))?;
    NonNull::new(view.as_ptr()).context("a mapped object at address 0")
}

/// The limits' own check never fails; if it did, the row would be wrong.
fn inside(result: Result<(), limits::Outside>) -> oxshmem::Result<()> {
    assert!(result.is_ok(), "a limit's loop left its words");
    Ok(())
}

const MASK: usize = WORDS - 1;

fn small(world: &World, words: Sym<u64>, peer: Mapped<'_>) -> oxshmem::Result<()> {
    measure(vec![
        row("put8", |n| put8(world, words, n)),
        row("p8", |n| p8(world, words, n)),
        row("store8", |n| inside(limits::store(peer.words, n))),
    ])?;
    let window = WINDOW as u64;
    measure(vec![
        row_of("put8_window", window, |n| put8_window(world, words, n)),
        row_of("put_nbi8_window", window, |n| {
            put_nbi8_window(world, words, n)
        }),
    ])?;
    measure(vec![
        row("get8", |n| get8(world, words, n)),
        row("g8", |n| g8(world, words, n)),
        row("load8", |n| inside(limits::load(peer.words, n))),
    ])?;
    measure(vec![
        row("fetch_add8", |n| fetch_add8(world, words, n)),
        row("add8", |n| add8(world, words, n)),
        row("compare_swap8", |n| compare_swap8(world, words, n)),
        row("xadd8", |n| inside(limits::fetch_add(peer.words, n))),
    ])?;
    measure(vec![
        row("put_quiet", |n| put_quiet(world, words, n)),
        row("store_mfence", |n| {
            inside(limits::store_fence(peer.words, n))
        }),
        row("store_locked", |n| {
            inside(limits::store_locked(peer.words, n))
        }),
    ])
}

// The measured loops are functions of a world and an object, as in a program, just as those of
// `limits` are functions of a slice. They are not inlined, so that the compiler knows nothing of
// the object; `black_box` would put it into memory that each put might change.

#[inline(never)]
pub fn put8(world: &World, words: Sym<u64>, n: u64) -> oxshmem::Result<()> {
    for i in 0..n {
        world.put(words.at(i as usize & MASK)?, &[i], 1)?;
    }
    world.quiet()
}

#[inline(never)]
fn put8_window(world: &World, words: Sym<u64>, n: u64) -> oxshmem::Result<()> {
    for i in 0..n {
        for w in 0..WINDOW {
            world.put(words.at(w)?, &[i + w as u64], 1)?;
        }
        world.quiet()?;
    }
    Ok(())
}

#[inline(never)]
pub fn put_nbi8_window(world: &World, words: Sym<u64>, n: u64) -> oxshmem::Result<()> {
    let values: [u64; WINDOW] = std::array::from_fn(|w| w as u64);
    for _ in 0..n {
        world.scope(|scope| {
            let mut each = black_box(&values).chunks(1).enumerate();
            each.try_for_each(|(w, value)| scope.put_nbi(words.at(w)?, value, 1))
        })?;
    }
    Ok(())
}

#[inline(never)]
fn p8(world: &World, words: Sym<u64>, n: u64) -> oxshmem::Result<()> {
    for i in 0..n {
        world.p(words.at(i as usize & MASK)?, i, 1)?;
    }
    world.quiet()
}

#[inline(never)]
pub fn get8(world: &World, words: Sym<u64>, n: u64) -> oxshmem::Result<()> {
    let mut sum = 0_u64;
    for i in 0..n {
        let mut value = [0];
        world.get(&mut value, words.at(i as usize & MASK)?, 1)?;
        sum = sum.wrapping_add(value[0]);
    }
    black_box(sum);
    Ok(())
}

#[inline(never)]
fn g8(world: &World, words: Sym<u64>, n: u64) -> oxshmem::Result<()> {
    let mut sum = 0_u64;
    for i in 0..n {
        sum = sum.wrapping_add(world.g(words.at(i as usize & MASK)?, 1)?);
    }
    black_box(sum);
    Ok(())
}

#[inline(never)]
fn add8(world: &World, words: Sym<u64>, n: u64) -> oxshmem::Result<()> {
    for i in 0..n {
        world.add(words.at(i as usize & MASK)?, 1, 1)?;
    }
    world.quiet()
}

#[inline(never)]
fn compare_swap8(world: &World, words: Sym<u64>, n: u64) -> oxshmem::Result<()> {
    let mut sum = 0_u64;
    for i in 0..n {
        let old = world.compare_swap(words.at(i as usize & MASK)?, i, i + 1, 1)?;
        sum = sum.wrapping_add(old);
    }
    black_box(sum);
    Ok(())
}

#[inline(never)]
pub fn fetch_add8(world: &World, words: Sym<u64>, n: u64) -> oxshmem::Result<()> {
    let mut sum = 0_u64;
    for i in 0..n {
        let old = world.fetch_add(words.at(i as usize & MASK)?, 1, 1)?;
        sum = sum.wrapping_add(old);
    }
    black_box(sum);
    Ok(())
}

#[inline(never)]
pub fn put_quiet(world: &World, words: Sym<u64>, n: u64) -> oxshmem::Result<()> {
    for i in 0..n {
        world.put(words.at(i as usize & MASK)?, &[i], 1)?;
        world.quiet()?;
    }
    Ok(())
}

/// Puts and gets of a whole block, and memcpy between the same bytes.
fn blocks(
    world: &World,
    block: Sym<u8>,
    local: &mut [u8],
    peer: Mapped<'_>,
) -> oxshmem::Result<()> {
    let size = local.len();
    let remote = peer.block.as_ptr().cast::<libc::c_void>();
    let local_at = local.as_ptr().cast::<libc::c_void>();
    measure(vec![
        row(format!("put_{size}"), |n| {
            for _ in 0..n {
                world.put(block, black_box(&*local), 1)?;
            }
            world.quiet()
        }),
        row(format!("memcpy_put_{size}"), |n| {
            for _ in 0..n {
                // SAFETY: `size` bytes are mapped there and lie in `local`, which nothing else uses
                // meanwhile; the peer does not access its block.
                unsafe { libc::memcpy(black_box(remote), black_box(local_at), black_box(size)) };
            }
            Ok(())
        }),
    ])?;
    let local_at = local.as_mut_ptr().cast::<libc::c_void>();
    let copy = |n| {
        for _ in 0..n {
            // SAFETY: as above, in the other direction; `local_at` is the only pointer to `local` in
            // use.
            unsafe { libc::memcpy(black_box(local_at), black_box(remote), black_box(size)) };
        }
        Ok(())
    };
    let get = |n| {
        for _ in 0..n {
            // SAFETY: `size` bytes of `local`, which is borrowed mutably and otherwise unused.
            let local = unsafe { std::slice::from_raw_parts_mut(local_at.cast::<u8>(), size) };
            world.get(black_box(local), block, 1)?;
        }
        Ok(())
    };
    measure(vec![
        row(format!("get_{size}"), get),
        row(format!("memcpy_get_{size}"), copy),
    ])
}

pub fn barrier_alone(world: &World) -> anyhow::Result<()> {
    let together = Together::new(world)?;
    barrier(world, &together)?;
    together.free()?;
    Ok(())
}

pub fn barrier(world: &World, together: &Together<'_>) -> oxshmem::Result<()> {
    let barriers = |n| (0..n).try_for_each(|_| world.barrier_all());
    let name = format!("barrier_{}", world.n_pes());
    together.measure(vec![row(name, barriers)])
}

/// A word to the other, and one back after it has arrived.
pub fn p_ping_pong<'a>(
    world: &'a World,
    [ping, pong]: [Sym<u64>; 2],
    trips: &'a Cell<u64>,
) -> impl FnMut(u64) -> oxshmem::Result<()> + 'a {
    let first = world.my_pe() == 0;
    move |n| {
        for value in trips.get() + 1..=trips.get() + n {
            if first {
                world.p(ping, value, 1)?;
                world.wait_until(pong, Cmp::Eq, value)?;
            } else {
                world.wait_until(ping, Cmp::Eq, value)?;
                world.p(pong, value, 0)?;
            }
        }
        trips.set(trips.get() + n);
        Ok(())
    }
}

/// A put to the other's block with a flag, and the same back after it has arrived.
pub fn put_ping_pong<'a>(
    world: &'a World,
    [ping, pong]: [Sym<u64>; 2],
    block: Sym<u8>,
    local: &'a [u8],
    trips: &'a Cell<u64>,
) -> impl FnMut(u64) -> oxshmem::Result<()> + 'a {
    let first = world.my_pe() == 0;
    move |n| {
        for value in trips.get() + 1..=trips.get() + n {
            if first {
                world.put_signal(block, local, ping, value, SignalOp::Set, 1)?;
                world.wait_until(pong, Cmp::Eq, value)?;
            } else {
                world.wait_until(ping, Cmp::Eq, value)?;
                world.put_signal(block, local, pong, value, SignalOp::Set, 0)?;
            }
        }
        trips.set(trips.get() + n);
        Ok(())
    }
}

fn ping_pong(
    world: &World,
    [ping, pong]: [Sym<u64>; 2],
    trips: &Cell<u64>,
    together: &Together<'_>,
) -> anyhow::Result<()> {
    let first = world.my_pe() == 0;
    // The same two cache lines, with no library in between.
    let (to, from) = if first { (ping, pong) } else { (pong, ping) };
    let theirs: NonNull<AtomicU64> = address(world, to, 1 - world.my_pe())?.cast();
    let mine: NonNull<AtomicU64> = address(world, from, world.my_pe())?.cast();
    // SAFETY: aligned words, mapped while the world lives, never behind a plain reference.
    let (mine, theirs) = unsafe { (mine.as_ref(), theirs.as_ref()) };
    let rows = vec![
        // A round trip is two of them.
        row_of("ping_pong", 2, p_ping_pong(world, [ping, pong], trips)),
        bare(
            "bare_ping_pong",
            first,
            mine,
            theirs,
            trips,
            limits::at_once,
        ),
        bare(
            "bare_ping_pong_steps",
            first,
            mine,
            theirs,
            trips,
            limits::few_steps,
        ),
        bare(
            "bare_ping_pong_pause",
            first,
            mine,
            theirs,
            trips,
            std::hint::spin_loop,
        ),
    ];
    together.measure(rows)?;
    Ok(())
}

/// A bare ping-pong, inlined for each method of waiting.
fn bare<'a>(
    name: &str,
    first: bool,
    mine: &'a AtomicU64,
    theirs: &'a AtomicU64,
    trips: &'a Cell<u64>,
    between: impl Fn() + 'a,
) -> Row<'a, oxshmem::Error> {
    row_of(name, 2, move |n| {
        limits::ping_pong(first, mine, theirs, trips.get(), n, &between);
        trips.set(trips.get() + n);
        Ok(())
    })
}
