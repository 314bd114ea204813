//! The end of a lane: it disconnects from the responders of all its peers.

use std::time::{Duration, Instant};

use oxshmem_transport::Pe;

use super::VerbsLane;
use super::batch::Operation;
use super::connection::{Connection, ConnectionState};
use crate::completion_error::CompletionError;

/// How long a lane that ends waits for the responders to receive its disconnect messages.
const DISCONNECT_TIMEOUT: Duration = Duration::from_millis(20);

impl VerbsLane {
    /// Announces to the responders that their queue pairs may end, and waits for [`DISCONNECT_TIMEOUT`]
    /// at most until they have received it. Otherwise they keep those until their domain ends.
    fn disconnect_all(&mut self) {
        let mut sent = 0;
        for at in 0..self.connections.len() {
            let pe = Pe(at as u32);
            // One that was held back, too.
            self.connections[at].open();
            let queues = match &self.connections[at].state {
                ConnectionState::Connected(queues) => queues.numbers(),
                _ => continue,
            };
            for queue in queues {
                sent += u32::from(self.push_alone(pe, queue, Operation::Disconnect));
            }
        }
        let since = Instant::now();
        let outstanding = |connection: &Connection| match &connection.state {
            ConnectionState::Connected(queues) => queues.outstanding() > 0,
            _ => false,
        };
        while sent > 0
            && self.connections.iter().any(outstanding)
            && since.elapsed() < DISCONNECT_TIMEOUT
        {
            if self.poll().is_err() {
                return;
            }
            std::thread::yield_now();
        }
    }
}

impl Drop for VerbsLane {
    fn drop(&mut self) {
        self.refresh_if_changed();
        // After a shutdown the peers end as well.
        if !self.closed {
            self.disconnect_all();
        }
        // Nothing that is outstanding may access its memory after this.
        for connection in &mut self.connections {
            connection.fail(CompletionError::Lost, &mut self.pool);
        }
    }
}
