//! The queues of messages and of peers' ends, which go to their handlers in order, whenever those are set.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::bootstrap::{ExitHandler, MessageHandler, PeerExit};
use crate::error::{Error, Result};
use crate::limits::MAX_WAITING_BYTES;
use crate::lock::unpoisoned;
use crate::log;

/// Stack of a receive service's thread, bytes: it runs short handlers, and there is one per PE.
pub(crate) const SERVICE_STACK: usize = 128 << 10;

/// Messages and ends that wait for their handlers, and the handlers.
///
/// One thread, the receive service's, calls [`deliver`](Delivery::deliver) or
/// [`serve`](Delivery::serve); any may call the rest.
#[derive(Default)]
pub(crate) struct Delivery {
    queues: Mutex<Queues>,
    changed: Condvar,
}

#[derive(Default)]
struct Queues {
    messages: VecDeque<(u32, Vec<u8>)>,
    /// Bytes of all messages.
    bytes: usize,
    exits: VecDeque<PeerExit>,
    on_message: Option<Arc<MessageHandler>>,
    on_exit: Option<Arc<ExitHandler>>,
    closed: bool,
}

/// A message or an end, off its queue, and the handler for it.
enum HandlerCall {
    Message(Arc<MessageHandler>, u32, Vec<u8>),
    Exit(Arc<ExitHandler>, PeerExit),
}

impl Queues {
    /// Messages first: a peer's words come before its end.
    fn next_event(&mut self) -> Option<HandlerCall> {
        if let Some(handler) = &self.on_message
            && let Some((from, bytes)) = self.messages.pop_front()
        {
            self.bytes -= bytes.len();
            return Some(HandlerCall::Message(Arc::clone(handler), from, bytes));
        }
        let handler = self.on_exit.as_ref()?;
        let exit = self.exits.pop_front()?;
        Some(HandlerCall::Exit(Arc::clone(handler), exit))
    }

    /// Whether so many bytes wait for a handler that no more are to be received.
    fn full(&self) -> bool {
        self.on_message.is_none() && !self.closed && self.bytes >= MAX_WAITING_BYTES
    }
}

impl HandlerCall {
    fn call(self) {
        match self {
            HandlerCall::Message(handler, from, bytes) => handler(from, &bytes),
            HandlerCall::Exit(handler, exit) => handler(exit),
        }
    }
}

impl Delivery {
    fn lock(&self) -> MutexGuard<'_, Queues> {
        unpoisoned(self.queues.lock())
    }

    fn update<T>(&self, change: impl FnOnce(&mut Queues) -> T) -> T {
        let result = change(&mut self.lock());
        self.changed.notify_all();
        result
    }

    pub(crate) fn push_message(&self, from: u32, bytes: Vec<u8>) {
        self.update(|queues| {
            queues.bytes += bytes.len();
            queues.messages.push_back((from, bytes));
        });
    }

    /// Whether so many bytes wait for a handler that no more messages are to be received.
    pub(crate) fn is_full(&self) -> bool {
        self.lock().full()
    }

    /// Waits at most `limit` until it is not [full](Delivery::is_full); false if it still is.
    pub(crate) fn wait_until_not_full(&self, limit: Duration) -> bool {
        let waited = self
            .changed
            .wait_timeout_while(self.lock(), limit, |queues| queues.full());
        !unpoisoned(waited).0.full()
    }

    pub(crate) fn push_exit(&self, exit: PeerExit) {
        self.update(|queues| queues.exits.push_back(exit));
    }

    pub(crate) fn set_on_message(&self, handler: MessageHandler) -> Result<()> {
        self.update(|queues| match queues.on_message {
            Some(_) => Err(Error::HandlerSet {
                which: "on_message",
            }),
            None => {
                queues.on_message = Some(Arc::new(handler));
                Ok(())
            }
        })
    }

    pub(crate) fn set_on_exit(&self, handler: ExitHandler) -> Result<()> {
        self.update(|queues| match queues.on_exit {
            Some(_) => Err(Error::HandlerSet { which: "on_exit" }),
            None => {
                queues.on_exit = Some(Arc::new(handler));
                Ok(())
            }
        })
    }

    /// Calls the handlers for all that is queued.
    pub(crate) fn deliver(&self) {
        loop {
            // The lock is not held while a handler runs: it may send, which locks again.
            let event = self.lock().next_event();
            match event {
                Some(event) => event.call(),
                None => return,
            }
        }
    }

    /// Delivers until [`close`](Delivery::close).
    pub(crate) fn serve(&self) {
        let mut queues = self.lock();
        while !queues.closed {
            if let Some(event) = queues.next_event() {
                drop(queues);
                event.call();
                queues = self.lock();
            } else {
                queues = unpoisoned(self.changed.wait(queues));
            }
        }
    }

    /// Ends [`serve`](Delivery::serve); drops the queues and the handlers.
    pub(crate) fn close(&self) {
        // Dropped outside the lock: a handler may own a value whose drop calls back here.
        let _dropped = self.update(|queues| {
            std::mem::replace(
                queues,
                Queues {
                    closed: true,
                    ..Queues::default()
                },
            )
        });
    }
}

/// Waits for a receive service's thread to end, unless this is that thread (a handler dropped the
/// bootstrap it belongs to): then it ends by itself when the handler returns.
pub(crate) fn join_service(service: JoinHandle<()>) {
    if service.thread().id() != std::thread::current().id() && service.join().is_err() {
        log::warn("a message or exit handler panicked");
    }
}

impl std::fmt::Debug for Delivery {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let queues = self.lock();
        formatter
            .debug_struct("Delivery")
            .field("messages", &queues.messages.len())
            .field("exits", &queues.exits.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn what_came_before_a_handler_waits_for_it_in_order() {
        let delivery = Delivery::default();
        delivery.push_message(1, vec![10]);
        delivery.push_exit(PeerExit {
            rank: 1,
            orderly: true,
        });
        delivery.push_message(1, vec![11]);
        delivery.deliver();
        let (seen, events) = mpsc::channel();
        let exits = seen.clone();
        delivery
            .set_on_message(Box::new(move |from, bytes| {
                seen.send((from, bytes[0])).unwrap()
            }))
            .unwrap();
        delivery
            .set_on_exit(Box::new(move |exit| exits.send((exit.rank, 0)).unwrap()))
            .unwrap();
        delivery.deliver();
        assert_eq!(
            events.try_iter().collect::<Vec<_>>(),
            [(1, 10), (1, 11), (1, 0)]
        );
    }

    #[test]
    fn messages_without_a_handler_fill_it_until_one_is_set() {
        let delivery = Delivery::default();
        for _ in 0..4 {
            assert!(delivery.wait_until_not_full(Duration::ZERO));
            delivery.push_message(1, vec![0; MAX_WAITING_BYTES / 4]);
        }
        assert!(delivery.is_full() && !delivery.wait_until_not_full(Duration::ZERO));
        let (seen, count) = mpsc::channel();
        delivery
            .set_on_message(Box::new(move |_, bytes| seen.send(bytes.len()).unwrap()))
            .unwrap();
        assert!(!delivery.is_full());
        delivery.deliver();
        assert_eq!(count.try_iter().sum::<usize>(), MAX_WAITING_BYTES);
        assert_eq!(delivery.lock().bytes, 0);
    }

    #[test]
    fn a_second_handler_is_refused() {
        let delivery = Delivery::default();
        delivery.set_on_exit(Box::new(|_| {})).unwrap();
        assert!(matches!(
            delivery.set_on_exit(Box::new(|_| {})),
            Err(Error::HandlerSet { .. })
        ));
    }
}
