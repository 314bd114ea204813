//! The engine: the thread that plays this process's NICs. It sleeps while nothing is to be done.

use std::cmp::Reverse;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::Instant;

use crate::counters::COUNTERS;
use crate::network::Network;
use crate::sync::lock;
use crate::world::{Timer, World, world};

/// Steps of work until the lock is given to calls that wait for it.
const STEPS: usize = 64;

#[derive(Debug)]
struct Engine {
    /// Wakes the thread.
    wake: OwnedFd,
    asleep: AtomicBool,
    /// Queue pairs with new requests.
    rung: Mutex<Vec<u32>>,
    network: Network,
}

static ENGINE: OnceLock<Result<Engine, String>> = OnceLock::new();

/// Whether the engine has work, so that those who poll in vain let it run.
static BUSY: AtomicBool = AtomicBool::new(false);

/// Starts the engine, if it does not run; the number of this process among those of its network.
pub(crate) fn start() -> Result<u32, String> {
    static STARTING: Mutex<()> = Mutex::new(());
    let _one = lock(&STARTING);
    let fresh = ENGINE.get().is_none();
    let made = ENGINE.get_or_init(Engine::new);
    let engine = made.as_ref().map_err(Clone::clone)?;
    if fresh {
        // SAFETY: the handler has no precondition.
        unsafe { libc::atexit(at_exit) };
        lock(world()?).process = Some(engine.network.process());
        let thread = std::thread::Builder::new().name("softnic".into());
        thread
            .spawn(move || engine.run())
            .map_err(|error| error.to_string())?;
    }
    Ok(engine.network.process())
}

/// Leaves nothing behind but the counts that were asked for.
extern "C" fn at_exit() {
    let Some(Ok(engine)) = ENGINE.get() else {
        return;
    };
    if crate::object::FORKED.load(Ordering::Relaxed) {
        return;
    }
    engine.network.leave();
    let file = crate::settings::settings()
        .ok()
        .and_then(|settings| settings.counters.as_ref());
    if let Some(file) = file {
        let name = format!("{}.{}", file.display(), std::process::id());
        if let Err(error) = std::fs::write(&name, COUNTERS.text()) {
            eprintln!("softnic: {name}: {error}");
        }
    }
}

/// Tells the engine of new requests on a queue pair, or of a new state.
pub(crate) fn ring(pair: u32) {
    if let Some(Ok(engine)) = ENGINE.get() {
        lock(&engine.rung).push(pair);
        engine.wake();
    }
}

/// Has the engine look at its timers.
pub(crate) fn nudge() {
    if let Some(Ok(engine)) = ENGINE.get() {
        // Whether it sleeps or is about to.
        engine.asleep.store(true, Ordering::SeqCst);
        engine.wake();
    }
}

/// Lets the engine run, if it has work.
pub(crate) fn yield_to_engine() {
    // Relaxed: a hint.
    if BUSY.load(Ordering::Relaxed) {
        std::thread::yield_now();
    }
}

impl Engine {
    fn new() -> Result<Engine, String> {
        let settings = crate::settings::settings()?;
        // SAFETY: no memory is involved.
        let wake = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if wake < 0 {
            return Err(std::io::Error::last_os_error().to_string());
        }
        Ok(Engine {
            // SAFETY: a new descriptor, which nobody else owns.
            wake: unsafe { OwnedFd::from_raw_fd(wake) },
            asleep: AtomicBool::new(false),
            rung: Mutex::default(),
            network: Network::join(settings)?,
        })
    }

    fn wake(&self) {
        // SeqCst: either this sees that the thread sleeps, or the thread sees the work before it does.
        BUSY.store(true, Ordering::SeqCst);
        if self.asleep.swap(false, Ordering::SeqCst) {
            let one = 1u64.to_ne_bytes();
            // SAFETY: eight bytes are read.
            unsafe { libc::write(self.wake.as_raw_fd(), one.as_ptr().cast(), 8) };
        }
    }

    fn run(&self) {
        let Ok(world) = world() else { return };
        loop {
            let (idle, next) = {
                let mut world = lock(world);
                world.now = Instant::now();
                let idle = !self.step(&mut world);
                (idle, world.timers.peek().map(|Reverse((at, _))| *at))
            };
            if idle {
                self.sleep(next);
            }
        }
    }

    /// Does some work; false if there is none.
    fn step(&self, world: &mut World) -> bool {
        BUSY.store(true, Ordering::SeqCst);
        let mut worked = false;
        let rung = std::mem::take(&mut *lock(&self.rung));
        for pair in rung {
            worked = true;
            world.advance(pair);
        }
        for packet in self.network.receive() {
            worked = true;
            world.local.push_back(packet);
        }
        for _ in 0..STEPS {
            let Some(packet) = world.local.pop_front() else {
                break;
            };
            worked = true;
            match packet.body.is_request() {
                true => world.requested(packet),
                false => world.answered(packet),
            }
        }
        while let Some(Reverse((at, timer))) = world.timers.peek().copied()
            && at <= world.now
            // An answer that has come is in time, however late this thread is.
            && (!matches!(timer, Timer::Answer(_)) || world.local.is_empty())
        {
            worked = true;
            world.timers.pop();
            fire(world, timer);
        }
        let sent = self.network.send(&mut world.remote);
        worked || sent || !world.local.is_empty()
    }

    /// Sleeps until it is woken, a packet comes, or a timer is due.
    fn sleep(&self, next: Option<Instant>) {
        BUSY.store(false, Ordering::SeqCst);
        self.asleep.store(true, Ordering::SeqCst);
        let awake = !lock(&self.rung).is_empty();
        if !awake {
            let at_most = self.network.retry().into_iter();
            let timer = next.map(|next| next.saturating_duration_since(Instant::now()));
            self.network
                .wait(self.wake.as_raw_fd(), at_most.chain(timer).min());
        }
        self.asleep.store(false, Ordering::SeqCst);
        let mut count = [0u8; 8];
        // SAFETY: eight bytes are written.
        unsafe { libc::read(self.wake.as_raw_fd(), count.as_mut_ptr().cast(), 8) };
    }
}

fn fire(world: &mut World, timer: Timer) {
    match timer {
        Timer::Answer(pair) => world.unanswered(pair),
        Timer::Pause(pair) => world.resume(pair),
        Timer::Arrive(pair, sequence, part) => world.arrive(pair, sequence, part),
        Timer::Place(pair, id) => world.place(pair, id),
        Timer::Link(device, port) => world.link_returns(device, port),
        Timer::Flush(pair) => world.flush_late(pair),
        Timer::Event(card, kind, element) => world.tell(card, kind, element),
    }
}
