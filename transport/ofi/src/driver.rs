//! The thread that drives the provider while no lane does: providers move data only inside calls of them, and
//! messages are served by a CPU. It sleeps while nothing happens.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use oxshmem_transport::{Error, Result};

use crate::limits::NAME;
use crate::shared::Shared;

/// The running thread.
#[derive(Debug)]
pub(crate) struct Driver {
    thread: Option<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
    shared: Arc<Shared>,
}

/// Bytes of its stack; the provider runs on it.
const STACK: usize = 512 << 10;
/// The longest sleep while nothing waits to be sent, in case a wake is lost.
const LONG: Duration = Duration::from_millis(200);
/// The longest sleep while the provider has no room for something.
const SHORT: Duration = Duration::from_millis(1);
/// The pause between two looks whether lanes still drive the provider themselves: the first, and the longest.
const FIRST_PAUSE: Duration = Duration::from_micros(50);
const LAST_PAUSE: Duration = Duration::from_millis(1);
/// Sleeps between polls of a provider that has no descriptor: the first, and the longest.
const FIRST_NAP: Duration = Duration::from_micros(20);
const LAST_NAP: Duration = Duration::from_millis(1);
/// The longest wait for the last messages to leave, at the end.
const LINGER: Duration = Duration::from_secs(1);

impl Driver {
    pub(crate) fn start(shared: &Arc<Shared>) -> Result<Driver> {
        let stop = Arc::new(AtomicBool::new(false));
        let (of_thread, stopped) = (Arc::clone(shared), Arc::clone(&stop));
        let thread = std::thread::Builder::new()
            .name("oxshmem-ofi".into())
            .stack_size(STACK)
            .spawn(move || run(&of_thread, &stopped))
            .map_err(|source| Error::Os {
                transport: NAME,
                call: "starting the thread that moves data".into(),
                source,
            })?;
        Ok(Driver {
            thread: Some(thread),
            stop,
            shared: Arc::clone(shared),
        })
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        self.shared.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        // Others may wait for the last acknowledgements.
        let since = Instant::now();
        loop {
            let mut state = self.shared.lock();
            let worked = self.shared.drive(&mut state);
            let done = state.failed.is_some() || (!worked && state.is_quiet());
            drop(state);
            if done || since.elapsed() > LINGER {
                return;
            }
            std::thread::sleep(FIRST_NAP);
        }
    }
}

fn run(shared: &Shared, stop: &AtomicBool) {
    let mut attended = 0;
    let mut nap = FIRST_NAP;
    let mut pause = FIRST_PAUSE;
    while !stop.load(Ordering::Acquire) {
        if shared.is_attended(&mut attended) {
            std::thread::sleep(pause);
            pause = (2 * pause).min(LAST_PAUSE);
            continue;
        }
        pause = FIRST_PAUSE;
        let mut state = shared.lock();
        if shared.drive(&mut state) {
            nap = FIRST_NAP;
            drop(state);
            // Others that want the lock get it.
            std::thread::yield_now();
            continue;
        }
        let Some(endpoint) = &state.endpoint else {
            // It has failed: nothing more moves.
            drop(state);
            shared.await_descriptor(None, LONG);
            continue;
        };
        let longest = if state.has_more() { SHORT } else { LONG };
        let sleeps = endpoint.may_sleep();
        match endpoint.wait_descriptor().filter(|_| sleeps.is_some()) {
            Some(fd) if sleeps == Some(true) => {
                shared.asleep.store(true, Ordering::Release);
                drop(state);
                shared.await_descriptor(Some(fd), longest);
                shared.asleep.store(false, Ordering::Release);
            }
            Some(_) => {
                drop(state);
                std::thread::yield_now();
            }
            None => {
                drop(state);
                std::thread::sleep(nap);
                nap = (2 * nap).min(LAST_NAP);
            }
        }
    }
}
